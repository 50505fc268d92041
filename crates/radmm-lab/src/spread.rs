//! One number from many repetitions.

use serde::Serialize;

/// A number over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// The least of them.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// The standard deviation of one of them, `n − 1` below the sum; zero for a single one.
    pub deviation: f64,
}

impl Spread {
    /// Of at least one number.
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

    /// `0.3842 ± 0.0031` or `81.9 ± 0.3 %`: mean and deviation, as `shown` writes numbers; the mean alone of a single number.
    pub fn in_words(&self, shown: fn(f64) -> String) -> String {
        match self.low < self.high {
            false => shown(self.mean),
            true => format!(
                "{} ± {}",
                shown(self.mean).trim_end_matches(" %"),
                shown(self.deviation)
            ),
        }
    }

    /// The paper's measure of stability: greatest less least.
    pub fn range(&self) -> f64 {
        self.high - self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_mean_range_and_deviation() {
        let spread = Spread::of([1.0, 2.0, 6.0]);
        assert_eq!((spread.mean, spread.low, spread.high), (3.0, 1.0, 6.0));
        assert_eq!(spread.range(), 5.0);
        // √((4 + 1 + 9)/2).
        assert!((spread.deviation - 7f64.sqrt()).abs() < 1e-15);
        assert_eq!(Spread::of([4.0]).deviation, 0.0);
        assert_eq!(spread.in_words(crate::shown::number), "3.0000 ± 2.6458");
        assert_eq!(
            Spread::of([0.8, 0.9]).in_words(crate::shown::percent),
            "85.0 ± 7.1 %"
        );
        assert_eq!(Spread::of([0.5]).in_words(crate::shown::percent), "50.0 %");
    }
}
