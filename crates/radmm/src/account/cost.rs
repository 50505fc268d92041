//! What an event costs, and how costs add up. Everything rounds up.

use super::{Event, Ideal, gaussian};
use crate::private::Law;

/// The pure loss of an event by our bound; infinite where there is none.
pub(super) fn pure_loss(event: &Ideal) -> f64 {
    match *event {
        Ideal::Objective {
            sensitivity,
            spread,
            law: Law::Gamma { rate },
            ..
        } => up(up(sensitivity * rate) + ln_1p_up(spread)),
        Ideal::Additive {
            sensitivity,
            law: Law::Gamma { rate },
        } => up(sensitivity * rate),
        Ideal::Exact
        | Ideal::Objective {
            law: Law::Gaussian { .. },
            ..
        }
        | Ideal::Additive {
            law: Law::Gaussian { .. },
            ..
        } => f64::INFINITY,
    }
}

/// The paper's bound of an event (its Theorem IV.1), or which of its conditions fails.
pub(super) fn paper_loss(event: &Ideal) -> Result<f64, &'static str> {
    match *event {
        // 2C/B · 1.4c₁/m = 2.8x, and its condition 2c₁ < B·m/C is x < ½.
        Ideal::Objective {
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
        Ideal::Objective {
            law: Law::Gaussian { .. },
            ..
        }
        | Ideal::Additive {
            law: Law::Gaussian { .. },
            ..
        } => Err("it is about gamma noise"),
        Ideal::Exact | Ideal::Additive { .. } => Err("it is about objective perturbation"),
    }
}

/// The Rényi loss of order `q` by our bound.
pub(super) fn renyi_loss(event: &Ideal, q: f64) -> f64 {
    match *event {
        Ideal::Objective {
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
        Ideal::Additive {
            sensitivity,
            law: Law::Gaussian { sigma },
        } => {
            let v = up(sensitivity / sigma);
            up(up(q / 2.0 * v) * v)
        }
        _ => renyi_of_pure(pure_loss(event), q),
    }
}

/// A pure loss ε bounds the Rényi loss of every order by ε, and by qε²/2 (Bun and Steinke 2016, Prop. 3.3).
fn renyi_of_pure(pure: f64, q: f64) -> f64 {
    pure.min(up(up(q / 2.0 * pure) * pure))
}

/// The share of its price that the rounding of a release may cost, `2κ` of it: below a thousandth.
const SLACK: f64 = 1.0 / 2048.0;

/// `κ` for a release on the grid, in proportion to its pure loss where it has one. Of Gaussian noise the total grows with the
/// root of the number of releases and with `v = S/σ` in all: there it is in proportion to half of `v`, or to the Rényi loss
/// of order 2, which for small `v` is nearly that.
pub(super) fn slack_of(ideal: &Ideal) -> f64 {
    let price = match *ideal {
        Ideal::Additive {
            sensitivity,
            law: Law::Gaussian { sigma },
        } => sensitivity / sigma / 2.0,
        Ideal::Objective {
            law: Law::Gaussian { .. },
            ..
        } => renyi_loss(ideal, 2.0),
        _ => pure_loss(ideal),
    };
    SLACK * price
}

// Privacy: with p and p′ the program's probabilities of a release for two neighbours and P and P′ the ideal ones,
// p ≤ e^κ·P and p′ ≥ e^−κ·P′. So ln(p/p′) ≤ ln(P/P′) + 2κ, and Σ p^q p′^(1−q) ≤ e^{κ + 2κ(q−1)}·Σ P^q P′^(1−q).
impl Event {
    /// The pure loss by our bound; infinite where there is none.
    pub(super) fn pure_loss(&self) -> f64 {
        with_slack(pure_loss(&self.ideal), 2.0 * self.slack)
    }

    /// The paper's bound, or which of its conditions fails.
    pub(super) fn paper_loss(&self) -> Result<f64, &'static str> {
        Ok(with_slack(paper_loss(&self.ideal)?, 2.0 * self.slack))
    }

    fn renyi_loss(&self, q: f64) -> f64 {
        let pure = self.pure_loss();
        if pure.is_finite() {
            return renyi_of_pure(pure, q);
        }
        let slack = up(2.0 * self.slack + up(self.slack / (q - 1.0)));
        with_slack(renyi_loss(&self.ideal, q), slack)
    }
}

fn with_slack(loss: f64, slack: f64) -> f64 {
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

/// Losses added up: pure, Rényi at each of [`orders`], and exactly where all noise is added to answers.
#[derive(Clone, Debug)]
pub(super) struct Total {
    pure: f64,
    renyi: Vec<f64>,
    /// `Σ v²` of answers with Gaussian noise.
    square: f64,
    /// `Σ κ` of the same.
    slack: f64,
    /// The pure loss of everything else.
    beside: f64,
}

impl Total {
    pub(super) fn nothing() -> Self {
        Self {
            pure: 0.0,
            renyi: vec![0.0; orders().count()],
            square: 0.0,
            slack: 0.0,
            beside: 0.0,
        }
    }

    pub(super) fn add(&mut self, event: &Event) {
        let pure = event.pure_loss();
        add_up(&mut self.pure, pure);
        for (total, q) in self.renyi.iter_mut().zip(orders()) {
            add_up(total, event.renyi_loss(q));
        }
        match event.ideal {
            Ideal::Additive {
                sensitivity,
                law: Law::Gaussian { sigma },
            } => {
                let v = up(sensitivity / sigma);
                add_up(&mut self.square, up(v * v));
                add_up(&mut self.slack, event.slack);
            }
            _ => add_up(&mut self.beside, pure),
        }
    }

    /// The least ε at this δ that one of the ways to add up gives. Each of them is a bound for everything that was added, and
    /// none depends on what was released, so that the best may be taken afterwards.
    pub(super) fn epsilon(&self, delta: f64) -> f64 {
        if delta == 0.0 || self.pure == 0.0 {
            return self.pure;
        }
        self.pure
            .min(self.by_renyi(delta))
            .min(self.by_profile(delta))
    }

    /// The same after an ε of `before`: the searches behind it end within a few roundings, and a total never shrinks.
    pub(super) fn epsilon_after(&self, before: f64, delta: f64) -> f64 {
        let epsilon = self.epsilon(delta);
        // Written so that a NaN stays one.
        if epsilon < before { before } else { epsilon }
    }

    /// ε at this δ by the pure losses, or by the Rényi losses of one order that is fixed beforehand; infinite if the order is
    /// not one of those at which losses are added up.
    // Privacy: these two may be compared with a limit even if prices are chosen by what was released before. While pure
    // losses add up to ε at most, the ratio of a transcript is at most e^ε. While Rényi losses of a fixed order add up to at
    // most what that order may cost, the transcript is (ε, δ)-private (Feldman and Zrnic 2021). Split the transcripts of a set
    // into those of the first kind and the others: P ≤ e^ε·P′ on the one part and P ≤ e^ε·P′ + δ on the other.
    pub(super) fn epsilon_at_order(&self, order: f64, delta: f64) -> f64 {
        let fixed = self.renyi.iter().zip(orders()).filter(|at| at.1 == order);
        let by_order = |(&renyi, q)| renyi_to_epsilon(renyi, q, delta);
        fixed.map(by_order).fold(self.pure, f64::min)
    }

    /// By Rényi losses: for everything.
    pub(super) fn by_renyi(&self, delta: f64) -> f64 {
        self.renyi
            .iter()
            .zip(orders())
            .map(|(&renyi, q)| renyi_to_epsilon(renyi, q, delta))
            .fold(f64::INFINITY, f64::min)
    }

    /// By the exact privacy profile of Gaussian answers, pure losses on top: finite where nothing else was released.
    // Privacy: with p the program's probabilities of a set of releases, P those with ideal Gaussian answers, and
    // K = Σκ, e^−K·P ≤ p ≤ e^K·P pointwise. So from P ≤ e^ε·P′ + δ₀ follows p ≤ e^K·P ≤ e^(ε + K)·P′ + e^K·δ₀
    // ≤ e^(ε + 2K)·p′ + e^K·δ₀: what is wanted at δ, with ε taken at δ₀ = δ·e^−K.
    pub(super) fn by_profile(&self, delta: f64) -> f64 {
        let beside = with_slack(self.beside, 2.0 * self.slack);
        if beside.is_finite() {
            let log_delta = log_down(delta) - self.slack;
            add(
                beside,
                gaussian::epsilon(self.square, log_delta.next_down()),
            )
        } else {
            f64::INFINITY
        }
    }
}

/// `RDP(q) + ln(1 − 1/q) − (ln δ + ln q)/(q − 1)` (Canonne, Kamath and Steinke 2020), at least 0.
pub(super) fn renyi_to_epsilon(renyi: f64, q: f64, delta: f64) -> f64 {
    // q − 1 is exact, and so a logarithm of 1 + 1/(q − 1) is as exact as the library's.
    let shrink = -libm::log1p(1.0 / (q - 1.0));
    let (log_delta, log_q) = (libm::log(delta), libm::log(q));
    let tail = -(log_delta + log_q) / (q - 1.0);
    // Not |tail|: the two logarithms may cancel, their errors do not.
    let magnitude = renyi + shrink.abs() + (log_delta.abs() + log_q.abs()) / (q - 1.0);
    // Six operations and three logarithms, each within an ulp or two of its term.
    (renyi + shrink + tail + 16.0 * f64::EPSILON * magnitude).max(0.0)
}

/// The Rényi orders at which losses are added up: `1 + 2^(k/4)`, from 1.016 to 262,145.
fn orders() -> impl Iterator<Item = f64> {
    (-24..=72).map(|k| 1.0 + libm::exp2(f64::from(k) / 4.0))
}

/// The order at which most Gaussian answers fit into ε at δ: `q·ρ` of them and the conversion are at most ε.
pub(super) fn order_for(epsilon: f64, delta: f64) -> f64 {
    let room = |q: f64| (epsilon - renyi_to_epsilon(0.0, q, delta)) / q;
    let better = |best: f64, q: f64| if room(q) > room(best) { q } else { best };
    orders().fold(2.0, better)
}

/// The next number up: at least the exact result of one correctly rounded operation.
pub(crate) fn up(x: f64) -> f64 {
    x.next_up()
}

/// A sum, at least. Nothing stays exactly nothing.
fn add(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum == 0.0 { 0.0 } else { up(sum) }
}

fn add_up(total: &mut f64, loss: f64) {
    *total = add(*total, loss);
}

/// A logarithm, at most: the library is within one ulp.
fn log_down(x: f64) -> f64 {
    libm::log(x).next_down().next_down()
}

/// `ln(1 + x)`, at least: the library is within one ulp.
pub(super) fn ln_1p_up(x: f64) -> f64 {
    up(up(libm::log1p(x)))
}
