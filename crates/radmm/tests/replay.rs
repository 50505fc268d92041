//! A node that is led through its journal comes to where it was, says the same, and is charged nothing.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use radmm::algorithm::admm::{Admm, Penalty};
use radmm::algorithm::recycled::Recycled;
use radmm::algorithm::schedule::Schedule;
use radmm::curator::{
    ChargedAnswer, Curator, CuratorConfig, NoiseKey, NoiseSecret, NormPolicy, Refusal, Shard,
    ShardBuilder,
};
use radmm::graph::NodeId;
use radmm::node::{Node, NodeConfig, Output, StopReason};
use radmm::privacy::{Bound, Budget, Ledger, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::problem::{Loss, Problem};
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;

const NODES: u32 = 3;
const ITERATIONS: u32 = 9;

#[derive(Clone, Copy, PartialEq)]
enum Noise {
    Secret,
    Repeating,
}

fn rows(i: u32) -> Shard {
    let mut builder = ShardBuilder::new(2, NormPolicy::Unit);
    for n in 0..8 {
        let angle = f64::from(i * 5 + n);
        let entries = [(0, angle.cos()), (1, angle.sin())];
        builder.push(&entries, (n + i).is_multiple_of(3)).unwrap();
    }
    builder.finish().unwrap()
}

fn ledger(journal: &[ChargedAnswer]) -> Ledger {
    let events = journal.iter().map(|recorded| recorded.event);
    Ledger::resumed(Budget::unlimited(0.0).unwrap(), Bound::Tight, events).unwrap()
}

/// The secret of party `i` after so many answers.
fn secret(i: u32, answers: usize) -> NoiseSecret {
    let mut secret = NoiseSecret::copy_of(&[i as u8 + 1; 32]);
    (0..answers).for_each(|_| secret.advance());
    secret
}

/// Party `i` with the rows of party `of`, which has answered what is in a journal.
fn node(i: u32, of: u32, noise: Noise, journal: &[ChargedAnswer]) -> Node {
    let terms = |noise| CuratorConfig {
        problem: Problem {
            loss: Loss::Logistic,
            weight: 2.0,
            ridge: 0.1,
            nodes: NODES,
            tolerance: 1e-10,
            shape: None,
        },
        mechanism: Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: 1.0 },
            scale: NoiseScaling::Fixed,
        },
        ledger: ledger(journal),
        noise,
    };
    let curator = match noise {
        Noise::Secret => {
            let key = NoiseKey::secret(secret(i, journal.len()));
            Curator::new(rows(of), terms(key))
        }
        Noise::Repeating => {
            Curator::simulated(Arc::new(rows(of)), terms(NoiseKey::repeating(7, 0, i)))
        }
    };
    let admm = Admm::new(Penalty::common(Schedule::Constant(0.4)), 2);
    Node::new(NodeConfig {
        id: NodeId(i),
        neighbours: (0..NODES).filter(|&j| j != i).map(NodeId).collect(),
        iterations: ITERATIONS,
        start: vec![0.0; 2],
        algorithm: Box::new(Recycled::new(admm, Schedule::Constant(0.2), 1)),
        curator: curator.unwrap(),
    })
    .unwrap()
}

/// All messages of a run by iteration, and what node 0 recorded.
fn whole_run(noise: Noise) -> (Vec<Vec<Message>>, Vec<ChargedAnswer>) {
    let mut nodes: Vec<Node> = (0..NODES).map(|i| node(i, i, noise, &[])).collect();
    let mut said: Vec<Output> = nodes.iter_mut().flat_map(Node::start).collect();
    let (mut messages, mut journal) = (Vec::new(), Vec::new());
    while !said.is_empty() {
        let round: Vec<Message> = said
            .iter()
            .filter_map(|output| match output {
                Output::Broadcast(message) => Some(message.clone()),
                _ => None,
            })
            .collect();
        said.clear();
        for message in &round {
            for node in nodes.iter_mut().filter(|node| node.id() != message.from) {
                for output in node.receive(message.clone()).unwrap() {
                    if let (
                        NodeId(0),
                        Output::Record {
                            iteration,
                            event,
                            answer,
                        },
                    ) = (node.id(), &output)
                    {
                        journal.push(ChargedAnswer {
                            iteration: *iteration,
                            event: *event,
                            answer: answer.clone(),
                        });
                    }
                    said.push(output);
                }
            }
        }
        if !round.is_empty() {
            messages.push(round);
        }
    }
    (messages, journal)
}

/// Leads node 0 through the messages of iterations below `until`, with a journal.
fn led(node: &mut Node, messages: &[Vec<Message>], journal: &[ChargedAnswer]) -> Vec<Output> {
    let mut outputs = Vec::new();
    for round in messages {
        let of = |from: &NodeId| {
            let sent = round.iter().find(|message| message.from == *from);
            sent.unwrap().release.clone()
        };
        let values = node.neighbours().iter().map(of).collect();
        let mut record = |t: u32| journal.iter().find(|one| one.iteration == t).cloned();
        outputs.extend(node.advance_with(values, &mut record));
    }
    outputs
}

fn own(messages: &[Vec<Message>]) -> Vec<Release> {
    let own = messages
        .iter()
        .flatten()
        .filter(|message| message.from == NodeId(0));
    own.map(|message| message.release.clone()).collect()
}

fn said(outputs: &[Output]) -> Vec<Release> {
    let said = |output: &Output| match output {
        Output::Broadcast(message) => Some(message.release.clone()),
        _ => None,
    };
    outputs.iter().filter_map(said).collect()
}

#[test]
fn started_again_at_any_iteration_a_node_says_the_same_and_is_charged_once() {
    for noise in [Noise::Repeating, Noise::Secret] {
        let (messages, journal) = whole_run(noise);
        assert_eq!(journal.len(), 5);
        let all = own(&messages);
        for cut in 0..=messages.len() {
            let made = |recorded: &&ChargedAnswer| (recorded.iteration as usize) <= cut;
            let past: Vec<ChargedAnswer> = journal.iter().filter(made).cloned().collect();
            let mut node = node(0, 0, noise, &past);
            let recalled = led(&mut node, &messages[..cut], &past);
            let recorded = |output: &Output| matches!(output, Output::Record { .. });
            assert!(!recalled.iter().any(recorded));
            let lived = led(&mut node, &messages[cut..], &[]);
            let count = lived.iter().filter(|output| recorded(output)).count();
            assert_eq!(past.len() + count, journal.len());
            let again: Vec<Release> = [said(&recalled), said(&lived)].concat();
            assert_eq!(again, all[1..], "cut at {cut}");
            assert_eq!(node.curator().ledger().charges(), 5);
            assert_eq!(node.curator().ledger().spent(), ledger(&journal).spent());
        }
    }
}

#[test]
fn with_secret_noise_what_is_on_record_needs_no_rows() {
    let (messages, journal) = whole_run(Noise::Secret);
    // Another party's rows: whatever were computed from them would be something else.
    let mut node = node(0, 1, Noise::Secret, &journal);
    let recalled = led(&mut node, &messages, &journal);
    assert_eq!(said(&recalled), own(&messages)[1..]);
}

#[test]
fn a_journal_of_another_study_or_of_other_rows_is_refused() {
    let stopped = |noise: Noise, of: u32, change: &dyn Fn(&mut ChargedAnswer)| {
        let (messages, mut journal) = whole_run(noise);
        change(&mut journal[1]);
        let mut node = node(0, of, noise, &journal);
        let outputs = led(&mut node, &messages, &journal);
        outputs.into_iter().find_map(|output| match output {
            Output::Stopped(StopReason::Refused { refusal, .. }) => Some(refusal),
            _ => None,
        })
    };
    // Another price.
    let cheaper = |recorded: &mut ChargedAnswer| recorded.event.slack /= 2.0;
    assert_eq!(
        stopped(Noise::Secret, 0, &cheaper),
        Some(Refusal::RecordMismatch(3))
    );
    // Another dimension.
    let longer =
        |recorded: &mut ChargedAnswer| recorded.answer = Release::from_units(vec![1, 2, 3]);
    assert_eq!(
        stopped(Noise::Secret, 0, &longer),
        Some(Refusal::RecordMismatch(3))
    );
    // An answer that could not be released stays unreleased.
    let nothing = |recorded: &mut ChargedAnswer| recorded.answer = None;
    assert_eq!(
        stopped(Noise::Secret, 0, &nothing),
        Some(Refusal::PreviouslyUnreleasable(3))
    );
    // Where noise repeats, other rows and other answers show.
    let same = |_: &mut ChargedAnswer| ();
    assert_eq!(
        stopped(Noise::Repeating, 1, &same),
        Some(Refusal::RecordMismatch(1))
    );
    let other = |recorded: &mut ChargedAnswer| recorded.answer = Release::from_units(vec![1, 2]);
    assert_eq!(
        stopped(Noise::Repeating, 0, &other),
        Some(Refusal::RecordMismatch(3))
    );
    assert_eq!(stopped(Noise::Repeating, 0, &same), None);
}
