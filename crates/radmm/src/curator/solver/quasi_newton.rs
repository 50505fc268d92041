//! The quick way to a minimiser: everything that earlier questions have told of the rows is used again.
//!
//! A party is asked again and again for minimisers of nearly the same function. CachedHessian from one question to the next are a
//! Hessian of the rows with its factor, a few pairs of steps and what they changed in the gradient (which mend the Hessian, as
//! BFGS does), and the last point with the rows' gradient there: so that the first step of a question needs no pass over the
//! rows at all. There is no line search. A step is good if the gradient shrinks. Where it does not, or where a new Hessian would
//! have spared as many steps as it costs, it is made anew; where even that is no good, the search ends and [`minimise`](super::solve::minimise)
//! goes the safe way.
//!
//! Privacy: an answer is as good as its certificate says, by any way. Which way it takes does not leave the curator.

use super::double_double::Point;
use super::objective::Objective;
use super::{Evaluation, Target};
use crate::linalg::cholesky::Cholesky;
use crate::linalg::dot::{dot, norm};

/// Pairs of steps and changes that mend the Hessian.
const PAIRS: usize = 12;
/// What a new Hessian may cost, in steps.
const HESSIAN_COST: f64 = 5.0;
/// Steps that a question takes even with a good one.
const NEEDED: f64 = 2.0;
/// A step that shrinks the gradient by less is no good.
const GOOD: f64 = 0.5;
const MOST_STEPS: usize = 40;
/// A Hessian is kept if it takes no more room than the rows do, or little more: `d² ≤ 16·B`.
const KEPT_FOR_ROWS: usize = 16;

/// What is known of the rows from earlier questions.
#[derive(Default)]
pub struct WarmStart {
    last: Option<LastGradient>,
    kept: Option<CachedHessian>,
    /// Passes over the rows that the last question took; zero if it was not answered by a search.
    passes: u32,
    /// Steps that a better Hessian would have spared, since it was made.
    debt: f64,
}

/// A point, and the rows' gradient there.
struct LastGradient {
    point: Vec<f64>,
    slope: Vec<f64>,
}

struct CachedHessian {
    /// The lower triangle of the rows' part.
    hessian: Vec<f64>,
    /// Of it and `m I`.
    factor: Cholesky,
    modulus: f64,
    pairs: Vec<Pair>,
}

/// A step, and how much it changed the rows' gradient.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
}

impl WarmStart {
    pub(in crate::curator) fn passes(&self) -> u32 {
        self.passes
    }

    pub(in crate::curator) fn knows_nothing(&self) -> bool {
        self.last.is_none()
    }

    /// For a question that needs so many passes and no search; zero if nobody counts.
    pub(in crate::curator) fn count(&mut self, passes: u32) {
        self.passes = passes;
    }

    /// What is not worth its room is forgotten.
    fn forget(&mut self, objective: &Objective<'_>) {
        let rows: usize = objective.shards.iter().map(|shard| shard.rows()).sum();
        if objective.linear.len().pow(2) > KEPT_FOR_ROWS * rows {
            (self.last, self.kept) = (None, None);
        }
    }
}

/// A minimiser being looked for.
pub(in crate::curator) struct QuasiNewton<'a> {
    objective: &'a Objective<'a>,
    target: Target,
    warm_start: &'a mut WarmStart,
    here: Option<Iterate>,
    /// Whose gradient is asked for.
    asked: Point,
    steps: usize,
}

/// The best point so far.
struct Iterate {
    point: Point,
    gradient: Vec<f64>,
    residual: f64,
    /// Whether the Hessian is of this point.
    fresh: bool,
}

/// What comes of a gradient.
pub(in crate::curator) enum Progress {
    /// There is another one to be told.
    NeedsGradient,
    /// It was the last one needed.
    Found(Evaluation),
    /// This is not the way; here is a start for another.
    Failed(Vec<f64>),
}

impl<'a> QuasiNewton<'a> {
    /// Begins at what is known, or near a given point.
    pub(in crate::curator) fn new(
        objective: &'a Objective<'a>,
        near: &[f64],
        target: Target,
        warm_start: &'a mut WarmStart,
    ) -> Self {
        warm_start.passes = 0;
        let last = warm_start.last.take();
        let mut search = Self {
            objective,
            target,
            warm_start,
            here: None,
            asked: Point::plain(near),
            steps: 0,
        };
        if let Some(LastGradient { point, slope }) = last {
            let rest = objective.linear.iter().zip(&point);
            let rest = rest.map(|(b, f)| b + objective.modulus * f);
            let gradient: Vec<f64> = slope.iter().zip(rest).map(|(g, rest)| g + rest).collect();
            search.here = Some(Iterate {
                point: Point::plain(&point),
                residual: norm(&gradient),
                gradient,
                fresh: false,
            });
            search.step(1.0);
        }
        search
    }

    /// The point whose gradient is to be told next.
    pub(in crate::curator) fn asks(&self) -> &Point {
        &self.asked
    }

    /// Goes on with a gradient.
    pub(in crate::curator) fn told(&mut self, there: Evaluation) -> Progress {
        self.warm_start.passes += 1;
        self.steps += 1;
        if there.meets(&self.target) {
            self.remember(&there);
            return Progress::Found(there);
        }
        if there.residual <= self.target.tolerance {
            // Good but for its digits.
            self.asked = there.point.doubled();
            return Progress::NeedsGradient;
        }
        let Some(here) = &mut self.here else {
            self.here = Some(Iterate::of(there));
            return self.renew();
        };
        let shrunk = there.residual / here.residual;
        let good = shrunk <= GOOD;
        // A NaN is no good either.
        if !good {
            return match here.fresh {
                true => self.lost(),
                false => self.renew(),
            };
        }
        if let Some(kept) = &mut self.warm_start.kept {
            kept.learn(here, &there, self.objective.modulus);
        }
        self.here = Some(Iterate::of(there));
        let left = self.here.as_ref().map_or(0.0, |here| {
            libm::log(self.target.tolerance / here.residual) / libm::log(shrunk)
        });
        if self.steps >= MOST_STEPS {
            return self.lost();
        }
        // A new one pays if it spares as many steps as it costs, together with those that it could have spared before.
        if left > 1.0 && self.warm_start.debt + left > HESSIAN_COST {
            return self.renew();
        }
        self.step(shrunk);
        Progress::NeedsGradient
    }

    /// Makes the Hessian anew, here.
    fn renew(&mut self) -> Progress {
        let Some(here) = &mut self.here else {
            return self.lost();
        };
        self.warm_start.passes += 1;
        here.fresh = true;
        let modulus = self.objective.modulus;
        let hessian = self.objective.hessian(&here.point);
        self.warm_start.debt = 0.0;
        self.warm_start.kept = CachedHessian::new(hessian, self.objective.linear.len(), modulus);
        match self.warm_start.kept {
            Some(_) => {
                self.step(1.0);
                Progress::NeedsGradient
            }
            None => self.lost(),
        }
    }

    /// Asks for the gradient a step further; the last one shrank it by `shrunk`.
    fn step(&mut self, shrunk: f64) {
        let Some(here) = &self.here else { return };
        let modulus = self.objective.modulus;
        if let Some(kept) = self.warm_start.kept.take() {
            self.warm_start.kept = kept.at(modulus);
        }
        let Some(kept) = &self.warm_start.kept else {
            // The Hessian is made with the gradient here, which has to be asked for then.
            self.asked = here.point.clone();
            self.here = None;
            return;
        };
        self.asked = here.point.moved(1.0, &kept.direction(&here.gradient));
        let expected = shrunk * here.residual;
        if self.target.doubled && !here.point.is_doubled() && expected <= self.target.tolerance {
            self.asked = self.asked.doubled();
        }
    }

    fn lost(&mut self) -> Progress {
        *self.warm_start = WarmStart::default();
        match self.here.take() {
            Some(here) => Progress::Failed(here.point.into_values()),
            None => Progress::Failed(self.asked.high().to_vec()),
        }
    }

    fn remember(&mut self, found: &Evaluation) {
        let (objective, point) = (self.objective, found.point.high());
        let rest = objective.linear.iter().zip(point);
        let rest = rest.map(|(b, f)| b + objective.modulus * f);
        self.warm_start.last = Some(LastGradient {
            slope: found
                .gradient
                .iter()
                .zip(rest)
                .map(|(g, rest)| g - rest)
                .collect(),
            point: point.to_vec(),
        });
        self.warm_start.debt += (self.steps as f64 - NEEDED).max(0.0);
        self.warm_start.forget(objective);
    }
}

impl Iterate {
    fn of(place: Evaluation) -> Self {
        Self {
            point: place.point,
            gradient: place.gradient,
            residual: place.residual,
            fresh: false,
        }
    }
}

impl CachedHessian {
    /// `None` if rounding hides that the matrix is positive definite.
    fn new(hessian: Vec<f64>, d: usize, modulus: f64) -> Option<Self> {
        Some(Self {
            factor: Cholesky::of(hessian.clone(), d, modulus)?,
            hessian,
            modulus,
            pairs: Vec::new(),
        })
    }

    /// The same rows with another `m`.
    fn at(self, modulus: f64) -> Option<Self> {
        if self.modulus == modulus {
            return Some(self);
        }
        let d = self.hessian.len().isqrt();
        let pairs = self.pairs;
        let kept = Self::new(self.hessian, d, modulus)?;
        Some(Self { pairs, ..kept })
    }

    fn learn(&mut self, here: &Iterate, there: &Evaluation, modulus: f64) {
        let step = here.point.to(&there.point);
        let change = there.gradient.iter().zip(&here.gradient).zip(&step);
        let change: Vec<f64> = change.map(|((a, b), s)| a - b - modulus * s).collect();
        if self.pairs.len() == PAIRS {
            self.pairs.remove(0);
        }
        self.pairs.push(Pair { step, change });
    }

    /// `−H⁻¹g`, with `H` mended by the pairs.
    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for Pair { step, change } in self.pairs.iter().rev() {
            // Of F: the rows' own change and m times the step. Positive, since the rows' part is convex.
            let along = dot(step, change) + self.modulus * dot(step, step);
            let share = dot(step, &direction) / along;
            for ((p, y), s) in direction.iter_mut().zip(change).zip(step) {
                *p -= share * (y + self.modulus * s);
            }
            shares.push((share, along));
        }
        self.factor.solve(&mut direction);
        for (Pair { step, change }, (share, along)) in self.pairs.iter().zip(shares.iter().rev()) {
            let back = (dot(change, &direction) + self.modulus * dot(step, &direction)) / along;
            for (p, s) in direction.iter_mut().zip(step) {
                *p += (share - back) * s;
            }
        }
        direction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::solver::minimise;
    use crate::curator::{NormPolicy, Shard, ShardBuilder};
    use crate::exec::Sequential;
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
        Objective {
            shards: vec![shard],
            loss,
            weight: 50.0,
            modulus,
            linear,
            executor: &Sequential,
            stride: 1,
        }
    }

    fn exactly(tolerance: f64) -> Target {
        Target {
            tolerance,
            doubled: false,
        }
    }

    proptest! {
        /// Whatever was asked before, an answer is as good as one from scratch.
        #[test]
        fn memory_changes_the_way_and_not_the_goal(
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
                let target = Target { doubled, ..exactly(1e-9) };
                let found = minimise(&objective, &[0.0; 12], &target, &mut warm_start).unwrap();
                let fresh = minimise(&objective, &[0.0; 12], &target, &mut WarmStart::default()).unwrap();
                let apart: Vec<f64> = found.point.iter().zip(&fresh.point).map(|(a, b)| a - b).collect();
                let digit = f64::EPSILON * norm(&fresh.point);
                prop_assert!(norm(&apart) <= 2e-9 / modulus + 4.0 * digit, "{}", norm(&apart));
                prop_assert!(found.residual <= 1e-9);
            }
        }
    }

    #[test]
    fn questions_that_change_little_take_three_passes_or_fewer() {
        let shard = shard(200, 20);
        let mut warm_start = WarmStart::default();
        let mut passes = Vec::new();
        for n in 0..40 {
            // A slow turn, as of duals that converge.
            let turned = |k: usize| (k as f64 + 2.0 * 0.9f64.powi(n)).sin();
            let linear: Vec<f64> = (0..20).map(turned).collect();
            let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
            minimise(&objective, &[0.0; 20], &exactly(1e-8), &mut warm_start).unwrap();
            passes.push(warm_start.passes());
        }
        passes.sort_unstable();
        assert!(passes[20] <= 3, "{passes:?}");
    }

    #[test]
    fn the_same_question_again_takes_one_pass() {
        let (shard, linear) = (shard(200, 20), [0.3; 20]);
        let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
        let mut warm_start = WarmStart::default();
        let mut ask = || minimise(&objective, &[0.0; 20], &exactly(1e-8), &mut warm_start).unwrap();
        let first = ask().point;
        let again = ask().point;
        assert!(first.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-8));
        assert_eq!(warm_start.passes(), 1);
    }

    #[test]
    fn few_rows_are_not_worth_a_hessian_of_many_columns() {
        // 144 entries for 16 numbers a row.
        for (rows, kept) in [(8, false), (9, true)] {
            let (shard, linear) = (shard(rows, 12), [0.3; 12]);
            let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
            let mut warm_start = WarmStart::default();
            minimise(&objective, &[0.0; 12], &exactly(1e-8), &mut warm_start).unwrap();
            assert_eq!(
                (warm_start.kept.is_some(), warm_start.last.is_some()),
                (kept, kept)
            );
        }
    }

    #[test]
    fn pairs_mend_the_hessian() {
        // Of a quadratic, a pair tells the whole truth in its direction.
        let near = |kept: &CachedHessian, gradient: [f64; 2], right: [f64; 2]| {
            let direction = kept.direction(&gradient);
            let pairs = direction.iter().zip(right);
            assert!(
                pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-14),
                "{direction:?}"
            );
        };
        let (step, change) = (vec![1.0, 0.0], vec![4.0, 0.0]);
        let mut kept = CachedHessian::new(vec![1.0, 0.0, 0.0, 1.0], 2, 1.0).unwrap();
        near(&kept, [5.0, 2.0], [-2.5, -1.0]);
        kept.pairs.push(Pair { step, change });
        near(&kept, [5.0, 2.0], [-1.0, -1.0]);
        // With another m, the same rows.
        near(&kept.at(3.0).unwrap(), [7.0, 2.0], [-1.0, -0.5]);
    }

    #[test]
    fn a_search_that_meets_no_number_is_lost_and_remembers_nothing() {
        let (shard, linear) = (shard(200, 20), [0.3; 20]);
        let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
        let mut warm_start = WarmStart::default();
        minimise(&objective, &[0.0; 20], &exactly(1e-8), &mut warm_start).unwrap();
        let other = [-0.3; 20];
        let objective = Objective {
            shards: vec![&shard],
            linear: &other,
            ..objective
        };
        let mut search = QuasiNewton::new(&objective, &[0.0; 20], exactly(1e-8), &mut warm_start);
        let told = |search: &mut QuasiNewton<'_>| {
            search.told(Evaluation {
                point: search.asks().clone(),
                gradient: vec![f64::NAN; 20],
                residual: f64::NAN,
            })
        };
        // With the old Hessian, then with a new one.
        assert!(matches!(told(&mut search), Progress::NeedsGradient));
        assert!(matches!(told(&mut search), Progress::Failed(_)));
        assert!(warm_start.last.is_none() && warm_start.kept.is_none());
    }

    #[test]
    fn a_step_that_does_not_halve_the_gradient_is_not_taken() {
        let (shard, linear) = (shard(200, 20), [0.3; 20]);
        let objective = objective(&shard, Loss::Logistic, 0.5, &linear);
        let mut warm_start = WarmStart::default();
        let mut search = QuasiNewton::new(&objective, &[0.0; 20], exactly(1e-8), &mut warm_start);
        let first = objective.at(search.asks().clone());
        let residual = first.residual;
        assert!(matches!(search.told(first), Progress::NeedsGradient));
        let poor = Evaluation {
            point: search.asks().clone(),
            gradient: vec![1.0; 20],
            residual: 0.6 * residual,
        };
        assert!(matches!(search.told(poor), Progress::Failed(start) if start == [0.0; 20]));
    }
}
