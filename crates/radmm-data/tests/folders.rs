//! The files of a folder or of a pattern are one table, in the order of their names.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::Write;
use std::path::Path;

use radmm_data::{
    DataError, FileOptions, Format, Holdout, Numeric, Partition, PartitionSpec, Schema, Separator,
    Split, TableFile, TableStream, profile, read_partition, read_test_set, score_each,
};
use tempfile::TempDir;

fn schema() -> Schema {
    Schema {
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        ..Schema::new("ill", "yes")
    }
}

/// Creates a folder with these files.
fn folder<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

const FILES: [(&str, &str); 4] = [
    ("rows/b.csv", "ill,age,ward\nyes,30,w\nno,40,w\n"),
    ("rows/a/late.csv", "age,ill\n20,no\n"),
    ("rows/a.csv", "age,ill,note\n10,yes,x\n"),
    ("rows/_SUCCESS", ""),
];

/// The same rows in one file, in the order of the files' names: `a.csv`, `a/late.csv`, `b.csv`.
const WHOLE: &str = "age,ill\n10,yes\n20,no\n30,yes\n40,no\n";

fn open(path: &Path) -> TableFile {
    TableFile::open(path, FileOptions::default()).unwrap()
}

fn partition(path: &Path, split: &Split, schema: &Schema) -> Result<Partition, DataError> {
    read_partition(open(path), schema, PartitionSpec::new(split, 2))
}

/// Returns the error of a table, without its folder.
fn refusal(folder: &TempDir, path: &str, options: impl Into<FileOptions>) -> String {
    let table = TableFile::open(&folder.path().join(path), options).unwrap();
    let spec = PartitionSpec::new(&Split::RoundRobin, 2);
    let error = read_partition(table, &schema(), spec).err();
    let said = error.expect("the table should be refused").to_string();
    said.replace(&format!("{}/", folder.path().display()), "")
}

/// The entries of a row and its label.
type Encoded = (Vec<(u32, f64)>, Option<bool>);

fn scored<'a>(table: impl Into<radmm_data::TableSource<'a>>) -> Vec<Encoded> {
    let mut rows = Vec::new();
    let clip = Schema {
        rows: radmm::curator::NormPolicy::Clip,
        ..schema()
    };
    score_each(table, &clip, |row| -> Result<(), DataError> {
        let row = row.unwrap();
        rows.push((row.entries().to_vec(), row.positive()));
        Ok(())
    })
    .unwrap();
    rows
}

#[test]
fn the_rows_of_all_files_come_in_the_order_of_names_with_columns_in_any_order() {
    let folder = folder(FILES);
    let whole = scored(TableStream::new(WHOLE.as_bytes(), "rows.csv", Format::Csv));
    for path in ["rows", "rows/", "rows/**/*.csv", "r*s"] {
        assert_eq!(scored(open(&folder.path().join(path))), whole, "{path}");
    }
    let found = partition(&folder.path().join("rows"), &Split::RoundRobin, &schema()).unwrap();
    assert_eq!((found.read, found.positive), (4, 2));
    assert_eq!(found.ignored, ["note", "ward"]);
    let test = read_test_set(open(&folder.path().join("rows/*.csv")), &schema(), None).unwrap();
    assert_eq!((test.shard.rows(), test.positive), (3, 2));
}

#[test]
fn rows_are_held_out_over_the_borders_of_files() {
    let folder = folder(FILES);
    let holdout = Holdout::Last { rows: 2 };
    let spec = PartitionSpec::new(&Split::RoundRobin, 2).holding_out(&holdout);
    let found = read_partition(open(&folder.path().join("rows")), &schema(), spec).unwrap();
    assert_eq!(
        (found.read, found.held_out(), found.test_positive),
        (2, 2, 1)
    );
}

#[test]
fn errors_name_the_file_within_the_folder() {
    let base = FILES[2];
    for (name, text, says) in [
        (
            "rows/z.csv",
            "years,ill\n1,no\n",
            "rows/z.csv:1: there is no column \"age\"; the header has \"years\", \"ill\"",
        ),
        (
            "rows/deep/z.csv",
            "age,ill\n1,no\nx,no\n",
            "rows/deep/z.csv:3: column \"age\": invalid number \"x\"; correct it, or list it under missing to drop such rows",
        ),
        (
            "rows/z.csv",
            "",
            "rows/z.csv is empty: its first line must name the columns",
        ),
        (
            "rows/z.csv",
            "age;ill\n1;no\n",
            "rows/z.csv:1: the fields seem to be separated by semicolons; set separator = \";\"",
        ),
        (
            "rows/z.parquet",
            "PAR1",
            "rows/z.parquet: this is a Parquet file by its name, and others are CSV files; read files of one format with a pattern \
             such as *.csv",
        ),
        (
            "rows/notes.txt",
            "nothing",
            "rows/notes.txt: the name tells no format, and others are CSV files; read files of one format with a pattern such as \
             *.csv",
        ),
    ] {
        let folder = folder([base, (name, text)]);
        assert_eq!(refusal(&folder, "rows", FileOptions::default()), says);
    }
    let folder = folder([("rows/a.csv", "age,ill\n"), ("rows/b.csv", "age,ill\n")]);
    assert_eq!(
        refusal(&folder, "rows", FileOptions::default()),
        "rows has a header and no rows; is it the right file?"
    );
}

#[test]
fn a_value_without_a_node_is_reported_in_its_own_file() {
    let folder = folder([
        ("rows/a.csv", "age,ill,ward\n1,no,A\n2,yes,B\n"),
        ("rows/b.csv", "ward,age,ill\nB,1,no\nC,1,no\n"),
    ]);
    let by_ward = Split::Column {
        column: "ward".into(),
        values: vec!["A".into(), "B".into()],
    };
    let path = folder.path().join("rows");
    for holdout in [None, Some(Holdout::Last { rows: 1 })] {
        let mut spec = PartitionSpec::new(&by_ward, 2);
        if let Some(holdout) = &holdout {
            // One more row, so that it is a training row.
            fs::write(path.join("c.csv"), "age,ill,ward\n1,no,A\n").unwrap();
            spec = spec.holding_out(holdout);
        }
        let error = read_partition(open(&path), &schema(), spec).err().unwrap();
        assert!(
            error
                .to_string()
                .contains("rows/b.csv:3: column \"ward\": \"C\" belongs to no node"),
            "{error}"
        );
    }
}

#[test]
fn a_given_format_is_that_of_files_without_a_known_extension() {
    let folder = folder([
        ("rows/part-0", "age\till\n1\tno\n"),
        ("rows/part-1", "age\till\n1\tyes\n"),
    ]);
    let options = FileOptions {
        separator: Some(Separator::Tab),
        ..FileOptions::default()
    };
    let table = TableFile::open(&folder.path().join("rows/part-*"), options).unwrap();
    let spec = PartitionSpec::new(&Split::RoundRobin, 2);
    assert_eq!(read_partition(table, &schema(), spec).unwrap().read, 2);
    let csv = self::folder([FILES[2]]);
    assert_eq!(
        refusal(&csv, "rows", Format::Parquet),
        "rows/a.csv: this is a CSV file by its name, and format is \"parquet\"; correct it, or read files of one format with a \
         pattern such as *.parquet"
    );
}

#[test]
fn compressed_files_and_libsvm_files_are_read_from_folders_too() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"age,ill\n20,no\n").unwrap();
    let folder = folder([FILES[2]]);
    fs::write(folder.path().join("rows/b.csv.gz"), gzip.finish().unwrap()).unwrap();
    let found = partition(&folder.path().join("rows"), &Split::RoundRobin, &schema());
    assert_eq!(found.unwrap().read, 2);
    let numbered = Schema {
        numbered: 3,
        ..Schema::new("label", "1")
    };
    let folder = self::folder([("rows/a.svm", "1 1:1\n"), ("rows/b.svm", "-1 3:1\n0 2:1\n")]);
    let path = folder.path().join("rows");
    let found = partition(&path, &Split::RoundRobin, &numbered).unwrap();
    assert_eq!((found.read, found.positive), (3, 1));
    let found = profile(open(&path)).unwrap();
    assert_eq!((found.rows, found.numbered), (3, Some(3)));
}

#[test]
fn the_columns_of_a_profile_are_those_that_all_files_have() {
    let folder = folder([
        ("rows/a.csv", "age,ill,note\n10,yes,x\n20,no,y\n"),
        ("rows/b.csv", "ill,ward,age\nyes,w,30\n"),
    ]);
    let found = profile(open(&folder.path().join("rows"))).unwrap();
    assert_eq!(found.rows, 3);
    let columns: Vec<_> = found
        .columns
        .iter()
        .map(|column| {
            (
                column.name.as_str(),
                column.range,
                column.obstacle.is_some(),
            )
        })
        .collect();
    assert_eq!(columns[0], ("age", Some([10.0, 30.0]), false));
    assert_eq!(columns[1], ("ill", None, false));
    assert!(columns[2].2);
    let obstacle = found.columns[2].obstacle.as_deref().unwrap();
    assert!(obstacle.ends_with("rows/b.csv"), "{obstacle}");
}
