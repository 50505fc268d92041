//! Released values: vectors of integers on a public grid.

use std::sync::Arc;

/// The distance of neighbouring grid points, `Δ = 2⁻⁴⁰`.
pub const SPACING: f64 = 1.0 / (1u64 << 40) as f64;

/// The largest integer on the grid: values reach as far as `2²²`, four million.
pub const FARTHEST: i64 = 1 << 62;

/// A vector that the parties may see: an answer that was paid for, or a function of such answers.
///
/// A curator builds one from a paid answer; a node builds one from its start, from other releases, and from messages.
#[derive(Clone, Debug)]
pub struct Release {
    values: Arc<[f64]>,
    /// Grid units, kept where one is so large that its double differs from it.
    far: Option<Arc<[i64]>>,
}

impl Release {
    /// Creates a release from multiples of [`SPACING`]; `None` if one is beyond [`FARTHEST`].
    pub fn from_units(units: Vec<i64>) -> Option<Self> {
        let within = |unit: &i64| (-FARTHEST..=FARTHEST).contains(unit);
        units.iter().all(within).then(|| Self {
            // Exact up to 2⁵³ units, which is 8192; from there on the nearest double.
            values: units.iter().map(|&unit| unit as f64 * SPACING).collect(),
            far: units
                .iter()
                .any(|&unit| unit as f64 as i64 != unit)
                .then(|| units.into()),
        })
    }

    /// Creates a release of the nearest points of the grid; `None` if a value is not finite or beyond the grid.
    pub fn rounded(values: &[f64]) -> Option<Self> {
        // Adding zero makes a negative zero positive.
        let unit = |value: &f64| (value / SPACING).round() + 0.0;
        // Written so that a NaN is rejected.
        let within = |value: &f64| unit(value).abs() <= FARTHEST as f64;
        // A unit that is a double has this double for its value: there is nothing to keep beside it.
        values.iter().all(within).then(|| Self {
            values: values.iter().map(|value| unit(value) * SPACING).collect(),
            far: None,
        })
    }

    /// Creates a vector that nobody releases: for the analysis of algorithms, in which values are off the grid or NaN.
    pub(crate) fn imagined(values: Vec<f64>) -> Self {
        Self {
            values: values.into(),
            far: None,
        }
    }

    /// Returns the coordinates.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the coordinates in units of [`SPACING`].
    pub fn units(&self) -> Vec<i64> {
        match &self.far {
            Some(far) => far.to_vec(),
            // Division by a power of two is exact.
            None => self.values.iter().map(|v| (v / SPACING) as i64).collect(),
        }
    }
}

/// Equality to the bit.
impl PartialEq for Release {
    fn eq(&self, other: &Self) -> bool {
        let same_bits = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
        self.far == other.far
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&*other.values).all(same_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_the_nearest_grid_point() {
        let release = Release::rounded(&[0.3, -0.3, 1.0]).unwrap();
        let third = (0.3 / SPACING).round();
        assert_eq!(release.units(), [third as i64, -third as i64, 1 << 40]);
        assert_eq!(release.values(), [third * SPACING, -third * SPACING, 1.0]);
        // Grid points are rounded to themselves.
        assert_eq!(Release::rounded(release.values()), Some(release));
    }

    #[test]
    fn values_beyond_the_grid_are_rejected() {
        let last = FARTHEST as f64 * SPACING;
        assert_eq!(Release::rounded(&[last]).unwrap().values(), [last]);
        for beyond in [last.next_up(), -last.next_up(), f64::INFINITY, f64::NAN] {
            assert_eq!(Release::rounded(&[beyond]), None);
        }
        assert_eq!(Release::from_units(vec![FARTHEST + 1]), None);
        assert_eq!(Release::from_units(vec![i64::MIN]), None);
    }

    #[test]
    fn grid_points_beyond_double_precision_stay_distinct() {
        // From 2⁵³ on there are more points than doubles.
        let far = (1 << 53) + 1;
        for units in [vec![3, -5, 0], vec![far, -7, FARTHEST], vec![far - 1]] {
            let release = Release::from_units(units.clone()).unwrap();
            assert_eq!(release.units(), units);
        }
        let of = |unit| Release::from_units(vec![unit]);
        assert_eq!(of(far).unwrap().values(), of(far - 1).unwrap().values());
        assert_ne!(of(far), of(far - 1));
    }

    #[test]
    fn rounding_gives_the_bits_of_the_units() {
        let far = FARTHEST as f64 * SPACING;
        for value in [0.0, -0.0, 1e-13, -1e-13, 0.3, 8192.3, -1e6 / 3.0, far, -far] {
            let release = Release::rounded(&[value]).unwrap();
            let unit = (value / SPACING).round() as i64;
            assert_eq!(Some(release), Release::from_units(vec![unit]), "{value}");
        }
    }

    #[test]
    fn the_grid_has_one_zero() {
        assert_eq!(Release::rounded(&[0.0]), Release::rounded(&[-0.0]));
    }
}
