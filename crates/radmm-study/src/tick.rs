//! The public tick on which answers to data steps leave.
//!
//! The time that an answer takes depends on rows. So it leaves when a public time has passed since the values that it needs had
//! arrived: the tick, or a multiple of it if it was not ready. A study may name the tick. Otherwise it follows from public facts by a
//! rule: twice an estimate of the slowest data step of the largest party, rounded up to 1, 2 or 5 times a power of ten.
//!
//! ```text
//! all questions     4 ms for the disk, 2 µs for every coordinate of the answer
//! a pass            rows × (5 ns + 1 ns × non-zeros of a row)
//! minimiser         10 passes
//! gradient, sum     1 pass
//! Gram matrix       1 pass, and rows × non-zeros² × 1 ns; norms in its metric rows × non-zeros × columns × 1 ns
//! ```
//! The estimates are a few times what a present-day core takes. What a metric takes to compute does not depend on rows, and is not
//! counted: the first gradient in a metric of many columns is late, by as much for all rows.

use std::time::Duration;

use radmm::algorithm::dry_run;
use radmm::graph::{GraphError, NodeId};
use radmm::protocol::query::Query;

use crate::Study;
use crate::instantiate::Instance;

/// The least tick that the rule chooses.
const LEAST: Duration = Duration::from_millis(10);

impl Study {
    /// Returns the tick on which answers leave, between parties that declare their rows; zero if the study asks for none.
    pub fn tick(&self) -> Result<Duration, GraphError> {
        if let Some(seconds) = self.run.tick {
            return Ok(Duration::from_secs_f64(seconds));
        }
        let graph = self.network.graph()?;
        let mut algorithm = Instance::declared(self, &graph).algorithm(NodeId(0), Vec::new());
        let degree = graph.degree(NodeId(0));
        let asked = dry_run::questions(&mut *algorithm, degree, self.algorithm.iterations);
        let slowest = asked.iter().map(|(_, query)| self.estimate(query));
        Ok(coarse(2.0 * slowest.fold(0.0, f64::max)))
    }

    /// Estimates the seconds of a data step of the largest party.
    fn estimate(&self, query: &Query) -> f64 {
        let shape = self.data.schema.shape();
        let largest = self.parties.iter().filter_map(|party| party.rows).max();
        let rows = largest.unwrap_or(0) as f64;
        let (columns, filled) = (f64::from(shape.columns()), f64::from(shape.max_nonzeros()));
        let pass = rows * (5e-9 + 1e-9 * filled);
        let work = match query {
            Query::Minimise { .. } => 10.0 * pass,
            Query::Gradient { .. } | Query::GradientSum { .. } | Query::RowSum { .. } => pass,
            Query::GramSum { .. } => pass + rows * filled * filled.max(columns) * 1e-9,
        };
        4e-3 + 2e-6 * query.width(self.data.schema.width()) as f64 + work
    }
}

/// Rounds seconds up to 1, 2 or 5 times a power of ten, at least [`LEAST`].
fn coarse(seconds: f64) -> Duration {
    let mut tick = LEAST;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if tick.as_secs_f64() >= seconds || tick > Duration::from_secs(3600) {
            break;
        }
        tick = tick.mul_f64(factor);
    }
    tick
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_coarse() {
        let milliseconds = |seconds: f64| coarse(seconds).as_millis();
        let found = [0.0, 0.009, 0.011, 0.021, 0.05, 0.051, 0.3, 1.5].map(milliseconds);
        assert_eq!(found, [10, 10, 20, 50, 50, 100, 500, 2000]);
        assert!(coarse(f64::INFINITY) < Duration::from_secs(8000));
    }
}
