//! Initial models `f_i(0)`, which are public and depend on nobody's rows.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::graph::NodeId;

/// Returns independent normal coordinates, the same for all repetitions, which differ in their noise alone.
pub fn normal(seed: u64, node: NodeId, deviation: f64, columns: usize) -> Vec<f64> {
    // Kept apart from noise and graphs by the end of the key.
    let mut key = *b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0radmm start v1\0\0";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[12..16].copy_from_slice(&node.0.to_le_bytes());
    let draws = StandardNormal.sample_iter(ChaCha20Rng::from_seed(key));
    draws.take(columns).map(|z: f64| deviation * z).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_and_seed_has_its_own_fixed_start() {
        let of = |seed, node| normal(seed, NodeId(node), 0.1, 5);
        assert_eq!(of(1, 0), of(1, 0));
        assert_ne!(of(1, 0), of(1, 1));
        assert_ne!(of(1, 0), of(2, 0));
    }

    #[test]
    fn the_deviation_is_the_one_asked_for() {
        // The variance of 10⁴ draws is within 7 % but for five standard errors, 6e-7.
        let all = normal(3, NodeId(0), 0.1, 10_000);
        let variance = all.iter().map(|x| x * x).sum::<f64>() / 10_000.0;
        assert!((variance / 0.01 - 1.0).abs() < 0.07, "{variance}");
    }
}
