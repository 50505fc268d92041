//! The audit of a study: its mechanism at its own prices, for the party that pays most.
//!
//! A price depends on `C/B`, `m` and the noise alone. So the victim has two rows and a weight of `2C/B`. A query to it costs
//! exactly as much as one to the party's rows, and takes microseconds.

use radmm::graph::NodeId;
use radmm::privacy::Mechanism;
use radmm::problem::Problem;
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
    VictimConfig {
        method: study.algorithm.method.clone(),
        graph: experiment.graph().clone(),
        id,
        total_rows: instance.total_rows(),
        problem: Problem {
            weight: problem.weight * ROWS as f64 / rows as f64,
            ..problem
        },
        mechanism,
        bound: study.privacy.bound,
        delta: study.privacy.delta,
        iterations: study.algorithm.iterations,
        neighbours: NeighbourBehaviour::Steady,
    }
}
