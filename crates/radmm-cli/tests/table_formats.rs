//! CSV, Parquet and LIBSVM files with the same rows are equivalent, and files that cannot be read are reported.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;
#[path = "support/table_formats.rs"]
mod table_formats;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use table_formats::{error_of, folder, inspect, run, section, write_parquet};

/// Replaces snappy in the footer of a Parquet file by the codec with this number.
fn replace_codec(path: &Path, codec: u8) {
    let mut bytes = fs::read(path).unwrap();
    for name in ["1", "2", "label"] {
        // In Thrift's compact form a chunk has the length of its name, its name, and then field 4, an i32 in zigzag.
        let field = [&[name.len() as u8], name.as_bytes(), &[0x15, 2]].concat();
        for end in field.len()..bytes.len() {
            if bytes[..end].ends_with(&field) {
                bytes[end - 1] = codec * 2;
            }
        }
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_drafted_section_of_every_format_runs() {
    let folder = folder();
    for file in ["rows.csv", "rows.parquet", "rows.svm"] {
        let section = section(folder.path(), &[file, "--numeric", "centred"]);
        assert!(section.starts_with(
            "# WARNING: bounds and vocabularies read off private rows are not public."
        ));
        let result = run(folder.path(), &section);
        assert_eq!(
            result["columns"],
            serde_json::json!(["1", "2", "(intercept)"]),
            "{section}"
        );
        assert_eq!(result["study"]["data"]["path"], file);
    }
}

#[test]
fn the_same_rows_give_the_same_run_in_every_format_and_split() {
    let folder = folder();
    let named = "label = \"label\"\npositive = \"1\"\nintercept = true\n[data.numeric]\n1 = [0, 1]\n2 = [0, 1]\n";
    let numbered = "positive = \"1\"\nintercept = true\ncolumns = 2\n";
    for (split, test) in [
        ("method = \"round-robin\"", "last = 9"),
        ("method = \"round-robin\"", "path = \"FILE\""),
        ("method = \"shuffled\"\nseed = 3", "share = 0.3\nseed = 2"),
        (
            "method = \"sizes\"\nsizes = [2, 1, 1]\nseed = 3",
            "last = 1",
        ),
        ("method = \"dirichlet\"\nalpha = 5\nseed = 3", "last = 20"),
        ("method = \"dirichlet\"\nalpha = 5\nseed = 3", ""),
    ] {
        let results = [
            ("rows.csv", named),
            ("rows.parquet", named),
            ("rows.svm", numbered),
        ]
        .map(|(file, keys)| {
            let mut section = format!("[data]\npath = \"{file}\"\n{keys}[data.split]\n{split}\n");
            if !test.is_empty() {
                section += &format!("[data.test]\n{}\n", test.replace("FILE", file));
            }
            let mut result = run(folder.path(), &section);
            result["study"]["data"] = Value::Null;
            // One of them writes the label differently.
            result["data"]["labels"] = Value::Null;
            result
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0], results[2]);
        let held_out = results[0]["data"]["held_out"].as_u64().unwrap();
        assert_eq!(held_out > 0, !test.is_empty(), "{test}");
    }
}

#[test]
fn a_test_file_may_have_another_format() {
    let folder = folder();
    let data = "[data]\npath = \"rows.csv\"\nlabel = \"label\"\npositive = \"1\"\n[data.numeric]\n1 = [0, 1]\n2 = { bins = [0.25, 0.5] }\n";
    let results = ["rows.csv", "rows.parquet"].map(|file| {
        let section = format!("{data}[data.test]\npath = \"{file}\"\n");
        let mut result = run(folder.path(), &section);
        result["study"]["data"] = Value::Null;
        result
    });
    assert!(results[0]["data"]["held_out"].as_u64().unwrap() > 0);
    assert_eq!(results[0], results[1]);
}

#[test]
fn a_format_unknown_from_the_extension_is_required_and_written() {
    let folder = folder();
    fs::rename(folder.path().join("rows.svm"), folder.path().join("rows")).unwrap();
    assert_eq!(
        error_of(folder.path(), &["rows"]),
        (
            "error: rows: unknown file extension; give --format csv, parquet or libsvm".into(),
            2
        )
    );
    let section = section(folder.path(), &["rows", "--format", "libsvm"]);
    assert!(
        section.contains("format = \"libsvm\"\ncolumns = 2 #"),
        "{section}"
    );
    run(folder.path(), &section);
}

#[test]
fn files_that_are_not_tables_have_exit_code_1() {
    let folder = TempDir::new().unwrap();
    let garbage: Vec<u8> = (0..4000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for (name, bytes, says) in [
        (
            "empty.csv",
            &b""[..],
            "empty.csv is empty: its first line must name the columns",
        ),
        (
            "header.csv",
            b"a,b\n",
            "header.csv has a header and no rows; is it the right file?",
        ),
        (
            "numbers.csv",
            b"1,2\n3,4\n",
            "numbers.csv has no header: its first line holds numbers; add a line above it that names the columns",
        ),
        (
            "garbage.csv",
            &garbage,
            "garbage.csv:1: there is the control character 0x00, so that this is not a text file in UTF-8",
        ),
        (
            "garbage.parquet",
            &garbage,
            "garbage.parquet is no Parquet file, which begins with PAR1",
        ),
        (
            "empty.parquet",
            b"",
            "empty.parquet is empty; give a Parquet file",
        ),
        (
            "garbage.svm",
            &garbage,
            "garbage.svm:1: the line is not UTF-8; is it a LIBSVM file?",
        ),
        (
            "empty.svm",
            b"",
            "empty.svm has no rows: a row is a line such as +1 3:0.5 17:1",
        ),
        (
            "pairs.svm",
            b"1 1:1\n-1 1\n",
            "pairs.svm:2: invalid pair \"1\": a row is a label and index:value pairs such as 3:0.5",
        ),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        let (said, code) = error_of(folder.path(), &[name]);
        assert!(said.starts_with(&format!("error: {says}")), "{said}");
        assert_eq!(code, 1, "{said}");
    }
}

#[test]
fn a_damaged_parquet_file_is_an_error_and_never_a_panic() {
    let folder = folder();
    let whole = fs::read(folder.path().join("rows.parquet")).unwrap();
    let mut failed = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(folder.path().join("bad.parquet"), bytes).unwrap();
        let output = inspect(folder.path(), &["bad.parquet"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "byte {at}: {said}");
        failed += usize::from(said.contains("the decoder failed on a page"));
    }
    assert!(failed > 0, "no file made the decoder panic");
}

#[test]
fn an_unknown_codec_is_named() {
    let folder = folder();
    for (codec, name) in [(3, "lzo"), (4, "brotli")] {
        write_parquet(&folder.path().join("rows.parquet"));
        replace_codec(&folder.path().join("rows.parquet"), codec);
        let says = format!(
            "error: rows.parquet: column \"1\" is compressed with {name}, which is not supported; save the file with zstd, snappy, gzip or lz4, or uncompressed"
        );
        assert_eq!(error_of(folder.path(), &["rows.parquet"]), (says, 1));
    }
}

/// A table with semicolons and decimal commas, as spreadsheets of half the world write it.
fn spreadsheet() -> String {
    let row = |n: i32| format!("{},{};{};{}\n", n % 90, n % 10, n % 7, n % 2);
    "age;visits;ill\n".to_owned() + &(0..200).map(row).collect::<String>()
}

#[test]
fn separators_and_decimal_commas_are_found_and_written_into_the_draft() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), spreadsheet()).unwrap();
    let section = section(folder.path(), &["rows.csv", "--label", "ill"]);
    assert!(
        section.contains("\nseparator = \";\"\ndecimal = \",\"\n"),
        "{section}"
    );
    assert!(section.contains("\nage = { bounds = [0, "), "{section}");
    let result = run(folder.path(), &section);
    assert_eq!(result["study"]["data"]["separator"], ";");
    // A table with tabs says so by its extension.
    let tabs = spreadsheet().replace(',', ".").replace(';', "\t");
    fs::write(folder.path().join("rows.tsv"), tabs).unwrap();
    let section = table_formats::section(folder.path(), &["rows.tsv", "--label", "ill"]);
    assert!(!section.contains("separator") && !section.contains("decimal"));
    assert_eq!(run(folder.path(), &section)["columns"], result["columns"]);
}

#[test]
fn other_separators_and_file_types_are_reported_with_a_remedy() {
    let folder = TempDir::new().unwrap();
    for (csv, separator, says) in [
        (
            "a;b\n1;2\n",
            ",",
            "error: rows.csv:1: the fields seem to be separated by semicolons; set separator = \";\"",
        ),
        (
            "\na\tb\n1,5\t2\n",
            "|",
            "error: rows.csv:2: the fields seem to be separated by tabs; set separator = \"\\t\"",
        ),
    ] {
        fs::write(folder.path().join("rows.csv"), csv).unwrap();
        let args = ["rows.csv", "--separator", separator];
        assert_eq!(error_of(folder.path(), &args), (says.into(), 1));
    }
    for (name, says) in [
        (
            "rows.csv.bz2",
            "this compression is not supported; decompress it first, or compress it with gzip or zstd",
        ),
        (
            "rows.xlsx",
            "spreadsheets are not read; export the table as CSV in UTF-8",
        ),
    ] {
        fs::write(folder.path().join(name), "").unwrap();
        let says = format!("error: {name}: {says}");
        assert_eq!(error_of(folder.path(), &[name]), (says, 2));
    }
}

#[test]
fn a_folder_of_files_is_drafted_run_and_predicted_as_one_table() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("rows/year=2024")).unwrap();
    let text = spreadsheet();
    let lines: Vec<&str> = text.lines().collect();
    let (header, rows) = lines.split_first().unwrap();
    for (name, part) in [
        ("rows/a.csv", &rows[..90]),
        ("rows/year=2024/b.csv", &rows[90..]),
        ("rows/_SUCCESS", &rows[..0]),
        ("rows.csv", rows),
    ] {
        let text = format!("{header}\n{}\n", part.join("\n"));
        fs::write(folder.path().join(name), text).unwrap();
    }
    let whole = section(folder.path(), &["rows.csv", "--label", "ill"]);
    let result = run(folder.path(), &whole);
    for (path, format) in [
        ("rows", "format = \"csv\"\n"),
        ("rows/**/*.csv", ""),
        ("rows/*", "format = \"csv\"\n"),
    ] {
        let drafted = section(folder.path(), &[path, "--label", "ill"]);
        let expected = whole.replace(
            "path = \"rows.csv\" # relative to the study file\n",
            &format!("path = {path:?} # relative to the study file\n{format}"),
        );
        assert_eq!(drafted, expected);
        let other = run(folder.path(), &drafted);
        assert_eq!(other["repetitions"], result["repetitions"], "{path}");
        assert_eq!(other["rows"], result["rows"], "{path}");
    }
    let (said, code) = error_of(folder.path(), &["rows/*.parquet"]);
    assert_eq!(
        (said.as_str(), code),
        (
            "error: rows/*.parquet: there is no file of rows; names that begin with . or _ are left out",
            2
        )
    );
}
