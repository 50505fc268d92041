//! `[problem]`: the objective.

use radmm::problem::{Loss, Problem, RowCount};

use super::algorithm::{DEFAULT_TOLERANCE, MAX_TOLERANCE};
use super::entry::POSITIVE;
use super::reader::Section;
use crate::error::{Note, StudyError};
use crate::{Method, ProblemSection};

const KEYS: [&str; 5] = ["loss", "width", "count", "weight", "ridge"];

/// The half-width of the smooth hinge's rounded part, unless given.
const DEFAULT_WIDTH: f64 = 1.0;

pub(crate) fn read(top: &Section<'_>, notes: &mut Vec<Note>) -> Result<ProblemSection, StudyError> {
    let section = top.section("problem", &KEYS)?;
    let loss = loss(&section)?;
    let without_width = match loss {
        Loss::Logistic => Some("logistic"),
        Loss::CutLogistic => Some("cut-logistic"),
        Loss::SmoothHinge { .. } => None,
    };
    if let Some(name) = without_width {
        section.note_unused("width", name, notes);
    }
    Ok(ProblemSection {
        loss,
        count: section
            .optional("count", |entry| {
                entry.choice(&[("rows", RowCount::Rows), ("parties", RowCount::Parties)])
            })?
            .unwrap_or(RowCount::Rows),
        weight: section
            .required("weight", "the loss weight C, a positive number")?
            .number(POSITIVE)?,
        ridge: section
            .required("ridge", "the ridge ρ, a positive number")?
            .number(POSITIVE)?,
    })
}

/// Reads `loss` and its `width`.
pub(crate) fn loss(section: &Section<'_>) -> Result<Loss, StudyError> {
    let width = section.optional("width", |entry| entry.number(POSITIVE))?;
    let hinge = Loss::SmoothHinge {
        width: width.unwrap_or(DEFAULT_WIDTH),
    };
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
