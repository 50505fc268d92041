//! Headline figures that pages share: what was spent, and whom it protects.

use radmm::privacy::Guarantee;
use radmm_report::Headline;
use radmm_study::PrivacySection;
use radmm_study::number_format::{delta, epsilon, percent};

use crate::centralised::optimum_text;
use crate::experiment::Experiment;
use crate::majority::MajorityClass;
use crate::result_file::caveat;

/// Returns the total ε with its δ, its scope and its neighbouring relation.
pub(super) fn total_epsilon(total: Guarantee, privacy: &PrivacySection) -> Headline {
    match total.epsilon.is_finite() {
        true => Headline::new(
            "total privacy loss",
            format!("ε = {}", epsilon(total.epsilon)),
            format!(
                "at δ = {}, for {}: the total over every message of the run, the largest of the parties’",
                delta(total.delta),
                Guarantee::RELATION
            ),
        ),
        false => Headline::new(
            "total privacy loss",
            "∞",
            format!(
                "no guarantee: answers were released {}",
                privacy.unprotected().unwrap_or("without noise")
            ),
        ),
    }
}

/// Returns that a simulation protects nobody, and why.
pub(super) fn protection(privacy: &PrivacySection) -> Headline {
    Headline::new(
        "protects these rows?",
        "no",
        format!(
            "This is {}. Only `radmm node` protects rows.",
            caveat(privacy)
        ),
    )
}

/// Formats the references of an accuracy: the optimum without noise, and the majority class.
pub(super) fn accuracy_references(experiment: &Experiment, optimum: Option<f64>) -> String {
    let majority = percent(MajorityClass::of(experiment.table()).accuracy_shown());
    let which = optimum_text(experiment.study().problem.count);
    let optimum = optimum.map(|share| format!("**{}** for {which}; ", percent(share)));
    format!(
        "{}{majority} for the majority class in answer to every row",
        optimum.unwrap_or_default()
    )
}

/// Returns a sentence that begins with a capital letter.
pub(super) fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
