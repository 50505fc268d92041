//! The Adult table as a file that radmm and its peers both read, so that all of them have the same matrix.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use radmm::curator::{NormPolicy, Shard, ShardBuilder};
use radmm_data::{Builtin, NumericScale};
use radmm_study::Study;

/// The rows of people about whom everything is known: 45,222.
pub struct Adult {
    /// A LIBSVM file.
    pub path: PathBuf,
    /// Non-zeros by ascending column, of norm one but for the last digits, and whether they earn much.
    pub rows: Vec<(Vec<(u32, f64)>, bool)>,
    /// How many there are.
    pub columns: usize,
}

impl Adult {
    /// Encodes the table that comes with the program and writes it below `target/`.
    pub fn write() -> Self {
        let folder = super::target().join("bench-data");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("adult.svm");
        let rows = encode();
        let mut file = BufWriter::new(File::create(&path).unwrap());
        for (entries, positive) in &rows {
            write!(file, "{}", if *positive { "+1" } else { "-1" }).unwrap();
            for (column, value) in entries {
                // The shortest decimal that is this double and no other.
                write!(file, " {}:{value}", column + 1).unwrap();
            }
            writeln!(file).unwrap();
        }
        file.flush().unwrap();
        let columns = Builtin::Adult.schema().columns().len();
        Self {
            path,
            rows,
            columns,
        }
    }

    /// So many of its rows, from one on.
    pub fn shard(&self, first: usize, count: usize) -> Arc<Shard> {
        let mut builder = ShardBuilder::new(self.columns, NormPolicy::Clip);
        for (entries, positive) in &self.rows[first..first + count] {
            builder.push(entries, *positive).unwrap();
        }
        Arc::new(builder.finish().unwrap())
    }

    /// A study on that file; `rest` is all sections but `[data]`.
    pub fn study(&self, rest: &str) -> Study {
        let data = format!(
            "[data]\npath = {:?}\ncolumns = {}\npositive = \"1\"\nrows = \"clip\"\n",
            self.path, self.columns
        );
        Study::parse(&(data + rest), "bench.toml").unwrap().0
    }

    /// The same on the table that comes with the program, encoded by the program.
    pub fn builtin(rest: &str) -> Study {
        let data = "[data]\nbuiltin = \"adult\"\n".to_owned();
        Study::parse(&(data + rest), "bench.toml").unwrap().0
    }
}

/// Short of one by more than rounding, so that `rows = "clip"` leaves every digit as it stands in the file.
const NORM: f64 = 1.0 - 1e-12;

fn encode() -> Vec<(Vec<(u32, f64)>, bool)> {
    let schema = Builtin::Adult.schema();
    let mut lines = Builtin::Adult.csv().lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| names.iter().position(|&n| n == name).unwrap();
    let complete = lines
        .map(|line| line.split(',').map(str::trim).collect::<Vec<_>>())
        .filter(|fields| !fields.contains(&"?"));
    let encoded = complete.map(|fields| {
        let mut entries = Vec::new();
        let mut column = 0;
        for numeric in &schema.numeric {
            let NumericScale::Bounds { low, high } = numeric.scale else {
                unreachable!("the table's own schema has no bins");
            };
            let value: f64 = fields[place(&numeric.name)].parse().unwrap();
            let value = value.clamp(low, high) / low.abs().max(high.abs());
            if value != 0.0 {
                entries.push((column, value));
            }
            column += 1;
        }
        for categorical in &schema.categorical {
            let field = fields[place(&categorical.name)];
            let value = categorical.values.iter().position(|v| v == field).unwrap();
            entries.push((column + value as u32, 1.0));
            column += categorical.values.len() as u32;
        }
        let norm = entries.iter().map(|e| e.1 * e.1).sum::<f64>().sqrt();
        entries.iter_mut().for_each(|e| e.1 *= NORM / norm);
        (entries, fields[place(&schema.label)] == schema.positive)
    });
    encoded.collect()
}
