//! Compressed text means the same as plain text, and damaged data is an error that says so.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, Read, Write};

use flate2::write::GzEncoder;
use radmm_data::{
    DataError, FileOptions, Format, Numeric, Partition, PartitionSpec, Schema, Split, TableFile,
    TableStream, profile, read_partition,
};
use tempfile::TempDir;

fn schema(format: Format) -> Schema {
    match format {
        Format::Libsvm => Schema {
            numbered: 3,
            ..Schema::new("label", "1")
        },
        _ => Schema {
            numeric: vec![Numeric::within("age", 0.0, 100.0)],
            ..Schema::new("ill", "yes")
        },
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ::zstd::encode_all(text, 3).unwrap()
}

/// Text that does not compress to almost nothing.
fn csv(rows: usize) -> String {
    let row = |n: usize| format!("{},{}\n", n * 7919 % 90, ["no", "yes"][n % 2]);
    "age,ill\n".to_owned() + &(0..rows).map(row).collect::<String>()
}

fn read(source: impl Read, format: Format) -> Result<Partition, DataError> {
    let table = TableStream::new(source, "rows", format);
    let spec = PartitionSpec::new(&Split::RoundRobin, 2);
    read_partition(table, &schema(format), spec)
}

fn message(source: impl Read) -> String {
    let error = read(source, Format::Csv).err();
    error.expect("the file should be refused").to_string()
}

#[test]
fn compressed_text_is_recognised_by_its_first_bytes() {
    let libsvm = "1 1:2 3:1\n-1 2:1\n".repeat(1000);
    for (text, format, rows) in [
        (csv(50_000), Format::Csv, 50_000),
        (libsvm, Format::Libsvm, 2000),
    ] {
        for compressed in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
            let partition = read(&compressed[..], format).unwrap();
            assert_eq!((partition.read, partition.positive), (rows, rows / 2));
        }
    }
}

#[test]
fn the_extension_before_that_of_the_compression_tells_the_format() {
    let folder = TempDir::new().unwrap();
    for (name, text) in [
        ("rows.csv.gz", csv(9)),
        ("rows.tsv.zst", csv(9).replace(',', "\t")),
        ("rows.TSV.GZ", csv(9).replace(',', "\t")),
        // Whatever it is called, its first bytes tell that it is compressed.
        ("rows.csv", csv(9)),
    ] {
        let path = folder.path().join(name);
        let compressed = match name.ends_with("zst") {
            true => zstd(text.as_bytes()),
            false => gzip(text.as_bytes()),
        };
        std::fs::write(&path, compressed).unwrap();
        let table = TableFile::open(&path, FileOptions::default()).unwrap();
        let spec = PartitionSpec::new(&Split::RoundRobin, 2);
        let partition = read_partition(table, &schema(Format::Csv), spec).unwrap();
        assert_eq!(partition.read, 9, "{name}");
        assert_eq!(
            profile(TableFile::open(&path, FileOptions::default()).unwrap())
                .unwrap()
                .rows,
            9
        );
    }
}

#[test]
fn files_of_several_pieces_are_read_to_their_end() {
    let text = csv(3000);
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    for pieces in [
        [gzip(first), gzip(b""), gzip(second)],
        [zstd(first), zstd(b""), zstd(second)],
    ] {
        assert_eq!(read(&pieces.concat()[..], Format::Csv).unwrap().read, 3000);
    }
}

#[test]
fn a_truncated_stream_is_never_taken_for_a_shorter_table() {
    let text = csv(20_000);
    for (name, whole) in [
        ("gzip", gzip(text.as_bytes())),
        ("zstd", zstd(text.as_bytes())),
    ] {
        let says = format!(
            "cannot read rows: the {name} data ends early, so the file is not complete; copy it again"
        );
        for length in [5, 9, whole.len() / 2, whole.len() - 1] {
            assert_eq!(message(&whole[..length]), says, "{length} bytes");
        }
    }
}

#[test]
fn a_damaged_stream_is_an_error_that_says_so() {
    let text = csv(20_000);
    for (name, mut bytes) in [
        ("gzip", gzip(text.as_bytes())),
        ("zstd", zstd(text.as_bytes())),
    ] {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 40].fill(0xff);
        let said = message(&bytes[..]);
        let begins = format!("cannot read rows: the {name} data is damaged (");
        assert!(said.starts_with(&begins), "{said}");
        assert!(said.ends_with("); copy the file again"), "{said}");
    }
    let trailing = [gzip(text.as_bytes()), b"rows behind the end".to_vec()].concat();
    assert_eq!(
        message(&trailing[..]),
        "cannot read rows: the gzip data is damaged (invalid gzip header); copy the file again"
    );
}

#[test]
fn an_error_of_the_source_is_not_taken_for_damage() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let text = csv(200_000);
    for whole in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        let half = &whole[..whole.len() / 2];
        assert_eq!(
            message(half.chain(Broken)),
            "cannot read rows: the disk is gone"
        );
    }
}

#[test]
fn a_window_beyond_the_limit_is_an_error_and_not_memory() {
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(30).unwrap();
    encoder.write_all(csv(100).as_bytes()).unwrap();
    assert_eq!(
        message(&encoder.finish().unwrap()[..]),
        "cannot read rows: reading the zstd data takes more than 128 MiB of memory; compress it again without --long or --ultra"
    );
}
