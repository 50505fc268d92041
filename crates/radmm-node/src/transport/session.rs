//! The task that carries a link from when it is up until it is down.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use radmm::graph::NodeId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::timeout;

use super::connection::ConnectionHandle;
use super::edge::Edge;
use super::framing::{read_frame, write_frame};
use super::outbox::{EndReason, Outbox, Outgoing};
use super::{DRAIN_TIMEOUT, PING_INTERVAL, reason};
use crate::machine::Serial;

/// The first frame of the side that was dialled: whether it takes the connection as the edge's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It does.
    Accepted = 0,
    /// It has another link, which stays.
    HasLink = 1,
    /// The party has not let go of earlier links.
    NotReady = 2,
}

impl Answer {
    /// Returns the frame.
    pub(super) fn to_frame(self) -> Vec<u8> {
        vec![self as u8]
    }

    /// Returns the answer in a frame, if it is one.
    pub(super) fn from_frame(frame: &[u8]) -> Option<Self> {
        let all = [Self::Accepted, Self::HasLink, Self::NotReady];
        all.into_iter().find(|answer| frame == [*answer as u8])
    }
}

/// An authenticated connection between this side and a neighbour.
pub(super) struct Session<S> {
    pub(super) edge: Arc<Edge>,
    pub(super) dialler: NodeId,
    pub(super) stream: S,
    pub(super) handle: Arc<ConnectionHandle>,
    /// The longest frame that is accepted.
    pub(super) largest: usize,
}

impl<S: AsyncRead + AsyncWrite + Send + 'static> Session<S> {
    /// Makes the connection the edge's link, and carries it. Returns the stream if another link stays.
    pub(super) fn begin(
        self,
        permit: OwnedSemaphorePermit,
        busy: &Arc<watch::Sender<usize>>,
    ) -> Result<(), S> {
        let (outbox, outgoing) = Outbox::new();
        if self.dialler == self.edge.peer() {
            outbox.send(Answer::Accepted.to_frame());
        }
        let Some(serial) = self.edge.up(self.dialler, &outbox, &self.handle, permit) else {
            return Err(self.stream);
        };
        let (edge, handle) = (self.edge.clone(), self.handle.clone());
        let busy = SessionCount::new(busy);
        tokio::spawn(async move {
            let reason = tokio::select! {
                biased;
                () = handle.cut_requested() => "another connection takes its place".to_owned(),
                reason = self.carry(serial, &outbox, outgoing) => reason,
            };
            outbox.end(EndReason::Close);
            edge.down(serial, reason);
            drop(busy);
        });
        Ok(())
    }

    /// Carries the frames of a link until it ends; returns the reason.
    async fn carry(self, serial: Serial, outbox: &Outbox, outgoing: Outgoing) -> String {
        let (mut reader, mut writer) = split(self.stream);
        let mut sending = pin!(send(&mut writer, outgoing.frames));
        let mut all_sent = false;
        let closed = tokio::select! {
            biased;
            reason = outgoing.ended => match reason {
                Ok(EndReason::Overflow) => Err("it does not read what it is sent".to_owned()),
                Ok(EndReason::Close) | Err(_) => Ok("this side has closed it"),
            },
            end = receive(&mut reader, &self.edge, serial, self.largest) => {
                end.map(|()| "it has closed the link")
            }
            sent = &mut sending => {
                all_sent = true;
                let sent = sent.map(|()| "this side has closed it");
                sent.map_err(|error| reason::of_connection(&error))
            }
        };
        let reason = match closed {
            Ok(reason) => reason.to_owned(),
            Err(reason) => return reason,
        };
        // Queued frames still leave, which ends the stream to the peer. Further frames of the peer are dropped until its stream
        // ends: before that, it may not have read everything.
        outbox.end(EndReason::Close);
        let rest = async {
            if !all_sent {
                let _ = sending.await;
            }
        };
        let both = async { tokio::join!(rest, discard(&mut reader)) };
        let _ = timeout(DRAIN_TIMEOUT, both).await;
        reason
    }
}

/// Sends queued frames, and pings while there are none; ends the stream when no more can be queued.
async fn send(
    writer: &mut (impl AsyncWrite + Unpin),
    mut queue: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    loop {
        match timeout(PING_INTERVAL, queue.recv()).await {
            Ok(Some(frame)) => write_frame(writer, &frame).await?,
            Ok(None) => return writer.shutdown().await,
            Err(_) => write_frame(writer, &[]).await?,
        }
    }
}

/// Reports the frames of the peer until its stream ends.
async fn receive(
    reader: &mut (impl AsyncRead + Unpin),
    edge: &Edge,
    serial: Serial,
    largest: usize,
) -> Result<(), String> {
    loop {
        // While too many frames are unread, nothing is read from the peer, and it need not ping.
        let Some(permit) = edge.acquire_frame().await else {
            return Err("this side has stopped".to_owned());
        };
        match read_frame(reader, largest).await {
            Ok(Some(bytes)) => edge.frame(serial, bytes, permit),
            Ok(None) => return Ok(()),
            Err(error) => return Err(error.describe()),
        }
    }
}

/// Reads until the peer's stream ends.
async fn discard(reader: &mut (impl AsyncRead + Unpin)) {
    let mut bytes = [0; 4096];
    while matches!(reader.read(&mut bytes).await, Ok(1..)) {}
}

/// Counts a session until it is dropped.
struct SessionCount(Arc<watch::Sender<usize>>);

impl SessionCount {
    fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for SessionCount {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{DuplexStream, duplex};
    use tokio::time::{Instant, sleep};

    use super::super::{EventReceiver, SILENCE_TIMEOUT, event_queue};
    use super::*;
    use crate::machine::{Credit, Link, LinkEvent, MAX_UNREAD_FRAMES, Serials};

    const LARGEST: usize = 100;

    /// One end of a link. Time passes only while everybody waits.
    struct End {
        handle: Arc<ConnectionHandle>,
        link: Box<dyn Link>,
        events: EventReceiver,
    }

    impl End {
        /// Returns the end of `me`, who has dialled.
        async fn new(me: u32, stream: DuplexStream) -> Self {
            let (sender, mut events) = event_queue();
            let edge = Edge::new(NodeId(me), NodeId(1 - me), sender, Serials::default());
            let edge = Arc::new(edge);
            let permit = edge.acquire_link().await.unwrap();
            let handle = Arc::<ConnectionHandle>::default();
            let session = Session {
                dialler: NodeId(me),
                edge,
                stream,
                handle: handle.clone(),
                largest: LARGEST,
            };
            assert!(session.begin(permit, &Arc::default()).is_ok());
            let Some(LinkEvent::Up { link, .. }) = events.recv().await else {
                panic!("no link");
            };
            Self {
                handle,
                link,
                events,
            }
        }

        /// Waits for an event longer than anything takes.
        async fn next(&mut self) -> Option<LinkEvent> {
            let next = timeout(1000 * SILENCE_TIMEOUT, self.events.recv());
            next.await.unwrap()
        }

        async fn frame(&mut self) -> (Vec<u8>, Credit) {
            match self.next().await {
                Some(LinkEvent::Frame { bytes, credit, .. }) => (bytes, credit),
                Some(LinkEvent::Down { reason, .. }) => panic!("down: {reason}"),
                _ => panic!("no frame"),
            }
        }

        async fn down(&mut self) -> String {
            loop {
                if let Some(LinkEvent::Down { reason, .. }) = self.next().await {
                    return reason;
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_link_stays_up() {
        let (near, far) = duplex(1000);
        let (mut here, mut there) = (End::new(0, near).await, End::new(1, far).await);
        sleep(100 * SILENCE_TIMEOUT).await;
        assert!(here.link.send(b"still there?".to_vec()));
        assert_eq!(there.frame().await.0, b"still there?");
        assert!(there.link.send(b"yes".to_vec()));
        assert_eq!(here.frame().await.0, b"yes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_loses_its_link() {
        let (near, _far) = duplex(1000);
        let mut here = End::new(0, near).await;
        let since = Instant::now();
        assert_eq!(here.down().await, "nothing was received from it for 15 s");
        assert_eq!(since.elapsed(), SILENCE_TIMEOUT);
        assert!(!here.link.send(vec![1]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_frame_is_a_sign_of_life() {
        let (near, mut far) = duplex(1000);
        let mut here = End::new(0, near).await;
        for byte in b"\x05\0\0\0slow!" {
            sleep(SILENCE_TIMEOUT - Duration::from_millis(1)).await;
            far.write_all(&[*byte]).await.unwrap();
        }
        assert_eq!(here.frame().await.0, b"slow!");
    }

    #[tokio::test(start_paused = true)]
    async fn a_party_that_is_busy_neither_gives_up_its_peer_nor_falls_silent() {
        let (near, mut far) = duplex(1000);
        let mut here = End::new(0, near).await;
        let mut unread = Vec::new();
        for _ in 0..MAX_UNREAD_FRAMES {
            write_frame(&mut far, b"unread").await.unwrap();
            unread.push(here.frame().await);
        }
        // Nothing is read meanwhile, and pings leave all the same.
        for _ in 0..20 {
            let mut ping = [1; 4];
            let read = timeout(SILENCE_TIMEOUT, far.read_exact(&mut ping)).await;
            read.unwrap().unwrap();
            assert_eq!(ping, [0; 4]);
        }
        drop(unread);
        write_frame(&mut far, b"next").await.unwrap();
        assert_eq!(here.frame().await.0, b"next");
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_above_the_limit_ends_the_link_before_it_arrives() {
        let (near, mut far) = duplex(1000);
        let mut here = End::new(0, near).await;
        far.write_all(&101_u32.to_le_bytes()).await.unwrap();
        let reason = here.down().await;
        assert!(reason.contains("more than 100 bytes"), "{reason}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_is_closing_can_be_cut() {
        // The peer reads nothing, so that what is queued cannot leave.
        let (near, _far) = duplex(10);
        let mut here = End::new(0, near).await;
        let since = Instant::now();
        assert!(here.link.send(vec![7; 50]));
        here.link.close();
        sleep(DRAIN_TIMEOUT / 2).await;
        here.handle.cut();
        here.down().await;
        assert_eq!(since.elapsed(), DRAIN_TIMEOUT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_delays_the_end_of_a_link_for_a_limited_time() {
        let (near, _far) = duplex(10);
        let mut here = End::new(0, near).await;
        let since = Instant::now();
        assert!(here.link.send(vec![7; 50]));
        here.link.close();
        assert_eq!(here.down().await, "this side has closed it");
        assert_eq!(since.elapsed(), DRAIN_TIMEOUT);
    }

    #[test]
    fn answers_are_told_apart() {
        for answer in [Answer::Accepted, Answer::HasLink, Answer::NotReady] {
            assert_eq!(Answer::from_frame(&answer.to_frame()), Some(answer));
        }
        for frame in [&[][..], &[3], &[0, 0]] {
            assert_eq!(Answer::from_frame(frame), None);
        }
    }
}
