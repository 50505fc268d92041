//! A figure within a page: its panels side by side where there is room, one under the other where not.

use std::fmt::Write;

use super::data_table::DataTable;
use super::markup::inline;
use super::page::Ids;
use crate::plot::svg::{Svg, escaped};
use crate::plot::{Figure, SAMPLE_WIDTH, Series, SeriesStyle, distinct, needs_markers, shared};

/// Title, legend, panels, caption, and the numbers folded under them.
pub(super) fn html(figure: &Figure, numbers: &[DataTable], ids: &mut Ids) -> String {
    let id = ids.take(&figure.id);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "<figure id=\"{id}\">\n<h3>{}</h3>",
        escaped(&figure.title)
    );
    if let Some(series) = shared(figure) {
        text += &key(series);
    }
    let _ = writeln!(
        text,
        "<div class=\"panels across-{}\">",
        figure.column_count()
    );
    // A panel's ids begin with the figure's and a digit, which no other figure's id may do.
    let prefix = ids.take(&format!("{id} panel"));
    for panel in figure.svg_panels(&prefix) {
        let _ = writeln!(
            text,
            "<div class=\"panel {}\">\n{}</div>",
            panel.class, panel.svg
        );
    }
    text += "</div>\n";
    if !figure.caption.is_empty() {
        let _ = writeln!(text, "<figcaption>{}</figcaption>", inline(&figure.caption));
    }
    if !numbers.is_empty() {
        text += "<details>\n<summary>The numbers of this figure</summary>\n";
        for part in numbers {
            text += &part.table.to_html();
            for note in &part.notes {
                let _ = writeln!(text, "<p class=\"note\">{}</p>", inline(note));
            }
        }
        text += "</details>\n";
    }
    text + "</figure>\n"
}

/// The legend in the page's own letters, so that it wraps with the page.
fn key(series: &[Series]) -> String {
    let mut text = "<ul class=\"key\">\n".to_owned();
    let markers = needs_markers(series);
    for one in distinct(series) {
        let mut svg = Svg::decoration("fig", SAMPLE_WIDTH, 14.0);
        SeriesStyle::of(one).sample(&mut svg, (0.0, 7.0), SAMPLE_WIDTH, markers);
        let _ = writeln!(
            text,
            "<li>{}{}</li>",
            svg.finish().trim_end(),
            escaped(&one.name)
        );
    }
    text + "</ul>\n"
}
