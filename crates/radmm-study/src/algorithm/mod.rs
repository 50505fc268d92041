//! The registry of algorithms: one entry for each, with everything that is known about it.
//!
//! A new algorithm is a file in the crate `radmm` with its mathematics, and an entry in `registry.rs`. Parsing, serialising,
//! pricing, simulating, certifying and the reference in docs/study.md ask the registry.

mod admm_rule;
mod one_answer;
mod parameter;
mod public_rule;
mod registry;

use radmm::algorithm::consensus::period;
use radmm::algorithm::schedule::Schedule;
use radmm::graph::{Graph, SpanningTree};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::{NetworkSection, NoiseFamily, NoiseKind, ProblemSection};

pub(crate) use admm_rule::AdmmRule;
pub use one_answer::OneAnswer;
pub use parameter::{ParameterInfo, ParameterValue, constant};
pub(crate) use public_rule::METRICS;
pub use public_rule::{AutoNumber, MetricKind};
pub use registry::{AlgorithmInfo, Asks, Method, NodePosition, REGISTRY};

/// The reason why an algorithm with varying parameters has no rate.
const VARIES: &str = "its parameters vary, so that no two periods are the same map";

impl Method {
    /// Returns the name in study files: `r-admm`.
    pub fn name(&self) -> &'static str {
        self.info().name
    }

    /// Returns whether its data steps ask for gradients; if not, they ask for minimisers.
    pub fn asks_for_gradients(&self) -> bool {
        self.info().asks == Asks::Gradients
    }

    /// Returns the kind of noise that suits its queries.
    pub fn noise_kind(&self, noise: NoiseFamily) -> NoiseKind {
        match self.info().asks {
            Asks::Gradients => NoiseKind::Gradient { noise },
            Asks::Minimisers => NoiseKind::objective(noise),
        }
    }

    /// Returns the value of a parameter, if the algorithm has it.
    pub fn get(&self, key: &str) -> Option<ParameterValue<'_>> {
        let mut parameters = self.parameters().into_iter();
        parameters.find_map(|(known, value)| (known == key).then_some(value))
    }

    /// Returns the penalty `η`, if it has one; the first node's, if each has its own.
    pub fn penalty(&self) -> Option<Schedule> {
        self.get("penalty")?.first()
    }

    /// Returns the damping `γ`, if it has one; the first node's, if each has its own.
    pub fn damping(&self) -> Option<Schedule> {
        self.get("damping")?.first()
    }

    /// Returns what it adds to the common ridge, if that is a parameter.
    pub fn extra_ridge(&self) -> Option<f64> {
        match self.get("extra_ridge")? {
            ParameterValue::Number(extra) => Some(extra),
            _ => None,
        }
    }

    /// Returns the recycled steps a data step; `None` if it has no recycled steps.
    pub fn recycle(&self) -> Option<u32> {
        match self.get("recycle")? {
            ParameterValue::Count(recycle) => Some(recycle),
            _ => None,
        }
    }

    /// Returns `consensus` with everything left to the public rule, for noise of this family and rows of so many columns.
    pub fn consensus(noise: NoiseFamily, columns: usize) -> Self {
        let metric = MetricKind::by_rule(Some(noise), columns);
        Self::Consensus {
            metric,
            metric_share: metric.share_by_rule(),
            metric_ridge: AutoNumber::Auto,
            steps: metric.steps_by_rule(),
            step: AutoNumber::Auto,
            momentum: AutoNumber::Auto,
        }
    }

    /// Returns `r-admm` with everything left to the public rule, and the number of its iterations.
    pub fn recycled(
        problem: &ProblemSection,
        network: &NetworkSection,
        noise: NoiseFamily,
    ) -> (Self, u32) {
        let rule = AdmmRule::new(problem, network, Asks::Minimisers, noise.is_pure());
        let recycle = 1;
        let method = Self::RecycledAdmm {
            penalty: Schedule::Constant(rule.penalty()),
            damping: Schedule::Constant(rule.damping()),
            recycle,
        };
        (method, rule.data_steps() * (recycle + 1))
    }

    /// Returns the number of iterations on a graph, if it follows from the parameters.
    pub fn iterations_on(&self, graph: &Graph) -> Option<u32> {
        let depth = || SpanningTree::of(graph).depth();
        Some(self.data_steps()? * period(depth()))
    }

    /// Returns the number of data steps, if it is a parameter.
    pub fn data_steps(&self) -> Option<u32> {
        match *self {
            Self::Consensus { metric, steps, .. } => {
                Some(steps + u32::from(metric != MetricKind::None))
            }
            _ => None,
        }
    }

    /// Returns the iterations from one data step to the next.
    pub fn period(&self) -> u32 {
        self.recycle().map_or(1, |recycle| recycle + 1)
    }

    /// Returns the same algorithm with a data step in every iteration; `None` if this is that algorithm.
    pub fn unrecycled(&self) -> Option<Self> {
        match self.period() {
            1 => None,
            _ => self.without_recycling(),
        }
    }

    /// Returns the reason why it has no rate of convergence at the optimum; `None` if it has one.
    pub fn no_rate(&self) -> Option<&'static str> {
        let varies = |(_, value): (_, ParameterValue<'_>)| {
            let mut schedules = value.schedules().iter();
            schedules.any(|schedule| constant(schedule).is_none())
        };
        let no_rate = self.info().no_rate;
        no_rate.or_else(|| self.parameters().into_iter().any(varies).then_some(VARIES))
    }

    /// Returns its name and parameters, as in `m-admm, η = 0.5 to 2, θ = 0.3`.
    pub fn summary(&self) -> String {
        let mut summary = self.name().to_owned();
        for (symbol, key) in [
            ("η", "penalty"),
            ("γ", "damping"),
            ("θ", "dual_step"),
            ("s", "step"),
        ] {
            if let Some(value) = self.get(key) {
                summary += &format!(", {symbol} = {}", value.summary());
            }
        }
        match self.recycle() {
            None | Some(1) => summary,
            Some(recycle) => format!("{summary}, recycle = {recycle}"),
        }
    }

    /// Returns a text that is equal for two nodes that have the same parameters.
    pub(crate) fn own_parameters(&self, node: usize) -> String {
        let parameters = self.parameters();
        let own = parameters.iter().filter_map(|(_, value)| match value {
            // Numbers are written with all their digits.
            ParameterValue::PerNode(schedules) => Some(format!("{:?};", schedules[node])),
            _ => None,
        });
        own.collect()
    }
}

// The keys of the file, the name first.
impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.name())?;
        for (key, value) in self.parameters() {
            map.serialize_entry(key, &value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(growth: f64) -> Schedule {
        Schedule::Growth { start: 2.0, growth }
    }

    #[test]
    fn a_schedule_that_never_changes_is_constant_in_any_form() {
        assert_eq!(constant(&growth(1.0)), Some(2.0));
        assert_eq!(constant(&growth(1.01)), None);
        let still = Schedule::Decay {
            start: 3.0,
            power: 0.0,
        };
        assert_eq!(constant(&still), Some(3.0));
    }

    #[test]
    fn a_summary_has_penalties_once_or_from_least_to_greatest() {
        let with = |penalty: &[f64]| {
            let penalty = penalty.iter().copied().map(Schedule::Constant).collect();
            let dual_step = 0.3;
            Method::MAdmm { penalty, dual_step }.summary()
        };
        assert_eq!(with(&[2.0, 2.0]), "m-admm, η = 2, θ = 0.3");
        assert_eq!(with(&[2.0, 0.5, 1.0]), "m-admm, η = 0.5 to 2, θ = 0.3");
        let recycled = Method::RecycledDlm {
            penalty: growth(1.5),
            damping: Schedule::Constant(0.25),
            recycle: 3,
        };
        assert_eq!(recycled.summary(), "r-dlm, η = 3…, γ = 0.25, recycle = 3");
        assert_eq!(Method::Local { extra_ridge: 1.0 }.summary(), "local");
    }

    #[test]
    fn an_algorithm_with_varying_parameters_has_no_rate() {
        let admm = |penalty| Method::Admm { penalty };
        assert_eq!(admm(growth(1.0)).no_rate(), None);
        assert_eq!(admm(growth(1.5)).no_rate(), Some(VARIES));
        let local = Method::Local { extra_ridge: 1.0 };
        assert_eq!(local.no_rate(), Some("it does not head for the optimum"));
    }

    #[test]
    fn nodes_differ_where_they_have_parameters_of_their_own() {
        let method = Method::MAdmm {
            penalty: [1.0, 2.0, 1.0].map(Schedule::Constant).to_vec(),
            dual_step: 1.0,
        };
        assert_eq!(method.own_parameters(0), method.own_parameters(2));
        assert_ne!(method.own_parameters(0), method.own_parameters(1));
    }
}
