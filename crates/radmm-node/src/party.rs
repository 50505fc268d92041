//! One party: a node with a store and links. No IO but the store's, no clock, no async: events in, frames out.
//!
//! The order of things is what protects rows. A node that has heard everyone goes on: it prices its question, checks the
//! limits, draws and solves. What comes of it (charge, answer, what was heard, what is to be said) is kept in one durable
//! transaction. Only then a frame leaves. A party that is killed anywhere in between and opened again is led through its
//! journal to where it was, and says the same bytes.
//!
//! A neighbour is told `f_i(k)` once it is known to be at `k − 1` at least, since it could not take it before. So however long
//! it was away, at most two values are on their way to it, and a restored backup is caught up with step by step.

mod ending;
mod greeting;
mod hearing;
mod lies;
mod saying;

use std::collections::VecDeque;
use std::mem;

use radmm::account::{Guarantee, Site};
use radmm::node::{Node, Stop};
use radmm::private::Recorded;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::Release;
use radmm_study::{Study, instantiate};
use thiserror::Error;

use crate::frame::{Frame, Signed};
use crate::key::SecretKey;
use crate::link::{Event, Link, Serial};
use crate::notice::Notice;
use crate::shadow::Shadow;
use crate::store::{Begun, Fingerprint, Store, StoreError};
use hearing::Taken;

/// A neighbour, as the study names it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its number.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its public key.
    pub key: [u8; 32],
}

/// What a party is made of.
pub struct Opening<'a> {
    /// What all agreed on.
    pub study: &'a Study,
    /// Who talks to whom.
    pub graph: &'a Graph,
    /// A fresh node, whose ledger holds what the store says was charged.
    pub node: Node,
    /// The neighbours, in ascending order.
    pub peers: Vec<Peer>,
    /// For signing.
    pub key: SecretKey,
    /// What must not be forgotten.
    pub store: Store,
    /// The study in the store.
    pub begun: Begun,
    /// The rows.
    pub data: Fingerprint,
    /// The account of the rows, over all studies, if the site has limits.
    pub account: Option<Site>,
}

/// Why a party cannot go on.
#[derive(Debug, Error)]
pub enum Halt {
    /// Nothing can be kept, so nothing may be said.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This party's own curator refuses, or the algorithm diverges.
    #[error("{0}")]
    Stopped(Box<Stop>),
    /// The state is older than what was said.
    #[error(
        "{peer} shows that it has heard this party up to iteration {heard} of this study, and this state folder does not know of it: the state was lost, or is an old copy. To go on would answer questions again, at a price that the account does not hold. Use the state as it was last; if it is gone, this study cannot go on here, and what it has spent must be taken off the site's limit (docs/node.md, Backups); nothing was sent"
    )]
    Forgotten {
        /// Who remembers.
        peer: String,
        /// The last iteration that it has of this party.
        heard: u32,
    },
    /// A neighbour's word is worth nothing.
    #[error(
        "{peer} lies: {what}; what it said is kept as evidence (radmm ledger show): talk to {peer} before you start again"
    )]
    Lied {
        /// Who.
        peer: String,
        /// What it said.
        what: String,
    },
    /// The journal leads to another place than before.
    #[error(
        "the state does not lead to what was said at iteration {0}: it was made by another version of the program, or is damaged; nothing was sent"
    )]
    Astray(u32),
}

/// How a neighbour is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// There is no link.
    Away,
    /// There is one, and it is behind.
    Awaited,
    /// Its value of this iteration is here.
    Heard,
    /// It holds another study or speaks another protocol.
    Disagrees,
    /// It has everything that this party will ever say.
    Done,
}

struct Edge {
    peer: Peer,
    link: Option<(Serial, Box<dyn Link>)>,
    /// Whether it has said something like a greeting on this link.
    met: bool,
    /// Whether it has said that it holds the same study.
    greeted: bool,
    /// The iteration of its last value, as far as is known.
    at: u32,
    /// The next iteration of ours that it needs.
    next: u32,
    /// The last of its values that is in the store.
    kept: Option<u32>,
    /// What this link was told of what it has, if anything: whether it knows the same of this side.
    told: Option<bool>,
    /// Whether nothing is left to be said, and both know it.
    parted: bool,
    /// Its value of this iteration.
    heard: Option<Release>,
    /// Its value of the next one.
    early: Option<Signed>,
    /// In what it disagrees: the same is not said twice.
    complaint: Option<String>,
    /// How often it was caught.
    lies: u32,
    shadow: Option<Shadow>,
    /// Its `f_j(0)`, which is public.
    start: Release,
}

/// One party.
pub struct Party {
    node: Node,
    /// `f_i(t)` of the iteration that is being heard.
    own: Release,
    edges: Vec<Edge>,
    key: SecretKey,
    store: Store,
    begun: Begun,
    data: Fingerprint,
    account: Option<Site>,
    digest: [u8; 32],
    canonical: String,
    iterations: u32,
    /// Heard and not kept yet.
    fresh: Vec<Signed>,
    /// The last two things that were said.
    said: VecDeque<(u32, Vec<u8>)>,
    consensus: f64,
    notices: Vec<Notice>,
}

impl Party {
    /// A party where it was when it last kept something: at its start, or in the middle of its study.
    pub fn open(opening: Opening<'_>) -> Result<Self, Halt> {
        let Opening {
            study,
            graph,
            node,
            peers,
            key,
            store,
            begun,
            data,
            account,
        } = opening;
        let (columns, precision) = (node.curator().columns(), node.curator().precision());
        let me = node.id();
        let mut edges = Vec::new();
        for peer in peers {
            let start = instantiate::start(study, peer.id, columns);
            let start = Release::of(start, precision).ok_or(Halt::Astray(0))?;
            edges.push(Edge {
                shadow: Shadow::new(study, graph, me, peer.id, start.clone()),
                peer,
                link: None,
                met: false,
                greeted: false,
                at: 0,
                next: 0,
                kept: None,
                told: None,
                parted: false,
                heard: None,
                early: None,
                complaint: None,
                lies: 0,
                start,
            });
        }
        let mut party = Self {
            own: node.model().clone(),
            node,
            edges,
            key,
            digest: study.digest(),
            canonical: study.canonical(),
            iterations: study.algorithm.iterations,
            store,
            begun,
            data,
            account,
            fresh: Vec::new(),
            said: VecDeque::new(),
            consensus: 0.0,
            notices: Vec::new(),
        };
        party.recover()?;
        party.notices.clear();
        Ok(party)
    }

    /// Goes through the journal.
    fn recover(&mut self) -> Result<(), Halt> {
        let study = self.begun.number;
        let start = self.node.start();
        self.perform(start)?;
        let mut journal: VecDeque<Recorded> = self.store.recorded(study)?.into();
        let mut heard = Vec::new();
        self.store.all_heard(study, |signed| {
            heard.push(signed);
            Ok(())
        })?;
        for signed in heard {
            let Some(place) = self.place(signed.message.from) else {
                return Err(Halt::Astray(signed.message.iteration));
            };
            let at = signed.message.iteration;
            self.edges[place].kept = Some(at);
            self.edges[place].at = self.edges[place].at.max(at);
            let mut record = |t| match journal.front() {
                Some(next) if next.iteration == t => journal.pop_front(),
                _ => None,
            };
            // What was fine before is fine now, or this is another program.
            match self.take(place, signed, &mut record)? {
                Taken::Fine => {}
                Taken::Wrong(_) => return Err(Halt::Astray(at)),
            }
        }
        // What was heard early was kept with an earlier step; it is not fresh.
        self.fresh.clear();
        match journal.front() {
            None => Ok(()),
            Some(left) => Err(Halt::Astray(left.iteration)),
        }
    }

    fn place(&self, id: NodeId) -> Option<usize> {
        let found = self.edges.binary_search_by_key(&id, |edge| edge.peer.id);
        found.ok()
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event) -> Result<(), Halt> {
        match event {
            Event::Up { peer, serial, link } => {
                if let Some(place) = self.place(peer) {
                    self.up(place, serial, link);
                }
            }
            Event::Frame {
                peer,
                serial,
                bytes,
                credit,
            } => {
                if let Some(place) = self.current(peer, serial) {
                    self.frame(place, &bytes)?;
                }
                drop(credit);
            }
            Event::Down {
                peer,
                serial,
                reason,
            } => {
                if let Some(place) = self.current(peer, serial) {
                    self.edges[place].link = None;
                    self.lost(place, reason);
                }
            }
            Event::Unreachable { peer, reason } => {
                if let Some(place) = self.place(peer) {
                    let peer = self.edges[place].peer.name.clone();
                    self.notices.push(Notice::Unreachable { peer, reason });
                }
            }
            Event::Refused { address, reason } => {
                self.notices.push(Notice::Refused { address, reason });
            }
            Event::Stop => {
                let iteration = self.node.iteration();
                self.notices.push(Notice::Stopping { iteration });
                for place in 0..self.edges.len() {
                    self.send(place, &Frame::Bye("its operator stopped it".to_owned()));
                    self.close(place);
                }
            }
        }
        Ok(())
    }

    /// The place of a neighbour, if this is the link that it has.
    fn current(&self, peer: NodeId, serial: Serial) -> Option<usize> {
        let place = self.place(peer)?;
        let (current, _) = self.edges[place].link.as_ref()?;
        (*current == serial).then_some(place)
    }

    /// A neighbour cannot be talked to any more.
    fn lost(&mut self, place: usize, reason: String) {
        let edge = &mut self.edges[place];
        let greeted = mem::replace(&mut edge.greeted, false);
        // Those who part as friends need not be reported.
        if greeted && !edge.parted {
            let peer = edge.peer.name.clone();
            self.notices.push(Notice::Disconnected { peer, reason });
        }
    }

    fn up(&mut self, place: usize, serial: Serial, link: Box<dyn Link>) {
        let hello = self.hello(place);
        let edge = &mut self.edges[place];
        edge.link = Some((serial, link));
        edge.met = false;
        edge.greeted = false;
        edge.told = None;
        // What was under way on the link before may not have arrived.
        self.send(place, &Frame::Hello(hello));
    }

    /// What there is to tell since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        mem::take(&mut self.notices)
    }

    /// Whether all iterations are done.
    pub fn is_finished(&self) -> bool {
        self.begun.finished
    }

    /// How the neighbours are doing, by name.
    pub fn peers(&self) -> impl Iterator<Item = (&str, PeerState)> {
        self.edges.iter().map(|edge| {
            let state = match edge {
                edge if self.begun.served.contains(&edge.peer.id.0) => PeerState::Done,
                edge if edge.heard.is_some() => PeerState::Heard,
                edge if edge.greeted => PeerState::Awaited,
                edge if edge.complaint.is_some() => PeerState::Disagrees,
                _ => PeerState::Away,
            };
            (edge.peer.name.as_str(), state)
        })
    }

    /// The iteration of the last value.
    pub fn iteration(&self) -> u32 {
        self.node.iteration()
    }

    /// `T`.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// The largest distance of a neighbour's value from this party's, at the last iteration that was closed.
    pub fn consensus(&self) -> f64 {
        self.consensus
    }

    /// What this study has spent.
    pub fn spent(&self) -> Guarantee {
        self.node.curator().ledger().spent()
    }

    /// For each limit of the site, what all studies have spent on these rows.
    pub fn spent_on_rows(&self) -> Vec<Guarantee> {
        // An account that broke off shows nothing, and lets nothing be spent either.
        let spent = self.account.as_ref().and_then(|site| site.spent().ok());
        spent.map_or_else(Vec::new, |spent| spent.totals)
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The store, and the study in it.
    pub fn store(&self) -> (&Store, &Begun) {
        (&self.store, &self.begun)
    }

    /// For what is signed at the end.
    pub fn key(&self) -> &SecretKey {
        &self.key
    }
}

#[cfg(test)]
pub(crate) mod tests;
