//! What looks like a slip in the rows or the study, though it can be run.

use radmm_lab::Experiment;

/// More clipped values than this share of the rows look like bounds in other units.
const MANY: f64 = 0.1;

/// One line each.
pub(crate) fn on_rows(experiment: &Experiment) -> Vec<String> {
    let (study, table) = (experiment.study(), experiment.table());
    let mut notes = Vec::new();
    let schema = &study.data.schema;
    if table.counts.labels.len() > 2 {
        let seen: Vec<String> = table
            .counts
            .labels
            .iter()
            .map(|value| format!("{value:?}"))
            .collect();
        notes.push(format!(
            "column {:?} has more than two values ({}, …): all but {:?} count as negative",
            schema.label,
            seen.join(", "),
            schema.positive
        ));
    }
    let rows = table.rows();
    for (column, &clipped) in &table.counts.clipped {
        if clipped as f64 > MANY * rows as f64 {
            notes.push(format!(
                "column {column:?}: {clipped} of {rows} values are beyond the bounds in [data.numeric] and were clipped"
            ));
        }
    }
    let fewest = table.parties.iter().min_by_key(|party| party.shard.rows());
    if let Some(party) = fewest
        && study.privacy.delta * party.shard.rows() as f64 >= 1.0
    {
        notes.push(format!(
            "delta = {} is not small: {} has {} rows, and a delta of one over that allows to publish a row at random",
            study.privacy.delta,
            party.name,
            party.shard.rows()
        ));
    }
    notes
}
