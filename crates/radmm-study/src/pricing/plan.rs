//! The queries and the noise of a study, known before a row is read.

use std::collections::BTreeMap;

use radmm::algorithm::dry_run;
use radmm::graph::{Graph, NodeId};
use radmm::privacy::{Bound, Guarantee, Mechanism, PrivacyEvent};
use radmm::problem::Problem;
use radmm::protocol::query::Query;
use rayon::prelude::*;
use thiserror::Error;

use super::calibrate::{self, PartyQueries, PricingError};
use crate::instantiate::Instance;
use crate::number_format::{count, epsilon};
use crate::{Method, Noise, Study};

/// A study, its graph, and the names and sizes of its parties.
pub struct Plan<'a> {
    instance: Instance<'a>,
    parties: Vec<PartySize>,
}

/// A study on its graph, and one of its parties.
#[derive(Clone, Copy)]
pub struct PartyPlan<'a> {
    /// The study on its graph.
    pub instance: &'a Instance<'a>,
    /// The party's node.
    pub node: NodeId,
    /// The party.
    pub party: &'a PartySize,
}

/// A party and the number of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartySize {
    /// `node 3`, or the value by which rows were partitioned.
    pub name: String,
    /// `B_i`.
    pub rows: usize,
}

/// The reason why the privacy that a study asks for is unattainable.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum UnattainableBudget {
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
        /// The party that would exceed it by most.
        party: String,
        /// The number of its rows.
        rows: usize,
        /// The number of its data steps.
        data_steps: usize,
        /// The total with as much noise as can be worked with.
        least: f64,
        /// The remedy.
        advice: &'static str,
    },
    /// The paper's theorem does not apply.
    #[error(
        "[privacy] bound = \"paper\": the paper's theorem does not cover the queries to {party}, with {}: {reason}; use \
         bound = \"tight\", or raise ridge or penalty",
        count(*rows, "row", "rows")
    )]
    PaperSilent {
        /// The party whose queries it does not cover.
        party: String,
        /// The number of its rows.
        rows: usize,
        /// The condition that fails.
        reason: &'static str,
    },
    /// The study's noise has no price.
    #[error("[privacy] the queries to {party} have no price: {reason}")]
    NoPrice {
        /// The party that would be queried.
        party: String,
        /// The reason.
        reason: String,
    },
}

/// The queries that one node will be asked.
pub struct PlannedQueries {
    /// The iterations of the queries.
    pub iterations: Vec<u32>,
    /// The queries, as far as their price depends on them.
    pub queries: Vec<Query>,
}

impl PlannedQueries {
    fn priced<'a>(
        &'a self,
        study: &Study,
        problem: &'a Problem,
        party: &PartySize,
    ) -> PartyQueries<'a> {
        PartyQueries {
            queries: &self.queries,
            problem,
            rows: party.rows,
            bound: study.privacy.bound,
        }
    }
}

impl PartyPlan<'_> {
    /// Returns the queries that the party will be asked.
    pub fn queries(&self) -> PlannedQueries {
        let Instance { study, graph, .. } = self.instance;
        let mut algorithm = self.instance.algorithm(self.node, Vec::new());
        let degree = graph.degree(self.node);
        let asked = dry_run::questions(&mut *algorithm, degree, study.algorithm.iterations);
        let (iterations, queries) = asked.into_iter().unzip();
        PlannedQueries {
            iterations,
            queries,
        }
    }

    /// Returns the party's noise: as the study says, or the least that keeps the party within the study's total.
    pub fn noise(&self) -> Result<Mechanism, UnattainableBudget> {
        let study = self.instance.study;
        let total = match study.privacy.noise {
            Noise::Given(mechanism) => return Ok(mechanism),
            Noise::Total(total) => total,
        };
        let template = total.kind.with_amount(1.0);
        let (problem, planned) = (self.instance.problem(self.node), self.queries());
        let queries = planned.priced(study, &problem, self.party);
        let found = queries.calibrate(&template, guarantee(study, total.epsilon));
        found.ok_or_else(
            || match queries.least_total(&template, study.privacy.delta) {
                Ok(least) => self.out_of_reach(least, total.epsilon),
                Err(error) => self.unattainable(&error),
            },
        )
    }

    /// Returns what the party will be charged, by iteration.
    pub fn charges(
        &self,
        mechanism: &Mechanism,
    ) -> Result<Vec<(u32, PrivacyEvent)>, UnattainableBudget> {
        let PlannedQueries {
            iterations,
            queries,
        } = self.queries();
        let problem = self.instance.problem(self.node);
        let charge = |(t, query): (u32, Query)| {
            let price = mechanism.price(&query, &problem, self.party.rows);
            let event = price.map_err(|error| UnattainableBudget::NoPrice {
                party: self.party.name.clone(),
                reason: error.to_string(),
            })?;
            Ok((t, event))
        };
        iterations.into_iter().zip(queries).map(charge).collect()
    }

    fn out_of_reach(&self, least: f64, wanted: f64) -> UnattainableBudget {
        let study = self.instance.study;
        let template = study.privacy.noise.template();
        UnattainableBudget::OutOfReach {
            wanted,
            party: self.party.name.clone(),
            rows: self.party.rows,
            data_steps: self.queries().iterations.len(),
            least,
            advice: advice(&template, &study.algorithm.method),
        }
    }

    fn unattainable(&self, error: &PricingError) -> UnattainableBudget {
        let party = self.party.name.clone();
        match error {
            PricingError::PaperSilent(reason) => UnattainableBudget::PaperSilent {
                party,
                rows: self.party.rows,
                reason,
            },
            PricingError::Invalid(reason) => UnattainableBudget::NoPrice {
                party,
                reason: reason.clone(),
            },
        }
    }
}

impl<'a> Plan<'a> {
    /// Creates the plan of a study whose parties, by node, are these.
    pub fn new(study: &'a Study, graph: &'a Graph, parties: Vec<PartySize>) -> Self {
        let rows = parties.iter().map(|party| party.rows).collect();
        Self {
            instance: Instance::new(study, graph, rows),
            parties,
        }
    }

    /// Returns the study on its graph.
    pub fn instance(&self) -> &Instance<'a> {
        &self.instance
    }

    /// Returns the parties by node.
    pub fn parties(&self) -> &[PartySize] {
        &self.parties
    }

    /// Returns the plan of node `i` alone.
    pub fn party(&self, i: usize) -> PartyPlan<'_> {
        PartyPlan {
            instance: &self.instance,
            node: NodeId(i as u32),
            party: &self.parties[i],
        }
    }

    /// Returns the study's noise by node: as it says, or the least that keeps every party within the study's total.
    pub fn noise(&self) -> Result<Vec<Mechanism>, UnattainableBudget> {
        let study = self.instance.study;
        let total = match study.privacy.noise {
            Noise::Given(mechanism) => return Ok(vec![mechanism; self.parties.len()]),
            Noise::Total(total) => total,
        };
        let template = total.kind.with_amount(1.0);
        let within = guarantee(study, total.epsilon);
        let found = self.per_party(|_| 0, |queries, _| queries.calibrate(&template, within));
        let missing = |i: &usize| found[*i].is_none();
        match (0..found.len()).filter(missing).collect::<Vec<_>>() {
            missing if missing.is_empty() => Ok(found.into_iter().flatten().collect()),
            missing => Err(self.worst(&missing, &template, total.epsilon)),
        }
    }

    /// Returns the least noise of the study's kind, by node, at which everyone stays within its total; `None` if a total is
    /// unattainable.
    pub fn noise_for(&self, totals: &[Guarantee]) -> Option<Vec<Mechanism>> {
        let template = self.instance.study.privacy.noise.template();
        let total = |i: usize| totals[i].epsilon.to_bits();
        let found = self.per_party(total, |queries, i| queries.calibrate(&template, totals[i]));
        found.into_iter().collect()
    }

    /// Returns `P(0), …, P(T)` by any bound, the largest of the parties'; `None` if the bound does not cover the study.
    pub fn largest_totals(&self, noise: &[Mechanism], bound: Bound) -> Option<Vec<f64>> {
        let delta = self.instance.study.privacy.delta;
        let spent = self.per_party(
            |i| amount_bits(&noise[i]),
            |queries, i| {
                let queries = PartyQueries { bound, ..queries };
                queries.totals(&noise[i], delta).ok()
            },
        );
        let spent: Option<Vec<Vec<f64>>> = spent.into_iter().collect();
        let iterations = |i| self.party(i).queries().iterations;
        Some(self.largest(&spent?, &iterations))
    }

    /// Returns the largest of the parties' totals after each iteration, from their totals after each query and the
    /// iterations of these queries.
    pub fn largest(&self, spent: &[Vec<f64>], iterations: &dyn Fn(usize) -> Vec<u32>) -> Vec<f64> {
        let length = self.instance.study.algorithm.iterations as usize + 1;
        let mut largest = vec![0.0_f64; length];
        for (i, spent) in spent.iter().enumerate() {
            let iterations = iterations(i);
            let mut totals = iterations.iter().zip(spent).peekable();
            let mut now = 0.0;
            for (t, largest) in largest.iter_mut().enumerate() {
                if let Some((_, total)) = totals.next_if(|(time, _)| **time as usize == t) {
                    now = *total;
                }
                *largest = largest.max(now);
            }
        }
        largest
    }

    /// Returns something about every node, on all threads. It is computed once for all nodes that are asked the same, have as
    /// many rows and do not differ in what `also` says: most nodes of a large network do not.
    pub fn per_party<T: Clone + Send + Sync>(
        &self,
        also: impl Fn(usize) -> u64,
        compute: impl Fn(PartyQueries<'_>, usize) -> T + Sync,
    ) -> Vec<T> {
        let Instance { study, graph, .. } = self.instance;
        let mut first = Vec::new();
        let mut class = BTreeMap::new();
        let mut class_of = Vec::with_capacity(self.parties.len());
        for (i, party) in self.parties.iter().enumerate() {
            let degree = graph.degree(NodeId(i as u32));
            let own = study.algorithm.method.own_parameters(i);
            let class = class
                .entry((party.rows, degree, own, also(i)))
                .or_insert_with(|| {
                    first.push(i);
                    first.len() - 1
                });
            class_of.push(*class);
        }
        let found: Vec<T> = first
            .into_par_iter()
            .map(|i| {
                let (problem, planned) = (
                    self.instance.problem(NodeId(i as u32)),
                    self.party(i).queries(),
                );
                compute(planned.priced(study, &problem, &self.parties[i]), i)
            })
            .collect();
        class_of
            .into_iter()
            .map(|class| found[class].clone())
            .collect()
    }

    /// Returns the reason why these parties cannot keep the study's total, for the one that is farthest from it.
    fn worst(&self, parties: &[usize], template: &Mechanism, wanted: f64) -> UnattainableBudget {
        let delta = self.instance.study.privacy.delta;
        let least = self.per_party(|_| 0, |queries, _| queries.least_total(template, delta));
        let mut worst = (parties[0], 0.0);
        for &i in parties {
            match &least[i] {
                Err(error) => return self.unattainable(i, error),
                Ok(least) if *least > worst.1 => worst = (i, *least),
                Ok(_) => {}
            }
        }
        self.party(worst.0).out_of_reach(worst.1, wanted)
    }

    /// Returns the reason why node `i` has no total.
    pub fn unattainable(&self, i: usize, error: &PricingError) -> UnattainableBudget {
        self.party(i).unattainable(error)
    }
}

/// The study's total at its `δ`.
fn guarantee(study: &Study, epsilon: f64) -> Guarantee {
    Guarantee {
        epsilon,
        delta: study.privacy.delta,
    }
}

/// Returns the bits of the amount of noise, which differ if two parties' noise does.
pub fn amount_bits(mechanism: &Mechanism) -> u64 {
    calibrate::amount(mechanism).map_or(0, f64::to_bits)
}

/// The remedy for an unattainable total. Objective perturbation charges for the Hessian, the less the more convex a query
/// is; noise on an answer can be made as cheap as double precision allows.
fn advice(template: &Mechanism, method: &Method) -> &'static str {
    match template {
        Mechanism::Objective { .. } if method.extra_ridge().is_some() => {
            "raise epsilon, ridge or extra_ridge"
        }
        Mechanism::Objective { .. } if method.recycle().is_some() => {
            "raise epsilon, ridge or penalty, take fewer iterations, or recycle more"
        }
        Mechanism::Objective { .. } => {
            "raise epsilon, ridge or penalty, take fewer iterations, or use r-admm, which asks less often"
        }
        _ => "raise epsilon",
    }
}
