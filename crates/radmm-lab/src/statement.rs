//! `privacy-statement.json`: what is promised about the rows of a run, in one page for those who own them.

use radmm::account::{Bound, Guarantee};
use radmm::node::Kind;
use radmm::private::{Law, Mechanism, Scaling};
use radmm::public::release::Precision;
use radmm_study::words::{ADVERSARY, Program, composition, mechanism};
use serde::Serialize;

use crate::experiment::Experiment;
use crate::outcome::{NodeResult, Outcome};
use crate::result::{SCOPE, caveat};

/// What is promised about the rows of a run. docs/study.md describes it.
#[derive(Serialize)]
pub struct PrivacyStatement<'a> {
    program: Program,
    study: &'a str,
    study_sha256: String,
    #[serde(flatten)]
    total: Guarantee,
    scope: &'static str,
    adversary: &'static str,
    protects: bool,
    caveat: &'static str,
    mechanism: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<Scaling>,
    precision: Precision,
    bound: Bound,
    composition: &'static str,
    data_steps: usize,
    recycled_steps: usize,
    nodes: Vec<Party<'a>>,
}

#[derive(Serialize)]
struct Party<'a> {
    name: &'a str,
    rows: usize,
    data_steps: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    law: Option<Law>,
    #[serde(flatten)]
    total: Guarantee,
}

impl<'a> PrivacyStatement<'a> {
    /// The statement of an outcome. Where repetitions differ, since one was stopped early, a party's total is its largest.
    pub fn new(experiment: &'a Experiment, outcome: &'a Outcome) -> Self {
        let study = experiment.study();
        let like = study.privacy.noise.like();
        let first = &outcome.repetitions[0];
        let most = |kind| {
            outcome
                .repetitions
                .iter()
                .map(move |run| run.count(kind))
                .max()
        };
        let spent = |i: usize| {
            let all = outcome.repetitions.iter().map(move |run| &run.nodes[i]);
            let most = |a: &'a NodeResult, b: &'a NodeResult| {
                if b.spent.epsilon > a.spent.epsilon {
                    b
                } else {
                    a
                }
            };
            all.fold(&first.nodes[i], most)
        };
        let party = |node: &'a NodeResult| Party {
            name: &node.name,
            rows: node.rows,
            data_steps: node.data_steps,
            law: node.law,
            total: node.spent,
        };
        let nodes: Vec<Party<'a>> = (0..first.nodes.len()).map(|i| party(spent(i))).collect();
        Self {
            program: Program::THIS,
            study: &study.name,
            study_sha256: study.sha256(),
            total: Guarantee::network(nodes.iter().map(|node| node.total)),
            scope: SCOPE,
            adversary: ADVERSARY,
            // A simulation never does.
            protects: false,
            caveat: caveat(&study.privacy),
            mechanism: mechanism(&like),
            scale: match like {
                Mechanism::Objective { scale, .. } => Some(scale),
                _ => None,
            },
            precision: study.privacy.precision,
            bound: study.privacy.bound,
            composition: composition(&study.privacy),
            data_steps: most(Kind::Data).unwrap_or(0),
            recycled_steps: most(Kind::Recycled).unwrap_or(0),
            nodes,
        }
    }

    /// As text, with a line end.
    pub fn to_json(&self) -> String {
        // Every map has string keys and floats that are not finite become null, so that nothing is left to fail.
        serde_json::to_string_pretty(self).expect("a statement is valid JSON") + "\n"
    }
}
