//! `[problem]`: what is minimised.

use radmm::private::Loss;
use radmm::public::release::Precision;

use crate::Problem;
use crate::algorithm::{MOST_TOLERANCE, TOLERANCE_IF_NONE};
use crate::entry::POSITIVE;
use crate::error::{Note, StudyError};
use crate::reader::Section;

const KEYS: [&str; 4] = ["loss", "width", "weight", "ridge"];

/// The half-width of the smooth hinge's rounded part, unless given.
const WIDTH: f64 = 0.5;

pub(crate) fn read(top: &Section<'_>, notes: &mut Vec<Note>) -> Result<Problem, StudyError> {
    let section = top.section("problem", &KEYS)?;
    let loss = loss(&section)?;
    if loss == Loss::Logistic {
        section.note_all_but(&["loss", "weight", "ridge"], "logistic", notes);
    }
    Ok(Problem {
        loss,
        weight: section
            .required("weight", "the loss weight C, a positive number")?
            .number(POSITIVE)?,
        ridge: section
            .required("ridge", "the ridge ρ, a positive number")?
            .number(POSITIVE)?,
    })
}

/// `loss` and its `width`.
pub(crate) fn loss(section: &Section<'_>) -> Result<Loss, StudyError> {
    let width = section.optional("width", |entry| entry.number(POSITIVE))?;
    let hinge = Loss::SmoothHinge {
        width: width.unwrap_or(WIDTH),
    };
    let loss = section.optional("loss", |entry| {
        entry.choice(&[("logistic", Loss::Logistic), ("smooth-hinge", hinge)])
    })?;
    Ok(loss.unwrap_or(Loss::Logistic))
}

/// Refuses a problem whose minimisers double precision does not find to the tolerance, at the key that is to blame.
pub(crate) fn check(
    top: &Section<'_>,
    problem: &Problem,
    tolerance: f64,
) -> Result<(), StudyError> {
    let least = |loss| {
        let problem = radmm::private::Problem {
            loss,
            weight: problem.weight,
            ridge: problem.ridge,
            nodes: 1,
            tolerance,
            precision: Precision::Grid,
        };
        problem.least_tolerance()
    };
    let needed = least(problem.loss);
    if tolerance >= needed {
        return Ok(());
    }
    if needed <= TOLERANCE_IF_NONE {
        let section = top.open_section("algorithm")?;
        let entry = section.required("tolerance", "a positive number")?;
        return Err(entry.wrong(format!(
            "must be at least {needed:.1e} with this [problem], for double precision"
        )));
    }
    // With the plainest loss it would do: then the weight is not to blame.
    let (key, remedy) = match least(Loss::Logistic) <= tolerance.max(TOLERANCE_IF_NONE) {
        true => ("width", "raise it"),
        false => ("weight", "lower it"),
    };
    let or = match needed <= MOST_TOLERANCE {
        true => format!(", or raise [algorithm] tolerance to at least {needed:.1e}"),
        false => String::new(),
    };
    let section = top.section("problem", &KEYS)?;
    let entry = section.required(key, "a positive number")?;
    Err(entry.wrong(format!(
        "minimisers cannot be found to a tolerance of {tolerance:e} in double precision: {remedy}{or}"
    )))
}
