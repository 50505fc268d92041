//! What is audited if no study is given: every mechanism, alone and over a whole transcript, and every way to recycle.

use radmm::account::Bound;
use radmm::private::{Law, Loss, Mechanism, Problem, Scaling};
use radmm::public::graph::{Graph, NodeId, Topology};
use radmm::public::release::Precision;
use radmm::public::schedule::Schedule;
use radmm_study::{Method, Noise, Study};

use super::attack::Attack;
use super::case::Case;
use super::scene::{AuditError, Drive, Scene};
use crate::experiment::Experiment;
use crate::shown::count;

/// Large, so that what the bend of the loss may cost, `ln(1 + x)`, is a small part of the price: where both slopes are
/// −1 there is no bend.
const ETA: Schedule = Schedule::Constant(20.0);
const GAMMA: Schedule = Schedule::Constant(1.0);
const GROWING: Schedule = Schedule::Growth {
    start: 20.0,
    growth: 1.1,
};
const HINGE: Loss = Loss::SmoothHinge { width: 0.5 };
/// With a recycled step after each but the last.
const DATA_STEPS: u32 = 3;
/// Totals that some ten thousand runs resolve well: of one data step, and of all.
const PURE_TOTALS: [f64; 2] = [2.0, 3.0];
const GAUSSIAN_TOTALS: [f64; 2] = [3.0, 3.0];
/// At a smaller one, tails that are too rare to be counted decide.
const DELTA: f64 = 1e-3;

const PURE: Law = Law::Gamma { rate: 1.0 };
const GAUSSIAN: Law = Law::Gaussian { sigma: 1.0 };

/// The kinds of mechanism; their noise is found for the total.
fn mechanisms() -> Vec<(Mechanism, Loss)> {
    let mut all = Vec::new();
    for law in [PURE, GAUSSIAN] {
        for scale in [Scaling::Fixed, Scaling::Penalty] {
            all.push(Mechanism::Objective { law, scale });
        }
        all.push(Mechanism::Output { law });
        all.push(Mechanism::Gradient { law });
    }
    let logistic = all.into_iter().map(|mechanism| (mechanism, Loss::Logistic));
    let scale = Scaling::Fixed;
    let hinge = [PURE, GAUSSIAN].map(|law| (Mechanism::Objective { law, scale }, HINGE));
    logistic.chain(hinge).collect()
}

/// All attacks.
pub(super) fn cases() -> Result<Vec<Case>, AuditError> {
    let mut cases = Vec::new();
    for (steps, which) in [(1, 0), (DATA_STEPS, 1)] {
        for (mechanism, loss) in mechanisms() {
            let totals = match law(&mechanism) {
                Law::Gamma { .. } => PURE_TOTALS,
                Law::Gaussian { .. } => GAUSSIAN_TOTALS,
            };
            cases.push(Case {
                scene: scene(mechanism, loss, 2 * steps - 1).at_total(totals[which])?,
                attack: Attack::Likelihood,
                what: count(steps as usize, "step", "steps"),
            });
        }
    }
    cases.push(bend()?);
    cases.push(two_answers()?);
    cases.push(accomplice(2)?);
    Ok(cases)
}

/// The other part of the price of objective perturbation: `x = 2`, so that two thirds of it are `ln(1 + x)`.
pub(super) fn bend() -> Result<Case, AuditError> {
    let mut scene = scene(objective(PURE), Loss::Logistic, 1);
    // m = ρ/N + 2ηV = 0.05 + 0.075, and x = C·c₁/(B·m).
    scene.method = Method::Admm {
        penalty: Schedule::Constant(0.0375),
    };
    scene.drive = Drive::Bend;
    Ok(Case {
        scene: scene.at_total(1.6)?,
        attack: Attack::Likelihood,
        what: "at the bend".to_owned(),
    })
}

/// Whether noise is used twice: two questions in a row, the second one about nothing.
pub(super) fn two_answers() -> Result<Case, AuditError> {
    let mut scene = scene(objective(PURE), Loss::Logistic, 2);
    scene.method = Method::Admm { penalty: ETA };
    scene.drive = Drive::Turning;
    Ok(Case {
        scene: scene.at_total(PURE_TOTALS[1])?,
        attack: Attack::TwoAnswers,
        what: "two answers".to_owned(),
    })
}

/// Whether two parties share noise: one is the attacker's.
pub(super) fn accomplice(apart: u32) -> Result<Case, AuditError> {
    Ok(Case {
        scene: scene(objective(PURE), Loss::Logistic, 1).at_total(PURE_TOTALS[0])?,
        attack: Attack::Accomplice { apart },
        what: "accomplice".to_owned(),
    })
}

fn objective(law: Law) -> Mechanism {
    let scale = Scaling::Fixed;
    Mechanism::Objective { law, scale }
}

fn law(mechanism: &Mechanism) -> Law {
    match *mechanism {
        // There is none among them.
        Mechanism::None => PURE,
        Mechanism::Objective { law, .. }
        | Mechanism::Output { law }
        | Mechanism::Gradient { law } => law,
    }
}

/// A victim and one neighbour, who is hostile.
pub(super) fn scene(mechanism: Mechanism, loss: Loss, iterations: u32) -> Scene {
    let method = match mechanism {
        Mechanism::Gradient { .. } => Method::RecycledDlm {
            penalty: ETA,
            damping: GAMMA,
            recycle: 1,
        },
        // Noise that grows with the penalty is there for penalties that grow.
        Mechanism::Objective {
            scale: Scaling::Penalty,
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
        Law::Gamma { .. } => 0.0,
        Law::Gaussian { .. } => DELTA,
    };
    Scene {
        method,
        graph: Graph::new(&Topology::Path, 2).expect("two nodes make a path"),
        victim: NodeId(0),
        problem: Problem {
            loss,
            weight: 2.0,
            ridge: 0.1,
            nodes: 2,
            tolerance: 1e-10,
            precision: Precision::Grid,
        },
        mechanism,
        bound: Bound::Tight,
        delta,
        iterations,
        drive: Drive::Steady,
    }
}

const CLINIC: &str = include_str!("../../../../studies/clinic.toml");

/// The invented hospitals with every algorithm that recycles.
pub(super) fn networks() -> Vec<(String, Experiment)> {
    // A test audits them all.
    let (study, _) = Study::parse(CLINIC, "clinic.toml").expect("a study of the program is valid");
    let nodes = study.network.nodes as usize;
    let first = Experiment::prepare(study, "".as_ref()).expect("its rows are in the program");
    let variant = |(words, method): (&str, Method)| {
        let mut study = first.study().clone();
        study.algorithm.iterations = 12;
        if method.asks_for_gradients() {
            let law = law(&study.privacy.noise.like());
            study.privacy.noise = Noise::Given(Mechanism::Gradient { law });
        }
        let name = format!("{}{words}", method.name());
        study.algorithm.method = method;
        (name, first.with(study))
    };
    let spread = |start: f64| Schedule::Growth {
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
        penalty: (0..nodes).map(|i| spread(3.0 + i as f64)).collect(),
        damping: (0..nodes).map(|i| spread(1.0 + i as f64)).collect(),
        recycle,
        dual_step: 3.0,
    };
    [
        ("", admm(ETA, 1)),
        (", growing η", admm(GROWING, 1)),
        (", 3 recycled", admm(ETA, 3)),
        ("", private(1)),
        (", 2 recycled", private(2)),
        ("", dlm(1)),
        (", 2 recycled", dlm(2)),
    ]
    .map(variant)
    .into()
}
