//! Columns of dates and of truth values.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::curator::NormPolicy;
use radmm_data::{
    Categorical, DataError, Format, Numeric, Schema, Spacing, TableStream, days_of_date, score_each,
};

/// Returns what each row scores with these weights, to nine digits: rows stay below norm one by some roundings.
fn scores(text: &str, schema: &Schema, weights: &[f64]) -> Result<Vec<f64>, DataError> {
    let mut found = Vec::new();
    let table = TableStream::new(text.as_bytes(), "rows.csv", Format::Csv);
    score_each(table, schema, |row| {
        found.extend(row.map(|row| (row.score(weights) * 1e9).round() / 1e9));
        Ok::<(), DataError>(())
    })?;
    Ok(found)
}

fn with_dates(column: Numeric) -> Schema {
    Schema {
        missing: vec![String::new()],
        rows: NormPolicy::Clip,
        numeric: vec![Numeric {
            is_date: true,
            ..column
        }],
        ..Schema::new("ill", "yes")
    }
}

fn day(date: &str) -> f64 {
    days_of_date(date).unwrap()
}

#[test]
fn a_date_is_the_number_of_its_day() {
    let schema = with_dates(Numeric::centred(
        "seen",
        day("2020-01-01"),
        day("2020-01-11"),
    ));
    let text = "seen,ill\n2020-01-01,yes\n2020-01-06T23:59:59Z,no\n2020-01-06 00:00,no\n1999-12-31,no\n,no\n2040-05-05,no\n";
    let found = scores(text, &schema, &[1.0]).unwrap();
    assert_eq!(found, [-1.0, 0.0, 0.0, -1.0, 1.0]);
}

#[test]
fn columns_of_dates_are_named_by_dates() {
    let bins = Numeric::binned("seen", [day("2012-01-01"), day("2016-02-29")]);
    assert_eq!(
        with_dates(bins).columns(),
        [
            "seen<2012-01-01",
            "2012-01-01≤seen<2016-02-29",
            "seen≥2016-02-29"
        ]
    );
    let bounds = [day("2020-01-01"), day("2020-01-11")];
    let splines = Numeric::splines("seen", bounds, 5, Spacing::Equal);
    assert_eq!(
        with_dates(splines).columns(),
        [
            "seen≈2019-12-27",
            "seen≈2020-01-01",
            "seen≈2020-01-06",
            "seen≈2020-01-11",
            "seen≈2020-01-16"
        ]
    );
}

#[test]
fn another_form_of_a_date_is_an_error() {
    let schema = with_dates(Numeric::centred("seen", 0.0, 1.0));
    for wrong in [
        "31.12.2020",
        "12/31/2020",
        "2020-13-01",
        "20201231",
        "18262",
        "2020-12-31x",
    ] {
        let error = scores(&format!("seen,ill\n{wrong},yes\n"), &schema, &[1.0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "rows.csv:2: column \"seen\": invalid date {wrong:?}: must be a day such as 2020-12-31, with a time behind it or without; correct it, or list it under missing to drop such rows"
            )
        );
    }
}

#[test]
fn a_missing_or_wrong_date_may_have_a_category() {
    let column = Numeric {
        missing_category: true,
        other_is_missing: true,
        ..Numeric::centred("seen", 0.0, 10.0)
    };
    let text = "seen,ill\n1970-01-11,yes\n,no\nunknown,no\n";
    assert_eq!(
        scores(text, &with_dates(column), &[1.0, 5.0]).unwrap(),
        [1.0, 5.0, 5.0]
    );
}

#[test]
fn truth_values_have_few_spellings() {
    let schema = Schema {
        missing: vec!["?".into()],
        categorical: vec![Categorical::boolean("smoker")],
        ..Schema::new("ill", "yes")
    };
    assert_eq!(schema.columns(), ["smoker=true", "smoker=false"]);
    let rows = |words: &[&str]| {
        let rows: String = words.iter().map(|word| format!("{word},yes\n")).collect();
        scores(&format!("smoker,ill\n{rows}"), &schema, &[1.0, -1.0])
    };
    let truths = ["true", "True", "TRUE", "t", "T", "1"];
    assert_eq!(rows(&truths).unwrap(), [1.0; 6]);
    let lies = ["false", "False", "FALSE", "f", "F", "0"];
    assert_eq!(rows(&lies).unwrap(), [-1.0; 6]);
    assert_eq!(rows(&["?"]).unwrap(), []);
    for wrong in ["yes", "no", "tRUE", "2", "1.0", "-", "wahr"] {
        let error = rows(&[wrong]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "rows.csv:2: column \"smoker\": invalid truth value {wrong:?}: must be true or false, t or f, or 1 or 0; correct it, list it under missing to drop such rows, or give the column a vocabulary of other words"
            )
        );
    }
}

#[test]
fn a_vocabulary_of_the_words_true_and_false_has_no_other_spellings() {
    let schema = Schema {
        categorical: vec![Categorical::new("smoker", ["true", "false"])],
        ..Schema::new("ill", "yes")
    };
    assert!(scores("smoker,ill\ntrue,yes\n", &schema, &[]).is_ok());
    assert!(scores("smoker,ill\nTrue,yes\n", &schema, &[]).is_err());
}
