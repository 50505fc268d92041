//! The privacy loss of one event, and sums that are never too small. Everything rounds up.

use super::slope_curve::loss_apart;
use super::{IdealRelease, PrivacyEvent, SlopeCurve};
use crate::privacy::NoiseDistribution;

/// Returns the pure loss of a release by our bound; infinite if it has none.
pub(super) fn pure_loss(event: &IdealRelease) -> f64 {
    match *event {
        IdealRelease::Objective {
            sensitivity,
            spread,
            curve,
            law: NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate },
        } => curve.pure_loss(up(sensitivity * rate), spread),
        IdealRelease::Additive {
            sensitivity,
            law: NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate },
        } => up(sensitivity * rate),
        IdealRelease::Exact
        | IdealRelease::Objective {
            law: NoiseDistribution::Gaussian { .. },
            ..
        }
        | IdealRelease::Additive {
            law: NoiseDistribution::Gaussian { .. },
            ..
        } => f64::INFINITY,
    }
}

/// Returns the loss by the paper's Theorem IV.1, or which of its conditions fails.
pub(super) fn paper_loss(event: &IdealRelease) -> Result<f64, &'static str> {
    match *event {
        // 2C/B · 1.4c₁/m = 2.8x, and its condition 2c₁ < B·m/C is x < ½.
        IdealRelease::Objective {
            sensitivity,
            spread,
            law: NoiseDistribution::Gamma { rate },
            ..
        } => {
            if spread < 0.5 {
                Ok(up(up(sensitivity * rate) + up(2.8f64.next_up() * spread)))
            } else {
                Err("its side condition 2·c₁ < B·(ρ/N + 2ηV)/C fails")
            }
        }
        IdealRelease::Objective {
            law: NoiseDistribution::Gaussian { .. } | NoiseDistribution::Laplace { .. },
            ..
        }
        | IdealRelease::Additive {
            law: NoiseDistribution::Gaussian { .. } | NoiseDistribution::Laplace { .. },
            ..
        } => Err("it is about gamma noise"),
        IdealRelease::Exact | IdealRelease::Additive { .. } => {
            Err("it is about objective perturbation")
        }
    }
}

/// Returns the Rényi loss of order `q` by our bound.
pub(super) fn renyi_loss(event: &IdealRelease, q: f64) -> f64 {
    match *event {
        IdealRelease::Objective {
            sensitivity,
            spread,
            curve,
            law: NoiseDistribution::Gaussian { sigma },
        } => {
            let v = up(sensitivity / sigma);
            let rectified = rectified_loss(v, spread, curve, q);
            rectified.min(substitution_loss(v, spread, q))
        }
        IdealRelease::Additive {
            sensitivity,
            law: NoiseDistribution::Gaussian { sigma },
        } => gaussian_loss(up(sensitivity / sigma), q),
        _ => renyi_of_pure(pure_loss(event), q),
    }
}

/// Returns `q·v²/2`, rounded up: the Rényi loss of Gaussian noise added to an answer.
fn gaussian_loss(v: f64, q: f64) -> f64 {
    up(up(q / 2.0 * v) * v)
}

/// Returns `ln(1+x) + v²/2 + ln(½ + e^{k²/2} Φ(k))/(q−1)` with `k = (q−1)v`, rounded up: objective perturbation by the moments
/// of a rectified normal (docs/privacy.md, Theorem 4).
fn rectified_loss(v: f64, spread: f64, curve: SlopeCurve, q: f64) -> f64 {
    let half_square = up(up(v * v) / 2.0);
    let tail = log_rectified_mgf(up((q - 1.0) * v), curve.is_one_signed());
    up(up(ln_1p_up(spread) + half_square) + up(tail / (q - 1.0)))
}

/// Returns `q·v²/2 − ln(1 − q(q−1)x²/(1+x))/(q−1)`, rounded up: objective perturbation by substitution (docs/privacy.md,
/// Theorem 4). Infinite unless `(q−1)x < 1`.
// Privacy: one row of one party is replaced. With g = ∇F_D and g′ = ∇F_D′ at the same f, H and H′ the Hessians, and ν the
// density of N(0, σ²I), the moment of order q is ∫ ν(g)^q ν(g′)^(1−q) det H^q det H′^(1−q) df, and
// ν(g)^q ν(g′)^(1−q) = ν(G)·exp(q(q−1)‖g − g′‖²/2σ²) with G = qg − (q−1)g′ and ‖g − g′‖ ≤ S. G is the gradient of a strongly
// convex function, since its Jacobian qH − (q−1)H′ is at least m(1 − (q−1)x) > 0. So it may be substituted, and what is left
// is the largest value of det H^q det H′^(1−q)/det(qH − (q−1)H′). With K the Hessian without the row, and a, a′ ≤ x and c the
// rank-one terms of the row and its replacement and their cross term in the metric of K, that is
//
//     (1+a)^q (1+a′)^(1−q) / [(1 + qa)(1 − (q−1)a′) + q(q−1)c²],
//
// largest at c = 0, growing in a and in a′, and at a = a′ = x equal to (1+x)/((1+qx)(1−(q−1)x)) = 1/(1 − q(q−1)x²/(1+x)).
pub(super) fn substitution_loss(v: f64, spread: f64, q: f64) -> f64 {
    // A difference of a double and one is exact.
    let less = q - 1.0;
    let square = up(up(spread * spread) / (1.0 + spread).next_down());
    let excess = up(up(q * less) * square);
    // Written so that a NaN costs everything.
    let applies = up(less * spread) < 1.0 && excess < 1.0;
    if !applies {
        return f64::INFINITY;
    }
    // The library's logarithm is within one ulp.
    let determinants = up(up(-libm::log1p(-excess)));
    up(gaussian_loss(v, q) + up(determinants / less))
}

/// Bounds the Rényi loss of order `q` of a release with pure loss ε, by ε and by qε²/2 (Bun and Steinke 2016, Prop. 3.3).
fn renyi_of_pure(pure: f64, q: f64) -> f64 {
    pure.min(up(up(q / 2.0 * pure) * pure))
}

/// The share `κ` of a release's price that covers its rounding; `2κ` is below a thousandth.
const SLACK: f64 = 1.0 / 2048.0;

/// Returns `κ` for a release on the grid, in proportion to its pure loss if it has one; for objective perturbation to the loss
/// without the pair of slope and curvature, which is at most a quarter more.
///
/// With Gaussian noise a total grows with the root of the number of releases and with `v = S/σ`. There `κ` is in proportion to
/// half of `v`, or to the moments of the rectified normal at order 2, which for small `v` and `x` are nearly that. The lesser
/// bound of that order is nearly `v²`, and would ask for more noise on the grid than it saves.
// Privacy: any κ is sound. It is charged first, and the noise on the grid is then chosen to fit it.
pub(super) fn slack_of(ideal: &IdealRelease) -> f64 {
    let price = match *ideal {
        IdealRelease::Additive {
            sensitivity,
            law: NoiseDistribution::Gaussian { sigma },
        } => sensitivity / sigma / 2.0,
        IdealRelease::Objective {
            sensitivity,
            spread,
            curve,
            law: NoiseDistribution::Gaussian { sigma },
        } => rectified_loss(up(sensitivity / sigma), spread, curve, 2.0),
        IdealRelease::Objective {
            sensitivity,
            spread,
            law: NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate },
            ..
        } => loss_apart(up(sensitivity * rate), spread),
        _ => pure_loss(ideal),
    };
    SLACK * price
}

// Privacy: with p and p′ the program's probabilities of a release for two neighbours and P and P′ the ideal ones,
// p ≤ e^κ·P and p′ ≥ e^−κ·P′. So ln(p/p′) ≤ ln(P/P′) + 2κ, and Σ p^q p′^(1−q) ≤ e^{κ + 2κ(q−1)}·Σ P^q P′^(1−q).
impl PrivacyEvent {
    /// Returns the pure loss by our bound; infinite if there is none.
    pub(super) fn pure_loss(&self) -> f64 {
        with_slack(pure_loss(&self.ideal), 2.0 * self.slack)
    }

    /// Returns the loss by the paper's bound, or which of its conditions fails.
    pub(super) fn paper_loss(&self) -> Result<f64, &'static str> {
        Ok(with_slack(paper_loss(&self.ideal)?, 2.0 * self.slack))
    }

    /// Returns the Rényi loss of order `q`, given the pure loss.
    pub(super) fn renyi_loss(&self, pure: f64, q: f64) -> f64 {
        if pure.is_finite() {
            return renyi_of_pure(pure, q);
        }
        let slack = up(2.0 * self.slack + up(self.slack / (q - 1.0)));
        with_slack(renyi_loss(&self.ideal, q), slack)
    }
}

pub(super) fn with_slack(loss: f64, slack: f64) -> f64 {
    if slack == 0.0 {
        loss
    } else {
        up(loss + up(slack))
    }
}

/// `ln E exp(k·max(0, Z)) = ln(½ + e^{k²/2} Φ(k))` for a slope of one sign, `ln E exp(k·|Z|) = ln(2 e^{k²/2} Φ(k))` else.
pub(super) fn log_rectified_mgf(k: f64, one_signed: bool) -> f64 {
    let square = up(up(k * k) / 2.0);
    // Taken out of the logarithm, so that large orders do not overflow.
    let phi = 0.5 * libm::erfc(-k / std::f64::consts::SQRT_2);
    let rest = if one_signed {
        libm::log(phi + 0.5 * libm::exp(-square))
    } else {
        libm::log(2.0 * phi)
    };
    // The logarithm's argument lies in [½, 2] and carries an absolute error of a few ulps of one.
    up(square + (rest + 16.0 * f64::EPSILON))
}

/// Returns the next double up: at least the exact result of one correctly rounded operation.
pub(crate) fn up(x: f64) -> f64 {
    x.next_up()
}

/// Returns a sum, rounded up. A sum of zeros is exactly zero.
pub(super) fn add(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum == 0.0 { 0.0 } else { up(sum) }
}

/// Returns `a + count·b`, rounded up.
pub(super) fn add_times(a: f64, count: u32, b: f64) -> f64 {
    match count {
        0 => a,
        1 => add(a, b),
        // A sum of zeros is exactly zero.
        _ if b == 0.0 => add(a, b),
        _ => add(a, up(f64::from(count) * b)),
    }
}

/// Returns `ln(1 + x)`, rounded up; the library is within one ulp.
pub(super) fn ln_1p_up(x: f64) -> f64 {
    up(up(libm::log1p(x)))
}

/// Returns the largest double from `low` on, which is taken to be good, below `high`, which is not. Both are at least 0.
pub(super) fn bisect(low: f64, high: f64, good: impl Fn(f64) -> bool) -> f64 {
    // Doubles that are not negative have the order of their bits.
    let (mut low, mut high) = (low.to_bits(), high.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match good(f64::from_bits(middle)) {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::from_bits(low)
}
