//! The objective of a query, and the sums over rows that the solver needs of it.

use super::Evaluation;
use super::double_double::Point;
use crate::curator::row_passes::{CurvaturesAt, Pass, PassFailed, RowPasses, Summand};
use crate::curator::rows::chunk::ChunkShape;
use crate::linalg::dot::norm;
use crate::problem::Loss;

/// A smooth, strongly convex objective `F(f) = Σ_i (C_i/B_i) Σ_n L(fᵀz_n) + ⟨b, f⟩ + (m/2)‖f‖²`.
#[derive(Clone, Copy)]
pub(in crate::curator) struct Objective<'a> {
    pub rows: &'a dyn RowPasses,
    /// `Σ_i C_i`.
    pub weight: f64,
    /// The weight of a row beside that of its chunk: `C/B` for the rows of one party.
    pub row_weight: f64,
    pub loss: Loss,
    /// `m > 0`, the modulus of strong convexity.
    pub modulus: f64,
    /// `b`.
    pub linear: &'a [f64],
    /// The stride between the chunks in use. A stride of 1 uses all rows.
    pub stride: usize,
}

impl<'a> Objective<'a> {
    /// Creates the objective of one party, which weighs all its rows alike.
    pub(in crate::curator) fn of_party(
        (rows, weight): (&'a dyn RowPasses, f64),
        loss: Loss,
        modulus: f64,
        linear: &'a [f64],
    ) -> Self {
        Self {
            rows,
            weight,
            row_weight: weight / rows.rows() as f64,
            loss,
            modulus,
            linear,
            stride: 1,
        }
    }

    /// Returns the objective of a subsample of the chunks, with the same total weight.
    pub(in crate::curator) fn subsample(&self, stride: usize) -> Self {
        let weights = self.rows.chunks().iter().enumerate();
        let weights = weights.map(|(k, chunk)| {
            let weight = self.rows.chunk_weight(k) * self.row_weight;
            weight * chunk.rows as f64
        });
        let factor = weights.clone().sum::<f64>() / weights.step_by(stride).sum::<f64>();
        Self {
            row_weight: self.row_weight * factor,
            stride,
            ..*self
        }
    }
}

impl Objective<'_> {
    /// Returns the Lipschitz constant `L = Σ_i C_i·c₁ + m` of the gradient, since rows have norm at most one; with room
    /// for its rounding.
    pub(in crate::curator) fn lipschitz(&self) -> f64 {
        1.01 * (self.weight * self.loss.curvature() + self.modulus)
    }

    /// Returns the shapes of the chunks in use.
    pub(in crate::curator) fn chunks_in_use(&self) -> impl Iterator<Item = &ChunkShape> {
        self.rows.chunks().iter().step_by(self.stride)
    }

    /// Returns a pass over the chunks in use.
    pub(in crate::curator) fn pass(&self, summand: Summand) -> Pass {
        Pass {
            summand,
            stride: self.stride,
        }
    }

    /// Returns the curvatures `(C_i/B_i) L''(fᵀz_n)` of the rows at a point.
    pub(in crate::curator) fn curvatures(&self, at: &Point) -> CurvaturesAt {
        CurvaturesAt {
            at: at.clone(),
            loss: self.loss,
            weight: self.row_weight,
        }
    }

    /// Returns `∇F(f)`, with doubled margins or plain ones.
    pub(in crate::curator) fn gradient(
        &self,
        f: &[f64],
        doubled: bool,
    ) -> Result<Vec<f64>, PassFailed> {
        let point = Point::plain(f);
        let point = if doubled { point.doubled() } else { point };
        Ok(self.evaluate(point)?.gradient)
    }

    /// Computes the gradient at a point in one pass over the rows.
    pub(in crate::curator) fn evaluate(&self, point: Point) -> Result<Evaluation, PassFailed> {
        let rows = self.rows.total(&self.pass(Summand::Gradient {
            at: point.clone(),
            loss: self.loss,
            weight: self.row_weight,
            metric: None,
        }))?;
        let mut rest = self.linear.to_vec();
        point.add_scaled_to(&mut rest, self.modulus);
        let parts = rows.sum.iter().zip(&rest).zip(&rows.correction);
        let gradient: Vec<f64> = parts
            .map(|((g, rest), correction)| (g + rest) + correction)
            .collect();
        Ok(Evaluation {
            residual: norm(&gradient),
            point,
            gradient,
        })
    }

    /// Returns the rows' part of the Hessian, the lower triangle of `Σ_n curvature_n z_n z_nᵀ`.
    pub(in crate::curator) fn rows_hessian(&self, point: &Point) -> Result<Vec<f64>, PassFailed> {
        let pass = self.pass(Summand::Hessian(self.curvatures(point)));
        self.rows.plain_total(&pass)
    }

    /// Returns all entries of `∇²F(f)`.
    pub(in crate::curator) fn full_hessian(&self, f: &[f64]) -> Result<Vec<f64>, PassFailed> {
        let d = f.len();
        let mut hessian = self.rows_hessian(&Point::plain(f))?;
        for i in 0..d {
            hessian[i * d + i] += self.modulus;
            for j in 0..i {
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
        Ok(hessian)
    }

    /// Returns the diagonal of `∇²F`.
    pub(in crate::curator) fn hessian_diagonal(
        &self,
        curvatures: &CurvaturesAt,
    ) -> Result<Vec<f64>, PassFailed> {
        self.rows.plain_total(&self.pass(Summand::HessianDiagonal {
            curvatures: curvatures.clone(),
            start: self.modulus,
        }))
    }

    /// Returns `∇²F·vector`, given the curvatures of the rows.
    pub(in crate::curator) fn hessian_product(
        &self,
        curvatures: &CurvaturesAt,
        vector: &[f64],
    ) -> Result<Vec<f64>, PassFailed> {
        let total = self.rows.total(&self.pass(Summand::HessianProduct {
            curvatures: curvatures.clone(),
            vector: Point::plain(vector),
        }))?;
        let parts = total.sum.iter().zip(&total.correction).zip(vector);
        Ok(parts
            .map(|((sum, correction), v)| (sum + correction) + self.modulus * v)
            .collect())
    }
}

/// Returns `(1/B) Σ_n L(fᵀz_n)`, and the share of rows with `fᵀz_n > 0`, where rows with `fᵀz_n = 0` count half.
pub(in crate::curator) fn mean_loss_and_accuracy(
    rows: &dyn RowPasses,
    loss: Loss,
    at: &[f64],
) -> Result<(f64, f64), PassFailed> {
    let at = Point::plain(at);
    let sums = rows.plain_total(&Pass::over_all(Summand::Loss { at, loss }))?;
    let count = rows.rows() as f64;
    Ok((sums[0] / count, sums[1] / count))
}
