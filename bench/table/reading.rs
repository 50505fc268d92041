//! How fast a large file is read, and in how much memory: ten million rows of five numbers and two categories.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use radmm::curator::NormPolicy;
use radmm::curator::bench_hooks::{MeasuredRows, VectorUnits};
use radmm_data::{
    Categorical, Format, Numeric, PartitionSpec, Schema, Split, TableFile, read_partition,
};
use serde_json::{Value, json};

use crate::clock::{child, peak, timed};
use radmm_bench::report::{Detail, Found, thousands, times};

const ROWS: usize = 10_000_000;
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
        ("rows.csv", write_csv as fn(&Path)),
        ("rows.parquet", write_parquet),
        ("rows.svm", write_libsvm),
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

/// One reading in this process, whose time and peak are printed.
pub fn read_once(path: &Path, split: &str) {
    let format = Format::of(path).unwrap();
    let by_split = match split {
        "shuffled" => Split::Shuffled { seed: 1 },
        _ => Split::RoundRobin,
    };
    let (seconds, partition) = timed(|| {
        let table = TableFile::open(path, format).unwrap();
        let spec = PartitionSpec::new(&by_split, NODES);
        read_partition(table, &schema(format), spec).unwrap()
    });
    assert_eq!(partition.read, ROWS);
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

fn write_csv(path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    write_rows(&mut file, ROWS).unwrap();
    file.flush().unwrap();
}

/// Writes so many rows as comma-separated text.
pub fn write_rows(out: &mut impl Write, rows: usize) -> io::Result<()> {
    writeln!(out, "a,b,c,d,e,ward,clinic,ill")?;
    for n in 0..rows {
        let ([a, b, c, d, e], [ward, clinic], ill) = row(n);
        let ill = if ill { "yes" } else { "no" };
        writeln!(out, "{a},{b},{c},{d},{e},w{ward},c{clinic},{ill}")?;
    }
    Ok(())
}

fn write_parquet(path: &Path) {
    let message = "message rows {
        required int64 a; required int64 b; required int64 c; required int64 d; required int64 e;
        required binary ward (UTF8); required binary clinic (UTF8); required binary ill (UTF8);
    }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    const GROUP: usize = 250_000;
    for start in (0..ROWS).step_by(GROUP) {
        let rows: Vec<_> = (start..start + GROUP).map(row).collect();
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

fn write_libsvm(path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for n in 0..ROWS {
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
