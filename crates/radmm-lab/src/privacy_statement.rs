//! `privacy-statement.json`: the privacy guarantee of a run on one page, for the owners of the rows.

use radmm::node::StepKind;
use radmm::privacy::{
    Bound, Guarantee, Mechanism, NoiseDistribution, NoiseScaling, PrivacyProfile,
};
use radmm_study::statement_text::{ADVERSARY, PRECISION, Program, composition, mechanism};
use serde::Serialize;

use crate::bill::network_profile;
use crate::experiment::Experiment;
use crate::outcome::{NodeResult, Outcome};
use crate::result_file::{SCOPE, caveat};

/// The privacy guarantee of a run. docs/study.md describes the file.
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
    scale: Option<NoiseScaling>,
    precision: &'static str,
    bound: Bound,
    composition: &'static str,
    data_steps: usize,
    recycled_steps: usize,
    nodes: Vec<PartyStatement<'a>>,
    /// The largest of the parties' totals at several `δ`, unless the total is pure or infinite.
    #[serde(flatten)]
    profile: Option<PrivacyProfile>,
}

#[derive(Serialize)]
struct PartyStatement<'a> {
    name: &'a str,
    rows: usize,
    data_steps: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    law: Option<NoiseDistribution>,
    #[serde(flatten)]
    total: Guarantee,
}

impl<'a> PrivacyStatement<'a> {
    /// Returns the statement of an outcome. A party's total is its largest over the repetitions, which differ if one stopped early.
    pub fn new(experiment: &'a Experiment, outcome: &'a Outcome) -> Self {
        let study = experiment.study();
        let like = study.privacy.noise.template();
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
        let party = |node: &'a NodeResult| PartyStatement {
            name: &node.name,
            rows: node.rows,
            data_steps: node.data_steps,
            law: node.law,
            total: node.spent,
        };
        let nodes: Vec<PartyStatement<'a>> =
            (0..first.nodes.len()).map(|i| party(spent(i))).collect();
        Self {
            program: Program::THIS,
            study: &study.name,
            study_sha256: study.sha256(),
            total: Guarantee::network(nodes.iter().map(|node| node.total)),
            scope: SCOPE,
            adversary: ADVERSARY,
            // A simulation never protects anybody.
            protects: false,
            caveat: caveat(&study.privacy),
            mechanism: mechanism(&like),
            scale: match like {
                Mechanism::Objective { scale, .. } => Some(scale),
                _ => None,
            },
            precision: PRECISION,
            bound: study.privacy.bound,
            composition: composition(&study.privacy),
            data_steps: most(StepKind::Data).unwrap_or(0),
            recycled_steps: most(StepKind::Recycled).unwrap_or(0),
            nodes,
            profile: network_profile((0..first.nodes.len()).map(|i| &spent(i).profile)),
        }
    }

    /// Returns the statement as JSON text with a final newline.
    pub fn to_json(&self) -> String {
        // Cannot fail: every map has string keys, and floats that are not finite become null.
        serde_json::to_string_pretty(self).expect("a statement is valid JSON") + "\n"
    }
}
