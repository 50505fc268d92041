//! One pass over ten million rows in memory, against a plain sum over the arrays that hold them. One thread.

use std::hint::black_box;

use radmm::curator::bench_hooks::{MeasuredRows, VectorUnits};
use radmm_bench::{model, shard};

use crate::clock::{median, timed};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, thousands, times};

const ROWS: usize = 10_000_000;
const TURNS: usize = 5;

/// What is done to the rows, and what it is called.
type Pass = (&'static str, fn(&MeasuredRows, &[f64]) -> f64);

const PASSES: [Pass; 6] = [
    ("plain sum over the same arrays", |rows, _| rows.plain_sum()),
    ("margins and losses", MeasuredRows::losses),
    ("margins and gradient", MeasuredRows::gradient),
    (
        "margins of doubled precision and gradient",
        MeasuredRows::exact_gradient,
    ),
    ("margins and Hessian", MeasuredRows::hessian),
    ("Gram matrix", MeasuredRows::gram),
];

/// As fast as memory gives them: a plain sum waits for each addition before the next, this one for none.
fn wide_sum(numbers: &[f64]) -> f64 {
    let mut sums = [0.0; 16];
    for sixteen in numbers.chunks_exact(16) {
        for (sum, number) in sums.iter_mut().zip(sixteen) {
            *sum += number;
        }
    }
    sums.iter().sum()
}

/// All passes, in turns.
pub fn passes() -> Found {
    let rows = MeasuredRows::new(shard(ROWS, 1), VectorUnits::Best);
    let model = model();
    let as_many_bytes = vec![1.0; rows.bytes() / 8];
    let mut at_memory_speed = Vec::new();
    let mut measured: [Vec<f64>; PASSES.len()] = Default::default();
    for _ in 0..TURNS {
        for ((_, pass), seconds) in PASSES.iter().zip(&mut measured) {
            seconds.push(timed(|| black_box(pass(&rows, &model))).0);
        }
        at_memory_speed.push(timed(|| black_box(wide_sum(&as_many_bytes))).0);
    }
    let seconds = measured.map(median);
    let fastest = median(at_memory_speed);
    let [sum, _, gradient, _, hessian, gram] = seconds;
    let line = |name: &str, seconds: f64| {
        vec![
            name.to_owned(),
            duration(seconds),
            format!("{:.2} ns", seconds / ROWS as f64 * 1e9),
            format!("{:.1} GB/s", rows.bytes() as f64 / seconds / 1e9),
            times(seconds / sum),
        ]
    };
    let names = PASSES.iter().map(|pass| pass.0);
    let all = names
        .zip(seconds)
        .chain([("as many bytes of doubles, in sixteen sums", fastest)]);
    let lines = all.map(|(name, seconds)| line(name, seconds)).collect();
    let work = "margins-plus-gradient pass over 10⁷ rows in memory, one thread";
    Found {
        ratios: vec![
            Ratio {
                work: work.to_owned(),
                ours: duration(gradient),
                other: format!("{}, a plain sum over the same arrays", duration(sum)),
                ratio: gradient / sum,
                target: Target::AtMost(3.0),
            },
            Ratio {
                work: format!("{work}, at memory speed"),
                ours: duration(gradient),
                other: format!("{}, as many bytes in sixteen sums", duration(fastest)),
                ratio: gradient / fastest,
                target: Target::None,
            },
            Ratio {
                work: "Gram pass against Hessian pass over 10⁷ rows in memory, one thread"
                    .to_owned(),
                ours: duration(gram),
                other: format!("{}, a Hessian pass", duration(hessian)),
                ratio: gram / hessian,
                target: Target::AtMost(1.2),
            },
        ],
        details: vec![Detail {
            title: "Passes over rows in memory".to_owned(),
            head: vec![
                "pass",
                "time",
                "per row",
                "rows read at",
                "relative to a plain sum",
            ],
            lines,
            notes: vec![format!(
                "{} rows of {:.1} bytes each, one thread, medians of {TURNS}. The plain sum adds numbers in order, and each \
                 addition waits for the one before. Sixteen sums side by side are as fast as memory.",
                thousands(ROWS),
                rows.bytes() as f64 / ROWS as f64
            )],
        }],
        ..Found::default()
    }
}
