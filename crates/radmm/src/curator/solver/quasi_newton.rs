//! A quasi-Newton method that is warm-started from earlier queries.
//!
//! A party is asked again and again for minimisers of nearly the same function. Three things are kept from one query to
//! the next: a Hessian of the rows with its factor, a few pairs of steps and the gradient changes that they caused
//! (which update the Hessian as in BFGS), and the last point with the rows' gradient there. So the first step of a
//! query needs no pass over the rows. There is no line search. A step is accepted if the gradient shrinks by half.
//! Where it does not, or where a new Hessian would have saved as many steps as it costs, the Hessian is computed anew.
//! Where even that fails, the search ends and [`minimise`](super::minimise) falls back to Newton's method.
//!
//! Privacy: an answer is as accurate as its certificate says, whatever the method. The choice of method does not leave
//! the curator.

use super::double_double::Point;
use super::objective::Objective;
use super::rows_hessian::RowsHessian;
use super::{Evaluation, Target};
use crate::curator::row_passes::PassFailed;
use crate::linalg::cholesky::Cholesky;
use crate::linalg::dot::{dot, norm};

/// The largest number of secant pairs that update the Hessian.
const MAX_PAIRS: usize = 12;
/// The estimated number of steps saved by a Hessian, per step that it costs, from which on it is computed. Secant pairs
/// speed a search up, so that fewer steps are left than the last one lets expect.
const PATIENCE: f64 = 1.5;
/// The number of steps that a query takes even with an up-to-date Hessian.
const BASELINE_STEPS: f64 = 2.0;
/// The largest ratio of gradient norms at which a step is accepted.
const ACCEPTED_RATIO: f64 = 0.5;
const MAX_STEPS: usize = 40;
/// A Hessian is kept if it takes about as much memory as the rows at most: 16 numbers per row.
const MAX_ENTRIES_PER_ROW: usize = 16;

/// The solver's state between queries about the same rows.
#[derive(Default)]
pub struct WarmStart {
    last_gradient: Option<LastGradient>,
    hessian: Option<CachedHessian>,
    /// The number of passes over the rows that the last query took; zero if they were not counted.
    passes: u32,
    /// The number of steps that a newer Hessian would have saved, since this one was computed.
    excess_steps: f64,
}

/// The last point, and the rows' gradient there.
struct LastGradient {
    point: Vec<f64>,
    rows_gradient: Vec<f64>,
}

/// A Hessian of an earlier point, with the secant pairs since.
struct CachedHessian {
    rows_hessian: RowsHessian,
    /// The factor of the rows' part plus `m I`.
    factor: Cholesky,
    modulus: f64,
    pairs: Vec<SecantPair>,
}

/// A step, and the change of the rows' gradient along it.
struct SecantPair {
    step: Vec<f64>,
    change: Vec<f64>,
}

impl WarmStart {
    /// Returns the number of passes over the rows that the last query took; zero if they were not counted.
    pub(in crate::curator) fn passes(&self) -> u32 {
        self.passes
    }

    /// Returns whether nothing is known of the rows yet.
    pub(in crate::curator) fn is_cold(&self) -> bool {
        self.last_gradient.is_none()
    }

    /// Sets the number of passes of a query that needs no quasi-Newton search; zero if they are not counted.
    pub(in crate::curator) fn set_passes(&mut self, passes: u32) {
        self.passes = passes;
    }

    /// Drops the Hessian and the last gradient where the Hessian takes much more memory than the rows.
    fn drop_if_too_large(&mut self, objective: &Objective<'_>) {
        let size = |hessian: &CachedHessian| hessian.rows_hessian.numbers();
        let largest = MAX_ENTRIES_PER_ROW * objective.rows.rows();
        if self
            .hessian
            .as_ref()
            .is_some_and(|hessian| size(hessian) > largest)
        {
            (self.last_gradient, self.hessian) = (None, None);
        }
    }
}

/// The state of one quasi-Newton search.
pub(in crate::curator) struct QuasiNewton<'a> {
    objective: &'a Objective<'a>,
    target: Target,
    warm_start: &'a mut WarmStart,
    best: Option<Iterate>,
    /// The point whose gradient is needed next.
    trial: Point,
    steps: usize,
}

/// The best point so far.
struct Iterate {
    point: Point,
    gradient: Vec<f64>,
    residual: f64,
    /// Whether the cached Hessian was computed at this point.
    hessian_is_current: bool,
}

/// The outcome of one gradient evaluation.
pub(in crate::curator) enum Progress {
    /// The search goes on with the gradient at the next trial point.
    NeedsGradient,
    /// The evaluated point meets the target.
    Found(Evaluation),
    /// The search has failed; this is a start for another method.
    Failed(Vec<f64>),
}

impl<'a> QuasiNewton<'a> {
    /// Starts from the last point of the warm start, or at `near` if there is none.
    pub(in crate::curator) fn new(
        objective: &'a Objective<'a>,
        near: &[f64],
        target: Target,
        warm_start: &'a mut WarmStart,
    ) -> Result<Self, PassFailed> {
        warm_start.passes = 0;
        let last_gradient = warm_start.last_gradient.take();
        let mut search = Self {
            objective,
            target,
            warm_start,
            best: None,
            trial: Point::plain(near),
            steps: 0,
        };
        if let Some(LastGradient {
            point,
            rows_gradient,
        }) = last_gradient
        {
            let rest = objective.linear.iter().zip(&point);
            let rest = rest.map(|(b, f)| b + objective.modulus * f);
            let gradient: Vec<f64> = rows_gradient
                .iter()
                .zip(rest)
                .map(|(g, rest)| g + rest)
                .collect();
            search.best = Some(Iterate {
                point: Point::plain(&point),
                residual: norm(&gradient),
                gradient,
                hessian_is_current: false,
            });
            search.propose_step(1.0)?;
        }
        Ok(search)
    }

    /// Returns the point whose gradient is needed next.
    pub(in crate::curator) fn trial(&self) -> &Point {
        &self.trial
    }

    /// Continues the search with the gradient at the trial point.
    pub(in crate::curator) fn advance(
        &mut self,
        there: Evaluation,
    ) -> Result<Progress, PassFailed> {
        self.warm_start.passes += 1;
        self.steps += 1;
        if there.meets(&self.target) {
            self.store_warm_start(&there);
            return Ok(Progress::Found(there));
        }
        if there.residual <= self.target.tolerance {
            // Accurate enough, but not yet in double-double arithmetic.
            self.trial = there.point.doubled();
            return Ok(Progress::NeedsGradient);
        }
        let Some(best) = &mut self.best else {
            self.best = Some(Iterate::new(there));
            return self.compute_hessian();
        };
        let ratio = there.residual / best.residual;
        // A NaN is not accepted either.
        let accepted = ratio <= ACCEPTED_RATIO;
        if !accepted {
            return match best.hessian_is_current {
                true => Ok(self.fail()),
                false => self.compute_hessian(),
            };
        }
        if let Some(hessian) = &mut self.warm_start.hessian {
            hessian.add_pair(best, &there, self.objective.modulus);
        }
        self.best = Some(Iterate::new(there));
        let steps_left = self.best.as_ref().map_or(0.0, |best| {
            libm::log(self.target.tolerance / best.residual) / libm::log(ratio)
        });
        if self.steps >= MAX_STEPS {
            return Ok(self.fail());
        }
        // A new Hessian pays if it saves more steps than it costs, including those that it could have saved before.
        let saved = self.warm_start.excess_steps + steps_left;
        if steps_left > 1.0 && saved > PATIENCE * self.objective.gradients_per_hessian() {
            return self.compute_hessian();
        }
        self.propose_step(ratio)?;
        Ok(Progress::NeedsGradient)
    }

    /// Computes the Hessian at the best point.
    fn compute_hessian(&mut self) -> Result<Progress, PassFailed> {
        let Some(best) = &mut self.best else {
            return Ok(self.fail());
        };
        self.warm_start.passes += 1;
        best.hessian_is_current = true;
        let modulus = self.objective.modulus;
        let rows_hessian = RowsHessian::new(self.objective, &best.point)?;
        self.warm_start.excess_steps = 0.0;
        self.warm_start.hessian = CachedHessian::new(rows_hessian, modulus);
        match self.warm_start.hessian {
            Some(_) => {
                self.propose_step(1.0)?;
                Ok(Progress::NeedsGradient)
            }
            None => Ok(self.fail()),
        }
    }

    /// Sets the trial point one step from the best; `ratio` is that of gradient norms over the last step.
    fn propose_step(&mut self, ratio: f64) -> Result<(), PassFailed> {
        let Some(best) = &self.best else {
            return Ok(());
        };
        let modulus = self.objective.modulus;
        if let Some(hessian) = self.warm_start.hessian.take() {
            self.warm_start.hessian = hessian.with_modulus(modulus);
        }
        let Some(hessian) = &self.warm_start.hessian else {
            // The Hessian is computed after the gradient at this point, which is needed first.
            self.trial = best.point.clone();
            self.best = None;
            return Ok(());
        };
        let direction = hessian.direction(self.objective, &best.gradient)?;
        self.trial = best.point.moved(1.0, &direction);
        let expected = ratio * best.residual;
        if self.target.doubled && !best.point.is_doubled() && expected <= self.target.tolerance {
            self.trial = self.trial.doubled();
        }
        Ok(())
    }

    /// Ends the search without a result, and clears the warm start.
    fn fail(&mut self) -> Progress {
        *self.warm_start = WarmStart::default();
        match self.best.take() {
            Some(best) => Progress::Failed(best.point.into_values()),
            None => Progress::Failed(self.trial.high().to_vec()),
        }
    }

    /// Stores the found point and its gradient for the next query.
    fn store_warm_start(&mut self, found: &Evaluation) {
        let (objective, point) = (self.objective, found.point.high());
        let rest = objective.linear.iter().zip(point);
        let rest = rest.map(|(b, f)| b + objective.modulus * f);
        self.warm_start.last_gradient = Some(LastGradient {
            rows_gradient: found
                .gradient
                .iter()
                .zip(rest)
                .map(|(g, rest)| g - rest)
                .collect(),
            point: point.to_vec(),
        });
        self.warm_start.excess_steps += (self.steps as f64 - BASELINE_STEPS).max(0.0);
        self.warm_start.drop_if_too_large(objective);
    }
}

impl Iterate {
    fn new(evaluation: Evaluation) -> Self {
        Self {
            point: evaluation.point,
            gradient: evaluation.gradient,
            residual: evaluation.residual,
            hessian_is_current: false,
        }
    }
}

impl CachedHessian {
    /// Factors the Hessian; `None` if rounding hides that it is positive definite.
    fn new(rows_hessian: RowsHessian, modulus: f64) -> Option<Self> {
        Some(Self {
            factor: rows_hessian.factor(modulus)?,
            rows_hessian,
            modulus,
            pairs: Vec::new(),
        })
    }

    /// Returns the Hessian of the same rows with another `m`.
    fn with_modulus(self, modulus: f64) -> Option<Self> {
        if self.modulus == modulus {
            return Some(self);
        }
        let pairs = self.pairs;
        let refactored = Self::new(self.rows_hessian, modulus)?;
        Some(Self {
            pairs,
            ..refactored
        })
    }

    /// Adds the secant pair of an accepted step, in the place of the oldest one if there are too many.
    fn add_pair(&mut self, from: &Iterate, to: &Evaluation, modulus: f64) {
        let step = from.point.step_to(&to.point);
        let change = to.gradient.iter().zip(&from.gradient).zip(&step);
        let change: Vec<f64> = change.map(|((a, b), s)| a - b - modulus * s).collect();
        if self.pairs.len() == MAX_PAIRS {
            self.pairs.remove(0);
        }
        self.pairs.push(SecantPair { step, change });
    }

    /// Returns `−H⁻¹g`, with `H` updated by the pairs (the two-loop recursion of L-BFGS).
    fn direction(
        &self,
        objective: &Objective<'_>,
        gradient: &[f64],
    ) -> Result<Vec<f64>, PassFailed> {
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut coefficients = Vec::with_capacity(self.pairs.len());
        for SecantPair { step, change } in self.pairs.iter().rev() {
            // The curvature of F: the rows' own change plus m times the step. Positive, since the rows' part is convex.
            let curvature = dot(step, change) + self.modulus * dot(step, step);
            let alpha = dot(step, &direction) / curvature;
            for ((p, y), s) in direction.iter_mut().zip(change).zip(step) {
                *p -= alpha * (y + self.modulus * s);
            }
            coefficients.push((alpha, curvature));
        }
        let factor = (&self.factor, self.modulus);
        self.rows_hessian.solve(objective, factor, &mut direction)?;
        let pairs = self.pairs.iter().zip(coefficients.iter().rev());
        for (SecantPair { step, change }, (alpha, curvature)) in pairs {
            let beta = (dot(change, &direction) + self.modulus * dot(step, &direction)) / curvature;
            for (p, s) in direction.iter_mut().zip(step) {
                *p += (alpha - beta) * s;
            }
        }
        Ok(direction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::row_passes::LocalChunks;
    use crate::curator::solver::minimise;
    use crate::curator::{NormPolicy, Shard, ShardBuilder};
    use crate::problem::Loss;
    use proptest::prelude::*;

    fn shard(rows: usize, columns: usize) -> Shard {
        let mut builder = ShardBuilder::new(columns, NormPolicy::Unit);
        let wave = |n: usize| (n as f64 * 78.233).sin();
        for n in 0..rows {
            let entries: Vec<(u32, f64)> = (0..columns)
                .filter(|k| (n * 7 + k * k) % 5 < 2)
                .map(|k| (k as u32, 0.2 + wave(n * columns + k)))
                .collect();
            builder.push(&entries, wave(13 * n + 5) > 0.0).unwrap();
        }
        builder.finish().unwrap()
    }

    fn objective<'a>(
        shard: &'a Shard,
        loss: Loss,
        modulus: f64,
        linear: &'a [f64],
    ) -> Objective<'a> {
        Objective::of_party((LocalChunks::in_test(shard), 50.0), loss, modulus, linear)
    }

    fn plain_target(tolerance: f64) -> Target {
        Target {
            tolerance,
            doubled: false,
        }
    }

    proptest! {
        #[test]
        fn a_warm_started_minimiser_is_as_accurate_as_a_cold_one(
            seed in 0usize..500,
            moduli in proptest::collection::vec(-2f64..1.0, 1..8),
            jump in -2f64..3.0,
            doubled in any::<bool>(),
            hinge in any::<bool>(),
        ) {
            let shard = shard(60, 12);
            let loss = if hinge { Loss::SmoothHinge { width: 0.3 } } else { Loss::Logistic };
            let mut warm_start = WarmStart::default();
            for (n, modulus) in moduli.iter().enumerate() {
                let modulus = 10f64.powf(*modulus);
                let wave = |k: usize| ((k + 12 * n + seed) as f64 * 1.3).sin();
                let linear: Vec<f64> = (0..12).map(|k| 10f64.powf(jump) * wave(k)).collect();
                let objective = objective(&shard, loss, modulus, &linear);
                let target = Target { doubled, ..plain_target(1e-9) };
                let found = minimise(&objective, &[0.0; 12], &target, &mut warm_start).unwrap();
                let cold = minimise(&objective, &[0.0; 12], &target, &mut WarmStart::default()).unwrap();
                let distance: Vec<f64> = found.point.iter().zip(&cold.point).map(|(a, b)| a - b).collect();
                let digit = f64::EPSILON * norm(&cold.point);
                prop_assert!(norm(&distance) <= 2e-9 / modulus + 4.0 * digit, "{}", norm(&distance));
                prop_assert!(found.residual <= 1e-9);
            }
        }
    }

    #[test]
    fn slowly_changing_queries_take_at_most_three_passes() {
        let shard = shard(200, 20);
        let mut warm_start = WarmStart::default();
        let mut passes = Vec::new();
        for n in 0..40 {
            // A slow change, as of duals that converge.
            let turned = |k: usize| (k as f64 + 2.0 * 0.9f64.powi(n)).sin();
            let linear: Vec<f64> = (0..20).map(turned).collect();
            let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
            minimise(&objective, &[0.0; 20], &plain_target(1e-8), &mut warm_start).unwrap();
            passes.push(warm_start.passes());
        }
        passes.sort_unstable();
        assert!(passes[20] <= 3, "{passes:?}");
    }

    #[test]
    fn a_repeated_query_takes_one_pass() {
        let (shard, linear) = (shard(200, 20), [0.3; 20]);
        let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
        let mut warm_start = WarmStart::default();
        let mut ask =
            || minimise(&objective, &[0.0; 20], &plain_target(1e-8), &mut warm_start).unwrap();
        let first = ask().point;
        let again = ask().point;
        assert!(first.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-8));
        assert_eq!(warm_start.passes(), 1);
    }

    #[test]
    fn a_hessian_much_larger_than_the_rows_is_not_kept() {
        // 144 entries against 16 numbers per row.
        for (rows, kept) in [(8, false), (9, true)] {
            let (shard, linear) = (shard(rows, 12), [0.3; 12]);
            let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
            let mut warm_start = WarmStart::default();
            minimise(&objective, &[0.0; 12], &plain_target(1e-8), &mut warm_start).unwrap();
            assert_eq!(
                (
                    warm_start.hessian.is_some(),
                    warm_start.last_gradient.is_some()
                ),
                (kept, kept)
            );
        }
    }

    #[test]
    fn secant_pairs_update_the_hessian() {
        // For a quadratic, a pair gives the exact curvature in its direction.
        let shard = shard(200, 2);
        let objective = objective(&shard, Loss::Logistic, 1.0, &[0.0; 2]);
        let assert_direction = |hessian: &CachedHessian, gradient: [f64; 2], right: [f64; 2]| {
            let direction = hessian.direction(&objective, &gradient).unwrap();
            let pairs = direction.iter().zip(right);
            assert!(
                pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-14),
                "{direction:?}"
            );
        };
        let (step, change) = (vec![1.0, 0.0], vec![4.0, 0.0]);
        let identity = RowsHessian::of_entries(vec![1.0, 0.0, 0.0, 1.0]);
        let mut hessian = CachedHessian::new(identity, 1.0).unwrap();
        assert_direction(&hessian, [5.0, 2.0], [-2.5, -1.0]);
        hessian.pairs.push(SecantPair { step, change });
        assert_direction(&hessian, [5.0, 2.0], [-1.0, -1.0]);
        // The same rows with another m.
        assert_direction(
            &hessian.with_modulus(3.0).unwrap(),
            [7.0, 2.0],
            [-1.0, -0.5],
        );
    }

    #[test]
    fn a_search_that_meets_nan_fails_and_clears_the_warm_start() {
        let (shard, linear) = (shard(200, 20), [0.3; 20]);
        let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
        let mut warm_start = WarmStart::default();
        minimise(&objective, &[0.0; 20], &plain_target(1e-8), &mut warm_start).unwrap();
        let other = [-0.3; 20];
        let objective = Objective {
            linear: &other,
            ..objective
        };
        let mut search =
            QuasiNewton::new(&objective, &[0.0; 20], plain_target(1e-8), &mut warm_start).unwrap();
        let advance_with_nan = |search: &mut QuasiNewton<'_>| {
            let evaluation = Evaluation {
                point: search.trial().clone(),
                gradient: vec![f64::NAN; 20],
                residual: f64::NAN,
            };
            search.advance(evaluation).unwrap()
        };
        // With the old Hessian, then with a new one.
        assert!(matches!(
            advance_with_nan(&mut search),
            Progress::NeedsGradient
        ));
        assert!(matches!(advance_with_nan(&mut search), Progress::Failed(_)));
        assert!(warm_start.last_gradient.is_none() && warm_start.hessian.is_none());
    }

    #[test]
    fn a_step_that_does_not_halve_the_gradient_is_rejected() {
        let (shard, linear) = (shard(200, 20), [0.3; 20]);
        let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
        let mut warm_start = WarmStart::default();
        let mut search =
            QuasiNewton::new(&objective, &[0.0; 20], plain_target(1e-8), &mut warm_start).unwrap();
        let first = objective.evaluate(search.trial().clone()).unwrap();
        let residual = first.residual;
        let progress = search.advance(first).unwrap();
        assert!(matches!(progress, Progress::NeedsGradient));
        let insufficient = Evaluation {
            point: search.trial().clone(),
            gradient: vec![1.0; 20],
            residual: 0.6 * residual,
        };
        assert!(
            matches!(search.advance(insufficient).unwrap(), Progress::Failed(start) if start == [0.0; 20])
        );
    }
}
