//! `radmm collect`: one table of the results of many runs.

use std::path::Path;

use radmm::privacy::Guarantee;
use radmm_lab::{
    CollectedMethod, CollectedRun, LeftOutRun, Program, RunFiles, RunTable, shown_value,
};
use radmm_report::RecordTable;
use radmm_study::number_format::{self, count, epsilon, number, percent};
use serde::Serialize;

use crate::args::CollectArgs;
use crate::error::CommandError;
use crate::output::progress::Progress;
use crate::output::{files, stderr, tables};

pub(crate) fn run(args: &CollectArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let pool = args.work.thread_pool()?;
    let found = RunFiles::find(&args.folder)?;
    let count_found = count(found.count(), "result", "results");
    let progress = Progress::counting(found.count() as u64, "results", quiet);
    let table = pool.install(|| found.read(&|| progress.named("")));
    progress.done();
    for LeftOutRun { path, reason } in &table.left_out {
        let line = format!("{} is left out: {reason}", path.display());
        stderr::warning(Some(&line), quiet);
    }
    if table.runs.is_empty() {
        return Err(CommandError::NothingCollected {
            folder: args.folder.clone(),
            found: count_found,
        });
    }
    let records = table.records();
    if let Some(out) = &args.out {
        write(out, &records)?;
        stderr::wrote(out, quiet);
    }
    if args.json {
        files::print(&files::json(&CollectedJson::new(&table, &records)))?;
    } else if args.out.is_none() {
        files::print(&page(&args.folder, &table))?;
    }
    match table.left_out.len() {
        left_out if left_out > 0 && args.require_all => Err(CommandError::RunsLeftOut(left_out)),
        _ => Ok(()),
    }
}

/// Writes the table in the format of the file's extension.
fn write(out: &Path, records: &RecordTable) -> Result<(), CommandError> {
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        files::create_folder(folder)?;
    }
    files::write_with(out, |file| match out.extension() {
        Some(extension) if extension == "csv" => records.write_csv(file),
        _ => records.write_parquet(file),
    })
}

/// The table as JSON.
#[derive(Serialize)]
struct CollectedJson<'a> {
    program: Program,
    /// The number of runs in the table.
    runs: usize,
    left_out: &'a [LeftOutRun],
    columns: Vec<ColumnJson<'a>>,
    rows: &'a RecordTable,
}

#[derive(Serialize)]
struct ColumnJson<'a> {
    name: &'a str,
    meaning: &'a str,
}

impl<'a> CollectedJson<'a> {
    fn new(table: &'a RunTable, records: &'a RecordTable) -> Self {
        let columns = records.columns.iter().map(|column| ColumnJson {
            name: &column.name,
            meaning: &column.meaning,
        });
        Self {
            program: Program::THIS,
            runs: table.runs.len(),
            left_out: &table.left_out,
            columns: columns.collect(),
            rows: records,
        }
    }
}

/// Formats the table: what tells the runs apart, and how good they are.
fn page(folder: &Path, table: &RunTable) -> String {
    let varied = table.varied_keys();
    // What was spent stands in a column of its own.
    let totals = ["privacy.epsilon", "privacy.delta"];
    let keys = varied.iter().copied().filter(|key| !totals.contains(key));
    let keys: Vec<&str> = keys.collect();
    let first = &table.runs[0];
    let differ = |of: fn(&CollectedRun) -> String| {
        let first = of(first);
        table.runs.iter().any(|run| of(run) != first)
    };
    let delta = |total: Guarantee| number_format::delta(total.delta);
    let totals = || {
        table
            .runs
            .iter()
            .flat_map(|run| &run.methods)
            .map(|method| method.total)
    };
    let common_delta = Some(delta(first.methods[0].total))
        .filter(|first| totals().all(|total| delta(total) == *first));
    // Each column with the value of a run, or of one of its methods.
    type Cell<'a> = Box<dyn Fn(&CollectedRun, &CollectedMethod) -> String + 'a>;
    let mut columns: Vec<(String, Cell<'_>)> =
        vec![("run".to_owned(), Box::new(|run, _| run.path.clone()))];
    if differ(|run| run.study.clone()) {
        columns.push(("study".to_owned(), Box::new(|run, _| run.study.clone())));
    }
    for key in &keys {
        let value = move |run: &CollectedRun, _: &CollectedMethod| {
            run.keys
                .get(*key)
                .map_or_else(|| "–".to_owned(), shown_value)
        };
        columns.push((short_name(key, &keys), Box::new(value)));
    }
    if differ(|run| run.seed.to_string()) {
        columns.push(("seed".to_owned(), Box::new(|run, _| run.seed.to_string())));
    }
    columns.push((
        "method".to_owned(),
        Box::new(|_, method| method.name.clone()),
    ));
    columns.push((
        "accuracy".to_owned(),
        Box::new(|_, method| {
            let held_out = method.held_out.map(|score| score.accuracy);
            held_out
                .unwrap_or(method.accuracy_everywhere)
                .format_with(percent)
        }),
    ));
    columns.push((
        "AUC".to_owned(),
        Box::new(|_, method| {
            method
                .held_out
                .map_or_else(|| "–".to_owned(), |score| score.auc.format_with(number))
        }),
    ));
    columns.push((
        "total ε".to_owned(),
        Box::new(|_, method| epsilon(method.total.epsilon)),
    ));
    if common_delta.is_none() {
        columns.push((
            "δ".to_owned(),
            Box::new(move |_, method| delta(method.total)),
        ));
    }
    let header: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let rows = table
        .runs
        .iter()
        .flat_map(|run| run.methods.iter().map(move |method| (run, method)));
    let rows =
        rows.map(|(run, method)| columns.iter().map(|(_, cell)| cell(run, method)).collect());
    let left_out = match table.left_out.len() {
        0 => String::new(),
        some => format!(", {some} left out"),
    };
    let at_delta =
        common_delta.map_or_else(|| "at δ".to_owned(), |delta| format!("at δ = {delta}"));
    let tuning = match varied.is_empty() {
        true => "",
        false => "\n a choice among runs by what they show is tuning: its price is in no ε here",
    };
    format!(
        "{} below {}{left_out}\n\n{}\n{LEGEND}\n total ε: over every message of the run, the largest of the parties',\n          {at_delta}, for {}{tuning}\n",
        count(table.runs.len(), "run", "runs"),
        folder.display(),
        tables::grid(&header, rows),
        Guarantee::RELATION,
    )
}

const LEGEND: &str = " accuracy, AUC: on held-out rows; without any, accuracy on all training rows;
                mean ± standard deviation of one repetition
 method: the study's algorithm; local: each party alone; average: averaged once";

/// Returns the last name of a dotted key, or all of it where another key has the same one.
fn short_name(key: &str, keys: &[&str]) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let short = last(key);
    match keys.iter().filter(|other| last(other) == short).count() {
        1 => short,
        _ => key.to_owned(),
    }
}
