//! `[problem]`: the objective.

use radmm::problem::{Loss, Problem, RowCount};

use super::algorithm::{DEFAULT_TOLERANCE, MAX_TOLERANCE};
use super::entry::POSITIVE;
use super::reader::Section;
use crate::choice::Choice;
use crate::error::{Note, StudyError};
use crate::{Method, ProblemSection};

const KEYS: [&str; 5] = ["loss", "width", "count", "weight", "ridge"];

/// The half-width of the smooth hinge's rounded part, unless given.
const DEFAULT_WIDTH: f64 = 1.0;

/// `C`, unless given: everything else is in units of it.
const DEFAULT_WEIGHT: f64 = 1.0;

/// `C·N/ρ`, unless given: so little ridge costs no accuracy, and is enough for a unique optimum.
const RIDGE_DIVISOR: f64 = 50_000.0;

pub(crate) fn read(
    top: &Section<'_>,
    nodes: u32,
    notes: &mut Vec<Note>,
    choices: &mut Vec<Choice>,
) -> Result<ProblemSection, StudyError> {
    let section = top.section("problem", &KEYS)?;
    let loss = chosen_loss(top, &section, choices)?;
    let without_width = match loss {
        Loss::Logistic => Some("logistic"),
        Loss::CutLogistic => Some("cut-logistic"),
        Loss::SmoothHinge { .. } => None,
    };
    if let Some(name) = without_width {
        section.note_unused("width", name, notes);
    }
    let weight = match section.given("weight") {
        Some(entry) => entry.number(POSITIVE)?,
        None => {
            let reason = "the ridge, the penalty and the damping are in units of it";
            choices.push(Choice::new(
                "problem",
                "weight",
                format!("{DEFAULT_WEIGHT:?}"),
                reason,
            ));
            DEFAULT_WEIGHT
        }
    };
    let ridge = match section.given("ridge") {
        Some(entry) => entry.number(POSITIVE)?,
        None => {
            let ridge = weight * f64::from(nodes) / RIDGE_DIVISOR;
            let reason = "weight times parties over 50,000: little enough to cost no accuracy";
            choices.push(Choice::new(
                "problem",
                "ridge",
                format!("{ridge:?}"),
                reason,
            ));
            ridge
        }
    };
    Ok(ProblemSection {
        loss,
        count: section
            .optional("count", |entry| {
                entry.choice(&[("rows", RowCount::Rows), ("parties", RowCount::Parties)])
            })?
            .unwrap_or(RowCount::Rows),
        weight,
        ridge,
    })
}

/// Reads the loss. A study that leaves the algorithm to the program gets the loss that suits it, and so does `"auto"`.
fn chosen_loss(
    top: &Section<'_>,
    section: &Section<'_>,
    choices: &mut Vec<Choice>,
) -> Result<Loss, StudyError> {
    let algorithm_is_auto = top.open_section("algorithm")?.given("name").is_none();
    let is_auto = match section.get("loss") {
        None => algorithm_is_auto,
        Some(entry) => entry.is_auto(),
    };
    if !is_auto {
        return loss(section);
    }
    let reason = "noise is paid for by the largest slope of the loss, and few rows have it";
    choices.push(Choice::new("problem", "loss", "\"smooth-hinge\"", reason));
    smooth_hinge(section)
}

fn smooth_hinge(section: &Section<'_>) -> Result<Loss, StudyError> {
    let width = section.optional("width", |entry| entry.number(POSITIVE))?;
    Ok(Loss::SmoothHinge {
        width: width.unwrap_or(DEFAULT_WIDTH),
    })
}

/// Reads `loss` and its `width`.
pub(crate) fn loss(section: &Section<'_>) -> Result<Loss, StudyError> {
    let hinge = smooth_hinge(section)?;
    let loss = section.optional("loss", |entry| {
        entry.choice(&[
            ("logistic", Loss::Logistic),
            ("smooth-hinge", hinge),
            ("cut-logistic", Loss::CutLogistic),
        ])
    })?;
    Ok(loss.unwrap_or(Loss::Logistic))
}

/// Rejects a problem whose minimisers double precision does not find to the tolerance, with the key that is to blame. Where rows
/// count alike, the parties' weights have the mean `C`.
pub(crate) fn check(
    top: &Section<'_>,
    problem: &ProblemSection,
    tolerance: f64,
) -> Result<(), StudyError> {
    let least = |loss| {
        let problem = Problem {
            loss,
            weight: problem.weight,
            ridge: problem.ridge,
            nodes: 1,
            tolerance,
            shape: None,
        };
        problem.least_tolerance()
    };
    let needed = least(problem.loss);
    if tolerance >= needed {
        return Ok(());
    }
    if needed <= DEFAULT_TOLERANCE {
        let section = top.open_section("algorithm")?;
        let entry = section.required("tolerance", "a positive number")?;
        return Err(entry.wrong(format!(
            "must be at least {needed:.1e} with this [problem], for double precision"
        )));
    }
    // If the logistic loss would do, the weight is not to blame.
    let (key, remedy) = match least(Loss::Logistic) <= tolerance.max(DEFAULT_TOLERANCE) {
        true => ("width", "raise it"),
        false => ("weight", "lower it"),
    };
    let or = match needed <= MAX_TOLERANCE {
        true => format!(", or raise [algorithm] tolerance to at least {needed:.1e}"),
        false => String::new(),
    };
    let section = top.section("problem", &KEYS)?;
    let entry = section.required(key, "a positive number")?;
    Err(entry.wrong(format!(
        "minimisers cannot be found to a tolerance of {tolerance:e} in double precision: {remedy}{or}"
    )))
}

/// Rejects parties that count alike for an algorithm in which rows do.
pub(crate) fn check_count(
    top: &Section<'_>,
    problem: &ProblemSection,
    method: &Method,
) -> Result<(), StudyError> {
    let rows_alike = matches!(method, Method::Consensus { .. });
    match top.section("problem", &KEYS)?.get("count") {
        Some(entry) if rows_alike && problem.count == RowCount::Parties => {
            Err(entry.wrong("every row counts the same in consensus; leave it out"))
        }
        _ => Ok(()),
    }
}
