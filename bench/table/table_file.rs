//! Files of any number of rows and columns to measure studies on.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use radmm_data::{Builtin, Format};
use radmm_study::{RowSource, Study};

/// The non-zeros of a one-hot row: a row has one of `columns / ONE_HOT_GROUPS` categories of each group.
pub const ONE_HOT_GROUPS: usize = 10;

/// A kind of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The rows of the Adult table without a missing value, again and again.
    Adult,
    /// Rows of numbers, none of them zero.
    Dense {
        /// The number of columns.
        columns: usize,
    },
    /// Rows of indicators.
    OneHot {
        /// The number of columns, a multiple of [`ONE_HOT_GROUPS`].
        columns: usize,
    },
}

/// A table on disk, which is removed when this is dropped.
pub struct WrittenTable {
    table: Table,
    path: PathBuf,
}

impl Table {
    /// Writes so many rows to a file below `target/`.
    pub fn write(self, rows: usize) -> WrittenTable {
        let folder = crate::target().join("bench-data");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(match self {
            Self::Adult => "scale.csv",
            Self::Dense { .. } | Self::OneHot { .. } => "scale.svm",
        });
        let mut file = BufWriter::new(File::create(&path).unwrap());
        match self {
            Self::Adult => write_adult(&mut file, rows),
            Self::Dense { columns } => write_dense(&mut file, rows, columns),
            Self::OneHot { columns } => write_one_hot(&mut file, rows, columns),
        }
        file.flush().unwrap();
        WrittenTable { table: self, path }
    }
}

impl WrittenTable {
    /// Returns a study on the table; `rest` is all sections but `[data]`.
    pub fn study(&self, rest: &str) -> Study {
        let data = match self.table {
            Table::Adult => "[data]\nbuiltin = \"adult\"\n".to_owned(),
            Table::Dense { columns } | Table::OneHot { columns } => {
                format!(
                    "[data]\npath = {:?}\ncolumns = {columns}\npositive = \"1\"\n",
                    self.path
                )
            }
        };
        let (mut study, _) = Study::parse(&(data + rest), "scale.toml").unwrap();
        if self.table == Table::Adult {
            // The schema of the built-in table, with more rows than it has.
            study.data.source = RowSource::File(self.path.to_str().unwrap().to_owned());
            study.data.options = Format::Csv.into();
        }
        study
    }

    /// Returns the folder of the file.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }
}

impl Drop for WrittenTable {
    fn drop(&mut self) {
        // A file that stays is overwritten by the next one.
        let _ = fs::remove_file(&self.path);
    }
}

fn write_adult(file: &mut impl Write, rows: usize) {
    let mut lines = Builtin::Adult.csv().lines();
    writeln!(file, "{}", lines.next().unwrap()).unwrap();
    let complete: Vec<&str> = lines.filter(|line| !line.contains('?')).collect();
    for line in complete.iter().cycle().take(rows) {
        writeln!(file, "{line}").unwrap();
    }
}

fn write_dense(file: &mut impl Write, rows: usize, columns: usize) {
    let mut random = Random(1);
    for _ in 0..rows {
        let values: Vec<i64> = (0..columns)
            .map(|_| random.below(1999) as i64 - 999)
            .collect();
        // The first columns tell the label.
        let score: i64 = values.iter().take(10).sum::<i64>() + random.below(2000) as i64 - 1000;
        write_label(file, score);
        for (column, value) in (1..).zip(&values) {
            // An integer plus a quarter is not zero.
            write!(file, " {column}:{}", *value as f64 + 0.25).unwrap();
        }
        writeln!(file).unwrap();
    }
}

fn write_one_hot(file: &mut impl Write, rows: usize, columns: usize) {
    let categories = columns / ONE_HOT_GROUPS;
    let mut random = Random(1);
    for _ in 0..rows {
        // The smaller of two draws: some categories are more frequent than others.
        let mut draw = || random.below(categories).min(random.below(categories));
        let chosen: Vec<usize> = (0..ONE_HOT_GROUPS).map(|_| draw()).collect();
        let even = chosen.iter().filter(|&&category| category % 2 == 0).count();
        write_label(file, even as i64 - 5 + random.below(3) as i64 - 1);
        for (group, category) in chosen.iter().enumerate() {
            write!(file, " {}:1", group * categories + category + 1).unwrap();
        }
        writeln!(file).unwrap();
    }
}

fn write_label(file: &mut impl Write, score: i64) {
    write!(file, "{}", if score > 0 { "+1" } else { "-1" }).unwrap();
}

/// A linear congruential generator, which is random enough for timing.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}
