//! Many runs: a study in simulation, repeated, on all cores, beside what a user would otherwise do.
//!
//! ```
//! use radmm_lab::{Experiment, ResultFile};
//! use radmm_study::Study;
//!
//! let text = r#"
//!     [data]
//!     builtin = "clinic"
//!     label = "readmitted"
//!     positive = "yes"
//!     [data.numeric]
//!     age = [18, 95]
//!     [network]
//!     nodes = 4
//!     topology = "ring"
//!     [problem]
//!     weight = 100
//!     ridge = 1
//!     [algorithm]
//!     name = "r-admm"
//!     iterations = 10
//!     penalty = 1
//!     damping = 1
//! "#;
//! let (study, _) = Study::parse(text, "ages.toml")?;
//! let experiment = Experiment::prepare(study, ".".as_ref())?;
//! let outcome = experiment.run(None, &|_| ())?;
//! assert_eq!(outcome.repetitions[0].iterations.len(), 11);
//! assert!(ResultFile::new(&experiment, &outcome).to_json().contains("\"consensus\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod accuracy;
mod assemble;
pub mod audit;
mod baseline;
mod bill;
mod certify;
mod compare;
mod contender;
mod crew;
mod experiment;
mod outcome;
pub mod report;
pub mod reproduce;
mod result;
mod rival;
pub mod shown;
mod spread;
mod statement;

pub use assemble::RunError;
pub use bill::{Bill, BillError, Charge, NodeBill, Saving, SoFar};
pub use certify::{Certification, CertifyError, Network, Observed, Rated, Verdict};
pub use compare::{CompareError, Compared, Comparison, Pooled, Wanted};
pub use contender::{Contender, HeldOut, Measured, Moment};
pub use experiment::{Experiment, PrepareError};
pub use outcome::{Beside, End, NodeResult, Outcome, Repetition, Runs};
pub use radmm_study::drown::{DROWNING, Drowned};
pub use radmm_study::plan::TooDear;
pub use radmm_study::table::{Counts, PartyRows, Table, TableError};
pub use radmm_study::words::Program;
pub use result::{ResultFile, caveat};
pub use rival::Rival;
pub use spread::Spread;
pub use statement::PrivacyStatement;
