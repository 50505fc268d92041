//! The parts of a node, made from a study and the sizes of its parties.

use std::sync::OnceLock;

use radmm::algorithm::{Algorithm, dry_run, init};
use radmm::graph::{Graph, NodeId, SpanningTree};
use radmm::privacy::{Guarantee, NoiseDistribution};
use radmm::problem::Problem;
use radmm::protocol::query::Query;

use crate::algorithm::NodePosition;
use crate::pricing::PartyQueries;
use crate::{Choice, Method, Noise, Start, Study};

/// A study on its graph, with the number of rows of every party. All parties know all of it.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// The study.
    pub study: &'a Study,
    /// The graph of the parties.
    pub graph: &'a Graph,
    /// `B_i` by node; empty if parties count alike and did not declare their rows: nothing depends on them then.
    rows: Vec<usize>,
    /// `Σ_i B_i`.
    total_rows: usize,
    tree: OnceLock<SpanningTree>,
    /// The noise on which the parameters of the algorithm depend.
    noise: OnceLock<Option<NoiseDistribution>>,
}

impl<'a> Instance<'a> {
    /// Creates an instance whose parties have these numbers of rows, by node.
    pub fn new(study: &'a Study, graph: &'a Graph, rows: Vec<usize>) -> Self {
        Self {
            study,
            graph,
            total_rows: rows.iter().sum(),
            rows,
            tree: OnceLock::new(),
            noise: OnceLock::new(),
        }
    }

    /// Creates the instance of a study between real parties, which declare the numbers of their rows.
    pub fn declared(study: &'a Study, graph: &'a Graph) -> Self {
        let rows: Option<Vec<usize>> = study.parties.iter().map(|party| party.rows).collect();
        Self::new(study, graph, rows.unwrap_or_default())
    }

    /// Returns `Σ_i B_i`.
    pub fn total_rows(&self) -> usize {
        self.total_rows
    }

    /// Returns a node's objective.
    pub fn problem(&self, id: NodeId) -> Problem {
        // Unknown only where nothing depends on it.
        let rows = self.rows.get(id.0 as usize).copied().unwrap_or(0);
        problem(self.study, rows, self.total_rows)
    }

    /// Returns a node's part of the algorithm, which continues from the dual `lambda` where it has one.
    pub fn algorithm(&self, id: NodeId, lambda: Vec<f64>) -> Box<dyn Algorithm> {
        let noise = match self.study.algorithm.method {
            Method::Consensus { .. } => *self.noise.get_or_init(|| self.common_noise()),
            _ => None,
        };
        self.build(id, lambda, noise)
    }

    /// Returns the noise of a sum over rows, which is the same for all parties; `None` without noise, and where no noise is
    /// enough for the study's total.
    fn common_noise(&self) -> Option<NoiseDistribution> {
        let privacy = &self.study.privacy;
        let template = privacy.noise.template();
        let Noise::Total(total) = privacy.noise else {
            return template.noise();
        };
        // Prices depend on the family of noise, and neither on its amount nor on the step.
        let mut algorithm = self.build(NodeId(0), Vec::new(), template.noise());
        let degree = self.graph.degree(NodeId(0));
        let asked = dry_run::questions(&mut *algorithm, degree, self.study.algorithm.iterations);
        let queries: Vec<Query> = asked.into_iter().map(|(_, query)| query).collect();
        let queries = PartyQueries {
            queries: &queries,
            problem: &self.problem(NodeId(0)),
            rows: 1,
            bound: privacy.bound,
        };
        let within = Guarantee {
            epsilon: total.epsilon,
            delta: privacy.delta,
        };
        queries.calibrate(&template, within)?.noise()
    }

    /// Returns everything that the study leaves to public rules: the study's own choices, and those that depend on the number of
    /// rows and on the noise.
    pub fn choices(&self) -> Vec<Choice> {
        let noise = match self.study.algorithm.method {
            Method::Consensus { .. } => *self.noise.get_or_init(|| self.common_noise()),
            _ => None,
        };
        let columns = self.study.data.schema.width();
        let position = self.position(NodeId(0), vec![0.0; columns], noise);
        let late = self.study.algorithm.method.row_dependent_choices(&position);
        self.study.choices.iter().cloned().chain(late).collect()
    }

    /// Returns what a node counts for: `N·B_i/Σ_j B_j` where rows count alike, else one.
    pub fn share(&self, id: NodeId) -> f64 {
        self.position(id, Vec::new(), None).share(id)
    }

    fn build(
        &self,
        id: NodeId,
        lambda: Vec<f64>,
        noise: Option<NoiseDistribution>,
    ) -> Box<dyn Algorithm> {
        let position = self.position(id, lambda, noise);
        self.study.algorithm.method.build(&position)
    }

    fn position(
        &self,
        id: NodeId,
        dual: Vec<f64>,
        noise: Option<NoiseDistribution>,
    ) -> NodePosition<'_> {
        NodePosition {
            graph: self.graph,
            id,
            dual,
            count: self.study.problem.count,
            rows: &self.rows,
            total_rows: self.total_rows,
            loss: self.study.problem.loss,
            noise,
            tree: &self.tree,
        }
    }
}

/// Returns the objective of a party with `rows` of the study's `total` rows.
pub fn problem(study: &Study, rows: usize, total: usize) -> Problem {
    let section = &study.problem;
    let nodes = study.network.nodes;
    Problem {
        loss: section.loss,
        weight: section.count.weight(section.weight, nodes, rows, total),
        ridge: section.ridge,
        nodes,
        tolerance: study.algorithm.tolerance,
        shape: Some(study.data.schema.shape()),
    }
}

/// Returns the model that a node starts from, `f_i(0)`.
pub fn start(study: &Study, id: NodeId, columns: usize) -> Vec<f64> {
    match study.algorithm.start {
        Start::Zeros => vec![0.0; columns],
        Start::Normal(deviation) => init::normal(study.run.seed, id, deviation, columns),
    }
}
