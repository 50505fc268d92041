//! Who was turned away, told to the operator, but not as fast as somebody can knock.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::locked;
use crate::machine::link::Event;

/// So many are told within [`WINDOW`].
const MOST: usize = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// Tells of refusals.
pub(super) struct Refusals {
    events: Sender<Event>,
    pace: Mutex<Pace>,
}

impl Refusals {
    pub(super) fn new(events: Sender<Event>) -> Self {
        let pace = Mutex::default();
        Self { events, pace }
    }

    /// Somebody at `address` was turned away.
    pub(super) fn tell(&self, address: String, reason: &str) {
        let Some(untold) = locked(&self.pace).tell(Instant::now()) else {
            return;
        };
        let reason = match untold {
            0 => reason.to_owned(),
            _ => format!("{reason} (and {untold} more were turned away since the last message)"),
        };
        // Nobody may be listening any more.
        let _ = self.events.send(Event::Refused { address, reason });
    }
}

#[derive(Default)]
struct Pace {
    told: VecDeque<Instant>,
    untold: u64,
}

impl Pace {
    /// If one may be told now, how many were not before it.
    fn tell(&mut self, now: Instant) -> Option<u64> {
        while self
            .told
            .front()
            .is_some_and(|told| now.duration_since(*told) >= WINDOW)
        {
            self.told.pop_front();
        }
        if self.told.len() == MOST {
            self.untold += 1;
            return None;
        }
        self.told.push_back(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_are_told_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut pace = Pace::default();
        let told = (0..500).filter(|_| pace.tell(start).is_some()).count();
        assert_eq!(told, MOST);
        assert_eq!(pace.tell(start + WINDOW), Some(490));
        assert_eq!(pace.tell(start + WINDOW), Some(0));
    }

    #[test]
    fn no_second_has_more_than_ten() {
        let start = Instant::now();
        let mut pace = Pace::default();
        let times = (0..3000).map(|i| start + Duration::from_millis(i));
        let told: Vec<Instant> = times.filter(|now| pace.tell(*now).is_some()).collect();
        assert!(
            told.windows(MOST + 1)
                .all(|run| run[MOST] - run[0] >= WINDOW)
        );
        assert_eq!(told.len(), 3 * MOST);
    }
}
