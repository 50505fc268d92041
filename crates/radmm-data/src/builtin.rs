//! Tables that come with the program, so that it runs without a file.

use radmm::private::NormPolicy;
use serde::Serialize;

use crate::adult;
use crate::schema::{Categorical, Numeric, Schema};

/// A table that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// Two thousand invented patients of five invented hospitals, and whether they were readmitted.
    ///
    /// The hospitals differ in their patients, so that a split by `hospital` is skewed. One row in a hundred has a
    /// `?` for a value that is not known.
    ///
    /// | column | values |
    /// |---|---|
    /// | `hospital` | Alder, Birch, Cedar, Maple, Rowan |
    /// | `age` | years, 18 to 95 |
    /// | `bmi` | kg/m², 15 to 50 |
    /// | `systolic` | blood pressure in mmHg, 90 to 200 |
    /// | `cholesterol` | mmol/l, 2.5 to 9 |
    /// | `smoker` | yes, no |
    /// | `sex` | f, m |
    /// | `exercise` | none, some, regular |
    /// | `readmitted` | yes, no: the outcome |
    Clinic,
    /// The 48,842 people of UCI's Adult table, from the US census of 1994, and whether they earn above 50,000 dollars:
    /// the 32,561 rows of `adult.data`, then the 16,281 of `adult.test`, without the full stops behind its labels.
    ///
    /// B. Becker and R. Kohavi, *Adult*, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20; CC BY 4.0.
    /// 3,620 rows have a `?` for a value that is not known. Columns: `age`, `workclass`, `fnlwgt`, `education`,
    /// `education-num`, `marital-status`, `occupation`, `relationship`, `race`, `sex`, `capital-gain`, `capital-loss`,
    /// `hours-per-week`, `native-country` and `income`, the outcome: `>50K`, `<=50K`.
    Adult,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Clinic, Self::Adult];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clinic => "clinic",
            Self::Adult => "adult",
        }
    }

    /// Its text, for [`read_csv`](crate::read_csv). The first call may unpack it.
    pub fn csv(self) -> &'static str {
        match self {
            Self::Clinic => include_str!("../tables/clinic.csv"),
            Self::Adult => adult::csv(),
        }
    }

    /// What its columns mean: the label, every other column that tells something of a person, and public bounds and
    /// vocabularies of them. Rows have norm one; there is no intercept.
    pub fn schema(self) -> Schema {
        match self {
            Self::Clinic => clinic(),
            Self::Adult => adult::schema(),
        }
    }
}

/// The hospital is left out: it tells parties apart.
fn clinic() -> Schema {
    let numeric = |(name, low, high)| Numeric::within(name, low, high);
    let categorical = |(name, values): (&str, &[&str])| Categorical {
        name: name.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    };
    Schema {
        label: "readmitted".to_owned(),
        positive: "yes".to_owned(),
        missing: vec!["?".to_owned()],
        rows: NormPolicy::Unit,
        numbered: 0,
        intercept: false,
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_header_and_rows() {
        for table in Builtin::ALL {
            assert!(table.csv().lines().count() > 1, "{}", table.name());
        }
    }
}
