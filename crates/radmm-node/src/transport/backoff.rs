//! Pauses between attempts to dial a neighbour.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Exponential backoff with jitter.
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST }
    }

    /// Returns the next pause, between its half and the whole, so that two sides, or all parties of a network that was started at
    /// once, do not keep dialling in step. `random` is uniform from 0 to 1.
    pub(super) fn pause(&mut self, random: f64) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }

    /// Resets the pauses after a link that lasted. A link that ends at once does not reset them.
    pub(super) fn linked(&mut self, lasted: Duration) {
        if lasted >= self.next {
            self.next = FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_seconds() {
        let mut backoff = Backoff::new();
        let pauses: Vec<u128> = (0..8).map(|_| backoff.pause(1.0).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn pauses_are_never_shorter_than_half() {
        assert_eq!(Backoff::new().pause(0.0), FIRST / 2);
    }

    #[test]
    fn a_link_that_lasts_resets_the_pauses() {
        let mut backoff = Backoff::new();
        for _ in 0..5 {
            backoff.pause(1.0);
        }
        backoff.linked(Duration::from_millis(10));
        assert_eq!(backoff.pause(1.0), Duration::from_millis(3200));
        backoff.linked(Duration::from_secs(60));
        assert_eq!(backoff.pause(1.0), FIRST);
    }
}
