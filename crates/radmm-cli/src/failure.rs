//! Why a command failed, and its exit code.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use radmm::graph::GraphError;
use radmm_data::DataError;
use radmm_lab::audit::AuditError;
use radmm_lab::{
    BillError, CertifyError, CompareError, PrepareError, StudyRowsError, UnattainableBudget,
};
use radmm_node::evidence::AccountError;
use radmm_node::evidence::VerifyError;
use radmm_node::key::KeyError;
use radmm_node::local_network::LocalNetworkError;
use radmm_node::runtime::NodeError;
use radmm_node::setup::RowsError;
use radmm_node::setup::SetupError;
use radmm_node::store::StoreError;
use radmm_node::transport::TransportError;
use radmm_paper::accuracy::AccuracyError;
use radmm_study::{ModelError, StudyError};
use thiserror::Error;

/// Why nothing, or less than was asked for, came out.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Study(#[from] StudyError),
    #[error("{}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; choose another folder for --out", path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error("{study}: [network] {cause}")]
    Network { study: String, cause: GraphError },
    #[error("{study}: {cause}")]
    TooDear {
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
    Run(#[from] radmm_lab::RunError),
    #[error("{0}")]
    Compare(#[from] CompareError),
    #[error("accuracy is not one of the paper's figures: give it alone, or the figures without it")]
    AccuracyBesideFigures,
    #[error("{0}")]
    AccuracyExperiment(#[from] AccuracyError),
    #[error("{0}")]
    Certify(#[from] CertifyError),
    #[error("{0}")]
    AuditError(#[from] AuditError),
    #[error(
        "the audit failed: {0}; a right mechanism fails with a chance of at most 5 % once: try another --seed and more --runs before you mistrust it"
    )]
    Audit(String),
    #[error("{0}")]
    Data(#[from] DataError),
    #[error("{0}")]
    Model(#[from] ModelError),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    Verify(#[from] VerifyError),
    #[error("{0} not hold")]
    Unverified(String),
    #[error("{0}")]
    Ledger(#[from] AccountError),
    #[error("{0}")]
    WrongTable(DataError),
    #[error("--threshold: {0}")]
    Threshold(&'static str),
    #[error("--out: {} is read; choose another file", .0.display())]
    Overwrites(PathBuf),
    #[error("{0}")]
    Node(#[from] NodeError),
    #[error("{0}")]
    Rehearsal(#[from] LocalNetworkError),
    #[error(
        "{nodes} parties are too many processes for one machine; {most} can be tried: radmm run simulates any number"
    )]
    TooManyProcesses { nodes: u32, most: u32 },
    #[error("{name}: the process cannot be started: {cause}")]
    Process { name: String, cause: io::Error },
    #[error("{name}: {error}")]
    Party { name: String, error: String },
    #[error("{}: {cause}; results could not be written there: choose another folder for out in the site file", path.display())]
    NoResults { path: PathBuf, cause: io::Error },
    #[error("{}: the results of study {study} are here, and would be lost; choose another folder for out in the site file, or move them", path.display())]
    OtherResults { path: PathBuf, study: String },
    #[error(
        "the rows cannot be read; radmm node --check tells where and why, on the terminal of who may see rows"
    )]
    RowsUnread,
    #[error("{site}: {key} = \"{address}\": {cause}; choose another address or port")]
    Address {
        site: String,
        key: &'static str,
        address: SocketAddr,
        cause: io::Error,
    },
    #[error("{name} disagrees: {what}")]
    Disagrees { name: String, what: String },
    #[error("{0}")]
    Inspect(String),
    #[error("{0}")]
    NoFeatures(String),
    #[error("the run stopped early: {0}")]
    Stopped(String),
    #[error("the threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error("the result could not be printed: {0}")]
    Print(#[from] io::Error),
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        Self::Node(error.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        SetupError::from(error).into()
    }
}

/// Whether what was written in the files of a node has to be put right.
fn is_wrong_use(error: &NodeError) -> bool {
    match error {
        NodeError::Setup(error) => match error {
            SetupError::Store(StoreError::Missing(_)) => true,
            SetupError::Store(_) | SetupError::Party(_) | SetupError::Journal(_) => false,
            SetupError::Rows(error) => matches!(
                **error,
                RowsError::Open { .. } | RowsError::Table(StudyRowsError::Open { .. })
            ),
            _ => true,
        },
        NodeError::Transport(error) => !matches!(error, TransportError::Threads(_)),
        NodeError::Metrics { .. } => true,
        NodeError::Party(_) | NodeError::Results(_) | NodeError::Signals(_) => false,
    }
}

impl Failure {
    /// Whether its words may hold what stands in a row.
    pub(crate) fn quotes_rows(&self) -> bool {
        match self {
            Self::Node(NodeError::Setup(SetupError::Rows(error))) => matches!(
                **error,
                RowsError::Data(_) | RowsError::Table(StudyRowsError::Data(_))
            ),
            _ => false,
        }
    }

    /// 2 for what the user can put right in what was typed or written, 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Study(_)
            | Self::Unreadable { .. }
            | Self::NoRows { .. }
            | Self::Rows(StudyRowsError::Open { .. })
            | Self::Run(_)
            | Self::Certify(CertifyError::Run(_))
            | Self::AuditError(AuditError::Run(_))
            | Self::Network { .. }
            | Self::TooDear { .. }
            | Self::RowCounts(_)
            | Self::Compare(_)
            | Self::AccuracyBesideFigures
            | Self::Model(_)
            | Self::Verify(_)
            | Self::WrongTable(_)
            | Self::Threshold(_)
            | Self::Overwrites(_)
            | Self::TooManyProcesses { .. }
            | Self::NoResults { .. }
            | Self::OtherResults { .. }
            | Self::Address { .. }
            | Self::Rehearsal(LocalNetworkError::Other(_))
            | Self::Inspect(_) => ExitCode::from(2),
            Self::Node(error) if is_wrong_use(error) => ExitCode::from(2),
            Self::Key(error) if !matches!(error, KeyError::Entropy) => ExitCode::from(2),
            Self::Ledger(AccountError::Store(StoreError::Missing(_))) => ExitCode::from(2),
            _ => ExitCode::from(1),
        }
    }

    /// Why the rows of a file have no predictions.
    pub(crate) fn of_rows(error: DataError) -> Self {
        match error {
            // Not a table for this model.
            DataError::Format { .. }
            | DataError::NoSuchColumn { .. }
            | DataError::DuplicateColumn { .. }
            | DataError::Column { .. } => Self::WrongTable(error),
            _ => Self::Data(error),
        }
    }

    /// Why a study, by its name in messages, is not ready to run.
    pub(crate) fn of_study(study: &str, error: PrepareError) -> Self {
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

    /// Why a study, by its name in messages, cannot be kept to its privacy.
    pub(crate) fn too_dear(study: &str, cause: UnattainableBudget) -> Self {
        Self::TooDear {
            study: study.to_owned(),
            cause,
        }
    }

    /// Why a study, by its name in messages, has no bill.
    pub(crate) fn of_bill(study: &str, error: BillError) -> Self {
        match error {
            BillError::Graph(cause) => Self::Network {
                study: study.to_owned(),
                cause,
            },
            BillError::Unattainable(cause) => Self::too_dear(study, cause),
            BillError::Rows { .. } => Self::RowCounts(error),
        }
    }
}
