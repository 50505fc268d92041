//! The parameters of algorithms and their values.

use radmm::algorithm::schedule::Schedule;
use serde::ser::{Serialize, Serializer};

use super::Method;
use super::admm_rule::AdmmRule;
use super::public_rule::{AutoNumber, MetricKind};
use crate::error::StudyError;
use crate::number_format;
use crate::parse::algorithm::Parameters;
use crate::parse::schedule;

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The key in study files: `penalty`.
    pub key: &'static str,
    /// Whether every node may have a value of its own.
    pub per_node: bool,
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterValue<'a> {
    /// A value for every iteration.
    Schedule(&'a Schedule),
    /// A schedule for every node.
    PerNode(&'a [Schedule]),
    /// A whole number.
    Count(u32),
    /// A number.
    Number(f64),
    /// A number, or the public rule's.
    Auto(AutoNumber),
    /// A metric.
    Metric(MetricKind),
}

impl ParameterValue<'_> {
    /// Returns the schedules of all nodes, or the one that they share; none if the value is a number.
    pub fn schedules(&self) -> &[Schedule] {
        match self {
            Self::Schedule(schedule) => std::slice::from_ref(schedule),
            Self::PerNode(schedules) => schedules,
            Self::Count(_) | Self::Number(_) | Self::Auto(_) | Self::Metric(_) => &[],
        }
    }

    /// Returns the value as it would stand in a study file, with all digits.
    pub(crate) fn exact(&self) -> String {
        match self {
            Self::Metric(metric) => format!("\"{}\"", metric.name()),
            Self::Count(count) => count.to_string(),
            Self::Number(number) | Self::Auto(AutoNumber::Given(number)) => format!("{number:?}"),
            Self::Auto(AutoNumber::Auto) => "\"auto\"".to_owned(),
            Self::Schedule(_) | Self::PerNode(_) => match self.first() {
                Some(Schedule::Constant(value)) => format!("{value:?}"),
                _ => self.summary(),
            },
        }
    }

    /// Returns why the public rule chose this value of a parameter; `None` where there is nothing to choose, or where the choice
    /// depends on the number of rows.
    pub(crate) fn reason(&self, key: &str, method: &Method, rule: &AdmmRule) -> Option<String> {
        let metric = match method {
            Method::Consensus { metric, .. } => Some(*metric),
            _ => None,
        };
        match (key, metric) {
            ("penalty", _) => Some(rule.penalty_reason()),
            ("damping", _) => Some(rule.damping_reason()),
            ("metric", Some(metric)) => Some(metric.reason().to_owned()),
            ("metric_share", Some(MetricKind::Mean | MetricKind::Gram)) => {
                Some("the share of the budget that the metric takes".to_owned())
            }
            ("steps", Some(_)) => Some("the number of gradients for this metric".to_owned()),
            _ => None,
        }
    }

    pub(super) fn first(&self) -> Option<Schedule> {
        self.schedules().first().copied()
    }

    /// Returns the value as text: of a schedule that at the first iteration, the least and the greatest if nodes differ.
    pub(super) fn summary(&self) -> String {
        let of = |schedule: &Schedule| match schedule {
            Schedule::Constant(value) => number_format::as_typed(*value),
            varying => format!("{}…", number_format::as_typed(varying.at(1))),
        };
        match self {
            Self::Count(count) => count.to_string(),
            Self::Number(number) | Self::Auto(AutoNumber::Given(number)) => {
                number_format::as_typed(*number)
            }
            Self::Auto(AutoNumber::Auto) => "auto".to_owned(),
            Self::Metric(metric) => metric.name().to_owned(),
            Self::Schedule(schedule) => of(schedule),
            Self::PerNode(schedules) => {
                let by_start = |a: &&Schedule, b: &&Schedule| a.at(1).total_cmp(&b.at(1));
                let (least, greatest) = (
                    schedules.iter().min_by(by_start),
                    schedules.iter().max_by(by_start),
                );
                match least.zip(greatest) {
                    Some((_, only)) if schedules.iter().all(|schedule| schedule == only) => {
                        of(only)
                    }
                    Some((least, greatest)) => format!("{} to {}", of(least), of(greatest)),
                    None => String::new(),
                }
            }
        }
    }
}

/// Returns the value of a schedule, if it is the same at all iterations.
pub fn constant(schedule: &Schedule) -> Option<f64> {
    match *schedule {
        Schedule::Constant(value) => Some(value),
        Schedule::Growth { start, growth } => (growth == 1.0).then_some(start),
        Schedule::Decay { start, power } => (power == 0.0).then_some(start),
    }
}

/// A type of values of parameters.
pub(super) trait Parameter: Sized {
    /// Whether there is a value for every node.
    const PER_NODE: bool = false;

    /// Reads the value of `key`.
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError>;

    fn value(&self) -> ParameterValue<'_>;
}

impl Parameter for Schedule {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.schedule(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Schedule(self)
    }
}

impl Parameter for Vec<Schedule> {
    const PER_NODE: bool = true;

    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.schedules(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::PerNode(self)
    }
}

impl Parameter for u32 {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.count(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Count(*self)
    }
}

impl Parameter for f64 {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.number(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Number(*self)
    }
}

impl Parameter for AutoNumber {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.auto_number(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Auto(*self)
    }
}

impl Parameter for MetricKind {
    fn parse(parameters: &Parameters<'_>, _key: &str) -> Result<Self, StudyError> {
        parameters.metric()
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Metric(*self)
    }
}

impl Serialize for ParameterValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Schedule(schedule) => schedule.serialize(serializer),
            Self::PerNode(schedules) => schedule::serialize(schedules, serializer),
            Self::Count(count) => count.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
            Self::Auto(number) => number.serialize(serializer),
            Self::Metric(metric) => metric.serialize(serializer),
        }
    }
}
