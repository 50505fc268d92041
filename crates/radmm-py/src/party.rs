//! One party of a network whose frames are carried by somebody else: a message queue, a file share, another framework.
//!
//! Links are agreed on inside the messages, so that the carrier need only deliver the messages of each pair of parties in their
//! order. A message is
//!
//! ```text
//! 0                          the sender asks for a new link
//! 1 ‖ link (16 bytes) ‖ number of the frame on the link, from 0 (8 bytes, the lowest first) ‖ frame
//! ```
//! Of two neighbours the one with the lower number draws the link, at random, whenever it starts or is asked to; messages of
//! earlier links are ignored. So a party that was restarted needs nothing from its carrier. A carrier that does not know whether it has
//! delivered a message may deliver it again: the number tells.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use radmm::graph::NodeId;
use radmm_node::evidence::write_result_files;
use radmm_node::machine::{Credit, Link, LinkEvent, Party, Serial};
use radmm_node::public_facts::PublicFacts;
use radmm_node::runtime::forbid_core_dumps;
use radmm_node::setup::{Folders, GivenRows, PartySetup, ReadingObserver};
use radmm_study::SiteFile;
use rayon::ThreadPool;
use ring::rand::{SecureRandom, SystemRandom};

use crate::background;
use crate::failure::{Failure, guarded};
use crate::study::StudyFile;
use crate::workers::HandedRows;

/// The first byte of a message that asks for a new link.
const ASK_FOR_LINK: u8 = 0;

/// The first byte of a message that carries a frame.
const FRAME: u8 = 1;

/// The most lines about ignored messages that are kept.
const MAX_IGNORED: usize = 100;

/// The identity of a link.
type LinkId = [u8; 16];

/// A message on its way to a neighbour.
type Outgoing = (NodeId, Vec<u8>);

/// A party as a machine that takes messages in and gives messages out.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct PartyMachine {
    running: Mutex<Option<Running>>,
    facts: PublicFacts,
    out: PathBuf,
    pool: ThreadPool,
    /// Ends the waiting for workers, if there are any.
    interrupted: Option<Arc<AtomicBool>>,
    /// The process that opened it. A fork has none of the threads, and must not answer beside the party that it is a copy of.
    process: u32,
}

/// The party, until it is closed.
struct Running {
    party: Party,
    edges: Vec<Edge>,
    outgoing: Arc<Mutex<Vec<Outgoing>>>,
    /// The number of links so far.
    links: u64,
    /// The messages that were ignored since the log was taken, each as a line of it.
    ignored: Vec<String>,
    /// The reason for which the party cannot go on, if it cannot. Its files can still be written.
    failed: Option<String>,
}

/// A neighbour and the link to it.
struct Edge {
    peer: NodeId,
    name: String,
    /// Whether this side draws the link.
    draws: bool,
    link: Option<(LinkId, Serial)>,
    /// The least number of the frames of that link that have not come.
    next: u64,
}

/// A link that queues frames for the carrier.
struct QueueLink {
    peer: NodeId,
    id: LinkId,
    /// The number of frames that were sent.
    sent: AtomicU64,
    outgoing: Arc<Mutex<Vec<Outgoing>>>,
}

impl Link for QueueLink {
    fn send(&self, frame: Vec<u8>) -> bool {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let message = [&[FRAME][..], &self.id, &number.to_le_bytes(), &frame].concat();
        lock(&self.outgoing).push((self.peer, message));
        true
    }

    fn close(&self) {}
}

/// Locks what is whole even if a thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl PartyMachine {
    /// Brings study, site and rows together, checks the limits and opens the state folder. `rows` stand for those that the
    /// site names.
    #[new]
    fn new(
        py: Python<'_>,
        study: &StudyFile,
        site: &str,
        site_name: &str,
        site_folder: PathBuf,
        rows: Option<HandedRows<'_>>,
        threads: Option<usize>,
    ) -> Result<Self, Failure> {
        // Privacy: before the key is read. The rows are in this process already.
        forbid_core_dumps();
        let (site, _) = SiteFile::parse(site, site_name)?;
        let names = (study.file_name().to_owned(), site_name.to_owned());
        let study_folder = study.folder().to_owned();
        let study = study.study().clone();
        let read = move |rows: Option<GivenRows<'_>>, observer: &dyn ReadingObserver| {
            let folders = Folders {
                study: &study_folder,
                site: &site_folder,
            };
            let names = (names.0.as_str(), names.1.as_str());
            match rows {
                Some(rows) => PartySetup::with_rows(study, site, folders, names, rows),
                None => PartySetup::observed(study, site, folders, names, observer),
            }
        };
        let interrupted = Arc::<AtomicBool>::default();
        let setup = match &rows {
            Some(rows) => rows.read(py, interrupted.clone(), |rows| read(Some(rows), &()))?,
            // A command may take long, and Ctrl-C ends it.
            None => background::run(py, threads, None, move |work| Ok(read(None, work)?))?,
        };
        let pool = background::threads(threads)?;
        let facts = setup.public_facts();
        let out = setup.path(&setup.site().out);
        let me = setup.me();
        let edges = setup.neighbours().map(|(peer, _)| Edge {
            draws: me < peer.id,
            peer: peer.id,
            name: peer.name,
            link: None,
            next: 0,
        });
        let edges = edges.collect();
        let open = || {
            pool.install(|| {
                let store = setup.open_store()?;
                Ok(setup.open(store)?.0)
            })
        };
        let asks_workers = matches!(rows, Some(HandedRows::Workers(_)));
        let interrupted = Some(interrupted).filter(|_| asks_workers);
        let party = match &interrupted {
            Some(interrupted) => background::watched(py, interrupted, open),
            None => guarded(py, open),
        }?;
        Ok(Self {
            running: Mutex::new(Some(Running {
                party,
                edges,
                outgoing: Arc::default(),
                links: 0,
                ignored: Vec::new(),
                failed: None,
            })),
            facts,
            out,
            pool,
            interrupted,
            process: process::id(),
        })
    }

    /// The party's name.
    #[getter]
    fn name(&self) -> &str {
        self.facts.name()
    }

    /// The names of the neighbours.
    #[getter]
    fn neighbours(&self) -> Vec<String> {
        let ids = self.facts.graph.neighbours(self.facts.node).iter();
        ids.map(|id| self.facts.study.parties[id.0 as usize].name.clone())
            .collect()
    }

    /// Whether the noise protects anybody.
    #[getter]
    fn protects(&self) -> bool {
        self.facts.protects()
    }

    /// The caveat that goes with the total.
    #[getter]
    fn caveat(&self) -> String {
        self.facts.caveat()
    }

    /// Begins a new link to a neighbour, or asks it to.
    fn connect(&self, py: Python<'_>, peer: &str) -> Result<(), Failure> {
        self.handle(py, |running| {
            let index = running.edge(peer)?;
            match running.edges[index].draws {
                true => running.begin_link(index, drawn_link()?),
                false => {
                    let to = running.edges[index].peer;
                    lock(&running.outgoing).push((to, vec![ASK_FOR_LINK]));
                    Ok(())
                }
            }
        })
    }

    /// Takes in a message of a neighbour.
    fn receive(&self, py: Python<'_>, peer: &str, message: &[u8]) -> Result<(), Failure> {
        self.handle(py, |running| {
            let index = running.edge(peer)?;
            running.receive(index, message)
        })
    }

    /// Takes the messages that are to be sent, as `(neighbour, message)`.
    fn take_outgoing<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<Vec<(String, Bound<'py, PyBytes>)>, Failure> {
        let taken = self.with(py, |running| {
            let taken = std::mem::take(&mut *lock(&running.outgoing));
            let name = |id| running.edges.iter().find(|edge| edge.peer == id);
            let named = taken.into_iter().filter_map(|(peer, message)| {
                let name = name(peer)?.name.clone();
                Some((name, message))
            });
            Ok(named.collect::<Vec<_>>())
        })?;
        let taken = taken.into_iter();
        Ok(taken
            .map(|(peer, message)| (peer, PyBytes::new(py, &message)))
            .collect())
    }

    /// Takes the lines of the log since the last call.
    fn take_notices(&self, py: Python<'_>) -> Result<Vec<String>, Failure> {
        self.with(py, |running| {
            let mut lines = std::mem::take(&mut running.ignored);
            let notices = running.party.take_notices();
            lines.extend(notices.iter().map(ToString::to_string));
            Ok(lines)
        })
    }

    /// Returns `(iteration, iterations, finished, acknowledged, confirmed, closed, consensus)`.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn progress(&self, py: Python<'_>) -> Result<(u32, u32, bool, bool, bool, bool, f64), Failure> {
        self.with(py, |running| {
            let party = &running.party;
            Ok((
                party.iteration(),
                party.iterations(),
                party.is_finished(),
                party.all_acked(),
                party.all_acks_confirmed(),
                party.all_closed(),
                party.consensus(),
            ))
        })
    }

    /// Returns what this study has cost so far, as `(epsilon, delta)`, and what all studies on these rows have, as `(epsilon, delta)`
    /// for each limit of the site.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn spent(&self, py: Python<'_>) -> Result<((f64, f64), Vec<(f64, f64)>), Failure> {
        self.with(py, |running| {
            let own = running.party.spent();
            let site = running.party.spent_on_rows().into_iter();
            let site = site.map(|total| (total.epsilon, total.delta));
            Ok(((own.epsilon, own.delta), site.collect()))
        })
    }

    /// Returns the neighbours with their states.
    fn peers(&self, py: Python<'_>) -> Result<Vec<(String, String)>, Failure> {
        self.with(py, |running| {
            let peers = running.party.peers();
            Ok(peers
                .map(|(name, state)| (name.to_owned(), state.name().to_owned()))
                .collect())
        })
    }

    /// Writes the statement, the transcript and, if the party has finished, the model; returns their paths.
    fn save(&self, py: Python<'_>, folder: Option<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
        let out = folder.unwrap_or_else(|| self.out.clone());
        let facts = &self.facts;
        self.with(py, |running| {
            Ok(write_result_files(&running.party, facts, &out)?)
        })
    }

    /// Tells the neighbours that this party stops. It goes on when it is opened again.
    fn stop(&self, py: Python<'_>) -> Result<(), Failure> {
        self.handle(py, |running| Ok(running.party.handle(LinkEvent::Stop)?))
    }

    /// Closes the state folder. Everything that was sent is in it.
    fn close(&self, py: Python<'_>) {
        // A party is large: dropped without the interpreter lock.
        py.detach(|| drop(lock(&self.running).take()));
    }

    /// Whether the state folder is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| lock(&self.running).is_none())
    }
}

impl PartyMachine {
    /// Lets the party handle something. A party that failed handles nothing more.
    fn handle(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<(), Failure> + Send,
    ) -> Result<(), Failure> {
        self.with(py, |running| {
            if let Some(reason) = &running.failed {
                return Err(Failure::Party(reason.clone()));
            }
            let done = catch_unwind(AssertUnwindSafe(|| work(running)));
            // What panicked may have stopped halfway.
            let done = done.unwrap_or_else(|payload| Err(Failure::from_panic(&*payload)));
            if let Err(Failure::Party(reason) | Failure::Ledger(reason) | Failure::Bug(reason)) =
                &done
            {
                running.failed = Some(reason.clone());
            }
            done
        })
    }

    /// Works on the party without the interpreter lock, on threads of its own.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Running) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        if self.process != process::id() {
            return Err(Failure::Party(format!(
                "{}: the party belongs to the process that opened it, and this is a fork of it",
                self.facts.name()
            )));
        }
        let work = || {
            let mut running = lock(&self.running);
            let open = running.as_mut().ok_or_else(|| {
                Failure::Party(format!("{}: the party is closed", self.facts.name()))
            })?;
            self.pool.install(|| work(open))
        };
        match &self.interrupted {
            Some(interrupted) => background::watched(py, interrupted, work),
            None => guarded(py, work),
        }
    }
}

impl Running {
    fn edge(&self, peer: &str) -> Result<usize, Failure> {
        let found = self.edges.iter().position(|edge| edge.name == peer);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.edges.iter().map(|edge| edge.name.as_str()).collect();
            Failure::Value(format!(
                "{peer:?} is no neighbour of this party; its neighbours are {}",
                names.join(", ")
            ))
        })
    }

    /// Replaces the link to a neighbour.
    fn begin_link(&mut self, index: usize, id: LinkId) -> Result<(), Failure> {
        self.links += 1;
        let serial = Serial(self.links);
        let edge = &mut self.edges[index];
        let peer = edge.peer;
        edge.next = 0;
        if let Some((_, before)) = edge.link.replace((id, serial)) {
            self.party.handle(LinkEvent::Down {
                peer,
                serial: before,
                reason: "it began a new link".to_owned(),
            })?;
        }
        let link = QueueLink {
            peer,
            id,
            sent: AtomicU64::new(0),
            outgoing: self.outgoing.clone(),
        };
        self.party.handle(LinkEvent::Up {
            peer,
            serial,
            link: Box::new(link),
        })?;
        Ok(())
    }

    fn receive(&mut self, index: usize, message: &[u8]) -> Result<(), Failure> {
        let edge = &self.edges[index];
        let draws = edge.draws;
        match Message::decode(message) {
            Some(Message::AskForLink) if draws => self.begin_link(index, drawn_link()?),
            // It draws links itself, and has no reason to ask.
            Some(Message::AskForLink) => Ok(()),
            Some(Message::Frame(id, number, frame)) => {
                let is_current = edge.link.is_some_and(|(current, _)| current == *id);
                if !is_current && (draws || number > 0) {
                    // Of a link before this one, or before this process: the neighbour is not to blame.
                    return Ok(());
                }
                if !is_current {
                    self.begin_link(index, *id)?;
                }
                let edge = &mut self.edges[index];
                if number < edge.next {
                    // The carrier has delivered it before.
                    return Ok(());
                }
                edge.next = number.saturating_add(1);
                let Some((_, serial)) = edge.link else {
                    return Ok(());
                };
                self.party.handle(LinkEvent::Frame {
                    peer: edge.peer,
                    serial,
                    bytes: frame.to_vec(),
                    credit: Credit::new(|| ()),
                })?;
                Ok(())
            }
            None => {
                // Whoever sends such a thing must not be able to end the loop of an honest party.
                if self.ignored.len() < MAX_IGNORED {
                    self.ignored.push(format!(
                        "{}: a message of {} bytes was ignored, which no party sends",
                        edge.name,
                        message.len()
                    ));
                }
                Ok(())
            }
        }
    }
}

/// A message between two parties.
enum Message<'a> {
    AskForLink,
    Frame(&'a LinkId, u64, &'a [u8]),
}

impl<'a> Message<'a> {
    fn decode(message: &'a [u8]) -> Option<Self> {
        match message.split_first()? {
            (&ASK_FOR_LINK, _) => Some(Self::AskForLink),
            (&FRAME, rest) => {
                let (id, rest) = rest.split_first_chunk()?;
                let (number, frame) = rest.split_first_chunk()?;
                Some(Self::Frame(id, u64::from_le_bytes(*number), frame))
            }
            _ => None,
        }
    }
}

/// Draws a link that no process has drawn before.
fn drawn_link() -> Result<LinkId, Failure> {
    let mut id = [0; 16];
    let filled = SystemRandom::new().fill(&mut id);
    filled.map_err(|_| Failure::Party("the operating system gave no randomness".to_owned()))?;
    Ok(id)
}
