//! Five parties, the wires between them, and disks whose power fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use radmm::account::{Budget, Ledger};
use radmm::node::{Output, Setup};
use radmm::private::{Curator, NoiseKey, Shard, Terms};
use radmm_study::pricing::{PartySize, Plan};
use radmm_study::rows::StudyRows;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::super::*;
use crate::link::{Credit, Serials};
use crate::store::fault::Disk;

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

pub(super) type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One direction of a wire.
pub(super) struct Wire(pub(super) Queue);

impl Link for Wire {
    fn send(&self, frame: Vec<u8>) -> bool {
        self.0.lock().unwrap().push_back(frame);
        true
    }

    fn close(&self) {}
}

pub(crate) struct Seat {
    pub(crate) pem: String,
    pub(crate) shard: Arc<Shard>,
    pub(super) disk: Disk,
    pub(crate) party: Option<Party>,
}

/// Everyone, and the wires between them.
pub(crate) struct World {
    pub(crate) study: Study,
    pub(crate) graph: Graph,
    pub(crate) seats: Vec<Seat>,
    pub(super) wires: BTreeMap<(u32, u32), (Serial, Queue)>,
    pub(super) serials: Serials,
    pub(super) rng: ChaCha20Rng,
    /// Everything that ever went onto a wire: one content a sender and iteration.
    pub(super) said: BTreeMap<(u32, u32), Vec<u8>>,
    /// Whether parties' noise is their own secret.
    pub(super) secret: bool,
    pub(super) suffered: Suffered,
}

/// What went wrong so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suffered {
    /// Parties that were there and were killed from outside.
    pub(super) kills: u32,
    /// Wires that were there and were cut.
    pub(super) cuts: u32,
    /// Parties that ended since their disk failed in the middle of something.
    pub(super) disks: u32,
}

impl std::ops::AddAssign for Suffered {
    fn add_assign(&mut self, other: Self) {
        self.kills += other.kills;
        self.cuts += other.cuts;
        self.disks += other.disks;
    }
}

pub(super) fn names(id: NodeId) -> String {
    ["alder", "birch", "cedar", "maple", "rowan"][id.0 as usize].to_owned()
}

pub(crate) fn mechanisms(
    study: &Study,
    graph: &Graph,
    rows: &[usize],
) -> Vec<radmm::private::Mechanism> {
    let billed = |rows: &usize| PartySize {
        name: String::new(),
        rows: *rows,
    };
    let plan = Plan {
        study,
        graph,
        parties: rows.iter().map(billed).collect(),
    };
    plan.noise().unwrap()
}

pub(super) fn node(
    study: &Study,
    graph: &Graph,
    id: NodeId,
    shard: &Arc<Shard>,
    ledger: Ledger,
) -> Node {
    let noise = NoiseKey::repeating(study.run.seed, 0, id.0);
    let mechanism = mechanisms(study, graph, &[shard.rows(); 5])[id.0 as usize];
    let terms = Terms {
        problem: instantiate::problem(study),
        mechanism,
        ledger,
        noise,
    };
    with_curator(
        study,
        graph,
        id,
        Curator::simulated(shard.clone(), terms).unwrap(),
    )
}

pub(super) fn with_curator(study: &Study, graph: &Graph, id: NodeId, curator: Curator) -> Node {
    let columns = curator.columns();
    Node::new(Setup {
        id,
        neighbours: graph.neighbours(id).to_vec(),
        iterations: study.algorithm.iterations,
        start: instantiate::start(study, id, columns),
        algorithm: instantiate::algorithm(&study.algorithm.method, graph, id, vec![0.0; columns]),
        curator,
    })
    .unwrap()
}

pub(super) fn ledger(study: &Study, journal: &[Recorded]) -> Ledger {
    let budget = Budget::unlimited(study.privacy.delta).unwrap();
    let events = journal.iter().map(|recorded| recorded.event);
    Ledger::resumed(budget, study.privacy.bound, events).unwrap()
}

impl World {
    pub(crate) fn new(topology: &str, seed: u64) -> Self {
        Self::of(&STUDY.replace("TOPOLOGY", topology), seed)
    }

    /// Five parties with keys of their own, and a study without them.
    pub(crate) fn of(text: &str, seed: u64) -> Self {
        let (mut study, _) = Study::parse(text, "rehearsal.toml").unwrap();
        let graph = Graph::new(&study.network.topology, 5).unwrap();
        let table = StudyRows::read(&study, Path::new("")).unwrap();
        let seat = |rows: radmm_study::rows::PartyRows| Seat {
            pem: SecretKey::generate().unwrap().to_pem(),
            shard: rows.shard,
            disk: Disk::default(),
            party: None,
        };
        let seats: Vec<Seat> = table.parties.into_iter().map(seat).collect();
        let party = |(i, seat): (u32, &Seat)| radmm_study::StudyParty {
            name: names(NodeId(i)),
            key: SecretKey::from_pem(&seat.pem).unwrap().public().into(),
            address: None,
        };
        study.parties = (0..).zip(&seats).map(party).collect();
        let mut world = Self {
            seats,
            study,
            graph,
            wires: BTreeMap::new(),
            serials: Serials::default(),
            rng: ChaCha20Rng::seed_from_u64(seed),
            said: BTreeMap::new(),
            secret: false,
            suffered: Suffered::default(),
        };
        for i in 0..5 {
            world.open(i).unwrap();
        }
        world
    }

    /// Opens a party from its disk.
    pub(super) fn open(&mut self, i: u32) -> Result<(), Halt> {
        let study = &self.study;
        let key = |i: usize| SecretKey::from_pem(&self.seats[i].pem).unwrap();
        let seat = &self.seats[i as usize];
        let mut store = Store::on(Path::new("state"), seat.disk.clone())?;
        let data = store.fingerprint(&[i as u8; 32]);
        let begun = match store.studies().pop() {
            Some(begun) => begun,
            None => store.begin(|number| Begun {
                number,
                name: study.name.clone(),
                sha256: study.sha256(),
                party: i,
                fingerprint: data.to_string(),
                rows: seat.shard.rows() as u64,
                seeded: true,
                finished: false,
                served: BTreeSet::new(),
                assured: BTreeSet::new(),
            })?,
        };
        let id = NodeId(i);
        let ledger = ledger(study, &store.recorded(begun.number)?);
        let node = match self.secret {
            false => node(study, &self.graph, id, &seat.shard, ledger),
            true => {
                let mechanism = mechanisms(study, &self.graph, &[seat.shard.rows(); 5])[i as usize];
                let terms = Terms {
                    problem: instantiate::problem(study),
                    mechanism,
                    ledger,
                    noise: NoiseKey::secret(store.secret(begun.number)?),
                };
                // A real party owns its rows: they are read again.
                let table = StudyRows::read(study, Path::new("")).unwrap();
                let rows = table.parties.into_iter().nth(i as usize).unwrap();
                let shard = Arc::into_inner(rows.shard).unwrap();
                let curator = Curator::new(shard, terms).unwrap();
                with_curator(study, &self.graph, id, curator)
            }
        };
        let peers = self.graph.neighbours(id).iter().map(|id| Peer {
            id: *id,
            name: names(*id),
            key: key(id.0 as usize).public(),
        });
        let party = Party::open(Opening {
            study,
            graph: &self.graph,
            node,
            peers: peers.collect(),
            key: key(i as usize),
            store,
            begun,
            data,
            account: None,
        })?;
        self.seats[i as usize].party = Some(party);
        Ok(())
    }

    pub(crate) fn edges(&self) -> Vec<(u32, u32)> {
        self.graph.edges().map(|(a, b)| (a.0, b.0)).collect()
    }

    /// Puts a wire between two parties that are there.
    pub(crate) fn connect(&mut self, a: u32, b: u32) -> Result<(), (u32, Halt)> {
        for (from, to) in [(a, b), (b, a)] {
            let (serial, queue) = (self.serials.next(), Queue::default());
            self.wires.insert((from, to), (serial, queue.clone()));
            let link = Box::new(Wire(queue));
            let peer = NodeId(to);
            if let Some(party) = &mut self.seats[from as usize].party {
                let up = Event::Up { peer, serial, link };
                party.handle(up).map_err(|halt| (from, halt))?;
            }
        }
        Ok(())
    }

    /// Takes it away, with everything that is on it.
    pub(super) fn cut(&mut self, a: u32, b: u32) {
        for (from, to) in [(a, b), (b, a)] {
            let Some((serial, _)) = self.wires.remove(&(from, to)) else {
                continue;
            };
            if let Some(party) = &mut self.seats[from as usize].party {
                let reason = "it was cut".to_owned();
                let peer = NodeId(to);
                let down = Event::Down {
                    peer,
                    serial,
                    reason,
                };
                party.handle(down).unwrap();
            }
        }
    }

    /// Kills a party; its disk is as the next process finds it.
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
        let seat = &mut self.seats[i as usize];
        let image = match self.rng.random_range(0..2) {
            0 => seat.disk.after_kill(),
            _ => seat.disk.after_power_failure(&mut self.rng),
        };
        seat.party = None;
        seat.disk = image;
        for j in neighbours {
            self.cut(i, j);
        }
    }

    /// Takes the first frame off a wire and hands it over.
    pub(crate) fn deliver(&mut self, from: u32, to: u32) -> Result<bool, (u32, Halt)> {
        let Some((_, queue)) = self.wires.get(&(from, to)) else {
            return Ok(false);
        };
        let Some(bytes) = queue.lock().unwrap().pop_front() else {
            return Ok(false);
        };
        if let Ok(Frame::Say(signed)) = Frame::decode(&bytes) {
            // Who is behind is shown its own words.
            let key = (signed.message.from.0, signed.message.iteration);
            let before = self.said.entry(key).or_insert_with(|| bytes.clone());
            assert_eq!(*before, bytes, "{from} said two things at {}", key.1);
        }
        let Some((serial, _)) = self.wires.get(&(to, from)) else {
            return Ok(false);
        };
        let event = Event::Frame {
            peer: NodeId(from),
            serial: *serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        match &mut self.seats[to as usize].party {
            Some(party) => party.handle(event).map_err(|halt| (to, halt))?,
            None => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn is_over(&self) -> bool {
        let over = |seat: &Seat| seat.party.as_ref().is_some_and(Party::is_over);
        self.seats.iter().all(over)
    }

    /// Goes on until everything is over; `trouble` in a thousand moments something is cut or killed, and disks fail in the middle
    /// of writing.
    pub(crate) fn run(&mut self, trouble: u32) {
        for _ in 0..200_000 {
            if self.is_over() {
                return;
            }
            let edges = self.edges();
            let (a, b) = edges[self.rng.random_range(0..edges.len())];
            let i = self.rng.random_range(0..5);
            let luck = self.rng.random_range(0..1000);
            let halted = if luck < trouble {
                match luck % 3 {
                    0 => {
                        self.suffered.cuts += u32::from(self.wires.contains_key(&(a, b)));
                        self.cut(a, b);
                    }
                    1 => {
                        self.suffered.kills += u32::from(self.seats[i as usize].party.is_some());
                        self.kill(i);
                    }
                    _ => {
                        let after = self.rng.random_range(0..8);
                        self.seats[i as usize].disk.fail_after(after);
                    }
                }
                Ok(())
            } else if self.seats[i as usize].party.is_none() {
                self.open(i).map_err(|halt| (i, halt))
            } else if !self.wires.contains_key(&(a, b)) {
                match [a, b]
                    .iter()
                    .all(|k| self.seats[*k as usize].party.is_some())
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
                // A disk failed: the process ends, and another begins.
                Err((i, Halt::Store(_))) => {
                    self.suffered.disks += 1;
                    self.kill(i);
                }
                Err((i, halt)) => panic!("{}: {halt}", names(NodeId(i))),
            }
        }
        panic!("it does not end");
    }

    /// Goes on until everyone has left who may, while links are cut and parties are killed; the number of those that are over and
    /// would wait for a last word until their patience ends.
    pub(super) fn all_leave(&mut self) -> usize {
        let mut gone = BTreeSet::new();
        let settled = |seat: &Seat| seat.party.as_ref().is_some_and(Party::is_settled);
        for _ in 0..20_000 {
            let here: Vec<u32> = (0..5).filter(|i| !gone.contains(i)).collect();
            for &i in &here {
                if self.seats[i as usize].party.is_none() {
                    self.open(i).unwrap();
                }
                // Those who wait a little longer for their last words to arrive are quicker here.
                if settled(&self.seats[i as usize]) {
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
                _ if self.seats[a as usize].party.is_none() => {}
                _ if !self.wires.contains_key(&(a, b)) => self.connect(a, b).unwrap(),
                luck => {
                    let (from, to) = [(a, b), (b, a)][luck % 2];
                    self.deliver(from, to).unwrap();
                }
            }
        }
        let left = self.seats.iter().flat_map(|seat| &seat.party);
        left.inspect(|party| assert!(party.is_over(), "somebody waits for one that has left"))
            .count()
    }

    pub(super) fn models(&self) -> Vec<Release> {
        let model = |seat: &Seat| seat.party.as_ref().unwrap().node().model().clone();
        self.seats.iter().map(model).collect()
    }

    /// What nodes alone come to, all of them in step.
    pub(super) fn undisturbed(&self) -> Vec<Release> {
        let empty = || ledger(&self.study, &[]);
        let mut nodes: Vec<Node> = (0..5)
            .map(|i| {
                let shard = &self.seats[i as usize].shard;
                node(&self.study, &self.graph, NodeId(i), shard, empty())
            })
            .collect();
        let mut said: Vec<Output> = nodes.iter_mut().flat_map(Node::start).collect();
        while !said.is_empty() {
            let mut next = Vec::new();
            for output in said {
                let Output::Broadcast(message) = output else {
                    continue;
                };
                for id in self.graph.neighbours(message.from) {
                    next.extend(nodes[id.0 as usize].receive(message.clone()).unwrap());
                }
            }
            said = next;
        }
        nodes.iter().map(|node| node.model().clone()).collect()
    }

    /// Every ledger holds what the study asks, and nothing twice.
    pub(super) fn assert_ledgers_are_the_plan(&self) {
        for (i, seat) in self.seats.iter().enumerate() {
            let (store, _) = seat.party.as_ref().unwrap().store();
            let charges = store.charges().unwrap();
            let times: Vec<u32> = charges.iter().map(|charge| charge.iteration).collect();
            assert_eq!(times, [1, 3, 5, 7, 9], "{i}");
            let spent = seat.party.as_ref().unwrap().spent();
            let events = charges.iter().map(|charge| (charge.event, 1));
            let budget = Budget::unlimited(self.study.privacy.delta).unwrap();
            let total = Ledger::total_of(budget, self.study.privacy.bound, events).unwrap();
            assert_eq!(spent, total);
        }
    }
}
