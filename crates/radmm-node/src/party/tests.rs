//! Parties on wires in memory, with disks whose power fails: whatever is cut, killed or delayed, in whatever order, the same
//! bytes are said, and once.

mod liars;
mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use radmm::account::{Budget, Ledger};
use radmm::node::{Output, Setup};
use radmm::private::{Curator, NoiseKey, Shard, Terms};
use radmm::public::release::SPACING;
use radmm_study::plan::{Billed, Plan};
use radmm_study::table::Table;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
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

type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One direction of a wire.
struct Wire(Queue);

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
    disk: Disk,
    pub(crate) party: Option<Party>,
}

/// Everyone, and the wires between them.
pub(crate) struct World {
    pub(crate) study: Study,
    pub(crate) graph: Graph,
    pub(crate) seats: Vec<Seat>,
    wires: BTreeMap<(u32, u32), (Serial, Queue)>,
    serials: Serials,
    rng: ChaCha20Rng,
    /// Everything that ever went onto a wire: one content a sender and iteration.
    said: BTreeMap<(u32, u32), Vec<u8>>,
    /// Whether parties' noise is their own secret.
    secret: bool,
    suffered: Suffered,
}

/// What went wrong so far.
#[derive(Clone, Copy, Debug, Default)]
struct Suffered {
    /// Parties that were there and were killed from outside.
    kills: u32,
    /// Wires that were there and were cut.
    cuts: u32,
    /// Parties that ended since their disk failed in the middle of something.
    disks: u32,
}

impl std::ops::AddAssign for Suffered {
    fn add_assign(&mut self, other: Self) {
        self.kills += other.kills;
        self.cuts += other.cuts;
        self.disks += other.disks;
    }
}

fn names(id: NodeId) -> String {
    ["alder", "birch", "cedar", "maple", "rowan"][id.0 as usize].to_owned()
}

pub(crate) fn mechanisms(
    study: &Study,
    graph: &Graph,
    rows: &[usize],
) -> Vec<radmm::private::Mechanism> {
    let billed = |rows: &usize| Billed {
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

fn node(study: &Study, graph: &Graph, id: NodeId, shard: &Arc<Shard>, ledger: Ledger) -> Node {
    let noise = NoiseKey::repeating(study.run.seed, 0, id.0);
    let mechanism = mechanisms(study, graph, &[shard.rows(); 5])[id.0 as usize];
    let terms = Terms {
        problem: assemble::problem(study),
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

fn with_curator(study: &Study, graph: &Graph, id: NodeId, curator: Curator) -> Node {
    let columns = curator.columns();
    Node::new(Setup {
        id,
        neighbours: graph.neighbours(id).to_vec(),
        iterations: study.algorithm.iterations,
        start: assemble::start(study, id, columns),
        algorithm: assemble::algorithm(&study.algorithm.method, graph, id, vec![0.0; columns]),
        curator,
    })
    .unwrap()
}

fn ledger(study: &Study, journal: &[Recorded]) -> Ledger {
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
        let table = Table::read(&study, Path::new("")).unwrap();
        let seat = |rows: radmm_study::table::PartyRows| Seat {
            pem: SecretKey::generate().unwrap().to_pem(),
            shard: rows.shard,
            disk: Disk::default(),
            party: None,
        };
        let seats: Vec<Seat> = table.parties.into_iter().map(seat).collect();
        let party = |(i, seat): (u32, &Seat)| radmm_study::Party {
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
    fn open(&mut self, i: u32) -> Result<(), Halt> {
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
                    problem: assemble::problem(study),
                    mechanism,
                    ledger,
                    noise: NoiseKey::secret(store.secret(begun.number)?),
                };
                // A real party owns its rows: they are read again.
                let table = Table::read(study, Path::new("")).unwrap();
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
    fn cut(&mut self, a: u32, b: u32) {
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
    fn kill(&mut self, i: u32) {
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

    fn is_over(&self) -> bool {
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
    fn all_leave(&mut self) -> usize {
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

    fn models(&self) -> Vec<Release> {
        let model = |seat: &Seat| seat.party.as_ref().unwrap().node().model().clone();
        self.seats.iter().map(model).collect()
    }

    /// What nodes alone come to, all of them in step.
    fn undisturbed(&self) -> Vec<Release> {
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
    fn assert_ledgers_are_the_plan(&self) {
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

#[test]
fn parties_that_are_left_alone_come_to_what_nodes_alone_do() {
    for topology in ["ring", "star", "complete", "path"] {
        let mut world = World::new(topology, 1);
        world.run(0);
        assert_eq!(world.models(), world.undisturbed(), "{topology}");
        world.assert_ledgers_are_the_plan();
    }
}

#[test]
fn whatever_is_cut_killed_or_fails_the_same_bytes_are_said_once() {
    let mut suffered = Suffered::default();
    for seed in 0..12 {
        let topology = ["ring", "complete", "star"][seed as usize % 3];
        let mut world = World::new(topology, seed);
        world.run(60);
        assert_eq!(world.models(), world.undisturbed(), "seed {seed}");
        world.assert_ledgers_are_the_plan();
        suffered += world.suffered;
    }
    assert!(
        suffered.kills > 100 && suffered.cuts > 100 && suffered.disks > 50,
        "{suffered:?}"
    );
}

#[test]
fn who_leaves_once_settled_leaves_nobody_waiting() {
    let mut unassured = 0;
    for seed in 30..60 {
        let mut world = World::new(["ring", "star", "complete"][seed as usize % 3], seed);
        unassured += world.all_leave();
        assert_eq!(world.said.len(), 5 * 10, "everybody has said everything");
    }
    // Who said the last word cannot know whether it was heard: it happened, and nobody waited for ever.
    assert!(unassured > 0);
}

/// A link whose other side has gone.
struct Gone;

impl Link for Gone {
    fn send(&self, _: Vec<u8>) -> bool {
        false
    }

    fn close(&self) {}
}

#[test]
fn what_was_said_last_is_heard_although_nothing_can_be_said_any_more() {
    let mut world = World::new("ring", 2);
    let serial = world.serials.next();
    let peer = NodeId(1);
    let hello = Frame::Hello(Hello {
        version: PROTOCOL,
        study: world.study.digest(),
        from: peer,
        at: 0,
        heard: None,
        seen: None,
        probe: false,
    });
    let party = world.seats[0].party.as_mut().unwrap();
    let link = Box::new(Gone);
    party.handle(Event::Up { peer, serial, link }).unwrap();
    for frame in [hello, Frame::Bye("its operator stopped it".to_owned())] {
        let event = Event::Frame {
            peer,
            serial,
            bytes: frame.encode(),
            credit: Credit::new(|| ()),
        };
        party.handle(event).unwrap();
    }
    let gone = Notice::Disconnected {
        peer: "birch".to_owned(),
        reason: "its operator stopped it".to_owned(),
    };
    let notices = party.take_notices();
    assert!(notices.contains(&gone), "{notices:?}");
}

#[test]
fn with_secret_noise_too_nothing_is_answered_twice() {
    // That no two contents are ever said is checked on the wires.
    for seed in 20..24 {
        let mut world = World::new("ring", seed);
        for i in 0..5 {
            world.seats[i as usize].party = None;
            world.seats[i as usize].disk = Disk::default();
        }
        world.secret = true;
        world.run(60);
        world.assert_ledgers_are_the_plan();
        // Another key, other noise.
        assert_ne!(world.models(), world.undisturbed());
    }
}

#[test]
fn a_full_disk_stops_a_party_before_anything_leaves() {
    let mut world = World::new("ring", 3);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    world.seats[0].disk.fill();
    let before = world.seats[0].party.as_ref().unwrap().iteration();
    let mut halted = None;
    'outer: for _ in 0..100 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                match world.deliver(from, to) {
                    Ok(_) => {}
                    Err(halt) => {
                        halted = Some(halt);
                        break 'outer;
                    }
                }
            }
        }
    }
    let (who, halt) = halted.unwrap();
    assert_eq!((who, before), (0, 0));
    let text = halt.to_string();
    assert!(text.contains("the disk is full"), "{text}");
    // Beyond its start it said nothing.
    let said: Vec<u32> = world
        .said
        .keys()
        .filter(|key| key.0 == 0)
        .map(|key| key.1)
        .collect();
    assert_eq!(said, [0]);
}

/// A liar with birch's key says this to alder, who is at the iteration after the start.
fn told_by_a_liar(
    topology: &str,
    lie: impl FnOnce(&mut World) -> Vec<Vec<u8>>,
) -> (World, Option<Halt>) {
    let mut world = World::new(topology, 5);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    // Greetings and starts, and the first answers.
    for _ in 0..3 {
        for (a, b) in world.edges() {
            world.deliver(a, b).unwrap();
            world.deliver(b, a).unwrap();
        }
    }
    let frames = lie(&mut world);
    let (serial, _) = world.wires[&(0, 1)];
    let mut halted = None;
    for bytes in frames {
        let event = Event::Frame {
            peer: NodeId(1),
            serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        let party = world.seats[0].party.as_mut().unwrap();
        if let Err(halt) = party.handle(event) {
            halted = Some(halt);
        }
    }
    (world, halted)
}

fn said_by_birch(world: &World, iteration: u32, values: Vec<f64>) -> Vec<u8> {
    let key = SecretKey::from_pem(&world.seats[1].pem).unwrap();
    let message = Message {
        from: NodeId(1),
        iteration,
        release: Release::of(values, radmm::public::release::Precision::Grid).unwrap(),
    };
    Signed::new(message, &world.study.digest(), &key).to_bytes()
}

fn lies(world: &mut World) -> Vec<String> {
    let notices = world.seats[0].party.as_mut().unwrap().take_notices();
    let lie = |notice| match notice {
        Notice::Lied { peer, what } => Some(format!("{peer}: {what}")),
        _ => None,
    };
    notices.into_iter().filter_map(lie).collect()
}

#[test]
fn lies_are_caught_and_named() {
    let columns = |world: &World| world.seats[0].shard.columns();
    type Lie = Box<dyn Fn(&mut World) -> Vec<Vec<u8>>>;
    let cases: Vec<(&str, Lie)> = vec![
        (
            "a vector of dimension 2 for iteration 2",
            Box::new(|world| vec![said_by_birch(world, 2, vec![1.0, 2.0])]),
        ),
        (
            "a value for iteration 7, while",
            Box::new(move |world| {
                let values = vec![0.0; columns(world)];
                vec![said_by_birch(world, 7, values)]
            }),
        ),
        (
            "without its signature",
            Box::new(move |world| {
                let mut bytes = said_by_birch(world, 2, vec![0.0; columns(world)]);
                *bytes.last_mut().unwrap() ^= 1;
                vec![bytes]
            }),
        ),
        (
            "beyond the grid",
            Box::new(move |world| {
                let mut bytes = said_by_birch(world, 2, vec![0.0; columns(world)]);
                bytes[14..22].copy_from_slice(&i64::MAX.to_le_bytes());
                vec![bytes]
            }),
        ),
        ("unknown kind 77", Box::new(|_| vec![vec![77, 1, 2]])),
        ("an empty frame", Box::new(|_| vec![Vec::new()])),
    ];
    for (what, lie) in cases {
        let (mut world, halted) = told_by_a_liar("ring", lie);
        assert!(halted.is_none(), "{what}");
        let told = lies(&mut world);
        assert_eq!(told.len(), 1, "{what}: {told:?}");
        assert!(
            told[0].starts_with("birch: ") && told[0].contains(what),
            "{told:?}"
        );
        // The link has ended; a new one may begin, and everything ends well.
        let (store, begun) = world.seats[0].party.as_ref().unwrap().store();
        assert_eq!(store.evidence(begun.number).unwrap().len(), 1);
        world.cut(0, 1);
        world.run(0);
        assert_eq!(world.models(), world.undisturbed());
    }
}

#[test]
fn two_values_for_one_iteration_are_kept_as_evidence() {
    let (mut world, halted) = told_by_a_liar("ring", |world| {
        let columns = world.seats[0].shard.columns();
        // The start is public, and everyone has it; another one is a second value.
        vec![said_by_birch(world, 0, vec![SPACING; columns])]
    });
    let text = halted.unwrap().to_string();
    assert!(
        text.starts_with("birch lies: it sent two different values for iteration 0"),
        "{text}"
    );
    assert_eq!(lies(&mut world).len(), 1);
    let (store, begun) = world.seats[0].party.as_ref().unwrap().store();
    let evidence = store.evidence(begun.number).unwrap();
    assert_eq!(evidence[0].frames.len(), 2);
    // Both are signed by birch: it cannot deny them.
    let key = SecretKey::from_pem(&world.seats[1].pem).unwrap().public();
    for frame in &evidence[0].frames {
        let digit = |k: usize| u8::from_str_radix(&frame[k..k + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..frame.len()).step_by(2).map(digit).collect();
        let signed = Signed::from_bytes(&bytes).unwrap();
        assert!(signed.is_by(&key, &world.study.digest()));
    }
}

#[test]
fn a_recycled_value_that_does_not_follow_is_caught_where_the_neighbourhood_is_known() {
    // On a complete graph everyone hears everyone.
    let mut world = World::new("complete", 5);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    let alder_at = |world: &World| world.seats[0].party.as_ref().unwrap().iteration();
    while alder_at(&world) < 2 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                if alder_at(&world) < 2 {
                    world.deliver(from, to).unwrap();
                }
            }
        }
    }
    let columns = world.seats[0].shard.columns();
    let bytes = said_by_birch(&world, 2, vec![0.25; columns]);
    let (serial, _) = world.wires[&(0, 1)];
    let event = Event::Frame {
        peer: NodeId(1),
        serial,
        bytes,
        credit: Credit::new(|| ()),
    };
    let halted = world.seats[0].party.as_mut().unwrap().handle(event);
    let text = halted.unwrap_err().to_string();
    assert!(
        text.contains("birch lies: its value of iteration 2 does not follow"),
        "{text}"
    );
}
