//! Exponentials and logarithms of eight numbers at a time.
//!
//! Plain multiplications, additions and divisions in a fixed order, no branches, no fused operations: the compiler turns them
//! into vector instructions of any width, and every width gives the same bits. Coefficients interpolate at Chebyshev nodes,
//! computed with sixty digits.

/// How many numbers go side by side.
pub(in crate::curator) const LANES: usize = 8;
pub(in crate::curator) type Eight = [f64; LANES];

#[inline(always)]
pub(in crate::curator) fn each(f: impl Fn(usize) -> f64) -> Eight {
    std::array::from_fn(f)
}

/// From here on `e^−|z|` is taken for zero. It is below 10⁻³⁰⁷.
const FAR: f64 = 707.0;

/// `e^−|z|`, within 1.5 units in the last place.
///
/// With `n` the integer nearest to `−|z|/ln 2`, the rest `r = −|z| − n ln 2` is at most `½ ln 2`, and `e^r = 1 + r + r²q(r)` with
/// `q` of degree nine, good to 2·10⁻¹⁷.
#[inline(always)]
pub(in crate::curator) fn exp_minus_abs(z: &Eight) -> Eight {
    /// Adding it leaves the nearest integer in the last digits.
    const ROUND: f64 = 6755399441055744.0;
    /// Of `ln 2`: 33 digits, so that its product with `n` is exact, and the rest.
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
    each(|k| {
        let size = z[k].abs();
        // Written so that what is not a number stays so.
        let x = if size >= FAR { -FAR } else { -size };
        let rounded = x * std::f64::consts::LOG2_E + ROUND;
        let n = rounded - ROUND;
        let r = (x - n * LN2.0) - n * LN2.1;
        let mut q = Q[9];
        for c in Q[..9].iter().rev() {
            q = q * r + c;
        }
        let near_one = 1.0 + (r + r * r * q);
        // Times 2ⁿ, by adding n to the exponent.
        let power = near_one.to_bits().wrapping_add(rounded.to_bits() << 52);
        if size >= FAR {
            0.0
        } else {
            f64::from_bits(power)
        }
    })
}

/// `ln(1 + e)` for `0 ≤ e ≤ 1`, within 3 units in the last place: `2 artanh(s)` with `s = e/(2 + e) ≤ ⅓`.
#[inline(always)]
pub(in crate::curator) fn log_one_plus(e: &Eight) -> Eight {
    /// Of `artanh(s)/s` in `s²`, good to 3·10⁻¹⁸.
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
    each(|k| {
        let s = e[k] / (2.0 + e[k]);
        let square = s * s;
        let mut p = P[10];
        for c in P[..10].iter().rev() {
            p = p * square + c;
        }
        2.0 * s * p
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In units in the last place of `right`.
    fn off(got: f64, right: f64) -> f64 {
        (got - right).abs() / (right.next_up() - right)
    }

    #[test]
    fn exponentials_are_good_to_the_last_place() {
        // libm's are good to one unit, as it says.
        let mut worst: f64 = 0.0;
        for n in 0..400_000 {
            let z = f64::from(n) * 1.7673e-3 * if n % 2 == 0 { 1.0 } else { -1.0 };
            if z.abs() < FAR {
                worst = worst.max(off(
                    exp_minus_abs(&[z; 8])[n as usize % 8],
                    libm::exp(-z.abs()),
                ));
            }
        }
        assert!(worst <= 2.0, "{worst}");
    }

    #[test]
    fn far_out_exponentials_vanish_and_nothing_overflows() {
        for z in [FAR, 1e6, f64::MAX, f64::INFINITY] {
            assert_eq!(exp_minus_abs(&[z; 8]), [0.0; 8]);
            assert_eq!(exp_minus_abs(&[-z; 8]), [0.0; 8]);
        }
        assert!(exp_minus_abs(&[f64::NAN; 8])[0].is_nan());
        assert_eq!(exp_minus_abs(&[0.0; 8]), [1.0; 8]);
        assert!(exp_minus_abs(&[FAR.next_down(); 8])[0] > 0.0);
    }

    #[test]
    fn logarithms_are_good_to_the_last_places() {
        let mut worst: f64 = 0.0;
        for n in 1..=200_000 {
            let e = f64::from(n) / 200_000.0;
            for e in [e, e * e * e * 1e-9] {
                worst = worst.max(off(log_one_plus(&[e; 8])[3], libm::log1p(e)));
            }
        }
        assert!(worst <= 3.0, "{worst}");
        assert_eq!(log_one_plus(&[0.0; 8]), [0.0; 8]);
    }
}
