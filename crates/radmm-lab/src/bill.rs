//! The bill of a study, before anything runs: who will pay how much, when, and what recycling saves.

use radmm::account::{Bound, Guarantee};
use radmm::node::Kind;
use radmm::private::{Law, Mechanism};
use radmm::public::graph::{Graph, GraphError, NodeId};
use radmm_data::Split;
use radmm_study::drown::Drowned;
use radmm_study::equal;
use radmm_study::plan::{Billed, Plan, TooDear, amount};
use radmm_study::words::{self, Program};
use radmm_study::{Method, Privacy, Study};
use serde::Serialize;
use thiserror::Error;

use crate::experiment::Experiment;
use crate::result::SCOPE;
use crate::shown::noise;
use crate::spread::Spread;

/// What a study will cost its parties.
#[derive(Clone, Debug, Serialize)]
pub struct Bill {
    program: Program,
    /// The study's name.
    pub study: String,
    /// Of what the study means.
    pub study_sha256: String,
    /// As in study files.
    pub algorithm: &'static str,
    /// `T`.
    pub iterations: u32,
    /// Iterations in which rows are asked.
    pub data_steps: usize,
    /// Iterations that ask nothing.
    pub recycled_steps: usize,
    /// `d`, of an encoded row.
    pub columns: usize,
    /// Pairs of parties that talk to each other.
    pub edges: usize,
    /// What the study says of its noise.
    pub privacy: Privacy,
    /// How losses add up.
    pub composition: &'static str,
    /// The largest of the parties' totals.
    #[serde(flatten)]
    pub total: Guarantee,
    scope: &'static str,
    /// `C`, the largest norm that rows' gradient can have.
    pub signal: f64,
    /// By number.
    pub nodes: Vec<NodeBill>,
    /// From iteration 0 on, the largest of the parties'.
    pub course: Vec<SoFar>,
    /// What recycling saves, where something is recycled.
    pub saving: Option<Saving>,
    /// Whose rows cannot be heard through the noise, if there are any.
    pub drowned: Option<Drowned>,
}

/// One party's bill.
#[derive(Clone, Debug, Serialize)]
pub struct NodeBill {
    /// Its name in the study; else `node 3`, or the value by which rows are dealt out.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
    /// `V_i`.
    pub degree: usize,
    /// How often its rows will be asked.
    pub data_steps: usize,
    /// The noise in its answers, if there is any.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub law: Option<Law>,
    /// Its expected norm in units of the gradient, in the noisiest data step.
    pub noise_norm: f64,
    /// What everything will have cost.
    #[serde(flatten)]
    pub total: Guarantee,
    /// In order.
    pub steps: Vec<Charge>,
}

/// One data step of a party.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Charge {
    /// Its iteration.
    pub t: u32,
    /// What it would cost if it were the only one, at the study's `δ`.
    pub price: f64,
    /// The total up to it.
    pub total: f64,
}

/// An iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SoFar {
    /// `t`.
    pub t: u32,
    /// Whether rows are asked.
    pub kind: Kind,
    /// `P(t)`, the largest of the parties'.
    pub epsilon: f64,
}

/// What it would cost to ask in every iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saving {
    /// The algorithm without recycling, as in study files.
    pub conventional: &'static str,
    /// How often it asks.
    pub data_steps: usize,
    /// Its total with the same noise; `None` if the study's bound does not cover it.
    pub epsilon: Option<f64>,
    /// How many times the noise it needs for the same totals, least and greatest of the parties'; `None` if no noise would do.
    pub noise: Option<[f64; 2]>,
}

/// Why there is no bill.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BillError {
    /// The network is none.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// As many numbers of rows as parties are needed, or one for all.
    #[error(
        "{given} numbers of rows for {nodes} nodes; give each node one, or a single one for all"
    )]
    Rows {
        /// How many there are.
        given: usize,
        /// `N`.
        nodes: usize,
    },
    /// The study's privacy cannot be had.
    #[error(transparent)]
    TooDear(#[from] TooDear),
}

impl Bill {
    /// The bill of parties with so many rows, by node, or everyone with the same number. No row is read, and no file opened.
    pub fn for_rows(study: &Study, rows: &[usize]) -> Result<Self, BillError> {
        let nodes = study.network.nodes as usize;
        let rows_of = |i: usize| match rows {
            [all] => Some(*all),
            each if each.len() == nodes => Some(each[i]),
            _ => None,
        };
        let party = |i: usize| {
            Some(Billed {
                name: name(study, i),
                rows: rows_of(i)?,
            })
        };
        let parties: Option<Vec<Billed>> = (0..nodes).map(party).collect();
        let plan = Plan {
            parties: parties.ok_or(BillError::Rows {
                given: rows.len(),
                nodes,
            })?,
            study,
            graph: &Graph::new(&study.network.topology, nodes)?,
        };
        Ok(bill_of(&plan, &plan.noise()?)?)
    }

    /// The bill as JSON, with a line end.
    pub fn to_json(&self) -> String {
        // Every map has string keys and floats that are not finite become null, so that nothing is left to fail.
        serde_json::to_string_pretty(self).expect("a bill is valid JSON") + "\n"
    }

    /// Where the noise enters, and how much there is: `in the objective, σ 10.2 to 12`.
    pub fn noise_in_words(&self) -> String {
        let scale = noise(self.nodes.iter().filter_map(|node| node.law));
        match self.privacy.noise.like() {
            Mechanism::None => scale,
            Mechanism::Objective { .. } => format!("in the objective, {scale}"),
            Mechanism::Output { .. } => format!("on the minimisers, {scale}"),
            Mechanism::Gradient { .. } => format!("on the gradients, {scale}"),
        }
    }
}

impl Experiment {
    /// What the study will cost, before it runs.
    pub fn bill(&self) -> Result<Bill, TooDear> {
        bill_of(&self.plan(), &self.noise()?)
    }

    /// Whose rows cannot be heard through the noise, if there are any: known before anything runs.
    pub fn drowned(&self) -> Result<Option<Drowned>, TooDear> {
        Ok(self.plan().drowned(&self.noise()?))
    }
}

fn bill_of(plan: &Plan<'_>, noise: &[Mechanism]) -> Result<Bill, TooDear> {
    let study = plan.study;
    let delta = match study.privacy.bound {
        // The paper's theorem is about pure privacy.
        Bound::Paper => 0.0,
        Bound::Tight => study.privacy.delta,
    };
    let charged = plan.of_each(
        |i| amount(&noise[i]),
        |asked, i| {
            let prices = asked.prices(&noise[i], study.privacy.delta)?;
            Ok((prices, asked.totals(&noise[i], study.privacy.delta)?))
        },
    );
    let norms = plan.noise_norms(noise);
    let mut nodes = Vec::new();
    for (i, (charged, party)) in charged.into_iter().zip(&plan.parties).enumerate() {
        let (prices, totals) = charged.map_err(|reason| plan.no_total(i, &reason))?;
        let times = plan.questions(i).times;
        let steps = times.iter().zip(prices).zip(&totals);
        nodes.push(NodeBill {
            name: party.name.clone(),
            rows: party.rows,
            degree: plan.graph.degree(NodeId(i as u32)),
            data_steps: times.len(),
            law: equal::law(&noise[i]),
            noise_norm: norms[i],
            total: Guarantee {
                epsilon: totals.last().copied().unwrap_or(0.0),
                delta,
            },
            steps: steps
                .map(|((&t, price), &total)| Charge { t, price, total })
                .collect(),
        });
    }
    let course = so_far(plan, &nodes);
    let asked = |at: &&SoFar| at.kind == Kind::Data;
    let recycled = |at: &&SoFar| at.kind == Kind::Recycled;
    Ok(Bill {
        program: Program::THIS,
        study: study.name.clone(),
        study_sha256: study.sha256(),
        algorithm: study.algorithm.method.name(),
        iterations: study.algorithm.iterations,
        data_steps: course.iter().filter(asked).count(),
        recycled_steps: course.iter().filter(recycled).count(),
        columns: study.data.schema.columns().len(),
        edges: plan.graph.edge_count(),
        privacy: study.privacy.clone(),
        composition: words::composition(&study.privacy),
        total: Guarantee::network(nodes.iter().map(|node| node.total)),
        scope: SCOPE,
        signal: study.problem.weight,
        saving: saving(plan, noise, &nodes),
        drowned: plan.drowned(noise),
        course,
        nodes,
    })
}

/// The largest of the parties' totals after each iteration. When a party is asked does not depend on the party.
fn so_far(plan: &Plan<'_>, nodes: &[NodeBill]) -> Vec<SoFar> {
    let totals = |node: &NodeBill| node.steps.iter().map(|step| step.total).collect();
    let spent: Vec<Vec<f64>> = nodes.iter().map(totals).collect();
    let times = |i: usize| nodes[i].steps.iter().map(|step| step.t).collect();
    let largest = plan.largest(&spent, &times);
    let asked = times(0);
    let moment = |(t, epsilon)| SoFar {
        t,
        kind: match t {
            0 => Kind::Start,
            _ if asked.binary_search(&t).is_ok() => Kind::Data,
            _ => Kind::Recycled,
        },
        epsilon,
    };
    (0..).zip(largest).map(moment).collect()
}

fn saving(plan: &Plan<'_>, noise: &[Mechanism], nodes: &[NodeBill]) -> Option<Saving> {
    if plan.study.privacy.unprotected().is_some() {
        return None;
    }
    let mut study = plan.study.clone();
    study.algorithm.method = conventional(&study.algorithm.method)?;
    let asking = Plan {
        study: &study,
        graph: plan.graph,
        parties: plan.parties.clone(),
    };
    let course = asking.course(noise, study.privacy.bound);
    let totals: Vec<Guarantee> = nodes.iter().map(|node| node.total).collect();
    // Each the least for these totals: a study may have more noise than its total takes, where more does not help.
    let least = plan.noise_for(&totals).zip(asking.noise_for(&totals));
    let times =
        |(own, needed): (&Mechanism, &Mechanism)| match (equal::law(own)?, equal::law(needed)?) {
            (Law::Gamma { rate: own }, Law::Gamma { rate: needed }) => Some(own / needed),
            (Law::Gaussian { sigma: own }, Law::Gaussian { sigma: needed }) => Some(needed / own),
            _ => None,
        };
    let ratios: Option<Vec<f64>> =
        least.and_then(|(own, needed)| own.iter().zip(&needed).map(times).collect());
    Some(Saving {
        conventional: study.algorithm.method.name(),
        data_steps: study.algorithm.iterations as usize,
        epsilon: course.and_then(|course| course.last().copied()),
        noise: ratios.map(|ratios| {
            let spread = Spread::of(ratios);
            [spread.low, spread.high]
        }),
    })
}

/// The same algorithm, asking in every iteration; `None` if it does so already, or has no such form.
fn conventional(method: &Method) -> Option<Method> {
    match method.clone() {
        Method::RecycledAdmm { recycle: 0, .. }
        | Method::MRecycledAdmm { recycle: 0, .. }
        | Method::RecycledDlm { recycle: 0, .. }
        | Method::Admm { .. }
        | Method::MAdmm { .. }
        | Method::Dlm { .. }
        | Method::Dgd { .. }
        | Method::Local { .. }
        | Method::Average { .. } => None,
        Method::RecycledAdmm { penalty, .. } => Some(Method::Admm { penalty }),
        Method::MRecycledAdmm {
            penalty, dual_step, ..
        } => Some(Method::MAdmm { penalty, dual_step }),
        Method::RecycledDlm {
            penalty, damping, ..
        } => Some(Method::Dlm { penalty, damping }),
    }
}

/// As the study calls it, or as rows are going to be dealt out, as far as the study tells.
fn name(study: &Study, i: usize) -> String {
    match (study.parties.get(i), &study.data.split) {
        (Some(party), _) => party.name.clone(),
        (None, Split::Column { values, .. }) if i < values.len() => values[i].clone(),
        _ => format!("node {i}"),
    }
}
