//! Noise against signal: a warning, before a row is read, where noise is likely to exceed what the rows can say.
//!
//! The rows' part of a gradient, `(C_i/B_i) Σ L'(fᵀz)·z`, has a norm of at most `C_i·s_max`. The `C_i` have the mean `C`; where
//! rows count alike, all parties have the same noise, and a small party borrows its signal from the others. Noise with density ∝
//! exp(−α‖e‖₂) has the norm `d/α` on average, with density ∝ exp(−α‖e‖₁) about `√(2d)/α`, `N(0, σ²I)` about `σ√d`, in `d` columns.
//! In units of that gradient it is
//!
//! ```text
//! objective   ‖e‖, or a·‖e‖ if it grows with the penalty
//! gradient    ‖e‖
//! output      m·‖e‖, m = ρ/N + a: what would have to be added to the gradient to move the minimiser by e
//! ```

use std::fmt;

use radmm::privacy::{Mechanism, NoiseDistribution, NoiseScaling};
use radmm::protocol::query::{Query, sum_scale};
use serde::Serialize;

use super::plan::{Plan, amount_bits};
use crate::Method;
use crate::number_format::{brief, count};

/// The share of `C` above which noise is excessive. `C` itself would be too large: near the optimum the rows' gradients
/// cancel.
///
/// Measured with `radmm run` on the rows held out of studies/adult-admm.toml, where 75.4 % belong to one class: 82.8 % are classified
/// correctly at a noise of 0.018·C, 82.4 % at 0.07·C, 80.8 % at 0.15·C, 77.4 % at 0.29·C, 74.9 % at 0.59·C, 72.2 % at C. In
/// studies/fig2.toml 82.1 % at 0.03·C, 78.8 % at 0.1·C and 73.6 % at 0.3·C; in studies/clinic.toml 72.6 % at 0.17·C, 71.3 % at 0.3·C
/// and 63.6 % at C. Gradient descent on Adult forgives more: 79.0 % at 0.07·C, 78.4 % at 0.29·C, 76.6 % at C.
pub const EXCESSIVE_SHARE: f64 = 0.3;

/// The same for sums over rows, of which many are averaged and steps are the shorter the more noise there is.
///
/// At a total of one, the twelve other tables of docs/accuracy.md have 0.04 to 1.2 and lose 0 to 4 points to noise; tables of 300 to 420
/// rows have 3 to 4 and are no better than the majority class.
pub const EXCESSIVE_SHARE_OF_SUMS: f64 = 1.5;

/// Noise that is likely to exceed what the rows can say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExcessiveNoise {
    /// The party with most noise.
    pub party: String,
    /// The number of its rows.
    pub rows: usize,
    /// The expected norm of its noise, in units of the gradient, in its noisiest data step.
    pub noise: f64,
    /// `C·s_max`, the largest norm that a party's gradient can have, in the mean over the parties.
    pub signal: f64,
    /// The number of parties with excessive noise.
    pub parties: usize,
}

impl Plan<'_> {
    /// Returns the expected norm of each party's noise, in units of the gradient, in its noisiest data step.
    pub fn noise_norms(&self, noise: &[Mechanism]) -> Vec<f64> {
        let study = self.instance().study;
        let columns = study.data.schema.columns().len() as f64;
        let share = study.problem.ridge / f64::from(study.network.nodes);
        self.per_party(
            |i| amount_bits(&noise[i]),
            |queries, i| {
                let Some(law) = noise[i].noise() else {
                    return 0.0;
                };
                let norm = match law {
                    NoiseDistribution::Gamma { rate } => columns / rate,
                    NoiseDistribution::Laplace { rate } => (2.0 * columns).sqrt() / rate,
                    NoiseDistribution::Gaussian { sigma } => sigma * columns.sqrt(),
                };
                let in_gradients = |query: &Query| match (&noise[i], query) {
                    (
                        Mechanism::Objective {
                            scale: NoiseScaling::Penalty,
                            ..
                        },
                        Query::Minimise { quadratic, .. },
                    ) => norm * quadratic,
                    (Mechanism::Output { .. }, Query::Minimise { quadratic, .. }) => {
                        norm * (share + quadratic)
                    }
                    _ => norm,
                };
                queries.queries.iter().map(in_gradients).fold(0.0, f64::max)
            },
        )
    }

    /// Returns the largest norm that a party's gradient can have, in the mean over the parties: `C·s_max`, or `c·s_max·B/N` where
    /// sums over rows are asked in units of `c`.
    pub fn signal(&self) -> f64 {
        let (study, total) = (self.instance().study, self.instance().total_rows());
        let weight = match study.algorithm.method {
            Method::Consensus { .. } => {
                sum_scale(total) * total as f64 / f64::from(study.network.nodes)
            }
            _ => study.problem.weight,
        };
        weight * study.problem.loss.largest_slope()
    }

    /// Returns the party with most noise and the number of parties with excessive noise; `None` if there are none.
    pub fn excessive_noise(&self, noise: &[Mechanism]) -> Option<ExcessiveNoise> {
        let signal = self.signal();
        let norms = self.noise_norms(noise);
        let share = match self.instance().study.algorithm.method {
            Method::Consensus { .. } => EXCESSIVE_SHARE_OF_SUMS,
            _ => EXCESSIVE_SHARE,
        };
        let excessive = norms.iter().filter(|norm| **norm > share * signal);
        let parties = excessive.count();
        let worst = (0..norms.len()).max_by(|&i, &j| norms[i].total_cmp(&norms[j]))?;
        (parties > 0).then(|| ExcessiveNoise {
            party: self.parties()[worst].name.clone(),
            rows: self.parties()[worst].rows,
            noise: norms[worst],
            signal,
            parties,
        })
    }
}

impl fmt::Display for ExcessiveNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the noise is likely to drown the signal: at {}, with {}, its norm is about {}, {} times the largest that a party's gradient \
             can have, {}",
            self.party,
            count(self.rows, "row", "rows"),
            brief(self.noise),
            brief(self.noise / self.signal),
            brief(self.signal),
        )?;
        if self.parties > 1 {
            write!(
                f,
                "; this applies to {}",
                count(self.parties, "party", "parties")
            )?;
        }
        f.write_str("; more rows, fewer columns, a larger total or fewer data steps would help")
    }
}
