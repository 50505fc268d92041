//! The registry of algorithms: one entry for each, with everything that is known about it.
//!
//! A new algorithm is a file in the crate `radmm` with its mathematics, and an entry in `registry!` below. Parsing,
//! serialising, pricing, simulating, certifying and the reference in docs/study.md ask the registry.

use radmm::public::admm::{Admm, Penalty};
use radmm::public::baseline::{Average, Local};
use radmm::public::gradient::{Dgd, Dlm};
use radmm::public::graph::{Graph, NodeId};
use radmm::public::recycled::Recycled;
use radmm::public::release::Algorithm;
use radmm::public::schedule::Schedule;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::StudyError;
use crate::number_format;
use crate::parse::algorithm::Parameters;
use crate::parse::schedule;
use crate::{NoiseFamily, NoiseKind};

/// The facts about an algorithm that do not depend on its parameters.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// The name in study files: `r-admm`.
    pub name: &'static str,
    /// The name in prose: R-ADMM.
    pub title: &'static str,
    /// One iteration, as docs/study.md has it.
    pub iteration: &'static str,
    /// The kind of query that its data steps ask.
    pub asks: Asks,
    /// Whether its parties need to exchange messages.
    pub communicates: bool,
    /// The reason why it has no rate of convergence at the optimum, whatever its parameters; `None` if it has one.
    pub no_rate: Option<&'static str>,
    /// The parameters that it has beyond those of every algorithm.
    pub parameters: &'static [ParameterInfo],
    pub(crate) parse: fn(&Parameters<'_>) -> Result<Method, StudyError>,
}

/// The kind of query that the data steps of an algorithm ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// The minimiser of the local objective and a quadratic.
    Minimisers,
    /// The gradient of the local objective.
    Gradients,
}

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The key in study files: `penalty`.
    pub key: &'static str,
    /// Whether every node may have a value of its own.
    pub per_node: bool,
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterValue<'a> {
    /// A value for every iteration.
    Schedule(&'a Schedule),
    /// A schedule for every node.
    PerNode(&'a [Schedule]),
    /// A whole number.
    Count(u32),
    /// A number.
    Number(f64),
}

/// A node that is given its part of an algorithm.
pub struct NodePosition<'a> {
    /// The graph of all nodes.
    pub graph: &'a Graph,
    /// The node.
    pub id: NodeId,
    /// The dual `λ_i` that it continues from, if its algorithm has one.
    pub dual: Vec<f64>,
}

impl NodePosition<'_> {
    fn index(&self) -> usize {
        self.id.0 as usize
    }

    fn admm(&self, penalty: Penalty) -> Admm {
        Admm::with_dual(penalty, self.dual.clone())
    }

    fn dlm(&self, penalty: &Schedule, damping: &Schedule) -> Dlm {
        Dlm::with_dual(Penalty::common(*penalty), *damping, self.dual.clone())
    }

    /// The penalty of this node alone, with a dual step that all nodes share.
    fn own_penalty(&self, penalties: &[Schedule], dual_step: f64) -> Penalty {
        Penalty {
            primal: penalties[self.index()],
            dual: Schedule::Constant(dual_step),
        }
    }
}

/// Generates [`Method`] and [`REGISTRY`] from the entries. The expressions after `build`, `unrecycled` and `exact` see
/// the parameters by reference under their names.
macro_rules! registry {
    ($(
        $(#[$doc:meta])*
        $variant:ident { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* } {
            info { $( $fact:ident : $value:expr, )* },
            build |$node:ident| $build:expr,
            unrecycled $unrecycled:expr,
            exact $exact:expr,
        }
    )*) => {
        /// An algorithm and its parameters. Penalties `η` are positive and dampings `γ` non-negative over all iterations.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Method {
            $( $(#[$doc])* $variant { $( $(#[$field_doc])* $field: $type, )* }, )*
        }

        /// All algorithms, in the order of docs/study.md.
        pub static REGISTRY: &[AlgorithmInfo] = &[$( AlgorithmInfo {
            $( $fact: $value, )*
            parameters: &[$( ParameterInfo {
                key: stringify!($field),
                per_node: <$type as Parameter>::PER_NODE,
            }, )*],
            parse: |parameters| Ok(Method::$variant {
                $( $field: Parameter::parse(parameters, stringify!($field))?, )*
            }),
        }, )*];

        #[allow(unused_variables)]
        impl Method {
            /// Returns the facts that do not depend on its parameters.
            pub fn info(&self) -> &'static AlgorithmInfo {
                enum Index { $( $variant, )* }
                let index = match self { $( Self::$variant { .. } => Index::$variant, )* };
                &REGISTRY[index as usize]
            }

            /// Returns its parameters by their keys, in the order of the serialised study.
            pub fn parameters(&self) -> Vec<(&'static str, ParameterValue<'_>)> {
                match self { $(
                    Self::$variant { $( $field, )* } => {
                        vec![$( (stringify!($field), Parameter::value($field)), )*]
                    }
                )* }
            }

            /// Builds a node's part of the algorithm.
            pub fn build(&self, position: &NodePosition<'_>) -> Box<dyn Algorithm> {
                match self { $(
                    Self::$variant { $( $field, )* } => {
                        let $node = position;
                        Box::new($build)
                    }
                )* }
            }

            fn without_recycling(&self) -> Option<Self> {
                match self { $( Self::$variant { $( $field, )* } => $unrecycled, )* }
            }

            /// Returns the algorithm that minimises exactly in every iteration, with the same penalties; `None` if this is
            /// that algorithm, or has no such form.
            pub fn exact(&self) -> Option<Self> {
                match self { $( Self::$variant { $( $field, )* } => $exact, )* }
            }
        }
    };
}

registry! {
    /// Conventional ADMM.
    Admm {
        /// `η`.
        penalty: Schedule,
    } {
        info {
            name: "admm",
            title: "ADMM",
            iteration: "conventional ADMM: `f_i ← Minimise(a, b)` with `a = 2ηV_i`, `b = 2λ_i − η Σ_j (f_i + f_j)`; then \
                        `λ_i ← λ_i + (η/2) Σ_j (f_i − f_j)` with the new models",
            asks: Asks::Minimisers,
            communicates: true,
            no_rate: None,
        },
        build |node| node.admm(Penalty::common(*penalty)),
        unrecycled None,
        exact None,
    }

    /// R-ADMM: after each data step, recycled steps that reuse its gradient.
    RecycledAdmm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
        /// Recycled steps a data step.
        recycle: u32,
    } {
        info {
            name: "r-admm",
            title: "R-ADMM",
            iteration: "data iterations as `admm`; recycled ones \
                        `f_i ← p − [g + 2λ_i + η(2V_i·p − Σ_j (f_i + f_j))] / (2ηV_i + γ)`, `λ_i` as it is",
            asks: Asks::Minimisers,
            communicates: true,
            no_rate: None,
        },
        build |node| Recycled::new(node.admm(Penalty::common(*penalty)), *damping, *recycle),
        unrecycled Some(Method::Admm { penalty: *penalty }),
        exact Some(Method::Admm { penalty: *penalty }),
    }

    /// M-ADMM: every node has its own penalty, which does not decrease.
    MAdmm {
        /// `η_i`, one a node.
        penalty: Vec<Schedule>,
        /// `θ`, at most every penalty.
        dual_step: f64,
    } {
        info {
            name: "m-admm",
            title: "M-ADMM",
            iteration: "`admm` with a penalty `η_i` for each node, which does not decrease, and `θ` for `η` in the update of `λ_i`",
            asks: Asks::Minimisers,
            communicates: true,
            no_rate: None,
        },
        build |node| node.admm(node.own_penalty(penalty, *dual_step)),
        unrecycled None,
        exact None,
    }

    /// M-ADMM and R-ADMM together.
    MRecycledAdmm {
        /// `η_i`, one a node.
        penalty: Vec<Schedule>,
        /// `γ_i`, one a node.
        damping: Vec<Schedule>,
        /// Recycled steps a data step.
        recycle: u32,
        /// `θ`, at most every penalty.
        dual_step: f64,
    } {
        info {
            name: "mr-admm",
            title: "MR-ADMM",
            iteration: "`m-admm` in data iterations, `r-admm`'s recycled ones with `η_i` and `γ_i`",
            asks: Asks::Minimisers,
            communicates: true,
            no_rate: None,
        },
        build |node| {
            let admm = node.admm(node.own_penalty(penalty, *dual_step));
            Recycled::new(admm, damping[node.index()], *recycle)
        },
        unrecycled Some(Method::MAdmm { penalty: penalty.clone(), dual_step: *dual_step }),
        exact Some(Method::MAdmm { penalty: penalty.clone(), dual_step: *dual_step }),
    }

    /// ADMM on the linearised objective.
    Dlm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
    } {
        info {
            name: "dlm",
            title: "DLM",
            iteration: "linearised ADMM: with `g = Gradient(f_i)` and `p = f_i`, the step of `r-admm`'s recycled iterations; then \
                        `λ_i` as in `admm`",
            asks: Asks::Gradients,
            communicates: true,
            no_rate: None,
        },
        build |node| node.dlm(penalty, damping),
        unrecycled None,
        exact Some(Method::Admm { penalty: *penalty }),
    }

    /// DLM with recycled steps.
    RecycledDlm {
        /// `η`.
        penalty: Schedule,
        /// `γ`.
        damping: Schedule,
        /// Recycled steps a data step.
        recycle: u32,
    } {
        info {
            name: "r-dlm",
            title: "R-DLM",
            iteration: "data iterations as `dlm`, recycled ones as in `r-admm`",
            asks: Asks::Gradients,
            communicates: true,
            no_rate: None,
        },
        build |node| Recycled::new(node.dlm(penalty, damping), *damping, *recycle),
        unrecycled Some(Method::Dlm { penalty: *penalty, damping: *damping }),
        exact Some(Method::Admm { penalty: *penalty }),
    }

    /// Decentralised gradient descent.
    Dgd {
        /// `s`.
        step: Schedule,
    } {
        info {
            name: "dgd",
            title: "DGD",
            iteration: "gradient descent: `f_i ← Σ_j w_ij f_j − s·Gradient(f_i)`, with Metropolis weights `w`, the sum over i itself too",
            asks: Asks::Gradients,
            communicates: true,
            no_rate: Some("dgd comes to rest beside the optimum, or creeps up on it"),
        },
        build |node| Dgd::new(node.graph.metropolis(node.id), *step),
        unrecycled None,
        exact None,
    }

    /// Every node alone.
    Local {
        /// `a`, added to the ridge.
        extra_ridge: f64,
    } {
        info {
            name: "local",
            title: "every node alone",
            iteration: "every node alone: `f_i = Minimise(a, 0)` in the first iteration, and it stays",
            asks: Asks::Minimisers,
            communicates: false,
            no_rate: Some("it does not head for the optimum"),
        },
        build |node| Local::new(*extra_ridge),
        unrecycled None,
        exact None,
    }

    /// Every node alone, then the mean of all models.
    Average {
        /// `a`, added to the ridge.
        extra_ridge: f64,
    } {
        info {
            name: "average",
            title: "averaged once",
            iteration: "every node alone in the first iteration, `f_i = Minimise(a, 0)`; from then on gossip, `f_i ← Σ_j w_ij f_j`, \
                        which tends to the mean",
            asks: Asks::Minimisers,
            communicates: true,
            no_rate: Some("it does not head for the optimum"),
        },
        build |node| Average::new(*extra_ridge, node.graph.metropolis(node.id)),
        unrecycled None,
        exact None,
    }
}

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

impl ParameterValue<'_> {
    /// Returns the schedules of all nodes, or the one that they share; none if the value is a number.
    pub fn schedules(&self) -> &[Schedule] {
        match self {
            Self::Schedule(schedule) => std::slice::from_ref(schedule),
            Self::PerNode(schedules) => schedules,
            Self::Count(_) | Self::Number(_) => &[],
        }
    }

    fn first(&self) -> Option<Schedule> {
        self.schedules().first().copied()
    }

    /// Returns the value as text: of a schedule that at the first iteration, the least and the greatest if nodes differ.
    fn summary(&self) -> String {
        let of = |schedule: &Schedule| match schedule {
            Schedule::Constant(value) => number_format::as_typed(*value),
            varying => format!("{}…", number_format::as_typed(varying.at(1))),
        };
        match self {
            Self::Count(count) => count.to_string(),
            Self::Number(number) => number_format::as_typed(*number),
            Self::Schedule(schedule) => of(schedule),
            Self::PerNode(schedules) => {
                let by_start = |a: &&Schedule, b: &&Schedule| a.at(1).total_cmp(&b.at(1));
                let (least, greatest) = (
                    schedules.iter().min_by(by_start),
                    schedules.iter().max_by(by_start),
                );
                match least.zip(greatest) {
                    Some((_, only)) if schedules.iter().all(|schedule| schedule == only) => {
                        of(only)
                    }
                    Some((least, greatest)) => format!("{} to {}", of(least), of(greatest)),
                    None => String::new(),
                }
            }
        }
    }
}

/// Returns the value of a schedule, if it is the same at all iterations.
pub fn constant(schedule: &Schedule) -> Option<f64> {
    match *schedule {
        Schedule::Constant(value) => Some(value),
        Schedule::Growth { start, growth } => (growth == 1.0).then_some(start),
        Schedule::Decay { start, power } => (power == 0.0).then_some(start),
    }
}

/// A type of values of parameters.
trait Parameter: Sized {
    /// Whether there is a value for every node.
    const PER_NODE: bool = false;

    /// Reads the value of `key`.
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError>;

    fn value(&self) -> ParameterValue<'_>;
}

impl Parameter for Schedule {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.schedule(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Schedule(self)
    }
}

impl Parameter for Vec<Schedule> {
    const PER_NODE: bool = true;

    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.schedules(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::PerNode(self)
    }
}

impl Parameter for u32 {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.count(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Count(*self)
    }
}

impl Parameter for f64 {
    fn parse(parameters: &Parameters<'_>, key: &str) -> Result<Self, StudyError> {
        parameters.number(key)
    }

    fn value(&self) -> ParameterValue<'_> {
        ParameterValue::Number(*self)
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

impl Serialize for ParameterValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Schedule(schedule) => schedule.serialize(serializer),
            Self::PerNode(schedules) => schedule::serialize(schedules, serializer),
            Self::Count(count) => count.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
        }
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
