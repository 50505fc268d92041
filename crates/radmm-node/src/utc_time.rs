//! Points in time for logs and statements, in whole seconds.
//!
//! Privacy: the time of a data step depends on rows. Finer stamps would tell it to everybody who reads a log.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of seconds of a day.
const DAY: u64 = 86_400;

/// A point in time, in whole seconds. It is written as in `2026-11-19T03:57:10Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime {
    /// The seconds since 1970.
    pub seconds: u64,
}

impl UtcTime {
    /// Returns the current time.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            seconds: since.map_or(0, |since| since.as_secs()),
        }
    }

    /// Returns year, month and day.
    pub fn date(self) -> (u64, u64, u64) {
        // Years that begin in March have their leap day at the end; 719,468 days before 1970 such years began with the year 0.
        let days = self.seconds / DAY + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let year = 400 * era + year;
        match month {
            0..10 => (year, month + 3, day),
            _ => (year + 1, month - 9, day),
        }
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let of_day = self.seconds % DAY;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(UtcTime { seconds }.to_string(), written);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let dates: Vec<_> = (0..200_000)
            .map(|day| UtcTime { seconds: day * DAY }.date())
            .collect();
        for pair in dates.windows(2) {
            let ((year, month, day), next) = (pair[0], pair[1]);
            let new_month = (year, month + 1, 1);
            let follows = next == (year, month, day + 1)
                || day >= 28 && next == new_month
                || (month, day) == (12, 31) && next == (year + 1, 1, 1);
            assert!(follows, "{pair:?}");
        }
    }
}
