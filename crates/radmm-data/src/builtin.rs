//! Tables that come with the program, so that it runs without a file.

/// A table that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The names by which the tables are known.
    pub const NAMES: &'static [&'static str] = &["clinic"];

    /// The table of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "clinic" => Some(Self::Clinic),
            _ => None,
        }
    }

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
    fn every_name_has_a_table_of_that_name() {
        for name in Builtin::NAMES {
            assert_eq!(Builtin::by_name(name).unwrap().name(), *name);
        }
        assert_eq!(Builtin::by_name("Clinic"), None);
    }
}
