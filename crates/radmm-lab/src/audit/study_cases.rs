//! The audit of a study: its mechanism at its own prices, for the party that pays most.
//!
//! A price depends on `C/B`, `m` and the noise alone. So the victim has two rows and a weight of `2C/B`. A query to it costs
//! exactly as much as one to the party's rows, and takes microseconds.
//!
//! That of Laplace noise depends on the shape of rows too: it is `√k` or `√d` times as large, and `√2` times at the victim. The
//! victim's rate is larger by the ratio.

use radmm::graph::NodeId;
use radmm::privacy::{Mechanism, NoiseFamily};
use radmm::problem::{Problem, RowShape};
use radmm::protocol::query::Query;
use radmm_study::number_format::count;
use radmm_study::pricing::PartyQueries;

use super::attack::Attack;
use super::case::AuditCase;
use super::lower_bound::ceiling;
use super::victim::{NeighbourBehaviour, ROWS, VictimConfig};
use crate::UnattainableBudget;
use crate::experiment::Experiment;

/// Returns an attack on the first query, and one on as much of the transcript as so many runs can resolve.
pub(super) fn cases(
    experiment: &Experiment,
    runs: u32,
) -> Result<Vec<AuditCase>, UnattainableBudget> {
    let noise = experiment.noise()?;
    let parties = experiment.graph().nodes().zip(noise);
    let priced = parties.filter_map(|(id, mechanism)| {
        let victim = victim(experiment, id, mechanism);
        let (times, queries): (Vec<u32>, Vec<Query>) = victim.queries().into_iter().unzip();
        let party = PartyQueries {
            queries: &queries,
            problem: &victim.problem,
            rows: ROWS,
            bound: victim.bound,
        };
        let totals = party.totals(&victim.mechanism, victim.delta).ok()?;
        let finite = totals.last()?.is_finite();
        finite.then_some((victim, times, totals))
    });
    let last = |(_, _, totals): &(VictimConfig, Vec<u32>, Vec<f64>)| totals.last().copied();
    let dearest = priced.max_by(|a, b| {
        last(a)
            .partial_cmp(&last(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some((victim, times, totals)) = dearest else {
        return Ok(Vec::new());
    };
    // Beyond half of what a perfect attack would show, a real one shows little more.
    let most = ceiling(runs, victim.trade_off()) / 2.0;
    let within = totals.partition_point(|total| *total <= most);
    let of = |steps: usize| AuditCase {
        victim: VictimConfig {
            iterations: times[steps - 1],
            ..victim.clone()
        },
        attack: Attack::Likelihood,
        label: match times.len() {
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

fn victim(experiment: &Experiment, id: NodeId, mechanism: Mechanism) -> VictimConfig {
    let study = experiment.study();
    let instance = experiment.instance();
    let problem = instance.problem(id);
    let rows = experiment.table().parties[id.0 as usize].shard.rows();
    let in_plane = RowShape::dense(2);
    VictimConfig {
        method: study.algorithm.method.clone(),
        graph: experiment.graph().clone(),
        id,
        total_rows: instance.total_rows(),
        problem: Problem {
            weight: problem.weight * ROWS as f64 / rows as f64,
            shape: Some(in_plane),
            ..problem
        },
        mechanism: equally_priced(mechanism, problem.shape.unwrap_or(in_plane), in_plane),
        bound: study.privacy.bound,
        delta: study.privacy.delta,
        iterations: study.algorithm.iterations,
        neighbours: NeighbourBehaviour::Steady,
    }
}

/// Returns the mechanism that costs on rows of one shape what another costs on rows of another shape.
fn equally_priced(mechanism: Mechanism, from: RowShape, to: RowShape) -> Mechanism {
    let coordinates = match mechanism {
        Mechanism::Output { .. } => RowShape::columns,
        _ => RowShape::max_nonzeros,
    };
    match mechanism.noise() {
        Some(noise) if noise.family() == NoiseFamily::Laplace => {
            let ratio = f64::from(coordinates(&to)) / f64::from(coordinates(&from));
            mechanism.with_noise(noise.scaled(ratio.sqrt()))
        }
        _ => mechanism,
    }
}
