//! All parties of a study in one process: the same nodes, with messages handed over in memory.
//!
//! A simulation holds everybody's rows, so it alone can say how good the models are:
//! ```text
//! loss       L(t) = (1/N) Σ_i (1/B_i) Σ_n L(y f_i(t)ᵀx)
//! objective  Σ_i O_i(f_i(t))
//! consensus  max_i ‖f_i(t) − f̄(t)‖,  f̄ the mean of the models
//! ```
//! Each party's work within an iteration is independent of the others', so a [`Crew`] may share it out over threads. Sums
//! over parties are taken in their order afterwards: any crew gives the same bits.

use serde::Serialize;

use crate::account::Guarantee;
use crate::message::Message;
use crate::node::{Kind, Node, NodeError, Output};

/// One party in a simulation.
pub struct Party {
    node: Node,
    inbox: Vec<Message>,
    said: Option<Message>,
    stopped: Option<NodeError>,
    loss: f64,
    objective: f64,
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
    /// `Σ_i O_i(f_i(t))`.
    pub objective: f64,
    /// `max_i ‖f_i(t) − f̄(t)‖`.
    pub consensus: f64,
    /// `P(t)`: everything released up to here, the largest of the parties'.
    #[serde(flatten)]
    pub spent: Guarantee,
}

/// All parties of a study.
pub struct Simulation {
    parties: Vec<Party>,
    iterations: u32,
    /// The iteration that the next step makes.
    next: u32,
}

impl Simulation {
    /// Nodes in the order of their numbers, `0..N`, each knowing its neighbours among them.
    pub fn new(nodes: Vec<Node>, iterations: u32) -> Self {
        let party = |node| Party {
            node,
            inbox: Vec::new(),
            said: None,
            stopped: None,
            loss: 0.0,
            objective: 0.0,
        };
        Self {
            parties: nodes.into_iter().map(party).collect(),
            iterations,
            next: 0,
        }
    }

    /// The iterations `0..=T`, as they are made. It ends early with the error of the first party that stopped.
    pub fn run<'a>(
        &'a mut self,
        crew: &'a dyn Crew,
    ) -> impl Iterator<Item = Result<Snapshot, NodeError>> + 'a {
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

    fn step(&mut self, crew: &dyn Crew) -> Result<Snapshot, NodeError> {
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
        Ok(self.snapshot())
    }

    /// Hands every party what its neighbours said, and lets it go on.
    fn exchange(
        &mut self,
        crew: &dyn Crew,
        then: &(dyn Fn(&mut Party) + Sync),
    ) -> Result<(), NodeError> {
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

    fn snapshot(&self) -> Snapshot {
        let count = self.parties.len() as f64;
        let sum = |of: fn(&Party) -> f64| self.parties.iter().map(of).sum::<f64>();
        let first = &self.parties[0].node;
        let spent = self
            .nodes()
            .map(|node| node.curator().ledger().spent())
            .max_by(|a, b| a.epsilon.total_cmp(&b.epsilon));
        Snapshot {
            iteration: self.next,
            kind: first.kind(),
            loss: sum(|party| party.loss) / count,
            objective: sum(|party| party.objective),
            consensus: self.consensus(),
            spent: spent.unwrap_or(first.curator().ledger().spent()),
        }
    }

    fn consensus(&self) -> f64 {
        let mut mean = vec![0.0; self.parties[0].node.model().values().len()];
        for node in self.nodes() {
            for (mean, f) in mean.iter_mut().zip(node.model().values()) {
                *mean += f;
            }
        }
        let count = self.parties.len() as f64;
        let distance = |node: &Node| {
            let squares = node.model().values().iter().zip(&mean);
            squares
                .map(|(f, mean)| (f - mean / count).powi(2))
                .sum::<f64>()
                .sqrt()
        };
        self.nodes().map(distance).fold(0.0, f64::max)
    }
}

impl Party {
    fn receive(&mut self) {
        for message in std::mem::take(&mut self.inbox) {
            match self.node.receive(message) {
                Ok(outputs) => self.perform(outputs),
                Err(error) => self.stopped = Some(error),
            }
        }
    }

    /// A simulation keeps no journal: what a node asks to be recorded is in its ledger.
    fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            if let Output::Broadcast(message) = output {
                self.said = Some(message);
            }
        }
    }

    fn measure(&mut self) {
        let model = self.node.model().clone();
        (self.loss, self.objective) = self.node.curator().observe(model.values());
    }
}
