//! What is audited of a study: its mechanism at its own prices, where the prices are highest.
//!
//! A price depends on `C/B`, `m` and the noise alone. So the victim of a study has two rows and a weight of `2C/B`, which costs
//! exactly what its party's rows cost, and takes microseconds.

use radmm::private::{Mechanism, Problem};
use radmm::public::graph::NodeId;
use radmm::public::release::Query;
use radmm_study::equal::Asked;

use super::attack::Attack;
use super::case::Case;
use super::scene::{Drive, ROWS, Scene};
use super::scores::ceiling;
use crate::TooDear;
use crate::assemble;
use crate::experiment::Experiment;
use crate::shown::count;

/// The first question, and as much of the transcript as so many runs can say anything about.
pub(super) fn cases(experiment: &Experiment, runs: u32) -> Result<Vec<Case>, TooDear> {
    let noise = experiment.noise()?;
    let parties = experiment.graph().nodes().zip(noise);
    let courses = parties.filter_map(|(id, mechanism)| {
        let scene = scene(experiment, id, mechanism);
        let (times, questions): (Vec<u32>, Vec<Query>) = scene.questions().into_iter().unzip();
        let asked = Asked {
            questions: &questions,
            problem: &scene.problem,
            rows: ROWS,
            bound: scene.bound,
        };
        let totals = asked.totals(&scene.mechanism, scene.delta).ok()?;
        let finite = totals.last()?.is_finite();
        finite.then_some((scene, times, totals))
    });
    let last = |(_, _, totals): &(Scene, Vec<u32>, Vec<f64>)| totals.last().copied();
    let dearest = courses.max_by(|a, b| {
        last(a)
            .partial_cmp(&last(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some((scene, times, totals)) = dearest else {
        return Ok(Vec::new());
    };
    // Beyond half of what a perfect attack would show, a real one shows little more.
    let most = ceiling(runs, scene.delta) / 2.0;
    let within = totals.partition_point(|total| *total <= most);
    let of = |steps: usize| Case {
        scene: Scene {
            iterations: times[steps - 1],
            ..scene.clone()
        },
        attack: Attack::Likelihood,
        what: match times.len() {
            all if all == steps => count(steps, "step", "steps"),
            all => format!("{steps} of {all} steps"),
        },
    };
    let mut cases = vec![of(1)];
    if within > 1 {
        cases.push(of(within));
    }
    Ok(cases)
}

fn scene(experiment: &Experiment, id: NodeId, mechanism: Mechanism) -> Scene {
    let study = experiment.study();
    let problem = assemble::problem(study);
    let rows = experiment.table().parties[id.0 as usize].shard.rows();
    Scene {
        method: study.algorithm.method.clone(),
        graph: experiment.graph().clone(),
        victim: id,
        problem: Problem {
            weight: problem.weight * ROWS as f64 / rows as f64,
            ..problem
        },
        mechanism,
        bound: study.privacy.bound,
        delta: study.privacy.delta,
        iterations: study.algorithm.iterations,
        drive: Drive::Steady,
    }
}
