//! A handle that ends a connection from elsewhere.

use tokio::sync::watch;

/// A handle to a connection that a task owns.
#[derive(Default)]
pub(super) struct ConnectionHandle(watch::Sender<bool>);

impl ConnectionHandle {
    /// Cuts the connection now, even if bytes are still to be sent.
    pub(super) fn cut(&self) {
        self.0.send_replace(true);
    }

    /// Waits until the connection is to be cut.
    pub(super) async fn cut_requested(&self) {
        // It fails if the sender is dropped, which this handle owns.
        let _ = self.0.subscribe().wait_for(|cut| *cut).await.map(drop);
    }

    /// Returns whether the connection is to be cut.
    #[cfg(test)]
    pub(super) fn is_cut(&self) -> bool {
        *self.0.borrow()
    }
}
