//! Exact confidence bounds on a probability from counts (Clopper and Pearson 1934).
//!
//! With `k` hits in `n` independent trials, the probability `p` is below `low` or above `high`, each with a probability of
//! at most `miss`, where
//! ```text
//! P(X ≥ k | low) = I_low(k, n − k + 1) = miss        P(X ≤ k | high) = 1 − I_high(k + 1, n − k) = miss
//! ```
//! `I` is the regularised incomplete beta function, which no dependency of the workspace has.

/// The number of hits in a number of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BinomialCount {
    pub hits: usize,
    pub trials: usize,
}

impl BinomialCount {
    /// Returns a lower bound: the true probability is below it with a probability of at most `miss`.
    pub(super) fn lower(self, miss: f64) -> f64 {
        if self.hits == 0 {
            return 0.0;
        }
        let (k, n) = (self.hits as f64, self.trials as f64);
        // Rises with p, and stays at most `miss` on the side that is returned.
        bisect(|p| incomplete_beta(k, n - k + 1.0, p) <= miss).0
    }

    /// Returns an upper bound: the true probability is above it with a probability of at most `miss`.
    pub(super) fn upper(self, miss: f64) -> f64 {
        if self.hits == self.trials {
            return 1.0;
        }
        let (k, n) = (self.hits as f64, self.trials as f64);
        // 1 − I_p(a, b) = I_{1−p}(b, a), without cancellation.
        bisect(|p| incomplete_beta(n - k, k + 1.0, 1.0 - p) > miss).1
    }
}

/// Returns the interval in which a predicate that holds at 0 and not at 1 ceases to hold.
fn bisect(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

/// Returns `I_x(a, b)`, by its continued fraction on the side where that converges fast.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = libm::exp(a * libm::log(x) + b * libm::log1p(-x) - ln_beta);
    front / a / continued_fraction(a, b, x)
}

/// Returns `1 + d₁/(1 + d₂/(1 + …))`, evaluated from the front (modified Lentz), with
/// ```text
/// d_{2j} = j(b − j)x / ((a + 2j − 1)(a + 2j)),   d_{2j+1} = −(a + j)(a + b + j)x / ((a + 2j)(a + 2j + 1))
/// ```
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |x: f64| if x.abs() < TINY { TINY } else { x };
    let (mut value, mut up, mut down) = (1.0, 1.0, 0.0);
    // It needs about √max(a, b) terms: more than enough for as many runs as memory holds.
    for k in 1..100_000 {
        let j = f64::from(k / 2);
        let term = if k % 2 == 0 {
            j * (b - j) * x / ((a + 2.0 * j - 1.0) * (a + 2.0 * j))
        } else {
            -(a + j) * (a + b + j) * x / ((a + 2.0 * j) * (a + 2.0 * j + 1.0))
        };
        down = 1.0 / away_from_zero(1.0 + term * down);
        up = away_from_zero(1.0 + term / up);
        let factor = up * down;
        value *= factor;
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-3)
    }

    /// P(X ≥ k) term by term.
    fn upper_tail(k: usize, n: usize, p: f64) -> f64 {
        let mut sum = 0.0;
        for j in k..=n {
            let mut term = 1.0;
            for i in 0..j {
                term *= (n - i) as f64 / (i + 1) as f64 * p;
            }
            sum += term * (1.0 - p).powi((n - j) as i32);
        }
        sum
    }

    #[test]
    fn bounds_of_no_hits_and_of_all_hits_have_a_closed_form() {
        for trials in [1, 10, 1000, 25_000] {
            let n = trials as f64;
            let none = BinomialCount { hits: 0, trials };
            let all = BinomialCount {
                hits: trials,
                trials,
            };
            assert_eq!((none.lower(0.025), all.upper(0.025)), (0.0, 1.0));
            assert!(close(none.upper(0.025), 1.0 - 0.025f64.powf(1.0 / n)));
            assert!(close(all.lower(0.025), 0.025f64.powf(1.0 / n)));
        }
    }

    #[test]
    fn bounds_agree_with_published_tables() {
        // Two-sided 95 % intervals, as in the tables of Clopper and Pearson and in every textbook since.
        for (hits, trials, low, high) in [
            (1, 10, 0.0025, 0.4450),
            (5, 10, 0.1871, 0.8129),
            (2, 20, 0.0123, 0.3170),
            (10, 100, 0.0490, 0.1762),
            (50, 100, 0.3983, 0.6017),
        ] {
            let count = BinomialCount { hits, trials };
            assert!((count.lower(0.025) - low).abs() < 6e-5, "{count:?}");
            assert!((count.upper(0.025) - high).abs() < 6e-5, "{count:?}");
        }
    }

    #[test]
    fn the_tail_beyond_a_bound_is_the_probability_to_miss() {
        for (hits, trials) in [(1, 7), (3, 12), (20, 60), (59, 60)] {
            let count = BinomialCount { hits, trials };
            for miss in [0.5, 0.025, 1e-4] {
                let low = upper_tail(hits, trials, count.lower(miss));
                assert!(close(low, miss), "{count:?}: {low} for {miss}");
                let high = 1.0 - upper_tail(hits + 1, trials, count.upper(miss));
                assert!((high - miss).abs() < 1e-9, "{count:?}: {high} for {miss}");
            }
        }
    }

    #[test]
    fn large_counts_agree_with_the_normal_approximation() {
        // The interval's half-width is 1.96·√(p(1−p)/n) up to terms of order 1/n.
        let count = BinomialCount {
            hits: 200_000,
            trials: 1_000_000,
        };
        let half = 1.959_964 * (0.2f64 * 0.8 / 1e6).sqrt();
        assert!((count.lower(0.025) - (0.2 - half)).abs() < 2e-6);
        assert!((count.upper(0.025) - (0.2 + half)).abs() < 2e-6);
    }
}
