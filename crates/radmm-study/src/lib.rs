//! The study file: one TOML document that all parties agree on.
//!
//! [`Study::parse`] goes from what was typed to what it means and checks every key on the way, once. What it returns
//! needs no further checks: penalties are positive over all iterations, splits have a value for every node, noise has
//! a scale. What the file alone cannot tell (whether the columns exist, whether a drawn graph is connected) is for the
//! crates that read rows and build graphs.
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
//! A [`ModelFile`] is what comes of a study at one party: weights, what their columns mean, and what they cost.
//!
//! Serialised, a study has the sections and keys of its file, with the defaults filled in: written as TOML it would
//! parse to the same study.

mod address;
mod algorithm;
pub mod assemble;
mod data;
mod difference;
pub mod drown;
mod entry;
pub mod equal;
mod error;
mod features;
mod fingerprint;
mod hex;
mod identity;
mod meaning;
mod model;
mod network;
mod noise;
mod parties;
pub mod plan;
mod privacy;
mod problem;
mod reader;
mod run;
mod schedule;
pub mod shown;
mod site;
mod spelling;
mod split;
pub mod table;
mod test;
pub mod words;

use std::path::Path;

use radmm::account::Bound;
use radmm::private::{Loss, Mechanism};
use radmm::public::graph::Topology;
use radmm::public::release::Precision;
use radmm::public::schedule::Schedule;
use radmm_data::{Builtin, Format, Holdout, Schema, Split};
use serde::Serialize;

pub use difference::{Difference, first_difference};
pub use error::{Note, StudyError};
pub use identity::{Identity, IdentityError};
pub use model::{BadWeights, ModelError, ModelFile, ModelGuarantee, Trained};
pub use noise::{Family, Kind, Noise, Total};
pub use parties::Party;
use reader::{Document, Known, Section};
pub use site::{Limit, NoiseOrigin, SiteData, SiteFile, SiteRows};

const KNOWN: Known = Known {
    keys: &["name"],
    sections: &["data", "network", "problem", "algorithm", "privacy", "run"],
    lists: &["parties"],
};

/// What is computed, on which rows, by whom and with which privacy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// For people; the file's stem unless given.
    pub name: String,
    /// The rows and what they mean.
    pub data: Data,
    /// Who talks to whom.
    pub network: Network,
    /// Who they are, by node; empty, and then not serialised, if the study is only simulated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parties: Vec<Party>,
    /// What is minimised.
    pub problem: Problem,
    /// How.
    pub algorithm: Algorithm,
    /// Which noise protects the rows.
    pub privacy: Privacy,
    /// How often, and from which seed.
    pub run: Run,
}

/// The rows and what they mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Where the rows are.
    pub source: Source,
    /// How they are written there; built-in tables are CSV.
    pub format: Format,
    /// How they become numbers.
    pub schema: Schema,
    /// Which node they belong to.
    pub split: Split,
    /// Which are tested on and not trained on.
    pub test: Option<Test>,
}

/// Rows that are tested on and not trained on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Test {
    /// Some rows of the table.
    Held(Holdout),
    /// All rows of another file.
    File {
        /// As written: relative to the study file.
        path: String,
        /// How they are written there.
        format: Format,
    },
}

/// Where rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In a file, as written: relative to the study file.
    File(String),
    /// In the program.
    Builtin(Builtin),
    /// Every party has a file of its own, which the study does not name.
    Parties,
}

/// Who talks to whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// At least two.
    pub nodes: u32,
    /// The shape of the graph.
    pub topology: Topology,
}

/// What is minimised: `Σ_i (C/B_i) Σ_n L(y_n fᵀx_n) + (ρ/N)·½‖f‖²`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// `L`.
    #[serde(flatten)]
    pub loss: Loss,
    /// `C > 0`.
    pub weight: f64,
    /// `ρ > 0`.
    pub ridge: f64,
}

/// How the problem is solved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Algorithm {
    /// Which step, with its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// At least one.
    pub iterations: u32,
    /// `f(0)`.
    pub start: Start,
    /// The gradient norm at which a minimisation is taken as solved.
    pub tolerance: f64,
}

/// The models before the first iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// All zeros.
    Zeros,
    /// Independent normal draws with this standard deviation.
    Normal(f64),
}

/// An algorithm and its parameters. Penalties `η` are positive and dampings `γ` non-negative over all iterations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name")]
pub enum Method {
    /// Conventional ADMM.
    #[serde(rename = "admm")]
    Admm {
        /// `η`.
        penalty: Schedule,
    },
    /// R-ADMM: after each data step, steps that reuse its gradient.
    #[serde(rename = "r-admm")]
    RecycledAdmm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
        /// Recycled steps a data step.
        recycle: u32,
    },
    /// M-ADMM: every node has its own penalty, which does not decrease.
    #[serde(rename = "m-admm")]
    MAdmm {
        /// `η_i`, one a node.
        #[serde(serialize_with = "schedule::serialize")]
        penalty: Vec<Schedule>,
        /// `θ`, at most every penalty.
        dual_step: f64,
    },
    /// M-ADMM and R-ADMM together.
    #[serde(rename = "mr-admm")]
    MRecycledAdmm {
        /// `η_i`, one a node.
        #[serde(serialize_with = "schedule::serialize")]
        penalty: Vec<Schedule>,
        /// `γ_i`, one a node.
        #[serde(serialize_with = "schedule::serialize")]
        damping: Vec<Schedule>,
        /// Recycled steps a data step.
        recycle: u32,
        /// `θ`, at most every penalty.
        dual_step: f64,
    },
    /// ADMM on the linearised objective.
    #[serde(rename = "dlm")]
    Dlm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
    },
    /// DLM with recycled steps.
    #[serde(rename = "r-dlm")]
    RecycledDlm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
        /// Recycled steps a data step.
        recycle: u32,
    },
    /// Decentralised gradient descent.
    #[serde(rename = "dgd")]
    Dgd {
        /// `s`.
        step: Schedule,
    },
    /// Every node alone.
    #[serde(rename = "local")]
    Local {
        /// `a`, added to the ridge.
        extra_ridge: f64,
    },
    /// Every node alone, then the mean of all models.
    #[serde(rename = "average")]
    Average {
        /// `a`, added to the ridge.
        extra_ridge: f64,
    },
}

/// Which noise protects the rows, and how its cost is stated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Privacy {
    /// Where noise enters, its law, and how much there is or what it may cost.
    #[serde(flatten)]
    pub noise: Noise,
    /// Which proof prices objective perturbation with gamma noise.
    pub bound: Bound,
    /// `δ`; 0 for pure privacy, and then not serialised.
    #[serde(skip_serializing_if = "is_zero")]
    pub delta: f64,
    /// How releases are written.
    pub precision: Precision,
}

impl Privacy {
    /// Why no guarantee covers the answers, in words that go on from "answers are released"; `None` if one does.
    pub fn unprotected(&self) -> Option<&'static str> {
        match (self.noise.like(), self.precision) {
            (Mechanism::None, _) => Some("without noise"),
            (_, Precision::Float) => Some("as doubles, whose last digits no guarantee covers"),
            (_, Precision::Grid) => None,
        }
    }
}

/// How often the study is run, and from which seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// At least one.
    pub repetitions: u32,
    /// Of noise and of a random start.
    pub seed: u64,
}

impl Study {
    /// Reads a study and checks it. `file` is its name in messages and, without directory and extension, in results.
    ///
    /// Notes come in the order of their lines.
    pub fn parse(text: &str, file: &str) -> Result<(Self, Vec<Note>), StudyError> {
        let document = Document { file, text };
        let table = document.table()?;
        let top = Section::top(document, &table, &KNOWN)?;

        let mut notes = Vec::new();
        let parties = parties::read(&top)?;
        let name = match top.get("name") {
            Some(name) => match name.words()? {
                words if words.chars().any(char::is_control) => {
                    return Err(name.wrong("must not hold control characters"));
                }
                words => words.to_owned(),
            },
            None if parties.is_empty() => stem(file),
            None => {
                let meaning =
                    "what all parties call the study: each may have its file under another name";
                return Err(top.missing("name", meaning));
            }
        };
        let (source, format, schema) = data::read(&top, &parties, &mut notes)?;
        let network = network::read(&top, parties.len(), &mut notes)?;
        let split = split::read(&top, &source, &schema, network.nodes, &mut notes)?;
        let test = test::read(&top, &source, format, &mut notes)?;
        let problem = problem::read(&top, &mut notes)?;
        let algorithm = algorithm::read(&top, network.nodes, &mut notes)?;
        problem::check(&top, &problem, algorithm.tolerance)?;
        let privacy = privacy::read(&top, &algorithm.method, &mut notes)?;
        let run = run::read(&top, &source, &algorithm, &privacy, &mut notes)?;

        notes.sort_by_key(|note| note.line);
        let study = Self {
            name,
            data: Data {
                source,
                format,
                schema,
                split,
                test,
            },
            network,
            parties,
            problem,
            algorithm,
            privacy,
            run,
        };
        Ok((study, notes))
    }
}

impl Method {
    /// As in the file: `r-admm`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Admm { .. } => "admm",
            Self::RecycledAdmm { .. } => "r-admm",
            Self::MAdmm { .. } => "m-admm",
            Self::MRecycledAdmm { .. } => "mr-admm",
            Self::Dlm { .. } => "dlm",
            Self::RecycledDlm { .. } => "r-dlm",
            Self::Dgd { .. } => "dgd",
            Self::Local { .. } => "local",
            Self::Average { .. } => "average",
        }
    }

    /// Whether its data steps ask for gradients; if not, for minimisers.
    pub fn asks_for_gradients(&self) -> bool {
        match self {
            Self::Dlm { .. } | Self::RecycledDlm { .. } | Self::Dgd { .. } => true,
            Self::Admm { .. }
            | Self::RecycledAdmm { .. }
            | Self::MAdmm { .. }
            | Self::MRecycledAdmm { .. }
            | Self::Local { .. }
            | Self::Average { .. } => false,
        }
    }
}

fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem();
    stem.map_or("study".into(), |stem| stem.to_string_lossy())
        .into_owned()
}

fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
