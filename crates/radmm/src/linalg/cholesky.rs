//! The Cholesky factorisation `A = L Lᵀ` of a symmetric positive definite matrix, row-major, in place.
//!
//! It is written here because every machine must give the same bits: plain multiplications and additions in a fixed
//! order and no fused operations, whatever the vector units. Dot products run over eight independent sums, which the
//! compiler turns into vector instructions, and over panels of rows, which stay in the cache.

use super::simd::Simd;

/// The lower Cholesky factor of a matrix.
pub(crate) struct Cholesky {
    d: usize,
    lower: Vec<f64>,
}

/// The number of rows of a panel.
const PANEL: usize = 48;

impl Cholesky {
    /// Factors `A + shift·I`, given the lower triangle of `A`; `None` if a pivot is not positive.
    pub(crate) fn new(matrix: Vec<f64>, d: usize, shift: f64) -> Option<Self> {
        Simd::best().run(
            #[inline(always)]
            || Self::factorise(matrix, d, shift),
        )
    }

    #[inline(always)]
    fn factorise(mut matrix: Vec<f64>, d: usize, shift: f64) -> Option<Self> {
        for k in 0..d {
            matrix[k * d + k] += shift;
        }
        for first in (0..d).step_by(PANEL) {
            let last = (first + PANEL).min(d);
            // Rows of the panel against one another …
            for j in first..last {
                let (above, below) = matrix.split_at_mut((j + 1) * d);
                let row = &mut above[j * d..];
                let pivot = row[j] - dot(&row[first..j], &row[first..j]);
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return None;
                }
                row[j] = pivot.sqrt();
                let (row, pivot) = (&above[j * d..], above[j * d + j]);
                // … and column j of every row below.
                for lower in below.chunks_exact_mut(d) {
                    lower[j] = (lower[j] - dot(&lower[first..j], &row[first..j])) / pivot;
                }
            }
            // Subtracts the finished panel from the rest: A_ij −= Σ_{k in panel} L_ik L_jk.
            for block in (last..d).step_by(PANEL) {
                let end = (block + PANEL).min(d);
                for i in block..d {
                    let (above, below) = matrix.split_at_mut(i * d);
                    let row = &mut below[..d];
                    let (panel, rest) = row.split_at_mut(last);
                    let panel = &panel[first..];
                    for j in block..end.min(i) {
                        rest[j - last] -= dot(panel, &above[j * d + first..][..last - first]);
                    }
                    if i < end {
                        rest[i - last] -= dot(panel, panel);
                    }
                }
            }
        }
        Some(Self { d, lower: matrix })
    }

    /// Overwrites `b` with the solution of `A x = b`.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        Simd::best().run(
            #[inline(always)]
            || self.substitute(b),
        );
    }

    /// Substitutes forwards, then backwards.
    #[inline(always)]
    fn substitute(&self, b: &mut [f64]) {
        let d = self.d;
        for i in 0..d {
            let row = &self.lower[i * d..][..=i];
            b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
        }
        for i in (0..d).rev() {
            let row = &self.lower[i * d..][..=i];
            b[i] /= row[i];
            let x = b[i];
            for (b, l) in b[..i].iter_mut().zip(row) {
                *b -= l * x;
            }
        }
    }
}

/// Returns the dot product as eight partial sums, added in a fixed order.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_unit_gives_the_same_bits() {
        for d in [3, 8, 50, 105] {
            let bits = |simd: Simd| -> Vec<u64> {
                simd.run(
                    #[inline(always)]
                    || {
                        let factor = Cholesky::factorise(gram(d), d, 0.5).unwrap();
                        let mut b: Vec<f64> = (0..d).map(|k| (k as f64).cos()).collect();
                        factor.substitute(&mut b);
                        let all = factor.lower.iter().chain(&b);
                        all.map(|x| x.to_bits()).collect()
                    },
                )
            };
            for simd in Simd::all() {
                assert!(bits(simd) == bits(Simd::Plain), "{d} on {simd:?}");
            }
        }
    }

    fn gram(d: usize) -> Vec<f64> {
        let entry = |i: usize, k: usize| ((i * 7 + k * 13) as f64 * 0.37).sin();
        let mut a = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                a[i * d + j] = (0..d + 3).map(|k| entry(i, k) * entry(j, k)).sum();
            }
        }
        a
    }

    #[test]
    fn systems_of_sizes_around_a_panel_are_solved() {
        for d in [1, 2, 7, 8, 9, 47, 48, 49, 96, 97, 150] {
            let a = gram(d);
            let truth: Vec<f64> = (0..d).map(|k| (k as f64).cos()).collect();
            let shift = 0.5;
            let mut b: Vec<f64> = (0..d)
                .map(|i| (0..d).map(|j| a[i * d + j] * truth[j]).sum::<f64>() + shift * truth[i])
                .collect();
            Cholesky::new(a, d, shift).unwrap().solve(&mut b);
            for (x, t) in b.iter().zip(&truth) {
                assert!((x - t).abs() < 1e-9, "d = {d}");
            }
        }
    }

    #[test]
    fn only_the_lower_triangle_is_read() {
        let d = 60;
        let a = gram(d);
        let mut poisoned = a.clone();
        for i in 0..d {
            for j in i + 1..d {
                poisoned[i * d + j] = f64::NAN;
            }
        }
        let (mut x, mut y) = (vec![1.0; d], vec![1.0; d]);
        Cholesky::new(a, d, 1.0).unwrap().solve(&mut x);
        Cholesky::new(poisoned, d, 1.0).unwrap().solve(&mut y);
        assert_eq!(x, y);
    }

    #[test]
    fn an_indefinite_matrix_has_no_factor() {
        assert!(Cholesky::new(vec![1.0, 0.0, 2.0, 1.0], 2, 0.0).is_none());
        assert!(Cholesky::new(vec![f64::NAN], 1, 0.0).is_none());
    }
}
