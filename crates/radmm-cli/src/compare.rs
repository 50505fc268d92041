//! `radmm compare`.

use std::path::{Path, PathBuf};

use comfy_table::Table;
use radmm_lab::{
    CandidateResult, CentralisedResult, Comparison, ComparisonOptions, ComparisonResult, Experiment,
};
use radmm_report::TextTable;
use radmm_study::number_format::{count, epsilon, number, percent, thousands};
use radmm_study::{RowSource, Study};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::files::{self, StudyText};
use crate::message::message;
use crate::notes;
use crate::progress::Progress;
use crate::render::plain;

pub(crate) fn run(typed: CompareArgs) -> Result<(), Failure> {
    if let Some(out) = &typed.out {
        files::make_folder(out)?;
    }
    let quiet = typed.work.quiet;
    let mut studies = Vec::new();
    for path in &typed.studies {
        studies.push(read(path, quiet)?);
    }
    tell_apart(&mut studies);
    let (first, folder, name) = studies.remove(0);
    let pool = typed.work.pool()?;
    let experiment =
        Experiment::prepare(first, &folder).map_err(|error| Failure::of_study(&name, error))?;
    if !quiet {
        notes::on_rows(&experiment)
            .iter()
            .for_each(|note| message!("note: {note}"));
    }
    // A path is relative to its study: the same rows may be written in two ways.
    let resolved = |source: &RowSource, folder: &Path| match source {
        RowSource::File(file) => folder.join(file).canonicalize().ok(),
        RowSource::Builtin(_) | RowSource::Parties => None,
    };
    let rows = resolved(&experiment.study().data.source, &folder);
    let others = studies.into_iter().map(|(mut study, folder, _)| {
        if rows.is_some() && resolved(&study.data.source, &folder) == rows {
            study.data.source = experiment.study().data.source.clone();
        }
        study
    });
    let wanted = ComparisonOptions {
        others: others.collect(),
        prior_methods: &typed.with,
        epsilon: typed.epsilon,
        delta: typed.delta,
        repetitions: typed.repetitions,
    };
    let comparison = pool.install(|| Comparison::new(experiment, wanted))?;
    let progress = Progress::new(comparison.progress_steps(), quiet);
    let compared = pool.install(|| comparison.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    if let Some(out) = &typed.out {
        write(out, &comparison, &compared, quiet)?;
    }
    match typed.json {
        true => files::print(&files::json(&compared))?,
        false => files::print(&tables(&comparison, &compared))?,
    }
    let mut stopped = compared.candidates.iter();
    let stopped = stopped.find_map(|one| one.stopped.as_ref().map(|why| (&one.name, why)));
    match stopped {
        Some((name, why)) => Err(Failure::Stopped(format!("{name}: {why}"))),
        None => Ok(()),
    }
}

/// A study, the folder that its paths are relative to, and its name in messages.
fn read(path: &Path, quiet: bool) -> Result<(Study, PathBuf, String), Failure> {
    let StudyText { text, name, folder } = StudyText::read(path)?;
    let (study, notes) = Study::parse(&text, &name)?;
    if !quiet {
        notes.iter().for_each(|note| message!("note: {note}"));
    }
    Ok((study, folder, name))
}

/// Studies that share a name, as copies do, are called by their files.
fn tell_apart(studies: &mut [(Study, PathBuf, String)]) {
    let names: Vec<String> = studies
        .iter()
        .map(|(study, ..)| study.name.clone())
        .collect();
    for (study, _, file) in studies {
        if names.iter().filter(|name| **name == study.name).count() > 1 {
            study.name.clone_from(file);
        }
    }
}

fn write(
    out: &Path,
    comparison: &Comparison,
    compared: &ComparisonResult,
    quiet: bool,
) -> Result<(), Failure> {
    let figure = compared.figure();
    let files = [
        ("compare.json", files::json(compared)),
        ("compare.svg", figure.to_svg()),
        ("compare.csv", figure.to_csv()),
        ("report.html", compared.page(comparison).to_html()),
    ];
    for (name, text) in files {
        let path = out.join(name);
        files::write_whole(&path, &text)?;
        if !quiet {
            message!("wrote {}", path.display());
        }
    }
    Ok(())
}

fn tables(comparison: &Comparison, compared: &ComparisonResult) -> String {
    let experiment = &comparison.candidates()[0].experiment;
    let studies = comparison.candidates().len();
    let baselines = compared.candidates.len() + compared.unattainable.len() - studies;
    format!(
        "{} and {} at equal total privacy\n{}, {}, {}\n{}\n\n{}\n{LEGEND}\n\n{}\n{COST_LEGEND}\n",
        count(studies, "study", "studies"),
        count(baselines, "baseline", "baselines"),
        count(experiment.graph().len(), "party", "parties"),
        count(experiment.table().rows(), "training row", "training rows"),
        count(experiment.study().run.repetitions as usize, "run", "runs"),
        lines(compared),
        quality(compared),
        cost(compared),
    )
}

/// What everyone may spend, and what is otherwise.
fn lines(compared: &ComparisonResult) -> String {
    let mut text = compared.statement().replace(" over every", "\nover every");
    for line in compared.exceptions() {
        text.push('\n');
        text += &line.replace("; raise", ";\nraise");
    }
    text
}

const LEGEND: &str = " mean ± standard deviation of a run; loss: of each model on its training rows
 accuracy, AUC: on rows held out; without any, accuracy on all training rows
 alone, averaged: with the best of eight ridges in hindsight, for all rows";

const COST_LEGEND: &str =
    " noise: σ of Gaussian noise, or the rate of gamma noise (large is little)
 asked: how often each party's rows were; seconds: of a run among others";

/// In eighty columns, which the report’s table would exceed.
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
    plain(&TextTable {
        caption: String::new(),
        header: ["", "total ε", "asked", "messages", "noise", "seconds"]
            .map(str::to_owned)
            .into(),
        rows: compared.candidates.iter().map(row).collect(),
        folded: false,
    })
}

fn quality(compared: &ComparisonResult) -> Table {
    let contender = |one: &CandidateResult| {
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
    let too_dear = |name: &String| vec![name.clone(), "too dear".to_owned()];
    let pooled = |pooled: &CentralisedResult| {
        let held_out = pooled.held_out.as_ref();
        vec![
            "pooled, no noise".to_owned(),
            number(pooled.loss),
            percent(held_out.map_or(pooled.accuracy, |score| score.accuracy.mean)),
            held_out.map_or("–".to_owned(), |score| number(score.auc.mean)),
        ]
    };
    let rows = compared.candidates.iter().map(contender);
    let rows = rows.chain(compared.unattainable.iter().map(too_dear));
    plain(&TextTable {
        caption: String::new(),
        header: ["", "train loss", "accuracy", "AUC"]
            .map(str::to_owned)
            .into(),
        rows: rows
            .chain(compared.centralised.iter().map(pooled))
            .collect(),
        folded: false,
    })
}
