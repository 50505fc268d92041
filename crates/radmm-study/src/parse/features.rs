//! `[data.numeric]` and `[data.categorical]`: the features, with their public bounds and vocabularies.

use radmm_data::{Categorical, Numeric};

use super::entry::{Entry, Range};
use crate::error::StudyError;

const FINITE: Range = Range {
    holds: |_| true,
    needed: "finite",
};

/// Reads `age = [0, 90]`, `age = { bins = [25, 35] }` or `age = { bounds = [0, 90], bins = 9 }`.
pub(crate) fn numeric(entry: &Entry<'_>) -> Result<Numeric, StudyError> {
    if entry.is_table() {
        return Ok(Numeric::binned(entry.name, edges(entry)?));
    }
    let (low, high) = bounds(entry)?;
    Ok(Numeric::within(entry.name, low, high))
}

pub(crate) fn categorical(entry: &Entry<'_>) -> Result<Categorical, StudyError> {
    Ok(Categorical {
        name: entry.name.to_owned(),
        values: entry.vocabulary()?,
    })
}

fn bounds(entry: &Entry<'_>) -> Result<(f64, f64), StudyError> {
    let form = "must be [low, high]: the public bounds of the column, low below high";
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

fn edges(entry: &Entry<'_>) -> Result<Vec<f64>, StudyError> {
    let section = entry.inline(&["bins", "bounds"])?;
    let bins = section.required("bins", "the edges between bins, such as [25, 45, 65]")?;
    match section.get("bounds") {
        None if bins.is_number() => {
            Err(bins
                .wrong("must be the edges between bins, or have bounds = [low, high] beside it"))
        }
        None => given_edges(&bins),
        Some(bounds) if bins.is_array() => {
            Err(bounds.wrong("bins has edges, which need no bounds; keep one of the two"))
        }
        Some(entry) => {
            let (low, high) = bounds(&entry)?;
            equal_edges(&bins, low, high)
        }
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
    let apart = edges.is_sorted_by(|a, b| a < b) && low < edges[0] && edges[edges.len() - 1] < high;
    match apart {
        true => Ok(edges),
        false => Err(bins.wrong("are too many to tell apart within the bounds")),
    }
}
