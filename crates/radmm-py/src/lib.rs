//! The native half of the Python package `radmm`. The Python half, in `python/radmm`, gives it the shape that users see.
//!
//! | module | content |
//! |---|---|
//! | `failure` | errors of all crates as the exceptions of `radmm.errors` |
//! | `background` | work on a thread of its own, with progress, that Ctrl-C interrupts |
//! | `table` | rows of Arrow streams, arrays and sparse matrices, read where they are |
//! | `study`, `outcome` | studies, and the results of their simulations |
//! | `one_party` | a private classifier on one party's rows, with a durable ledger |
//! | `model` | trained models and their scores |
//! | `party` | one party of a network, for transports of other people |
//! | `workers` | rows that the workers of a party hold |
//! | `builtin` | the tables that come with the program |

mod background;
mod builtin;
mod failure;
mod model;
mod one_party;
mod outcome;
mod party;
mod study;
mod table;
mod workers;

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::failure::{Failure, guarded};

/// The functions and classes that the Python half uses.
#[pymodule]
mod _radmm {
    #[pymodule_export]
    use crate::builtin::builtin_csv;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::one_party::{OnePartyFit, fit_one_party, one_answer};
    #[pymodule_export]
    use crate::outcome::{Certified, Compared, Forecasted, Priced, Simulated, Verified};
    #[pymodule_export]
    use crate::party::PartyMachine;
    #[pymodule_export]
    use crate::run_command;
    #[pymodule_export]
    use crate::study::{StudyFile, compare, draft_columns, draft_study, toml_of_json, verify};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::workers::{
        HeldChunks, WorkerTable, count_pieces, hash_rows, row_pieces, total_counts,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        radmm_cli::silence_caught_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the command `radmm` and returns its exit code; `program` is the command that starts it again.
#[pyfunction]
fn run_command(py: Python<'_>, program: Vec<OsString>, args: Vec<OsString>) -> Result<u8, Failure> {
    guarded(py, || Ok(radmm_cli::run(program, args)))
}
