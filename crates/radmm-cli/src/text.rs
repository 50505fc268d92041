//! Results as the text that the commands print.

use radmm_lab::{
    Certification, Comparison, ComparisonResult, Experiment, Forecast, Outcome, StudyBill,
};
use radmm_node::evidence::Verification;

use crate::commands::{certify, compare, plan, privacy, verify};
use crate::input::warnings;
use crate::output::tables;

/// Formats the result of a study, as `radmm run` does.
pub fn outcome(experiment: &Experiment, outcome: &Outcome) -> String {
    tables::outcome(experiment, outcome)
}

/// Formats a bill, as `radmm privacy` does.
pub fn bill(bill: &StudyBill) -> String {
    privacy::page(bill)
}

/// Formats a forecast, as `radmm plan` does.
pub fn forecast(forecast: &Forecast) -> String {
    plan::page(forecast)
}

/// Formats a certification, as `radmm certify` does.
pub fn certification(certified: &Certification) -> String {
    certify::page(certified)
}

/// Formats a comparison, as `radmm compare` does.
pub fn comparison(comparison: &Comparison, compared: &ComparisonResult) -> String {
    compare::page(comparison, compared)
}

/// Formats a verification at the δ of its study, as `radmm verify` does.
pub fn verification(verdict: &Verification, delta: f64) -> String {
    verify::page(verdict, delta)
}

/// Formats a verification as `radmm verify --json` does.
pub fn verification_json(verdict: &Verification) -> String {
    verify::json(verdict)
}

/// Returns notes on rows and studies that can be run but look like a mistake.
pub fn notes_on_rows(experiment: &Experiment) -> Vec<String> {
    let dropped = warnings::of_dropped_rows(experiment);
    dropped
        .into_iter()
        .chain(warnings::on_rows(experiment))
        .collect()
}
