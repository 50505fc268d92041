//! Notes on rows and studies that can be run but look like a mistake.

use radmm_data::in_columns;
use radmm_lab::Experiment;
use radmm_study::RowSource;
use radmm_study::foreign_text::quoted;
use radmm_study::number_format::{as_typed, percent, thousands};

/// The share of values outside of their bounds or vocabulary above which these probably mean other values than the rows have.
const SUSPICIOUS_SHARE: f64 = 0.1;

/// The share of dropped rows above which the others may be no fair sample.
const MANY_DROPPED: f64 = 0.1;

/// Returns the warning that many rows are dropped: so many of those that were read, of which `lacking` has the columns.
// Privacy: it comes from rows, and is for the people who may see them.
pub(crate) fn of_dropped(
    read: usize,
    dropped: usize,
    lacking: &[(String, usize)],
) -> Option<String> {
    let share = dropped as f64 / read as f64;
    (share > MANY_DROPPED).then(|| {
        format!(
            "{} of {} rows ({}) are dropped, since they lack a value: {}; missing = \"category\" for a feature keeps such rows, as in \
             age = {{ bounds = [0, 90], missing = \"category\" }}",
            thousands(dropped),
            thousands(read),
            percent(share),
            in_columns(lacking)
        )
    })
}

/// Returns the same of the rows of a study. The missing values of a built-in table are known.
pub(crate) fn of_dropped_rows(experiment: &Experiment) -> Option<String> {
    if let RowSource::Builtin(_) = experiment.study().data.source {
        return None;
    }
    let counts = &experiment.table().counts;
    of_dropped(counts.read, counts.dropped, &counts.lacking)
}

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
