//! Built-in tables, so that the program runs without a file.

mod adult;
mod clinic;

use serde::Serialize;

use crate::schema::Schema;

/// A built-in table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// Two thousand invented patients of five invented hospitals, and whether they were readmitted.
    ///
    /// The hospitals differ in their patients, so that a split by `hospital` is skewed. One row in a hundred has a
    /// `?` for a missing value.
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
    /// 3,620 rows have a `?` for a missing value. Columns: `age`, `workclass`, `fnlwgt`, `education`,
    /// `education-num`, `marital-status`, `occupation`, `relationship`, `race`, `sex`, `capital-gain`, `capital-loss`,
    /// `hours-per-week`, `native-country` and `income`, the outcome: `>50K`, `<=50K`.
    Adult,
}

impl Builtin {
    /// All built-in tables.
    pub const ALL: [Self; 2] = [Self::Clinic, Self::Adult];

    /// Returns its name in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clinic => "clinic",
            Self::Adult => "adult",
        }
    }

    /// Returns its text, for [`partition_csv`](crate::partition_csv). The first call may unpack it.
    pub fn csv(self) -> &'static str {
        match self {
            Self::Clinic => clinic::CSV,
            Self::Adult => adult::csv(),
        }
    }

    /// Returns its schema: the label, and every column that describes a person, with public bounds and vocabularies.
    /// Rows have norm one; there is no intercept.
    pub fn schema(self) -> Schema {
        match self {
            Self::Clinic => clinic::schema(),
            Self::Adult => adult::schema(),
        }
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
