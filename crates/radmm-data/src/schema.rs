//! The schema of a table: the public bounds and vocabularies that all parties agree on.

use radmm::curator::NormPolicy;
use radmm::problem::RowShape;
use serde::{Serialize, Serializer};

use crate::date::date_of_days;

/// The public rules that turn a table into rows of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schema {
    /// The name of the column that holds the outcome.
    pub label: String,
    /// The label of the positive class; every other label is of the negative class.
    pub positive: String,
    /// Field values that mean "not known"; a row with one in a used column is dropped, unless the column has a category for it. A
    /// column may also count what it cannot encode as missing.
    pub missing: Vec<String>,
    /// The norm policy of the rows.
    pub rows: NormPolicy,
    /// Whether a constant column is added, before scaling.
    pub intercept: bool,
    /// The numeric columns with their public scales, in order.
    pub numeric: Vec<Numeric>,
    /// The categorical columns with their public vocabularies, in order.
    pub categorical: Vec<Categorical>,
    /// The public number of columns of a file that numbers them (LIBSVM), or 0 for every other file. Values of numbered
    /// columns are taken as they are, and no column has a name.
    pub numbered: u32,
    /// The public number of non-zeros that a line of such a file has at most, without the intercept; `None` for no limit.
    pub nonzeros: Option<u32>,
}

impl Schema {
    /// Returns a schema without features, missing values and intercept, whose rows are scaled to norm one.
    pub fn new(label: impl Into<String>, positive: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            positive: positive.into(),
            missing: Vec::new(),
            rows: NormPolicy::Unit,
            intercept: false,
            numeric: Vec::new(),
            categorical: Vec::new(),
            numbered: 0,
            nonzeros: None,
        }
    }

    /// Returns the names of the encoded columns, in order.
    ///
    /// First come the numbered columns (`1`, `2`, …), then the numeric ones, with one such as `25≤age<35` for each
    /// bin if they have bins, then one `name=value` for each value of the categorical ones, and last `(intercept)` if
    /// there is one.
    pub fn columns(&self) -> Vec<String> {
        let numbered = (1..=self.numbered).map(|number| number.to_string());
        numbered.chain(self.named()).collect()
    }

    /// Returns the number of encoded columns, without making names for the numbered ones.
    pub fn width(&self) -> usize {
        self.numbered as usize + self.named().len()
    }

    /// Returns the public shape of encoded rows. Every numeric, binned or categorical column fills one of the encoded columns at
    /// most, a column of splines four, and the intercept one more.
    pub fn shape(&self) -> RowShape {
        let numbered = self.nonzeros.unwrap_or(self.numbered);
        let numeric: u32 = self.numeric.iter().map(Numeric::filled).sum();
        let named = numeric + self.categorical.len() as u32;
        let filled = numbered + named + u32::from(self.intercept);
        RowShape::new(self.width() as u32, filled)
    }

    fn named(&self) -> Vec<String> {
        let numeric = self.numeric.iter().flat_map(Numeric::columns);
        let categorical = self.categorical.iter().flat_map(Categorical::columns);
        let intercept = self.intercept.then(|| "(intercept)".to_owned());
        numeric.chain(categorical).chain(intercept).collect()
    }
}

/// A numeric column and its public scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Numeric {
    /// The column's name.
    pub name: String,
    /// The map from its values to numbers within [−1, 1].
    pub scale: NumericScale,
    /// Whether its values are dates. They, bounds and edges are numbers of days since 1970-01-01.
    pub is_date: bool,
    /// Whether a missing value has a column of its own, which is one where the others of the feature are zero; if not, its row is
    /// dropped.
    pub missing_category: bool,
    /// Whether a value that is not a finite number counts as missing; if not, it is an error.
    pub other_is_missing: bool,
}

/// The map from the values of a numeric column to numbers within [−1, 1]. Serialised as in a study file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NumericScale {
    /// One encoded column: values are clipped to the bounds and divided by the larger magnitude of the two.
    #[serde(serialize_with = "pair")]
    Bounds {
        /// The least value.
        low: f64,
        /// The greatest value; `low < high`, both finite.
        high: f64,
    },
    /// One encoded column: values are clipped to the bounds, and the middle of the bounds is subtracted before they are divided
    /// by half the distance of the two.
    Centred {
        /// The least value and the greatest, in order and finite.
        bounds: [f64; 2],
    },
    /// One-hot encoding: one column of zeros and ones per bin. The bins are below the first edge, from one edge to
    /// below the next, and from the last edge on.
    Bins {
        /// The edges of the bins: at least one, all finite, strictly increasing.
        #[serde(rename = "bins")]
        edges: Vec<f64>,
    },
    /// Cubic B-splines: one column for each, of which a value fills four, with weights that add up to one. Neighbouring values
    /// have nearly the same weights, so that fewer rows tell as much as with bins. Values are clipped to the bounds.
    Splines {
        /// The least value and the greatest, in order and finite; positive if the spacing is geometric.
        bounds: [f64; 2],
        /// Their number, at least four.
        #[serde(rename = "splines")]
        count: u32,
        /// Their spacing. With geometric spacing everything below the bounds, such as zero, has a column of its own before them.
        #[serde(skip_serializing_if = "Spacing::is_equal")]
        spacing: Spacing,
    },
}

/// The spacing of splines between bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Equal distances.
    #[default]
    Equal,
    /// Equal ratios.
    Geometric,
}

impl Spacing {
    fn is_equal(&self) -> bool {
        *self == Self::Equal
    }
}

/// The number of splines that a value fills.
pub(crate) const SPLINES_FILLED: u32 = 4;

impl Numeric {
    /// Returns a column that is clipped to bounds.
    pub fn within(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self {
            name: name.into(),
            scale: NumericScale::Bounds { low, high },
            is_date: false,
            missing_category: false,
            other_is_missing: false,
        }
    }

    /// Returns a column that is clipped to bounds and centred between them.
    pub fn centred(name: impl Into<String>, low: f64, high: f64) -> Self {
        let bounds = [low, high];
        Self {
            name: name.into(),
            scale: NumericScale::Centred { bounds },
            is_date: false,
            missing_category: false,
            other_is_missing: false,
        }
    }

    /// Returns a column that is cut into bins at these edges.
    pub fn binned(name: impl Into<String>, edges: impl Into<Vec<f64>>) -> Self {
        let edges = edges.into();
        Self {
            name: name.into(),
            scale: NumericScale::Bins { edges },
            is_date: false,
            missing_category: false,
            other_is_missing: false,
        }
    }

    /// Returns a column of cubic B-splines between bounds.
    pub fn splines(
        name: impl Into<String>,
        bounds: [f64; 2],
        count: u32,
        spacing: Spacing,
    ) -> Self {
        Self {
            name: name.into(),
            scale: NumericScale::Splines {
                bounds,
                count,
                spacing,
            },
            is_date: false,
            missing_category: false,
            other_is_missing: false,
        }
    }

    /// Returns whether values below its bounds have a column of their own.
    pub(crate) fn has_bin_below(&self) -> bool {
        matches!(
            self.scale,
            NumericScale::Splines {
                spacing: Spacing::Geometric,
                ..
            }
        )
    }

    /// Returns the number of encoded columns that a row fills at most.
    fn filled(&self) -> u32 {
        match self.scale {
            NumericScale::Splines { .. } => SPLINES_FILLED,
            _ => 1,
        }
    }

    /// Returns the number of encoded columns.
    pub fn width(&self) -> u32 {
        let bins = match &self.scale {
            NumericScale::Bounds { .. } | NumericScale::Centred { .. } => 1,
            NumericScale::Bins { edges } => edges.len() as u32 + 1,
            NumericScale::Splines { count, spacing, .. } => {
                count + u32::from(*spacing == Spacing::Geometric)
            }
        };
        bins + u32::from(self.missing_category)
    }

    /// Returns the names of its encoded columns.
    fn columns(&self) -> Vec<String> {
        let name = &self.name;
        let shown = |number: f64| match self.is_date {
            true => date_of_days(number),
            false => number.to_string(),
        };
        let mut columns: Vec<String> = match &self.scale {
            NumericScale::Bounds { .. } | NumericScale::Centred { .. } => vec![name.clone()],
            NumericScale::Bins { edges } => {
                let edges: Vec<String> = edges.iter().map(|edge| shown(*edge)).collect();
                let first = edges.first().map(|edge| format!("{name}<{edge}"));
                let between = edges.windows(2);
                let between = between.map(|pair| format!("{}≤{name}<{}", pair[0], pair[1]));
                let last = edges.last().map(|edge| format!("{name}≥{edge}"));
                first.into_iter().chain(between).chain(last).collect()
            }
            NumericScale::Splines {
                bounds,
                count,
                spacing,
            } => {
                let below = match spacing {
                    Spacing::Equal => None,
                    Spacing::Geometric => Some(format!("{name}<{}", bounds[0])),
                };
                let at = |k| {
                    let centre = spline_centre(*bounds, *count, *spacing, k);
                    match self.is_date {
                        true => format!("{name}≈{}", shown(centre)),
                        false => format!("{name}≈{}", brief(centre)),
                    }
                };
                below.into_iter().chain((0..*count).map(at)).collect()
            }
        };
        columns.extend(self.missing_category.then(|| missing_name(name)));
        columns
    }
}

/// Returns the centre of a spline. Those of the outermost two lie beyond the bounds.
fn spline_centre([low, high]: [f64; 2], count: u32, spacing: Spacing, k: u32) -> f64 {
    let share = (f64::from(k) - 1.0) / f64::from(count - 3);
    match spacing {
        Spacing::Equal => low + share * (high - low),
        Spacing::Geometric => low * libm::exp(share * libm::log(high / low)),
    }
}

/// Formats a number with three digits.
fn brief(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    rounded.to_string()
}

/// The name of the encoded column of missing values.
fn missing_name(column: &str) -> String {
    format!("{column}={MISSING_CATEGORY}")
}

fn pair<S: Serializer>(low: &f64, high: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    [low, high].serialize(serializer)
}

/// The value that stands for a missing one, in the names of encoded columns.
pub const MISSING_CATEGORY: &str = "missing";

/// A categorical column, encoded one-hot: one column of zeros and ones per value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Categorical {
    /// The column's name.
    pub name: String,
    /// The values that have a column each, in order.
    pub values: Vec<String>,
    /// Whether these are `true` and `false`, which a field may spell in several ways.
    pub is_boolean: bool,
    /// Whether a missing value is a category of its own, the last; if not, its row is dropped.
    pub missing_category: bool,
    /// Whether a value that is not one of these counts as missing; if not, it is an error.
    pub other_is_missing: bool,
}

impl Categorical {
    /// Returns a column with a vocabulary.
    pub fn new<V: Into<String>>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self {
            name: name.into(),
            values: values.into_iter().map(Into::into).collect(),
            is_boolean: false,
            missing_category: false,
            other_is_missing: false,
        }
    }

    /// Returns a column of truth values, with a column for each of the two.
    pub fn boolean(name: impl Into<String>) -> Self {
        Self {
            is_boolean: true,
            ..Self::new(name, ["true", "false"])
        }
    }

    /// Returns the number of encoded columns.
    pub(crate) fn width(&self) -> u32 {
        self.values.len() as u32 + u32::from(self.missing_category)
    }

    /// Returns the names of its encoded columns.
    fn columns(&self) -> Vec<String> {
        let named = |value| format!("{}={value}", self.name);
        let mut columns: Vec<String> = self.values.iter().map(named).collect();
        columns.extend(self.missing_category.then(|| missing_name(&self.name)));
        columns
    }
}

/// The rule that assigns rows to nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Split {
    /// Row r goes to node r mod N.
    RoundRobin,
    /// Rows in random order go round-robin.
    Shuffled {
        /// The seed of the order.
        seed: u64,
    },
    /// Rows in random order are cut in proportion to sizes.
    Sizes {
        /// The sizes of the nodes relative to one another: positive, one per node.
        sizes: Vec<f64>,
        /// The seed of the order.
        seed: u64,
    },
    /// Rows with `values[i]` in a column go to node i, which is named after the value.
    Column {
        /// The name of the column, which need not be a feature.
        #[serde(rename = "name")]
        column: String,
        /// The values in the order of the nodes; if empty, the order in which they first appear.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        values: Vec<String>,
    },
    /// Label skew: each class is spread over the nodes in proportions drawn from Dirichlet(alpha).
    Dirichlet {
        /// The concentration: small is very uneven, large is nearly even.
        alpha: f64,
        /// The seed of the draw.
        seed: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_columns_are_numeric_then_categorical_then_the_intercept() {
        let mut schema = Schema {
            intercept: true,
            numeric: ["bmi", "age"]
                .map(|name| Numeric::within(name, 0.0, 1.0))
                .into(),
            categorical: vec![Categorical::new("smoker", ["yes", "No "])],
            ..Schema::new("ill", "yes")
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
            intercept: true,
            numeric: vec![
                Numeric::binned("age", [25.0, 35.0, 65.5]),
                Numeric::within("bmi", 0.0, 1.0),
                Numeric::binned("pulse", [-60.0]),
            ],
            ..Schema::new("ill", "yes")
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
        let widths = schema.numeric.iter().map(Numeric::width);
        assert_eq!(widths.collect::<Vec<_>>(), [4, 1, 2]);
    }

    #[test]
    fn missing_values_have_a_column_of_their_own_where_the_schema_says_so() {
        let schema = Schema {
            numeric: vec![Numeric {
                missing_category: true,
                ..Numeric::binned("age", [40.0])
            }],
            categorical: vec![Categorical {
                missing_category: true,
                ..Categorical::new("smoker", ["yes", "no"])
            }],
            ..Schema::new("ill", "yes")
        };
        let names = ["age<40", "age≥40", "age=missing"];
        let categories = ["smoker=yes", "smoker=no", "smoker=missing"];
        assert_eq!(schema.columns(), [names, categories].concat());
        assert_eq!(schema.shape(), RowShape::new(6, 2));
    }

    #[test]
    fn splines_are_named_by_their_centres() {
        let schema = Schema {
            numeric: vec![
                Numeric::splines("age", [10.0, 80.0], 5, Spacing::Equal),
                Numeric::splines("pay", [1.0, 100.0], 5, Spacing::Geometric),
            ],
            ..Schema::new("ill", "yes")
        };
        let ages = ["age≈-25", "age≈10", "age≈45", "age≈80", "age≈115"];
        let pays = ["pay<1", "pay≈0.1", "pay≈1", "pay≈10", "pay≈100", "pay≈1000"];
        assert_eq!(schema.columns(), [&ages[..], &pays[..]].concat());
        assert_eq!(schema.shape(), RowShape::new(11, 8));
    }

    #[test]
    fn numbered_columns_are_named_by_their_numbers() {
        let schema = Schema {
            intercept: true,
            numbered: 3,
            ..Schema::new("label", "1")
        };
        assert_eq!(schema.columns(), ["1", "2", "3", "(intercept)"]);
        assert_eq!(schema.width(), 4);
    }

    #[test]
    fn a_row_fills_one_encoded_column_for_each_column_of_the_file() {
        let named = Schema {
            intercept: true,
            numeric: vec![
                Numeric::binned("age", [25.0, 35.0, 65.5]),
                Numeric::within("bmi", 0.0, 1.0),
            ],
            categorical: vec![Categorical::new("smoker", ["yes", "no"])],
            ..Schema::new("ill", "yes")
        };
        // Four bins, a number, two values and the intercept.
        assert_eq!(named.shape(), RowShape::new(8, 4));
        let numbered = |nonzeros| Schema {
            intercept: true,
            numbered: 300,
            nonzeros,
            ..Schema::new("label", "1")
        };
        assert_eq!(numbered(Some(14)).shape(), RowShape::new(301, 15));
        assert_eq!(numbered(None).shape(), RowShape::dense(301));
    }
}
