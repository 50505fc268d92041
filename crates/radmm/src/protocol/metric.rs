//! A metric for rows, computed from a released Gram matrix.
//!
//! With the released mean Gram matrix `Ĝ = U W Uᵀ` and a ridge `λ > 0`
//!
//! ```text
//! A = U (W₊ + λ)^−½ Uᵀ        d_eff = Σ_k W₊/(W₊ + λ)
//! ```
//! A party then uses `Ax/‖Ax‖` in place of its row `x`: a vector of norm one, whatever `A` is. So the price of a gradient does
//! not depend on the metric, and a metric that a hostile party spoilt costs accuracy and no privacy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sha2::{Digest, Sha256};

use super::query::gram_width;
use crate::linalg::dot::{dot, norm};
use crate::linalg::eigen::Eigen;

/// The largest number of columns of a metric: a Gram matrix has half its square as many numbers in every message.
pub const MAX_METRIC_COLUMNS: usize = 1000;

/// A symmetric positive definite matrix `A` by which rows are transformed.
#[derive(Debug, PartialEq)]
pub struct Metric {
    columns: usize,
    /// `A`, row by row.
    transform: Vec<f64>,
    /// An upper bound of `‖A‖`.
    gain: f64,
    /// An upper bound of `‖A⁻¹‖`.
    inverse_gain: f64,
    effective_dimension: f64,
    digest: [u8; 32],
}

/// The largest distance of `A` times its approximate inverse from the identity.
const LARGEST_DEFECT: f64 = 0.01;

impl Metric {
    /// Computes the metric of a mean Gram matrix, given as `d(d + 1)/2` numbers: row by row, `G_aa` and `√2·G_ab` for `b < a`.
    ///
    /// Returns `None` if double precision does not suffice, or a number is not finite.
    pub fn from_gram(columns: usize, packed: &[f64], ridge: f64) -> Option<Self> {
        let valid = (1..=MAX_METRIC_COLUMNS).contains(&columns);
        if !valid || packed.len() != gram_width(columns) {
            return None;
        }
        let mut gram = vec![0.0; columns * columns];
        let mut packed = packed.iter();
        for (a, row) in gram.chunks_exact_mut(columns).enumerate() {
            for (b, entry) in row[..=a].iter_mut().enumerate() {
                let unit = if a == b {
                    1.0
                } else {
                    std::f64::consts::SQRT_2
                };
                *entry = packed.next()? / unit;
            }
        }
        let eigen = Eigen::new(columns, gram)?;
        let positive = |w: f64| w.max(0.0);
        let transform = eigen.apply(|w| 1.0 / (positive(w) + ridge).sqrt());
        let inverse = eigen.apply(|w| (positive(w) + ridge).sqrt());
        let defect = defect(columns, &transform, &inverse);
        // Written so that a NaN is refused.
        let accurate = defect <= LARGEST_DEFECT;
        if !accurate {
            return None;
        }
        let share = |w: &f64| positive(*w) / (positive(*w) + ridge);
        Some(Self {
            columns,
            // Frobenius norms are above spectral ones. With E = AB − I, A⁻¹ = B(I + E)⁻¹, and ‖(I + E)⁻¹‖ ≤ 1/(1 − ‖E‖).
            gain: 1.01 * norm(&transform),
            inverse_gain: 1.03 * norm(&inverse),
            effective_dimension: eigen.values.iter().map(share).sum(),
            digest: digest(&transform),
            transform,
        })
    }

    /// Computes the same, or returns it from memory if a party in this process has computed it and still uses it.
    ///
    /// The parties of a simulation all compute the same metric.
    pub fn shared(columns: usize, packed: &[f64], ridge: f64) -> Option<Arc<Self>> {
        let mut key = Sha256::new();
        for number in [columns as f64, ridge].iter().chain(packed) {
            key.update(number.to_bits().to_le_bytes());
        }
        let slot = {
            let mut memory = unpoisoned(&MEMORY);
            memory.retain(|_, slot| {
                Arc::strong_count(slot) > 1 || unpoisoned(slot).strong_count() > 0
            });
            memory.entry(key.finalize().into()).or_default().clone()
        };
        // Held while the metric is computed, so that others who need the same one wait for it.
        let mut known = unpoisoned(&slot);
        if let Some(metric) = known.upgrade() {
            return Some(metric);
        }
        let metric = Arc::new(Self::from_gram(columns, packed, ridge)?);
        *known = Arc::downgrade(&metric);
        Some(metric)
    }

    /// Returns `A·vector`.
    pub fn apply(&self, vector: &[f64]) -> Vec<f64> {
        let rows = self.transform.chunks_exact(self.columns);
        rows.map(|row| dot(row, vector)).collect()
    }

    /// Returns the numbers from which [`from_numbers`](Self::from_numbers) restores the metric.
    pub(crate) fn numbers(&self) -> (&[f64], [f64; 3]) {
        let bounds = [self.gain, self.inverse_gain, self.effective_dimension];
        (&self.transform, bounds)
    }

    /// Restores a metric in another process of the same party; `None` if there are not as many numbers as a metric has.
    pub(crate) fn from_numbers(
        columns: usize,
        transform: Vec<f64>,
        [gain, inverse_gain, effective_dimension]: [f64; 3],
    ) -> Option<Self> {
        let square = columns.checked_mul(columns)?;
        (columns > 0 && transform.len() == square).then(|| Self {
            columns,
            digest: digest(&transform),
            transform,
            gain,
            inverse_gain,
            effective_dimension,
        })
    }

    /// Returns row `a` of `A`, which is also its column.
    pub(crate) fn row(&self, a: usize) -> &[f64] {
        &self.transform[a * self.columns..][..self.columns]
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns an upper bound of `‖A‖`.
    pub(crate) fn gain(&self) -> f64 {
        self.gain
    }

    /// Returns an upper bound of `‖A⁻¹‖`, and so of `‖x‖/‖Ax‖`.
    pub(crate) fn inverse_gain(&self) -> f64 {
        self.inverse_gain
    }

    /// Returns `d_eff`, the number of directions in which rows vary by more than the noise of the Gram matrix.
    pub fn effective_dimension(&self) -> f64 {
        self.effective_dimension
    }

    /// Returns 64 bits of a hash of `A`, `k < 4`.
    pub(crate) fn digest_word(&self, k: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.digest[8 * k..][..8]);
        u64::from_le_bytes(word)
    }
}

/// Returns the hash of `A`.
fn digest(transform: &[f64]) -> [u8; 32] {
    let mut hash = Sha256::new();
    transform
        .iter()
        .for_each(|entry| hash.update(entry.to_bits().to_le_bytes()));
    hash.finalize().into()
}

/// A metric in use; empty if nobody uses it any more.
type Memo = Arc<Mutex<Weak<Metric>>>;

/// Metrics in use, by a hash of what they are computed from.
static MEMORY: Mutex<BTreeMap<[u8; 32], Memo>> = Mutex::new(BTreeMap::new());

/// Locks a memo. One whose holder panicked holds nothing wrong: metrics are stored whole.
fn unpoisoned<T>(memo: &Mutex<T>) -> MutexGuard<'_, T> {
    memo.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `‖AB − I‖` in the Frobenius norm.
fn defect(n: usize, a: &[f64], b: &[f64]) -> f64 {
    let mut square = 0.0;
    let mut product = vec![0.0; n];
    for (i, row) in a.chunks_exact(n).enumerate() {
        product.fill(0.0);
        product[i] = -1.0;
        for (factor, row) in row.iter().zip(b.chunks_exact(n)) {
            for (sum, entry) in product.iter_mut().zip(row) {
                *sum += factor * entry;
            }
        }
        square += dot(&product, &product);
    }
    square.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(gram: &[[f64; 3]; 3]) -> Vec<f64> {
        let entries = (0..3).flat_map(|a| (0..=a).map(move |b| (a, b)));
        let scaled = |(a, b): (usize, usize)| gram[a][b] * if a == b { 1.0 } else { 2f64.sqrt() };
        entries.map(scaled).collect()
    }

    #[test]
    fn the_transform_is_the_inverse_root_of_gram_and_ridge() {
        let gram = [[0.5, 0.2, -0.1], [0.2, 0.3, 0.05], [-0.1, 0.05, 0.2]];
        let metric = Metric::from_gram(3, &packed(&gram), 0.05).unwrap();
        // A (G + λ) A = I.
        for i in 0..3 {
            let unit: Vec<f64> = (0..3).map(|k| f64::from(u8::from(k == i))).collect();
            let once = metric.apply(&unit);
            let moved: Vec<f64> = (0..3)
                .map(|a| dot(&gram[a], &once) + 0.05 * once[a])
                .collect();
            for (back, unit) in metric.apply(&moved).iter().zip(&unit) {
                assert!((back - unit).abs() < 1e-13);
            }
        }
        assert!(metric.effective_dimension() > 2.0 && metric.effective_dimension() < 3.0);
    }

    #[test]
    fn negative_eigenvalues_count_as_zero() {
        let gram = [[1.0, 0.0, 0.0], [0.0, -5.0, 0.0], [0.0, 0.0, 0.0]];
        let metric = Metric::from_gram(3, &packed(&gram), 0.25).unwrap();
        let ends = metric.apply(&[1.0, 1.0, 1.0]);
        for (found, expected) in ends.iter().zip([1.25f64.sqrt().recip(), 2.0, 2.0]) {
            assert!((found - expected).abs() < 1e-15);
        }
        assert!((metric.effective_dimension() - 0.8).abs() < 1e-15);
    }

    #[test]
    fn gains_bound_the_transform_and_its_inverse() {
        let gram = [[0.5, 0.2, -0.1], [0.2, 0.3, 0.05], [-0.1, 0.05, 0.2]];
        let metric = Metric::from_gram(3, &packed(&gram), 1e-4).unwrap();
        for k in 0..200 {
            let x: Vec<f64> = (0..3).map(|a| libm::sin(f64::from(7 * k + a))).collect();
            let ratio = norm(&metric.apply(&x)) / norm(&x);
            assert!(ratio <= metric.gain() && 1.0 / ratio <= metric.inverse_gain());
        }
    }

    #[test]
    fn a_gram_matrix_beyond_double_precision_gives_no_metric() {
        let wide = [[1e30, 0.0, 0.0], [0.0, 1.0, 0.3], [0.0, 0.3, 1.0]];
        let tilted = [[1e30, 1e29, 0.0], [1e29, 1e28, 0.3], [0.0, 0.3, 1.0]];
        assert!(Metric::from_gram(3, &packed(&wide), 1e-9).is_some());
        assert!(Metric::from_gram(3, &packed(&tilted), 1e-9).is_none());
        assert!(Metric::from_gram(3, &[f64::INFINITY; 6], 1.0).is_none());
        assert!(Metric::from_gram(3, &[1.0; 5], 1.0).is_none());
    }

    #[test]
    fn a_metric_in_use_is_computed_once() {
        let gram = packed(&[[0.5, 0.1, 0.0], [0.1, 0.4, 0.0], [0.0, 0.0, 0.1]]);
        let first = Metric::shared(3, &gram, 0.01).unwrap();
        let again = Metric::shared(3, &gram, 0.01).unwrap();
        let other = Metric::shared(3, &gram, 0.02).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_ne!(first, other);
    }
}
