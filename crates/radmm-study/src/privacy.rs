//! `[privacy]`: which noise protects the rows, and how its cost is stated.

use radmm::account::Bound;
use radmm::private::{Law, Mechanism, Scaling};
use radmm::public::release::Precision;

use crate::entry::{Entry, Range};
use crate::error::{Note, StudyError};
use crate::reader::Section;
use crate::{Method, Privacy};

const KEYS: [&str; 8] = [
    "mechanism",
    "noise",
    "rate",
    "sigma",
    "scale",
    "bound",
    "delta",
    "precision",
];

const DELTA: Range = Range {
    holds: |x| x > 0.0 && x < 1.0,
    needed: "above 0 and below 1",
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Objective,
    Output,
    Gradient,
}

const KINDS: [(&str, Kind); 4] = [
    ("none", Kind::None),
    ("objective", Kind::Objective),
    ("output", Kind::Output),
    ("gradient", Kind::Gradient),
];

/// Smaller ones are noise whose square overflows.
const RATE: Range = Range {
    holds: |x| x >= 1e-100,
    needed: "at least 1e-100 and finite",
};

/// The square of larger noise overflows.
const SIGMA: Range = Range {
    holds: |x| x > 0.0 && x <= 1e100,
    needed: "above 0 and at most 1e100",
};

#[derive(Clone, Copy)]
enum Noise {
    Gamma,
    Gaussian,
}

pub(crate) fn read(
    top: &Section<'_>,
    method: &Method,
    notes: &mut Vec<Note>,
) -> Result<Privacy, StudyError> {
    let section = top.section("privacy", &KEYS)?;
    let kind = section.optional("mechanism", |entry| kind(entry, method))?;
    let noise = section.optional("noise", |entry| {
        entry.choice(&[("gamma", Noise::Gamma), ("gaussian", Noise::Gaussian)])
    })?;
    section.optional("rate", |entry| entry.number(RATE))?;
    section.optional("sigma", |entry| entry.number(SIGMA))?;
    section.optional("delta", |entry| entry.number(DELTA))?;
    section.optional("scale", scale)?;
    section.optional("bound", bound)?;
    let precision = section
        .optional("precision", precision)?
        .unwrap_or_default();

    // An empty section means no privacy; one that speaks of noise must say where it goes.
    let kind = match kind {
        Some(kind) => kind,
        None if section.entries().is_empty() => Kind::None,
        None => {
            let where_to =
                "where the noise goes: \"objective\", \"output\", \"gradient\", or \"none\"";
            return Err(section.missing("mechanism", where_to));
        }
    };
    if kind == Kind::None {
        section.note_all_but(&["mechanism", "precision"], "mechanism none", notes);
        return Ok(Privacy {
            mechanism: Mechanism::None,
            precision,
            bound: Bound::Tight,
            delta: 0.0,
        });
    }
    let (law, delta) = match noise.unwrap_or(Noise::Gamma) {
        Noise::Gamma => {
            section.note_unused("sigma", "gamma noise", notes);
            section.note_unused("delta", "gamma noise", notes);
            (gamma(&section)?, 0.0)
        }
        Noise::Gaussian => {
            section.note_unused("rate", "gaussian noise", notes);
            gaussian(&section)?
        }
    };
    let scale = applicable_scale(&section, kind, method, notes)?;
    let mechanism = match kind {
        Kind::None => Mechanism::None,
        Kind::Objective => Mechanism::Objective { law, scale },
        Kind::Output => Mechanism::Output { law },
        Kind::Gradient => Mechanism::Gradient { law },
    };
    Ok(Privacy {
        mechanism,
        precision,
        bound: applicable_bound(&section, mechanism, notes)?,
        delta,
    })
}

/// A mechanism that protects what the method asks for.
fn kind(entry: &Entry<'_>, method: &Method) -> Result<Kind, StudyError> {
    let (kind, name) = (entry.choice(&KINDS)?, method.name());
    match (kind, method.asks_for_gradients()) {
        (Kind::Objective | Kind::Output, true) => Err(entry.wrong(format!(
            "{name} asks for gradients; use \"gradient\" or \"none\""
        ))),
        (Kind::Gradient, false) => Err(entry.wrong(format!(
            "{name} asks for minimisers; use \"objective\", \"output\" or \"none\""
        ))),
        _ => Ok(kind),
    }
}

fn gamma(section: &Section<'_>) -> Result<Law, StudyError> {
    let rate = section.required("rate", "the rate α of gamma noise, a positive number")?;
    Ok(Law::Gamma {
        rate: rate.number(RATE)?,
    })
}

fn gaussian(section: &Section<'_>) -> Result<(Law, f64), StudyError> {
    let sigma = section.required(
        "sigma",
        "the standard deviation σ of gaussian noise, a positive number",
    )?;
    let delta = section.required(
        "delta",
        "the δ of the guarantee with gaussian noise, such as 1e-5",
    )?;
    let law = Law::Gaussian {
        sigma: sigma.number(SIGMA)?,
    };
    Ok((law, delta.number(DELTA)?))
}

fn scale(entry: &Entry<'_>) -> Result<Scaling, StudyError> {
    entry.choice(&[("fixed", Scaling::Fixed), ("penalty", Scaling::Penalty)])
}

fn precision(entry: &Entry<'_>) -> Result<Precision, StudyError> {
    entry.choice(&[("grid", Precision::Grid), ("float", Precision::Float)])
}

fn bound(entry: &Entry<'_>) -> Result<Bound, StudyError> {
    entry.choice(&[("tight", Bound::Tight), ("paper", Bound::Paper)])
}

// Privacy: where `scale` and `bound` do not apply, their defaults are merely noted, since they change nothing. The
// other values are refused: whoever asks for another noise or another proof must not get a result without it.

fn applicable_scale(
    section: &Section<'_>,
    kind: Kind,
    method: &Method,
    notes: &mut Vec<Note>,
) -> Result<Scaling, StudyError> {
    let Some(entry) = section.get("scale") else {
        return Ok(Scaling::Fixed);
    };
    let scale = scale(&entry)?;
    let has_penalty = !matches!(method, Method::Local { .. } | Method::Average { .. });
    match (kind, scale) {
        (Kind::Objective, Scaling::Penalty) if !has_penalty => {
            let name = method.name();
            return Err(entry.wrong(format!("{name} has no penalty; use \"fixed\"")));
        }
        (Kind::Objective, _) => {}
        (_, Scaling::Penalty) => {
            return Err(entry.wrong("only for mechanism \"objective\"; use \"fixed\""));
        }
        (_, Scaling::Fixed) => notes.push(entry.note("is used by mechanism objective only")),
    }
    Ok(scale)
}

fn applicable_bound(
    section: &Section<'_>,
    mechanism: Mechanism,
    notes: &mut Vec<Note>,
) -> Result<Bound, StudyError> {
    let Some(entry) = section.get("bound") else {
        return Ok(Bound::Tight);
    };
    let bound = bound(&entry)?;
    let law = match mechanism {
        Mechanism::Objective { law, .. } => Some(law),
        Mechanism::None | Mechanism::Output { .. } | Mechanism::Gradient { .. } => None,
    };
    match (law, bound) {
        (Some(Law::Gamma { .. }), _) => {}
        (_, Bound::Paper) => {
            let only = "only for mechanism \"objective\" with gamma noise; use \"tight\"";
            return Err(entry.wrong(only));
        }
        (_, Bound::Tight) => {
            notes.push(entry.note("is used by mechanism objective with gamma noise only"));
        }
    }
    Ok(bound)
}
