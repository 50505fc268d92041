//! The key from which a party's noise is derived.
//!
//! Every answer has a generator of its own, seeded by a hash of the party's key, the iteration, the query, the problem
//! and the price. No two answers share noise. The same query asked twice under one key gets the same answer, which
//! reveals nothing new.
//!
//! A secret key is a ratchet: after an answer it is replaced by a hash of itself. Whoever finds the key later can draw
//! later noise, but not that of the answers before, and so cannot subtract it.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use zeroize::{Zeroizing, zeroize_stack};

use crate::privacy::{IdealRelease, NoiseFamily, PrivacyEvent};
use crate::problem::{Loss, Problem};
use crate::protocol::query::Query;

/// A secret from which the noise of one answer is derived. It is neither `Clone` nor `Debug`.
///
/// Its bytes lie in one place of the memory until they are wiped, when it is dropped: moving it does not move them.
pub struct NoiseSecret(Box<Zeroizing<[u8; 32]>>);

impl NoiseSecret {
    /// Copies 32 secret bytes, which stay the caller's to wipe.
    pub fn copy_of(bytes: &[u8; 32]) -> Self {
        let mut secret = Self(Box::default());
        secret.0.copy_from_slice(bytes);
        secret
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Replaces the secret by that of the next data step. It does not lead back.
    pub fn advance(&mut self) {
        let mut hash = Sha256::new();
        hash.update(b"radmm ratchet v1\0");
        hash.update(self.bytes());
        hash.finalize_into_reset((&mut **self.0).into());
        drop(hash);
        Self::wipe_stack();
    }

    /// Writes over the part of the stack in which functions that have returned may have left bytes of a secret.
    pub fn wipe_stack() {
        zeroize_stack::<WIPED_STACK>();
    }
}

/// The key from which a party's noise is derived. It is neither `Clone` nor `Debug`, and wiped when it is dropped.
pub struct NoiseKey {
    key: NoiseSecret,
    repeats: bool,
}

impl NoiseKey {
    /// Creates a key from a secret. A real party takes 32 bytes from its operating system, once per study, and replaces them by the
    /// [next secret](NoiseSecret::advance) after every answer.
    pub fn secret(key: NoiseSecret) -> Self {
        let repeats = false;
        Self { key, repeats }
    }

    /// Forgets what could draw the noise of the last answer again, unless it repeats anyway.
    pub(super) fn ratchet(&mut self) {
        if !self.repeats {
            self.key.advance();
            NoiseSecret::wipe_stack();
        }
    }

    /// Creates a key whose noise repeats, for simulations. Anyone who knows the seed can subtract the noise, so it
    /// protects nobody.
    pub fn repeating(seed: u64, repetition: u32, node: u32) -> Self {
        let mut key = *b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0radmm noise v1\0\0";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..12].copy_from_slice(&repetition.to_le_bytes());
        key[12..16].copy_from_slice(&node.to_le_bytes());
        let key = NoiseSecret::copy_of(&key);
        Self { key, repeats: true }
    }

    /// Returns whether others can draw this noise again, so that it protects nobody.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// Returns the generator for one answer.
    // Privacy: if noise did not depend on everything that an answer depends on except the rows, two answers under one
    // key could be made to differ by a noise-free quantity.
    pub(super) fn generator(&self, inputs: &SeedInputs<'_>) -> ChaCha20Rng {
        let mut hash = Sha256::new();
        hash.update(self.key.bytes());
        hash.update(inputs.iteration.to_le_bytes());
        let mut absorb = |kind: u8, numbers: &[f64]| {
            hash.update([kind]);
            hash.update((numbers.len() as u64).to_le_bytes());
            for number in numbers {
                hash.update(number.to_bits().to_le_bytes());
            }
        };
        match inputs.query {
            Query::Minimise {
                quadratic,
                linear,
                near,
            } => {
                absorb(0, &[*quadratic]);
                absorb(1, linear);
                absorb(2, near);
            }
            Query::Gradient { at } => absorb(3, at),
            Query::GradientSum { at, scale, metric } => {
                absorb(15, at);
                absorb(16, &[*scale]);
                if let Some(metric) = metric {
                    // Words of the digest, as bit patterns.
                    let word = |k: usize| f64::from_bits(metric.digest_word(k));
                    absorb(17, &[0, 1, 2, 3].map(word));
                }
            }
            Query::GramSum { scale, noise } => absorb(18, &[*scale, *noise]),
            Query::RowSum { scale, noise } => absorb(19, &[*scale, *noise]),
        }
        match inputs.event.ideal {
            IdealRelease::Exact => absorb(4, &[]),
            IdealRelease::Objective {
                sensitivity,
                spread,
                law,
                ..
            } => absorb(5, &[sensitivity, spread, law.parameter()]),
            IdealRelease::Additive { sensitivity, law } => {
                absorb(6, &[sensitivity, law.parameter()])
            }
        }
        // A rate alone does not tell Laplace noise from gamma noise.
        if let IdealRelease::Objective { law, .. } | IdealRelease::Additive { law, .. } =
            inputs.event.ideal
            && law.family() == NoiseFamily::Laplace
        {
            absorb(20, &[]);
        }
        let Problem {
            loss,
            weight,
            ridge,
            nodes,
            tolerance,
            // It enters through the sensitivity.
            shape: _,
        } = *inputs.problem;
        match loss {
            Loss::Logistic => absorb(7, &[]),
            Loss::SmoothHinge { width } => absorb(8, &[width]),
            Loss::CutLogistic => absorb(14, &[]),
        }
        absorb(9, &[weight, ridge, f64::from(nodes), tolerance]);
        absorb(10, &[inputs.rows as f64, inputs.event.slack]);
        // Domain separation: marks answers on the grid.
        absorb(11, &[]);
        let mut seed = Zeroizing::new([0; 32]);
        hash.finalize_into_reset((&mut *seed).into());
        ChaCha20Rng::from_seed(*seed)
    }
}

/// The number of bytes of the stack that are written over, several times what drawing noise takes.
const WIPED_STACK: usize = 1 << 15;

/// Everything that an answer depends on, except the rows themselves and the noise.
pub(super) struct SeedInputs<'a> {
    pub iteration: u32,
    pub query: &'a Query,
    pub event: &'a PrivacyEvent,
    pub problem: &'a Problem,
    pub rows: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::independence::{assert_pairwise_independent, assert_sizes_are_distinct};
    use crate::privacy::{NoiseDistribution, SlopeCurve};
    use std::collections::BTreeSet;

    /// Kolmogorov–Smirnov test at n samples: under the null, P(√n·D > 2.7) < 2·e^(−2·2.7²) < 1e-6. Seeds are fixed, so
    /// these tests fail always or never. The chance that a correct sampler has a bad seed is 1e-6.
    fn assert_follows(mut samples: Vec<f64>, cdf: impl Fn(f64) -> f64) {
        samples.sort_by(f64::total_cmp);
        let n = samples.len() as f64;
        let distance = samples
            .iter()
            .enumerate()
            .map(|(k, &x)| {
                let f = cdf(x);
                (f - k as f64 / n).abs().max(((k + 1) as f64 / n - f).abs())
            })
            .fold(0.0, f64::max);
        assert!(n.sqrt() * distance < 2.7, "KS distance {distance} at {n}");
    }

    /// Draws the noise of one answer to an arbitrary query.
    fn draw(law: NoiseDistribution, columns: usize, key: &NoiseKey, iteration: u32) -> Vec<f64> {
        draw_for(law, columns, key, iteration, &gradient(0.0))
    }

    fn draw_for(
        law: NoiseDistribution,
        columns: usize,
        key: &NoiseKey,
        t: u32,
        query: &Query,
    ) -> Vec<f64> {
        let event = PrivacyEvent::from(IdealRelease::Additive {
            sensitivity: 1.0,
            law,
        });
        law.sample(columns, &mut generator(key, t, query, &event, &PROBLEM))
    }

    fn secret(bytes: [u8; 32]) -> NoiseKey {
        NoiseKey::secret(NoiseSecret::copy_of(&bytes))
    }

    const PROBLEM: Problem = Problem {
        loss: Loss::Logistic,
        weight: 1.0,
        ridge: 1.0,
        nodes: 2,
        tolerance: 1e-10,
        shape: None,
    };

    fn generator(
        key: &NoiseKey,
        iteration: u32,
        query: &Query,
        event: &PrivacyEvent,
        problem: &Problem,
    ) -> ChaCha20Rng {
        key.generator(&SeedInputs {
            iteration,
            query,
            event,
            problem,
            rows: 10,
        })
    }

    fn gradient(at: f64) -> Query {
        Query::Gradient { at: vec![at] }
    }

    fn draws(law: NoiseDistribution, columns: usize, count: u32) -> Vec<Vec<f64>> {
        let key = NoiseKey::repeating(7, 0, 0);
        (0..count).map(|t| draw(law, columns, &key, t)).collect()
    }

    fn norm(e: &[f64]) -> f64 {
        e.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Regularised lower incomplete gamma function for integer shape: 1 − e^(−x) Σ_{k<shape} x^k/k!.
    fn gamma_cdf(shape: usize, x: f64) -> f64 {
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 0..shape {
            sum += term;
            term *= x / (k + 1) as f64;
        }
        1.0 - (-x).exp() * sum
    }

    fn normal_cdf(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    #[test]
    fn the_norm_of_gamma_noise_is_gamma_distributed() {
        for (columns, rate) in [(1, 2.0), (3, 0.5), (105, 4.0)] {
            let norms = draws(NoiseDistribution::Gamma { rate }, columns, 20_000)
                .iter()
                .map(|e| norm(e))
                .collect();
            assert_follows(norms, |x| gamma_cdf(columns, rate * x));
        }
    }

    #[test]
    fn the_direction_of_gamma_noise_is_uniform() {
        // On the sphere in R³ every coordinate of the direction is uniform on [−1, 1] (Archimedes), in any rotated
        // frame, and the direction is independent of the norm.
        let all = draws(NoiseDistribution::Gamma { rate: 1.0 }, 3, 20_000);
        let frames = [
            [1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.6, -0.48, 0.64],
        ];
        for frame in frames {
            let along =
                |e: &Vec<f64>| e.iter().zip(frame).map(|(e, u)| e * u).sum::<f64>() / norm(e);
            assert_follows(all.iter().map(along).collect(), |x| (x + 1.0) / 2.0);
            let long = all.iter().filter(|e| norm(e) > 3.0).map(along).collect();
            assert_follows(long, |x| (x + 1.0) / 2.0);
        }
    }

    #[test]
    fn gamma_noise_in_one_dimension_is_laplace() {
        let values = draws(NoiseDistribution::Gamma { rate: 2.0 }, 1, 20_000)
            .iter()
            .map(|e| e[0])
            .collect();
        assert_follows(values, |x| {
            if x < 0.0 {
                0.5 * (2.0 * x).exp()
            } else {
                1.0 - 0.5 * (-2.0 * x).exp()
            }
        });
    }

    fn laplace_cdf(x: f64) -> f64 {
        match x < 0.0 {
            true => 0.5 * x.exp(),
            false => 1.0 - 0.5 * (-x).exp(),
        }
    }

    #[test]
    fn laplace_noise_is_laplace_in_every_coordinate() {
        for (columns, rate) in [(1, 2.0), (4, 0.5), (105, 3.0)] {
            let all = draws(NoiseDistribution::Laplace { rate }, columns, 20_000);
            for k in (0..columns).step_by(13) {
                let values = all.iter().map(|e| e[k]).collect();
                assert_follows(values, |x| laplace_cdf(rate * x));
            }
            // The density depends on the ℓ₁ norm alone.
            let sizes = all.iter().map(|e| e.iter().map(|e| e.abs()).sum());
            assert_follows(sizes.collect(), |x: f64| gamma_cdf(columns, rate * x));
        }
    }

    #[test]
    fn gaussian_noise_is_normal_in_every_coordinate() {
        let all = draws(NoiseDistribution::Gaussian { sigma: 3.0 }, 4, 20_000);
        for k in 0..4 {
            assert_follows(all.iter().map(|e| e[k]).collect(), |x| normal_cdf(x / 3.0));
        }
        // Differences of coordinates would reveal a shared draw: they are N(0, 2σ²) if independent.
        let differences = all.iter().map(|e| e[0] - e[1]).collect();
        assert_follows(differences, |x| normal_cdf(x / (3.0 * 2f64.sqrt())));
    }

    #[test]
    fn gaussian_noise_has_its_variance() {
        // The mean of 100,000 squares has a relative standard error of √(2/100,000). Five standard errors are exceeded
        // once in 10⁶.
        let all = draws(NoiseDistribution::Gaussian { sigma: 2.0 }, 5, 20_000);
        let mean = all.iter().flatten().map(|e| e * e).sum::<f64>() / 1e5;
        assert!((mean / 4.0 - 1.0).abs() < 5.0 * 2e-5f64.sqrt(), "{mean}");
    }

    /// The laws whose coordinates are compared, with the median of a coordinate's size where sizes are independent.
    const COMPARED: [(NoiseDistribution, Option<f64>); 3] = [
        (
            NoiseDistribution::Laplace { rate: 2.0 },
            Some(std::f64::consts::LN_2 / 2.0),
        ),
        (
            NoiseDistribution::Gaussian { sigma: 2.0 },
            Some(2.0 * 0.674_489_750_196_081_7),
        ),
        (NoiseDistribution::Gamma { rate: 2.0 }, None),
    ];

    #[test]
    fn no_two_of_105_coordinates_are_correlated() {
        for (law, median) in COMPARED {
            let all = draws(law, 105, 4000);
            assert_pairwise_independent(&all, |e| e > 0.0);
            if let Some(median) = median {
                assert_pairwise_independent(&all, |e| e.abs() > median);
            }
        }
        // A component that all coordinates share would show in their sum.
        let all = draws(NoiseDistribution::Gaussian { sigma: 2.0 }, 105, 4000);
        let sums = all.iter().map(|e| e.iter().sum::<f64>()).collect();
        assert_follows(sums, |x| normal_cdf(x / (2.0 * 105f64.sqrt())));
        // That of Laplace noise is nearly normal: its excess kurtosis of 3/105 moves the distribution by less than 1e-3.
        let all = draws(NoiseDistribution::Laplace { rate: 2.0 }, 105, 4000);
        let sums = all.iter().map(|e| e.iter().sum::<f64>()).collect();
        assert_follows(sums, |x| normal_cdf(x / 52.5f64.sqrt()));
    }

    #[test]
    fn no_two_coordinates_are_equal_in_any_dimension() {
        for (law, _) in COMPARED {
            for columns in (1..130).chain([1000]) {
                for vector in draws(law, columns, 5) {
                    assert_sizes_are_distinct(&vector);
                }
            }
        }
    }

    #[test]
    fn the_kolmogorov_smirnov_test_detects_halved_noise() {
        let halved: Vec<f64> = draws(NoiseDistribution::Gamma { rate: 2.0 }, 3, 20_000)
            .iter()
            .map(|e| norm(e) / 2.0)
            .collect();
        let outcome = std::panic::catch_unwind(|| {
            assert_follows(halved, |x| gamma_cdf(3, 2.0 * x));
        });
        assert!(outcome.is_err());
    }

    #[test]
    fn no_two_nodes_iterations_repetitions_or_seeds_share_noise() {
        let law = NoiseDistribution::Gamma { rate: 1.0 };
        let mut seen = BTreeSet::new();
        for seed in [0, 1, u64::MAX] {
            for repetition in 0..10 {
                for node in 0..10 {
                    let key = NoiseKey::repeating(seed, repetition, node);
                    for iteration in 1..=10 {
                        for e in draw(law, 4, &key, iteration) {
                            assert!(seen.insert(e.to_bits()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_query_gets_the_same_noise() {
        let law = NoiseDistribution::Gaussian { sigma: 1.0 };
        let again = || draw(law, 5, &NoiseKey::repeating(3, 1, 4), 9);
        assert_eq!(again(), again());
    }

    #[test]
    fn a_different_problem_gets_different_noise() {
        let key = secret([7; 32]);
        let law = NoiseDistribution::Gaussian { sigma: 1.0 };
        let event = PrivacyEvent::from(IdealRelease::Additive {
            sensitivity: 1.0,
            law,
        });
        let problems = [
            PROBLEM,
            Problem {
                weight: 2.0,
                ..PROBLEM
            },
            Problem {
                ridge: 2.0,
                ..PROBLEM
            },
            Problem {
                nodes: 3,
                ..PROBLEM
            },
            Problem {
                tolerance: 1e-9,
                ..PROBLEM
            },
            Problem {
                loss: Loss::SmoothHinge { width: 0.5 },
                ..PROBLEM
            },
            Problem {
                loss: Loss::SmoothHinge { width: 0.6 },
                ..PROBLEM
            },
        ];
        let mut seen = BTreeSet::new();
        for problem in problems {
            let mut rng = generator(&key, 1, &gradient(0.0), &event, &problem);
            let e = law.sample(1, &mut rng);
            assert!(seen.insert(e[0].to_bits()), "{problem:?}");
        }
    }

    #[test]
    fn a_different_row_count_or_slack_gets_different_noise() {
        let key = secret([7; 32]);
        let law = NoiseDistribution::Gaussian { sigma: 1.0 };
        let ideal = IdealRelease::Additive {
            sensitivity: 1.0,
            law,
        };
        let mut seen = BTreeSet::new();
        for (rows, slack) in [(10, 0.5), (11, 0.5), (10, 0.25)] {
            let mut rng = key.generator(&SeedInputs {
                iteration: 1,
                query: &gradient(0.0),
                event: &PrivacyEvent { ideal, slack },
                problem: &PROBLEM,
                rows,
            });
            let e = law.sample(1, &mut rng);
            assert!(seen.insert(e[0].to_bits()), "{rows} {slack}");
        }
    }

    #[test]
    fn a_different_query_or_distribution_gets_different_noise() {
        let key = secret([7; 32]);
        let minimise = |quadratic, linear| Query::Minimise {
            quadratic,
            linear: vec![linear],
            near: vec![0.0],
        };
        let queries = [
            gradient(0.0),
            gradient(1e-300),
            minimise(0.0, 0.0),
            minimise(1.0, 0.0),
            minimise(0.0, 1.0),
        ];
        let laws = [
            NoiseDistribution::Gaussian { sigma: 1.0 },
            NoiseDistribution::Gaussian { sigma: 2.0 },
            NoiseDistribution::Gamma { rate: 1.0 },
            NoiseDistribution::Gamma { rate: 2.0 },
            NoiseDistribution::Laplace { rate: 1.0 },
            NoiseDistribution::Laplace { rate: 2.0 },
        ];
        let mut seen = BTreeSet::new();
        for query in &queries {
            for law in laws {
                let e = draw_for(law, 2, &key, 1, query);
                // The direction, since the scale follows from the distribution.
                assert!(seen.insert((e[0] / e[1]).to_bits()), "{query:?} {law:?}");
            }
        }
    }

    #[test]
    fn noise_depends_on_every_coordinate_of_a_query_and_every_kind_of_event() {
        let key = secret([7; 32]);
        let law = NoiseDistribution::Gaussian { sigma: 1.0 };
        let additive = |law| {
            PrivacyEvent::from(IdealRelease::Additive {
                sensitivity: 1.0,
                law,
            })
        };
        let objective = |law| {
            PrivacyEvent::from(IdealRelease::Objective {
                sensitivity: 1.0,
                spread: 0.1,
                curve: SlopeCurve::Logistic,
                law,
            })
        };
        let minimise = |linear: &[f64]| Query::Minimise {
            quadratic: 1.0,
            linear: linear.to_vec(),
            near: vec![],
        };
        let gradient = |at: &[f64]| Query::Gradient { at: at.to_vec() };
        let louder = NoiseDistribution::Gaussian { sigma: 2.0 };
        let cases = [
            (minimise(&[0.0, 0.0]), additive(law)),
            (minimise(&[0.0, 1.0]), additive(law)),
            (minimise(&[0.0]), additive(law)),
            (gradient(&[0.0, 0.0]), additive(law)),
            (gradient(&[0.0, 1.0]), additive(law)),
            (gradient(&[0.0]), additive(law)),
            (minimise(&[0.0, 0.0]), objective(law)),
            (minimise(&[0.0, 0.0]), objective(louder)),
            (
                Query::Minimise {
                    quadratic: 1.0,
                    linear: vec![0.0, 0.0],
                    near: vec![1.0],
                },
                additive(law),
            ),
        ];
        let mut seen = BTreeSet::new();
        for (query, event) in cases {
            let e = law.sample(1, &mut generator(&key, 1, &query, &event, &PROBLEM));
            assert!(seen.insert(e[0].to_bits()), "{query:?} {event:?}");
        }
    }

    /// Seeds as they were before there was Laplace noise, and that of Laplace noise: a resumed party must draw the same.
    #[test]
    fn seeds_do_not_change_between_versions() {
        let key = secret([7; 32]);
        let first_word = |law, objective: bool| {
            let ideal = match objective {
                true => IdealRelease::Objective {
                    sensitivity: 1.0,
                    spread: 0.1,
                    curve: SlopeCurve::OneSigned,
                    law,
                },
                false => IdealRelease::Additive {
                    sensitivity: 1.0,
                    law,
                },
            };
            let event = PrivacyEvent { ideal, slack: 0.5 };
            let mut rng = generator(&key, 1, &gradient(0.25), &event, &PROBLEM);
            rand::Rng::next_u64(&mut rng)
        };
        let laws = [
            NoiseDistribution::Gamma { rate: 2.0 },
            NoiseDistribution::Gaussian { sigma: 2.0 },
            NoiseDistribution::Laplace { rate: 2.0 },
        ];
        let words = laws.map(|law| [first_word(law, false), first_word(law, true)]);
        let expected = [
            [6_025_361_639_710_306_561, 12_736_546_888_466_010_651],
            [8_310_221_421_395_064_378, 13_657_217_128_368_291_507],
            [10_499_460_731_292_188_991, 15_245_697_727_306_355_035],
        ];
        assert_eq!(words, expected);
        // The shape of rows enters through the sensitivity.
        let shaped = PROBLEM.with_shape(crate::problem::RowShape::new(9, 3));
        let event = PrivacyEvent::from(IdealRelease::Exact);
        let word = |problem| {
            let mut rng = generator(&key, 1, &gradient(0.25), &event, problem);
            rand::Rng::next_u64(&mut rng)
        };
        assert_eq!(word(&PROBLEM), word(&shaped));
    }

    #[test]
    fn noise_depends_on_every_byte_of_a_secret() {
        let law = NoiseDistribution::Gaussian { sigma: 1.0 };
        let mut seen = BTreeSet::new();
        seen.insert(draw(law, 1, &secret([7; 32]), 1)[0].to_bits());
        for byte in 0..32 {
            let mut key = [7; 32];
            key[byte] ^= 1;
            let e = draw(law, 1, &secret(key), 1)[0];
            assert!(seen.insert(e.to_bits()), "byte {byte}");
        }
    }

    #[test]
    fn a_secret_key_is_a_ratchet_and_a_repeating_one_is_not() {
        let law = NoiseDistribution::Gaussian { sigma: 1.0 };
        let mut key = secret([7; 32]);
        let before = draw(law, 3, &key, 1);
        key.ratchet();
        let after = draw(law, 3, &key, 1);
        assert_ne!(before, after);
        // The next key follows from the secret before, and from nothing else.
        let mut next = NoiseSecret::copy_of(&[7; 32]);
        next.advance();
        let hash = Sha256::digest([&b"radmm ratchet v1\0"[..], &[7; 32]].concat());
        assert_eq!(next.bytes()[..], hash[..]);
        assert_eq!(draw(law, 3, &NoiseKey::secret(next), 1), after);

        let mut key = NoiseKey::repeating(7, 0, 0);
        let before = draw(law, 3, &key, 1);
        key.ratchet();
        assert_eq!(draw(law, 3, &key, 1), before);
    }

    #[test]
    fn keys_know_whether_their_noise_repeats() {
        assert!(NoiseKey::repeating(1, 0, 0).repeats());
        assert!(!secret([7; 32]).repeats());
    }
}
