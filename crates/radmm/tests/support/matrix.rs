//! Plain dense matrices, for tests that compute the slow and obvious way.

use std::ops::{Add, Index, IndexMut, Mul};

/// A square matrix.
#[derive(Clone)]
pub struct Matrix {
    n: usize,
    entries: Vec<f64>,
}

impl Matrix {
    pub fn zero(n: usize) -> Self {
        Self {
            n,
            entries: vec![0.0; n * n],
        }
    }

    pub fn identity(n: usize) -> Self {
        let mut identity = Self::zero(n);
        (0..n).for_each(|k| identity[(k, k)] = 1.0);
        identity
    }

    pub fn size(&self) -> usize {
        self.n
    }

    pub fn transposed(&self) -> Self {
        let mut transposed = Self::zero(self.n);
        for i in 0..self.n {
            for j in 0..self.n {
                transposed[(j, i)] = self[(i, j)];
            }
        }
        transposed
    }

    /// Of a symmetric matrix: eigenvalues below a billionth of the largest count as zero.
    pub fn pseudo_inverse(&self) -> Self {
        let (values, vectors) = jacobi(self);
        let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let mut inverse = Self::zero(self.n);
        for (k, value) in values.iter().enumerate() {
            if value.abs() > 1e-9 * largest {
                for i in 0..self.n {
                    for j in 0..self.n {
                        inverse[(i, j)] += vectors[(i, k)] * vectors[(j, k)] / value;
                    }
                }
            }
        }
        inverse
    }

    fn norm(&self) -> f64 {
        self.entries.iter().map(|a| a * a).sum::<f64>().sqrt()
    }
}

/// Of a symmetric matrix.
pub fn eigenvalues(matrix: &Matrix) -> Vec<f64> {
    jacobi(matrix).0
}

/// The spectral radius of any matrix: `‖A^(2^k)‖^(1/2^k)`.
pub fn spectral_radius(matrix: &Matrix) -> f64 {
    let (mut power, mut logarithm, mut share) = (matrix.clone(), 0.0, 1.0);
    for _ in 0..40 {
        let size = power.norm();
        if size == 0.0 {
            return 0.0;
        }
        logarithm += size.ln() * share;
        power = &power * (1.0 / size);
        power = &power * &power;
        share /= 2.0;
    }
    logarithm.exp()
}

/// Eigenvalues and eigenvectors of a symmetric matrix by Jacobi's rotations.
fn jacobi(matrix: &Matrix) -> (Vec<f64>, Matrix) {
    let n = matrix.n;
    let (mut a, mut vectors) = (matrix.clone(), Matrix::identity(n));
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                if a[(p, q)] == 0.0 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[(p, q)]).atan2(a[(q, q)] - a[(p, p)]);
                let (sin, cos) = angle.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[(k, p)], a[(k, q)]);
                    (a[(k, p)], a[(k, q)]) = (cos * x - sin * y, sin * x + cos * y);
                    let (x, y) = (vectors[(k, p)], vectors[(k, q)]);
                    (vectors[(k, p)], vectors[(k, q)]) = (cos * x - sin * y, sin * x + cos * y);
                }
                for k in 0..n {
                    let (x, y) = (a[(p, k)], a[(q, k)]);
                    (a[(p, k)], a[(q, k)]) = (cos * x - sin * y, sin * x + cos * y);
                }
            }
        }
        let off: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|at| a[at].powi(2))
            .sum();
        if off.sqrt() <= 1e-16 * a.norm() {
            break;
        }
    }
    ((0..n).map(|k| a[(k, k)]).collect(), vectors)
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.entries[i * self.n + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.entries[i * self.n + j]
    }
}

impl Add for &Matrix {
    type Output = Matrix;
    fn add(self, other: &Matrix) -> Matrix {
        let pairs = self.entries.iter().zip(&other.entries);
        Matrix {
            n: self.n,
            entries: pairs.map(|(a, b)| a + b).collect(),
        }
    }
}

impl Mul<f64> for &Matrix {
    type Output = Matrix;
    fn mul(self, factor: f64) -> Matrix {
        Matrix {
            n: self.n,
            entries: self.entries.iter().map(|a| a * factor).collect(),
        }
    }
}

impl Mul for &Matrix {
    type Output = Matrix;
    fn mul(self, other: &Matrix) -> Matrix {
        let mut product = Matrix::zero(self.n);
        for i in 0..self.n {
            for k in 0..self.n {
                for j in 0..self.n {
                    product[(i, j)] += self[(i, k)] * other[(k, j)];
                }
            }
        }
        product
    }
}
