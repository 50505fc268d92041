//! `[data.numeric]` and `[data.categorical]`: the features, with their public bounds and vocabularies.

use radmm_data::{Categorical, MISSING_CATEGORY, Numeric, Spacing, days_of_date};

use super::entry::{Entry, Range};
use super::reader::Section;
use crate::error::StudyError;

/// The meaning of bounds in messages.
const BOUNDS: &str = "the public bounds of the column, low below high";

/// The advice for geometric spacing of dates.
const NOT_OF_DATES: &str = "is for numbers; dates have equal spacing";

/// The advice for geometric spacing between bounds without a ratio.
const NOT_POSITIVE: &str = "must be positive for geometric spacing: values below low, such as zero, have a column of their own";

const FINITE: Range = Range {
    holds: |_| true,
    needed: "finite",
};

/// The keys of a numeric column that is a table.
const NUMERIC_KEYS: [&str; 6] = ["bounds", "bins", "splines", "spacing", "missing", "other"];

/// Reads `age = [0, 90]`, `age = { bounds = [0, 90] }`, `age = { bins = [25, 35] }`, `age = { bounds = [0, 90], bins = 9 }` or
/// `age = { bounds = [0, 90], splines = 9 }`. Bounds and edges of dates are dates.
pub(crate) fn numeric(entry: &Entry<'_>) -> Result<Numeric, StudyError> {
    if !entry.is_table() {
        let Bounds { low, high, is_date } = bounds(entry)?;
        return match is_date {
            true => Err(entry.wrong(
                "must be a table for dates: { bounds = [low, high], splines = 8 }, or without splines for one centred column",
            )),
            false => Ok(Numeric::within(entry.name, low, high)),
        };
    }
    let section = entry.inline(&NUMERIC_KEYS)?;
    let missing_category = missing_category(&section)?;
    let other_is_missing = other_is_missing(&section)?;
    if let Some(bins) = section.get("bins") {
        if section.get("splines").is_some() {
            return Err(bins.wrong("splines is given too; keep one of the two"));
        }
        let (edges, is_date) = edges(&section)?;
        return Ok(Numeric {
            is_date,
            missing_category,
            other_is_missing,
            ..Numeric::binned(entry.name, edges)
        });
    }
    if let Some(splines) = section.get("splines") {
        return Ok(Numeric {
            missing_category,
            other_is_missing,
            ..read_splines(entry.name, &section, &splines)?
        });
    }
    if let Some(entry) = section.get("spacing") {
        let advice = "is for columns with bins or splines; give one of them too, or remove it";
        return Err(entry.wrong(advice));
    }
    let Bounds { low, high, is_date } = bounds(&section.required("bounds", BOUNDS)?)?;
    Ok(Numeric {
        is_date,
        missing_category,
        other_is_missing,
        ..Numeric::centred(entry.name, low, high)
    })
}

/// Reads `sex = ["Female", "Male"]`, `smoker = [true, false]` or `sex = { values = ["Female", "Male"], missing = "category" }`.
pub(crate) fn categorical(entry: &Entry<'_>) -> Result<Categorical, StudyError> {
    if !entry.is_table() {
        return vocabulary(entry);
    }
    let section = entry.inline(&["values", "missing", "other"])?;
    let values = section.required("values", "every value that may occur, a list of strings")?;
    let missing_category = missing_category(&section)?;
    let column = Categorical {
        name: entry.name.to_owned(),
        ..vocabulary(&values)?
    };
    if missing_category && column.values.iter().any(|value| value == MISSING_CATEGORY) {
        return Err(values.wrong(
            "holds \"missing\", the name of the category that missing = \"category\" adds; keep one of the two",
        ));
    }
    Ok(Categorical {
        missing_category,
        other_is_missing: other_is_missing(&section)?,
        ..column
    })
}

/// Reads a list of strings, or `[true, false]` in either order.
fn vocabulary(entry: &Entry<'_>) -> Result<Categorical, StudyError> {
    let is_boolean = entry.is_array() && entry.elements()?.iter().any(Entry::is_boolean);
    if !is_boolean {
        return Ok(Categorical::new(entry.name, entry.vocabulary()?));
    }
    let values = entry.elements()?;
    let values: Result<Vec<bool>, _> = values.iter().map(Entry::boolean).collect();
    match values?[..] {
        [first, second] if first != second => Ok(Categorical {
            values: [first, second].map(|value| value.to_string()).into(),
            ..Categorical::boolean(entry.name)
        }),
        _ => Err(entry.wrong("must be [true, false], or a list of strings")),
    }
}

/// Reads a column of splines.
fn read_splines(
    name: &str,
    section: &Section<'_>,
    splines: &Entry<'_>,
) -> Result<Numeric, StudyError> {
    let count = splines.integer(4..=1000_u32)?;
    let entry = section.required("bounds", BOUNDS)?;
    let bounds = bounds(&entry)?;
    let spacing = spacing(section)?.unwrap_or_default();
    if spacing == Spacing::Geometric {
        bounds.check_ratio(section, &entry)?;
    }
    Ok(Numeric {
        is_date: bounds.is_date,
        ..Numeric::splines(name, [bounds.low, bounds.high], count, spacing)
    })
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

/// The bounds of a column, in order.
struct Bounds {
    low: f64,
    high: f64,
    /// Whether they are dates, as days since 1970-01-01.
    is_date: bool,
}

impl Bounds {
    /// Checks that there are equal ratios between these bounds, which are this entry.
    fn check_ratio(&self, section: &Section<'_>, entry: &Entry<'_>) -> Result<(), StudyError> {
        match section.get("spacing") {
            Some(spacing) if self.is_date => Err(spacing.wrong(NOT_OF_DATES)),
            _ if self.low <= 0.0 => Err(entry.wrong(NOT_POSITIVE)),
            _ => Ok(()),
        }
    }
}

/// Reads numbers or dates, and returns whether they are dates. Those are days since 1970-01-01.
fn numbers(elements: &[Entry<'_>]) -> Result<(Vec<f64>, bool), StudyError> {
    let is_date = elements
        .iter()
        .any(|one| one.is_date_or_time() || date(one).is_some());
    let number = |element: &Entry<'_>| match is_date {
        true => date(element).ok_or_else(|| element.wrong("must be a date such as 2020-12-31")),
        false => element.number(FINITE),
    };
    let numbers: Result<Vec<f64>, StudyError> = elements.iter().map(number).collect();
    Ok((numbers?, is_date))
}

/// Returns the days of a date, in quotes or without.
fn date(entry: &Entry<'_>) -> Option<f64> {
    days_of_date(&entry.date_or_text()?)
}

fn bounds(entry: &Entry<'_>) -> Result<Bounds, StudyError> {
    let form = format!("must be [low, high]: {BOUNDS}");
    if !entry.is_array() {
        return Err(entry.wrong(form));
    }
    let elements = entry.elements()?;
    if elements.len() != 2 {
        return Err(entry.wrong(form));
    }
    match numbers(&elements)? {
        (pair, is_date) if pair[0] < pair[1] => Ok(Bounds {
            low: pair[0],
            high: pair[1],
            is_date,
        }),
        _ => Err(entry.wrong(form)),
    }
}

/// Returns the edges of bins, and whether they are dates.
fn edges(section: &Section<'_>) -> Result<(Vec<f64>, bool), StudyError> {
    let bins = section.required("bins", "the edges between bins, such as [25, 45, 65]")?;
    let spacing = spacing(section)?.unwrap_or_default();
    if let (true, Some(entry)) = (bins.is_array(), section.get("spacing")) {
        return Err(
            entry.wrong("bins has edges, which have their own spacing; remove one of the two")
        );
    }
    let Some(entry) = section.get("bounds") else {
        return match bins.is_number() {
            true => Err(bins
                .wrong("must be the edges between bins, or have bounds = [low, high] beside it")),
            false => given_edges(&bins),
        };
    };
    if bins.is_array() {
        return Err(entry.wrong("bins has edges, which need no bounds; keep one of the two"));
    }
    let bounds = bounds(&entry)?;
    let edges = match spacing {
        Spacing::Geometric => {
            bounds.check_ratio(section, &entry)?;
            geometric_edges(&bins, &bounds)?
        }
        Spacing::Equal => equal_edges(&bins, &bounds)?,
    };
    Ok((edges, bounds.is_date))
}

fn given_edges(bins: &Entry<'_>) -> Result<(Vec<f64>, bool), StudyError> {
    let elements = bins.elements()?;
    let (edges, is_date) = numbers(&elements)?;
    if let Some(at) = (1..edges.len()).find(|at| edges[at - 1] >= edges[*at]) {
        let before = elements[at - 1].written();
        return Err(elements[at].wrong(format!("must be above the edge before it, {before}")));
    }
    match edges.is_empty() {
        true => Err(bins.wrong("must have at least one edge")),
        false => Ok((edges, is_date)),
    }
}

/// The edges between bins of equal width. A bin of dates begins with a day.
fn equal_edges(bins: &Entry<'_>, bounds: &Bounds) -> Result<Vec<f64>, StudyError> {
    let count = bins.integer(2..=1000_u32)?;
    let Bounds { low, high, is_date } = *bounds;
    // Exact where bounds and widths are whole numbers.
    let edge = |k| (low * f64::from(count - k) + high * f64::from(k)) / f64::from(count);
    let edge = |k| if is_date { edge(k).round() } else { edge(k) };
    let edges: Vec<f64> = (1..count).map(edge).collect();
    apart(bins, low, edges, high)
}

/// The edges between bins of equal ratio, the first of them `low`: everything below it, such as zero, has a bin of its own.
fn geometric_edges(bins: &Entry<'_>, bounds: &Bounds) -> Result<Vec<f64>, StudyError> {
    let count = bins.integer(2..=1000_u32)?;
    let Bounds { low, high, .. } = *bounds;
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
