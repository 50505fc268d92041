//! The lower bound on ε from the scores of many victims.
//!
//! If a mechanism is `(ε, δ)`-private, then for any event `E` and both orders of two neighbours
//! `P(E | D) ≤ e^ε·P(E | D′) + δ`. So `ε ≥ ln((P(E | D) − δ)/P(E | D′))`, and counting `E` bounds ε from below: with a
//! Clopper–Pearson bound on either probability, each missed with a probability of 2.5 %, the result holds with 95 %.
//!
//! Where all answers have Gaussian noise added, the ledger claims more than one `(ε, δ)`: a transcript that is Gaussian with some
//! `μ`, for which `P(E | D) ≤ Φ(Φ⁻¹(P(E | D′)) + μ)`. Then counts bound `μ` from below, and the bound on ε is the one that belongs to
//! this `μ` and the claim's `δ`. It does not depend on tails of probability `δ`, which are too rare to be counted.
//!
//! The event is a score beyond a threshold. Threshold and order are chosen on one half of the victims and counted on the
//! other half, so that no bound is chosen because it came out large.

use super::binomial::BinomialCount;
use super::gaussian_trade_off as gaussian;

/// The confidence of each lower bound.
pub const CONFIDENCE: f64 = 0.95;
/// The probability that either of the two bounds in it is missed.
const MISS: f64 = (1.0 - CONFIDENCE) / 2.0;
/// The same probability where a threshold is chosen. It is small, so that events with few victims, which look good by chance, are
/// not chosen.
const MISS_WHEN_CHOOSING: f64 = 1e-6;
/// The number of thresholds that are tried, evenly spread over the logarithm of the share beyond them.
const THRESHOLDS: u32 = 64;

/// The bound that a claim puts on `p = P(E | D)`, given `p′ = P(E | D′)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TradeOff {
    /// `p ≤ e^ε·p′ + δ`.
    EpsilonDelta {
        /// `δ`.
        delta: f64,
    },
    /// `p ≤ Φ(Φ⁻¹(p′) + μ)` in exact arithmetic.
    Gaussian {
        /// The `δ` at which `μ` is stated as an ε.
        delta: f64,
        /// `κ`: probabilities in the program are within `e^±κ` of those in exact arithmetic.
        slack: f64,
    },
}

impl TradeOff {
    /// Returns the lower bound on ε from probabilities with `p` as small and `p′` as large as counts allow; at least 0, which says
    /// nothing.
    fn epsilon(self, p: f64, other: f64) -> f64 {
        match self {
            Self::EpsilonDelta { delta } => {
                let ratio = (p - delta) / other;
                // Written so that NaN counts as nothing.
                if ratio > 1.0 { libm::log(ratio) } else { 0.0 }
            }
            Self::Gaussian { delta, slack } => {
                let (less, more) = (libm::exp(-slack), libm::exp(slack));
                let mu = gaussian::separation((p * less).min(1.0), (other * more).min(1.0));
                gaussian::epsilon(mu, delta)
            }
        }
    }
}

/// The scores of the victims with either data set.
pub(super) struct Scores {
    pub right: Vec<f64>,
    pub left: Vec<f64>,
}

/// A lower bound on ε and the event that gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LowerBound {
    pub epsilon: f64,
    /// The victims with one data set that are in the event.
    pub hits: BinomialCount,
    /// The victims with the other data set that are in the event.
    pub false_hits: BinomialCount,
}

impl Scores {
    /// Returns the lower bound on ε at 95 %.
    pub(super) fn lower_bound(&self, claim: TradeOff) -> LowerBound {
        let half = self.right.len() / 2;
        let (right, left) = (self.right.split_at(half), self.left.split_at(half));
        // A score for one data set is, with the other sign, a score for the other.
        let negated = |scores: &[f64]| -> Vec<f64> { scores.iter().map(|score| -score).collect() };
        let orders = [
            (
                SortedScores::new(right.0.to_vec(), left.0.to_vec()),
                SortedScores::new(right.1.to_vec(), left.1.to_vec()),
            ),
            (
                SortedScores::new(negated(left.0), negated(right.0)),
                SortedScores::new(negated(left.1), negated(right.1)),
            ),
        ];
        let mut best = (f64::NEG_INFINITY, &orders[0].1, f64::INFINITY);
        for (chosen_on, counted_on) in &orders {
            for threshold in chosen_on.thresholds() {
                let epsilon = chosen_on
                    .bound_beyond(threshold, claim, MISS_WHEN_CHOOSING)
                    .epsilon;
                if epsilon > best.0 {
                    best = (epsilon, counted_on, threshold);
                }
            }
        }
        best.1.bound_beyond(best.2, claim, MISS)
    }
}

/// The sorted scores of the one and of the other data set.
struct SortedScores {
    one: Vec<f64>,
    other: Vec<f64>,
}

impl SortedScores {
    fn new(mut one: Vec<f64>, mut other: Vec<f64>) -> Self {
        one.sort_by(f64::total_cmp);
        other.sort_by(f64::total_cmp);
        Self { one, other }
    }

    fn thresholds(&self) -> impl Iterator<Item = f64> {
        let n = self.one.len();
        (0..=THRESHOLDS).filter_map(move |k| {
            let share = libm::pow(n as f64, -f64::from(k) / f64::from(THRESHOLDS + 1));
            let beyond = (share * n as f64).ceil() as usize;
            self.one.get(n.checked_sub(beyond)?).copied()
        })
    }

    /// Returns the bound from the event of scores at or above a threshold.
    fn bound_beyond(&self, threshold: f64, claim: TradeOff, miss: f64) -> LowerBound {
        let count = |scores: &[f64]| BinomialCount {
            hits: scores.len() - scores.partition_point(|score| *score < threshold),
            trials: scores.len(),
        };
        let (hits, false_hits) = (count(&self.one), count(&self.other));
        LowerBound {
            epsilon: claim.epsilon(hits.lower(miss), false_hits.upper(miss)),
            hits,
            false_hits,
        }
    }
}

/// Returns the largest bound that so many runs can give, reached if every victim is classified correctly.
pub(super) fn ceiling(runs: u32, claim: TradeOff) -> f64 {
    let trials = (runs - runs / 2) as usize;
    let all = BinomialCount {
        hits: trials,
        trials,
    };
    let nobody = BinomialCount { hits: 0, trials };
    claim.epsilon(all.lower(MISS), nobody.upper(MISS))
}

/// Returns the ε that so many runs cannot distinguish from zero: the width of the bound where an attack is at its best. That is
/// about where a fifth of the victims is in the event for gamma noise in the plane, and a half of them for a Gaussian transcript.
pub(super) fn resolution(runs: u32, claim: TradeOff) -> f64 {
    let trials = (runs - runs / 2) as usize;
    let (parts, exact) = match claim {
        TradeOff::EpsilonDelta { .. } => (5, TradeOff::EpsilonDelta { delta: 0.0 }),
        TradeOff::Gaussian { .. } => (2, claim),
    };
    let count = BinomialCount {
        hits: trials.div_ceil(parts),
        trials,
    };
    exact.epsilon(count.upper(MISS), count.lower(MISS))
}

/// The distribution of the scores, for a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScoreProfile {
    /// Scores in equal steps, with the share of victims of each data set from this score to the next.
    pub shares: Vec<(f64, [f64; 2])>,
    /// The shares of victims beyond a threshold, with the other data set and with the one, for thresholds from high to low.
    /// It begins with twenty victims of the other.
    pub beyond: Vec<[f64; 2]>,
}

impl Scores {
    /// Returns the distribution of all scores.
    pub(super) fn profile(&self) -> ScoreProfile {
        const BINS: usize = 60;
        const POINTS: usize = 80;
        let all = SortedScores::new(self.right.clone(), self.left.clone());
        // Without the outermost thousandth: a few outliers would make the rest narrow.
        let n = all.one.len();
        let (first, last) = (n / 1000, n - 1 - n / 1000);
        let low = all.one[first].min(all.other[first]);
        let high = all.one[last].max(all.other[last]);
        let width = (high - low) / BINS as f64;
        let share = |scores: &[f64], from: f64, to: f64| {
            let below = |end: f64| scores.partition_point(|score| *score < end);
            (below(to) - below(from)) as f64 / scores.len() as f64
        };
        let bin = |k: usize| {
            let from = low + k as f64 * width;
            let to = from + width;
            (
                from,
                [share(&all.one, from, to), share(&all.other, from, to)],
            )
        };
        let point = |k: usize| {
            let share = libm::pow(n as f64, -(k as f64) / POINTS as f64);
            let threshold = all.one[n - (share * n as f64).ceil() as usize];
            let beyond = |scores: &[f64]| share_beyond(scores, threshold);
            [beyond(&all.other), beyond(&all.one)]
        };
        // Fewer are too few for a share.
        let counted = |[other, _]: &[f64; 2]| *other * n as f64 >= 20.0;
        ScoreProfile {
            shares: (0..BINS).map(bin).collect(),
            beyond: (0..POINTS).rev().map(point).filter(counted).collect(),
        }
    }
}

fn share_beyond(scores: &[f64], threshold: f64) -> f64 {
    let below = scores.partition_point(|score| *score < threshold);
    (scores.len() - below) as f64 / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURE: TradeOff = TradeOff::EpsilonDelta { delta: 0.0 };

    /// Uniform on [0, 1), the same for the same seed.
    fn uniform(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Randomised response: the truth with a chance of e^ε/(1 + e^ε). Its ε is exact, and attained.
    fn randomised_response(epsilon: f64, runs: usize, seed: u64) -> Scores {
        let truth = epsilon.exp() / (1.0 + epsilon.exp());
        let mut next = uniform(seed);
        let mut say = |one: f64| {
            (0..runs)
                .map(|_| if next() < truth { one } else { -one })
                .collect()
        };
        Scores {
            right: say(1.0),
            left: say(-1.0),
        }
    }

    #[test]
    fn the_bound_for_randomised_response_is_near_its_epsilon() {
        // With 50,000 counted, the logarithms of both probabilities are within 1.96 standard errors of their bounds; five
        // standard errors of the difference are added: a probability of 3e-7. A bound above the truth has one of 2.5 %.
        for (seed, epsilon, width) in [(2, 0.5, 0.052), (3, 1.0, 0.06), (4, 3.0, 0.145)] {
            let scores = randomised_response(epsilon, 100_000, seed);
            let shown = scores.lower_bound(PURE).epsilon;
            assert!(
                shown <= epsilon && shown > epsilon - width,
                "{shown} of {epsilon}"
            );
        }
    }

    #[test]
    fn a_bound_is_too_high_in_at_most_one_of_twenty_audits() {
        // Were it just one in twenty, more than 50 of 500 would be seen with a chance below 1e-5.
        let missed = (0..500)
            .filter(|&seed| {
                randomised_response(1.0, 2000, seed)
                    .lower_bound(PURE)
                    .epsilon
                    > 1.0
            })
            .count();
        assert!(missed <= 50, "{missed} of 500");
        // The bound is not idle: it is missed now and then.
        assert!(missed > 0);
    }

    #[test]
    fn the_bound_subtracts_delta() {
        // Distinguished with certainty, once in a hundred times: (0, 0.01)-private.
        let mut next = uniform(5);
        let mut say = |one: f64| {
            (0..50_000)
                .map(|_| if next() < 0.01 { one } else { 0.0 })
                .collect()
        };
        let scores = Scores {
            right: say(1.0),
            left: say(-1.0),
        };
        assert!(scores.lower_bound(PURE).epsilon > 3.0);
        assert_eq!(
            scores
                .lower_bound(TradeOff::EpsilonDelta { delta: 0.011 })
                .epsilon,
            0.0
        );
    }

    #[test]
    fn equal_scores_give_zero_and_separate_scores_give_the_ceiling() {
        let same = Scores {
            right: vec![0.0; 1000],
            left: vec![0.0; 1000],
        };
        assert_eq!(same.lower_bound(PURE).epsilon, 0.0);
        let apart = Scores {
            right: vec![1.0; 1000],
            left: vec![-1.0; 1000],
        };
        assert_eq!(apart.lower_bound(PURE).epsilon, ceiling(1000, PURE));
        // ln(0.025^(1/500) / (1 − 0.025^(1/500))).
        let all = 0.025f64.powf(1.0 / 500.0);
        assert!((ceiling(1000, PURE) - (all / (1.0 - all)).ln()).abs() < 1e-9);
    }

    #[test]
    fn more_runs_raise_the_ceiling_and_refine_the_resolution() {
        assert!(ceiling(1_000_000, PURE) > ceiling(1000, PURE));
        assert!(resolution(1_000_000, PURE) < resolution(1000, PURE) / 20.0);
    }

    /// The scores of a Gaussian transcript, by sums of twelve uniform variables: normal up to three deviations.
    fn shifted_normals(mu: f64, runs: usize, seed: u64) -> Scores {
        let mut next = uniform(seed);
        let mut normal = |mean: f64| {
            let mut one = || (0..12).map(|_| next()).sum::<f64>() - 6.0 + mean;
            (0..runs).map(|_| one()).collect()
        };
        Scores {
            right: normal(mu),
            left: normal(0.0),
        }
    }

    #[test]
    fn the_bound_for_a_gaussian_transcript_is_near_its_epsilon_at_any_delta() {
        for (seed, mu) in [(6, 0.27), (7, 1.0), (8, 2.0)] {
            let scores = shifted_normals(mu, 40_000, seed);
            for delta in [1e-3, 1e-5, 1e-9] {
                let exact = gaussian::epsilon(mu, delta);
                let claim = TradeOff::Gaussian { delta, slack: 0.0 };
                let by_curve = scores.lower_bound(claim).epsilon;
                assert!(
                    by_curve <= exact && by_curve > 0.8 * exact,
                    "{mu} {delta}: {by_curve} of {exact}"
                );
                // What the program may add to a ratio of probabilities is taken out.
                let slack = 0.05;
                let with_slack = TradeOff::Gaussian { delta, slack };
                assert!(scores.lower_bound(with_slack).epsilon < by_curve);
            }
        }
    }

    #[test]
    fn the_ceiling_and_the_resolution_of_a_gaussian_transcript_are_those_of_its_curve() {
        let claim = |delta| TradeOff::Gaussian { delta, slack: 0.0 };
        let scores = shifted_normals(30.0, 1000, 9);
        let most = scores.lower_bound(claim(1e-5)).epsilon;
        assert_eq!(most, ceiling(1000, claim(1e-5)));
        assert!(resolution(100_000, claim(1e-5)) < 0.2 && resolution(1000, claim(1e-5)) > 0.5);
    }
}
