//! The spectral radius of a linear map that is given only by its application to vectors.
//!
//! Arnoldi's method gives a small matrix whose outer eigenvalues are close to the map's. Where many eigenvalues cluster
//! near the largest one, as with convergence rates near one, it is applied to a power of the map, which separates them.
//! The radius of the small matrix comes from Gelfand's formula, `lim ‖Aᵏ‖^(1/k)` with `k` doubled each time, which
//! handles complex pairs and multiple eigenvalues alike.

/// The largest dimension of a Krylov space.
const MAX_BASIS: usize = 60;
/// The number of stages. The power of the map is one at first and four times as large at each further stage.
const MAX_STAGES: u32 = 5;
/// The relative difference of logarithms at which two stages agree.
const AGREEMENT: f64 = 1e-4;

/// An estimate of a spectral radius.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Radius {
    pub value: f64,
    /// The relative difference of the logarithms of the last two estimates.
    pub uncertainty: f64,
}

/// Returns the spectral radius of `apply` on the Krylov spaces of two starts, which should be generic vectors.
pub(crate) fn radius(starts: [&[f64]; 2], mut apply: impl FnMut(&mut [f64])) -> Radius {
    let mut found = Radius {
        value: 1.0,
        uncertainty: f64::INFINITY,
    };
    for stage in 0..MAX_STAGES {
        let power = 4i32.pow(stage);
        // In units of the last estimate, so that high powers neither overflow nor vanish.
        let unit = found.value;
        let mut map = |vector: &mut [f64]| {
            for _ in 0..power {
                apply(vector);
                vector.iter_mut().for_each(|x| *x /= unit);
            }
        };
        let estimates = starts.map(|start| gelfand(arnoldi(start, &mut map)));
        // `max` would ignore a NaN.
        let largest = match estimates.iter().any(|estimate| estimate.is_nan()) {
            true => f64::NAN,
            false => estimates[0].max(estimates[1]),
        };
        let value = unit * libm::pow(largest, 1.0 / f64::from(power));
        if !(value > 0.0 && value.is_finite()) {
            return Radius {
                value,
                uncertainty: 0.0,
            };
        }
        let (last, now) = (libm::log(unit), libm::log(value));
        let starts_difference =
            libm::log(estimates[0].min(estimates[1]) / largest) / f64::from(power);
        let difference = (now - last).abs().max(starts_difference.abs());
        found = Radius {
            value,
            uncertainty: if now == 0.0 {
                difference
            } else {
                difference / now.abs()
            },
        };
        if stage > 0 && found.uncertainty <= AGREEMENT {
            break;
        }
    }
    found
}

/// Returns the matrix of the map on the Krylov space of a start, in an orthonormal basis, row by row.
fn arnoldi(start: &[f64], map: &mut dyn FnMut(&mut [f64])) -> Vec<Vec<f64>> {
    let max_columns = MAX_BASIS.min(start.len());
    let mut basis = vec![scaled(start, 1.0 / norm(start))];
    let mut columns: Vec<Vec<f64>> = Vec::new();
    while columns.len() < max_columns {
        let mut next = basis[columns.len()].clone();
        map(&mut next);
        let size = norm(&next);
        let mut column = vec![0.0; basis.len()];
        // Orthogonalising twice makes the vectors orthogonal up to rounding.
        for _ in 0..2 {
            for (vector, entry) in basis.iter().zip(&mut column) {
                let along = dot(vector, &next);
                *entry += along;
                next.iter_mut()
                    .zip(vector)
                    .for_each(|(x, v)| *x -= along * v);
            }
        }
        columns.push(column);
        let rest = norm(&next);
        // Only rounding is left: the space is invariant.
        if rest.is_nan() || rest <= 1e-13 * size {
            break;
        }
        basis.push(scaled(&next, 1.0 / rest));
        if let Some(column) = columns.last_mut() {
            column.push(rest);
        }
    }
    let n = columns.len();
    let entry = |i: usize, j: usize| columns[j].get(i).copied().unwrap_or_default();
    (0..n)
        .map(|i| (0..n).map(|j| entry(i, j)).collect())
        .collect()
}

/// Returns the spectral radius of a small dense matrix, by repeated squaring.
pub(crate) fn gelfand(mut matrix: Vec<Vec<f64>>) -> f64 {
    // ln ‖A^(2^k)‖ / 2^k, with the norm divided out before each squaring.
    let (mut logarithm, mut exponent) = (0.0, 1.0);
    for _ in 0..48 {
        let size = matrix.iter().flatten().map(|a| a * a).sum::<f64>().sqrt();
        if !(size > 0.0 && size.is_finite()) {
            return size;
        }
        logarithm += libm::log(size) * exponent;
        let unit: Vec<Vec<f64>> = matrix.iter().map(|row| scaled(row, 1.0 / size)).collect();
        matrix = unit
            .iter()
            .map(|row| {
                let mut product = vec![0.0; row.len()];
                for (a, other) in row.iter().zip(&unit) {
                    product.iter_mut().zip(other).for_each(|(p, b)| *p += a * b);
                }
                product
            })
            .collect();
        exponent /= 2.0;
    }
    libm::exp(logarithm)
}

fn scaled(vector: &[f64], factor: f64) -> Vec<f64> {
    vector.iter().map(|x| factor * x).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(n: usize) -> [Vec<f64>; 2] {
        [0.7, 1.9].map(|phase| (0..n).map(|k| (phase + 1.3 * k as f64).sin()).collect())
    }

    fn radius_of(n: usize, apply: impl Fn(&[f64]) -> Vec<f64>) -> Radius {
        let [a, b] = starts(n);
        radius([&a, &b], |vector| vector.copy_from_slice(&apply(vector)))
    }

    #[test]
    fn a_complex_pair_counts_by_its_modulus() {
        let turn = |v: &[f64]| vec![0.6 * v[0] - 0.7 * v[1], 0.7 * v[0] + 0.6 * v[1], 0.9 * v[2]];
        let radius = radius_of(3, turn);
        assert!((radius.value - 0.85f64.sqrt()).abs() < 1e-10, "{radius:?}");
    }

    #[test]
    fn the_radius_of_a_defective_matrix_is_found() {
        // A Jordan block: ‖Aᵏ‖ ~ k ρᵏ. One rounding moves its eigenvalues by 10⁻⁸, and there are about fifty.
        let block = |v: &[f64]| vec![0.5 * v[0] + v[1], 0.5 * v[1]];
        let radius = radius_of(2, block);
        assert!((radius.value - 0.5).abs() < 1e-5, "{radius:?}");
    }

    #[test]
    fn clustered_eigenvalues_near_one_are_separated() {
        // 1 − 10⁻⁴(1 + k/2), k = 0.., and a hundred small ones.
        let n = 400;
        let eigenvalue = |k: usize| {
            if k < 300 {
                1.0 - 1e-4 * (1.0 + k as f64 / 2.0)
            } else {
                0.9 * (k as f64).sin()
            }
        };
        let radius = radius_of(n, |v| (0..n).map(|k| eigenvalue(k) * v[k]).collect());
        let share = (radius.value - 1.0) / -1e-4;
        assert!((share - 1.0).abs() < 1e-3, "{radius:?}");
        assert!(radius.uncertainty < 1e-2);
    }

    #[test]
    fn a_map_that_expands_has_a_radius_above_one() {
        let map = |v: &[f64]| vec![-1.75 * v[0], 1.0 * v[1] + v[0]];
        assert!((radius_of(2, map).value - 1.75).abs() < 1e-10);
    }

    #[test]
    fn a_map_that_overflows_has_no_finite_radius() {
        let map = |v: &[f64]| vec![v[0] * 1e308 * 10.0, v[1]];
        assert!(!radius_of(2, map).value.is_finite());
    }

    #[test]
    fn a_nilpotent_map_has_radius_zero() {
        let map = |v: &[f64]| vec![v[1], v[2], 0.0];
        assert_eq!(radius_of(3, map).value, 0.0);
    }
}
