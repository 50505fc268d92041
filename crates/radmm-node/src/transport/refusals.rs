//! Reports of rejected connections, few enough for a log.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{EventSender, lock};
use crate::machine::LinkEvent;

/// The number of rejections that are reported within [`WINDOW`].
const MAX_REPORTED: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// How long the same reason is not reported again for the same address.
const REPEAT: Duration = Duration::from_secs(3600);

/// Reports rejected connections, and counts those that it does not report.
pub(super) struct RefusalLog {
    events: EventSender,
    limit: Mutex<ReportLimit>,
}

impl RefusalLog {
    pub(super) fn new(events: EventSender) -> Self {
        let limit = Mutex::default();
        Self { events, limit }
    }

    /// Reports that a connection from `address` was rejected.
    pub(super) fn report(&self, address: SocketAddr, reason: &str) {
        let admitted = lock(&self.limit).admit(Instant::now(), address.ip(), reason);
        if let Some(more) = admitted {
            // The receiver may be gone.
            let _ = self.events.send(LinkEvent::Refused {
                address: address.to_string(),
                reason: reason.to_owned(),
                more,
            });
        }
    }
}

#[derive(Default)]
struct ReportLimit {
    /// The reports within [`REPEAT`], oldest first.
    reported: VecDeque<(Instant, IpAddr, String)>,
    unreported: u64,
}

impl ReportLimit {
    /// Returns how many were not reported since the last one, if one may be reported now.
    fn admit(&mut self, now: Instant, host: IpAddr, reason: &str) -> Option<u64> {
        let within = |then: Instant, time| now.duration_since(then) < time;
        while self
            .reported
            .front()
            .is_some_and(|(then, ..)| !within(*then, REPEAT))
        {
            self.reported.pop_front();
        }
        let mut all = self.reported.iter();
        let repeated = all.any(|(_, other, told)| *other == host && told == reason);
        let newest = self.reported.iter().rev().take(MAX_REPORTED);
        let recent = newest.filter(|(then, ..)| within(*then, WINDOW)).count();
        if repeated || recent == MAX_REPORTED {
            self.unreported += 1;
            return None;
        }
        self.reported.push_back((now, host, reason.to_owned()));
        Some(std::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_reason_is_reported_once_an_hour_for_each_address() {
        let start = Instant::now();
        let mut limit = ReportLimit::default();
        let other = IpAddr::V4([192, 0, 2, 1].into());
        assert_eq!(limit.admit(start, HOST, "no TLS"), Some(0));
        for seconds in 1..3600 {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(limit.admit(now, HOST, "no TLS"), None);
        }
        assert_eq!(limit.admit(start, HOST, "no certificate"), Some(3599));
        assert_eq!(limit.admit(start, other, "no TLS"), Some(0));
        assert_eq!(limit.admit(start + REPEAT, HOST, "no TLS"), Some(0));
    }

    #[test]
    fn no_minute_has_more_than_ten_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut limit = ReportLimit::default();
        let mut reported = Vec::new();
        let mut counted = 0;
        for number in 0..3000 {
            let now = start + Duration::from_millis(100 * number);
            if let Some(more) = limit.admit(now, HOST, &number.to_string()) {
                reported.push(now);
                counted += more + 1;
            }
        }
        let mut runs = reported.windows(MAX_REPORTED + 1);
        assert!(runs.all(|run| run[MAX_REPORTED] - run[0] >= WINDOW));
        assert_eq!(reported.len(), 5 * MAX_REPORTED);
        assert_eq!(counted + limit.unreported, 3000);
    }
}
