//! Penalties, dampings and steps: a number, a table, or an array of them, one a node.

use radmm::algorithm::schedule::Schedule;
use serde::ser::{Serialize, Serializer};

use super::entry::{Entry, NON_NEGATIVE, POSITIVE, Range};
use crate::algorithm::{AlgorithmInfo, REGISTRY};
use crate::error::StudyError;

/// The use of a schedule, which decides its range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Penalty,
    /// A penalty of M-ADMM, which must not decrease.
    RisingPenalty,
    Damping,
    Step,
}

/// Reads one a node: an array, or a single one for all nodes.
pub(crate) fn each(
    entry: &Entry<'_>,
    role: Role,
    iterations: u32,
    nodes: u32,
) -> Result<Vec<Schedule>, StudyError> {
    if !entry.is_array() {
        return Ok(vec![one(entry, role, iterations)?; nodes as usize]);
    }
    let elements = entry.elements()?;
    if elements.len() != nodes as usize {
        let count = elements.len();
        return Err(entry.wrong(format!(
            "{count} values for {nodes} nodes; give each node one, or a single one for all"
        )));
    }
    elements
        .iter()
        .map(|element| one(element, role, iterations))
        .collect()
}

/// Reads `0.5`, `{ start = 1.0, growth = 1.01 }` or, for a step, `{ start = 0.1, power = 0.5 }`.
pub(crate) fn one(entry: &Entry<'_>, role: Role, iterations: u32) -> Result<Schedule, StudyError> {
    let range = match role {
        Role::Damping => NON_NEGATIVE,
        Role::Penalty | Role::RisingPenalty | Role::Step => POSITIVE,
    };
    let schedule = if entry.is_table() {
        table(entry, role, range)?
    } else if entry.is_number() {
        Schedule::Constant(entry.number(range)?)
    } else if role == Role::Step {
        return Err(entry.not_a("a number or a table such as { start = 0.1, power = 0.5 }"));
    } else if entry.is_array() {
        return Err(entry.wrong(format!(
            "one value a node is for {}; give a single one",
            per_node(entry.name)
        )));
    } else {
        return Err(entry.not_a("a number or a table such as { start = 1.0, growth = 1.01 }"));
    };
    let checked = match role {
        Role::Penalty | Role::Step => schedule.positive(iterations),
        Role::Damping => schedule.non_negative(iterations),
        Role::RisingPenalty => schedule
            .positive(iterations)
            .and_then(|schedule| schedule.non_decreasing(iterations)),
    };
    checked.map_err(|error| entry.wrong(error.to_string()))
}

/// The algorithms whose nodes may each have their own value of `key`.
fn per_node(key: &str) -> String {
    let has = |info: &&AlgorithmInfo| {
        let mut parameters = info.parameters.iter();
        parameters.any(|parameter| parameter.key == key && parameter.per_node)
    };
    let names: Vec<&str> = REGISTRY.iter().filter(has).map(|info| info.name).collect();
    names.join(" and ")
}

fn table(entry: &Entry<'_>, role: Role, range: Range) -> Result<Schedule, StudyError> {
    let table = match role {
        Role::Step => entry.inline(&["start", "growth", "power"])?,
        Role::Penalty | Role::RisingPenalty | Role::Damping => {
            entry.inline(&["start", "growth"])?
        }
    };
    let start = table
        .required("start", "the value to start from, a number")?
        .number(range)?;
    match (table.get("growth"), table.get("power")) {
        (Some(growth), None) => Ok(Schedule::Growth {
            start,
            growth: growth.number(POSITIVE)?,
        }),
        (None, Some(power)) => Ok(Schedule::Decay {
            start,
            power: power.number(POSITIVE)?,
        }),
        (Some(_), Some(power)) => Err(power.wrong("growth is given too; keep one of the two")),
        (None, None) => {
            let factor = "the factor from one iteration to the next, a positive number";
            let meaning = match role {
                Role::Step => format!("{factor} (or power)"),
                Role::Penalty | Role::RisingPenalty | Role::Damping => factor.to_owned(),
            };
            Err(table.missing("growth", &meaning))
        }
    }
}

/// Serialises as in the file: one value if all nodes share it, else an array.
pub(crate) fn serialize<S: Serializer>(
    each: &[Schedule],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match each {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            first.serialize(serializer)
        }
        _ => each.serialize(serializer),
    }
}
