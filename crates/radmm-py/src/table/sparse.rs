//! Rows of a sparse matrix in compressed form (CSR).

use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use radmm_data::SparseRows;

/// The rows of a matrix that was [checked](check).
pub(super) struct CsrRows<'a> {
    pub(super) starts: ArrayView1<'a, i64>,
    pub(super) columns: ArrayView1<'a, i32>,
    pub(super) values: ArrayView1<'a, f64>,
    pub(super) width: u32,
}

impl SparseRows for CsrRows<'_> {
    fn columns(&self) -> u32 {
        self.width
    }

    fn row(&self, row: usize, entries: &mut Vec<(u32, f64)>) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        entries.clear();
        // A negative column wraps to one that is beyond every study's.
        entries.extend(range.map(|k| (self.columns[k] as u32, self.values[k])));
    }
}

/// Checks that rows lie within the values.
pub(super) fn check(
    starts: &Bound<'_, PyArray1<i64>>,
    columns: &Bound<'_, PyArray1<i32>>,
    values: &Bound<'_, PyArray1<f64>>,
) -> PyResult<()> {
    let (starts, columns, values) = (starts.readonly(), columns.readonly(), values.readonly());
    let (starts, values) = (starts.as_array(), values.as_array());
    let last = starts.last().copied();
    let ascending = starts
        .iter()
        .zip(starts.iter().skip(1))
        .all(|(a, b)| a <= b);
    let complete = starts.first() == Some(&0)
        && last.is_some_and(|last| last as usize <= values.len())
        && columns.as_array().len() == values.len();
    match ascending && complete {
        true => Ok(()),
        false => Err(PyValueError::new_err(
            "the sparse matrix is inconsistent: its rows do not lie within its values",
        )),
    }
}
