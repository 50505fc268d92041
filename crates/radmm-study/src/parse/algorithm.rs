//! `[algorithm]`: how the objective is minimised.

use radmm::algorithm::schedule::Schedule;

use super::entry::{Entry, NON_NEGATIVE, POSITIVE, Range};
use super::reader::Section;
use super::schedule::{self, Role};
use crate::algorithm::{AlgorithmInfo, REGISTRY};
use crate::error::{Note, StudyError};
use crate::{AlgorithmSection, Start};

const KEYS: [&str; 10] = [
    "name",
    "iterations",
    "recycle",
    "penalty",
    "damping",
    "dual_step",
    "step",
    "extra_ridge",
    "start",
    "tolerance",
];

/// The keys of every algorithm.
const COMMON: [&str; 4] = ["name", "iterations", "start", "tolerance"];

/// The `tolerance`, unless given.
pub(crate) const DEFAULT_TOLERANCE: f64 = 1e-10;
/// The largest `tolerance`.
pub(crate) const MAX_TOLERANCE: f64 = 1e-3;

const TOLERANCE: Range = Range {
    holds: |x| x > 0.0 && x <= MAX_TOLERANCE,
    needed: "above 0 and at most 0.001",
};

pub(crate) fn read(
    top: &Section<'_>,
    nodes: u32,
    notes: &mut Vec<Note>,
) -> Result<AlgorithmSection, StudyError> {
    let section = top.section("algorithm", &KEYS)?;
    let name = section.required("name", "which algorithm, such as \"r-admm\"")?;
    let choices: Vec<(&str, &AlgorithmInfo)> =
        REGISTRY.iter().map(|info| (info.name, info)).collect();
    let info = name.choice(&choices)?;
    let iterations = section
        .required(
            "iterations",
            "the number of iterations, an integer from 1 to 1000000",
        )?
        .integer(1..=1_000_000)?;
    let start = section.optional("start", start)?;
    let tolerance = section.optional("tolerance", |entry| entry.number(TOLERANCE))?;

    let parameters = Parameters {
        section: &section,
        iterations,
        nodes,
    };
    let own = info.parameters.iter().map(|parameter| parameter.key);
    let used: Vec<&str> = COMMON.into_iter().chain(own).collect();
    for key in KEYS.iter().filter(|key| !used.contains(key)) {
        section.optional(key, |entry| parameters.check(entry))?;
    }
    section.note_all_but(&used, info.name, notes);

    Ok(AlgorithmSection {
        method: (info.parse)(&parameters)?,
        iterations,
        start: start.unwrap_or(Start::Zeros),
        tolerance: tolerance.unwrap_or(DEFAULT_TOLERANCE),
    })
}

fn start(entry: &Entry<'_>) -> Result<Start, StudyError> {
    if entry.is_table() {
        let table = entry.inline(&["normal"])?;
        let deviation = table.required("normal", "the standard deviation, a positive number")?;
        return Ok(Start::Normal(deviation.number(POSITIVE)?));
    }
    match entry.string() {
        Ok("zeros") => Ok(Start::Zeros),
        _ => Err(entry.wrong("must be \"zeros\" or a table such as { normal = 0.1 }")),
    }
}

/// The keys that only some algorithms have.
pub(crate) struct Parameters<'a> {
    section: &'a Section<'a>,
    iterations: u32,
    nodes: u32,
}

impl Parameters<'_> {
    /// A schedule that all nodes share.
    pub(crate) fn schedule(&self, key: &str) -> Result<Schedule, StudyError> {
        let (entry, role) = self.scheduled(key)?;
        schedule::one(&entry, role, self.iterations)
    }

    /// A schedule for every node.
    pub(crate) fn schedules(&self, key: &str) -> Result<Vec<Schedule>, StudyError> {
        let (entry, role) = match self.scheduled(key)? {
            (entry, Role::Penalty) => (entry, Role::RisingPenalty),
            other => other,
        };
        schedule::each(&entry, role, self.iterations, self.nodes)
    }

    fn scheduled(&self, key: &str) -> Result<(Entry<'_>, Role), StudyError> {
        let (role, meaning) = match key {
            "penalty" => (Role::Penalty, "the penalty η, a positive number"),
            "damping" => (Role::Damping, "the damping γ, a number of at least 0"),
            _ => (Role::Step, "the step s, a positive number"),
        };
        Ok((self.section.required(key, meaning)?, role))
    }

    /// The recycled steps a data step, one unless given.
    pub(crate) fn count(&self, key: &str) -> Result<u32, StudyError> {
        Ok(self.section.optional(key, recycle)?.unwrap_or(1))
    }

    /// A number.
    pub(crate) fn number(&self, key: &str) -> Result<f64, StudyError> {
        if key == "dual_step" {
            return self.dual_step(key);
        }
        let given = self
            .section
            .optional(key, |entry| entry.number(NON_NEGATIVE))?;
        Ok(given.unwrap_or(0.0))
    }

    /// `θ`, at most every penalty. Penalties do not decrease, so that the first iteration decides.
    fn dual_step(&self, key: &str) -> Result<f64, StudyError> {
        let penalties = self.schedules("penalty")?;
        let least = penalties
            .iter()
            .map(|penalty| penalty.at(1))
            .fold(f64::INFINITY, f64::min);
        let given = self.section.optional(key, |entry| {
            let theta = entry.number(POSITIVE)?;
            if theta > least {
                return Err(entry.wrong(format!(
                    "must be at most {least}, the smallest penalty at iteration 1"
                )));
            }
            Ok(theta)
        })?;
        Ok(given.unwrap_or(least))
    }

    /// Checks a key that the algorithm at hand does not use, as the most lenient of the others would.
    fn check(&self, entry: &Entry<'_>) -> Result<(), StudyError> {
        let each = |role| schedule::each(entry, role, self.iterations, self.nodes);
        match entry.name {
            "penalty" => each(Role::Penalty).map(drop),
            "damping" => each(Role::Damping).map(drop),
            "step" => schedule::one(entry, Role::Step, self.iterations).map(drop),
            "dual_step" => entry.number(POSITIVE).map(drop),
            "extra_ridge" => entry.number(NON_NEGATIVE).map(drop),
            "recycle" => recycle(entry).map(drop),
            _ => Ok(()),
        }
    }
}

fn recycle(entry: &Entry<'_>) -> Result<u32, StudyError> {
    entry.integer(0..=1000)
}
