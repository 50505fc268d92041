//! The signals that stop a node: SIGINT and SIGTERM, or Ctrl-C where there are none.

use std::io;
use std::thread;
use std::time::Duration;

/// The events that stop a node, before its study is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSource {
    /// SIGINT and SIGTERM, or Ctrl-C.
    Signals,
    /// The same, and the end of stdin.
    SignalsAndInput,
}

/// Calls `first` at the first signal to stop. The second signal ends the process at once.
pub fn on_stop_signal(first: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut next_signal = runtime.block_on(async { stop_signals() })?;
    thread::Builder::new()
        .name("radmm-signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                next_signal().await;
                first();
                next_signal().await;
                // The exit code of a program that handles no signals. The store is complete at any moment.
                std::process::exit(130);
            });
        })?;
    Ok(())
}

/// How long a process that was told to stop by the end of its input may take.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Calls `stop` when stdin ends. A process that holds the other end open so takes this one along, however it is killed.
pub(super) fn on_end_of_input(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name("radmm-input".to_owned())
        .spawn(move || {
            // An input that cannot be read is over, too.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            stop();
            thread::sleep(GRACE_PERIOD);
            // The store is complete at any moment.
            std::process::exit(130);
        })?;
    Ok(())
}

#[cfg(unix)]
fn stop_signals() -> io::Result<impl AsyncFnMut() + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signals() -> io::Result<impl AsyncFnMut() + Send + 'static> {
    Ok(async || {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
