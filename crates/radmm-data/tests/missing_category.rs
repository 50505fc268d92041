//! Missing values drop their row, unless their column has a category for them.

use radmm_data::{
    Categorical, Format, Numeric, PartitionSpec, Schema, Split, TableFile, partition_csv,
    score_each,
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

#[test]
fn a_row_is_kept_where_its_missing_values_have_a_category() {
    // Dropped: a missing dose, which has no bins, and a missing label.
    assert_eq!(counts(true), (6, 2));
}

#[test]
fn a_missing_value_is_a_one_in_the_last_column_of_its_feature() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, TEXT).unwrap();
    let table = TableFile::open(&path, Format::Csv).unwrap();
    let schema = schema(true);
    let mut filled: Vec<Option<Vec<u32>>> = Vec::new();
    score_each(table, &schema, |row| {
        let columns = |row: radmm_data::EncodedRow<'_>| {
            let entries = row.entries().iter();
            entries.map(|(column, _)| *column).collect()
        };
        filled.push(row.map(columns));
        Ok::<(), radmm_data::DataError>(())
    })
    .unwrap();
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
