//! Small dense symmetric matrices: the least eigenvalue, the inverse, and a proof of positive definiteness.
//!
//! They are written here because every machine must give the same bits, and because a proof must hold in exact
//! arithmetic, which no library promises. Sizes are numbers of parties, a few hundred at most.

/// A symmetric matrix, with all entries stored row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Symmetric {
    n: usize,
    entries: Vec<f64>,
}

impl Symmetric {
    /// Returns the symmetric part of the matrix with these entries.
    pub(crate) fn part_of(n: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut entries = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let half = (entry(i, j) + entry(j, i)) / 2.0;
                (entries[i * n + j], entries[j * n + i]) = (half, half);
            }
        }
        Self { n, entries }
    }

    /// Returns `self + factor·other`.
    pub(crate) fn plus(&self, factor: f64, other: &Self) -> Self {
        let pairs = self.entries.iter().zip(&other.entries);
        Self {
            n: self.n,
            entries: pairs.map(|(a, b)| a + factor * b).collect(),
        }
    }

    /// Returns the entry in row `i` and column `j`.
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.entries[i * self.n + j]
    }

    /// Returns the Frobenius norm, which is at least the spectral one.
    pub(crate) fn norm(&self) -> f64 {
        self.entries.iter().map(|a| a * a).sum::<f64>().sqrt()
    }

    /// Returns the least eigenvalue, up to rounding.
    ///
    /// The method is Householder's reduction to a tridiagonal matrix, then bisection, where the signs of the pivots show
    /// whether an eigenvalue lies below.
    pub(crate) fn least_eigenvalue(&self) -> f64 {
        let (diagonal, squares) = self.tridiagonal();
        let radius = |k: usize| {
            let left = if k > 0 { squares[k - 1].sqrt() } else { 0.0 };
            left + squares.get(k).map_or(0.0, |square| square.sqrt())
        };
        let discs = || (0..self.n).map(|k| (diagonal[k], radius(k)));
        let mut low = discs().map(|(d, r)| d - r).fold(f64::INFINITY, f64::min);
        let mut high = discs().map(|(d, _)| d).fold(f64::INFINITY, f64::min);
        let none_below = |x: f64| {
            let mut pivot = f64::INFINITY;
            (0..self.n).all(|k| {
                let coupling = if k > 0 { squares[k - 1] / pivot } else { 0.0 };
                pivot = diagonal[k] - x - coupling;
                pivot > 0.0
            })
        };
        // Halved until there is no double between the two.
        loop {
            let middle = low + (high - low) / 2.0;
            // Written so that a NaN ends the loop as well.
            let between = middle > low && middle < high;
            if !between {
                return middle;
            }
            if none_below(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// Returns the largest eigenvalue, up to rounding.
    pub(crate) fn largest_eigenvalue(&self) -> f64 {
        let negated = self.entries.iter().map(|a| -a).collect();
        -Self {
            n: self.n,
            entries: negated,
        }
        .least_eigenvalue()
    }

    /// Returns the diagonal and squared off-diagonal of a tridiagonal matrix with the same eigenvalues.
    fn tridiagonal(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.n;
        let mut a = self.entries.clone();
        let mut squares = Vec::with_capacity(n.saturating_sub(1));
        for k in 0..n.saturating_sub(1) {
            let mut v: Vec<f64> = (k + 1..n).map(|i| a[i * n + k]).collect();
            let norm = dot(&v, &v).sqrt();
            squares.push(norm * norm);
            if norm == 0.0 {
                continue;
            }
            // H = I − 2vvᵀ/vᵀv maps the column onto a multiple of its first axis; the sign avoids cancellation.
            v[0] += norm.copysign(v[0]);
            let square = dot(&v, &v);
            let rest = k + 1;
            let mut w: Vec<f64> = (rest..n)
                .map(|i| 2.0 * dot(&a[i * n + rest..(i + 1) * n], &v) / square)
                .collect();
            let share = dot(&w, &v) / square;
            for (w, v) in w.iter_mut().zip(&v) {
                *w -= share * v;
            }
            for i in 0..v.len() {
                let row = &mut a[(rest + i) * n + rest..(rest + i + 1) * n];
                for (j, entry) in row.iter_mut().enumerate() {
                    *entry -= v[i] * w[j] + w[i] * v[j];
                }
            }
        }
        ((0..n).map(|k| a[k * n + k]).collect(), squares)
    }

    /// Returns the inverse of a positive definite matrix and a bound on its error, in the spectral norm.
    pub(crate) fn inverse(&self) -> Option<(Self, f64)> {
        let n = self.n;
        let lower = self.factor(0.0)?;
        let mut columns = vec![0.0; n * n];
        for (k, column) in columns.chunks_exact_mut(n).enumerate() {
            column[k] = 1.0;
            solve(&lower, column);
        }
        let inverse = Self::part_of(n, |i, j| columns[i * n + j]);
        // With R = AX − I, A⁻¹ = X(I + R)⁻¹, so that ‖A⁻¹ − X‖ ≤ ‖X‖‖R‖/(1 − ‖R‖). R itself is rounded.
        let mut square = 0.0;
        for i in 0..n {
            for j in 0..n {
                let product = dot(&self.entries[i * n..][..n], &inverse.entries[j * n..][..n]);
                square += (product - f64::from(u8::from(i == j))).powi(2);
            }
        }
        let rounding = (n + 4) as f64 * f64::EPSILON * self.norm() * inverse.norm();
        let residual = square.sqrt() + rounding;
        let error = inverse.norm() * residual / (1.0 - residual);
        (residual < 0.5).then_some((inverse, error))
    }

    /// Returns whether every matrix within `error` of this one, in the spectral norm, is positive definite: a proof,
    /// not an estimate.
    ///
    /// A factor of `A − sI` that exists in floating point shows that `A` is positive definite if
    /// `s ≥ (n + 1)u/(1 − 3(n + 1)u)·tr A`, `u = 2⁻⁵³` (Rump 2006). Twice that covers the subtraction of `s` as well.
    pub(crate) fn surely_positive(&self, error: f64) -> bool {
        let trace: f64 = (0..self.n).map(|k| self.at(k, k)).sum();
        let shift = (self.n + 2) as f64 * f64::EPSILON * trace + error;
        trace > 0.0 && shift.is_finite() && self.factor(-shift).is_some()
    }

    /// Returns the lower Cholesky factor of `self + shift·I`; `None` if a pivot is not positive.
    fn factor(&self, shift: f64) -> Option<Vec<f64>> {
        let n = self.n;
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            let (above, row) = lower.split_at_mut(i * n);
            for j in 0..i {
                let other = &above[j * n..][..=j];
                row[j] = (self.at(i, j) - dot(&row[..j], &other[..j])) / other[j];
            }
            let pivot = self.at(i, i) + shift - dot(&row[..i], &row[..i]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            row[i] = pivot.sqrt();
        }
        Some(lower)
    }
}

/// Overwrites `b` with the solution of `L Lᵀ x = b`.
fn solve(lower: &[f64], b: &mut [f64]) {
    let n = b.len();
    for i in 0..n {
        let row = &lower[i * n..][..=i];
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
    for i in (0..n).rev() {
        b[i] /= lower[i * n + i];
        let x = b[i];
        for (b, l) in b[..i].iter_mut().zip(&lower[i * n..]) {
            *b -= l * x;
        }
    }
}

/// Returns the dot product as four partial sums, which the compiler turns into vector instructions, added in a fixed
/// order.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, a_rest) = a.as_chunks::<4>();
    let (b4, b_rest) = b.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for k in 0..4 {
            sums[k] += a[k] * b[k];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a matrix with eigenvalues 2 − 2cos(kπ/(n+1)), k = 1..=n.
    fn second_difference(n: usize) -> Symmetric {
        Symmetric::part_of(n, |i, j| match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        })
    }

    /// Returns a full matrix with the same eigenvalues: the matrix, conjugated by a reflection.
    fn reflected(matrix: &Symmetric) -> Symmetric {
        let n = matrix.n;
        let v: Vec<f64> = (0..n).map(|k| (k as f64 + 0.5).sin()).collect();
        let square = dot(&v, &v);
        let reflection =
            |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * v[i] * v[j] / square;
        Symmetric::part_of(n, |i, j| {
            (0..n)
                .flat_map(|k| (0..n).map(move |l| (k, l)))
                .map(|(k, l)| reflection(i, k) * matrix.at(k, l) * reflection(l, j))
                .sum()
        })
    }

    #[test]
    fn extreme_eigenvalues_match_known_ones() {
        for n in [1, 2, 3, 10, 30] {
            let angle = std::f64::consts::PI / (n + 1) as f64;
            for matrix in [second_difference(n), reflected(&second_difference(n))] {
                assert!((matrix.least_eigenvalue() - (2.0 - 2.0 * angle.cos())).abs() < 1e-13);
                assert!((matrix.largest_eigenvalue() - (2.0 + 2.0 * angle.cos())).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn a_matrix_that_overflowed_has_no_finite_eigenvalue_and_the_search_terminates() {
        for entry in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let matrix = Symmetric::part_of(3, |i, j| if i + j == 2 { entry } else { 1.0 });
            assert!(!matrix.least_eigenvalue().is_finite());
            assert!(!matrix.surely_positive(0.0));
        }
    }

    #[test]
    fn the_symmetric_part_of_an_asymmetric_matrix_is_used() {
        let matrix = Symmetric::part_of(2, |i, j| [[1.0, 4.0], [0.0, 1.0]][i][j]);
        assert!((matrix.least_eigenvalue() + 1.0).abs() < 1e-15);
        assert!(!matrix.surely_positive(0.0));
    }

    #[test]
    fn an_inverse_lies_within_its_error_bound() {
        // The inverse of the second difference: min(i, j)(n + 1 − max(i, j))/(n + 1).
        let n = 40;
        let (inverse, error) = second_difference(n).inverse().unwrap();
        let known = Symmetric::part_of(n, |i, j| {
            ((i.min(j) + 1) * (n - i.max(j))) as f64 / (n + 1) as f64
        });
        let distance = inverse.plus(-1.0, &known).norm();
        assert!(distance < error && error < 1e-8, "{distance} {error}");
    }

    #[test]
    fn a_matrix_proved_positive_is_so_by_the_given_error() {
        let matrix = reflected(&second_difference(20));
        let least = matrix.least_eigenvalue();
        assert!(matrix.surely_positive(0.999 * least));
        assert!(!matrix.surely_positive(1.001 * least));
        // Singular: rounding may give a tiny positive eigenvalue, which must not be proved.
        let identity = Symmetric::part_of(20, |i, j| f64::from(u8::from(i == j)));
        let singular = matrix.plus(-least, &identity);
        assert!(!singular.surely_positive(0.0));
    }
}
