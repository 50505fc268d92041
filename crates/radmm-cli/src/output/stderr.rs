//! Messages on stderr.

use std::fmt::Display;
use std::io::{self, Write};
use std::panic;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use super::message_queue::MessageQueue;

/// How long a process that ends waits for the reader of its messages.
pub(crate) const READER_PATIENCE: Duration = Duration::from_secs(2);

/// The messages of a command that must not wait for their reader.
static QUEUE: OnceLock<MessageQueue> = OnceLock::new();

/// Makes all further messages wait in a queue, so that a pipe that nobody reads blocks no other thread. `dropped_line` formats the
/// line about messages for which the queue had no room.
pub(crate) fn never_block(dropped_line: impl Fn(u64) -> String + Send + 'static) {
    QUEUE.get_or_init(|| MessageQueue::start(move |count| write(&dropped_line(count))));
    // The default one writes by itself.
    panic::set_hook(Box::new(|panic| {
        if !radmm_data::is_decoding() {
            line(panic);
            finish();
        }
    }));
}

/// Writes a line. A closed stderr is ignored, where `eprintln!` would panic.
pub(crate) fn line(text: impl Display) {
    let text = text.to_string();
    later(move || write(&text));
}

/// Calls a function that writes to stderr, after all messages before.
pub(crate) fn later(write: impl FnOnce() + Send + 'static) {
    match QUEUE.get() {
        Some(queue) => queue.push(write),
        None => write(),
    }
}

/// Calls a function that draws on stderr, unless a later drawing takes its place.
pub(crate) fn display(draw: impl FnOnce() + Send + 'static) {
    match QUEUE.get() {
        Some(queue) => queue.display(draw),
        None => draw(),
    }
}

/// Waits a limited time until all messages are written.
pub(crate) fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.wait(READER_PATIENCE);
    }
}

fn write(line: &str) {
    // One write, so that lines of several processes do not mix.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes a line for every note, unless `quiet`.
pub(crate) fn notes<T: Display>(notes: impl IntoIterator<Item = T>, quiet: bool) {
    if !quiet {
        let notes = notes.into_iter();
        notes.for_each(|note| line(format!("note: {note}")));
    }
}

/// Writes a warning, unless there is none or `quiet`.
pub(crate) fn warning(warning: Option<&impl Display>, quiet: bool) {
    if let (Some(warning), false) = (warning, quiet) {
        line(format!("warning: {warning}"));
    }
}

/// Reports that a file was written, unless `quiet`.
pub(crate) fn wrote(path: &Path, quiet: bool) {
    if !quiet {
        line(format!("wrote {}", path.display()));
    }
}
