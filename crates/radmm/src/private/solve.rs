//! The certified minimiser of `F(f) = Σ_i (C/B_i) Σ_n L(fᵀz_n) + ⟨b, f⟩ + (m/2)‖f‖²`, with `z = y·x`.
//!
//! A curator has one shard `i` and `m = ρ/N + a`; the centralised optimum of a simulation has all of them and `m = ρ`.
//!
//! Newton's method. Along a direction the slope of a convex function only grows, so slopes alone tell a good step: one at
//! whose end `F` still falls, though less than at its start, or one that has overshot little and shrunk the least `‖∇F‖` so
//! far by a tenth. No difference of nearly equal values is ever taken. Steps of the first kind lower `F` by a share of what
//! there is to gain; steps of the second kind can raise it, but only as often as a gradient can shrink so. So it converges
//! from anywhere. Up to [`DENSE_COLUMNS`] columns the direction comes from a Cholesky factor, above by preconditioned
//! conjugate gradients. Where it comes to rest before the tolerance is met, the spacing of doubles is in the way, and it goes
//! on with points of twice the digits. If all that should fail, plain descent follows, which cannot.

use thiserror::Error;

use super::cholesky::Cholesky;
use super::chunk::Chunk;
use super::hands::{Hands, gather};
use super::hessian;
use super::kernel::{self, Path, Sum};
use super::loss::Loss;
use super::point::Point;
use super::search::{Memory, Next, Search};
use super::shard::Shard;

/// From here on a factor costs more than the products of conjugate gradients.
pub(super) const DENSE_COLUMNS: usize = 2048;
const NEWTON_STEPS: usize = 1000;
/// Of widened bends; the widest is a thousand million times as wide as the loss's own.
const STAGES: u32 = 30;
/// Without the gradient having shrunk by a tenth, before it counts as having come to rest.
const PATIENCE: usize = 40;
const BISECTIONS: usize = 100;
/// Chunks whose sums are held beside one another before they are added up.
const AT_ONCE: usize = 32;
/// From as many chunks on, some of them are asked first: one of so many.
const ROUGH_FROM: usize = 3;
const ROUGH_STRIDE: usize = 8;
/// Parts of a Hessian that are made apart.
const PIECES: usize = 8;
const SHIFTS: usize = 60;

/// A smooth, strongly convex function of rows.
pub(super) struct Objective<'a> {
    /// All of the same number of columns; at least one.
    pub shards: Vec<&'a Shard>,
    pub loss: Loss,
    /// `C`.
    pub weight: f64,
    /// `m > 0`, the strong convexity.
    pub modulus: f64,
    /// `b`.
    pub linear: &'a [f64],
    /// Who goes over the rows.
    pub hands: &'a dyn Hands,
    /// All rows, or one chunk of as many in the place of all: for a rough start.
    pub stride: usize,
}

/// A point whose gradient is at most the tolerance.
pub(super) struct Solution {
    pub point: Vec<f64>,
    /// `‖∇F‖₂` there. `F` is m-strongly convex, so the minimiser is at most `residual/m` away.
    pub residual: f64,
}

/// Nothing is released from a point that is not certified. How near it came depends on rows, so that is not told.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error(
    "the minimiser could not be certified to a residual of {tolerance:e}; raise the tolerance or the ridge, or add less noise"
)]
pub struct NotCertified {
    /// What was asked for.
    pub tolerance: f64,
}

/// What a solution has to be.
#[derive(Clone, Copy)]
pub(super) struct Aim {
    /// Of the computed gradient norm.
    pub tolerance: f64,
    /// Whether it must be computed with doubled margins.
    pub doubled: bool,
}

/// Minimises from a starting point, with what earlier questions have told of the same rows.
pub(super) fn minimise(
    objective: &Objective<'_>,
    near: &[f64],
    aim: &Aim,
    memory: &mut Memory,
) -> Result<Solution, NotCertified> {
    let mut found = objective.quickly(near, aim, memory);
    if !found.meets(aim) {
        found = objective.descend(near, aim.tolerance);
    }
    // Written so that neither a NaN nor an infinity is certified.
    if found.meets(aim) && aim.tolerance.is_finite() {
        Ok(Solution {
            point: found.point.into_values(),
            residual: found.residual,
        })
    } else {
        Err(NotCertified {
            tolerance: aim.tolerance,
        })
    }
}

/// A point, with what one pass over the rows tells of it.
pub(super) struct Place {
    pub point: Point,
    pub gradient: Vec<f64>,
    pub residual: f64,
}

impl Place {
    pub(super) fn meets(&self, aim: &Aim) -> bool {
        self.residual <= aim.tolerance && (self.point.is_doubled() || !aim.doubled)
    }
}

impl Objective<'_> {
    /// The quick way, from a rough start if nothing is known yet.
    fn quickly(&self, near: &[f64], aim: &Aim, memory: &mut Memory) -> Place {
        if near.len() > DENSE_COLUMNS {
            memory.count(0);
            return self.by_newton(near, aim);
        }
        let rough = match memory.knows_nothing() {
            true => self.rough_start(near),
            false => None,
        };
        self.search(rough.as_deref().unwrap_or(near), aim, memory)
    }

    /// The quick way, and Newton's method from where it was lost.
    fn search(&self, near: &[f64], aim: &Aim, memory: &mut Memory) -> Place {
        let mut search = Search::new(self, near, *aim, memory);
        loop {
            let place = self.at(search.asks().clone());
            match search.told(place) {
                Next::Asks => {}
                Next::Found(place) => return place,
                Next::Lost(start) => return self.by_newton(&start, aim),
            }
        }
    }

    /// Newton's method, and again from a better start if need be.
    fn by_newton(&self, near: &[f64], aim: &Aim) -> Place {
        let found = self.newton(near, aim);
        if found.meets(aim) {
            return found;
        }
        // Far out a loss is two straight lines and a sharp bend, and Newton's method sees nothing of the bends of other
        // rows. So the bends are widened to the size of the margins there, and narrowed again step by step.
        let rough = Aim {
            tolerance: (1e-9 * self.weight).max(aim.tolerance),
            doubled: false,
        };
        let mut point = near.to_vec();
        for stage in (1..=STAGES).rev() {
            let softened = Objective {
                shards: self.shards.clone(),
                loss: self.loss.softened(stage),
                ..*self
            };
            point = softened.newton(&point, &rough).point.into_values();
        }
        self.newton(&point, aim)
    }

    /// Newton's method from a starting point, to the tolerance or to where it comes to rest.
    fn newton(&self, near: &[f64], aim: &Aim) -> Place {
        let tolerance = aim.tolerance;
        let mut here = self.at(Point::plain(near));
        let (mut best, mut idle) = (here.residual, 0);
        for _ in 0..NEWTON_STEPS {
            if here.residual <= tolerance && !here.meets(aim) {
                here = self.at(here.point.doubled());
                (best, idle) = (here.residual, 0);
            }
            if here.meets(aim) {
                break;
            }
            let direction = if near.len() <= DENSE_COLUMNS {
                self.direction_by_factor(&here)
            } else {
                self.direction_by_products(&here)
            };
            let enough = (0.9 * best).max(tolerance);
            here = match self.step(&here, &direction, enough) {
                Some(there) if idle < PATIENCE && !here.point.is_at_rest(&there.point) => there,
                _ if here.point.is_doubled() => break,
                _ => {
                    idle = 0;
                    self.at(here.point.doubled())
                }
            };
            if here.residual <= 0.9 * best {
                (best, idle) = (here.residual, 0);
            } else {
                idle += 1;
            }
        }
        here
    }

    /// Gradient descent at twice the digits. A step of `1/L` lowers `F` by at least `‖g‖²/4L` as long as the computed gradient
    /// `g` is four times as large as its error, and `‖∇F‖² ≥ 2m(F − min F)`: so after the steps taken here it is below any
    /// tolerance of more than four times that error. It is as slow as `L/m` is large, and hardly ever needed.
    fn descend(&self, near: &[f64], tolerance: f64) -> Place {
        let mut here = self.at(Point::plain(near).doubled());
        let lipschitz = self.lipschitz();
        let ratio = lipschitz / self.modulus;
        let far = 2.0 * libm::log(here.residual / tolerance) + libm::log(4.0 * ratio);
        let steps = (3.2 * ratio * far.max(1.0)).ceil() as u64;
        for _ in 0..steps {
            if here.residual <= tolerance {
                break;
            }
            here = self.at(here.point.moved(-1.0 / lipschitz, &here.gradient));
        }
        here
    }

    /// `L = Σ_i C·c₁ + m`, since rows have norm at most one; with room for its rounding.
    fn lipschitz(&self) -> f64 {
        let shards = self.shards.len() as f64;
        1.01 * (shards * self.weight * self.loss.curvature() + self.modulus)
    }

    /// `∇F(f)`, with doubled margins or plain ones.
    pub(super) fn gradient(&self, f: &[f64], doubled: bool) -> Vec<f64> {
        let point = Point::plain(f);
        let point = if doubled { point.doubled() } else { point };
        self.at(point).gradient
    }

    pub(super) fn at(&self, point: Point) -> Place {
        let rows = self.over_chunks(|_, chunk, weight| {
            kernel::gradient(Path::best(), chunk, &point, self.loss, weight)
        });
        let mut rest = self.linear.to_vec();
        point.add_scaled_to(&mut rest, self.modulus);
        let parts = rows.sum.iter().zip(&rest).zip(&rows.lost);
        let gradient: Vec<f64> = parts.map(|((g, rest), lost)| (g + rest) + lost).collect();
        Place {
            residual: norm(&gradient),
            point,
            gradient,
        }
    }

    /// Every chunk, with the weight `C/B_i` of its rows.
    fn chunks(&self) -> Vec<(&Chunk, f64)> {
        let mut chunks = Vec::new();
        for &shard in &self.shards {
            let weight = self.weight / shard.rows() as f64;
            chunks.extend(shard.chunks().iter().map(|chunk| (chunk, weight)));
        }
        if self.stride == 1 {
            return chunks;
        }
        let weigh = |chunks: &[(&Chunk, f64)]| -> f64 {
            chunks
                .iter()
                .map(|(chunk, weight)| weight * chunk.rows() as f64)
                .sum()
        };
        let all = weigh(&chunks);
        let mut some: Vec<_> = chunks.into_iter().step_by(self.stride).collect();
        let heavier = all / weigh(&some);
        some.iter_mut().for_each(|(_, weight)| *weight *= heavier);
        some
    }

    /// A minimiser for a few of the rows, where there are many: not far from that of all, and found in a fraction of the time.
    fn rough_start(&self, near: &[f64]) -> Option<Vec<f64>> {
        let chunks: usize = self.shards.iter().map(|shard| shard.chunks().len()).sum();
        if chunks < ROUGH_FROM {
            return None;
        }
        let some = Objective {
            shards: self.shards.clone(),
            stride: chunks.min(ROUGH_STRIDE),
            ..*self
        };
        let rows: usize = some.chunks().iter().map(|(chunk, _)| chunk.rows()).sum();
        // More exact than the few rows are like all of them.
        let aim = Aim {
            tolerance: 0.1 * self.weight / (rows as f64).sqrt(),
            doubled: false,
        };
        let mut search = Memory::default();
        Some(some.search(near, &aim, &mut search).point.into_values())
    }

    /// The sum of what the chunks have, in their order.
    fn over_chunks(&self, of: impl Fn(usize, &Chunk, f64) -> Sum + Sync) -> Sum {
        let mut total = Sum::zero(self.linear.len());
        let chunks = self.chunks();
        for (first, some) in chunks.chunks(AT_ONCE).enumerate() {
            let sums = gather(self.hands, some.len(), |k| {
                let (chunk, weight) = some[k];
                of(first * AT_ONCE + k, chunk, weight)
            });
            sums.iter().for_each(|sum| total.add_all(sum));
        }
        total
    }

    /// `(C/B_i) L''(fᵀz_n)`, row by row of each chunk.
    fn curvatures(&self, point: &Point) -> Vec<Vec<f64>> {
        let chunks = self.chunks();
        gather(self.hands, chunks.len(), |k| {
            let (chunk, weight) = chunks[k];
            kernel::curvatures(Path::best(), chunk, point, self.loss, weight)
        })
    }

    /// A good step along the direction, found by bisection; `enough` is a gradient norm worth overshooting for.
    fn step(&self, here: &Place, direction: &[f64], enough: f64) -> Option<Place> {
        let slope = dot(&here.gradient, direction);
        let (mut low, mut high, mut step) = (0.0, 1.0, 1.0);
        for _ in 0..BISECTIONS {
            let there = self.at(here.point.moved(step, direction));
            let end = dot(&there.gradient, direction);
            let falls = end <= 0.0 && (step == 1.0 || end >= 0.9 * slope);
            let shrinks = there.residual <= enough && end <= -0.1 * slope;
            if falls || shrinks {
                return Some(there);
            }
            if end <= 0.0 {
                low = step;
            } else {
                high = step;
            }
            step = (low + high) / 2.0;
        }
        None
    }

    /// `−H⁻¹∇F` by a Cholesky factor of `H = Σ_n curvature_n z_n z_nᵀ + m I`.
    fn direction_by_factor(&self, here: &Place) -> Vec<f64> {
        let d = here.gradient.len();
        let hessian = self.hessian(&here.point);
        // In exact arithmetic m I makes H positive definite. If rounding hides that, a larger multiple still gives a
        // direction of descent: ∇Fᵀ H (H + s I)⁻¹ ∇F > 0.
        let mut direction: Vec<f64> = here.gradient.iter().map(|g| -g).collect();
        let mut shift = self.modulus;
        for _ in 0..SHIFTS {
            if let Some(factor) = Cholesky::of(hessian.clone(), d, shift) {
                factor.solve(&mut direction);
                break;
            }
            shift = (shift * 16.0).max(f64::EPSILON);
        }
        direction
    }

    /// The lower triangle of `Σ_n curvature_n z_n z_nᵀ`.
    pub(super) fn hessian(&self, point: &Point) -> Vec<f64> {
        let d = self.linear.len();
        let chunks = self.chunks();
        let pieces: Vec<&[(&Chunk, f64)]> = chunks.chunks(chunks.len().div_ceil(PIECES)).collect();
        let parts = gather(self.hands, pieces.len(), |k| {
            let mut hessian = vec![0.0; d * d];
            for (chunk, weight) in pieces[k] {
                let path = Path::best();
                let curvatures = kernel::curvatures(path, chunk, point, self.loss, *weight);
                hessian::add(path, chunk, &curvatures, &mut hessian);
            }
            hessian
        });
        let mut parts = parts.into_iter();
        let mut hessian = parts.next().unwrap_or_default();
        for part in parts {
            hessian
                .iter_mut()
                .zip(&part)
                .for_each(|(h, part)| *h += part);
        }
        hessian
    }

    /// `∇²F(f)`, all entries.
    pub(super) fn hessian_at(&self, f: &[f64]) -> Vec<f64> {
        let d = f.len();
        let mut hessian = self.hessian(&Point::plain(f));
        for i in 0..d {
            hessian[i * d + i] += self.modulus;
            for j in 0..i {
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
        hessian
    }

    /// `p` with `‖H p + ∇F‖ ≤ κ‖∇F‖`, `κ < 1`, by conjugate gradients with the diagonal of `H` as preconditioner.
    fn direction_by_products(&self, here: &Place) -> Vec<f64> {
        let d = here.gradient.len();
        let curvatures = self.curvatures(&here.point);
        let mut diagonal = vec![self.modulus; d];
        for ((chunk, _), curvatures) in self.chunks().into_iter().zip(&curvatures) {
            chunk.each_row(|n, columns, values, _| {
                for (&column, &value) in columns.iter().zip(values) {
                    diagonal[column as usize] += curvatures[n] * value * value;
                }
            });
        }
        // Superlinear convergence: the nearer the minimum, the more exact the direction.
        let enough = here.residual.sqrt().min(0.1) * here.residual;
        let mut direction = vec![0.0; d];
        let mut rest: Vec<f64> = here.gradient.iter().map(|g| -g).collect();
        let mut scaled: Vec<f64> = rest.iter().zip(&diagonal).map(|(r, h)| r / h).collect();
        let mut search = scaled.clone();
        let mut energy = dot(&rest, &scaled);
        for _ in 0..10 * d {
            if norm(&rest) <= enough {
                break;
            }
            let product = self.hessian_times(&curvatures, &search);
            let step = energy / dot(&search, &product);
            for k in 0..d {
                direction[k] += step * search[k];
                rest[k] -= step * product[k];
                scaled[k] = rest[k] / diagonal[k];
            }
            let next_energy = dot(&rest, &scaled);
            let ratio = next_energy / energy;
            energy = next_energy;
            for (s, z) in search.iter_mut().zip(&scaled) {
                *s = z + ratio * *s;
            }
        }
        direction
    }

    fn hessian_times(&self, curvatures: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
        let along = Point::plain(vector);
        let total = self.over_chunks(|k, chunk, _| {
            kernel::product(Path::best(), chunk, &along, &curvatures[k])
        });
        let parts = total.sum.iter().zip(&total.lost).zip(vector);
        parts
            .map(|((sum, lost), v)| (sum + lost) + self.modulus * v)
            .collect()
    }
}

/// `fᵀz_n` of every row.
pub(super) fn margins(shard: &Shard, at: &[f64]) -> Vec<f64> {
    let at = Point::plain(at);
    let chunks = shard.chunks().iter();
    chunks
        .flat_map(|chunk| kernel::margins(Path::best(), chunk, &at))
        .collect()
}

/// `(1/B) Σ_n L(fᵀz_n)`, and the share of rows with `fᵀz_n > 0`, those with `fᵀz_n = 0` counted half.
pub(super) fn mean_loss_and_accuracy(
    shard: &Shard,
    loss: Loss,
    at: &[f64],
    hands: &dyn Hands,
) -> (f64, f64) {
    let at = Point::plain(at);
    let chunks = shard.chunks();
    let of = |k: usize| kernel::losses(Path::best(), &chunks[k], &at, loss);
    let (mut sum, mut right) = (0.0, 0.0);
    for (more, also) in gather(hands, chunks.len(), of) {
        sum += more;
        right += also;
    }
    let rows = shard.rows() as f64;
    (sum / rows, right / rows)
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(super) fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::hands::OneHand;
    use crate::private::shard::{NormPolicy, ShardBuilder};
    use proptest::prelude::*;

    fn shard(rows: usize, columns: usize, filled: usize, seed: usize) -> Shard {
        let mut builder = ShardBuilder::new(columns, NormPolicy::Unit);
        let noise = |n: usize| ((n + 31 * seed) as f64 * 78.233).sin();
        for r in 0..rows {
            let stride = columns / filled;
            let entries: Vec<_> = (0..filled)
                .map(|k| {
                    let column = k * stride + (r * 7 + k * 3 + seed) % stride;
                    (column as u32, noise(r * filled + k) + 0.2)
                })
                .collect();
            builder.push(&entries, noise(r * 13 + 5) > 0.0).unwrap();
        }
        builder.finish().unwrap()
    }

    fn objective<'a>(shard: &'a Shard, loss: Loss, linear: &'a [f64]) -> Objective<'a> {
        Objective {
            shards: vec![shard],
            loss,
            weight: 20.0,
            modulus: 0.01,
            linear,
            hands: &OneHand,
            stride: 1,
        }
    }

    fn value(objective: &Objective<'_>, f: &[f64]) -> f64 {
        let (loss, _) = mean_loss_and_accuracy(objective.shards[0], objective.loss, f, &OneHand);
        objective.weight * loss + dot(objective.linear, f) + objective.modulus / 2.0 * dot(f, f)
    }

    fn to(tolerance: f64) -> Aim {
        Aim {
            tolerance,
            doubled: false,
        }
    }

    fn minimised(
        objective: &Objective<'_>,
        near: &[f64],
        aim: &Aim,
    ) -> Result<Solution, NotCertified> {
        minimise(objective, near, aim, &mut Memory::default())
    }

    const LOSSES: [Loss; 2] = [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }];

    #[test]
    fn the_gradient_agrees_with_finite_differences_of_the_value() {
        let shard = shard(40, 12, 4, 1);
        let linear: Vec<f64> = (0..12).map(|k| (k as f64).sin()).collect();
        let f: Vec<f64> = (0..12).map(|k| 2.0 * (k as f64 * 1.7).cos()).collect();
        for loss in LOSSES {
            let objective = objective(&shard, loss, &linear);
            let gradient = objective.gradient(&f, false);
            for k in 0..12 {
                let step = 1e-5;
                let (mut right, mut left) = (f.clone(), f.clone());
                right[k] += step;
                left[k] -= step;
                let difference =
                    (value(&objective, &right) - value(&objective, &left)) / (2.0 * step);
                // Truncation ~ 1e-9, rounding ~ 20 · 1e-16 / 1e-5.
                assert!((gradient[k] - difference).abs() < 1e-7, "{loss:?}");
            }
        }
    }

    #[test]
    fn hessian_products_agree_with_finite_differences_of_the_gradient() {
        let shard = shard(40, 12, 4, 2);
        let linear = vec![0.3; 12];
        let f: Vec<f64> = (0..12).map(|k| (k as f64 * 1.7).cos()).collect();
        let along: Vec<f64> = (0..12).map(|k| (k as f64 * 0.9).sin()).collect();
        for loss in LOSSES {
            let objective = objective(&shard, loss, &linear);
            let product = objective.hessian_times(&objective.curvatures(&Point::plain(&f)), &along);
            let step = 1e-6;
            let moved = |s: f64| -> Vec<f64> {
                objective.gradient(
                    &f.iter()
                        .zip(&along)
                        .map(|(f, p)| f + s * p)
                        .collect::<Vec<_>>(),
                    false,
                )
            };
            for ((p, r), l) in product.iter().zip(moved(step)).zip(moved(-step)) {
                assert!((p - (r - l) / (2.0 * step)).abs() < 1e-5, "{loss:?}");
            }
        }
    }

    #[test]
    fn both_directions_are_newtons() {
        let shard = shard(60, 30, 5, 3);
        let linear = vec![0.1; 30];
        for loss in LOSSES {
            let objective = objective(&shard, loss, &linear);
            let here = objective.at(Point::plain(&[0.2; 30]));
            let by_factor = objective.direction_by_factor(&here);
            let curvatures = objective.curvatures(&here.point);
            let product = objective.hessian_times(&curvatures, &by_factor);
            for (p, g) in product.iter().zip(&here.gradient) {
                assert!((p + g).abs() < 1e-10);
            }
            let by_products = objective.direction_by_products(&here);
            let rest: Vec<f64> = objective
                .hessian_times(&curvatures, &by_products)
                .iter()
                .zip(&here.gradient)
                .map(|(p, g)| p + g)
                .collect();
            assert!(norm(&rest) <= 0.1 * here.residual * (1.0 + 1e-9));
        }
    }

    #[test]
    fn wide_problems_are_certified_by_conjugate_gradients() {
        let columns = DENSE_COLUMNS + 1000;
        let shard = shard(500, columns, 13, 4);
        let linear = vec![0.001; columns];
        let objective = objective(&shard, Loss::Logistic, &linear);
        let solution = minimised(&objective, &vec![0.0; columns], &to(1e-10)).unwrap();
        assert!(norm(&objective.gradient(&solution.point, false)) <= 1e-10);
    }

    #[test]
    fn descent_alone_gets_to_the_public_floor_in_the_steps_it_is_given() {
        for (seed, loss) in [(8, Loss::Logistic), (9, Loss::SmoothHinge { width: 0.1 })] {
            let shard = shard(30, 12, 4, seed);
            let mut linear = vec![0.1; 12];
            linear[3] = 1e4;
            let objective = Objective {
                modulus: 0.5,
                ..objective(&shard, loss, &linear)
            };
            let slopes = objective.weight * (1.0 + loss.curvature());
            let floor = f64::EPSILON
                * (96.0 * slopes + 2.25 * 256.0 * objective.weight + 128.0 * norm(&linear));
            let place = objective.descend(&[0.0; 12], floor);
            assert!(place.residual <= floor, "{}", place.residual);
            let newton = minimised(&objective, &[0.0; 12], &to(floor)).unwrap();
            let apart = place.point.into_values().into_iter().zip(newton.point);
            let apart: Vec<f64> = apart.map(|(a, b)| a - b).collect();
            assert!(norm(&apart) <= 3.0 * floor / objective.modulus);
        }
    }

    #[test]
    fn a_doubled_aim_is_met_by_a_doubled_point() {
        let shard = shard(40, 12, 4, 5);
        let linear = vec![0.1; 12];
        let objective = objective(&shard, Loss::Logistic, &linear);
        for doubled in [false, true] {
            let aim = Aim {
                tolerance: 1e-10,
                doubled,
            };
            let place = objective.by_newton(&[0.0; 12], &aim);
            assert!(place.meets(&aim) && place.point.is_doubled() == doubled);
        }
    }

    #[test]
    fn a_rough_start_spares_passes_and_changes_nothing_else() {
        // Labels that the rows nearly tell, so that the minimiser is far out and takes many steps from zero.
        let wave = |n: usize| (n as f64 * 78.233).sin();
        let shards: Vec<Shard> = (0..16)
            .map(|part| {
                let mut builder = ShardBuilder::new(12, NormPolicy::Unit);
                for n in 300 * part..300 * (part + 1) {
                    let entries: Vec<_> = (0..12).map(|k| (k, wave(12 * n + k as usize))).collect();
                    let score = entries[0].1 + entries[5].1 + 0.1 * wave(7 * n + 1);
                    builder.push(&entries, score > 0.0).unwrap();
                }
                builder.finish().unwrap()
            })
            .collect();
        let linear = vec![0.1; 12];
        let objective = Objective {
            shards: shards.iter().collect(),
            weight: 1e4,
            ..objective(&shards[0], Loss::Logistic, &linear)
        };
        let aim = to(1e-8);
        let (mut from_rough, mut from_zero) = (Memory::default(), Memory::default());
        let rough = minimise(&objective, &[0.0; 12], &aim, &mut from_rough).unwrap();
        let plain = objective.search(&[0.0; 12], &aim, &mut from_zero);
        let (rough_passes, passes) = (from_rough.passes(), from_zero.passes());
        assert!(rough_passes < passes, "{rough_passes} {passes}");
        let apart = rough
            .point
            .iter()
            .zip(plain.point.high())
            .map(|(a, b)| a - b);
        assert!(norm(&apart.collect::<Vec<_>>()) <= 2e-8 / objective.modulus);
        // Two of sixteen weigh as much as all.
        let some = Objective {
            shards: shards.iter().collect(),
            stride: 8,
            ..objective
        };
        let weigh = |objective: &Objective<'_>| {
            let chunks = objective.chunks().into_iter();
            chunks
                .map(|(chunk, weight)| weight * chunk.rows() as f64)
                .sum::<f64>()
        };
        assert_eq!(some.chunks().len(), 2);
        assert!((weigh(&some) - weigh(&objective)).abs() < 1e-9);
    }

    /// From the last to the first, and some not at all.
    struct Contrary;

    impl Hands for Contrary {
        fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
            (0..count).rev().filter(|k| k % 5 != 3).for_each(work);
        }
    }

    #[test]
    fn any_hands_give_the_same_bits() {
        // More chunks than are added up at once, and than a Hessian has pieces.
        let shards: Vec<Shard> = (0..40).map(|seed| shard(50, 12, 4, seed)).collect();
        let many = shard(40_000, 12, 4, 77);
        let linear = vec![0.1; 12];
        let f: Vec<f64> = (0..12).map(|k| (k as f64).sin()).collect();
        let bits = |hands: &dyn Hands| {
            let objective = Objective {
                shards: shards.iter().chain([&many]).collect(),
                hands,
                ..objective(&many, Loss::Logistic, &linear)
            };
            let point = Point::plain(&f);
            let product = objective.hessian_times(&objective.curvatures(&point), &f);
            let (loss, accuracy) = mean_loss_and_accuracy(&many, Loss::Logistic, &f, hands);
            let all = [
                objective.gradient(&f, false),
                objective.hessian(&point),
                product,
                vec![loss, accuracy],
            ];
            all.concat()
                .into_iter()
                .map(f64::to_bits)
                .collect::<Vec<_>>()
        };
        assert!(bits(&OneHand) == bits(&Contrary));
    }

    #[test]
    fn an_impossible_tolerance_is_refused() {
        let shard = shard(60, 40, 4, 5);
        let linear: Vec<f64> = (0..40).map(|k| (k as f64).sin()).collect();
        let objective = Objective {
            modulus: 1.0,
            ..objective(&shard, Loss::Logistic, &linear)
        };
        let failed = minimised(&objective, &[0.0; 40], &to(1e-30));
        assert_eq!(failed.err(), Some(NotCertified { tolerance: 1e-30 }));
    }

    #[test]
    fn neither_nan_nor_infinity_is_certified() {
        let shard = shard(5, 12, 4, 7);
        for (value, tolerance) in [
            (f64::NAN, 1e-10),
            (f64::NAN, f64::INFINITY),
            (1e200, f64::INFINITY),
        ] {
            let linear = vec![value; 12];
            let objective = objective(&shard, Loss::Logistic, &linear);
            assert!(minimised(&objective, &[0.0; 12], &to(tolerance)).is_err());
        }
    }

    #[test]
    fn a_sharp_hinge_with_a_weak_ridge_is_certified() {
        // Here a full Newton step overshoots by orders of magnitude, and the gradient must grow before it shrinks.
        let shard = shard(300, 12, 4, 6);
        let linear = vec![0.1; 12];
        for width in [0.5, 0.01, 0.001] {
            let objective = Objective {
                weight: 1e4,
                modulus: 1e-4,
                ..objective(&shard, Loss::SmoothHinge { width }, &linear)
            };
            let solution = minimised(&objective, &[0.0; 12], &to(1e-8)).unwrap();
            assert!(norm(&objective.gradient(&solution.point, false)) <= 1e-8);
        }
    }

    #[test]
    fn an_intercept_over_many_rows_does_not_spoil_the_gradient() {
        // Equal addends, whose sum is known; added up plainly they drift from it by more than what is allowed here.
        let count = 45_000;
        let mut builder = ShardBuilder::new(1, NormPolicy::Clip);
        for _ in 0..count {
            builder.push(&[(0, 0.7)], true).unwrap();
        }
        let shard = builder.finish().unwrap();
        let objective = Objective {
            weight: 1750.0,
            ..objective(&shard, Loss::Logistic, &[0.0])
        };
        let (exact, addend) = (-0.5 * 0.7 * 1750.0, -0.5 * 0.7 * 1750.0 / f64::from(count));
        let plain: f64 = (0..count).map(|_| addend).sum();
        assert!((plain - exact).abs() > 1e-10, "a plain sum would do");
        // What a block of equal addends can lose, and no more for all the blocks together.
        let ours = objective.gradient(&[0.0], false)[0];
        assert!(
            (ours - exact).abs() < 128.0 * f64::EPSILON * exact.abs(),
            "{ours} {exact}"
        );
    }

    proptest! {
        #[test]
        fn whatever_rows_and_question_there_are_the_public_floor_is_reached(
            seed in 0usize..1000,
            rows in 1usize..60,
            weight in 0.01f64..1e5,
            modulus in -3f64..1.0,
            size in -6f64..6.0,
            place in 0usize..20,
            width in 0.01f64..2.0,
            hinge in any::<bool>(),
        ) {
            // A hostile neighbour's question: one huge coefficient, in a column that few rows or none have. With a penalty
            // or ridge below a thousandth, one in a hundred thousand of these is not certified.
            let modulus = 10f64.powf(modulus);
            let shard = shard(rows, 20, 5, seed);
            let mut linear = vec![0.1; 20];
            let loss = if hinge { Loss::SmoothHinge { width } } else { Loss::Logistic };
            let slopes = weight * (1.0 + loss.curvature());
            linear[place] = size.signum() * 10f64.powf(size.abs()) * (1.0 + slopes);
            let objective = Objective {
                shards: vec![&shard],
                loss,
                weight,
                modulus,
                linear: &linear,
                hands: &OneHand,
                stride: 1,
            };
            let floor = f64::EPSILON * (96.0 * slopes + 2.25 * 256.0 * weight + 128.0 * norm(&linear));
            // Without the descent that would find it in any case.
            for doubled in [false, true] {
                let aim = Aim { doubled, ..to(floor.max(1e-10)) };
                prop_assert!(objective.by_newton(&[0.0; 20], &aim).meets(&aim));
            }
        }

        #[test]
        fn the_residual_is_true_and_within_the_tolerance(
            seed in 0usize..1000,
            rows in 1usize..80,
            weight in 0.01f64..1e4,
            modulus in 1e-4f64..10.0,
            size in 0.0f64..100.0,
            hinge in any::<bool>(),
        ) {
            let shard = shard(rows, 20, 5, seed);
            let linear: Vec<f64> = (0..20).map(|k| size * ((k + seed) as f64).sin()).collect();
            let objective = Objective {
                shards: vec![&shard],
                loss: LOSSES[usize::from(hinge)],
                weight,
                modulus,
                linear: &linear,
                hands: &OneHand,
                stride: 1,
            };
            let near: Vec<f64> = (0..20).map(|k| size * ((k * seed) as f64).cos()).collect();
            let tolerance = 1e-9;
            let solution = minimised(&objective, &near, &to(tolerance)).unwrap();
            prop_assert!(solution.residual <= tolerance);
            // Computed anew, at the nearest doubles to a point that may have had more digits: far out the last of them is
            // worth more than the tolerance.
            let again = norm(&objective.gradient(&solution.point, true));
            let digit = f64::EPSILON * norm(&solution.point) * objective.lipschitz();
            prop_assert!((again - solution.residual).abs() <= 1e-9 + digit, "{} {}", again, solution.residual);
        }
    }
}
