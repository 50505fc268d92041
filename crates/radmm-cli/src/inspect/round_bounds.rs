//! Round numbers as bounds of a range.

/// Columns of numbers below this are rarely meant to have the bounds [−1, 1].
const SMALL: f64 = 0.01;

/// Below this, steps between round numbers may be subnormal.
const TINY: f64 = 1e-290;

/// Returns round bounds that contain `[low, high]`. They reveal less about the rows than the extremes do, but not nothing.
pub(crate) fn around([low, high]: [f64; 2]) -> [f64; 2] {
    let size = low.abs().max(high.abs());
    // The usual bounds. Much smaller numbers would all be nearly zero between them.
    for [below, above] in [[0.0, 1.0], [-1.0, 1.0]] {
        if low >= below && high <= above && size >= SMALL {
            return [below, above];
        }
    }
    if size < TINY {
        return around_tiny([low, high]);
    }
    let width = high - low;
    // Beyond 10³⁰⁰ nothing is round, and half of the range could overflow.
    if size > 1e300 {
        return [-f64::MAX, f64::MAX];
    }
    let margin = 0.05 * width.max(f64::EPSILON * size);
    outward([low, high], margin, width.max(margin) / 5.0)
}

/// Returns round bounds close to `[low, high]`, within which they lie, for bins: values beyond them have the outermost ones.
pub(crate) fn close_around([low, high]: [f64; 2]) -> [f64; 2] {
    let (size, width) = (low.abs().max(high.abs()), high - low);
    match !(TINY..=1e300).contains(&size) || width < f64::EPSILON * size {
        true => around([low, high]),
        false => outward([low, high], 0.0, width / 10.0),
    }
}

/// Returns the largest of 1, 2 and 5 times a power of ten that is at most a positive number.
pub(crate) fn below(number: f64) -> f64 {
    let exponent = number.log10().floor() as i32;
    let candidates = [10.0, 5.0, 2.0, 1.0, 0.5].map(|digits| decimal(digits, exponent));
    let fits = candidates
        .into_iter()
        .find(|candidate| *candidate <= number);
    fits.unwrap_or(number)
}

/// Returns the least of 1, 2 and 5 times a power of ten that is at least a positive number.
pub(crate) fn above(number: f64) -> f64 {
    let exponent = number.log10().floor() as i32;
    let candidates = [1.0, 2.0, 5.0, 10.0, 20.0].map(|digits| decimal(digits, exponent));
    let fits = candidates
        .into_iter()
        .find(|candidate| *candidate >= number);
    fits.unwrap_or(number)
}

/// Rounds a range with a margin outward to multiples of a round number of at least `least_step`.
fn outward([low, high]: [f64; 2], margin: f64, least_step: f64) -> [f64; 2] {
    let (step, exponent) = step(least_step);
    let times = |count: f64| decimal(count * step, exponent);
    let unit = decimal(step, exponent);
    let mut below = times(((low - margin) / unit).floor());
    let mut above = times(((high + margin) / unit).ceil());
    // A column without negative values in these rows rarely has them in others; the same for positive values.
    if low >= 0.0 {
        below = below.max(0.0);
    }
    if high <= 0.0 {
        above = above.min(0.0);
    }
    [below.min(low), above.max(high)]
}

/// Returns zero and powers of ten as bounds of tiny numbers, where a fifth of the width could underflow.
fn around_tiny([low, high]: [f64; 2]) -> [f64; 2] {
    let power = |size: f64| match size > 0.0 {
        true => decimal(1.0, size.log10().ceil() as i32).max(size),
        false => 0.0,
    };
    // Not −0.
    [0.0 - power(-low), power(high)]
}

/// Returns 1, 2 or 5 and the exponent of a power of ten whose product is this or a little more.
fn step(least: f64) -> (f64, i32) {
    let exponent = least.log10().floor() as i32;
    let digits = least / 10f64.powi(exponent);
    match digits {
        d if d <= 1.0 => (1.0, exponent),
        d if d <= 2.0 => (2.0, exponent),
        d if d <= 5.0 => (5.0, exponent),
        _ => (1.0, exponent + 1),
    }
}

/// Returns `digits · 10^exponent`, parsed as a decimal to avoid the rounding error of a product.
fn decimal(digits: f64, exponent: i32) -> f64 {
    let product = digits * 10f64.powi(exponent);
    format!("{digits}e{exponent}").parse().unwrap_or(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_round_and_contain_the_range() {
        assert_eq!(around([17.0, 90.0]), [0.0, 100.0]);
        assert_eq!(around([1990.0, 2020.0]), [1980.0, 2030.0]);
        assert_eq!(around([0.0, 99999.0]), [0.0, 120000.0]);
        assert_eq!(around([-3.0, 2.5]), [-4.0, 4.0]);
        assert_eq!(around([0.2, 0.9]), [0.0, 1.0]);
        assert_eq!(around([-0.2, 0.9]), [-1.0, 1.0]);
        assert_eq!(around([-40.0, -3.0]), [-50.0, 0.0]);
        assert_eq!(around([2.5, 9.0]), [2.0, 10.0]);
    }

    #[test]
    fn bounds_for_bins_are_close() {
        assert_eq!(close_around([18.0, 77.0]), [10.0, 80.0]);
        assert_eq!(close_around([0.0, 1.0]), [0.0, 1.0]);
        assert_eq!(close_around([1991.0, 2019.0]), [1990.0, 2020.0]);
        let [low, high] = close_around([1e-305, 2e-305]);
        assert!(low < high && low.is_finite() && high.is_finite());
    }

    #[test]
    fn single_bounds_are_one_two_or_five_times_a_power_of_ten() {
        assert_eq!(
            [3.0, 0.07, 100.0, 999.0].map(below),
            [2.0, 0.05, 100.0, 500.0]
        );
        assert_eq!(
            [3.0, 0.07, 100.0, 999.0].map(above),
            [5.0, 0.1, 100.0, 1000.0]
        );
    }

    #[test]
    fn bounds_of_small_numbers_are_small() {
        assert_eq!(around([1e-305, 8e-305]), [0.0, 1e-304]);
        assert_eq!(around([-3e-310, 2e-301]), [-1e-309, 1e-300]);
        assert_eq!(around([0.0, 5e-324]), [0.0, 1e-323]);
        assert_eq!(around([-2e-300, -1e-300]), [-1e-299, 0.0]);
        assert_eq!(around([1e-5, 9e-5]), [0.0, 1e-4]);
    }

    #[test]
    fn every_finite_range_is_contained() {
        let sizes = [
            0.0,
            5e-324,
            3e-308,
            1e-300,
            2e-290,
            1e-9,
            0.3,
            1.0,
            7.7,
            1e6,
            1e15,
            1e300,
            f64::MAX,
        ];
        let values: Vec<f64> = sizes.iter().flat_map(|x| [-x, *x]).collect();
        for low in &values {
            for high in values.iter().filter(|high| *high > low) {
                let [below, above] = around([*low, *high]);
                assert!(below.is_finite() && above.is_finite());
                assert!(below <= *low && above >= *high, "{low} {high}");
                assert!(below < above);
            }
        }
    }
}
