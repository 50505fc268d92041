//! `radmm compare`: compares studies at equal total privacy.

mod grid;

use comfy_table::Table;
use radmm_data::RowFiles;
use radmm_lab::{
    CandidateResult, CentralisedResult, Comparison, ComparisonOptions, ComparisonResult,
    MajorityClass, optimum_title,
};
use radmm_report::{Figure, Page};
use radmm_study::number_format::{count, epsilon, number, percent, thousands};
use radmm_study::{GridAxis, Override, RowSource, Study};

use crate::args::CompareArgs;
use crate::error::CommandError;
use crate::input::load::{self, LoadedStudy};
use crate::output::progress::Progress;
use crate::output::{files, stderr, tables};

pub(crate) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    if let Some(out) = &args.out {
        files::check_folder(out)?;
    }
    if !args.grid.is_empty() {
        return grid::run(args);
    }
    let quiet = args.work.quiet;
    let studies = load(args)?;
    // clap sees to it that there is at least one, and without a grid each has one combination.
    let first = &studies[0][0];
    let pool = args.work.thread_pool()?;
    let experiment = first.experiment()?;
    let wanted = ComparisonOptions {
        others: studies[1..]
            .iter()
            .flatten()
            .map(|other| on_rows_of(first, other))
            .collect(),
        prior_methods: &args.with,
        epsilon: args.epsilon,
        delta: args.delta,
        repetitions: args.repetitions,
    };
    let comparison = pool.install(|| Comparison::new(experiment, wanted))?;
    let progress = Progress::new(comparison.progress_steps(), quiet);
    let compared = pool.install(|| comparison.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    let results = Results {
        json: files::json(&compared),
        figure: compared.figure(),
        report: compared.page(&comparison),
        text: page(&comparison, &compared),
    };
    results.write_and_print(args)?;
    fail_if_stopped(&compared)
}

/// The results in all their forms.
struct Results {
    json: String,
    figure: Figure,
    report: Page,
    text: String,
}

impl Results {
    fn write_and_print(&self, args: &CompareArgs) -> Result<(), CommandError> {
        if let Some(out) = &args.out {
            let texts = [
                ("compare.json", self.json.clone()),
                ("compare.svg", self.figure.to_svg()),
                ("compare.csv", self.figure.to_csv()),
                ("report.html", self.report.to_html()),
            ];
            files::write_all(out, args.work.quiet, texts)?;
        }
        match args.json {
            true => files::print(&self.json),
            false => files::print(&self.text),
        }
    }
}

fn fail_if_stopped(compared: &ComparisonResult) -> Result<(), CommandError> {
    let mut candidates = compared.candidates.iter();
    let stopped = candidates.find_map(|one| Some((&one.name, one.stopped.as_ref()?)));
    match stopped {
        Some((name, reason)) => Err(CommandError::StoppedEarly(format!("{name}: {reason}"))),
        None => Ok(()),
    }
}

/// Returns a study, whose rows are named as in the first one if they are the same: paths are relative to their study.
fn on_rows_of(first: &LoadedStudy, other: &LoadedStudy) -> Study {
    let resolved = |loaded: &LoadedStudy| match &loaded.study.data.source {
        RowSource::File(file) => RowFiles::resolve(&loaded.source.folder.join(file)).ok(),
        RowSource::Builtin(_) | RowSource::Parties => None,
    };
    let rows = resolved(first);
    let is_same = rows.is_some() && resolved(other) == rows;
    let mut study = other.study.clone();
    if is_same {
        study.data.source = first.study.data.source.clone();
    }
    study
}

/// Reads every study, with each combination of the grid, and prints each note on them once. Studies that share a name, as copies
/// do, are called by their file names.
fn load(args: &CompareArgs) -> Result<Vec<Vec<LoadedStudy>>, CommandError> {
    let fixed = args.sweep.overrides();
    let combinations = GridAxis::combinations(&args.grid);
    let mut notes: Vec<String> = Vec::new();
    let mut studies: Vec<Vec<LoadedStudy>> = Vec::new();
    for path in &args.studies {
        let source = load::study_text(path)?;
        let mut cells = Vec::new();
        for set in &combinations {
            let overrides: Vec<Override> =
                fixed.iter().chain(set.iter().copied()).cloned().collect();
            let (study, noted) =
                LoadedStudy::parse_with_notes(source.clone(), &overrides, args.work.quiet)?;
            let noted = noted.iter().map(ToString::to_string);
            let new: Vec<String> = noted.filter(|note| !notes.contains(note)).collect();
            notes.extend(new);
            cells.push(study);
        }
        studies.push(cells);
    }
    stderr::notes(&notes, args.work.quiet);
    let names: Vec<String> = studies
        .iter()
        .map(|cells| cells[0].study.name.clone())
        .collect();
    for LoadedStudy { study, source, .. } in studies.iter_mut().flatten() {
        if names.iter().filter(|name| **name == study.name).count() > 1 {
            study.name.clone_from(&source.name);
        }
    }
    Ok(studies)
}

pub(crate) fn page(comparison: &Comparison, compared: &ComparisonResult) -> String {
    let experiment = &comparison.candidates()[0].experiment;
    let studies = comparison.candidates().len();
    let baselines = compared.candidates.len() + compared.unattainable.len() - studies;
    format!(
        "{} and {} at equal total privacy\n{}, {}, {}\n{}\n\n{}\n{QUALITY_LEGEND}\n\n{}\n{COST_LEGEND}\n",
        count(studies, "study", "studies"),
        count(baselines, "baseline", "baselines"),
        count(experiment.graph().len(), "party", "parties"),
        count(experiment.table().rows(), "training row", "training rows"),
        count(experiment.study().run.repetitions as usize, "run", "runs"),
        privacy(compared),
        quality(compared, None),
        cost(compared),
    )
}

/// Formats the common privacy budget, and the exceptions from it.
fn privacy(compared: &ComparisonResult) -> String {
    let mut text = compared.statement().replace(" over every", "\nover every");
    for line in compared.exceptions() {
        text.push('\n');
        text += &line.replace("; raise", ";\nraise");
    }
    text
}

const QUALITY_LEGEND: &str =
    " mean ± standard deviation of a run; loss: of each model on its training rows
 accuracy, AUC: on held-out rows; without any, accuracy on all training rows
 alone, averaged: with the best of eight ridges in hindsight, for all rows
 majority class: the more frequent one of the training rows, for every row";

const COST_LEGEND: &str = " noise: σ of Gaussian noise, else the rate (a large one is little noise)
 queries: of each party's rows; seconds: of a run, with others in parallel";

/// Formats a table of eighty columns, which the report’s table would exceed.
fn cost(compared: &ComparisonResult) -> Table {
    let row = |one: &CandidateResult| {
        vec![
            one.name.clone(),
            epsilon(one.total.epsilon),
            one.data_steps.to_string(),
            thousands(one.messages),
            one.noise_text(),
            format!("{:.2}", one.seconds.mean),
        ]
    };
    tables::grid(
        &["", "total ε", "queries", "messages", "noise", "seconds"],
        compared.candidates.iter().map(row),
    )
}

/// Formats how good everyone is; the name of the best is marked.
fn quality(compared: &ComparisonResult, best: Option<&str>) -> Table {
    let marked = |name: &String| match best == Some(name.as_str()) {
        true => format!("{name} *"),
        false => name.clone(),
    };
    let candidate = |one: &CandidateResult| {
        let (accuracy, auc) = match &one.held_out {
            Some(score) => (score.accuracy, score.auc.format_with(number)),
            None => (one.accuracy_everywhere, "–".to_owned()),
        };
        vec![
            marked(&one.name),
            one.loss.format_with(number),
            accuracy.format_with(percent),
            auc,
        ]
    };
    let unattainable = |name: &String| vec![name.clone(), "unattainable".to_owned()];
    let centralised = |centralised: &CentralisedResult| {
        let held_out = centralised.held_out.as_ref();
        vec![
            optimum_title(centralised.count).to_owned(),
            number(centralised.loss),
            percent(held_out.map_or(centralised.accuracy_everywhere, |score| score.accuracy.mean)),
            held_out.map_or("–".to_owned(), |score| number(score.auc.mean)),
        ]
    };
    let rows = compared.candidates.iter().map(candidate);
    let rows = rows.chain(compared.unattainable.iter().map(unattainable));
    let rows = rows.chain(compared.centralised.iter().map(centralised));
    let majority = vec![
        "majority class".to_owned(),
        "–".to_owned(),
        percent(compared.majority.accuracy_shown()),
        match compared.majority.held_out {
            Some(_) => number(MajorityClass::AUC),
            None => "–".to_owned(),
        },
    ];
    tables::grid(
        &["", "train loss", "accuracy", "AUC"],
        rows.chain([majority]),
    )
}
