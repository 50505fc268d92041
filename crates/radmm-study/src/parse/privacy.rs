//! `[privacy]`: the noise that protects the rows, and how its cost is stated.

use radmm::privacy::{Bound, Mechanism, NoiseScaling};
use radmm_data::Schema;

use super::entry::{Entry, Range};
use super::reader::Section;
use crate::choice::Choice;
use crate::error::{Note, StudyError};
use crate::statement_text::PRECISION;
use crate::{Method, Noise, NoiseFamily, NoiseKind, PrivacySection, TotalBudget};

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

/// A larger total would be no protection at all.
const EPSILON: Range = Range {
    holds: |x| x > 0.0 && x <= 1000.0,
    needed: "above 0 and at most 1000: the total ε of every party over the whole run",
};

/// The point where noise enters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryPoint {
    Objective,
    Output,
    Gradient,
}

const ENTRY_POINTS: [(&str, Option<EntryPoint>); 4] = [
    ("none", None),
    ("objective", Some(EntryPoint::Objective)),
    ("output", Some(EntryPoint::Output)),
    ("gradient", Some(EntryPoint::Gradient)),
];

pub(crate) const FAMILIES: [(&str, NoiseFamily); 3] = [
    ("gamma", NoiseFamily::Gamma),
    ("laplace", NoiseFamily::Laplace),
    ("gaussian", NoiseFamily::Gaussian),
];

/// The square of noise of a smaller rate overflows.
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
    schema: &Schema,
    notes: &mut Vec<Note>,
    choices: &mut Vec<Choice>,
) -> Result<PrivacySection, StudyError> {
    let section = top.section("privacy", &KEYS)?;
    let entry_point = section.optional("mechanism", |entry| entry_point(entry, method))?;
    let family = section.optional("noise", |entry| entry.choice(&FAMILIES))?;
    let total = section.optional("epsilon", |entry| entry.number(EPSILON))?;
    section.optional("rate", |entry| entry.number(RATE))?;
    section.optional("sigma", |entry| entry.number(SIGMA))?;
    section.optional("delta", |entry| entry.number(DELTA))?;
    section.optional("scale", scale)?;
    section.optional("bound", bound)?;
    section.optional("precision", check_precision)?;

    // Privacy: a study that asks for a total must not run without one.
    if let (Some(None), Some(_), Some(entry)) = (entry_point, total, section.get("mechanism")) {
        return Err(entry.wrong("a total takes noise; leave out mechanism, or leave out epsilon"));
    }

    // An empty section means no privacy; one with an amount of noise must say where it enters. A total applies to what the
    // algorithm asks.
    let entry_point = match (entry_point, total) {
        (Some(entry_point), _) => entry_point,
        (None, Some(_)) if method.asks_for_gradients() => Some(EntryPoint::Gradient),
        (None, Some(_)) => Some(EntryPoint::Objective),
        (None, None) if section.entries().is_empty() => None,
        (None, None) => {
            let where_to =
                "where the noise goes: \"objective\", \"output\", \"gradient\", or \"none\"";
            return Err(section.missing("mechanism", where_to));
        }
    };
    let Some(entry_point) = entry_point else {
        section.note_all_but(&["mechanism", "precision"], "mechanism none", notes);
        return Ok(PrivacySection {
            noise: Noise::Given(Mechanism::None),
            bound: Bound::Tight,
            delta: 0.0,
        });
    };
    let family = family.unwrap_or_else(|| {
        let sums = matches!(method, Method::Consensus { .. });
        let (family, reason) = family_by_rule(&section, sums.then_some(schema));
        if total.is_some() {
            let value = format!("\"{}\"", family.name());
            choices.push(Choice::new("privacy", "noise", value, reason));
        }
        family
    });
    let amount = match total {
        Some(epsilon) => Amount::Total(only_total(&section, epsilon)?),
        None => Amount::Noise(amount(&section, family, notes)?),
    };
    let delta = match family {
        NoiseFamily::Gamma | NoiseFamily::Laplace => {
            section.note_unused("delta", &noise_text(family), notes);
            0.0
        }
        NoiseFamily::Gaussian => delta(&section)?,
    };
    let scale = applicable_scale(&section, entry_point, method, notes)?;
    let kind = match entry_point {
        EntryPoint::Objective => NoiseKind::Objective {
            noise: family,
            scale,
        },
        EntryPoint::Output => NoiseKind::Output { noise: family },
        EntryPoint::Gradient => NoiseKind::Gradient { noise: family },
    };
    Ok(PrivacySection {
        noise: match amount {
            Amount::Total(epsilon) => Noise::Total(TotalBudget { kind, epsilon }),
            Amount::Noise(amount) => Noise::Given(kind.with_amount(amount)),
        },
        bound: applicable_bound(&section, kind, notes)?,
        delta,
    })
}

/// Returns the family of noise of a study that does not name it, and the reason. `summed` is the schema of rows whose gradients are
/// summed.
pub(crate) fn family_by_rule(
    section: &Section<'_>,
    summed: Option<&Schema>,
) -> (NoiseFamily, &'static str) {
    let is_total = section.get("epsilon").is_some();
    if is_total && section.get("delta").is_some() {
        let reason = "a total with delta: many questions add up to the least with it";
        return (NoiseFamily::Gaussian, reason);
    }
    let shape = summed.filter(|_| is_total).map(Schema::shape);
    // In units of the sensitivity over ε, a coordinate of the noise is √(2k) with Laplace noise and about √d with gamma noise.
    match shape {
        Some(shape) if 2 * u64::from(shape.max_nonzeros()) < u64::from(shape.columns()) => (
            NoiseFamily::Laplace,
            "a pure total: without delta, and rows have few non-zeros",
        ),
        _ => (NoiseFamily::Gamma, "a pure total: without delta"),
    }
}

/// The amount of noise as the study gives it.
enum Amount {
    /// ε.
    Total(f64),
    /// Rate or σ.
    Noise(f64),
}

/// Reads a mechanism that protects the answers to the method's queries.
fn entry_point(entry: &Entry<'_>, method: &Method) -> Result<Option<EntryPoint>, StudyError> {
    let (entry_point, name) = (entry.choice(&ENTRY_POINTS)?, method.name());
    match (entry_point, method.asks_for_gradients()) {
        (Some(EntryPoint::Objective | EntryPoint::Output), true) => Err(entry.wrong(format!(
            "{name} asks for gradients; use \"gradient\" or \"none\""
        ))),
        (Some(EntryPoint::Gradient), false) => Err(entry.wrong(format!(
            "{name} asks for minimisers; use \"objective\", \"output\" or \"none\""
        ))),
        _ => Ok(entry_point),
    }
}

/// Returns the total, provided that no amount of noise is given too.
// Privacy: one of the two would be ignored, although the study says it.
fn only_total(section: &Section<'_>, epsilon: f64) -> Result<f64, StudyError> {
    for name in ["rate", "sigma"] {
        if let Some(entry) = section.get(name) {
            let advice = "epsilon is given too; keep epsilon, a total for which the noise is found, or this, the noise itself";
            return Err(entry.wrong(advice));
        }
    }
    Ok(epsilon)
}

fn noise_text(family: NoiseFamily) -> String {
    format!("{} noise", family.name())
}

/// Reads the rate of gamma or Laplace noise, or the σ of gaussian noise.
fn amount(
    section: &Section<'_>,
    family: NoiseFamily,
    notes: &mut Vec<Note>,
) -> Result<f64, StudyError> {
    let (or_total, noise) = ("; or epsilon, a total to find it for", noise_text(family));
    match family {
        NoiseFamily::Gamma | NoiseFamily::Laplace => {
            section.note_unused("sigma", &noise, notes);
            let meaning = format!("the rate α of {noise}, a positive number{or_total}");
            section.required("rate", &meaning)?.number(RATE)
        }
        NoiseFamily::Gaussian => {
            section.note_unused("rate", &noise, notes);
            let meaning =
                format!("the standard deviation σ of {noise}, a positive number{or_total}");
            section.required("sigma", &meaning)?.number(SIGMA)
        }
    }
}

fn delta(section: &Section<'_>) -> Result<f64, StudyError> {
    let meaning = "the δ of the guarantee with gaussian noise, such as 1e-5";
    section.required("delta", meaning)?.number(DELTA)
}

fn scale(entry: &Entry<'_>) -> Result<NoiseScaling, StudyError> {
    entry.choice(&[
        ("fixed", NoiseScaling::Fixed),
        ("penalty", NoiseScaling::Penalty),
    ])
}

/// Checks that releases are integers: no guarantee covers the last digits of a double.
fn check_precision(entry: &Entry<'_>) -> Result<(), StudyError> {
    match entry.string()? {
        "float" => Err(entry.wrong(
            "releases in doubles are no longer supported, since no guarantee covers their last digits; use \"grid\" or leave it out",
        )),
        _ => entry.choice(&[(PRECISION, ())]),
    }
}

fn bound(entry: &Entry<'_>) -> Result<Bound, StudyError> {
    entry.choice(&[("tight", Bound::Tight), ("paper", Bound::Paper)])
}

// Privacy: where `scale` and `bound` do not apply, their defaults are noted, since they change nothing. Other values are
// rejected: a study that asks for another noise or another proof must not run without it.

fn applicable_scale(
    section: &Section<'_>,
    entry_point: EntryPoint,
    method: &Method,
    notes: &mut Vec<Note>,
) -> Result<NoiseScaling, StudyError> {
    let Some(entry) = section.get("scale") else {
        return Ok(NoiseScaling::Fixed);
    };
    let scale = scale(&entry)?;
    match (entry_point, scale) {
        (EntryPoint::Objective, NoiseScaling::Penalty) if method.penalty().is_none() => {
            let name = method.name();
            return Err(entry.wrong(format!("{name} has no penalty; use \"fixed\"")));
        }
        (EntryPoint::Objective, _) => {}
        (_, NoiseScaling::Penalty) => {
            return Err(entry.wrong("only for mechanism \"objective\"; use \"fixed\""));
        }
        (_, NoiseScaling::Fixed) => notes.push(entry.note("is used by mechanism objective only")),
    }
    Ok(scale)
}

fn applicable_bound(
    section: &Section<'_>,
    kind: NoiseKind,
    notes: &mut Vec<Note>,
) -> Result<Bound, StudyError> {
    let Some(entry) = section.get("bound") else {
        return Ok(Bound::Tight);
    };
    let bound = bound(&entry)?;
    match (kind, bound) {
        (
            NoiseKind::Objective {
                noise: NoiseFamily::Gamma,
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
