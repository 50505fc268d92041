//! Several runs of one study that differ in their noise alone, side by side over the same rows.
//!
//! The questions that replicas ask a party in an iteration are answered together, and their models are measured together:
//! a row that is read serves all of them. What comes of a replica is what would have come of it alone, bit for bit.

use super::ledger_cache::LedgerSharing;
use super::party::{PartyReplicas, ReplicaRound, ReplicaState};
use super::{GlobalFit, InvalidSimulation, PartyExecutor, SimError, Snapshot};
use crate::curator::{HeldOutScore, RowFit, Shard, WarmStart};
use crate::node::Node;
use crate::privacy::Guarantee;
use crate::problem::Loss;
use crate::protocol::release::Release;

/// Whether collaborating was worth it shows on everybody's rows; to try every model on every row takes too long where
/// there are many parties.
const MODELS: usize = 32;

/// Several runs of one study.
///
/// Rows are there once. Beside them, a node of `d` columns and `V` neighbours takes, in each replica, its model (`8d` bytes, and
/// as much again while the next one is made) and its algorithm's vectors: none for gradient descent, averaging and training
/// alone, one (`λ`) and the last answer (a point and a gradient) for ADMM and DLM, recycled or not. So R-ADMM holds `4·8d` bytes
/// and `8d` in passing; what else a node has is below a kilobyte and `4V` bytes. A party at work needs the solver's `8d²` bytes,
/// once a thread.
pub struct Replicas {
    parties: Vec<PartyReplicas>,
    iterations: u32,
    /// The iteration that the next step makes.
    next: u32,
    /// Which replicas go on, in ascending order: one that stops drops out, the others do not notice.
    running: Vec<usize>,
}

/// What came of an iteration in one replica.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaStep {
    /// Which one, from 0 on.
    pub replica: usize,
    /// The iteration, or why there is none; then there will be no more of this replica.
    pub result: Result<Snapshot, SimError>,
}

impl Replicas {
    /// The nodes of each replica in the order of their numbers, `0..N`, each knowing its neighbours among them. Their noise
    /// repeats, and a party has the same rows and problem in all replicas.
    pub fn new(replicas: Vec<Vec<Node>>, iterations: u32) -> Result<Self, InvalidSimulation> {
        let running: Vec<usize> = (0..replicas.len()).collect();
        let count = replicas.first().map_or(0, Vec::len);
        if count == 0 || replicas.iter().any(|nodes| nodes.len() != count) {
            return Err(InvalidSimulation::Uneven);
        }
        let mut ledgers = LedgerSharing::default();
        let mut nodes: Vec<_> = replicas.into_iter().map(Vec::into_iter).collect();
        let mut party = |_| {
            let nodes = nodes.iter_mut().filter_map(Iterator::next).collect();
            Self::party(nodes, &mut ledgers)
        };
        Ok(Self {
            parties: (0..count).map(&mut party).collect::<Result<_, _>>()?,
            iterations,
            next: 0,
            running,
        })
    }

    fn party(
        mut nodes: Vec<Node>,
        ledgers: &mut LedgerSharing,
    ) -> Result<PartyReplicas, InvalidSimulation> {
        for node in &nodes {
            if !node.curator().noise_repeats() {
                return Err(InvalidSimulation::SecretNoise(node.id()));
            }
            if !node.curator().is_replica_of(nodes[0].curator()) {
                return Err(InvalidSimulation::NotAReplica(node.id()));
            }
        }
        for node in &mut nodes {
            let curator = node.curator_mut();
            curator.set_warm_start(WarmStart::default());
            ledgers.hand_to(curator.ledger_mut());
        }
        Ok(PartyReplicas::new(nodes))
    }

    /// The iterations `0..=T`, as they are made by those replicas that get so far.
    pub fn run<'a>(
        &'a mut self,
        crew: &'a dyn PartyExecutor,
    ) -> impl Iterator<Item = Vec<ReplicaStep>> + 'a {
        std::iter::from_fn(move || {
            let more = self.next <= self.iterations && !self.running.is_empty();
            more.then(|| self.step(crew))
        })
    }

    /// Makes the next iteration and measures nothing: for whoever wants to know how an algorithm ends and knows that it does
    /// not stop on the way. Returns the replicas that do. The first and the last iteration are not to be passed over.
    pub fn pass(&mut self, crew: &dyn PartyExecutor) -> Option<Vec<ReplicaStep>> {
        let between = self.next > 0 && self.next < self.iterations && !self.running.is_empty();
        between.then(|| {
            self.next += 1;
            self.exchange(crew)
        })
    }

    /// How many replicas there are.
    pub fn count(&self) -> usize {
        self.parties[0].states.len()
    }

    /// The nodes of a replica, in order.
    pub fn nodes(&self, replica: usize) -> impl ExactSizeIterator<Item = &Node> {
        self.parties
            .iter()
            .map(move |party| &party.states[replica].node)
    }

    /// The largest gradient norm at which any node's minimiser was released in a replica.
    pub fn largest_residual(&self, replica: usize) -> f64 {
        self.nodes(replica)
            .map(|node| node.curator().largest_residual())
            .fold(0.0, f64::max)
    }

    /// How many passes over a party's rows each answer of a replica took, where they were counted; more than 255 count as that.
    pub fn passes(&self, replica: usize) -> impl Iterator<Item = u8> {
        self.nodes(replica)
            .flat_map(|node| node.curator().passes().iter().copied())
    }

    /// How good the parties' models are on everybody's rows, by replica: the mean over at most 32 of them, evenly spread.
    pub fn everywhere(&mut self, crew: &dyn PartyExecutor) -> Vec<GlobalFit> {
        let shown = self.shown();
        let model = |replica: usize, i: usize| self.parties[i].states[replica].node.model().clone();
        let models: Vec<Release> = (0..self.count())
            .flat_map(|replica| shown.iter().map(move |&i| model(replica, i)))
            .collect();
        let models: Vec<&[f64]> = models.iter().map(Release::values).collect();
        crew.each(&mut self.parties, &|party| party.measure_sums(&models));
        let of = |replica| {
            let sums = self.common_over_rows(replica);
            GlobalFit {
                loss: sums.loss / shown.len() as f64,
                accuracy: sums.accuracy / shown.len() as f64,
            }
        };
        (0..self.count()).map(of).collect()
    }

    /// How good the parties' models are on rows that nobody trained on, by replica: the mean over at most 32 of them, evenly
    /// spread.
    pub fn held_out(
        &mut self,
        crew: &dyn PartyExecutor,
        rows: &Shard,
        loss: Loss,
    ) -> Vec<HeldOutScore> {
        let shown = self.shown();
        crew.each(&mut self.parties, &|party| {
            let id = party.states[0].node.id().0 as usize;
            if shown.binary_search(&id).is_ok() {
                party.evaluate(rows, loss);
            }
        });
        let of = |replica: usize| {
            let scores = || shown.iter().map(|&i| self.parties[i].states[replica].score);
            let mean =
                |of: fn(HeldOutScore) -> f64| scores().map(of).sum::<f64>() / shown.len() as f64;
            HeldOutScore {
                loss: mean(|score| score.loss),
                accuracy: mean(|score| score.accuracy),
                auc: mean(|score| score.auc),
            }
        };
        (0..self.count()).map(of).collect()
    }

    /// Whose models are tried, in ascending order.
    fn shown(&self) -> Vec<usize> {
        let count = self.parties.len();
        let shown = count.min(MODELS);
        (0..shown).map(|k| k * count / shown).collect()
    }

    fn step(&mut self, crew: &dyn PartyExecutor) -> Vec<ReplicaStep> {
        let mut made = Vec::new();
        if self.next > 0 {
            made.extend(self.exchange(crew));
        }
        if self.next == self.iterations {
            // The last values are heard too, so that the duals are those of T.
            made.extend(self.exchange(crew));
        }
        let mean = |&replica: &usize| (replica, self.mean_model(replica));
        let means: Vec<(usize, Vec<f64>)> = self.running.iter().map(mean).collect();
        crew.each(&mut self.parties, &|party| party.measure(&means));
        made.extend(means.iter().map(|(replica, mean)| ReplicaStep {
            replica: *replica,
            result: Ok(self.snapshot(*replica, mean)),
        }));
        self.next += 1;
        made
    }

    /// ChunkExecutor every party what its neighbours said, and lets it go on. Returns the replicas that dropped out.
    fn exchange(&mut self, crew: &dyn PartyExecutor) -> Vec<ReplicaStep> {
        let said = |&replica: &usize| ReplicaRound {
            replica,
            said: self
                .nodes(replica)
                .map(|node| node.model().clone())
                .collect(),
        };
        let rounds: Vec<ReplicaRound> = self.running.iter().map(said).collect();
        crew.each(&mut self.parties, &|party| party.advance(&rounds));
        let stopped = |&replica: &usize| {
            let mut states = self.parties.iter().map(|party| &party.states[replica]);
            let halt = states.find_map(|state| state.stopped.as_deref().cloned())?;
            Some(ReplicaStep {
                replica,
                result: Err(halt),
            })
        };
        let out: Vec<ReplicaStep> = self.running.iter().filter_map(stopped).collect();
        self.running
            .retain(|replica| out.iter().all(|made| made.replica != *replica));
        out
    }

    fn snapshot(&self, replica: usize, mean: &[f64]) -> Snapshot {
        let count = self.parties.len() as f64;
        let states = || self.parties.iter().map(|party| &party.states[replica]);
        let sum = |of: fn(&ReplicaState) -> f64| states().map(of).sum::<f64>();
        let spent = states().map(|state| state.node.curator().ledger().spent());
        Snapshot {
            iteration: self.next,
            kind: self.parties[0].states[replica].node.kind(),
            loss: sum(|state| state.own.loss) / count,
            accuracy: sum(|state| state.own.accuracy) / count,
            objective: sum(|state| state.own.objective),
            consensus: self.distance_from(replica, mean),
            mean_model: self.common_over_rows(replica),
            spent: Guarantee::network(spent),
        }
    }

    /// How good everybody's model is, each row counting the same.
    fn common_over_rows(&self, replica: usize) -> GlobalFit {
        let rows = |party: &PartyReplicas| party.curator().rows() as f64;
        let all: f64 = self.parties.iter().map(rows).sum();
        let mean = |of: fn(&RowFit) -> f64| {
            let of_party = |party: &PartyReplicas| rows(party) * of(&party.states[replica].common);
            self.parties.iter().map(of_party).sum::<f64>() / all
        };
        GlobalFit {
            loss: mean(|fit| fit.loss),
            accuracy: mean(|fit| fit.accuracy),
        }
    }

    /// The largest distance of a party's model from a point.
    pub(super) fn distance_from(&self, replica: usize, point: &[f64]) -> f64 {
        let distance = |node: &Node| {
            let pairs = node.model().values().iter().zip(point);
            pairs.map(|(f, p)| (f - p).powi(2)).sum::<f64>().sqrt()
        };
        self.nodes(replica).map(distance).fold(0.0, f64::max)
    }

    /// `f̄`.
    fn mean_model(&self, replica: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.parties[0].curator().columns()];
        for node in self.nodes(replica) {
            for (mean, f) in mean.iter_mut().zip(node.model().values()) {
                *mean += f;
            }
        }
        let count = self.parties.len() as f64;
        mean.iter_mut().for_each(|mean| *mean /= count);
        mean
    }
}
