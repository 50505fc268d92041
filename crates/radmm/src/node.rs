//! One party as a state machine: fed messages, it returns what must be done, in the order in which it must be done.
//!
//! No IO, no clock, no threads. A node at iteration `t` has released `f_i(t)` and waits for `f_j(t)` of every neighbour;
//! with the last of them it goes on to `t + 1`. A neighbour can be ahead by one iteration and no more, since it needs our
//! next value to go on, so two places a neighbour hold everything that may rightly arrive.

use thiserror::Error;

use crate::algorithm::{Algorithm, Step, View};
use crate::curator::{ChargedAnswer, Curator, PendingQuery, Refusal};
use crate::graph::NodeId;
use crate::privacy::PrivacyEvent;
use crate::protocol::message::Message;
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// What a node needs to begin.
pub struct NodeConfig {
    /// `i`.
    pub id: NodeId,
    /// The neighbours, in ascending order.
    pub neighbours: Vec<NodeId>,
    /// `T`.
    pub iterations: u32,
    /// `f_i(0)`; public.
    pub start: Vec<f64>,
    /// What is run.
    pub algorithm: Box<dyn Algorithm>,
    /// The rows.
    pub curator: Curator,
}

/// Something to be done. Outputs are performed in the order in which they come: a charge is on record before the
/// release that it paid for leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A data step was charged; keep it with its release before anything else.
    Record {
        /// Of the data step.
        iteration: u32,
        /// What was charged.
        event: PrivacyEvent,
        /// What was paid for; `None` if it cannot be released. The charge stands all the same.
        answer: Option<Release>,
    },
    /// Send this to every neighbour.
    Broadcast(Message),
    /// All iterations are done, and this is the model.
    Done(Release),
    /// This party cannot go on. What came before is still to be performed.
    Stopped(StopReason),
}

/// How an iterate came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// It is `f_i(0)`.
    Start,
    /// The rows were asked.
    Data,
    /// From released values alone.
    Recycled,
}

/// A message that cannot be right. It names the sender.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ProtocolError {
    /// The sender is not a neighbour.
    #[error("{from} is not a neighbour")]
    NotANeighbour {
        /// Who sent it.
        from: NodeId,
    },
    /// A vector of another length than everybody's.
    #[error(
        "{from} sent a vector of dimension {got} for iteration {iteration}; {expected} is right"
    )]
    WrongDimension {
        /// Who sent it.
        from: NodeId,
        /// For which iteration.
        iteration: u32,
        /// The study's dimension.
        expected: usize,
        /// The vector's.
        got: usize,
    },
    /// Neither this iteration nor the next.
    #[error(
        "{from} sent iteration {got} while iteration {expected} or the one after it is awaited"
    )]
    OutOfTurn {
        /// Who sent it.
        from: NodeId,
        /// The earliest iteration that may arrive.
        expected: u32,
        /// The one that did.
        got: u32,
    },
    /// Two different values for one iteration.
    #[error("{from} sent two different values for iteration {iteration}")]
    Equivocation {
        /// Who sent them.
        from: NodeId,
        /// For which iteration.
        iteration: u32,
    },
}

/// Why a node cannot go on.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StopReason {
    /// This party's own curator refused.
    #[error("{node} refused the question of iteration {iteration}: {refusal}")]
    Refused {
        /// This party.
        node: NodeId,
        /// Of the question.
        iteration: u32,
        /// Why.
        refusal: Refusal,
    },
    /// This party's own next value is not finite, or beyond the grid.
    #[error(
        "{node}'s model is out of all bounds at iteration {iteration}: the algorithm diverges (lower the step, raise the penalty or the damping)"
    )]
    Diverged {
        /// This party.
        node: NodeId,
        /// At which it shows.
        iteration: u32,
    },
}

/// A start that no message could hold.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the starting model of {node} is not finite, or beyond the grid")]
pub struct InvalidStart {
    /// Whose.
    pub node: NodeId,
}

enum Phase {
    Running,
    /// Iteration `t` is closed, and the rows are asked this for `t + 1`.
    PendingQuery(Query),
    Finished,
    /// A refused question cannot be asked again, so neither can the node go on.
    Stopped(StopReason),
}

/// One party.
pub struct Node {
    id: NodeId,
    neighbours: Vec<NodeId>,
    iterations: u32,
    algorithm: Box<dyn Algorithm>,
    curator: Curator,
    iteration: u32,
    kind: StepKind,
    own: Release,
    phase: Phase,
    /// By neighbour: what was heard of this iteration, and of the next. Empty while nothing was.
    inbox: Vec<[Option<Release>; 2]>,
    /// How many neighbours have not been heard of this iteration.
    missing: usize,
}

impl Node {
    /// A party that has not said anything yet.
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
            phase: Phase::Running,
        })
    }

    /// Says `f_i(0)`.
    pub fn start(&mut self) -> Vec<Output> {
        vec![Output::Broadcast(self.message())]
    }

    /// Takes a neighbour's message in and returns what follows from it: nothing, until it was the last one missing.
    /// A message that was heard before, in the same words, changes nothing. One that cannot be right is rejected, and the
    /// node waits on for a right one. A node that has stopped says so again.
    pub fn receive(&mut self, message: Message) -> Result<Vec<Output>, ProtocolError> {
        self.take_in(message, &mut |_| None)
    }

    /// Takes a message in that may be on record, as [`receive`](Self::receive) does. A question for whose iteration `record`
    /// has something is not asked again: its charge, which the curator's ledger must hold already, and its answer are those
    /// on record, and there is no [`Output::Record`] of it.
    pub fn replay(
        &mut self,
        message: Message,
        record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Result<Vec<Output>, ProtocolError> {
        self.take_in(message, record)
    }

    fn take_in(
        &mut self,
        message: Message,
        record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Result<Vec<Output>, ProtocolError> {
        if let Phase::Stopped(stop) = &self.phase {
            return Ok(vec![Output::Stopped(stop.clone())]);
        }
        self.keep(message)?;
        let mut outputs = Vec::new();
        while self.is_ready() {
            if let Err(stop) = self.advance(&mut outputs, record) {
                outputs.push(Output::Stopped(stop));
            }
        }
        Ok(outputs)
    }

    /// Takes a message in. Whoever drives many nodes then asks [`is_ready`](Self::is_ready).
    pub(crate) fn hear(&mut self, message: Message) -> Result<(), ProtocolError> {
        match self.phase {
            Phase::Stopped(_) => Ok(()),
            _ => self.keep(message),
        }
    }

    /// Whether every neighbour has been heard of this iteration, and there is something left to do.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Running) && self.missing == 0
    }

    fn keep(&mut self, message: Message) -> Result<(), ProtocolError> {
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
        if release.values().len() != self.curator.columns() {
            return Err(ProtocolError::WrongDimension {
                from,
                iteration,
                expected: self.curator.columns(),
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

    /// Everyone has been heard: closes iteration `t` and, unless it was the last, makes `t + 1`.
    fn advance(
        &mut self,
        outputs: &mut Vec<Output>,
        record: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Result<(), StopReason> {
        self.close()?;
        let iteration = self.iteration + 1;
        if let Some(asking) = self.asking() {
            let recorded = record(iteration);
            let answer = match &recorded {
                Some(recorded) => asking.replay(recorded),
                None => asking.answer(),
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
            self.answered(answer)?;
        }
        outputs.push(match self.phase {
            Phase::Finished => Output::Done(self.own.clone()),
            _ => Output::Broadcast(self.message()),
        });
        Ok(())
    }

    /// Closes iteration `t`, of which everyone has been heard, and goes on to `t + 1` as far as that needs no rows: to its end
    /// if it is recycled, or else to the question that [`asking`](Self::asking) shows.
    pub(crate) fn close(&mut self) -> Result<(), StopReason> {
        let heard = self.heard();
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            heard: &heard,
        };
        self.algorithm.hear(&view);
        if self.iteration == self.iterations {
            self.phase = Phase::Finished;
            return Ok(());
        }
        match self.algorithm.next(&view) {
            Step::Recycle(values) => self.make(StepKind::Recycled, values),
            Step::Ask(query) => {
                self.phase = Phase::PendingQuery(query);
                Ok(())
            }
        }
    }

    /// What the rows are asked now, if they are. Whoever has it answered executor the answer to [`answered`](Self::answered).
    pub(crate) fn asking(&mut self) -> Option<PendingQuery<'_>> {
        match &self.phase {
            Phase::PendingQuery(query) => Some(PendingQuery {
                curator: &mut self.curator,
                iteration: self.iteration + 1,
                query,
            }),
            _ => None,
        }
    }

    /// Goes on with the curator's answer to what was asked.
    pub(crate) fn answered(
        &mut self,
        answer: Result<(PrivacyEvent, Release), Refusal>,
    ) -> Result<(), StopReason> {
        let (_, answer) = answer.map_err(|refusal| {
            let (node, iteration) = (self.id, self.iteration + 1);
            self.stop(StopReason::Refused {
                node,
                iteration,
                refusal,
            })
        })?;
        let heard = self.heard();
        let view = View {
            iteration: self.iteration,
            own: self.own.values(),
            heard: &heard,
        };
        let next = self.algorithm.answered(&view, answer.values());
        self.make(StepKind::Data, next)
    }

    /// Releases the next value, with which iteration `t + 1` begins.
    fn make(&mut self, kind: StepKind, next: Vec<f64>) -> Result<(), StopReason> {
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
            // Where all go together nobody is ever early, and a node needs no inbox but while it hears.
            self.inbox = Vec::new();
        }
        self.missing = self.neighbours.len() - early;
        Ok(())
    }

    fn stop(&mut self, stop: StopReason) -> StopReason {
        self.phase = Phase::Stopped(stop.clone());
        stop
    }

    /// What was heard of this iteration, by neighbour.
    fn heard(&self) -> Vec<Release> {
        let heard = self.inbox.iter().flat_map(|heard| heard[0].clone());
        heard.collect()
    }

    /// What the node says to its neighbours now.
    pub(crate) fn message(&self) -> Message {
        Message {
            from: self.id,
            iteration: self.iteration,
            release: self.own.clone(),
        }
    }

    /// `i`.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// `t`: the iteration whose value was last released.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// How that value came about.
    pub fn kind(&self) -> StepKind {
        self.kind
    }

    /// `f_i(t)`.
    pub fn model(&self) -> &Release {
        &self.own
    }

    /// `λ_i`, where the algorithm has duals.
    pub fn dual(&self) -> Option<&[f64]> {
        self.algorithm.dual()
    }

    /// The neighbours, in ascending order.
    pub fn neighbours(&self) -> &[NodeId] {
        &self.neighbours
    }

    /// What is known of the rows in public, and what has been spent on them.
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
    use crate::curator::{CuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder};
    use crate::privacy::{Bound, Budget, Ledger};
    use crate::privacy::{Mechanism, NoiseDistribution, NoiseScaling};
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
                node.curator_mut().exchange_rows(shard);
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
                node.curator_mut().exchange_rows(Shard::untouchable(6, 2));
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
                let seen = |t: usize, own, heard| View {
                    iteration: t as u32,
                    own,
                    heard,
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

    /// What nodes 1 and 2 say in the first two iterations, to be heard by a node 0 of one's own.
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
        limited.curator_mut().exchange_ledger(Ledger::new(
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
        fn next(&mut self, _view: &View<'_>) -> Step {
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
        node.curator_mut().exchange_mechanism(Mechanism::None);
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
        fn next(&mut self, _view: &View<'_>) -> Step {
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
                .exchange_noise(NoiseKey::secret([3; 32]));
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
