//! Tables that come with the program, so that it runs without a file.

use serde::Serialize;

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
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Clinic];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clinic => "clinic",
        }
    }

    /// Its text, for [`read_csv`](crate::read_csv).
    pub fn csv(self) -> &'static str {
        match self {
            Self::Clinic => include_str!("../tables/clinic.csv"),
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
