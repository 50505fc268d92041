//! Hostile neighbours of a victim that adds up along a tree: they choose every total, and with it the metric and the point of every
//! later question.
//!
//! A party takes a total from its parent. The root adds its children's values to its own, which they have seen by then. So
//! whoever surrounds a party gives it any total on the grid. These neighbours choose
//!
//! ```text
//! Gram matrix   w·vvᵀ with v = (0, 1), so that A shrinks the second axis: orthogonal rows become nearly opposite
//! mean row      (1, 0), so that steps along the second axis stay as they are
//! gradients     one that leads to (0, −r), where both slopes are largest, and zeros from then on
//! ```
//! They know the study, so they know the ridge of the metric and the step. Here both are read off the questions that the victim's
//! public algorithm asks.

use radmm::graph::SpanningTree;
use radmm::protocol::query::{Query, sum_scale};
use radmm::protocol::release::{FARTHEST, Release, SPACING};
use radmm::step_verifier::{ExpectedStep, StepVerifier};

use super::likelihood::{Vector, norm};
use super::victim::{Axes, PHI, VictimConfig};

/// The margins at the point to which the neighbours lead, far beyond the curvature of any loss.
const MARGIN: f64 = 30.0;
/// The largest size of a total: half of what the grid holds, since the root's children subtract its own value.
const LARGEST: f64 = FARTHEST as f64 * SPACING / 2.0;

/// The totals of a run, as hostile neighbours choose them.
#[derive(Clone, Debug)]
pub(super) struct HostileTotals {
    /// The iterations of the questions, and the total of the answers to each.
    totals: Vec<(u32, Vec<f64>)>,
    /// Whether the victim adds up the values of all its neighbours.
    is_root: bool,
}

impl HostileTotals {
    /// Returns the totals against a victim; `None` if its algorithm takes no sums.
    pub(super) fn against(config: &VictimConfig) -> Option<Self> {
        let queries = config.queries();
        let is_sum =
            |query: &Query| !matches!(query, Query::Minimise { .. } | Query::Gradient { .. });
        if !queries.iter().all(|(_, query)| is_sum(query)) {
            return None;
        }
        let unit = sum_scale(config.total_rows) * config.total_rows as f64;
        let axes = Axes::of(&config.mechanism);
        let of = |query: &Query| match query {
            Query::GramSum { .. } => vec![0.0, 0.0, unit],
            Query::RowSum { .. } => axes.turn([unit, 0.0]).to_vec(),
            _ => vec![0.0; 2],
        };
        let mut totals = Self {
            totals: queries.iter().map(|(t, query)| (*t, of(query))).collect(),
            is_root: SpanningTree::of(&config.graph).root() == config.id,
        };
        totals.choose_metric(config);
        totals.choose_point(config, axes.turn([0.0, unit]));
        Some(totals)
    }

    /// Makes rows at an angle of 45° to the first axis nearly opposite, if there is a metric.
    fn choose_metric(&mut self, config: &VictimConfig) {
        let asked = self.questions(config);
        let metric = asked.iter().find_map(|query| match query {
            Query::GradientSum { metric, .. } => metric.clone(),
            _ => None,
        });
        let Some(metric) = metric else { return };
        // A = diag(λ^−½, (w − √2·λ + λ)^−½), whose quotient is to be tan φ: √2·λ is what the public rule cuts off eigenvalues.
        let ridge = libm::pow(metric.apply(&[1.0, 0.0])[0], -2.0);
        let cut = std::f64::consts::SQRT_2;
        let weight = ridge * (libm::pow(libm::tan(PHI), -2.0) - 1.0 + cut);
        self.totals[0].1[2] = (self.totals[0].1[2] * weight).min(LARGEST);
    }

    /// Makes the first gradient lead to where both slopes are largest, if it is followed by another. `up` is the mean gradient
    /// of norm one that leads there.
    fn choose_point(&mut self, config: &VictimConfig, up: Vector) {
        let is_gradient = |query: &Query| matches!(query, Query::GradientSum { .. });
        let Some(first) = self.questions(config).iter().position(is_gradient) else {
            return;
        };
        self.totals[first].1 = up.to_vec();
        // The point after a step of this length.
        let Some(Query::GradientSum { at, .. }) = self.questions(config).get(first + 1).cloned()
        else {
            return;
        };
        let longest = LARGEST / norm(&up);
        let factor = (MARGIN / libm::sin(PHI) / norm(&at)).min(longest);
        self.totals[first].1 = up.iter().map(|x| x * factor).collect();
    }

    /// Returns the questions that these totals lead to, whatever the victim's answers are.
    fn questions(&self, config: &VictimConfig) -> Vec<Query> {
        let degree = config.graph.degree(config.id);
        let mut public = StepVerifier::new(config.algorithm(2), zeros(2));
        let mut asked = Vec::new();
        for iteration in 0..config.iterations {
            let messages = self.messages(iteration, public.last(), degree);
            let next = match public.expect(&messages) {
                ExpectedStep::Asked(query) => {
                    let answer = zeros(query.width(2));
                    asked.push(query);
                    answer
                }
                ExpectedStep::Recycled(Some(value)) => value,
                ExpectedStep::Recycled(None) => break,
            };
            public.advance(next);
        }
        asked
    }

    /// Returns the neighbours' messages of an iteration. They come after the victim's own value.
    pub(super) fn messages(&self, iteration: u32, own: &Release, degree: usize) -> Vec<Release> {
        let asked = self.totals.iter().rev().find(|(t, _)| *t <= iteration);
        let Some((_, total)) = asked else {
            return vec![zeros(2); degree];
        };
        if !self.is_root {
            return vec![rounded(total); degree];
        }
        let rest: Vec<f64> = total
            .iter()
            .zip(own.values())
            .map(|(t, own)| t - own)
            .collect();
        let mut messages = vec![zeros(total.len()); degree];
        messages[0] = rounded(&rest);
        messages
    }
}

fn zeros(width: usize) -> Release {
    rounded(&vec![0.0; width])
}

fn rounded(values: &[f64]) -> Release {
    Release::rounded(values).expect("within the grid: its size is limited")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::builtin_cases::sum_victim;
    use radmm::graph::{Graph, NodeId, Topology};
    use radmm::privacy::NoiseDistribution;
    use radmm::problem::Loss;
    use radmm_study::algorithm::MetricKind;

    /// The questions to a party of a path of five: the root is in the middle.
    fn questions(id: u32, metric: MetricKind) -> Vec<Query> {
        let law = NoiseDistribution::gaussian(4.0);
        let config = VictimConfig {
            graph: Graph::new(&Topology::Path, 5).unwrap(),
            id: NodeId(id),
            iterations: 20,
            ..sum_victim(law, Loss::Logistic, metric, 0.25, 3)
        };
        HostileTotals::against(&config).unwrap().questions(&config)
    }

    #[test]
    fn hostile_neighbours_choose_metric_and_point_of_any_party_of_the_tree() {
        for metric in [MetricKind::None, MetricKind::Mean, MetricKind::Gram] {
            let of_root = questions(2, metric);
            assert_eq!(of_root, questions(0, metric));
            assert_eq!(of_root, questions(1, metric));
            let Some(Query::GradientSum { at, metric: by, .. }) = of_root.last() else {
                panic!("{of_root:?}")
            };
            let margin = at[1] * libm::sin(PHI);
            assert!(at[0].abs() < 1e-9 && margin < -0.9 * MARGIN, "{at:?}");
            assert_eq!(by.is_some(), metric == MetricKind::Gram);
            if let Some(by) = by {
                let (first, second) = (by.apply(&[1.0, 0.0]), by.apply(&[0.0, 1.0]));
                assert!((second[1] / first[0] / libm::tan(PHI) - 1.0).abs() < 1e-6);
            }
        }
    }
}
