//! Tables that come with the program.

use pyo3::prelude::*;
use radmm_data::Builtin;

use crate::failure::Failure;

/// Returns the text of a built-in table as CSV.
#[pyfunction]
pub(crate) fn builtin_csv(name: &str) -> Result<&'static str, Failure> {
    let found = Builtin::ALL.into_iter().find(|table| table.name() == name);
    let table = found.ok_or_else(|| Failure::Value(format!("there is no built-in table {name:?}")));
    Ok(table?.csv())
}
