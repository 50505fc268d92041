//! Axes with ticks: the place of a value, and the values that are written beside an axis.

use super::figure::AxisScale;
use super::svg::{Position, Svg, TextAnchor};

/// One axis laid out: the map from values to coordinates, and its ticks.
pub struct AxisLayout {
    /// The label.
    pub title: String,
    /// The coordinates of both ends.
    pub place: (f64, f64),
    /// The values at both ends.
    pub range: (f64, f64),
    /// Linear or logarithmic.
    pub scale: AxisScale,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
    /// Values of short marks without a label.
    pub minor: Vec<f64>,
}

/// A pair of axes laid out.
pub struct Axes {
    /// The horizontal axis.
    pub x: AxisLayout,
    /// The vertical axis.
    pub y: AxisLayout,
    /// The distance from the vertical axis to its label.
    pub gap: f64,
}

impl AxisLayout {
    /// Returns the coordinate of a value.
    pub fn at(&self, value: f64) -> f64 {
        let measure = |value: f64| match self.scale {
            AxisScale::Linear => value,
            AxisScale::Log => libm::log10(value),
        };
        let (low, high) = (measure(self.range.0), measure(self.range.1));
        let share = (measure(value) - low) / (high - low);
        self.place.0 + share * (self.place.1 - self.place.0)
    }
}

impl Axes {
    /// Returns the position of a pair of values.
    pub fn at(&self, x: f64, y: f64) -> Position {
        (self.x.at(x), self.y.at(y))
    }

    /// Draws grid lines, ticks and labels.
    pub fn frame(&self, svg: &mut Svg) {
        let ((left, right), (bottom, top)) = (self.x.place, self.y.place);
        for (value, label) in &self.y.ticks {
            let y = self.y.at(*value);
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", (left - 9.0, y + 5.0), TextAnchor::End, label);
        }
        for &value in &self.y.minor {
            let y = self.y.at(value);
            svg.line("axis", (left - 4.0, y), (left, y));
        }
        for &value in &self.x.minor {
            let x = self.x.at(value);
            svg.line("axis", (x, bottom), (x, bottom + 3.0));
        }
        for (value, label) in &self.x.ticks {
            let x = self.x.at(*value);
            svg.line("axis", (x, bottom), (x, bottom + 5.0));
            svg.text("tick", (x, bottom + 22.0), TextAnchor::Middle, label);
        }
        svg.line("axis", (left, bottom), (right, bottom));
        let middle = (left + right) / 2.0;
        svg.text(
            "label",
            (middle, bottom + 46.0),
            TextAnchor::Middle,
            &self.x.title,
        );
        let height = (bottom + top) / 2.0;
        svg.vertical_text("label", (left - self.gap, height), &self.y.title);
    }
}

/// Returns ticks at the multiples of `step` from 0 to `end`.
pub fn integer_ticks(step: u32, end: u32) -> Vec<(f64, String)> {
    (0..=end)
        .step_by(step as usize)
        .map(|value| (f64::from(value), value.to_string()))
        .collect()
}
