//! `radmm compare`: compares studies at equal total privacy.

use std::path::Path;

use comfy_table::Table;
use radmm_data::RowFiles;
use radmm_lab::{
    CandidateResult, CentralisedResult, Comparison, ComparisonOptions, ComparisonResult,
    MajorityClass, optimum_title,
};
use radmm_study::RowSource;
use radmm_study::number_format::{count, epsilon, number, percent, thousands};

use crate::args::CompareArgs;
use crate::error::CommandError;
use crate::input::load::{self, LoadedStudy};
use crate::output::progress::Progress;
use crate::output::{files, tables};

pub(crate) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    if let Some(out) = &args.out {
        files::check_folder(out)?;
    }
    let quiet = args.work.quiet;
    let studies = args.studies.iter();
    let studies: Result<Vec<_>, _> = studies.map(|path| load::study(Some(path), quiet)).collect();
    let mut studies = studies?;
    distinguish(&mut studies);
    let first = studies.remove(0);
    let pool = args.work.thread_pool()?;
    let experiment = first.experiment()?;
    // Paths are relative to their study: two different paths may name the same rows.
    let resolved = |source: &RowSource, folder: &Path| match source {
        RowSource::File(file) => RowFiles::resolve(&folder.join(file)).ok(),
        RowSource::Builtin(_) | RowSource::Parties => None,
    };
    let rows = resolved(&first.study.data.source, &first.source.folder);
    let others = studies.into_iter().map(
        |LoadedStudy {
             mut study, source, ..
         }| {
            if rows.is_some() && resolved(&study.data.source, &source.folder) == rows {
                study.data.source = first.study.data.source.clone();
            }
            study
        },
    );
    let wanted = ComparisonOptions {
        others: others.collect(),
        prior_methods: &args.with,
        epsilon: args.epsilon,
        delta: args.delta,
        repetitions: args.repetitions,
    };
    let comparison = pool.install(|| Comparison::new(experiment, wanted))?;
    let progress = Progress::new(comparison.progress_steps(), quiet);
    let compared = pool.install(|| comparison.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    if let Some(out) = &args.out {
        let figure = compared.figure();
        let texts = [
            ("compare.json", files::json(&compared)),
            ("compare.svg", figure.to_svg()),
            ("compare.csv", figure.to_csv()),
            ("report.html", compared.page(&comparison).to_html()),
        ];
        files::write_all(out, quiet, texts)?;
    }
    match args.json {
        true => files::print(&files::json(&compared))?,
        false => files::print(&page(&comparison, &compared))?,
    }
    let mut candidates = compared.candidates.iter();
    let stopped = candidates.find_map(|one| Some((&one.name, one.stopped.as_ref()?)));
    match stopped {
        Some((name, reason)) => Err(CommandError::StoppedEarly(format!("{name}: {reason}"))),
        None => Ok(()),
    }
}

/// Renames studies that share a name, as copies do, to their file names.
fn distinguish(studies: &mut [LoadedStudy]) {
    let names = studies.iter().map(|loaded| loaded.study.name.clone());
    let names: Vec<String> = names.collect();
    for LoadedStudy { study, source, .. } in studies {
        if names.iter().filter(|name| **name == study.name).count() > 1 {
            study.name.clone_from(&source.name);
        }
    }
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
        quality(compared),
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

fn quality(compared: &ComparisonResult) -> Table {
    let candidate = |one: &CandidateResult| {
        let (accuracy, auc) = match &one.held_out {
            Some(score) => (score.accuracy, score.auc.format_with(number)),
            None => (one.accuracy_everywhere, "–".to_owned()),
        };
        vec![
            one.name.clone(),
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
