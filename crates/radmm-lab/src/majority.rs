//! The majority class: the least that a classifier must do better than.

use radmm_study::rows::StudyRows;
use serde::Serialize;

/// The class that is more frequent among the training rows, and its accuracy as the answer for every row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MajorityClass {
    /// Whether it is the positive class. Where both are as frequent, it is not.
    pub positive: bool,
    /// The share of everybody's training rows that are of this class.
    pub accuracy: f64,
    /// The share of a party's training rows that are of this class, averaged over the parties.
    pub own_accuracy: f64,
    /// The share of the held-out rows that are of this class, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
}

impl MajorityClass {
    /// The area under the ROC curve of a classifier that gives every row the same answer.
    pub const AUC: f64 = 0.5;

    /// Returns the majority class of a study's training rows.
    pub fn of(table: &StudyRows) -> Self {
        let counts = &table.counts;
        let positive = 2 * counts.positive > table.rows();
        let share = |of_positive: usize, rows: usize| {
            let right = if positive {
                of_positive
            } else {
                rows - of_positive
            };
            right as f64 / rows as f64
        };
        let parties = table.parties.iter();
        let own = parties.map(|party| share(party.positive, party.shard.rows()));
        let held_out = (counts.held_out > 0).then_some((counts.held_out_positive, counts.held_out));
        Self {
            positive,
            accuracy: share(counts.positive, table.rows()),
            own_accuracy: own.sum::<f64>() / table.parties.len() as f64,
            held_out: held_out.map(|(positive, rows)| share(positive, rows)),
        }
    }

    /// Returns the accuracy that results are compared by: on held-out rows if there are any, else on all training rows.
    pub fn accuracy_shown(&self) -> f64 {
        self.held_out.unwrap_or(self.accuracy)
    }
}

/// The name of the majority class in tables and plots.
pub(crate) const MAJORITY: &str = "majority class";
