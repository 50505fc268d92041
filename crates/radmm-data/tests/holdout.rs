//! Rows held out for testing.

use proptest::prelude::*;
use radmm::curator::NormPolicy;
use radmm_data::{
    Categorical, DataError, Format, Holdout, Numeric, Partition, PartitionSpec, Schema, Split,
    TableStream, partition_csv, read_test_set,
};

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into()],
        rows: NormPolicy::Clip,
        intercept: true,
        numeric: vec![
            Numeric::within("age", 0.0, 100.0),
            Numeric::binned("bmi", [20.0, 25.0]),
        ],
        categorical: vec![Categorical::new("smoker", ["no", "yes"])],
        ..Schema::new("ill", "yes")
    }
}

fn by_ward() -> Split {
    Split::Column {
        column: "ward".into(),
        values: vec![],
    }
}

const HEADER: &str = "age,bmi,smoker,ward,ill\n";
/// Six complete rows.
const ROWS: &str = "\
20,19,no,A,yes
30,22,no,B,no
?,22,no,B,no
140,29,yes,A,no
50,18,no,B,yes
60,21,no,?,yes
160,24,yes,C,maybe
70,25,yes,D,no
";

fn partition(text: &str, split: &Split, holdout: &Holdout) -> Result<Partition, DataError> {
    let spec = PartitionSpec::new(split, 2).holding_out(holdout);
    partition_csv(text.as_bytes(), "rows.csv", &schema(), spec)
}

fn message<T>(result: Result<T, DataError>) -> String {
    result
        .err()
        .expect("the table should be refused")
        .to_string()
}

/// Describes the training rows.
fn trained(table: &Partition) -> String {
    let parts = table.parts.iter();
    let parts: Vec<_> = parts.map(|part| (&part.name, part.shard.rows())).collect();
    let (kept, positive, clipped) = (table.read - table.dropped, table.positive, &table.clipped);
    format!("{parts:?}, {kept} rows, {positive} positive, clipped {clipped:?}")
}

#[test]
fn the_last_complete_rows_are_held_out_and_the_others_are_as_if_the_file_had_ended() {
    let text = HEADER.to_owned() + ROWS;
    let table = partition(&text, &by_ward(), &Holdout::Last { rows: 2 }).unwrap();
    assert_eq!(table.test.as_ref().map(|shard| shard.rows()), Some(2));
    let end = text.find("160,").unwrap();
    let by_ward = by_ward();
    let spec = PartitionSpec::new(&by_ward, 2);
    let earlier = partition_csv(&text.as_bytes()[..end], "rows.csv", &schema(), spec).unwrap();
    // Wards C and D have no node, but their rows need none; nor does the age of 160 count.
    assert_eq!(trained(&table), trained(&earlier));
    assert_eq!(
        trained(&table),
        r#"[("A", 2), ("B", 2)], 4 rows, 2 positive, clipped [("age", 1)]"#
    );
    assert_eq!((table.read, table.dropped), (6, 2));
    assert_eq!(table.read + table.held_out(), 8);
    assert_eq!(table.labels, ["yes", "no", "maybe"]);
}

#[test]
fn a_row_that_is_not_held_out_needs_a_node() {
    let text = HEADER.to_owned() + ROWS;
    assert_eq!(
        message(partition(&text, &by_ward(), &Holdout::Last { rows: 1 })),
        "rows.csv:8: column \"ward\": \"C\" belongs to no node: the nodes are \"A\", \"B\"; add one for it, \
         or list it under missing to drop such rows"
    );
}

#[test]
fn rows_held_out_are_checked_like_others() {
    let text = HEADER.to_owned() + ROWS + "1,20,perhaps,A,no\n";
    assert_eq!(
        message(partition(&text, &by_ward(), &Holdout::Last { rows: 3 })),
        "rows.csv:10: column \"smoker\": \"perhaps\" is not among the known values \"no\", \"yes\"; \
         add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\""
    );
}

#[test]
fn some_rows_must_be_held_out_and_some_left_to_train_on() {
    let text = HEADER.to_owned() + &ROWS.replace('?', "9");
    for last in [8, 9] {
        assert_eq!(
            message(partition(
                &text,
                &Split::RoundRobin,
                &Holdout::Last { rows: last }
            )),
            format!(
                "rows.csv: the last {last} rows are held out of 8 (without those dropped), and none is left to \
                 train on; lower [data.test] last"
            )
        );
    }
    assert_eq!(
        message(partition(
            &text,
            &Split::RoundRobin,
            &Holdout::Last { rows: 0 }
        )),
        "rows.csv: no rows are held out; raise [data.test] last, or leave [data.test] out"
    );
    let share = |share| Holdout::Share { share, seed: 1 };
    assert_eq!(
        message(partition(&text, &Split::RoundRobin, &share(1e-9))),
        "rows.csv: none of 8 rows (without those dropped) is held out at share = 0.000000001; raise [data.test] \
         share or change its seed"
    );
    assert_eq!(
        message(partition(&text, &Split::RoundRobin, &share(1.0 - 1e-9))),
        "rows.csv: all 8 rows (without those dropped) are held out at share = 0.999999999, and none is left to \
         train on; lower [data.test] share or change its seed"
    );
}

#[test]
fn both_classes_are_needed_among_training_rows_only() {
    let text = HEADER.to_owned() + "20,20,no,A,no\n20,20,no,A,no\n20,20,no,A,yes\n";
    assert_eq!(
        message(partition(
            &text,
            &Split::RoundRobin,
            &Holdout::Last { rows: 1 }
        )),
        "rows.csv: column \"ill\": no row has the positive label \"yes\": the labels are \"no\"; correct \
         positive in the study"
    );
    let text = HEADER.to_owned() + "20,20,no,A,no\n20,20,no,A,yes\n20,20,no,A,no\n";
    assert!(partition(&text, &Split::RoundRobin, &Holdout::Last { rows: 1 }).is_ok());
}

#[test]
fn a_test_file_needs_no_column_of_the_split() {
    let text = "ill,smoker,age,bmi\nyes.,no,20,19\nno,yes,?,20\nno,yes,30,20\n";
    let held = read_test_set(
        TableStream::new(text.as_bytes(), "test.csv", Format::Csv),
        &schema(),
        None,
    )
    .unwrap();
    assert_eq!((held.shard.rows(), held.shard.columns()), (2, 7));
    assert_eq!(held.labels, ["yes.", "no"]);
}

#[test]
fn errors_name_the_test_file() {
    let refused = |text: &str| {
        message(read_test_set(
            TableStream::new(text.as_bytes(), "test.csv", Format::Csv),
            &schema(),
            None,
        ))
    };
    assert_eq!(
        refused("ill,smoker,age,bmi\nno,perhaps,20,20\n"),
        "test.csv:2: column \"smoker\": \"perhaps\" is not among the known values \"no\", \"yes\"; add it to them, \
         list it under missing to drop such rows, or count such values as missing with other = \"missing\""
    );
    assert_eq!(
        refused("ill,smoker,age,bmi\nno,no,20\n"),
        "test.csv:2: expected 4 fields as in the header, got 3; look for a stray comma or quote"
    );
    assert_eq!(
        refused("ill,smoker,age,bmi\n"),
        "test.csv has a header and no rows; is it the right file?"
    );
    assert_eq!(
        refused("ill,smoker,age,bmi\nno,no,20,?\n"),
        "test.csv: all 1 rows were dropped, since each lacks a value: \"bmi\" in 1; missing = \"category\" for a feature keeps such rows"
    );
}

proptest! {
    #[test]
    fn every_complete_row_is_either_trained_on_or_held_out(
        rows in prop::collection::vec((any::<bool>(), any::<bool>()), 1..40),
        holdout in prop_oneof![
            (0..20_usize).prop_map(|rows| Holdout::Last { rows }),
            (0.1..0.9_f64, any::<u64>()).prop_map(|(share, seed)| Holdout::Share { share, seed }),
        ],
        split in prop_oneof![
            Just(Split::RoundRobin),
            Just(Split::Shuffled { seed: 1 }),
            Just(Split::Sizes { sizes: vec![1.0, 2.0], seed: 1 }),
        ],
    ) {
        let mut text = HEADER.to_owned();
        for (known, ill) in &rows {
            let (age, ill) = (if *known { "20" } else { "?" }, if *ill { "yes" } else { "no" });
            text += &format!("{age},20,no,A,{ill}\n");
        }
        if let Ok(table) = partition(&text, &split, &holdout) {
            let trained: usize = table.parts.iter().map(|part| part.shard.rows()).sum();
            let complete = rows.iter().filter(|row| row.0).count();
            prop_assert_eq!(trained + table.held_out(), complete);
            prop_assert_eq!(table.read - table.dropped, trained);
            prop_assert_eq!(table.read + table.held_out(), rows.len());
            if let Holdout::Last { rows } = holdout {
                prop_assert_eq!(table.held_out(), rows);
            }
        }
    }
}
