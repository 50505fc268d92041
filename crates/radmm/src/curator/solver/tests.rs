//! Tests of the solver: derivatives against finite differences, certificates, and fallbacks.

use super::objective::mean_loss_and_accuracy;
use super::*;
use crate::curator::row_passes::{LocalChunks, PassCache};
use crate::curator::{NormPolicy, Shard, ShardBuilder};
use crate::exec::{ChunkExecutor, Sequential};
use crate::linalg::dot::{dot, norm};
use crate::problem::Loss;
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
    weighted((shard, 20.0), loss, 0.01, linear)
}

fn weighted<'a>(
    (shard, weight): (&'a Shard, f64),
    loss: Loss,
    modulus: f64,
    linear: &'a [f64],
) -> Objective<'a> {
    let rows = (LocalChunks::in_test(shard), weight);
    Objective::of_party(rows, loss, modulus, linear)
}

fn value(objective: &Objective<'_>, f: &[f64]) -> f64 {
    let (loss, _) = mean_loss_and_accuracy(objective.rows, objective.loss, f).unwrap();
    objective.weight * loss + dot(objective.linear, f) + objective.modulus / 2.0 * dot(f, f)
}

fn plain_target(tolerance: f64) -> Target {
    Target {
        tolerance,
        doubled: false,
    }
}

fn minimised(
    objective: &Objective<'_>,
    near: &[f64],
    target: &Target,
) -> Result<Solution, Unsolved> {
    minimise(objective, near, target, &mut WarmStart::default())
}

const LOSSES: [Loss; 2] = [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }];

#[test]
fn the_gradient_agrees_with_finite_differences_of_the_value() {
    let shard = shard(40, 12, 4, 1);
    let linear: Vec<f64> = (0..12).map(|k| (k as f64).sin()).collect();
    let f: Vec<f64> = (0..12).map(|k| 2.0 * (k as f64 * 1.7).cos()).collect();
    for loss in LOSSES {
        let objective = objective(&shard, loss, &linear);
        let gradient = objective.gradient(&f, false).unwrap();
        for k in 0..12 {
            let step = 1e-5;
            let (mut right, mut left) = (f.clone(), f.clone());
            right[k] += step;
            left[k] -= step;
            let difference = (value(&objective, &right) - value(&objective, &left)) / (2.0 * step);
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
        let curvatures = objective.curvatures(&Point::plain(&f));
        let product = objective.hessian_product(&curvatures, &along).unwrap();
        let step = 1e-6;
        let moved = |s: f64| -> Vec<f64> {
            let there = f.iter().zip(&along).map(|(f, p)| f + s * p);
            let there: Vec<f64> = there.collect();
            objective.gradient(&there, false).unwrap()
        };
        for ((p, r), l) in product.iter().zip(moved(step)).zip(moved(-step)) {
            assert!((p - (r - l) / (2.0 * step)).abs() < 1e-5, "{loss:?}");
        }
    }
}

#[test]
fn both_direction_methods_give_newtons_direction() {
    let shard = shard(60, 30, 5, 3);
    let linear = vec![0.1; 30];
    for loss in LOSSES {
        let objective = objective(&shard, loss, &linear);
        let here = objective.evaluate(Point::plain(&[0.2; 30])).unwrap();
        let by_cholesky = objective.direction_by_cholesky(&here).unwrap();
        let curvatures = objective.curvatures(&here.point);
        let product = objective
            .hessian_product(&curvatures, &by_cholesky)
            .unwrap();
        for (p, g) in product.iter().zip(&here.gradient) {
            assert!((p + g).abs() < 1e-10);
        }
        let by_conjugate_gradients = objective.direction_by_conjugate_gradients(&here).unwrap();
        let rest: Vec<f64> = objective
            .hessian_product(&curvatures, &by_conjugate_gradients)
            .unwrap()
            .iter()
            .zip(&here.gradient)
            .map(|(p, g)| p + g)
            .collect();
        assert!(norm(&rest) <= 0.1 * here.residual * (1.0 + 1e-9));
    }
}

#[test]
fn wide_problems_are_certified_by_conjugate_gradients() {
    let columns = 3000;
    let shard = shard(500, columns, 13, 4);
    let linear = vec![0.001; columns];
    let objective = objective(&shard, Loss::Logistic, &linear);
    assert!(!objective.factor_pays());
    let solution = minimised(&objective, &vec![0.0; columns], &plain_target(1e-10)).unwrap();
    assert!(norm(&objective.gradient(&solution.point, false).unwrap()) <= 1e-10);
}

#[test]
fn descent_alone_reaches_the_public_floor_in_its_number_of_steps() {
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
        let descent = objective.minimise_by_descent(&[0.0; 12], floor).unwrap();
        assert!(descent.residual <= floor, "{}", descent.residual);
        let newton = minimised(&objective, &[0.0; 12], &plain_target(floor)).unwrap();
        let pairs = descent.point.into_values().into_iter().zip(newton.point);
        let distance: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
        assert!(norm(&distance) <= 3.0 * floor / objective.modulus);
    }
}

#[test]
fn a_doubled_target_is_met_by_a_doubled_point() {
    let shard = shard(40, 12, 4, 5);
    let linear = vec![0.1; 12];
    let objective = objective(&shard, Loss::Logistic, &linear);
    for doubled in [false, true] {
        let target = Target {
            tolerance: 1e-10,
            doubled,
        };
        let found = objective.minimise_by_newton(&[0.0; 12], &target).unwrap();
        assert!(found.meets(&target) && found.point.is_doubled() == doubled);
    }
}

#[test]
fn a_subsampled_start_saves_passes_and_changes_nothing_else() {
    // Nearly separable labels, so that the minimiser is far out and takes many steps from zero.
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
    let cache = PassCache::default();
    let pooled = shards.iter().map(|shard| (shard, 1e4 / 300.0));
    let rows = LocalChunks::pooled(pooled, &Sequential, &cache);
    let objective = Objective {
        rows: &rows,
        weight: 16.0 * 1e4,
        row_weight: 1.0,
        ..objective(&shards[0], Loss::Logistic, &linear)
    };
    let target = plain_target(1e-8);
    let (mut from_subsample, mut from_zero) = (WarmStart::default(), WarmStart::default());
    let subsampled = minimise(&objective, &[0.0; 12], &target, &mut from_subsample).unwrap();
    let plain = objective
        .minimise_by_quasi_newton(&[0.0; 12], &target, &mut from_zero)
        .unwrap();
    let (fewer, passes) = (from_subsample.passes(), from_zero.passes());
    assert!(fewer < passes, "{fewer} {passes}");
    let distance = subsampled
        .point
        .iter()
        .zip(plain.point.high())
        .map(|(a, b)| a - b);
    assert!(norm(&distance.collect::<Vec<_>>()) <= 2e-8 / objective.modulus);
    // Two chunks of sixteen have the total weight of all.
    let subsample = objective.subsample(8);
    let total_weight = |objective: &Objective<'_>| {
        let weight = 1e4 / 300.0 * objective.row_weight;
        let chunks = objective.chunks_in_use();
        chunks.map(|chunk| weight * chunk.rows as f64).sum::<f64>()
    };
    assert_eq!(subsample.chunks_in_use().count(), 2);
    assert!((total_weight(&subsample) - total_weight(&objective)).abs() < 1e-9);
}

/// An executor that runs from last to first, and leaves some work out.
struct ReversedWithGaps;

impl ChunkExecutor for ReversedWithGaps {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).rev().filter(|k| k % 5 != 3).for_each(work);
    }
}

#[test]
fn every_executor_gives_the_same_bits() {
    // More chunks than are added up at once, and than a Hessian has parts.
    let shards: Vec<Shard> = (0..40).map(|seed| shard(50, 12, 4, seed)).collect();
    let many = shard(40_000, 12, 4, 77);
    let linear = vec![0.1; 12];
    let f: Vec<f64> = (0..12).map(|k| (k as f64).sin()).collect();
    let bits = |executor: &dyn ChunkExecutor| {
        let cache = PassCache::default();
        let pooled = shards.iter().chain([&many]);
        let pooled = pooled.map(|shard| (shard, 20.0 / shard.rows() as f64));
        let rows = LocalChunks::pooled(pooled, executor, &cache);
        let objective = Objective {
            rows: &rows,
            weight: 41.0 * 20.0,
            row_weight: 1.0,
            ..objective(&many, Loss::Logistic, &linear)
        };
        let point = Point::plain(&f);
        let product = objective.hessian_product(&objective.curvatures(&point), &f);
        let alone = LocalChunks::new(&many, executor, &cache);
        let fit = mean_loss_and_accuracy(&alone, Loss::Logistic, &f).unwrap();
        let all = [
            objective.gradient(&f, false).unwrap(),
            objective.rows_hessian(&point).unwrap(),
            product.unwrap(),
            vec![fit.0, fit.1],
        ];
        all.concat()
            .into_iter()
            .map(f64::to_bits)
            .collect::<Vec<_>>()
    };
    assert!(bits(&Sequential) == bits(&ReversedWithGaps));
}

#[test]
fn an_impossible_tolerance_is_refused() {
    let shard = shard(60, 40, 4, 5);
    let linear: Vec<f64> = (0..40).map(|k| (k as f64).sin()).collect();
    let objective = Objective {
        modulus: 1.0,
        ..objective(&shard, Loss::Logistic, &linear)
    };
    let failed = minimised(&objective, &[0.0; 40], &plain_target(1e-30));
    let refused = NotCertified { tolerance: 1e-30 };
    assert_eq!(failed.err(), Some(refused.into()));
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
        assert!(minimised(&objective, &[0.0; 12], &plain_target(tolerance)).is_err());
    }
}

#[test]
fn a_sharp_hinge_with_a_weak_ridge_is_certified() {
    // A full Newton step overshoots by orders of magnitude, and the gradient must grow before it shrinks.
    let shard = shard(300, 12, 4, 6);
    let linear = vec![0.1; 12];
    for width in [0.5, 0.01, 0.001] {
        let objective = weighted((&shard, 1e4), Loss::SmoothHinge { width }, 1e-4, &linear);
        let solution = minimised(&objective, &[0.0; 12], &plain_target(1e-8)).unwrap();
        assert!(norm(&objective.gradient(&solution.point, false).unwrap()) <= 1e-8);
    }
}

#[test]
fn the_gradient_of_an_intercept_is_accurate_over_many_rows() {
    // Equal addends with a known sum. A plain sum drifts from it by more than is allowed here.
    let count = 45_000;
    let mut builder = ShardBuilder::new(1, NormPolicy::Clip);
    for _ in 0..count {
        builder.push(&[(0, 0.7)], true).unwrap();
    }
    let shard = builder.finish().unwrap();
    let objective = weighted((&shard, 1750.0), Loss::Logistic, 0.01, &[0.0]);
    let (exact, addend) = (-0.5 * 0.7 * 1750.0, -0.5 * 0.7 * 1750.0 / f64::from(count));
    let plain: f64 = (0..count).map(|_| addend).sum();
    assert!(
        (plain - exact).abs() > 1e-10,
        "a plain sum is accurate enough here"
    );
    // The rounding error of one block of equal addends, and no more for all blocks together.
    let ours = objective.gradient(&[0.0], false).unwrap()[0];
    assert!(
        (ours - exact).abs() < 128.0 * f64::EPSILON * exact.abs(),
        "{ours} {exact}"
    );
}

proptest! {
    #[test]
    fn the_public_floor_is_reached_for_any_rows_and_query(
        seed in 0usize..1000,
        rows in 1usize..60,
        weight in 0.01f64..1e5,
        modulus in -3f64..1.0,
        size in -6f64..6.0,
        place in 0usize..20,
        width in 0.01f64..2.0,
        hinge in any::<bool>(),
    ) {
        // A hostile query: one huge coefficient, in a column that few rows or none have. With a penalty or ridge below a
        // thousandth, one in a hundred thousand of these is not certified.
        let modulus = 10f64.powf(modulus);
        let shard = shard(rows, 20, 5, seed);
        let mut linear = vec![0.1; 20];
        let loss = if hinge { Loss::SmoothHinge { width } } else { Loss::Logistic };
        let slopes = weight * (1.0 + loss.curvature());
        linear[place] = size.signum() * 10f64.powf(size.abs()) * (1.0 + slopes);
        let objective = weighted((&shard, weight), loss, modulus, &linear);
        let floor = f64::EPSILON * (96.0 * slopes + 2.25 * 256.0 * weight + 128.0 * norm(&linear));
        // Without gradient descent, which would succeed in any case.
        for doubled in [false, true] {
            let target = Target { doubled, ..plain_target(floor.max(1e-10)) };
            let found = objective.minimise_by_newton(&[0.0; 20], &target).unwrap();
            prop_assert!(found.meets(&target));
        }
    }

    #[test]
    fn the_residual_is_correct_and_within_the_tolerance(
        seed in 0usize..1000,
        rows in 1usize..80,
        weight in 0.01f64..1e4,
        modulus in 1e-4f64..10.0,
        size in 0.0f64..100.0,
        hinge in any::<bool>(),
    ) {
        let shard = shard(rows, 20, 5, seed);
        let linear: Vec<f64> = (0..20).map(|k| size * ((k + seed) as f64).sin()).collect();
        let objective = weighted((&shard, weight), LOSSES[usize::from(hinge)], modulus, &linear);
        let near: Vec<f64> = (0..20).map(|k| size * ((k * seed) as f64).cos()).collect();
        let tolerance = 1e-9;
        let solution = minimised(&objective, &near, &plain_target(tolerance)).unwrap();
        prop_assert!(solution.residual <= tolerance);
        // Recomputed at the nearest doubles of a point that may have had more digits. Far out, the last digit is worth
        // more than the tolerance.
        let again = norm(&objective.gradient(&solution.point, true).unwrap());
        let digit = f64::EPSILON * norm(&solution.point) * objective.lipschitz();
        prop_assert!((again - solution.residual).abs() <= 1e-9 + digit, "{} {}", again, solution.residual);
    }
}
