//! Bounds around numbers that were seen.

/// Bounds outside `[low, high]`, at round numbers. They tell less of the rows than the extremes do, but not nothing.
pub(crate) fn around([low, high]: [f64; 2]) -> [f64; 2] {
    // What usually has these bounds.
    for [below, above] in [[0.0, 1.0], [-1.0, 1.0]] {
        if low >= below && high <= above {
            return [below, above];
        }
    }
    let width = high - low;
    // Beyond 10³⁰⁰ nothing is round, and half of the range could overflow.
    if low.abs().max(high.abs()) > 1e300 {
        return [-f64::MAX, f64::MAX];
    }
    let margin = 0.05 * width.max(f64::EPSILON * low.abs().max(high.abs()));
    let (step, exponent) = step(width.max(margin));
    let times = |count: f64| decimal(count * step, exponent);
    let unit = decimal(step, exponent);
    let mut below = times(((low - margin) / unit).floor());
    let mut above = times(((high + margin) / unit).ceil());
    // What is never negative among the rows is rarely so elsewhere.
    if low >= 0.0 {
        below = below.max(0.0);
    }
    if high <= 0.0 {
        above = above.min(0.0);
    }
    [below.min(low), above.max(high)]
}

/// 1, 2 or 5, and a power of ten: a fifth of the width or a little more.
fn step(width: f64) -> (f64, i32) {
    let exponent = (width / 5.0).log10().floor() as i32;
    let digits = width / 5.0 / 10f64.powi(exponent);
    match digits {
        d if d <= 1.0 => (1.0, exponent),
        d if d <= 2.0 => (2.0, exponent),
        d if d <= 5.0 => (5.0, exponent),
        _ => (1.0, exponent + 1),
    }
}

/// `digits · 10^exponent` as its decimal is read, without the error of a product.
fn decimal(digits: f64, exponent: i32) -> f64 {
    let product = digits * 10f64.powi(exponent);
    format!("{digits}e{exponent}").parse().unwrap_or(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_round_and_outside() {
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
    fn bounds_hold_every_range() {
        let sizes = [
            0.0,
            5e-324,
            1e-300,
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
