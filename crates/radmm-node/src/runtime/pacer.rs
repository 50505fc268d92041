//! The public tick on which answers leave.

use std::thread;
use std::time::{Duration, Instant};

/// A clock that holds back answers, whose time depends on rows, until a time that does not.
pub trait Pacer: Send {
    /// Notes that everything has arrived that the next answer needs.
    fn start(&mut self);

    /// Waits for the next tick, counted from the last start; returns its number. An answer that is ready in time leaves at the first.
    fn wait(&mut self) -> u32;
}

/// A pacer by the monotonic clock of the operating system.
pub(super) struct MonotonicPacer {
    tick: Duration,
    started: Instant,
}

impl MonotonicPacer {
    /// Returns a pacer with a tick above zero.
    pub(super) fn new(tick: Duration) -> Self {
        Self {
            tick,
            started: Instant::now(),
        }
    }
}

impl Pacer for MonotonicPacer {
    fn start(&mut self) {
        self.started = Instant::now();
    }

    fn wait(&mut self) -> u32 {
        let elapsed = self.started.elapsed();
        let ticks = ticks_after(elapsed, self.tick);
        thread::sleep((self.tick * ticks).saturating_sub(elapsed));
        ticks
    }
}

/// Returns the number of the next tick after a time.
fn ticks_after(elapsed: Duration, tick: Duration) -> u32 {
    let passed = elapsed.as_nanos() / tick.as_nanos().max(1);
    u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_leaves_at_the_next_tick() {
        let tick = Duration::from_millis(20);
        let after = |micros: u64| ticks_after(Duration::from_micros(micros), tick);
        assert_eq!([0, 1, 19_999].map(after), [1, 1, 1]);
        assert_eq!([20_000, 39_999, 40_000].map(after), [2, 2, 3]);
    }

    #[test]
    fn waiting_takes_until_the_tick() {
        let tick = Duration::from_millis(30);
        let mut pacer = MonotonicPacer::new(tick);
        pacer.start();
        let started = pacer.started;
        let ticks = pacer.wait();
        assert!(ticks >= 1 && started.elapsed() >= tick * ticks);
    }
}
