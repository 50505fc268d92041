//! Exponentials and logarithms that vector units compute for many numbers at a time.
//!
//! They use plain multiplications, additions and divisions in a fixed order, no branches and no fused operations. The
//! compiler turns a loop of them over a slice into vector instructions of any width, and every width gives the same bits. The coefficients
//! interpolate at Chebyshev nodes and were computed with sixty digits.

/// The number of lanes.
pub(in crate::curator) const LANES: usize = 8;
/// One number per lane.
pub(in crate::curator) type Lanes = [f64; LANES];

/// Computes `f` for each lane.
#[inline(always)]
pub(in crate::curator) fn per_lane(f: impl Fn(usize) -> f64) -> Lanes {
    std::array::from_fn(f)
}

/// The value of `|z|` from which `e^−|z|`, which is below 10⁻³⁰⁷ there, counts as zero.
const EXP_CUTOFF: f64 = 707.0;

/// Returns `e^−|z|`, within 1.5 units in the last place.
///
/// With `n` the integer nearest to `−|z|/ln 2`, the rest `r = −|z| − n ln 2` is at most `½ ln 2`, and
/// `e^r = 1 + r + r²q(r)` with `q` of degree nine, accurate to 2·10⁻¹⁷.
#[inline(always)]
pub(in crate::curator) fn exp_minus_abs(z: f64) -> f64 {
    /// Adding this leaves the nearest integer in the last digits.
    const ROUNDING_SHIFT: f64 = 6755399441055744.0;
    /// `ln 2` as a sum: its first 33 digits, whose product with `n` is exact, and the rest.
    const LN2: (f64, f64) = (6.931471803691238e-1, 1.9082149292705877e-10);
    const Q: [f64; 10] = [
        0.5000000000000001,
        0.16666666666666669,
        0.04166666666662413,
        0.008333333333330062,
        0.0013888888917213717,
        0.00019841269863053618,
        2.4801521295954376e-5,
        2.7557268459997064e-6,
        2.7620088445409746e-7,
        2.510038549551032e-8,
    ];
    let size = z.abs();
    // Written so that NaN stays NaN.
    let x = if size >= EXP_CUTOFF {
        -EXP_CUTOFF
    } else {
        -size
    };
    let rounded = x * std::f64::consts::LOG2_E + ROUNDING_SHIFT;
    let n = rounded - ROUNDING_SHIFT;
    let r = (x - n * LN2.0) - n * LN2.1;
    let mut q = Q[9];
    for c in Q[..9].iter().rev() {
        q = q * r + c;
    }
    let exp_r = 1.0 + (r + r * r * q);
    // Times 2ⁿ, by adding n to the exponent.
    let power = exp_r.to_bits().wrapping_add(rounded.to_bits() << 52);
    if size >= EXP_CUTOFF {
        0.0
    } else {
        f64::from_bits(power)
    }
}

/// Returns `ln(1 + e)` for `0 ≤ e ≤ 1`, within 3 units in the last place, as `2 artanh(s)` with `s = e/(2 + e) ≤ ⅓`.
#[inline(always)]
pub(in crate::curator) fn log_one_plus(e: f64) -> f64 {
    /// The coefficients of `artanh(s)/s` in `s²`, accurate to 3·10⁻¹⁸.
    const P: [f64; 11] = [
        1.0,
        0.33333333333333076,
        0.20000000000092874,
        0.14285714272727057,
        0.11111112040373837,
        0.09090870416252403,
        0.07693307021152004,
        0.06650187016337313,
        0.06055084364034609,
        0.0416225325593041,
        0.08522081781390699,
    ];
    let s = e / (2.0 + e);
    let square = s * s;
    let mut p = P[10];
    for c in P[..10].iter().rev() {
        p = p * square + c;
    }
    2.0 * s * p
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error in units in the last place of `exact`.
    fn ulp_error(computed: f64, exact: f64) -> f64 {
        (computed - exact).abs() / (exact.next_up() - exact)
    }

    #[test]
    fn exponentials_are_accurate_to_two_units_in_the_last_place() {
        // libm documents an accuracy of one unit.
        let mut worst: f64 = 0.0;
        for n in 0..400_000 {
            let z = f64::from(n) * 1.7673e-3 * if n % 2 == 0 { 1.0 } else { -1.0 };
            if z.abs() < EXP_CUTOFF {
                worst = worst.max(ulp_error(exp_minus_abs(z), libm::exp(-z.abs())));
            }
        }
        assert!(worst <= 2.0, "{worst}");
    }

    #[test]
    fn exponentials_of_large_arguments_are_zero_and_nan_stays_nan() {
        for z in [EXP_CUTOFF, 1e6, f64::MAX, f64::INFINITY] {
            assert_eq!(exp_minus_abs(z), 0.0);
            assert_eq!(exp_minus_abs(-z), 0.0);
        }
        assert!(exp_minus_abs(f64::NAN).is_nan());
        assert_eq!(exp_minus_abs(0.0), 1.0);
        assert!(exp_minus_abs(EXP_CUTOFF.next_down()) > 0.0);
    }

    #[test]
    fn logarithms_are_accurate_to_three_units_in_the_last_place() {
        let mut worst: f64 = 0.0;
        for n in 1..=200_000 {
            let e = f64::from(n) / 200_000.0;
            for e in [e, e * e * e * 1e-9] {
                worst = worst.max(ulp_error(log_one_plus(e), libm::log1p(e)));
            }
        }
        assert!(worst <= 3.0, "{worst}");
        assert_eq!(log_one_plus(0.0), 0.0);
    }
}
