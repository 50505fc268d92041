//! Several runs of one study that differ in their noise alone, side by side over the same rows.
//!
//! The questions that replicas ask a party in an iteration are answered together, and their models are measured together:
//! a row that is read serves all of them. What comes of a replica is what would have come of it alone, bit for bit.

use super::party::{Party, Round, Seat};
use super::{Crew, Everywhere, Halt, NotSimulated, Snapshot};
use crate::account::Guarantee;
use crate::node::Node;
use crate::private::{Fit, Loss, Score, Shard};
use crate::public::release::Release;

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
    parties: Vec<Party>,
    iterations: u32,
    /// The iteration that the next step makes.
    next: u32,
    /// Which replicas go on, in ascending order: one that stops drops out, the others do not notice.
    running: Vec<usize>,
}

/// What came of an iteration in one replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Which one, from 0 on.
    pub replica: usize,
    /// The iteration, or why there is none; then there will be no more of this replica.
    pub result: Result<Snapshot, Halt>,
}

impl Replicas {
    /// The nodes of each replica in the order of their numbers, `0..N`, each knowing its neighbours among them. Their noise
    /// repeats, and a party has the same rows and problem in all replicas.
    pub fn new(replicas: Vec<Vec<Node>>, iterations: u32) -> Result<Self, NotSimulated> {
        let running: Vec<usize> = (0..replicas.len()).collect();
        let count = replicas.first().map_or(0, Vec::len);
        if count == 0 || replicas.iter().any(|nodes| nodes.len() != count) {
            return Err(NotSimulated::Uneven);
        }
        let mut nodes: Vec<_> = replicas.into_iter().map(Vec::into_iter).collect();
        let party = |_| Self::party(nodes.iter_mut().filter_map(Iterator::next).collect());
        Ok(Self {
            parties: (0..count).map(party).collect::<Result<_, _>>()?,
            iterations,
            next: 0,
            running,
        })
    }

    fn party(nodes: Vec<Node>) -> Result<Party, NotSimulated> {
        for node in &nodes {
            if !node.curator().noise_repeats() {
                return Err(NotSimulated::SecretNoise(node.id()));
            }
            if !node.curator().is_replica_of(nodes[0].curator()) {
                return Err(NotSimulated::NotAReplica(node.id()));
            }
        }
        Ok(Party::new(nodes))
    }

    /// The iterations `0..=T`, as they are made by those replicas that get so far.
    pub fn run<'a>(&'a mut self, crew: &'a dyn Crew) -> impl Iterator<Item = Vec<Made>> + 'a {
        std::iter::from_fn(move || {
            let more = self.next <= self.iterations && !self.running.is_empty();
            more.then(|| self.step(crew))
        })
    }

    /// Makes the next iteration and measures nothing: for whoever wants to know how an algorithm ends and knows that it does
    /// not stop on the way. Returns the replicas that do. The first and the last iteration are not to be passed over.
    pub fn pass(&mut self, crew: &dyn Crew) -> Option<Vec<Made>> {
        let between = self.next > 0 && self.next < self.iterations && !self.running.is_empty();
        between.then(|| {
            self.next += 1;
            self.exchange(crew)
        })
    }

    /// How many replicas there are.
    pub fn count(&self) -> usize {
        self.parties[0].seats.len()
    }

    /// The nodes of a replica, in order.
    pub fn nodes(&self, replica: usize) -> impl ExactSizeIterator<Item = &Node> {
        self.parties
            .iter()
            .map(move |party| &party.seats[replica].node)
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
    pub fn everywhere(&mut self, crew: &dyn Crew) -> Vec<Everywhere> {
        let shown = self.shown();
        let model = |replica: usize, i: usize| self.parties[i].seats[replica].node.model().clone();
        let models: Vec<Release> = (0..self.count())
            .flat_map(|replica| shown.iter().map(move |&i| model(replica, i)))
            .collect();
        let models: Vec<&[f64]> = models.iter().map(Release::values).collect();
        crew.each(&mut self.parties, &|party| party.measure_sums(&models));
        let of = |replica| {
            let sums = self.common_over_rows(replica);
            Everywhere {
                loss: sums.loss / shown.len() as f64,
                accuracy: sums.accuracy / shown.len() as f64,
            }
        };
        (0..self.count()).map(of).collect()
    }

    /// How good the parties' models are on rows that nobody trained on, by replica: the mean over at most 32 of them, evenly
    /// spread.
    pub fn held_out(&mut self, crew: &dyn Crew, rows: &Shard, loss: Loss) -> Vec<Score> {
        let shown = self.shown();
        crew.each(&mut self.parties, &|party| {
            let id = party.seats[0].node.id().0 as usize;
            if shown.binary_search(&id).is_ok() {
                party.examine(rows, loss);
            }
        });
        let of = |replica: usize| {
            let scores = || shown.iter().map(|&i| self.parties[i].seats[replica].score);
            let mean = |of: fn(Score) -> f64| scores().map(of).sum::<f64>() / shown.len() as f64;
            Score {
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

    fn step(&mut self, crew: &dyn Crew) -> Vec<Made> {
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
        made.extend(means.iter().map(|(replica, mean)| Made {
            replica: *replica,
            result: Ok(self.snapshot(*replica, mean)),
        }));
        self.next += 1;
        made
    }

    /// Hands every party what its neighbours said, and lets it go on. Returns the replicas that dropped out.
    fn exchange(&mut self, crew: &dyn Crew) -> Vec<Made> {
        let said = |&replica: &usize| Round {
            replica,
            said: self
                .nodes(replica)
                .map(|node| node.model().clone())
                .collect(),
        };
        let rounds: Vec<Round> = self.running.iter().map(said).collect();
        crew.each(&mut self.parties, &|party| party.advance(&rounds));
        let stopped = |&replica: &usize| {
            let mut seats = self.parties.iter().map(|party| &party.seats[replica]);
            let halt = seats.find_map(|seat| seat.stopped.as_deref().cloned())?;
            Some(Made {
                replica,
                result: Err(halt),
            })
        };
        let out: Vec<Made> = self.running.iter().filter_map(stopped).collect();
        self.running
            .retain(|replica| out.iter().all(|made| made.replica != *replica));
        out
    }

    fn snapshot(&self, replica: usize, mean: &[f64]) -> Snapshot {
        let count = self.parties.len() as f64;
        let seats = || self.parties.iter().map(|party| &party.seats[replica]);
        let sum = |of: fn(&Seat) -> f64| seats().map(of).sum::<f64>();
        let spent = seats().map(|seat| seat.node.curator().ledger().spent());
        Snapshot {
            iteration: self.next,
            kind: self.parties[0].seats[replica].node.kind(),
            loss: sum(|seat| seat.own.loss) / count,
            accuracy: sum(|seat| seat.own.accuracy) / count,
            objective: sum(|seat| seat.own.objective),
            consensus: self.distance_from(replica, mean),
            mean_model: self.common_over_rows(replica),
            spent: Guarantee::network(spent),
        }
    }

    /// How good everybody's model is, each row counting the same.
    fn common_over_rows(&self, replica: usize) -> Everywhere {
        let rows = |party: &Party| party.curator().rows() as f64;
        let all: f64 = self.parties.iter().map(rows).sum();
        let mean = |of: fn(&Fit) -> f64| {
            let of_party = |party: &Party| rows(party) * of(&party.seats[replica].common);
            self.parties.iter().map(of_party).sum::<f64>() / all
        };
        Everywhere {
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
