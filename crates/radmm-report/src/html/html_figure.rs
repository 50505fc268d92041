//! Figures within a page: panels side by side where there is room, else one below the other.

use std::fmt::Write;

use super::data_table::data_tables;
use super::markup::inline;
use super::page::Ids;
use crate::plot::svg::{Svg, escaped};
use crate::plot::{
    DotPlot, Figure, SAMPLE_WIDTH, Series, SeriesStyle, SvgPanel, distinct, needs_markers, shared,
};

/// Returns title, legend, panels and caption, with the numbers folded under them.
pub(super) fn figure(figure: &Figure, ids: &mut Ids) -> String {
    let id = ids.unique(&figure.id);
    let mut text = opening(&id, &figure.title);
    if let Some(series) = shared(figure) {
        text += &legend(series);
    }
    let prefix = ids.unique(&format!("{id} panel"));
    text += &panels(figure.column_count(), &figure.svg_panels(&prefix));
    text += &caption(&figure.caption);
    let tables = data_tables(figure);
    if !tables.is_empty() {
        text += "<details>\n<summary>The numbers of this figure</summary>\n";
        for part in tables {
            text += &part.table.to_html();
            for note in &part.notes {
                // Writing to a string does not fail.
                let _ = writeln!(text, "<p class=\"note\">{}</p>", inline(note));
            }
        }
        text += "</details>\n";
    }
    text + "</figure>\n"
}

/// Returns title, plot and caption.
pub(super) fn dot_plot(plot: &DotPlot, ids: &mut Ids) -> String {
    let id = ids.unique(&plot.id);
    let prefix = ids.unique(&format!("{id} panel"));
    opening(&id, &plot.title)
        + &panels(1, &plot.svg_panels(&prefix))
        + &caption(&plot.caption)
        + "</figure>\n"
}

fn opening(id: &str, title: &str) -> String {
    format!("<figure id=\"{id}\">\n<h3>{}</h3>\n", escaped(title))
}

fn panels(columns: usize, panels: &[SvgPanel]) -> String {
    let mut text = format!("<div class=\"panels across-{columns}\">\n");
    for SvgPanel { class, svg } in panels {
        let _ = writeln!(text, "<div class=\"panel {class}\">\n{svg}</div>");
    }
    text + "</div>\n"
}

fn caption(caption: &str) -> String {
    match caption {
        "" => String::new(),
        caption => format!("<figcaption>{}</figcaption>\n", inline(caption)),
    }
}

/// Returns the legend as a list in the page's own font, so that it wraps with the page.
fn legend(series: &[Series]) -> String {
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
