//! The plan of a study: what it is going to be charged for, on record since before its first question.
//!
//! A study that ends because answers may be missing in its state is charged for all of its plan.

use radmm::curator::ChargedAnswer;
use radmm::privacy::PrivacyEvent;
use radmm_study::hex;
use serde::{Deserialize, Serialize};

use super::charge_encoding::RowFingerprint;
use super::index::{Entry, STEP, StepIterations};
use super::step::PendingStep;
use super::{Store, StoreError};
use crate::event_json::EventJson;

/// Planned charges that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlannedCharges {
    event: EventJson,
    /// The iterations of the data steps, ascending.
    iterations: Vec<u32>,
}

impl PlannedCharges {
    /// Returns the plan of a study, given its charges by iteration.
    pub(crate) fn of(charges: &[(u32, PrivacyEvent)]) -> Vec<Self> {
        let alike = charges.chunk_by(|(_, one), (_, other)| one == other);
        let planned = alike.map(|alike| Self {
            event: EventJson::from(&alike[0].1),
            iterations: alike.iter().map(|(iteration, _)| *iteration).collect(),
        });
        planned.collect()
    }
}

impl Store {
    /// Ends the studies that are not over, and charges them for all that they had planned.
    // Privacy: answers of theirs may have left that are not on record. The plan was on record before the first of them, and they were
    // all in it.
    pub(super) fn end_unfinished_studies(&mut self) -> Result<(), StoreError> {
        for number in 0..self.index.studies.len() as u32 {
            let study = self.study(number)?;
            if study.record.is_over() {
                continue;
            }
            let last = study.charged;
            let charged = study.record.plan.iter().flat_map(|planned| {
                let left = planned.iterations.iter();
                let left = left.filter(|t| last.is_none_or(|last| **t > last));
                left.map(|iteration| ChargedAnswer {
                    iteration: *iteration,
                    event: planned.event.into(),
                    answer: None,
                })
            });
            let step = PendingStep {
                charged: charged.collect(),
                ended: true,
                ..PendingStep::default()
            };
            let rows = hex::decode(&study.record.fingerprint);
            let rows = RowFingerprint(rows.map_err(|error| self.corrupt(error))?);
            let iterations = StepIterations::of_pending(&step);
            let entry = Entry::Step {
                study: number,
                iterations,
            };
            self.append(STEP, &step.to_bytes(number, rows), entry)?;
        }
        Ok(())
    }
}
