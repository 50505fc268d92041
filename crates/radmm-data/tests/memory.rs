//! Tables in memory mean the same as the files that hold their cells.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;
use std::io::Write;

use proptest::prelude::*;
use radmm_data::{
    Categorical, CellValue, DataError, Format, LabelledMatrix, MemoryColumn, MemoryTable,
    NamedColumn, Numeric, PartitionSpec, Schema, SparseRows, Split, TableFile, TableSource,
    profile, read_partition, read_test_set, score_each,
};

/// Cells that own their values.
#[derive(Clone, Debug)]
enum Owned {
    Missing,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

struct Cells(Vec<Owned>);

impl MemoryColumn for Cells {
    fn cell(&self, row: usize) -> CellValue<'_> {
        match &self.0[row] {
            Owned::Missing => CellValue::Missing,
            Owned::Boolean(value) => CellValue::Boolean(*value),
            Owned::Integer(value) => CellValue::Integer(i128::from(*value)),
            Owned::Float(value) => CellValue::Float(*value),
            Owned::Text(value) => CellValue::Text(value),
        }
    }
}

impl Owned {
    fn csv(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) if value.is_nan() => String::new(),
            Self::Float(value) => value.to_string(),
            Self::Text(value) => format!("\"{value}\""),
        }
    }
}

const NAMES: [&str; 5] = ["age", "income", "smoker", "site", "ill"];

fn named(columns: &[Vec<Owned>]) -> Vec<NamedColumn<'static>> {
    let pairs = NAMES.into_iter().zip(columns);
    let column = |(name, cells): (&str, &Vec<Owned>)| NamedColumn {
        name: name.to_owned(),
        cells: Ok(Box::new(Cells(cells.clone()))),
    };
    pairs.map(column).collect()
}

fn csv_file(columns: &[Vec<Owned>]) -> (tempfile::NamedTempFile, TableFile) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", NAMES.join(",")).unwrap();
    for row in 0..columns[0].len() {
        let fields: Vec<String> = columns.iter().map(|cells| cells[row].csv()).collect();
        writeln!(file, "{}", fields.join(",")).unwrap();
    }
    let table = TableFile::open(file.path(), Format::Csv).unwrap();
    (file, table)
}

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into(), String::new(), "99".into()],
        intercept: true,
        numeric: vec![
            Numeric::within("age", 0.0, 100.0),
            Numeric::within("income", -5.0, 5.0),
        ],
        categorical: vec![Categorical::new("smoker", ["true", "false"])],
        ..Schema::new("ill", "1")
    }
}

/// The encoded rows, `None` for those with a missing value.
type Encoded = Vec<Option<(Vec<(u32, u64)>, Option<bool>)>>;

fn encoded<'a>(table: impl Into<TableSource<'a>>) -> Result<Encoded, String> {
    let mut rows = Vec::new();
    let scored = score_each(table, &schema(), |row| -> Result<(), DataError> {
        rows.push(row.map(|row| {
            let entries = row.entries().iter();
            let bits = entries.map(|(column, value)| (*column, value.to_bits()));
            (bits.collect(), row.positive())
        }));
        Ok(())
    });
    scored.map(|_| rows).map_err(|error| error.to_string())
}

fn number() -> impl Strategy<Value = Owned> {
    prop_oneof![
        8 => (-200.0..200.0f64).prop_map(Owned::Float),
        8 => (-200i64..200).prop_map(Owned::Integer),
        1 => Just(Owned::Missing),
        1 => Just(Owned::Float(f64::NAN)),
        1 => Just(Owned::Integer(99)),
        1 => Just(Owned::Text("7.25".into())),
        1 => Just(Owned::Text("?".into())),
    ]
}

fn table() -> impl Strategy<Value = Vec<Vec<Owned>>> {
    let row = (
        number(),
        number(),
        any::<bool>(),
        0..3i64,
        prop_oneof![Just(0i64), Just(1)],
    );
    proptest::collection::vec(row, 4..40).prop_map(|rows| {
        let mut columns = vec![Vec::new(); 5];
        for (age, income, smoker, site, ill) in rows {
            columns[0].push(age);
            columns[1].push(income);
            columns[2].push(Owned::Boolean(smoker));
            columns[3].push(Owned::Integer(site));
            columns[4].push(Owned::Integer(ill));
        }
        columns
    })
}

proptest! {
    #[test]
    fn cells_are_encoded_to_the_bits_of_their_csv_file(columns in table()) {
        let memory = MemoryTable::new("frame", columns[0].len(), named(&columns));
        let (_file, csv) = csv_file(&columns);
        prop_assert_eq!(encoded(&memory).unwrap(), encoded(csv).unwrap());
    }

    #[test]
    fn partitions_and_profiles_agree_with_those_of_the_csv_file(columns in table()) {
        let split = Split::Column { column: "site".into(), values: Vec::new() };
        let spec = PartitionSpec::new(&split, 3);
        let memory = MemoryTable::new("frame", columns[0].len(), named(&columns));
        let (file, csv) = csv_file(&columns);
        let parts = |partition: Result<radmm_data::Partition, DataError>| {
            let kind = |error: DataError| std::mem::discriminant(&error);
            partition.map_err(kind).map(|partition| {
                let parts = partition.parts.iter();
                let parts: Vec<_> = parts
                    .map(|part| (part.name.clone(), part.shard.rows(), part.positive))
                    .collect();
                (parts, partition.read, partition.dropped, partition.clipped, partition.labels)
            })
        };
        prop_assert_eq!(
            parts(read_partition(&memory, &schema(), spec)),
            parts(read_partition(csv, &schema(), spec))
        );
        let csv = TableFile::open(file.path(), Format::Csv).unwrap();
        let (a, b) = (profile(&memory).unwrap(), profile(csv).unwrap());
        for (a, b) in a.columns.iter().zip(&b.columns) {
            prop_assert_eq!(&a.range, &b.range);
            prop_assert_eq!(a.missing, b.missing);
            let sorted = |values: &Option<Vec<(String, usize)>>| {
                let mut values = values.clone();
                values.iter_mut().for_each(|values| values.sort());
                values
            };
            prop_assert_eq!(sorted(&a.values), sorted(&b.values));
        }
    }
}

/// A sparse matrix in lists.
struct Lists(Vec<Vec<(u32, f64)>>);

impl SparseRows for Lists {
    fn columns(&self) -> u32 {
        4
    }

    fn row(&self, row: usize, entries: &mut Vec<(u32, f64)>) {
        entries.clone_from(&self.0[row]);
    }
}

fn matrix(rows: Vec<Vec<(u32, f64)>>, labels: &[i64]) -> (usize, LabelledMatrix<'static>) {
    let count = rows.len();
    let labels = labels.iter().map(|label| Owned::Integer(*label)).collect();
    let matrix = LabelledMatrix {
        features: Box::new(Lists(rows)),
        labels: Some(Box::new(Cells(labels))),
        split_by: None,
    };
    (count, matrix)
}

fn numbered() -> Schema {
    Schema {
        intercept: true,
        numbered: 4,
        ..Schema::new("label", "1")
    }
}

#[test]
fn a_sparse_matrix_is_encoded_as_its_libsvm_file() {
    let rows = vec![
        vec![(0, 0.5), (3, -2.0)],
        vec![],
        vec![(1, 1.0), (2, 0.25), (3, 7.0)],
    ];
    let (count, matrix) = matrix(rows, &[1, -1, 1]);
    let memory = MemoryTable::sparse("matrix", count, matrix);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "+1 1:0.5 4:-2\n-1\n+1 2:1 3:0.25 4:7\n").unwrap();
    let libsvm = TableFile::open(file.path(), Format::Libsvm).unwrap();
    let rows = |table: TableSource<'_>| {
        let mut rows = Vec::new();
        score_each(table, &numbered(), |row| -> Result<(), DataError> {
            let row = row.unwrap();
            rows.push((row.entries().to_vec(), row.positive()));
            Ok(())
        })
        .unwrap();
        rows
    };
    assert_eq!(rows((&memory).into()), rows(libsvm.into()));
    let spec = PartitionSpec::new(&Split::RoundRobin, 1);
    let partition = read_partition(&memory, &numbered(), spec).unwrap();
    assert_eq!((partition.read, partition.positive), (3, 2));
    assert_eq!(
        read_test_set(&memory, &numbered(), None).unwrap().positive,
        2
    );
}

#[test]
fn invalid_rows_of_a_sparse_matrix_are_named() {
    for (entries, expected) in [
        (
            vec![(4, 1.0)],
            "matrix: row 2: index 5 is beyond the last column",
        ),
        (
            vec![(1, 1.0), (1, 2.0)],
            "matrix: row 2: index 2 comes after index 2",
        ),
        (
            vec![(1, f64::NAN)],
            "matrix: row 2: invalid value \"NaN\" of index 2",
        ),
    ] {
        let (count, matrix) = matrix(vec![vec![(0, 1.0)], entries], &[1, 0]);
        let memory = MemoryTable::sparse("matrix", count, matrix);
        let spec = PartitionSpec::new(&Split::RoundRobin, 1);
        let error = read_partition(&memory, &numbered(), spec).err().unwrap();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn cells_of_an_unknown_type_are_an_error_only_where_they_are_used() {
    let column = |name: &str, cells: Vec<Owned>| NamedColumn {
        name: name.to_owned(),
        cells: Ok(Box::new(Cells(cells))),
    };
    let numbers = |n: i64| vec![Owned::Integer(n), Owned::Integer(1 - n)];
    let table = |unread: &str| {
        let unreadable = NamedColumn {
            name: unread.to_owned(),
            cells: Err("list<int64>".to_owned()),
        };
        let columns = vec![
            column("x", numbers(1)),
            column("ill", numbers(0)),
            unreadable,
        ];
        MemoryTable::new("frame", 2, columns)
    };
    let schema = |name: &str| Schema {
        numeric: vec![Numeric::within(name, 0.0, 1.0)],
        ..Schema::new("ill", "1")
    };
    let spec = PartitionSpec::new(&Split::RoundRobin, 1);
    assert!(read_partition(&table("y"), &schema("x"), spec).is_ok());
    let error = read_partition(&table("y"), &schema("y"), spec)
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "frame: column \"y\" is of type list<int64>, which cannot be read; save it as a number or as text"
    );
}

#[test]
fn reading_stops_soon_after_an_interruption() {
    let rows = 1_000_000;
    struct Endless(Cell<usize>);
    impl MemoryColumn for &Endless {
        fn cell(&self, row: usize) -> CellValue<'_> {
            self.0.set(row);
            CellValue::Integer((row % 2) as i128)
        }
    }
    let cells = Endless(Cell::new(0));
    let columns = ["x", "ill"].map(|name| NamedColumn {
        name: name.to_owned(),
        cells: Ok(Box::new(&cells)),
    });
    let schema = Schema {
        numeric: vec![Numeric::within("x", 0.0, 1.0)],
        ..Schema::new("ill", "1")
    };
    let is_interrupted = || cells.0.get() > 20_000;
    let table = MemoryTable::new("frame", rows, columns.into()).interrupted_by(&is_interrupted);
    let spec = PartitionSpec::new(&Split::RoundRobin, 1);
    let error = read_partition(&table, &schema, spec).err().unwrap();
    assert!(matches!(error, DataError::Interrupted { .. }), "{error}");
    assert!(cells.0.get() < 40_000);
}

#[test]
fn pieces_differ_wherever_tables_differ() {
    let pieces = |cells: Vec<Owned>| {
        let column = NamedColumn {
            name: "x".to_owned(),
            cells: Ok(Box::new(Cells(cells.clone())) as Box<dyn MemoryColumn>),
        };
        let mut all = Vec::new();
        let table = MemoryTable::new("frame", cells.len(), vec![column]);
        table.each_piece(&mut |piece| all.extend_from_slice(piece));
        all
    };
    let text = |text: &str| Owned::Text(text.to_owned());
    let tables = [
        vec![text("ab"), text("c")],
        vec![text("a"), text("bc")],
        vec![Owned::Missing, text("")],
        vec![text(""), Owned::Missing],
        vec![Owned::Integer(1), Owned::Integer(0)],
        vec![Owned::Float(1.0), Owned::Integer(0)],
        vec![Owned::Boolean(true), Owned::Integer(0)],
    ];
    for (i, a) in tables.iter().enumerate() {
        for b in &tables[..i] {
            assert_ne!(pieces(a.clone()), pieces(b.clone()), "{a:?} and {b:?}");
        }
    }
}

#[test]
fn no_name_of_a_column_passes_for_cells() {
    let pieces = |columns: Vec<(&str, Vec<Owned>)>| {
        let rows = columns[0].1.len();
        let columns = columns.into_iter().map(|(name, cells)| NamedColumn {
            name: name.to_owned(),
            cells: Ok(Box::new(Cells(cells)) as Box<dyn MemoryColumn>),
        });
        let mut all = Vec::new();
        let table = MemoryTable::new("frame", rows, columns.collect());
        table.each_piece(&mut |piece| all.extend_from_slice(piece));
        all
    };
    // The length of the name is 102, the mark of a float, and the rest of the name looks like missing values.
    let name = format!("?{}", "-".repeat(101));
    let float = f64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, b'?']);
    let mut long = vec![Owned::Missing, Owned::Float(float)];
    long.extend(vec![Owned::Missing; 102]);
    let short = vec![("a", vec![Owned::Missing]), (&name, vec![Owned::Missing])];
    assert_ne!(pieces(short), pieces(vec![("a", long)]));
}
