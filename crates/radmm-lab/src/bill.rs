//! The bill of a study, known before it runs: the cost of each party and iteration, and what recycling saves.

use std::sync::Arc;

use radmm::graph::{Graph, GraphError, NodeId};
use radmm::node::StepKind;
use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseDistribution, PrivacyProfile};
use radmm_data::Split;
use radmm_study::instantiate::Instance;
use radmm_study::pricing::noise_check::ExcessiveNoise;
use radmm_study::pricing::{PartySize, Plan, UnattainableBudget, amount_bits};
use radmm_study::statement_text::{self, Program};
use radmm_study::{Choice, PrivacySection, Study};
use serde::Serialize;
use thiserror::Error;

use crate::experiment::Experiment;
use crate::noise_text::noise_text;
use crate::result_file::SCOPE;
use crate::stats::SampleStats;

/// The privacy cost of a study for its parties.
#[derive(Clone, Debug, Serialize)]
pub struct StudyBill {
    program: Program,
    /// The study's name.
    pub study: String,
    /// The SHA-256 digest of the study's content.
    pub study_sha256: String,
    /// The algorithm's name in study files.
    pub algorithm: &'static str,
    /// `T`.
    pub iterations: u32,
    /// The number of data steps.
    pub data_steps: usize,
    /// The number of recycled steps.
    pub recycled_steps: usize,
    /// `d`, the number of columns of an encoded row.
    pub columns: usize,
    /// The number of pairs of neighbours.
    pub edges: usize,
    /// The study's `[privacy]`.
    pub privacy: PrivacySection,
    /// The composition of privacy losses, in words.
    pub composition: &'static str,
    /// The largest of the parties' totals.
    #[serde(flatten)]
    pub total: Guarantee,
    scope: &'static str,
    /// `C·s_max`, the largest norm that a party's gradient can have, in the mean over the parties.
    pub signal: f64,
    /// The bills of the parties, by number.
    pub nodes: Vec<NodeBill>,
    /// The total after each iteration from 0 on, the largest of the parties'.
    #[serde(rename = "course")]
    pub by_iteration: Vec<IterationCost>,
    /// The saving by recycling, where something is recycled.
    pub saving: Option<Saving>,
    /// The parties whose noise exceeds the signal of their rows, if there are any.
    #[serde(rename = "drowned")]
    pub noise_warning: Option<ExcessiveNoise>,
    /// The values that public rules chose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The largest of the parties' totals at several `δ`, unless the total is pure or infinite.
    #[serde(flatten)]
    pub profile: Option<PrivacyProfile>,
}

/// The privacy cost of a study for one party.
#[derive(Clone, Debug, Serialize)]
pub struct NodeBill {
    /// The name in the study; else `node 3`, or the value of the column by which rows are split.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
    /// `V_i`.
    pub degree: usize,
    /// The number of queries to its rows.
    pub data_steps: usize,
    /// The noise in its answers, if there is any.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub law: Option<NoiseDistribution>,
    /// The expected norm of the noise in units of the gradient, in the noisiest data step.
    pub noise_norm: f64,
    /// The total over the whole run.
    #[serde(flatten)]
    pub total: Guarantee,
    /// The same at several `δ`.
    #[serde(skip)]
    pub profile: Option<Arc<PrivacyProfile>>,
    /// The data steps, in order.
    pub steps: Vec<BilledStep>,
}

/// The cost of one data step of a party.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BilledStep {
    /// The iteration.
    pub t: u32,
    /// The ε that it would cost if it were the only one, at the study's `δ`.
    pub price: f64,
    /// The total up to and including it.
    pub total: f64,
}

/// The total after one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IterationCost {
    /// `t`.
    pub t: u32,
    /// The kind of iteration.
    pub kind: StepKind,
    /// `P(t)`, the largest of the parties'.
    pub epsilon: f64,
}

/// The cost of a data step in every iteration, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saving {
    /// The name of the algorithm without recycling in study files.
    pub conventional: &'static str,
    /// Its number of data steps.
    pub data_steps: usize,
    /// Its total with the same noise; `None` if the study's bound does not cover it.
    pub epsilon: Option<f64>,
    /// The factor by which it needs more noise for the same totals, least and greatest of the parties'; `None` if no noise
    /// suffices.
    pub noise: Option<[f64; 2]>,
}

/// The reason why there is no bill.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BillError {
    /// The topology is invalid.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// The numbers of rows do not match the parties.
    #[error(
        "{given} numbers of rows for {nodes} nodes: give one number for each node, or a single one for all"
    )]
    Rows {
        /// The count of numbers given.
        given: usize,
        /// `N`.
        nodes: usize,
    },
    /// The study's privacy is unattainable.
    #[error(transparent)]
    Unattainable(#[from] UnattainableBudget),
}

impl StudyBill {
    /// Returns the bill of parties with the given numbers of rows, one for each node or one for all. No file is opened.
    pub fn for_rows(study: &Study, rows: &[usize]) -> Result<Self, BillError> {
        let nodes = study.network.nodes as usize;
        let rows_of = |i: usize| match rows {
            [all] => Some(*all),
            each if each.len() == nodes => Some(each[i]),
            _ => None,
        };
        let party = |i: usize| {
            Some(PartySize {
                name: party_name(study, i),
                rows: rows_of(i)?,
            })
        };
        let parties: Option<Vec<PartySize>> = (0..nodes).map(party).collect();
        let parties = parties.ok_or(BillError::Rows {
            given: rows.len(),
            nodes,
        })?;
        let graph = Graph::new(&study.network.topology, nodes)?;
        let plan = Plan::new(study, &graph, parties);
        Ok(bill_of(&plan, &plan.noise()?)?)
    }

    /// Returns the bill as JSON text with a final newline.
    pub fn to_json(&self) -> String {
        // Cannot fail: every map has string keys, and floats that are not finite become null.
        serde_json::to_string_pretty(self).expect("a bill is valid JSON") + "\n"
    }

    /// Returns where the noise enters and its scale: `in the objective, σ 10.2 to 12`.
    pub fn noise_text(&self) -> String {
        let scale = noise_text(self.nodes.iter().filter_map(|node| node.law));
        match self.privacy.noise.template() {
            Mechanism::None => scale,
            Mechanism::Objective { .. } => format!("in the objective, {scale}"),
            Mechanism::Output { .. } => format!("on the minimisers, {scale}"),
            Mechanism::Gradient { .. } => format!("on the gradients, {scale}"),
        }
    }
}

impl Experiment {
    /// Returns the cost of the study, before it runs.
    pub fn bill(&self) -> Result<StudyBill, UnattainableBudget> {
        bill_of(&self.plan(), &self.noise()?)
    }

    /// Returns the parties whose noise exceeds the signal of their rows, if there are any. It is known before anything runs.
    pub fn noise_warning(&self) -> Result<Option<ExcessiveNoise>, UnattainableBudget> {
        Ok(self.plan().excessive_noise(&self.noise()?))
    }
}

fn bill_of(plan: &Plan<'_>, noise: &[Mechanism]) -> Result<StudyBill, UnattainableBudget> {
    let Instance { study, graph, .. } = *plan.instance();
    let delta = match study.privacy.bound {
        // The paper's theorem is about pure privacy.
        Bound::Paper => 0.0,
        Bound::Tight => study.privacy.delta,
    };
    let charged = plan.per_party(
        |i| amount_bits(&noise[i]),
        |queries, i| {
            let prices = queries.prices(&noise[i], study.privacy.delta)?;
            let (totals, ledger) = queries.totals_and_ledger(&noise[i], study.privacy.delta)?;
            Ok((prices, totals, ledger.profile()))
        },
    );
    let norms = plan.noise_norms(noise);
    let mut nodes = Vec::new();
    for (i, (charged, party)) in charged.into_iter().zip(plan.parties()).enumerate() {
        let (prices, totals, profile) = charged.map_err(|reason| plan.unattainable(i, &reason))?;
        let times = plan.party(i).queries().iterations;
        let steps = times.iter().zip(prices).zip(&totals);
        nodes.push(NodeBill {
            name: party.name.clone(),
            rows: party.rows,
            degree: graph.degree(NodeId(i as u32)),
            data_steps: times.len(),
            law: noise[i].noise(),
            noise_norm: norms[i],
            total: Guarantee {
                epsilon: totals.last().copied().unwrap_or(0.0),
                delta,
            },
            profile,
            steps: steps
                .map(|((&t, price), &total)| BilledStep { t, price, total })
                .collect(),
        });
    }
    let by_iteration = by_iteration(plan, &nodes);
    let count = |kind: StepKind| by_iteration.iter().filter(|at| at.kind == kind).count();
    Ok(StudyBill {
        program: Program::THIS,
        study: study.name.clone(),
        study_sha256: study.sha256(),
        algorithm: study.algorithm.method.name(),
        iterations: study.algorithm.iterations,
        data_steps: count(StepKind::Data),
        recycled_steps: count(StepKind::Recycled),
        columns: study.data.schema.columns().len(),
        edges: graph.edge_count(),
        privacy: study.privacy.clone(),
        composition: statement_text::composition(&study.privacy),
        total: Guarantee::network(nodes.iter().map(|node| node.total)),
        scope: SCOPE,
        signal: plan.signal(),
        saving: saving(plan, noise, &nodes),
        noise_warning: plan.excessive_noise(noise),
        choices: plan.instance().choices(),
        by_iteration,
        profile: network_profile(nodes.iter().map(|node| &node.profile)),
        nodes,
    })
}

/// Returns the largest of the parties' totals at several `δ`, if all of them have any.
pub(crate) fn network_profile<'a>(
    parties: impl Iterator<Item = &'a Option<Arc<PrivacyProfile>>>,
) -> Option<PrivacyProfile> {
    let all: Option<Vec<&PrivacyProfile>> = parties.map(Option::as_deref).collect();
    all.and_then(PrivacyProfile::network)
}

/// Returns the largest of the parties' totals after each iteration. All parties have the same data steps.
fn by_iteration(plan: &Plan<'_>, nodes: &[NodeBill]) -> Vec<IterationCost> {
    let totals = |node: &NodeBill| node.steps.iter().map(|step| step.total).collect();
    let spent: Vec<Vec<f64>> = nodes.iter().map(totals).collect();
    let times = |i: usize| nodes[i].steps.iter().map(|step| step.t).collect();
    let largest = plan.largest(&spent, &times);
    let data_steps = times(0);
    let cost = |(t, epsilon)| IterationCost {
        t,
        kind: match t {
            0 => StepKind::Start,
            _ if data_steps.binary_search(&t).is_ok() => StepKind::Data,
            _ => StepKind::Recycled,
        },
        epsilon,
    };
    (0..).zip(largest).map(cost).collect()
}

/// Returns the saving by recycling; `None` if nothing is recycled or protected.
fn saving(plan: &Plan<'_>, noise: &[Mechanism], nodes: &[NodeBill]) -> Option<Saving> {
    let Instance { study, graph, .. } = *plan.instance();
    if study.privacy.unprotected().is_some() {
        return None;
    }
    let mut study = study.clone();
    study.algorithm.method = study.algorithm.method.unrecycled()?;
    let unrecycled = Plan::new(&study, graph, plan.parties().to_vec());
    let epsilons = unrecycled.largest_totals(noise, study.privacy.bound);
    let totals: Vec<Guarantee> = nodes.iter().map(|node| node.total).collect();
    // Both the least for these totals: a study may have more noise than its total needs.
    let least = plan.noise_for(&totals).zip(unrecycled.noise_for(&totals));
    let times = |(own, needed): (&Mechanism, &Mechanism)| needed.noise()?.size_ratio(&own.noise()?);
    let ratios: Option<Vec<f64>> =
        least.and_then(|(own, needed)| own.iter().zip(&needed).map(times).collect());
    Some(Saving {
        conventional: study.algorithm.method.name(),
        data_steps: study.algorithm.iterations as usize,
        epsilon: epsilons.and_then(|epsilons| epsilons.last().copied()),
        noise: ratios.map(|ratios| SampleStats::of(ratios).ends()),
    })
}

/// Returns the name of a party in the study, or the one that splitting rows will give it as far as the study tells.
fn party_name(study: &Study, i: usize) -> String {
    match (study.parties.get(i), &study.data.split) {
        (Some(party), _) => party.name.clone(),
        (None, Split::Column { values, .. }) if i < values.len() => values[i].clone(),
        _ => format!("node {i}"),
    }
}
