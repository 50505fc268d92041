//! Samples follow their distributions, far into the tails and down to the last bit.

use super::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A generator that returns given words first, then those of another generator.
struct Scripted(Vec<u64>, ChaCha20Rng);

impl rand::TryRng for Scripted {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.next_u64() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(match self.0.is_empty() {
            true => self.1.next_u64(),
            false => self.0.remove(0),
        })
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Compares Pearson's statistic over cells of the given probabilities with the value that a correct sampler exceeds
/// once in 10⁶: the Wilson–Hilferty approximation of the quantile, accurate to a percent here. Seeds are fixed.
fn assert_fits(counts: &[u64], probabilities: &[f64]) {
    let total: u64 = counts.iter().sum();
    let expected = probabilities.iter().map(|p| p * total as f64);
    let statistic: f64 = counts
        .iter()
        .zip(expected)
        .map(|(&count, expected)| {
            assert!(expected > 20.0, "too few expected counts in a cell");
            (count as f64 - expected).powi(2) / expected
        })
        .sum();
    let freedom = counts.len() as f64 - 1.0;
    let part = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - part + 4.753 * part.sqrt()).powi(3);
    assert!(
        statistic < limit,
        "χ² = {statistic:.1} of at most {limit:.1}"
    );
}

/// Returns the discrete Laplace probabilities of the cells `−∞..=edge₀, …, edge_n+1..=∞`, from its distribution
/// function in closed form.
fn laplace_cells(scale: f64, edges: &[i64]) -> Vec<f64> {
    let r = (-1.0 / scale).exp();
    let at_most = |k: i64| match k < 0 {
        true => r.powi(-k as i32) / (1.0 + r),
        false => 1.0 - r.powi(k as i32 + 1) / (1.0 + r),
    };
    let mut cells = Vec::new();
    let mut last = 0.0;
    for &edge in edges {
        cells.push(at_most(edge) - last);
        last = at_most(edge);
    }
    cells.push(1.0 - last);
    cells
}

#[test]
fn the_discrete_laplace_sampler_passes_a_chi_squared_test() {
    let mut rng = rng(1);
    for scale in [1, 2, 3, 10, 1000, 123_457] {
        let reach = 4 * scale as i64;
        let step = (reach / 16).max(1);
        let edges: Vec<i64> = (-reach..=reach).step_by(step as usize).collect();
        let mut counts = vec![0; edges.len() + 1];
        for _ in 0..200_000 {
            let k = discrete_laplace(scale, &mut rng) as i64;
            counts[edges.partition_point(|&edge| edge < k)] += 1;
        }
        assert_fits(&counts, &laplace_cells(scale as f64, &edges));
    }
}

#[test]
fn the_chi_squared_test_detects_a_scale_that_is_off_by_a_twentieth() {
    let mut rng = rng(2);
    let edges: Vec<i64> = (-400..=400).step_by(25).collect();
    let mut counts = vec![0; edges.len() + 1];
    for _ in 0..200_000 {
        let k = discrete_laplace(95, &mut rng) as i64;
        counts[edges.partition_point(|&edge| edge < k)] += 1;
    }
    let seen = std::panic::catch_unwind(|| assert_fits(&counts, &laplace_cells(100.0, &edges)));
    assert!(seen.is_err());
}

#[test]
fn large_scales_do_not_overflow() {
    let mut rng = rng(3);
    for _ in 0..1000 {
        let size = discrete_laplace(1 << 62, &mut rng).unsigned_abs();
        assert!(size < 100 << 62);
    }
}

#[test]
fn integers_below_a_bound_are_uniform() {
    let mut rng = rng(4);
    for n in [2u128, 3, 5, 6, 17] {
        let mut counts = vec![0; n as usize];
        for _ in 0..100_000 {
            counts[uniform_below(n, &mut rng) as usize] += 1;
        }
        assert_fits(&counts, &vec![1.0 / n as f64; n as usize]);
    }
    // Above 64 bits, by the upper half.
    let mut counts = [0; 4];
    for _ in 0..100_000 {
        counts[(uniform_below(4 << 100, &mut rng) >> 100) as usize] += 1;
    }
    assert_fits(&counts, &[0.25; 4]);
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

#[test]
fn normal_and_exponential_samples_pass_a_chi_squared_test_far_into_their_tails() {
    let mut rng = rng(5);
    let edges: Vec<f64> = (-34..=34).map(|k| f64::from(k) / 10.0).collect();
    let mut counts = vec![0; edges.len() + 1];
    for _ in 0..400_000 {
        let x = normal(&mut rng);
        counts[edges.partition_point(|&edge| edge < x)] += 1;
    }
    let cumulative: Vec<f64> = edges.iter().map(|&x| normal_cdf(x)).chain([1.0]).collect();
    assert_fits(&counts, &differences(&cumulative));

    let edges: Vec<f64> = (1..=70).map(|k| f64::from(k) / 10.0).collect();
    let mut counts = vec![0; edges.len() + 1];
    for _ in 0..400_000 {
        let x = exponential(&mut rng);
        counts[edges.partition_point(|&edge| edge < x)] += 1;
    }
    let cumulative: Vec<f64> = edges
        .iter()
        .map(|x| 1.0 - (-x).exp())
        .chain([1.0])
        .collect();
    assert_fits(&counts, &differences(&cumulative));
}

fn differences(cumulative: &[f64]) -> Vec<f64> {
    let before = std::iter::once(&0.0).chain(cumulative);
    cumulative.iter().zip(before).map(|(x, y)| x - y).collect()
}

#[test]
fn numbers_with_equal_words_are_compared_by_further_words() {
    let mut rng = Scripted(vec![7, 7, 1, 2], rng(6));
    let (mut a, mut b) = (Uniform::draw(&mut rng), Uniform::draw(&mut rng));
    assert!(a.is_below(&mut b, &mut rng));
    // Drawn digits persist: the reverse comparison is of the same two numbers.
    assert!(!b.is_below(&mut a, &mut rng));
}

#[test]
fn small_numbers_have_as_many_digits_as_large_ones() {
    let mut rng = Scripted(vec![0, 0, 3, u64::MAX], rng(7));
    let mut x = Uniform::draw(&mut rng);
    let exact = 4.0 * 2f64.powi(-192);
    let ours = x.plus(0, &mut rng);
    assert!((ours / exact - 1.0).abs() <= ROUNDING_ERROR, "{ours:e}");
    let mut half = Uniform::draw(&mut Scripted(vec![1 << 63], self::rng(8)));
    assert_eq!(half.plus(3, &mut rng), 3.5);
}

/// A word of ones: no number that is drawn with it is below one that is drawn with another word.
const ONES: u64 = u64::MAX;

/// Draws one sample from given words, all of which must be used, and no further one.
fn draw_from<T>(words: Vec<u64>, sample: impl FnOnce(&mut Scripted) -> T) -> T {
    let mut rng = Scripted(words, rng(9));
    let (drawn, untouched) = (sample(&mut rng), self::rng(9).next_u64());
    assert!(rng.0.is_empty(), "{} words are left", rng.0.len());
    assert_eq!(rng.1.next_u64(), untouched, "further words were drawn");
    drawn
}

/// Returns words from which [`normal`] draws `whole + fraction`, or its negative.
fn words_of_normal(whole: usize, fraction: u64, negative: bool) -> Vec<u64> {
    let mut words = vec![ONES; whole];
    // One half is not exceeded, and nothing falls below this number: the count ends.
    words.extend([0, ONES]);
    words.extend(vec![ONES; whole * whole.saturating_sub(1)]);
    words.push(fraction);
    words.extend(vec![ONES; whole + 1]);
    if whole == 0 {
        // Further digits of a number below one.
        words.push(0);
    }
    words.push(if negative { ONES } else { 0 });
    words
}

/// Returns words from which [`exponential`] draws `whole + fraction`.
fn words_of_exponential(whole: usize, fraction: u64) -> Vec<u64> {
    let mut words = [ONES, 1, 2].repeat(whole);
    words.extend([fraction, ONES]);
    words
}

/// Returns words from which [`discrete_laplace`] draws `part + scale·wholes`, or its negative, for `0 < part < scale`.
fn words_of_discrete_laplace(part: u64, wholes: usize, negative: bool) -> Vec<u64> {
    let mut words = vec![part, part];
    words.extend([0, 1].repeat(wholes));
    words.push(1);
    words.push(if negative { 0 } else { ONES });
    words
}

const QUARTER: u64 = 1 << 62;

#[test]
fn the_normal_sampler_has_no_largest_value() {
    for whole in 0..=40 {
        for negative in [false, true] {
            let drawn = draw_from(words_of_normal(whole, QUARTER, negative), normal);
            let size = whole as f64 + 0.25;
            assert_eq!(drawn, if negative { -size } else { size });
        }
    }
}

#[test]
fn the_exponential_sampler_has_no_largest_value() {
    for whole in 1..=800 {
        let drawn = draw_from(words_of_exponential(whole, QUARTER), exponential);
        assert_eq!(drawn, whole as f64 + 0.25);
    }
}

#[test]
fn laplace_samples_are_exponential_samples_with_a_fair_sign() {
    for whole in [1, 12, 50] {
        for (coin, sign) in [(0, 1.0), (ONES, -1.0)] {
            let mut words = words_of_exponential(whole, QUARTER);
            words.push(coin);
            assert_eq!(draw_from(words, laplace), sign * (whole as f64 + 0.25));
        }
    }
}

#[test]
fn the_discrete_laplace_sampler_has_no_largest_value() {
    for scale in [1000, 1 << 20, (1 << 62) - 1] {
        for wholes in (0..=60).chain([700]) {
            for negative in [false, true] {
                let words = words_of_discrete_laplace(7, wholes, negative);
                let drawn = draw_from(words, |rng| discrete_laplace(scale, rng));
                let size = 7 + i128::from(scale) * wholes as i128;
                assert_eq!(drawn, if negative { -size } else { size });
            }
        }
    }
}

#[test]
fn numbers_above_one_are_exact_to_their_last_bit() {
    for (whole, ulp) in [(1, 52), (2, 51), (3, 51), (4, 50), (40, 47)] {
        let unit = 1u64 << (64 - ulp);
        let exact = |units: u64| whole as f64 + units as f64 * 2f64.powi(-ulp);
        for units in [1, 3, (1 << ulp) - 1] {
            let drawn = draw_from(vec![units * unit], |rng| {
                Uniform::draw(rng).plus(whole, rng)
            });
            assert_eq!(drawn, exact(units), "{whole} + {units}·2^-{ulp}");
        }
        // To nearest, from both sides.
        for (word, units) in [(unit / 2 + 1, 1), (unit / 2 - 1, 0)] {
            let drawn = draw_from(vec![word], |rng| Uniform::draw(rng).plus(whole, rng));
            assert_eq!(drawn, exact(units), "{whole}");
        }
    }
}

/// The low bits of samples of all sizes are those of exact numbers: each of them is fair.
#[test]
fn the_low_bits_of_samples_are_fair() {
    let mut rng = rng(10);
    let mut sampled = |sample: &dyn Fn(&mut ChaCha20Rng) -> f64, above: f64| {
        let samples = std::iter::repeat_with(|| sample(&mut rng));
        let mut counts = [0; 16];
        for x in samples.filter(|x| x.abs() >= above).take(50_000) {
            counts[(x.to_bits() & 15) as usize] += 1;
        }
        assert_fits(&counts, &[1.0 / 16.0; 16]);
    };
    for above in [0.0, 1.0, 2.0] {
        sampled(&normal, above);
        sampled(&exponential, above);
        sampled(&laplace, above);
    }
}

#[test]
fn integers_are_drawn_by_rejection_and_not_by_remainder() {
    // A word that is too large is not used, whatever its remainder.
    for (n, too_large, next) in [(3, 3, 2), (5, 7, 4), (6, 6, 5), (1000, 1001, 999)] {
        let drawn = draw_from(vec![too_large, next], |rng| uniform_below(n, rng));
        assert_eq!(drawn, u128::from(next));
    }
    let drawn = draw_from(vec![0, ONES, 1, 2], |rng| uniform_below(3 << 126, rng));
    assert_eq!(drawn, (2 << 64) | 1);
    // At three quarters of all words, remainders would make the lowest third twice as likely.
    let mut rng = rng(11);
    for shift in [62, 126] {
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[(uniform_below(3 << shift, &mut rng) >> shift) as usize] += 1;
        }
        assert_fits(&counts, &[1.0 / 3.0; 3]);
    }
}
