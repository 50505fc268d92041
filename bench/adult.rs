//! The rows of UCI's Adult table, encoded. Its categories are skewed: nine people in ten have the same native country. So sums over
//! categories add to the same cell row after row, which rows of evenly spread categories do not show.

use radmm::curator::{NormPolicy, Shard, ShardBuilder};
use radmm_data::{Builtin, NumericScale};

/// A row by ascending column, of norm one but for the last digits, and whether its person earns above 50,000 dollars.
pub type AdultRow = (Vec<(u32, f64)>, bool);

/// The parties of the study in which R-ADMM is compared with NumPy.
pub const ADULT_PARTIES: usize = 20;

/// A norm short of one by more than rounding, so that clipping to norm one leaves every digit.
const NORM: f64 = 1.0 - 1e-12;

/// Encodes the 45,222 rows without a missing value, in the order of the table.
pub fn adult_rows() -> Vec<AdultRow> {
    let schema = Builtin::Adult.schema();
    let mut lines = Builtin::Adult.csv().lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| names.iter().position(|&n| n == name).unwrap();
    let numeric: Vec<_> = schema.numeric.iter().map(|n| place(&n.name)).collect();
    let categorical: Vec<_> = schema.categorical.iter().map(|c| place(&c.name)).collect();
    let label = place(&schema.label);
    let complete = lines
        .map(|line| line.split(',').map(str::trim).collect::<Vec<_>>())
        .filter(|fields| !fields.contains(&"?"));
    let encoded = complete.map(|fields| {
        let mut entries = Vec::new();
        let mut column = 0;
        for (numeric, &place) in schema.numeric.iter().zip(&numeric) {
            let NumericScale::Bounds { low, high } = numeric.scale else {
                unreachable!("the table's own schema has no bins");
            };
            let value: f64 = fields[place].parse().unwrap();
            let value = value.clamp(low, high) / low.abs().max(high.abs());
            if value != 0.0 {
                entries.push((column, value));
            }
            column += 1;
        }
        for (categorical, &place) in schema.categorical.iter().zip(&categorical) {
            let mut values = categorical.values.iter();
            let value = values.position(|value| value == fields[place]).unwrap();
            entries.push((column + value as u32, 1.0));
            column += categorical.values.len() as u32;
        }
        let norm = entries.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt();
        entries.iter_mut().for_each(|e| e.1 *= NORM / norm);
        (entries, fields[label] == schema.positive)
    });
    encoded.collect()
}

/// Stores rows of the table as a party does.
pub fn adult_shard<'a>(rows: impl IntoIterator<Item = &'a AdultRow>) -> Shard {
    let columns = Builtin::Adult.schema().columns().len();
    let mut builder = ShardBuilder::new(columns, NormPolicy::Clip);
    for (entries, positive) in rows {
        builder.push(entries, *positive).unwrap();
    }
    builder.finish().unwrap()
}

/// Returns the rows of the first party of twenty: 2,262.
pub fn adult_party(rows: &[AdultRow]) -> Shard {
    adult_shard(rows.iter().step_by(ADULT_PARTIES))
}
