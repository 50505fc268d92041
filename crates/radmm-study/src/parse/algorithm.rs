//! `[algorithm]`: how the objective is minimised.

use radmm::algorithm::consensus::period;
use radmm::algorithm::schedule::Schedule;
use radmm::graph::SpanningTree;
use radmm::protocol::metric::MAX_METRIC_COLUMNS;
use radmm_data::Schema;

use super::entry::{Entry, NON_NEGATIVE, POSITIVE, Range};
use super::privacy::{FAMILIES, family_by_rule};
use super::reader::Section;
use super::schedule::{self, Role};
use crate::algorithm::{AdmmRule, AlgorithmInfo, AutoNumber, METRICS, MetricKind, REGISTRY};
use crate::choice::Choice;
use crate::error::{Note, StudyError};
use crate::{AlgorithmSection, Method, NetworkSection, NoiseFamily, ProblemSection, Start};

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

/// The algorithm of a study that does not name one.
const DEFAULT_ALGORITHM: &str = "consensus";

/// The sections on which public rules depend.
pub(crate) struct PublicSections<'a> {
    pub network: &'a NetworkSection,
    pub schema: &'a Schema,
    pub problem: &'a ProblemSection,
}

pub(crate) fn read(
    top: &Section<'_>,
    public: &PublicSections<'_>,
    notes: &mut Vec<Note>,
    choices: &mut Vec<Choice>,
) -> Result<AlgorithmSection, StudyError> {
    let section = top.section("algorithm", &KEYS)?;
    let info = info(&section, choices)?;
    let network = public.network;
    let family = family(top, info, public.schema)?;
    let is_pure = family.is_some_and(NoiseFamily::is_pure);
    let rule = AdmmRule::new(public.problem, network, info.asks, is_pure);
    let iterations = iterations(&section, info, &rule)?;
    let start = section.optional("start", start)?;
    let tolerance = section.optional("tolerance", |entry| entry.number(TOLERANCE))?;

    let parameters = Parameters {
        section: &section,
        iterations,
        nodes: network.nodes,
        columns: public.schema.width(),
        family,
        rule,
    };
    let own = info.parameters.iter().map(|parameter| parameter.key);
    let used: Vec<&str> = COMMON.into_iter().chain(own).collect();
    for key in KEYS.iter().filter(|key| !used.contains(key)) {
        section.optional(key, |entry| parameters.check(entry))?;
    }
    section.note_all_but(&used, info.name, notes);

    let method = (info.parse)(&parameters)?;
    parameters.add_choices(info, &method, choices);
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

/// Reads the name of the algorithm.
fn info(
    section: &Section<'_>,
    choices: &mut Vec<Choice>,
) -> Result<&'static AlgorithmInfo, StudyError> {
    let algorithms: Vec<(&str, &AlgorithmInfo)> =
        REGISTRY.iter().map(|info| (info.name, info)).collect();
    if let Some(name) = section.given("name") {
        return name.choice(&algorithms);
    }
    let value = format!("\"{DEFAULT_ALGORITHM}\"");
    let reason = "the most accurate at a total, whether parties are alike or differ";
    choices.push(Choice::new("algorithm", "name", value, reason));
    let by_rule = algorithms
        .iter()
        .find(|(name, _)| *name == DEFAULT_ALGORITHM);
    by_rule.map(|(_, info)| *info).ok_or_else(|| {
        // Unreachable: the registry has it.
        section.missing("name", "which algorithm, such as \"r-admm\"")
    })
}

/// Reads the number of iterations; one, where it follows from other parameters.
fn iterations(
    section: &Section<'_>,
    info: &AlgorithmInfo,
    rule: &AdmmRule,
) -> Result<u32, StudyError> {
    if let Some(entry) = section.given("iterations") {
        return entry.integer(1..=MAX_ITERATIONS);
    }
    let has = |key: &str| info.parameters.iter().any(|parameter| parameter.key == key);
    match info.counts_iterations {
        true => Ok(1),
        false if has("penalty") => {
            let recycled = match has("recycle") {
                true => section.optional("recycle", recycle)?.unwrap_or(1),
                false => 0,
            };
            Ok(rule.data_steps() * (recycled + 1))
        }
        false => {
            let needed = format!("the number of iterations, an integer from 1 to {MAX_ITERATIONS}");
            Err(section.missing("iterations", &needed))
        }
    }
}

/// Returns the number of iterations of sums along the network's spanning tree. The file may state it.
fn tree_iterations(
    section: &Section<'_>,
    network: &NetworkSection,
    data_steps: u32,
) -> Result<u32, StudyError> {
    let graph = network.graph();
    // A graph that cannot be built is reported when it is needed.
    let depth = graph.map_or(1, |graph| SpanningTree::of(&graph).depth());
    let computed = u64::from(data_steps) * u64::from(period(depth));
    let iterations = u32::try_from(computed).ok();
    match (
        iterations.filter(|all| *all <= MAX_ITERATIONS),
        section.given("iterations"),
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
fn family(
    top: &Section<'_>,
    info: &AlgorithmInfo,
    schema: &Schema,
) -> Result<Option<NoiseFamily>, StudyError> {
    let section = top.open_section("privacy")?;
    if section.entries().is_empty() {
        return Ok(None);
    }
    let named = section.get("noise").and_then(|entry| entry.string().ok());
    let by_name = FAMILIES.iter().find(|(name, _)| Some(*name) == named);
    let summed = info.counts_iterations.then_some(schema);
    let by_rule = || family_by_rule(&section, summed).0;
    Ok(Some(by_name.map_or_else(by_rule, |(_, family)| *family)))
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
    rule: AdmmRule,
}

impl Parameters<'_> {
    /// Adds what the public rule chose for the parameters of `method`.
    fn add_choices(&self, info: &AlgorithmInfo, method: &Method, choices: &mut Vec<Choice>) {
        let by_rule = |key: &str| self.section.given(key).is_none();
        let mut add = |key, value, reason: String| {
            choices.push(Choice::new("algorithm", key, value, reason));
        };
        for parameter in info.parameters.iter().map(|parameter| parameter.key) {
            if let (true, Some(value)) = (by_rule(parameter), method.get(parameter))
                && let Some(reason) = value.reason(parameter, method, &self.rule)
            {
                add(parameter, value.exact(), reason);
            }
        }
        if by_rule("iterations") && method.penalty().is_some() {
            let (value, reason) = (self.iterations.to_string(), self.rule.iterations_reason());
            add("iterations", value, reason);
        }
    }

    /// A schedule that all nodes share.
    pub(crate) fn schedule(&self, key: &str) -> Result<Schedule, StudyError> {
        if let Some(chosen) = self.by_rule(key) {
            return Ok(chosen);
        }
        let (entry, role) = self.scheduled(key)?;
        schedule::one(&entry, role, self.iterations)
    }

    /// A schedule for every node.
    pub(crate) fn schedules(&self, key: &str) -> Result<Vec<Schedule>, StudyError> {
        if let Some(chosen) = self.by_rule(key) {
            return Ok(vec![chosen; self.nodes as usize]);
        }
        let (entry, role) = match self.scheduled(key)? {
            (entry, Role::Penalty) => (entry, Role::RisingPenalty),
            other => other,
        };
        schedule::each(&entry, role, self.iterations, self.nodes)
    }

    /// Returns the rule's penalty or damping, unless the file gives one.
    fn by_rule(&self, key: &str) -> Option<Schedule> {
        if self.section.given(key).is_some() {
            return None;
        }
        match key {
            "penalty" => Some(Schedule::Constant(self.rule.penalty())),
            "damping" => Some(Schedule::Constant(self.rule.damping())),
            _ => None,
        }
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
            return match self.section.given(key) {
                Some(entry) => steps(&entry),
                None => Ok(self.metric()?.steps_by_rule()),
            };
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
            let given = self.section.given(key);
            let given = given.map(|entry| entry.number(SHARE)).transpose()?;
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
            "penalty" | "damping" | "step" | "steps" | "metric_share" if entry.is_auto() => Ok(()),
            "penalty" => each(Role::Penalty).map(drop),
            "damping" => each(Role::Damping).map(drop),
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
