use super::*;
use crate::curator::config::MAX_ROWS;
use crate::curator::kernel::hessian;
use crate::curator::row_passes::LocalChunks;
use crate::curator::rows::chunk::ChunkShape;
use crate::curator::{NormPolicy, Shard, ShardBuilder};
use crate::linalg::dot::dot;
use crate::linalg::simd::Simd;
use crate::privacy::{IdealRelease, Mechanism, NoiseDistribution};
use crate::problem::Problem;
use crate::protocol::metric::MAX_METRIC_COLUMNS;
use crate::protocol::query::Query;

type Entries = Vec<(u32, f64)>;

fn wave(n: usize) -> f64 {
    libm::sin(n as f64 * 12.9898) * 0.9 + 0.05
}

/// Rows of every storage: numbers, one-hot groups, and rare entries.
fn table(rows: usize) -> Vec<(Entries, bool)> {
    let row = |n: usize| {
        let mut entries: Entries = vec![(0, wave(n)), (1, wave(3 * n + 1))];
        entries.push((2 + (n % 3) as u32, 1.0));
        entries.push((5 + (n / 3 % 4) as u32, 1.0));
        if n % 7 == 2 {
            entries.push((9, wave(n + 5)));
        }
        if n.is_multiple_of(11) {
            entries.push((10, 1.0));
        }
        (entries, wave(5 * n) > 0.0)
    };
    (0..rows).map(row).collect()
}

const COLUMNS: usize = 11;

fn shard(rows: &[(Entries, bool)]) -> Shard {
    let mut builder = ShardBuilder::new(COLUMNS, NormPolicy::Unit);
    for (entries, positive) in rows {
        builder.push(entries, *positive).unwrap();
    }
    builder.finish().unwrap()
}

/// The rows as dense vectors, without labels, as a shard stores them.
fn dense(rows: &[(Entries, bool)]) -> Vec<Vec<f64>> {
    let mut entries = Vec::new();
    let of = |row: &(Entries, bool)| {
        NormPolicy::Unit
            .apply(&row.0, COLUMNS, &mut entries)
            .unwrap();
        let mut dense = vec![0.0; COLUMNS];
        entries
            .iter()
            .for_each(|(k, value)| dense[*k as usize] = *value);
        dense
    };
    rows.iter().map(of).collect()
}

fn metric(rows: &[(Entries, bool)], ridge: f64) -> Arc<Metric> {
    let packed = gram(LocalChunks::in_test(&shard(rows)), 1.0).unwrap();
    let mean: Vec<f64> = packed.iter().map(|g| g / rows.len() as f64).collect();
    Arc::new(Metric::from_gram(COLUMNS, &mean, ridge).unwrap())
}

#[test]
fn a_gram_matrix_is_the_sum_of_products() {
    let rows = table(700);
    let found = gram(LocalChunks::in_test(&shard(&rows)), 0.5).unwrap();
    let mut packed = found.iter();
    for a in 0..COLUMNS {
        for b in 0..=a {
            let exact: f64 = dense(&rows).iter().map(|x| x[a] * x[b]).sum();
            let unit = if a == b { 0.5 } else { 0.5 * 2f64.sqrt() };
            assert!(
                (packed.next().unwrap() - unit * exact).abs() < 1e-10,
                "{a} {b}"
            );
        }
    }
}

#[test]
fn a_gram_matrix_is_the_same_in_any_order_of_the_rows() {
    // Another order gives chunks of another layout, in which entries are stored and added otherwise.
    let rows = table(40_000);
    let mut reordered = rows.clone();
    reordered.reverse();
    reordered.rotate_left(7);
    reordered.sort_by_key(|(entries, _)| entries.len());
    let of = |rows: &[_]| gram(LocalChunks::in_test(&shard(rows)), 1.0).unwrap();
    assert_eq!(of(&rows), of(&reordered));
}

#[test]
fn one_row_moves_a_gram_matrix_by_root_two_at_most() {
    let near_opposite = |angle: f64| vec![(0, libm::cos(angle)), (1, libm::sin(angle))];
    let mut most: f64 = 0.0;
    for k in 0..100 {
        let angle = f64::from(k) * 0.0317;
        let one = gram(
            LocalChunks::in_test(&shard(&[(near_opposite(0.0), true)])),
            1.0,
        )
        .unwrap();
        let other = gram(
            LocalChunks::in_test(&shard(&[(near_opposite(angle), false)])),
            1.0,
        )
        .unwrap();
        let difference: Vec<f64> = one.iter().zip(&other).map(|(a, b)| a - b).collect();
        most = most.max(norm(&difference));
    }
    assert!(most > 1.41 && most <= 2f64.sqrt() * (1.0 + 1e-9), "{most}");
}

/// The packed difference of the Gram matrices of two rows, with products rounded to `unit`.
fn gram_difference(rows: [Entries; 2], columns: usize, unit: f64) -> f64 {
    let [one, other] = rows.map(|entries| {
        let mut builder = ShardBuilder::new(columns, NormPolicy::Clip);
        builder.push(&entries, true).unwrap();
        let shard = builder.finish().unwrap();
        let mut gram = vec![0.0; columns * columns];
        hessian::add_gram(Simd::best(), shard.chunks()[0], unit, &mut gram);
        gram
    });
    let mut square = 0.0;
    for a in 0..columns {
        for b in 0..=a {
            let difference = one[a * columns + b] - other[a * columns + b];
            square += difference * difference * if a == b { 1.0 } else { 2.0 };
        }
    }
    f64::sqrt(square)
}

#[test]
fn rounding_products_moves_a_gram_matrix_by_no_more_than_is_charged() {
    let mechanism = Mechanism::gradient(NoiseDistribution::gaussian(1.0));
    let query = Query::GramSum {
        scale: 1.0,
        noise: 1.0,
    };
    let price = mechanism.price(&query, &Problem::new(Loss::Logistic, 1), 1);
    let IdealRelease::Additive { sensitivity, .. } = price.unwrap().ideal else {
        panic!("noise is added")
    };
    assert!(sensitivity > 2f64.sqrt() && sensitivity < 2f64.sqrt() * 1.001);
    // Products are rounded most coarsely where there are most rows, and most of them where there are most columns.
    let unit = gram_unit(MAX_ROWS);
    for columns in [2, 40, MAX_METRIC_COLUMNS] {
        for k in 0..12 {
            let dense = |sign: &dyn Fn(u32) -> f64| -> Entries {
                let size = |a: u32| 1.0 + 0.5 * wave(a as usize + 31 * k);
                let row = |a| (a, sign(a) * size(a - a % 2));
                let row: Entries = (0..columns as u32).map(row).collect();
                let length = f64::sqrt(row.iter().map(|(_, x)| x * x).sum());
                row.iter().map(|(a, x)| (*a, x / length)).collect()
            };
            // Pairs of columns of the same size, added and subtracted: orthogonal rows.
            let alternating = |a: u32| if a.is_multiple_of(2) { 1.0 } else { -1.0 };
            let rows = [dense(&|_| 1.0), dense(&alternating)];
            let moved = gram_difference(rows, columns, unit);
            assert!(
                moved <= sensitivity && moved > 0.99 * sensitivity,
                "{columns}: {moved}"
            );
        }
    }
}

#[test]
fn a_gradient_in_a_metric_is_that_of_transformed_rows() {
    let rows = table(700);
    let metric = metric(&rows, 0.02);
    let shard = shard(&rows);
    let at: Vec<f64> = (0..COLUMNS).map(|k| wave(k + 2)).collect();
    for loss in [
        Loss::Logistic,
        Loss::SmoothHinge { width: 1.0 },
        Loss::CutLogistic,
    ] {
        let mut exact = vec![0.0; COLUMNS];
        for (x, (_, positive)) in dense(&rows).iter().zip(&rows) {
            let image = metric.apply(x);
            let sign = if *positive { 1.0 } else { -1.0 };
            let unit: Vec<f64> = image.iter().map(|v| sign * v / norm(&image)).collect();
            let (slope, _) = loss.slope_and_curvature(dot(&unit, &at));
            exact
                .iter_mut()
                .zip(&unit)
                .for_each(|(g, v)| *g += 4.0 * slope * v);
        }
        for doubled in [false, true] {
            let place = GradientPlace {
                at: &at,
                metric: Some(&metric),
                doubled,
            };
            let found = gradient(LocalChunks::in_test(&shard), (loss, 4.0), place).unwrap();
            for (found, exact) in found.iter().zip(&exact) {
                assert!((found - exact).abs() < 1e-9, "{loss:?}: {found} {exact}");
            }
        }
    }
}

#[test]
fn no_transformed_row_is_longer_than_one_and_none_is_much_shorter() {
    let rows = table(500);
    for ridge in [1e-9, 1e-3, 1.0] {
        let metric = metric(&rows, ridge);
        for (factor, x) in factors(&metric, shard(&rows).chunks()[0])
            .iter()
            .zip(dense(&rows))
        {
            // The last roundings of this check itself are below 1e-13.
            let length = factor * norm(&metric.apply(&x));
            assert!(length <= 1.0 + 1e-13 && length > 1.0 - 1e-7, "{length}");
        }
    }
}

#[test]
fn a_factor_depends_on_its_own_row_and_on_no_other() {
    let rows = table(2000);
    let metric = metric(&rows, 0.01);
    let first = |rows: &[(Entries, bool)]| factors(&metric, shard(rows).chunks()[0])[0];
    for n in [0, 2, 11, 23, 1999] {
        let alone = first(&rows[n..=n]);
        let mut among = rows.clone();
        among.swap(0, n);
        assert_eq!(alone.to_bits(), first(&among).to_bits(), "{n}");
    }
}

#[test]
fn a_row_of_zeros_stays_one() {
    let rows = vec![(vec![(0, 0.0)], true), (vec![(0, 1.0)], false)];
    let metric = metric(&table(50), 0.01);
    let found = factors(&metric, shard(&rows).chunks()[0]);
    assert_eq!(found[0], 0.0);
    assert!(found[1] > 0.0);
}

#[test]
fn a_sum_of_rows_has_no_labels() {
    let rows = table(3000);
    let found = super::rows(LocalChunks::in_test(&shard(&rows)), 2.0).unwrap();
    for (k, found) in found.iter().enumerate() {
        let exact: f64 = dense(&rows).iter().map(|x| 2.0 * x[k]).sum();
        assert!((found - exact).abs() < 1e-9, "{k}");
    }
}

#[test]
fn sums_of_rounded_products_are_exact() {
    for rows in [1, 2, 100, 30_162, 1 << 26, 1 << 29, 1 << 30, MAX_ROWS] {
        let unit = gram_unit(rows);
        let in_one_part = rows.min(MAX_ROWS / MATRIX_PARTS) as f64;
        assert!(in_one_part / unit <= 2f64.powi(53), "{rows}");
        assert!((2f64.powi(-50)..=2f64.powi(-23)).contains(&unit));
    }
    // The units of studies that were possible before there were two levels.
    let units = [1, 16_384, 30_162, 1 << 26].map(gram_unit);
    assert_eq!(units, [-50, -36, -35, -24].map(|k| 2f64.powi(k)));
}

/// Rows whose Gram matrix is given by parts.
struct Parts(Vec<f64>);

impl RowPasses for Parts {
    fn columns(&self) -> usize {
        1
    }

    fn chunks(&self) -> &[ChunkShape] {
        &[]
    }

    fn run(&self, _: &Pass, add: &mut dyn FnMut(CompensatedSum)) -> Result<(), PassFailed> {
        let parts = self.0.iter().map(|sum| CompensatedSum::plain(vec![*sum]));
        parts.for_each(add);
        Ok(())
    }
}

#[test]
fn a_gram_matrix_of_the_most_rows_is_the_same_in_any_order_of_its_parts() {
    // As many units as doubles hold, so that a plain sum of two parts loses the last one.
    let unit = gram_unit(MAX_ROWS);
    let most = 2f64.powi(53);
    let mut parts: Vec<f64> = (0..8u32)
        .map(|k| (most - f64::from(k * k)) * unit)
        .collect();
    let exact: i128 = parts.iter().map(|part| (part / unit) as i128).sum();
    for _ in 0..parts.len() {
        parts.rotate_left(1);
        parts.swap(2, 5);
        let found = gram(&Parts(parts.clone()), 1.0).unwrap();
        assert_eq!(found, [exact as f64 * unit]);
    }
}
