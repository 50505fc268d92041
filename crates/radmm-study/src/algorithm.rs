//! `[algorithm]`: how the problem is solved.

use radmm::public::schedule::Schedule;

use crate::entry::{Entry, NON_NEGATIVE, POSITIVE, Range};
use crate::error::{Note, StudyError};
use crate::reader::Section;
use crate::schedule::{self, Role};
use crate::{Algorithm, Method, Start};

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

/// What every algorithm has.
const COMMON: [&str; 4] = ["name", "iterations", "start", "tolerance"];

/// The `tolerance`, unless given.
pub(crate) const TOLERANCE_IF_NONE: f64 = 1e-10;
/// The largest `tolerance`.
pub(crate) const MOST_TOLERANCE: f64 = 1e-3;

const TOLERANCE: Range = Range {
    holds: |x| x > 0.0 && x <= MOST_TOLERANCE,
    needed: "above 0 and at most 0.001",
};

#[derive(Clone, Copy)]
enum Kind {
    Admm,
    RecycledAdmm,
    MAdmm,
    MRecycledAdmm,
    Dlm,
    RecycledDlm,
    Dgd,
    Local,
    Average,
}

const KINDS: [(&str, Kind); 9] = [
    ("admm", Kind::Admm),
    ("r-admm", Kind::RecycledAdmm),
    ("m-admm", Kind::MAdmm),
    ("mr-admm", Kind::MRecycledAdmm),
    ("dlm", Kind::Dlm),
    ("r-dlm", Kind::RecycledDlm),
    ("dgd", Kind::Dgd),
    ("local", Kind::Local),
    ("average", Kind::Average),
];

pub(crate) fn read(
    top: &Section<'_>,
    nodes: u32,
    notes: &mut Vec<Note>,
) -> Result<Algorithm, StudyError> {
    let section = top.section("algorithm", &KEYS)?;
    let name = section.required("name", "which algorithm, such as \"r-admm\"")?;
    let kind = name.choice(&KINDS)?;
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
    let used = [&COMMON, used(kind)].concat();
    for key in KEYS.iter().filter(|key| !used.contains(key)) {
        section.optional(key, |entry| parameters.check(entry))?;
    }
    section.note_all_but(&used, name.string()?, notes);

    Ok(Algorithm {
        method: parameters.method(kind)?,
        iterations,
        start: start.unwrap_or(Start::Zeros),
        tolerance: tolerance.unwrap_or(TOLERANCE_IF_NONE),
    })
}

/// What an algorithm has beyond the common keys.
fn used(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Admm => &["penalty"],
        Kind::RecycledAdmm | Kind::RecycledDlm => &["penalty", "damping", "recycle"],
        Kind::MAdmm => &["penalty", "dual_step"],
        Kind::MRecycledAdmm => &["penalty", "damping", "recycle", "dual_step"],
        Kind::Dlm => &["penalty", "damping"],
        Kind::Dgd => &["step"],
        Kind::Local | Kind::Average => &["extra_ridge"],
    }
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
struct Parameters<'a> {
    section: &'a Section<'a>,
    iterations: u32,
    nodes: u32,
}

impl Parameters<'_> {
    fn method(&self, kind: Kind) -> Result<Method, StudyError> {
        Ok(match kind {
            Kind::Admm => Method::Admm {
                penalty: self.penalty()?,
            },
            Kind::RecycledAdmm => Method::RecycledAdmm {
                penalty: self.penalty()?,
                damping: self.damping()?,
                recycle: self.recycle()?,
            },
            Kind::MAdmm => {
                let penalty = self.penalties()?;
                Method::MAdmm {
                    dual_step: self.dual_step(&penalty)?,
                    penalty,
                }
            }
            Kind::MRecycledAdmm => {
                let penalty = self.penalties()?;
                Method::MRecycledAdmm {
                    dual_step: self.dual_step(&penalty)?,
                    penalty,
                    damping: self.dampings()?,
                    recycle: self.recycle()?,
                }
            }
            Kind::Dlm => Method::Dlm {
                penalty: self.penalty()?,
                damping: self.damping()?,
            },
            Kind::RecycledDlm => Method::RecycledDlm {
                penalty: self.penalty()?,
                damping: self.damping()?,
                recycle: self.recycle()?,
            },
            Kind::Dgd => Method::Dgd { step: self.step()? },
            Kind::Local => Method::Local {
                extra_ridge: self.extra_ridge()?,
            },
            Kind::Average => Method::Average {
                extra_ridge: self.extra_ridge()?,
            },
        })
    }

    /// Checks a key that the algorithm at hand has no use for, as the most lenient of the others would.
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

    fn penalty(&self) -> Result<Schedule, StudyError> {
        schedule::one(&self.penalty_entry()?, Role::Penalty, self.iterations)
    }

    fn penalties(&self) -> Result<Vec<Schedule>, StudyError> {
        let entry = self.penalty_entry()?;
        schedule::each(&entry, Role::RisingPenalty, self.iterations, self.nodes)
    }

    fn penalty_entry(&self) -> Result<Entry<'_>, StudyError> {
        self.section
            .required("penalty", "the penalty η, a positive number")
    }

    fn damping(&self) -> Result<Schedule, StudyError> {
        schedule::one(&self.damping_entry()?, Role::Damping, self.iterations)
    }

    fn dampings(&self) -> Result<Vec<Schedule>, StudyError> {
        let entry = self.damping_entry()?;
        schedule::each(&entry, Role::Damping, self.iterations, self.nodes)
    }

    fn damping_entry(&self) -> Result<Entry<'_>, StudyError> {
        self.section
            .required("damping", "the damping γ, a number of at least 0")
    }

    fn step(&self) -> Result<Schedule, StudyError> {
        let entry = self
            .section
            .required("step", "the step s, a positive number")?;
        schedule::one(&entry, Role::Step, self.iterations)
    }

    fn extra_ridge(&self) -> Result<f64, StudyError> {
        let given = self
            .section
            .optional("extra_ridge", |entry| entry.number(NON_NEGATIVE))?;
        Ok(given.unwrap_or(0.0))
    }

    fn recycle(&self) -> Result<u32, StudyError> {
        Ok(self.section.optional("recycle", recycle)?.unwrap_or(1))
    }

    /// `θ`, at most every penalty. These do not decrease, so that the first iteration speaks for all.
    fn dual_step(&self, penalties: &[Schedule]) -> Result<f64, StudyError> {
        let least = penalties
            .iter()
            .map(|penalty| penalty.at(1))
            .fold(f64::INFINITY, f64::min);
        let given = self.section.optional("dual_step", |entry| {
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
}

fn recycle(entry: &Entry<'_>) -> Result<u32, StudyError> {
    entry.integer(0..=1000)
}
