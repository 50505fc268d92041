//! The runtime of a transport, on one thread at a time.
//!
//! The thread that waits for events runs the tasks of the network while it waits, so that a frame gets from the socket to the party
//! and its answer back without a change of threads. While that thread is busy for long, as in a data step on many rows, a stand-in
//! thread runs the tasks: pings are answered, and neighbours are accepted.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::sync::watch;

/// The interval at which the stand-in thread checks whether anybody runs the tasks. It takes over if nobody has since its last check.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// A runtime whose tasks run on the thread of its caller, or on a stand-in thread while the caller is busy.
pub(super) struct CallerRuntime {
    runtime: Arc<Runtime>,
    /// Counts how often the caller has begun and ended to run the tasks: odd while it does.
    turns: watch::Sender<u64>,
    stand_in: JoinHandle<()>,
}

impl CallerRuntime {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Arc::new(Builder::new_current_thread().enable_all().build()?);
        let (turns, checked) = watch::channel(0);
        let tasks = runtime.clone();
        let stand_in = thread::Builder::new()
            .name("radmm-network".to_owned())
            .spawn(move || stand_in(&tasks, checked))?;
        Ok(Self {
            runtime,
            turns,
            stand_in,
        })
    }

    /// Lets the calling thread spawn tasks.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Runs the tasks on the calling thread until a future is ready. Must not be called from an async context.
    pub(super) fn run_until<F: Future>(&self, future: F) -> F::Output {
        self.turns.send_modify(|turns| *turns += 1);
        let output = self.runtime.block_on(future);
        self.turns.send_modify(|turns| *turns += 1);
        output
    }

    /// Ends all tasks. Waits up to `patience` for a thread that looks up a name.
    pub(super) fn shutdown(self, patience: Duration) {
        drop(self.turns);
        self.stand_in.thread().unpark();
        // It fails if a task has panicked there.
        let _ = self.stand_in.join();
        if let Some(runtime) = Arc::into_inner(self.runtime) {
            runtime.shutdown_timeout(patience);
        }
    }
}

/// Runs the tasks whenever the caller does not, until the runtime is shut down.
fn stand_in(runtime: &Runtime, mut turns: watch::Receiver<u64>) {
    let mut before = *turns.borrow();
    while turns.has_changed().is_ok() {
        thread::park_timeout(CHECK_INTERVAL);
        let now = *turns.borrow();
        let caller_is_busy = now.is_multiple_of(2);
        if caller_is_busy && now == before {
            // It fails when the runtime is shut down.
            let _ = runtime
                .block_on(turns.wait_for(|turns| *turns != now))
                .map(drop);
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::ThreadId;
    use std::time::Instant;

    use tokio::task::yield_now;
    use tokio::time::sleep;

    use super::*;

    /// The timeout of a test.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Returns the thread that runs the tasks.
    async fn task_thread() -> ThreadId {
        let task = tokio::spawn(async { thread::current().id() });
        task.await.unwrap()
    }

    #[test]
    fn tasks_run_on_the_thread_that_waits() {
        let runtime = CallerRuntime::new().unwrap();
        for _ in 0..100 {
            let there = runtime.run_until(task_thread());
            assert_eq!(there, thread::current().id());
        }
        runtime.shutdown(TIMEOUT);
    }

    #[test]
    fn tasks_run_while_the_caller_is_busy_and_the_caller_takes_them_back() {
        let runtime = CallerRuntime::new().unwrap();
        let (sender, threads) = mpsc::channel();
        let entered = runtime.enter();
        tokio::spawn(async move {
            // Timers run too, as pings need them.
            sleep(Duration::from_millis(1)).await;
            while sender.send(thread::current().id()).is_ok() {
                sleep(Duration::from_millis(1)).await;
            }
        });
        drop(entered);
        let here = thread::current().id();
        for _ in 0..5 {
            assert_ne!(threads.recv_timeout(TIMEOUT).unwrap(), here);
            runtime.run_until(async {
                let begun = Instant::now();
                while threads.try_iter().all(|there| there != here) {
                    assert!(begun.elapsed() < TIMEOUT);
                    yield_now().await;
                }
            });
            while threads.try_recv().is_ok() {}
        }
        runtime.shutdown(TIMEOUT);
    }

    #[test]
    fn shutdown_ends_tasks_wherever_they_run() {
        for busy in [Duration::ZERO, 4 * CHECK_INTERVAL] {
            let runtime = CallerRuntime::new().unwrap();
            let (sender, dropped) = mpsc::channel::<()>();
            let entered = runtime.enter();
            tokio::spawn(async move {
                sleep(TIMEOUT).await;
                drop(sender);
            });
            drop(entered);
            thread::sleep(busy);
            runtime.shutdown(Duration::ZERO);
            let ended = dropped.try_recv().unwrap_err();
            assert_eq!(ended, mpsc::TryRecvError::Disconnected);
        }
    }
}
