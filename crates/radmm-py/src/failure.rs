//! Failures: errors of all crates, and the Python exceptions that they become.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use radmm::graph::GraphError;
use radmm::privacy::Guarantee;
use radmm_data::DataError;
use radmm_lab::{
    BillError, CertifyError, CompareError, ForecastError, PrepareError, RunError, StudyRowsError,
    UnattainableBudget,
};
use radmm_node::evidence::{ResultsError, VerifyError};
use radmm_node::key::KeyError;
use radmm_node::machine::PartyError;
use radmm_node::setup::{OnePartyError, RowsError, SetupError};
use radmm_node::store::StoreError;
use radmm_study::{KeyPlace, ModelError, StudyError};

/// A failure on its way to Python.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A study or site file is invalid.
    Study {
        message: String,
        file: String,
        line: Option<usize>,
        key: Option<String>,
    },
    /// Rows do not fit their study, or cannot be read.
    Data(String),
    /// A limit or total would be exceeded.
    Budget {
        message: String,
        spent: Option<f64>,
        limit: Option<Guarantee>,
    },
    /// Another process uses the ledger.
    LedgerInUse(String),
    /// The ledger cannot be read or written.
    Ledger(String),
    /// A party cannot go on.
    Party(String),
    /// Files that others show do not hold, or cannot be read.
    Verification(String),
    /// An argument is invalid.
    Value(String),
    /// The user interrupted the work.
    Interrupted,
    /// A mistake of ours.
    Bug(String),
    /// An exception of Python.
    Python(PyErr),
}

impl Failure {
    /// Converts what a thread panicked with.
    pub(crate) fn from_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Self::Bug(text.unwrap_or("no message").to_owned())
    }

    fn raise(self, py: Python<'_>) -> PyErr {
        let made = match self {
            Self::Python(error) => return error,
            Self::Interrupted => return PyKeyboardInterrupt::new_err(()),
            Self::Value(message) => return PyValueError::new_err(message),
            Self::Bug(message) => {
                return PyRuntimeError::new_err(format!(
                    "radmm failed by a mistake of its own, please report it: {message}"
                ));
            }
            Self::Study {
                message,
                file,
                line,
                key,
            } => exception(py, "StudyError", &message, |about| {
                about.set_item("file", file)?;
                about.set_item("line", line)?;
                about.set_item("key", key)
            }),
            Self::Budget {
                message,
                spent,
                limit,
            } => exception(py, "BudgetExceeded", &message, |about| {
                about.set_item("spent", spent)?;
                about.set_item("limit", limit.map(|limit| limit.epsilon))?;
                about.set_item("delta", limit.map(|limit| limit.delta))
            }),
            Self::Data(message) => plain(py, "DataError", &message),
            Self::LedgerInUse(message) => plain(py, "LedgerInUse", &message),
            Self::Ledger(message) => plain(py, "LedgerError", &message),
            Self::Party(message) => plain(py, "PartyError", &message),
            Self::Verification(message) => plain(py, "VerificationError", &message),
        };
        made.unwrap_or_else(|error| error)
    }
}

fn plain(py: Python<'_>, class: &str, message: &str) -> PyResult<PyErr> {
    exception(py, class, message, |_| Ok(()))
}

/// Makes an exception of `radmm.errors`; `fill` sets what it tells beside its message.
fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyResult<PyErr> {
    let about = PyDict::new(py);
    fill(&about)?;
    let class = py.import("radmm.errors")?.getattr(class)?;
    let made = class.call((message,), Some(&about))?;
    Ok(PyErr::from_value(made))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| failure.raise(py))
    }
}

/// Runs code of ours without the interpreter lock, and turns a panic into a failure.
pub(crate) fn guarded<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    py.detach(|| {
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|payload| Err(Failure::from_panic(&*payload)))
    })
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        let message = error.to_string();
        let (file, line, key) = match error {
            StudyError::Syntax { file, line, .. } => (file, Some(line), None),
            StudyError::Unknown { place, what, .. } => {
                let (file, line) = file_and_line(place);
                (file, line, Some(what))
            }
            StudyError::Missing { file, key, .. } => (file, None, Some(key)),
            StudyError::Wrong { place, key, .. } => {
                let (file, line) = file_and_line(place);
                (file, line, Some(key))
            }
            StudyError::Override { .. } => (String::new(), None, None),
        };
        Self::Study {
            message,
            file,
            line,
            key,
        }
    }
}

/// Returns the file and line of a key; none of either for one that was set beside the file.
fn file_and_line(place: KeyPlace) -> (String, Option<usize>) {
    match place {
        KeyPlace::Line { file, line } => (file, Some(line)),
        KeyPlace::Override(_) => (String::new(), None),
    }
}

/// Returns the failure of a study that is valid by itself and cannot be used all the same.
fn unusable_study(message: String) -> Failure {
    Failure::Study {
        message,
        file: String::new(),
        line: None,
        key: None,
    }
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        match error {
            DataError::Interrupted { .. } => Self::Interrupted,
            error => Self::Data(error.to_string()),
        }
    }
}

impl From<StudyRowsError> for Failure {
    fn from(error: StudyRowsError) -> Self {
        match error {
            StudyRowsError::Data(error) => error.into(),
            error @ StudyRowsError::Open { .. } => Self::Data(error.to_string()),
            error => unusable_study(error.to_string()),
        }
    }
}

impl From<UnattainableBudget> for Failure {
    fn from(error: UnattainableBudget) -> Self {
        Self::Budget {
            message: error.to_string(),
            spent: None,
            limit: None,
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted => Self::Interrupted,
            RunError::Unattainable(error) => error.into(),
            error => unusable_study(error.to_string()),
        }
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Self {
        unusable_study(format!("[network] {error}"))
    }
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Graph(error) => error.into(),
            PrepareError::Table(error) => error.into(),
        }
    }
}

impl From<BillError> for Failure {
    fn from(error: BillError) -> Self {
        match error {
            BillError::Graph(error) => error.into(),
            BillError::Unattainable(error) => error.into(),
            error @ BillError::Rows { .. } => Self::Value(error.to_string()),
        }
    }
}

impl From<ForecastError> for Failure {
    fn from(error: ForecastError) -> Self {
        match error {
            ForecastError::Graph(error) => error.into(),
            error => Self::Value(error.to_string()),
        }
    }
}

impl From<CertifyError> for Failure {
    fn from(error: CertifyError) -> Self {
        match error {
            CertifyError::Run(error) => error.into(),
            error => unusable_study(error.to_string()),
        }
    }
}

impl From<CompareError> for Failure {
    fn from(error: CompareError) -> Self {
        unusable_study(error.to_string())
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        Self::Verification(error.to_string())
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Value(error.to_string())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::Party(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InUse(_) => Self::LedgerInUse(error.to_string()),
            error => Self::Ledger(error.to_string()),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let message = error.to_string();
        match error {
            SetupError::Store(error) => error.into(),
            SetupError::Party(error) => error.into(),
            SetupError::BeyondLimit { spent, limit, .. } => Self::Budget {
                message,
                spent: Some(spent),
                limit: Some(limit),
            },
            SetupError::UnattainableBudget { .. } | SetupError::Inadmissible { .. } => {
                Self::Budget {
                    message,
                    spent: None,
                    limit: None,
                }
            }
            SetupError::Rows(error) => match *error {
                RowsError::Data(error) => error.into(),
                RowsError::Table(error) => error.into(),
                error => Self::Data(error.to_string()),
            },
            SetupError::Journal(_) => Self::Ledger(message),
            SetupError::NoParties(_) | SetupError::Graph { .. } => unusable_study(message),
            _ => Self::Party(message),
        }
    }
}

impl From<OnePartyError> for Failure {
    fn from(error: OnePartyError) -> Self {
        match error {
            OnePartyError::Study(error) => error.into(),
            OnePartyError::Setup(error) => error.into(),
        }
    }
}

impl From<PartyError> for Failure {
    fn from(error: PartyError) -> Self {
        match error {
            PartyError::Store(error) => error.into(),
            error => Self::Party(error.to_string()),
        }
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Store(error) => error.into(),
            error => Self::Party(error.to_string()),
        }
    }
}
