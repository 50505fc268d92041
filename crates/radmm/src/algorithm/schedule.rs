//! Values that change over the iterations: penalties `η(t)`, dampings `γ(t)`, steps `s(t)`.
//!
//! Iteration `t` is the one that computes `f(t)`, so the first one is `t = 1`.

use serde::Serialize;
use thiserror::Error;

/// A positive (or, for dampings, non-negative) value for every iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Schedule {
    /// The same value throughout.
    Constant(f64),
    /// `start · growthᵗ`: the growing penalties of M-ADMM and of the paper's Figure 3.
    Growth {
        /// The value that iteration 0 would have.
        start: f64,
        /// The factor from one iteration to the next.
        growth: f64,
    },
    /// `start / tᵖ`: the diminishing steps of gradient methods.
    Decay {
        /// The value of iteration 1.
        start: f64,
        /// The power `p`.
        power: f64,
    },
}

/// An invalid schedule.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A value that must be finite and above (or, for a damping, at least) zero is not.
    #[error("is {value} at iteration {iteration}; it must be {needed}")]
    OutOfRange {
        /// The first iteration at which it happens.
        iteration: u32,
        /// The value there.
        value: f64,
        /// The requirement.
        needed: &'static str,
    },
    /// M-ADMM needs penalties that do not decrease.
    #[error("decreases from {from} to {to} at iteration {iteration}; a penalty must not decrease")]
    Decreases {
        /// The first iteration at which it happens.
        iteration: u32,
        /// The value before.
        from: f64,
        /// The value there.
        to: f64,
    },
}

impl Schedule {
    /// Returns the value at iteration `t`.
    pub fn at(&self, t: u32) -> f64 {
        match *self {
            Self::Constant(value) => value,
            Self::Growth { start, growth } => start * libm::pow(growth, f64::from(t)),
            Self::Decay { start, power } => start / libm::pow(f64::from(t.max(1)), power),
        }
    }

    /// Accepts a schedule that is positive and finite over iterations `1..=iterations`.
    pub fn positive(self, iterations: u32) -> Result<Self, ScheduleError> {
        self.check(iterations, |value| value > 0.0, "positive and finite")
    }

    /// Accepts a schedule that is non-negative and finite over iterations `1..=iterations`.
    pub fn non_negative(self, iterations: u32) -> Result<Self, ScheduleError> {
        self.check(iterations, |value| value >= 0.0, "zero or more, and finite")
    }

    /// Accepts a schedule that never decreases over iterations `1..=iterations`.
    pub fn non_decreasing(self, iterations: u32) -> Result<Self, ScheduleError> {
        for t in 2..=iterations {
            let (from, to) = (self.at(t - 1), self.at(t));
            if to < from {
                return Err(ScheduleError::Decreases {
                    iteration: t,
                    from,
                    to,
                });
            }
        }
        Ok(self)
    }

    fn check(
        self,
        iterations: u32,
        holds: impl Fn(f64) -> bool,
        needed: &'static str,
    ) -> Result<Self, ScheduleError> {
        // Every form is monotone, so the first and the last value speak for all.
        for t in [1, iterations.max(1)] {
            let value = self.at(t);
            if !(value.is_finite() && holds(value)) {
                return Err(ScheduleError::OutOfRange {
                    iteration: t,
                    value,
                    needed,
                });
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_multiplies_once_an_iteration() {
        let eta = Schedule::Growth {
            start: 0.7,
            growth: 1.05,
        };
        assert_eq!(eta.at(0), 0.7);
        assert!((eta.at(3) - 0.7 * 1.05 * 1.05 * 1.05).abs() < 1e-15);
    }

    #[test]
    fn decay_starts_at_its_start() {
        let step = Schedule::Decay {
            start: 0.5,
            power: 1.0,
        };
        assert_eq!((step.at(1), step.at(4)), (0.5, 0.125));
    }

    #[test]
    fn a_schedule_that_overflows_within_the_run_is_refused() {
        let eta = Schedule::Growth {
            start: 1.0,
            growth: 10.0,
        };
        assert!(eta.positive(300).is_ok());
        assert!(matches!(
            eta.positive(400),
            Err(ScheduleError::OutOfRange { iteration: 400, .. })
        ));
    }

    #[test]
    fn zero_is_a_damping_but_not_a_penalty() {
        assert!(Schedule::Constant(0.0).non_negative(9).is_ok());
        assert!(Schedule::Constant(0.0).positive(9).is_err());
        assert!(Schedule::Constant(f64::NAN).non_negative(9).is_err());
    }

    #[test]
    fn a_shrinking_penalty_is_refused() {
        let eta = Schedule::Growth {
            start: 1.0,
            growth: 0.9,
        };
        assert!(matches!(
            eta.non_decreasing(5),
            Err(ScheduleError::Decreases { iteration: 2, .. })
        ));
    }
}
