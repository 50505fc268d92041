//! A result that is no better than the majority class, and the rows that would help.

use radmm::privacy::{Guarantee, Mechanism};
use radmm_study::Noise;
use radmm_study::number_format::thousands;
use serde::Serialize;

use super::ladder::Ladder;
use super::{LEAST_GAP, RowsNeeded, RowsRelation, mean_accuracy};
use crate::experiment::Experiment;
use crate::instantiate::RunError;
use crate::majority::MajorityClass;
use crate::outcome::{FinalState, Outcome, Repetition};
use crate::stats::SampleStats;

/// The most runs with different noise for one number of rows.
const RUNS: u32 = 3;

/// A finding: the models are no better than the majority class in answer to every row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BelowMajority {
    /// The label that is always right as often, or `not` and the other one.
    pub answer: String,
    /// The rows that half of the way to no noise would take at the same total; `None` if rows are not what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_needed: Option<RowsNeeded>,
    /// The finding in a sentence, with the rows that would be needed.
    pub sentence: String,
}

impl Experiment {
    /// Returns the finding that the models of a finished run are not better than the majority class by more than two standard
    /// errors; `None` if they are.
    pub(crate) fn below_majority(
        &self,
        outcome: &Outcome,
    ) -> Result<Option<BelowMajority>, RunError> {
        let majority = MajorityClass::of(self.table());
        let ends: Vec<FinalState> = outcome
            .repetitions
            .iter()
            .map(Repetition::final_state)
            .collect();
        let accuracy = mean_accuracy(&ends);
        if accuracy > majority.accuracy_shown() + 2.0 * self.standard_error(&ends, accuracy) {
            return Ok(None);
        }
        let answer = self.majority_answer(&majority);
        let mut claim = format!("no better than always saying {answer}");
        if accuracy > majority.accuracy_shown() && ends.len() == 1 {
            claim += &format!(" as far as {} rows can tell", thousands(self.rows_shown()));
        }
        let no_noise = match (&outcome.centralised_held_out, &outcome.centralised) {
            (Some(score), _) => Some(score.accuracy),
            (None, Some(optimum)) => Some(optimum.global_fit.accuracy),
            (None, None) => None,
        };
        let gap = no_noise.map_or(0.0, |no_noise| no_noise - majority.accuracy_shown());
        let (rows_needed, sentence) = if gap < LEAST_GAP {
            let reason = "nor is the optimum without noise: other columns would help";
            (None, format!("{claim}, {reason}"))
        } else if self.is_lost_without_noise(majority.accuracy_shown(), gap)? {
            let reason = "with or without noise: more iterations or other parameters would help";
            (None, format!("{claim}, {reason}"))
        } else {
            let needed = self.rows_for_half(outcome, majority.accuracy_shown(), gap)?;
            let sentence = format!("{claim}: {} would be needed", needed.in_words());
            (Some(needed), sentence)
        };
        Ok(Some(BelowMajority {
            answer,
            rows_needed,
            sentence,
        }))
    }

    /// Returns whether the algorithm goes less than half of the way to the optimum even without noise.
    fn is_lost_without_noise(&self, majority: f64, gap: f64) -> Result<bool, RunError> {
        let mut study = self.study().clone();
        study.run.repetitions = 1;
        study.privacy.noise = Noise::Given(Mechanism::None);
        let noise = vec![Mechanism::None; self.graph().len()];
        let ends = self.on_same_network(study).final_states(&noise, &|_| ())?;
        Ok(mean_accuracy(&ends) - majority < super::SHARES[0] * gap)
    }

    /// Returns the standard error of an accuracy: over the repetitions, or of one over the rows.
    fn standard_error(&self, ends: &[FinalState], accuracy: f64) -> f64 {
        match ends.len() {
            1 => (accuracy * (1.0 - accuracy) / self.rows_shown() as f64).sqrt(),
            many => {
                let each = ends
                    .iter()
                    .map(|end| mean_accuracy(std::slice::from_ref(end)));
                SampleStats::of(each).deviation / (many as f64).sqrt()
            }
        }
    }

    /// Returns the number of rows on which the accuracy that is shown was measured.
    fn rows_shown(&self) -> usize {
        match self.table().counts.held_out {
            0 => self.table().rows(),
            held_out => held_out,
        }
    }

    /// Returns the label of the majority class.
    fn majority_answer(&self, majority: &MajorityClass) -> String {
        let positive = &self.study().data.schema.positive;
        if majority.positive {
            return positive.clone();
        }
        let labels = self.table().counts.labels.iter();
        let others: Vec<&String> = labels.filter(|label| *label != positive).collect();
        match others.as_slice() {
            [only] => (*only).clone(),
            _ => format!("not {positive}"),
        }
    }

    /// Forecasts, on the study's own rows, the number of rows that half of the way to no noise takes at the totals that were spent.
    fn rows_for_half(
        &self,
        outcome: &Outcome,
        majority: f64,
        gap: f64,
    ) -> Result<RowsNeeded, RunError> {
        let mut study = self.study().clone();
        study.run.repetitions = study.run.repetitions.clamp(2, RUNS);
        let base = self.on_same_network(study);
        let delta = self.study().privacy.delta;
        let nodes = outcome.repetitions[0].nodes.iter();
        let totals = nodes.map(|node| Guarantee {
            epsilon: node.spent.epsilon,
            delta,
        });
        let totals: Vec<Guarantee> = totals.collect();
        let own = self.table().rows();
        let ladder = Ladder::up_to_half(own, |rows| {
            let ends = base.as_if_rows_counted(rows as f64 / own as f64, &totals)?;
            let accuracy = ends.map_or(majority, |ends| mean_accuracy(&ends));
            Ok::<f64, RunError>((accuracy - majority) / gap)
        })?;
        Ok(ladder.rows_for(super::SHARES[0]))
    }
}

impl RowsNeeded {
    /// Returns the number in words: `about 12,000 rows`.
    pub fn in_words(&self) -> String {
        let how = match self.relation {
            RowsRelation::AtMost => "at most",
            RowsRelation::About => "about",
            RowsRelation::MoreThan => "more than",
        };
        format!("{how} {} rows", thousands(self.rows))
    }
}
