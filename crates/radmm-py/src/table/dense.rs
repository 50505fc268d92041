//! Columns of a NumPy array.

use numpy::ndarray::ArrayView1;
use radmm_data::{CellValue, MemoryColumn};

/// A column, however far its values lie apart.
pub(super) struct DenseColumn<'a>(pub(super) ArrayView1<'a, f64>);

impl MemoryColumn for DenseColumn<'_> {
    fn cell(&self, row: usize) -> CellValue<'_> {
        CellValue::Float(self.0[row])
    }
}
