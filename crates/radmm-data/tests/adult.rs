//! The Adult table against the declarations of its code book.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use radmm_data::{Builtin, Holdout, Partition, PartitionSpec, Split, partition_csv};

/// The encoded columns as declared by UCI's `adult.names`, in the order of the file.
const DECLARED: &str = include_str!("adult/columns.txt");

fn read(spec: PartitionSpec<'_>) -> Partition {
    let text = Builtin::Adult.csv().as_bytes();
    partition_csv(text, "adult", &Builtin::Adult.schema(), spec).unwrap()
}

fn five_nodes() -> PartitionSpec<'static> {
    PartitionSpec::new(&Split::RoundRobin, 5)
}

fn trained(table: &Partition) -> usize {
    table.parts.iter().map(|part| part.shard.rows()).sum()
}

#[test]
fn of_48842_people_45222_are_complete_and_a_quarter_earns_above_50000() {
    let table = read(five_nodes());
    assert_eq!((table.read, table.dropped), (48_842, 3_620));
    assert_eq!(trained(&table), 45_222);
    assert_eq!(table.positive, 11_208);
    let share = 100.0 * table.positive as f64 / trained(&table) as f64;
    assert_eq!(format!("{share:.3}"), "24.784");
    assert_eq!(table.labels, ["<=50K", ">50K"]);
    assert!(table.ignored.is_empty() && table.clipped.is_empty());
    assert!(table.test.is_none());
}

#[test]
fn the_encoded_columns_are_exactly_the_declared_ones() {
    let columns = Builtin::Adult.schema().columns();
    assert_eq!(columns.len(), 105);
    let ours: BTreeSet<&str> = columns.iter().map(String::as_str).collect();
    assert_eq!(ours, DECLARED.lines().collect());
    // Numbers first, then words in the order of their declaration.
    let of = |name: &str| {
        let words = DECLARED
            .lines()
            .filter(move |column| column.starts_with(name));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(columns[..3], ["age", "fnlwgt", "education-num"]);
    assert_eq!(columns[6..14], of("workclass="));
    assert_eq!(columns[64..], of("native-country="));
}

#[test]
fn the_last_15060_rows_are_the_conventional_test_set() {
    let table = read(five_nodes().holding_out(&Holdout::Last { rows: 15_060 }));
    assert_eq!((trained(&table), table.held_out()), (30_162, 15_060));
    // The complete rows of UCI's adult.data, and how many of them are positive.
    let text = Builtin::Adult.csv();
    let data = text.lines().skip(1).take(32_561);
    let complete = data.filter(|line| !line.contains('?'));
    let positive = complete.clone().filter(|line| line.ends_with(">50K"));
    assert_eq!(complete.count(), 30_162);
    assert_eq!(table.positive, positive.count());
    assert_eq!(table.read + table.held_out(), 48_842);
    assert_eq!(table.read - table.dropped, trained(&table));
}
