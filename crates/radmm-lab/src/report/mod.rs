//! Pictures and pages of results, each in one file that needs nothing else: no script, no fonts, no network.
//!
//! A [`Figure`] is numbers with names; it becomes an SVG file, a CSV file, or a part of a [`Page`], which is HTML. The same
//! figure gives the same bytes on every machine.
//!
//! ```
//! use radmm_lab::report::{Axis, Figure, Panel, Point, Scale, Series, Style};
//!
//! let axis = |label: &str| Axis { label: label.into(), scale: Scale::Linear, limits: None };
//! let halves = (0..9).map(|t| Point { x: f64::from(t), y: 0.5f64.powi(t), range: None });
//! let figure = Figure {
//!     id: "halves".into(),
//!     title: "Half of it is lost at every step".into(),
//!     caption: String::new(),
//!     columns: 1,
//!     panels: vec![Panel {
//!         title: String::new(),
//!         x: axis("step"),
//!         y: axis("what is left"),
//!         series: vec![Series { name: "halves".into(), colour: 0, style: Style::Marked, points: halves.collect() }],
//!     }],
//! };
//! assert!(figure.to_svg().starts_with("<svg"));
//! assert!(figure.to_csv().contains(",halves,1,0.5,,\n"));
//! ```

mod audit;
pub mod chart;
mod compare;
mod course;
mod csv;
mod figure;
mod legend;
mod look;
mod numbers;
mod page;
mod panel;
mod picture;
mod plate;
mod run;
pub mod svg;
pub mod tables;
mod ticks;

pub use figure::{Axis, Figure, Panel, Point, Scale, Series, Style};
pub use page::{Block, Claim, Grid, Page, Section};
pub use run::of_run;
