//! LIBSVM files: what is read of them, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::private::NormPolicy;
use radmm_data::{
    DataError, Deal, Holdout, Numeric, Partition, Schema, Split, deal_libsvm, read_csv,
    read_test_libsvm,
};

fn schema() -> Schema {
    Schema {
        label: "label".into(),
        positive: "+1".into(),
        missing: vec!["?".into()],
        rows: NormPolicy::Clip,
        numbered: 9,
        intercept: true,
        numeric: vec![],
        categorical: vec![],
    }
}

/// Nothing is held out.
fn read(text: &[u8], schema: &Schema, split: &Split, nodes: usize) -> Result<Partition, DataError> {
    let deal = Deal {
        split,
        nodes,
        holdout: None,
    };
    deal_libsvm(text, "rows.svm", schema, deal)
}

fn table(text: &str) -> Partition {
    read(text.as_bytes(), &schema(), &Split::RoundRobin, 2).unwrap()
}

fn refusal(text: &[u8], schema: &Schema, split: &Split) -> String {
    let error = read(text, schema, split, 2).err();
    error.expect("the file should be refused").to_string()
}

#[test]
fn labels_are_numbers_where_they_can_be_and_rows_may_be_empty() {
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
fn every_malformed_line_is_told() {
    let cases: [(&[u8], &str); 13] = [
        (
            b"+1 0:1",
            "\"0\" is not an index: columns are numbered from 1",
        ),
        (
            b"+1 -3:1",
            "\"-3\" is not an index: columns are numbered from 1",
        ),
        (
            b"+1 qid:7 1:1",
            "\"qid\" is not an index: columns are numbered from 1",
        ),
        (
            b"+1 1.5:1",
            "\"1.5\" is not an index: columns are numbered from 1",
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
            "\"3\" is not a pair such as 3:0.5; a row is a label and index:value pairs",
        ),
        (
            b"+1 3: 4:1",
            "the value \"\" of index 3 is not a finite number",
        ),
        (
            b"+1 3:x",
            "the value \"x\" of index 3 is not a finite number",
        ),
        (
            b"+1 3:nan",
            "the value \"nan\" of index 3 is not a finite number",
        ),
        (
            b"+1 3:1e999",
            "the value \"1e999\" of index 3 is not a finite number",
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
fn a_file_without_rows_is_told_what_a_row_is() {
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
        "rows.svm: column \"label\": no row is positive, that is \"+1\": the values are \"2\", \"-1\"; correct positive in the study"
    );
}

#[test]
fn names_and_numbers_do_not_mix() {
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
    let error = read_csv(
        &b"age,label\n1,1\n"[..],
        "rows.csv",
        &named,
        &Split::RoundRobin,
        1,
    );
    assert_eq!(
        error.err().unwrap().to_string(),
        "rows.csv: only a LIBSVM file has numbered columns: the study must name those that it uses"
    );
}

/// Six complete rows and one without a label.
const SEVEN: &str = "1 1:1\n-1 2:1\n1 3:1\n? 9:1\n-1 4:1\n1 5:1\n7 6:1\n";

#[test]
fn the_last_rows_are_held_out() {
    let deal = Deal {
        split: &Split::Shuffled { seed: 1 },
        nodes: 2,
        holdout: Some(&Holdout::Last { rows: 2 }),
    };
    let table = deal_libsvm(SEVEN.as_bytes(), "rows.svm", &schema(), deal).unwrap();
    assert_eq!((table.read, table.dropped, table.positive), (5, 1, 2));
    let test = table.test.unwrap();
    assert_eq!((test.rows(), test.columns()), (2, 10));
    assert_eq!(table.labels, ["1", "-1", "7"]);
}

#[test]
fn a_share_of_rows_is_held_out_and_sizes_deal_the_others() {
    let deal = Deal {
        split: &Split::Sizes {
            sizes: vec![3.0, 1.0],
            seed: 1,
        },
        nodes: 2,
        holdout: Some(&Holdout::Share {
            share: 0.25,
            seed: 3,
        }),
    };
    let text: String = (0..100).map(|n| format!("{} 1:1\n", n % 2)).collect();
    let table = deal_libsvm(text.as_bytes(), "rows.svm", &schema(), deal).unwrap();
    let (held, rows) = (table.held_out(), table.read);
    assert_eq!(held + rows, 100);
    assert!(held > 0);
    let dealt: Vec<usize> = table.parts.iter().map(|part| part.shard.rows()).collect();
    assert_eq!(dealt.iter().sum::<usize>(), rows);
    assert!(dealt[0].abs_diff(3 * dealt[1]) <= 4, "{dealt:?}");
}

#[test]
fn a_file_of_its_own_may_hold_one_class() {
    let held = read_test_libsvm(&b"7 1:1\n? 1:1\n7 9:1\n"[..], "rows.t", &schema()).unwrap();
    assert_eq!((held.shard.rows(), held.shard.columns()), (2, 10));
    assert_eq!(held.labels, ["7"]);
}

#[test]
fn a_file_of_its_own_is_refused_by_its_name() {
    let refused = |text: &str| {
        let held = read_test_libsvm(text.as_bytes(), "rows.t", &schema());
        held.err().unwrap().to_string()
    };
    assert_eq!(
        refused("1 10:1\n"),
        "rows.t:1: index 10 is beyond the last column: the study has columns = 9"
    );
    assert!(refused("# nothing\n").starts_with("rows.t has no rows: "));
    assert_eq!(
        refused("? 1:1\n"),
        "rows.t: all 1 rows were dropped: each has a missing value in a column that the study uses"
    );
}
