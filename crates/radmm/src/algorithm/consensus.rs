//! Recycling to consensus: gradients at a common point, exact sums along a tree, and a step that all parties take alike.
//!
//! All parties stand at the same `y`. A data step releases a noisy sum of gradients over a party's rows,
//!
//! ```text
//! g_i = c·( Σ_n L'(yᵀz_n) z_n ) + e_i          c = sum_scale(B), a public power of two
//! ```
//! Recycling the linearised objective to its fixed point under consensus is `f = y − s·Σ_i g_i/(cB)`, so what is left is a
//! sum. Recycled iterations take it along a breadth-first tree: partial sums from the leaves to the root, then the total
//! back. Every value on the way is a function of releases, so the sum is free and anyone can compute it again. Then
//!
//! ```text
//! ḡ = Σ_i g_i/(cB)      f⁺ = y − s·P·ḡ      y⁺ = f⁺ + β(f⁺ − f)
//! ```
//! `P` is the identity, or `I − 0.95uuᵀ` with `u` the direction of a noisy mean row. With a private metric `A` (a noisy Gram
//! matrix, asked for first and summed likewise) rows are `Az/‖Az‖`, `f` is in the coordinates of `A`, and the model on the
//! original columns is `A·f/√d_eff`: the mean of `‖Az‖²` is `d_eff`, so that scores are of the size of the margins that were
//! trained on. With either, the models of the last data steps are averaged.

use std::sync::Arc;

use super::{Algorithm, Step, StepInputs, Summands, View};
use crate::graph::TreePosition;
use crate::linalg::dot::{dot, norm};
use crate::protocol::metric::Metric;
use crate::protocol::query::{Query, gram_width, sum_scale};

/// The part of a mean row's direction that [`Preconditioner::MeanRow`] takes out of a step.
const MEAN_ROW_SHARE: f64 = 0.95;

/// The public parameters of [`Consensus`], the same for all parties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConsensusParameters {
    /// `K`, the number of gradients.
    pub steps: u32,
    /// `B`, the number of rows of all parties together.
    pub total_rows: usize,
    /// `s`, in units of the mean loss.
    pub step: StepSize,
    /// `β`.
    pub momentum: f64,
    /// The number of models, of the last data steps, whose mean is the final one; only with a preconditioner.
    pub averaged: u32,
    /// The question that comes before the gradients.
    pub preconditioner: Preconditioner,
}

/// The step `s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSize {
    /// This step.
    Fixed(f64),
    /// `min(d_eff/h, largest)`, with the effective dimension `d_eff` of a metric.
    ByDimension {
        /// `h`, a typical curvature of the loss.
        curvature: f64,
        /// The largest step that the noise allows.
        largest: f64,
    },
}

/// The question before the first gradient. Sizes of noise are relative to that of a gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preconditioner {
    /// Nothing.
    None,
    /// The direction of the mean row.
    MeanRow {
        /// The size of the noise.
        noise: f64,
    },
    /// A metric from the Gram matrix.
    Gram {
        /// The size of the noise.
        noise: f64,
        /// `λ`, added to the eigenvalues of the mean Gram matrix.
        ridge: f64,
        /// The size of eigenvalues that noise alone makes, which is taken off them first.
        cut: f64,
    },
}

impl ConsensusParameters {
    /// Returns the number of sums: one for each gradient, and one before them if there is a preconditioner.
    fn sums(&self) -> u32 {
        self.steps + u32::from(self.preconditioner != Preconditioner::None)
    }

    /// Returns the number of iterations on a tree of this depth.
    pub fn iterations(&self, depth: u32) -> u32 {
        self.sums() * period(depth)
    }
}

/// Returns the number of iterations from one data step to the next: the data step, and twice the tree's depth.
pub fn period(depth: u32) -> u32 {
    1 + 2 * depth
}

/// A node's part of recycling to consensus.
pub struct Consensus {
    parameters: ConsensusParameters,
    position: TreePosition,
    columns: usize,
    /// `c`.
    scale: f64,
    /// `f`, in the coordinates of the metric.
    current: Vec<f64>,
    /// `y`.
    point: Vec<f64>,
    /// `u` and `A`, once they are known.
    mean_row: Option<Vec<f64>>,
    metric: Option<Arc<Metric>>,
    /// The sum of the last `K/2` values of `f`, and their number.
    tail: Vec<f64>,
    tail_count: u32,
    /// The model on the original columns.
    model: Vec<f64>,
}

/// The part of a period to which an iteration belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The data step.
    Ask,
    /// Partial sums move to the root; the nodes of this level add up.
    Up { level: u32 },
    /// The total moves to the leaves; the nodes of this level take it over.
    Down { level: u32 },
}

/// A node's own part in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Asks its rows.
    Ask,
    /// Adds its children's values to its own.
    AddUp,
    /// Takes over its parent's value, by the parent's position.
    TakeOver(usize),
    /// Keeps its value.
    Keep,
}

impl Consensus {
    /// Creates a node's part, which starts from the zero model.
    pub fn new(parameters: ConsensusParameters, position: TreePosition, columns: usize) -> Self {
        let zero = vec![0.0; columns];
        Self {
            scale: sum_scale(parameters.total_rows),
            parameters,
            position,
            columns,
            current: zero.clone(),
            point: zero.clone(),
            mean_row: None,
            metric: None,
            tail: zero.clone(),
            tail_count: 0,
            model: zero,
        }
    }

    /// Returns the index of the sum that iteration `t ≥ 1` belongs to, and its phase.
    fn phase(&self, iteration: u32) -> (u32, Phase) {
        let depth = self.position.depth;
        let (sum, offset) = (
            (iteration - 1) / period(depth),
            (iteration - 1) % period(depth),
        );
        let phase = match offset {
            0 => Phase::Ask,
            up if up <= depth => Phase::Up { level: depth - up },
            down => Phase::Down {
                level: down - depth,
            },
        };
        (sum, phase)
    }

    /// Returns this node's part in iteration `t ≥ 1`.
    fn role(&self, iteration: u32) -> Role {
        let position = &self.position;
        match (self.phase(iteration).1, position.parent) {
            (Phase::Ask, _) => Role::Ask,
            (Phase::Up { level }, _) if level == position.level => Role::AddUp,
            (Phase::Down { level }, Some(parent)) if level == position.level => {
                Role::TakeOver(parent)
            }
            _ => Role::Keep,
        }
    }

    /// Returns whether all nodes hold the total of a sum at this iteration.
    fn is_total(&self, iteration: u32) -> bool {
        iteration > 0 && iteration.is_multiple_of(period(self.position.depth))
    }

    /// Returns whether this sum is that of the preconditioner.
    fn is_first_question(&self, sum: u32) -> bool {
        sum == 0 && self.parameters.preconditioner != Preconditioner::None
    }

    fn query(&self, sum: u32) -> Query {
        let scale = self.scale;
        match self.parameters.preconditioner {
            Preconditioner::MeanRow { noise } if sum == 0 => Query::RowSum { scale, noise },
            Preconditioner::Gram { noise, .. } if sum == 0 => Query::GramSum { scale, noise },
            _ => Query::GradientSum {
                at: self.point.clone(),
                scale,
                metric: self.metric.clone(),
            },
        }
    }

    /// Returns the node's value plus its children's.
    fn partial_sum(&self, view: &View<'_>) -> Vec<f64> {
        let mut sum = view.own.to_vec();
        for &child in &self.position.children {
            let values = view.neighbours[child].values();
            sum.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
        }
        sum
    }

    /// Takes in the total of a sum, in units of the mean over rows.
    fn absorb_total(&mut self, sum: u32, mean: Vec<f64>) {
        if !self.is_first_question(sum) {
            return self.step(&mean);
        }
        match self.parameters.preconditioner {
            Preconditioner::Gram { ridge, cut, .. } => {
                let mut mean = mean;
                for a in 0..self.columns {
                    mean[gram_width(a + 1) - 1] -= cut;
                }
                self.metric = Metric::shared(self.columns, &mean, ridge);
                if self.metric.is_none() {
                    // There is no metric in double precision. A model that cannot be released ends the run.
                    self.model.fill(f64::NAN);
                }
            }
            _ => {
                let length = norm(&mean);
                let unit = |x: &f64| if length > 0.0 { x / length } else { 0.0 };
                self.mean_row = Some(mean.iter().map(unit).collect());
            }
        }
    }

    fn step_size(&self) -> f64 {
        match self.parameters.step {
            StepSize::Fixed(step) => step,
            StepSize::ByDimension { curvature, largest } => {
                let dimension = self
                    .metric
                    .as_ref()
                    .map(|metric| metric.effective_dimension());
                largest.min(dimension.unwrap_or(self.columns as f64) / curvature)
            }
        }
    }

    /// Takes the step along the mean gradient.
    fn step(&mut self, gradient: &[f64]) {
        let (size, momentum) = (self.step_size(), self.parameters.momentum);
        let along = self
            .mean_row
            .as_ref()
            .map(|u| MEAN_ROW_SHARE * dot(u, gradient));
        for k in 0..self.columns {
            let taken_out = match (&self.mean_row, along) {
                (Some(u), Some(along)) => along * u[k],
                _ => 0.0,
            };
            let next = self.point[k] - size * (gradient[k] - taken_out);
            self.point[k] = next + momentum * (next - self.current[k]);
            self.current[k] = next;
        }
    }

    /// Computes the model after gradient `k`, counted from 1.
    fn update_model(&mut self, k: u32) {
        if self.parameters.preconditioner == Preconditioner::None {
            self.model.clone_from(&self.current);
            return;
        }
        let mut average = self.current.clone();
        if k > self
            .parameters
            .steps
            .saturating_sub(self.parameters.averaged)
        {
            self.tail_count += 1;
            for (sum, f) in self.tail.iter_mut().zip(&self.current) {
                *sum += f;
            }
            let count = f64::from(self.tail_count);
            average = self.tail.iter().map(|sum| sum / count).collect();
        }
        let Some(metric) = &self.metric else {
            self.model = average;
            return;
        };
        let length = metric.effective_dimension().sqrt();
        let unit = |weight: f64| {
            if length > 0.0 {
                weight / length
            } else {
                weight
            }
        };
        self.model = metric.apply(&average).into_iter().map(unit).collect();
    }
}

impl Algorithm for Consensus {
    fn observe(&mut self, view: &View<'_>) {
        // A dry run has no columns, and only asks.
        if !self.is_total(view.iteration) || self.columns == 0 {
            return;
        }
        let (sum, _) = self.phase(view.iteration);
        let unit = self.scale * self.parameters.total_rows as f64;
        let mean = view.own.iter().map(|total| total / unit).collect();
        self.absorb_total(sum, mean);
        if !self.is_first_question(sum) {
            let first = u32::from(self.parameters.preconditioner != Preconditioner::None);
            self.update_model(sum + 1 - first);
        }
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        let next = view.iteration + 1;
        Step::Recycle(match self.role(next) {
            Role::Ask => return Step::Ask(self.query(self.phase(next).0)),
            Role::AddUp => self.partial_sum(view),
            Role::TakeOver(parent) => view.neighbours[parent].values().to_vec(),
            Role::Keep => view.own.to_vec(),
        })
    }

    fn summands(&self, iteration: u32) -> Option<Summands> {
        let level = self.position.level;
        (iteration > 0).then(|| match self.phase(iteration).1 {
            Phase::Ask => Summands::Own,
            // Levels add up from below: those above this one have not.
            Phase::Up { level: adding } if level < adding => Summands::Own,
            // The root has the total once it has added up.
            Phase::Up { .. } if level == 0 => Summands::All,
            Phase::Up { .. } => Summands::Subtree,
            Phase::Down { level: reached } if level <= reached => Summands::All,
            Phase::Down { .. } => Summands::Subtree,
        })
    }

    fn inputs(&self, iteration: u32) -> StepInputs {
        StepInputs::Last(match self.role(iteration + 1) {
            Role::AddUp => self.position.children.clone(),
            Role::TakeOver(parent) => vec![parent],
            Role::Ask | Role::Keep => Vec::new(),
        })
    }

    fn is_common(&self, iteration: u32) -> bool {
        self.is_total(iteration)
    }

    fn width(&self, iteration: u32, columns: usize) -> usize {
        let gram = matches!(self.parameters.preconditioner, Preconditioner::Gram { .. });
        match iteration > 0 && gram && self.phase(iteration).0 == 0 {
            true => gram_width(columns),
            false => columns,
        }
    }

    fn model(&self) -> Option<&[f64]> {
        Some(&self.model)
    }
}
