//! `seconds ≈ c · size^p`: the exponent `p` of times that were measured at several sizes.

/// A size, and the seconds that it took.
pub type Timing = (f64, f64);

/// Returns the exponent by least squares of log seconds on log size; `None` for fewer than two sizes.
pub fn exponent(timings: &[Timing]) -> Option<f64> {
    let logs = || {
        timings
            .iter()
            .map(|(size, seconds)| (size.ln(), seconds.ln()))
    };
    let count = timings.len() as f64;
    let (x, y) = logs().fold((0.0, 0.0), |(x, y), log| (x + log.0, y + log.1));
    let (x, y) = (x / count, y / count);
    let products = logs().map(|log| (log.0 - x) * (log.1 - y)).sum::<f64>();
    let squares = logs().map(|log| (log.0 - x).powi(2)).sum::<f64>();
    (squares > 0.0).then(|| products / squares)
}

/// Returns the largest exponent between neighbouring sizes, and these sizes; `None` for fewer than two sizes.
pub fn steepest(timings: &[Timing]) -> Option<(f64, f64, f64)> {
    let pairs = timings.windows(2);
    let local = pairs.filter_map(|pair| Some((exponent(pair)?, pair[0].0, pair[1].0)));
    local.max_by(|one, other| one.0.total_cmp(&other.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_gives_its_exponent() {
        let timings = [1.0, 10.0, 50.0, 1e4].map(|size: f64| (size, 3.0 * size.powf(1.5)));
        assert!((exponent(&timings).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(exponent(&[(5.0, 1.0), (50.0, 1.0)]), Some(0.0));
    }

    #[test]
    fn a_fixed_cost_flattens_the_fit_and_not_its_steepest_part() {
        let timings = [1.0, 10.0, 100.0, 1000.0].map(|size| (size, 1.0 + size / 10.0));
        assert!(exponent(&timings).unwrap() < 0.8);
        let (local, from, to) = steepest(&timings).unwrap();
        assert!((0.9..1.0).contains(&local), "{local}");
        assert_eq!((from, to), (100.0, 1000.0));
    }

    #[test]
    fn one_size_has_no_exponent() {
        assert_eq!(exponent(&[(5.0, 1.0)]), None);
        assert_eq!(steepest(&[(5.0, 1.0)]), None);
    }
}
