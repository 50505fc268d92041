//! Work on threads of its own: the calling thread reports progress and reacts to Ctrl-C meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use radmm_node::setup::{ReadingObserver, StillReading};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::Failure;

/// How long to wait between two looks at signals and progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long to wait for interrupted work to end before it is left to end by itself.
const GRACE_PERIOD: Duration = Duration::from_millis(350);

/// The progress of some work, and whether it is to end; shared by the working and the waiting thread.
#[derive(Clone, Default)]
pub(crate) struct Work {
    interrupted: Arc<AtomicBool>,
    steps: Arc<AtomicU64>,
    total: Arc<AtomicU64>,
    message: Arc<Mutex<String>>,
}

impl Work {
    /// Sets the number of steps of the whole work.
    pub(crate) fn set_total(&self, steps: u64) {
        self.total.store(steps, Ordering::Relaxed);
    }

    /// Counts a step.
    pub(crate) fn step(&self, message: impl FnOnce() -> String) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        // Nobody waits for a message: the next one is as good.
        if let Ok(mut shown) = self.message.try_lock() {
            *shown = message();
        }
    }

    /// Returns the flag that is set when the work is to end.
    pub(crate) fn interrupted(&self) -> Arc<AtomicBool> {
        self.interrupted.clone()
    }

    /// Returns whether the work is to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Calls `progress(steps, total, message)`, if there is such a function.
    fn report(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(progress) = progress else {
            return Ok(());
        };
        let steps = self.steps.load(Ordering::Relaxed);
        let total = self.total.load(Ordering::Relaxed);
        let message = self.message.lock();
        let message = message.map_or(String::new(), |text| text.clone());
        progress.call1(py, (steps, total, message)).map(|_| ())
    }
}

impl ReadingObserver for Work {
    fn still_reading(&self, _: StillReading) {}

    fn is_cancelled(&self) -> bool {
        self.is_interrupted()
    }
}

/// Starts threads to compute on; as many as there are cores unless a number is given.
///
/// Every piece of work has threads of its own: those of a global pool would not be there in a process that was forked.
pub(crate) fn threads(number: Option<usize>) -> Result<ThreadPool, Failure> {
    let pool = ThreadPoolBuilder::new().num_threads(number.unwrap_or(0));
    let pool = pool.build();
    pool.map_err(|error| Failure::Value(format!("the threads could not be started: {error}")))
}

/// Runs `work` on other threads, and returns what it returns. Ctrl-C, or an exception of `progress`, interrupts it: this function
/// returns within half a second, and the work ends after its current step.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    number: Option<usize>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Work) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    run_as(py, &Work::default(), number, progress, work)
}

/// Does the same as [`run`] for work that others know of.
pub(crate) fn run_as<T: Send + 'static>(
    py: Python<'_>,
    shared: &Work,
    number: Option<usize>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Work) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let pool = threads(number)?;
    let (sender, mut receiver) = channel();
    let worker = shared.clone();
    thread::spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&worker))));
        let done = done.unwrap_or_else(|payload| Err(Failure::from_panic(&*payload)));
        // The receiver is gone if the work was interrupted.
        let _ = sender.send(done);
    });
    loop {
        let (waited, back) = py.detach(move || (receiver.recv_timeout(LOOK_EVERY), receiver));
        receiver = back;
        match waited {
            Ok(done) => {
                if done.is_ok() {
                    shared.report(py, progress.as_ref())?;
                }
                return done;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Bug("a thread ended without a result".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let reported = py.check_signals();
        let reported = reported.and_then(|()| shared.report(py, progress.as_ref()));
        if let Err(error) = reported {
            shared.interrupted.store(true, Ordering::Relaxed);
            let _ = py.detach(move || receiver.recv_timeout(GRACE_PERIOD));
            return Err(error.into());
        }
    }
}

/// Runs `work` on another thread, and waits for its end. Ctrl-C sets `interrupted`, by which the work ends early.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    interrupted: &AtomicBool,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    interrupted.store(false, Ordering::Relaxed);
    let run = move || {
        let done = catch_unwind(AssertUnwindSafe(work));
        done.unwrap_or_else(|payload| Err(Failure::from_panic(&*payload)))
    };
    py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            scope.spawn(move || sender.send(run()));
            let mut signal = None;
            loop {
                match receiver.recv_timeout(LOOK_EVERY) {
                    Ok(done) => {
                        return signal.map_or(done, |error: PyErr| Err(error.into()));
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Failure::Bug("a thread ended without a result".to_owned()));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    interrupted.store(true, Ordering::Relaxed);
                    signal = Some(error);
                }
            }
        })
    })
}
