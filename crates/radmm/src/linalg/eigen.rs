//! All eigenvalues and eigenvectors of a dense symmetric matrix.
//!
//! The method is Householder's reduction to a tridiagonal matrix, then the implicit QL algorithm (Bowdler, Martin, Reinsch
//! and Wilkinson 1968). It is written here because every machine must give the same bits. Eigenvectors are kept as rows, so
//! that every rotation runs over contiguous memory.

use super::dot::dot;

/// The eigenvalues `w_k` and the orthonormal eigenvectors `u_k` of a symmetric matrix, in no particular order.
pub(crate) struct Eigen {
    pub(crate) values: Vec<f64>,
    /// `u_k`, one after the other.
    pub(crate) vectors: Vec<f64>,
}

/// The number of QL iterations after which one eigenvalue is given up. Three or four are usual.
const MOST_ITERATIONS: u32 = 100;

impl Eigen {
    /// Decomposes the matrix with these entries, of which the lower triangle is read; `None` if it is not finite.
    pub(crate) fn new(n: usize, mut matrix: Vec<f64>) -> Option<Self> {
        if !matrix.iter().all(|entry| entry.is_finite()) {
            return None;
        }
        let (mut diagonal, mut off) = (vec![0.0; n], vec![0.0; n]);
        reduce(n, &mut matrix, &mut diagonal, &mut off);
        let mut vectors = matrix;
        ql(n, &mut diagonal, &mut off, &mut vectors)?;
        Some(Self {
            values: diagonal,
            vectors,
        })
    }

    /// Returns `Σ_k of(w_k) u_k u_kᵀ`, all entries.
    pub(crate) fn apply(&self, of: impl Fn(f64) -> f64) -> Vec<f64> {
        let n = self.values.len();
        let mut matrix = vec![0.0; n * n];
        for (value, vector) in self.values.iter().zip(self.vectors.chunks_exact(n)) {
            let factor = of(*value);
            for (row, u) in matrix.chunks_exact_mut(n).zip(vector) {
                add_scaled(row, factor * u, vector);
            }
        }
        matrix
    }
}

/// Adds `factor·addend` to `sum`.
fn add_scaled(sum: &mut [f64], factor: f64, addend: &[f64]) {
    for (sum, addend) in sum.iter_mut().zip(addend) {
        *sum += factor * addend;
    }
}

/// Reduces a matrix to a tridiagonal one, `T = Q A Qᵀ`, and overwrites it with `Q`. `off[k]` couples `k − 1` and `k`.
fn reduce(n: usize, a: &mut [f64], diagonal: &mut [f64], off: &mut [f64]) {
    for i in 0..n {
        for j in 0..i {
            a[j * n + i] = a[i * n + j];
        }
    }
    // Reflections H = I − vvᵀ·factor, each of which acts on the coordinates after its own.
    let mut reflections: Vec<(Vec<f64>, f64)> = Vec::with_capacity(n.saturating_sub(1));
    for k in 0..n.saturating_sub(1) {
        let rest = k + 1;
        let mut v: Vec<f64> = a[k * n + rest..(k + 1) * n].to_vec();
        let largest = v.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        if largest == 0.0 {
            off[rest] = 0.0;
            reflections.push((Vec::new(), 0.0));
            continue;
        }
        v.iter_mut().for_each(|x| *x /= largest);
        let length = dot(&v, &v).sqrt();
        let head = length.copysign(v[0]);
        off[rest] = -head * largest;
        v[0] += head;
        let factor = 2.0 / dot(&v, &v);
        let mut w: Vec<f64> = (rest..n)
            .map(|i| factor * dot(&a[i * n + rest..(i + 1) * n], &v))
            .collect();
        let share = factor / 2.0 * dot(&w, &v);
        add_scaled(&mut w, -share, &v);
        for i in 0..v.len() {
            let row = &mut a[(rest + i) * n + rest..(rest + i + 1) * n];
            for ((entry, v_j), w_j) in row.iter_mut().zip(&v).zip(&w) {
                *entry -= v[i] * w_j + w[i] * v_j;
            }
        }
        reflections.push((v, factor));
    }
    for k in 0..n {
        diagonal[k] = a[k * n + k];
    }
    // Q = H_{n−2}···H_0, built from the last reflection, so that each touches only the coordinates it acts on.
    a.fill(0.0);
    (0..n).for_each(|k| a[k * n + k] = 1.0);
    for (k, (v, factor)) in reflections.iter().enumerate().rev() {
        if v.is_empty() {
            continue;
        }
        for row in a.chunks_exact_mut(n).skip(k + 1) {
            let row = &mut row[k + 1..];
            let along = factor * dot(row, v);
            add_scaled(row, -along, v);
        }
    }
}

/// Diagonalises a tridiagonal matrix. Rotates the rows of `vectors` along; `None` if it does not converge.
fn ql(n: usize, d: &mut [f64], e: &mut [f64], vectors: &mut [f64]) -> Option<()> {
    if n == 0 {
        return Some(());
    }
    e.rotate_left(1);
    e[n - 1] = 0.0;
    for l in 0..n {
        let mut iterations = 0;
        loop {
            let negligible = |m: &usize| {
                let size = d[*m].abs() + d[m + 1].abs();
                e[*m].abs() <= f64::EPSILON * size
            };
            let m = (l..n - 1).find(negligible).unwrap_or(n - 1);
            if m == l {
                break;
            }
            iterations += 1;
            if iterations > MOST_ITERATIONS {
                return None;
            }
            let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let r = length(g, 1.0);
            let mut g = d[m] - d[l] + e[l] / (g + r.copysign(g));
            let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
            let mut deflated = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = length(f, g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    deflated = true;
                    break;
                }
                (s, c) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                let (left, right) = vectors.split_at_mut((i + 1) * n);
                rotate(&mut left[i * n..], &mut right[..n], c, s);
            }
            if !deflated {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
    Some(())
}

/// Rotates two vectors in their plane.
fn rotate(low: &mut [f64], high: &mut [f64], c: f64, s: f64) {
    for (low, high) in low.iter_mut().zip(high) {
        let f = *high;
        *high = s * *low + c * f;
        *low = c * *low - s * f;
    }
}

/// Returns `√(a² + b²)` without overflow. Only operations that round correctly: the same bits everywhere.
fn length(a: f64, b: f64) -> f64 {
    let (large, small) = (a.abs().max(b.abs()), a.abs().min(b.abs()));
    if large == 0.0 {
        return 0.0;
    }
    let ratio = small / large;
    large * (1.0 + ratio * ratio).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(k: usize) -> f64 {
        libm::sin((k * k) as f64 * 0.7 + 1.3)
    }

    fn symmetric(n: usize, of: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        (0..n * n)
            .map(|k| of((k / n).max(k % n), (k / n).min(k % n)))
            .collect()
    }

    #[test]
    fn the_decomposition_gives_the_matrix_back_and_is_orthonormal() {
        for n in [1, 2, 3, 10, 57] {
            let random = symmetric(n, |i, j| wave(i * n + j));
            let blocks = symmetric(n, |i, j| if i / 3 == j / 3 { wave(i + j) } else { 0.0 });
            let rank_one = symmetric(n, |i, j| wave(i) * wave(j));
            let identity = symmetric(n, |i, j| f64::from(u8::from(i == j)));
            for matrix in [random, blocks, rank_one, identity, vec![0.0; n * n]] {
                let eigen = Eigen::new(n, matrix.clone()).unwrap();
                let back = eigen.apply(|w| w);
                let inner = |i: usize, j: usize| {
                    dot(&eigen.vectors[i * n..][..n], &eigen.vectors[j * n..][..n])
                };
                for i in 0..n {
                    for j in 0..n {
                        assert!((back[i * n + j] - matrix[i * n + j]).abs() < 1e-12, "{n}");
                        let unit = f64::from(u8::from(i == j));
                        assert!((inner(i, j) - unit).abs() < 1e-12, "{n}");
                    }
                }
            }
        }
    }

    #[test]
    fn known_eigenvalues_are_found() {
        // The path's second difference has 2 − 2cos(kπ/(n + 1)).
        let n = 12;
        let matrix = symmetric(n, |i, j| match i - j {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        });
        let mut found = Eigen::new(n, matrix).unwrap().values;
        found.sort_by(f64::total_cmp);
        for (k, value) in found.iter().enumerate() {
            let angle = std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64;
            assert!((value - (2.0 - 2.0 * libm::cos(angle))).abs() < 1e-13);
        }
    }

    #[test]
    fn a_matrix_that_is_not_finite_is_refused() {
        assert!(Eigen::new(1, vec![f64::NAN]).is_none());
    }
}
