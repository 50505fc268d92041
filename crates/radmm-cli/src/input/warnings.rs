//! Notes on rows and studies that can be run but look like a mistake.

use radmm_lab::Experiment;
use radmm_study::foreign_text::quoted;
use radmm_study::number_format::as_typed;

/// The share of values outside of their bounds or vocabulary above which these probably mean other values than the rows have.
const SUSPICIOUS_SHARE: f64 = 0.1;

/// Returns the notes, one line each.
pub(crate) fn on_rows(experiment: &Experiment) -> Vec<String> {
    let (study, table) = (experiment.study(), experiment.table());
    let schema = &study.data.schema;
    let mut notes = Vec::new();
    if table.counts.labels.len() > 2 {
        let labels = table.counts.labels.iter();
        let labels: Vec<String> = labels.map(|value| quoted(value)).collect();
        notes.push(format!(
            "column {} has more than two values ({}, …): all but {} count as negative",
            quoted(&schema.label),
            labels.join(", "),
            quoted(&schema.positive)
        ));
    }
    let rows = table.rows();
    for (column, &clipped) in &table.counts.clipped {
        if clipped as f64 > SUSPICIOUS_SHARE * rows as f64 {
            notes.push(format!(
                "column {}: {clipped} of {rows} values are outside the bounds in [data.numeric] and were clipped",
                quoted(column)
            ));
        }
    }
    for (column, &others) in &table.counts.others {
        if others as f64 > SUSPICIOUS_SHARE * rows as f64 {
            notes.push(format!(
                "column {}: {others} of {rows} values are no numbers, or are not in the vocabulary, and count as missing",
                quoted(column)
            ));
        }
    }
    let smallest = table.parties.iter().min_by_key(|party| party.shard.rows());
    if let Some(party) = smallest
        && study.privacy.delta * party.shard.rows() as f64 >= 1.0
    {
        notes.push(format!(
            "delta = {} is not small: {} has {} rows, and delta = 1/rows permits publishing a random row",
            as_typed(study.privacy.delta),
            party.name,
            party.shard.rows()
        ));
    }
    notes
}
