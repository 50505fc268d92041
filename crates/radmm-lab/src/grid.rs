//! Comparison of all combinations of a grid of keys: the same rows, and equal totals.
//!
//! Where the grid is over the total itself, there is a comparison for each total, with baselines of its own: within it, everybody
//! still spends the same.

use std::collections::BTreeMap;

use radmm::sim::Snapshot;
use radmm_study::number_format::count;
use radmm_study::statement_text::Program;
use radmm_study::{GridAxis, Noise, Override, Study};
use serde::Serialize;
use thiserror::Error;

use crate::candidate::CandidateResult;
use crate::compare::{CompareError, Comparison, ComparisonOptions, ComparisonResult, unique};
use crate::experiment::Experiment;
use crate::instantiate::RunError;
use crate::prior_methods::PriorMethod;

/// The most combinations of a grid.
const MOST_COMBINATIONS: usize = 1000;

/// The keys that are totals.
const TOTALS: [[&str; 2]; 2] = [["privacy", "epsilon"], ["privacy", "delta"]];

/// The keys of noise that a comparison chooses itself.
const NOISE: [&[&str]; 3] = [
    &["privacy", "rate"],
    &["privacy", "sigma"],
    &["privacy", "bound"],
];

/// The keys that all studies of a comparison have in common.
const COMMON: [&[&str]; 6] = [
    &["name"],
    &["data"],
    &["parties"],
    &["network", "nodes"],
    &["problem", "loss"],
    &["run"],
];

/// One combination of a grid: a study with these keys set.
pub struct GridCell {
    /// The study.
    pub study: Study,
    /// The keys that were set.
    pub settings: Vec<Override>,
}

/// The settings that all combinations have in common.
pub struct GridOptions<'a> {
    /// Prior methods, made from the first combination at each total.
    pub prior_methods: &'a [PriorMethod],
    /// The total ε, unless the grid is over it; by default that of the first study that has noise.
    pub epsilon: Option<f64>,
    /// δ, unless the grid is over it; by default the largest of the studies'.
    pub delta: Option<f64>,
    /// The number of runs of each combination; by default that of the first study.
    pub repetitions: Option<u32>,
}

/// The combinations of a grid, ready to be compared.
pub struct GridComparison {
    axes: Vec<GridAxis>,
    /// The settings of each candidate, by its name.
    cells: BTreeMap<String, BTreeMap<String, String>>,
    combinations: usize,
    comparisons: Vec<Comparison>,
}

/// The result of a grid.
#[derive(Serialize)]
pub struct GridResult {
    program: Program,
    grid: Vec<AxisJson>,
    /// The number of different studies at different totals.
    pub combinations: usize,
    /// A sentence on the cost of choosing the best combination, which no ε has; none for a single one.
    pub caveat: Option<String>,
    /// The keys that each candidate of the grid has, as an override has them.
    cells: BTreeMap<String, BTreeMap<String, String>>,
    /// The comparisons, one for each total.
    pub totals: Vec<GridTotal>,
}

#[derive(Serialize)]
struct AxisJson {
    key: String,
    values: Vec<String>,
}

/// The combinations at one total.
#[derive(Serialize)]
pub struct GridTotal {
    /// The most accurate combination, if one ran to its end.
    pub best: Option<BestCombination>,
    /// The comparison at this total.
    #[serde(flatten)]
    pub result: ComparisonResult,
}

/// The most accurate combination at a total: on held-out rows if there are any, else on all training rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestCombination {
    /// The candidate's name.
    pub name: String,
    /// The mean accuracy.
    pub accuracy: f64,
    /// The standard error of that mean; `None` for a single run.
    pub standard_error: Option<f64>,
    /// The combinations that differ from it by no more than two standard errors of the difference.
    pub as_good: Vec<String>,
}

/// The reason why the combinations of a grid cannot be compared.
#[derive(Debug, Error)]
pub enum GridError {
    /// A key of the noise that a comparison chooses itself.
    #[error(
        "{0}: compare finds the noise for a total itself; give totals, as in --grid privacy.epsilon=0.5,1,2, or run each value with radmm run --set and make one table with radmm collect"
    )]
    Noise(String),
    /// A key that all studies of a comparison have in common.
    #[error(
        "{0}: studies are compared on the same rows, with the same parties, loss and seed; run each value with radmm run --set, and make one table with radmm collect"
    )]
    Common(String),
    /// A total that is given as an option, too.
    #[error("{given}: {option} gives one value for all; keep one of the two")]
    TwoTotals {
        /// The argument of the grid.
        given: String,
        /// The option.
        option: &'static str,
    },
    /// There are too many combinations.
    #[error(
        "--grid: {0} combinations are too many, the limit is {MOST_COMBINATIONS}; run them with radmm run --set, and make one table with radmm collect"
    )]
    TooMany(usize),
    /// The studies cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
}

impl GridComparison {
    /// Checks the axes of a grid, before any study is read.
    pub fn check(axes: &[GridAxis], options: &GridOptions<'_>) -> Result<(), GridError> {
        for axis in axes {
            let first = &axis.values()[0];
            let path: Vec<&str> = first.path().iter().map(String::as_str).collect();
            let given = || first.given().to_owned();
            // A section is given as a whole if one of these keys is in it.
            let overlaps = |key: &&[&str]| key.iter().zip(&path).all(|(a, b)| a == b);
            if COMMON.iter().any(overlaps) {
                return Err(GridError::Common(given()));
            }
            if NOISE.iter().any(overlaps) {
                return Err(GridError::Noise(given()));
            }
            let options = [
                ("--epsilon", options.epsilon.is_some()),
                ("--delta", options.delta.is_some()),
            ];
            for (total, (option, is_given)) in TOTALS.iter().zip(options) {
                if is_given && path == total {
                    let given = given();
                    return Err(GridError::TwoTotals { given, option });
                }
            }
        }
        let combinations = axes.iter().map(|axis| axis.values().len()).product();
        match combinations {
            few if few <= MOST_COMBINATIONS => Ok(()),
            many => Err(GridError::TooMany(many)),
        }
    }

    /// Calibrates the noise of all combinations, of which there is at least one, on the rows of `first`. Combinations that are the same study, since a key has no
    /// effect on it, are one.
    pub fn new(
        first: &Experiment,
        axes: Vec<GridAxis>,
        cells: Vec<GridCell>,
        options: &GridOptions<'_>,
    ) -> Result<Self, GridError> {
        let several = cells
            .iter()
            .any(|cell| cell.study.name != cells[0].study.name);
        let mut grid = Self {
            axes,
            cells: BTreeMap::new(),
            combinations: 0,
            comparisons: Vec::new(),
        };
        for cells in by_total(cells) {
            grid.combinations += cells.len();
            let one = &cells[0];
            let epsilon = match one.study.privacy.noise {
                Noise::Total(total) if one.sets(TOTALS[0]) => Some(total.epsilon),
                _ => options.epsilon,
            };
            let delta = match one.sets(TOTALS[1]) {
                true => Some(one.study.privacy.delta),
                false => options.delta,
            };
            let names = unique(cells.iter().map(|cell| grid.name(cell, several)));
            let mut studies = Vec::new();
            for (name, mut cell) in names.into_iter().zip(cells) {
                let settings = cell.own_settings();
                let settings = settings.map(|one| (one.key(), one.value().to_owned()));
                grid.cells.insert(name.clone(), settings.collect());
                cell.study.name = name;
                studies.push(cell.study);
            }
            let base = studies.remove(0);
            let name = base.name.clone();
            let base = first
                .on_same_rows(base)
                .map_err(|cause| CompareError::Graph { study: name, cause })?;
            grid.comparisons.push(Comparison::new(
                base,
                ComparisonOptions {
                    others: studies,
                    prior_methods: options.prior_methods,
                    epsilon,
                    delta,
                    repetitions: options.repetitions,
                },
            )?);
        }
        Ok(grid)
    }

    /// Returns the name of a combination: its keys, or the study's name if it has none.
    fn name(&self, cell: &GridCell, several: bool) -> String {
        let last = |path: &[String]| path.last().cloned().unwrap_or_default();
        let label = |one: &Override| {
            let same = |axis: &&GridAxis| last(axis.values()[0].path()) == last(one.path());
            let key = match self.axes.iter().filter(same).count() {
                1 => last(one.path()),
                _ => one.key(),
            };
            format!("{key}={}", one.value().trim_matches('"'))
        };
        let labels: Vec<String> = cell.own_settings().map(label).collect();
        let study = &cell.study.name;
        match (labels.join(", "), several) {
            (label, _) if label.is_empty() => study.clone(),
            (label, false) => label,
            (label, true) => format!("{study}, {label}"),
        }
    }

    /// Returns the comparisons, one for each total.
    pub fn comparisons(&self) -> &[Comparison] {
        &self.comparisons
    }

    /// Returns an upper bound on the number of calls of `progress`.
    pub fn progress_steps(&self) -> u64 {
        self.comparisons
            .iter()
            .map(Comparison::progress_steps)
            .sum()
    }

    /// Runs all combinations, and the baselines once for each total.
    pub fn run(&self, progress: &(dyn Fn(&Snapshot) + Sync)) -> Result<GridResult, RunError> {
        let measure = |comparison: &Comparison| {
            let result = comparison.run(progress)?;
            let best = best(&result, &self.cells);
            Ok(GridTotal { best, result })
        };
        let totals: Result<Vec<_>, RunError> = self.comparisons.iter().map(measure).collect();
        let axis = |axis: &GridAxis| AxisJson {
            key: axis.key(),
            values: axis
                .values()
                .iter()
                .map(|one| one.value().to_owned())
                .collect(),
        };
        Ok(GridResult {
            program: Program::THIS,
            grid: self.axes.iter().map(axis).collect(),
            combinations: self.combinations,
            caveat: (self.combinations > 1).then(|| caveat(self.combinations)),
            cells: self.cells.clone(),
            totals: totals?,
        })
    }
}

/// Returns what a choice among combinations costs.
// Privacy: a choice by results on the rows is a release about them. Its price depends on how it is made, and no ledger has it.
fn caveat(combinations: usize) -> String {
    format!(
        "the best of {} is chosen by what all of them show on these rows: that is tuning, whose price is in no ε here. Between real \
         parties each of them would be charged in full. What is chosen for its accuracy is on average less accurate on new rows. \
         Where rows are to be protected, choose on public ones, or leave the keys to the rules",
        count(combinations, "combination", "combinations")
    )
}

impl GridCell {
    fn sets(&self, key: [&str; 2]) -> bool {
        self.settings.iter().any(|one| one.path() == key)
    }

    /// Returns the keys that are no totals.
    fn own_settings(&self) -> impl Iterator<Item = &Override> {
        self.settings.iter().filter(|one| !is_total(one))
    }

    /// Returns the totals that the grid gives.
    fn totals(&self) -> Vec<&Override> {
        self.settings.iter().filter(|one| is_total(one)).collect()
    }
}

fn is_total(setting: &Override) -> bool {
    TOTALS.iter().any(|key| setting.path() == key)
}

/// Returns the cells of each total, in the order of the first of each. Of cells with the same study one is left, with the keys that
/// all of them have.
fn by_total(cells: Vec<GridCell>) -> Vec<Vec<GridCell>> {
    let mut groups: Vec<Vec<GridCell>> = Vec::new();
    for cell in cells {
        let group = groups
            .iter_mut()
            .find(|group| group[0].totals() == cell.totals());
        let Some(group) = group else {
            groups.push(vec![cell]);
            continue;
        };
        let canonical = cell.study.canonical();
        let same = group
            .iter_mut()
            .find(|other| other.study.canonical() == canonical);
        match same {
            Some(other) => other.settings.retain(|one| cell.settings.contains(one)),
            None => group.push(cell),
        }
    }
    groups
}

/// Returns the most accurate candidate of the grid.
fn best(
    result: &ComparisonResult,
    cells: &BTreeMap<String, BTreeMap<String, String>>,
) -> Option<BestCombination> {
    let racing = result.racing();
    let mut racing = racing
        .into_iter()
        .filter(|one| cells.contains_key(&one.name));
    let first = racing.next()?;
    let square =
        |one: &CandidateResult| one.accuracy_shown().deviation.powi(2) / one.repetitions as f64;
    let accuracy = first.accuracy_shown().mean;
    let as_good = |one: &&CandidateResult| {
        let error = (square(first) + square(one)).sqrt();
        first.repetitions > 1 && accuracy - one.accuracy_shown().mean <= 2.0 * error
    };
    Some(BestCombination {
        name: first.name.clone(),
        accuracy,
        standard_error: (first.repetitions > 1).then(|| square(first).sqrt()),
        as_good: racing.filter(as_good).map(|one| one.name.clone()).collect(),
    })
}
