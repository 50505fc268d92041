//! `[data.numeric]` and `[data.categorical]`: the features, with their public bounds and vocabularies.

use radmm_data::{Categorical, MISSING_CATEGORY, Numeric, Spacing};

use super::entry::{Entry, Range};
use super::reader::Section;
use crate::error::StudyError;

/// The meaning of bounds in messages.
const BOUNDS: &str = "the public bounds of the column, low below high";

/// The advice for geometric spacing between bounds without a ratio.
const NOT_POSITIVE: &str = "must be positive for geometric spacing: values below low, such as zero, have a column of their own";

const FINITE: Range = Range {
    holds: |_| true,
    needed: "finite",
};

/// The keys of a numeric column that is a table.
const NUMERIC_KEYS: [&str; 6] = ["bounds", "bins", "splines", "spacing", "missing", "other"];

/// Reads `age = [0, 90]`, `age = { bounds = [0, 90] }`, `age = { bins = [25, 35] }`, `age = { bounds = [0, 90], bins = 9 }` or
/// `age = { bounds = [0, 90], splines = 9 }`.
pub(crate) fn numeric(entry: &Entry<'_>) -> Result<Numeric, StudyError> {
    if !entry.is_table() {
        let (low, high) = bounds(entry)?;
        return Ok(Numeric::within(entry.name, low, high));
    }
    let section = entry.inline(&NUMERIC_KEYS)?;
    let missing_category = missing_category(&section)?;
    let other_is_missing = other_is_missing(&section)?;
    if let Some(bins) = section.get("bins") {
        if section.get("splines").is_some() {
            return Err(bins.wrong("splines is given too; keep one of the two"));
        }
        return Ok(Numeric {
            missing_category,
            other_is_missing,
            ..Numeric::binned(entry.name, edges(&section)?)
        });
    }
    if let Some(splines) = section.get("splines") {
        return Ok(Numeric {
            missing_category,
            other_is_missing,
            ..read_splines(entry.name, &section, &splines)?
        });
    }
    for key in ["spacing", "missing"] {
        if let Some(entry) = section.get(key) {
            let advice = "is for columns with bins or splines; give one of them too, or remove it";
            return Err(entry.wrong(advice));
        }
    }
    let (low, high) = bounds(&section.required("bounds", BOUNDS)?)?;
    Ok(Numeric {
        other_is_missing,
        ..Numeric::centred(entry.name, low, high)
    })
}

/// Reads `sex = ["Female", "Male"]` or `sex = { values = ["Female", "Male"], missing = "category" }`.
pub(crate) fn categorical(entry: &Entry<'_>) -> Result<Categorical, StudyError> {
    if !entry.is_table() {
        return Ok(Categorical::new(entry.name, entry.vocabulary()?));
    }
    let section = entry.inline(&["values", "missing", "other"])?;
    let values = section.required("values", "every value that may occur, a list of strings")?;
    let missing_category = missing_category(&section)?;
    let vocabulary = values.vocabulary()?;
    if missing_category && vocabulary.iter().any(|value| value == MISSING_CATEGORY) {
        return Err(values.wrong(
            "holds \"missing\", the name of the category that missing = \"category\" adds; keep one of the two",
        ));
    }
    Ok(Categorical {
        missing_category,
        other_is_missing: other_is_missing(&section)?,
        ..Categorical::new(entry.name, vocabulary)
    })
}

/// Reads a column of splines.
fn read_splines(
    name: &str,
    section: &Section<'_>,
    splines: &Entry<'_>,
) -> Result<Numeric, StudyError> {
    let count = splines.integer(4..=1000_u32)?;
    let entry = section.required("bounds", BOUNDS)?;
    let (low, high) = bounds(&entry)?;
    let spacing = spacing(section)?.unwrap_or_default();
    if spacing == Spacing::Geometric && low <= 0.0 {
        return Err(entry.wrong(NOT_POSITIVE));
    }
    Ok(Numeric::splines(name, [low, high], count, spacing))
}

fn spacing(section: &Section<'_>) -> Result<Option<Spacing>, StudyError> {
    section.optional("spacing", |entry| {
        entry.choice(&[("equal", Spacing::Equal), ("geometric", Spacing::Geometric)])
    })
}

/// Reads whether missing values are a category of their own, or drop their rows.
fn missing_category(section: &Section<'_>) -> Result<bool, StudyError> {
    let given = section.optional("missing", |entry| {
        entry.choice(&[("category", true), ("drop", false)])
    })?;
    Ok(given.unwrap_or(false))
}

/// Reads whether values that cannot be encoded count as missing, or are errors.
fn other_is_missing(section: &Section<'_>) -> Result<bool, StudyError> {
    let given = section.optional("other", |entry| {
        entry.choice(&[("missing", true), ("error", false)])
    })?;
    Ok(given.unwrap_or(false))
}

fn bounds(entry: &Entry<'_>) -> Result<(f64, f64), StudyError> {
    let form = format!("must be [low, high]: {BOUNDS}");
    if !entry.is_array() {
        return Err(entry.wrong(form));
    }
    let elements = entry.elements()?;
    let [low, high] = elements.as_slice() else {
        return Err(entry.wrong(form));
    };
    let (low, high) = (low.number(FINITE)?, high.number(FINITE)?);
    if low >= high {
        return Err(entry.wrong(form));
    }
    Ok((low, high))
}

fn edges(section: &Section<'_>) -> Result<Vec<f64>, StudyError> {
    let bins = section.required("bins", "the edges between bins, such as [25, 45, 65]")?;
    let spacing = spacing(section)?.unwrap_or_default();
    if let (true, Some(entry)) = (bins.is_array(), section.get("spacing")) {
        return Err(
            entry.wrong("bins has edges, which have their own spacing; remove one of the two")
        );
    }
    match section.get("bounds") {
        None if bins.is_number() => {
            Err(bins
                .wrong("must be the edges between bins, or have bounds = [low, high] beside it"))
        }
        None => given_edges(&bins),
        Some(bounds) if bins.is_array() => {
            Err(bounds.wrong("bins has edges, which need no bounds; keep one of the two"))
        }
        Some(entry) => match (spacing, bounds(&entry)?) {
            (Spacing::Geometric, (low, _)) if low <= 0.0 => Err(entry.wrong(NOT_POSITIVE)),
            (Spacing::Geometric, (low, high)) => geometric_edges(&bins, low, high),
            (Spacing::Equal, (low, high)) => equal_edges(&bins, low, high),
        },
    }
}

fn given_edges(bins: &Entry<'_>) -> Result<Vec<f64>, StudyError> {
    let mut edges: Vec<f64> = Vec::new();
    for element in bins.elements()? {
        let edge = element.number(FINITE)?;
        if let Some(before) = edges.last().filter(|before| **before >= edge) {
            return Err(element.wrong(format!("must be above the edge before it, {before}")));
        }
        edges.push(edge);
    }
    match edges.is_empty() {
        true => Err(bins.wrong("must have at least one edge")),
        false => Ok(edges),
    }
}

/// The edges between bins of equal width.
fn equal_edges(bins: &Entry<'_>, low: f64, high: f64) -> Result<Vec<f64>, StudyError> {
    let count = bins.integer(2..=1000_u32)?;
    // Exact where bounds and widths are whole numbers.
    let edge = |k| (low * f64::from(count - k) + high * f64::from(k)) / f64::from(count);
    let edges: Vec<f64> = (1..count).map(edge).collect();
    apart(bins, low, edges, high)
}

/// The edges between bins of equal ratio, the first of them `low`: everything below it, such as zero, has a bin of its own.
fn geometric_edges(bins: &Entry<'_>, low: f64, high: f64) -> Result<Vec<f64>, StudyError> {
    let count = bins.integer(2..=1000_u32)?;
    let ratio = libm::log(high / low) / f64::from(count);
    // Three digits tell as much as all of them, and are the same on every machine.
    let edge = |k: u32| three_digits(low * libm::exp(ratio * f64::from(k)));
    let mut edges = vec![low];
    edges.extend(apart(bins, low, (1..count).map(edge).collect(), high)?);
    Ok(edges)
}

fn three_digits(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}

/// Returns the edges, if they increase between the bounds.
fn apart(bins: &Entry<'_>, low: f64, edges: Vec<f64>, high: f64) -> Result<Vec<f64>, StudyError> {
    let inside = low < edges[0] && edges[edges.len() - 1] < high;
    match inside && edges.is_sorted_by(|a, b| a < b) {
        true => Ok(edges),
        false => Err(bins.wrong("are too many to tell apart within the bounds")),
    }
}
