//! How the time of a study grows with its rows, parties, columns, iterations and repetitions: docs/scale.md, with its picture.
//!
//! The page and the picture are written whenever the curves are measured.

mod page;
mod sweep;

use radmm_bench::report::{Found, Ratio, Target, duration, thousands};

use crate::table_file::Table;
use sweep::{Curve, ExponentRange, Setting, Sweep};

/// The rows of a party where the number of parties grows with that of rows.
const ROWS_PER_PARTY: usize = 100;
/// The rows of all parties where only the number of parties grows.
const ALL_ROWS: usize = 1_000_000;
/// The rows of the tables with many columns.
const DENSE_ROWS: usize = 2_000;
const ONE_HOT_ROWS: usize = 10_000;
/// The numbers of parties, from a small network to a hundred thousand.
const PARTIES: [u32; 6] = [5, 10, 100, 1_000, 10_000, 100_000];
/// The data steps where the number of parties grows: a hundred thousand parties take long enough with few.
const FEW_STEPS: u32 = 2;
/// The data steps of R-ADMM where the number of columns grows: a factor in a thousand unknowns takes long.
const COLUMN_STEPS: u32 = 5;
/// All sizes, in which the work is linear.
const LINEAR: ExponentRange = ExponentRange {
    largest: usize::MAX,
    most: Some(1.05),
};
/// All sizes, without a target.
const ANY: ExponentRange = ExponentRange {
    most: None,
    ..LINEAR
};

/// Measures all curves, and writes docs/scale.md and its picture.
pub fn curves() -> Found {
    let measured: Vec<(Sweep, Vec<Curve>)> = sweeps()
        .into_iter()
        .map(|sweep| {
            let curves = sweep.measure();
            (sweep, curves)
        })
        .collect();
    page::write(&measured);
    let mut found = Found::default();
    for (sweep, curves) in &measured {
        let Some(sizes) = sweep.compared else {
            continue;
        };
        for curve in curves {
            let (algorithm, [smaller, larger]) = (curve.algorithm.name(), sizes.map(thousands));
            let work = format!("{smaller} against {larger} {}, {algorithm}", sweep.title);
            match sizes.map(|size| curve.at(size)) {
                [Some(ours), Some(other)] => found.ratios.push(Ratio {
                    work,
                    ours: duration(ours),
                    other: format!("{}, {larger}", duration(other)),
                    ratio: ours / other,
                    target: Target::AtMost(1.0),
                }),
                _ => found
                    .left_out
                    .push(format!("{work}: too slow to be measured")),
            }
        }
    }
    found
}

fn sweeps() -> Vec<Sweep> {
    let base = Setting::BASE;
    vec![
        Sweep {
            title: "rows",
            axis: "rows of five parties",
            size: |setting, _| setting.rows,
            exponents: vec![LINEAR],
            compared: None,
            settings: [
                10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000,
            ]
            .map(|rows| Setting { rows, ..base })
            .into(),
        },
        Sweep {
            title: "iterations",
            axis: "iterations",
            size: |_, study| study.algorithm.iterations as usize,
            exponents: vec![LINEAR],
            compared: None,
            settings: [5, 15, 50, 150, 500]
                .map(|steps| Setting {
                    admm_steps: steps,
                    consensus_steps: Some(steps),
                    ..base
                })
                .into(),
        },
        Sweep {
            title: "parties of 100 rows each",
            axis: "parties of 100 rows each",
            size: |setting, _| setting.parties as usize,
            exponents: vec![LINEAR],
            compared: None,
            settings: PARTIES
                .map(|parties| Setting {
                    parties,
                    rows: ROWS_PER_PARTY * parties as usize,
                    admm_steps: FEW_STEPS,
                    consensus_steps: Some(FEW_STEPS),
                    ..base
                })
                .into(),
        },
        Sweep {
            title: "parties of 10⁶ rows together",
            axis: "parties of 10⁶ rows together",
            size: |setting, _| setting.parties as usize,
            exponents: vec![
                ExponentRange {
                    largest: 1_000,
                    most: Some(0.1),
                },
                ANY,
            ],
            compared: None,
            settings: PARTIES
                .map(|parties| Setting {
                    parties,
                    rows: ALL_ROWS,
                    admm_steps: FEW_STEPS,
                    consensus_steps: Some(FEW_STEPS),
                    ..base
                })
                .into(),
        },
        Sweep {
            title: "dense columns",
            axis: "columns of numbers",
            size: |_, study| study.data.schema.columns().len(),
            exponents: vec![ANY],
            compared: Some([1_000, 3_000]),
            settings: [10, 30, 100, 300, 1_000, 3_000]
                .map(|columns| Setting {
                    table: Table::Dense { columns },
                    rows: DENSE_ROWS,
                    admm_steps: COLUMN_STEPS,
                    consensus_steps: None,
                    ..base
                })
                .into(),
        },
        Sweep {
            title: "one-hot columns",
            axis: "columns of indicators",
            size: |_, study| study.data.schema.columns().len(),
            exponents: vec![ANY],
            compared: Some([1_000, 10_000]),
            settings: [20, 100, 300, 1_000, 3_000, 10_000]
                .map(|columns| Setting {
                    table: Table::OneHot { columns },
                    rows: ONE_HOT_ROWS,
                    admm_steps: COLUMN_STEPS,
                    consensus_steps: None,
                    ..base
                })
                .into(),
        },
        Sweep {
            title: "repetitions",
            axis: "repetitions",
            size: |setting, _| setting.repetitions as usize,
            exponents: vec![LINEAR],
            compared: None,
            settings: [1, 3, 10, 30, 100]
                .map(|repetitions| Setting {
                    repetitions,
                    ..base
                })
                .into(),
        },
    ]
}
