//! The numbers of a figure as tables: one per panel, x downwards, one column per series.

use super::text_table::TextTable;
use crate::plot::{Figure, Panel, Point, Series, Style, thousands};

/// The most rows of a table; the CSV file has all of them.
const MAX_ROWS: usize = 200;

/// The table of one panel, and the notes under it.
pub(super) struct DataTable {
    pub table: TextTable,
    pub notes: Vec<String>,
}

/// Returns the tables of all panels that have series.
pub(super) fn data_tables(figure: &Figure) -> Vec<DataTable> {
    let panels = figure
        .panels
        .iter()
        .filter(|panel| !panel.series.is_empty());
    panels.map(data_table).collect()
}

fn data_table(panel: &Panel) -> DataTable {
    let (horizontal, lines): (Vec<&Series>, Vec<&Series>) = panel
        .series
        .iter()
        .partition(|series| series.style == Style::Horizontal);
    let mut xs: Vec<f64> = lines
        .iter()
        .flat_map(|series| series.points.iter().map(|point| point.x))
        .filter(|x| !x.is_nan())
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let stride = xs.len().div_ceil(MAX_ROWS).max(1);
    let header = std::iter::once(&panel.x.label).chain(lines.iter().map(|series| &series.name));
    let row = |&x: &f64| {
        let cells = lines.iter().map(|series| cell(series, x));
        std::iter::once(value(x)).chain(cells).collect()
    };
    let mut notes: Vec<String> = Vec::new();
    if stride > 1 {
        notes.push(format!("Every {stride}th of {} rows.", thousands(xs.len())));
    }
    for series in horizontal {
        if let Some(point) = series.points.first() {
            notes.push(format!("{}: {}.", series.name, value_and_range(point)));
        }
    }
    let caption = match panel.title.as_str() {
        "" => panel.y.label.clone(),
        title => format!("{title}: {}", panel.y.label),
    };
    DataTable {
        table: TextTable {
            caption,
            header: header.cloned().collect(),
            rows: xs.iter().step_by(stride).map(row).collect(),
            folded: false,
        },
        notes,
    }
}

fn cell(series: &Series, x: f64) -> String {
    let found = series.points.iter().find(|point| point.x == x);
    found.map_or("–".to_owned(), value_and_range)
}

/// Formats a point as `0.4321 (0.4012 to 0.4630)`.
fn value_and_range(point: &Point) -> String {
    match point.range {
        Some((low, high)) => format!("{} ({} to {})", value(point.y), value(low), value(high)),
        None => value(point.y),
    }
}

/// Formats a value with four decimals, or in scientific notation where these would show nothing or too much.
fn value(x: f64) -> String {
    match x.abs() {
        _ if x.is_nan() => "–".to_owned(),
        f64::INFINITY => if x > 0.0 { "∞" } else { "−∞" }.to_owned(),
        size if x.fract() == 0.0 && size < 1e6 => format!("{x}"),
        1e-3..1e6 => format!("{x:.4}"),
        _ => format!("{x:.1e}"),
    }
}
