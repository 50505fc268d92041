//! Sweeps: studies that differ in one size, and the time of each.

use radmm_bench::power_law::Timing;
use radmm_bench::report::duration;
use radmm_lab::Experiment;
use radmm_study::Study;

use crate::clock::median_within;
use crate::table_file::Table;

/// The largest number of runs at one size, and the seconds after which no more are made.
const RUNS: usize = 5;
const PATIENCE: f64 = 1.5;
/// The seconds that a run may take, as extrapolated from the size before. A curve ends at the first size that would take longer.
const LONGEST: f64 = 25.0;

/// The algorithms that are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// R-ADMM, with one recycled step for each data step.
    RAdmm,
    /// Recycling to consensus.
    Consensus,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RAdmm, Self::Consensus];

    /// Returns its name in tables and legends.
    pub fn name(self) -> &'static str {
        match self {
            Self::RAdmm => "R-ADMM",
            Self::Consensus => "consensus",
        }
    }
}

/// One study of a sweep.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The kind of rows.
    pub table: Table,
    /// The number of rows of all parties together.
    pub rows: usize,
    /// The number of parties.
    pub parties: u32,
    /// The data steps of R-ADMM.
    pub admm_steps: u32,
    /// The gradients of consensus; `None` leaves their number to the public rule.
    pub consensus_steps: Option<u32>,
    /// The number of repetitions.
    pub repetitions: u32,
}

/// Studies that differ in one size.
pub struct Sweep {
    /// The size that differs, and the sizes that do not.
    pub title: &'static str,
    /// The label of the horizontal axis.
    pub axis: &'static str,
    /// The size of a study.
    pub size: fn(&Setting, &Study) -> usize,
    /// The sizes over which exponents are fitted.
    pub exponents: Vec<ExponentRange>,
    /// A smaller and a larger size, where the smaller one should not take longer.
    pub compared: Option<[usize; 2]>,
    /// The studies by ascending size.
    pub settings: Vec<Setting>,
}

/// Sizes over which an exponent is fitted.
#[derive(Clone, Copy)]
pub struct ExponentRange {
    /// The largest of these sizes.
    pub largest: usize,
    /// The largest exponent, where there is a target.
    pub most: Option<f64>,
}

/// The times of one algorithm along a sweep.
pub struct Curve {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The sizes with their times.
    pub timings: Vec<Timing>,
    /// The first size that would take too long, if there is one.
    pub ended_before: Option<f64>,
}

impl Curve {
    /// Returns the seconds at a size.
    pub fn at(&self, size: usize) -> Option<f64> {
        let found = self.timings.iter().find(|timing| timing.0 == size as f64);
        found.map(|timing| timing.1)
    }

    /// Returns the seconds at a larger size, if time grows in proportion to it.
    fn extrapolated(&self, size: f64) -> f64 {
        let last = self.timings.last();
        last.map_or(0.0, |(before, seconds)| seconds * size / before)
    }

    /// Returns the timings up to a size.
    pub fn up_to(&self, largest: usize) -> &[Timing] {
        let count = self
            .timings
            .partition_point(|timing| timing.0 <= largest as f64);
        &self.timings[..count]
    }
}

impl Sweep {
    /// Measures all algorithms at all sizes.
    pub fn measure(&self) -> Vec<Curve> {
        let mut curves = Algorithm::ALL.map(|algorithm| Curve {
            algorithm,
            timings: Vec::new(),
            ended_before: None,
        });
        for setting in &self.settings {
            let table = setting.table.write(setting.rows);
            let study = |algorithm| table.study(&setting.sections(algorithm));
            // Both algorithms have the same rows, which are read once.
            let rows = Experiment::prepare(study(Algorithm::RAdmm), table.folder()).unwrap();
            for curve in &mut curves {
                let study = study(curve.algorithm);
                let size = (self.size)(setting, &study) as f64;
                if curve.ended_before.is_some() || curve.extrapolated(size) > LONGEST {
                    curve.ended_before.get_or_insert(size);
                    continue;
                }
                let seconds = median_within(RUNS, PATIENCE, || run(&rows, &study));
                let name = curve.algorithm.name();
                eprintln!("  {}: {size}, {name}: {}", self.title, duration(seconds));
                curve.timings.push((size, seconds));
            }
        }
        curves.into()
    }
}

/// Runs a study as `radmm run --no-baselines` does once the rows are read.
fn run(rows: &Experiment, study: &Study) {
    let experiment = rows.on_same_rows(study.clone()).unwrap();
    let outcome = experiment.without_baselines().run(None, &|_| ()).unwrap();
    let stopped = outcome
        .repetitions
        .iter()
        .find_map(|run| run.stopped.as_ref());
    assert!(stopped.is_none(), "{stopped:?}");
}

impl Setting {
    /// The study of which one size is varied: the Adult table at five parties.
    pub const BASE: Self = Self {
        table: Table::Adult,
        rows: 45_222,
        parties: 5,
        admm_steps: 10,
        consensus_steps: Some(10),
        repetitions: 1,
    };

    /// Returns all sections of the study but `[data]`. Whatever they leave out is chosen by public rules.
    pub fn sections(&self, algorithm: Algorithm) -> String {
        let (name, loss) = match algorithm {
            Algorithm::RAdmm => ("r-admm", "logistic"),
            Algorithm::Consensus => ("consensus", "smooth-hinge"),
        };
        let steps = match (algorithm, self.consensus_steps) {
            // Each data step has a recycled one.
            (Algorithm::RAdmm, _) => format!("iterations = {}\n", 2 * self.admm_steps),
            (Algorithm::Consensus, Some(steps)) => format!("steps = {steps}\n"),
            (Algorithm::Consensus, None) => String::new(),
        };
        format!(
            "[network]\nnodes = {}\ntopology = \"random-regular\"\ndegree = 4\nseed = 1\n[problem]\nloss = \"{loss}\"\n\
             [algorithm]\nname = \"{name}\"\n{steps}[privacy]\nepsilon = 5.0\ndelta = 1e-6\n\
             [run]\nrepetitions = {}\nseed = 1\n",
            self.parties, self.repetitions
        )
    }
}
