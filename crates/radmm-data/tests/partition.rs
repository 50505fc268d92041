//! The nodes to which the rows of a table are assigned.

use proptest::prelude::*;
use radmm::curator::NormPolicy;
use radmm_data::{
    Builtin, Categorical, DataError, Numeric, Partition, PartitionSpec, Schema, Split,
    partition_csv,
};

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into()],
        rows: NormPolicy::Clip,
        intercept: true,
        numeric: vec![Numeric::within("age", -50.0, 100.0)],
        categorical: vec![Categorical::new("ward", ["A", "B", "C"])],
        ..Schema::new("ill", "yes")
    }
}

fn by_ward() -> Split {
    Split::Column {
        column: "ward".into(),
        values: vec!["C".into(), "A".into(), "B".into()],
    }
}

fn read_csv(
    text: &[u8],
    schema: &Schema,
    split: &Split,
    nodes: usize,
) -> Result<Partition, DataError> {
    partition_csv(text, "rows.csv", schema, PartitionSpec::new(split, nodes))
}

fn sizes(partition: &Partition) -> Vec<usize> {
    let parts = partition.parts.iter();
    parts.map(|part| part.shard.rows()).collect()
}

fn names(partition: &Partition) -> Vec<&str> {
    let parts = partition.parts.iter();
    parts.map(|part| part.name.as_str()).collect()
}

const SEVEN: &str = "\
id,age,ward,ill,note
1,20,A,yes,
2,30,B,no,
3,?,B,no,
4,40,B,yes,?
5,50,C,no,
6,60,B,no,
7,70,A,no,
";

#[test]
fn rows_are_counted_and_unused_columns_listed() {
    let table = read_csv(SEVEN.as_bytes(), &schema(), &Split::RoundRobin, 2).unwrap();
    assert_eq!((table.read, table.dropped, table.positive), (7, 1, 2));
    assert_eq!(table.ignored, ["id", "note"]);
    assert!(table.parts.iter().all(|part| part.shard.columns() == 5));
}

#[test]
fn round_robin_and_shuffled_nodes_differ_by_one_row_at_most() {
    for split in [Split::RoundRobin, Split::Shuffled { seed: 9 }] {
        let table = read_csv(SEVEN.as_bytes(), &schema(), &split, 4).unwrap();
        assert_eq!(sizes(&table), [2, 2, 1, 1]);
        assert_eq!(names(&table), ["node 0", "node 1", "node 2", "node 3"]);
    }
}

#[test]
fn a_split_by_sizes_gives_each_node_its_size() {
    let split = Split::Sizes {
        sizes: vec![3.0, 1.0, 2.0],
        seed: 4,
    };
    let table = read_csv(SEVEN.as_bytes(), &schema(), &split, 3).unwrap();
    assert_eq!(sizes(&table), [3, 1, 2]);
    assert_eq!(names(&table), ["node 0", "node 1", "node 2"]);
}

#[test]
fn a_column_split_names_its_nodes_after_the_values() {
    let table = read_csv(SEVEN.as_bytes(), &schema(), &by_ward(), 3).unwrap();
    assert_eq!(names(&table), ["C", "A", "B"]);
    assert_eq!(sizes(&table), [1, 2, 3]);
}

#[test]
fn a_column_split_need_not_be_by_a_feature() {
    let mut schema = schema();
    schema.categorical.clear();
    let table = read_csv(SEVEN.as_bytes(), &schema, &by_ward(), 3).unwrap();
    assert_eq!(table.parts[0].shard.columns(), 2);
    assert_eq!(table.ignored, ["id", "note"]);
}

#[test]
fn a_missing_value_in_the_split_column_drops_the_row() {
    let text = SEVEN.to_owned() + "8,20,?,no,\n";
    let table = read_csv(text.as_bytes(), &schema(), &by_ward(), 3).unwrap();
    assert_eq!((table.read, table.dropped), (8, 2));
}

#[test]
fn the_clinic_splits_by_hospital() {
    let split = Split::Column {
        column: "hospital".into(),
        values: ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
            .map(String::from)
            .into(),
    };
    let schema = Schema {
        label: "readmitted".into(),
        categorical: vec![],
        ..schema()
    };
    let text = Builtin::Clinic.csv().as_bytes();
    let table = read_csv(text, &schema, &split, 5).unwrap();
    let sizes = sizes(&table);
    assert!(sizes[0] > 2 * sizes[4] && sizes[4] > 200, "{sizes:?}");
}

fn any_split() -> impl Strategy<Value = Split> {
    prop_oneof![
        Just(Split::RoundRobin),
        any::<u64>().prop_map(|seed| Split::Shuffled { seed }),
        Just(by_ward()),
        (prop::collection::vec(0.01..10.0_f64, 3), any::<u64>())
            .prop_map(|(sizes, seed)| Split::Sizes { sizes, seed }),
        (1e-4..1e4_f64, any::<u64>()).prop_map(|(alpha, seed)| Split::Dirichlet { alpha, seed }),
    ]
}

prop_compose! {
    /// Rows of a table: age or missing, ward, ill.
    fn rows()(
        rows in prop::collection::vec((prop::option::weighted(0.9, -1e3..1e3_f64), 0..3_usize, any::<bool>()), 1..60)
    ) -> Vec<(Option<f64>, usize, bool)> {
        rows
    }
}

proptest! {
    #[test]
    fn every_kept_row_goes_to_exactly_one_node(rows in rows(), split in any_split()) {
        let mut text = "age,ward,ill\n".to_owned();
        for (age, ward, ill) in &rows {
            let age = age.map_or("?".to_owned(), |age| age.to_string());
            let ill = if *ill { "yes" } else { "no" };
            text += &format!("{age},{},{ill}\n", ["A", "B", "C"][*ward]);
        }
        let kept: Vec<_> = rows.iter().filter(|row| row.0.is_some()).collect();
        let positive = kept.iter().filter(|row| row.2).count();
        match read_csv(text.as_bytes(), &schema(), &split, 3) {
            Ok(table) => {
                prop_assert_eq!(table.read, rows.len());
                prop_assert_eq!(table.read - table.dropped, kept.len());
                prop_assert_eq!(table.positive, positive);
                prop_assert_eq!(sizes(&table).iter().sum::<usize>(), kept.len());
                prop_assert!(sizes(&table).iter().all(|rows| *rows > 0));
                let ill: Vec<usize> = table.parts.iter().map(|part| part.positive).collect();
                prop_assert_eq!(ill.iter().sum::<usize>(), positive);
                if split == by_ward() {
                    let of = |ward| kept.iter().filter(|row| row.1 == ward).count();
                    prop_assert_eq!(sizes(&table), [of(2), of(0), of(1)]);
                    let of = |ward| kept.iter().filter(|row| row.1 == ward && row.2).count();
                    prop_assert_eq!(ill, [of(2), of(0), of(1)]);
                }
            }
            // Round-robin and shuffled splits take every table of both classes with enough rows.
            Err(error) => prop_assert!(
                positive == 0
                    || positive == kept.len()
                    || kept.len() < 3
                    || matches!(
                        split,
                        Split::Column { .. } | Split::Dirichlet { .. } | Split::Sizes { .. }
                    ),
                "{}", error
            ),
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        split in any_split(),
        nodes in 0..4_usize,
    ) {
        let _ = read_csv(&bytes[..], &schema(), &split, nodes);
    }

    #[test]
    fn no_text_below_a_valid_header_causes_a_panic(
        text in "[0-9ABC?,\"\r\n\u{feff}\u{e9} yesno.-]{0,200}",
        split in any_split(),
        nodes in 0..4_usize,
    ) {
        let text = format!("age,ward,ill\n{text}");
        let _ = read_csv(text.as_bytes(), &schema(), &split, nodes);
    }
}

#[test]
fn without_given_values_nodes_are_named_in_order_of_appearance() {
    let text = "x,site,ill\n1,north,yes\n2,south,no\n3,north,no\n4,east,yes\n";
    let schema = Schema {
        numeric: vec![Numeric::within("x", 0.0, 9.0)],
        categorical: vec![],
        ..schema()
    };
    let split = Split::Column {
        column: "site".into(),
        values: vec![],
    };
    let read = |nodes| read_csv(text.as_bytes(), &schema, &split, nodes);
    let parts = read(3).ok().unwrap().parts;
    let named: Vec<(&str, usize)> = parts
        .iter()
        .map(|part| (part.name.as_str(), part.shard.rows()))
        .collect();
    assert_eq!(named, [("north", 2), ("south", 1), ("east", 1)]);
    let too_many = read(2).err().unwrap().to_string();
    assert!(
        too_many.starts_with("rows.csv:5: column \"site\": \"east\""),
        "{too_many}"
    );
    let too_few = read(4).err().unwrap().to_string();
    assert!(too_few.contains("has 3 values for 4 nodes"), "{too_few}");
}
