//! A figure within a page: its panels side by side where there is room, one under the other where not.

use std::fmt::Write;

use super::figure::{Figure, Series};
use super::legend;
use super::look::{self, Look};
use super::numbers::Numbers;
use super::page::{Ids, inline};
use super::svg::{Svg, escaped};

/// Title, legend, panels, caption, and the numbers folded under them.
pub(super) fn html(figure: &Figure, numbers: &[Numbers], ids: &mut Ids) -> String {
    let id = ids.take(&figure.id);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "<figure id=\"{id}\">\n<h3>{}</h3>",
        escaped(&figure.title)
    );
    if let Some(series) = legend::shared(figure) {
        text += &key(series);
    }
    let _ = writeln!(text, "<div class=\"panels across-{}\">", figure.across());
    // A panel's ids begin with the figure's and a digit, which no other figure's id may do.
    let prefix = ids.take(&format!("{id} panel"));
    for plate in figure.plates(&prefix) {
        let _ = writeln!(
            text,
            "<div class=\"panel {}\">\n{}</div>",
            plate.class, plate.svg
        );
    }
    text += "</div>\n";
    if !figure.caption.is_empty() {
        let _ = writeln!(text, "<figcaption>{}</figcaption>", inline(&figure.caption));
    }
    if !numbers.is_empty() {
        text += "<details>\n<summary>The numbers of this figure</summary>\n";
        for part in numbers {
            text += &part.grid.to_html();
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
    let told_apart = look::told_apart(series);
    for one in legend::distinct(series) {
        let mut svg = Svg::ornament("fig", legend::SAMPLE, 14.0);
        Look::of(one).sample(&mut svg, (0.0, 7.0), legend::SAMPLE, told_apart);
        let _ = writeln!(
            text,
            "<li>{}{}</li>",
            svg.finish().trim_end(),
            escaped(&one.name)
        );
    }
    text + "</ul>\n"
}
