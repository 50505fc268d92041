//! All parties of a study in one process: the same nodes, with messages handed over in memory.
//!
//! A simulation holds everybody's rows, so it alone can say how good the models are:
//! ```text
//! loss       L(t) = (1/N) Σ_i (1/B_i) Σ_n L(y f_i(t)ᵀx)
//! accuracy   (1/N) Σ_i (1/B_i) Σ_n [y f_i(t)ᵀx > 0]
//! objective  Σ_i O_i(f_i(t))
//! consensus  max_i ‖f_i(t) − f̄(t)‖,  f̄ the mean of the models
//! mean model (1/Σ_i B_i) Σ_i Σ_n L(y f̄ᵀx), and the share of all rows that f̄ classifies rightly
//! ```
//! Each party's work within an iteration is independent of the others', so a [`Crew`] may share it out over threads. Sums
//! over parties are taken in their order afterwards: any crew gives the same bits.

use serde::Serialize;
use thiserror::Error;

use crate::account::Guarantee;
use crate::message::Message;
use crate::node::{Kind, Node, Output, ProtocolError, Stop};
use crate::private::{Curator, Fit, Loss, NotCertified, Score, Shard, examine};
use crate::public::graph::NodeId;
use crate::public::release::{Algorithm, Release};
use crate::rate::{self, LocalRate, TooLarge};

/// One party in a simulation.
pub struct Party {
    node: Node,
    inbox: Vec<Message>,
    said: Option<Message>,
    stopped: Option<Halt>,
    fit: Fit,
    /// Of the mean model.
    joint: Fit,
    /// Of other parties' models.
    fits: Vec<Fit>,
    score: Score,
}

/// Does the parties' work of one iteration, in any order, on any threads.
pub trait Crew {
    /// Calls `work` once on every party.
    fn each(&self, parties: &mut [Party], work: &(dyn Fn(&mut Party) + Sync));
}

/// One after the other.
pub struct Alone;

impl Crew for Alone {
    fn each(&self, parties: &mut [Party], work: &(dyn Fn(&mut Party) + Sync)) {
        parties.iter_mut().for_each(work);
    }
}

/// Why a simulation ended before its last iteration.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Halt {
    /// A party cannot go on, and so neither can the others.
    #[error(transparent)]
    Stopped(#[from] Stop),
    /// A party rejected what another one said.
    #[error(transparent)]
    Rejected(#[from] ProtocolError),
}

/// A party whose noise is secret does not belong into a simulation, which shows unprotected losses.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{0} has secret noise: its rows are protected, and a simulation would show what they are")]
pub struct NotSimulated(NodeId);

/// What can be said of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// `t`.
    #[serde(rename = "t")]
    pub iteration: u32,
    /// Whether rows were asked.
    pub kind: Kind,
    /// `L(t)`.
    pub loss: f64,
    /// The share of its own rows that a party's model classifies rightly, averaged over the parties.
    pub accuracy: f64,
    /// `Σ_i O_i(f_i(t))`.
    pub objective: f64,
    /// `max_i ‖f_i(t) − f̄(t)‖`.
    pub consensus: f64,
    /// How good the mean model `f̄(t)` is on everybody's rows: where parties differ, their own models may fit their own rows
    /// the better the less they have learned from others.
    pub mean_model: Everywhere,
    /// `P(t)`: everything released up to here, the largest of the parties'.
    #[serde(flatten)]
    pub spent: Guarantee,
}

/// How good models are on everybody's rows, each row counting the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Everywhere {
    /// The mean loss of a row; of several models, the mean over them.
    pub loss: f64,
    /// The share of rows that are classified rightly; of several models, the mean over them.
    pub accuracy: f64,
}

/// Whether collaborating was worth it shows on everybody's rows; to try every model on every row takes too long where
/// there are many parties.
const MODELS: usize = 32;

/// The centralised optimum.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Optimum {
    /// `f*`.
    pub model: Vec<f64>,
    /// As [`Snapshot::loss`], with everyone's model `f*`.
    pub loss: f64,
    /// As [`Snapshot::accuracy`].
    pub accuracy: f64,
    /// On everybody's rows.
    pub everywhere: Everywhere,
    /// `Σ_i O_i(f*)`.
    pub objective: f64,
}

/// All parties of a study.
pub struct Simulation {
    parties: Vec<Party>,
    iterations: u32,
    /// The iteration that the next step makes.
    next: u32,
}

impl Simulation {
    /// Nodes in the order of their numbers, `0..N`, each knowing its neighbours among them. Their noise repeats.
    pub fn new(nodes: Vec<Node>, iterations: u32) -> Result<Self, NotSimulated> {
        if let Some(node) = nodes.iter().find(|node| !node.curator().noise_repeats()) {
            return Err(NotSimulated(node.id()));
        }
        let party = |node| Party {
            node,
            inbox: Vec::new(),
            said: None,
            stopped: None,
            fit: Fit::default(),
            joint: Fit::default(),
            fits: Vec::new(),
            score: Score::default(),
        };
        Ok(Self {
            parties: nodes.into_iter().map(party).collect(),
            iterations,
            next: 0,
        })
    }

    /// The iterations `0..=T`, as they are made. It ends early with the error of the first party that stopped.
    pub fn run<'a>(
        &'a mut self,
        crew: &'a dyn Crew,
    ) -> impl Iterator<Item = Result<Snapshot, Halt>> + 'a {
        std::iter::from_fn(move || {
            if self.next > self.iterations {
                return None;
            }
            let made = self.step(crew);
            self.next = match made {
                Ok(_) => self.next + 1,
                Err(_) => u32::MAX,
            };
            Some(made)
        })
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.parties.iter().map(|party| &party.node)
    }

    /// The largest gradient norm at which any node's minimiser was released.
    pub fn largest_residual(&self) -> f64 {
        self.nodes()
            .map(|node| node.curator().largest_residual())
            .fold(0.0, f64::max)
    }

    /// How good the parties' models are on everybody's rows: the mean over at most 32 of them, evenly spread.
    pub fn everywhere(&mut self, crew: &dyn Crew) -> Everywhere {
        let count = self.parties.len();
        let shown = count.min(MODELS);
        let models: Vec<Release> = (0..shown)
            .map(|k| self.parties[k * count / shown].node.model().clone())
            .collect();
        crew.each(&mut self.parties, &|party| {
            let curator = party.node.curator();
            party.fits = models
                .iter()
                .map(|model| curator.observe(model.values()))
                .collect();
        });
        let mean = |of: fn(&Fit) -> f64| {
            let over_models = |party: &Party| party.fits.iter().map(of).sum::<f64>();
            self.over_rows(over_models) / shown as f64
        };
        Everywhere {
            loss: mean(|fit| fit.loss),
            accuracy: mean(|fit| fit.accuracy),
        }
    }

    /// The mean of what parties' rows have, each row counting the same.
    fn over_rows(&self, of: impl Fn(&Party) -> f64) -> f64 {
        let rows = |party: &Party| party.node.curator().rows() as f64;
        let sum: f64 = self
            .parties
            .iter()
            .map(|party| rows(party) * of(party))
            .sum();
        sum / self.parties.iter().map(rows).sum::<f64>()
    }

    /// How good the parties' models are on rows that nobody trained on: the mean over at most 32 of them, evenly spread.
    pub fn held_out(&mut self, crew: &dyn Crew, rows: &Shard, loss: Loss) -> Score {
        let count = self.parties.len();
        let shown = count.min(MODELS);
        let chosen: Vec<u32> = (0..shown).map(|k| (k * count / shown) as u32).collect();
        crew.each(&mut self.parties, &|party| {
            if chosen.contains(&party.node.id().0) {
                party.score = examine(rows, loss, party.node.model().values());
            }
        });
        let scores = || chosen.iter().map(|&k| self.parties[k as usize].score);
        let mean = |of: fn(Score) -> f64| scores().map(of).sum::<f64>() / shown as f64;
        Score {
            loss: mean(|score| score.loss),
            accuracy: mean(|score| score.accuracy),
            auc: mean(|score| score.auc),
        }
    }

    /// The same of one model that is nobody's, such as the centralised optimum.
    pub fn held_out_of(&self, model: &[f64], rows: &Shard, loss: Loss) -> Score {
        examine(rows, loss, model)
    }

    /// What one party with everybody's rows would find without noise: the minimiser of `Σ_i O_i`, and how good it is.
    pub fn centralised(&self) -> Result<Optimum, NotCertified> {
        let model = Curator::centralised(self.nodes().map(Node::curator))?;
        let fits: Vec<Fit> = self
            .nodes()
            .map(|node| node.curator().observe(&model))
            .collect();
        let sum = |of: fn(&Fit) -> f64| fits.iter().map(of).sum::<f64>();
        let count = fits.len() as f64;
        let rows: Vec<f64> = self
            .nodes()
            .map(|node| node.curator().rows() as f64)
            .collect();
        let over_rows = |of: fn(&Fit) -> f64| {
            let weighted = fits.iter().zip(&rows).map(|(fit, rows)| rows * of(fit));
            weighted.sum::<f64>() / rows.iter().sum::<f64>()
        };
        Ok(Optimum {
            loss: sum(|fit| fit.loss) / count,
            accuracy: sum(|fit| fit.accuracy) / count,
            everywhere: Everywhere {
                loss: over_rows(|fit| fit.loss),
                accuracy: over_rows(|fit| fit.accuracy),
            },
            objective: sum(|fit| fit.objective),
            model,
        })
    }

    /// How fast an algorithm converges near a point, the optimum as a rule: see [`rate`]. Noise has no part in
    /// it. `make` makes a node's algorithm with a given dual; all of them ask their rows at the first of every `period`
    /// iterations, with the same coefficients each time.
    pub fn local_rate(
        &self,
        at: &[f64],
        period: u32,
        make: &dyn Fn(NodeId, Vec<f64>) -> Box<dyn Algorithm>,
    ) -> Result<LocalRate, TooLarge> {
        rate::local(self.nodes(), at, period, make)
    }

    /// The largest distance of a party's model from a point.
    pub fn distance_from(&self, point: &[f64]) -> f64 {
        let distance = |node: &Node| {
            let pairs = node.model().values().iter().zip(point);
            pairs.map(|(f, p)| (f - p).powi(2)).sum::<f64>().sqrt()
        };
        self.nodes().map(distance).fold(0.0, f64::max)
    }

    fn step(&mut self, crew: &dyn Crew) -> Result<Snapshot, Halt> {
        if self.next == 0 {
            crew.each(&mut self.parties, &|party| {
                let outputs = party.node.start();
                party.perform(outputs);
                party.measure();
            });
        } else {
            self.exchange(crew, &Party::measure)?;
        }
        if self.next == self.iterations {
            // The last values are heard too, so that the duals are those of T.
            self.exchange(crew, &|_| ())?;
        }
        let mean = self.mean_model();
        crew.each(&mut self.parties, &|party| {
            party.joint = party.node.curator().observe(&mean);
        });
        Ok(self.snapshot(&mean))
    }

    /// Hands every party what its neighbours said, and lets it go on.
    fn exchange(
        &mut self,
        crew: &dyn Crew,
        then: &(dyn Fn(&mut Party) + Sync),
    ) -> Result<(), Halt> {
        for i in 0..self.parties.len() {
            let messages = self.parties[i]
                .node
                .neighbours()
                .iter()
                .filter_map(|j| self.parties[j.0 as usize].said.clone())
                .collect();
            self.parties[i].inbox = messages;
        }
        crew.each(&mut self.parties, &|party| {
            party.receive();
            then(party);
        });
        match self.parties.iter().find_map(|party| party.stopped.clone()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn snapshot(&self, mean: &[f64]) -> Snapshot {
        let count = self.parties.len() as f64;
        let sum = |of: fn(&Party) -> f64| self.parties.iter().map(of).sum::<f64>();
        let first = &self.parties[0].node;
        let spent = self.nodes().map(|node| node.curator().ledger().spent());
        Snapshot {
            iteration: self.next,
            kind: first.kind(),
            loss: sum(|party| party.fit.loss) / count,
            accuracy: sum(|party| party.fit.accuracy) / count,
            objective: sum(|party| party.fit.objective),
            consensus: self.distance_from(mean),
            mean_model: Everywhere {
                loss: self.over_rows(|party| party.joint.loss),
                accuracy: self.over_rows(|party| party.joint.accuracy),
            },
            spent: Guarantee::network(spent),
        }
    }

    /// `f̄`.
    fn mean_model(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.parties[0].node.model().values().len()];
        for node in self.nodes() {
            for (mean, f) in mean.iter_mut().zip(node.model().values()) {
                *mean += f;
            }
        }
        let count = self.parties.len() as f64;
        mean.iter_mut().for_each(|mean| *mean /= count);
        mean
    }
}

impl Party {
    fn receive(&mut self) {
        for message in std::mem::take(&mut self.inbox) {
            match self.node.receive(message) {
                Ok(outputs) => self.perform(outputs),
                Err(error) => self.stopped = Some(error.into()),
            }
        }
    }

    /// A simulation keeps no journal: what a node asks to be recorded is in its ledger.
    fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Broadcast(message) => self.said = Some(message),
                Output::Stopped(stop) => self.stopped = Some(stop.into()),
                Output::Record { .. } | Output::Done(_) => {}
            }
        }
    }

    fn measure(&mut self) {
        let model = self.node.model().clone();
        self.fit = self.node.curator().observe(model.values());
    }
}
