//! The rate at which an algorithm converges near the optimum.
//!
//! Near `f*` every `O_i` is a quadratic with the Hessian `H_i = ∇²O_i(f*)`, and one period of an algorithm (a data step and
//! the recycled steps after it) is an affine map of the state `(f_1, …, f_N, λ_1, …, λ_N)`. Its linear part is what the
//! algorithm does to `O_i(f) = ½fᵀH_i f`. Distances to the optimum shrink by its spectral radius each period.
//!
//! No algorithm is written a second time for it: the map is the algorithm itself, asked to run one period, with quadratics in
//! place of rows. `Σ_i λ_i` is conserved, zero from the start, and kept so: otherwise it would show as an eigenvalue one.
//!
//! Duals are of the size of `η·f`. They are measured in a unit of their own, in which both halves of the state weigh the same:
//! beside duals of 10¹⁷ a model would be less than their rounding. What is left are a few roundings an iteration. A rate
//! nearer to one than a few hundred of these is reported as unknown.

use serde::Serialize;
use thiserror::Error;

use crate::algorithm::{Algorithm, Step, View, init};
use crate::curator::{PassFailed, QuadraticModel};
use crate::graph::NodeId;
use crate::linalg::spectral_radius;
use crate::node::Node;
use crate::protocol::release::Release;

/// The Hessians of all parties may have this many entries together: a gigabyte with their factors.
const MOST_ENTRIES: usize = 1 << 26;

/// The least logarithm of an iteration's rate that differs from zero by more than rounding: some hundred roundings.
const NEAREST: f64 = 512.0 * f64::EPSILON;

/// The reason why a local rate cannot be computed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoLocalRate {
    /// The Hessians of the parties would not fit in memory.
    #[error("{nodes} parties with {columns} columns have Hessians too large for a local rate")]
    HessiansTooLarge {
        /// `N`.
        nodes: usize,
        /// `d`.
        columns: usize,
    },
    /// The rows could not be read.
    #[error(transparent)]
    PassFailed(#[from] PassFailed),
}

/// The factor by which distances to the optimum shrink in the long run; above one, they grow.
///
/// NaN if double precision cannot determine it: see [`LocalRate::is_known`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LocalRate {
    /// The factor for a data step and the recycled steps after it.
    pub per_data_step: f64,
    /// The same factor, spread evenly over these iterations.
    pub per_iteration: f64,
    /// Iterations until a distance shrinks to a tenth; `None` if it never does.
    pub iterations_per_digit: Option<f64>,
    /// The relative uncertainty of the logarithm of the rate.
    pub uncertainty: f64,
}

impl LocalRate {
    fn new(per_period: f64, period: u32, uncertainty: f64) -> Self {
        let iterations = f64::from(period);
        let known = per_period > 0.0
            && per_period.is_finite()
            && libm::log(per_period).abs() >= NEAREST * iterations;
        if !known {
            return Self {
                per_data_step: f64::NAN,
                per_iteration: f64::NAN,
                iterations_per_digit: None,
                uncertainty: f64::NAN,
            };
        }
        let per_iteration = libm::pow(per_period, 1.0 / iterations);
        let digit = -std::f64::consts::LN_10 / libm::log(per_iteration);
        Self {
            per_data_step: per_period,
            per_iteration,
            iterations_per_digit: (per_iteration < 1.0).then_some(digit),
            uncertainty,
        }
    }

    /// Returns whether double precision determines the rate.
    ///
    /// It does not if penalties or dampings are so far from the Hessians that a period's map overflows, or if the map is so near
    /// to one without contraction that rounding hides the difference.
    pub fn is_known(&self) -> bool {
        !self.per_iteration.is_nan()
    }
}

/// Computes the rate at a point.
pub(crate) fn local<'a>(
    nodes: impl ExactSizeIterator<Item = &'a Node>,
    at: &[f64],
    period: u32,
    make: &dyn Fn(NodeId, Vec<f64>) -> Box<dyn Algorithm>,
) -> Result<LocalRate, NoLocalRate> {
    let (count, columns) = (nodes.len(), at.len());
    if count.saturating_mul(columns * columns) > MOST_ENTRIES {
        return Err(NoLocalRate::HessiansTooLarge {
            nodes: count,
            columns,
        });
    }
    let party = |node: &Node| {
        Ok(QuadraticParty {
            id: node.id(),
            neighbours: node.neighbours().iter().map(|j| j.0 as usize).collect(),
            quadratic: node.curator().quadratic(at)?,
        })
    };
    let mut map = PeriodMap {
        columns,
        length: period,
        parties: nodes.map(party).collect::<Result<_, PassFailed>>()?,
        make,
    };
    let starts = [1, 2].map(|seed| map.start(seed));
    let unit = map.dual_unit(&starts[0]);
    let half = starts[0].len() / 2;
    let radius = spectral_radius::radius([&starts[0], &starts[1]], |state| {
        state[half..].iter_mut().for_each(|lambda| *lambda *= unit);
        map.advance(state);
        state[half..].iter_mut().for_each(|lambda| *lambda /= unit);
    });
    Ok(LocalRate::new(radius.value, period, radius.uncertainty))
}

/// One party, with its rows replaced by a quadratic.
struct QuadraticParty {
    id: NodeId,
    neighbours: Vec<usize>,
    quadratic: QuadraticModel,
}

/// A period of the algorithm as a map of the state: all `f_i`, then all `λ_i`.
struct PeriodMap<'a> {
    columns: usize,
    length: u32,
    parties: Vec<QuadraticParty>,
    make: &'a dyn Fn(NodeId, Vec<f64>) -> Box<dyn Algorithm>,
}

impl PeriodMap<'_> {
    /// Returns a generic state with `Σ_i λ_i = 0`.
    fn start(&self, seed: u64) -> Vec<f64> {
        let half = self.parties.len() * self.columns;
        let mut state = init::normal(seed, NodeId(0), 1.0, 2 * half);
        self.balance(&mut state[half..]);
        state
    }

    /// Returns the unit of duals in which models move duals as much as duals move models.
    fn dual_unit(&mut self, start: &[f64]) -> f64 {
        let half = start.len() / 2;
        // Largest entries, since squares would overflow.
        let size = |part: &[f64]| part.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let mut from_models = start.to_vec();
        from_models[half..].fill(0.0);
        self.advance(&mut from_models);
        let mut from_duals = start.to_vec();
        from_duals[..half].fill(0.0);
        self.advance(&mut from_duals);
        let unit = size(&from_models[half..]).sqrt() / size(&from_duals[..half]).sqrt();
        match unit > 0.0 && unit.is_finite() {
            true => unit,
            // There are no duals, or there is no rate.
            false => 1.0,
        }
    }

    fn advance(&mut self, state: &mut [f64]) {
        let d = self.columns;
        let half = self.parties.len() * d;
        let duals = state[half..].chunks_exact(d);
        let mut algorithms: Vec<Box<dyn Algorithm>> = self
            .parties
            .iter()
            .zip(duals)
            .map(|(party, lambda)| (self.make)(party.id, lambda.to_vec()))
            .collect();
        let mut models: Vec<Release> = state[..half]
            .chunks_exact(d)
            .map(|f| Release::imagined(f.to_vec()))
            .collect();
        for t in 0..self.length {
            let mut next = Vec::with_capacity(models.len());
            for (i, (party, algorithm)) in self.parties.iter_mut().zip(&mut algorithms).enumerate()
            {
                let received = party.received(&models);
                let view = View {
                    iteration: t,
                    own: models[i].values(),
                    neighbours: &received,
                };
                let model = match algorithm.next_step(&view) {
                    Step::Recycle(values) => values,
                    Step::Ask(query) => match party.quadratic.answer(&query) {
                        Some(answer) => algorithm.absorb_answer(&view, &answer),
                        None => vec![f64::NAN; d],
                    },
                };
                next.push(Release::imagined(model));
            }
            models = next;
            for (i, (party, algorithm)) in self.parties.iter().zip(&mut algorithms).enumerate() {
                algorithm.observe(&View {
                    iteration: t + 1,
                    own: models[i].values(),
                    neighbours: &party.received(&models),
                });
            }
        }
        for (i, (model, algorithm)) in models.iter().zip(&algorithms).enumerate() {
            state[i * d..][..d].copy_from_slice(model.values());
            match algorithm.dual() {
                Some(lambda) => state[half + i * d..][..d].copy_from_slice(lambda),
                None => state[half + i * d..][..d].fill(0.0),
            }
        }
        self.balance(&mut state[half..]);
    }

    /// Restores `Σ_i λ_i = 0`, from which rounding departs.
    fn balance(&self, duals: &mut [f64]) {
        let count = self.parties.len() as f64;
        for k in 0..self.columns {
            let mean = duals.iter().skip(k).step_by(self.columns).sum::<f64>() / count;
            let of_column = duals.iter_mut().skip(k).step_by(self.columns);
            of_column.for_each(|lambda| *lambda -= mean);
        }
    }
}

impl QuadraticParty {
    fn received(&self, models: &[Release]) -> Vec<Release> {
        self.neighbours.iter().map(|&j| models[j].clone()).collect()
    }
}
