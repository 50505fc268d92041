//! Gaussian noise added to answers, composed exactly: the privacy loss distribution is known in closed form.
//!
//! Answers with noise of scale `σ_i` and sensitivity `S_i`, however they are chosen, reveal no more together than one
//! answer with `μ² = Σ (S_i/σ_i)²`, whose privacy loss is normal with mean `μ²/2` and variance `μ²`. So the least `δ` at
//! `ε` is (Balle and Wang 2018; Dong, Roth and Su 2022)
//!
//! ```text
//! δ(ε) = Φ(−x) − e^ε·Φ(−x − μ) = φ(x)·(R(x) − R(x + μ)),   x = ε/μ − μ/2,   R(t) = Φ(−t)/φ(t) = ∫₀^∞ e^(−ts − s²/2) ds
//! ```
//! Here `x` is sought, not `ε`: at a double `x` the right side is evaluated with `x` and `μ` exact, and `ε = μx + μ²/2` is
//! then rounded up, which only lowers `δ`. Nothing is discretised.

// Privacy: the neighbours differ in one row of one party. Let `L` be the log ratio of the probabilities of everything
// released, a sum over releases, each given what came before. Releases with a pure loss add at most `ε₀` to it in all.
// Given the past, an answer with Gaussian noise adds a normal `L_i` of mean `a²/2` and variance `a²`, with `a ≤ v_i`,
// whatever the question. With `h(ε, s) = E(1 − e^(ε − Z))⁺` for `Z` normal of mean `s/2` and variance `s`,
//
//     P(S) − e^(ε₀ + ε)·P′(S) ≤ E(1 − e^(ε₀ + ε − L))⁺ ≤ E(1 − e^(ε − ΣL_i))⁺ ≤ h(ε, Σv_i²) = δ(ε).
//
// The last step goes from the last answer to the first: given the past of answer i, E h(ε − L_i, s) = h(ε, a² + s), since
// normal variables add up, and h grows with s (∂δ/∂μ = φ(x) > 0). Pure releases in between change nothing: they are part of
// the past. It would hold for sensitivities chosen on the way too, as long as Σv_i² stays below μ². What is done to an
// answer before it is released, such as putting it on a grid, is post-processing.

use std::f64::consts::FRAC_1_SQRT_2;

use super::privacy_loss::{bisect, up};

/// `√(2π)` and its logarithm.
const SQRT_2PI: f64 = 2.506_628_274_631_000_5;
const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;

/// A margin of 64 roundings, above the error of the functions below as counted there.
const MARGIN: f64 = 32.0 * f64::EPSILON;

/// Returns the `ε ≥ 0` at which `δ(ε) = e^log_delta`, rounded up, for `μ² = square`.
pub(super) fn epsilon(square: f64, log_delta: f64) -> f64 {
    if square == 0.0 {
        return 0.0;
    }
    let mu = up(libm::sqrt(square));
    // At −μ/2 ε is zero; at −10 δ is above every double below one.
    let lowest = (-mu / 2.0).max(-10.0);
    // Enough, since δ ≤ Φ(−x) ≤ ½·e^(−x²/2).
    let mut x = libm::sqrt(-2.0 * log_delta);
    let mut log = log_profile(x, mu);
    // Written so that a NaN costs everything.
    let enough = mu.is_finite() && log <= log_delta;
    if !enough {
        return f64::INFINITY;
    }
    if log_profile(lowest, mu) <= log_delta {
        return 0.0;
    }
    // ln δ is concave in x, being the logarithm of an integral of a log-concave function, so that Newton's steps come down
    // to the solution and do not pass it but by rounding. Whatever they do, x moves only to where δ was seen to be kept.
    for _ in 0..200 {
        let newton = (x - (log_delta - log) / log_slope(x, mu, log)).max(lowest);
        let better = (0..8)
            .map(|k| newton + 4.0 * f64::EPSILON * (1u64 << (6 * k)) as f64 * (1.0 + x.abs()))
            .take_while(|next| *next < x)
            .map(|next| (next, log_profile(next, mu)))
            .find(|(_, log)| *log <= log_delta);
        match better {
            Some(better) => (x, log) = better,
            None => break,
        }
    }
    up(up(mu * x) + up(up(mu * mu) / 2.0)).max(0.0)
}

/// Returns the largest `μ` whose [`epsilon`] is at most this one, rounded down.
// Privacy: whatever the search does, it ends at a μ whose ε, rounded up, was seen to be kept.
pub(super) fn mu(most: f64, log_delta: f64) -> f64 {
    let kept = |mu: f64| epsilon(up(mu * mu), log_delta) <= most;
    if most == f64::INFINITY {
        return most;
    }
    let mut high = 1.0;
    // ε is infinite where μ² is.
    while kept(high) {
        high *= 2.0;
    }
    bisect(0.0, high, kept)
}

/// Returns `ln δ` at `x ≥ −μ/2`, rounded up.
fn log_profile(x: f64, mu: f64) -> f64 {
    // R decreases: rounding its argument up makes it smaller, and the difference larger.
    let far = Mills::at(up(x + mu).max(0.0));
    if x < 0.0 {
        // Φ(−x) lies in [½, 1] and what is taken away in [0, 1]: each is known to a few roundings of one.
        return log_up(normal(-x) - density(x) * far.least + MARGIN);
    }
    let near = Mills::at(x);
    let difference = near.most - far.least;
    // R is completely monotone, so −R′ is convex, and the trapezoid lies above its integral from x to x + μ. That is the
    // better bound where μ is so small that the difference drowns in rounding.
    let trapezoid = mu * ((near.slope + far.slope) / 2.0) * (1.0 + MARGIN);
    let (log, square) = (log_up(difference.min(trapezoid)), x * x / 2.0);
    // Four terms and sums, each within a rounding or two of its size.
    log - square - LN_SQRT_2PI + 8.0 * f64::EPSILON * (log.abs() + square + 1.0)
}

/// Approximates `−∂ ln δ/∂x = μ·φ(x)·R(x + μ)/δ`. It steers the search and proves nothing.
fn log_slope(x: f64, mu: f64, log_profile: f64) -> f64 {
    let tail = Mills::at((x + mu).max(0.0)).least;
    mu * tail * libm::exp(-x * x / 2.0 - LN_SQRT_2PI - log_profile)
}

/// Returns the logarithm, rounded up; the library is within one ulp.
fn log_up(value: f64) -> f64 {
    up(up(libm::log(value)))
}

fn density(x: f64) -> f64 {
    libm::exp(-x * x / 2.0 - LN_SQRT_2PI)
}

fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Bounds of `R(t)`, and from above of `−R′(t) = 1 − t·R(t)`, at `t ≥ 0`.
struct Mills {
    least: f64,
    most: f64,
    slope: f64,
}

impl Mills {
    fn at(t: f64) -> Self {
        if t < 3.0 {
            // The rounded argument moves erfc by t² + 1 times as many roundings, 20 at most; with those of e^(t²/2), of the
            // two functions (each within an ulp) and of the products they are below 40.
            let ratio = SQRT_2PI * libm::exp(t * t / 2.0) * normal(-t);
            let least = ratio * (1.0 - MARGIN);
            return Self {
                least,
                most: ratio * (1.0 + MARGIN),
                slope: up(1.0 - (t * least).next_down()),
            };
        }
        // R = 1/(t + 1/T) and 1 − t·R = 1/(1 + t·T) with T = t + 2/(t + 3/(t + …)), a continued fraction (Laplace) that lies
        // between its convergents. Its terms are positive and damp the roundings before them: below 20 in all.
        let (low, high) = (tail(t, 41), tail(t, 40));
        Self {
            least: (1.0 - MARGIN) / (t + 1.0 / low),
            most: (1.0 + MARGIN) / (t + 1.0 / high),
            slope: (1.0 + MARGIN) / (1.0 + t * low),
        }
    }
}

/// `t + 2/(t + 3/(t + … + n/t))`: above `T` for even `n`, below for odd.
fn tail(t: f64, n: u32) -> f64 {
    (2..=n).rev().fold(t, |tail, k| t + f64::from(k) / tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_mills_ratio_are_bounds_and_close() {
        // t, R(t) and 1 − t·R(t) with 80 digits (mpmath 1.3), rounded to doubles.
        let table = [
            (0.0, 1.2533141373155003, 1.0),
            (0.1, 1.1592623996187363, 0.8840737600381263),
            (0.37, 0.9547519790775466, 0.6467417677413078),
            (0.8, 0.7313136905922404, 0.41494904752620765),
            (1.0, 0.6556795424187984, 0.34432045758120156),
            (1.3, 0.5648671289696161, 0.265672732339499),
            (1.9, 0.43764692878712086, 0.16847083530447035),
            (2.2, 0.39192690875310815, 0.13776080074316205),
            (2.7, 0.3326931666670028, 0.10172844999909235),
            (2.99, 0.3054548907036707, 0.08668987679602445),
            (3.0, 0.3045902987101033, 0.08622910386969011),
            (3.3, 0.2806413905555233, 0.07388341116677323),
            (4.1, 0.23142643286975406, 0.0511516252340084),
            (5.5, 0.1763229857571027, 0.030223578335935124),
            (7.7, 0.12778215528758996, 0.016077404285557227),
            (12.3, 0.08077374834390502, 0.006482895369968148),
            (25.0, 0.039936304769535594, 0.0015923807616101868),
            (38.0, 0.026297602974252963, 0.0006910869783873536),
            (1000.0, 0.0009999990000029999, 9.99997000015e-07),
            (1000000000.0, 1e-09, 1e-18),
        ];
        for (t, ratio, slope) in table {
            let bounds = Mills::at(t);
            assert!(bounds.least <= ratio && ratio <= bounds.most, "{t}");
            assert!(bounds.least >= ratio * (1.0 - 3e-14), "{t}");
            assert!(bounds.most <= ratio * (1.0 + 3e-14), "{t}");
            assert!(bounds.slope >= slope, "{t}");
            assert!(bounds.slope <= slope * (1.0 + 1e-13), "{t}");
        }
    }

    #[test]
    fn the_profile_is_bounded_from_above_and_closely() {
        // x, μ and ln δ with 80 digits (mpmath 1.3).
        let table = [
            (0.0, 1.0, -1.4337142903236977),
            (0.3, 0.001, -8.229722569569246),
            (1.7, 0.25, -5.476535624067394),
            (2.9, 1e-05, -19.03377468051844),
            (4.26, 1.0, -13.220856106729462),
            (3.0, 2.0, -7.610141530744111),
            (6.1, 1e-09, -43.937906560061116),
            (9.5, 0.7, -51.00425038645898),
            (20.0, 3.0, -205.95806699659394),
            (37.0, 0.1, -694.948238441755),
            (-0.2, 0.5, -1.6739843630443823),
            (-0.4, 1.0, -1.0432007466234303),
            (-3.0, 7.5, -0.0022946092242793837),
        ];
        for (x, mu, exact) in table {
            let excess = log_profile(x, mu) - exact;
            assert!(excess >= 0.0, "x = {x}, μ = {mu}: {excess:e}");
            // Some roundings of the sum, and the margin in R over what is left of R in the difference, about x/μ times less.
            let close = 4e-15 * exact.abs() + 3e-14 * (1.0 + x.abs()) / mu.clamp(1e-5, 1.0);
            assert!(excess <= close, "x = {x}, μ = {mu}: {excess:e}");
        }
    }

    #[test]
    fn a_search_ends_where_delta_is_just_kept() {
        for mu in [1e-3, 0.1, 1.0, 9.0, 300.0] {
            for log_delta in [-700.0, -40.0, -11.5, -2.0] {
                let found = epsilon(mu * mu, log_delta);
                if found > 0.0 {
                    // Back at x a little lower, δ is exceeded: nothing is given away that double precision could keep.
                    let x = found / mu - mu / 2.0;
                    assert!(log_profile(x - 1e-7, mu) > log_delta, "{mu} {log_delta}");
                    assert!(log_profile(x + 1e-7, mu) <= log_delta, "{mu} {log_delta}");
                }
            }
        }
    }
}
