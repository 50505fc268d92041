//! What a study will ask of its parties, and with which noise: known before a row is read.
//!
//! When a party is asked, and at which price, depends on the study, the graph and the number of its rows alone. So noise for
//! a total can be found, and the total for a noise, before anything runs.

use std::collections::BTreeMap;

use radmm::account::{Bound, Event, Guarantee};
use radmm::private::Mechanism;
use radmm::public::graph::{Graph, NodeId};
use radmm::public::plan;
use radmm::public::release::Query;
use rayon::prelude::*;
use thiserror::Error;

use crate::assemble;
use crate::equal::{self, Asked, NoTotal};
use crate::shown::{count, epsilon};
use crate::{Method, Noise, Study};

/// A study, its graph, and how many rows everyone has.
pub struct Plan<'a> {
    /// What is asked.
    pub study: &'a Study,
    /// Who talks to whom.
    pub graph: &'a Graph,
    /// By node.
    pub parties: Vec<Billed>,
}

/// Who is billed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Billed {
    /// `node 3`, or the value by which rows were dealt out.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
}

/// Why a study's privacy cannot be had.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum TooDear {
    /// No noise is enough for the total.
    #[error(
        "[privacy] epsilon = {wanted} is out of reach: {party}, with {}, spends about {} over its {} however much noise there \
         is; {advice}",
        count(*rows, "row", "rows"),
        epsilon(*least),
        count(*data_steps, "data step", "data steps")
    )]
    OutOfReach {
        /// The study's total.
        wanted: f64,
        /// Who would exceed it by most.
        party: String,
        /// How many it has.
        rows: usize,
        /// How often it would be asked.
        data_steps: usize,
        /// The total with as much noise as can be worked with.
        least: f64,
        /// What to do.
        advice: &'static str,
    },
    /// The paper's theorem does not apply.
    #[error(
        "[privacy] bound = \"paper\": the paper's theorem is silent about what {party}, with {}, is asked: {reason}; use \
         bound = \"tight\", or raise ridge or penalty",
        count(*rows, "row", "rows")
    )]
    PaperSilent {
        /// Whose questions it does not cover.
        party: String,
        /// How many it has.
        rows: usize,
        /// Which condition fails.
        reason: &'static str,
    },
    /// The study's noise has no price.
    #[error("[privacy] what {party} is asked has no price: {reason}")]
    NoPrice {
        /// Who would be asked.
        party: String,
        /// Why.
        reason: String,
    },
}

/// What one node will be asked.
pub struct Questions {
    /// In which iterations.
    pub times: Vec<u32>,
    /// What, as far as its price depends on it.
    pub queries: Vec<Query>,
}

impl Plan<'_> {
    /// The study's noise, by node: as it says, or the least that keeps every party within the study's total.
    pub fn noise(&self) -> Result<Vec<Mechanism>, TooDear> {
        let total = match self.study.privacy.noise {
            Noise::Given(mechanism) => return Ok(vec![mechanism; self.parties.len()]),
            Noise::Total(total) => total,
        };
        let like = total.kind.with(1.0);
        let within = Guarantee {
            epsilon: total.epsilon,
            delta: self.study.privacy.delta,
        };
        let found = self.of_each(|_| 0, |asked, _| asked.calibrate(&like, within));
        let missing = |i: &usize| found[*i].is_none();
        match (0..found.len()).filter(missing).collect::<Vec<_>>() {
            dear if dear.is_empty() => Ok(found.into_iter().flatten().collect()),
            dear => Err(self.too_dear(&dear, total.epsilon)),
        }
    }

    /// The noise of node `i` alone: of others' rows its party knows nothing, and they have no part in it.
    pub fn noise_of(&self, i: usize) -> Result<Mechanism, TooDear> {
        let total = match self.study.privacy.noise {
            Noise::Given(mechanism) => return Ok(mechanism),
            Noise::Total(total) => total,
        };
        let within = Guarantee {
            epsilon: total.epsilon,
            delta: self.study.privacy.delta,
        };
        let asked = Asked {
            questions: &self.questions(i).queries,
            problem: &assemble::problem(self.study),
            rows: self.parties[i].rows,
            bound: self.study.privacy.bound,
        };
        let found = asked.calibrate(&total.kind.with(1.0), within);
        found.ok_or_else(|| self.too_dear(&[i], total.epsilon))
    }

    /// What node `i` will be charged, by iteration.
    pub fn charges_of(
        &self,
        i: usize,
        mechanism: &Mechanism,
    ) -> Result<Vec<(u32, Event)>, TooDear> {
        let Questions { times, queries } = self.questions(i);
        let problem = assemble::problem(self.study);
        let charge = |(t, query): (u32, Query)| {
            let price = mechanism.price(&query, &problem, self.parties[i].rows);
            let event = price.map_err(|error| TooDear::NoPrice {
                party: self.parties[i].name.clone(),
                reason: error.to_string(),
            })?;
            Ok((t, event))
        };
        times.into_iter().zip(queries).map(charge).collect()
    }

    /// The least noise of the study's kind, by node, at which everyone stays within its total; `None` if someone's cannot be
    /// had.
    pub fn noise_for(&self, totals: &[Guarantee]) -> Option<Vec<Mechanism>> {
        let like = self.study.privacy.noise.like();
        let total = |i: usize| totals[i].epsilon.to_bits();
        let found = self.of_each(total, |asked, i| asked.calibrate(&like, totals[i]));
        found.into_iter().collect()
    }

    /// `P(0), …, P(T)` by any bound, the largest of the parties'; `None` if the bound does not cover the study.
    pub fn course(&self, noise: &[Mechanism], bound: Bound) -> Option<Vec<f64>> {
        let delta = self.study.privacy.delta;
        let spent = self.of_each(
            |i| amount(&noise[i]),
            |asked, i| Asked { bound, ..asked }.totals(&noise[i], delta).ok(),
        );
        let spent: Option<Vec<Vec<f64>>> = spent.into_iter().collect();
        let times = |i| self.questions(i).times;
        Some(self.largest(&spent?, &times))
    }

    /// The largest of the parties' totals after each iteration.
    pub fn largest(&self, spent: &[Vec<f64>], times: &dyn Fn(usize) -> Vec<u32>) -> Vec<f64> {
        let iterations = self.study.algorithm.iterations as usize;
        let mut largest = vec![0.0_f64; iterations + 1];
        for (i, spent) in spent.iter().enumerate() {
            let times = times(i);
            let mut so_far = times.iter().zip(spent).peekable();
            let mut now = 0.0;
            for (t, largest) in largest.iter_mut().enumerate() {
                if let Some((_, total)) = so_far.next_if(|(time, _)| **time as usize == t) {
                    now = *total;
                }
                *largest = largest.max(now);
            }
        }
        largest
    }

    /// What node `i` will be asked, and in which iterations.
    pub fn questions(&self, i: usize) -> Questions {
        let id = NodeId(i as u32);
        let method = &self.study.algorithm.method;
        let mut algorithm = assemble::algorithm(method, self.graph, id, Vec::new());
        let iterations = self.study.algorithm.iterations;
        let asked = plan::questions(&mut *algorithm, self.graph.degree(id), iterations);
        let (times, queries) = asked.into_iter().unzip();
        Questions { times, queries }
    }

    /// Something about every node, on all threads. It is computed once for all nodes that are asked the same, have as many rows
    /// and do not differ in what `also` says: most nodes of a large network do not.
    pub fn of_each<T: Clone + Send + Sync>(
        &self,
        also: impl Fn(usize) -> u64,
        of: impl Fn(Asked<'_>, usize) -> T + Sync,
    ) -> Vec<T> {
        let mut first = Vec::new();
        let mut class = BTreeMap::new();
        let mut class_of = Vec::with_capacity(self.parties.len());
        for (i, party) in self.parties.iter().enumerate() {
            let degree = self.graph.degree(NodeId(i as u32));
            let own = own_penalty(&self.study.algorithm.method, i);
            let class = class
                .entry((party.rows, degree, own, also(i)))
                .or_insert_with(|| {
                    first.push(i);
                    first.len() - 1
                });
            class_of.push(*class);
        }
        let problem = assemble::problem(self.study);
        let found: Vec<T> = first
            .into_par_iter()
            .map(|i| {
                let asked = Asked {
                    questions: &self.questions(i).queries,
                    problem: &problem,
                    rows: self.parties[i].rows,
                    bound: self.study.privacy.bound,
                };
                of(asked, i)
            })
            .collect();
        class_of
            .into_iter()
            .map(|class| found[class].clone())
            .collect()
    }

    /// Why these parties cannot keep the study's total, by the one that is farthest from it.
    fn too_dear(&self, parties: &[usize], wanted: f64) -> TooDear {
        let like = self.study.privacy.noise.like();
        let delta = self.study.privacy.delta;
        let least = self.of_each(|_| 0, |asked, _| asked.least(&like, delta));
        let mut worst = (parties[0], 0.0);
        for &i in parties {
            match &least[i] {
                Err(reason) => return self.no_total(i, reason),
                Ok(least) if *least > worst.1 => worst = (i, *least),
                Ok(_) => {}
            }
        }
        let Billed { name, rows } = &self.parties[worst.0];
        TooDear::OutOfReach {
            wanted,
            party: name.clone(),
            rows: *rows,
            data_steps: self.questions(worst.0).times.len(),
            least: worst.1,
            advice: advice(&like, &self.study.algorithm.method),
        }
    }

    /// Why there is no total of a party.
    pub fn no_total(&self, i: usize, reason: &NoTotal) -> TooDear {
        let Billed { name, rows } = &self.parties[i];
        let (party, rows) = (name.clone(), *rows);
        match reason {
            NoTotal::Paper(reason) => TooDear::PaperSilent {
                party,
                rows,
                reason,
            },
            NoTotal::Wrong(reason) => TooDear::NoPrice {
                party,
                reason: reason.clone(),
            },
        }
    }
}

/// What tells the noise of one party from that of another.
pub fn amount(mechanism: &Mechanism) -> u64 {
    equal::scale(mechanism).map_or(0, f64::to_bits)
}

/// What a party's questions depend on beside its degree, where it has a penalty of its own.
fn own_penalty(method: &Method, i: usize) -> Option<String> {
    match method {
        Method::MAdmm { penalty, .. } | Method::MRecycledAdmm { penalty, .. } => {
            // Numbers are written with all their digits.
            Some(format!("{:?}", penalty[i]))
        }
        _ => None,
    }
}

/// How a total comes within reach. Objective perturbation charges for the Hessian, the less the more convex a question is;
/// noise on an answer can be made as cheap as double precision allows.
fn advice(like: &Mechanism, method: &Method) -> &'static str {
    match (like, method) {
        (Mechanism::Objective { .. }, Method::Local { .. } | Method::Average { .. }) => {
            "raise epsilon, ridge or extra_ridge"
        }
        (
            Mechanism::Objective { .. },
            Method::RecycledAdmm { .. } | Method::MRecycledAdmm { .. },
        ) => "raise epsilon, ridge or penalty, take fewer iterations, or recycle more",
        (Mechanism::Objective { .. }, _) => {
            "raise epsilon, ridge or penalty, take fewer iterations, or use r-admm, which asks less often"
        }
        _ => "raise epsilon",
    }
}
