//! Composition: the total privacy loss of many events, and its `ε` at a `δ`. Everything rounds up.

use std::sync::{Arc, LazyLock};

use super::privacy_loss::{add, add_times, up, with_slack};
use super::{IdealRelease, PrivacyEvent, gaussian_composition};
use crate::privacy::NoiseDistribution;

/// The losses of one or many events, under every composition rule.
#[derive(Debug)]
struct Losses {
    pure: f64,
    /// The loss by the paper's bound, if its theorem covers everything.
    paper: Option<f64>,
    /// Rényi losses at each of [`orders`]; empty for no events, and where only pure losses are composed.
    renyi: Vec<f64>,
    /// `Σ v²` over answers with Gaussian noise.
    square: f64,
    /// `Σ κ` over the same answers.
    slack: f64,
    /// The pure loss of all other events.
    other_pure: f64,
}

impl Losses {
    fn empty() -> Self {
        Self {
            pure: 0.0,
            paper: Some(0.0),
            renyi: Vec::new(),
            square: 0.0,
            slack: 0.0,
            other_pure: 0.0,
        }
    }

    fn of(event: &PrivacyEvent, rules: Rules) -> Self {
        let pure = event.pure_loss();
        let one = Self {
            pure,
            paper: event.paper_loss().ok(),
            renyi: match rules {
                Rules::Pure => Vec::new(),
                Rules::All => orders().map(|at| event.renyi_loss(pure, at.q)).collect(),
            },
            square: 0.0,
            slack: 0.0,
            other_pure: 0.0,
        };
        match event.ideal {
            IdealRelease::Additive {
                sensitivity,
                law: NoiseDistribution::Gaussian { sigma },
            } => {
                let v = up(sensitivity / sigma);
                Self {
                    square: up(v * v),
                    slack: event.slack,
                    ..one
                }
            }
            _ => Self {
                other_pure: pure,
                ..one
            },
        }
    }

    /// Returns the losses of these events and `count` times those of `other`.
    fn plus(&self, count: u32, other: &Self) -> Self {
        let sum = |of: fn(&Self) -> f64| add_times(of(self), count, of(other));
        let paper = self.paper.zip(other.paper);
        let renyi = |k| add_times(self.renyi(k), count, other.renyi(k));
        Self {
            pure: sum(|losses| losses.pure),
            paper: paper.map(|(a, b)| add_times(a, count, b)),
            renyi: (0..other.renyi.len()).map(renyi).collect(),
            square: sum(|losses| losses.square),
            slack: sum(|losses| losses.slack),
            other_pure: sum(|losses| losses.other_pure),
        }
    }

    fn renyi(&self, k: usize) -> f64 {
        self.renyi.get(k).copied().unwrap_or(0.0)
    }
}

/// The composition rules that are evaluated.
#[derive(Clone, Copy, Debug)]
enum Rules {
    /// Pure composition only, which is enough at `δ = 0`.
    Pure,
    All,
}

/// Composed losses: pure, Rényi at each of [`orders`], and exact for Gaussian noise added to answers.
///
/// Consecutive equal events are counted and their loss is multiplied: a thousand of them take as much work as one, and `n` at
/// once give the same bits as `n` one after the other.
#[derive(Clone, Debug)]
pub(super) struct Composition {
    rules: Rules,
    /// The losses of everything before the last run of equal events.
    before: Arc<Losses>,
    /// The losses of one event of that run.
    each: Arc<Losses>,
    /// The event of that run; `None` before the first event.
    event: Option<PrivacyEvent>,
    count: u32,
}

impl Composition {
    pub(super) fn empty() -> Self {
        let empty = Arc::new(Losses::empty());
        Self {
            rules: Rules::All,
            before: empty.clone(),
            each: empty,
            event: None,
            count: 0,
        }
    }

    /// Returns an empty composition that is evaluated at this `δ` only.
    pub(super) fn empty_at(delta: f64) -> Self {
        Self {
            rules: if delta == 0.0 {
                Rules::Pure
            } else {
                Rules::All
            },
            ..Self::empty()
        }
    }

    /// Adds one event.
    pub(super) fn add(&mut self, event: &PrivacyEvent) {
        self.add_times(event, 1);
    }

    /// Adds an event `count` times.
    pub(super) fn add_times(&mut self, event: &PrivacyEvent, count: u32) {
        if self.event != Some(*event) {
            self.before = Arc::new(self.before.plus(self.count, &self.each));
            self.each = Arc::new(Losses::of(event, self.rules));
            self.event = Some(*event);
            self.count = 0;
        }
        self.count += count;
    }

    fn sum(&self, of: fn(&Losses) -> f64) -> f64 {
        add_times(of(&self.before), self.count, of(&self.each))
    }

    fn pure(&self) -> f64 {
        self.sum(|losses| losses.pure)
    }

    /// Returns the loss by the paper's bound, if its theorem covers everything.
    pub(super) fn paper(&self) -> Option<f64> {
        let (before, each) = self.before.paper.zip(self.each.paper)?;
        Some(add_times(before, self.count, each))
    }

    /// Iterates over Rényi losses with their orders; empty where only pure losses are composed.
    fn renyi(&self) -> impl Iterator<Item = (f64, &RenyiOrder)> {
        let sum = |k| add_times(self.before.renyi(k), self.count, self.each.renyi(k));
        let count = match self.rules {
            Rules::Pure => 0,
            Rules::All => ORDERS.len(),
        };
        ORDERS
            .iter()
            .take(count)
            .enumerate()
            .map(move |(k, at)| (sum(k), at))
    }

    /// Returns the least ε at this δ over all composition rules.
    ///
    /// Each rule bounds everything that was added, and none depends on what was released, so the best may be taken afterwards.
    pub(super) fn epsilon(&self, delta: f64) -> f64 {
        let pure = self.pure();
        if delta == 0.0 || pure == 0.0 {
            return pure;
        }
        pure.min(self.by_renyi(delta)).min(self.by_profile(delta))
    }

    /// Returns [`epsilon`](Self::epsilon), but at least `before`: searches end within a few roundings, and a total never shrinks.
    pub(super) fn epsilon_after(&self, before: f64, delta: f64) -> f64 {
        let epsilon = self.epsilon(delta);
        // Written so that a NaN stays one.
        if epsilon < before { before } else { epsilon }
    }

    /// Returns ε at this δ by pure losses, or by Rényi losses of one order that was fixed beforehand.
    ///
    /// Infinite if the order is not one of [`orders`] and there is no pure loss.
    // Privacy: these two may be compared with a limit even if prices are chosen by what was released before. While pure
    // losses add up to ε at most, the ratio of a transcript is at most e^ε. While Rényi losses of a fixed order add up to at
    // most what that order may cost, the transcript is (ε, δ)-private (Feldman and Zrnic 2021). Split the transcripts of a set
    // into those of the first kind and the others: P ≤ e^ε·P′ on the one part and P ≤ e^ε·P′ + δ on the other.
    pub(super) fn epsilon_at_order(&self, order: f64, delta: f64) -> f64 {
        let fixed = self.renyi().filter(|(_, at)| at.q == order);
        let by_order = |(renyi, at): (f64, &RenyiOrder)| at.epsilon(renyi, libm::log(delta));
        fixed.map(by_order).fold(self.pure(), f64::min)
    }

    /// Returns ε by Rényi composition, which covers all noise.
    pub(super) fn by_renyi(&self, delta: f64) -> f64 {
        let log_delta = libm::log(delta);
        self.renyi()
            .map(|(renyi, at)| at.epsilon(renyi, log_delta))
            .fold(f64::INFINITY, f64::min)
    }

    /// Returns `Σ v²` over Gaussian answers.
    pub(super) fn square(&self) -> f64 {
        self.sum(|losses| losses.square)
    }

    /// Returns `μ`, the root of `Σ v²` over Gaussian answers, rounded up.
    pub(super) fn mu(&self) -> f64 {
        let square = self.square();
        if square == 0.0 {
            0.0
        } else {
            up(libm::sqrt(square))
        }
    }

    /// Returns whether nothing but Gaussian answers has a loss.
    pub(super) fn is_gaussian(&self) -> bool {
        self.sum(|losses| losses.other_pure) == 0.0
    }

    /// Returns the loss of everything beside Gaussian answers: pure losses, and `2κ` of each Gaussian answer. Infinite if
    /// something has no pure loss.
    pub(super) fn beside_gaussian(&self) -> f64 {
        let slack = self.sum(|losses| losses.slack);
        with_slack(self.sum(|losses| losses.other_pure), 2.0 * slack)
    }

    /// Returns ε by the exact privacy profile of Gaussian answers, with pure losses on top; infinite if anything else was released.
    // Privacy: with p the program's probabilities of a set of releases, P those with ideal Gaussian answers, and
    // K = Σκ, e^−K·P ≤ p ≤ e^K·P pointwise. So from P ≤ e^ε·P′ + δ₀ follows p ≤ e^K·P ≤ e^(ε + K)·P′ + e^K·δ₀
    // ≤ e^(ε + 2K)·p′ + e^K·δ₀: what is wanted at δ, with ε taken at δ₀ = δ·e^−K.
    pub(super) fn by_profile(&self, delta: f64) -> f64 {
        let beside = self.beside_gaussian();
        if beside.is_finite() {
            let log_delta = log_down(delta) - self.sum(|losses| losses.slack);
            let gaussian = gaussian_composition::epsilon(self.square(), log_delta.next_down());
            add(beside, gaussian)
        } else {
            f64::INFINITY
        }
    }
}

/// A Rényi order, with its logarithms.
#[derive(Debug)]
struct RenyiOrder {
    q: f64,
    /// `ln(1 − 1/q)`.
    shrink: f64,
    log: f64,
}

impl RenyiOrder {
    fn new(q: f64) -> Self {
        Self {
            q,
            // q − 1 is exact, and so a logarithm of 1 + 1/(q − 1) is as exact as the library's.
            shrink: -libm::log1p(1.0 / (q - 1.0)),
            log: libm::log(q),
        }
    }

    /// `RDP(q) + ln(1 − 1/q) − (ln δ + ln q)/(q − 1)` (Canonne, Kamath and Steinke 2020), at least 0.
    fn epsilon(&self, renyi: f64, log_delta: f64) -> f64 {
        let tail = -(log_delta + self.log) / (self.q - 1.0);
        // Not |tail|: the two logarithms may cancel, their errors do not.
        let logarithms = (log_delta.abs() + self.log.abs()) / (self.q - 1.0);
        let magnitude = renyi + self.shrink.abs() + logarithms;
        // Six operations and three logarithms, each within an ulp or two of its term.
        (renyi + self.shrink + tail + 16.0 * f64::EPSILON * magnitude).max(0.0)
    }
}

#[cfg(test)]
pub(super) fn renyi_to_epsilon(renyi: f64, q: f64, delta: f64) -> f64 {
    RenyiOrder::new(q).epsilon(renyi, libm::log(delta))
}

/// The Rényi orders at which losses are added up: `1 + 2^(k/4)`, from 1.016 to 262,145.
static ORDERS: LazyLock<Vec<RenyiOrder>> = LazyLock::new(|| {
    let q = |k| 1.0 + libm::exp2(f64::from(k) / 4.0);
    (-24..=72).map(|k| RenyiOrder::new(q(k))).collect()
});

fn orders() -> impl Iterator<Item = &'static RenyiOrder> {
    ORDERS.iter()
}

/// The order at which most Gaussian answers fit into ε at δ: `q·ρ` of them and the conversion are at most ε.
pub(super) fn order_for(epsilon: f64, delta: f64) -> f64 {
    let log_delta = libm::log(delta);
    let room = |at: &RenyiOrder| (epsilon - at.epsilon(0.0, log_delta)) / at.q;
    let two = RenyiOrder::new(2.0);
    let better = |best, at| if room(at) > room(best) { at } else { best };
    orders().fold(&two, better).q
}

/// A logarithm, at most: the library is within one ulp.
pub(super) fn log_down(x: f64) -> f64 {
    libm::log(x).next_down().next_down()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::SlopeCurve;

    fn gamma(rate: f64) -> PrivacyEvent {
        PrivacyEvent::on_grid(IdealRelease::Objective {
            sensitivity: 0.1,
            spread: 0.01,
            curve: SlopeCurve::Logistic,
            law: NoiseDistribution::Gamma { rate },
        })
    }

    fn answer(sigma: f64) -> PrivacyEvent {
        PrivacyEvent::on_grid(IdealRelease::Additive {
            sensitivity: 0.1,
            law: NoiseDistribution::Gaussian { sigma },
        })
    }

    #[test]
    fn many_at_once_are_many_one_after_the_other_to_the_bit() {
        for (first, second) in [(answer(1.0), answer(1.5)), (gamma(0.3), answer(2.0))] {
            for count in [1, 2, 3, 1000] {
                let (mut at_once, mut singly) = (Composition::empty(), Composition::empty());
                for event in [first, second, first] {
                    at_once.add_times(&event, count);
                    (0..count).for_each(|_| singly.add(&event));
                }
                for delta in [0.0, 1e-6] {
                    let (a, b) = (at_once.epsilon(delta), singly.epsilon(delta));
                    assert_eq!(a.to_bits(), b.to_bits(), "{count}");
                }
                assert_eq!(at_once.paper(), singly.paper());
            }
        }
    }

    #[test]
    fn no_sum_is_below_the_exact_one_or_far_above_it() {
        // Losses with 30 binary digits after the point, so that integers add them up exactly.
        let unit = 1.0 / f64::from(1u32 << 30);
        let (mut exact, mut sum) = (0u128, 0.0);
        for n in 1..2000u32 {
            let (count, loss) = (n * n % 977, n.wrapping_mul(2_654_435_761) >> 2);
            sum = add_times(sum, count, f64::from(loss) * unit);
            exact += u128::from(count) * u128::from(loss);
            let exact = exact as f64 * unit;
            assert!(sum >= exact, "{n}");
            assert!(
                sum <= exact * (1.0 + f64::from(4 * n) * f64::EPSILON),
                "{n}"
            );
        }
    }

    #[test]
    fn at_no_delta_pure_losses_are_enough() {
        let (mut all, mut pure) = (Composition::empty(), Composition::empty_at(0.0));
        for rate in [0.5, 0.5, 0.7] {
            all.add(&gamma(rate));
            pure.add(&gamma(rate));
        }
        assert_eq!(all.epsilon(0.0), pure.epsilon(0.0));
        assert_eq!(all.paper(), pure.paper());
    }
}
