//! Scores of a model on held-out rows.
//!
//! The area under the ROC curve (AUC) is the probability that a positive row scores higher than a negative one, both
//! drawn at random, with ties counted half. With ranks from 1 in ascending order of the scores, and equal scores
//! sharing their mean rank,
//! ```text
//! AUC = (Σ ranks of the positive rows − P(P+1)/2) / (P·N)
//! ```
//! for P positive and N negative rows (Mann and Whitney 1947).
//!
//! Privacy: these numbers are unprotected functions of rows. Only the simulator computes them. [`auc`] sees scores and
//! no rows, so it is open to any caller that scores its own rows.

use serde::Serialize;

use super::row_passes::{LocalChunks, Pass, PassCache, PassFailed, RowPasses, Summand};
use super::rows::shard::Shard;
use super::solver::double_double::Point;
use super::solver::objective;
use crate::exec::Sequential;
use crate::problem::Loss;

/// The scores of a model on held-out rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeldOutScore {
    /// The mean loss per row.
    pub loss: f64,
    /// The share of rows that are classified correctly.
    pub accuracy: f64,
    /// The area under the ROC curve; one half if all rows are of one class.
    pub auc: f64,
}

/// Scores a model on held-out rows.
pub(crate) fn evaluate(
    shard: &Shard,
    loss: Loss,
    model: &[f64],
) -> Result<HeldOutScore, PassFailed> {
    let cache = PassCache::default();
    let rows: &dyn RowPasses = &LocalChunks::new(shard, &Sequential, &cache);
    let at = Point::plain(model);
    let margins = rows.by_row(&Pass::over_all(Summand::Margin { at }))?;
    let labels = rows.by_row(&Pass::over_all(Summand::Label))?;
    let (loss, accuracy) = objective::mean_loss_and_accuracy(rows, loss, model)?;
    let pairs = margins.iter().zip(&labels);
    let scores = pairs.map(|(margin, label)| (label * margin, *label > 0.0));
    Ok(HeldOutScore {
        loss,
        accuracy,
        auc: auc(scores.collect()),
    })
}

/// Returns the area under the ROC curve of scores, each paired with whether its row is positive; one half if all rows
/// are of one class.
pub fn auc(mut labelled_scores: Vec<(f64, bool)>) -> f64 {
    // Adding zero turns -0 into 0, since `total_cmp` distinguishes them.
    labelled_scores
        .iter_mut()
        .for_each(|(score, _)| *score += 0.0);
    labelled_scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let positives = labelled_scores
        .iter()
        .filter(|(_, positive)| *positive)
        .count() as f64;
    let negatives = labelled_scores.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return 0.5;
    }
    let mut rank_sum = 0.0;
    let mut before = 0;
    for tied in labelled_scores.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let mean_rank = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        rank_sum += mean_rank * tied.iter().filter(|(_, positive)| *positive).count() as f64;
        before += tied.len();
    }
    (rank_sum - positives * (positives + 1.0) / 2.0) / (positives * negatives)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curator::{NormPolicy, ShardBuilder};
    use proptest::prelude::*;

    /// The AUC by its definition, over all pairs.
    fn auc_over_pairs(labelled_scores: &[(f64, bool)]) -> f64 {
        let of = |class| labelled_scores.iter().filter(move |row| row.1 == class);
        let mut wins = 0.0;
        for (high, _) in of(true) {
            for (low, _) in of(false) {
                wins += match high.partial_cmp(low) {
                    Some(std::cmp::Ordering::Greater) => 1.0,
                    Some(std::cmp::Ordering::Equal) => 0.5,
                    _ => 0.0,
                };
            }
        }
        wins / (of(true).count() * of(false).count()) as f64
    }

    proptest! {
        #[test]
        fn the_auc_is_the_share_of_pairs_in_the_right_order(
            mut labelled_scores in prop::collection::vec(((-3_i8..4).prop_map(|k| f64::from(k) * 0.5), any::<bool>()), 2..40)
        ) {
            labelled_scores.push((0.25, true));
            labelled_scores.push((-0.0, false));
            prop_assert!((auc(labelled_scores.clone()) - auc_over_pairs(&labelled_scores)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_perfect_order_has_auc_one_and_its_reverse_zero() {
        assert_eq!(auc(vec![(1.0, true), (0.0, false), (-1.0, false)]), 1.0);
        assert_eq!(auc(vec![(1.0, false), (0.0, true), (-1.0, true)]), 0.0);
        assert_eq!(auc(vec![(0.0, false), (-0.0, true)]), 0.5);
        assert_eq!(auc(vec![(1.0, true), (0.0, true)]), 0.5);
    }

    #[test]
    fn the_auc_ranks_scores_and_not_margins() {
        // One coordinate, model 1: scores are ±1 and 0.5, whatever the labels.
        let mut builder = ShardBuilder::new(1, NormPolicy::Clip);
        for (value, positive) in [(1.0, true), (0.5, false), (-1.0, true), (-0.5, false)] {
            builder.push(&[(0, value)], positive).unwrap();
        }
        let score = evaluate(&builder.finish().unwrap(), Loss::Logistic, &[1.0]).unwrap();
        assert_eq!((score.accuracy, score.auc), (0.5, 0.5));
        let mut builder = ShardBuilder::new(1, NormPolicy::Clip);
        for (value, positive) in [(1.0, true), (0.5, false), (0.75, true), (-0.5, false)] {
            builder.push(&[(0, value)], positive).unwrap();
        }
        let score = evaluate(&builder.finish().unwrap(), Loss::Logistic, &[1.0]).unwrap();
        assert_eq!((score.accuracy, score.auc), (0.75, 1.0));
        // A negative row above a positive one: by their margins, 0.5 and −0.9, they would be in order.
        let mut builder = ShardBuilder::new(1, NormPolicy::Clip);
        builder.push(&[(0, 0.5)], true).unwrap();
        builder.push(&[(0, 0.9)], false).unwrap();
        let score = evaluate(&builder.finish().unwrap(), Loss::Logistic, &[1.0]).unwrap();
        assert_eq!(score.auc, 0.0);
    }
}
