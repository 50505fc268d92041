//! `radmm data inspect`, as a user runs it, and the three formats beside each other.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

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

use support::{radmm, text};

/// What a study says beside its rows.
const REST: &str = r#"
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

/// Two numbers within [0, 1], of which many are zero, and a class.
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

fn write_parquet(path: &Path) {
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

/// A folder with the same rows in three formats.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    write_csv(&folder.path().join("rows.csv"));
    write_libsvm(&folder.path().join("rows.svm"));
    write_parquet(&folder.path().join("rows.parquet"));
    folder
}

fn inspect(folder: &Path, args: &[&str]) -> Output {
    radmm(folder, &[&["data", "inspect"], args].concat())
}

/// The section drafted for a file.
fn section(folder: &Path, args: &[&str]) -> String {
    let output = inspect(folder, args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The section drafted for a CSV file with this text.
fn section_of(csv: &str, args: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    section(folder.path(), &[&["rows.csv"], args].concat())
}

fn failure(folder: &Path, args: &[&str]) -> (String, i32) {
    let output = inspect(folder, args);
    assert_eq!(text(&output.stdout), "", "a failure has no data");
    (
        text(&output.stderr).trim_end().to_owned(),
        output.status.code().unwrap(),
    )
}

/// Runs a study with this `[data]` section.
fn run(folder: &Path, section: &str) -> Value {
    fs::write(folder.join("study.toml"), format!("{section}{REST}")).unwrap();
    let output = radmm(folder, &["run", "study.toml", "--json"]);
    assert!(
        output.status.success(),
        "{}\n{section}",
        text(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_section_of_every_format_runs() {
    let folder = folder();
    for file in ["rows.csv", "rows.parquet", "rows.svm"] {
        let section = section(folder.path(), &[file]);
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
fn the_same_rows_are_the_same_run_in_every_format_and_split() {
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
            // The label is written in another way in one of them.
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
fn rows_to_test_on_may_stand_in_a_file_of_another_format() {
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
fn numbers_words_identifiers_and_constants_are_told_apart() {
    let mut csv = "name,age,ward,country,empty,outcome,sick\n".to_owned();
    for n in 0..150 {
        let age = if n == 7 {
            "NA".to_owned()
        } else {
            (18 + n % 70).to_string()
        };
        let (ward, sick) = (["b", "a", "b"][n % 3], ["no", "yes"][n % 2]);
        csv += &format!(
            "person {n},{age},{ward},NL,?,{},{sick}\n",
            ["x", "y"][n % 2]
        );
    }
    let drafted = section_of(&csv, &[]);
    let expected = r#"#
# 150 rows, 50.0 % of them positive

[data]
path = "rows.csv" # relative to the study file
label = "outcome" # guessed; other columns with two values: "ward", "sick"
positive = "y" # guessed; the other value is "x"
missing = ["NA"] # found in the rows
rows = "unit"
intercept = true

[data.numeric]
# In place of bounds a column may have bins: { bins = [20, 40, 60] }
age = [0, 100] # from the rows; 0.7 % missing

[data.categorical]
ward = ["b", "a"] # from the rows
sick = ["no", "yes"] # from the rows

# Left out:
# name: text with more than 100 different values, probably an identifier
# country: every value is the same
# empty: every value is missing

"#;
    assert!(drafted.ends_with(expected), "{drafted}");
}

#[test]
fn the_label_is_the_last_column_with_two_values_unless_one_is_called_so() {
    let label = |csv: &str, args: &[&str]| {
        let section = section_of(csv, args);
        let line = section
            .lines()
            .find(|line| line.starts_with("label"))
            .unwrap()
            .to_owned();
        line.split(" #").next().unwrap().to_owned()
    };
    assert_eq!(label("a,b,c\n0,x,1\n1,y,2\n1,y,3\n", &[]), "label = \"b\"");
    assert_eq!(
        label("Class,b,c\n0,x,1\n1,y,2\n1,y,3\n", &[]),
        "label = \"Class\""
    );
    assert_eq!(
        label("a,b,c\n0,x,1\n1,y,2\n", &["--label", "a"]),
        "label = \"a\""
    );
    assert_eq!(
        label("a,b,c\n0,x,1\n1,y,2\n", &["--positive", "x"]),
        "label = \"b\""
    );
}

#[test]
fn what_is_typed_is_not_guessed() {
    let section = section_of("a,b\n0,x\n1,y\n2,z\n", &["--label", "b", "--positive", "y"]);
    assert!(
        section.contains("label = \"b\"\npositive = \"y\"\n"),
        "{section}"
    );
}

#[test]
fn names_and_values_are_escaped_and_still_run() {
    let folder = TempDir::new().unwrap();
    let mut csv = "\"say \"\"hi\"\"\",a.b,\"two\nlines\",#é\u{1b},,dup,dup,y\n".to_owned();
    for n in 0..40 {
        let odd = ["c:\\dir", "\"quoted\"", "tab\there", "line\nbreak"][n % 4].replace('"', "\"\"");
        csv += &format!(
            "\"{odd}\",{n},\"{odd}\",{},u,v,w,{}\n",
            n % 5,
            ["a#b", "c"][n % 3 % 2]
        );
    }
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    let section = section(folder.path(), &["rows.csv"]);
    let result = run(folder.path(), &section);
    let columns: Vec<&str> = result["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c.as_str().unwrap())
        .collect();
    for name in [
        "a.b",
        "#é\u{1b}",
        "two\nlines=line\nbreak",
        "say \"hi\"=c:\\dir",
    ] {
        assert!(columns.contains(&name), "{name:?} in {columns:?}");
    }
    assert!(section.contains("# \"\": has no name\n"), "{section}");
    assert!(
        section.contains("# dup: appears more than once\n"),
        "{section}"
    );
}

#[test]
fn people_get_a_warning_and_a_table_on_stderr() {
    let folder = folder();
    let output = inspect(folder.path(), &["rows.parquet"]);
    let said = text(&output.stderr);
    assert!(
        said.starts_with("warning: bounds and vocabularies read off private rows are not public.")
    );
    for part in ["60 rows", "label    label", "numeric   0 to 0.875", "0.0 %"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let said = inspect(folder.path(), &["rows.svm"]).stderr;
    assert!(text(&said).contains("60 rows, columns 1 to 2"));
}

#[test]
fn a_first_line_that_looks_like_a_row_is_noted() {
    let folder = TempDir::new().unwrap();
    let note = "note: some columns are called by numbers; does the first line name the columns?\n";
    for (csv, noted) in [("39,x\n40,y\n41,x\n", true), ("age,y\n40,y\n41,x\n", false)] {
        fs::write(folder.path().join("rows.csv"), csv).unwrap();
        let output = inspect(folder.path(), &["rows.csv"]);
        assert_eq!(text(&output.stderr).starts_with(note), noted, "{csv}");
    }
}

#[test]
fn json_holds_what_was_found() {
    let folder = folder();
    let output = inspect(folder.path(), &["rows.svm", "--json", "--positive", "1"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["format"], &found["rows"]),
        (&"libsvm".into(), &60.into())
    );
    assert_eq!(
        (&found["numbered"], &found["positive"]),
        (&2.into(), &"1".into())
    );
    assert!(found["warning"].as_str().unwrap().contains("not public"));
    let output = inspect(folder.path(), &["rows.parquet", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["label"], "label");
    assert_eq!(
        found["columns"][0]["range"],
        serde_json::json!([0.0, 0.875])
    );
}

#[test]
fn a_format_that_the_extension_does_not_tell_is_asked_for_and_written() {
    let folder = folder();
    fs::rename(folder.path().join("rows.svm"), folder.path().join("rows")).unwrap();
    assert_eq!(
        failure(folder.path(), &["rows"]),
        ("error: rows: its extension does not tell the format; give --format csv, parquet or libsvm".into(), 2)
    );
    let section = section(folder.path(), &["rows", "--format", "libsvm"]);
    assert!(
        section.contains("format = \"libsvm\"\ncolumns = 2 #"),
        "{section}"
    );
    run(folder.path(), &section);
}

#[test]
fn wrong_use_is_told_with_exit_code_2() {
    let folder = folder();
    fs::write(folder.path().join("one.csv"), "a,b\n1,2\n1,3\n1,4\n").unwrap();
    fs::write(folder.path().join("one.svm"), "1 1:1\n1 2:1\n").unwrap();
    for (args, says) in [
        (&["none.csv"][..], "error: none.csv: No such file"),
        (&[".", "--format", "csv"], "error: .: is a directory"),
        (
            &["rows.csv", "--label", "lable"],
            "error: rows.csv: there is no column \"lable\"; the columns are \"1\", \"2\", \"label\"",
        ),
        (
            &["rows.csv", "--label", "2"],
            "error: rows.csv: column \"2\" has 5 values: \"0\", \"0.25\", \"0.5\", \"0.75\", \"1\"; say which is positive with --positive",
        ),
        (
            &["rows.csv", "--positive", "yes"],
            "error: rows.csv: no column has two values, one of them \"yes\"; name the outcome with --label",
        ),
        (
            &["rows.csv", "--label", "label", "--positive", "yes"],
            "error: rows.csv: no row has \"yes\" in column \"label\"; its values are ",
        ),
        (
            &["rows.svm", "--label", "label"],
            "error: rows.svm: a LIBSVM file does not name its label; remove --label",
        ),
        (
            &["one.csv"],
            "error: one.csv: no column has two values; name the outcome with --label and its positive class with --positive",
        ),
        (
            &["one.csv", "--label", "a"],
            "error: one.csv: column \"a\" has fewer than two values: there is nothing to learn",
        ),
        (
            &["one.svm"],
            "error: one.svm: the label has fewer than two values: there is nothing to learn",
        ),
        (
            &["rows.csv", "--format", "excel"],
            "error: invalid value 'excel' for '--format <FORMAT>': must be csv, parquet or libsvm",
        ),
    ] {
        let (said, code) = failure(folder.path(), args);
        assert!(said.starts_with(says), "{said}");
        assert_eq!(code, 2, "{said}");
    }
}

#[test]
fn files_that_are_no_tables_are_told_with_exit_code_1() {
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
            "header.csv has a header and no rows",
        ),
        (
            "numbers.csv",
            b"1,2\n3,4\n",
            "numbers.csv has no header: its first line holds numbers; add a line above it that names the columns",
        ),
        (
            "garbage.csv",
            &garbage,
            "cannot read garbage.csv: it holds the control character 0x1a and so is not a text file",
        ),
        (
            "garbage.parquet",
            &garbage,
            "cannot read garbage.parquet as Parquet: ",
        ),
        (
            "empty.parquet",
            b"",
            "cannot read empty.parquet as Parquet: ",
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
        let (said, code) = failure(folder.path(), &[name]);
        assert!(said.starts_with(&format!("error: {says}")), "{said}");
        assert_eq!(code, 1, "{said}");
    }
}

#[test]
fn a_damaged_parquet_file_is_told_as_an_error_and_never_as_a_panic() {
    let folder = folder();
    let whole = fs::read(folder.path().join("rows.parquet")).unwrap();
    let mut gave_up = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(folder.path().join("bad.parquet"), bytes).unwrap();
        let output = inspect(folder.path(), &["bad.parquet"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "byte {at}: {said}");
        gave_up += usize::from(said.contains("the decoder failed on a page"));
    }
    assert!(gave_up > 0, "no file made the decoder panic");
}

/// Says in the footer of a Parquet file that its pages have this codec, by Parquet's number, in place of snappy.
fn relabel(path: &Path, codec: u8) {
    let mut bytes = fs::read(path).unwrap();
    for name in ["1", "2", "label"] {
        // In Thrift's compact form a chunk has its name, with its length before it, and then field 4, an i32 in zigzag.
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
fn a_codec_that_is_not_known_is_named() {
    let folder = folder();
    for (codec, name) in [(6, "zstd"), (4, "brotli")] {
        write_parquet(&folder.path().join("rows.parquet"));
        relabel(&folder.path().join("rows.parquet"), codec);
        let says = format!(
            "error: rows.parquet: column \"1\" is compressed with {name}, which is not supported; save the file uncompressed, or with snappy, gzip or lz4"
        );
        assert_eq!(failure(folder.path(), &["rows.parquet"]), (says, 1));
    }
}

#[test]
fn other_separators_and_other_files_are_told_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    for (csv, says) in [
        (
            "a;b\n1;2\n",
            "error: rows.csv:1: the fields seem to be separated by semicolons; save the file with commas",
        ),
        (
            "\na\tb\n1,5\t2\n",
            "error: rows.csv:2: the fields seem to be separated by tabs; save the file with commas",
        ),
    ] {
        fs::write(folder.path().join("rows.csv"), csv).unwrap();
        assert_eq!(failure(folder.path(), &["rows.csv"]), (says.into(), 1));
    }
    for (name, says) in [
        (
            "rows.tsv",
            "fields separated by tabs are not read; save the file with commas, as .csv",
        ),
        (
            "rows.csv.GZ",
            "compressed files are not read; decompress it first",
        ),
        (
            "rows.xlsx",
            "spreadsheets are not read; save the table with commas, as .csv",
        ),
    ] {
        let says = format!("error: {name}: {says}");
        assert_eq!(failure(folder.path(), &[name]), (says, 2));
    }
}

#[test]
fn the_table_fits_a_terminal_and_long_fields_are_cut_everywhere() {
    let folder = TempDir::new().unwrap();
    let (name, digits) = ("n".repeat(60), format!("1{}", "0".repeat(300)));
    let mut csv = format!("{name},notes,huge,{},日本語,y\n", "m".repeat(300));
    for n in 0..20 {
        let (notes, y) = (["x".repeat(100_000), "short".into()][n % 2].clone(), n % 2);
        csv += &format!(
            "a value of some length {},{notes},{n}{digits},{n},日本語の値{n},{y}\n",
            n % 9
        );
    }
    fs::write(folder.path().join("rows.csv"), csv).unwrap();
    let output = inspect(folder.path(), &["rows.csv"]);
    let (said, drafted) = (text(&output.stderr), text(&output.stdout));
    let table = said.split_once("20 rows").unwrap().1;
    for line in table.lines() {
        let wide = line
            .chars()
            .filter(|c| ('\u{3000}'..'\u{a000}').contains(c));
        assert!(line.chars().count() + wide.count() <= 80, "{line}");
    }
    assert!(table.contains("nnn…") && table.contains("…"), "{table}");
    assert!(table.contains(" 1e300 to 1.91e302"), "{table}");
    assert!(
        drafted.contains(&format!("{name} = [")),
        "a name is whole in the draft"
    );
    assert!(
        drafted.contains("# notes: text of more than 200 characters, hardly a category\n"),
        "{drafted}"
    );
    assert!(drafted.contains("…\": its name is longer than 200 characters\n"));
    assert!(drafted.lines().all(|line| line.len() < 1000));
}

#[test]
fn numbers_of_rows_are_left_out_like_other_identifiers() {
    let mut csv = "id,age,y\n".to_owned();
    for n in 0..60 {
        csv += &format!("{},{},{}\n", 5000 + n, 20 + n % 40, n % 2);
    }
    let drafted = section_of(&csv, &[]);
    let reason = "# id: whole numbers that seem never to repeat, probably an identifier\n";
    assert!(drafted.contains(reason), "{drafted}");
    assert!(drafted.contains("\nage = ["), "{drafted}");
}

#[test]
fn slips_among_numbers_are_told_with_their_place() {
    let mut csv = "age,height,y\n".to_owned();
    for n in 0..60 {
        let age = if n == 7 {
            "inf".into()
        } else {
            (20 + n % 40).to_string()
        };
        let height = match n {
            11 | 12 => "\u{202e}abc".into(),
            _ => (150 + n % 40).to_string(),
        };
        csv += &format!("{age},{height},{}\n", n % 2);
    }
    let drafted = section_of(&csv, &[]);
    for line in [
        "age = [10, 70] # from the rows; \"inf\" on line 9 is no number: correct it, or list it under missing\n",
        "height = [140, 200] # from the rows; 2 values are no numbers, the first \"\\u202Eabc\" on line 13: correct them, or list them under missing\n",
    ] {
        assert!(drafted.contains(line), "{drafted}");
    }
}

#[test]
fn names_such_as_inf_and_nan_are_names() {
    let drafted = section_of("inf,nan\n1,0\n2,1\n3,1\n", &[]);
    assert!(drafted.contains("label = \"nan\""), "{drafted}");
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("rows.csv"), "inf,y\n1,0\n2,1\n").unwrap();
    let said = inspect(folder.path(), &["rows.csv"]).stderr;
    assert!(!text(&said).contains("called by numbers"));
}

#[test]
fn a_file_without_a_feature_is_a_failure_that_says_why() {
    let folder = TempDir::new().unwrap();
    for (csv, says) in [
        (
            "a,b,y\n1,?,0\n1,?,1\n",
            "error: rows.csv: no column beside the label, \"y\", can be learnt from (a: every value is the same, b: every value is missing)",
        ),
        (
            "y\n0\n1\n",
            "error: rows.csv: there is no column beside the label, \"y\"",
        ),
    ] {
        fs::write(folder.path().join("rows.csv"), csv).unwrap();
        assert_eq!(failure(folder.path(), &["rows.csv"]), (says.into(), 1));
    }
}

#[test]
fn a_missing_file_has_the_same_exit_code_in_a_study_and_on_the_command_line() {
    let folder = folder();
    let section = section(folder.path(), &["rows.csv"]);
    fs::remove_file(folder.path().join("rows.csv")).unwrap();
    fs::write(folder.path().join("study.toml"), section + REST).unwrap();
    let in_study = radmm(folder.path(), &["run", "study.toml"]);
    let typed = inspect(folder.path(), &["rows.csv"]);
    assert_eq!(
        (in_study.status.code(), typed.status.code()),
        (Some(2), Some(2))
    );
}
