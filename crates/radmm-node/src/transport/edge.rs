//! What is known of one edge: whether it has a link, and which one stays if there are two.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use radmm::public::graph::NodeId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::connection::Grip;
use super::locked;
use super::outbox::{End, Handle, Outbox};
use crate::machine::link::{Credit, Event, Serial, Serials, UNREAD};

/// So many links of an edge may be in the party's hands, those that have ended included. A neighbour that dials without
/// end has to wait until the party has seen what became of its earlier links.
const HELD: usize = 3;

/// So many connections of a neighbour are open: the one that carries the link, and the one that is to take its place.
const CONNECTIONS: usize = 2;

/// One edge.
pub(super) struct Edge {
    me: NodeId,
    peer: NodeId,
    events: Sender<Event>,
    serials: Serials,
    state: Mutex<State>,
    phase: watch::Sender<Phase>,
    /// Frames that the party has not read. The edge's, not the link's: otherwise whoever dials anew could send more.
    unread: Arc<Semaphore>,
    held: Arc<Semaphore>,
    connections: Mutex<VecDeque<Arc<Grip>>>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// No more links.
    over: bool,
}

struct Current {
    serial: Serial,
    dialler: NodeId,
    outbox: Arc<Outbox>,
    grip: Arc<Grip>,
}

/// What others wait for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Phase {
    linked: bool,
    dialling: bool,
}

/// Whether a link dialled by `new` takes the place of one dialled by `current`. Both sides come to the same answer: the
/// lower party's link stays. A link of the same dialler is newer, and the older one may be half dead.
fn wins(new: NodeId, current: NodeId) -> bool {
    new <= current
}

impl Edge {
    pub(super) fn new(me: NodeId, peer: NodeId, events: Sender<Event>, serials: Serials) -> Self {
        Self {
            me,
            peer,
            events,
            serials,
            state: Mutex::default(),
            phase: watch::Sender::default(),
            unread: Arc::new(Semaphore::new(UNREAD)),
            held: Arc::new(Semaphore::new(HELD)),
            connections: Mutex::default(),
        }
    }

    pub(super) fn me(&self) -> NodeId {
        self.me
    }

    pub(super) fn peer(&self) -> NodeId {
        self.peer
    }

    /// The right to give one more link to the party.
    pub(super) async fn hold(&self) -> Option<OwnedSemaphorePermit> {
        self.held.clone().acquire_owned().await.ok()
    }

    /// The right to give one more frame to the party.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.unread.clone().acquire_owned().await.ok()
    }

    /// A link is up, unless another one stays.
    pub(super) fn up(
        &self,
        dialler: NodeId,
        outbox: &Arc<Outbox>,
        grip: &Arc<Grip>,
        hold: OwnedSemaphorePermit,
    ) -> Option<Serial> {
        let mut state = locked(&self.state);
        if state.over {
            return None;
        }
        if let Some(current) = &state.current {
            if !wins(dialler, current.dialler) {
                return None;
            }
            current.outbox.end(End::Replaced);
            current.grip.cut();
            self.tell(Event::Down {
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
            grip: grip.clone(),
        });
        self.tell(Event::Up {
            peer: self.peer,
            serial,
            link: Box::new(Handle::new(outbox.clone(), hold)),
        });
        self.phase.send_modify(|phase| {
            phase.linked = true;
            phase.dialling = false;
        });
        Some(serial)
    }

    /// A frame has arrived.
    pub(super) fn frame(&self, serial: Serial, bytes: Vec<u8>, room: OwnedSemaphorePermit) {
        let state = locked(&self.state);
        // What a link says after it was replaced is not passed on.
        if state
            .current
            .as_ref()
            .is_some_and(|current| current.serial == serial)
        {
            self.tell(Event::Frame {
                peer: self.peer,
                serial,
                bytes,
                credit: Credit::new(move || drop(room)),
            });
        }
    }

    /// A link has gone.
    pub(super) fn down(&self, serial: Serial, reason: String) {
        let mut state = locked(&self.state);
        if state
            .current
            .as_ref()
            .is_some_and(|current| current.serial == serial)
        {
            state.current = None;
            self.tell(Event::Down {
                peer: self.peer,
                serial,
                reason,
            });
            self.phase.send_modify(|phase| phase.linked = false);
        }
    }

    /// The neighbour was not reached.
    pub(super) fn unreachable(&self, reason: String) {
        let peer = self.peer;
        self.tell(Event::Unreachable { peer, reason });
    }

    /// The neighbour has proved on one more connection who it is.
    pub(super) fn connected(&self, grip: Arc<Grip>) {
        let mut connections = locked(&self.connections);
        connections.push_back(grip);
        while connections.len() > CONNECTIONS {
            if let Some(oldest) = connections.pop_front() {
                oldest.cut();
            }
        }
    }

    /// No more links. The one that is there ends when everything that was queued has left.
    pub(super) fn finish(&self) {
        let mut state = locked(&self.state);
        state.over = true;
        if let Some(current) = &state.current {
            current.outbox.end(End::Close);
        }
    }

    /// When there is a link.
    pub(super) async fn linked(&self) {
        self.wait(|phase| phase.linked).await;
    }

    /// When there is no link.
    pub(super) async fn unlinked(&self) {
        self.wait(|phase| !phase.linked).await;
    }

    /// When it is known what came of this side's own dialling.
    pub(super) async fn dialled(&self) {
        self.wait(|phase| phase.linked || !phase.dialling).await;
    }

    /// This side dials, or does not any more.
    pub(super) fn dials(&self, dialling: bool) {
        self.phase.send_modify(|phase| phase.dialling = dialling);
    }

    async fn wait(&self, until: impl FnMut(&Phase) -> bool) {
        // It fails if the sender has gone, which is this edge's own.
        let _ = self.phase.subscribe().wait_for(until).await.map(drop);
    }

    fn tell(&self, event: Event) {
        // Nobody may be listening any more.
        let _ = self.events.send(event);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn edge() -> (Edge, Receiver<Event>) {
        let (events, happened) = channel();
        let edge = Edge::new(NodeId(3), NodeId(5), events, Serials::default());
        (edge, happened)
    }

    /// What happened, in short. Links are dropped, as a party does when it hears that they have gone.
    fn told(happened: &Receiver<Event>) -> Vec<String> {
        let short = |event| match event {
            Event::Up { serial, .. } => format!("up {}", serial.0),
            Event::Down { serial, .. } => format!("down {}", serial.0),
            Event::Frame { serial, .. } => format!("frame {}", serial.0),
            _ => "else".into(),
        };
        happened.try_iter().map(short).collect()
    }

    fn up(edge: &Edge, dialler: u32) -> Option<Serial> {
        let hold = edge.held.clone().try_acquire_owned().unwrap();
        let (outbox, _, _) = Outbox::new();
        edge.up(NodeId(dialler), &outbox, &Grip::new(), hold)
    }

    #[test]
    fn the_lower_partys_link_stays_whichever_came_first() {
        let (edge, happened) = edge();
        up(&edge, 5).unwrap();
        up(&edge, 3).unwrap();
        assert_eq!(up(&edge, 5), None);
        assert_eq!(told(&happened), ["up 0", "down 0", "up 1"]);
    }

    #[test]
    fn a_newer_link_of_the_same_dialler_replaces_the_older() {
        for dialler in [3, 5] {
            let (edge, happened) = edge();
            up(&edge, dialler).unwrap();
            up(&edge, dialler).unwrap();
            assert_eq!(told(&happened), ["up 0", "down 0", "up 1"]);
        }
    }

    #[test]
    fn a_link_goes_down_once() {
        let (edge, happened) = edge();
        let old = up(&edge, 5).unwrap();
        let new = up(&edge, 3).unwrap();
        edge.down(old, String::new());
        edge.down(new, String::new());
        edge.down(new, String::new());
        assert_eq!(told(&happened), ["up 0", "down 0", "up 1", "down 1"]);
        assert!(up(&edge, 5).is_some());
    }

    #[test]
    fn frames_of_a_replaced_link_are_not_passed_on() {
        let (edge, happened) = edge();
        let old = up(&edge, 5).unwrap();
        let new = up(&edge, 3).unwrap();
        told(&happened);
        for serial in [old, new] {
            let room = edge.unread.clone().try_acquire_owned().unwrap();
            edge.frame(serial, vec![1], room);
        }
        assert_eq!(told(&happened), ["frame 1"]);
        assert_eq!(edge.unread.available_permits(), UNREAD);
    }

    #[test]
    fn links_that_the_party_has_not_let_go_are_few() {
        let (edge, happened) = edge();
        for _ in 0..HELD {
            up(&edge, 5).unwrap();
        }
        assert_eq!(edge.held.available_permits(), 0);
        told(&happened);
        assert_eq!(edge.held.available_permits(), HELD);
    }

    #[test]
    fn of_many_connections_the_newest_stay() {
        let (edge, _happened) = edge();
        let grips: Vec<Arc<Grip>> = (0..5).map(|_| Grip::new()).collect();
        for grip in &grips {
            edge.connected(grip.clone());
        }
        let cut: Vec<bool> = grips.iter().map(|grip| grip.is_cut()).collect();
        assert_eq!(cut, [true, true, true, false, false]);
    }

    #[test]
    fn nothing_comes_up_after_the_end() {
        let (edge, happened) = edge();
        edge.finish();
        assert_eq!(up(&edge, 3), None);
        assert!(told(&happened).is_empty());
    }
}
