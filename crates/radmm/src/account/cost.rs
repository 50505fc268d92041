//! What an event costs, and how costs add up. Everything rounds up.

use super::Event;
use crate::private::Law;

/// The pure loss of an event by our bound; infinite where there is none.
pub(super) fn pure_loss(event: &Event) -> f64 {
    match *event {
        Event::Objective {
            sensitivity,
            spread,
            law: Law::Gamma { rate },
            ..
        } => up(up(sensitivity * rate) + ln_1p_up(spread)),
        Event::Additive {
            sensitivity,
            law: Law::Gamma { rate },
        } => up(sensitivity * rate),
        Event::Exact
        | Event::Objective {
            law: Law::Gaussian { .. },
            ..
        }
        | Event::Additive {
            law: Law::Gaussian { .. },
            ..
        } => f64::INFINITY,
    }
}

/// The paper's bound of an event (its Theorem IV.1), or which of its conditions fails.
pub(super) fn paper_loss(event: &Event) -> Result<f64, &'static str> {
    match *event {
        // 2C/B · 1.4c₁/m = 2.8x, and its condition 2c₁ < B·m/C is x < ½.
        Event::Objective {
            sensitivity,
            spread,
            law: Law::Gamma { rate },
            ..
        } => {
            if spread < 0.5 {
                Ok(up(up(sensitivity * rate) + up(2.8f64.next_up() * spread)))
            } else {
                Err("its side condition 2·c₁ < B·(ρ/N + 2ηV)/C fails")
            }
        }
        Event::Objective {
            law: Law::Gaussian { .. },
            ..
        }
        | Event::Additive {
            law: Law::Gaussian { .. },
            ..
        } => Err("it is about gamma noise"),
        Event::Exact | Event::Additive { .. } => Err("it is about objective perturbation"),
    }
}

/// The Rényi loss of order `q` by our bound.
fn renyi_loss(event: &Event, q: f64) -> f64 {
    match *event {
        Event::Objective {
            sensitivity,
            spread,
            one_signed,
            law: Law::Gaussian { sigma },
        } => {
            let v = up(sensitivity / sigma);
            let half_square = up(up(v * v) / 2.0);
            let tail = log_rectified_mgf(up((q - 1.0) * v), one_signed);
            up(up(ln_1p_up(spread) + half_square) + up(tail / (q - 1.0)))
        }
        Event::Additive {
            sensitivity,
            law: Law::Gaussian { sigma },
        } => {
            let v = up(sensitivity / sigma);
            up(up(q / 2.0 * v) * v)
        }
        // A pure loss ε bounds the Rényi loss of every order by ε, and by qε²/2 (Bun and Steinke 2016, Prop. 3.3).
        _ => {
            let pure = pure_loss(event);
            pure.min(up(up(q / 2.0 * pure) * pure))
        }
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

/// Losses added up: pure, and Rényi at each of [`orders`].
#[derive(Clone, Debug)]
pub(super) struct Total {
    pure: f64,
    renyi: Vec<f64>,
}

impl Total {
    pub(super) fn nothing() -> Self {
        Self {
            pure: 0.0,
            renyi: vec![0.0; orders().count()],
        }
    }

    pub(super) fn add(&mut self, event: &Event) {
        self.pure = up_unless_zero(self.pure + pure_loss(event));
        for (total, q) in self.renyi.iter_mut().zip(orders()) {
            *total = up_unless_zero(*total + renyi_loss(event, q));
        }
    }

    /// The least ε at this δ.
    pub(super) fn epsilon(&self, delta: f64) -> f64 {
        if delta == 0.0 || self.pure == 0.0 {
            return self.pure;
        }
        self.renyi
            .iter()
            .zip(orders())
            .map(|(&renyi, q)| renyi_to_epsilon(renyi, q, delta))
            .fold(self.pure, f64::min)
    }
}

/// `RDP(q) + ln(1 − 1/q) − (ln δ + ln q)/(q − 1)` (Canonne, Kamath and Steinke 2020), at least 0.
fn renyi_to_epsilon(renyi: f64, q: f64, delta: f64) -> f64 {
    let shrink = libm::log1p(-1.0 / q);
    let tail = -(libm::log(delta) + libm::log(q)) / (q - 1.0);
    let magnitude = renyi + shrink.abs() + tail.abs();
    // Five operations and three logarithms, each within an ulp or two of its term.
    (renyi + shrink + tail + 16.0 * f64::EPSILON * magnitude).max(0.0)
}

/// The Rényi orders at which losses are added up: `1 + 2^(k/4)`, from 1.016 to 262,145.
fn orders() -> impl Iterator<Item = f64> {
    (-24..=72).map(|k| 1.0 + libm::exp2(f64::from(k) / 4.0))
}

/// The next number up: at least the exact result of one correctly rounded operation.
pub(crate) fn up(x: f64) -> f64 {
    x.next_up()
}

/// Nothing spent stays exactly nothing.
fn up_unless_zero(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { up(x) }
}

/// `ln(1 + x)`, at least: the library is within one ulp.
pub(super) fn ln_1p_up(x: f64) -> f64 {
    up(up(libm::log1p(x)))
}
