//! One party: a node with a store and links.
//!
//! The order of operations is what protects rows. A node that has received a value from every neighbour goes on: it prices its
//! query, checks the limits, draws noise and solves. The results (charge, answer, received values, the value to send) are persisted
//! in one durable record. Only then does a frame leave. A party that is killed anywhere in between and restarted replays its journal
//! up to where it was, and sends the same bytes.
//!
//! A neighbour is sent `f_i(k)` once it is known to be at `k − 1` at least, since it would reject it before. However long the
//! neighbour was away, at most two values are on their way to it, and a restored backup catches up step by step.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use radmm::curator::ChargedAnswer;
use radmm::graph::{Graph, NodeId};
use radmm::node::{Node, StopReason};
use radmm::privacy::{DatasetAccount, Guarantee};
use radmm::protocol::release::Release;
use radmm_study::instantiate::{self, Instance};
use radmm_study::{NoiseOrigin, Study};
use thiserror::Error;

use super::frame::{Frame, SignedMessage};
use super::link::{Link, LinkEvent, Serial};
use super::neighbour_verifier::NeighbourVerifier;
use super::receive::Verdict;
use super::study_limits::{StudyLimits, ValueNoise};
use super::suspicion::Watch;
use crate::key::SecretKey;
use crate::public_key::PublicKey;
use crate::runtime::{Notice, Pacer, Suspicion};
use crate::store::{RowFingerprint, Store, StoreError, StudyRecord};

/// A neighbour, as the study names it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The neighbour's number.
    pub id: NodeId,
    /// The neighbour's name.
    pub name: String,
    /// The neighbour's public key.
    pub key: [u8; 32],
}

/// The parts that a party is made of.
pub(crate) struct PartyParts<'a> {
    /// The study.
    pub(crate) study: &'a Study,
    /// The graph of parties.
    pub(crate) graph: &'a Graph,
    /// The source of the noise.
    pub(crate) noise: NoiseOrigin,
    /// A fresh node, whose ledger holds the charges on record.
    pub(crate) node: Node,
    /// The neighbours, in ascending order.
    pub(crate) peers: Vec<Peer>,
    /// The key that signs messages.
    pub(crate) key: Arc<SecretKey>,
    /// The store of the state folder.
    pub(crate) store: Store,
    /// The study's record in the store.
    pub(crate) study_record: StudyRecord,
    /// The charges and answers of this study on record, by iteration.
    pub(crate) charged_answers: Vec<ChargedAnswer>,
    /// The fingerprint of the rows.
    pub(crate) rows: RowFingerprint,
    /// The account of the rows over all studies, if the site has limits.
    pub(crate) account: Option<DatasetAccount>,
    /// Whether the party stops when a neighbour's values are suspicious.
    pub(crate) stop_on_suspicion: bool,
}

/// A reason for which a party cannot go on.
#[derive(Debug, Error)]
pub enum PartyError {
    /// A record cannot be persisted, so nothing may be sent.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This party's own curator refuses, or the algorithm diverges.
    #[error("{0}")]
    Stopped(Box<StopReason>),
    /// The state is older than what was sent.
    #[error(
        "{peer} shows that it has received this party's values up to iteration {iteration} of this study, and this state folder has no record of them: the state was lost, or is an old copy. Resuming would answer queries again, at a price that the account does not hold. Use the state as it was last; if it is gone, this study cannot go on here: radmm state adopt ends it, and counts all that it was going to ask (docs/node.md, Backups); nothing was sent"
    )]
    StateRolledBack {
        /// The neighbour that shows it.
        peer: String,
        /// The last iteration of this party that the neighbour has.
        iteration: u32,
    },
    /// A neighbour is proved to be dishonest.
    #[error(
        "{peer} misbehaves: {what}; its frames are kept as evidence (radmm ledger show): talk to {peer} before you start again"
    )]
    Misbehaved {
        /// The neighbour.
        peer: String,
        /// The misbehaviour.
        what: String,
    },
    /// A neighbour's values are suspicious, and the site file asks to stop then.
    #[error(
        "{peer} is suspicious at iteration {iteration}: {why}; nothing more is sent, since the site file has stop_on_suspicion = true. Talk to {peer} before you start again; to go on all the same, take that line out",
        peer = .0.peer, iteration = .0.iteration, why = .0.why
    )]
    Suspicious(Suspicion),
    /// A neighbour has another value where all parties must have the same one.
    #[error(
        "{peer}'s value of iteration {iteration} differs from this party's, and all parties must have the same value there: somebody passed on a wrong one. This difference does not tell who; everyone's transcripts (radmm verify) do. Both values are kept (radmm ledger show), and nothing more is sent: talk to the other parties before you start again"
    )]
    NotCommon {
        /// The neighbour.
        peer: String,
        /// The iteration.
        iteration: u32,
    },
    /// Replaying the journal leads to another value than the one that was sent.
    #[error(
        "replaying the state does not lead to what was sent at iteration {0}: it was written by another version of the program, or is damaged; nothing was sent"
    )]
    StateDiverged(u32),
}

/// The state of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// There is no link.
    Away,
    /// There is a link, and the neighbour's value of this iteration is awaited.
    Awaited,
    /// The neighbour's value of this iteration has been received.
    Received,
    /// The neighbour holds another study or speaks another version of the protocol.
    Disagrees,
    /// The neighbour has acknowledged all values of this party.
    Done,
}

/// A party's state for one neighbour.
pub(super) struct EdgeState {
    pub(super) peer: Peer,
    /// The neighbour's key, prepared to check a signature at every iteration.
    pub(super) key: PublicKey,
    pub(super) link: Option<(Serial, Box<dyn Link>)>,
    /// Whether a hello has arrived on this link.
    pub(super) hello_received: bool,
    /// Whether the hello was accepted: values are exchanged on this link.
    pub(super) handshake_done: bool,
    /// The iteration of the neighbour's last value, as far as is known.
    pub(super) at: u32,
    /// The next iteration whose value is to be sent.
    pub(super) next: u32,
    /// The least iteration whose value the neighbour may send on this link, by our hello and by what it has sent since.
    pub(super) due: u32,
    /// The last iteration of which the neighbour's value is persisted.
    pub(super) persisted: Option<u32>,
    /// The last `AckConfirmed` that was sent on this link, if any.
    pub(super) confirmation_sent: Option<bool>,
    /// Whether both sides know that both acknowledgements are persisted.
    pub(super) closed: bool,
    /// The neighbour's value of the next iteration.
    pub(super) early: Option<SignedMessage>,
    /// The disagreement that was last reported: the same one is not reported twice.
    pub(super) disagreement: Option<String>,
    /// The number of links that ended before the neighbour's greeting, since the last that did not.
    pub(super) early_ends: u32,
    /// The number of rejected frames.
    pub(super) rejected: u32,
    pub(super) verifier: Option<NeighbourVerifier>,
    pub(super) watch: Watch,
    /// The neighbour's `f_j(0)`, which is public.
    pub(super) start: Release,
}

/// One party of a study.
pub struct Party {
    pub(super) node: Node,
    /// `f_i(t)` of the iteration whose values are awaited.
    pub(super) own: Release,
    pub(super) edges: Vec<EdgeState>,
    pub(super) key: Arc<SecretKey>,
    pub(super) store: Store,
    pub(super) study_record: StudyRecord,
    pub(super) rows: RowFingerprint,
    pub(super) account: Option<DatasetAccount>,
    /// The digest in greetings and signatures: [`Study::spoken_digest`].
    pub(super) digest: [u8; 32],
    pub(super) noise: NoiseOrigin,
    /// The digest of parties of this study with the other noise.
    pub(super) other_digest: [u8; 32],
    pub(super) canonical: String,
    pub(super) iterations: u32,
    /// The neighbours' values of this iteration, which are not persisted yet.
    pub(super) inbox: Vec<SignedMessage>,
    /// The encoded frames of the last two values of this party.
    pub(super) recently_sent: VecDeque<(u32, Vec<u8>)>,
    pub(super) consensus: f64,
    /// The distances by iteration that were replayed from the journal.
    pub(super) distances: Vec<(u32, f64)>,
    /// The number of links that ended before their greeting.
    pub(super) early_ends: u64,
    pub(super) notices: Vec<Notice>,
    /// The noise of this party's values at data steps, by iteration.
    pub(super) own_noise: BTreeMap<u32, ValueNoise>,
    /// The suspicions of neighbours since the start of the study.
    pub(super) suspicions: Vec<Suspicion>,
    /// Whether the first of them stops the party.
    pub(super) stop_on_suspicion: bool,
    /// The pacer that holds back answers; `None` to send them at once.
    pub(super) pacer: Option<Box<dyn Pacer>>,
}

impl Party {
    /// Opens a party where it last persisted something: at its start, or in the middle of its study.
    pub(crate) fn open(parts: PartyParts<'_>) -> Result<Self, PartyError> {
        let PartyParts {
            study,
            graph,
            noise,
            node,
            peers,
            key,
            store,
            study_record,
            charged_answers,
            rows,
            account,
            stop_on_suspicion,
        } = parts;
        let columns = node.curator().columns();
        let me = node.id();
        let instance = Instance::declared(study, graph);
        let watched = peers.iter().map(|peer| peer.id).chain([me]);
        let limits = Arc::new(StudyLimits::new(study, graph, watched));
        let mut edges = Vec::new();
        for peer in peers {
            let watch = Watch::new(limits.value_noise(peer.id));
            let start = instantiate::start(study, peer.id, columns);
            let start = Release::rounded(&start).ok_or(PartyError::StateDiverged(0))?;
            edges.push(EdgeState {
                verifier: Some(NeighbourVerifier::new(
                    &instance,
                    limits.clone(),
                    me,
                    peer.id,
                    start.clone(),
                )),
                key: PublicKey::new(&peer.key),
                peer,
                link: None,
                hello_received: false,
                handshake_done: false,
                at: 0,
                next: 0,
                due: 0,
                persisted: None,
                confirmation_sent: None,
                closed: false,
                early: None,
                disagreement: None,
                early_ends: 0,
                rejected: 0,
                start,
                watch,
            });
        }
        let mut party = Self {
            own: node.released().clone(),
            node,
            edges,
            key,
            digest: study.spoken_digest(noise),
            other_digest: study.spoken_digest(noise.other()),
            noise,
            canonical: study.canonical(),
            iterations: study.algorithm.iterations,
            store,
            study_record,
            rows,
            account,
            inbox: Vec::new(),
            recently_sent: VecDeque::new(),
            consensus: 0.0,
            distances: Vec::new(),
            early_ends: 0,
            notices: Vec::new(),
            own_noise: limits.value_noise(me),
            suspicions: Vec::new(),
            stop_on_suspicion: false,
            pacer: None,
        };
        party.recover(charged_answers.into())?;
        party.notices.clear();
        party.stop_on_suspicion = stop_on_suspicion;
        match party.suspicions.first() {
            Some(first) if stop_on_suspicion => Err(PartyError::Suspicious(first.clone())),
            _ => Ok(party),
        }
    }

    /// Replays the journal.
    fn recover(&mut self, mut answers: VecDeque<ChargedAnswer>) -> Result<(), PartyError> {
        let start = self.node.start();
        self.perform(start)?;
        let study = self.study_record.number;
        if self.edges.is_empty() {
            return self.recover_alone(answers);
        }
        // One iteration is in memory at a time.
        for at in self.store.received_iterations(study)? {
            for signed in self.store.received_at(study, at)? {
                let Some(index) = self.edge_of(signed.message.from) else {
                    return Err(PartyError::StateDiverged(at));
                };
                self.edges[index].persisted = Some(at);
                self.edges[index].at = self.edges[index].at.max(at);
                let mut recall = |t| match answers.front() {
                    Some(next) if next.iteration == t => answers.pop_front(),
                    _ => None,
                };
                // A value that was accepted before is accepted again, or this is another program.
                match self.accept(index, signed, &mut recall)? {
                    Verdict::Accepted => {}
                    Verdict::Rejected(_) => return Err(PartyError::StateDiverged(at)),
                }
            }
        }
        // Only whole iterations are persisted.
        if !self.inbox.is_empty() {
            return Err(PartyError::StateDiverged(self.node.iteration()));
        }
        match answers.front() {
            None => Ok(()),
            Some(left) => Err(PartyError::StateDiverged(left.iteration)),
        }
    }

    /// Returns the index of a neighbour's edge.
    pub(super) fn edge_of(&self, id: NodeId) -> Option<usize> {
        let found = self.edges.binary_search_by_key(&id, |edge| edge.peer.id);
        found.ok()
    }

    /// Handles an event.
    pub fn handle(&mut self, event: LinkEvent) -> Result<(), PartyError> {
        // Privacy: nothing leaves a party whose state the next process will not find.
        self.store.check_place()?;
        match event {
            LinkEvent::Up { peer, serial, link } => {
                if let Some(index) = self.edge_of(peer) {
                    self.link_up(index, serial, link);
                }
            }
            LinkEvent::Frame {
                peer,
                serial,
                bytes,
                credit,
            } => {
                if let Some(index) = self.edge_with_link(peer, serial) {
                    self.receive_frame(index, &bytes)?;
                }
                drop(credit);
            }
            LinkEvent::Down {
                peer,
                serial,
                reason,
            } => {
                if let Some(index) = self.edge_with_link(peer, serial) {
                    self.edges[index].link = None;
                    self.report_disconnect(index, reason);
                }
            }
            LinkEvent::Unreachable { peer, reason } => {
                if let Some(index) = self.edge_of(peer) {
                    let peer = self.edges[index].peer.name.clone();
                    self.notices.push(Notice::Unreachable { peer, reason });
                }
            }
            LinkEvent::Refused {
                address,
                reason,
                more,
            } => {
                self.notices.push(Notice::Refused {
                    address,
                    reason,
                    more,
                });
            }
            LinkEvent::Stop => {
                let iteration = self.node.iteration();
                self.notices.push(Notice::Stopping { iteration });
                for index in 0..self.edges.len() {
                    self.send(index, &Frame::Bye("its operator stopped it".to_owned()));
                    self.close_link(index);
                }
            }
        }
        Ok(())
    }

    /// Returns the index of a neighbour's edge, if this is its current link.
    fn edge_with_link(&self, peer: NodeId, serial: Serial) -> Option<usize> {
        let index = self.edge_of(peer)?;
        let (current, _) = self.edges[index].link.as_ref()?;
        (*current == serial).then_some(index)
    }

    /// Reports that a neighbour is disconnected, unless it left after the study was closed with it.
    pub(super) fn report_disconnect(&mut self, index: usize, reason: String) {
        let edge = &mut self.edges[index];
        let connected = mem::replace(&mut edge.handshake_done, false);
        if !connected {
            return self.report_early_end(index, reason);
        }
        if !edge.closed {
            let peer = edge.peer.name.clone();
            self.notices.push(Notice::Disconnected { peer, reason });
        }
    }

    /// Reports that links of a neighbour end before its greeting: once, however many do. A single one is nothing to tell, since
    /// another connection may have replaced it.
    fn report_early_end(&mut self, index: usize, reason: String) {
        self.early_ends += 1;
        let edge = &mut self.edges[index];
        edge.early_ends = edge.early_ends.saturating_add(1);
        if edge.early_ends == 2 && edge.disagreement.is_none() {
            let peer = edge.peer.name.clone();
            let reason = format!("its links end before its greeting: {reason}");
            self.notices.push(Notice::Unreachable { peer, reason });
        }
    }

    fn link_up(&mut self, index: usize, serial: Serial, link: Box<dyn Link>) {
        let hello = self.hello(index);
        let edge = &mut self.edges[index];
        edge.link = Some((serial, link));
        edge.hello_received = false;
        edge.handshake_done = false;
        edge.due = hello.persisted.map_or(0, |last| last + 1);
        // A confirmation on the previous link may not have arrived.
        edge.confirmation_sent = None;
        self.send(index, &Frame::Hello(hello));
    }

    /// Lets answers to data steps leave on the ticks of a pacer.
    pub fn set_pacer(&mut self, pacer: Box<dyn Pacer>) {
        self.pacer = Some(pacer);
    }

    /// Takes the notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        let notices = mem::take(&mut self.notices).into_iter();
        notices.map(Notice::escaped).collect()
    }

    /// Returns whether all iterations are done.
    pub fn is_finished(&self) -> bool {
        self.study_record.finished
    }

    /// Returns the neighbours' names and states.
    pub fn peers(&self) -> impl Iterator<Item = (&str, PeerState)> {
        self.edges.iter().map(|edge| {
            let state = match edge {
                edge if self.study_record.acked.contains(&edge.peer.id.0) => PeerState::Done,
                edge if self.in_inbox(edge.peer.id).is_some() => PeerState::Received,
                edge if edge.handshake_done => PeerState::Awaited,
                edge if edge.disagreement.is_some() => PeerState::Disagrees,
                _ => PeerState::Away,
            };
            (edge.peer.name.as_str(), state)
        })
    }

    /// Returns the iterations of the neighbours' last values, as far as they are known, in the order of [`peers`](Self::peers).
    pub fn peer_iterations(&self) -> impl Iterator<Item = u32> {
        self.edges.iter().map(|edge| edge.at)
    }

    /// Returns a neighbour's value of this iteration, if it has been received.
    pub(super) fn in_inbox(&self, from: NodeId) -> Option<&SignedMessage> {
        self.inbox.iter().find(|signed| signed.message.from == from)
    }

    /// Returns the iteration of this party's last value.
    pub fn iteration(&self) -> u32 {
        self.node.iteration()
    }

    /// Returns `T`.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Returns how many links ended before the neighbour's greeting.
    pub fn early_ends(&self) -> u64 {
        self.early_ends
    }

    /// Returns the largest distance of a neighbour's value from this party's, at the last iteration that was closed and whose values
    /// can be compared: where they are models, or must be the same.
    pub fn consensus(&self) -> f64 {
        self.consensus
    }

    /// Returns that distance at each iteration that was made before this party was opened.
    pub fn distances(&self) -> &[(u32, f64)] {
        &self.distances
    }

    /// Returns the guarantee of this study so far.
    pub fn spent(&self) -> Guarantee {
        self.node.curator().ledger().spent()
    }

    /// Returns, for each limit of the site, what all studies have spent on these rows.
    pub fn spent_on_rows(&self) -> Vec<Guarantee> {
        // An account that failed shows nothing, and lets nothing be spent either.
        let spent = self.account.as_ref().and_then(|site| site.spent().ok());
        spent.map_or_else(Vec::new, |spent| spent.totals)
    }

    /// Returns the node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the suspicions of neighbours since the start of the study.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Returns the store, and the study's record in it.
    pub fn store(&self) -> (&Store, &StudyRecord) {
        (&self.store, &self.study_record)
    }

    /// Returns the key that signs statements.
    pub fn key(&self) -> &SecretKey {
        &self.key
    }
}
