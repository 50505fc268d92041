//! One party as a state machine: fed messages, it returns outputs in the order in which they must be performed.
//!
//! No IO, no clock, no threads. A node at iteration `t` has released `f_i(t)` and waits for `f_j(t)` of every neighbour;
//! with the last of them it goes on to `t + 1`. A neighbour can be ahead by one iteration and no more, since it needs our
//! next value to go on, so two slots a neighbour hold everything that may validly arrive.

use thiserror::Error;

use crate::algorithm::{Algorithm, Step, View};
use crate::curator::{ChargedAnswer, Curator, PassFailed, PendingQuery, Refusal};
use crate::graph::{Graph, NodeId};
use crate::privacy::PrivacyEvent;
use crate::protocol::message::Message;
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// The parts of which a [`Node`] is made.
pub struct NodeConfig {
    /// `i`.
    pub id: NodeId,
    /// The neighbours, in ascending order.
    pub neighbours: Vec<NodeId>,
    /// `T`.
    pub iterations: u32,
    /// `f_i(0)`; public.
    pub start: Vec<f64>,
    /// The node's part of the algorithm.
    pub algorithm: Box<dyn Algorithm>,
    /// The owner of the rows.
    pub curator: Curator,
}

impl NodeConfig {
    /// Describes a node of `graph` that starts from the zero model, for no iterations until
    /// [`with_iterations`](Self::with_iterations) sets them.
    pub fn new(graph: &Graph, id: NodeId, algorithm: Box<dyn Algorithm>, curator: Curator) -> Self {
        Self {
            id,
            neighbours: graph.neighbours(id).to_vec(),
            iterations: 0,
            start: vec![0.0; curator.columns()],
            algorithm,
            curator,
        }
    }

    /// Sets `T`, the number of iterations.
    #[must_use]
    pub fn with_iterations(self, iterations: u32) -> Self {
        Self { iterations, ..self }
    }

    /// Sets the initial model `f_i(0)`.
    #[must_use]
    pub fn with_start(self, start: Vec<f64>) -> Self {
        Self { start, ..self }
    }
}

/// An action that the caller performs.
///
/// Outputs are performed in order: a charge is on record before the release that it paid for leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A data step was charged: persist it with its release before anything else.
    Record {
        /// The iteration of the data step.
        iteration: u32,
        /// The event that was charged.
        event: PrivacyEvent,
        /// The answer that was paid for; `None` if it cannot be released. The charge stands all the same.
        answer: Option<Release>,
    },
    /// A message to send to every neighbour.
    Broadcast(Message),
    /// The final model: all iterations are done.
    Done(Release),
    /// The party cannot go on. Earlier outputs are still to be performed.
    Stopped(StopReason),
}

/// The kind of step that made an iterate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// The initial model `f_i(0)`.
    Start,
    /// A data step: the rows were asked.
    Data,
    /// A recycled step: a function of released values alone.
    Recycled,
}

/// An invalid message. Every variant names the sender.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The sender is not a neighbour.
    #[error("{from} is not a neighbour")]
    NotANeighbour {
        /// The sender.
        from: NodeId,
    },
    /// The vector has the wrong dimension.
    #[error(
        "{from} sent a vector of dimension {got} for iteration {iteration}; expected {expected}"
    )]
    WrongDimension {
        /// The sender.
        from: NodeId,
        /// The iteration of the message.
        iteration: u32,
        /// The study's dimension.
        expected: usize,
        /// The dimension of the vector.
        got: usize,
    },
    /// The message is neither of this iteration nor of the next.
    #[error("{from} sent iteration {got}; expected iteration {expected} or the one after it")]
    OutOfTurn {
        /// The sender.
        from: NodeId,
        /// The earliest iteration that may arrive.
        expected: u32,
        /// The iteration that did arrive.
        got: u32,
    },
    /// The sender sent two different values for one iteration.
    #[error("{from} sent two different values for iteration {iteration}")]
    Equivocation {
        /// The sender.
        from: NodeId,
        /// The iteration of the message.
        iteration: u32,
    },
}

/// The reason why a node cannot go on.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum StopReason {
    /// The party's own curator refused a question.
    #[error("{node} refused the question of iteration {iteration}: {refusal}")]
    Refused {
        /// The party.
        node: NodeId,
        /// The iteration of the question.
        iteration: u32,
        /// The reason.
        refusal: Refusal,
    },
    /// The party's rows could not be read for a question. Nothing is to be recorded or sent: after a restart the same
    /// question gets the same answer, at one charge.
    #[error(
        "{node}'s rows could not be read for the question of iteration {iteration}: {cause}; nothing of it was recorded or sent, and after a restart it gets the same answer at one charge"
    )]
    PassFailed {
        /// The party.
        node: NodeId,
        /// The iteration of the question.
        iteration: u32,
        /// The cause.
        cause: PassFailed,
    },
    /// The party's own next value is not finite, or beyond the grid.
    #[error(
        "{node}'s model is beyond the grid at iteration {iteration}: the algorithm diverges (lower the step, raise the penalty or the damping)"
    )]
    Diverged {
        /// The party.
        node: NodeId,
        /// The iteration of that value.
        iteration: u32,
    },
}

/// An invalid initial model: no message could hold it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the starting model of {node} is not finite, or beyond the grid")]
pub struct InvalidStart {
    /// The party.
    pub node: NodeId,
}

enum Phase {
    Running,
    /// Iteration `t` is closed, and the rows are asked for `t + 1`.
    PendingQuery(Query),
    Finished,
    /// A refused question cannot be asked again, so neither can the node go on.
    Stopped(StopReason),
}

/// One party: an algorithm, a curator and an inbox.
pub struct Node {
    id: NodeId,
    neighbours: Vec<NodeId>,
    iterations: u32,
    algorithm: Box<dyn Algorithm>,
    curator: Curator,
    iteration: u32,
    kind: StepKind,
    own: Release,
    /// The model, where it is not the value released last.
    model: Option<Release>,
    /// The iteration after which that model was made.
    model_iteration: u32,
    phase: Phase,
    /// Received values of this iteration and of the next, by neighbour; empty while there are none.
    inbox: Vec<[Option<Release>; 2]>,
    /// The number of neighbours whose value of this iteration is missing.
    missing: usize,
}

impl Node {
    /// Creates a party at iteration 0.
    pub fn new(config: NodeConfig) -> Result<Self, InvalidStart> {
        let node = config.id;
        let own = Release::rounded(&config.start).ok_or(InvalidStart { node })?;
        Ok(Self {
            id: config.id,
            inbox: Vec::new(),
            missing: config.neighbours.len(),
            neighbours: config.neighbours,
            iterations: config.iterations,
            algorithm: config.algorithm,
            curator: config.curator,
            iteration: 0,
            kind: StepKind::Start,
            own,
            model: None,
            model_iteration: 0,
            phase: Phase::Running,
        })
    }

    /// Returns the first output: the broadcast of `f_i(0)`.
    pub fn start(&mut self) -> Vec<Output> {
        vec![Output::Broadcast(self.message())]
    }

    /// Receives a neighbour's message and returns the outputs that follow: none, unless it was the last one missing.
    ///
    /// A repeated message changes nothing. An invalid one is rejected, and the node keeps waiting for a valid one. A node that
    /// has stopped returns [`Output::Stopped`] again.
    pub fn receive(&mut self, message: Message) -> Result<Vec<Output>, ProtocolError> {
        if !self.is_stopped() {
            self.store(message)?;
        }
        Ok(self.run_ready(&mut |_| None))
    }

    /// Closes the current iteration with the neighbours' values of it, in the order of [`neighbours`](Self::neighbours), and
    /// returns the outputs that follow.
    ///
    /// This is for a driver that keeps and checks messages itself. A question for whose iteration `record` returns an answer is
    /// not asked again: its charge, which the curator's ledger must hold already, and its answer are those on record, and there
    /// is no [`Output::Record`] for it. So a restarted party replays its journal.
    ///
    /// One iteration is closed and no more, also of a node without neighbours, which never waits for a value.
    ///
    /// # Panics
    ///
    /// If there is not one value of the study's dimension for each neighbour.
    pub fn advance_with(
        &mut self,
        values: Vec<Release>,
        record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Vec<Output> {
        assert_eq!(values.len(), self.neighbours.len(), "one value a neighbour");
        let width = self.width(self.iteration);
        assert!(values.iter().all(|value| value.values().len() == width));
        if !self.is_stopped() {
            self.inbox = values
                .into_iter()
                .map(|value| [Some(value), None])
                .collect();
            self.missing = 0;
        }
        let mut outputs = self.repeated_stop();
        self.advance_if_ready(&mut outputs, record);
        outputs
    }

    fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped(_))
    }

    /// Advances as far as the messages received allow.
    fn run_ready(&mut self, record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>) -> Vec<Output> {
        let mut outputs = self.repeated_stop();
        while self.advance_if_ready(&mut outputs, record) {}
        outputs
    }

    /// Returns the reason why the node has stopped as an output, if it has.
    fn repeated_stop(&self) -> Vec<Output> {
        match &self.phase {
            Phase::Stopped(stop) => vec![Output::Stopped(stop.clone())],
            _ => Vec::new(),
        }
    }

    /// Closes one iteration if all values of it are here. Returns whether they were.
    fn advance_if_ready(
        &mut self,
        outputs: &mut Vec<Output>,
        record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> bool {
        if !self.is_ready() {
            return false;
        }
        if let Err(stop) = self.advance(outputs, record) {
            outputs.push(Output::Stopped(stop));
        }
        true
    }

    /// Takes the neighbours' values of this iteration from those of all nodes, by number, without advancing. A simulator, which
    /// has them all, then checks [`is_ready`](Self::is_ready).
    pub(crate) fn store_all(&mut self, values: &[Release]) -> Result<(), ProtocolError> {
        if self.is_stopped() {
            return Ok(());
        }
        let (iteration, expected) = (self.iteration, self.width(self.iteration));
        let neighbours = self.neighbours.iter();
        let store = |&from: &NodeId| {
            let release = &values[from.0 as usize];
            let got = release.values().len();
            match got == expected {
                true => Ok([Some(release.clone()), None]),
                false => Err(ProtocolError::WrongDimension {
                    from,
                    iteration,
                    expected,
                    got,
                }),
            }
        };
        self.inbox = neighbours.map(store).collect::<Result<_, _>>()?;
        self.missing = 0;
        Ok(())
    }

    /// Returns whether all neighbours' values of this iteration are here, and an iteration is left to close.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Running) && self.missing == 0
    }

    fn store(&mut self, message: Message) -> Result<(), ProtocolError> {
        let Message {
            from,
            iteration,
            release,
        } = message;
        let place = self
            .neighbours
            .binary_search(&from)
            .map_err(|_| ProtocolError::NotANeighbour { from })?;
        let slot = match iteration.checked_sub(self.iteration) {
            Some(slot @ 0..=1) if iteration <= self.iterations => slot as usize,
            _ => {
                return Err(ProtocolError::OutOfTurn {
                    from,
                    expected: self.iteration,
                    got: iteration,
                });
            }
        };
        let expected = self.width(iteration);
        if release.values().len() != expected {
            return Err(ProtocolError::WrongDimension {
                from,
                iteration,
                expected,
                got: release.values().len(),
            });
        }
        if self.inbox.is_empty() {
            self.inbox.resize(self.neighbours.len(), [None, None]);
        }
        match &self.inbox[place][slot] {
            Some(heard) if *heard != release => {
                Err(ProtocolError::Equivocation { from, iteration })
            }
            Some(_) => Ok(()),
            None => {
                self.inbox[place][slot] = Some(release);
                self.missing -= usize::from(slot == 0);
                Ok(())
            }
        }
    }

    /// Closes iteration `t`, whose values are all here, and makes `t + 1` unless it was the last.
    fn advance(
        &mut self,
        outputs: &mut Vec<Output>,
        record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Result<(), StopReason> {
        self.close()?;
        let iteration = self.iteration + 1;
        if let Some(pending) = self.pending_query() {
            let recorded = record(iteration);
            let answer = match &recorded {
                Some(recorded) => pending.replay(recorded),
                None => pending.answer(),
            };
            let charged = match &answer {
                _ if recorded.is_some() => None,
                Ok((event, answer)) => Some((*event, Some(answer.clone()))),
                Err(Refusal::Unreleasable { event, .. }) => Some((*event, None)),
                Err(_) => None,
            };
            outputs.extend(charged.map(|(event, answer)| Output::Record {
                iteration,
                event,
                answer,
            }));
            self.absorb_answer(answer)?;
        }
        outputs.push(match self.phase {
            Phase::Finished => Output::Done(self.model().clone()),
            _ => Output::Broadcast(self.message()),
        });
        Ok(())
    }

    /// Closes iteration `t`, whose values are all here, and goes on to `t + 1` as far as that needs no rows: to its end if it is
    /// recycled, or else to the question that [`pending_query`](Self::pending_query) returns.
    pub(crate) fn close(&mut self) -> Result<(), StopReason> {
        let received = self.received();
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours: &received,
        };
        self.algorithm.observe(&view);
        self.update_model()?;
        if self.iteration == self.iterations {
            self.phase = Phase::Finished;
            return Ok(());
        }
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours: &received,
        };
        match self.algorithm.next_step(&view) {
            Step::Recycle(values) => self.release_next(StepKind::Recycled, values),
            Step::Ask(query) => {
                self.phase = Phase::PendingQuery(query);
                Ok(())
            }
        }
    }

    /// Takes the model over from an algorithm that has one of its own.
    fn update_model(&mut self) -> Result<(), StopReason> {
        if let Some(model) = self.algorithm.model() {
            let (node, iteration) = (self.id, self.iteration);
            let Some(model) = Release::rounded(model) else {
                return Err(self.stop(StopReason::Diverged { node, iteration }));
            };
            if self.model.as_ref() != Some(&model) {
                self.model = Some(model);
                self.model_iteration = iteration;
            }
        }
        Ok(())
    }

    /// Returns the question that the rows are asked now, if there is one. Its answer goes to
    /// [`absorb_answer`](Self::absorb_answer).
    pub(crate) fn pending_query(&mut self) -> Option<PendingQuery<'_>> {
        match &self.phase {
            Phase::PendingQuery(query) => Some(PendingQuery {
                curator: &mut self.curator,
                iteration: self.iteration + 1,
                query,
            }),
            _ => None,
        }
    }

    /// Goes on with the curator's answer to the pending question.
    pub(crate) fn absorb_answer(
        &mut self,
        answer: Result<(PrivacyEvent, Release), Refusal>,
    ) -> Result<(), StopReason> {
        let (_, answer) = answer.map_err(|refusal| {
            let (node, iteration) = (self.id, self.iteration + 1);
            self.stop(match refusal {
                Refusal::PassFailed(cause) => StopReason::PassFailed {
                    node,
                    iteration,
                    cause,
                },
                refusal => StopReason::Refused {
                    node,
                    iteration,
                    refusal,
                },
            })
        })?;
        let received = self.received();
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            neighbours: &received,
        };
        let next = self.algorithm.absorb_answer(&view, answer.values());
        self.release_next(StepKind::Data, next)
    }

    /// Releases the next value, with which iteration `t + 1` begins.
    fn release_next(&mut self, kind: StepKind, next: Vec<f64>) -> Result<(), StopReason> {
        let (node, iteration) = (self.id, self.iteration + 1);
        let Some(next) = Release::rounded(&next) else {
            return Err(self.stop(StopReason::Diverged { node, iteration }));
        };
        (self.kind, self.own) = (kind, next);
        self.iteration = iteration;
        self.phase = Phase::Running;
        let mut early = 0;
        for heard in &mut self.inbox {
            *heard = [heard[1].take(), None];
            early += usize::from(heard[0].is_some());
        }
        if early == 0 {
            // In a simulation no message is early, and a node needs an inbox only while it receives.
            self.inbox = Vec::new();
        }
        self.missing = self.neighbours.len() - early;
        Ok(())
    }

    fn stop(&mut self, stop: StopReason) -> StopReason {
        self.phase = Phase::Stopped(stop.clone());
        stop
    }

    /// Returns the received values of this iteration, by neighbour.
    fn received(&self) -> Vec<Release> {
        let received = self.inbox.iter().flat_map(|heard| heard[0].clone());
        received.collect()
    }

    /// Returns the message of the current iteration.
    pub(crate) fn message(&self) -> Message {
        Message {
            from: self.id,
            iteration: self.iteration,
            release: self.own.clone(),
        }
    }

    /// Returns `i`.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns `t`, the iteration whose value was last released.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the kind of step that made that value.
    pub fn kind(&self) -> StepKind {
        self.kind
    }

    /// Returns the value released last, which the neighbours hold too.
    pub fn released(&self) -> &Release {
        &self.own
    }

    /// Returns the model: the value released last, unless the algorithm computes its model from releases.
    pub fn model(&self) -> &Release {
        self.model.as_ref().unwrap_or(&self.own)
    }

    /// Returns the iteration whose values made the model.
    pub(crate) fn model_iteration(&self) -> u32 {
        match self.model {
            Some(_) => self.model_iteration,
            None => self.iteration,
        }
    }

    /// Returns the number of values of a release of this iteration.
    pub fn width(&self, iteration: u32) -> usize {
        self.algorithm.width(iteration, self.curator.columns())
    }

    /// Returns whether all parties release the same value at this iteration.
    pub fn is_common(&self, iteration: u32) -> bool {
        self.algorithm.is_common(iteration)
    }

    /// Returns whether the model is the value released last.
    pub fn releases_model(&self) -> bool {
        self.algorithm.model().is_none()
    }

    /// Returns `λ_i`, if the algorithm has duals.
    pub fn dual(&self) -> Option<&[f64]> {
        self.algorithm.dual()
    }

    /// Returns the neighbours, in ascending order.
    pub fn neighbours(&self) -> &[NodeId] {
        &self.neighbours
    }

    /// Returns the curator, which tells public facts of the rows and what was spent on them.
    pub fn curator(&self) -> &Curator {
        &self.curator
    }

    pub(crate) fn curator_mut(&mut self) -> &mut Curator {
        &mut self.curator
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::admm::{Admm, Penalty};
    use crate::algorithm::recycled::{Recycled, closed_form};
    use crate::algorithm::schedule::Schedule;
    use crate::curator::{CuratorConfig, NoiseKey, NoiseSecret, NormPolicy, Shard, ShardBuilder};
    use crate::privacy::{Bound, Budget, Ledger, Mechanism, NoiseDistribution, NoiseScaling};
    use crate::problem::{Loss, Problem};
    use crate::protocol::query::Query;

    const NODES: u32 = 3;
    const ITERATIONS: u32 = 12;
    const ETA: f64 = 0.4;
    const GAMMA: f64 = 0.2;

    fn rows(i: u32) -> Shard {
        let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
        for n in 0..6 {
            let angle = f64::from(i * 7 + n);
            let entries = [(0, angle.cos()), (1, angle.sin())];
            builder.push(&entries, (n + i).is_multiple_of(3)).unwrap();
        }
        builder.finish().unwrap()
    }

    fn node(i: u32) -> Node {
        let terms = CuratorConfig {
            problem: Problem {
                loss: Loss::Logistic,
                weight: 2.0,
                ridge: 0.1,
                nodes: NODES,
                tolerance: 1e-12,
                shape: None,
            },
            mechanism: Mechanism::Objective {
                law: NoiseDistribution::Gamma { rate: 1.0 },
                scale: NoiseScaling::Fixed,
            },
            ledger: Ledger::new(Budget::unlimited(0.0).unwrap(), Bound::Tight),
            noise: NoiseKey::repeating(1, 0, i),
        };
        let admm = Admm::new(Penalty::common(Schedule::Constant(ETA)), 2);
        Node::new(NodeConfig {
            id: NodeId(i),
            neighbours: (0..NODES).filter(|&j| j != i).map(NodeId).collect(),
            iterations: ITERATIONS,
            start: vec![0.0; 2],
            algorithm: Box::new(Recycled::new(admm, Schedule::Constant(GAMMA), 1)),
            curator: Curator::new(rows(i), terms).unwrap(),
        })
        .unwrap()
    }

    /// Runs three nodes; `between` sees the nodes before each iteration is made. All models of all iterations.
    fn run(mut between: impl FnMut(u32, &mut [Node])) -> Vec<Vec<Release>> {
        let mut nodes: Vec<Node> = (0..NODES).map(node).collect();
        let mut said: Vec<Output> = nodes.iter_mut().flat_map(Node::start).collect();
        let mut models = vec![nodes.iter().map(|n| n.model().clone()).collect()];
        for t in 1..=ITERATIONS {
            between(t, &mut nodes);
            let mut next = Vec::new();
            for output in &said {
                let Output::Broadcast(message) = output else {
                    continue;
                };
                for node in nodes.iter_mut().filter(|node| node.id() != message.from) {
                    next.extend(node.receive(message.clone()).unwrap());
                }
            }
            said = next;
            models.push(nodes.iter().map(|n| n.model().clone()).collect());
        }
        models
    }

    #[test]
    fn recycled_steps_run_with_the_rows_removed_from_memory() {
        let with_rows = run(|_, _| ());
        let without = run(|t, nodes| {
            for node in nodes {
                let id = node.id().0;
                let recycled = t.is_multiple_of(2);
                let shard = if recycled {
                    Shard::untouchable(6, 2)
                } else {
                    rows(id)
                };
                node.curator_mut().replace_rows(shard);
            }
        });
        assert_eq!(with_rows, without);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn data_steps_do_miss_their_rows() {
        // The test above would be hollow if removing rows never showed.
        run(|_, nodes| {
            for node in nodes {
                node.curator_mut().replace_rows(Shard::untouchable(6, 2));
            }
        });
    }

    #[test]
    fn a_recycled_step_follows_from_the_messages_alone() {
        let models = run(|_, _| ());
        let view = |t: usize, i: usize| -> (Vec<f64>, Vec<Release>) {
            let others = (0..NODES as usize).filter(|&j| j != i);
            (
                models[t][i].values().to_vec(),
                others.map(|j| models[t][j].clone()).collect(),
            )
        };
        for t in (2..=ITERATIONS as usize).step_by(2) {
            for (i, made) in models[t].iter().enumerate() {
                let ((own0, heard0), (own1, heard1)) = (view(t - 2, i), view(t - 1, i));
                let seen = |t: usize, own, neighbours| View {
                    iteration: t as u32,
                    own,
                    neighbours,
                };
                let closed = closed_form(
                    &seen(t - 2, &own0, &heard0),
                    &seen(t - 1, &own1, &heard1),
                    ETA,
                    GAMMA,
                );
                for (a, b) in closed.iter().zip(made.values()) {
                    assert!((a - b).abs() <= 1e-12, "f_{i}({t}): {a} against {b}");
                }
            }
        }
    }

    #[test]
    fn a_charge_is_on_record_before_its_release_leaves() {
        let mut nodes: Vec<Node> = (0..NODES).map(node).collect();
        let said: Vec<Output> = nodes.iter_mut().flat_map(Node::start).collect();
        let mut outputs = Vec::new();
        for output in &said[1..] {
            let Output::Broadcast(message) = output else {
                panic!("a start is a broadcast")
            };
            outputs.extend(nodes[0].receive(message.clone()).unwrap());
        }
        assert!(matches!(
            &outputs[..],
            [
                Output::Record { iteration: 1, answer: Some(answer), .. },
                Output::Broadcast(Message { iteration: 1, release, .. })
            ] if answer == release
        ));
    }

    /// The messages of nodes 1 and 2 in the first two iterations, for a node 0 of one's own.
    fn first_messages() -> Vec<Message> {
        let models = run(|_, _| ());
        let message = |t: usize, j: usize| Message {
            from: NodeId(j as u32),
            iteration: t as u32,
            release: models[t][j].clone(),
        };
        vec![message(1, 1), message(1, 2), message(0, 1), message(0, 2)]
    }

    /// Node 0 with a limit that is reached by its second data step, and no recycled steps in between.
    fn limited_admm() -> Node {
        let mut limited = node(0);
        limited.algorithm = Box::new(Admm::new(Penalty::common(Schedule::Constant(ETA)), 2));
        limited.curator_mut().replace_ledger(Ledger::new(
            Budget::limited(1.0, 0.0).unwrap(),
            Bound::Tight,
        ));
        limited
    }

    #[test]
    fn what_was_charged_before_a_refusal_is_still_recorded_and_said() {
        // Neighbours that are one iteration ahead make a node take two steps on one message; the second is refused.
        let mut node = limited_admm();
        let mut outputs = Vec::new();
        for message in first_messages() {
            outputs.extend(node.receive(message).unwrap());
        }
        assert!(
            matches!(
                &outputs[..],
                [
                    Output::Record { iteration: 1, .. },
                    Output::Broadcast(Message { iteration: 1, .. }),
                    Output::Stopped(StopReason::Refused { iteration: 2, .. })
                ]
            ),
            "{outputs:?}"
        );
        assert_eq!(node.curator().ledger().charges(), 1);
    }

    #[test]
    fn a_stopped_node_stays_where_it_is() {
        let mut node = limited_admm();
        let messages = first_messages();
        for message in messages.clone() {
            node.receive(message).unwrap();
        }
        let before = (node.model().clone(), node.dual().map(<[f64]>::to_vec));
        for message in messages {
            let outputs = node.receive(message).unwrap();
            assert!(matches!(&outputs[..], [Output::Stopped(_)]), "{outputs:?}");
        }
        assert_eq!(
            before,
            (node.model().clone(), node.dual().map(<[f64]>::to_vec))
        );
        assert_eq!(node.curator().ledger().charges(), 1);
    }

    #[test]
    fn two_values_for_the_next_iteration_are_caught_too() {
        let mut node = node(0);
        let [early, ..] = &first_messages()[..] else {
            panic!("there are four")
        };
        node.receive(early.clone()).unwrap();
        let other = Message {
            release: Release::rounded(&[0.5, 0.5]).unwrap(),
            ..early.clone()
        };
        let expected = ProtocolError::Equivocation {
            from: NodeId(1),
            iteration: 1,
        };
        assert_eq!(node.receive(other), Err(expected));
    }

    #[test]
    fn every_message_is_on_the_grid() {
        for model in run(|_, _| ()).iter().flatten() {
            assert_eq!(Release::from_units(model.units()).as_ref(), Some(model));
        }
    }

    /// Asks for what is beyond the grid: without noise, `f = −b/m` with a small `m`.
    struct Beyond;

    impl Algorithm for Beyond {
        fn next_step(&mut self, _view: &View<'_>) -> Step {
            Step::Ask(Query::Minimise {
                quadratic: 0.0,
                linear: vec![2e6, 0.0],
                near: vec![0.0; 2],
            })
        }
    }

    #[test]
    fn a_charge_whose_answer_cannot_leave_is_on_record_too() {
        let mut node = node(0);
        node.algorithm = Box::new(Beyond);
        node.curator_mut().replace_mechanism(Mechanism::None);
        let mut outputs = Vec::new();
        for message in first_messages() {
            outputs.extend(node.receive(message).unwrap());
        }
        assert!(
            matches!(
                &outputs[..],
                [
                    Output::Record {
                        iteration: 1,
                        answer: None,
                        ..
                    },
                    Output::Stopped(StopReason::Refused { iteration: 1, .. })
                ]
            ),
            "{outputs:?}"
        );
        assert_eq!(node.curator().ledger().charges(), 1);
    }

    /// Leaves all finite numbers behind in its first iteration.
    struct Runaway;

    impl Algorithm for Runaway {
        fn next_step(&mut self, _view: &View<'_>) -> Step {
            Step::Recycle(vec![f64::INFINITY, 0.0])
        }
    }

    #[test]
    fn a_node_that_diverges_stops_and_says_nothing() {
        let mut node = node(0);
        node.algorithm = Box::new(Runaway);
        let mut outputs = Vec::new();
        for message in first_messages() {
            outputs.extend(node.receive(message).unwrap());
        }
        let stop = StopReason::Diverged {
            node: NodeId(0),
            iteration: 1,
        };
        assert_eq!(outputs, [Output::Stopped(stop)]);
    }

    #[test]
    fn rows_under_secret_noise_are_not_simulated_whichever_party_they_are() {
        for secret in 0..NODES {
            let mut nodes: Vec<Node> = (0..NODES).map(node).collect();
            nodes[secret as usize]
                .curator_mut()
                .replace_noise(NoiseKey::secret(NoiseSecret::copy_of(&[3; 32])));
            let refused = crate::sim::Simulation::new(nodes, ITERATIONS).err();
            let said = refused.map(|refused| refused.to_string());
            assert!(
                said.is_some_and(
                    |said| said.starts_with(&format!("node {secret} has secret noise"))
                ),
                "{secret}"
            );
        }
    }
}
