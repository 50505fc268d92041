//! `radmm compare`.

use std::path::Path;

use comfy_table::Table;
use radmm_lab::shown::{count, epsilon, number, percent, thousands};
use radmm_lab::{Compared, Comparison, Experiment, Measured, Spread, Wanted};
use radmm_study::{Source, Study};

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::files::{self, StudyText};
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
    let (first, folder, name) = studies.remove(0);
    let pool = typed.work.pool()?;
    let experiment =
        Experiment::prepare(first, &folder).map_err(|error| Failure::of_study(&name, error))?;
    if !quiet {
        notes::on_rows(&experiment)
            .iter()
            .for_each(|note| eprintln!("note: {note}"));
    }
    // A path is relative to its study: the same rows may be written in two ways.
    let resolved = |source: &Source, folder: &Path| match source {
        Source::File(file) => folder.join(file).canonicalize().ok(),
        Source::Builtin(_) => None,
    };
    let rows = resolved(&experiment.study().data.source, &folder);
    let others = studies.into_iter().map(|(mut study, folder, _)| {
        if rows.is_some() && resolved(&study.data.source, &folder) == rows {
            study.data.source = experiment.study().data.source.clone();
        }
        study
    });
    let wanted = Wanted {
        others: others.collect(),
        rivals: &typed.with,
        epsilon: typed.epsilon,
        delta: typed.delta,
        repetitions: typed.repetitions,
    };
    let comparison = pool.install(|| Comparison::new(experiment, wanted))?;
    let progress = Progress::new(comparison.steps(), quiet);
    let compared = pool.install(|| comparison.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    if let Some(out) = &typed.out {
        write(out, &comparison, &compared, quiet)?;
    }
    match typed.json {
        true => files::print(&files::json(&compared)),
        false => files::print(&tables(&comparison, &compared)),
    }
}

/// A study, the folder that its paths are relative to, and its name in messages.
fn read(path: &Path, quiet: bool) -> Result<(Study, std::path::PathBuf, String), Failure> {
    let StudyText { text, name, folder } = StudyText::read(path)?;
    let (study, notes) = Study::parse(&text, &name)?;
    if !quiet {
        notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    Ok((study, folder, name))
}

fn write(
    out: &Path,
    comparison: &Comparison,
    compared: &Compared,
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
            eprintln!("wrote {}", path.display());
        }
    }
    Ok(())
}

fn tables(comparison: &Comparison, compared: &Compared) -> String {
    let experiment = &comparison.contenders()[0].experiment;
    let repetitions = experiment.study().run.repetitions as usize;
    format!(
        "{} at equal total privacy, {} of {}, {}\n{}\n\n{}\n{}\n\n{}\n",
        count(comparison.contenders().len(), "contender", "contenders"),
        count(repetitions, "run", "runs"),
        count(experiment.table().rows(), "training row", "training rows"),
        count(experiment.graph().len(), "party", "parties"),
        compared.statement(),
        quality(compared),
        LEGEND,
        cost(compared),
    )
}

const LEGEND: &str =
    " mean (least to greatest run); loss: of each party's model on its own training rows;
 accuracy, AUC: on rows held out, or accuracy on all training rows if there are none";

fn quality(compared: &Compared) -> Table {
    let mut table = plain(&["", "train loss", "accuracy", "AUC"]);
    for one in &compared.contenders {
        let (accuracy, auc) = match &one.held_out {
            Some(score) => (score.accuracy, spread(&score.auc, number)),
            None => (one.accuracy_everywhere, "–".to_owned()),
        };
        table.add_row(vec![
            one.name.clone(),
            spread(&one.loss, number),
            spread(&accuracy, percent),
            auc,
        ]);
    }
    for name in &compared.too_dear {
        table.add_row(vec![name.as_str(), "too dear", "", ""]);
    }
    if let Some(pooled) = &compared.pooled {
        let held_out = pooled.held_out.as_ref();
        table.add_row(vec![
            "pooled, no noise".to_owned(),
            number(pooled.loss),
            percent(held_out.map_or(pooled.accuracy, |score| score.accuracy.mean)),
            held_out.map_or("–".to_owned(), |score| number(score.auc.mean)),
        ]);
    }
    table
}

fn cost(compared: &Compared) -> Table {
    let mut table = plain(&[
        "",
        "total ε",
        "data steps",
        "messages",
        "noise",
        "seconds a run",
    ]);
    for one in &compared.contenders {
        table.add_row(vec![
            one.name.clone(),
            epsilon(one.total.epsilon),
            one.data_touches.to_string(),
            thousands(one.messages),
            noise(one),
            format!("{:.2}", one.seconds.mean),
        ]);
    }
    table
}

fn noise(one: &Measured) -> String {
    match one.noise {
        None => "none".to_owned(),
        Some([low, high]) if number(low) == number(high) => number(low),
        Some([low, high]) => format!("{} to {}", number(low), number(high)),
    }
}

fn spread(spread: &Spread, shown: fn(f64) -> String) -> String {
    match spread.low < spread.high {
        false => shown(spread.mean),
        true => format!(
            "{} ({} to {})",
            shown(spread.mean),
            shown(spread.low).trim_end_matches(" %"),
            shown(spread.high)
        ),
    }
}
