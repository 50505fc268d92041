//! Plots and pages of results, each in one self-contained file: no script, no font, no network. Tables for other programs.
//!
//! A [`Figure`] is named numbers. It becomes an SVG file, a CSV file, or a part of a [`Page`], which is HTML. The same figure
//! gives the same bytes on every machine. A [`RecordTable`] becomes a CSV or Parquet file. The crate knows nothing of studies, runs or privacy.
//!
//! ```
//! use radmm_report::{Axis, AxisScale, Figure, Panel, Point, Series, Style};
//!
//! let axis = |label: &str| Axis { label: label.into(), scale: AxisScale::Linear, limits: None };
//! let halves = (0..9).map(|t| Point::new(f64::from(t), 0.5f64.powi(t)));
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

mod csv;
mod html;
pub mod plot;
mod records;

pub use html::{Block, Claim, Headline, Page, Section, TextTable, sentences};
pub use plot::{Axis, AxisScale, DotPlot, DotRow, Figure, Panel, Point, Series, Style};
pub use records::{RecordColumn, RecordTable, RecordValues};
