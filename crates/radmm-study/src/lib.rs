//! The study file: one TOML document that all parties agree on, checked key by key.
//!
//! [`Study::parse`] reads a text and checks every key once. A parsed [`Study`] needs no further checks: penalties are
//! positive over all iterations, splits have a value for every node, noise has an amount. Facts that the file alone
//! cannot tell (whether the columns exist, whether a random graph is connected) are checked by the crates that read
//! rows and build graphs.
//!
//! ```
//! use radmm_study::{Method, Study};
//!
//! let text = r#"
//!     [data]
//!     path = "rows.csv"
//!     label = "outcome"
//!     positive = "yes"
//!     [data.numeric]
//!     age = [0, 90]
//!     [network]
//!     nodes = 5
//!     topology = "ring"
//!     [problem]
//!     weight = 1750.0
//!     ridge = 0.00316
//!     [algorithm]
//!     name = "r-admm"
//!     iterations = 100
//!     penalty = 0.5
//!     damping = 1.0
//! "#;
//! let (study, notes) = Study::parse(text, "ages.toml").unwrap();
//! assert_eq!(study.name, "ages");
//! assert!(matches!(study.algorithm.method, Method::RecycledAdmm { recycle: 1, .. }));
//! assert!(notes.is_empty());
//!
//! let error = Study::parse(&text.replace("penalty = 0.5", "penalty = -1"), "ages.toml").unwrap_err();
//! assert_eq!(error.to_string(), "ages.toml:17: [algorithm] penalty = -1: must be positive and finite");
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `study`, `site` | the study file, and the file that one party keeps to itself |
//! | `parse` | from TOML to a checked study: one file a section |
//! | `overrides`, `grid_axis` | keys given beside the file, in place of its own; several values of one |
//! | `canonical` | the one way to write a study: its digest, and where two studies differ |
//! | [`algorithm`] | the registry of algorithms |
//! | [`pricing`] | from a total ε to the noise of every party, and back, before a row is read |
//! | `tick` | when answers of real parties leave |
//! | [`instantiate`], [`rows`] | from a study to the parts of a node |
//! | `model` | the model file: weights, the meaning of their columns, and what they cost |
//! | [`number_format`], [`byte_size`], [`statement_text`], [`foreign_text`], [`hex`] | texts that all programs share |
//!
//! Serialised, a study has the sections and keys of its file, with the defaults filled in: written as TOML it would
//! parse to the same study.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests compare with the platform's functions"
    )
)]

pub mod algorithm;
pub mod byte_size;
mod canonical;
mod choice;
mod error;
pub mod foreign_text;
mod grid_axis;
pub mod hex;
mod identity;
pub mod instantiate;
mod model;
mod noise;
pub mod number_format;
mod overrides;
mod parse;
pub mod pricing;
pub mod rows;
mod site;
pub mod statement_text;
mod study;
mod tick;

pub use algorithm::Method;
pub use canonical::diff::{Difference, first_difference};
pub use canonical::digest::sha256_of_json;
pub use canonical::dotted_keys::dotted_keys;
pub use canonical::write_toml::toml_of_json;
pub use choice::Choice;
pub use error::{KeyPlace, Note, StudyError};
pub use grid_axis::GridAxis;
pub use identity::{Identity, IdentityError};
pub use model::{BadWeights, ModelError, ModelFile, ModelGuarantee, Trained};
pub use noise::{Noise, NoiseKind, TotalBudget};
pub use overrides::{Override, OverrideError};
pub use radmm::privacy::NoiseFamily;
pub use site::{Limit, MemoryLimit, NoiseOrigin, RowCommand, SiteData, SiteFile, SiteRows};
pub use study::{
    AlgorithmSection, DataSection, NetworkSection, PrivacySection, ProblemSection, RowSource,
    RunSection, Start, Study, StudyParty, TestRows,
};
