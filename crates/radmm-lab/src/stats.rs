//! Statistics of one number over the repetitions.

use serde::Serialize;

/// Mean, range and standard deviation of a number over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampleStats {
    /// The mean.
    pub mean: f64,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// The sample standard deviation, with `n − 1` in the denominator; zero for a single value.
    pub deviation: f64,
}

impl SampleStats {
    /// Returns the statistics of at least one number.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
        Self {
            mean,
            low: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            high: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
        }
    }

    /// Writes mean and deviation, as in `0.3842 ± 0.0031` or `81.9 ± 0.3 %`; the mean alone if all values are equal.
    pub fn format_with(&self, format: fn(f64) -> String) -> String {
        match self.low < self.high {
            false => format(self.mean),
            true => format!(
                "{} ± {}",
                format(self.mean).trim_end_matches(" %"),
                format(self.deviation)
            ),
        }
    }

    /// Returns the paper's measure of stability: the greatest value less the least.
    pub fn range(&self) -> f64 {
        self.high - self.low
    }

    /// Returns the least and the greatest value.
    pub fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm_study::number_format::{number, percent};

    #[test]
    fn stats_are_mean_range_and_deviation() {
        let stats = SampleStats::of([1.0, 2.0, 6.0]);
        assert_eq!((stats.mean, stats.ends()), (3.0, [1.0, 6.0]));
        assert_eq!(stats.range(), 5.0);
        // √((4 + 1 + 9)/2).
        assert!((stats.deviation - 7f64.sqrt()).abs() < 1e-15);
        assert_eq!(SampleStats::of([4.0]).deviation, 0.0);
        assert_eq!(stats.format_with(number), "3.0000 ± 2.6458");
        let shares = SampleStats::of([0.8, 0.9]);
        assert_eq!(shares.format_with(percent), "85.0 ± 7.1 %");
        assert_eq!(SampleStats::of([0.5]).format_with(percent), "50.0 %");
    }
}
