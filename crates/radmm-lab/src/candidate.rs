//! A candidate of a comparison: a study on shared rows, with noise at which its whole run costs a common total.

use radmm::curator::HeldOutScore;
use radmm::node::StepKind;
use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseFamily};
use radmm::sim::{GlobalFit, Snapshot};
use radmm_study::number_format::scale;
use serde::Serialize;

use crate::experiment::Experiment;
use crate::instantiate::RunError;
use crate::outcome::Repetition;
use crate::stats::SampleStats;

/// A study to be compared with others.
pub struct Candidate {
    /// The name in tables and legends.
    pub name: String,
    /// The study, on the shared rows.
    pub experiment: Experiment,
    /// The noise of each node; `None` if no noise brings the cost down to the total.
    pub noise: Option<Vec<Mechanism>>,
}

/// The result of a candidate.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateResult {
    /// The candidate's name.
    pub name: String,
    /// The algorithm's name in study files.
    pub algorithm: &'static str,
    /// `T`.
    pub iterations: u32,
    /// The number of runs.
    pub repetitions: usize,
    /// The number of queries to each party's rows.
    #[serde(rename = "data_touches")]
    pub data_steps: u32,
    /// The number of messages over all edges, both ways.
    pub messages: usize,
    /// The proof by which it is priced.
    pub bound: Bound,
    /// The total of everything released, the largest of the parties'.
    #[serde(flatten)]
    pub total: Guarantee,
    /// For a baseline, the ridge of its query beyond the common one: the best of several in hindsight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_ridge: Option<f64>,
    /// The family of the noise, if there is any.
    pub law: Option<NoiseFamily>,
    /// The scale of the noise (rate of gamma or Laplace noise, σ of Gaussian noise), least and greatest of the parties'.
    pub noise: Option<[f64; 2]>,
    /// The loss at the end, of each party's model on its own training rows.
    pub loss: SampleStats,
    /// The same loss averaged over the second half of the run, where the noise of single iterations cancels.
    pub late_loss: SampleStats,
    /// The share of its own party's rows that a model classifies correctly at the end.
    pub accuracy: SampleStats,
    /// The mean loss of the models on everybody's training rows.
    pub loss_everywhere: SampleStats,
    /// The share of everybody's training rows that the models classify correctly.
    pub accuracy_everywhere: SampleStats,
    /// The quality on held-out rows, if there are any.
    pub held_out: Option<HeldOutStats>,
    /// The wall time of one run.
    pub seconds: SampleStats,
    /// The reason why a repetition ended early, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The iterations, from 0 on.
    #[serde(rename = "course")]
    pub by_iteration: Vec<IterationStats>,
}

/// The quality of models on held-out rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HeldOutStats {
    /// The mean loss of a row.
    pub loss: SampleStats,
    /// The share classified correctly.
    pub accuracy: SampleStats,
    /// The area under the ROC curve.
    pub auc: SampleStats,
}

/// One iteration, over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IterationStats {
    /// `t`.
    pub t: u32,
    /// The kind of iteration.
    pub kind: StepKind,
    /// `L(t)`.
    pub loss: SampleStats,
    /// The loss of the mean model on everybody's training rows.
    pub mean_model_loss: Option<SampleStats>,
    /// `P(t)`.
    #[serde(flatten)]
    pub spent: Guarantee,
}

impl Candidate {
    /// Returns a study with its own noise.
    pub fn with_own_noise(name: &str, experiment: Experiment) -> Self {
        Self {
            name: name.to_owned(),
            noise: experiment.noise().ok(),
            experiment,
        }
    }

    /// Returns a study with the noise at which every party spends `total`.
    pub fn at_total(name: &str, experiment: Experiment, total: Guarantee) -> Self {
        let totals = vec![total; experiment.graph().len()];
        Self {
            name: name.to_owned(),
            noise: experiment.noise_for(&totals),
            experiment,
        }
    }

    /// Returns an upper bound on the number of calls of `progress`.
    pub fn progress_steps(&self) -> u64 {
        match self.noise {
            Some(_) => self.experiment.repeat_progress_steps(),
            None => 0,
        }
    }

    /// Runs all repetitions; `None` if no noise reaches the total.
    pub fn measure(
        &self,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Option<CandidateResult>, RunError> {
        let Some(noise) = &self.noise else {
            return Ok(None);
        };
        let runs = self.experiment.repeat(noise, None, progress)?;
        let all = &runs.repetitions;
        let study = self.experiment.study();
        let stats = |number: fn(&Repetition) -> f64| SampleStats::of(all.iter().map(number));
        let data_steps = all[0].nodes.iter().map(|node| node.data_steps);
        Ok(Some(CandidateResult {
            name: self.name.clone(),
            algorithm: study.algorithm.method.name(),
            iterations: study.algorithm.iterations,
            repetitions: all.len(),
            data_steps: data_steps.max().unwrap_or(0),
            messages: match study.algorithm.method.info().communicates {
                // The simulator sends them, but nobody who trains alone would.
                false => 0,
                true => all[0].iterations.len() * 2 * self.experiment.graph().edge_count(),
            },
            bound: study.privacy.bound,
            total: Guarantee::network(all.iter().map(Repetition::total)),
            extra_ridge: study.algorithm.method.extra_ridge(),
            law: noise.first().and_then(law),
            noise: scales(noise),
            loss: stats(|run| run.final_state().last.loss),
            late_loss: stats(|run| {
                let late = &run.iterations[run.iterations.len() / 2..];
                late.iter().map(|made| made.loss).sum::<f64>() / late.len() as f64
            }),
            accuracy: stats(|run| run.final_state().last.accuracy),
            loss_everywhere: stats(|run| run.everywhere.loss),
            accuracy_everywhere: stats(|run| run.everywhere.accuracy),
            held_out: HeldOutStats::of(all),
            seconds: SampleStats::of(runs.wall_times.iter().map(std::time::Duration::as_secs_f64)),
            stopped: all.iter().find_map(|run| run.stopped.clone()),
            by_iteration: IterationStats::all(all),
        }))
    }
}

impl CandidateResult {
    /// Returns the scale of the noise in words, or its ends where parties differ.
    pub fn noise_text(&self) -> String {
        match self.noise {
            None => "none".to_owned(),
            Some(ends) => {
                let name = self.law.map_or("σ", NoiseFamily::symbol);
                scale(name, ends)
            }
        }
    }

    /// Returns the range of the loss over the repetitions, averaged over the second half of the run. The range of a single
    /// iteration is chance.
    pub fn range_in_second_half(&self) -> f64 {
        let half = &self.by_iteration[self.by_iteration.len() / 2..];
        half.iter().map(|at| at.loss.range()).sum::<f64>() / half.len() as f64
    }
}

impl IterationStats {
    /// Returns the iterations that all runs made.
    fn all(runs: &[Repetition]) -> Vec<Self> {
        let made = runs.iter().map(|run| run.iterations.len()).min();
        let at = |t: usize| {
            let stats = |number: fn(&Snapshot) -> f64| {
                SampleStats::of(runs.iter().map(|run| number(&run.iterations[t])))
            };
            let first = &runs[0].iterations[t];
            let mean_models = runs.iter().map(|run| run.iterations[t].mean_model);
            let mean_models: Option<Vec<_>> = mean_models.collect();
            let losses = |fits: Vec<GlobalFit>| SampleStats::of(fits.iter().map(|fit| fit.loss));
            Self {
                t: first.iteration,
                kind: first.kind,
                loss: stats(|made| made.loss),
                mean_model_loss: mean_models.map(losses),
                spent: first.spent,
            }
        };
        (0..made.unwrap_or(0)).map(at).collect()
    }
}

impl HeldOutStats {
    /// Returns the statistics of at least one run; `None` if no rows were held out.
    pub fn of(runs: &[Repetition]) -> Option<Self> {
        let scores: Option<Vec<_>> = runs.iter().map(|run| run.held_out).collect();
        scores.map(|scores| Self::of_scores(&scores))
    }

    /// Returns the statistics of at least one score.
    pub(crate) fn of_scores(scores: &[HeldOutScore]) -> Self {
        let stats = |number: fn(&HeldOutScore) -> f64| SampleStats::of(scores.iter().map(number));
        Self {
            loss: stats(|score| score.loss),
            accuracy: stats(|score| score.accuracy),
            auc: stats(|score| score.auc),
        }
    }
}

fn law(mechanism: &Mechanism) -> Option<NoiseFamily> {
    mechanism.noise().map(|law| law.family())
}

fn scales(noise: &[Mechanism]) -> Option<[f64; 2]> {
    let all: Option<Vec<f64>> = noise
        .iter()
        .map(|mechanism| Some(mechanism.noise()?.amount()))
        .collect();
    all.map(|all| SampleStats::of(all).ends())
}
