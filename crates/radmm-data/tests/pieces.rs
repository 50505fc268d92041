//! Pieces of files that workers read apart from each other give the chunks of the whole table.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use radmm::curator::ChunkHolder;
use radmm_data::{
    DataError, FileOptions, Numeric, PartitionSpec, PieceCounts, Schema, Split, TableFile,
    TablePiece, read_partition, read_pieces,
};

/// The number of rows of a full chunk.
const CHUNK: usize = 16_384;

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into()],
        intercept: true,
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        ..Schema::new("ill", "yes")
    }
}

/// Returns a row: every eleventh has no age.
fn row(n: usize) -> (Option<f64>, &'static str) {
    let age = (n % 11 != 3).then(|| (n * 7 % 100) as f64 + 0.25);
    (age, if n.is_multiple_of(3) { "yes" } else { "no" })
}

fn write_csv(path: &Path, rows: Range<usize>) {
    let mut text = "ill,age\n".to_owned();
    for n in rows {
        let (age, ill) = row(n);
        let age = age.map_or("?".to_owned(), |age| age.to_string());
        writeln!(text, "{ill},{age}").unwrap();
    }
    fs::write(path, text).unwrap();
}

fn write_parquet(path: &Path, groups: &[Range<usize>]) {
    let schema = "message rows { optional double age; required binary ill (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let ages: Vec<f64> = rows.clone().filter_map(|n| row(n).0).collect();
        let levels: Vec<i16> = rows
            .clone()
            .map(|n| i16::from(row(n).0.is_some()))
            .collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<DoubleType>();
        typed.write_batch(&ages, Some(&levels), None).unwrap();
        column.close().unwrap();
        let texts: Vec<ByteArray> = rows.clone().map(|n| row(n).1.into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let typed = column.typed::<ByteArrayType>();
        typed.write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn open(path: &Path) -> TableFile {
    TableFile::open(path, FileOptions::default()).unwrap()
}

/// Returns the bytes of the chunks of the whole table, read at once.
fn whole(path: &Path) -> Vec<Vec<u8>> {
    let spec = PartitionSpec::new(&Split::RoundRobin, 1);
    let partition = read_partition(open(path), &schema(), spec).unwrap();
    let shard = partition.parts.into_iter().next().unwrap().shard;
    ChunkHolder::new(shard, 0).unwrap().encode().unwrap()
}

fn count(pieces: Vec<TablePiece>) -> Vec<(TablePiece, PieceCounts)> {
    let count = |piece: TablePiece| {
        let counts = piece.count(&schema(), FileOptions::default()).unwrap();
        (piece, counts)
    };
    pieces.into_iter().map(count).collect()
}

/// Reads a range of complete rows from the pieces that hold them.
fn read(
    counted: &[(TablePiece, PieceCounts)],
    rows: Range<usize>,
) -> Result<Vec<Vec<u8>>, DataError> {
    let mut first = 0;
    let mut skipped = 0;
    let mut pieces = Vec::new();
    for (piece, counts) in counted {
        let here = first..first + counts.complete;
        first = here.end;
        if here.end <= rows.start {
            skipped = here.end;
        } else if here.start < rows.end {
            pieces.push((piece.clone(), counts.complete));
        }
    }
    let rows = rows.start - skipped..rows.end - skipped;
    let shard = read_pieces(&pieces, rows, &schema(), FileOptions::default())?;
    Ok(ChunkHolder::new(shard, 0).unwrap().encode().unwrap())
}

#[test]
fn ranges_of_complete_rows_give_the_chunks_of_the_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 60_000;
    let csv = folder.path().join("csv");
    fs::create_dir(&csv).unwrap();
    for (name, rows) in [("a", 0..20_001), ("b", 20_001..20_002), ("c", 20_002..rows)] {
        write_csv(&csv.join(name).with_extension("csv"), rows);
    }
    let parquet = folder.path().join("parquet");
    fs::create_dir(&parquet).unwrap();
    write_parquet(&parquet.join("a.parquet"), &[0..9_000, 9_000..33_000]);
    write_parquet(
        &parquet.join("b.parquet"),
        &[33_000..33_003, 33_003..50_000, 50_000..rows],
    );
    let expected = whole(&csv);
    assert_eq!(expected.len(), 4);
    for (path, pieces) in [(csv, 3), (parquet, 5)] {
        assert_eq!(whole(&path), expected);
        let counted = count(open(&path).pieces().unwrap());
        assert_eq!(counted.len(), pieces);
        let counts: Vec<PieceCounts> = counted.iter().map(|(_, counts)| counts.clone()).collect();
        let total = PieceCounts::total(&counts, "rows", &schema()).unwrap();
        let complete = (0..rows).filter(|n| row(*n).0.is_some()).count();
        assert_eq!((total.read, total.complete), (rows, complete));
        assert_eq!(total.labels, ["yes", "no"]);
        for cuts in [&[0, complete][..], &[0, CHUNK, 3 * CHUNK, complete]] {
            let parts = cuts.windows(2).map(|cut| read(&counted, cut[0]..cut[1]));
            let parts: Vec<Vec<u8>> = parts.flat_map(Result::unwrap).collect();
            assert!(parts == expected, "{cuts:?}");
        }
    }
}

#[test]
fn a_file_that_changes_between_counting_and_reading_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    write_parquet(&path, &[0..100, 100..200]);
    let counted = count(open(&path).pieces().unwrap());
    let all: usize = counted.iter().map(|(_, counts)| counts.complete).sum();
    let changes = [
        vec![0..100, 100..199],
        vec![0..100, 101..220],
        vec![0..99, 99..200],
    ];
    for groups in changes {
        write_parquet(&path, &groups);
        let refused = read(&counted, 0..all).err().unwrap().to_string();
        assert!(refused.contains("rows changed while"), "{refused}");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        read(&counted, 0..all),
        Err(DataError::Read { .. })
    ));
}

#[test]
fn an_invalid_value_is_named_by_its_row_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    write_parquet(&path, &[0..100, 100..200]);
    let schema = Schema {
        numeric: vec![Numeric::within("ill", 0.0, 1.0)],
        ..Schema::new("age", "10.25")
    };
    let pieces = open(&path).pieces().unwrap();
    let refused = pieces[1].count(&schema, FileOptions::default());
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("row 101"), "{refused}");
}

#[test]
fn counts_of_all_pieces_are_refused_as_the_whole_table_is() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |text: &str| {
        let path = folder.path().join("rows.csv");
        fs::write(&path, text).unwrap();
        let counted = count(open(&path).pieces().unwrap());
        let counts: Vec<PieceCounts> = counted.into_iter().map(|(_, counts)| counts).collect();
        let name = path.display().to_string();
        let found = PieceCounts::total(&counts, &name, &schema())
            .and_then(|total| total.check_classes(&name, &schema()));
        let spec = PartitionSpec::new(&Split::RoundRobin, 1);
        let expected = read_partition(open(&path), &schema(), spec).err().unwrap();
        assert_eq!(found.unwrap_err().to_string(), expected.to_string());
    };
    refusal("ill,age\n");
    refusal("ill,age\nyes,?\n");
    refusal("ill,age\nyes,1\nyes,2\n");
    refusal("ill,age\nno,1\nmaybe,2\n");
}
