//! The certified minimiser of `F(f) = Σ_i (C/B_i) Σ_n L(fᵀz_n) + ⟨b, f⟩ + (m/2)‖f‖²`, with `z = y·x`.
//!
//! A curator has one shard `i` and `m = ρ/N + a`; the centralised optimum of a simulation has all of them and `m = ρ`.
//!
//! A quick search comes first (`search`). Where it is lost, Newton's method: along a direction the slope of a convex function only grows, so slopes alone tell a good step: one at
//! whose end `F` still falls, though less than at its start, or one that has overshot little and shrunk the least `‖∇F‖` so
//! far by a tenth. No difference of nearly equal values is ever taken. Steps of the first kind lower `F` by a share of what
//! there is to gain; steps of the second kind can raise it, but only as often as a gradient can shrink so. So it converges
//! from anywhere. Up to [`DENSE_COLUMNS`] columns the direction comes from a Cholesky factor, above by preconditioned
//! conjugate gradients. Where it comes to rest before the tolerance is met, the spacing of doubles is in the way, and it goes
//! on with points of twice the digits. If all that should fail, plain descent follows, which cannot.

#[cfg(test)]
mod tests;

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
