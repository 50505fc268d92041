//! The table `clinic` of invented patients.

#[cfg(test)]
mod generator;

use crate::schema::{Categorical, Numeric, Schema};

/// The table as text.
pub(super) const CSV: &str = include_str!("../../../tables/clinic.csv");

/// Returns the schema. The hospital is not a feature, because it tells parties apart.
pub(super) fn schema() -> Schema {
    let numeric = |(name, low, high)| Numeric::within(name, low, high);
    let categorical =
        |(name, values): (&str, &[&str])| Categorical::new(name, values.iter().copied());
    Schema {
        missing: vec!["?".to_owned()],
        numeric: [
            ("age", 18.0, 95.0),
            ("bmi", 15.0, 50.0),
            ("systolic", 90.0, 200.0),
            ("cholesterol", 2.5, 9.0),
        ]
        .map(numeric)
        .into(),
        categorical: [
            ("smoker", &["no", "yes"][..]),
            ("sex", &["f", "m"]),
            ("exercise", &["none", "some", "regular"]),
        ]
        .map(categorical)
        .into(),
        ..Schema::new("readmitted", "yes")
    }
}
