//! Scoring a file needs no more memory for many rows than for few. This is the binary's only test, because the
//! allocator counts all threads.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use peak_alloc::PeakAlloc;
use radmm_data::{DataError, Format, Numeric, Schema, TableFile, score_each};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The memory of buffers.
const CONSTANT: usize = 1 << 18;

#[test]
fn memory_does_not_grow_with_the_rows() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows");
    let named = Schema {
        missing: vec!["?".into()],
        intercept: true,
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        ..Schema::new("ill", "1")
    };
    let numbered = Schema {
        numbered: 100,
        numeric: vec![],
        ..named.clone()
    };
    let csv = |n: usize| format!("{},{}\n", n % 101, n % 2);
    let libsvm = |n: usize| format!("{} {}:1\n", n % 2, n % 100 + 1);
    for (format, schema, header, line) in [
        (
            Format::Csv,
            &named,
            "age,ill\n",
            &csv as &dyn Fn(usize) -> String,
        ),
        (Format::Libsvm, &numbered, "", &libsvm),
    ] {
        let mut file = BufWriter::new(File::create(&path).unwrap());
        file.write_all(header.as_bytes()).unwrap();
        for n in 0..200_000 {
            file.write_all(line(n).as_bytes()).unwrap();
        }
        drop(file);
        assert!(fs::metadata(&path).unwrap().len() > 2 * CONSTANT as u64);
        let table = TableFile::open(&path, format).unwrap();
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let mut sum = 0.0;
        let counts = score_each(table, schema, |row| {
            sum += row.map_or(0.0, |row| row.score(&[1.0; 101]));
            Ok::<_, DataError>(())
        });
        let peak = ALLOCATOR.peak_usage() - before;
        assert_eq!(counts.unwrap().labelled, 200_000);
        assert!(peak < CONSTANT, "{peak} bytes for {format:?}");
        assert!(sum > 0.0);
    }
}
