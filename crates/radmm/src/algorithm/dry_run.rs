//! A dry run: the questions of a node, known before anyone answers.
//!
//! An algorithm's schedules fix when it asks and with which quadratic term; only the linear term depends on releases. An
//! algorithm that runs on vectors of no columns therefore asks the questions of the real run, as far as their price depends on
//! them. Noise can thus be calibrated to a total before the first row is read.

use super::{Algorithm, Step, View};
use crate::protocol::query::Query;
use crate::protocol::release::Release;

/// Returns the questions of iterations `1..=iterations` of a node with `degree` neighbours, each with its iteration.
///
/// `algorithm` is a fresh one of no columns.
pub fn questions(
    algorithm: &mut dyn Algorithm,
    degree: usize,
    iterations: u32,
) -> Vec<(u32, Query)> {
    let received = vec![Release::imagined(Vec::new()); degree];
    let mut asked = Vec::new();
    for iteration in 0..iterations {
        let view = View {
            iteration,
            own: &[],
            neighbours: &received,
        };
        algorithm.observe(&view);
        if let Step::Ask(query) = algorithm.next_step(&view) {
            algorithm.absorb_answer(&view, &[]);
            asked.push((iteration + 1, query));
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::admm::{Admm, Penalty};
    use crate::algorithm::recycled::Recycled;
    use crate::algorithm::schedule::Schedule;

    #[test]
    fn recycled_admm_asks_in_odd_iterations_with_the_penalty_of_the_iteration() {
        let eta = Schedule::Growth {
            start: 1.0,
            growth: 2.0,
        };
        let admm = Admm::new(Penalty::common(eta), 0);
        let mut algorithm = Recycled::new(admm, Schedule::Constant(0.5), 1);
        let asked: Vec<(u32, f64)> = questions(&mut algorithm, 3, 6)
            .into_iter()
            .map(|(t, query)| match query {
                Query::Minimise { quadratic, .. } => (t, quadratic),
                other => panic!("{other:?}"),
            })
            .collect();
        // a = 2 η(t) V.
        let expected = [1, 3, 5].map(|t| (t, 2.0 * eta.at(t) * 3.0));
        assert_eq!(asked, expected);
    }
}
