//! Dot plots: one named value per row, with its error bar.

use super::axes::AxisLayout;
use super::figure::{AxisScale, Style};
use super::legend::text_width;
use super::robust_range::robust_range;
use super::series_style::SeriesStyle;
use super::svg::{Position, Svg, SvgHeader, TextAnchor, polyline};
use super::svg_figure::{SvgPanel, panel_size};
use super::ticks;

/// The room above the first row, for the labels of references.
const TOP: f64 = 30.0;
/// The room below the last row, for ticks and label.
const BOTTOM: f64 = 58.0;

/// Named values side by side on one axis, in the order of their rows.
///
/// One outlier does not squash the others: a value beyond the axis is marked by an arrow.
#[derive(Clone, Debug, PartialEq)]
pub struct DotPlot {
    /// The anchor within a page.
    pub id: String,
    /// The finding, in words.
    pub title: String,
    /// The explanation for readers; may have the markup of [`Block::Text`](crate::Block::Text).
    pub caption: String,
    /// The quantity along the axis, with its unit.
    pub label: String,
    /// Downwards.
    pub rows: Vec<DotRow>,
    /// Names and values to compare with: vertical lines.
    pub references: Vec<(String, f64)>,
}

/// One row of a [`DotPlot`].
#[derive(Clone, Debug, PartialEq)]
pub struct DotRow {
    /// The name, at the left.
    pub name: String,
    /// The place of the dot.
    pub value: f64,
    /// The ends of the error bar.
    pub range: Option<(f64, f64)>,
    /// The value in words, at the right.
    pub text: String,
    /// An index into the palette.
    pub colour: usize,
}

/// The columns of a plot of one width.
struct Layout {
    width: f64,
    row: f64,
    /// Whether names are above their rows, where there is no room beside them.
    above: bool,
    axis: AxisLayout,
}

impl DotPlot {
    /// Returns the plot as two images, for wide and narrow screens.
    pub(crate) fn svg_panels(&self, prefix: &str) -> Vec<SvgPanel> {
        let panel = |(class, columns, above): (&'static str, usize, bool)| {
            let layout = self.layout(panel_size(columns).0, above);
            SvgPanel {
                class,
                svg: self.draw(&layout, &format!("{prefix}-{class}-")),
            }
        };
        [("wide", 1, false), ("narrow", 2, true)].map(panel).into()
    }

    fn layout(&self, width: f64, above: bool) -> Layout {
        let widest = |of: fn(&DotRow) -> &str| {
            let widths = self.rows.iter().map(|row| text_width(of(row), 15.0));
            widths.fold(0.0, f64::max)
        };
        let left = match above {
            true => 12.0,
            false => widest(|row| &row.name).min(width / 3.0) + 16.0,
        };
        let place = (left, width - widest(|row| &row.text) - 20.0);
        let rows: Vec<(f64, f64)> = self.rows.iter().map(DotRow::span).collect();
        let references = self.references.iter().map(|(_, value)| (*value, *value));
        let references: Vec<(f64, f64)> = references.collect();
        let all = rows.iter().chain(&references).copied();
        let all = all.filter(|(low, high)| low.is_finite() && high.is_finite());
        let all = all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let (low, high) = robust_range(&rows, &references)
            .or(all)
            .unwrap_or((0.0, 1.0));
        let range = ticks::padded(AxisScale::Linear, low, high);
        let count = (((place.1 - place.0) / 66.0) as usize).clamp(2, 10);
        Layout {
            width,
            row: if above { 50.0 } else { 34.0 },
            above,
            axis: AxisLayout {
                title: self.label.clone(),
                place,
                range,
                scale: AxisScale::Linear,
                ticks: ticks::ticks(AxisScale::Linear, range, count, false).labelled,
                minor: Vec::new(),
            },
        }
    }

    fn draw(&self, layout: &Layout, id: &str) -> String {
        let bottom = TOP + layout.row * self.rows.len() as f64;
        let mut svg = Svg::new(&SvgHeader {
            prefix: id,
            class: "fig",
            width: layout.width,
            height: bottom + BOTTOM,
            title: &self.title,
            description: &self.description(),
            style: None,
        });
        let axis = &layout.axis;
        for (value, label) in &axis.ticks {
            let x = axis.at(*value);
            svg.line("grid", (x, TOP), (x, bottom));
            svg.text("tick", (x, bottom + 20.0), TextAnchor::Middle, label);
        }
        svg.line("axis", (axis.place.0, bottom), (axis.place.1, bottom));
        let middle = (axis.place.0 + axis.place.1) / 2.0;
        svg.text(
            "label",
            (middle, bottom + 46.0),
            TextAnchor::Middle,
            &axis.title,
        );
        self.references(&mut svg, layout, bottom);
        for (k, row) in self.rows.iter().enumerate() {
            row.draw(&mut svg, layout, TOP + layout.row * k as f64);
        }
        svg.finish()
    }

    /// Draws the references that are on the axis; the caption names all of them.
    fn references(&self, svg: &mut Svg, layout: &Layout, bottom: f64) {
        let axis = &layout.axis;
        let shown = |value: f64| axis.range.0 <= value && value <= axis.range.1;
        let mut free = 0.0;
        for (name, value) in self.references.iter().filter(|(_, value)| shown(*value)) {
            let x = axis.at(*value);
            svg.line("line level c6 e6", (x, TOP - 6.0), (x, bottom));
            let half = text_width(name, 14.0) / 2.0;
            let at = x.clamp(half, (layout.width - half).max(half));
            if at - half >= free {
                svg.text("tick", (at, TOP - 13.0), TextAnchor::Middle, name);
                free = at + half + 8.0;
            }
        }
    }

    fn description(&self) -> String {
        let rows = self
            .rows
            .iter()
            .map(|row| format!("{}: {}", row.name, row.text));
        format!("{}. {}.", self.label, rows.collect::<Vec<_>>().join("; "))
    }
}

impl DotRow {
    fn span(&self) -> (f64, f64) {
        let (low, high) = self.range.unwrap_or((self.value, self.value));
        (low.min(self.value), high.max(self.value))
    }

    fn draw(&self, svg: &mut Svg, layout: &Layout, top: f64) {
        let axis = &layout.axis;
        let (left, right) = axis.place;
        let y = top + layout.row - 15.0;
        let name: Position = match layout.above {
            true => (left, y - 15.0),
            false => (left - 14.0, y + 5.0),
        };
        let anchor = match layout.above {
            true => TextAnchor::Start,
            false => TextAnchor::End,
        };
        svg.text("", name, anchor, &self.name);
        svg.text(
            "value",
            (layout.width - 4.0, y + 5.0),
            TextAnchor::End,
            &self.text,
        );
        if !self.value.is_finite() {
            return;
        }
        let style = SeriesStyle::new(self.colour, Style::Markers);
        let (low, high) = axis.range;
        if self.value < low || self.value > high {
            let (tip, angle, back) = match self.value < low {
                true => (left - 4.0, std::f64::consts::PI, 18.0),
                false => (right + 4.0, 0.0, -18.0),
            };
            svg.line(&style.bar(), (tip + back / 4.0, y), (tip + back, y));
            svg.arrow_head(&style.fill(), (tip, y), angle);
            return;
        }
        if let Some((from, to)) = self.range.filter(|(low, high)| low < high) {
            let clip = |value: f64| axis.at(value.clamp(low, high));
            let (from, to) = (clip(from), clip(to));
            let mut path = polyline(&[(from, y), (to, y)]);
            for end in [from, to] {
                path += &polyline(&[(end, y - 4.0), (end, y + 4.0)]);
            }
            svg.path(&style.bar(), &path);
        }
        style.marker(svg, (axis.at(self.value), y), 4.5);
    }
}
