//! The same rows in three formats, and `radmm data inspect` on them.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{radmm, text};

/// The study without its data section.
pub const REST: &str = r#"
[network]
nodes = 3
topology = "ring"
[problem]
weight = 4.0
ridge = 0.1
[algorithm]
name = "r-admm"
iterations = 6
penalty = 0.5
damping = 1.0
[privacy]
mechanism = "objective"
rate = 2.0
[run]
seed = 1
"#;

/// Returns rows of two numbers within [0, 1], many of them zero, and a class.
fn rows() -> Vec<(f64, f64, bool)> {
    let row = |n: u32| {
        let first = f64::from(n * 37 % 8) / 8.0;
        let second = f64::from(n * 11 % 5) / 4.0;
        (first, second, first + second + f64::from(n % 3) / 4.0 > 1.0)
    };
    (0..60).map(row).collect()
}

fn write_csv(path: &Path) {
    let row =
        |(a, b, class): (f64, f64, bool)| format!("{a},{b},{}\n", if class { "1" } else { "-1" });
    let lines: String = rows().into_iter().map(row).collect();
    fs::write(path, format!("1,2,label\n{lines}")).unwrap();
}

fn write_libsvm(path: &Path) {
    let row = |(a, b, class): (f64, f64, bool)| {
        let pair = |(k, x): (u32, f64)| {
            if x == 0.0 {
                String::new()
            } else {
                format!(" {k}:{x}")
            }
        };
        let label = if class { "+1" } else { "-1" };
        format!("{label}{}{}\n", pair((1, a)), pair((2, b)))
    };
    let lines: String = rows().into_iter().map(row).collect();
    fs::write(path, lines).unwrap();
}

pub fn write_parquet(path: &Path) {
    let message = "message m { required double 1; required double 2; required binary label; }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for rows in rows().chunks(25) {
        let mut group = writer.next_row_group().unwrap();
        for number in [
            |row: &(f64, f64, bool)| row.0,
            |row: &(f64, f64, bool)| row.1,
        ] {
            let mut column = group.next_column().unwrap().unwrap();
            let values: Vec<f64> = rows.iter().map(number).collect();
            column
                .typed::<DoubleType>()
                .write_batch(&values, None, None)
                .unwrap();
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        let labels: Vec<ByteArray> = rows
            .iter()
            .map(|row| if row.2 { "1" } else { "-1" }.into())
            .collect();
        column
            .typed::<ByteArrayType>()
            .write_batch(&labels, None, None)
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Returns a folder with the same rows in three formats.
pub fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    write_csv(&folder.path().join("rows.csv"));
    write_libsvm(&folder.path().join("rows.svm"));
    write_parquet(&folder.path().join("rows.parquet"));
    folder
}

/// Runs `radmm data inspect`.
pub fn inspect(folder: &Path, args: &[&str]) -> Output {
    radmm(folder, &[&["data", "inspect"], args].concat())
}

/// Returns the data section of the study drafted for a file.
pub fn section(folder: &Path, args: &[&str]) -> String {
    let output = inspect(folder, args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let study = text(&output.stdout);
    let end = study.find("[data.split]").expect("a whole study");
    study[..end].to_owned()
}

/// Runs `radmm data inspect`, which fails, and returns stderr and the exit code.
pub fn error_of(folder: &Path, args: &[&str]) -> (String, i32) {
    let output = inspect(folder, args);
    assert_eq!(text(&output.stdout), "", "a failure has no data");
    (
        text(&output.stderr).trim_end().to_owned(),
        output.status.code().unwrap(),
    )
}

/// Runs a study with this `[data]` section.
pub fn run(folder: &Path, section: &str) -> Value {
    fs::write(folder.join("study.toml"), format!("{section}{REST}")).unwrap();
    let output = radmm(folder, &["run", "study.toml", "--json"]);
    assert!(
        output.status.success(),
        "{}\n{section}",
        text(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
