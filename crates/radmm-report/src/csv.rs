//! The numbers of a figure as comma-separated values.

use std::fmt::Write;

use crate::plot::Figure;

impl Figure {
    /// Returns one line per point: `panel,series,x,y,low,high`.
    ///
    /// Numbers are written so that reading them gives the same bits. Values that are not finite are `NaN`, `inf` or `-inf`.
    /// Without a range, `low` and `high` are empty.
    pub fn to_csv(&self) -> String {
        let mut text = "panel,series,x,y,low,high\n".to_owned();
        for panel in &self.panels {
            for series in &panel.series {
                let (panel, name) = (quoted(&panel.title), quoted(&series.name));
                for point in &series.points {
                    let (x, y) = (point.x, point.y);
                    // Writing to a string does not fail.
                    let _ = match point.range {
                        Some((low, high)) => writeln!(text, "{panel},{name},{x},{y},{low},{high}"),
                        None => writeln!(text, "{panel},{name},{x},{y},,"),
                    };
                }
            }
        }
        text
    }
}

/// Returns a field, in quotes where it would otherwise be read as several.
pub(crate) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
