//! Axes with ticks: where a value is, and which values are written beside an axis.

use super::figure::AxisScale;
use super::svg::{Position, Svg, TextAnchor};

/// From values to places along one direction.
pub struct AxisLayout {
    /// What the values are.
    pub title: String,
    /// Where the ends are.
    pub place: (f64, f64),
    /// The values there.
    pub range: (f64, f64),
    /// Equal steps are equal differences, or equal ratios.
    pub scale: AxisScale,
    /// Where a grid line is, and what it says.
    pub ticks: Vec<(f64, String)>,
    /// Short marks between them that say nothing.
    pub minor: Vec<f64>,
}

/// Two axes.
pub struct Axes {
    /// To the right.
    pub x: AxisLayout,
    /// Upwards.
    pub y: AxisLayout,
    /// From the upward axis to its title.
    pub gap: f64,
}

impl AxisLayout {
    /// Where a value is.
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
    /// Where a pair of values is.
    pub fn at(&self, x: f64, y: f64) -> Position {
        (self.x.at(x), self.y.at(y))
    }

    /// TextTable, ticks and titles.
    pub fn frame(&self, svg: &mut Svg) {
        let ((left, right), (bottom, top)) = (self.x.place, self.y.place);
        for (value, words) in &self.y.ticks {
            let y = self.y.at(*value);
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", (left - 9.0, y + 5.0), TextAnchor::End, words);
        }
        for &value in &self.y.minor {
            let y = self.y.at(value);
            svg.line("axis", (left - 4.0, y), (left, y));
        }
        for &value in &self.x.minor {
            let x = self.x.at(value);
            svg.line("axis", (x, bottom), (x, bottom + 3.0));
        }
        for (value, words) in &self.x.ticks {
            let x = self.x.at(*value);
            svg.line("axis", (x, bottom), (x, bottom + 5.0));
            svg.text("tick", (x, bottom + 22.0), TextAnchor::Middle, words);
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

/// Ticks at multiples of a step, from 0 on.
pub fn integer_ticks(step: u32, end: u32) -> Vec<(f64, String)> {
    (0..=end)
        .step_by(step as usize)
        .map(|value| (f64::from(value), value.to_string()))
        .collect()
}
