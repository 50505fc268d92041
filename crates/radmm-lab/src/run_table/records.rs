//! A table of runs as columns for other programs.

use radmm::privacy::Guarantee;
use radmm_report::{RecordColumn, RecordTable, RecordValues};
use serde_json::Value;

use super::{CollectedMethod, CollectedRun, RunTable};
use crate::stats::SampleStats;

/// A row of the table.
type Row<'a> = (&'a CollectedRun, &'a CollectedMethod);

/// A measure of a method, if there is one.
type Score = fn(&CollectedMethod) -> Option<SampleStats>;

impl RunTable {
    /// Returns the table: a row for each method of each run, with a column for each key by which the studies differ.
    pub fn records(&self) -> RecordTable {
        let rows: Vec<Row<'_>> = self
            .runs
            .iter()
            .flat_map(|run| run.methods.iter().map(move |method| (run, method)))
            .collect();
        let mut columns = vec![
            text("run", "the folder of the run", &rows, |(run, _)| {
                run.path.clone()
            }),
            text("study", "the study's name", &rows, |(run, _)| {
                run.study.clone()
            }),
            text("study_sha256", "the study's digest", &rows, |(run, _)| {
                run.study_sha256.clone()
            }),
            text(
                "version",
                "the version of radmm that ran it",
                &rows,
                |(run, _)| run.version.clone(),
            ),
        ];
        columns.extend(
            self.varied_keys()
                .into_iter()
                .map(|key| key_column(key, &rows)),
        );
        columns.extend([
            integer("seed", "the seed of the noise", &rows, |(run, _)| run.seed),
            integer("parties", "the number of parties", &rows, |(run, _)| run.parties as u64),
            integer("rows", "the number of training rows of all parties", &rows, |(run, _)| run.rows),
            text("algorithm", "the study's algorithm", &rows, |(run, _)| run.algorithm().to_owned()),
            text(
                "method",
                "what the row is about: the study's algorithm, or a baseline at the same total (local: each party alone; average: averaged once)",
                &rows,
                |(_, method)| method.name.clone(),
            ),
            integer("repetitions", "the number of runs that means and deviations are over", &rows, |(_, method)| {
                method.repetitions as u64
            }),
            number("total_epsilon", TOTAL, &rows, |(_, method)| Some(method.total.epsilon)),
            number("delta", "the δ of total_epsilon", &rows, |(_, method)| Some(method.total.delta)),
            text("relation", "the neighbouring relation of total_epsilon", &rows, |_| Guarantee::RELATION.to_owned()),
        ]);
        let scores: [(&str, &str, Score); 4] = [
            (
                "held_out_accuracy",
                "the share of held-out rows classified correctly",
                |method| method.held_out.map(|score| score.accuracy),
            ),
            (
                "held_out_auc",
                "the area under the ROC curve on held-out rows",
                |method| method.held_out.map(|score| score.auc),
            ),
            (
                "train_accuracy",
                "the share of everybody's training rows classified correctly",
                |method| Some(method.accuracy_everywhere),
            ),
            (
                "train_loss",
                "the loss at the end, of each party's model on its own training rows",
                |method| Some(method.loss),
            ),
        ];
        for (name, meaning, of) in scores {
            let mean = format!("{meaning}: the mean over the repetitions");
            let deviation = format!("the standard deviation of {name} of one repetition");
            columns.push(number(name, &mean, &rows, |(_, method)| {
                of(method).map(|stats| stats.mean)
            }));
            columns.push(number(
                &format!("{name}_deviation"),
                &deviation,
                &rows,
                |(_, method)| of(method).map(|stats| stats.deviation),
            ));
        }
        columns.extend([
            number(
                "majority_held_out_accuracy",
                "the share of held-out rows of the class that is more frequent among the training rows",
                &rows,
                |(run, _)| run.majority_held_out,
            ),
            number(
                "majority_train_accuracy",
                "the share of everybody's training rows of that class",
                &rows,
                |(run, _)| Some(run.majority),
            ),
        ]);
        RecordTable { columns }
    }
}

const TOTAL: &str = "the total ε over every message of the whole run, the largest of the parties', at delta and for relation; inf \
    without noise";

impl CollectedRun {
    /// Returns the name of the study's algorithm.
    pub fn algorithm(&self) -> &str {
        // Its own method is the first.
        self.methods.first().map_or("", |own| own.name.as_str())
    }
}

fn column(name: &str, meaning: &str, values: RecordValues) -> RecordColumn {
    RecordColumn {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        values,
    }
}

fn text(
    name: &str,
    meaning: &str,
    rows: &[Row<'_>],
    of: impl Fn(&Row<'_>) -> String,
) -> RecordColumn {
    let values = rows.iter().map(|row| Some(of(row))).collect();
    column(name, meaning, RecordValues::Text(values))
}

fn integer(
    name: &str,
    meaning: &str,
    rows: &[Row<'_>],
    of: impl Fn(&Row<'_>) -> u64,
) -> RecordColumn {
    // Seeds and counts fit into the signed integers of TOML.
    let values = rows.iter().map(|row| i64::try_from(of(row)).ok()).collect();
    column(name, meaning, RecordValues::Integer(values))
}

/// Returns a column of numbers. One that is not a number is no value.
fn number(
    name: &str,
    meaning: &str,
    rows: &[Row<'_>],
    of: impl Fn(&Row<'_>) -> Option<f64>,
) -> RecordColumn {
    let values = rows
        .iter()
        .map(|row| of(row).filter(|number| !number.is_nan()));
    column(name, meaning, RecordValues::Number(values.collect()))
}

/// Returns the column of a key: of the one type that all its values have, else of texts. A table or a list is JSON.
fn key_column(key: &str, rows: &[Row<'_>]) -> RecordColumn {
    let meaning = match key {
        "privacy.epsilon" => {
            "the study's key privacy.epsilon: the total ε of every party over the whole run, at delta and for relation".to_owned()
        }
        key => format!("the study's key {key}"),
    };
    let values: Vec<Option<&Value>> = rows.iter().map(|(run, _)| run.keys.get(key)).collect();
    let all = |is: fn(&Value) -> bool| values.iter().flatten().all(|value| is(value));
    let values = if all(Value::is_boolean) {
        RecordValues::Boolean(
            values
                .iter()
                .map(|value| value.and_then(Value::as_bool))
                .collect(),
        )
    } else if all(Value::is_i64) {
        RecordValues::Integer(
            values
                .iter()
                .map(|value| value.and_then(Value::as_i64))
                .collect(),
        )
    } else if all(Value::is_number) {
        RecordValues::Number(
            values
                .iter()
                .map(|value| value.and_then(Value::as_f64))
                .collect(),
        )
    } else {
        RecordValues::Text(values.iter().map(|value| value.map(shown_value)).collect())
    };
    column(key, &meaning, values)
}

/// Returns a value of a study as text: a text without quotes, anything else as JSON.
pub fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
