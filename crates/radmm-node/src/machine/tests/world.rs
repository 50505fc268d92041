//! Five parties, the wires between them, and disks that lose power.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use radmm::algorithm::{Algorithm, Step, View};
use radmm::curator::{
    ChunkHolder, ChunkWorkers, Curator, CuratorConfig, HeldRows, NoiseKey, PassFailed, Shard,
    WarmStart, WorkerRequest, WorkerRows,
};
use radmm::exec::Sequential;
use radmm::graph::SpanningTree;
use radmm::node::{NodeConfig, Output};
use radmm::privacy::{Budget, Ledger};
use radmm::protocol::query::Query;
use radmm_study::rows::StudyRows;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::machine::{Credit, Serials};
use crate::setup::plan_party;
use crate::store::faulty_storage::FaultyDisk;

pub(crate) const STUDY: &str = r#"
name = "rehearsal"
[data]
builtin = "clinic"
[data.split]
method = "column"
name = "hospital"
values = ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
[network]
nodes = 5
topology = "TOPOLOGY"
[problem]
weight = 100
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 9
penalty = 3
damping = 1
[privacy]
mechanism = "objective"
noise = "gaussian"
sigma = 5
delta = 1e-4
[run]
seed = 11
"#;

/// Returns the same study with recycling to consensus, whose first messages are as wide as the metric needs.
pub(crate) fn consensus(metric: &str) -> String {
    let recycled = "\"r-admm\"\niterations = 9\npenalty = 3\ndamping = 1";
    let sums = format!("\"consensus\"\nmetric = \"{metric}\"\nsteps = 3");
    let text = STUDY.replace(recycled, &sums);
    let text = text.replace("\"objective\"", "\"gradient\"");
    assert!(text.contains(&sums) && text.contains("gradient"));
    text
}

/// Returns the studies that must survive anything: values that are models, and sums along a tree with every metric.
pub(super) fn studies() -> [String; 4] {
    let sums = ["none", "mean", "gram"].map(consensus);
    let [none, mean, gram] = sums;
    [STUDY.to_owned(), none, mean, gram]
}

/// Returns a study on a topology.
pub(crate) fn on(topology: &str, study: &str) -> String {
    let topology = match topology {
        "random" => "topology = \"random\"\nprobability = 0.5\nseed = 4".to_owned(),
        other => format!("topology = {other:?}"),
    };
    study.replace("topology = \"TOPOLOGY\"", &topology)
}

/// Returns a study with 153 columns, whose Gram matrix makes frames longer than any other.
pub(crate) fn wide_study(metric: &str) -> String {
    let unused: String = (0..150).map(|k| format!(", \"unused {k}\"")).collect();
    let columns = format!(
        "label = \"readmitted\"\npositive = \"yes\"\nintercept = true\n[data.categorical]\nsmoker = [\"no\", \"yes\"{unused}]"
    );
    consensus(metric).replace(
        "builtin = \"clinic\"",
        &format!("builtin = \"clinic\"\n{columns}"),
    )
}

pub(super) type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One direction of a wire, and the disk of the party that sends.
pub(super) struct Wire(pub(super) Queue, pub(super) FaultyDisk);

impl Link for Wire {
    fn send(&self, frame: Vec<u8>) -> bool {
        assert!(
            self.1.is_synced(),
            "a frame left before its record was durable"
        );
        self.0.lock().unwrap().push_back(frame);
        true
    }

    fn close(&self) {}
}

/// A party's key, rows and disk, and the party while it runs.
pub(crate) struct Host {
    pub(crate) pem: String,
    pub(crate) shard: Arc<Shard>,
    pub(super) disk: FaultyDisk,
    pub(crate) party: Option<Party>,
}

/// All parties, and the wires between them.
pub(crate) struct World {
    pub(crate) study: Study,
    pub(crate) graph: Graph,
    pub(crate) hosts: Vec<Host>,
    pub(super) wires: BTreeMap<(u32, u32), (Serial, Queue)>,
    pub(super) serials: Serials,
    pub(super) rng: ChaCha20Rng,
    /// The value frames that were ever sent, by sender and iteration.
    pub(super) sent: BTreeMap<(u32, u32), Vec<u8>>,
    /// Whether the noise is secret, and not seeded.
    pub(super) secret: bool,
    pub(super) faults: FaultCounts,
    /// Whether parties stop when a neighbour's values are suspicious.
    pub(super) stop_on_suspicion: bool,
    /// The luck of workers that hold the rows of all parties and are lost once in a while, if there are any.
    pub(super) workers: Option<Arc<Mutex<ChaCha20Rng>>>,
    /// A dishonest party, and the iteration at which its value is another than the one that follows.
    liar: Option<(u32, u32)>,
    /// A dishonest party that sends one neighbour other values than the others from this iteration on.
    pub(crate) equivocator: Option<(u32, u32, u32)>,
    /// A dishonest party that does no honest work.
    pub(super) idler: Option<Idler>,
}

/// The faults so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FaultCounts {
    /// Running parties that were killed.
    pub(super) kills: u32,
    /// Wires that were cut.
    pub(super) cuts: u32,
    /// Parties that halted because their disk failed.
    pub(super) disks: u32,
    /// Parties that halted because a worker was lost.
    pub(super) workers: u32,
}

impl std::ops::AddAssign for FaultCounts {
    fn add_assign(&mut self, other: Self) {
        self.kills += other.kills;
        self.cuts += other.cuts;
        self.disks += other.disks;
        self.workers += other.workers;
    }
}

pub(super) fn name_of(id: NodeId) -> String {
    ["alder", "birch", "cedar", "maple", "rowan"][id.0 as usize].to_owned()
}

/// Returns the noise of a party.
pub(crate) fn mechanism(study: &Study, graph: &Graph, id: NodeId) -> radmm::privacy::Mechanism {
    let rows = study.parties[id.0 as usize].rows.unwrap();
    plan_party(study, graph, id, rows).unwrap().0
}

pub(super) fn node(
    study: &Study,
    graph: &Graph,
    id: NodeId,
    shard: &Arc<Shard>,
    ledger: Ledger,
) -> Node {
    let noise = NoiseKey::repeating(study.run.seed, 0, id.0);
    let config = CuratorConfig {
        problem: Instance::declared(study, graph).problem(id),
        mechanism: mechanism(study, graph, id),
        ledger,
        noise,
    };
    let curator = Curator::simulated(shard.clone(), config)
        .unwrap()
        .with_warm_start(WarmStart::default());
    Node::new(node_config(study, graph, id, curator)).unwrap()
}

fn node_config(study: &Study, graph: &Graph, id: NodeId, curator: Curator) -> NodeConfig {
    let columns = curator.columns();
    NodeConfig {
        id,
        neighbours: graph.neighbours(id).to_vec(),
        iterations: study.algorithm.iterations,
        start: instantiate::start(study, id, columns),
        algorithm: Instance::declared(study, graph).algorithm(id, vec![0.0; columns]),
        curator,
    }
}

/// A dishonest party whose values have equal coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idler {
    pub(super) party: u32,
    pub(super) coordinate: f64,
    /// The iteration from which on it is dishonest.
    pub(super) since: u32,
    /// Whether only its answers are dishonest: what follows from them it computes as an honest party does.
    pub(super) is_covert: bool,
}

/// An idler's part of an algorithm.
struct Idle {
    honest: Box<dyn Algorithm>,
    idler: Idler,
}

impl Algorithm for Idle {
    fn observe(&mut self, view: &View<'_>) {
        self.honest.observe(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        let t = view.iteration + 1;
        let alike = |width| vec![self.idler.coordinate; width];
        match self.honest.next_step(view) {
            step if t < self.idler.since => step,
            Step::Ask(query) => {
                let answer = alike(query.width(columns_of(&query, view)));
                match self.idler.is_covert {
                    true => Step::Recycle(self.honest.absorb_answer(view, &answer)),
                    false => Step::Recycle(answer),
                }
            }
            Step::Recycle(values) if self.idler.is_covert => Step::Recycle(values),
            Step::Recycle(values) => Step::Recycle(alike(values.len())),
        }
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        self.honest.absorb_answer(view, answer)
    }

    fn width(&self, iteration: u32, columns: usize) -> usize {
        self.honest.width(iteration, columns)
    }

    fn model(&self) -> Option<&[f64]> {
        self.honest.model()
    }
}

/// Returns the number of columns of a query, which is asked before there are values of other widths.
fn columns_of(query: &Query, view: &View<'_>) -> usize {
    match query {
        Query::Minimise { linear, .. } => linear.len(),
        Query::Gradient { at } | Query::GradientSum { at, .. } => at.len(),
        Query::GramSum { .. } | Query::RowSum { .. } => view.own.len(),
    }
}

/// A dishonest party's part of an algorithm: one of its recycled values is not what follows.
struct Lying {
    honest: Box<dyn Algorithm>,
    at: u32,
}

impl Algorithm for Lying {
    fn observe(&mut self, view: &View<'_>) {
        self.honest.observe(view);
    }

    fn next_step(&mut self, view: &View<'_>) -> Step {
        match self.honest.next_step(view) {
            Step::Recycle(mut values) if view.iteration + 1 == self.at => {
                values[0] += 1.0;
                Step::Recycle(values)
            }
            step => step,
        }
    }

    fn absorb_answer(&mut self, view: &View<'_>, answer: &[f64]) -> Vec<f64> {
        self.honest.absorb_answer(view, answer)
    }

    fn width(&self, iteration: u32, columns: usize) -> usize {
        self.honest.width(iteration, columns)
    }

    fn is_common(&self, _iteration: u32) -> bool {
        false
    }

    fn model(&self) -> Option<&[f64]> {
        self.honest.model()
    }
}

/// A worker that is lost once in a while.
struct LuckyWorker {
    holder: ChunkHolder,
    luck: Arc<Mutex<ChaCha20Rng>>,
}

impl ChunkWorkers for LuckyWorker {
    fn ask(&self, requests: &[WorkerRequest]) -> Result<Vec<Vec<u8>>, PassFailed> {
        if self.luck.lock().unwrap().random_range(0..20) == 0 {
            return Err(PassFailed::new("worker 0 is lost"));
        }
        let replies = requests.iter();
        replies
            .map(|request| self.holder.reply(&request.bytes, &Sequential))
            .collect()
    }
}

/// Hands rows to a worker that is lost once in a while.
fn with_worker(shard: Shard, luck: Arc<Mutex<ChaCha20Rng>>) -> HeldRows {
    let holder = ChunkHolder::new(shard, 0).unwrap();
    let description = holder.describe();
    let worker = Box::new(LuckyWorker { holder, luck });
    WorkerRows::new(&[description], worker).unwrap().into()
}

pub(super) fn ledger(study: &Study, answers: &[ChargedAnswer]) -> Ledger {
    let budget = Budget::unlimited(study.privacy.delta).unwrap();
    let events = answers.iter().map(|answer| answer.event);
    Ledger::resumed(budget, study.privacy.bound, events).unwrap()
}

impl World {
    pub(crate) fn new(topology: &str, seed: u64) -> Self {
        Self::of(&on(topology, STUDY), seed)
    }

    /// Returns five parties with new keys, for a study without `[[parties]]`.
    pub(crate) fn of(text: &str, seed: u64) -> Self {
        Self::with_liar(text, seed, None)
    }

    /// Returns five parties of which one may be dishonest at an iteration.
    pub(crate) fn with_liar(text: &str, seed: u64, liar: Option<(u32, u32)>) -> Self {
        let (mut study, _) = Study::parse(text, "rehearsal.toml").unwrap();
        let graph = Graph::new(&study.network.topology, 5).unwrap();
        let table = StudyRows::read(&study, Path::new("")).unwrap();
        let host = |rows: radmm_study::rows::PartyRows| Host {
            pem: SecretKey::generate().unwrap().to_pem().to_string(),
            shard: rows.shard,
            disk: FaultyDisk::default(),
            party: None,
        };
        let hosts: Vec<Host> = table.parties.into_iter().map(host).collect();
        let party = |(i, host): (u32, &Host)| radmm_study::StudyParty {
            name: name_of(NodeId(i)),
            key: SecretKey::from_pem(&host.pem).unwrap().public().into(),
            rows: Some(host.shard.rows()),
            address: None,
        };
        study.parties = (0..).zip(&hosts).map(party).collect();
        let mut world = Self {
            hosts,
            study,
            graph,
            wires: BTreeMap::new(),
            serials: Serials::default(),
            rng: ChaCha20Rng::seed_from_u64(seed),
            sent: BTreeMap::new(),
            secret: false,
            faults: FaultCounts::default(),
            stop_on_suspicion: false,
            workers: None,
            liar,
            equivocator: None,
            idler: None,
        };
        for i in 0..5 {
            world.open(i).unwrap();
        }
        world
    }

    /// Starts all parties again with secret noise, on empty disks.
    pub(crate) fn secret_from_the_start(&mut self) {
        self.secret = true;
        for i in 0..5 {
            self.hosts[i as usize].party = None;
            self.hosts[i as usize].disk = FaultyDisk::default();
            self.open(i).unwrap();
        }
    }

    /// Starts all parties again with their rows at workers, which are lost at one pass of twenty.
    pub(super) fn hand_rows_to_workers(&mut self, seed: u64) {
        let luck = ChaCha20Rng::seed_from_u64(seed);
        self.workers = Some(Arc::new(Mutex::new(luck)));
        for i in 0..5 {
            self.hosts[i].party = None;
        }
    }

    /// Makes a party an idler, from the start of the study.
    pub(super) fn make_idle(&mut self, idler: Idler) {
        self.idler = Some(idler);
        let host = &mut self.hosts[idler.party as usize];
        host.party = None;
        host.disk = FaultyDisk::default();
        self.open(idler.party).unwrap();
    }

    pub(crate) fn noise(&self) -> NoiseOrigin {
        match self.secret {
            true => NoiseOrigin::Secret,
            false => NoiseOrigin::Seeded,
        }
    }

    /// Returns the digest in greetings and signatures.
    pub(crate) fn spoken(&self) -> [u8; 32] {
        self.study.spoken_digest(self.noise())
    }

    /// Opens a party from its disk.
    pub(super) fn open(&mut self, i: u32) -> Result<(), PartyError> {
        let study = &self.study;
        let key = |i: usize| SecretKey::from_pem(&self.hosts[i].pem).unwrap();
        let host = &self.hosts[i as usize];
        let mut store = Store::on(&host.disk)?;
        let rows = store.row_fingerprint(&[i as u8; 32]);
        let study_record = match store.studies().pop() {
            Some(record) => record,
            None => store.begin_study(|number| StudyRecord {
                number,
                name: study.name.clone(),
                sha256: study.sha256(),
                party: i,
                fingerprint: rows.to_string(),
                rows: host.shard.rows() as u64,
                seeded: !self.secret,
                read_off: false,
                plan: Vec::new(),
                finished: false,
                ended: false,
                acked: BTreeSet::new(),
                ack_confirmed: BTreeSet::new(),
            })?,
        };
        let id = NodeId(i);
        let charged_answers = store.charged_answers(study_record.number)?;
        let mut config = CuratorConfig {
            problem: Instance::declared(study, &self.graph).problem(id),
            mechanism: mechanism(study, &self.graph, id),
            ledger: ledger(study, &charged_answers),
            noise: NoiseKey::repeating(study.run.seed, 0, i),
        };
        // A party with secret noise, or with workers, owns its rows: they are read again.
        let owned = || {
            let table = StudyRows::read(study, Path::new("")).unwrap();
            let rows = table.parties.into_iter().nth(i as usize).unwrap();
            Arc::into_inner(rows.shard).unwrap()
        };
        if self.secret {
            config.noise = NoiseKey::secret(store.noise_secret(study_record.number)?);
        }
        let curator = match (&self.workers, self.secret) {
            (None, false) => Curator::simulated(host.shard.clone(), config),
            (None, true) => Curator::new(owned(), config),
            (Some(luck), _) => Curator::new(with_worker(owned(), luck.clone()), config),
        };
        let curator = curator.unwrap().with_warm_start(WarmStart::default());
        let mut config = node_config(study, &self.graph, id, curator);
        if let Some((_, at)) = self.liar.filter(|(liar, _)| *liar == i) {
            let honest = config.algorithm;
            config.algorithm = Box::new(Lying { honest, at });
        }
        let idler = self.idler.filter(|idler| idler.party == i);
        if let Some(idler) = idler {
            let honest = config.algorithm;
            config.algorithm = Box::new(Idle { honest, idler });
        }
        let node = Node::new(config).unwrap();
        let peers = self.graph.neighbours(id).iter().map(|id| Peer {
            id: *id,
            name: name_of(*id),
            key: key(id.0 as usize).public(),
        });
        let mut party = Party::open(PartyParts {
            study,
            graph: &self.graph,
            noise: self.noise(),
            node,
            peers: peers.collect(),
            key: key(i as usize).into(),
            store,
            study_record,
            charged_answers,
            rows,
            account: None,
            stop_on_suspicion: self.stop_on_suspicion,
        })?;
        if idler.is_some() {
            // It does not mind what others say, nor what its own answers are worth.
            party.edges.iter_mut().for_each(|edge| edge.verifier = None);
        }
        self.hosts[i as usize].party = Some(party);
        Ok(())
    }

    pub(crate) fn edges(&self) -> Vec<(u32, u32)> {
        self.graph.edges().map(|(a, b)| (a.0, b.0)).collect()
    }

    /// Connects two running parties.
    pub(crate) fn connect(&mut self, a: u32, b: u32) -> Result<(), (u32, PartyError)> {
        for (from, to) in [(a, b), (b, a)] {
            let (serial, queue) = (self.serials.next(), Queue::default());
            self.wires.insert((from, to), (serial, queue.clone()));
            let link = Box::new(Wire(queue, self.hosts[from as usize].disk.clone()));
            let peer = NodeId(to);
            if let Some(party) = &mut self.hosts[from as usize].party {
                let up = LinkEvent::Up { peer, serial, link };
                party.handle(up).map_err(|error| (from, error))?;
            }
        }
        Ok(())
    }

    /// Cuts a wire, with everything that is on it.
    pub(super) fn cut(&mut self, a: u32, b: u32) {
        for (from, to) in [(a, b), (b, a)] {
            let Some((serial, _)) = self.wires.remove(&(from, to)) else {
                continue;
            };
            if let Some(party) = &mut self.hosts[from as usize].party {
                let reason = "it was cut".to_owned();
                let peer = NodeId(to);
                let down = LinkEvent::Down {
                    peer,
                    serial,
                    reason,
                };
                party.handle(down).unwrap();
            }
        }
    }

    /// Kills a party, and leaves its disk as the next process finds it.
    pub(super) fn kill(&mut self, i: u32) {
        let neighbours: Vec<u32> = self
            .edges()
            .iter()
            .filter_map(|&(a, b)| match i {
                _ if a == i => Some(b),
                _ if b == i => Some(a),
                _ => None,
            })
            .collect();
        let host = &mut self.hosts[i as usize];
        let image = match self.rng.random_range(0..2) {
            0 => host.disk.after_kill(),
            _ => host.disk.after_power_failure(&mut self.rng),
        };
        host.party = None;
        host.disk = image;
        for j in neighbours {
            self.cut(i, j);
        }
    }

    /// Delivers the first frame on a wire.
    pub(crate) fn deliver(&mut self, from: u32, to: u32) -> Result<bool, (u32, PartyError)> {
        let Some((_, queue)) = self.wires.get(&(from, to)) else {
            return Ok(false);
        };
        let Some(mut bytes) = queue.lock().unwrap().pop_front() else {
            return Ok(false);
        };
        if let Ok(Frame::Value(mut signed)) = Frame::decode(&bytes) {
            // A party that is behind is shown its own value, so the sender is that of the message.
            let key = (signed.message.from.0, signed.message.iteration);
            let before = self.sent.entry(key).or_insert_with(|| bytes.clone());
            assert_eq!(
                *before, bytes,
                "{from} sent two values for iteration {}",
                key.1
            );
            if (self.equivocator)
                .is_some_and(|(a, b, since)| (a, b) == (from, to) && key.1 >= since)
            {
                let mut units = signed.message.release.units();
                units[0] += 1 << 40;
                signed.message.release = Release::from_units(units).unwrap();
                let secret = SecretKey::from_pem(&self.hosts[from as usize].pem).unwrap();
                bytes = SignedMessage::new(signed.message, &self.spoken(), &secret).to_bytes();
            }
        }
        let Some((serial, _)) = self.wires.get(&(to, from)) else {
            return Ok(false);
        };
        let event = LinkEvent::Frame {
            peer: NodeId(from),
            serial: *serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        match &mut self.hosts[to as usize].party {
            Some(party) => party.handle(event).map_err(|error| (to, error))?,
            None => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn all_acked(&self) -> bool {
        let acked = |host: &Host| host.party.as_ref().is_some_and(Party::all_acked);
        self.hosts.iter().all(acked)
    }

    /// Runs until all parties have all acknowledgements. In `faults` of a thousand steps a wire is cut, a party is killed, or a disk
    /// fails in the middle of writing.
    pub(crate) fn run(&mut self, faults: u32) {
        for _ in 0..200_000 {
            if self.all_acked() {
                return;
            }
            let edges = self.edges();
            let (a, b) = edges[self.rng.random_range(0..edges.len())];
            let i = self.rng.random_range(0..5);
            let luck = self.rng.random_range(0..1000);
            let halted = if luck < faults {
                match luck % 3 {
                    0 => {
                        self.faults.cuts += u32::from(self.wires.contains_key(&(a, b)));
                        self.cut(a, b);
                    }
                    1 => {
                        self.faults.kills += u32::from(self.hosts[i as usize].party.is_some());
                        self.kill(i);
                    }
                    _ => {
                        let after = self.rng.random_range(0..8);
                        self.hosts[i as usize].disk.fail_after(after);
                    }
                }
                Ok(())
            } else if self.hosts[i as usize].party.is_none() {
                self.open(i).map_err(|error| (i, error))
            } else if !self.wires.contains_key(&(a, b)) {
                match [a, b]
                    .iter()
                    .all(|k| self.hosts[*k as usize].party.is_some())
                {
                    true => self.connect(a, b),
                    false => Ok(()),
                }
            } else {
                let (from, to) = if luck.is_multiple_of(2) {
                    (a, b)
                } else {
                    (b, a)
                };
                self.deliver(from, to).map(|_| ())
            };
            match halted {
                Ok(()) => {}
                // A disk failed: the process ends, and is restarted.
                Err((i, PartyError::Store(_))) => {
                    self.faults.disks += 1;
                    self.kill(i);
                }
                Err((i, PartyError::Stopped(stop)))
                    if matches!(*stop, StopReason::PassFailed { .. }) =>
                {
                    self.faults.workers += 1;
                    self.kill(i);
                }
                Err((i, error)) => panic!("{}: {error}", name_of(NodeId(i))),
            }
        }
        panic!("the study does not end");
    }

    /// Connects all parties and delivers everything; returns the parties that halted, and why.
    pub(crate) fn run_until_halted(&mut self) -> BTreeMap<u32, PartyError> {
        let mut halted = BTreeMap::new();
        for (a, b) in self.edges() {
            self.connect(a, b).unwrap();
        }
        for _ in 0..2000 {
            let mut quiet = true;
            for (a, b) in self.edges() {
                for (from, to) in [(a, b), (b, a)] {
                    match self.deliver(from, to) {
                        Ok(delivered) => quiet &= !delivered,
                        Err((who, error)) => {
                            halted.insert(who, error);
                        }
                    }
                }
            }
            if quiet {
                return halted;
            }
        }
        panic!("they send for ever");
    }

    /// Runs until every party has left that may, while wires are cut and parties are killed. Returns the number of parties that have
    /// all acknowledgements and would wait for a last confirmation until their timeout.
    pub(super) fn all_leave(&mut self) -> usize {
        let mut gone = BTreeSet::new();
        let confirmed = |host: &Host| host.party.as_ref().is_some_and(Party::all_acks_confirmed);
        for _ in 0..20_000 {
            let here: Vec<u32> = (0..5).filter(|i| !gone.contains(i)).collect();
            for &i in &here {
                if self.hosts[i as usize].party.is_none() {
                    self.open(i).unwrap();
                }
                // A real party waits a little longer, for its last confirmation to arrive.
                if confirmed(&self.hosts[i as usize]) {
                    self.kill(i);
                    gone.insert(i);
                }
            }
            let edges = self.edges();
            let (a, b) = edges[self.rng.random_range(0..edges.len())];
            if gone.contains(&a) || gone.contains(&b) {
                continue;
            }
            match self.rng.random_range(0..20) {
                0 => self.cut(a, b),
                1 => self.kill(a),
                _ if self.hosts[a as usize].party.is_none() => {}
                _ if !self.wires.contains_key(&(a, b)) => self.connect(a, b).unwrap(),
                luck => {
                    let (from, to) = [(a, b), (b, a)][luck % 2];
                    self.deliver(from, to).unwrap();
                }
            }
        }
        let left = self.hosts.iter().flat_map(|host| &host.party);
        left.inspect(|party| assert!(party.all_acked(), "a party waits for one that has left"))
            .count()
    }

    pub(super) fn models(&self) -> Vec<Release> {
        let model = |host: &Host| host.party.as_ref().unwrap().node().model().clone();
        self.hosts.iter().map(model).collect()
    }

    /// Returns the models of bare nodes, all of them in step.
    pub(super) fn undisturbed(&self) -> Vec<Release> {
        let empty = || ledger(&self.study, &[]);
        let mut nodes: Vec<Node> = (0..5)
            .map(|i| {
                let shard = &self.hosts[i as usize].shard;
                node(&self.study, &self.graph, NodeId(i), shard, empty())
            })
            .collect();
        let mut outputs: Vec<Output> = nodes.iter_mut().flat_map(Node::start).collect();
        while !outputs.is_empty() {
            let mut next = Vec::new();
            for output in outputs {
                let Output::Broadcast(message) = output else {
                    continue;
                };
                for id in self.graph.neighbours(message.from) {
                    next.extend(nodes[id.0 as usize].receive(message.clone()).unwrap());
                }
            }
            outputs = next;
        }
        nodes.iter().map(|node| node.model().clone()).collect()
    }

    /// Returns the iterations at which rows are asked: every other one, or the first of every sum.
    pub(super) fn data_steps(&self) -> Vec<u32> {
        let depth = SpanningTree::of(&self.graph).depth();
        let period = match self.study.algorithm.method.name() {
            "consensus" => 1 + 2 * depth,
            _ => 2,
        };
        let iterations = 1..=self.study.algorithm.iterations;
        iterations.step_by(period as usize).collect()
    }

    /// Asserts that every ledger holds the charges of the study, each once.
    pub(super) fn assert_ledgers_are_the_plan(&self) {
        for (i, host) in self.hosts.iter().enumerate() {
            let (store, _) = host.party.as_ref().unwrap().store();
            let charges = store.charges().unwrap();
            let times: Vec<u32> = charges.iter().map(|charge| charge.iteration).collect();
            assert_eq!(times, self.data_steps(), "{i}");
            let spent = host.party.as_ref().unwrap().spent();
            let events = charges.iter().map(|charge| (charge.event, 1));
            let budget = Budget::unlimited(self.study.privacy.delta).unwrap();
            let total = Ledger::total_of(budget, self.study.privacy.bound, events).unwrap();
            assert_eq!(spent, total);
        }
    }
}
