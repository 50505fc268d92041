//! LIBSVM files: valid and invalid ones.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::curator::NormPolicy;
use radmm_data::{
    DataError, Format, Holdout, Numeric, Partition, PartitionSpec, Schema, Split, TableStream,
    partition_csv, partition_libsvm, read_test_set,
};

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into()],
        rows: NormPolicy::Clip,
        numbered: 9,
        intercept: true,
        ..Schema::new("label", "+1")
    }
}

/// Reads rows without holding any out.
fn read(text: &[u8], schema: &Schema, split: &Split, nodes: usize) -> Result<Partition, DataError> {
    let spec = PartitionSpec::new(split, nodes);
    partition_libsvm(text, "rows.svm", schema, spec)
}

fn table(text: &str) -> Partition {
    read(text.as_bytes(), &schema(), &Split::RoundRobin, 2).unwrap()
}

fn refusal(text: &[u8], schema: &Schema, split: &Split) -> String {
    let error = read(text, schema, split, 2).err();
    error.expect("the file should be refused").to_string()
}

#[test]
fn labels_are_compared_as_numbers_and_rows_may_be_empty() {
    let table = table("+1 1:1\n-1 9:0.5\n1.0 2:3\n1\n? 1:1\n0 3:1\n");
    assert_eq!((table.read, table.dropped, table.positive), (6, 1, 3));
    assert_eq!(table.labels, ["+1", "-1", "1.0", "1", "0"]);
    assert!(table.parts.iter().all(|part| part.shard.columns() == 10));
}

#[test]
fn memory_does_not_grow_with_the_columns() {
    let schema = Schema {
        numbered: 50_000_000,
        intercept: false,
        ..schema()
    };
    let text: String = (0..1000)
        .map(|n| format!("{} {}:1\n", n % 2, 49_999_000 + n))
        .collect();
    let table = read(text.as_bytes(), &schema, &Split::Shuffled { seed: 1 }, 4);
    assert_eq!(table.unwrap().parts[3].shard.rows(), 250);
}

#[test]
fn every_malformed_line_is_reported_with_its_cause() {
    let cases: [(&[u8], &str); 13] = [
        (
            b"+1 0:1",
            "invalid index \"0\": columns are numbered from 1",
        ),
        (
            b"+1 -3:1",
            "invalid index \"-3\": columns are numbered from 1",
        ),
        (
            b"+1 qid:7 1:1",
            "invalid index \"qid\": columns are numbered from 1",
        ),
        (
            b"+1 1.5:1",
            "invalid index \"1.5\": columns are numbered from 1",
        ),
        (
            b"+1 10:1",
            "index 10 is beyond the last column: the study has columns = 9",
        ),
        (
            b"+1 3:1 2:1",
            "index 2 comes after index 3; indices must ascend, each at most once",
        ),
        (
            b"+1 3:1 3:1",
            "index 3 comes after index 3; indices must ascend, each at most once",
        ),
        (
            b"+1 3",
            "invalid pair \"3\": a row is a label and index:value pairs such as 3:0.5",
        ),
        (
            b"+1 3: 4:1",
            "invalid value \"\" of index 3: must be a finite number",
        ),
        (
            b"+1 3:x",
            "invalid value \"x\" of index 3: must be a finite number",
        ),
        (
            b"+1 3:nan",
            "invalid value \"nan\" of index 3: must be a finite number",
        ),
        (
            b"+1 3:1e999",
            "invalid value \"1e999\" of index 3: must be a finite number",
        ),
        (b"+1 3:\xff", "the line is not UTF-8; is it a LIBSVM file?"),
    ];
    for (line, says) in cases {
        let text = [b"# two rows\n-1 1:1\n", line, b"\n"].concat();
        let said = refusal(&text, &schema(), &Split::RoundRobin);
        assert_eq!(said, format!("rows.svm:3: {says}"));
    }
}

#[test]
fn the_error_of_a_file_without_rows_explains_what_a_row_is() {
    for text in ["", "\n\n", "# nothing\n"] {
        assert_eq!(
            refusal(text.as_bytes(), &schema(), &Split::RoundRobin),
            "rows.svm has no rows: a row is a line such as +1 3:0.5 17:1, its label and index:value pairs"
        );
    }
}

#[test]
fn both_classes_are_needed() {
    assert_eq!(
        refusal(b"2 1:1\n-1 1:1\n", &schema(), &Split::RoundRobin),
        "rows.svm: column \"label\": no row has the positive label \"+1\": the labels are \"2\", \"-1\"; correct positive in the study"
    );
}

#[test]
fn named_and_numbered_columns_do_not_mix() {
    let by_ward = Split::Column {
        column: "ward".into(),
        values: vec![],
    };
    assert_eq!(
        refusal(b"1 1:1\n", &schema(), &by_ward),
        "rows.svm: a LIBSVM file cannot be split by a column; use another split"
    );
    let mut named = schema();
    named.numeric = vec![Numeric::within("age", 0.0, 1.0)];
    let said = "rows.svm: a LIBSVM file has numbered columns: the study must give their number and no names";
    assert_eq!(refusal(b"1 1:1\n", &named, &Split::RoundRobin), said);
    let spec = PartitionSpec::new(&Split::RoundRobin, 1);
    let error = partition_csv(&b"age,label\n1,1\n"[..], "rows.csv", &named, spec);
    assert_eq!(
        error.err().unwrap().to_string(),
        "rows.csv: only a LIBSVM file has numbered columns: the study must name those that it uses"
    );
}

/// Six complete rows and one without a label.
const SEVEN: &str = "1 1:1\n-1 2:1\n1 3:1\n? 9:1\n-1 4:1\n1 5:1\n7 6:1\n";

#[test]
fn the_last_rows_are_held_out() {
    let split = Split::Shuffled { seed: 1 };
    let holdout = Holdout::Last { rows: 2 };
    let spec = PartitionSpec::new(&split, 2).holding_out(&holdout);
    let table = partition_libsvm(SEVEN.as_bytes(), "rows.svm", &schema(), spec).unwrap();
    assert_eq!((table.read, table.dropped, table.positive), (5, 1, 2));
    let test = table.test.unwrap();
    assert_eq!((test.rows(), test.columns()), (2, 10));
    assert_eq!(table.labels, ["1", "-1", "7"]);
}

#[test]
fn a_share_of_rows_is_held_out_and_the_others_are_split_by_sizes() {
    let split = Split::Sizes {
        sizes: vec![3.0, 1.0],
        seed: 1,
    };
    let holdout = Holdout::Share {
        share: 0.25,
        seed: 3,
    };
    let spec = PartitionSpec::new(&split, 2).holding_out(&holdout);
    let text: String = (0..100).map(|n| format!("{} 1:1\n", n % 2)).collect();
    let table = partition_libsvm(text.as_bytes(), "rows.svm", &schema(), spec).unwrap();
    let (held, rows) = (table.held_out(), table.read);
    assert_eq!(held + rows, 100);
    assert!(held > 0);
    let sizes: Vec<usize> = table.parts.iter().map(|part| part.shard.rows()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), rows);
    assert!(sizes[0].abs_diff(3 * sizes[1]) <= 4, "{sizes:?}");
}

#[test]
fn a_test_file_may_hold_a_single_class() {
    let held = read_test_set(
        TableStream::new(&b"7 1:1\n? 1:1\n7 9:1\n"[..], "rows.t", Format::Libsvm),
        &schema(),
        None,
    )
    .unwrap();
    assert_eq!((held.shard.rows(), held.shard.columns()), (2, 10));
    assert_eq!(held.labels, ["7"]);
}

#[test]
fn errors_name_the_test_file() {
    let refused = |text: &str| {
        let held = read_test_set(
            TableStream::new(text.as_bytes(), "rows.t", Format::Libsvm),
            &schema(),
            None,
        );
        held.err().unwrap().to_string()
    };
    assert_eq!(
        refused("1 10:1\n"),
        "rows.t:1: index 10 is beyond the last column: the study has columns = 9"
    );
    assert!(refused("# nothing\n").starts_with("rows.t has no rows: "));
    assert_eq!(
        refused("? 1:1\n"),
        "rows.t: all 1 rows were dropped, since each lacks a value: \"label\" in 1; missing = \"category\" for a feature keeps such rows"
    );
}

#[test]
fn a_line_with_more_non_zeros_than_the_study_allows_is_rejected_by_its_number() {
    let limited = |nonzeros| Schema {
        nonzeros,
        ..schema()
    };
    // A zero that is written does not count, nor does the intercept.
    let text = b"+1 1:1 2:0 3:1\n\n-1 1:1 2:0.5 3:1\n";
    for allowed in [None, Some(3)] {
        assert!(read(text, &limited(allowed), &Split::RoundRobin, 2).is_ok());
    }
    assert_eq!(
        refusal(text, &limited(Some(2)), &Split::RoundRobin),
        "rows.svm:3: the line has 3 non-zeros: the study has nonzeros = 2"
    );
}
