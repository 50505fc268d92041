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

/// Noise of more than this share of `C` drowns the rows. `C` itself would be too much to ask for: near the optimum the rows'
/// gradients cancel.
///
/// Measured with `radmm run` on the rows held out of studies/adult.toml, where 75.4 % belong to one class: 82.5 % are classified
/// rightly at a noise of 0.018·C, 81.7 % at 0.07·C, 80.1 % at 0.15·C, 75.6 % at 0.29·C, 73.1 % at 0.59·C, 71.9 % at C. In
/// studies/fig2.toml 82.0 % at 0.03·C, 78.2 % at 0.1·C and 73.2 % at 0.3·C; in studies/clinic.toml 73.4 % at 0.17·C, 69.9 % at 0.3·C
/// and 56.4 % at C. Gradient descent on Adult forgives more: 78.9 % at 0.07·C, 78.4 % at 0.29·C, 73.9 % at C.
pub const DROWNING: f64 = 0.3;

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
    pub fn noise_norms(&self, noise: &[Mechanism]) -> Vec<f64> {
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
    pub fn drowned(&self, noise: &[Mechanism]) -> Option<Drowned> {
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
            "the noise is likely to drown the signal: at {}, with {}, its norm is about {}, {} times the largest that the rows' gradient \
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
