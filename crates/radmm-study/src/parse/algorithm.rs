//! `[algorithm]`: how the objective is minimised.

use radmm::algorithm::consensus::period;
use radmm::algorithm::schedule::Schedule;
use radmm::graph::{Graph, SpanningTree};
use radmm::protocol::metric::MAX_METRIC_COLUMNS;
use radmm_data::Schema;

use super::entry::{Entry, NON_NEGATIVE, POSITIVE, Range};
use super::privacy::FAMILIES;
use super::reader::Section;
use super::schedule::{self, Role};
use crate::algorithm::{AlgorithmInfo, AutoNumber, METRICS, MetricKind, REGISTRY};
use crate::error::{Note, StudyError};
use crate::{AlgorithmSection, NetworkSection, NoiseFamily, Start};

const KEYS: [&str; 15] = [
    "name",
    "iterations",
    "recycle",
    "penalty",
    "damping",
    "dual_step",
    "step",
    "extra_ridge",
    "metric",
    "metric_share",
    "metric_ridge",
    "steps",
    "momentum",
    "start",
    "tolerance",
];

/// The keys of every algorithm.
const COMMON: [&str; 4] = ["name", "iterations", "start", "tolerance"];

/// The largest number of iterations.
const MAX_ITERATIONS: u32 = 1_000_000;

const MOMENTUM: Range = Range {
    holds: |x| (0.0..1.0).contains(&x),
    needed: "at least 0 and below 1",
};

const SHARE: Range = Range {
    holds: |x| x > 0.0 && x < 1.0,
    needed: "above 0 and below 1: the share of the budget that the metric takes",
};

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
    network: &NetworkSection,
    schema: &Schema,
    notes: &mut Vec<Note>,
) -> Result<AlgorithmSection, StudyError> {
    let section = top.section("algorithm", &KEYS)?;
    let name = section.required("name", "which algorithm, such as \"r-admm\"")?;
    let choices: Vec<(&str, &AlgorithmInfo)> =
        REGISTRY.iter().map(|info| (info.name, info)).collect();
    let info = name.choice(&choices)?;
    let given = section.optional("iterations", |entry| entry.integer(1..=MAX_ITERATIONS))?;
    let needed = format!("the number of iterations, an integer from 1 to {MAX_ITERATIONS}");
    let iterations = match (given, info.counts_iterations) {
        (Some(given), _) => given,
        (None, true) => 1,
        (None, false) => return Err(section.missing("iterations", &needed)),
    };
    let start = section.optional("start", start)?;
    let tolerance = section.optional("tolerance", |entry| entry.number(TOLERANCE))?;

    let parameters = Parameters {
        section: &section,
        iterations,
        nodes: network.nodes,
        columns: schema.columns().len(),
        family: family(top)?,
    };
    let own = info.parameters.iter().map(|parameter| parameter.key);
    let used: Vec<&str> = COMMON.into_iter().chain(own).collect();
    for key in KEYS.iter().filter(|key| !used.contains(key)) {
        section.optional(key, |entry| parameters.check(entry))?;
    }
    section.note_all_but(&used, info.name, notes);

    let method = (info.parse)(&parameters)?;
    let iterations = match method.data_steps() {
        Some(data_steps) => tree_iterations(&section, network, data_steps)?,
        None => iterations,
    };
    if let (true, Some(entry)) = (info.counts_iterations, section.get("start"))
        && start != Some(Start::Zeros)
    {
        return Err(entry.wrong("must be \"zeros\": all parties begin at the same point"));
    }
    Ok(AlgorithmSection {
        method,
        iterations,
        start: start.unwrap_or(Start::Zeros),
        tolerance: tolerance.unwrap_or(DEFAULT_TOLERANCE),
    })
}

/// Returns the number of iterations of sums along the network's spanning tree. The file may state it.
fn tree_iterations(
    section: &Section<'_>,
    network: &NetworkSection,
    data_steps: u32,
) -> Result<u32, StudyError> {
    let nodes = network.nodes as usize;
    let graph = Graph::new(&network.topology, nodes);
    // A graph that cannot be built is reported when it is needed.
    let depth = graph.map_or(1, |graph| SpanningTree::of(&graph).depth());
    let computed = u64::from(data_steps) * u64::from(period(depth));
    let iterations = u32::try_from(computed).ok();
    match (
        iterations.filter(|all| *all <= MAX_ITERATIONS),
        section.get("iterations"),
    ) {
        (Some(computed), None) => Ok(computed),
        (Some(computed), Some(entry)) if entry.integer(1..=MAX_ITERATIONS) == Ok(computed) => {
            Ok(computed)
        }
        (Some(computed), Some(entry)) => Err(entry.wrong(format!(
            "follows from steps and the network and is {computed}; leave it out"
        ))),
        (None, _) => {
            let entry = section.required("steps", "an integer")?;
            Err(entry.wrong(format!(
                "takes {computed} iterations on this network, and {MAX_ITERATIONS} is the limit"
            )))
        }
    }
}

/// Returns the family of noise in `[privacy]`, which is read and checked after the algorithm; `None` without noise.
fn family(top: &Section<'_>) -> Result<Option<NoiseFamily>, StudyError> {
    let section = top.open_section("privacy")?;
    let named = section.get("noise").and_then(|entry| entry.string().ok());
    let by_name = FAMILIES.iter().find(|(name, _)| Some(*name) == named);
    let by_default = match (section.get("delta"), section.entries().is_empty()) {
        (_, true) => None,
        (Some(_), _) => Some(NoiseFamily::Gaussian),
        (None, _) => Some(NoiseFamily::Gamma),
    };
    Ok(by_name.map(|(_, family)| *family).or(by_default))
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
    columns: usize,
    family: Option<NoiseFamily>,
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

    /// The number of gradients, or the recycled steps a data step: by rule, or one, unless given.
    pub(crate) fn count(&self, key: &str) -> Result<u32, StudyError> {
        if key == "steps" {
            let given = self.section.optional(key, steps)?;
            return Ok(given.unwrap_or(self.metric()?.steps_by_rule()));
        }
        Ok(self.section.optional(key, recycle)?.unwrap_or(1))
    }

    /// A number.
    pub(crate) fn number(&self, key: &str) -> Result<f64, StudyError> {
        if key == "dual_step" {
            return self.dual_step(key);
        }
        if key == "metric_share" {
            let metric = self.metric()?;
            let given = self.section.optional(key, |entry| entry.number(SHARE))?;
            return Ok(match metric {
                MetricKind::None => 0.0,
                _ => given.unwrap_or(metric.share_by_rule()),
            });
        }
        let given = self
            .section
            .optional(key, |entry| entry.number(NON_NEGATIVE))?;
        Ok(given.unwrap_or(0.0))
    }

    /// A number, or `"auto"`, which is also the default.
    pub(crate) fn auto_number(&self, key: &str) -> Result<AutoNumber, StudyError> {
        let given = self
            .section
            .optional(key, |entry| auto_number(entry, key))?;
        Ok(given.unwrap_or_default())
    }

    /// The metric, by rule unless given.
    pub(crate) fn metric(&self) -> Result<MetricKind, StudyError> {
        let by_rule = MetricKind::by_rule(self.family, self.columns);
        let given = self.section.optional("metric", |entry| {
            let metric = metric(entry)?;
            if metric == Some(MetricKind::Gram) && self.family == Some(NoiseFamily::Laplace) {
                return Err(entry.wrong(
                    "makes rows dense, and laplace noise is for sparse rows; use \"mean\" or \"none\", or gamma noise",
                ));
            }
            if metric == Some(MetricKind::Gram) && self.columns > MAX_METRIC_COLUMNS {
                return Err(entry.wrong(format!(
                    "there are {} columns, and a Gram matrix can have {MAX_METRIC_COLUMNS}; use \"none\"",
                    self.columns
                )));
            }
            Ok(metric)
        })?;
        Ok(given.flatten().unwrap_or(by_rule))
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
            "step" if entry.string() == Ok("auto") => Ok(()),
            "step" => schedule::one(entry, Role::Step, self.iterations).map(drop),
            "metric" => metric(entry).map(drop),
            "metric_share" => entry.number(SHARE).map(drop),
            "metric_ridge" | "momentum" => auto_number(entry, entry.name).map(drop),
            "steps" => steps(entry).map(drop),
            "dual_step" => entry.number(POSITIVE).map(drop),
            "extra_ridge" => entry.number(NON_NEGATIVE).map(drop),
            "recycle" => recycle(entry).map(drop),
            _ => Ok(()),
        }
    }
}

/// Reads a metric; `None` is the rule's.
fn metric(entry: &Entry<'_>) -> Result<Option<MetricKind>, StudyError> {
    let named = METRICS.map(|(name, kind)| (name, Some(kind)));
    let choices: Vec<(&str, Option<MetricKind>)> =
        named.into_iter().chain([("auto", None)]).collect();
    entry.choice(&choices)
}

/// Reads a number, or `"auto"`.
fn auto_number(entry: &Entry<'_>, key: &str) -> Result<AutoNumber, StudyError> {
    if !entry.is_number() {
        return match entry.string() {
            Ok("auto") => Ok(AutoNumber::Auto),
            _ => Err(entry.wrong("must be a number, or \"auto\" for the public rule")),
        };
    }
    let range = if key == "momentum" {
        MOMENTUM
    } else {
        POSITIVE
    };
    Ok(AutoNumber::Given(entry.number(range)?))
}

fn steps(entry: &Entry<'_>) -> Result<u32, StudyError> {
    entry.integer(1..=100_000)
}

fn recycle(entry: &Entry<'_>) -> Result<u32, StudyError> {
    entry.integer(0..=1000)
}
