//! Rows scored by a model: with and without labels, in all formats.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use radmm::curator::NormPolicy;
use radmm_data::{
    Categorical, DataError, Format, Numeric, PartitionSpec, Schema, ScoreCounts, Split, TableFile,
    partition_csv, score_each,
};
use tempfile::TempDir;

/// A schema with age within [0, 100], smoker yes or no, and an intercept; the label is ill or not. Rows are clipped.
fn schema() -> Schema {
    Schema {
        missing: vec!["?".into(), "".into()],
        rows: NormPolicy::Clip,
        intercept: true,
        numeric: vec![Numeric::within("age", 0.0, 100.0)],
        categorical: vec![Categorical::new("smoker", ["yes", "no"])],
        ..Schema::new("ill", "yes")
    }
}

fn numbered() -> Schema {
    Schema {
        label: "label".into(),
        positive: "+1".into(),
        numbered: 3,
        numeric: vec![],
        categorical: vec![],
        ..schema()
    }
}

/// Scores with labels, or `None` for incomplete rows.
type Rows = Vec<Option<(f64, Option<bool>)>>;

/// Weights that distinguish the columns.
const MODEL: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];

fn scored(path: &Path, format: Format, schema: &Schema) -> Result<(Rows, ScoreCounts), DataError> {
    let table = TableFile::open(path, format).unwrap();
    let mut rows = Vec::new();
    let counts = score_each(table, schema, |row| {
        rows.push(row.map(|row| (row.score(&MODEL), row.positive())));
        Ok::<_, DataError>(())
    })?;
    Ok((rows, counts))
}

fn in_folder(
    text: &str,
    format: Format,
    schema: &Schema,
) -> Result<(Rows, ScoreCounts), DataError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows");
    fs::write(&path, text).unwrap();
    scored(&path, format, schema)
}

fn csv(text: &str) -> (Rows, ScoreCounts) {
    in_folder(text, Format::Csv, &schema()).unwrap()
}

fn refusal(text: &str, format: Format, schema: &Schema) -> String {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows");
    fs::write(&path, text).unwrap();
    let error = scored(&path, format, schema).err().unwrap().to_string();
    error.replace(&path.display().to_string(), "rows")
}

/// Computes a score by definition: numbers over the larger bound, ones for values and the intercept, over their norm.
fn by_hand(age: f64, smoker: bool) -> f64 {
    let row = [age / 100.0, f64::from(smoker), f64::from(!smoker), 1.0];
    let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
    row.iter().zip(MODEL).map(|(x, w)| x * w).sum::<f64>() / norm
}

/// Compares scores up to rounding: rows are scaled to a few units in the last place below norm one.
fn near(score: f64, expected: f64) -> bool {
    (score - expected).abs() < 1e-14 * expected.abs() * 10.0
}

#[test]
fn a_row_is_scaled_by_its_schema_and_needs_no_label() {
    let text = "smoker,age\nno,25\nyes,120\n";
    let (rows, counts) = csv(text);
    let scores: Vec<f64> = rows.iter().map(|row| row.unwrap().0).collect();
    assert!(near(scores[0], by_hand(25.0, false)), "{scores:?}");
    assert!(near(scores[1], by_hand(100.0, true)), "{scores:?}");
    assert!(rows.iter().all(|row| row.unwrap().1.is_none()));
    assert_eq!(
        counts,
        ScoreCounts {
            rows: 2,
            incomplete: 0,
            labelled: 0
        }
    );
}

#[test]
fn rows_and_incomplete_rows_come_in_the_order_of_the_file() {
    let (rows, counts) = csv("age,smoker,ill\n25,no,yes\n?,no,yes\n25,no,no\n25,,no\n25,no,?\n");
    let labels: Vec<Option<Option<bool>>> = rows.iter().map(|row| row.map(|row| row.1)).collect();
    // A row without a label has a score too.
    let expected = [Some(Some(true)), None, Some(Some(false)), None, Some(None)];
    assert_eq!(labels, expected);
    assert_eq!(
        counts,
        ScoreCounts {
            rows: 5,
            incomplete: 2,
            labelled: 2
        }
    );
}

#[test]
fn carriage_returns_and_the_order_of_columns_do_not_matter() {
    let plain = csv("age,smoker,ill\n25,no,yes\n");
    assert_eq!(plain, csv("age,smoker,ill\r\n25,no,yes\r\n"));
    assert_eq!(plain, csv("note,ill,smoker,age\nx,yes,no,25\n"));
}

#[test]
fn training_and_scoring_agree_on_which_rows_are_complete() {
    let text = "age,smoker,ill\n25,no,yes\n?,no,yes\n70,yes,no\n25,,no\n30,no,no\n";
    let spec = PartitionSpec::new(&Split::RoundRobin, 1);
    let partition = partition_csv(text.as_bytes(), "rows.csv", &schema(), spec).unwrap();
    let (_, counts) = csv(text);
    assert_eq!(
        (partition.read, partition.dropped),
        (counts.rows, counts.incomplete)
    );
}

#[test]
fn a_table_without_rows_has_no_scores_and_is_no_error() {
    assert_eq!(csv("age,smoker\n"), (vec![], ScoreCounts::default()));
    assert_eq!(
        refusal("", Format::Csv, &schema()),
        "rows is empty: its first line must name the columns"
    );
}

#[test]
fn errors_name_file_line_and_field() {
    let csv = |text| refusal(text, Format::Csv, &schema());
    assert_eq!(
        csv("age,ill\n25,yes\n"),
        "rows:1: there is no column \"smoker\"; the header has \"age\", \"ill\""
    );
    assert_eq!(
        csv("age,smoker\n25,no\n25,no,yes\n"),
        "rows:3: expected 2 fields as in the header, got 3; look for a stray comma or quote"
    );
    assert_eq!(
        csv("age,smoker\n25,perhaps\n"),
        "rows:2: column \"smoker\": \"perhaps\" is not among the values that the model knows, \"yes\", \"no\"; \
         correct it, or remove the row"
    );
    assert!(
        csv("age,smoker\nold,no\n").starts_with("rows:2: column \"age\": invalid number \"old\"")
    );
    assert!(csv("age,smoker,ill,ill\n25,no,1,1\n").contains("names column \"ill\" more than once"));
}

#[test]
fn numbered_columns_need_a_libsvm_file_and_named_ones_another() {
    assert_eq!(
        refusal("age,smoker\n25,no\n", Format::Csv, &numbered()),
        "rows: the columns of the model have numbers and no names; give a LIBSVM file"
    );
    assert_eq!(
        refusal("+1 1:1\n", Format::Libsvm, &schema()),
        "rows: a LIBSVM file has numbered columns, and those of the model have names; give a CSV or Parquet file"
    );
    assert_eq!(
        refusal("+1 1:1 4:1\n", Format::Libsvm, &numbered()),
        "rows:1: index 4 is beyond the last column: the model has 3"
    );
    assert!(refusal("# nothing\n", Format::Libsvm, &numbered()).contains("has no rows"));
}

#[test]
fn a_libsvm_file_may_omit_labels() {
    let schema = Schema {
        intercept: false,
        ..numbered()
    };
    let text = "1.0 1:0.25\n-1 1:0.25 2:0.5\n? 3:0.5\n2:0.5\n+1\n";
    let (rows, counts) = in_folder(text, Format::Libsvm, &schema).unwrap();
    let expected = [
        (0.25, Some(true)),
        (5.25, Some(false)),
        (50.0, None),
        (5.0, None),
        (0.0, Some(true)),
    ];
    assert_eq!(rows, expected.map(Some));
    assert_eq!(counts.labelled, 3);
    let (rows, _) = in_folder("1:0.5\n", Format::Libsvm, &numbered()).unwrap();
    let with_intercept = (0.5 + 1000.0) / 1.25_f64.sqrt();
    assert!(near(rows[0].unwrap().0, with_intercept));
}

#[test]
fn a_parquet_file_has_the_scores_of_the_same_csv_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.parquet");
    let message = "message m { optional double age; required binary smoker; }";
    let message = Arc::new(parse_message_type(message).unwrap());
    let file = File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, message, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let ages = column.typed::<DoubleType>();
    ages.write_batch(&[25.0, 71.5], Some(&[1, 0, 1]), None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let smokers = ["no", "no", "yes"].map(|text| ByteArray::from(text.as_bytes().to_vec()));
    let texts = column.typed::<ByteArrayType>();
    texts.write_batch(&smokers, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let parquet = scored(&path, Format::Parquet, &schema()).unwrap();
    assert_eq!(parquet, csv("age,smoker\n25,no\n,no\n71.5,yes\n"));
}

#[test]
fn the_caller_may_stop() {
    #[derive(Debug)]
    enum Stop {
        Data(DataError),
        Enough,
    }
    impl From<DataError> for Stop {
        fn from(error: DataError) -> Self {
            Self::Data(error)
        }
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("rows.csv");
    fs::write(&path, "age,smoker\n1,no\n2,no\n3,perhaps\n").unwrap();
    let stop_at = |last: usize| {
        let mut taken = 0;
        let table = TableFile::open(&path, Format::Csv).unwrap();
        let outcome = score_each(table, &schema(), |_| {
            taken += 1;
            if taken == last {
                Err(Stop::Enough)
            } else {
                Ok(())
            }
        });
        (outcome, taken)
    };
    assert!(matches!(stop_at(1), (Err(Stop::Enough), 1)));
    assert!(matches!(
        stop_at(9),
        (Err(Stop::Data(DataError::Field { .. })), 2)
    ));
}
