//! The draft of a numeric column: where its bins are.

use radmm_data::{ColumnProfile, Quantiles, date_of_days};

use crate::inspect::{round_bounds, toml_writer as toml};

/// The most different values that get a bin each.
const MAX_LEVELS: usize = 10;

/// The share of rows in the first of ten equal bins from which on equal bins tell too little.
const CROWDED: f64 = 0.1;

/// The ratio of large to small numbers from which on they span decades.
const DECADES: f64 = 100.0;

/// The share of zeros that deserve a bin of their own.
const MANY_ZEROS: f64 = 0.1;

/// The way in which numbers become columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum NumericEncoding {
    /// Smooth bins, whose neighbours share a value: the most accurate
    Splines,
    /// Bins, one of which a value is in: for pure totals, and easiest to read
    Bins,
    /// One column, centred between bounds: the least accurate where effects are not linear
    Centred,
}

/// The bins or splines of a numeric column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NumericDraft {
    /// A bin for each of a few values: the edges between them.
    Levels(Vec<f64>),
    /// Bins or splines of equal width between bounds.
    Equal([f64; 2]),
    /// Bins or splines of equal ratio between bounds, and one for everything below.
    Geometric([f64; 2]),
    /// No bins: centred between bounds.
    Centred([f64; 2]),
}

impl NumericDraft {
    /// Drafts a column whose numbers have this range.
    pub(super) fn new(column: &ColumnProfile, range: [f64; 2], encoding: NumericEncoding) -> Self {
        if encoding == NumericEncoding::Centred {
            return Self::Centred(round_bounds::around(range));
        }
        if let Some(edges) = between_levels(column) {
            return Self::Levels(edges);
        }
        let Some(quantiles) = column.quantiles else {
            return Self::Equal(round_bounds::around(range));
        };
        if let Some(bounds) = decades(&quantiles, range) {
            return Self::Geometric(bounds);
        }
        let inner = [quantiles.p01, quantiles.p99];
        Self::Equal(match inner[0] < inner[1] {
            true => round_bounds::close_around(inner),
            false => round_bounds::around(range),
        })
    }

    /// Returns the same bins between other bounds.
    pub(super) fn within(self, bounds: [f64; 2]) -> Self {
        match self {
            Self::Levels(_) => self,
            Self::Geometric(_) if bounds[0] > 0.0 => Self::Geometric(bounds),
            // A lower bound of zero or less has no ratio; the bin of zero begins where it was found to.
            Self::Geometric([low, _]) if bounds[1] > low => Self::Geometric([low, bounds[1]]),
            Self::Geometric(_) | Self::Equal(_) => Self::Equal(bounds),
            Self::Centred(_) => Self::Centred(bounds),
        }
    }

    /// Returns the value of a column of dates, between the first days of years around these days or between these days themselves.
    pub(super) fn dates(
        days: [f64; 2],
        are_public: bool,
        encoding: NumericEncoding,
        count: u32,
        keys: &str,
    ) -> String {
        let [first, last] = days.map(date_of_days);
        let bounds = match are_public {
            true => [first, last],
            false => {
                let year = |date: &str| date[..4].parse().unwrap_or(0_u32);
                // The calendar of a study ends with the year 9999.
                [year(&first), (year(&last) + 1).min(9999)].map(|year| format!("{year:04}-01-01"))
            }
        };
        let cells = match encoding {
            NumericEncoding::Splines => format!(", splines = {count}"),
            NumericEncoding::Bins => format!(", bins = {count}"),
            NumericEncoding::Centred => String::new(),
        };
        format!("{{ bounds = [{}]{cells}{keys} }}", bounds.join(", "))
    }

    /// Returns the value of the column's key in the study, with so many bins or splines, and with more keys.
    pub(super) fn toml(&self, encoding: NumericEncoding, count: u32, keys: &str) -> String {
        let cells = match encoding {
            NumericEncoding::Splines => format!("splines = {count}"),
            _ => format!("bins = {count}"),
        };
        let bounds = |[low, high]: [f64; 2]| {
            format!("bounds = [{}, {}]", toml::number(low), toml::number(high))
        };
        match self {
            Self::Levels(edges) => {
                let edges: Vec<String> = edges.iter().map(|edge| toml::number(*edge)).collect();
                format!("{{ bins = [{}]{keys} }}", edges.join(", "))
            }
            Self::Equal(range) => format!("{{ {}, {cells}{keys} }}", bounds(*range)),
            Self::Geometric(range) => format!(
                "{{ {}, {cells}, spacing = \"geometric\"{keys} }}",
                bounds(*range)
            ),
            Self::Centred(range) => format!("{{ {}{keys} }}", bounds(*range)),
        }
    }

    /// Returns the number of encoded columns with `bins` bins or splines, that of missing values not counted.
    pub(super) fn width(&self, bins: u32) -> usize {
        match self {
            Self::Levels(edges) => edges.len() + 1,
            Self::Equal(_) => bins as usize,
            Self::Geometric(_) => bins as usize + 1,
            Self::Centred(_) => 1,
        }
    }
}

/// Returns the edges between the values of a column that has few.
fn between_levels(column: &ColumnProfile) -> Option<Vec<f64>> {
    let values = column.values.as_ref()?;
    let mut levels: Vec<f64> = values
        .iter()
        .filter_map(|(value, _)| value.parse().ok().filter(|level: &f64| level.is_finite()))
        .collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if !(2..=MAX_LEVELS).contains(&levels.len()) {
        return None;
    }
    let middle = |pair: &[f64]| 0.5 * pair[0] + 0.5 * pair[1];
    let edges: Vec<f64> = levels.windows(2).map(middle).collect();
    // Neighbouring doubles have no middle.
    edges.is_sorted_by(|a, b| a < b).then_some(edges)
}

/// Returns the bounds of geometric bins, if the values span decades or crowd near zero.
fn decades(quantiles: &Quantiles, [low, high]: [f64; 2]) -> Option<[f64; 2]> {
    let Quantiles {
        p75,
        positive_p05: small,
        positive_p95: large,
        zeros,
        ..
    } = *quantiles;
    // A small number may be too small for its ratio to be finite.
    if low < 0.0 || small <= 0.0 || !(large / small).is_finite() {
        return None;
    }
    let spans = large / small >= DECADES;
    let crowded = p75 < CROWDED * high && large / small >= 4.0;
    let zeros = zeros >= MANY_ZEROS && large / small >= 4.0;
    (spans || crowded || zeros)
        .then(|| [round_bounds::below(small), round_bounds::above(large)])
        .filter(|[low, high]| *low > 0.0 && low < high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(texts: &[String]) -> NumericDraft {
        let csv: String = texts.iter().map(|text| format!("{text},a\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        std::fs::write(&path, format!("x,y\n{csv}")).unwrap();
        let file = radmm_data::TableFile::open(&path, radmm_data::Format::Csv).unwrap();
        let profile = radmm_data::profile(file).unwrap();
        let column = &profile.columns[0];
        NumericDraft::new(column, column.range.unwrap(), NumericEncoding::Splines)
    }

    fn numbers(number: impl Fn(u32) -> f64) -> Vec<String> {
        (0..2000).map(|n| number(n).to_string()).collect()
    }

    #[test]
    fn a_few_values_get_a_bin_each() {
        let drafted = column(&numbers(|n| f64::from(n % 3)));
        assert_eq!(drafted, NumericDraft::Levels(vec![0.5, 1.5]));
        assert_eq!(
            drafted.toml(NumericEncoding::Splines, 10, ", missing = \"category\""),
            "{ bins = [0.5, 1.5], missing = \"category\" }"
        );
        assert_eq!(drafted.width(10), 3);
    }

    #[test]
    fn numbers_of_one_size_get_equal_bins_between_round_bounds() {
        let ages = column(&numbers(|n| f64::from(18 + n % 60)));
        assert_eq!(ages, NumericDraft::Equal([10.0, 80.0]));
        // One slip of the pen does not stretch the bins.
        let mut with_slip = numbers(|n| f64::from(18 + n % 60));
        with_slip[7] = "9999".to_owned();
        assert_eq!(column(&with_slip), ages);
    }

    #[test]
    fn numbers_that_span_decades_get_geometric_bins_and_one_for_zero() {
        let incomes = column(&numbers(|n| match n % 4 {
            0 => 0.0,
            _ => f64::from(n * n),
        }));
        let NumericDraft::Geometric([low, high]) = incomes else {
            panic!("{incomes:?}")
        };
        assert!(low > 0.0 && high >= 3e6, "{low} {high}");
        assert!(
            incomes
                .toml(NumericEncoding::Bins, 8, "")
                .ends_with("bins = 8, spacing = \"geometric\" }")
        );
        assert_eq!(incomes.width(8), 9);
    }

    #[test]
    fn signed_numbers_get_equal_bins() {
        let signed = column(&numbers(|n| f64::from(n) - 1000.0));
        assert_eq!(signed, NumericDraft::Equal([-1000.0, 1000.0]));
    }
}
