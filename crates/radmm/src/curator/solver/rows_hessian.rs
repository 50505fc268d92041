//! The rows' part `H = Σ_n c_n z_n z_nᵀ` of a Hessian, and the solution of `(H + mI) x = v`.
//!
//! With fewer rows than columns the factor is one of the rows. With `Z` the matrix of rows and `S` the diagonal of `√c_n`,
//!
//! ```text
//! (H + mI)⁻¹ = (I − Zᵀ S (S Z Zᵀ S + mI)⁻¹ S Z) / m          since H = Zᵀ S² Z
//! ```

use super::double_double::Point;
use super::objective::Objective;
use crate::curator::row_passes::{PassFailed, Summand};
use crate::linalg::cholesky::Cholesky;

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
    pub(in crate::curator) fn new(
        objective: &Objective<'_>,
        point: &Point,
    ) -> Result<Self, PassFailed> {
        let columns = objective.linear.len();
        if !objective.solves_by_rows() {
            return Ok(Self {
                size: columns,
                entries: objective.rows_hessian(point)?,
                roots: None,
            });
        }
        let roots = Summand::RootCurvature(objective.curvatures(point));
        let roots = objective.rows.by_row(&objective.pass(roots))?;
        let mut entries = objective.row_products()?;
        for (row, root) in entries.chunks_exact_mut(roots.len()).zip(&roots) {
            for (entry, other) in row.iter_mut().zip(&roots) {
                *entry *= root * other;
            }
        }
        Ok(Self {
            size: roots.len(),
            entries,
            roots: Some(roots),
        })
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
    ) -> Result<(), PassFailed> {
        let Some(roots) = &self.roots else {
            factor.solve(vector);
            return Ok(());
        };
        let mut by_row = objective.row_margins(vector)?;
        by_row
            .iter_mut()
            .zip(roots)
            .for_each(|(x, root)| *x *= root);
        factor.solve(&mut by_row);
        by_row
            .iter_mut()
            .zip(roots)
            .for_each(|(x, root)| *x *= root);
        let sum = objective.weighted_row_sum(by_row)?;
        for (v, sum) in vector.iter_mut().zip(&sum) {
            *v = (*v - sum) / modulus;
        }
        Ok(())
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
    /// Returns the lower triangle of `Z Zᵀ`.
    fn row_products(&self) -> Result<Vec<f64>, PassFailed> {
        self.rows.plain_total(&self.pass(Summand::RowProduct))
    }

    /// Returns `Z v`.
    fn row_margins(&self, vector: &[f64]) -> Result<Vec<f64>, PassFailed> {
        let at = Point::plain(vector);
        self.rows.by_row(&self.pass(Summand::Margin { at }))
    }

    /// Returns `Zᵀ v`.
    fn weighted_row_sum(&self, weights: Vec<f64>) -> Result<Vec<f64>, PassFailed> {
        let pass = self.pass(Summand::WeightedRow { weights });
        Ok(self.rows.total(&pass)?.rounded())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::row_passes::LocalChunks;
    use crate::curator::{NormPolicy, Shard, ShardBuilder};
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
                let weighted = (LocalChunks::in_test(&shard), 50.0);
                let objective = Objective::of_party(weighted, loss, 0.3, &linear);
                let point = Point::plain(&point);
                let hessian = RowsHessian::new(&objective, &point).unwrap();
                assert_eq!(hessian.roots.is_some(), by_rows, "{rows}");
                let mut solution: Vec<f64> = (0..columns).map(|k| (k as f64).sin()).collect();
                let right = solution.clone();
                let factor = hessian.factor(0.3).unwrap();
                let solved = hessian.solve(&objective, (&factor, 0.3), &mut solution);
                solved.unwrap();
                // (H + mI) times the solution, by passes over the rows.
                let curvatures = objective.curvatures(&point);
                let product = objective.hessian_product(&curvatures, &solution).unwrap();
                for (a, b) in product.iter().zip(&right) {
                    assert!((a - b).abs() < 1e-11, "{loss:?}, {rows} rows: {a} {b}");
                }
            }
        }
    }
}
