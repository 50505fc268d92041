//! Several runs of one study that differ in their noise alone, side by side over the same rows.
//!
//! The questions that replicas ask a party in an iteration are answered together, and their models are measured together. Each
//! replica gives the same bits as if it ran alone.

use std::mem;

use super::ledger_cache::LedgerSharing;
use super::party::{PartyReplicas, ReplicaRound, ReplicaState};
use super::{GlobalFit, InvalidSimulation, MeanModels, PartyExecutor, SimError, Snapshot};
use crate::curator::{HeldOutScore, PassFailed, RowFit, Shard, WarmStart};
use crate::node::Node;
use crate::privacy::Guarantee;
use crate::problem::Loss;
use crate::protocol::release::Release;

/// The number of parties whose models are evaluated on all rows. Evaluating every model takes too long with many parties.
const MODELS: usize = 32;

/// Several runs of one study.
///
/// Rows are held once. Beside them, a node of `d` columns and `V` neighbours takes, in each replica, its model (`8d` bytes, and
/// as much again while the next one is made) and its algorithm's vectors: none for gradient descent, averaging and training
/// alone, one (`λ`) and the last answer (a point and a gradient) for ADMM and DLM, recycled or not. So R-ADMM holds `4·8d` bytes
/// and `8d` in passing; what else a node has is below a kilobyte and `4V` bytes. A party at work needs the solver's `8d²` bytes,
/// once a thread.
pub struct Replicas {
    parties: Vec<PartyReplicas>,
    iterations: u32,
    /// The iteration that the next step makes.
    next: u32,
    /// The replicas that still run, in ascending order. One that stops does not affect the others.
    running: Vec<usize>,
    mean_models: MeanModels,
}

/// The result of an iteration in one replica.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaStep {
    /// The replica's index.
    pub replica: usize,
    /// The measured iteration, or the error that ended the replica.
    pub result: Result<Snapshot, SimError>,
}

impl Replicas {
    /// Creates replicas from their nodes, each in the order of their numbers, `0..N`.
    ///
    /// Noise must repeat, and a party must have the same rows and problem in all replicas.
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
            mean_models: MeanModels::default(),
        })
    }

    /// Sets the replicas whose mean model is measured after each iteration.
    #[must_use]
    pub fn with_mean_models(self, mean_models: MeanModels) -> Self {
        Self {
            mean_models,
            ..self
        }
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

    /// Iterates over the iterations `0..=T`, with the results of the replicas that get so far.
    pub fn run<'a>(
        &'a mut self,
        executor: &'a dyn PartyExecutor,
    ) -> impl Iterator<Item = Vec<ReplicaStep>> + 'a {
        std::iter::from_fn(move || {
            let more = self.next <= self.iterations && !self.running.is_empty();
            more.then(|| self.step(executor))
        })
    }

    /// Makes the next iteration without measuring it, and returns the replicas that stopped. `None` for the first and the last
    /// iteration, which are always measured.
    pub fn skip_measuring(&mut self, executor: &dyn PartyExecutor) -> Option<Vec<ReplicaStep>> {
        let between = self.next > 0 && self.next < self.iterations && !self.running.is_empty();
        between.then(|| {
            self.next += 1;
            self.exchange(executor)
        })
    }

    /// Returns the number of replicas.
    pub fn count(&self) -> usize {
        self.parties[0].states.len()
    }

    /// Returns the nodes of a replica, in order.
    pub fn nodes(&self, replica: usize) -> impl ExactSizeIterator<Item = &Node> {
        self.parties
            .iter()
            .map(move |party| &party.states[replica].node)
    }

    /// Returns the largest gradient norm at which any node's minimiser was released in a replica.
    pub fn largest_residual(&self, replica: usize) -> f64 {
        self.nodes(replica)
            .map(|node| node.curator().largest_residual())
            .fold(0.0, f64::max)
    }

    /// Returns the number of passes over a party's rows for each answer of a replica, if counted; at most 255.
    pub fn passes(&self, replica: usize) -> impl Iterator<Item = u8> {
        self.nodes(replica)
            .flat_map(|node| node.curator().passes().iter().copied())
    }

    /// Evaluates the parties' models on all rows, by replica: the mean over at most 32 of them, evenly spread.
    pub fn global_fit(
        &mut self,
        executor: &dyn PartyExecutor,
    ) -> Result<Vec<GlobalFit>, PassFailed> {
        let sampled = self.sampled_parties();
        let model = |replica: usize, i: usize| self.parties[i].states[replica].node.model().clone();
        let models: Vec<Release> = (0..self.count())
            .flat_map(|replica| sampled.iter().map(move |&i| model(replica, i)))
            .collect();
        let models: Vec<&[f64]> = models.iter().map(Release::values).collect();
        executor.each(&mut self.parties, &|party| party.measure_sums(&models));
        self.check_measured()?;
        let of = |replica| {
            let sums = self.common_over_rows(replica);
            GlobalFit {
                loss: sums.loss / sampled.len() as f64,
                accuracy: sums.accuracy / sampled.len() as f64,
            }
        };
        Ok((0..self.count()).map(of).collect())
    }

    /// Evaluates the parties' models on held-out rows, by replica: the mean over at most 32 of them, evenly spread.
    pub fn held_out(
        &mut self,
        executor: &dyn PartyExecutor,
        rows: &Shard,
        loss: Loss,
    ) -> Result<Vec<HeldOutScore>, PassFailed> {
        // Parties in consensus have equal models, which are evaluated once.
        let mut sampled = self.sampled_parties();
        if sampled.iter().all(|&i| self.models_are_equal(0, i)) {
            sampled.truncate(1);
        }
        executor.each(&mut self.parties, &|party| {
            let id = party.states[0].node.id().0 as usize;
            if sampled.binary_search(&id).is_ok() {
                party.evaluate(rows, loss);
            }
        });
        self.check_measured()?;
        let of = |replica: usize| {
            let scores = || {
                sampled
                    .iter()
                    .map(|&i| self.parties[i].states[replica].score)
            };
            let mean =
                |of: fn(HeldOutScore) -> f64| scores().map(of).sum::<f64>() / sampled.len() as f64;
            HeldOutScore {
                loss: mean(|score| score.loss),
                accuracy: mean(|score| score.accuracy),
                auc: mean(|score| score.auc),
            }
        };
        Ok((0..self.count()).map(of).collect())
    }

    /// Returns the failure of the last measurement, if it failed at a party.
    fn check_measured(&mut self) -> Result<(), PassFailed> {
        let mut parties = self.parties.iter_mut();
        let failed = parties.find_map(|party| party.unmeasured.take());
        failed.map_or(Ok(()), Err)
    }

    /// Returns whether two parties have equal models, in each replica.
    fn models_are_equal(&self, i: usize, j: usize) -> bool {
        let states = self.parties[i].states.iter().zip(&self.parties[j].states);
        states
            .into_iter()
            .all(|(a, b)| a.node.model().values() == b.node.model().values())
    }

    /// Returns the parties whose models are evaluated, in ascending order.
    fn sampled_parties(&self) -> Vec<usize> {
        let count = self.parties.len();
        let sampled = count.min(MODELS);
        (0..sampled).map(|k| k * count / sampled).collect()
    }

    fn step(&mut self, executor: &dyn PartyExecutor) -> Vec<ReplicaStep> {
        let mut steps = Vec::new();
        if self.next > 0 {
            steps.extend(self.exchange(executor));
        }
        if self.next == self.iterations {
            // The last values are exchanged too, so that the duals are those of T.
            steps.extend(self.exchange(executor));
        }
        let (changed, same): (Vec<usize>, Vec<usize>) = self.running.iter().partition(|replica| {
            let mut states = self.parties.iter().map(|party| &party.states[**replica]);
            states.any(|state| state.measured != Some(state.node.model_iteration()))
        });
        let means = self.mean_models(&changed);
        let mean_models = self.mean_models;
        executor.each(&mut self.parties, &|party| {
            party.measure(&means, mean_models)
        });
        if let Err(failed) = self.check_measured() {
            let stop = |replica| ReplicaStep {
                replica,
                result: Err(failed.clone().into()),
            };
            steps.extend(mem::take(&mut self.running).into_iter().map(stop));
            return steps;
        }
        // Models that did not change keep their measurements.
        let mut means = [means, self.mean_models(&same)].concat();
        means.sort_by_key(|(replica, _)| *replica);
        steps.extend(means.iter().map(|(replica, mean)| ReplicaStep {
            replica: *replica,
            result: Ok(self.snapshot(*replica, mean)),
        }));
        self.next += 1;
        steps
    }

    /// Hands every party its neighbours' values and lets it go on. Returns the replicas that stopped.
    fn exchange(&mut self, executor: &dyn PartyExecutor) -> Vec<ReplicaStep> {
        let sent = |&replica: &usize| ReplicaRound {
            replica,
            sent: self
                .nodes(replica)
                .map(|node| node.released().clone())
                .collect(),
        };
        let rounds: Vec<ReplicaRound> = self.running.iter().map(sent).collect();
        executor.each(&mut self.parties, &|party| party.advance(&rounds));
        let stopped = |&replica: &usize| {
            let mut states = self.parties.iter().map(|party| &party.states[replica]);
            let error = states.find_map(|state| state.stopped.as_deref().cloned())?;
            Some(ReplicaStep {
                replica,
                result: Err(error),
            })
        };
        let out: Vec<ReplicaStep> = self.running.iter().filter_map(stopped).collect();
        self.running
            .retain(|replica| out.iter().all(|step| step.replica != *replica));
        out
    }

    fn snapshot(&self, replica: usize, mean: &[f64]) -> Snapshot {
        let count = self.parties.len() as f64;
        let states = || self.parties.iter().map(|party| &party.states[replica]);
        let sum = |of: fn(&ReplicaState) -> f64| states().map(of).sum::<f64>();
        let spent = states().map(|state| state.node.curator().ledger().spent());
        let measured = self.mean_models.include(replica);
        Snapshot {
            iteration: self.next,
            kind: self.parties[0].states[replica].node.kind(),
            loss: sum(|state| state.own.loss) / count,
            accuracy: sum(|state| state.own.accuracy) / count,
            objective: sum(|state| state.own.objective),
            consensus: self.distance_from(replica, mean),
            mean_model: measured.then(|| self.common_over_rows(replica)),
            spent: Guarantee::network(spent),
        }
    }

    /// Returns the fit of the common model, with equal weight for each row.
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

    /// Returns the largest distance of a party's model from a point.
    pub(super) fn distance_from(&self, replica: usize, point: &[f64]) -> f64 {
        let distance = |node: &Node| {
            let pairs = node.model().values().iter().zip(point);
            pairs.map(|(f, p)| (f - p).powi(2)).sum::<f64>().sqrt()
        };
        self.nodes(replica).map(distance).fold(0.0, f64::max)
    }

    /// `f̄` of each of these replicas.
    fn mean_models(&self, replicas: &[usize]) -> Vec<(usize, Vec<f64>)> {
        let mean = |&replica: &usize| (replica, self.mean_model(replica));
        replicas.iter().map(mean).collect()
    }

    /// `f̄`. If all models are equal it is equal to them, to the bit.
    fn mean_model(&self, replica: usize) -> Vec<f64> {
        let first = self.parties[0].states[replica].node.model().values();
        if self
            .nodes(replica)
            .all(|node| node.model().values() == first)
        {
            return first.to_vec();
        }
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
