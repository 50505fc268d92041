//! The Adult table as a file that radmm and its peers both read, so that all of them have the same matrix.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use radmm::curator::Shard;
use radmm_bench::{AdultRow, adult_rows, adult_shard};
use radmm_data::Builtin;
use radmm_study::Study;

/// The rows of people about whom everything is known: 45,222.
pub struct Adult {
    /// A LIBSVM file.
    pub path: PathBuf,
    /// The rows in the order of the file.
    pub rows: Vec<AdultRow>,
    /// How many there are.
    pub columns: usize,
}

impl Adult {
    /// Encodes the table that comes with the program and writes it below `target/`.
    pub fn write() -> Self {
        let folder = super::target().join("bench-data");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("adult.svm");
        let rows = adult_rows();
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

    /// Returns `count` rows from `first` on.
    pub fn shard(&self, first: usize, count: usize) -> Arc<Shard> {
        adult_shard(&self.rows[first..first + count]).into()
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
