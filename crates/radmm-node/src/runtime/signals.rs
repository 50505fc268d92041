//! The signals that stop a node: SIGINT and SIGTERM, or Ctrl-C where there are none.

use std::io;
use std::thread;

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
