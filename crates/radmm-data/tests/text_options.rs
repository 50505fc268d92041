//! CSV files with other separators and decimal marks mean the same as those with commas and points.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use radmm_data::{
    DataError, DecimalMark, FileOptions, Format, Numeric, PartitionSpec, Schema, Separator, Split,
    TableFile, TableStream, profile, read_partition, score_each,
};
use tempfile::TempDir;

fn schema() -> Schema {
    Schema {
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        missing: vec!["?".into()],
        ..Schema::new("ill", "yes")
    }
}

const COMMAS: &str = "age,note,ill\n20.5,a,yes\n?,b,no\n-3,\"c,d\",no\n";

fn options(separator: Separator, decimal: DecimalMark) -> FileOptions {
    FileOptions {
        format: Some(Format::Csv),
        separator: Some(separator),
        decimal: Some(decimal),
    }
}

/// The entries of a row, `None` if a value is missing.
type Encoded = Option<Vec<(u32, f64)>>;

fn rows(text: &str, options: FileOptions) -> Result<Vec<Encoded>, String> {
    let mut rows = Vec::new();
    let table = TableStream::new(text.as_bytes(), "rows.csv", options);
    let schema = Schema {
        rows: radmm::curator::NormPolicy::Clip,
        ..schema()
    };
    let scored = score_each(table, &schema, |row| -> Result<(), DataError> {
        rows.push(row.map(|row| row.entries().to_vec()));
        Ok(())
    });
    scored.map(|_| rows).map_err(|error| error.to_string())
}

#[test]
fn every_separator_and_both_decimal_marks_give_the_same_rows() {
    let expected = rows(COMMAS, FileOptions::default()).unwrap();
    assert_eq!(expected[0], Some(vec![(0, 0.205)]));
    for separator in Separator::ALL {
        // In a file with commas, a field with a comma is quoted.
        let written = match separator {
            Separator::Comma => COMMAS.to_owned(),
            other => COMMAS
                .replace(',', other.text())
                .replace(&format!("c{}d", other.text()), "c,d"),
        };
        let found = rows(&written, options(separator, DecimalMark::Point));
        assert_eq!(found.unwrap(), expected, "{separator:?}");
        let quoted = written.replace("20.5", "\"20,5\"");
        let found = rows(&quoted, options(separator, DecimalMark::Comma));
        assert_eq!(found.unwrap(), expected, "{separator:?}");
    }
}

#[test]
fn the_other_decimal_mark_is_an_error_that_names_the_key() {
    let semicolons = "age;ill\n20,5;yes\n";
    assert_eq!(
        rows(
            semicolons,
            options(Separator::Semicolon, DecimalMark::Point)
        )
        .unwrap_err(),
        "rows.csv:2: column \"age\": invalid number \"20,5\": if its comma is a decimal mark, set decimal = \",\"; if it separates \
         thousands, remove it"
    );
    assert_eq!(
        rows(COMMAS, options(Separator::Comma, DecimalMark::Comma)).unwrap_err(),
        "rows.csv:2: column \"age\": invalid number \"20.5\": decimal = \",\" is set; if the point is a decimal mark, set decimal = \
         \".\"; if it separates thousands, remove it"
    );
}

#[test]
fn a_header_of_one_name_with_another_separator_names_the_key() {
    for (header, separator, says) in [
        (
            "age;ill",
            Separator::Comma,
            "semicolons; set separator = \";\"",
        ),
        (
            "age\till",
            Separator::Comma,
            "tabs; set separator = \"\\t\"",
        ),
        (
            "age|ill",
            Separator::Tab,
            "vertical lines; set separator = \"|\"",
        ),
        (
            "age,ill",
            Separator::Semicolon,
            "commas; set separator = \",\"",
        ),
    ] {
        let text = format!("{header}\n1 2\n");
        assert_eq!(
            rows(&text, options(separator, DecimalMark::Point)).unwrap_err(),
            format!("rows.csv:1: the fields seem to be separated by {says}")
        );
    }
}

#[test]
fn a_tsv_file_has_tabs() {
    let folder = TempDir::new().unwrap();
    for (name, given, separator) in [
        ("rows.tsv", FileOptions::default(), "\t"),
        ("rows.TAB", FileOptions::default(), "\t"),
        ("rows.txt", FileOptions::default(), ","),
        (
            "other.tsv",
            options(Separator::Pipe, DecimalMark::Point),
            "|",
        ),
    ] {
        let path = folder.path().join(name);
        let text = "age,ill\n20,yes\n30,no\n".replace(',', separator);
        fs::write(&path, text).unwrap();
        let table = TableFile::open(&path, given).unwrap();
        let partition = read_partition(table, &schema(), PartitionSpec::new(&Split::RoundRobin, 2));
        assert_eq!(partition.unwrap().read, 2, "{name}");
    }
}

#[test]
fn a_profile_finds_the_separator_and_the_decimal_mark() {
    let text = "age;class;ill\n20,5;0,5;yes\n-3,25;0,5;no\n7;1,0;no\n";
    let table = TableStream::new(text.as_bytes(), "rows.csv", Format::Csv);
    let found = profile(table).unwrap();
    assert_eq!(found.separator, Some(Separator::Semicolon));
    assert_eq!(found.decimal, Some(DecimalMark::Comma));
    assert_eq!(found.columns[0].range, Some([-3.25, 20.5]));
    // The values of a numeric column are numbers as a study has them.
    let values = [("0.5".to_owned(), 2), ("1.0".to_owned(), 1)];
    assert_eq!(found.columns[1].values.as_deref(), Some(&values[..]));
    let usual = profile(TableStream::new(COMMAS.as_bytes(), "rows.csv", Format::Csv)).unwrap();
    assert_eq!((usual.separator, usual.decimal), (None, None));
}
