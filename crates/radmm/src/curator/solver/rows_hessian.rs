//! The rows' part `H = Σ_n c_n z_n z_nᵀ` of a Hessian, and the solution of `(H + mI) x = v`.
//!
//! With fewer rows than columns the factor is one of the rows. With `Z` the matrix of rows and `S` the diagonal of `√c_n`,
//!
//! ```text
//! (H + mI)⁻¹ = (I − Zᵀ S (S Z Zᵀ S + mI)⁻¹ S Z) / m          since H = Zᵀ S² Z
//! ```

use super::double_double::Point;
use super::objective::Objective;
use crate::curator::kernel::passes;
use crate::linalg::cholesky::Cholesky;
use crate::linalg::simd::Simd;

/// A symmetric matrix that stands for the rows' part of a Hessian.
pub(in crate::curator) struct RowsHessian {
    /// The number of its rows.
    size: usize,
    /// Its lower triangle, row by row.
    entries: Vec<f64>,
    /// `√c_n` of every row, if the matrix is `S Z Zᵀ S`; otherwise it is `H`.
    roots: Option<Vec<f64>>,
}

impl RowsHessian {
    /// Computes the matrix at a point: by rows if there are at most half as many as columns.
    pub(in crate::curator) fn new(objective: &Objective<'_>, point: &Point) -> Self {
        let columns = objective.linear.len();
        if !objective.solves_by_rows() {
            return Self {
                size: columns,
                entries: objective.rows_hessian(point),
                roots: None,
            };
        }
        let roots = objective.root_curvatures(point);
        let mut entries = objective.row_products();
        for (row, root) in entries.chunks_exact_mut(roots.len()).zip(&roots) {
            for (entry, other) in row.iter_mut().zip(&roots) {
                *entry *= root * other;
            }
        }
        Self {
            size: roots.len(),
            entries,
            roots: Some(roots),
        }
    }

    /// Returns the number of numbers that it takes to keep the matrix.
    pub(in crate::curator) fn numbers(&self) -> usize {
        self.entries.len()
    }

    /// Factors the matrix plus `m I`; `None` if rounding hides that it is positive definite.
    pub(in crate::curator) fn factor(&self, modulus: f64) -> Option<Cholesky> {
        Cholesky::new(&self.entries, self.size, modulus)
    }

    /// Overwrites a vector with `(H + mI)⁻¹` times it, given the factor for this `m`.
    pub(in crate::curator) fn solve(
        &self,
        objective: &Objective<'_>,
        (factor, modulus): (&Cholesky, f64),
        vector: &mut [f64],
    ) {
        let Some(roots) = &self.roots else {
            return factor.solve(vector);
        };
        let mut by_row = objective.row_margins(vector);
        by_row
            .iter_mut()
            .zip(roots)
            .for_each(|(x, root)| *x *= root);
        factor.solve(&mut by_row);
        by_row
            .iter_mut()
            .zip(roots)
            .for_each(|(x, root)| *x *= root);
        let sum = objective.weighted_row_sum(&by_row);
        for (v, sum) in vector.iter_mut().zip(&sum) {
            *v = (*v - sum) / modulus;
        }
    }

    /// Creates a Hessian from all its entries.
    #[cfg(test)]
    pub(in crate::curator) fn of_entries(entries: Vec<f64>) -> Self {
        Self {
            size: entries.len().isqrt(),
            entries,
            roots: None,
        }
    }
}

impl Objective<'_> {
    /// Returns the number of rows of all shards.
    pub(in crate::curator) fn rows(&self) -> usize {
        self.shards.iter().map(|(shard, _)| shard.rows()).sum()
    }

    /// Returns the square root of each row's curvature.
    fn root_curvatures(&self, point: &Point) -> Vec<f64> {
        let mut roots = Vec::with_capacity(self.rows());
        for (chunk, weight) in self.chunks() {
            let curvatures = passes::curvatures(Simd::best(), chunk, point, self.loss, weight);
            roots.extend(curvatures[..chunk.rows()].iter().map(|c| c.sqrt()));
        }
        roots
    }

    /// Returns the lower triangle of `Z Zᵀ`.
    fn row_products(&self) -> Vec<f64> {
        let mut rows: Vec<Vec<(u32, f64)>> = Vec::with_capacity(self.rows());
        for (chunk, _) in self.chunks() {
            chunk.for_each_row(|_, columns, values, _| {
                rows.push(
                    columns
                        .iter()
                        .copied()
                        .zip(values.iter().copied())
                        .collect(),
                );
            });
        }
        let mut products = vec![0.0; rows.len() * rows.len()];
        let mut dense = vec![0.0; self.linear.len()];
        for (i, row) in rows.iter().enumerate() {
            row.iter()
                .for_each(|&(column, value)| dense[column as usize] += value);
            for (product, other) in products[i * rows.len()..].iter_mut().zip(&rows[..=i]) {
                let terms = other
                    .iter()
                    .map(|&(column, value)| value * dense[column as usize]);
                *product = terms.sum();
            }
            row.iter()
                .for_each(|&(column, _)| dense[column as usize] = 0.0);
        }
        products
    }

    /// Returns `Z v`.
    fn row_margins(&self, vector: &[f64]) -> Vec<f64> {
        let point = Point::plain(vector);
        let chunks = self.chunks().into_iter();
        chunks
            .flat_map(|(chunk, _)| passes::margins(Simd::best(), chunk, &point))
            .collect()
    }

    /// Returns `Zᵀ v`.
    fn weighted_row_sum(&self, by_row: &[f64]) -> Vec<f64> {
        let mut first = 0;
        let mut total = passes::CompensatedSum::zero(self.linear.len());
        for (chunk, _) in self.chunks() {
            let weights = &by_row[first..][..chunk.rows()];
            first += chunk.rows();
            let columns = self.linear.len();
            total.add_all(&passes::weighted_sum(Simd::best(), chunk, columns, weights));
        }
        let parts = total.sum.iter().zip(&total.correction);
        parts.map(|(sum, correction)| sum + correction).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::{NormPolicy, Shard, ShardBuilder};
    use crate::exec::Sequential;
    use crate::problem::Loss;

    fn shard(rows: usize, columns: usize) -> Shard {
        let mut builder = ShardBuilder::new(columns, NormPolicy::Unit);
        let wave = |n: usize| (n as f64 * 78.233).sin();
        for n in 0..rows {
            let filled = (0..columns).filter(|k| (n * 7 + k * k) % 5 < 2);
            let entries = filled.map(|k| (k as u32, 0.2 + wave(n * columns + k)));
            let entries: Vec<(u32, f64)> = entries.collect();
            builder.push(&entries, wave(13 * n + 5) > 0.0).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn few_rows_and_many_give_the_same_solution() {
        let columns = 60;
        let linear = vec![0.1; columns];
        let point: Vec<f64> = (0..columns).map(|k| (k as f64).cos()).collect();
        for loss in [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }] {
            // By rows, up to half as many as columns.
            for (rows, by_rows) in [(1, true), (7, true), (30, true), (31, false), (200, false)] {
                let shard = shard(rows, columns);
                let objective = Objective {
                    shards: vec![(&shard, 50.0)],
                    loss,
                    modulus: 0.3,
                    linear: &linear,
                    executor: &Sequential,
                    stride: 1,
                };
                let point = Point::plain(&point);
                let hessian = RowsHessian::new(&objective, &point);
                assert_eq!(hessian.roots.is_some(), by_rows, "{rows}");
                let mut solution: Vec<f64> = (0..columns).map(|k| (k as f64).sin()).collect();
                let right = solution.clone();
                let factor = hessian.factor(0.3).unwrap();
                hessian.solve(&objective, (&factor, 0.3), &mut solution);
                // (H + mI) times the solution, by passes over the rows.
                let curvatures = objective.curvatures(&point);
                let product = objective.hessian_product(&curvatures, &solution);
                for (a, b) in product.iter().zip(&right) {
                    assert!((a - b).abs() < 1e-11, "{loss:?}, {rows} rows: {a} {b}");
                }
            }
        }
    }
}
