//! The limits of what honest parties of a study can say, from public facts alone.
//!
//! What is impossible is misbehaviour: `neighbour_verifier` compares values with the limits of answers. What is only improbable is
//! suspicious: `suspicion` compares values with their noise.

use std::collections::BTreeMap;

use radmm::algorithm::Summands;
use radmm::curator::AnswerLimit;
use radmm::graph::{Graph, NodeId, SpanningTree};
use radmm::privacy::{IdealRelease, Mechanism};
use radmm::problem::Problem;
use radmm::protocol::query::Query;
use radmm::protocol::release::SPACING;
use radmm_study::Study;
use radmm_study::pricing::{PartySize, Plan};

/// The public facts about all parties of a study.
pub(crate) struct StudyLimits {
    columns: usize,
    /// The facts by node; empty if the parties do not declare their rows.
    parties: Vec<PartyFacts>,
    /// The noise of watched parties' values at data steps, by iteration.
    noise: BTreeMap<NodeId, BTreeMap<u32, ValueNoise>>,
    tree: SpanningTree,
}

/// The public facts about one party.
struct PartyFacts {
    problem: Problem,
    mechanism: Mechanism,
    rows: usize,
}

/// The noise of a party's value at a data step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueNoise {
    /// A distance that values of two data steps keep, but for a probability of 10⁻¹² in the whole study; negative where the grid on which
    /// they lie is too coarse for one.
    pub(crate) least_move: f64,
    /// A length that the noise in the value exceeds with a probability below 10⁻²⁰.
    pub(crate) reach: f64,
    /// The number of rows over which the value is a sum; one if it is none.
    pub(crate) rows: f64,
}

/// The probability with which an honest party is suspected of not moving, in a whole study.
const FALSE_ALARM: f64 = 1e-12;

impl StudyLimits {
    /// Collects the public facts of a study, and the noise of some parties' values.
    pub(crate) fn new(
        study: &Study,
        graph: &Graph,
        watched: impl IntoIterator<Item = NodeId>,
    ) -> Self {
        let mut limits = Self {
            columns: study.data.schema.width(),
            parties: Vec::new(),
            noise: BTreeMap::new(),
            tree: SpanningTree::of(graph),
        };
        let Some(plan) = plan(study, graph) else {
            return limits;
        };
        // A study whose noise is out of reach is not run.
        let mechanisms = plan.noise().unwrap_or_default();
        let facts = |(id, mechanism): (u32, Mechanism)| PartyFacts {
            problem: plan.instance().problem(NodeId(id)),
            mechanism,
            rows: plan.parties()[id as usize].rows,
        };
        limits.parties = (0..).zip(mechanisms).map(facts).collect();
        for node in watched {
            let noise = limits.compute_noise(&plan, node);
            limits.noise.insert(node, noise);
        }
        limits
    }

    /// Returns the limit of a party's answer to a query, if there is one.
    pub(crate) fn answer(&self, node: NodeId, query: &Query) -> Option<AnswerLimit> {
        let facts = self.parties.get(node.0 as usize)?;
        let size = (facts.rows, self.columns);
        AnswerLimit::new(query, &facts.mechanism, &facts.problem, size)
    }

    /// Returns the limit of a sum of parties' answers to a query, if there is one.
    ///
    /// Every summand has been checked by the party that added it, and a dishonest one may be as large as that allows.
    pub(crate) fn sum(
        &self,
        node: NodeId,
        summands: Summands,
        query: &Query,
    ) -> Option<AnswerLimit> {
        let nodes = match summands {
            Summands::Own => vec![node],
            Summands::Subtree => self.tree.subtree(node),
            Summands::All => self.tree.subtree(self.tree.root()),
        };
        let mut limits = nodes.into_iter().map(|node| self.answer(node, query));
        let first = limits.next()??;
        limits.try_fold(first, |sum, limit| Some(sum.plus(&limit?)))
    }

    /// Returns the noise of a watched party's values at data steps, by iteration; nothing without noise.
    pub(crate) fn value_noise(&self, node: NodeId) -> BTreeMap<u32, ValueNoise> {
        self.noise.get(&node).cloned().unwrap_or_default()
    }

    fn compute_noise(&self, plan: &Plan<'_>, node: NodeId) -> BTreeMap<u32, ValueNoise> {
        let Some(facts) = self.parties.get(node.0 as usize) else {
            return BTreeMap::new();
        };
        let degree = plan.instance().graph.degree(node);
        let algorithm = plan.instance().algorithm(node, Vec::new());
        let planned = plan.party(node.0 as usize).queries();
        let false_alarm = FALSE_ALARM / planned.queries.len().max(1) as f64;
        let steps = planned.iterations.iter().zip(&planned.queries);
        let noise = |(&t, query): (&u32, &Query)| {
            let event = facts.mechanism.price(query, &facts.problem, facts.rows);
            let width = query.width(self.columns);
            let (law, least_gain, largest_gain) = match (event.ok()?.ideal, query) {
                (IdealRelease::Exact, _) => return None,
                // The noise is minus a gradient of the objective, which has a Hessian between these two.
                (IdealRelease::Objective { law, .. }, Query::Minimise { quadratic, .. }) => {
                    let least = facts.problem.lipschitz() + quadratic;
                    let largest = facts.problem.ridge / f64::from(facts.problem.nodes) + quadratic;
                    (law, 1.0 / least, 1.0 / largest)
                }
                (IdealRelease::Objective { law, .. } | IdealRelease::Additive { law, .. }, _) => {
                    let gain = algorithm.answer_gain(t, degree);
                    (law, gain, gain)
                }
            };
            // Two values that are rounded to the grid can come nearer to each other by its spacing in every column.
            let rounding = SPACING * (width as f64).sqrt();
            let noise = ValueNoise {
                least_move: law.avoided_radius(width, false_alarm) * least_gain - 2.0 * rounding,
                reach: law.reach(width) * largest_gain,
                rows: match query {
                    Query::Minimise { .. } | Query::Gradient { .. } => 1.0,
                    Query::GradientSum { .. } | Query::GramSum { .. } | Query::RowSum { .. } => {
                        facts.rows as f64
                    }
                },
            };
            Some((t, noise))
        };
        steps.filter_map(noise).collect()
    }
}

/// Returns the plan of a study whose parties have declared their rows. A party alone has nobody to compare with limits.
fn plan<'a>(study: &'a Study, graph: &'a Graph) -> Option<Plan<'a>> {
    if graph.len() < 2 {
        return None;
    }
    let size = |party: &radmm_study::StudyParty| {
        let rows = party.rows?;
        let name = party.name.clone();
        Some(PartySize { name, rows })
    };
    let parties: Option<Vec<PartySize>> = study.parties.iter().map(size).collect();
    Some(Plan::new(study, graph, parties?))
}
