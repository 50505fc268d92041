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
