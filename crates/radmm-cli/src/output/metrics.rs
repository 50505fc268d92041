//! Accuracy, AUC and confusion matrix of predictions on rows with a label.

use radmm::curator::auc;
use radmm_study::number_format::{count, percent, thousands};
use serde::Serialize;

use crate::output::prediction_writer::Prediction;
use crate::output::tables;

/// Collects predictions with their labels. Uses 16 bytes a row, since the AUC needs all scores.
#[derive(Default)]
pub(crate) struct MetricsBuilder {
    scores: Vec<(f64, bool)>,
    confusion: ConfusionMatrix,
}

/// The confusion matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct ConfusionMatrix {
    true_positive: usize,
    false_positive: usize,
    false_negative: usize,
    true_negative: usize,
}

/// The metrics of predictions.
#[derive(Serialize)]
pub(crate) struct Metrics {
    /// The share of rows that are classified correctly.
    accuracy: f64,
    /// `None` if all rows are of one class.
    auc: Option<f64>,
    confusion: ConfusionMatrix,
}

impl MetricsBuilder {
    /// Adds a row.
    pub(crate) fn add(&mut self, prediction: &Prediction, actual: bool) {
        // Scores, because distinct scores can have equal probabilities after rounding.
        self.scores.push((prediction.score, actual));
        let cell = match (prediction.positive, actual) {
            (true, true) => &mut self.confusion.true_positive,
            (true, false) => &mut self.confusion.false_positive,
            (false, true) => &mut self.confusion.false_negative,
            (false, false) => &mut self.confusion.true_negative,
        };
        *cell += 1;
    }

    /// Computes the metrics. Returns `None` if no row had a label.
    pub(crate) fn finish(self) -> Option<Metrics> {
        let Self { scores, confusion } = self;
        let rows = scores.len();
        if rows == 0 {
            return None;
        }
        let correct = confusion.true_positive + confusion.true_negative;
        let positives = confusion.true_positive + confusion.false_negative;
        Some(Metrics {
            accuracy: correct as f64 / rows as f64,
            auc: (1..rows).contains(&positives).then(|| auc(scores)),
            confusion,
        })
    }
}

impl Metrics {
    /// Returns the number of rows of the positive class.
    pub(crate) fn positives(&self) -> usize {
        self.confusion.true_positive + self.confusion.false_negative
    }

    /// Formats the confusion matrix, with accuracy and AUC below.
    pub(crate) fn table(&self, positive: &str) -> String {
        let ConfusionMatrix {
            true_positive,
            false_positive,
            false_negative,
            true_negative,
        } = self.confusion;
        let row =
            |name: String, ones: usize, zeros: usize| vec![name, thousands(ones), thousands(zeros)];
        let table = tables::grid(
            &["label", "predicted 1", "predicted 0"],
            [
                row(positive.to_owned(), true_positive, false_negative),
                row(format!("not {positive}"), false_positive, true_negative),
            ],
        );
        let rows = true_positive + false_positive + false_negative + true_negative;
        let auc = match self.auc {
            Some(auc) => format!("AUC {auc:.4}"),
            None => "no AUC, since all rows are of one class".to_owned(),
        };
        format!(
            "{table}\naccuracy {}, {auc}, on {}",
            percent(self.accuracy),
            count(rows, "row with a label", "rows with a label")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(rows: &[(f64, bool)]) -> Metrics {
        let mut builder = MetricsBuilder::default();
        for (score, actual) in rows {
            let prediction = Prediction {
                score: *score,
                value: *score,
                positive: *score >= 0.0,
            };
            builder.add(&prediction, *actual);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn the_confusion_matrix_counts_every_pair_of_prediction_and_label() {
        let rows = [
            (1.0, true),
            (2.0, true),
            (3.0, true),
            (1.0, false),
            (1.5, false),
            (-1.0, true),
            (-2.0, false),
        ];
        let metrics = metrics(&rows);
        let expected = ConfusionMatrix {
            true_positive: 3,
            false_positive: 2,
            false_negative: 1,
            true_negative: 1,
        };
        assert_eq!(metrics.confusion, expected);
        assert_eq!(metrics.accuracy, 4.0 / 7.0);
        // Of 12 pairs of a positive and a negative row, 8 are in order and one is a tie.
        assert!((metrics.auc.unwrap() - 8.5 / 12.0).abs() < 1e-15);
    }

    #[test]
    fn rows_of_one_class_have_no_auc_and_no_rows_have_no_metrics() {
        assert!(metrics(&[(1.0, true), (-1.0, true)]).auc.is_none());
        assert!(metrics(&[(1.0, false)]).auc.is_none());
        assert!(MetricsBuilder::default().finish().is_none());
    }
}
