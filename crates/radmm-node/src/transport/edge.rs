//! The transport's state of one edge: its link, and which one stays if there are two.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use radmm::graph::NodeId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::connection::ConnectionHandle;
use super::outbox::{EndReason, Outbox, OutboxLink};
use super::{EventSender, lock};
use crate::machine::{Credit, LinkEvent, MAX_UNREAD_FRAMES, Serial, Serials};

/// The number of links of an edge that the party may hold, ended ones included. A neighbour that keeps dialling has to wait until
/// the party has dropped earlier links.
const MAX_HELD_LINKS: usize = 3;

/// The number of open connections of a neighbour: the one that carries the link, and the one that is to replace it.
const MAX_CONNECTIONS: usize = 2;

/// An edge.
pub(super) struct Edge {
    me: NodeId,
    peer: NodeId,
    events: EventSender,
    serials: Serials,
    state: Mutex<State>,
    phase: watch::Sender<Phase>,
    /// Counts frames that the party has not read. It belongs to the edge and not to the link, so that dialling again gives no more.
    unread: Arc<Semaphore>,
    held: Arc<Semaphore>,
    connections: Mutex<VecDeque<Arc<ConnectionHandle>>>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// Whether no more links are accepted.
    finished: bool,
}

/// The link of an edge.
struct Current {
    serial: Serial,
    dialler: NodeId,
    outbox: Arc<Outbox>,
    handle: Arc<ConnectionHandle>,
}

/// The part of the state that tasks wait for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Phase {
    linked: bool,
    dialling: bool,
}

/// Returns whether a link dialled by `new` replaces one dialled by `current`. Both sides come to the same answer: the lower
/// party's link stays. Of two links of the same dialler the newer one stays, since the older one may be half dead.
fn wins(new: NodeId, current: NodeId) -> bool {
    new <= current
}

impl Edge {
    pub(super) fn new(me: NodeId, peer: NodeId, events: EventSender, serials: Serials) -> Self {
        Self {
            me,
            peer,
            events,
            serials,
            state: Mutex::default(),
            phase: watch::Sender::default(),
            unread: Arc::new(Semaphore::new(MAX_UNREAD_FRAMES)),
            held: Arc::new(Semaphore::new(MAX_HELD_LINKS)),
            connections: Mutex::default(),
        }
    }

    pub(super) fn me(&self) -> NodeId {
        self.me
    }

    pub(super) fn peer(&self) -> NodeId {
        self.peer
    }

    /// Waits for the right to give one more link to the party.
    pub(super) async fn acquire_link(&self) -> Option<OwnedSemaphorePermit> {
        self.held.clone().acquire_owned().await.ok()
    }

    /// Waits for the right to give one more frame to the party.
    pub(super) async fn acquire_frame(&self) -> Option<OwnedSemaphorePermit> {
        self.unread.clone().acquire_owned().await.ok()
    }

    /// Makes a link the current one, and reports it. Returns `None` if another one stays.
    pub(super) fn up(
        &self,
        dialler: NodeId,
        outbox: &Arc<Outbox>,
        handle: &Arc<ConnectionHandle>,
        permit: OwnedSemaphorePermit,
    ) -> Option<Serial> {
        let mut state = lock(&self.state);
        if state.finished {
            return None;
        }
        if let Some(current) = &state.current {
            if !wins(dialler, current.dialler) {
                return None;
            }
            current.handle.cut();
            current.outbox.end(EndReason::Close);
            self.report(LinkEvent::Down {
                peer: self.peer,
                serial: current.serial,
                reason: "a newer connection takes its place".into(),
            });
        }
        let serial = self.serials.next();
        state.current = Some(Current {
            serial,
            dialler,
            outbox: outbox.clone(),
            handle: handle.clone(),
        });
        self.report(LinkEvent::Up {
            peer: self.peer,
            serial,
            link: Box::new(OutboxLink::new(outbox.clone(), dialler, permit)),
        });
        self.phase.send_modify(|phase| {
            phase.linked = true;
            phase.dialling = false;
        });
        Some(serial)
    }

    /// Reports a frame.
    pub(super) fn frame(&self, serial: Serial, bytes: Vec<u8>, permit: OwnedSemaphorePermit) {
        let state = lock(&self.state);
        // Frames of a link that was replaced are dropped.
        if state
            .current
            .as_ref()
            .is_some_and(|current| current.serial == serial)
        {
            self.report(LinkEvent::Frame {
                peer: self.peer,
                serial,
                bytes,
                credit: Credit::new(move || drop(permit)),
            });
        }
    }

    /// Reports that a link is down.
    pub(super) fn down(&self, serial: Serial, reason: String) {
        let mut state = lock(&self.state);
        if state
            .current
            .as_ref()
            .is_some_and(|current| current.serial == serial)
        {
            state.current = None;
            self.report(LinkEvent::Down {
                peer: self.peer,
                serial,
                reason,
            });
            self.phase.send_modify(|phase| phase.linked = false);
        }
    }

    /// Reports that the neighbour was not reached.
    pub(super) fn unreachable(&self, reason: String) {
        let peer = self.peer;
        self.report(LinkEvent::Unreachable { peer, reason });
    }

    /// Adds an authenticated connection of the neighbour, and cuts the oldest if there are too many.
    pub(super) fn add_connection(&self, handle: Arc<ConnectionHandle>) {
        let mut connections = lock(&self.connections);
        connections.push_back(handle);
        while connections.len() > MAX_CONNECTIONS {
            if let Some(oldest) = connections.pop_front() {
                oldest.cut();
            }
        }
    }

    /// Accepts no more links. The current one is closed once all queued frames have left.
    pub(super) fn finish(&self) {
        let mut state = lock(&self.state);
        state.finished = true;
        if let Some(current) = &state.current {
            current.outbox.end(EndReason::Close);
        }
    }

    /// Waits until there is a link.
    pub(super) async fn linked(&self) {
        self.wait(|phase| phase.linked).await;
    }

    /// Waits until there is no link.
    pub(super) async fn unlinked(&self) {
        self.wait(|phase| !phase.linked).await;
    }

    /// Waits until this side's own dialling has succeeded or failed.
    pub(super) async fn dialled(&self) {
        self.wait(|phase| phase.linked || !phase.dialling).await;
    }

    /// Records whether this side is dialling.
    pub(super) fn set_dialling(&self, dialling: bool) {
        self.phase.send_modify(|phase| phase.dialling = dialling);
    }

    async fn wait(&self, until: impl FnMut(&Phase) -> bool) {
        // It fails if the sender is dropped, which this edge owns.
        let _ = self.phase.subscribe().wait_for(until).await.map(drop);
    }

    fn report(&self, event: LinkEvent) {
        // The receiver may be gone.
        let _ = self.events.send(event);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EventReceiver, event_queue};
    use super::*;

    fn edge() -> (Edge, EventReceiver) {
        let (events, happened) = event_queue();
        let edge = Edge::new(NodeId(3), NodeId(5), events, Serials::default());
        (edge, happened)
    }

    /// Returns the events in short. Links are dropped, as a party does when they are down.
    fn events(happened: &mut EventReceiver) -> Vec<String> {
        let short = |event| match event {
            LinkEvent::Up { serial, link, .. } => {
                format!("up {} by {:?}", serial.0, link.dialler().map(|id| id.0))
            }
            LinkEvent::Down { serial, .. } => format!("down {}", serial.0),
            LinkEvent::Frame { serial, .. } => format!("frame {}", serial.0),
            _ => "else".into(),
        };
        std::iter::from_fn(|| happened.try_recv().ok())
            .map(short)
            .collect()
    }

    fn up(edge: &Edge, dialler: u32) -> Option<Serial> {
        let permit = edge.held.clone().try_acquire_owned().unwrap();
        let (outbox, _) = Outbox::new();
        edge.up(NodeId(dialler), &outbox, &Arc::default(), permit)
    }

    #[test]
    fn the_lower_partys_link_stays_whichever_came_first() {
        let (edge, mut happened) = edge();
        up(&edge, 5).unwrap();
        up(&edge, 3).unwrap();
        assert_eq!(up(&edge, 5), None);
        let expected = ["up 0 by Some(5)", "down 0", "up 1 by Some(3)"];
        assert_eq!(events(&mut happened), expected);
    }

    #[test]
    fn a_newer_link_of_the_same_dialler_replaces_the_older() {
        for dialler in [3, 5] {
            let (edge, mut happened) = edge();
            up(&edge, dialler).unwrap();
            up(&edge, dialler).unwrap();
            let by = format!("by Some({dialler})");
            let expected = [format!("up 0 {by}"), "down 0".into(), format!("up 1 {by}")];
            assert_eq!(events(&mut happened), expected);
        }
    }

    #[test]
    fn a_link_goes_down_once() {
        let (edge, mut happened) = edge();
        let old = up(&edge, 5).unwrap();
        let new = up(&edge, 3).unwrap();
        edge.down(old, String::new());
        edge.down(new, String::new());
        edge.down(new, String::new());
        let expected = ["up 0 by Some(5)", "down 0", "up 1 by Some(3)", "down 1"];
        assert_eq!(events(&mut happened), expected);
        assert!(up(&edge, 5).is_some());
    }

    #[test]
    fn frames_of_a_replaced_link_are_dropped() {
        let (edge, mut happened) = edge();
        let old = up(&edge, 5).unwrap();
        let new = up(&edge, 3).unwrap();
        events(&mut happened);
        for serial in [old, new] {
            let permit = edge.unread.clone().try_acquire_owned().unwrap();
            edge.frame(serial, vec![1], permit);
        }
        assert_eq!(events(&mut happened), ["frame 1"]);
        assert_eq!(edge.unread.available_permits(), MAX_UNREAD_FRAMES);
    }

    #[test]
    fn the_number_of_links_that_the_party_holds_is_bounded() {
        let (edge, mut happened) = edge();
        for _ in 0..MAX_HELD_LINKS {
            up(&edge, 5).unwrap();
        }
        assert_eq!(edge.held.available_permits(), 0);
        events(&mut happened);
        assert_eq!(edge.held.available_permits(), MAX_HELD_LINKS);
    }

    #[test]
    fn only_the_newest_connections_stay() {
        let (edge, _happened) = edge();
        let handles: Vec<Arc<ConnectionHandle>> = (0..5).map(|_| Arc::default()).collect();
        for handle in &handles {
            edge.add_connection(handle.clone());
        }
        let cut: Vec<bool> = handles.iter().map(|handle| handle.is_cut()).collect();
        assert_eq!(cut, [true, true, true, false, false]);
    }

    #[test]
    fn no_link_comes_up_after_finish() {
        let (edge, mut happened) = edge();
        edge.finish();
        assert_eq!(up(&edge, 3), None);
        assert!(events(&mut happened).is_empty());
    }
}
