//! One party's work in an iteration, for all replicas at once, which ask the same rows.

use super::{MeanModels, SimError};
use crate::curator::{Curator, HeldOutScore, PassFailed, PendingQuery, RowFit, Shard, evaluate};
use crate::node::Node;
use crate::problem::Loss;
use crate::protocol::release::Release;

/// One party in a simulation, with a node for every replica.
pub struct PartyReplicas {
    pub(super) states: Vec<ReplicaState>,
    /// The failure of a measurement, if one has failed.
    pub(super) unmeasured: Option<PassFailed>,
}

/// A party's node in one replica, and what was measured of it last.
pub(super) struct ReplicaState {
    pub(super) node: Node,
    /// Boxed, since few nodes stop.
    pub(super) stopped: Option<Box<SimError>>,
    /// The iteration that made the model measured last.
    pub(super) measured: Option<u32>,
    /// The fit of the party's own model.
    pub(super) own: RowFit,
    /// The fit of a common model; of several, their sum.
    pub(super) common: RowFit,
    pub(super) score: HeldOutScore,
}

/// The last values of all nodes of one replica, by number.
pub(super) struct ReplicaRound {
    pub(super) replica: usize,
    pub(super) sent: Vec<Release>,
}

impl PartyReplicas {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        let state = |node| ReplicaState {
            node,
            stopped: None,
            measured: None,
            own: RowFit::default(),
            common: RowFit::default(),
            score: HeldOutScore::default(),
        };
        Self {
            states: nodes.into_iter().map(state).collect(),
            unmeasured: None,
        }
    }

    /// Returns the number of its rows, a measure of its work.
    pub fn rows(&self) -> usize {
        self.curator().rows()
    }

    /// Returns the first replica's curator.
    pub(super) fn curator(&self) -> &Curator {
        self.states[0].node.curator()
    }

    /// Receives the neighbours' values and makes the next iteration, in the replicas of these rounds.
    pub(super) fn advance(&mut self, rounds: &[ReplicaRound]) {
        for round in rounds {
            let state = &mut self.states[round.replica];
            state.receive(&round.sent);
            let answer = state.node.pending_query().map(PendingQuery::answer);
            if let Some(Err(stop)) = answer.map(|answer| state.node.absorb_answer(answer)) {
                state.fail(stop);
            }
        }
    }

    /// Measures, in each of these replicas, the party's own model, and a common one where it is wanted.
    pub(super) fn measure(&mut self, common: &[(usize, Vec<f64>)], wanted: MeanModels) {
        let measured = self.try_measure(common, wanted);
        self.unmeasured = measured.err();
    }

    fn try_measure(
        &mut self,
        common: &[(usize, Vec<f64>)],
        wanted: MeanModels,
    ) -> Result<(), PassFailed> {
        for (replica, model) in common {
            let state = &mut self.states[*replica];
            let curator = state.node.curator();
            let own_model = state.node.model().values();
            let own = curator.row_fit(own_model)?;
            state.common = match own_model != model && wanted.include(*replica) {
                true => curator.row_fit(model)?,
                false => own,
            };
            state.own = own;
            state.measured = Some(state.node.model_iteration());
        }
        Ok(())
    }

    /// Measures models of every replica, equally many of each, and keeps their sums.
    pub(super) fn measure_sums(&mut self, models: &[&[f64]]) {
        let measured = self.try_measure_sums(models);
        self.unmeasured = measured.err();
    }

    fn try_measure_sums(&mut self, models: &[&[f64]]) -> Result<(), PassFailed> {
        let curator = self.curator();
        let mut fits: Vec<RowFit> = Vec::with_capacity(models.len());
        for (k, model) in models.iter().enumerate() {
            // Parties in consensus have equal models.
            let known = k.checked_sub(1).filter(|&last| models[last] == *model);
            fits.push(known.map_or_else(|| curator.row_fit(model), |last| Ok(fits[last]))?);
        }
        let each = models.len() / self.states.len();
        for (state, fits) in self.states.iter_mut().zip(fits.chunks(each)) {
            let sum = |of: fn(&RowFit) -> f64| fits.iter().map(of).sum::<f64>();
            state.measured = None;
            state.common = RowFit {
                loss: sum(|fit| fit.loss),
                accuracy: sum(|fit| fit.accuracy),
                objective: sum(|fit| fit.objective),
            };
        }
        Ok(())
    }

    /// Evaluates the party's model of every replica on held-out rows.
    pub(super) fn evaluate(&mut self, rows: &Shard, loss: Loss) {
        for state in &mut self.states {
            match evaluate(rows, loss, state.node.model().values()) {
                Ok(score) => state.score = score,
                Err(failed) => self.unmeasured = Some(failed),
            }
        }
    }
}

impl ReplicaState {
    /// Receives the neighbours' values, and goes on as far as no rows are needed.
    fn receive(&mut self, sent: &[Release]) {
        if let Err(error) = self.node.store_all(sent) {
            self.fail(error);
        }
        if self.node.is_ready()
            && let Err(stop) = self.node.close()
        {
            self.fail(stop);
        }
    }

    fn fail(&mut self, error: impl Into<SimError>) {
        self.stopped = Some(Box::new(error.into()));
    }
}
