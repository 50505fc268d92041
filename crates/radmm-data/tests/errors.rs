//! Every error of a table, and its message to the owner of the file.

use std::io::{self, Read};

use radmm_data::{
    Categorical, DataError, FieldError, FilePosition, MAX_FIELD_BYTES, MAX_ROW_BYTES, Numeric,
    Partition, PartitionSpec, Schema, Split, SplitError, partition_csv,
};

fn schema() -> Schema {
    Schema {
        missing: vec!["?".into()],
        intercept: true,
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        categorical: vec![Categorical::new("smoker", ["yes", "no"])],
        ..Schema::new("ill", "yes")
    }
}

fn by_ward(values: &[&str]) -> Split {
    Split::Column {
        column: "ward".into(),
        values: values.iter().map(|value| value.to_string()).collect(),
    }
}

fn read_csv(
    source: impl Read,
    schema: &Schema,
    split: &Split,
    nodes: usize,
) -> Result<Partition, DataError> {
    partition_csv(source, "rows.csv", schema, PartitionSpec::new(split, nodes))
}

fn error(source: impl Read, schema: &Schema, split: &Split, nodes: usize) -> DataError {
    let result = read_csv(source, schema, split, nodes);
    result.err().expect("the table should be refused")
}

fn message(text: &str) -> String {
    error(text.as_bytes(), &schema(), &Split::RoundRobin, 2).to_string()
}

fn split_message(text: &str, split: &Split, nodes: usize) -> String {
    error(text.as_bytes(), &schema(), split, nodes).to_string()
}

#[test]
fn a_failing_source_is_named() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    for whole in [&b""[..], b"age,smoker,ill\n20,yes,yes\n"] {
        let error = error(whole.chain(Broken), &schema(), &Split::RoundRobin, 2);
        assert!(matches!(error, DataError::Read { .. }));
        assert_eq!(error.to_string(), "cannot read rows.csv: the disk is gone");
    }
}

#[test]
fn a_binary_file_is_refused() {
    assert_eq!(
        message("age,smoker,ill\n20,\u{1a},yes\n"),
        "rows.csv:2: there is the control character 0x1a, so that this is not a text file in UTF-8; save it as CSV in UTF-8, or set its format"
    );
}

#[test]
fn an_empty_file_has_no_header() {
    for text in ["", "\n\r\n", "\u{feff}"] {
        assert_eq!(
            message(text),
            "rows.csv is empty: its first line must name the columns"
        );
    }
}

#[test]
fn a_header_without_rows_is_refused() {
    assert_eq!(
        message("age,smoker,ill\n\n"),
        "rows.csv has a header and no rows; is it the right file?"
    );
}

#[test]
fn used_text_must_be_utf8() {
    let refused = |bytes: &[u8]| error(bytes, &schema(), &Split::RoundRobin, 2).to_string();
    assert_eq!(
        refused(b"age,smok\xe9r,ill\n"),
        "rows.csv:1: the name of column 2 is not UTF-8; save the file as UTF-8"
    );
    assert_eq!(
        refused(b"age,smoker,ill\n20,\xe9,yes\n"),
        "rows.csv:2: column \"smoker\": the field is not UTF-8; save the file as UTF-8"
    );
    let ignored = b"age,smoker,ill,name\n20,yes,yes,Ren\xe9\n20,yes,no,Ada\n";
    assert!(read_csv(&ignored[..], &schema(), &Split::RoundRobin, 2).is_ok());
}

#[test]
fn a_used_column_must_occur_once() {
    assert_eq!(
        message("age,smoker,ill, age\n"),
        "rows.csv:1: the header names column \"age\" more than once; rename or remove all but one"
    );
    let text = "age,smoker,ill,,\n20,yes,yes,,\n20,yes,no,,\n";
    assert!(read_csv(text.as_bytes(), &schema(), &Split::RoundRobin, 2).is_ok());
}

#[test]
fn a_column_of_the_study_must_be_in_the_header() {
    assert_eq!(
        message("Age,smoker,ill\n"),
        "rows.csv:1: there is no column \"age\" (did you mean \"Age\"?); the header has \"Age\", \"smoker\", \"ill\""
    );
    assert_eq!(
        message("\nage,smoker,outcome\n"),
        "rows.csv:2: there is no column \"ill\"; the header has \"age\", \"smoker\", \"outcome\""
    );
    assert_eq!(
        split_message("age,smoker,ill\n", &by_ward(&["A", "B"]), 2),
        "rows.csv:1: there is no column \"ward\"; the header has \"age\", \"smoker\", \"ill\""
    );
}

#[test]
fn every_row_must_be_as_wide_as_the_header() {
    assert_eq!(
        message("age,smoker,ill\r\n20,yes,yes\r\n\r\n20,yes\r\n"),
        "rows.csv:4: expected 3 fields as in the header, got 2; look for a stray comma or quote"
    );
    assert_eq!(
        message("age,smoker,ill\n20,yes,yes,\n"),
        "rows.csv:2: expected 3 fields as in the header, got 4; look for a stray comma or quote"
    );
}

#[test]
fn an_open_quote_is_refused() {
    assert_eq!(
        message("age,smoker,ill\n20,yes,yes\n20,yes,\"no\n30,yes,no\n40,no,yes\n"),
        "rows.csv:3: a quote is opened in this row and never closed; close it, or write a quote within a field twice"
    );
}

#[test]
fn a_field_of_a_numeric_column_must_be_a_number() {
    assert_eq!(
        message("age,smoker,ill\n20,yes,yes\n\"4x\",\"yes\",\"no\"\n"),
        "rows.csv:3: column \"age\": invalid number \"4x\"; correct it, or list it under missing to drop such rows"
    );
    assert_eq!(
        message("name,age,smoker,ill\n\"two\nlines\",20,yes,yes\nAda,,yes,no\n"),
        "rows.csv:4: column \"age\": invalid number \"\"; correct it, or list it under missing to drop such rows"
    );
}

#[test]
fn a_number_must_be_finite() {
    for value in ["NaN", "inf", "-Infinity", "1e400"] {
        assert_eq!(
            message(&format!("age,smoker,ill\n{value},yes,yes\n")),
            format!(
                "rows.csv:2: column \"age\": invalid number \"{value}\": must be finite; correct it, or list it under missing to drop such rows"
            )
        );
    }
}

#[test]
fn a_value_must_be_in_its_vocabulary() {
    assert_eq!(
        message("age,smoker,ill\n20,Yes,yes\n"),
        "rows.csv:2: column \"smoker\": \"Yes\" is not among the known values \"yes\", \"no\"; add it to them, list it under missing to drop such rows, or count such values as missing with other = \"missing\""
    );
    let mut many = schema();
    many.categorical[0].values = (0..1000).map(|n| n.to_string()).collect();
    let text = "age,smoker,ill\n20,x,yes\n";
    let error = error(text.as_bytes(), &many, &Split::RoundRobin, 2).to_string();
    assert!(error.contains("\"6\", \"7\", …; add"), "{error}");
}

#[test]
fn a_long_field_is_cut_in_errors() {
    let message = message(&format!(
        "age,smoker,ill\n{},yes,yes\n",
        "9x".repeat(1 << 16)
    ));
    assert!(message.len() < 200, "{message}");
}

#[test]
fn a_row_and_a_used_field_have_a_public_limit() {
    // A column that nobody uses may be as long as the row.
    let row = |bytes: usize| "20,yes,yes,".to_owned() + &"x".repeat(bytes - 12) + "\n";
    let text = |bytes| format!("age,smoker,ill,note\n{}20,no,no,\n", row(bytes));
    let read = |text: String| read_csv(text.as_bytes(), &schema(), &Split::RoundRobin, 2);
    assert!(read(text(MAX_ROW_BYTES)).is_ok());
    assert_eq!(
        message(&text(MAX_ROW_BYTES + 1)),
        "rows.csv:2: the row that begins here is longer than 16 MiB, the most that is read; look for a quote that is never closed"
    );
    let missing = "?".repeat(MAX_FIELD_BYTES);
    let message = message(&format!("age,smoker,ill\n20,yes,yes\n20,{missing}?,yes\n"));
    assert_eq!(
        message,
        "rows.csv:3: column \"smoker\": the field has 65537 bytes, and at most 65536 are read; shorten it, or leave the column out of the study"
    );
}

#[test]
fn a_text_without_end_is_refused_before_it_fills_the_memory() {
    let begun = "age,smoker,ill\r\n20,yes,yes\r\n\r\n20,\"yes,no\r\n";
    let endless = begun.as_bytes().chain(io::repeat(b'x'));
    assert_eq!(
        error(endless, &schema(), &Split::RoundRobin, 2).to_string(),
        "rows.csv:3: the row that begins here is longer than 16 MiB, the most that is read; look for a quote that is never closed"
    );
}

#[test]
fn files_of_other_programs_are_named() {
    for (start, said) in [
        (
            &b"PK\x03\x04\x14\0[Content_Types].xml"[..],
            "an Excel workbook (.xlsx); export it as CSV in UTF-8, and give that file",
        ),
        (
            b"%PDF-1.7\n",
            "a PDF document; export it as CSV in UTF-8, and give that file",
        ),
        (b"\xff\xfea\0,\0", "text in UTF-16; save it as UTF-8"),
        (b"PAR1\x15\0\0", "a Parquet file; set format = \"parquet\""),
    ] {
        let error = error(start, &schema(), &Split::RoundRobin, 2);
        assert_eq!(error.to_string(), format!("rows.csv is {said}"));
    }
    // Without the mark in front of it.
    assert_eq!(
        message("a\0g\0e\0\n\0"),
        "rows.csv:1: there is the control character 0x00, so that this is not a text file in UTF-8; save it as CSV in UTF-8, or set its format"
    );
}

#[test]
fn at_least_one_row_must_be_complete() {
    assert_eq!(
        message("age,smoker,ill\n?,yes,yes\n20,?,no\n20,yes,?\n"),
        "rows.csv: all 3 rows were dropped, since each lacks a value: \"age\" in 1, \"smoker\" in 1, \"ill\" in 1; missing = \"category\" for a feature keeps such rows"
    );
}

#[test]
fn both_classes_must_occur() {
    assert_eq!(
        message("age,smoker,ill\n20,yes,Yes\n30,yes,No\n40,yes,Yes\n"),
        "rows.csv: column \"ill\": no row has the positive label \"yes\": the labels are \"Yes\", \"No\"; correct positive in the study"
    );
    assert_eq!(
        message("age,smoker,ill\n20,yes,yes\n30,yes,yes\n?,yes,no\n"),
        "rows.csv: column \"ill\": every row has the positive label \"yes\"; rows of both classes are needed"
    );
}

const THREE: &str = "age,smoker,ill,ward\n20,yes,yes,A\n30,no,no,B\n40,no,yes,A\n";

#[test]
fn there_must_be_a_node_and_a_row_per_node() {
    assert_eq!(
        split_message(THREE, &Split::RoundRobin, 0),
        "rows.csv: there are no nodes to give rows to"
    );
    for split in [
        Split::RoundRobin,
        Split::Shuffled { seed: 1 },
        Split::Sizes {
            sizes: vec![1.0; 4],
            seed: 1,
        },
        Split::Dirichlet {
            alpha: 1.0,
            seed: 1,
        },
    ] {
        assert_eq!(
            split_message(THREE, &split, 4),
            "rows.csv: 3 rows (without those dropped) are too few for 4 nodes; lower [network] nodes"
        );
        // The error comes before memory is allocated.
        split_message(THREE, &split, usize::MAX);
    }
}

#[test]
fn a_column_split_must_have_one_value_per_node() {
    assert_eq!(
        split_message(THREE, &by_ward(&["A", "B"]), 3),
        "rows.csv: the split by column \"ward\" has 2 values for 3 nodes; name one value a node"
    );
    assert_eq!(
        split_message(THREE, &by_ward(&["A", "B", "A"]), 3),
        "rows.csv: the split by column \"ward\" names \"A\" twice; name each value once"
    );
}

#[test]
fn every_value_of_the_split_column_must_have_a_node() {
    let error = error(THREE.as_bytes(), &schema(), &by_ward(&["A", "C"]), 2);
    assert!(matches!(
        &error,
        DataError::Field {
            position: FilePosition::Line(3),
            cause: FieldError::UnknownNode { .. },
            ..
        }
    ));
    assert_eq!(
        error.to_string(),
        "rows.csv:3: column \"ward\": \"B\" belongs to no node: the nodes are \"A\", \"C\"; add one for it, or list it under missing to drop such rows"
    );
}

#[test]
fn every_node_of_a_column_split_must_have_a_row() {
    assert_eq!(
        split_message(THREE, &by_ward(&["A", "C", "B"]), 3),
        "rows.csv: node 1 is left without rows: no row has \"C\" in column \"ward\"; correct the value or remove the node"
    );
}

#[test]
fn every_node_of_a_dirichlet_split_must_have_a_row() {
    let text = "age,smoker,ill\n20,yes,yes\n20,yes,no\n".to_owned() + &"20,yes,no\n".repeat(20);
    let split = Split::Dirichlet {
        alpha: 0.001,
        seed: 3,
    };
    let error = error(text.as_bytes(), &schema(), &split, 5);
    let DataError::Split {
        cause: SplitError::NoRowsDrawn { node, .. },
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(
        error.to_string(),
        format!(
            "rows.csv: node {node} is left without rows at alpha = 0.001; raise alpha or change the seed"
        )
    );
}

#[test]
fn every_node_of_a_split_by_sizes_must_have_a_size_and_a_row() {
    let message = |sizes: &[f64]| {
        let split = Split::Sizes {
            sizes: sizes.to_vec(),
            seed: 1,
        };
        split_message(THREE, &split, 2)
    };
    assert_eq!(
        message(&[1.0, 0.1]),
        "rows.csv: node 1 is left without rows: its size 0.1 is a share of less than one of 3 rows; raise it"
    );
    assert_eq!(
        message(&[1.0]),
        "rows.csv: there are 1 sizes for 2 nodes; give each node one"
    );
    assert_eq!(
        message(&[1.0, 0.0]),
        "rows.csv: invalid size 0: must be positive and finite"
    );
}

#[test]
fn alpha_must_be_positive() {
    let split = Split::Dirichlet {
        alpha: -1.0,
        seed: 1,
    };
    assert_eq!(
        split_message(THREE, &split, 2),
        "rows.csv: invalid alpha = -1: must be positive and finite"
    );
}

#[test]
fn bounds_that_are_both_zero_make_an_invalid_row() {
    let mut schema = schema();
    schema.numeric[0] = Numeric::within("age", 0.0, 0.0);
    let error = error(THREE.as_bytes(), &schema, &Split::RoundRobin, 2);
    assert!(matches!(error, DataError::Row { .. }), "{error}");
}
