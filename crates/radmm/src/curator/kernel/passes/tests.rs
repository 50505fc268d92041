//! Tests of passes over rows of all kinds, against naive sums, on every vector unit.

use super::*;
use crate::curator::kernel::hessian;
use crate::curator::{NormPolicy, Shard, ShardBuilder};

/// Rows that are short enough to be stored unchanged.
struct TestData {
    name: &'static str,
    columns: usize,
    rows: Vec<(Vec<(u32, f64)>, bool)>,
}

fn noise(n: usize) -> f64 {
    let hashed = (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((hashed ^ (hashed >> 29)) >> 11) as f64 / (1u64 << 53) as f64
}

fn pick(n: usize, below: usize) -> u32 {
    (noise(n) * below as f64) as u32
}

/// Returns an encoded table: three numbers, one of them often missing, groups of 5, 9 and 40 indicators, an intercept.
fn table(name: &'static str, rows: usize) -> TestData {
    let row = |n: usize| {
        let value = 0.1 + 0.2 * noise(7 * n);
        let mut entries = vec![
            (0, 0.3 * noise(3 * n) - 0.1),
            (1, 0.01 + 0.1 * noise(5 * n)),
        ];
        if n.is_multiple_of(3) {
            entries.push((2, -0.2 * noise(11 * n) - 0.01));
        }
        entries.push((3 + pick(13 * n, 5), value));
        if !n.is_multiple_of(5) {
            entries.push((8 + pick(17 * n, 9), value));
        }
        entries.push((17 + pick(19 * n, 40), value));
        entries.push((57, value));
        (entries, pick(23 * n, 2) == 1)
    };
    TestData {
        name,
        columns: 58,
        rows: (0..rows).map(row).collect(),
    }
}

/// Returns sparse rows with any columns of many, with values of their own or all alike.
fn words(name: &'static str, columns: usize, own_values: bool) -> TestData {
    let row = |n: usize| {
        let mut found: Vec<u32> = (0..1 + n % 12)
            .map(|k| pick(31 * n + 7 * k, columns))
            .collect();
        found.sort_unstable();
        found.dedup();
        let value = |column: u32| match own_values {
            true => 0.05 + 0.2 * noise(n + column as usize),
            false => 0.2,
        };
        (
            found.into_iter().map(|c| (c, value(c))).collect(),
            n.is_multiple_of(3),
        )
    };
    TestData {
        name,
        columns,
        rows: (0..700).map(row).collect(),
    }
}

/// Returns a table whose later rows do not fit the layout of the first thousand.
fn changing() -> TestData {
    let mut data = table("changing", 1500);
    for n in 1100..1500 {
        let entries = &mut data.rows[n].0;
        match n % 4 {
            // Two of one group, an indicator with another value, a number in an indicator column, no entry at all.
            0 => *entries = vec![(3, 0.25), (5, 0.25), (30, 0.25)],
            1 => *entries = vec![(4, 0.1), (20, -0.3), (57, 0.25)],
            2 => *entries = vec![(17, 0.4), (57, 0.3)],
            _ => entries.clear(),
        }
    }
    data
}

/// Returns rows of more numbers than a panel of products has, and three indicators.
fn numbers(name: &'static str, columns: usize) -> TestData {
    let row = |n: usize| {
        let number = |k: u32| (k, 0.02 + 0.08 * noise(n + 101 * k as usize));
        let mut entries: Vec<(u32, f64)> = (0..columns as u32 - 3).map(number).collect();
        entries.push((columns as u32 - 3 + pick(13 * n, 3), 0.11));
        (entries, n.is_multiple_of(3))
    };
    TestData {
        name,
        columns,
        rows: (0..300).map(row).collect(),
    }
}

fn all_kinds() -> Vec<TestData> {
    vec![
        numbers("numbers", 82),
        table("table", 1003),
        table("few rows", 5),
        table("more than a chunk", 16_384 + 300),
        changing(),
        words("words", 3000, true),
        words("indicators", 3000, false),
        words("many columns", 70_000, true),
    ]
}

impl TestData {
    fn shard(&self) -> Shard {
        let mut builder = ShardBuilder::new(self.columns, NormPolicy::Clip);
        for (entries, positive) in &self.rows {
            builder.push(entries, *positive).unwrap();
        }
        builder.finish().unwrap()
    }

    /// Returns the rows as `y·x`.
    fn signed(&self) -> impl Iterator<Item = Vec<(usize, f64)>> {
        self.rows.iter().map(|(entries, positive)| {
            let sign = if *positive { 1.0 } else { -1.0 };
            entries
                .iter()
                .map(|&(k, v)| (k as usize, sign * v))
                .collect()
        })
    }

    fn model(&self) -> Vec<f64> {
        (0..self.columns).map(|k| 4.0 * noise(k) - 2.0).collect()
    }
}

fn margin(row: &[(usize, f64)], f: &[f64]) -> f64 {
    row.iter().map(|&(k, v)| v * f[k]).sum()
}

fn assert_near(ours: &[f64], right: &[f64], what: &str) {
    assert_eq!(ours.len(), right.len());
    let size = right.iter().fold(1.0, |size: f64, r| size.max(r.abs()));
    for (k, (a, b)) in ours.iter().zip(right).enumerate() {
        assert!((a - b).abs() <= 1e-12 * size, "{what}: {a} {b} at {k}");
    }
}

/// Sums over the chunks of a shard.
fn sum_over_chunks(shard: &Shard, of: impl Fn(&Chunk) -> CompensatedSum) -> Vec<f64> {
    let mut total = CompensatedSum::zero(shard.columns());
    for chunk in shard.chunks() {
        total.add_all(&of(chunk));
    }
    total
        .sum
        .iter()
        .zip(&total.correction)
        .map(|(s, l)| s + l)
        .collect()
}

const LOSSES: [Loss; 2] = [Loss::Logistic, Loss::SmoothHinge { width: 0.5 }];

#[test]
fn every_row_is_stored_unchanged() {
    for data in all_kinds() {
        let shard = data.shard();
        let mut stored = Vec::new();
        for chunk in shard.chunks() {
            chunk.for_each_row(|_, columns, values, _| {
                let entries = columns.iter().map(|&k| k as usize);
                let mut row: Vec<(usize, f64)> = entries.zip(values.iter().copied()).collect();
                row.sort_by_key(|entry| entry.0);
                stored.push(row);
            });
        }
        assert!(data.signed().eq(stored), "{}", data.name);
        let labels = shard.chunks().into_iter().flat_map(Chunk::labels);
        assert!(
            data.rows.iter().map(|row| row.1).eq(labels),
            "{}",
            data.name
        );
    }
}

#[test]
fn margins_and_gradients_agree_with_naive_sums() {
    for data in all_kinds() {
        let (shard, f) = (data.shard(), data.model());
        let simd = Simd::best();
        for point in [Point::plain(&f), Point::plain(&f).doubled()] {
            let ours: Vec<f64> = shard
                .chunks()
                .into_iter()
                .flat_map(|chunk| margins(simd, chunk, &point))
                .collect();
            let right: Vec<f64> = data.signed().map(|row| margin(&row, &f)).collect();
            assert_near(&ours, &right, data.name);
            for loss in LOSSES {
                let ours = sum_over_chunks(&shard, |chunk| {
                    gradient(simd, chunk, &point, (loss, 0.3), None)
                });
                let mut right = vec![0.0; data.columns];
                for row in data.signed() {
                    let slope = loss.slope_and_curvature(margin(&row, &f)).0;
                    row.iter().for_each(|&(k, v)| right[k] += 0.3 * slope * v);
                }
                assert_near(&ours, &right, data.name);
            }
        }
    }
}

#[test]
fn losses_agree_with_naive_sums() {
    for data in all_kinds() {
        let (shard, mut f) = (data.shard(), data.model());
        // Makes the margin of some rows zero.
        f[57..].fill(0.0);
        f[3..8].fill(0.0);
        for loss in LOSSES {
            let of = |chunk| losses(Simd::best(), chunk, &Point::plain(&f), loss);
            let ours = shard
                .chunks()
                .into_iter()
                .map(of)
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            let margins = || data.signed().map(|row| margin(&row, &f));
            let right: f64 = margins().map(|z| loss.value(z)).sum();
            assert!((ours.0 - right).abs() <= 1e-12 * right, "{}", data.name);
            let above = margins().filter(|z| *z > 0.0).count() as f64;
            let level = margins().filter(|z| *z == 0.0).count() as f64;
            assert_eq!(ours.1, above + level / 2.0, "{}", data.name);
        }
    }
}

#[test]
fn hessians_and_hessian_products_agree_with_naive_sums() {
    for data in all_kinds() {
        let (shard, f) = (data.shard(), data.model());
        let (simd, point) = (Simd::best(), Point::plain(&f));
        for loss in LOSSES {
            let weights = |chunk: &Chunk| curvatures(simd, chunk, &point, loss, 0.3);
            let right_weights: Vec<f64> = data
                .signed()
                .map(|row| 0.3 * loss.slope_and_curvature(margin(&row, &f)).1)
                .collect();
            let along: Vec<f64> = (0..data.columns).map(|k| noise(k + 99) - 0.5).collect();
            let product = sum_over_chunks(&shard, |chunk| {
                super::hessian_product(simd, chunk, &Point::plain(&along), &weights(chunk))
            });
            let mut right = vec![0.0; data.columns];
            for (row, w) in data.signed().zip(&right_weights) {
                let along = w * margin(&row, &along);
                row.iter().for_each(|&(k, v)| right[k] += along * v);
            }
            assert_near(&product, &right, data.name);
            let d = data.columns;
            if d > 3000 {
                continue;
            }
            let (mut ours, mut right) = (vec![0.0; d * d], vec![0.0; d * d]);
            for chunk in shard.chunks() {
                hessian::add(simd, chunk, &weights(chunk), &mut ours);
            }
            for (row, w) in data.signed().zip(&right_weights) {
                for &(i, u) in &row {
                    for &(j, v) in row.iter().filter(|entry| entry.0 <= i) {
                        right[i * d + j] += w * u * v;
                    }
                }
            }
            assert_near(&ours, &right, data.name);
        }
    }
}

#[test]
fn every_vector_unit_gives_the_same_bits() {
    let units = Simd::all();
    for data in all_kinds() {
        let (shard, f) = (data.shard(), data.model());
        for loss in LOSSES {
            for point in [Point::plain(&f), Point::plain(&f).doubled()] {
                let bits = |simd: Simd| {
                    let mut bits = Vec::new();
                    for chunk in shard.chunks() {
                        let CompensatedSum { sum, correction } =
                            gradient(simd, chunk, &point, (loss, 0.3), None);
                        let curvatures = curvatures(simd, chunk, &point, loss, 0.3);
                        let product = super::hessian_product(simd, chunk, &point, &curvatures).sum;
                        let (total, right) = losses(simd, chunk, &point, loss);
                        let mut matrix = vec![0.0; data.columns.min(60).pow(2)];
                        if data.columns < 60 {
                            hessian::add(simd, chunk, &curvatures, &mut matrix);
                        }
                        let all = [
                            sum,
                            correction,
                            curvatures,
                            product,
                            vec![total, right],
                            matrix,
                        ];
                        bits.extend(all.concat().into_iter().map(f64::to_bits));
                    }
                    bits
                };
                let plain = bits(Simd::Plain);
                for &simd in &units {
                    assert!(bits(simd) == plain, "{} on {simd:?}", data.name);
                }
            }
        }
    }
}

#[test]
fn doubled_margins_include_the_rounding_errors_of_products_and_sums() {
    // Large products that nearly cancel, of dense numbers, indicators and sparse entries.
    let far = 1e12;
    for columns in [2, 3000] {
        let mut builder = ShardBuilder::new(columns, NormPolicy::Clip);
        for (u, v) in [(0.6, -0.6), (0.25, -0.25), (0.7, -0.7)] {
            builder.push(&[(0, u), (1, v)], true).unwrap();
        }
        let shard = builder.finish().unwrap();
        let mut f = vec![0.0; columns];
        (f[0], f[1]) = (far + 3.0, far);
        let plain = Point::plain(&f);
        let at = |point: &Point| margins(Simd::best(), shard.chunks()[0], point);
        assert!(
            (at(&plain)[0] - 0.6 * 3.0).abs() > 1e-6,
            "a plain sum is accurate enough here"
        );
        // A displacement below the spacing of doubles.
        let mut tiny = vec![0.0; columns];
        tiny[0] = 1e-6;
        for (doubled, moved) in [
            (plain.doubled(), 0.0),
            (plain.doubled().moved(1.0, &tiny), 1e-6),
        ] {
            for (ours, u) in at(&doubled).into_iter().zip([0.6, 0.25, 0.7]) {
                assert!((ours - u * (3.0 + moved)).abs() < 1e-15, "{ours} {u}");
            }
        }
    }
}

#[test]
fn tables_are_stored_compactly() {
    let bytes = |data: TestData| {
        let rows = data.rows.len() as f64;
        let shard = data.shard();
        shard.chunks().into_iter().map(Chunk::bytes).sum::<usize>() as f64 / rows
    };
    // Four doubles, of which one is the indicator value, and two codes of one byte (6·10 and 41·2 values).
    assert_eq!(bytes(table("table", 1024)), 34.0);
    // Narrow columns without values of their own, and wide columns with values.
    let entries = |data: &TestData| {
        let count: usize = data.rows.iter().map(|row| row.0.len()).sum();
        count as f64 / data.rows.len() as f64
    };
    let data = words("indicators", 3000, false);
    let each = entries(&data);
    assert!(bytes(data) < 8.0 + 4.1 + 2.0 * each);
    let data = words("many columns", 70_000, true);
    let each = entries(&data);
    assert!(bytes(data) < 8.0 + 4.1 + 12.0 * each);
    // Numbers that every row has are dense, however many: eight bytes each, and one code; padded to 304 rows.
    assert_eq!(
        bytes(numbers("numbers", 82)),
        (80.0 * 8.0 + 1.0) * 304.0 / 300.0
    );
}

#[test]
fn doubled_margins_include_the_rounding_errors_of_codes() {
    // Six columns that every row has, which share a code, and four groups that are too large to share one.
    let columns = 6 + 4 * 60;
    let mut builder = ShardBuilder::new(columns, NormPolicy::Unit);
    let chosen = |n: usize| -> Vec<u32> {
        let groups = (0..4).map(|g| (6 + 60 * g) as u32 + pick(4 * n + g, 60));
        (0..6).chain(groups).collect()
    };
    for n in 0..1100 {
        let entries: Vec<(u32, f64)> = chosen(n).into_iter().map(|k| (k, 1.0)).collect();
        builder.push(&entries, true).unwrap();
    }
    let shard = builder.finish().unwrap();
    let chunk = shard.chunks()[0];
    assert!(chunk.layout().codes.len() >= 4 && chunk.sparse().is_none());
    // Integers whose sums take more digits than a double has and nearly cancel, and fractional digits.
    let far = |k: usize| {
        let up = if k < 6 {
            k < 3
        } else {
            ((k - 6) / 60).is_multiple_of(2)
        };
        (1i64 << 52) * if up { 1 } else { -1 } + (k * k) as i64 % 1001
    };
    let fraction = |k: usize| (k as i64 * 37) % 64;
    let high: Vec<f64> = (0..columns).map(|k| far(k) as f64).collect();
    let low: Vec<f64> = (0..columns).map(|k| fraction(k) as f64 / 1024.0).collect();
    let point = Point::plain(&high).doubled().moved(1.0, &low);
    let ours = margins(Simd::best(), chunk, &point);
    chunk.for_each_row(|n, columns, values, _| {
        let part = |k: usize| 1024 * i128::from(far(k)) + i128::from(fraction(k));
        let sum: i128 = columns.iter().map(|&k| part(k as usize)).sum();
        let right = values[0] * (sum as f64 / 1024.0);
        assert!(
            (ours[n] - right).abs() <= 8.0 * f64::EPSILON * right.abs(),
            "{} {right}",
            ours[n]
        );
    });
}

#[test]
fn sums_over_blocks_are_compensated() {
    // Large addends that cancel, and small ones between them, in blocks whose sums are plain.
    let small = 1e-12;
    let mut builder = ShardBuilder::new(1, NormPolicy::Clip);
    for (value, positive) in [(0.5, true), (small, true), (0.5, false)] {
        for _ in 0..PLAIN_BLOCKS * BLOCK_ROWS {
            builder.push(&[(0, value)], positive).unwrap();
        }
    }
    let shard = builder.finish().unwrap();
    assert_eq!(shard.chunks()[0].layout().codes.len(), 1);
    let at = Point::plain(&[0.0]);
    let ours = sum_over_chunks(&shard, |chunk| {
        gradient(Simd::best(), chunk, &at, (Loss::Logistic, 1.0), None)
    });
    let right = -0.5 * (PLAIN_BLOCKS * BLOCK_ROWS) as f64 * small;
    assert!(
        (ours[0] - right).abs() <= 1e-12 * right.abs(),
        "{} {right}",
        ours[0]
    );
}

#[test]
fn nan_margins_give_nan_losses() {
    for loss in LOSSES {
        let (slope, curvature) = loss.slope_and_curvature(f64::NAN);
        assert!(slope.is_nan() && curvature.is_nan() && loss.value(f64::NAN).is_nan());
    }
}
