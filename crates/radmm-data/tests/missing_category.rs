//! Missing values drop their row, unless their column has a category for them. Other values may count as missing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::problem::RowShape;
use radmm_data::{
    Categorical, DataError, EncodedRow, Format, Numeric, PartitionSpec, Schema, Split, TableFile,
    partition_csv, score_each,
};

const TEXT: &str = "age,smoker,dose,ill\n\
    71,yes,1,yes\n\
    ,no,2,no\n\
    34,NA,3,no\n\
    NA,,4,yes\n\
    50,no,,no\n\
    60,no,1,\n";

fn schema(missing_category: bool) -> Schema {
    Schema {
        missing: vec![String::new(), "NA".to_owned()],
        numeric: vec![
            Numeric {
                missing_category,
                ..Numeric::binned("age", [40.0])
            },
            Numeric::centred("dose", 0.0, 4.0),
        ],
        categorical: vec![Categorical {
            missing_category,
            ..Categorical::new("smoker", ["yes", "no"])
        }],
        ..Schema::new("ill", "yes")
    }
}

fn counts(missing_category: bool) -> (usize, usize) {
    let schema = schema(missing_category);
    let spec = PartitionSpec::new(&Split::RoundRobin, 2);
    let partition = partition_csv(TEXT.as_bytes(), "rows.csv", &schema, spec);
    match partition {
        Ok(partition) => (partition.read, partition.dropped),
        Err(error) => panic!("{error}"),
    }
}

/// Returns the encoded columns that each row fills; `None` for a row that is dropped.
fn filled(text: &str, schema: &Schema) -> Result<Vec<Option<Vec<u32>>>, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    let table = TableFile::open(&path, Format::Csv).unwrap();
    let mut filled: Vec<Option<Vec<u32>>> = Vec::new();
    score_each(table, schema, |row| {
        let columns = |row: EncodedRow<'_>| {
            let entries = row.entries().iter();
            entries.map(|(column, _)| *column).collect()
        };
        filled.push(row.map(columns));
        Ok::<(), DataError>(())
    })?;
    Ok(filled)
}

#[test]
fn a_row_is_kept_where_its_missing_values_have_a_category() {
    // Dropped: a missing dose, which has no category, and a missing label.
    assert_eq!(counts(true), (6, 2));
}

#[test]
fn a_missing_value_is_a_one_in_the_last_column_of_its_feature() {
    let filled = filled(TEXT, &schema(true)).unwrap();
    // age<40, age≥40, age=missing, dose, smoker=yes, smoker=no, smoker=missing; a dose of 2 is zero.
    let expected: [Option<Vec<u32>>; 6] = [
        Some(vec![1, 3, 4]),
        Some(vec![2, 5]),
        Some(vec![0, 3, 6]),
        Some(vec![2, 3, 6]),
        None,
        Some(vec![1, 3, 5]),
    ];
    assert_eq!(filled, expected);
}

#[test]
fn a_number_without_bins_is_zero_beside_the_one_of_its_missing_value() {
    for plain in [
        Numeric::centred("dose", 0.0, 4.0),
        Numeric::within("dose", 0.0, 4.0),
    ] {
        let schema = Schema {
            missing: vec![String::new()],
            numeric: vec![Numeric {
                missing_category: true,
                ..plain
            }],
            intercept: true,
            ..Schema::new("ill", "yes")
        };
        assert_eq!(schema.columns(), ["dose", "dose=missing", "(intercept)"]);
        // A row fills the dose or the column beside it, and the intercept.
        assert_eq!(schema.shape(), RowShape::new(3, 2));
        let rows = filled("dose,ill\n1,yes\n,no\n4,no\n", &schema).unwrap();
        let expected = [vec![0, 2], vec![1, 2], vec![0, 2]].map(Some);
        assert_eq!(rows, expected);
    }
}

/// Rows whose values cannot be encoded, in the order age, smoker, dose, and their labels.
const ODD: &str = "age,smoker,dose,ill\n\
    71,yes,1,yes\n\
    seventy,no,2,no\n\
    34,sometimes,3,no\n\
    inf,,4,yes\n\
    50,no,two,no\n\
    60,yes,NA,no\n";

fn with_others(missing_category: bool) -> Schema {
    let mut schema = schema(missing_category);
    for column in &mut schema.numeric {
        column.other_is_missing = true;
    }
    schema.categorical[0].other_is_missing = true;
    schema
}

#[test]
fn a_value_that_cannot_be_encoded_counts_as_missing_where_the_schema_says_so() {
    let expected: [Option<Vec<u32>>; 6] = [
        Some(vec![1, 3, 4]),
        Some(vec![2, 5]),
        Some(vec![0, 3, 6]),
        Some(vec![2, 3, 6]),
        // A dose has no category for missing values.
        None,
        None,
    ];
    assert_eq!(filled(ODD, &with_others(true)).unwrap(), expected);
    // Without a category for missing values the row is dropped.
    let kept = filled(ODD, &with_others(false)).unwrap();
    assert_eq!(kept.iter().flatten().count(), 1);
    // It is an error everywhere else.
    let error = filled(ODD, &schema(true)).unwrap_err().to_string();
    assert!(error.contains("invalid number \"seventy\""), "{error}");
    let words = ODD.replace("seventy", "70").replace("inf", "70");
    let spec = PartitionSpec::new(&Split::RoundRobin, 2);
    let error = partition_csv(words.as_bytes(), "rows.csv", &schema(true), spec);
    let error = error.err().unwrap().to_string();
    assert!(error.contains("other = \"missing\""), "{error}");
}

#[test]
fn values_that_count_as_missing_are_counted_by_column() {
    let spec = PartitionSpec::new(&Split::RoundRobin, 2);
    let partition = partition_csv(ODD.as_bytes(), "rows.csv", &with_others(true), spec).unwrap();
    let others = [("age", 2), ("smoker", 1)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(partition.others, others);
    assert_eq!((partition.dropped, partition.clipped.len()), (2, 0));
}
