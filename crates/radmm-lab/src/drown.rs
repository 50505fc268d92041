//! Noise against signal: whether the rows can be heard at all, known before one is read.
//!
//! The rows' part of a gradient, `(C/B) Σ L'(fᵀz)·z`, has a norm of at most `C`. Noise with density ∝ exp(−α‖e‖) has the norm
//! `d/α` on average, `N(0, σ²I)` about `σ√d`, in `d` columns. In units of that gradient it is
//!
//! ```text
//! objective   ‖e‖, or a·‖e‖ if it grows with the penalty
//! gradient    ‖e‖
//! output      m·‖e‖, m = ρ/N + a: what would have to be added to the gradient to move the minimiser by e
//! ```

use std::fmt;

use radmm::private::{Law, Mechanism, Scaling};
use radmm::public::release::Query;
use serde::Serialize;

use crate::equal;
use crate::plan::{Plan, amount};
use crate::shown::{brief, count};

/// Noise of more than this share of `C` drowns the rows.
pub const DROWNING: f64 = 1.0;

/// Rows that can hardly be heard through their noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drowned {
    /// Whose rows have most noise.
    pub party: String,
    /// How many it has.
    pub rows: usize,
    /// The norm of its noise that is to be expected, in units of the gradient, in its noisiest data step.
    pub noise: f64,
    /// `C`, the largest norm that its rows' gradient can have.
    pub signal: f64,
    /// How many parties are drowned.
    pub parties: usize,
}

impl Plan<'_> {
    /// The expected norm of each party's noise, in units of the gradient, in its noisiest data step.
    pub(crate) fn noise_norms(&self, noise: &[Mechanism]) -> Vec<f64> {
        let columns = self.study.data.schema.columns().len() as f64;
        let share = self.study.problem.ridge / f64::from(self.study.network.nodes);
        self.of_each(
            |i| amount(&noise[i]),
            |asked, i| {
                let Some(law) = equal::law(&noise[i]) else {
                    return 0.0;
                };
                let norm = match law {
                    Law::Gamma { rate } => columns / rate,
                    Law::Gaussian { sigma } => sigma * columns.sqrt(),
                };
                let in_gradients = |question: &Query| match (&noise[i], question) {
                    (
                        Mechanism::Objective {
                            scale: Scaling::Penalty,
                            ..
                        },
                        Query::Minimise { quadratic, .. },
                    ) => norm * quadratic,
                    (Mechanism::Output { .. }, Query::Minimise { quadratic, .. }) => {
                        norm * (share + quadratic)
                    }
                    _ => norm,
                };
                asked.questions.iter().map(in_gradients).fold(0.0, f64::max)
            },
        )
    }

    /// The parties whose rows this noise drowns, by the one that has most.
    pub(crate) fn drowned(&self, noise: &[Mechanism]) -> Option<Drowned> {
        let signal = self.study.problem.weight;
        let norms = self.noise_norms(noise);
        let drowned = norms.iter().filter(|norm| **norm > DROWNING * signal);
        let parties = drowned.count();
        let worst = (0..norms.len()).max_by(|&i, &j| norms[i].total_cmp(&norms[j]))?;
        (parties > 0).then(|| Drowned {
            party: self.parties[worst].name.clone(),
            rows: self.parties[worst].rows,
            noise: norms[worst],
            signal,
            parties,
        })
    }
}

impl fmt::Display for Drowned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the noise will drown the signal: at {}, with {}, its norm is about {}, {} times the largest that the rows' gradient \
             can have, C = {}",
            self.party,
            count(self.rows, "row", "rows"),
            brief(self.noise),
            brief(self.noise / self.signal),
            brief(self.signal),
        )?;
        if self.parties > 1 {
            write!(
                f,
                "; so it is at {}",
                count(self.parties, "party", "parties")
            )?;
        }
        f.write_str("; more rows, fewer columns, a larger total or fewer data steps would help")
    }
}
