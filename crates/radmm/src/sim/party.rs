//! One party's work in an iteration, for all replicas at once: they ask the same rows.

use super::Halt;
use crate::message::Message;
use crate::node::Node;
use crate::private::{Asking, Curator, Fit, Loss, Score, Shard, examine};
use crate::public::release::Release;

/// One party in a simulation, with a node for every replica.
pub struct Party {
    pub(super) seats: Vec<Seat>,
}

/// A party's node in one replica, and what was measured of it last.
pub(super) struct Seat {
    pub(super) node: Node,
    /// Boxed, since hardly anyone stops.
    pub(super) stopped: Option<Box<Halt>>,
    /// Of the party's own model.
    pub(super) own: Fit,
    /// Of a model that is everybody's; where several were tried, their sum.
    pub(super) common: Fit,
    pub(super) score: Score,
}

/// What all nodes of one replica said last, by number.
pub(super) struct Round {
    pub(super) replica: usize,
    pub(super) said: Vec<Release>,
}

impl Party {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        let seat = |node| Seat {
            node,
            stopped: None,
            own: Fit::default(),
            common: Fit::default(),
            score: Score::default(),
        };
        Self {
            seats: nodes.into_iter().map(seat).collect(),
        }
    }

    /// How many rows it has: a measure of its work.
    pub fn rows(&self) -> usize {
        self.curator().rows()
    }

    /// The first replica's.
    pub(super) fn curator(&self) -> &Curator {
        self.seats[0].node.curator()
    }

    /// Hears the neighbours and makes the next iteration, in the replicas of these rounds.
    pub(super) fn advance(&mut self, rounds: &[Round]) {
        for round in rounds {
            let seat = &mut self.seats[round.replica];
            seat.hear(&round.said);
            let answer = seat.node.asking().map(Asking::answer);
            if let Some(Err(stop)) = answer.map(|answer| seat.node.answered(answer)) {
                seat.halt(stop);
            }
        }
    }

    /// Measures, in each of these replicas, the party's own model and one that is everybody's.
    pub(super) fn measure(&mut self, common: &[(usize, Vec<f64>)]) {
        for (replica, model) in common {
            let seat = &mut self.seats[*replica];
            let curator = seat.node.curator();
            let own = curator.observe(seat.node.model().values());
            (seat.common, seat.own) = (curator.observe(model), own);
        }
    }

    /// Measures models of every replica, as many of each, and keeps their sums.
    pub(super) fn measure_sums(&mut self, models: &[&[f64]]) {
        let curator = self.curator();
        let fits: Vec<Fit> = models.iter().map(|model| curator.observe(model)).collect();
        let each = models.len() / self.seats.len();
        for (seat, fits) in self.seats.iter_mut().zip(fits.chunks(each)) {
            let sum = |of: fn(&Fit) -> f64| fits.iter().map(of).sum::<f64>();
            seat.common = Fit {
                loss: sum(|fit| fit.loss),
                accuracy: sum(|fit| fit.accuracy),
                objective: sum(|fit| fit.objective),
            };
        }
    }

    /// Tries the party's model of every replica on rows that nobody trained on.
    pub(super) fn examine(&mut self, rows: &Shard, loss: Loss) {
        for seat in &mut self.seats {
            seat.score = examine(rows, loss, seat.node.model().values());
        }
    }
}

impl Seat {
    /// Hears what the neighbours said, and goes on as far as no rows are needed.
    fn hear(&mut self, said: &[Release]) {
        for place in 0..self.node.neighbours().len() {
            let from = self.node.neighbours()[place];
            let message = Message {
                from,
                iteration: self.node.iteration(),
                release: said[from.0 as usize].clone(),
            };
            if let Err(error) = self.node.hear(message) {
                self.halt(error);
            }
        }
        if self.node.is_ready()
            && let Err(stop) = self.node.close()
        {
            self.halt(stop);
        }
    }

    fn halt(&mut self, halt: impl Into<Halt>) {
        self.stopped = Some(Box::new(halt.into()));
    }
}
