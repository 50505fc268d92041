//! Estimated times of a solver's work, on which its choice of method depends.
//!
//! They are nanoseconds per row, column or entry as measured by `make bench`, rounded. Only their ratios matter, and no
//! choice depends on a clock, so that the same rows and queries take the same steps everywhere.

use super::objective::Objective;
use crate::curator::rows::chunk::ChunkShape;

/// Per row: exponentials, and the rest of a pass.
const ROW: f64 = 1.2;
/// Per column, and per value of a code: tables that a pass fills and empties.
const COLUMN: f64 = 3.0;
/// Per row and dense column, of a gradient.
const DENSE: f64 = 0.12;
/// Per row and code, of a gradient.
const CODE: f64 = 0.8;
/// Per sparse entry, of a gradient.
const SPARSE: f64 = 2.0;
/// Per row and pair of dense columns, of a Hessian.
const DENSE_PAIR: f64 = 0.05;
/// Per row and code, for each eight dense columns, of a Hessian.
const CODE_AND_EIGHT: f64 = 1.0;
/// Per row and pair of a code and a group of another code, of a Hessian.
const CODE_AND_GROUP: f64 = 0.5;
/// Per row and pair of entries of which one is sparse, and per pair of rows and entry of their product.
const SPARSE_PAIR: f64 = 1.0;
/// Per multiplication of a factorisation.
const FACTOR: f64 = 0.05;

/// The largest number of columns at which a Hessian is computed: it takes 128 MB then.
const MAX_COLUMNS: usize = 4096;
/// The time of a direction by conjugate gradients, in gradients: it takes thirty products with the Hessian or more.
const CONJUGATE_GRADIENTS: f64 = 30.0;

impl Objective<'_> {
    /// Returns whether directions come from a factor of the Hessian. Otherwise they come from conjugate gradients.
    pub(in crate::curator) fn factor_pays(&self) -> bool {
        let size = match self.solves_by_rows() {
            true => self.rows.rows(),
            false => self.linear.len(),
        };
        size <= MAX_COLUMNS && self.gradients_per_hessian() <= CONJUGATE_GRADIENTS
    }

    /// Returns whether a factor of the rows' products is smaller than one of the Hessian.
    pub(in crate::curator) fn solves_by_rows(&self) -> bool {
        2 * self.rows.rows() <= self.linear.len()
    }

    /// Returns the time of a Hessian and its factor, in gradients.
    pub(in crate::curator) fn gradients_per_hessian(&self) -> f64 {
        let sum = |of: fn(&ChunkShape) -> f64| self.chunks_in_use().map(of).sum::<f64>();
        let (rows, columns) = (self.rows.rows() as f64, self.linear.len() as f64);
        let hessian = match self.solves_by_rows() {
            true => {
                let entries = sum(|chunk| chunk.max_entries() as f64);
                SPARSE_PAIR * rows * entries / 2.0 + FACTOR * rows.powi(3) / 3.0
            }
            false => sum(hessian) + FACTOR * columns.powi(3) / 3.0,
        };
        hessian / (COLUMN * columns + sum(gradient))
    }
}

/// Returns the time of a gradient.
fn gradient(chunk: &ChunkShape) -> f64 {
    let (dense, codes) = (chunk.dense as f64, chunk.codes as f64);
    (ROW + DENSE * dense + CODE * codes) * chunk.rows as f64
        + SPARSE * chunk.sparse_entries as f64
        + COLUMN * chunk.values as f64
}

/// Returns the time of a Hessian.
fn hessian(chunk: &ChunkShape) -> f64 {
    let (dense, codes) = (chunk.dense as f64, chunk.codes as f64);
    let (rows, groups) = (chunk.rows as f64, chunk.groups as f64);
    let per_row = ROW
        + DENSE_PAIR * dense * dense / 2.0
        + CODE_AND_EIGHT * codes * (1.0 + dense / 8.0)
        + CODE_AND_GROUP * codes * groups / 2.0;
    let sparse = chunk.sparse_entries as f64;
    let entries_per_row = dense + groups + sparse / rows;
    gradient(chunk) / 2.0 + per_row * rows + SPARSE_PAIR * sparse * entries_per_row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::row_passes::LocalChunks;
    use crate::curator::{NormPolicy, Shard, ShardBuilder};
    use crate::problem::Loss;

    /// Returns rows with this many numbers, and one indicator of each group of so many.
    fn shard(rows: usize, numbers: u32, groups: u32, size: u32) -> Shard {
        let columns = numbers + groups * size;
        let mut builder = ShardBuilder::new(columns as usize, NormPolicy::Unit);
        for n in 0..rows as u32 {
            let number = |k: u32| (k, 1.0 + f64::from((n + k) % 7));
            let indicator = |g: u32| (numbers + g * size + (n * (g + 3)) % size, 1.0);
            let entries = (0..numbers).map(number).chain((0..groups).map(indicator));
            let entries: Vec<(u32, f64)> = entries.collect();
            builder.push(&entries, n % 2 == 0).unwrap();
        }
        builder.finish().unwrap()
    }

    /// Returns whether a factor pays, and its time in gradients.
    fn choice(shard: &Shard) -> (bool, f64) {
        let linear = vec![0.0; shard.columns()];
        let rows = (LocalChunks::in_test(shard), 1.0);
        let objective = Objective::of_party(rows, Loss::Logistic, 1.0, &linear);
        (objective.factor_pays(), objective.gradients_per_hessian())
    }

    #[test]
    fn a_hessian_of_a_table_costs_a_few_gradients() {
        for (rows, most) in [(100, 20.0), (2_000, 8.0), (20_000, 4.0)] {
            let (pays, gradients) = choice(&shard(rows, 6, 8, 12));
            assert!(
                pays && (2.0..most).contains(&gradients),
                "{rows}: {gradients}"
            );
        }
    }

    #[test]
    fn a_factor_pays_up_to_a_number_of_columns_that_depends_on_rows() {
        // The same thousand columns: with few rows by their products, with many by their sum, and neither between.
        for (rows, pays) in [(20, true), (2_000, false), (200_000, true)] {
            assert_eq!(choice(&shard(rows, 0, 10, 100)).0, pays, "{rows} rows");
        }
        // A thousand numbers in every row: a Hessian takes hundreds of gradients, however many rows there are.
        for rows in [600, 3_000] {
            assert!(!choice(&shard(rows, 1_000, 0, 0)).0, "{rows} rows");
        }
        assert!(choice(&shard(600, 40, 0, 0)).0);
    }
}
