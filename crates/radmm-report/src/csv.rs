//! The numbers of a figure, for whoever draws it another way.

use std::fmt::Write;

use crate::plot::Figure;

impl Figure {
    /// One line a point: `panel,series,x,y,low,high`. DataTable have all the digits that tell them from their neighbours;
    /// what is not finite is `NaN`, `inf` or `-inf`; without a range, `low` and `high` are empty.
    pub fn to_csv(&self) -> String {
        let mut text = "panel,series,x,y,low,high\n".to_owned();
        for panel in &self.panels {
            for series in &panel.series {
                let (panel, name) = (field(&panel.title), field(&series.name));
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

/// In quotes where it would otherwise be taken for several.
fn field(words: &str) -> String {
    if words.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", words.replace('"', "\"\""))
    } else {
        words.to_owned()
    }
}
