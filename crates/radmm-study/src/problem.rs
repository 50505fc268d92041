//! `[problem]`: what is minimised.

use radmm::private::Loss;

use crate::Problem;
use crate::entry::POSITIVE;
use crate::error::{Note, StudyError};
use crate::reader::Section;

const KEYS: [&str; 4] = ["loss", "width", "weight", "ridge"];

/// The half-width of the smooth hinge's rounded part, unless given.
const WIDTH: f64 = 0.5;

pub(crate) fn read(top: &Section<'_>, notes: &mut Vec<Note>) -> Result<Problem, StudyError> {
    let section = top.section("problem", &KEYS)?;
    let width = section.optional("width", |entry| entry.number(POSITIVE))?;
    let hinge = Loss::SmoothHinge {
        width: width.unwrap_or(WIDTH),
    };
    let loss = section
        .optional("loss", |entry| {
            entry.choice(&[("logistic", Loss::Logistic), ("smooth-hinge", hinge)])
        })?
        .unwrap_or(Loss::Logistic);
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
