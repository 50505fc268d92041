//! The view that the pages of a node show: the party's thread writes it, and the server's thread reads it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use radmm::graph::NodeId;
use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use radmm_study::Identity;

use super::health::{Health, Heartbeat, patience};
use super::notice::{LogLevel, Notice, Suspicion};
use super::report::{
    AwaitedPeer, OperatorMessage, PeerFinding, PeerReport, PrivacyReport, REPORT_VERSION,
    SpentTotal, StatusReport,
};
use super::status::NodeStatus;
use crate::machine::{LinkEvent, Party, PeerState};
use crate::public_facts::PublicFacts;
use crate::setup::{PartyBill, PartySetup};

/// The number of messages that are kept.
const MAX_MESSAGES: usize = 100;

/// The number of findings about neighbours that are kept.
const MAX_FINDINGS: usize = 100;

/// The most distances in a report.
const MAX_DISTANCES: usize = 400;

/// The number of iterations whose pace is shown.
const PACE_WINDOW: usize = 64;

/// How long a connected neighbour's value may be missing before a node counts as waiting for it.
const USUAL_WAIT: u64 = 10;

/// How long a node that ends waits for a page that is open: it asks every second.
const FAREWELL: Duration = Duration::from_secs(2);

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    /// Whole seconds since 1970.
    // Privacy: the time of a data step depends on rows, and finer stamps would tell more of it.
    pub(super) seconds: u64,
}

impl Moment {
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            instant: Instant::now(),
            seconds: since.map_or(0, |since| since.as_secs()),
        }
    }
}

/// The view of a running node.
pub(super) struct LiveView {
    facts: PublicFacts,
    key: Identity,
    listening: Option<String>,
    /// The iterations that ask the rows.
    data_steps: Vec<u32>,
    started: u64,
    patience: Duration,
    heartbeat: Heartbeat,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    status: Option<NodeStatus>,
    bill: Option<PartyBill>,
    stopped: bool,
    /// When the report was last read.
    read: Option<Instant>,
    /// Whether it was read after the end.
    end_is_known: bool,
    neighbours: Vec<Neighbour>,
    distances: Vec<(u32, f64)>,
    /// When the latest iterations were made.
    made: VecDeque<Instant>,
    evidence: Vec<PeerFinding>,
    messages: VecDeque<OperatorMessage>,
    files: Vec<PathBuf>,
}

struct Neighbour {
    id: NodeId,
    name: String,
    key: Identity,
    address: Option<String>,
    dialled_by: Option<String>,
    state: PeerState,
    since: u64,
    iteration: u32,
    heard: Option<u64>,
}

impl LiveView {
    pub(super) fn new(setup: &PartySetup, now: Moment) -> Self {
        let neighbours = setup.neighbours().map(|(peer, address)| Neighbour {
            id: peer.id,
            name: peer.name,
            key: Identity::from(peer.key),
            address,
            dialled_by: None,
            state: PeerState::Away,
            since: now.seconds,
            iteration: 0,
            heard: None,
        });
        Self {
            facts: setup.public_facts(),
            key: setup.identity(),
            listening: setup.site().listen.map(|address| address.to_string()),
            data_steps: setup.data_steps().collect(),
            started: now.seconds,
            // The main loop stands still until an answer's tick, too.
            patience: patience(setup.rows(), setup.columns()) + setup.tick().unwrap_or_default(),
            heartbeat: Heartbeat::default(),
            state: Mutex::new(State {
                neighbours: neighbours.collect(),
                ..State::default()
            }),
        }
    }

    /// Takes over what an opened party remembers of earlier processes.
    pub(super) fn opened(&self, party: &Party, bill: PartyBill) {
        let mut state = self.lock();
        state.distances = party.distances().to_vec();
        let (store, record) = party.store();
        let evidence = store.misbehaviours(record.number).unwrap_or_default();
        state.evidence = { evidence.into_iter() }
            .map(|one| PeerFinding {
                peer: self.name_of(NodeId(one.from)),
                what: one.what,
                time: None,
            })
            .collect();
        state.bill = Some(bill);
    }

    /// Notes that the main loop runs.
    pub(super) fn beat(&self, now: Instant) {
        self.heartbeat.touch(now);
    }

    /// Notes what happens to a link.
    pub(super) fn link_event(&self, event: &LinkEvent, now: Moment) {
        let (peer, link) = match event {
            LinkEvent::Up { peer, link, .. } => (peer, Some(link)),
            LinkEvent::Frame { peer, .. } => (peer, None),
            _ => return,
        };
        let mut state = self.lock();
        if let Some(neighbour) = { state.neighbours.iter_mut() }.find(|one| one.id == *peer) {
            neighbour.heard = Some(now.seconds);
            if let Some(link) = link {
                neighbour.dialled_by = link.dialler().map(|id| self.name_of(id));
            }
        }
    }

    /// Notes a line of the log.
    pub(super) fn notice(&self, notice: &Notice, now: Moment) {
        let mut state = self.lock();
        let found = |peer: &String, what: &String| PeerFinding {
            peer: peer.clone(),
            what: what.clone(),
            time: Some(now.seconds),
        };
        match notice {
            Notice::Iterated {
                iteration,
                consensus,
                ..
            } => {
                state.distances.push((*iteration, *consensus));
                state.made.push_back(now.instant);
                if state.made.len() > PACE_WINDOW {
                    state.made.pop_front();
                }
                return;
            }
            Notice::Misbehaved { peer, what } if state.evidence.len() < MAX_FINDINGS => {
                state.evidence.push(found(peer, what));
            }
            Notice::Wrote { file } => state.files.push(file.into()),
            _ => {}
        }
        state.message(notice, now);
    }

    /// Takes the status of a party.
    pub(super) fn update(&self, status: NodeStatus, party: &Party, now: Moment) {
        let mut state = self.lock();
        let moved =
            { state.status.as_ref() }.is_some_and(|before| before.iteration != status.iteration);
        let peers = status.peers.iter().zip(party.peer_iterations());
        for (neighbour, ((_, peer_state), iteration)) in state.neighbours.iter_mut().zip(peers) {
            // A value that is awaited is another one at each iteration.
            let newly_awaited = moved && *peer_state == PeerState::Awaited;
            if neighbour.state != *peer_state || newly_awaited {
                neighbour.state = peer_state.clone();
                neighbour.since = now.seconds;
            }
            neighbour.iteration = iteration;
        }
        state.status = Some(status);
    }

    /// Notes that the main loop has ended.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
    }

    /// Waits until whoever watches has seen the end, for a short time.
    pub(super) fn say_goodbye(&self) {
        let until = Instant::now() + FAREWELL;
        let watched = |state: &State| state.read.is_some_and(|read| read.elapsed() < FAREWELL);
        while Instant::now() < until {
            let state = self.lock();
            if state.end_is_known || !watched(&state) {
                break;
            }
            drop(state);
            thread::sleep(FAREWELL / 50);
        }
        if self.lock().end_is_known {
            // The response is on its way.
            thread::sleep(FAREWELL / 20);
        }
    }

    /// Returns the health of the node.
    pub(super) fn health(&self, now: Moment) -> Health {
        self.lock().health(&self.heartbeat, self.patience, now)
    }

    /// Returns the latest status; `None` while the node starts.
    pub(super) fn status(&self) -> Option<NodeStatus> {
        self.lock().status.clone()
    }

    /// Returns the path of a file of results, by its name.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        let state = self.lock();
        let mut files = state.files.iter();
        files.find(|path| file_name(path) == name).cloned()
    }

    /// Returns the report.
    pub(super) fn report(&self, now: Moment) -> StatusReport {
        let mut state = self.lock();
        state.read = Some(now.instant);
        state.end_is_known = state.stopped;
        let facts = &self.facts;
        let status = state.status.as_ref();
        let iteration = status.map_or(0, |status| status.iteration);
        let finished = status.is_some_and(|status| status.finished);
        let iterations = facts.study.algorithm.iterations;
        let pace = state.pace();
        let kind = status.map_or(StepKind::Start, |status| status.kind);
        StatusReport {
            version: REPORT_VERSION,
            time: now.seconds,
            started: self.started,
            party: facts.name().to_owned(),
            key: self.key.to_string(),
            rows: facts.rows,
            study: facts.study.name.clone(),
            study_sha256: facts.study.sha256(),
            algorithm: facts.study.algorithm.method.name().to_owned(),
            parties: facts.study.parties.len(),
            protects: facts.protects(),
            caveat: facts.caveat(),
            listening: self.listening.clone(),
            health: state.health(&self.heartbeat, self.patience, now),
            iteration,
            iterations,
            kind: kind_name(kind).to_owned(),
            finished,
            data_steps: (
                self.data_steps
                    .iter()
                    .filter(|at| **at <= iteration)
                    .count(),
                self.data_steps.len(),
            ),
            pace,
            seconds_left: pace.filter(|pace| *pace > 0.0 && !finished).map(|pace| {
                (60.0 * f64::from(iterations.saturating_sub(iteration)) / pace).ceil() as u64
            }),
            waiting_for: state.waiting_for(),
            privacy: status.zip(state.bill.as_ref()).map(|(s, b)| privacy(s, b)),
            distance: status.map_or(0.0, |status| status.consensus),
            distances: thinned(&state.distances),
            neighbours: state.neighbours.iter().map(Neighbour::report).collect(),
            suspicions: status.map_or_else(Vec::new, suspicions),
            evidence: state.evidence.clone(),
            refused: status.map_or(0, |status| status.counts.refused),
            messages: state.messages.iter().cloned().collect(),
            files: state.files.iter().map(|path| file_name(path)).collect(),
        }
    }

    fn name_of(&self, id: NodeId) -> String {
        let party = self.facts.study.parties.get(id.0 as usize);
        party.map_or_else(|| format!("node {}", id.0), |party| party.name.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what was suspicious in neighbours' values.
fn suspicions(status: &NodeStatus) -> Vec<PeerFinding> {
    let finding = |suspicion: &Suspicion| PeerFinding {
        peer: suspicion.peer.clone(),
        what: format!("iteration {}: {}", suspicion.iteration, suspicion.why),
        time: None,
    };
    status.suspicions.iter().map(finding).collect()
}

impl State {
    fn health(&self, heartbeat: &Heartbeat, patience: Duration, now: Moment) -> Health {
        let silence = heartbeat.silence(now.instant);
        let (Some(_), Some(silence)) = (&self.status, silence) else {
            return Health::Starting;
        };
        if self.stopped {
            return Health::Stopped;
        }
        if silence > patience {
            return Health::Stuck;
        }
        let waiting = self.waiting_for().into_iter();
        let long = |one: &AwaitedPeer| {
            one.state != PeerState::Awaited.name()
                || now.seconds.saturating_sub(one.since) > USUAL_WAIT
        };
        let names: Vec<String> = waiting.filter(long).map(|one| one.name).collect();
        match names.is_empty() {
            true => Health::Ready,
            false => Health::Waiting(names),
        }
    }

    fn waiting_for(&self) -> Vec<AwaitedPeer> {
        let here = |one: &Neighbour| matches!(one.state, PeerState::Received | PeerState::Done);
        let awaited = self.neighbours.iter().filter(|one| !here(one));
        awaited
            .map(|one| AwaitedPeer {
                name: one.name.clone(),
                state: one.state.name().to_owned(),
                since: one.since,
            })
            .collect()
    }

    /// Returns the iterations a minute, over the latest of them.
    fn pace(&self) -> Option<f64> {
        let (first, last) = (self.made.front()?, self.made.back()?);
        let seconds = last.saturating_duration_since(*first).as_secs_f64();
        (seconds > 0.0).then(|| 60.0 * (self.made.len() - 1) as f64 / seconds)
    }

    fn message(&mut self, notice: &Notice, now: Moment) {
        let text = notice.to_string();
        if let Some(last) = self.messages.back_mut().filter(|last| last.text == text) {
            last.count += 1;
            last.time = now.seconds;
            return;
        }
        self.messages.push_back(OperatorMessage {
            time: now.seconds,
            warning: notice.level() <= LogLevel::Warning,
            text,
            count: 1,
        });
        if self.messages.len() > MAX_MESSAGES {
            self.messages.pop_front();
        }
    }
}

impl Neighbour {
    fn report(&self) -> PeerReport {
        PeerReport {
            name: self.name.clone(),
            key: self.key.to_string(),
            state: self.state.name().to_owned(),
            since: self.since,
            iteration: self.iteration,
            heard: self.heard,
            address: self.address.clone(),
            dialled_by: self.dialled_by.clone(),
        }
    }
}

fn kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Start => "start",
        StepKind::Data => "data",
        StepKind::Recycled => "recycled",
    }
}

fn privacy(status: &NodeStatus, bill: &PartyBill) -> PrivacyReport {
    let finite = |epsilon: f64| epsilon.is_finite().then_some(epsilon);
    let rows = status.site.iter().zip(&bill.after);
    PrivacyReport {
        relation: Guarantee::RELATION.to_owned(),
        study: SpentTotal {
            delta: status.spent.delta,
            spent: finite(status.spent.epsilon),
            planned: finite(bill.total.epsilon),
            limit: None,
        },
        rows: rows
            .map(|((spent, limit), after)| SpentTotal {
                delta: spent.delta,
                spent: finite(spent.epsilon),
                planned: finite(after.epsilon),
                limit: finite(*limit),
            })
            .collect(),
    }
}

/// Returns at most [`MAX_DISTANCES`] and one points, evenly spread, with the last one.
fn thinned(points: &[(u32, f64)]) -> Vec<(u32, f64)> {
    let stride = points.len().div_ceil(MAX_DISTANCES).max(1);
    let mut thin: Vec<(u32, f64)> = points.iter().copied().step_by(stride).collect();
    if let Some(last) = points.last().filter(|last| thin.last() != Some(last)) {
        thin.push(*last);
    }
    thin
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
