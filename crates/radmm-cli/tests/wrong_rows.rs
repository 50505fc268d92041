//! Wrong files of rows and wrong sources: each is an error that names the place and what to do.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/parquet_file.rs"]
mod parquet_file;
mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::write::GzEncoder;
use parquet::basic::Compression;
use parquet_file::{Values, write_parquet};
use radmm_node::key::SecretKey;
use tempfile::TempDir;

use support::text;

/// A table that is right.
const GOOD: &str = "age,smoker,ill\n20,yes,yes\n30,no,no\n40,yes,no\n50,no,yes\n";

/// Where rows come from.
enum Source<'a> {
    /// The study names them, in these lines of `[data]`.
    Study(&'a str),
    /// The site file of a party names them, in these lines of `[data]`.
    Site(&'a str),
    /// `radmm data inspect` gets these arguments, and these bytes through stdin.
    Inspect(&'a [&'a str], &'a [u8]),
}

/// Files, and what is said about them.
struct Case<'a> {
    files: Vec<(&'a str, Vec<u8>)>,
    source: Source<'a>,
    code: i32,
    /// The message, without `error: ` and the folder of the files.
    says: &'a str,
}

/// Returns a study with these lines at the beginning of `[data]`. Those that have `positive` bring columns of their own.
fn study(data: &str, parties: &str) -> String {
    let plain = "label = \"ill\"\npositive = \"yes\"\n[data.numeric]\nage = [0, 90]\n[data.categorical]\nsmoker = [\"yes\", \"no\"]\n";
    let columns = if data.contains("positive") { "" } else { plain };
    let rest = match parties {
        "" => "[network]\nnodes = 2\n",
        parties => parties,
    };
    format!(
        "name = \"wrong\"\n[data]\n{data}\n{columns}{rest}[privacy]\nepsilon = 1.0\ndelta = 1e-5\n"
    )
}

/// Runs the program, and returns what it says and its exit code.
fn said(case: &Case<'_>) -> (String, i32) {
    let folder = TempDir::new().unwrap();
    let here = folder.path();
    for (name, bytes) in &case.files {
        write_file(&here.join(name), bytes);
    }
    let mut command = match case.source {
        Source::Study(data) => {
            fs::write(here.join("study.toml"), study(data, "")).unwrap();
            support::command(here, &["run", "study.toml", "--quiet"])
        }
        Source::Site(data) => {
            write_party(here, data);
            let arguments = ["node", "--study", "study.toml", "--site", "site.toml"];
            let mut command = support::command(here, &arguments);
            command.args(["--check", "--quiet"]);
            command
        }
        Source::Inspect(arguments, _) => {
            support::command(here, &[&["data", "inspect"], arguments].concat())
        }
    };
    let stdin: &[u8] = match case.source {
        Source::Inspect(_, bytes) => bytes,
        Source::Study(_) | Source::Site(_) => b"",
    };
    let (said, code) = run_with(&mut command, stdin);
    // A party reads its files by their paths from the folder of its site file, which is this one.
    (said.replace(&format!("{}/", here.display()), ""), code)
}

fn write_file(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match bytes.strip_prefix(b"-> ") {
        Some(target) => symlink(text(target), path).unwrap(),
        None => fs::write(path, bytes).unwrap(),
    }
}

fn write_party(here: &Path, data: &str) {
    let mut parties = "[network]\ntopology = \"path\"\n".to_owned();
    for name in ["alder", "birch"] {
        let key = SecretKey::generate().unwrap();
        key.write_new(&here.join(format!("{name}.pem"))).unwrap();
        let identity = key.identity();
        parties += &format!("[[parties]]\nname = \"{name}\"\nkey = \"{identity}\"\nrows = 4\n");
    }
    // One of them must be dialled.
    parties += "address = \"127.0.0.1:1\"\n";
    fs::write(here.join("study.toml"), study("", &parties)).unwrap();
    let site =
        format!("key = \"alder.pem\"\nstate = \"state\"\nnoise = \"seeded\"\n[data]\n{data}\n");
    fs::write(here.join("site.toml"), site).unwrap();
}

fn run_with(command: &mut Command, stdin: &[u8]) -> (String, i32) {
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that fails early reads no more of it.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "", "a failure has no data");
    let said = text(&output.stderr).trim_end().to_owned();
    let said = said.strip_prefix("error: ").unwrap_or(&said).to_owned();
    (said, output.status.code().unwrap())
}

/// Checks what is said about each case, and shows all that differ at once.
fn check(cases: &[Case<'_>]) {
    let mut wrong = String::new();
    for case in cases {
        let (said, code) = said(case);
        if (said.as_str(), code) != (case.says, case.code) {
            let names: Vec<&str> = case.files.iter().map(|(name, _)| *name).collect();
            wrong += &format!(
                "{names:?}\n  says {code}: {said}\n  not  {}: {}\n",
                case.code, case.says
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A CSV file that the study reads as it is.
fn csv<'a>(bytes: impl AsRef<[u8]>, says: &'a str) -> Case<'a> {
    file("rows.csv", bytes, 1, says)
}

/// A file that the study reads by its name.
fn file<'a>(name: &'a str, bytes: impl AsRef<[u8]>, code: i32, says: &'a str) -> Case<'a> {
    let data: &str = Box::leak(format!("path = {name:?}").into_boxed_str());
    Case {
        files: vec![(name, bytes.as_ref().to_owned())],
        source: Source::Study(data),
        code,
        says,
    }
}

/// A CSV file of a study with these lines in `[data]`.
fn csv_with<'a>(data: &'a str, bytes: impl AsRef<[u8]>, says: &'a str) -> Case<'a> {
    Case {
        files: vec![("rows.csv", bytes.as_ref().to_owned())],
        source: Source::Study(data),
        code: 1,
        says,
    }
}

/// Returns a row of the good table with other fields, on the third line.
fn third_line(row: &str) -> String {
    GOOD.replace("30,no,no", row)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns the beginning of an archive that holds these names.
fn zip(names: &str) -> Vec<u8> {
    format!("PK\x03\x04\x14\0\x06\0\x08\0{names}\0\0").into_bytes()
}

#[test]
fn csv_files() {
    let latin = |text: &str| -> Vec<u8> { text.chars().map(|c| c as u8).collect() };
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let marked = [vec![0xff, 0xfe], utf16(GOOD)].concat();
    let long_field = third_line(&format!("30,{},no", "x".repeat(70_000)));
    let long_row = third_line(&format!("30,no,\"{}", "no,\n".repeat(5 << 20)));
    let of_dates = "path = \"rows.csv\"\nlabel = \"ill\"\npositive = \"yes\"\n[data.numeric]\nage = { bounds = [2000-01-01, 2030-01-01] }";
    let of_truths = "path = \"rows.csv\"\nlabel = \"ill\"\npositive = \"yes\"\n[data.categorical]\nsmoker = [true, false]";
    check(&[
        csv(
            "",
            "rows.csv is empty: its first line must name the columns",
        ),
        csv(
            "\n \r\n\n",
            "rows.csv is empty: its first line must name the columns",
        ),
        csv(
            "age,smoker,ill\n",
            "rows.csv has a header and no rows; is it the right file?",
        ),
        csv(marked, "rows.csv is text in UTF-16; save it as UTF-8"),
        csv(
            utf16(GOOD),
            "rows.csv:1: there is the control character 0x00, so that this is not a text file in UTF-8; save it as CSV in UTF-8, or set its format",
        ),
        csv(
            GOOD.replace("50,no", "50,n\0o"),
            "rows.csv:5: there is the control character 0x00, so that this is not a text file in UTF-8; save it as CSV in UTF-8, or set its format",
        ),
        csv(
            GOOD.replace("50,no", "50,n\u{1a}o"),
            "rows.csv:5: there is the control character 0x1a, so that this is not a text file in UTF-8; save it as CSV in UTF-8, or set its format",
        ),
        csv(
            latin(&third_line("30,né,no")),
            "rows.csv:3: column \"smoker\": the field is not UTF-8; save the file as UTF-8",
        ),
        csv(
            latin(&GOOD.replace("smoker", "fumé")),
            "rows.csv:1: the name of column 2 is not UTF-8; save the file as UTF-8",
        ),
        csv(
            GOOD.replace(',', ";"),
            "rows.csv:1: the fields seem to be separated by semicolons; set separator = \";\"",
        ),
        csv(
            GOOD.replace(',', "\t"),
            "rows.csv:1: the fields seem to be separated by tabs; set separator = \"\\t\"",
        ),
        csv(
            GOOD.replace(',', "|"),
            "rows.csv:1: the fields seem to be separated by vertical lines; set separator = \"|\"",
        ),
        csv_with(
            "path = \"rows.csv\"\nseparator = \";\"",
            third_line("30,5,no,no")
                .replace(',', ";")
                .replace("30;5", "30,5"),
            "rows.csv:3: column \"age\": invalid number \"30,5\": if its comma is a decimal mark, set decimal = \",\"; if it separates thousands, remove it",
        ),
        csv_with(
            "path = \"rows.csv\"\ndecimal = \",\"",
            third_line("30.5,no,no"),
            "rows.csv:3: column \"age\": invalid number \"30.5\": decimal = \",\" is set; if the point is a decimal mark, set decimal = \".\"; if it separates thousands, remove it",
        ),
        csv(
            third_line("30,no"),
            "rows.csv:3: expected 3 fields as in the header, got 2; look for a stray comma or quote",
        ),
        csv(
            third_line("30,5,no,no"),
            "rows.csv:3: expected 3 fields as in the header, got 4; look for a stray comma or quote",
        ),
        csv(
            third_line("30,\"no,no"),
            "rows.csv:3: a quote is opened in this row and never closed; close it, or write a quote within a field twice",
        ),
        csv(
            GOOD.replace("smoker", "age"),
            "rows.csv:1: the header names column \"age\" more than once; rename or remove all but one",
        ),
        csv(
            GOOD.replace("age", "Age "),
            "rows.csv:1: there is no column \"age\" (did you mean \"Age\"?); the header has \"Age\", \"smoker\", \"ill\"",
        ),
        csv(
            GOOD.replace("smoker", "pack years"),
            "rows.csv:1: there is no column \"smoker\"; the header has \"age\", \"pack years\", \"ill\"",
        ),
        csv(
            GOOD.split_once('\n').unwrap().1,
            "rows.csv:1: there is no column \"age\"; the header has \"20\", \"yes\", \"yes\"; if these are values, add a line above them that names the columns",
        ),
        csv(
            third_line("1e999,no,no"),
            "rows.csv:3: column \"age\": invalid number \"1e999\": must be finite; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("NaN,no,no"),
            "rows.csv:3: column \"age\": invalid number \"NaN\": must be finite; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("-inf,no,no"),
            "rows.csv:3: column \"age\": invalid number \"-inf\": must be finite; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("1 000,no,no"),
            "rows.csv:3: column \"age\": invalid number \"1 000\"; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("\"1,5\",no,no"),
            "rows.csv:3: column \"age\": invalid number \"1,5\": if its comma is a decimal mark, set decimal = \",\"; if it separates thousands, remove it",
        ),
        csv(
            third_line("\"1,000,000\",no,no"),
            "rows.csv:3: column \"age\": invalid number \"1,000,000\"; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("about 30,no,no"),
            "rows.csv:3: column \"age\": invalid number \"about 30\"; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("30 years,no,no"),
            "rows.csv:3: column \"age\": invalid number \"30 years\"; correct it, or list it under missing to drop such rows",
        ),
        csv(
            third_line("2020-12-31,no,no"),
            "rows.csv:3: column \"age\": invalid number \"2020-12-31\": if the column holds dates, give it bounds that are dates, such as bounds = [2000-01-01, 2030-01-01]",
        ),
        csv(
            third_line("30,sometimes,no"),
            "rows.csv:3: column \"smoker\": \"sometimes\" is not among the known values \"yes\", \"no\"; add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\"",
        ),
        csv(
            third_line("30,No,no"),
            "rows.csv:3: column \"smoker\": \"No\" is not among the known values \"yes\", \"no\"; add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\"",
        ),
        csv(
            long_field,
            "rows.csv:3: column \"smoker\": the field has 70000 bytes, and at most 65536 are read; shorten it, or leave the column out of the study",
        ),
        csv(
            long_row,
            "rows.csv:3: the row that begins here is longer than 16 MiB, the most that is read; look for a quote that is never closed",
        ),
        csv_with(
            of_dates,
            GOOD.replace("20,", "2020-12-31,")
                .replace("30,", "31.12.2020,"),
            "rows.csv:3: column \"age\": invalid date \"31.12.2020\": must be a day such as 2020-12-31, with a time behind it or without; correct it, or list it under missing to drop such rows",
        ),
        csv_with(
            of_dates,
            GOOD.replace("20,", "2020-12-31T08:00Z,")
                .replace("30,", "2021-02-29,"),
            "rows.csv:3: column \"age\": invalid date \"2021-02-29\": must be a day such as 2020-12-31, with a time behind it or without; correct it, or list it under missing to drop such rows",
        ),
        csv_with(
            of_truths,
            GOOD,
            "rows.csv:2: column \"smoker\": invalid truth value \"yes\": must be true or false, t or f, or 1 or 0; correct it, list it under missing to drop such rows, or give the column a vocabulary of other words",
        ),
        csv_with(
            of_truths,
            GOOD.replace(",no,", ",false,").replace(",yes,", ",ture,"),
            "rows.csv:2: column \"smoker\": invalid truth value \"ture\": must be true or false, t or f, or 1 or 0; correct it, list it under missing to drop such rows, or give the column a vocabulary of other words",
        ),
        csv(
            GOOD.replace(",yes\n", ",no\n"),
            "rows.csv: column \"ill\": no row has the positive label \"yes\": the labels are \"no\"; correct positive in the study",
        ),
        csv(
            GOOD.replace(",no\n", ",yes\n"),
            "rows.csv: column \"ill\": every row has the positive label \"yes\"; rows of both classes are needed",
        ),
        csv(
            GOOD.replace(",yes\n", ",ja\n").replace(",no\n", ",nein\n"),
            "rows.csv: column \"ill\": no row has the positive label \"yes\": the labels are \"ja\", \"nein\"; correct positive in the study",
        ),
        csv(
            "age,smoker,ill\n?,yes,yes\n,no,no\n40,?,no\n",
            "rows.csv: all 3 rows were dropped, since each lacks a value: \"age\" in 2, \"smoker\" in 1; missing = \"category\" for a feature keeps such rows",
        ),
        csv(
            "age,smoker,ill\n20,yes,yes\n",
            "rows.csv: column \"ill\": every row has the positive label \"yes\"; rows of both classes are needed",
        ),
        csv_with(
            "path = \"rows.csv\"\nsplit = { method = \"column\", name = \"smoker\", values = [\"yes\", \"never\"] }",
            GOOD,
            "rows.csv:3: column \"smoker\": \"no\" belongs to no node: the nodes are \"yes\", \"never\"; add one for it, or list it under missing to drop such rows",
        ),
        csv_with(
            "path = \"rows.csv\"\nsplit = { method = \"column\", name = \"ward\" }",
            GOOD,
            "rows.csv:1: there is no column \"ward\"; the header has \"age\", \"smoker\", \"ill\"",
        ),
        csv_with(
            "path = \"rows.csv\"\ntest = { last = 9 }",
            GOOD,
            "rows.csv: the last 9 rows are held out of 4 (without those dropped), and none is left to train on; lower [data.test] last",
        ),
    ]);
}

#[test]
fn files_of_other_programs() {
    let mut tar = vec![0; 1024];
    tar[..8].copy_from_slice(b"rows.csv");
    tar[257..262].copy_from_slice(b"ustar");
    let compressed = gzip(&GOOD.repeat(500).into_bytes());
    let cut = &compressed[..compressed.len() / 2];
    let mut flipped = compressed.clone();
    let last = flipped.len() - 6;
    flipped[last] ^= 1;
    let zstd = zstd::encode_all(GOOD.repeat(500).as_bytes(), 3).unwrap();
    check(&[
        file(
            "rows.csv",
            zip("[Content_Types].xml"),
            1,
            "rows.csv is an Excel workbook (.xlsx); export it as CSV in UTF-8, and give that file",
        ),
        file(
            "rows.xlsx",
            zip("[Content_Types].xml"),
            1,
            "rows.xlsx is an Excel workbook (.xlsx); export it as CSV in UTF-8, and give that file",
        ),
        file(
            "rows.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
            1,
            "rows.xls is an old Excel workbook (.xls); export it as CSV in UTF-8, and give that file",
        ),
        file(
            "rows.ods",
            zip("mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
            1,
            "rows.ods is an OpenDocument spreadsheet (.ods); export it as CSV in UTF-8, and give that file",
        ),
        file(
            "rows.zip",
            zip("rows.csv"),
            1,
            "rows.zip is a zip archive; unpack it, and give the file or the folder of the rows",
        ),
        file(
            "rows.pdf",
            b"%PDF-1.7\n%\xe2\xe3\n",
            1,
            "rows.pdf is a PDF document; export it as CSV in UTF-8, and give that file",
        ),
        file(
            "rows.csv",
            "<!DOCTYPE html><html><body>Sign in</body></html>",
            1,
            "rows.csv is a web page; give a file with a line for each row, such as CSV",
        ),
        file(
            "rows.xml",
            "<?xml version=\"1.0\"?><rows/>",
            1,
            "rows.xml is an XML document; give a file with a line for each row, such as CSV",
        ),
        file(
            "rows.json",
            "{\"age\": [20, 30]}",
            1,
            "rows.json is JSON; give a file with a line for each row, such as CSV",
        ),
        file(
            "rows.db",
            b"SQLite format 3\0\x10\0",
            1,
            "rows.db is an SQLite database; export it as CSV in UTF-8, and give that file",
        ),
        file(
            "rows.csv",
            b"PAR1\x15\x04\x15\0PAR1",
            1,
            "rows.csv is a Parquet file; set format = \"parquet\"",
        ),
        file(
            "rows.csv.bz2",
            b"BZh91AY&SY\x0f\xff\0",
            1,
            "rows.csv.bz2 is compressed with bzip2; decompress it, or compress it with gzip or zstd",
        ),
        file(
            "rows.csv.xz",
            b"\xfd7zXZ\0\0\x04",
            1,
            "rows.csv.xz is compressed with xz; decompress it, or compress it with gzip or zstd",
        ),
        file(
            "rows.csv.lz4",
            b"\x04\x22\x4d\x18\x64\x40",
            1,
            "rows.csv.lz4 is compressed with LZ4; decompress it, or compress it with gzip or zstd",
        ),
        file(
            "rows.7z",
            b"7z\xbc\xaf\x27\x1c\0\x04",
            1,
            "rows.7z is a 7z archive; unpack it, and give the file or the folder of the rows",
        ),
        file(
            "rows.csv.gz",
            cut,
            1,
            "cannot read rows.csv.gz: the gzip data ends early, so the file is not complete; copy it again",
        ),
        file(
            "rows.csv.gz",
            flipped,
            1,
            "cannot read rows.csv.gz: the gzip data is damaged (corrupt gzip stream does not have a matching checksum); copy the file again",
        ),
        file(
            "rows.tar.gz",
            gzip(&tar),
            1,
            "rows.tar.gz is a tar archive; unpack it, and give the file or the folder of the rows",
        ),
        file(
            "rows.csv.zst",
            &zstd[..zstd.len() - 9],
            1,
            "cannot read rows.csv.zst: the zstd data ends early, so the file is not complete; copy it again",
        ),
        file(
            "rows.csv.zst",
            [&zstd[..6], b"\xff\xff\xff\xff", &zstd[10..]].concat(),
            1,
            "cannot read rows.csv.zst: the zstd data is damaged (Data corruption detected); copy the file again",
        ),
        file(
            "rows.csv.gz",
            gzip(third_line("30,never,no").as_bytes()),
            1,
            "rows.csv.gz:3: column \"smoker\": \"never\" is not among the known values \"yes\", \"no\"; add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\"",
        ),
        file(
            "rows.csv.gz",
            gzip(b""),
            1,
            "rows.csv.gz is empty: its first line must name the columns",
        ),
        // A small file with a large row.
        file(
            "rows.csv.gz",
            gzip(&vec![b'x'; 17 << 20]),
            1,
            "rows.csv.gz:1: the row that begins here is longer than 16 MiB, the most that is read; look for a quote that is never closed",
        ),
    ]);
}

#[test]
fn parquet_files() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let make = |age: &str, ages: Values<'_>, codec: Compression| {
        let end = if age.ends_with('}') { "" } else { ";" };
        let message =
            format!("message m {{ {age}{end} required binary smoker; required boolean ill; }}");
        let columns = [
            ages,
            Values::Texts(&["yes", "no"]),
            Values::Bools(&[true, false]),
        ];
        write_parquet(&path, &message, codec, &columns);
        fs::read(&path).unwrap()
    };
    let plain = || Values::Doubles(&[20.0, 30.0]);
    let whole = make("required double age", plain(), Compression::SNAPPY);
    let list = "required group age (LIST) { repeated group list { required double element; } }";
    let with_codec = |codec: u8| {
        let mut bytes = make("required double age", plain(), Compression::UNCOMPRESSED);
        // In the footer, the codec of a column is the field after its path: 0 for none, twice 4 for brotli, twice 3 for LZO.
        let at = bytes.windows(6).position(|part| part == b"\x03age\x15\x00");
        bytes[at.unwrap() + 5] = codec;
        bytes
    };
    let as_true = "path = \"rows.parquet\"\nlabel = \"ill\"\npositive = \"true\"\n[data.numeric]\nage = [0, 90]";
    let parquet = |bytes: Vec<u8>, says| Case {
        files: vec![("rows.parquet", bytes)],
        source: Source::Study(as_true),
        code: 1,
        says,
    };
    check(&[
        parquet(Vec::new(), "rows.parquet is empty; give a Parquet file"),
        parquet(
            GOOD.into(),
            "rows.parquet is no Parquet file, which begins with PAR1; if it is CSV, set format = \"csv\"",
        ),
        parquet(
            whole[..whole.len() - 9].to_vec(),
            "cannot read rows.parquet as Parquet: Parquet error: Invalid Parquet file. Corrupt footer; is it complete, and a Parquet file?",
        ),
        parquet(
            whole[whole.len() / 2..].to_vec(),
            "rows.parquet is no Parquet file, which begins with PAR1; if it is CSV, set format = \"csv\"",
        ),
        parquet(
            [b"PARE", &whole[4..whole.len() - 4], b"PARE"].concat(),
            "rows.parquet is an encrypted Parquet file; save it without encryption",
        ),
        parquet(
            gzip(&whole),
            "rows.parquet is compressed as a whole; decompress it; Parquet compresses its own pages",
        ),
        parquet(
            zip("[Content_Types].xml"),
            "rows.parquet is an Excel workbook (.xlsx); export it as CSV in UTF-8, and give that file",
        ),
        parquet(
            make(list, Values::Listed(&[20.0, 30.0]), Compression::SNAPPY),
            "rows.parquet: column \"age\" is nested: only columns of plain values can be read; save the file without it, or with its parts as columns",
        ),
        parquet(
            make(
                "required int32 age (DECIMAL(9, 2))",
                Values::Ints(&[1, 2]),
                Compression::SNAPPY,
            ),
            "rows.parquet: column \"age\" is of type decimal, which cannot be read; save it as a number or as text",
        ),
        parquet(
            make(
                "required int32 age (TIME_MILLIS)",
                Values::Ints(&[1, 2]),
                Compression::SNAPPY,
            ),
            "rows.parquet: column \"age\" is of type time, which cannot be read; save it as a number or as text",
        ),
        parquet(
            make(
                "required int32 age (DATE)",
                Values::Ints(&[1, 2]),
                Compression::SNAPPY,
            ),
            "rows.parquet: row 1: column \"age\": invalid number \"1970-01-02\": if the column holds dates, give it bounds that are dates, such as bounds = [2000-01-01, 2030-01-01]",
        ),
        parquet(
            make(
                "required binary age",
                Values::Texts(&["20", "young"]),
                Compression::SNAPPY,
            ),
            "rows.parquet: row 2: column \"age\": invalid number \"young\"; correct it, or list it under missing to drop such rows",
        ),
        parquet(
            make("optional double age", Values::Nulls(2), Compression::SNAPPY),
            "rows.parquet: all 2 rows were dropped, since each lacks a value: \"age\" in 2; missing = \"category\" for a feature keeps such rows",
        ),
        parquet(
            make("required double years", plain(), Compression::SNAPPY),
            "rows.parquet: there is no column \"age\"; the header has \"years\", \"smoker\", \"ill\"",
        ),
        parquet(
            with_codec(8),
            "rows.parquet: column \"age\" is compressed with brotli, which is not supported; save the file with zstd, snappy, gzip or lz4, or uncompressed",
        ),
        parquet(
            with_codec(6),
            "rows.parquet: column \"age\" is compressed with lzo, which is not supported; save the file with zstd, snappy, gzip or lz4, or uncompressed",
        ),
    ]);
}

#[test]
fn folders_and_patterns() {
    let good = || GOOD.as_bytes().to_vec();
    let folder = |files: Vec<(&'static str, Vec<u8>)>, source, code, says: &'static str| Case {
        files,
        source: Source::Study(source),
        code,
        says,
    };
    let other = GOOD.replace("smoker", "smokes").into_bytes();
    let wrong = third_line("x,no,no").into_bytes();
    check(&[
        folder(
            vec![],
            "path = \"rows.csv\"",
            2,
            "rows.csv: No such file or directory (os error 2); [data] path is relative to the study file",
        ),
        folder(
            vec![("rows/_SUCCESS", vec![]), ("rows/.a.csv.crc", vec![])],
            "path = \"rows\"",
            2,
            "rows: there is no file of rows; names that begin with . or _ are left out; [data] path is relative to the study file",
        ),
        folder(
            vec![("rows/a.csv", good())],
            "path = \"rows/*.parquet\"",
            2,
            "rows/*.parquet: there is no file of rows; names that begin with . or _ are left out; [data] path is relative to the study file",
        ),
        folder(
            vec![],
            "path = \"rows/*.csv\"",
            2,
            "rows/*.csv: rows: No such file or directory (os error 2); [data] path is relative to the study file",
        ),
        folder(
            vec![("rows/a.csv", good()), ("rows/b.parquet", good())],
            "path = \"rows\"",
            1,
            "rows/b.parquet: this is a Parquet file by its name, and others are CSV files; read files of one format with a pattern such as *.csv",
        ),
        folder(
            vec![("rows/a.csv", good()), ("rows/notes.xlsx", good())],
            "path = \"rows\"",
            1,
            "rows/notes.xlsx: the name tells no format, and others are CSV files; read files of one format with a pattern such as *.csv",
        ),
        folder(
            vec![("rows/a.csv", good())],
            "path = \"rows\"\nformat = \"parquet\"",
            1,
            "rows/a.csv: this is a CSV file by its name, and format is \"parquet\"; correct it, or read files of one format with a pattern such as *.parquet",
        ),
        folder(
            vec![("rows/a.csv", good()), ("rows/b.csv", other)],
            "path = \"rows\"",
            1,
            "rows/b.csv:1: there is no column \"smoker\" (did you mean \"smokes\"?); the header has \"age\", \"smokes\", \"ill\"",
        ),
        folder(
            vec![("rows/a.csv", good()), ("rows/b.csv", wrong)],
            "path = \"rows/*.csv\"",
            1,
            "rows/b.csv:3: column \"age\": invalid number \"x\"; correct it, or list it under missing to drop such rows",
        ),
        folder(
            vec![("rows/a.csv", good()), ("rows/b.csv", vec![])],
            "path = \"rows\"",
            1,
            "rows/b.csv is empty: its first line must name the columns",
        ),
        folder(
            vec![("rows/a.csv", b"-> gone.csv".to_vec())],
            "path = \"rows\"",
            2,
            "rows: rows/a.csv: No such file or directory (os error 2); [data] path is relative to the study file",
        ),
        folder(
            vec![("rows/a.csv", b"-> /dev/null".to_vec())],
            "path = \"rows\"",
            2,
            "rows: rows/a.csv: is neither a file nor a folder; remove it, or choose files with a pattern; [data] path is relative to the study file",
        ),
        folder(
            vec![("rows.csv", good())],
            "path = \"rows.csv/a.csv\"",
            2,
            "rows.csv/a.csv: Not a directory (os error 20); [data] path is relative to the study file",
        ),
        folder(
            vec![("rows.csv", good())],
            "path = \"rows.csv\"\ntest = { path = \"test.csv\" }",
            2,
            "test.csv: No such file or directory (os error 2); [data.test] path is relative to the study file",
        ),
        folder(
            vec![
                ("rows.csv", good()),
                ("test.csv", b"age,ill\n1,yes\n".to_vec()),
            ],
            "path = \"rows.csv\"\ntest = { path = \"test.csv\" }",
            1,
            "test.csv:1: there is no column \"smoker\"; the header has \"age\", \"ill\"",
        ),
    ]);
}

#[test]
fn libsvm_files() {
    let svm = |text: &str, says: &'static str| Case {
        files: vec![("rows.svm", text.into())],
        source: Source::Study("path = \"rows.svm\"\npositive = \"1\"\ncolumns = 3\nnonzeros = 2"),
        code: 1,
        says,
    };
    check(&[
        svm(
            "",
            "rows.svm has no rows: a row is a line such as +1 3:0.5 17:1, its label and index:value pairs",
        ),
        svm(
            "# nothing\n\n",
            "rows.svm has no rows: a row is a line such as +1 3:0.5 17:1, its label and index:value pairs",
        ),
        svm(
            "1 1:0.5\n-1 2\n",
            "rows.svm:2: invalid pair \"2\": a row is a label and index:value pairs such as 3:0.5",
        ),
        svm(
            "1 1:0.5\n-1 0:1\n",
            "rows.svm:2: invalid index \"0\": columns are numbered from 1",
        ),
        svm(
            "1 1:0.5\n-1 2:1 1:1\n",
            "rows.svm:2: index 1 comes after index 2; indices must ascend, each at most once",
        ),
        svm(
            "1 1:0.5\n-1 4:1\n",
            "rows.svm:2: index 4 is beyond the last column: the study has columns = 3",
        ),
        svm(
            "1 1:0.5\n-1 1:1 2:1 3:1\n",
            "rows.svm:2: the line has 3 non-zeros: the study has nonzeros = 2",
        ),
        svm(
            "1 1:0.5\n-1 1:one\n",
            "rows.svm:2: invalid value \"one\" of index 1: must be a finite number",
        ),
        svm(
            "1 1:0.5\n-1 1:1e999\n",
            "rows.svm:2: invalid value \"1e999\" of index 1: must be a finite number",
        ),
        svm(
            "1 1:0.5\r-1 2:1\r",
            "rows.svm:1: a carriage return is within the line; save the file with line ends of LF or CRLF",
        ),
        svm(
            GOOD,
            "rows.svm:1: \"age,smoker,ill\" is no row of a LIBSVM file, which is a label and index:value pairs such as 3:0.5; if the file is CSV, set format = \"csv\"",
        ),
        svm(
            "1 1:1\n1 2:1\n",
            "rows.svm: column \"label\": every row has the positive label \"1\"; rows of both classes are needed",
        ),
        svm(
            &"1 1:0.5 ".repeat(3 << 20),
            "rows.svm:1: the line is longer than 16 MiB, the most that is read; is it a LIBSVM file, with a line for each row?",
        ),
    ]);
}

#[test]
fn commands_and_stdin() {
    let site = |data: &'static str, code, says: &'static str| Case {
        files: vec![
            ("rows.csv", GOOD.into()),
            ("rows.xlsx", zip("[Content_Types].xml")),
        ],
        source: Source::Site(data),
        code,
        says,
    };
    let inspect = |arguments: &'static [&'static str], stdin: &'static [u8], code, says| Case {
        files: vec![("rows.xlsx", zip("xl/")), ("rows.txt", GOOD.into())],
        source: Source::Inspect(arguments, stdin),
        code,
        says,
    };
    check(&[
        site(
            "path = \"gone.csv\"",
            2,
            "gone.csv: No such file or directory (os error 2); [data] path is relative to the site file",
        ),
        site(
            "path = \"rows.xlsx\"",
            1,
            "rows.xlsx is an Excel workbook (.xlsx); export it as CSV in UTF-8, and give that file",
        ),
        site(
            "path = \"-\"",
            1,
            "stdin is empty: its first line must name the columns",
        ),
        site(
            "path = \"-\"\nformat = \"libsvm\"",
            1,
            "stdin: a LIBSVM file has numbered columns: the study must give their number and no names",
        ),
        site(
            "command = [\"./gone\"]",
            2,
            "[data] command: ./gone cannot be started: No such file or directory (os error 2); give the program as the first element, by a name that is on the PATH of this process or by a path relative to the site file, and its arguments as further elements; the interpreter of a script must exist too",
        ),
        site(
            "command = [\"false\"]",
            1,
            "[data] command: false failed with exit code 1; none of its rows are used, and nothing was spent",
        ),
        site(
            "command = [\"sh\", \"-c\", \"head -2 rows.csv; echo 'ERROR:  no such table' >&2; exit 3\"]",
            1,
            "[data] command: sh failed with exit code 3; none of its rows are used, and nothing was spent; it says:\n  ERROR:  no such table",
        ),
        site(
            "command = [\"true\"]",
            1,
            "[data] command: true printed nothing and ended with exit code 0; its first line must name the columns (for psql: format csv, header), and a pipeline in a shell must fail when a part of it fails (set -o pipefail)",
        ),
        site(
            "command = [\"head\", \"-1\", \"rows.csv\"]",
            1,
            "the output of head has a header and no rows; is it the right file?",
        ),
        site(
            "command = [\"cat\", \"rows.xlsx\"]",
            1,
            "the output of cat is an Excel workbook (.xlsx); export it as CSV in UTF-8, and give that file",
        ),
        site(
            "command = [\"sed\", \"s/30/thirty/\", \"rows.csv\"]",
            1,
            "the output of sed:3: column \"age\": invalid number \"thirty\"; correct it, or list it under missing to drop such rows",
        ),
        site(
            "command = [\"sh\", \"-c\", \"yes x | tr -d '\\\\n'\"]",
            1,
            "the output of sh:1: the row that begins here is longer than 16 MiB, the most that is read; look for a quote that is never closed",
        ),
        inspect(
            &["-"],
            b"",
            1,
            "/dev/stdin is empty: its first line must name the columns",
        ),
        inspect(
            &["-"],
            b"20,30\n40,50\n",
            1,
            "/dev/stdin has no header: its first line holds numbers; add a line above it that names the columns",
        ),
        inspect(
            &["-", "--format", "parquet"],
            b"",
            2,
            "-: a Parquet file is read from its end, and stdin cannot be; give the path of the file, or CSV",
        ),
        inspect(
            &["rows.xlsx"],
            b"",
            2,
            "rows.xlsx: spreadsheets are not read; export the table as CSV in UTF-8",
        ),
        inspect(
            &["rows.txt"],
            b"",
            2,
            "rows.txt: unknown file extension; give --format csv, parquet or libsvm",
        ),
        inspect(
            &["gone.csv"],
            b"",
            2,
            "gone.csv: No such file or directory (os error 2)",
        ),
    ]);
}
