//! Passes over the rows of a party, wherever its chunks are: in this process, in a file, or with workers.
//!
//! A pass is described by public or queried quantities alone ([`Pass`]): it knows no noise, no ledger and no linear term.
//! It is divided into parts, which are runs of consecutive chunks, and gives one sum for each. The sums of all parts are
//! added up here, in the order of the chunks, so that neither threads, nor files, nor workers change a bit.

mod local;
mod pass;
#[cfg(test)]
mod tests;
mod workers;

use std::fmt::Display;

use thiserror::Error;

pub(in crate::curator) use local::{LocalChunks, PassCache};
pub(in crate::curator) use pass::{CurvaturesAt, MATRIX_PARTS, Pass, Summand};
pub use workers::{ChunkHolder, ChunkWorkers, WorkerRequest, WorkerRows};

use super::kernel::passes::CompensatedSum;
use super::rows::chunk::ChunkShape;

/// A pass over the rows failed: a disk or a worker was lost. Nothing was released, and the same query can be asked again
/// after a restart.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PassFailed(String);

impl PassFailed {
    /// Creates the error, given the place that failed, the cause, and the remedy.
    // Privacy: the cause tells of files and workers, and nothing of rows.
    pub fn new(cause: impl Display) -> Self {
        Self(cause.to_string())
    }
}

/// The rows of one party, or of several parties together, as far as passes can ask them.
pub(in crate::curator) trait RowPasses {
    /// Returns `d`, the number of columns.
    fn columns(&self) -> usize;

    /// Returns the shapes of the chunks, in order.
    fn chunks(&self) -> &[ChunkShape];

    /// Returns the weight of a chunk's rows beside those of other chunks: one unless several parties' rows are pooled.
    fn chunk_weight(&self, _chunk: usize) -> f64 {
        1.0
    }

    /// Computes the sum of each part of a pass, and calls `add` with them in order.
    fn run(&self, pass: &Pass, add: &mut dyn FnMut(CompensatedSum)) -> Result<(), PassFailed>;
}

impl dyn RowPasses + '_ {
    /// Returns the number of rows.
    pub(in crate::curator) fn rows(&self) -> usize {
        self.chunks().iter().map(|chunk| chunk.rows).sum()
    }

    /// Returns the sum over all parts, with its correction.
    pub(in crate::curator) fn total(&self, pass: &Pass) -> Result<CompensatedSum, PassFailed> {
        let mut total = CompensatedSum::zero(self.columns());
        self.run(pass, &mut |part| total.add_all(&part))?;
        Ok(total)
    }

    /// Returns the plain sum of the parts, which are matrices or numbers without corrections.
    pub(in crate::curator) fn plain_total(&self, pass: &Pass) -> Result<Vec<f64>, PassFailed> {
        let mut total: Option<Vec<f64>> = None;
        self.run(pass, &mut |part| match &mut total {
            None => total = Some(part.sum),
            Some(total) => {
                let pairs = total.iter_mut().zip(&part.sum);
                pairs.for_each(|(total, part)| *total += part);
            }
        })?;
        Ok(total.unwrap_or_default())
    }

    /// Returns the numbers of all parts, one after another: those of all rows in use.
    pub(in crate::curator) fn by_row(&self, pass: &Pass) -> Result<Vec<f64>, PassFailed> {
        let mut all = Vec::new();
        self.run(pass, &mut |part| all.extend(part.sum))?;
        Ok(all)
    }
}
