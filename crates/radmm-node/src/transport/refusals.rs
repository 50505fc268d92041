//! Rate-limited reports of rejected connections.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{EventSender, lock};
use crate::machine::LinkEvent;

/// The number of rejections that are reported within [`WINDOW`].
const MAX_REPORTED: usize = 10;
const WINDOW: Duration = Duration::from_secs(1);

/// Reports rejected connections.
pub(super) struct RefusalLog {
    events: EventSender,
    limit: Mutex<RateLimit>,
}

impl RefusalLog {
    pub(super) fn new(events: EventSender) -> Self {
        let limit = Mutex::default();
        Self { events, limit }
    }

    /// Reports that a connection from `address` was rejected.
    pub(super) fn report(&self, address: String, reason: &str) {
        let Some(unreported) = lock(&self.limit).admit(Instant::now()) else {
            return;
        };
        let reason = match unreported {
            0 => reason.to_owned(),
            _ => format!("{reason} (and {unreported} more were rejected since the last message)"),
        };
        // The receiver may be gone.
        let _ = self.events.send(LinkEvent::Refused { address, reason });
    }
}

#[derive(Default)]
struct RateLimit {
    reported: VecDeque<Instant>,
    unreported: u64,
}

impl RateLimit {
    /// Returns how many were not reported since the last one, if one may be reported now.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        while self
            .reported
            .front()
            .is_some_and(|then| now.duration_since(*then) >= WINDOW)
        {
            self.reported.pop_front();
        }
        if self.reported.len() == MAX_REPORTED {
            self.unreported += 1;
            return None;
        }
        self.reported.push_back(now);
        Some(std::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_are_reported_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut limit = RateLimit::default();
        let reported = (0..500).filter(|_| limit.admit(start).is_some()).count();
        assert_eq!(reported, MAX_REPORTED);
        assert_eq!(limit.admit(start + WINDOW), Some(490));
        assert_eq!(limit.admit(start + WINDOW), Some(0));
    }

    #[test]
    fn no_second_has_more_than_ten() {
        let start = Instant::now();
        let mut limit = RateLimit::default();
        let times = (0..3000).map(|i| start + Duration::from_millis(i));
        let reported: Vec<Instant> = times.filter(|now| limit.admit(*now).is_some()).collect();
        assert!(
            reported
                .windows(MAX_REPORTED + 1)
                .all(|run| run[MAX_REPORTED] - run[0] >= WINDOW)
        );
        assert_eq!(reported.len(), 3 * MAX_REPORTED);
    }
}
