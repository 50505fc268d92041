//! Errors of commands, and their exit codes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use radmm::graph::GraphError;
use radmm_data::DataError;
use radmm_lab::audit::AuditError;
use radmm_lab::{
    BillError, CertifyError, CollectError, CompareError, ForecastError, GridError, PrepareError,
    RunError, StudyRowsError, UnattainableBudget,
};
use radmm_node::evidence::{AccountError, VerifyError};
use radmm_node::key::KeyError;
use radmm_node::local_network::LocalNetworkError;
use radmm_node::runtime::{Health, NodeError};
use radmm_node::setup::{RowCommandError, RowCommandFailure, RowsError, SetupError};
use radmm_node::store::StoreError;
use radmm_node::transport::TransportError;
use radmm_paper::accuracy::AccuracyError;
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, visible};
use radmm_study::number_format::count;
use radmm_study::{ModelError, StudyError};
use thiserror::Error;

use crate::output::sqlite::RowTooLong;

/// The reason why a command failed, or did less than it was asked for.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("{0}")]
    Study(#[from] StudyError),
    #[error("{}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; choose another folder for --out", path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; the rows beyond --memory are stored in this folder: choose another with --scratch", folder.display())]
    Scratch { folder: PathBuf, cause: io::Error },
    #[error("{study}: [network] {cause}")]
    Network { study: String, cause: GraphError },
    #[error("{study}: {cause}")]
    UnattainableBudget {
        study: String,
        cause: UnattainableBudget,
    },
    #[error("--rows: {0}")]
    RowCounts(BillError),
    #[error("{study}: {}", StudyRowsError::Parties)]
    NoRows { study: String },
    #[error("{0}")]
    Rows(#[from] StudyRowsError),
    #[error("{0}")]
    Run(#[from] RunError),
    #[error("{0}")]
    Forecast(#[from] ForecastError),
    #[error(
        "give a study file, or --rows and --columns to plan without one, as in radmm plan --rows 5000,800,1200 --columns 60"
    )]
    NothingPlanned,
    #[error(
        "--set: there is no study to set a key of; give one, as in radmm audit study.toml --set privacy.epsilon=1"
    )]
    NothingToSet,
    #[error("--delta: {0}")]
    Delta(&'static str),
    #[error("--rows: {0}")]
    PlannedRows(&'static str),
    #[error("{0}")]
    Compare(#[from] CompareError),
    #[error("{0}")]
    Grid(#[from] GridError),
    #[error("{0}")]
    Collect(#[from] CollectError),
    #[error("{}: no run could be collected of {found} found", folder.display())]
    NothingCollected { folder: PathBuf, found: String },
    #[error("{} left out, and --require-all was given", count(*.0, "run was", "runs were"))]
    RunsLeftOut(usize),
    #[error("accuracy is not one of the paper's figures: run it alone, or the figures without it")]
    AccuracyWithFigures,
    #[error("{0}")]
    Accuracy(#[from] AccuracyError),
    #[error("{0}")]
    Certify(#[from] CertifyError),
    #[error("{0}")]
    NotAudited(#[from] AuditError),
    #[error(
        "the audit failed: {0}; a correct mechanism fails an audit with probability at most 5 %: try another --seed and more --runs before you distrust it"
    )]
    AuditFailed(String),
    #[error("{0}")]
    Data(#[from] DataError),
    #[error("{0}")]
    Model(#[from] ModelError),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    Verify(#[from] VerifyError),
    #[error("verification failed: {0}")]
    VerificationFailed(String),
    #[error("{0}")]
    Ledger(#[from] AccountError),
    #[error("nothing was changed; if you can vouch for it, say so: {0}")]
    NotVouched(String),
    #[error("{0}")]
    WrongTable(DataError),
    #[error("--threshold: {0}")]
    Threshold(&'static str),
    #[error("--out: {} is an input of this command; choose another file", .0.display())]
    OverwritesInput(PathBuf),
    #[error("{0}")]
    Node(#[from] NodeError),
    #[error("{0}")]
    LocalNetwork(#[from] LocalNetworkError),
    #[error(
        "{nodes} parties are too many processes for one machine, the limit is {most}; radmm run simulates any number"
    )]
    TooManyProcesses { nodes: u32, most: u32 },
    #[error("the page cannot be served: {0}")]
    Page(io::Error),
    #[error("{name}: the process cannot be started: {cause}")]
    Process { name: String, cause: io::Error },
    #[error("{name}: {error}")]
    Party { name: String, error: String },
    #[error("{}: {cause}; results cannot be written there: choose another folder for out in the site file", path.display())]
    ResultsFolder { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; the state cannot be written there: choose another folder for state in the site file", path.display())]
    StateFolder { path: PathBuf, cause: io::Error },
    #[error("{}: this folder holds the results of study {}, which would be overwritten; choose another folder for {key}, or move them", path.display(), visible(study, MAX_FOREIGN_TEXT))]
    OtherResults {
        path: PathBuf,
        study: String,
        key: &'static str,
    },
    #[error(
        "the rows cannot be read; run radmm node --check on the terminal of somebody who may see rows: it reports where and why"
    )]
    RowsUnreadable,
    #[error(
        "{site}: [data] command printed other bytes when it was run again, so that a node that is started again would find other rows and \
         refuse to resume. Add order by with a unique column to the query, and leave out what changes by itself (random(), now()); if \
         somebody writes to the rows meanwhile, read a copy of them"
    )]
    UnstableRows { site: String },
    #[error("{site}: {key} = \"{address}\": {cause}; choose another address or port")]
    Address {
        site: String,
        key: &'static str,
        address: SocketAddr,
        cause: io::Error,
    },
    #[error(
        "{site}: there is no metrics, the address at which a node serves its page; add, for example, metrics = \"127.0.0.1:9411\", and start the node again"
    )]
    NoPage { site: String },
    #[error("{}: {cause}; the node writes this file while it runs, for its own user alone", path.display())]
    NoPageLink { path: PathBuf, cause: io::Error },
    #[error("no node answers at {address}: {cause}")]
    NoNode {
        address: SocketAddr,
        cause: io::Error,
    },
    #[error("the node is {0}")]
    Unhealthy(Health),
    #[error("{name} disagrees: {difference}")]
    PeerDisagrees { name: String, difference: String },
    #[error("{0}")]
    Inspect(String),
    #[error("{0}")]
    NoFeatures(String),
    #[error("{}: this file exists; choose another with --out, or overwrite it with --force", .0.display())]
    Exists(PathBuf),
    #[error("{}: this file exists, and is not overwritten; choose another, or remove it", .0.display())]
    NotOverwritten(PathBuf),
    #[error("{}: {cause}; the account was not exported", path.display())]
    NotExported { path: PathBuf, cause: io::Error },
    #[error("the account does not fit into a file of SQLite: {0}; --csv has no such limit")]
    NotForSqlite(#[from] RowTooLong),
    #[error("the run stopped early: {0}")]
    StoppedEarly(String),
    #[error("the threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error("the result could not be printed: {0}")]
    Print(#[from] io::Error),
}

impl From<SetupError> for CommandError {
    fn from(error: SetupError) -> Self {
        Self::Node(error.into())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        SetupError::from(error).into()
    }
}

impl CommandError {
    /// Returns 2 for wrong use, which the user can correct in the arguments or files, 130 for a signal, and 1 for all other failures.
    pub(crate) fn exit_code(&self) -> u8 {
        if let Some(RowCommandFailure::Cancelled) = self.row_command_failure() {
            return 130;
        }
        let wrong_use = match self {
            Self::Study(_)
            | Self::Unreadable { .. }
            | Self::Data(DataError::MixedFormats { .. })
            | Self::Scratch { .. }
            | Self::NoRows { .. }
            | Self::Rows(StudyRowsError::Open { .. })
            | Self::NotAudited(AuditError::Run(_))
            | Self::Network { .. }
            | Self::UnattainableBudget { .. }
            | Self::RowCounts(_)
            | Self::PlannedRows(_)
            | Self::NothingPlanned
            | Self::NothingToSet
            | Self::Delta(_)
            | Self::Compare(_)
            | Self::Grid(_)
            | Self::Collect(CollectError::Folder { .. })
            | Self::AccuracyWithFigures
            | Self::Model(_)
            | Self::Verify(_)
            | Self::WrongTable(_)
            | Self::Threshold(_)
            | Self::OverwritesInput(_)
            | Self::TooManyProcesses { .. }
            | Self::ResultsFolder { .. }
            | Self::StateFolder { .. }
            | Self::OtherResults { .. }
            | Self::UnstableRows { .. }
            | Self::Address { .. }
            | Self::NoPage { .. }
            | Self::LocalNetwork(LocalNetworkError::Other(_))
            | Self::Ledger(AccountError::Store(StoreError::Missing(_)))
            | Self::NotVouched(_)
            | Self::Inspect(_)
            | Self::NotOverwritten(_)
            | Self::Exists(_) => true,
            Self::Run(error) | Self::Certify(CertifyError::Run(error)) => {
                !matches!(error, RunError::PassFailed(_))
            }
            Self::Forecast(error) => !matches!(error, ForecastError::NoSignal),
            Self::Node(error) => is_wrong_use_of_node(error),
            Self::Key(error) => !matches!(error, KeyError::Entropy),
            _ => false,
        };
        if wrong_use { 2 } else { 1 }
    }

    /// Returns whether the message may quote values of a row.
    pub(crate) fn quotes_rows(&self) -> bool {
        match self {
            Self::Node(NodeError::Setup(SetupError::Rows(error))) => match &**error {
                RowsError::Data(error) | RowsError::Table(StudyRowsError::Data(error)) => {
                    !matches!(error, DataError::Storage { .. })
                }
                // A command that has not run has said nothing.
                RowsError::Command(error) => !matches!(error.cause, RowCommandFailure::Start(_)),
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns how the command that prints the rows failed, if it did.
    fn row_command_failure(&self) -> Option<&RowCommandFailure> {
        match self {
            Self::Node(NodeError::Setup(SetupError::Rows(error))) => match &**error {
                RowsError::Command(error) => Some(&error.cause),
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts an error in the rows that a model is applied to.
    pub(crate) fn from_scored_rows(error: DataError) -> Self {
        match error {
            DataError::Format { .. }
            | DataError::NoSuchColumn { .. }
            | DataError::DuplicateColumn { .. }
            | DataError::Column { .. } => Self::WrongTable(error),
            _ => Self::Data(error),
        }
    }

    /// Converts an error in a study's network or rows; `study` is its name in messages.
    pub(crate) fn from_prepare(study: &str, error: PrepareError) -> Self {
        match error {
            PrepareError::Graph(cause) => Self::Network {
                study: study.to_owned(),
                cause,
            },
            PrepareError::Table(StudyRowsError::Parties) => Self::NoRows {
                study: study.to_owned(),
            },
            PrepareError::Table(cause) => Self::Rows(cause),
        }
    }

    /// Converts the error that no noise keeps a study within its privacy budget; `study` is its name in messages.
    pub(crate) fn unattainable_budget(study: &str, cause: UnattainableBudget) -> Self {
        Self::UnattainableBudget {
            study: study.to_owned(),
            cause,
        }
    }

    /// Converts an error of a study's privacy bill; `study` is its name in messages.
    pub(crate) fn from_bill(study: &str, error: BillError) -> Self {
        match error {
            BillError::Graph(cause) => Self::Network {
                study: study.to_owned(),
                cause,
            },
            BillError::Unattainable(cause) => Self::unattainable_budget(study, cause),
            BillError::Rows { .. } => Self::RowCounts(error),
        }
    }
}

/// Returns whether the operator can correct the error in the study or site file of a node.
fn is_wrong_use_of_node(error: &NodeError) -> bool {
    match error {
        NodeError::Setup(error) => match error {
            SetupError::Store(StoreError::Missing(_)) => true,
            SetupError::Store(_) | SetupError::Party(_) | SetupError::Journal(_) => false,
            SetupError::Rows(error) => matches!(
                **error,
                RowsError::Open { .. }
                    | RowsError::Scratch { .. }
                    | RowsError::ParquetPipe(_)
                    | RowsError::Terminal
                    | RowsError::Command(RowCommandError {
                        cause: RowCommandFailure::Start(_),
                        ..
                    })
                    | RowsError::Table(StudyRowsError::Open { .. })
            ),
            _ => true,
        },
        NodeError::Transport(error) => !matches!(error, TransportError::Threads(_)),
        NodeError::Metrics { .. } => true,
        NodeError::PageLink { .. }
        | NodeError::Party(_)
        | NodeError::Results(_)
        | NodeError::Signals(_) => false,
    }
}
