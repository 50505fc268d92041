//! What the columns of a table mean: the public bounds and vocabularies that all parties agree on.

use radmm::private::NormPolicy;
use serde::Serialize;

/// How a table becomes rows of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schema {
    /// The column that holds the outcome.
    pub label: String,
    /// Its value for the positive class; every other value is the negative class.
    pub positive: String,
    /// Field values that mean "not known"; rows holding one in a used column are dropped.
    pub missing: Vec<String>,
    /// What is done to a row's norm.
    pub rows: NormPolicy,
    /// Whether a constant column is added, before scaling.
    pub intercept: bool,
    /// Numeric columns with their public bounds, in order.
    pub numeric: Vec<Numeric>,
    /// Categorical columns with their public vocabularies, in order.
    pub categorical: Vec<Categorical>,
    /// The public number of columns of a file that numbers them (LIBSVM), whose values are taken as they are; then no
    /// column has a name. 0 for every other file.
    pub numbered: u32,
}

impl Schema {
    /// The names of the encoded columns, in order: numbered ones (`1`, `2`, …), numeric ones, one `name=value` for each value of the categorical
    /// ones, and `(intercept)` if there is one.
    pub fn columns(&self) -> Vec<String> {
        let numbered = (1..=self.numbered).map(|number| number.to_string());
        numbered.chain(self.named()).collect()
    }

    /// How many they are, without making names for all that are numbered.
    pub(crate) fn width(&self) -> usize {
        self.numbered as usize + self.named().len()
    }

    fn named(&self) -> Vec<String> {
        let numeric = self.numeric.iter().map(|column| column.name.clone());
        let categorical = self.categorical.iter().flat_map(|column| {
            let named = |value| format!("{}={value}", column.name);
            column.values.iter().map(named)
        });
        let intercept = self.intercept.then(|| "(intercept)".to_owned());
        numeric.chain(categorical).chain(intercept).collect()
    }
}

/// A numeric column: values are clipped to the bounds and divided by the larger magnitude of the two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numeric {
    /// The column's name.
    pub name: String,
    /// The least value.
    pub low: f64,
    /// The greatest value; `low < high`, both finite.
    pub high: f64,
}

/// A categorical column: one column of zeros and ones a value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Categorical {
    /// The column's name.
    pub name: String,
    /// Every value that may occur, in order.
    pub values: Vec<String>,
}

/// Which row goes to which node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Split {
    /// Row r to node r mod N.
    RoundRobin,
    /// In random order, then round-robin.
    Shuffled {
        /// Of the order.
        seed: u64,
    },
    /// By the value of a column: `values[i]` to node i, which is named after it.
    Column {
        /// The column's name; it need not be a feature.
        #[serde(rename = "name")]
        column: String,
        /// Its values in the order of the nodes; if empty, in the order in which they first appear.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<String>,
    },
    /// Label skew: each class is spread over the nodes in proportions drawn from Dirichlet(alpha).
    Dirichlet {
        /// Small: very uneven. Large: nearly even.
        alpha: f64,
        /// Of the draw.
        seed: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_columns_are_numeric_then_categorical_then_the_intercept() {
        let mut schema = Schema {
            label: "ill".into(),
            positive: "yes".into(),
            missing: vec![],
            rows: NormPolicy::Unit,
            intercept: true,
            numeric: ["bmi", "age"]
                .map(|name| Numeric {
                    name: name.into(),
                    low: 0.0,
                    high: 1.0,
                })
                .into(),
            categorical: vec![Categorical {
                name: "smoker".into(),
                values: vec!["yes".into(), "No ".into()],
            }],
            numbered: 0,
        };
        assert_eq!(
            schema.columns(),
            ["bmi", "age", "smoker=yes", "smoker=No ", "(intercept)"]
        );
        schema.intercept = false;
        assert_eq!(schema.columns().len(), 4);
    }

    #[test]
    fn numbered_columns_are_called_by_their_numbers() {
        let schema = Schema {
            label: "label".into(),
            positive: "1".into(),
            missing: vec![],
            rows: NormPolicy::Unit,
            intercept: true,
            numeric: vec![],
            categorical: vec![],
            numbered: 3,
        };
        assert_eq!(schema.columns(), ["1", "2", "3", "(intercept)"]);
        assert_eq!(schema.width(), 4);
    }
}
