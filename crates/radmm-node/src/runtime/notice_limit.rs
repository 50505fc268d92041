//! The limit on what a log says about one neighbour.
//!
//! A neighbour can open and close connections, or send invalid frames, as often as it likes. The first lines tell what there is to
//! know; afterwards a minute of it is one line with a number. The transport does the same for strangers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::notice::Notice;

/// The time over which lines are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The most lines about one neighbour within [`WINDOW`].
const MAX_LINES: u32 = 20;

/// Counts the lines about every neighbour.
#[derive(Default)]
pub(super) struct NoticeLimit {
    /// The current windows by neighbour.
    windows: BTreeMap<String, Window>,
}

struct Window {
    since: Instant,
    admitted: u32,
    left_out: u64,
}

impl NoticeLimit {
    /// Returns whether a line is to be written.
    pub(super) fn admits(&mut self, notice: &Notice, now: Instant) -> bool {
        let peer = match notice {
            Notice::Connected { peer, .. }
            | Notice::Disconnected { peer, .. }
            | Notice::Unreachable { peer, .. }
            | Notice::Disagrees { peer, .. }
            | Notice::Misbehaved { peer, .. } => peer,
            _ => return true,
        };
        let window = self.windows.entry(peer.clone()).or_insert(Window {
            since: now,
            admitted: 0,
            left_out: 0,
        });
        let admitted = window.admitted < MAX_LINES;
        match admitted {
            true => window.admitted += 1,
            false => window.left_out += 1,
        }
        admitted
    }

    /// Ends the windows that are over, and returns a line for each in which something was left out.
    pub(super) fn take_counts(&mut self, now: Instant) -> Vec<Notice> {
        self.take(|since| now.duration_since(since) >= WINDOW, now)
    }

    /// Ends all windows.
    pub(super) fn take_all_counts(&mut self, now: Instant) -> Vec<Notice> {
        self.take(|_| true, now)
    }

    fn take(&mut self, is_over: impl Fn(Instant) -> bool, now: Instant) -> Vec<Notice> {
        let mut counts = Vec::new();
        self.windows.retain(|peer, window| {
            let over = is_over(window.since);
            if over && window.left_out > 0 {
                counts.push(Notice::LeftOut {
                    peer: peer.clone(),
                    lines: window.left_out,
                    seconds: now.duration_since(window.since).as_secs(),
                });
            }
            !over
        });
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(peer: &str) -> Notice {
        Notice::Connected {
            peer: peer.to_owned(),
            iteration: 0,
        }
    }

    fn admitted(limit: &mut NoticeLimit, notice: &Notice, times: u32, now: Instant) -> u32 {
        (0..times)
            .map(|_| u32::from(limit.admits(notice, now)))
            .sum()
    }

    #[test]
    fn a_flood_of_one_peer_becomes_a_count_a_minute() {
        let mut limit = NoticeLimit::default();
        let start = Instant::now();
        let gone = Notice::Disconnected {
            peer: "birch".to_owned(),
            reason: String::new(),
        };
        assert_eq!(admitted(&mut limit, &connected("birch"), 15, start), 15);
        assert_eq!(admitted(&mut limit, &gone, 1000, start), 5);
        // Others are not silenced by it.
        assert_eq!(admitted(&mut limit, &connected("cedar"), 3, start), 3);
        assert_eq!(limit.take_counts(start + WINDOW / 2), []);
        let count = Notice::LeftOut {
            peer: "birch".to_owned(),
            lines: 995,
            seconds: 60,
        };
        assert_eq!(
            count.to_string(),
            "995 more lines about birch were left out within 60 s"
        );
        assert_eq!(limit.take_counts(start + WINDOW), [count]);
        assert_eq!(limit.take_counts(start + WINDOW), []);
        assert_eq!(
            admitted(&mut limit, &connected("birch"), 100, start + WINDOW),
            MAX_LINES
        );
    }

    #[test]
    fn the_course_of_a_run_is_not_limited() {
        let mut limit = NoticeLimit::default();
        let stopping = Notice::Stopping { iteration: 3 };
        assert_eq!(admitted(&mut limit, &stopping, 1000, Instant::now()), 1000);
    }
}
