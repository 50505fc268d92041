//! A queue of messages with a thread that writes them, so that nobody else waits for their reader.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most messages that wait.
const CAPACITY: usize = 1000;

/// A step of the writer, which may block.
type Write = Box<dyn FnOnce() + Send>;

/// A bounded queue. Messages that find it full are dropped and counted.
pub(super) struct MessageQueue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Write>,
    /// The latest state of a display. An earlier one that was not drawn yet is not missed.
    display: Option<Write>,
    /// The number of messages that were dropped since the queue was full.
    dropped: u64,
    /// Whether the writer is at work.
    writing: bool,
}

impl MessageQueue {
    /// Starts the writer. `write_dropped` writes a message about the number of those that were dropped.
    pub(super) fn start(write_dropped: impl Fn(u64) + Send + 'static) -> Self {
        let shared = Arc::<Shared>::default();
        let writer = shared.clone();
        // Without its thread the queue fills, and drops what follows.
        let _ = thread::Builder::new()
            .name("radmm-messages".to_owned())
            .spawn(move || writer.write_all(&write_dropped));
        Self(shared)
    }

    /// Adds a message.
    pub(super) fn push(&self, write: impl FnOnce() + Send + 'static) {
        let mut waiting = self.0.lock();
        // Once there is a gap, it ends where the reader has caught up: a message about it is written in its place.
        if waiting.dropped > 0 || waiting.messages.len() >= CAPACITY {
            waiting.dropped += 1;
            return;
        }
        waiting.messages.push_back(Box::new(write));
        self.0.changed.notify_all();
    }

    /// Replaces what is to be displayed after all messages.
    pub(super) fn display(&self, draw: impl FnOnce() + Send + 'static) {
        self.0.lock().display = Some(Box::new(draw));
        self.0.changed.notify_all();
    }

    /// Waits until everything is written, but no longer than `patience`.
    pub(super) fn wait(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut waiting = self.0.lock();
        while waiting.writing || !waiting.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.changed.wait_timeout(waiting, left);
            (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.display.is_none() && self.dropped == 0
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes messages as long as the process lives.
    fn write_all(&self, write_dropped: &dyn Fn(u64)) {
        let mut waiting = self.lock();
        loop {
            waiting.writing = !waiting.is_empty();
            if !waiting.writing {
                self.changed.notify_all();
                let woken = self.changed.wait(waiting);
                waiting = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let message = waiting.messages.pop_front();
            let (display, dropped) = match message {
                Some(_) => (None, 0),
                None => (waiting.display.take(), std::mem::take(&mut waiting.dropped)),
            };
            drop(waiting);
            if dropped > 0 {
                write_dropped(dropped);
            }
            for write in message.into_iter().chain(display) {
                write();
            }
            waiting = self.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// The time limit of a test, far beyond what any takes.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A queue whose messages are sent to a channel, and the channel.
    fn queue() -> (MessageQueue, Sender<String>, Receiver<String>) {
        let (sender, written) = channel();
        let dropped = sender.clone();
        let queue = MessageQueue::start(move |count| {
            let _ = dropped.send(format!("{count} dropped"));
        });
        (queue, sender, written)
    }

    fn push(queue: &MessageQueue, to: &Sender<String>, text: String) {
        let to = to.clone();
        queue.push(move || {
            let _ = to.send(text);
        });
    }

    /// Blocks the writer, as a reader that is away does, until the guard is dropped.
    fn block(queue: &MessageQueue) -> Sender<()> {
        let (release, released) = channel::<()>();
        let (entered, is_blocked) = channel();
        queue.push(move || {
            let _ = entered.send(());
            let _ = released.recv();
        });
        is_blocked.recv_timeout(PATIENCE).unwrap();
        release
    }

    #[test]
    fn messages_are_written_in_their_order() {
        let (queue, to, written) = queue();
        for k in 0..CAPACITY {
            push(&queue, &to, k.to_string());
        }
        queue.wait(PATIENCE);
        let all: Vec<String> = written.try_iter().collect();
        let expected: Vec<String> = (0..CAPACITY).map(|k| k.to_string()).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_full_queue_drops_and_counts_and_blocks_nobody() {
        let (queue, to, written) = queue();
        let reader_away = block(&queue);
        for k in 0..CAPACITY + 70 {
            push(&queue, &to, k.to_string());
        }
        // Nor does the end wait longer than it may.
        queue.wait(Duration::ZERO);
        drop(reader_away);
        queue.wait(PATIENCE);
        push(&queue, &to, "after".to_owned());
        queue.wait(PATIENCE);
        let all: Vec<String> = written.try_iter().collect();
        assert_eq!(all.len(), CAPACITY + 2);
        assert_eq!(all[CAPACITY - 1], (CAPACITY - 1).to_string());
        assert_eq!(all[CAPACITY..], ["70 dropped", "after"]);
    }

    #[test]
    fn of_several_displays_the_latest_is_drawn() {
        let (queue, to, written) = queue();
        let reader_away = block(&queue);
        for k in 0..5 {
            let to = to.clone();
            queue.display(move || {
                let _ = to.send(format!("display {k}"));
            });
        }
        push(&queue, &to, "a message".to_owned());
        drop(reader_away);
        queue.wait(PATIENCE);
        let all: Vec<String> = written.try_iter().collect();
        assert_eq!(all, ["a message", "display 4"]);
    }
}
