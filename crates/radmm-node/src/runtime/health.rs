//! The health of a node, in one word, for whoever watches over it.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The health of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "for", rename_all = "kebab-case")]
pub enum Health {
    /// It reads its files, or replays its journal.
    Starting,
    /// All neighbours are there, or need nothing more.
    Ready,
    /// It waits for these neighbours.
    Waiting(Vec<String>),
    /// Its main loop has stood still for longer than any step takes.
    Stuck,
    /// It is about to exit.
    Stopped,
}

impl Health {
    /// Returns whether nobody has to do anything about this node.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Ready | Self::Waiting(_))
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Ready => f.write_str("ready"),
            Self::Waiting(names) => write!(f, "waiting for {}", names.join(", ")),
            Self::Stuck => f.write_str("stuck"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The last sign of life of a main loop.
#[derive(Debug, Default)]
pub(super) struct Heartbeat(Mutex<Option<Instant>>);

impl Heartbeat {
    /// Notes a sign of life.
    pub(super) fn touch(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Returns for how long there was no sign of life; `None` before the first one.
    pub(super) fn silence(&self, now: Instant) -> Option<Duration> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.map(|last| now.saturating_duration_since(last))
    }
}

/// How long the main loop may stand still, whatever it does: a disk that spins up, a machine that swaps.
const LEAST_PATIENCE: Duration = Duration::from_secs(60);

/// The time that a data step is given for one number of one row. A step reads each of them some hundred times, at some nanoseconds.
const PER_NUMBER: Duration = Duration::from_micros(1);

/// Returns how long the main loop may stand still at a data step on so many rows and columns.
// Privacy: rows and columns are public. The time that a step really takes is not.
pub(super) fn patience(rows: usize, columns: usize) -> Duration {
    let numbers = u32::try_from(rows.saturating_mul(columns)).unwrap_or(u32::MAX);
    LEAST_PATIENCE + PER_NUMBER * numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heart_is_silent_from_its_last_beat() {
        let heartbeat = Heartbeat::default();
        let now = Instant::now();
        assert_eq!(heartbeat.silence(now), None);
        heartbeat.touch(now);
        let later = now + Duration::from_secs(7);
        assert_eq!(heartbeat.silence(later), Some(Duration::from_secs(7)));
        heartbeat.touch(later);
        assert_eq!(heartbeat.silence(later), Some(Duration::ZERO));
    }

    #[test]
    fn patience_grows_with_the_rows() {
        assert_eq!(patience(500, 4), LEAST_PATIENCE + Duration::from_millis(2));
        assert_eq!(patience(10_000_000, 100).as_secs(), 60 + 1000);
        assert!(patience(usize::MAX, 2).as_secs() > 4000);
    }

    #[test]
    fn only_a_node_that_runs_is_good() {
        let waiting = Health::Waiting(vec!["birch".to_owned(), "rowan".to_owned()]);
        assert_eq!(waiting.to_string(), "waiting for birch, rowan");
        assert!(waiting.is_good() && Health::Ready.is_good());
        for bad in [Health::Starting, Health::Stuck, Health::Stopped] {
            assert!(!bad.is_good());
        }
    }
}
