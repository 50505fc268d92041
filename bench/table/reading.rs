//! How fast a large file is read, and in how much memory: ten million rows of five numbers and two categories. And two million of them
//! from every kind of source.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use radmm::curator::NormPolicy;
use radmm::curator::bench_hooks::{MeasuredRows, VectorUnits};
use radmm_data::{
    Categorical, DecimalMark, FileOptions, Format, Numeric, PartitionSpec, Schema, Separator,
    Split, TableFile, TableSource, TableStream, read_partition,
};
use serde_json::{Value, json};

use crate::clock::{child, median, peak, timed};
use radmm_bench::report::{Detail, Found, thousands, times};

const ROWS: usize = 10_000_000;

/// The rows of every kind of source.
const SOURCE_ROWS: usize = 2_000_000;

/// The files of a folder.
const FILES: usize = 20;

/// The readings of a source, of which the median counts.
const READINGS: usize = 3;

const NUMBERS: usize = 5;
/// The number of wards, and of clinics.
pub const WARDS: usize = 10;
const NODES: usize = 10;

/// Files of all formats, split as they come and shuffled.
pub fn reading() -> Found {
    let folder = crate::target().join("bench-data");
    fs::create_dir_all(&folder).unwrap();
    let mut lines = Vec::new();
    for (name, write) in [
        ("rows.csv", (|path| write_csv(path, ROWS, ",")) as fn(&Path)),
        ("rows.parquet", |path| {
            write_parquet(path, 0..ROWS, Compression::SNAPPY)
        }),
        ("rows.svm", |path| write_libsvm(path, ROWS)),
    ] {
        let path = folder.join(name);
        write(&path);
        let size = fs::metadata(&path).unwrap().len() as f64;
        for split in ["round-robin", "shuffled"] {
            let said = child(&["reading", path.to_str().unwrap(), split]);
            let said: Value = serde_json::from_str(&said).unwrap();
            let format = Format::of(&path).unwrap().name();
            let rate = ROWS as f64 / said["seconds"].as_f64().unwrap();
            let mut line = vec![
                format!("{format} of {:.2} GB", size / 1e9),
                split.to_owned(),
                thousands(rate as usize),
            ];
            let stored = said["stored"].as_f64().unwrap();
            line.push(format!("{:.2} GB", stored / 1e9));
            line.extend(match said["peak"].as_f64() {
                Some(bytes) => [format!("{:.2} GB", bytes / 1e9), times(bytes / stored)],
                None => ["?".to_owned(), "?".to_owned()],
            });
            lines.push(line);
        }
        fs::remove_file(&path).unwrap();
    }
    Found {
        details: vec![Detail {
            title: "Reading rows".to_owned(),
            head: vec![
                "file",
                "split",
                "rows/s",
                "rows as stored",
                "peak memory",
                "ratio",
            ],
            lines,
            notes: vec![format!(
                "{} rows of five numbers, two categories and an intercept, for {NODES} nodes. \
                 Every reading is a process of its own, and the peak is the largest memory of that process.",
                thousands(ROWS),
            )],
        }],
        ..Found::default()
    }
}

/// A source of rows: its name, the file or the folder, and what writes it.
type Source = (&'static str, &'static str, fn(&Path));

const SOURCES: [Source; 10] = [
    ("CSV", "plain.csv", |path| write_csv(path, SOURCE_ROWS, ",")),
    ("CSV, gzip", "packed.csv.gz", |path| compress(path, "gzip")),
    ("CSV, zstd", "packed.csv.zst", |path| compress(path, "zstd")),
    (
        "CSV with semicolons and decimal commas",
        "semicolons.csv",
        |path| write_csv(path, SOURCE_ROWS, ";"),
    ),
    ("CSV of a command, `cat`", "printed.csv", |path| {
        write_csv(path, SOURCE_ROWS, ",")
    }),
    ("Parquet, snappy", "snappy.parquet", |path| {
        write_parquet(path, 0..SOURCE_ROWS, Compression::SNAPPY)
    }),
    ("Parquet, zstd", "zstd.parquet", |path| {
        write_parquet(path, 0..SOURCE_ROWS, Compression::ZSTD(Default::default()))
    }),
    ("a folder of 20 Parquet files", "folder", write_folder),
    ("LIBSVM", "rows.svm", |path| write_libsvm(path, SOURCE_ROWS)),
    ("LIBSVM, zstd", "packed.svm.zst", |path| {
        compress(path, "zstd")
    }),
];

/// The same rows from every kind of source.
pub fn sources() -> Found {
    let folder = crate::target().join("bench-sources");
    fs::create_dir_all(&folder).unwrap();
    let mut lines = Vec::new();
    let mut of_csv = None;
    for (name, file, write) in SOURCES {
        let path = folder.join(file);
        write(&path);
        let read = || -> Value {
            let said = child(&["source", path.to_str().unwrap()]);
            serde_json::from_str(&said).unwrap()
        };
        let said: Vec<Value> = (0..READINGS).map(|_| read()).collect();
        let number = |key: &str| said.iter().map(|one| one[key].as_f64().unwrap()).collect();
        let rate = SOURCE_ROWS as f64 / median(number("seconds"));
        let of_csv = *of_csv.get_or_insert(rate);
        let (stored, peak) = (median(number("stored")), median(number("peak")));
        lines.push(vec![
            name.to_owned(),
            format!("{:.0} MB", size(&path) / 1e6),
            thousands(rate as usize),
            times(rate / of_csv),
            format!("{:.0} MB", peak / 1e6),
            times(peak / stored),
        ]);
    }
    fs::remove_dir_all(&folder).unwrap();
    Found {
        details: vec![Detail {
            title: "Sources of rows".to_owned(),
            head: vec![
                "source",
                "size",
                "rows/s",
                "of CSV",
                "peak memory",
                "of the rows as stored",
            ],
            lines,
            notes: vec![format!(
                "{} rows of five numbers, two categories and an intercept, for {NODES} nodes, on one thread; the median of {READINGS} \
                 readings. Every reading is a process of its own, and the peak is the largest memory of that process. A party that runs \
                 a command hashes what it prints as well.",
                thousands(SOURCE_ROWS),
            )],
        }],
        ..Found::default()
    }
}

/// Returns the bytes of a file, or of the files of a folder.
fn size(path: &Path) -> f64 {
    let one = |path: &Path| fs::metadata(path).unwrap().len() as f64;
    match path.is_dir() {
        true => fs::read_dir(path)
            .unwrap()
            .map(|file| one(&file.unwrap().path()))
            .sum(),
        false => one(path),
    }
}

/// Writes the compressed form of rows, whose format is that of the path, by a program that users have.
fn compress(path: &Path, program: &str) {
    let plain = path.with_extension("");
    match Format::of(&plain) {
        Some(Format::Libsvm) => write_libsvm(&plain, SOURCE_ROWS),
        _ => write_csv(&plain, SOURCE_ROWS, ","),
    }
    let packed = Command::new(program)
        .args(["-q", "-c"])
        .arg(&plain)
        .stdout(File::create(path).unwrap())
        .status();
    assert!(packed.unwrap().success(), "{program}");
    fs::remove_file(plain).unwrap();
}

fn write_folder(path: &Path) {
    fs::create_dir_all(path).unwrap();
    let rows = SOURCE_ROWS / FILES;
    for file in 0..FILES {
        let name = path.join(format!("part-{file:02}.parquet"));
        write_parquet(&name, file * rows..(file + 1) * rows, Compression::SNAPPY);
    }
}

/// One reading of a source in this process, whose time and peak are printed.
pub fn read_source(path: &Path) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let format = Format::of(path).unwrap_or(Format::Parquet);
    let mut options = FileOptions::from(format);
    if name == "semicolons.csv" {
        options.separator = Some(Separator::Semicolon);
        options.decimal = Some(DecimalMark::Comma);
    }
    if name == "printed.csv" {
        let cat = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn();
        let printed = cat.unwrap().stdout.unwrap();
        let stream = TableStream::new(printed, "the output of cat", options);
        return read(stream.into(), SOURCE_ROWS, format, &Split::RoundRobin);
    }
    let table = TableFile::open(path, options).unwrap();
    read(table.into(), SOURCE_ROWS, format, &Split::RoundRobin);
}

/// One reading in this process, whose time and peak are printed.
pub fn read_once(path: &Path, split: &str) {
    let format = Format::of(path).unwrap();
    let by_split = match split {
        "shuffled" => Split::Shuffled { seed: 1 },
        _ => Split::RoundRobin,
    };
    let table = TableFile::open(path, format).unwrap();
    read(table.into(), ROWS, format, &by_split);
}

/// Reads so many rows, and prints the time and the peak.
fn read(table: TableSource<'_>, rows: usize, format: Format, split: &Split) {
    let (seconds, partition) = timed(|| {
        let spec = PartitionSpec::new(split, NODES);
        read_partition(table, &schema(format), spec).unwrap()
    });
    assert_eq!(partition.read, rows);
    let parts = partition.parts.into_iter();
    let bytes = parts.map(|part| MeasuredRows::new(part.shard, VectorUnits::Best).bytes());
    let stored: usize = bytes.sum();
    println!(
        "{}",
        json!({ "seconds": seconds, "peak": peak(), "stored": stored })
    );
}

/// Numbers from 1 to 1000, two wards and a class.
type Row = ([usize; NUMBERS], [usize; 2], bool);

fn row(n: usize) -> Row {
    let hash = |k: usize| n.wrapping_mul(k).wrapping_add(k) >> 7;
    let numbers = [7919, 104_729, 1_299_709, 15_485_863, 32_452_843].map(|k| hash(k) % 1000 + 1);
    let wards = [hash(611_953) % WARDS, hash(746_773) % WARDS];
    (numbers, wards, hash(1_000_003).is_multiple_of(3))
}

fn write_csv(path: &Path, rows: usize, separator: &str) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    write_rows(&mut file, rows, separator).unwrap();
    file.flush().unwrap();
}

/// Writes so many rows as text with this separator.
pub fn write_rows(out: &mut impl Write, rows: usize, separator: &str) -> io::Result<()> {
    let s = separator;
    writeln!(out, "a{s}b{s}c{s}d{s}e{s}ward{s}clinic{s}ill")?;
    for n in 0..rows {
        let ([a, b, c, d, e], [ward, clinic], ill) = row(n);
        let ill = if ill { "yes" } else { "no" };
        writeln!(
            out,
            "{a}{s}{b}{s}{c}{s}{d}{s}{e}{s}w{ward}{s}c{clinic}{s}{ill}"
        )?;
    }
    Ok(())
}

fn write_parquet(path: &Path, rows: Range<usize>, codec: Compression) {
    let message = "message rows {
        required int64 a; required int64 b; required int64 c; required int64 d; required int64 e;
        required binary ward (UTF8); required binary clinic (UTF8); required binary ill (UTF8);
    }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder().set_compression(codec);
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    const GROUP: usize = 250_000;
    for start in rows.clone().step_by(GROUP) {
        let rows: Vec<_> = (start..rows.end.min(start + GROUP)).map(row).collect();
        let mut group = writer.next_row_group().unwrap();
        for k in 0..NUMBERS {
            let numbers: Vec<i64> = rows.iter().map(|row| row.0[k] as i64).collect();
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<Int64Type>();
            typed.write_batch(&numbers, None, None).unwrap();
            column.close().unwrap();
        }
        let texts: [fn(&Row) -> String; 3] = [
            |row| format!("w{}", row.1[0]),
            |row| format!("c{}", row.1[1]),
            |row| if row.2 { "yes" } else { "no" }.to_owned(),
        ];
        for text in texts {
            let texts: Vec<ByteArray> = rows
                .iter()
                .map(|row| text(row).into_bytes().into())
                .collect();
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<ByteArrayType>();
            typed.write_batch(&texts, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn write_libsvm(path: &Path, rows: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for n in 0..rows {
        let ([a, b, c, d, e], [ward, clinic], ill) = row(n);
        let label = if ill { "+1" } else { "-1" };
        let (ward, clinic) = (NUMBERS + 1 + ward, NUMBERS + 1 + WARDS + clinic);
        writeln!(
            file,
            "{label} 1:{a} 2:{b} 3:{c} 4:{d} 5:{e} {ward}:1 {clinic}:1"
        )
        .unwrap();
    }
    file.flush().unwrap();
}

fn schema(format: Format) -> Schema {
    let named = format != Format::Libsvm;
    let vocabulary = |name: &str, letter: char| {
        Categorical::new(name, (0..WARDS).map(|k| format!("{letter}{k}")))
    };
    let mut schema = Schema {
        label: "ill".into(),
        positive: if named { "yes" } else { "1" }.into(),
        missing: vec!["?".into()],
        rows: NormPolicy::Unit,
        numbered: if named {
            0
        } else {
            (NUMBERS + 2 * WARDS) as u32
        },
        nonzeros: None,
        intercept: true,
        numeric: Vec::new(),
        categorical: Vec::new(),
    };
    if named {
        schema.numeric = ["a", "b", "c", "d", "e"]
            .map(|name| Numeric::within(name, 0.0, 1000.0))
            .into();
        schema.categorical = vec![vocabulary("ward", 'w'), vocabulary("clinic", 'c')];
    }
    schema
}
