//! The numbers of a figure as tables: one a panel, x down, a column for every series.

use super::text_table::TextTable;
use crate::plot::{Figure, Panel, Point, Series, Style, thousands};

/// More rows than this nobody reads; they are in the CSV file.
const ROWS: usize = 200;

/// One panel's table, and what is to be said under it.
pub(super) struct DataTable {
    pub table: TextTable,
    pub notes: Vec<String>,
}

/// The tables of all panels that have any numbers.
pub(super) fn of(figure: &Figure) -> Vec<DataTable> {
    let panels = figure
        .panels
        .iter()
        .filter(|panel| !panel.series.is_empty());
    panels.map(panel).collect()
}

fn panel(panel: &Panel) -> DataTable {
    let (levels, lines): (Vec<&Series>, Vec<&Series>) = panel
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
    let stride = xs.len().div_ceil(ROWS).max(1);
    let header = std::iter::once(&panel.x.label).chain(lines.iter().map(|series| &series.name));
    let row = |&x: &f64| {
        let cells = lines.iter().map(|series| cell(series, x));
        std::iter::once(value(x)).chain(cells).collect()
    };
    let mut notes: Vec<String> = Vec::new();
    if stride > 1 {
        notes.push(format!("Every {stride}th of {} rows.", thousands(xs.len())));
    }
    for level in levels {
        if let Some(point) = level.points.first() {
            notes.push(format!("{}: {}.", level.name, whole(point)));
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
    found.map_or("–".to_owned(), whole)
}

/// `0.4321 (0.4012 to 0.4630)`.
fn whole(point: &Point) -> String {
    match point.range {
        Some((low, high)) => format!("{} ({} to {})", value(point.y), value(low), value(high)),
        None => value(point.y),
    }
}

fn value(x: f64) -> String {
    if x.is_nan() {
        "–".to_owned()
    } else if x.is_infinite() {
        if x > 0.0 { "∞" } else { "−∞" }.to_owned()
    } else if x.fract() == 0.0 && x.abs() < 1e6 {
        format!("{x}")
    } else {
        number(x)
    }
}

/// Four decimals, or scientific notation where these would show nothing or too much.
fn number(x: f64) -> String {
    match x.abs() {
        1e-3..1e6 => format!("{x:.4}"),
        _ => format!("{x:.1e}"),
    }
}
