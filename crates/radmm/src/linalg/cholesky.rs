//! The Cholesky factorisation `A = Uᵀ U` of a symmetric positive definite matrix.
//!
//! It is written here because every machine must give the same bits: plain multiplications and subtractions in a fixed
//! order and no fused operations, whatever the vector units. Each entry is computed on its own, from the rows of the
//! factor above it in their order, and eight neighbouring entries of a row side by side. Several rows are computed
//! together, so that what they share is loaded once.

use super::simd::Simd;

/// The upper Cholesky factor of a matrix.
pub(crate) struct Cholesky {
    d: usize,
    /// The length of a row: `d`, as a multiple of eight.
    stride: usize,
    /// Row by row. What is left of the diagonal or beyond the last column does not count.
    upper: Vec<f64>,
}

/// The number of entries that are computed side by side.
const LANES: usize = 8;
/// The number of rows that are computed together.
const PANEL: usize = 4;

impl Cholesky {
    /// Factors `A + shift·I`, given the lower triangle of `A` row by row; `None` if a pivot is not positive.
    pub(crate) fn new(matrix: &[f64], d: usize, shift: f64) -> Option<Self> {
        Simd::best().run(
            #[inline(always)]
            || Self::factorise(matrix, d, shift),
        )
    }

    #[inline(always)]
    fn factorise(matrix: &[f64], d: usize, shift: f64) -> Option<Self> {
        let stride = d.next_multiple_of(LANES);
        let mut upper = transposed(matrix, d, stride);
        for k in 0..d {
            upper[k * stride + k] += shift;
        }
        for first in (0..d).step_by(PANEL) {
            let (above, panel) = upper.split_at_mut(first * stride);
            let rows = (d - first).min(PANEL);
            let panel = &mut panel[..rows * stride];
            let start = first / LANES * LANES;
            if rows == PANEL {
                subtract_above::<PANEL>(panel, above, (first, start), stride);
            } else {
                for (k, row) in panel.chunks_exact_mut(stride).enumerate() {
                    subtract_above::<1>(row, above, (first + k, start), stride);
                }
            }
            finish_panel(panel, first, stride)?;
        }
        Some(Self { d, stride, upper })
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
        for i in 0..self.d {
            let row = &self.upper[i * self.stride..][..self.d];
            let (above, rest) = b.split_at_mut(i + 1);
            above[i] /= row[i];
            for (b, u) in rest.iter_mut().zip(&row[i + 1..]) {
                *b -= u * above[i];
            }
        }
        for i in (0..self.d).rev() {
            let row = &self.upper[i * self.stride..][..self.d];
            b[i] = (b[i] - dot(&row[i + 1..], &b[i + 1..])) / row[i];
        }
    }
}

/// Returns the upper triangle of a symmetric matrix of which the lower one is given, in rows of this length.
#[inline(always)]
fn transposed(lower: &[f64], d: usize, stride: usize) -> Vec<f64> {
    let mut upper = vec![0.0; d * stride];
    // By blocks, since one side of a transposition is far apart in memory.
    for first in (0..d).step_by(LANES) {
        for i in first..d {
            let row = &lower[i * d..][first..(first + LANES).min(i + 1)];
            for (j, entry) in (first..).zip(row) {
                upper[j * stride + i] = *entry;
            }
        }
    }
    upper
}

/// Subtracts `Σ_k U_kj U_ki` over the rows above, for `R` rows `j` from `first` on and all columns `i` from `start` on.
#[inline(always)]
fn subtract_above<const R: usize>(
    rows: &mut [f64],
    above: &[f64],
    (first, start): (usize, usize),
    stride: usize,
) {
    for column in (start..stride).step_by(2 * LANES) {
        match stride - column >= 2 * LANES {
            true => subtract_tile::<R, { 2 * LANES }>(rows, above, (first, column), stride),
            false => subtract_tile::<R, LANES>(rows, above, (first, column), stride),
        }
    }
}

/// Does so for `W` columns.
#[inline(always)]
fn subtract_tile<const R: usize, const W: usize>(
    rows: &mut [f64],
    above: &[f64],
    (first, column): (usize, usize),
    stride: usize,
) {
    let mut tile = [[0.0; W]; R];
    for (r, tile) in tile.iter_mut().enumerate() {
        tile.copy_from_slice(&rows[r * stride + column..][..W]);
    }
    for above in above.chunks_exact(stride) {
        let factors = &above[first..][..R];
        let entries = &above[column..][..W];
        for r in 0..R {
            for k in 0..W {
                tile[r][k] -= factors[r] * entries[k];
            }
        }
    }
    for (r, tile) in tile.iter().enumerate() {
        rows[r * stride + column..][..W].copy_from_slice(tile);
    }
}

/// Finishes rows from `first` on, from which everything above them has been subtracted.
#[inline(always)]
fn finish_panel(panel: &mut [f64], first: usize, stride: usize) -> Option<()> {
    for r in 0..panel.len() / stride {
        let (above, row) = panel.split_at_mut(r * stride);
        let row = &mut row[..stride];
        let diagonal = first + r;
        for above in above.chunks_exact(stride) {
            let factor = above[diagonal];
            for (entry, above) in row[diagonal..].iter_mut().zip(&above[diagonal..]) {
                *entry -= factor * above;
            }
        }
        let pivot = row[diagonal];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        let root = pivot.sqrt();
        row[diagonal..].iter_mut().for_each(|entry| *entry /= root);
    }
    Some(())
}

/// Returns the dot product as eight partial sums, added in a fixed order.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a8, a_rest) = a.as_chunks::<LANES>();
    let (b8, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a8.iter().zip(b8) {
        for k in 0..LANES {
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
                        let factor = Cholesky::factorise(&gram(d), d, 0.5).unwrap();
                        let mut b: Vec<f64> = (0..d).map(|k| (k as f64).cos()).collect();
                        factor.substitute(&mut b);
                        let all = factor.upper.iter().chain(&b);
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
            Cholesky::new(&a, d, shift).unwrap().solve(&mut b);
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
        Cholesky::new(&a, d, 1.0).unwrap().solve(&mut x);
        Cholesky::new(&poisoned, d, 1.0).unwrap().solve(&mut y);
        assert_eq!(x, y);
    }

    #[test]
    fn an_indefinite_matrix_has_no_factor() {
        assert!(Cholesky::new(&[1.0, 0.0, 2.0, 1.0], 2, 0.0).is_none());
        assert!(Cholesky::new(&[f64::NAN], 1, 0.0).is_none());
    }
}
