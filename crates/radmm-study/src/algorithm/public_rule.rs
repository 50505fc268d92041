//! The parameters of `consensus` that a study leaves to the program: a public rule, from facts that all parties know.
//!
//! ```text
//! σ_q   standard deviation of a coordinate of the summed noise of one gradient, in units of the mean loss
//! gram  K = 25   s = min(d_eff/h, τ/(√K·σ_q))      β = 0                        λ = ½√d · (the same σ of the Gram matrix)
//!       eigenvalues are lessened by √2·λ, half of where those of the noise end; models of the last ⌈K/3⌉ steps are averaged
//! none  K = 120  s = min(1/c₁, 1.2/(√K·σ_q))        β = max(0, 1 − √K·σ_q/(1.2·c₁))
//! mean  K = 4    s = min(d/h, 1.4/(√K·σ_q))         β = 0
//! ```
//! The reason is that noise moves a margin by about `s·√K·σ_q`. `h` is a typical curvature of the loss, and
//! `τ` one for the cut logistic loss, else three quarters. No row is read.

use radmm::algorithm::consensus::{ConsensusParameters, Preconditioner, StepSize};
use radmm::privacy::{NoiseDistribution, NoiseFamily};
use radmm::problem::Loss;
use radmm::protocol::metric::MAX_METRIC_COLUMNS;
use radmm::protocol::query::sum_scale;
use serde::{Serialize, Serializer};

use crate::choice::Choice;
use crate::number_format::brief;

/// A number that a study gives, or leaves to the public rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AutoNumber {
    /// By the public rule.
    #[default]
    Auto,
    /// This number.
    Given(f64),
}

impl AutoNumber {
    fn unwrap_or(self, rule: f64) -> f64 {
        match self {
            Self::Auto => rule,
            Self::Given(number) => number,
        }
    }
}

impl Serialize for AutoNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Given(number) => serializer.serialize_f64(*number),
        }
    }
}

/// The question of `consensus` before the first gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricKind {
    /// Nothing.
    None,
    /// The direction of the mean row.
    Mean,
    /// The Gram matrix.
    Gram,
}

/// The names of metrics in study files.
pub(crate) const METRICS: [(&str, MetricKind); 3] = [
    ("none", MetricKind::None),
    ("mean", MetricKind::Mean),
    ("gram", MetricKind::Gram),
];

impl MetricKind {
    /// Returns the name in study files.
    pub fn name(self) -> &'static str {
        let name = METRICS.iter().find(|(_, kind)| *kind == self);
        name.map_or("none", |(name, _)| name)
    }

    /// Returns the metric for noise of this family and so many columns.
    pub(crate) fn by_rule(family: Option<NoiseFamily>, columns: usize) -> Self {
        match family {
            // A pure total pays for every question in full, and a Gram matrix has too many numbers for that.
            Some(family) if family.is_pure() => Self::Mean,
            _ if columns <= MAX_METRIC_COLUMNS => Self::Gram,
            _ => Self::None,
        }
    }

    /// Returns why the rule takes this metric.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::None => "a Gram matrix of so many columns would cost more than it gives",
            Self::Mean => {
                "a pure total pays for every question in full, and the mean row is a short one"
            }
            Self::Gram => {
                "most of a row's norm is common to all rows, and the Gram matrix tells it"
            }
        }
    }

    /// Returns `K`, the number of gradients.
    pub(crate) fn steps_by_rule(self) -> u32 {
        match self {
            Self::None => 120,
            Self::Mean => 4,
            Self::Gram => 25,
        }
    }

    /// Returns `φ`, the share of the budget that the first question takes.
    pub(crate) fn share_by_rule(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Mean => 0.1,
            Self::Gram => 0.12,
        }
    }

    /// Returns `τ`, how far noise may move a margin.
    fn noise_allowance(self, loss: Loss) -> f64 {
        match self {
            Self::None => 1.2,
            Self::Mean => 1.4,
            // Slopes are halved, and margins may move as much more.
            Self::Gram if loss == Loss::CutLogistic => 1.0,
            Self::Gram => 0.75,
        }
    }
}

/// The parameters of `consensus` as a study has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ConsensusSettings {
    pub(super) metric: MetricKind,
    pub(super) metric_share: f64,
    pub(super) metric_ridge: AutoNumber,
    pub(super) steps: u32,
    pub(super) step: AutoNumber,
    pub(super) momentum: AutoNumber,
}

/// The public facts on which the rule depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PublicFacts {
    pub(super) parties: usize,
    pub(super) total_rows: usize,
    pub(super) columns: usize,
    pub(super) loss: Loss,
    /// The noise of a gradient; `None` without noise.
    pub(super) noise: Option<NoiseDistribution>,
}

/// The largest momentum: without noise the rule would ask for one, and the iterates would never settle.
const LARGEST_MOMENTUM: f64 = 0.98;

/// The least ridge of a metric, where there is next to no noise.
const LEAST_RIDGE: f64 = 1e-6;

impl ConsensusSettings {
    /// Returns all parameters, by the rule where the study is silent.
    pub(super) fn resolve(&self, facts: &PublicFacts) -> ConsensusParameters {
        let preconditioner = self.preconditioner(facts);
        let steps = f64::from(self.steps);
        let drift = steps.sqrt() * facts.summed_deviation();
        let allowance = self.metric.noise_allowance(facts.loss);
        // Infinite without noise.
        let largest = allowance / drift;
        let smooth = 1.0 / facts.loss.curvature();
        let momentum = match self.metric {
            MetricKind::None if smooth <= largest => 1.0 - smooth / largest,
            _ => 0.0,
        };
        ConsensusParameters {
            steps: self.steps,
            total_rows: facts.total_rows,
            step: match (self.step, self.metric) {
                (AutoNumber::Given(step), _) => StepSize::Fixed(step),
                (AutoNumber::Auto, MetricKind::None) => StepSize::Fixed(smooth.min(largest)),
                (AutoNumber::Auto, _) => StepSize::ByDimension {
                    curvature: typical_curvature(facts.loss),
                    largest,
                },
            },
            momentum: self.momentum.unwrap_or(momentum.min(LARGEST_MOMENTUM)),
            averaged: self.steps.div_ceil(3),
            preconditioner,
        }
    }

    /// Returns the numbers that the rule finds from the number of rows and the noise.
    pub(super) fn choices(&self, facts: &PublicFacts) -> Vec<Choice> {
        let parameters = self.resolve(facts);
        let choice = |key, value: String, reason: String| {
            let value = Choice::new("algorithm", key, value, reason);
            Some(value)
        };
        let ridge = match (self.metric_ridge, parameters.preconditioner) {
            (AutoNumber::Auto, Preconditioner::Gram { ridge, .. }) => choice(
                "metric_ridge",
                format!("{ridge:?}"),
                "half the size of the noise in the Gram matrix's eigenvalues".to_owned(),
            ),
            _ => None,
        };
        let moves = format!(
            "noise moves a margin by about {} over all steps",
            brief(self.metric.noise_allowance(facts.loss))
        );
        let step = match (self.step, parameters.step) {
            (AutoNumber::Auto, StepSize::Fixed(step)) => choice(
                "step",
                format!("{step:?}"),
                format!("no longer than that {moves}"),
            ),
            (AutoNumber::Auto, StepSize::ByDimension { curvature, largest }) => choice(
                "step",
                "\"auto\"".to_owned(),
                format!(
                    "the effective number of columns over {}, and at most {}, so that {moves}",
                    brief(curvature),
                    brief(largest)
                ),
            ),
            _ => None,
        };
        let momentum = match self.momentum {
            AutoNumber::Auto if parameters.momentum > 0.0 => choice(
                "momentum",
                format!("{:?}", parameters.momentum),
                format!("as much as noise allows: {moves}"),
            ),
            _ => None,
        };
        [ridge, step, momentum].into_iter().flatten().collect()
    }

    fn preconditioner(&self, facts: &PublicFacts) -> Preconditioner {
        let noise = self.first_noise(facts);
        match self.metric {
            MetricKind::None => Preconditioner::None,
            MetricKind::Mean => Preconditioner::MeanRow { noise },
            MetricKind::Gram => {
                let deviation = noise * facts.summed_deviation();
                let ridge = 0.5 * deviation * (facts.columns as f64).sqrt();
                let ridge = self.metric_ridge.unwrap_or(ridge.max(LEAST_RIDGE));
                Preconditioner::Gram {
                    noise,
                    ridge,
                    // Half of where the eigenvalues of the noise end.
                    cut: std::f64::consts::SQRT_2 * ridge,
                }
            }
        }
    }

    /// Returns the size of the first question's noise relative to that of a gradient, so that it takes its share.
    ///
    /// Gaussian noise is paid for by the squares of sensitivity over deviation, pure noise by sensitivity over scale.
    fn first_noise(&self, facts: &PublicFacts) -> f64 {
        let gradient = 2.0 * facts.loss.largest_slope();
        let sensitivity = match self.metric {
            MetricKind::Gram => std::f64::consts::SQRT_2,
            _ => 2.0,
        };
        let each = (1.0 - self.metric_share) / (self.metric_share * f64::from(self.steps));
        let is_pure = facts.noise.is_some_and(|noise| noise.family().is_pure());
        sensitivity / gradient * if is_pure { each } else { each.sqrt() }
    }
}

impl PublicFacts {
    /// Returns `σ_q`.
    fn summed_deviation(&self) -> f64 {
        let Some(noise) = self.noise else {
            return 0.0;
        };
        let unit = sum_scale(self.total_rows) * self.total_rows as f64;
        (self.parties as f64).sqrt() * noise.deviation(self.columns) / unit
    }
}

/// Returns `h`.
fn typical_curvature(loss: Loss) -> f64 {
    match loss {
        Loss::SmoothHinge { width } => 0.2 / width,
        Loss::Logistic | Loss::CutLogistic => 0.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: ConsensusSettings = ConsensusSettings {
        metric: MetricKind::Gram,
        metric_share: 0.1,
        metric_ridge: AutoNumber::Auto,
        steps: 20,
        step: AutoNumber::Auto,
        momentum: AutoNumber::Auto,
    };

    /// Five parties with 30,162 rows together at a total of μ, in the closed form of the rule.
    fn facts(mu: f64, settings: &ConsensusSettings) -> PublicFacts {
        let share = (1.0 - settings.metric_share) / f64::from(settings.steps);
        let sigma = 2.0 * sum_scale(30_162) / (mu * share.sqrt());
        PublicFacts {
            parties: 5,
            total_rows: 30_162,
            columns: 137,
            loss: Loss::SmoothHinge { width: 1.0 },
            noise: Some(NoiseDistribution::gaussian(sigma)),
        }
    }

    #[test]
    fn the_first_question_and_the_gradients_share_the_budget_as_told() {
        let mu = 0.268;
        let parameters = SETTINGS.resolve(&facts(mu, &SETTINGS));
        let Preconditioner::Gram { noise, ridge, cut } = parameters.preconditioner else {
            panic!("a Gram matrix")
        };
        let sigma = facts(mu, &SETTINGS).noise.unwrap().amount();
        let scale = sum_scale(30_162);
        let first = 2f64.sqrt() * scale / (noise * sigma);
        assert!((first * first / (0.1 * mu * mu) - 1.0).abs() < 1e-12);
        let each = 2.0 * scale / sigma;
        let all = first * first + 20.0 * each * each;
        assert!((all / (mu * mu) - 1.0).abs() < 1e-12);
        // λ = ½·√2·√N/(μ√φ·B)·√d.
        let expected = 0.5 * (2.0 * 5.0 * 137.0 / 0.1f64).sqrt() / (mu * 30_162.0);
        assert!((ridge / expected - 1.0).abs() < 1e-12);
        // The noise of a symmetric matrix of d columns has eigenvalues up to √(2d) times its deviation.
        let edge = (2.0 * 137f64).sqrt() * 2.0 * ridge / 137f64.sqrt();
        assert!((cut / (0.5 * edge) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn steps_are_as_large_as_noise_allows() {
        let mu = 0.268;
        let parameters = SETTINGS.resolve(&facts(mu, &SETTINGS));
        let one = 2.0 * 5f64.sqrt() / (mu * 30_162.0) / 0.9f64.sqrt();
        let StepSize::ByDimension { curvature, largest } = parameters.step else {
            panic!("a step by dimension")
        };
        assert_eq!(curvature, 0.2);
        assert!((largest / (0.75 / (20.0 * one)) - 1.0).abs() < 1e-12);
        assert_eq!(parameters.momentum, 0.0);
    }

    #[test]
    fn without_a_metric_little_noise_gives_momentum_and_much_noise_short_steps() {
        let plain = ConsensusSettings {
            metric: MetricKind::None,
            metric_share: 0.0,
            steps: 120,
            ..SETTINGS
        };
        let little = plain.resolve(&facts(0.5, &plain));
        let one = 2.0 * 5f64.sqrt() / (0.5 * 30_162.0);
        let smooth = 4.0 / 3.0;
        assert!((little.momentum - (1.0 - smooth * 120.0 * one / 1.2)).abs() < 1e-9);
        assert!(matches!(little.step, StepSize::Fixed(step) if (step - smooth).abs() < 1e-9));
        let much = plain.resolve(&facts(0.01, &plain));
        assert_eq!(much.momentum, 0.0);
        let short = 1.2 / (120.0 * 2.0 * 5f64.sqrt() / (0.01 * 30_162.0));
        assert!(matches!(much.step, StepSize::Fixed(step) if (step - short).abs() < 1e-9));
        assert!(short < smooth);
        let silent = PublicFacts {
            noise: None,
            ..facts(1.0, &plain)
        };
        assert_eq!(plain.resolve(&silent).momentum, LARGEST_MOMENTUM);
    }

    #[test]
    fn given_numbers_are_kept() {
        let given = ConsensusSettings {
            metric_ridge: AutoNumber::Given(0.5),
            step: AutoNumber::Given(3.0),
            momentum: AutoNumber::Given(0.25),
            ..SETTINGS
        };
        let parameters = given.resolve(&facts(0.3, &given));
        assert_eq!(parameters.step, StepSize::Fixed(3.0));
        assert_eq!(parameters.momentum, 0.25);
        assert!(
            matches!(parameters.preconditioner, Preconditioner::Gram { ridge, .. } if ridge == 0.5)
        );
    }
}
