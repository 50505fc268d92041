//! The privacy loss of one event, and sums that are never too small. Everything rounds up.

use super::{IdealRelease, PrivacyEvent};
use crate::privacy::NoiseDistribution;

/// Returns the pure loss of a release by our bound; infinite if it has none.
pub(super) fn pure_loss(event: &IdealRelease) -> f64 {
    match *event {
        IdealRelease::Objective {
            sensitivity,
            spread,
            law: NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate },
            ..
        } => up(up(sensitivity * rate) + ln_1p_up(spread)),
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
            one_signed,
            law: NoiseDistribution::Gaussian { sigma },
        } => {
            let v = up(sensitivity / sigma);
            let half_square = up(up(v * v) / 2.0);
            let tail = log_rectified_mgf(up((q - 1.0) * v), one_signed);
            up(up(ln_1p_up(spread) + half_square) + up(tail / (q - 1.0)))
        }
        IdealRelease::Additive {
            sensitivity,
            law: NoiseDistribution::Gaussian { sigma },
        } => {
            let v = up(sensitivity / sigma);
            up(up(q / 2.0 * v) * v)
        }
        _ => renyi_of_pure(pure_loss(event), q),
    }
}

/// Bounds the Rényi loss of order `q` of a release with pure loss ε, by ε and by qε²/2 (Bun and Steinke 2016, Prop. 3.3).
fn renyi_of_pure(pure: f64, q: f64) -> f64 {
    pure.min(up(up(q / 2.0 * pure) * pure))
}

/// The share `κ` of a release's price that covers its rounding; `2κ` is below a thousandth.
const SLACK: f64 = 1.0 / 2048.0;

/// Returns `κ` for a release on the grid, in proportion to its pure loss if it has one.
///
/// With Gaussian noise a total grows with the root of the number of releases and with `v = S/σ`. There `κ` is in proportion to
/// half of `v`, or to the Rényi loss of order 2, which for small `v` is nearly that.
pub(super) fn slack_of(ideal: &IdealRelease) -> f64 {
    let price = match *ideal {
        IdealRelease::Additive {
            sensitivity,
            law: NoiseDistribution::Gaussian { sigma },
        } => sensitivity / sigma / 2.0,
        IdealRelease::Objective {
            law: NoiseDistribution::Gaussian { .. },
            ..
        } => renyi_loss(ideal, 2.0),
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

    pub(super) fn renyi_loss(&self, q: f64) -> f64 {
        let pure = self.pure_loss();
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
