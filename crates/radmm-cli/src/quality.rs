//! How good predictions are, where labels are known.

use radmm::curator::auc;
use radmm_study::number_format::{count, percent, thousands};
use radmm_report::TextTable;
use serde::Serialize;

use crate::render;
use crate::sheet::Prediction;

/// Predictions beside labels. It keeps 16 bytes a row, since ranking needs them all.
#[derive(Default)]
pub(crate) struct Seen {
    scores: Vec<(f64, bool)>,
    confusion: Confusion,
}

/// How often which prediction met which label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Confusion {
    true_positive: usize,
    false_positive: usize,
    false_negative: usize,
    true_negative: usize,
}

/// How good they are.
#[derive(Serialize)]
pub(crate) struct Quality {
    /// The share of rows that are classified rightly.
    accuracy: f64,
    /// None if all rows are of one class.
    auc: Option<f64>,
    confusion: Confusion,
}

impl Seen {
    pub(crate) fn add(&mut self, prediction: &Prediction, actual: bool) {
        // Of two probabilities that are one to the last digit, scores still tell which is higher.
        self.scores.push((prediction.score, actual));
        let cell = match (prediction.positive, actual) {
            (true, true) => &mut self.confusion.true_positive,
            (true, false) => &mut self.confusion.false_positive,
            (false, true) => &mut self.confusion.false_negative,
            (false, false) => &mut self.confusion.true_negative,
        };
        *cell += 1;
    }

    /// None without labels.
    pub(crate) fn quality(self) -> Option<Quality> {
        let Self { scores, confusion } = self;
        let rows = scores.len();
        if rows == 0 {
            return None;
        }
        let right = confusion.true_positive + confusion.true_negative;
        let positives = confusion.true_positive + confusion.false_negative;
        Some(Quality {
            accuracy: right as f64 / rows as f64,
            auc: (1..rows).contains(&positives).then(|| auc(scores)),
            confusion,
        })
    }
}

impl Quality {
    /// Rows whose label is the positive one.
    pub(crate) fn positives(&self) -> usize {
        self.confusion.true_positive + self.confusion.false_negative
    }

    /// Two rows of counts, and a line below.
    pub(crate) fn table(&self, positive: &str) -> String {
        let Confusion {
            true_positive,
            false_positive,
            false_negative,
            true_negative,
        } = self.confusion;
        let row =
            |name: String, ones: usize, zeros: usize| vec![name, thousands(ones), thousands(zeros)];
        let grid = TextTable {
            caption: String::new(),
            header: ["label", "predicted 1", "predicted 0"]
                .map(str::to_owned)
                .into(),
            rows: vec![
                row(positive.to_owned(), true_positive, false_negative),
                row(format!("not {positive}"), false_positive, true_negative),
            ],
            folded: false,
        };
        let rows = true_positive + false_positive + false_negative + true_negative;
        let auc = match self.auc {
            Some(auc) => format!("AUC {auc:.4}"),
            None => "no AUC, as all are of one class".to_owned(),
        };
        format!(
            "{}\naccuracy {}, {auc}, on {}",
            render::plain(&grid),
            percent(self.accuracy),
            count(rows, "row with a label", "rows with a label")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quality(rows: &[(f64, bool)]) -> Quality {
        let mut seen = Seen::default();
        for (score, actual) in rows {
            let prediction = Prediction {
                score: *score,
                value: *score,
                positive: *score >= 0.0,
            };
            seen.add(&prediction, *actual);
        }
        seen.quality().unwrap()
    }

    #[test]
    fn every_pair_of_prediction_and_label_is_counted_in_its_cell() {
        let rows = [
            (1.0, true),
            (2.0, true),
            (3.0, true),
            (1.0, false),
            (1.5, false),
            (-1.0, true),
            (-2.0, false),
        ];
        let quality = quality(&rows);
        let expected = Confusion {
            true_positive: 3,
            false_positive: 2,
            false_negative: 1,
            true_negative: 1,
        };
        assert_eq!(quality.confusion, expected);
        assert_eq!(quality.accuracy, 4.0 / 7.0);
        // Of 12 pairs of a positive and a negative row, 8 are in order and one is a tie.
        assert!((quality.auc.unwrap() - 8.5 / 12.0).abs() < 1e-15);
    }

    #[test]
    fn rows_of_one_class_have_no_area_and_no_rows_no_quality() {
        assert!(quality(&[(1.0, true), (-1.0, true)]).auc.is_none());
        assert!(quality(&[(1.0, false)]).auc.is_none());
        assert!(Seen::default().quality().is_none());
    }
}
