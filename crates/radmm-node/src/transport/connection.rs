//! A TLS connection that can be cut, and that records what went wrong with it.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsStream;
use tonic::transport::server::Connected;

use super::accept::Caller;
use super::{lock, reason};

/// A connection, owned by the HTTP/2 implementation.
pub(super) struct Connection {
    stream: TlsStream<TcpStream>,
    handle: Arc<ConnectionHandle>,
    caller: Option<Caller>,
}

impl Connection {
    /// Returns a connection that this side dialled.
    pub(super) fn dialled(stream: TlsStream<TcpStream>, handle: Arc<ConnectionHandle>) -> Self {
        let caller = None;
        Self {
            stream,
            handle,
            caller,
        }
    }

    /// Returns a connection that a neighbour dialled.
    pub(super) fn accepted(
        stream: TlsStream<TcpStream>,
        handle: Arc<ConnectionHandle>,
        caller: Caller,
    ) -> Self {
        let caller = Some(caller);
        Self {
            stream,
            handle,
            caller,
        }
    }
}

/// A handle to a connection that the HTTP/2 implementation owns.
pub(super) struct ConnectionHandle {
    cut: AtomicBool,
    reader: Mutex<Option<Waker>>,
    since: Instant,
    /// Milliseconds from `since` to when bytes last arrived.
    last_read: AtomicU64,
    fault: Mutex<Option<String>>,
    dropped: Notify,
}

impl ConnectionHandle {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            cut: AtomicBool::new(false),
            reader: Mutex::default(),
            since: Instant::now(),
            last_read: AtomicU64::new(0),
            fault: Mutex::default(),
            dropped: Notify::new(),
        })
    }

    /// Cuts the connection now, even if bytes are still to be sent.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        if let Some(reader) = lock(&self.reader).take() {
            reader.wake();
        }
    }

    /// Returns for how long nothing has arrived.
    pub(super) fn silence(&self) -> Duration {
        let last_read = Duration::from_millis(self.last_read.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(last_read)
    }

    /// Returns the first error of the connection.
    pub(super) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// Waits until the connection is dropped. For one waiter.
    pub(super) async fn dropped(&self) {
        self.dropped.notified().await;
    }

    /// Returns whether the connection was cut.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    fn check_not_cut(&self) -> io::Result<()> {
        match self.is_cut() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    fn record(&self, error: &io::Error) {
        lock(&self.fault).get_or_insert_with(|| reason::of_connection(error));
    }

    fn recorded<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &poll {
            self.record(error);
        }
        poll
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handle.dropped.notify_one();
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.handle.check_not_cut()?;
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        match &poll {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                // 64 bits of milliseconds do not overflow.
                let last_read = self.handle.since.elapsed().as_millis() as u64;
                self.handle.last_read.store(last_read, Ordering::Relaxed);
            }
            Poll::Ready(Ok(())) => self.handle.record(&io::ErrorKind::UnexpectedEof.into()),
            Poll::Ready(Err(error)) => self.handle.record(error),
            Poll::Pending => {
                lock(&self.handle.reader).replace(context.waker().clone());
                // It may have been cut before the waker was stored.
                self.handle.check_not_cut()?;
            }
        }
        poll
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.handle.check_not_cut()?;
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.handle.recorded(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.handle.check_not_cut()?;
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.handle.recorded(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.handle.check_not_cut()?;
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.handle.recorded(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.handle.check_not_cut()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connected for Connection {
    type ConnectInfo = Option<Caller>;

    fn connect_info(&self) -> Option<Caller> {
        self.caller.clone()
    }
}
