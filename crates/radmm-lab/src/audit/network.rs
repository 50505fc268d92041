//! Honest parties: the run of a study, with everything that every party says computed again by somebody else.

use radmm::message::Message;
use radmm::node::{Node, Output};
use radmm::public::graph::NodeId;
use radmm::public::release::Release;
use rayon::prelude::*;
use serde::Serialize;

use super::retrace::{Lost, Traced, Tracer};
use crate::assemble::{self, RunError, Variant};
use crate::experiment::Experiment;

/// Whether what parties recycled is what anybody could have computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Retraced {
    /// What was run.
    pub algorithm: String,
    /// How many parties were followed.
    pub parties: usize,
    /// Over all of them, values that followed from a paid answer.
    pub data: usize,
    /// Over all of them, recycled values that are those computed again, to the bit.
    pub recycled: usize,
    /// The first value that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untraceable: Option<String>,
    /// Why the run ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// One party, and who follows it.
struct Followed {
    node: Node,
    tracer: Tracer,
    heard: Vec<Release>,
    outputs: Vec<Output>,
    traced: Option<Result<Traced, Trouble>>,
}

enum Trouble {
    Lost(Lost),
    Rejected(String),
}

/// Runs a study once and follows every party.
pub(super) fn follow(
    experiment: &Experiment,
    name: String,
    progress: &(dyn Fn() + Sync),
) -> Result<Retraced, RunError> {
    let (study, graph) = (experiment.study(), experiment.graph());
    let noise = experiment.noise()?;
    let nodes = assemble::nodes(study, graph, experiment.table(), &Variant::first(&noise))?;
    let columns = experiment.table().columns.len();
    let fresh =
        |id: NodeId| assemble::algorithm(&study.algorithm.method, graph, id, vec![0.0; columns]);
    let mut parties: Vec<Followed> = nodes
        .into_iter()
        .map(|mut node| {
            // Says `f_i(0)`, which is what it has.
            node.start();
            Followed {
                tracer: Tracer::new(fresh(node.id()), node.model().clone()),
                node,
                heard: Vec::new(),
                outputs: Vec::new(),
                traced: None,
            }
        })
        .collect();
    let mut retraced = Retraced {
        algorithm: name,
        parties: parties.len(),
        data: 0,
        recycled: 0,
        untraceable: None,
        stopped: None,
    };
    for iteration in 0..study.algorithm.iterations {
        let said: Vec<Release> = parties
            .iter()
            .map(|party| party.tracer.said().clone())
            .collect();
        parties
            .par_iter_mut()
            .for_each(|party| party.go_on(iteration, &said));
        for party in &mut parties {
            let who = party.node.id();
            match party.traced.take() {
                Some(Ok(Traced::Asked(_))) => retraced.data += 1,
                Some(Ok(Traced::Recycled)) => retraced.recycled += 1,
                Some(Err(Trouble::Lost(Lost::Untraceable(why)))) => {
                    retraced.untraceable = Some(format!("{who}: {why}"));
                }
                Some(Err(Trouble::Lost(Lost::Stopped(why)))) => {
                    retraced.stopped = Some(why.to_string());
                }
                Some(Err(Trouble::Rejected(why))) => retraced.stopped = Some(why),
                None => {}
            }
        }
        progress();
        if retraced.untraceable.is_some() || retraced.stopped.is_some() {
            break;
        }
    }
    Ok(retraced)
}

impl Followed {
    fn go_on(&mut self, iteration: u32, said: &[Release]) {
        let neighbours = self.node.neighbours().to_vec();
        self.heard = neighbours
            .iter()
            .map(|j| said[j.0 as usize].clone())
            .collect();
        self.outputs.clear();
        for (from, release) in neighbours.into_iter().zip(self.heard.clone()) {
            let message = Message {
                from,
                iteration,
                release,
            };
            match self.node.receive(message) {
                Ok(outputs) => self.outputs.extend(outputs),
                Err(error) => {
                    self.traced = Some(Err(Trouble::Rejected(error.to_string())));
                    return;
                }
            }
        }
        let outputs = std::mem::take(&mut self.outputs);
        let traced = self.tracer.follow(&self.heard, outputs);
        self.traced = Some(traced.map_err(Trouble::Lost));
    }
}
