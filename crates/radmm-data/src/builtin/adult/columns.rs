//! The columns of the Adult table, as declared by UCI's `adult.names`.

/// The content of a column.
pub(super) enum ColumnKind {
    /// Integers from zero to a public bound, packed in a number of bytes.
    Number { high: u32, bytes: usize },
    /// One of these words, in the order of `adult.names`.
    Word(&'static [&'static str]),
}
use ColumnKind::{Number, Word};

/// The columns by name, in the order of the file. UCI declares the words but no bounds. Because the table is public, so
/// are its largest numbers.
pub(super) const COLUMNS: [(&str, ColumnKind); 15] = [
    ("age", Number { high: 90, bytes: 1 }),
    (
        "workclass",
        Word(&[
            "Private",
            "Self-emp-not-inc",
            "Self-emp-inc",
            "Federal-gov",
            "Local-gov",
            "State-gov",
            "Without-pay",
            "Never-worked",
        ]),
    ),
    (
        "fnlwgt",
        Number {
            high: 1_490_400,
            bytes: 3,
        },
    ),
    (
        "education",
        Word(&[
            "Bachelors",
            "Some-college",
            "11th",
            "HS-grad",
            "Prof-school",
            "Assoc-acdm",
            "Assoc-voc",
            "9th",
            "7th-8th",
            "12th",
            "Masters",
            "1st-4th",
            "10th",
            "Doctorate",
            "5th-6th",
            "Preschool",
        ]),
    ),
    ("education-num", Number { high: 16, bytes: 1 }),
    (
        "marital-status",
        Word(&[
            "Married-civ-spouse",
            "Divorced",
            "Never-married",
            "Separated",
            "Widowed",
            "Married-spouse-absent",
            "Married-AF-spouse",
        ]),
    ),
    (
        "occupation",
        Word(&[
            "Tech-support",
            "Craft-repair",
            "Other-service",
            "Sales",
            "Exec-managerial",
            "Prof-specialty",
            "Handlers-cleaners",
            "Machine-op-inspct",
            "Adm-clerical",
            "Farming-fishing",
            "Transport-moving",
            "Priv-house-serv",
            "Protective-serv",
            "Armed-Forces",
        ]),
    ),
    (
        "relationship",
        Word(&[
            "Wife",
            "Own-child",
            "Husband",
            "Not-in-family",
            "Other-relative",
            "Unmarried",
        ]),
    ),
    (
        "race",
        Word(&[
            "White",
            "Asian-Pac-Islander",
            "Amer-Indian-Eskimo",
            "Other",
            "Black",
        ]),
    ),
    ("sex", Word(&["Female", "Male"])),
    (
        "capital-gain",
        Number {
            high: 99_999,
            bytes: 3,
        },
    ),
    (
        "capital-loss",
        Number {
            high: 4_356,
            bytes: 2,
        },
    ),
    ("hours-per-week", Number { high: 99, bytes: 1 }),
    (
        "native-country",
        Word(&[
            "United-States",
            "Cambodia",
            "England",
            "Puerto-Rico",
            "Canada",
            "Germany",
            "Outlying-US(Guam-USVI-etc)",
            "India",
            "Japan",
            "Greece",
            "South",
            "China",
            "Cuba",
            "Iran",
            "Honduras",
            "Philippines",
            "Italy",
            "Poland",
            "Jamaica",
            "Vietnam",
            "Mexico",
            "Portugal",
            "Ireland",
            "France",
            "Dominican-Republic",
            "Laos",
            "Ecuador",
            "Taiwan",
            "Haiti",
            "Columbia",
            "Hungary",
            "Guatemala",
            "Nicaragua",
            "Scotland",
            "Thailand",
            "Yugoslavia",
            "El-Salvador",
            "Trinadad&Tobago",
            "Peru",
            "Hong",
            "Holand-Netherlands",
        ]),
    ),
    (LABEL, Word(&[">50K", "<=50K"])),
];

/// The column of the outcome.
pub(super) const LABEL: &str = "income";
