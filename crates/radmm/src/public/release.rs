//! What an algorithm may see and say: released values in, questions and recycled values out.

use std::sync::Arc;

use serde::Serialize;

/// How the coordinates of releases are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// As integers on a public grid. The guarantee then covers all rounding.
    #[default]
    Grid,
    /// As doubles, whose last digits may tell of rows what no guarantee covers.
    Float,
}

/// The distance of neighbouring grid points, `Δ = 2⁻⁴⁰`.
pub const SPACING: f64 = 1.0 / (1u64 << 40) as f64;

/// The largest integer on the grid: values reach as far as `2²²`, four million.
pub const FARTHEST: i64 = 1 << 62;

/// A vector that the parties may see: an answer that was paid for, or a function of such answers.
///
/// Built by a curator, or by a node from its start, from other releases, and from what it hears.
#[derive(Clone, Debug)]
pub struct Release {
    values: Arc<[f64]>,
    /// On the grid, if one is so far out that its double is not itself.
    far: Option<Arc<[i64]>>,
    precision: Precision,
}

impl Release {
    /// Multiples of [`SPACING`], as they come from the wire; `None` if one is beyond [`FARTHEST`].
    pub fn on_grid(units: Vec<i64>) -> Option<Self> {
        let within = |unit: &i64| (-FARTHEST..=FARTHEST).contains(unit);
        units.iter().all(within).then(|| Self {
            // Exact up to 2⁵³ units, which is 8192; from there on the nearest double.
            values: units.iter().map(|&unit| unit as f64 * SPACING).collect(),
            far: units
                .iter()
                .any(|&unit| unit as f64 as i64 != unit)
                .then(|| units.into()),
            precision: Precision::Grid,
        })
    }

    /// Doubles as they are; `None` if one is not finite.
    pub fn float(values: Vec<f64>) -> Option<Self> {
        let finite = values.iter().all(|value| value.is_finite());
        finite.then(|| Self::imagined(values))
    }

    /// Doubles that nobody releases: for the analysis of algorithms, in which NaN is an answer.
    pub(crate) fn imagined(values: Vec<f64>) -> Self {
        Self {
            values: values.into(),
            far: None,
            precision: Precision::Float,
        }
    }

    /// Values as they may be released: the nearest points of the grid, or themselves; `None` if one is not finite or beyond the
    /// grid.
    pub fn of(values: Vec<f64>, precision: Precision) -> Option<Self> {
        match precision {
            Precision::Float => Self::float(values),
            Precision::Grid => {
                let unit = |value: &f64| {
                    let unit = (value / SPACING).round();
                    // Written so that a NaN is none.
                    (unit.abs() <= FARTHEST as f64).then_some(unit as i64)
                };
                Self::on_grid(values.iter().map(unit).collect::<Option<_>>()?)
            }
        }
    }

    /// The coordinates.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The coordinates in units of [`SPACING`], if this is on the grid.
    pub fn units(&self) -> Option<Vec<i64>> {
        match (self.precision, &self.far) {
            (Precision::Float, _) => None,
            (Precision::Grid, Some(far)) => Some(far.to_vec()),
            // Powers of two are exact either way.
            (Precision::Grid, None) => {
                let units = self.values.iter().map(|value| (value / SPACING) as i64);
                Some(units.collect())
            }
        }
    }

    /// How the coordinates are written.
    pub fn precision(&self) -> Precision {
        self.precision
    }
}

/// The same to the bit: of doubles, `0.0` and `-0.0` are two.
impl PartialEq for Release {
    fn eq(&self, other: &Self) -> bool {
        let same_bits = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
        self.precision == other.precision
            && self.far == other.far
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&*other.values).all(same_bits)
    }
}

/// A question to the rows of one party. Its coefficients are public: functions of released values.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// `argmin_f O(f) + ⟨b, f⟩ + (a/2)‖f‖²`.
    Minimise {
        /// `a ≥ 0`.
        quadratic: f64,
        /// `b`.
        linear: Vec<f64>,
        /// Where to look first, unless earlier questions have shown a better place. It is public too.
        near: Vec<f64>,
    },
    /// `∇O(f)`.
    Gradient {
        /// `f`.
        at: Vec<f64>,
    },
}

/// Everything a node knows at the end of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// `t`: `own` and `heard` are of this iteration.
    pub iteration: u32,
    /// `f_i(t)`.
    pub own: &'a [f64],
    /// `f_j(t)` of all neighbours, in ascending order of their numbers.
    pub heard: &'a [Release],
}

impl View<'_> {
    /// `V_i`, the number of neighbours.
    pub fn degree(&self) -> f64 {
        self.heard.len() as f64
    }

    /// `Σ_j (f_i + f_j)`.
    pub fn sum_with_neighbours(&self) -> Vec<f64> {
        self.fold(|sum, own, theirs| sum + (own + theirs))
    }

    /// `Σ_j (f_i − f_j)`.
    pub fn difference_to_neighbours(&self) -> Vec<f64> {
        self.fold(|sum, own, theirs| sum + (own - theirs))
    }

    /// `w_ii f_i + Σ_j w_ij f_j` for the neighbours' weights `w_ij` and `w_ii = 1 − Σ_j w_ij`.
    pub fn mix(&self, weights: &[f64]) -> Vec<f64> {
        let own_weight = 1.0 - weights.iter().sum::<f64>();
        let mut mixed: Vec<f64> = self.own.iter().map(|own| own_weight * own).collect();
        for (release, weight) in self.heard.iter().zip(weights) {
            for (mixed, theirs) in mixed.iter_mut().zip(release.values()) {
                *mixed += weight * theirs;
            }
        }
        mixed
    }

    /// Folds over the neighbours in their order, so that the same messages give the same bits.
    fn fold(&self, step: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.own.len()];
        for release in self.heard {
            for ((sum, own), theirs) in sums.iter_mut().zip(self.own).zip(release.values()) {
                *sum = step(*sum, *own, *theirs);
            }
        }
        sums
    }
}

/// What an algorithm does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the rows. This costs privacy.
    Ask(Query),
    /// Go on from what was released already. This is free.
    Recycle(Vec<f64>),
}

/// A node's part of a distributed algorithm: a function of released values. There are no rows in its reach.
///
/// At the end of every iteration a node calls [`hear`](Self::hear), then for the next iteration
/// [`next`](Self::next), and, if that asked, [`answered`](Self::answered).
pub trait Algorithm: Send {
    /// Takes in the values of iteration `view.iteration` (the dual update, where there are duals).
    fn hear(&mut self, _view: &View<'_>) {}

    /// What to do for iteration `view.iteration + 1`.
    fn next(&mut self, view: &View<'_>) -> Step;

    /// Turns the answer to the question just asked into the iterate `f_i(t + 1)`; often it is that iterate.
    fn answered(&mut self, _view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        answer.to_vec()
    }

    /// `λ_i`, where there are duals.
    fn dual(&self) -> Option<&[f64]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_to_the_nearest_point_of_the_grid() {
        let release = Release::of(vec![0.3, -0.3, 1.0], Precision::Grid).unwrap();
        let third = (0.3 / SPACING).round();
        assert_eq!(
            release.units(),
            Some(vec![third as i64, -third as i64, 1 << 40])
        );
        assert_eq!(release.values(), [third * SPACING, -third * SPACING, 1.0]);
        // Once there they stay.
        let again = Release::of(release.values().to_vec(), Precision::Grid);
        assert_eq!(again, Some(release));
    }

    #[test]
    fn the_grid_ends() {
        let last = FARTHEST as f64 * SPACING;
        let of = |value| Release::of(vec![value], Precision::Grid);
        assert_eq!(of(last).unwrap().values(), [last]);
        for beyond in [last.next_up(), -last.next_up(), f64::INFINITY, f64::NAN] {
            assert_eq!(of(beyond), None);
        }
        assert_eq!(Release::on_grid(vec![FARTHEST + 1]), None);
        assert_eq!(Release::on_grid(vec![i64::MIN]), None);
        assert_eq!(Release::float(vec![f64::NAN]), None);
    }

    #[test]
    fn every_point_of_the_grid_is_itself_however_far_out() {
        // From 2⁵³ on there are more points than doubles.
        let far = (1 << 53) + 1;
        for units in [vec![3, -5, 0], vec![far, -7, FARTHEST], vec![far - 1]] {
            let release = Release::on_grid(units.clone()).unwrap();
            assert_eq!(release.units(), Some(units));
        }
        let of = |unit| Release::on_grid(vec![unit]);
        assert_eq!(of(far).unwrap().values(), of(far - 1).unwrap().values());
        assert_ne!(of(far), of(far - 1));
        assert_eq!(Release::float(vec![1.0]).unwrap().units(), None);
    }

    #[test]
    fn on_the_grid_there_is_one_zero_and_among_doubles_two() {
        let of = |value, precision| Release::of(vec![value], precision);
        assert_eq!(of(0.0, Precision::Grid), of(-0.0, Precision::Grid));
        assert_ne!(of(0.0, Precision::Float), of(-0.0, Precision::Float));
        assert_ne!(of(1.0, Precision::Grid), of(1.0, Precision::Float));
    }
}
