//! One party: a node with a store and links. No IO but the store's, no clock, no async: events in, frames out.
//!
//! The order of things is what protects rows. A node that has heard everyone goes on: it prices its question, checks the
//! limits, draws and solves. What comes of it (charge, answer, what was heard, what is to be said) is kept in one durable
//! transaction. Only then a frame leaves. A party that is killed anywhere in between and opened again is led through its
//! journal to where it was, and says the same bytes.
//!
//! A neighbour is told `f_i(k)` once it is known to be at `k − 1` at least, since it could not take it before. So however long
//! it was away, at most two values are on their way to it, and a restored backup is caught up with step by step.

use std::collections::{BTreeSet, VecDeque};
use std::mem;

use radmm::account::{Guarantee, Site};
use radmm::message::Message;
use radmm::node::{Node, Output, ProtocolError, Stop};
use radmm::private::Recorded;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::release::Release;
use radmm_study::{Study, assemble, first_difference};
use thiserror::Error;

use crate::frame::{Frame, Hello, PROTOCOL, Signed};
use crate::key::SecretKey;
use crate::link::{Event, Link, Serial};
use crate::notice::Notice;
use crate::shadow::Shadow;
use crate::store::{Begun, Evidence, Fingerprint, Step, Store, StoreError};

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

/// As many lies of a neighbour are told and kept; after that it is known for them.
const MOST_LIES: u32 = 20;

/// What became of a value.
enum Taken {
    Fine,
    /// It cannot be right.
    Wrong(String),
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
            let start = assemble::start(study, peer.id, columns);
            let start = Release::of(start, precision).ok_or(Halt::Astray(0))?;
            edges.push(Edge {
                shadow: Shadow::new(study, graph, me, peer.id, start.clone()),
                peer,
                link: None,
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
        edge.greeted = false;
        edge.told = None;
        // What was under way on the link before may not have arrived.
        self.send(place, &Frame::Hello(hello));
    }

    fn hello(&self, place: usize) -> Hello {
        Hello {
            version: PROTOCOL,
            study: self.digest,
            from: self.node.id(),
            at: self.node.iteration(),
            heard: self.edges[place].kept,
            seen: self.seen(place),
            probe: false,
        }
    }

    /// The last iteration of which a neighbour's value was seen.
    fn seen(&self, place: usize) -> Option<u32> {
        let edge = &self.edges[place];
        let early = edge.early.as_ref().map(|early| early.message.iteration);
        let heard = edge.heard.as_ref().map(|_| self.node.iteration());
        early.or(heard).max(edge.kept)
    }

    /// What a neighbour said last.
    fn last_of(&self, place: usize) -> Result<Option<Signed>, Halt> {
        let edge = &self.edges[place];
        let is_last = |signed: &&Signed| {
            let message = &signed.message;
            message.from == edge.peer.id && Some(message.iteration) == self.seen(place)
        };
        let recent = self.fresh.iter().chain(&edge.early).find(is_last);
        match (recent, edge.kept) {
            (Some(signed), _) => Ok(Some(signed.clone())),
            (None, Some(kept)) => Ok(self.store.heard(self.begun.number, kept, edge.peer.id)?),
            (None, None) => Ok(None),
        }
    }

    /// Whether these are this party's own words, of an iteration that it has no record of.
    fn proves_forgotten(&self, place: usize, signed: &Signed) -> bool {
        let message = &signed.message;
        !self.edges[place].greeted
            && message.from == self.node.id()
            && message.iteration > self.node.iteration()
            && signed.is_by(&self.key.public(), &self.digest)
    }

    fn frame(&mut self, place: usize, bytes: &[u8]) -> Result<(), Halt> {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(malformed) => return self.lie(place, malformed.to_string(), &[bytes]),
        };
        match frame {
            Frame::Hello(hello) => self.greet(place, hello, bytes),
            Frame::Study(theirs) => {
                let what = match first_difference(&self.canonical, &theirs) {
                    Some(difference) => format!(
                        "{}: {} here, {} there; all parties need the same study",
                        difference.key, difference.mine, difference.theirs
                    ),
                    None => "it says that its study is another one, and shows the same".to_owned(),
                };
                self.complain(place, what);
                self.close(place);
                Ok(())
            }
            Frame::Say(own) if self.proves_forgotten(place, &own) => Err(Halt::Forgotten {
                peer: self.edges[place].peer.name.clone(),
                heard: own.message.iteration,
            }),
            Frame::Say(_) | Frame::Ack { .. } | Frame::Noted { .. }
                if !self.edges[place].greeted =>
            {
                let what = "it speaks without a greeting".to_owned();
                self.lie(place, what, &[bytes])
            }
            Frame::Say(signed) => self.hear(place, signed, bytes),
            Frame::Ack { through } => match through == self.iterations {
                true => self.served(place),
                false => Ok(()),
            },
            Frame::Noted { mutual } => self.assured(place, mutual),
            Frame::Bye(reason) => {
                self.lost(place, printable(&reason));
                self.close(place);
                Ok(())
            }
        }
    }

    fn greet(&mut self, place: usize, hello: Hello, bytes: &[u8]) -> Result<(), Halt> {
        if hello.version != PROTOCOL {
            let what = format!(
                "it speaks version {} of the protocol, and this program version {PROTOCOL}; all parties need the same version of radmm",
                hello.version
            );
            self.complain(place, what.clone());
            self.send(place, &Frame::Bye(what));
            self.close(place);
            return Ok(());
        }
        if hello.study != self.digest {
            // Whoever gets the other's study first names the difference; both do.
            let canonical = self.canonical.clone();
            self.send(place, &Frame::Study(canonical));
            return Ok(());
        }
        let known = hello.from == self.edges[place].peer.id;
        if !known || hello.at > self.iterations {
            let what = "a greeting that is not its own, or of an iteration beyond the last";
            return self.lie(place, what.to_owned(), &[bytes]);
        }
        if hello.probe {
            self.send(place, &Frame::Bye("it was only asked for".to_owned()));
            self.close(place);
            return Ok(());
        }
        let now = self.node.iteration();
        let after = |last: Option<u32>| last.map_or(0, |last| last.saturating_add(1));
        let known = after(hello.seen.max(hello.heard));
        // Privacy: everything that was said is on record, so this state is older than what was said, or lost and begun anew with
        // another secret. A neighbour that knows could say something else than before, and get a second answer that the
        // account does not know of.
        // Its word is not enough, or any neighbour could stop this party: it is not listened to until it shows our own.
        if known > now + 1 {
            return Ok(());
        }
        // The other way round: it is behind what it has said, and shown what that was.
        if self.seen(place) > Some(hello.at) {
            if let Some(proof) = self.last_of(place)? {
                self.send(place, &Frame::Say(proof));
            }
            return Ok(());
        }
        let edge = &mut self.edges[place];
        edge.greeted = true;
        edge.complaint = None;
        edge.at = hello.at;
        edge.next = after(hello.heard);
        let peer = edge.peer.name.clone();
        self.notices.push(Notice::Connected {
            peer,
            iteration: hello.at,
        });
        if self.is_finished() {
            self.acknowledge(place);
        }
        if hello.heard == Some(self.iterations) {
            self.served(place)?;
        }
        self.pump(place)
    }

    /// A neighbour has everything. It may leave once it knows that this is on record here: otherwise this party, started again
    /// after the neighbour has left, would wait for it.
    fn served(&mut self, place: usize) -> Result<(), Halt> {
        // Of what was not said yet, nobody can have everything.
        if self.node.iteration() == self.iterations {
            if self.begun.served.insert(self.edges[place].peer.id.0) {
                self.store.keep_begun(&self.begun)?;
            }
            self.note(place);
        }
        Ok(())
    }

    /// A neighbour knows that this party has everything of it.
    fn assured(&mut self, place: usize, mutual: bool) -> Result<(), Halt> {
        // Who has not finished has not said so.
        if self.is_finished() {
            if self.begun.assured.insert(self.edges[place].peer.id.0) {
                self.store.keep_begun(&self.begun)?;
            }
            self.edges[place].parted |= mutual;
            self.note(place);
        }
        Ok(())
    }

    /// Tells a neighbour that it is known to have everything, if that is so, and once.
    fn note(&mut self, place: usize) {
        let id = self.edges[place].peer.id.0;
        let mutual = self.begun.assured.contains(&id);
        if self.begun.served.contains(&id) && self.edges[place].told != Some(mutual) {
            self.edges[place].told = Some(mutual);
            self.send(place, &Frame::Noted { mutual });
        }
    }

    /// A value of a neighbour.
    fn hear(&mut self, place: usize, signed: Signed, bytes: &[u8]) -> Result<(), Halt> {
        let edge = &self.edges[place];
        let Message {
            from, iteration, ..
        } = signed.message;
        if from != edge.peer.id || !signed.is_by(&edge.peer.key, &self.digest) {
            let what = format!("a value for iteration {iteration} without its signature");
            return self.lie(place, what, &[bytes]);
        }
        let now = self.node.iteration();
        if !self.is_finished() && iteration == now && edge.heard.is_none() {
            let mut nothing = |_| None;
            match self.take(place, signed, &mut nothing)? {
                Taken::Fine => self.go_on()?,
                Taken::Wrong(what) => return self.lie(place, what, &[bytes]),
            }
        } else if iteration <= now {
            let before = self.store.heard(self.begun.number, iteration, from)?;
            let fresh = self
                .fresh
                .iter()
                .find(|one| one.message.from == from && one.message.iteration == iteration);
            let before = before.as_ref().or(fresh);
            if let Some(before) = before.filter(|before| before.message != signed.message) {
                let first = before.to_bytes();
                return self.equivocation(place, iteration, &first, bytes);
            }
        } else if iteration == now + 1 && iteration <= self.iterations {
            match &edge.early {
                Some(early) if early.message != signed.message => {
                    let first = early.to_bytes();
                    return self.equivocation(place, iteration, &first, bytes);
                }
                Some(_) => {}
                None => {
                    if let Some(what) = self.misshapen(&signed.message) {
                        return self.lie(place, what, &[bytes]);
                    }
                    self.edges[place].early = Some(signed);
                }
            }
        } else {
            let what = format!(
                "a value for iteration {iteration}, while this party is at {now} and it cannot be beyond {}",
                now + 1
            );
            return self.lie(place, what, &[bytes]);
        }
        let edge = &mut self.edges[place];
        edge.at = edge.at.max(iteration);
        self.pump(place)
    }

    /// What is wrong with the form of a value, if anything is.
    fn misshapen(&self, message: &Message) -> Option<String> {
        let (columns, precision) = (
            self.node.curator().columns(),
            self.node.curator().precision(),
        );
        let got = message.release.values().len();
        let t = message.iteration;
        if got != columns {
            return Some(format!(
                "a vector of dimension {got} for iteration {t}; {columns} is right"
            ));
        }
        (message.release.precision() != precision)
            .then(|| format!("values for iteration {t} in another form than the study's precision"))
    }

    /// Takes in a value of this iteration, and goes on if it was the last one missing.
    fn take(
        &mut self,
        place: usize,
        signed: Signed,
        record: &mut dyn FnMut(u32) -> Option<Recorded>,
    ) -> Result<Taken, Halt> {
        if let Some(what) = self.misshapen(&signed.message) {
            return Ok(Taken::Wrong(what));
        }
        let t = signed.message.iteration;
        let release = signed.message.release.clone();
        let edge = &mut self.edges[place];
        let follows = match t {
            0 => Some(release == edge.start),
            _ => edge
                .shadow
                .as_mut()
                .and_then(|shadow| shadow.agrees(&release)),
        };
        match follows {
            Some(true) => {}
            Some(false) => {
                let bytes = signed.to_bytes();
                let what = format!(
                    "its value of iteration {t} does not follow from the messages before it, or somebody who is a neighbour of both told it something else than us: everyone's transcripts (radmm verify) will tell which"
                );
                return Err(self.caught(place, what, &[&bytes]));
            }
            None if t > 0 => edge.shadow = None,
            None => {}
        }
        let outputs = match self.node.recall(signed.message.clone(), record) {
            Ok(outputs) => outputs,
            // The form was looked at before; what is left is out of turn.
            Err(error @ ProtocolError::Equivocation { .. }) => {
                return Err(self.caught(place, error.to_string(), &[&signed.to_bytes()]));
            }
            Err(error) => return Ok(Taken::Wrong(error.to_string())),
        };
        self.edges[place].heard = Some(release);
        self.fresh.push(signed);
        if !outputs.is_empty() {
            self.close_round();
            self.perform(outputs)?;
            self.own = self.node.model().clone();
        }
        Ok(Taken::Fine)
    }

    /// Everyone was heard: what neighbours must say next follows, and how far apart all are.
    fn close_round(&mut self) {
        let me = self.node.id();
        let mut values: Vec<(NodeId, Release)> = Vec::with_capacity(self.edges.len() + 1);
        for edge in &mut self.edges {
            values.extend(edge.heard.take().map(|value| (edge.peer.id, value)));
        }
        let distance = |release: &Release| {
            let pairs = release.values().iter().zip(self.own.values());
            pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let apart = values.iter().map(|(_, value)| distance(value));
        self.consensus = apart.fold(0.0, f64::max);
        values.push((me, self.own.clone()));
        let value_of = |id: NodeId| {
            let found = values.iter().find(|(of, _)| *of == id);
            found.map(|(_, value)| value.clone())
        };
        for edge in &mut self.edges {
            if let Some(shadow) = &mut edge.shadow {
                shadow.close(value_of);
            }
        }
    }

    /// Keeps what a node gives out, then says what it has to say. Where everything is on record already, only that it is the
    /// same is checked.
    fn perform(&mut self, outputs: Vec<Output>) -> Result<(), Halt> {
        let study = self.begun.number;
        let mut step = Step::default();
        let mut stopped = None;
        for output in outputs {
            match output {
                Output::Record {
                    iteration,
                    event,
                    answer,
                } => step.charged.push(Recorded {
                    iteration,
                    event,
                    answer,
                }),
                Output::Broadcast(message) => {
                    let t = message.iteration;
                    let signed = match self.store.said(study, t)? {
                        Some(before) if before.message == message => before,
                        Some(_) => return Err(Halt::Astray(t)),
                        None => {
                            let signed = Signed::new(message, &self.digest, &self.key);
                            step.said.push(signed.clone());
                            signed
                        }
                    };
                    if self.said.len() == 2 {
                        self.said.pop_front();
                    }
                    self.said.push_back((t, signed.to_bytes()));
                }
                Output::Done(_) => {
                    step.finished = !self.begun.finished;
                }
                Output::Stopped(stop) => stopped = Some(stop),
            }
        }
        if !step.is_empty() {
            step.heard = mem::take(&mut self.fresh);
            // Privacy: durable before visible. Whatever fails here, nothing has been said.
            self.store.keep(&self.begun, &self.data, &step)?;
            for signed in &step.heard {
                if let Some(place) = self.place(signed.message.from) {
                    self.edges[place].kept = Some(signed.message.iteration);
                }
            }
            self.begun.finished |= step.finished;
        } else {
            self.fresh.clear();
        }
        if let Some(stop) = stopped {
            return Err(Halt::Stopped(Box::new(stop)));
        }
        let (spent, iterations) = (self.spent(), self.iterations);
        if step.finished {
            self.notices.push(Notice::Finished { iterations, spent });
            for place in 0..self.edges.len() {
                self.acknowledge(place);
            }
        } else if self.node.iteration() > 0 && !self.begun.finished {
            self.notices.push(Notice::Iterated {
                iteration: self.node.iteration(),
                iterations,
                kind: self.node.kind(),
                spent,
                consensus: self.consensus,
            });
        }
        for place in 0..self.edges.len() {
            self.pump(place)?;
        }
        Ok(())
    }

    /// Takes in what came early, now that its time may have come.
    fn go_on(&mut self) -> Result<(), Halt> {
        loop {
            let now = self.node.iteration();
            let due = |edge: &Edge| {
                let early = edge.early.as_ref();
                early.is_some_and(|early| early.message.iteration == now)
            };
            let Some(place) = self.edges.iter().position(due) else {
                return Ok(());
            };
            let Some(early) = self.edges[place].early.take() else {
                return Ok(());
            };
            let bytes = early.to_bytes();
            match self.take(place, early, &mut |_| None)? {
                Taken::Fine => {}
                Taken::Wrong(what) => self.lie(place, what, &[&bytes])?,
            }
        }
    }

    /// Says to a neighbour what it needs and can take.
    fn pump(&mut self, place: usize) -> Result<(), Halt> {
        loop {
            let edge = &self.edges[place];
            let t = edge.next;
            let ready =
                edge.greeted && t <= self.node.iteration() && t <= edge.at.saturating_add(1);
            if !ready {
                return Ok(());
            }
            let recent = self.said.iter().find(|(at, _)| *at == t);
            let bytes = match recent {
                Some((_, bytes)) => bytes.clone(),
                None => match self.store.said(self.begun.number, t)? {
                    Some(signed) => signed.to_bytes(),
                    // Not made yet: the node is in the middle of it.
                    None => return Ok(()),
                },
            };
            if !self.send_bytes(place, bytes) {
                return Ok(());
            }
            self.edges[place].next = t + 1;
        }
    }

    fn acknowledge(&mut self, place: usize) {
        if self.edges[place].greeted {
            let through = self.iterations;
            self.send(place, &Frame::Ack { through });
        }
    }

    fn send(&mut self, place: usize, frame: &Frame) -> bool {
        self.send_bytes(place, frame.encode())
    }

    fn send_bytes(&mut self, place: usize, bytes: Vec<u8>) -> bool {
        let link = self.edges[place].link.as_ref();
        // Where it has gone, that is an event of its own, and comes after what was last said on it.
        link.is_some_and(|(_, link)| link.send(bytes))
    }

    fn close(&mut self, place: usize) {
        let edge = &mut self.edges[place];
        edge.greeted = false;
        if let Some((_, link)) = edge.link.take() {
            link.close();
        }
    }

    fn complain(&mut self, place: usize, what: String) {
        let edge = &mut self.edges[place];
        if edge.complaint.as_ref() != Some(&what) {
            edge.complaint = Some(what.clone());
            let peer = edge.peer.name.clone();
            self.notices.push(Notice::Disagrees { peer, what });
        }
    }

    /// Somebody said what cannot be right, and nothing came of it: the link ends, and a better one may begin.
    fn lie(&mut self, place: usize, what: String, frames: &[&[u8]]) -> Result<(), Halt> {
        let edge = &mut self.edges[place];
        edge.lies += 1;
        if edge.lies <= MOST_LIES {
            let peer = edge.peer.name.clone();
            let evidence = evidence(edge.peer.id, &what, frames);
            self.notices.push(Notice::Lied {
                peer,
                what: what.clone(),
            });
            self.store.keep_evidence(self.begun.number, &evidence)?;
        }
        self.send(place, &Frame::Bye(format!("you said {what}")));
        self.close(place);
        Ok(())
    }

    fn equivocation(
        &mut self,
        place: usize,
        iteration: u32,
        first: &[u8],
        second: &[u8],
    ) -> Result<(), Halt> {
        let what = format!("it sent two different values for iteration {iteration}");
        Err(self.caught(place, what, &[first, second]))
    }

    /// Somebody's word is worth nothing any more.
    fn caught(&mut self, place: usize, what: String, frames: &[&[u8]]) -> Halt {
        let peer = self.edges[place].peer.name.clone();
        let evidence = evidence(self.edges[place].peer.id, &what, frames);
        self.notices.push(Notice::Lied {
            peer: peer.clone(),
            what: what.clone(),
        });
        for place in 0..self.edges.len() {
            self.close(place);
        }
        match self.store.keep_proof(self.begun.number, &evidence) {
            Ok(()) => Halt::Lied { peer, what },
            Err(error) => Halt::Store(error),
        }
    }

    /// What there is to tell since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        mem::take(&mut self.notices)
    }

    /// Whether all iterations are done.
    pub fn is_finished(&self) -> bool {
        self.begun.finished
    }

    /// Whether, beyond that, every neighbour has everything that this party will ever say.
    pub fn is_over(&self) -> bool {
        self.is_finished() && self.all_in(&self.begun.served)
    }

    /// Whether, beyond that, every neighbour knows that nothing of it is missing here. Until then one of them may wait for
    /// this party.
    pub fn is_settled(&self) -> bool {
        self.is_over() && self.all_in(&self.begun.assured)
    }

    /// Whether, beyond that, every neighbour is known to know that it may leave. What was last said to another one may be lost.
    pub fn has_parted(&self) -> bool {
        self.edges.iter().all(|edge| edge.parted)
    }

    fn all_in(&self, parties: &BTreeSet<u32>) -> bool {
        let mut edges = self.edges.iter();
        edges.all(|edge| parties.contains(&edge.peer.id.0))
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

fn evidence(from: NodeId, what: &str, frames: &[&[u8]]) -> Evidence {
    let digits = |bytes: &&[u8]| {
        // A frame can be as long as a study; the first part of it shows what it was.
        let shown = &bytes[..bytes.len().min(1 << 16)];
        shown.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    Evidence {
        from: from.0,
        what: what.to_owned(),
        frames: frames.iter().map(digits).collect(),
    }
}

/// What others write into our logs.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
