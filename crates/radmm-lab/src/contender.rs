//! One of several that are compared: a study on shared rows, with noise at which its whole run costs a common total.

use radmm::account::{Bound, Guarantee};
use radmm::node::Kind;
use radmm::private::{Law, Mechanism};
use radmm::sim::Snapshot;
use radmm_study::Method;
use radmm_study::equal;
use serde::Serialize;

use crate::assemble::RunError;
use crate::baseline;
use crate::experiment::Experiment;
use crate::outcome::Repetition;
use crate::shown::scale;
use crate::spread::Spread;

/// One of several that are compared.
pub struct Contender {
    /// In tables and legends.
    pub name: String,
    /// Its study, on the shared rows.
    pub experiment: Experiment,
    /// By node; `None` if no noise brings its cost down to the total.
    pub noise: Option<Vec<Mechanism>>,
}

/// What came of a contender.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// As the contender.
    pub name: String,
    /// As in study files.
    pub algorithm: &'static str,
    /// `T`.
    pub iterations: u32,
    /// How often it was run.
    pub repetitions: usize,
    /// How often each party's rows were asked.
    pub data_touches: u32,
    /// Over all edges, both ways.
    pub messages: usize,
    /// Which proof prices it.
    pub bound: Bound,
    /// Everything released: the largest of the parties'.
    #[serde(flatten)]
    pub total: Guarantee,
    /// Of a baseline: what its question had beyond the common ridge, the best of several in hindsight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_ridge: Option<f64>,
    /// `gamma` or `gaussian`, if there is noise.
    pub law: Option<&'static str>,
    /// The scale of the noise (rate of gamma noise, σ of Gaussian noise), least and greatest of the parties'.
    pub noise: Option<[f64; 2]>,
    /// On the rows that were trained on, at the end: each party's model on its own.
    pub loss: Spread,
    /// The same, averaged over the second half of the run: noise of single iterations cancels.
    pub late_loss: Spread,
    /// At the end, the share of its own party's rows that a model classifies rightly.
    pub accuracy: Spread,
    /// The mean loss of the models on everybody's training rows.
    pub loss_everywhere: Spread,
    /// The share of everybody's training rows that the models classify rightly.
    pub accuracy_everywhere: Spread,
    /// On rows that nobody trained on, if there are any.
    pub held_out: Option<HeldOut>,
    /// The time of one run.
    pub seconds: Spread,
    /// Why a repetition ended early, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// From iteration 0 on.
    pub course: Vec<Moment>,
}

/// How good models are on rows that nobody trained on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HeldOut {
    /// The mean loss of a row.
    pub loss: Spread,
    /// The share classified rightly.
    pub accuracy: Spread,
    /// The area under the ROC curve.
    pub auc: Spread,
}

/// An iteration, over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// `t`.
    pub t: u32,
    /// Whether rows were asked.
    pub kind: Kind,
    /// `L(t)`.
    pub loss: Spread,
    /// Of the mean model on everybody's training rows.
    pub mean_model_loss: Spread,
    /// `P(t)`.
    #[serde(flatten)]
    pub spent: Guarantee,
}

impl Contender {
    /// A study with its own noise.
    pub fn as_it_is(name: &str, experiment: Experiment) -> Self {
        Self {
            name: name.to_owned(),
            noise: experiment.noise().ok(),
            experiment,
        }
    }

    /// A study with the noise at which every party spends `total`.
    pub fn at(name: &str, experiment: Experiment, total: Guarantee) -> Self {
        let totals = vec![total; experiment.graph().len()];
        Self {
            name: name.to_owned(),
            noise: experiment.noise_for(&totals),
            experiment,
        }
    }

    /// How often `progress` will be called, at most.
    pub fn steps(&self) -> u64 {
        match self.noise {
            Some(_) => self.experiment.own_steps(),
            None => 0,
        }
    }

    /// Runs it; `None` if it cannot be had at this total.
    pub fn measure(
        &self,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Option<Measured>, RunError> {
        let Some(noise) = &self.noise else {
            return Ok(None);
        };
        let runs = self.experiment.repeat(noise, None, progress)?;
        let all = &runs.repetitions;
        let of = |number: fn(&Repetition) -> f64| Spread::of(all.iter().map(number));
        let made = all.iter().map(|run| run.iterations.len()).min();
        let moment = |t: usize| {
            let at = &all[0].iterations[t];
            Moment {
                t: at.iteration,
                kind: at.kind,
                loss: Spread::of(all.iter().map(|run| run.iterations[t].loss)),
                mean_model_loss: Spread::of(
                    all.iter().map(|run| run.iterations[t].mean_model.loss),
                ),
                spent: at.spent,
            }
        };
        let course: Vec<Moment> = (0..made.unwrap_or(0)).map(moment).collect();
        Ok(Some(Measured {
            name: self.name.clone(),
            algorithm: self.experiment.study().algorithm.method.name(),
            iterations: self.experiment.study().algorithm.iterations,
            repetitions: all.len(),
            data_touches: all[0]
                .nodes
                .iter()
                .map(|node| node.data_steps)
                .max()
                .unwrap_or(0),
            messages: match self.experiment.study().algorithm.method {
                // The simulator sends them, but nobody who trains alone would.
                Method::Local { .. } => 0,
                _ => all[0].iterations.len() * 2 * self.experiment.graph().edge_count(),
            },
            bound: self.experiment.study().privacy.bound,
            total: Guarantee::network(all.iter().map(Repetition::total)),
            extra_ridge: baseline::extra_ridge(&self.experiment.study().algorithm.method),
            law: noise.first().and_then(law),
            noise: scales(noise),
            loss: of(|run| run.end().last.loss),
            late_loss: of(|run| {
                let late = &run.iterations[run.iterations.len() / 2..];
                late.iter().map(|made| made.loss).sum::<f64>() / late.len() as f64
            }),
            accuracy: of(|run| run.end().last.accuracy),
            loss_everywhere: of(|run| run.everywhere.loss),
            accuracy_everywhere: of(|run| run.everywhere.accuracy),
            held_out: HeldOut::of(all),
            seconds: Spread::of(runs.took.iter().map(std::time::Duration::as_secs_f64)),
            stopped: all.iter().find_map(|run| run.stopped.clone()),
            course,
        }))
    }
}

impl Measured {
    /// The scale of the noise, or its ends where parties differ.
    pub fn noise_in_words(&self) -> String {
        match self.noise {
            None => "none".to_owned(),
            Some(ends) => {
                let name = match self.law {
                    Some("gamma") => "rate",
                    _ => "σ",
                };
                scale(name, ends)
            }
        }
    }

    /// The mean over the second half of the run of the range over the repetitions: one iteration's alone is chance.
    pub fn range_in_second_half(&self) -> f64 {
        let half = &self.course[self.course.len() / 2..];
        half.iter().map(|at| at.loss.range()).sum::<f64>() / half.len() as f64
    }
}

impl HeldOut {
    /// Of at least one run; `None` if no rows were held out.
    pub(crate) fn of(all: &[Repetition]) -> Option<Self> {
        let scores: Option<Vec<_>> = all.iter().map(|run| run.held_out).collect();
        scores.map(|scores| Self {
            loss: Spread::of(scores.iter().map(|score| score.loss)),
            accuracy: Spread::of(scores.iter().map(|score| score.accuracy)),
            auc: Spread::of(scores.iter().map(|score| score.auc)),
        })
    }
}

fn law(mechanism: &Mechanism) -> Option<&'static str> {
    equal::law(mechanism).map(|law| match law {
        Law::Gamma { .. } => "gamma",
        Law::Gaussian { .. } => "gaussian",
    })
}

fn scales(noise: &[Mechanism]) -> Option<[f64; 2]> {
    let all: Option<Vec<f64>> = noise.iter().map(equal::scale).collect();
    all.map(|all| {
        let spread = Spread::of(all);
        [spread.low, spread.high]
    })
}
