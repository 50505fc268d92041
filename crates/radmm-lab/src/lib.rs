//! Simulated studies: repetitions on all cores, baselines, comparisons at equal privacy, convergence checks and audits.
//!
//! | module | content |
//! |---|---|
//! | `experiment`, `instantiate`, `executor` | a study with its rows, the nodes of its runs, and the threads that run them |
//! | `outcome`, `result_file`, `privacy_statement`, `final_model` | results, `result.json`, `privacy-statement.json` and `model.json` |
//! | `bill` | the privacy cost of a study, before it runs |
//! | `baseline`, `centralised`, `majority`, `prior_methods` | what a study is compared with |
//! | `candidate`, `compare`, `grid`, `stats` | comparisons at equal total privacy, of studies and of all combinations of keys |
//! | `run_table` | one table of the results of many runs |
//! | `forecast` | the accuracy to expect at an ε, and the rows that it takes |
//! | `certify` | the convergence of an algorithm |
//! | [`audit`] | attacks on the mechanism, for a lower bound on ε |
//! | [`report`] | pages about runs, comparisons and audits |
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

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests compare with the platform's functions"
    )
)]

pub mod audit;
mod baseline;
mod bill;
mod candidate;
mod centralised;
mod certify;
mod compare;
mod executor;
mod experiment;
mod final_model;
mod forecast;
mod grid;
mod instantiate;
mod majority;
mod noise_text;
mod outcome;
mod prior_methods;
mod privacy_statement;
pub mod report;
mod result_file;
mod run_table;
mod stats;

pub use baseline::{Baseline, Criterion, gossip_rounds};
pub use bill::{BillError, BilledStep, IterationCost, NodeBill, Saving, StudyBill};
pub use candidate::{Candidate, CandidateResult, HeldOutStats, IterationStats};
pub use centralised::{CentralisedParty, CentralisedResult, optimum_title};
pub use certify::{
    AlgorithmRate, Certification, CertifyError, NetworkSummary, ObservedConvergence, TheoremVerdict,
};
pub use compare::{CompareError, Comparison, ComparisonOptions, ComparisonResult};
pub use experiment::{Experiment, PrepareError};
pub use final_model::final_model;
pub use forecast::{
    BelowMajority, EpsilonForecast, Forecast, ForecastError, ForecastPoint, ForecastSource,
    Forecaster, PublicRows, RowsNeeded, RowsRelation,
};
pub use grid::{
    BestCombination, GridCell, GridComparison, GridError, GridOptions, GridResult, GridTotal,
};
pub use instantiate::RunError;
pub use majority::MajorityClass;
pub use noise_text::noise_text;
pub use outcome::{BaselineRun, FinalState, NodeResult, Outcome, RepeatedRuns, Repetition};
pub use prior_methods::PriorMethod;
pub use privacy_statement::PrivacyStatement;
pub use radmm::sim::MeanModels;
pub use radmm_study::pricing::UnattainableBudget;
pub use radmm_study::pricing::noise_check::{EXCESSIVE_SHARE, ExcessiveNoise};
pub use radmm_study::rows::{PartyRows, RowCounts, StudyRows, StudyRowsError};
pub use radmm_study::statement_text::Program;
pub use result_file::{ResultFile, caveat};
pub use run_table::{
    CollectError, CollectedMethod, CollectedRun, LeftOutRun, RunFiles, RunTable, shown_value,
};
pub use stats::SampleStats;
