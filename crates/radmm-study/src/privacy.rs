//! `[privacy]`: which noise protects the rows, and how its cost is stated.

use radmm::account::Bound;
use radmm::private::{Mechanism, Scaling};
use radmm::public::release::Precision;

use crate::entry::{Entry, Range};
use crate::error::{Note, StudyError};
use crate::noise::{Family, Kind, Noise, Total};
use crate::reader::Section;
use crate::{Method, Privacy};

const KEYS: [&str; 9] = [
    "mechanism",
    "noise",
    "epsilon",
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

/// A total of more than this bounds nothing that anybody could care for.
const EPSILON: Range = Range {
    holds: |x| x > 0.0 && x <= 1000.0,
    needed: "above 0 and at most 1000: the total ε of every party over the whole run",
};

/// Where noise enters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Objective,
    Output,
    Gradient,
}

const PLACES: [(&str, Option<Place>); 4] = [
    ("none", None),
    ("objective", Some(Place::Objective)),
    ("output", Some(Place::Output)),
    ("gradient", Some(Place::Gradient)),
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

pub(crate) fn read(
    top: &Section<'_>,
    method: &Method,
    notes: &mut Vec<Note>,
) -> Result<Privacy, StudyError> {
    let section = top.section("privacy", &KEYS)?;
    let place = section.optional("mechanism", |entry| place(entry, method))?;
    let family = section.optional("noise", |entry| {
        entry.choice(&[("gamma", Family::Gamma), ("gaussian", Family::Gaussian)])
    })?;
    let total = section.optional("epsilon", |entry| entry.number(EPSILON))?;
    section.optional("rate", |entry| entry.number(RATE))?;
    section.optional("sigma", |entry| entry.number(SIGMA))?;
    section.optional("delta", |entry| entry.number(DELTA))?;
    section.optional("scale", scale)?;
    section.optional("bound", bound)?;
    let precision = section
        .optional("precision", precision)?
        .unwrap_or_default();

    if let (Some(_), Precision::Float, Some(entry)) = (total, precision, section.get("precision")) {
        return Err(entry.wrong(
            "a release in doubles has no total; use \"grid\", or rate or sigma in place of epsilon",
        ));
    }

    // Privacy: whoever asks for a total must not get a run without one.
    if let (Some(None), Some(_), Some(entry)) = (place, total, section.get("mechanism")) {
        return Err(entry.wrong("a total takes noise; leave out mechanism, or leave out epsilon"));
    }

    // An empty section means no privacy; one that speaks of an amount of noise must say where it goes. A total is for
    // whatever the algorithm asks.
    let place = match (place, total) {
        (Some(place), _) => place,
        (None, Some(_)) if method.asks_for_gradients() => Some(Place::Gradient),
        (None, Some(_)) => Some(Place::Objective),
        (None, None) if section.entries().is_empty() => None,
        (None, None) => {
            let where_to =
                "where the noise goes: \"objective\", \"output\", \"gradient\", or \"none\"";
            return Err(section.missing("mechanism", where_to));
        }
    };
    let Some(place) = place else {
        section.note_all_but(&["mechanism", "precision"], "mechanism none", notes);
        return Ok(Privacy {
            noise: Noise::Given(Mechanism::None),
            precision,
            bound: Bound::Tight,
            delta: 0.0,
        });
    };
    // With a total, δ asks for the noise that makes use of it.
    let family = family.unwrap_or(match (total, section.get("delta")) {
        (Some(_), Some(_)) => Family::Gaussian,
        _ => Family::Gamma,
    });
    let amount = match total {
        Some(epsilon) => Amount::Total(nothing_else(&section, epsilon)?),
        None => Amount::Noise(amount(&section, family, notes)?),
    };
    let delta = match family {
        Family::Gamma => {
            section.note_unused("delta", "gamma noise", notes);
            0.0
        }
        Family::Gaussian => delta(&section)?,
    };
    let scale = applicable_scale(&section, place, method, notes)?;
    let kind = match place {
        Place::Objective => Kind::Objective {
            noise: family,
            scale,
        },
        Place::Output => Kind::Output { noise: family },
        Place::Gradient => Kind::Gradient { noise: family },
    };
    Ok(Privacy {
        noise: match amount {
            Amount::Total(epsilon) => Noise::Total(Total { kind, epsilon }),
            Amount::Noise(amount) => Noise::Given(kind.with(amount)),
        },
        bound: applicable_bound(&section, kind, notes)?,
        precision,
        delta,
    })
}

/// What the study says of how much noise there is.
enum Amount {
    /// ε.
    Total(f64),
    /// Rate or σ.
    Noise(f64),
}

/// A mechanism that protects what the method asks for.
fn place(entry: &Entry<'_>, method: &Method) -> Result<Option<Place>, StudyError> {
    let (place, name) = (entry.choice(&PLACES)?, method.name());
    match (place, method.asks_for_gradients()) {
        (Some(Place::Objective | Place::Output), true) => Err(entry.wrong(format!(
            "{name} asks for gradients; use \"gradient\" or \"none\""
        ))),
        (Some(Place::Gradient), false) => Err(entry.wrong(format!(
            "{name} asks for minimisers; use \"objective\", \"output\" or \"none\""
        ))),
        _ => Ok(place),
    }
}

/// A total, provided that no amount of noise is given too.
// Privacy: one of the two would be ignored, and whoever wrote it would think it is kept.
fn nothing_else(section: &Section<'_>, epsilon: f64) -> Result<f64, StudyError> {
    for name in ["rate", "sigma"] {
        if let Some(entry) = section.get(name) {
            let advice = "epsilon is given too; keep epsilon, a total for which the noise is found, or this, the noise itself";
            return Err(entry.wrong(advice));
        }
    }
    Ok(epsilon)
}

/// The rate of gamma noise, or the σ of gaussian noise.
fn amount(section: &Section<'_>, family: Family, notes: &mut Vec<Note>) -> Result<f64, StudyError> {
    let or_total = "; or epsilon, a total to find it for";
    match family {
        Family::Gamma => {
            section.note_unused("sigma", "gamma noise", notes);
            let meaning = format!("the rate α of gamma noise, a positive number{or_total}");
            section.required("rate", &meaning)?.number(RATE)
        }
        Family::Gaussian => {
            section.note_unused("rate", "gaussian noise", notes);
            let meaning =
                format!("the standard deviation σ of gaussian noise, a positive number{or_total}");
            section.required("sigma", &meaning)?.number(SIGMA)
        }
    }
}

fn delta(section: &Section<'_>) -> Result<f64, StudyError> {
    let meaning = "the δ of the guarantee with gaussian noise, such as 1e-5";
    section.required("delta", meaning)?.number(DELTA)
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
    place: Place,
    method: &Method,
    notes: &mut Vec<Note>,
) -> Result<Scaling, StudyError> {
    let Some(entry) = section.get("scale") else {
        return Ok(Scaling::Fixed);
    };
    let scale = scale(&entry)?;
    let has_penalty = !matches!(method, Method::Local { .. } | Method::Average { .. });
    match (place, scale) {
        (Place::Objective, Scaling::Penalty) if !has_penalty => {
            let name = method.name();
            return Err(entry.wrong(format!("{name} has no penalty; use \"fixed\"")));
        }
        (Place::Objective, _) => {}
        (_, Scaling::Penalty) => {
            return Err(entry.wrong("only for mechanism \"objective\"; use \"fixed\""));
        }
        (_, Scaling::Fixed) => notes.push(entry.note("is used by mechanism objective only")),
    }
    Ok(scale)
}

fn applicable_bound(
    section: &Section<'_>,
    kind: Kind,
    notes: &mut Vec<Note>,
) -> Result<Bound, StudyError> {
    let Some(entry) = section.get("bound") else {
        return Ok(Bound::Tight);
    };
    let bound = bound(&entry)?;
    match (kind, bound) {
        (
            Kind::Objective {
                noise: Family::Gamma,
                ..
            },
            _,
        ) => {}
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
