//! What the columns of a table mean: the public bounds and vocabularies that all parties agree on.

use radmm::private::NormPolicy;
use serde::{Serialize, Serializer};

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
    /// The names of the encoded columns, in order: numbered ones (`1`, `2`, …); numeric ones, with one such as
    /// `25≤age<35` for each bin if they have bins; one `name=value` for each value of the categorical ones; and
    /// `(intercept)` if there is one.
    pub fn columns(&self) -> Vec<String> {
        let numbered = (1..=self.numbered).map(|number| number.to_string());
        numbered.chain(self.named()).collect()
    }

    /// How many encoded columns there are, without making names for all that are numbered.
    pub fn width(&self) -> usize {
        self.numbered as usize + self.named().len()
    }

    fn named(&self) -> Vec<String> {
        let numeric = self.numeric.iter().flat_map(Numeric::columns);
        let categorical = self.categorical.iter().flat_map(|column| {
            let named = |value| format!("{}={value}", column.name);
            column.values.iter().map(named)
        });
        let intercept = self.intercept.then(|| "(intercept)".to_owned());
        numeric.chain(categorical).chain(intercept).collect()
    }
}

/// A numeric column and its public scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numeric {
    /// The column's name.
    pub name: String,
    /// How its values become numbers within [−1, 1].
    pub scale: Scale,
}

/// How the values of a numeric column become numbers within [−1, 1]. Serialised as a study has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Scale {
    /// One column: values are clipped to the bounds and divided by the larger magnitude of the two.
    #[serde(serialize_with = "pair")]
    Bounds {
        /// The least value.
        low: f64,
        /// The greatest value; `low < high`, both finite.
        high: f64,
    },
    /// One column of zeros and ones a bin: below the first edge, from one edge to below the next, and from the last
    /// edge on.
    Bins {
        /// At least one, all finite, strictly increasing.
        #[serde(rename = "bins")]
        edges: Vec<f64>,
    },
}

impl Numeric {
    /// A column that is clipped to bounds.
    pub fn within(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self {
            name: name.into(),
            scale: Scale::Bounds { low, high },
        }
    }

    /// A column that is cut into bins at these edges.
    pub fn binned(name: impl Into<String>, edges: impl Into<Vec<f64>>) -> Self {
        let edges = edges.into();
        Self {
            name: name.into(),
            scale: Scale::Bins { edges },
        }
    }

    /// The names of its encoded columns.
    fn columns(&self) -> Vec<String> {
        let name = &self.name;
        match &self.scale {
            Scale::Bounds { .. } => vec![name.clone()],
            Scale::Bins { edges } => {
                let first = edges.first().map(|edge| format!("{name}<{edge}"));
                let between = edges.windows(2);
                let between = between.map(|pair| format!("{}≤{name}<{}", pair[0], pair[1]));
                let last = edges.last().map(|edge| format!("{name}≥{edge}"));
                first.into_iter().chain(between).chain(last).collect()
            }
        }
    }
}

impl Scale {
    /// How many encoded columns there are.
    pub(crate) fn width(&self) -> u32 {
        match self {
            Self::Bounds { .. } => 1,
            Self::Bins { edges } => edges.len() as u32 + 1,
        }
    }
}

fn pair<S: Serializer>(low: &f64, high: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    [low, high].serialize(serializer)
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
    /// In random order, then cut in proportion to sizes.
    Sizes {
        /// Of the nodes, relative to one another: positive, one a node.
        sizes: Vec<f64>,
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
                .map(|name| Numeric::within(name, 0.0, 1.0))
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
    fn bins_are_named_by_their_edges() {
        let schema = Schema {
            label: "ill".into(),
            positive: "yes".into(),
            missing: vec![],
            rows: NormPolicy::Unit,
            intercept: true,
            numeric: vec![
                Numeric::binned("age", [25.0, 35.0, 65.5]),
                Numeric::within("bmi", 0.0, 1.0),
                Numeric::binned("pulse", [-60.0]),
            ],
            categorical: vec![],
            numbered: 0,
        };
        assert_eq!(
            schema.columns(),
            [
                "age<25",
                "25≤age<35",
                "35≤age<65.5",
                "age≥65.5",
                "bmi",
                "pulse<-60",
                "pulse≥-60",
                "(intercept)"
            ]
        );
        let widths = schema.numeric.iter().map(|column| column.scale.width());
        assert_eq!(widths.collect::<Vec<_>>(), [4, 1, 2]);
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
