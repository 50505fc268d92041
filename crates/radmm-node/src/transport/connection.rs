//! A connection that can be cut, and that knows what went wrong with it.

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
use super::{locked, reason};

/// One connection, for whoever speaks HTTP/2 on it.
pub(super) struct Line {
    stream: TlsStream<TcpStream>,
    grip: Arc<Grip>,
    caller: Option<Caller>,
}

impl Line {
    /// One that this side has dialled.
    pub(super) fn dialled(stream: TlsStream<TcpStream>, grip: Arc<Grip>) -> Self {
        let caller = None;
        Self {
            stream,
            grip,
            caller,
        }
    }

    /// One that a neighbour has dialled.
    pub(super) fn accepted(stream: TlsStream<TcpStream>, grip: Arc<Grip>, caller: Caller) -> Self {
        let caller = Some(caller);
        Self {
            stream,
            grip,
            caller,
        }
    }
}

/// A hold on a connection that somebody else owns.
pub(super) struct Grip {
    cut: AtomicBool,
    reader: Mutex<Option<Waker>>,
    since: Instant,
    /// Milliseconds from then on, to when something last arrived.
    heard: AtomicU64,
    fault: Mutex<Option<String>>,
    gone: Notify,
}

impl Grip {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            cut: AtomicBool::new(false),
            reader: Mutex::default(),
            since: Instant::now(),
            heard: AtomicU64::new(0),
            fault: Mutex::default(),
            gone: Notify::new(),
        })
    }

    /// Ends the connection now, whatever is still to be sent.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        if let Some(reader) = locked(&self.reader).take() {
            reader.wake();
        }
    }

    /// For how long nothing has arrived.
    pub(super) fn silent(&self) -> Duration {
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(heard)
    }

    /// What went wrong.
    pub(super) fn fault(&self) -> Option<String> {
        locked(&self.fault).clone()
    }

    /// When nobody owns the connection any more. For one waiter.
    pub(super) async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Whether it was cut.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    fn alive(&self) -> io::Result<()> {
        match self.is_cut() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    fn note(&self, error: &io::Error) {
        locked(&self.fault).get_or_insert_with(|| reason::of_connection(error));
    }

    fn noted<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &poll {
            self.note(error);
        }
        poll
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.grip.gone.notify_one();
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.grip.alive()?;
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        match &poll {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                // It stays below its limit for longer than anything lives.
                let heard = self.grip.since.elapsed().as_millis() as u64;
                self.grip.heard.store(heard, Ordering::Relaxed);
            }
            Poll::Ready(Ok(())) => self.grip.note(&io::ErrorKind::UnexpectedEof.into()),
            Poll::Ready(Err(error)) => self.grip.note(error),
            Poll::Pending => {
                locked(&self.grip.reader).replace(context.waker().clone());
                // It may have been cut just before there was somebody to wake.
                self.grip.alive()?;
            }
        }
        poll
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.grip.alive()?;
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.grip.noted(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.grip.alive()?;
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.grip.noted(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.grip.alive()?;
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.grip.noted(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.grip.alive()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connected for Line {
    type ConnectInfo = Option<Caller>;

    fn connect_info(&self) -> Option<Caller> {
        self.caller.clone()
    }
}
