//! A run of honest parties in which every message is verified.

use radmm::node::Node;
use radmm::privacy::Mechanism;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use rayon::prelude::*;
use serde::Serialize;

use super::output_verifier::{OutputVerifier, PublicTerms, VerifiedStep, VerifyFailure};
use crate::experiment::Experiment;
use crate::instantiate::{self, RunError, RunSettings};

/// The verification of a run: whether recycled values are what anybody could have computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HonestRun {
    /// The algorithm.
    pub algorithm: String,
    /// The number of parties.
    pub parties: usize,
    /// The number of values that follow from a paid answer, over all parties.
    pub data: usize,
    /// The number of recycled values that equal the recomputed ones to the bit, over all parties.
    pub recycled: usize,
    /// A value that does not, if there is one.
    #[serde(rename = "untraceable", skip_serializing_if = "Option::is_none")]
    pub unverifiable: Option<String>,
    /// The reason why the run ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// One party and its verifier.
struct VerifiedParty {
    node: Node,
    verifier: OutputVerifier,
    step: Option<Result<VerifiedStep, StepFailure>>,
}

enum StepFailure {
    Verify(VerifyFailure),
    Rejected(String),
}

/// Runs a study once and verifies every party.
pub(super) fn verify(
    experiment: &Experiment,
    name: String,
    progress: &(dyn Fn() + Sync),
) -> Result<HonestRun, RunError> {
    let noise = experiment.noise()?;
    let settings = RunSettings::first(&noise);
    let nodes = instantiate::nodes(&experiment.instance(), experiment.table(), &settings)?;
    Ok(verify_nodes(experiment, &noise, nodes, name, progress))
}

/// Runs the nodes of a study and verifies each of them. `noise` is what was agreed, by node.
pub(super) fn verify_nodes(
    experiment: &Experiment,
    noise: &[Mechanism],
    nodes: Vec<Node>,
    name: String,
    progress: &(dyn Fn() + Sync),
) -> HonestRun {
    let (study, instance) = (experiment.study(), experiment.instance());
    let columns = experiment.table().columns.len();
    let mut parties: Vec<VerifiedParty> = nodes
        .into_iter()
        .map(|mut node| {
            let id = node.id();
            // Broadcasts `f_i(0)`, its model.
            node.start();
            let terms = PublicTerms {
                problem: instance.problem(id),
                mechanism: noise[id.0 as usize],
                rows: node.curator().rows(),
            };
            let algorithm = instance.algorithm(id, vec![0.0; columns]);
            VerifiedParty {
                verifier: OutputVerifier::new(algorithm, node.model().clone(), terms),
                node,
                step: None,
            }
        })
        .collect();
    let mut run = HonestRun {
        algorithm: name,
        parties: parties.len(),
        data: 0,
        recycled: 0,
        unverifiable: None,
        stopped: None,
    };
    for iteration in 0..study.algorithm.iterations {
        let releases: Vec<Release> = parties
            .iter()
            .map(|party| party.verifier.last().clone())
            .collect();
        parties
            .par_iter_mut()
            .for_each(|party| party.step = Some(party.iterate(iteration, &releases)));
        for party in &mut parties {
            let who = party.node.id();
            match party.step.take() {
                Some(Ok(VerifiedStep::Data(_))) => run.data += 1,
                Some(Ok(VerifiedStep::Recycled)) => run.recycled += 1,
                Some(Err(StepFailure::Verify(VerifyFailure::Unverifiable(why)))) => {
                    run.unverifiable = Some(format!("{who}: {why}"));
                }
                Some(Err(StepFailure::Verify(VerifyFailure::Stopped(why)))) => {
                    run.stopped = Some(why.to_string());
                }
                Some(Err(StepFailure::Rejected(why))) => run.stopped = Some(why),
                None => {}
            }
        }
        progress();
        if run.unverifiable.is_some() || run.stopped.is_some() {
            break;
        }
    }
    run
}

impl VerifiedParty {
    /// Delivers the messages of all neighbours and verifies the outputs.
    fn iterate(&mut self, iteration: u32, all: &[Release]) -> Result<VerifiedStep, StepFailure> {
        let neighbours = self.node.neighbours().to_vec();
        let heard: Vec<Release> = neighbours
            .iter()
            .map(|j| all[j.0 as usize].clone())
            .collect();
        let mut outputs = Vec::new();
        for (from, release) in neighbours.into_iter().zip(heard.clone()) {
            let message = Message {
                from,
                iteration,
                release,
            };
            let received = self.node.receive(message);
            outputs.extend(received.map_err(|error| StepFailure::Rejected(error.to_string()))?);
        }
        let step = self.verifier.verify(&heard, outputs);
        step.map_err(StepFailure::Verify)
    }
}
