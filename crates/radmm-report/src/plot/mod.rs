//! Figures as SVG: axes, ticks, legends, and the series between them.

pub mod axes;
mod figure;
mod legend;
mod panel;
mod series_style;
pub mod svg;
mod svg_figure;
mod ticks;

pub use figure::{Axis, AxisScale, Figure, Panel, Point, Series, Style};
pub(crate) use legend::{SAMPLE_WIDTH, distinct, shared};
pub(crate) use series_style::{SeriesStyle, needs_markers};
pub(crate) use svg_figure::{STYLE, anchor};
pub(crate) use ticks::thousands;
