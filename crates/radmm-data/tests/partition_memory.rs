//! Reading a table needs at most twice the memory of its encoded rows, however they are split and whichever are held
//! out; or a limit of memory, and that of a few chunks.
//!
//! The allocator counts requested bytes: a list that moves counts twice while it moves. That is more than the
//! operating system sees, and the same on every machine. This is the binary's only test, because the allocator counts
//! all threads.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, Read};

use peak_alloc::PeakAlloc;
use radmm_data::{
    Categorical, Holdout, Numeric, Partition, PartitionSpec, Schema, Split, partition_csv,
    partition_libsvm, row_memory,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const ROWS: usize = 200_000;

/// The memory that does not grow with the rows: buffers, names.
const CONSTANT: usize = 1 << 19;

/// A source that makes each line when it is read, so that the text takes no memory.
struct GeneratedLines<F> {
    line: F,
    next: usize,
    text: Vec<u8>,
    at: usize,
}

fn lines(line: impl Fn(usize) -> Option<String>) -> impl Read {
    GeneratedLines {
        line,
        next: 0,
        text: Vec::new(),
        at: 0,
    }
}

impl<F: Fn(usize) -> Option<String>> Read for GeneratedLines<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            self.text = (self.line)(self.next).unwrap_or_default().into_bytes();
            (self.next, self.at) = (self.next + 1, 0);
        }
        let read = (&self.text[self.at..]).read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

fn csv() -> impl Read {
    lines(|n| match n {
        0 => Some("a,b,c,ward,ill\n".to_owned()),
        1..=ROWS => Some(format!(
            "{},{},0,{},{}\n",
            n % 89 + 1,
            n % 13 + 1,
            ["north", "south", "east", "west", "hill", "lake", "wood"][n % 7],
            ["yes", "no"][n / 3 % 2]
        )),
        _ => None,
    })
}

fn libsvm() -> impl Read {
    lines(|n| {
        let label = ["+1", "-1"][n / 3 % 2];
        let first = n % 50_000 + 1;
        (n < ROWS).then(|| format!("{label} {first}:1 {}:0.5 {}:2\n", first + 7, first + 9_000))
    })
}

fn schema() -> Schema {
    let bounds = |name: &str| Numeric::within(name, 0.0, 100.0);
    Schema {
        numeric: ["a", "b", "c"].map(bounds).into(),
        categorical: vec![Categorical::new(
            "ward",
            ["north", "south", "east", "west", "hill", "lake", "wood"],
        )],
        ..Schema::new("ill", "yes")
    }
}

fn numbered() -> Schema {
    Schema {
        positive: "1".into(),
        numbered: 60_000,
        numeric: vec![],
        categorical: vec![],
        ..schema()
    }
}

/// The bytes of a row with three numbers, of which one is always zero, and a ward: two numbers, the value of its
/// one-hot columns, a code.
const TABLE_ROW: usize = 2 * 8 + 8 + 1;

/// The bytes of a row with three of many columns: their numbers and values, its start, and the value of one-hot
/// columns.
const NUMBERED_ROW: usize = 3 * (2 + 8) + 4 + 8;

fn assert_small(what: &str, bytes: usize, read: impl FnOnce() -> Partition) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let partition = read();
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(partition.read + partition.held_out(), ROWS);
    let kept = ALLOCATOR.current_usage() - before;
    assert!(kept >= bytes, "{what}: {kept} bytes cannot hold {bytes}");
    let ratio = peak as f64 / bytes as f64;
    assert!(
        peak <= 2 * bytes + CONSTANT,
        "{what}: {peak} bytes, {ratio:.2} times the rows"
    );
}

/// The rows of a chunk.
const CHUNK: usize = 16_384;

/// Reads the rows within a fifth of the memory that they take.
fn assert_limited(spec: PartitionSpec<'_>) {
    let folder = tempfile::tempdir().unwrap();
    let limit = ROWS * TABLE_ROW / 5;
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let memory = row_memory(limit as u64, folder.path()).unwrap();
    let partition = partition_csv(csv(), "rows.csv", &schema(), spec.within(&memory)).unwrap();
    assert_eq!(partition.read + partition.held_out(), ROWS);
    let peak = ALLOCATOR.peak_usage() - before;
    // A chunk of each shard is being filled, one is built and one is written. Labels of rows that wait take some bytes.
    let chunks = 2 * spec.nodes + 2;
    let waiting = match spec.holdout {
        Some(Holdout::Last { .. }) => 6 * ROWS,
        _ => 0,
    };
    let most = limit + chunks * CHUNK * TABLE_ROW + waiting + 2 * CONSTANT;
    assert!(peak <= most, "{spec:?}: {peak} bytes, not {most}");
    assert!(most < 2 * ROWS * TABLE_ROW, "the limit tells something");
}

#[test]
fn at_most_twice_the_encoded_rows_are_held() {
    let (seed, alpha) = (1, 0.5);
    let bytes = ROWS * TABLE_ROW;
    let holdouts = [
        None,
        Some(Holdout::Last { rows: ROWS / 10 }),
        // The most rows are buffered at once.
        Some(Holdout::Last {
            rows: ROWS * 9 / 10,
        }),
        Some(Holdout::Share { share: 0.2, seed }),
        Some(Holdout::Share { share: 0.9, seed }),
    ];
    for holdout in &holdouts {
        let holdout = holdout.as_ref();
        // A single shard has the most rows to move at once.
        for nodes in [1, 7] {
            let splits = [
                Split::RoundRobin,
                Split::Shuffled { seed },
                Split::Sizes {
                    sizes: (1..=nodes).map(|size| size as f64).collect(),
                    seed,
                },
                Split::Dirichlet { alpha, seed },
            ];
            for split in &splits {
                let spec = PartitionSpec {
                    split,
                    nodes,
                    holdout,
                    memory: None,
                };
                assert_small(&format!("csv {spec:?}"), bytes, || {
                    partition_csv(csv(), "rows.csv", &schema(), spec).unwrap()
                });
                assert_small(&format!("libsvm {spec:?}"), ROWS * NUMBERED_ROW, || {
                    partition_libsvm(libsvm(), "rows.svm", &numbered(), spec).unwrap()
                });
            }
        }
        let by_ward = Split::Column {
            column: "ward".into(),
            values: vec![],
        };
        let spec = PartitionSpec {
            split: &by_ward,
            nodes: 7,
            holdout,
            memory: None,
        };
        assert_small(&format!("csv {spec:?}"), bytes, || {
            partition_csv(csv(), "rows.csv", &schema(), spec).unwrap()
        });
    }
    let holdouts = [None, Some(&holdouts[1]), Some(&holdouts[3])];
    for holdout in holdouts {
        assert_limited(PartitionSpec {
            holdout: holdout.and_then(Option::as_ref),
            ..PartitionSpec::new(&Split::RoundRobin, 1)
        });
    }
}
