//! Axes with ticks: where a value is, and which values are written beside an axis.

use super::figure::Scale;
use super::svg::{Anchor, Spot, Svg};

/// From values to places along one direction.
pub struct Ruler {
    /// What the values are.
    pub title: String,
    /// Where the ends are.
    pub place: (f64, f64),
    /// The values there.
    pub range: (f64, f64),
    /// Equal steps are equal differences, or equal ratios.
    pub scale: Scale,
    /// Where a grid line is, and what it says.
    pub ticks: Vec<(f64, String)>,
    /// Short marks between them that say nothing.
    pub minor: Vec<f64>,
}

/// Two axes.
pub struct Chart {
    /// To the right.
    pub x: Ruler,
    /// Upwards.
    pub y: Ruler,
    /// From the upward axis to its title.
    pub gap: f64,
}

impl Ruler {
    /// Where a value is.
    pub fn at(&self, value: f64) -> f64 {
        let measure = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log => libm::log10(value),
        };
        let (low, high) = (measure(self.range.0), measure(self.range.1));
        let share = (measure(value) - low) / (high - low);
        self.place.0 + share * (self.place.1 - self.place.0)
    }
}

impl Chart {
    /// Where a pair of values is.
    pub fn at(&self, x: f64, y: f64) -> Spot {
        (self.x.at(x), self.y.at(y))
    }

    /// Grid, ticks and titles.
    pub fn frame(&self, svg: &mut Svg) {
        let ((left, right), (bottom, top)) = (self.x.place, self.y.place);
        for (value, words) in &self.y.ticks {
            let y = self.y.at(*value);
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", (left - 9.0, y + 5.0), Anchor::End, words);
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
            svg.text("tick", (x, bottom + 22.0), Anchor::Middle, words);
        }
        svg.line("axis", (left, bottom), (right, bottom));
        let middle = (left + right) / 2.0;
        svg.text(
            "label",
            (middle, bottom + 46.0),
            Anchor::Middle,
            &self.x.title,
        );
        let height = (bottom + top) / 2.0;
        svg.upright("label", (left - self.gap, height), &self.y.title);
    }
}

/// Ticks at multiples of a step, from 0 on.
pub fn every(step: u32, end: u32) -> Vec<(f64, String)> {
    (0..=end)
        .step_by(step as usize)
        .map(|value| (f64::from(value), value.to_string()))
        .collect()
}
