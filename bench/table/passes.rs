//! One pass over rows, per row and against the speed of memory: on a party of the Adult table, which fits the cache, and on ten million
//! rows in memory, once of the Adult table and once with evenly spread categories. One thread.

use std::hint::black_box;

use radmm::curator::Shard;
use radmm::curator::bench_hooks::{MeasuredRows, VectorUnits};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, thousands, times};
use radmm_bench::{adult_party, adult_shard, model, shard};

use crate::adult::Adult;
use crate::clock::{median, timed};

const MANY: usize = 10_000_000;
const TURNS: usize = 5;
/// The passes that are timed as one over rows in the cache, which take microseconds.
const IN_CACHE_LOOPS: usize = 400;

/// The name of a pass, and the pass at a model.
type Pass = (&'static str, fn(&MeasuredRows, &[f64]) -> f64);

const PASSES: [Pass; 6] = [
    ("margins and losses", MeasuredRows::losses),
    ("margins and gradient", MeasuredRows::gradient),
    (
        "margins of doubled precision and gradient",
        MeasuredRows::exact_gradient,
    ),
    ("margins and Hessian", MeasuredRows::hessian),
    ("Gram matrix", MeasuredRows::gram),
    ("plain sum over the same arrays", |rows, _| rows.plain_sum()),
];
const GRADIENT: usize = 1;
const HESSIAN: usize = 3;
const GRAM: usize = 4;

/// Measures all passes on three kinds of rows.
pub fn passes(adult: &Adult) -> Found {
    // One after the other: two tables of ten million rows need not be in memory at once.
    let party = RowKind::measure("a party of Adult", adult_party(&adult.rows), IN_CACHE_LOOPS);
    let skewed = RowKind::measure(
        "rows of Adult",
        adult_shard(adult.rows.iter().cycle().take(MANY)),
        1,
    );
    let even = RowKind::measure("synthetic rows", shard(MANY, 1), 1);
    let mut found = Found::default();
    for kind in [&party, &skewed, &even] {
        found
            .ratios
            .push(kind.against_gradient(HESSIAN, "Hessian", 3.0));
    }
    for kind in [&party, &skewed, &even] {
        found.ratios.push(kind.against_gradient(GRAM, "Gram", 2.5));
    }
    for kind in [&skewed, &even] {
        found.ratios.push(kind.against_memory());
    }
    found.details.push(detail(&[party, skewed, even]));
    found
}

/// Rows of one kind, with the seconds of each pass over them.
struct RowKind {
    name: &'static str,
    count: usize,
    bytes: usize,
    seconds: [f64; PASSES.len()],
    /// The seconds of sixteen sums side by side over as many bytes.
    at_memory_speed: f64,
}

impl RowKind {
    fn measure(name: &'static str, shard: Shard, loops: usize) -> Self {
        let count = shard.rows();
        let rows = MeasuredRows::new(shard, VectorUnits::Best);
        let bytes = rows.bytes();
        let model = model();
        let as_many_bytes = vec![1.0; bytes / 8];
        let looped = |work: &dyn Fn() -> f64| {
            let (seconds, ()) = timed(|| {
                for _ in 0..loops {
                    black_box(work());
                }
            });
            seconds / loops as f64
        };
        let mut at_memory_speed = Vec::new();
        let mut seconds: [Vec<f64>; PASSES.len()] = Default::default();
        for _ in 0..TURNS {
            for ((_, pass), seconds) in PASSES.iter().zip(&mut seconds) {
                seconds.push(looped(&|| pass(&rows, black_box(&model))));
            }
            at_memory_speed.push(looped(&|| wide_sum(black_box(&as_many_bytes))));
        }
        Self {
            name,
            count,
            bytes,
            seconds: seconds.map(median),
            at_memory_speed: median(at_memory_speed),
        }
    }

    /// Returns the name with the number of rows and the place where they are.
    fn title(&self) -> String {
        match self.count {
            MANY => format!("10⁷ {} in memory", self.name),
            count => format!("{}, {} rows in the cache", self.name, thousands(count)),
        }
    }

    fn against_gradient(&self, pass: usize, pass_name: &str, most: f64) -> Ratio {
        let (ours, gradient) = (self.seconds[pass], self.seconds[GRADIENT]);
        Ratio {
            work: format!("{pass_name} pass against gradient pass, {}", self.title()),
            ours: duration(ours),
            other: format!("{}, a gradient pass", duration(gradient)),
            ratio: ours / gradient,
            target: Target::AtMost(most),
        }
    }

    fn against_memory(&self) -> Ratio {
        let gradient = self.seconds[GRADIENT];
        Ratio {
            work: format!("gradient pass against memory speed, {}", self.title()),
            ours: duration(gradient),
            other: format!(
                "{}, as many bytes in sixteen sums",
                duration(self.at_memory_speed)
            ),
            ratio: gradient / self.at_memory_speed,
            target: Target::AtMost(5.0),
        }
    }

    /// Returns the time per row of a pass, and its ratio to the gradient.
    fn cell(&self, seconds: f64) -> String {
        let per_row = seconds / self.count as f64 * 1e9;
        let ratio = seconds / self.seconds[GRADIENT];
        format!("{per_row:.2} ns ({})", times(ratio))
    }

    /// Returns the speed of sixteen sums over as many bytes, in GB/s.
    fn memory_speed(&self) -> f64 {
        self.bytes as f64 / self.at_memory_speed / 1e9
    }
}

fn detail(kinds: &[RowKind; 3]) -> Detail {
    let line = |name: &str, seconds: &dyn Fn(&RowKind) -> f64| {
        let cells = kinds.iter().map(|kind| kind.cell(seconds(kind)));
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    let mut lines: Vec<Vec<String>> = (0..PASSES.len())
        .map(|pass| line(PASSES[pass].0, &|kind| kind.seconds[pass]))
        .collect();
    lines.push(line("as many bytes of doubles, in sixteen sums", &|kind| {
        kind.at_memory_speed
    }));
    let [party, skewed, even] = kinds;
    Detail {
        title: "Passes over rows".to_owned(),
        head: vec![
            "pass",
            "a party of Adult in the cache",
            "10⁷ rows of Adult in memory",
            "10⁷ synthetic rows in memory",
        ],
        lines,
        notes: vec![format!(
            "Time per row, and relative to the gradient; one thread, medians of {TURNS}. The party is one of twenty, as in the \
             comparison with NumPy. The ten million rows of Adult are its 45,222 rows again and again: their categories are \
             skewed, so that an addition often waits for the one before, to the same cell. Those of synthetic rows are evenly \
             spread. Rows take {:.0} bytes each. The plain sum adds numbers in order, and each addition waits for the one before. Sixteen \
             sums side by side are as fast as memory: {:.0} and {:.0} GB/s, and {:.0} GB/s in the cache.",
            even.bytes as f64 / even.count as f64,
            skewed.memory_speed(),
            even.memory_speed(),
            party.memory_speed(),
        )],
    }
}

/// Adds numbers as fast as memory delivers them: a plain sum waits for each addition before the next, this one for none.
fn wide_sum(numbers: &[f64]) -> f64 {
    let mut sums = [0.0; 16];
    for sixteen in numbers.chunks_exact(16) {
        for (sum, number) in sums.iter_mut().zip(sixteen) {
            *sum += number;
        }
    }
    sums.iter().sum()
}
