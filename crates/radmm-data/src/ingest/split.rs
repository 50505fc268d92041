//! The splits that depend on all rows: the node of each row.
//!
//! - *shuffled*: row π(k) goes to node k mod N, for a uniform permutation π;
//! - *sizes*: the permuted rows are cut at the cumulative shares of the sizes, rounded as below;
//! - *Dirichlet* (Hsu, Qi and Brown 2019, arXiv:1909.06335): for each class with n rows, p ~ Dirichlet(α, …, α); in
//!   random order, node i gets the class's rows from round(n·(p₀ + … + pᵢ₋₁)) to round(n·(p₀ + … + pᵢ)).
//!
//! A seed means the same split as long as the tag of its generator says v1; a test pins one split of each kind. The
//! logarithms and exponentials here are those of `libm`, whose last bit does not depend on the platform. Those inside
//! the Gamma sampler of `rand_distr` are the platform's; they decide its rejections and the rare tails of its
//! normals.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Gamma, Open01};

use super::seeded_rng;
use crate::error_kinds::SplitError;

/// The tag of the generator of splits.
const TAG: &[u8; 16] = b"radmm split v1\0\0";

/// Returns the node of each row, for rows in random order.
pub(crate) fn shuffled(rows: usize, nodes: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(&mut seeded_rng(seed, TAG));
    let mut node_of = vec![0; rows];
    for (k, r) in order.into_iter().enumerate() {
        node_of[r] = k % nodes;
    }
    node_of
}

/// Returns the node of each row, for rows in random order cut in proportion to sizes.
pub(crate) fn by_sizes(
    rows: usize,
    nodes: usize,
    sizes: &[f64],
    seed: u64,
) -> Result<Vec<usize>, SplitError> {
    if sizes.len() != nodes {
        let sizes = sizes.len();
        return Err(SplitError::WrongSizes { sizes, nodes });
    }
    if let Some(&size) = sizes.iter().find(|s| !(**s > 0.0 && s.is_finite())) {
        return Err(SplitError::Size { size });
    }
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(&mut seeded_rng(seed, TAG));
    // Relative to the largest, so that their sum is finite.
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let total: f64 = sizes.iter().map(|size| size / largest).sum();
    let shares: Vec<f64> = sizes.iter().map(|size| size / largest / total).collect();
    let mut node_of = vec![0; rows];
    let mut start = 0;
    for (node, end) in cuts(rows, &shares).into_iter().enumerate() {
        if end == start {
            let size = sizes[node];
            return Err(SplitError::NoRowsForSize { node, size, rows });
        }
        for r in &order[start..end] {
            node_of[*r] = node;
        }
        start = end;
    }
    Ok(node_of)
}

/// Returns the node of each row, given its class. Positive rows are drawn first.
pub(crate) fn dirichlet(
    positive: &[bool],
    nodes: usize,
    alpha: f64,
    seed: u64,
) -> Result<Vec<usize>, SplitError> {
    let mut rng = seeded_rng(seed, TAG);
    let mut node_of = vec![0; positive.len()];
    for class in [true, false] {
        let of_class = |r: &usize| positive[*r] == class;
        let mut rows: Vec<usize> = (0..positive.len()).filter(of_class).collect();
        let cuts = cuts(rows.len(), &proportions(nodes, alpha, &mut rng)?);
        rows.shuffle(&mut rng);
        let mut start = 0;
        for (node, end) in cuts.into_iter().enumerate() {
            for r in &rows[start..end] {
                node_of[*r] = node;
            }
            start = end;
        }
    }
    Ok(node_of)
}

/// Draws p ~ Dirichlet(α, …, α): independent Gamma(α) variables divided by their sum.
///
/// For small α all of them may underflow to zero, so their logarithms are drawn. With G ~ Gamma(α + 1) and U uniform,
/// G·U^(1/α) ~ Gamma(α) (Marsaglia and Tsang 2000, §6), and ln U / α does not underflow.
fn proportions(nodes: usize, alpha: f64, rng: &mut ChaCha20Rng) -> Result<Vec<f64>, SplitError> {
    if !(alpha > 0.0 && alpha.is_finite()) {
        return Err(SplitError::Alpha { alpha });
    }
    // Below these limits, one node gets everything almost surely, and ln U / α could overflow. Above them, all get the
    // same to within a relative 10⁻⁷.
    let alpha = alpha.clamp(1e-300, 1e15);
    let gamma = Gamma::new(alpha + 1.0, 1.0).map_err(|_| SplitError::Alpha { alpha })?;
    let logs: Vec<f64> = (0..nodes)
        .map(|_| {
            let g: f64 = gamma.sample(rng);
            let u: f64 = Open01.sample(rng);
            libm::log(g) + libm::log(u) / alpha
        })
        .collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| libm::exp(log - largest)).collect();
    let total: f64 = weights.iter().sum();
    Ok(weights.iter().map(|weight| weight / total).collect())
}

/// Returns where the rows of each node end: cumulative proportions of `rows`, halves rounded down. The last node ends
/// at the last row, whatever rounding did to the sum.
fn cuts(rows: usize, proportions: &[f64]) -> Vec<usize> {
    let mut sum = 0.0;
    let mut cuts: Vec<usize> = proportions
        .iter()
        .map(|p| {
            sum += p;
            ((sum * rows as f64 - 0.5).ceil() as usize).min(rows)
        })
        .collect();
    if let Some(last) = cuts.last_mut() {
        *last = rows;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of rows per class and node.
    fn counts(node_of: &[usize], positive: &[bool], nodes: usize) -> [Vec<usize>; 2] {
        let mut counts = [vec![0; nodes], vec![0; nodes]];
        for (node, positive) in node_of.iter().zip(positive) {
            counts[usize::from(*positive)][*node] += 1;
        }
        counts
    }

    /// Returns the mean over nodes of |share of positives − overall share|, of 300 positive rows in 1,000.
    fn label_skew(alpha: f64, seed: u64) -> f64 {
        let positive: Vec<bool> = (0..1000).map(|r| r % 10 < 3).collect();
        let node_of = dirichlet(&positive, 5, alpha, seed).unwrap();
        let [no, yes] = counts(&node_of, &positive, 5);
        let shares = no.iter().zip(&yes).filter(|(n, y)| *n + *y > 0);
        let skews = shares.map(|(n, y)| (*y as f64 / (n + y) as f64 - 0.3).abs());
        let skews: Vec<f64> = skews.collect();
        skews.iter().sum::<f64>() / skews.len() as f64
    }

    #[test]
    fn shuffled_nodes_differ_by_one_row_at_most() {
        let node_of = shuffled(11, 4, 7);
        let [sizes, _] = counts(&node_of, &[false; 11], 4);
        assert_eq!(sizes, [3, 3, 3, 2]);
    }

    #[test]
    fn nodes_split_by_sizes_get_their_share_to_within_a_row() {
        let shares = |rows, sizes: &[f64]| {
            let node_of = by_sizes(rows, sizes.len(), sizes, 3).unwrap();
            let [counts, _] = counts(&node_of, &vec![false; rows], sizes.len());
            counts
        };
        assert_eq!(
            shares(1100, &[4.0, 3.0, 2.0, 1.0, 1.0]),
            [400, 300, 200, 100, 100]
        );
        assert_eq!(shares(10, &[1.0, 1.0, 1.0]), [3, 4, 3]);
        assert_eq!(shares(30, &[f64::MAX, f64::MAX, f64::MAX]), [10, 10, 10]);
    }

    #[test]
    fn sizes_are_positive_one_per_node_and_large_enough_for_a_row() {
        assert_eq!(
            by_sizes(9, 3, &[1.0, 1.0], 1),
            Err(SplitError::WrongSizes { sizes: 2, nodes: 3 })
        );
        for size in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let result = by_sizes(9, 2, &[1.0, size], 1);
            assert!(matches!(result, Err(SplitError::Size { .. })), "{size}");
        }
        assert_eq!(
            by_sizes(9, 3, &[100.0, 1.0, 50.0], 1),
            Err(SplitError::NoRowsForSize {
                node: 1,
                size: 1.0,
                rows: 9
            })
        );
    }

    #[test]
    fn a_seed_means_the_same_split_in_all_versions() {
        assert_eq!(shuffled(10, 3, 1), [0, 2, 1, 2, 1, 1, 0, 0, 2, 0]);
        assert_eq!(
            by_sizes(10, 3, &[3.0, 2.0, 1.0], 1),
            Ok(vec![2, 2, 0, 0, 1, 0, 0, 0, 1, 1])
        );
        let positive = [
            true, false, false, true, false, false, true, false, false, true,
        ];
        assert_eq!(
            dirichlet(&positive, 3, 1.0, 1),
            Ok(vec![0, 2, 0, 0, 0, 1, 0, 1, 0, 1])
        );
    }

    #[test]
    fn another_seed_means_another_split() {
        assert_ne!(shuffled(100, 3, 1), shuffled(100, 3, 2));
        assert_ne!(
            by_sizes(100, 2, &[2.0, 1.0], 1),
            by_sizes(100, 2, &[2.0, 1.0], 2)
        );
        let positive: Vec<bool> = (0..100).map(|r| r % 2 == 0).collect();
        assert_ne!(
            dirichlet(&positive, 3, 1.0, 1),
            dirichlet(&positive, 3, 1.0, 2)
        );
    }

    #[test]
    fn a_shuffle_sends_each_row_to_each_node_equally_often() {
        // 6,000 seeds: a count is binomial with mean 2,000 and deviation 36.5; six deviations, nine counts: a false
        // failure once in 10⁷ choices of seeds.
        let mut counts = [[0_i32; 3]; 3];
        for seed in 0..6000 {
            for (r, node) in shuffled(3, 3, seed).into_iter().enumerate() {
                counts[r][node] += 1;
            }
        }
        assert!(counts.as_flattened().iter().all(|c| (c - 2000).abs() < 219));
    }

    #[test]
    fn small_alpha_is_skewed_and_large_alpha_nearly_even() {
        for seed in 0..20 {
            assert!(label_skew(1e6, seed) < 0.01);
            let positive: Vec<bool> = (0..1000).map(|r| r % 10 < 3).collect();
            let node_of = dirichlet(&positive, 5, 1e6, seed).unwrap();
            let even = [(140, 0), (60, 1)];
            let counts = counts(&node_of, &positive, 5);
            for (size, class) in even {
                assert!(counts[class].iter().all(|c| c.abs_diff(size) <= 1));
            }
        }
        let mean = |alpha| (0..20).map(|seed| label_skew(alpha, seed)).sum::<f64>() / 20.0;
        assert!(mean(0.1) > 0.25 && mean(1.0) > 0.1 && mean(100.0) < 0.05);
    }

    #[test]
    fn proportions_have_the_moments_of_their_distribution() {
        // Var pᵢ = (1/N)(1 − 1/N)/(Nα + 1). Over 4,000 draws the means are within six deviations.
        let (nodes, draws) = (4, 4000);
        for alpha in [0.3, 1.0, 7.0] {
            let mut rng = seeded_rng(1, TAG);
            let variance = 0.25 * 0.75 / (nodes as f64 * alpha + 1.0);
            let (mut mean, mut square) = (0.0, 0.0);
            for _ in 0..draws {
                let p = proportions(nodes, alpha, &mut rng).unwrap();
                assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                mean += p[0] / f64::from(draws);
                square += (p[0] - 0.25).powi(2) / f64::from(draws);
            }
            let deviation = (variance / f64::from(draws)).sqrt();
            assert!((mean - 0.25).abs() < 6.0 * deviation, "{mean} at {alpha}");
            // The fourth moment of a variable in [0, 1] is below its second: the deviation of the square's mean is
            // below √(variance / draws).
            assert!(
                (square - variance).abs() < 6.0 * deviation,
                "{square} at {alpha}"
            );
        }
    }

    #[test]
    fn proportions_sum_to_one_for_every_alpha() {
        let mut rng = seeded_rng(1, TAG);
        for alpha in [f64::MIN_POSITIVE / 4.0, 1e-300, 1e-10, 1e-3, 1e15, f64::MAX] {
            let p = proportions(50, alpha, &mut rng).unwrap();
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{alpha}");
        }
    }

    #[test]
    fn alpha_is_positive_and_finite() {
        for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                dirichlet(&[true, false], 2, alpha, 1),
                Err(SplitError::Alpha { .. })
            ));
        }
    }

    #[test]
    fn halves_are_rounded_down_and_the_last_node_ends_at_the_last_row() {
        assert_eq!(cuts(10, &[0.25, 0.25, 0.5]), [2, 5, 10]);
        assert_eq!(cuts(3, &[0.5, 0.5]), [1, 3]);
        assert_eq!(cuts(3, &[0.1; 10]), [0, 1, 1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(cuts(0, &[0.5, 0.5]), [0, 0]);
    }
}
