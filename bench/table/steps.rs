//! What a data step and a recycled step cost, and what a general-purpose library takes for the data step's problem.

use linfa::prelude::*;
use linfa_logistic::LogisticRegression;
use ndarray::{Array1, Array2};
use radmm::algorithm::baseline::Local;
use radmm::node::StepKind;
use radmm::privacy::{Mechanism, NoiseDistribution, NoiseScaling};
use radmm_bench::{COLUMNS, FILLED, Neighbourhood, Row, Source, recycled, shard};

use crate::check::Objective;
use crate::clock::{median, timed};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, thousands, times};

const ITERATIONS: u32 = 40;
const COUNTS: [usize; 2] = [10_000, 100_000];

/// Data steps against recycled ones.
pub fn steps() -> Found {
    let measured = COUNTS.map(|count| (count, of_both_kinds(count)));
    let line = |(count, (data, free)): &(usize, (f64, f64))| {
        vec![
            thousands(*count),
            duration(*data),
            duration(*free),
            thousands((data / free) as usize),
        ]
    };
    let (count, (data, free)) = measured[1];
    Found {
        ratios: vec![Ratio {
            work: format!("recycled step against data step, B = {}", thousands(count)),
            ours: duration(free),
            other: format!("{}, a data step", duration(data)),
            ratio: free / data,
            target: Target::AtMost(1e-3),
        }],
        details: vec![Detail {
            title: "Data steps and recycled steps".to_owned(),
            head: vec!["rows", "data step", "recycled step", "data / recycled"],
            lines: measured.iter().map(line).collect(),
            notes: vec![format!(
                "{COLUMNS} columns, {FILLED} non-zeros per row, {} neighbours, C = {}, ρ = {}, gamma noise, residual 10⁻⁸; one \
                 thread, medians of {} steps.",
                Neighbourhood::NEIGHBOURS,
                Neighbourhood::WEIGHT,
                Neighbourhood::RIDGE,
                ITERATIONS / 2,
            )],
        }],
        ..Found::default()
    }
}

/// Median seconds of a data step and of a recycled step.
fn of_both_kinds(count: usize) -> (f64, f64) {
    let gamma = Mechanism::Objective {
        law: NoiseDistribution::Gamma { rate: 2.0 },
        scale: NoiseScaling::Fixed,
    };
    let algorithm = || recycled(1.0, 0.2);
    let mut parties = Neighbourhood::new(shard(count, 1).into(), ITERATIONS, gamma, &algorithm);
    let (mut data, mut free) = (Vec::new(), Vec::new());
    for _ in 0..ITERATIONS {
        parties.iterate(&mut |node, message| {
            let before = node.iteration();
            let (seconds, outputs) = timed(|| node.receive(message).unwrap());
            if node.iteration() > before {
                match node.kind() {
                    StepKind::Data => data.push(seconds),
                    StepKind::Recycled | StepKind::Start => free.push(seconds),
                }
            }
            outputs
        });
    }
    (median(data), median(free))
}

/// One party alone from a cold start, ours and linfa-logistic's L-BFGS on the same problem and rows.
pub fn alone() -> Found {
    let mut lines = Vec::new();
    let mut last = (0.0, 0.0);
    // On dense rows the library takes ten seconds for the larger one.
    for (count, turns) in COUNTS.into_iter().zip([5, 1]) {
        let rows: Vec<Row> = Source::new(1).take(count).collect();
        let theirs = Theirs::new(&rows);
        let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
        let (mut our_norm, mut their_norm) = (0.0, 0.0);
        for _ in 0..turns {
            for _ in 0..3 {
                let (seconds, model) = ours(count);
                our_times.push(seconds);
                our_norm = gradient_norm(&rows, &model);
            }
            let (seconds, model) = timed(|| theirs.fit());
            their_times.push(seconds);
            their_norm = gradient_norm(&rows, &model);
        }
        last = (median(our_times), median(their_times));
        lines.push(vec![
            thousands(count),
            format!("{} ({our_norm:.0e})", duration(last.0)),
            format!("{} ({their_norm:.0e})", duration(last.1)),
            times(last.1 / last.0),
        ]);
    }
    let version = crate::machine::locked("linfa-logistic");
    Found {
        ratios: vec![Ratio {
            work: format!("one party alone, cold start, B = {}", thousands(COUNTS[1])),
            ours: duration(last.0),
            other: format!("{}, linfa-logistic", duration(last.1)),
            ratio: last.1 / last.0,
            target: Target::None,
        }],
        details: vec![Detail {
            title: "One party alone, against linfa-logistic".to_owned(),
            head: vec!["rows", "radmm (gradient norm)", "linfa-logistic (gradient norm)", "ratio"],
            lines,
            notes: vec![
                "`argmin O(f)` from a cold start. linfa-logistic minimises by L-BFGS on dense rows. Its tolerance was a \
                 gradient norm of 10⁻⁸; it stopped at the norm shown."
                    .to_owned(),
            ],
        }],
        versions: vec![("linfa-logistic".to_owned(), version)],
        ..Found::default()
    }
}

/// The ridge of one party.
const MODULUS: f64 = Neighbourhood::RIDGE / (Neighbourhood::NEIGHBOURS + 1) as f64;

fn ours(count: usize) -> (f64, Vec<f64>) {
    let algorithm = || Box::new(Local::new(0.0)) as _;
    let mut parties = Neighbourhood::new(shard(count, 1).into(), 1, Mechanism::None, &algorithm);
    let mut seconds = 0.0;
    parties.iterate(&mut |node, message| {
        let (took, outputs) = timed(|| node.receive(message).unwrap());
        seconds += took;
        outputs
    });
    (seconds, parties.first().model().values().to_vec())
}

struct Theirs {
    dataset: Dataset<f64, bool, ndarray::Ix1>,
    scale: f64,
}

impl Theirs {
    fn new(rows: &[Row]) -> Self {
        let mut dense = Array2::zeros((rows.len(), COLUMNS));
        for (n, (entries, _)) in rows.iter().enumerate() {
            for &(column, value) in entries {
                dense[[n, column as usize]] = value;
            }
        }
        let labels: Vec<bool> = rows.iter().map(|row| row.1).collect();
        Self {
            dataset: Dataset::new(dense, Array1::from(labels)),
            scale: Neighbourhood::WEIGHT / rows.len() as f64,
        }
    }

    fn fit(&self) -> Vec<f64> {
        let fitted = LogisticRegression::default()
            .with_intercept(false)
            .alpha(MODULUS / self.scale)
            .gradient_tolerance(1e-8 / self.scale)
            .max_iterations(10_000)
            .fit(&self.dataset)
            .unwrap();
        // Whichever label the library takes for positive.
        let sign = if fitted.labels().pos.class { 1.0 } else { -1.0 };
        fitted.params().iter().map(|f| sign * f).collect()
    }
}

fn gradient_norm(rows: &[Row], f: &[f64]) -> f64 {
    let objective = Objective {
        rows: &mut rows.iter().map(|(entries, label)| (&entries[..], *label)),
        count: rows.len(),
        weight: Neighbourhood::WEIGHT,
        ridge: MODULUS,
    };
    objective.at(f).1
}
