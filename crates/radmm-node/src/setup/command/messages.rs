//! The messages of a command: its stderr.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, visible};

/// The most bytes that are kept, of the end.
const MAX_BYTES: usize = 4096;

/// How long to wait for the end of what a command that has ended wrote.
const PATIENCE: Duration = Duration::from_millis(500);

/// The end of what a command wrote to stderr, for the operator who may see its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastMessages {
    /// The last lines, in visible characters.
    pub lines: Vec<String>,
}

impl LastMessages {
    /// Returns the lines of a text of which `cut` says whether its beginning is missing.
    fn new(text: &[u8], cut: bool) -> Self {
        let text = String::from_utf8_lossy(text);
        let lines = text.lines().skip(usize::from(cut)).map(str::trim_end);
        let lines = lines.filter(|line| !line.is_empty());
        let shown = lines.map(|line| visible(line, MAX_FOREIGN_TEXT));
        let first = cut.then(|| "…".to_owned());
        Self {
            lines: first.into_iter().chain(shown).collect(),
        }
    }
}

impl fmt::Display for LastMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines.is_empty() {
            return Ok(());
        }
        f.write_str("; it says:")?;
        self.lines
            .iter()
            .try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// A thread that reads stderr to its end, so that a command that writes much there never waits, and keeps the last of it.
pub(super) struct MessageReader {
    kept: Arc<Mutex<Kept>>,
    /// Disconnected when everything is read.
    end: Receiver<()>,
}

#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl MessageReader {
    pub(super) fn start(mut stderr: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (open, end) = channel::<()>();
        let shared = kept.clone();
        thread::spawn(move || {
            let _open = open;
            let mut piece = vec![0; 1 << 16];
            loop {
                let count = match stderr.read(&mut piece) {
                    Ok(0) => return,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                kept.bytes.extend(&piece[..count]);
                let beyond = kept.bytes.len().saturating_sub(MAX_BYTES);
                kept.bytes.drain(..beyond);
                kept.cut |= beyond > 0;
            }
        });
        Self { kept, end }
    }

    /// Returns the end of what was written. It waits a moment for a command that has just ended, and not for processes that it left.
    pub(super) fn take(&self) -> LastMessages {
        let _ = self.end.recv_timeout(PATIENCE);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = kept.cut;
        LastMessages::new(kept.bytes.make_contiguous(), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        MessageReader::start(io::Cursor::new(text.to_owned()))
            .take()
            .to_string()
    }

    #[test]
    fn lines_are_shown_in_visible_characters() {
        assert_eq!(shown(""), "");
        assert_eq!(shown("\n \n"), "");
        assert_eq!(
            shown("psql: no\r\n\u{1b}[2Jhint: \u{202e}yes"),
            "; it says:\n  psql: no\n  \\u{1b}[2Jhint: \\u{202e}yes"
        );
    }

    #[test]
    fn of_much_the_last_lines_are_kept() {
        let text: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let shown = shown(&text);
        assert!(shown.len() < 2 * MAX_BYTES);
        assert!(shown.starts_with("; it says:\n  …\n  line 99"), "{shown}");
        assert!(shown.ends_with("\n  line 99998\n  line 99999"), "{shown}");
    }
}
