//! The audit without a study: every mechanism, for one query and over a whole transcript, and every way to recycle.

use radmm::algorithm::consensus::period;
use radmm::algorithm::schedule::Schedule;
use radmm::graph::{Graph, NodeId, SpanningTree, Topology};
use radmm::privacy::{Bound, Mechanism, NoiseDistribution, NoiseFamily, NoiseScaling};
use radmm::problem::{Loss, Problem, RowShape};
use radmm::protocol::query::sum_scale;
use radmm_study::algorithm::{AutoNumber, MetricKind};
use radmm_study::number_format::count;
use radmm_study::{Method, Noise, Study};

use super::attack::Attack;
use super::case::AuditCase;
use super::victim::{NeighbourBehaviour, ROWS, VictimConfig};
use crate::experiment::Experiment;

/// A large penalty, so that the curvature's part of the price, `ln(1 + x)`, is small: where both slopes are −1 there is no
/// curvature.
const ETA: Schedule = Schedule::Constant(20.0);
const GAMMA: Schedule = Schedule::Constant(1.0);
const GROWING: Schedule = Schedule::Growth {
    start: 20.0,
    growth: 1.1,
};
const HINGE: Loss = Loss::SmoothHinge { width: 0.5 };
/// A hinge whose slope is −1 at the origin, where every run of `consensus` begins.
pub(super) const WIDE_HINGE: Loss = Loss::SmoothHinge { width: 1.0 };
/// The number of data steps, with a recycled step after each but the last.
const DATA_STEPS: u32 = 3;
/// `δ` of Gaussian noise. At a smaller one, tails that are too rare to be counted decide.
const DELTA: f64 = 1e-3;

/// The noise in a linear term at which some ten thousand runs resolve one data step well: ε is about 2 with gamma and Laplace
/// noise and 3 with Gaussian noise. It is fixed and not calibrated to a total: a wrong price must not choose its own noise.
pub(super) const NOISE_FOR_ONE_STEP: [NoiseDistribution; 3] = [
    NoiseDistribution::Gamma { rate: 1.0 },
    NoiseDistribution::Laplace { rate: 0.7 },
    NoiseDistribution::Gaussian { sigma: 2.3 },
];
/// The same noise for all data steps: ε is about 3.
const NOISE_FOR_ALL_STEPS: [NoiseDistribution; 3] = [
    NoiseDistribution::Gamma { rate: 0.5 },
    NoiseDistribution::Laplace { rate: 0.35 },
    NoiseDistribution::Gaussian { sigma: 4.0 },
];

/// Returns all kinds of mechanism, each with as much noise as a linear term of this distribution.
fn mechanisms(laws: [NoiseDistribution; 3]) -> Vec<(Mechanism, Loss)> {
    let mut all = Vec::new();
    for law in laws {
        all.push(objective(law));
        all.push(Mechanism::Objective {
            // a = 2η(1)V.
            law: law.scaled(1.0 / (2.0 * GROWING.at(1))),
            scale: NoiseScaling::Penalty,
        });
        all.push(Mechanism::Output {
            // m = 2ηV, and a little.
            law: law.scaled(1.0 / (2.0 * ETA.at(1))),
        });
        all.push(Mechanism::Gradient { law });
    }
    let logistic = all.into_iter().map(|mechanism| (mechanism, Loss::Logistic));
    let hinge = laws.map(|law| (objective(law), HINGE));
    logistic.chain(hinge).collect()
}

/// Returns all attacks.
pub(super) fn cases() -> Vec<AuditCase> {
    let mut cases = Vec::new();
    for (steps, laws) in [(1, NOISE_FOR_ONE_STEP), (DATA_STEPS, NOISE_FOR_ALL_STEPS)] {
        for (mechanism, loss) in mechanisms(laws) {
            cases.push(AuditCase {
                victim: victim(mechanism, loss, 2 * steps - 1),
                attack: Attack::Likelihood,
                label: count(steps as usize, "step", "steps"),
            });
        }
    }
    cases.extend([curvature(), two_answers(), accomplice(2)]);
    cases.extend(sums());
    cases
}

/// Returns attacks on every kind of sum over rows, and on whole runs of `consensus`.
pub(super) fn sums() -> Vec<AuditCase> {
    let mut cases = Vec::new();
    for (one, all) in NOISE_FOR_ONE_STEP.into_iter().zip(NOISE_FOR_ALL_STEPS) {
        let mut case = |label: &str, victim| {
            cases.push(AuditCase {
                victim,
                attack: Attack::Likelihood,
                label: label.to_owned(),
            });
        };
        let first_answer = |metric| VictimConfig {
            iterations: 1,
            // Half of the budget for the first answer: as much as the gradient costs.
            ..sum_victim(one, Loss::Logistic, metric, 0.5, 1)
        };
        let whole_run = |loss, metric| sum_victim(all, loss, metric, 0.25, DATA_STEPS);
        let plain = MetricKind::None;
        case(
            "gradient",
            sum_victim(one, Loss::CutLogistic, plain, 0.0, 1),
        );
        case("3 gradients", whole_run(Loss::Logistic, plain));
        case("mean row", first_answer(MetricKind::Mean));
        case("mean + 3", whole_run(WIDE_HINGE, MetricKind::Mean));
        // In a metric rows are dense, which the ℓ₁ norm makes too expensive.
        if one.family() != NoiseFamily::Laplace {
            let gram = MetricKind::Gram;
            case("Gram matrix", first_answer(gram));
            // The Gram matrix costs next to nothing.
            case("in a metric", sum_victim(one, WIDE_HINGE, gram, 1e-6, 1));
            case("Gram + 3", whole_run(WIDE_HINGE, gram));
        }
    }
    cases.push(sum_accomplice(2));
    cases
}

/// Returns an attack that succeeds if two parties share noise. All parties are asked the same at the same time, so that nothing but
/// their keys keeps their noise apart.
pub(super) fn sum_accomplice(apart: u32) -> AuditCase {
    let [.., gaussian] = NOISE_FOR_ONE_STEP;
    AuditCase {
        victim: sum_victim(gaussian, WIDE_HINGE, MetricKind::None, 0.0, 1),
        attack: Attack::Accomplice { apart },
        label: "accomplice".to_owned(),
    }
}

/// Returns a victim of `consensus` with `steps` gradients, whose parent in the tree is hostile. `law` is the noise of a gradient
/// whose sensitivity is 2; `share` is the metric's part of the budget.
pub(super) fn sum_victim(
    law: NoiseDistribution,
    loss: Loss,
    metric: MetricKind,
    share: f64,
    steps: u32,
) -> VictimConfig {
    let total_rows = 2 * ROWS;
    let scale = loss.largest_slope() * sum_scale(total_rows);
    let gradient = Mechanism::gradient(law.scaled(scale));
    let sums = steps + u32::from(metric != MetricKind::None);
    VictimConfig {
        method: Method::Consensus {
            metric,
            metric_share: share,
            metric_ridge: AutoNumber::Given(0.01),
            steps,
            step: AutoNumber::Given(1.0),
            momentum: AutoNumber::Given(0.3),
        },
        // Node 0 is the root.
        id: NodeId(1),
        iterations: sums * period(1),
        ..victim(gradient, loss, 1)
    }
}

/// Returns an attack on the other part of the price of objective perturbation: `x = 2`, so that two thirds of it are `ln(1 + x)`.
pub(super) fn curvature() -> AuditCase {
    let law = NoiseDistribution::Gamma { rate: 0.25 };
    let victim = victim(objective(law), Loss::Logistic, 1);
    AuditCase {
        victim: VictimConfig {
            // m = ρ/N + 2ηV = 0.05 + 0.075, and x = C·c₁/(B·m).
            method: Method::Admm {
                penalty: Schedule::Constant(0.0375),
            },
            neighbours: NeighbourBehaviour::AtOrigin,
            ..victim
        },
        attack: Attack::Likelihood,
        label: "at the bend".to_owned(),
    }
}

/// Returns an attack that succeeds if noise is used twice: two queries in a row, the second one about nothing.
pub(super) fn two_answers() -> AuditCase {
    let victim = victim(objective(NOISE_FOR_ONE_STEP[0]), Loss::Logistic, 2);
    AuditCase {
        victim: VictimConfig {
            method: Method::Admm { penalty: ETA },
            neighbours: NeighbourBehaviour::Reversing,
            ..victim
        },
        attack: Attack::TwoAnswers,
        label: "two answers".to_owned(),
    }
}

/// Returns an attack that succeeds if two parties share noise: one is the attacker's.
pub(super) fn accomplice(apart: u32) -> AuditCase {
    AuditCase {
        victim: victim(objective(NOISE_FOR_ONE_STEP[0]), Loss::Logistic, 1),
        attack: Attack::Accomplice { apart },
        label: "accomplice".to_owned(),
    }
}

fn objective(law: NoiseDistribution) -> Mechanism {
    let scale = NoiseScaling::Fixed;
    Mechanism::Objective { law, scale }
}

fn law(mechanism: &Mechanism) -> NoiseDistribution {
    match *mechanism {
        // None of the cases is without noise.
        Mechanism::None => NOISE_FOR_ONE_STEP[0],
        Mechanism::Objective { law, .. }
        | Mechanism::Output { law }
        | Mechanism::Gradient { law } => law,
    }
}

/// Returns a victim with one hostile neighbour.
pub(super) fn victim(mechanism: Mechanism, loss: Loss, iterations: u32) -> VictimConfig {
    let method = match mechanism {
        Mechanism::Gradient { .. } => Method::RecycledDlm {
            penalty: ETA,
            damping: GAMMA,
            recycle: 1,
        },
        // Noise that grows with the penalty is there for penalties that grow.
        Mechanism::Objective {
            scale: NoiseScaling::Penalty,
            ..
        } => Method::MRecycledAdmm {
            penalty: vec![GROWING; 2],
            damping: vec![GAMMA; 2],
            recycle: 1,
            dual_step: 20.0,
        },
        _ => Method::RecycledAdmm {
            penalty: ETA,
            damping: GAMMA,
            recycle: 1,
        },
    };
    let delta = match law(&mechanism) {
        NoiseDistribution::Gamma { .. } | NoiseDistribution::Laplace { .. } => 0.0,
        NoiseDistribution::Gaussian { .. } => DELTA,
    };
    VictimConfig {
        method,
        graph: Graph::new(&Topology::Path, 2).expect("two nodes make a path"),
        id: NodeId(0),
        total_rows: 2 * ROWS,
        problem: Problem {
            loss,
            weight: 2.0,
            ridge: 0.1,
            nodes: 2,
            tolerance: 1e-10,
            shape: Some(RowShape::dense(2)),
        },
        mechanism,
        bound: Bound::Tight,
        delta,
        iterations,
        neighbours: NeighbourBehaviour::Steady,
    }
}

const CLINIC: &str = include_str!("../../studies/clinic.toml");

/// Returns the study of the synthetic hospitals with every algorithm that recycles.
pub(super) fn networks() -> Vec<(String, Experiment)> {
    // A test audits them all.
    let (study, _) = Study::parse(CLINIC, "clinic.toml").expect("a study of the program is valid");
    let nodes = study.network.nodes as usize;
    let first = Experiment::prepare(study, "".as_ref()).expect("its rows are in the program");
    let variant = |(suffix, method): (&str, Method)| {
        let mut study = first.study().clone();
        study.algorithm.iterations = match method.data_steps() {
            Some(data_steps) => data_steps * period(SpanningTree::of(first.graph()).depth()),
            None => 12,
        };
        if method.asks_for_gradients() {
            let law = law(&study.privacy.noise.template());
            study.privacy.noise = Noise::Given(Mechanism::Gradient { law });
        }
        let name = format!("{}{suffix}", method.name());
        study.algorithm.method = method;
        (name, first.on_same_network(study))
    };
    let growing = |start: f64| Schedule::Growth {
        start,
        growth: 1.05,
    };
    let admm = |penalty, recycle| Method::RecycledAdmm {
        penalty,
        damping: GAMMA,
        recycle,
    };
    let dlm = |recycle| Method::RecycledDlm {
        penalty: Schedule::Constant(30.0),
        damping: Schedule::Constant(30.0),
        recycle,
    };
    let private = |recycle| Method::MRecycledAdmm {
        penalty: (0..nodes).map(|i| growing(3.0 + i as f64)).collect(),
        damping: (0..nodes).map(|i| growing(1.0 + i as f64)).collect(),
        recycle,
        dual_step: 3.0,
    };
    let consensus = |metric| Method::Consensus {
        metric,
        metric_share: 0.2,
        metric_ridge: AutoNumber::Auto,
        steps: 2,
        step: AutoNumber::Auto,
        momentum: AutoNumber::Auto,
    };
    [
        ("", admm(ETA, 1)),
        (", growing η", admm(GROWING, 1)),
        (", 3 recycled", admm(ETA, 3)),
        ("", private(1)),
        (", 2 recycled", private(2)),
        ("", dlm(1)),
        (", 2 recycled", dlm(2)),
        ("", consensus(MetricKind::None)),
        (", mean row", consensus(MetricKind::Mean)),
        (", Gram", consensus(MetricKind::Gram)),
    ]
    .map(variant)
    .into()
}
