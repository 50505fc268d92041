//! `radmm audit`.

use std::path::Path;

use radmm_lab::audit::{AttackResult, Audit, AuditResult, AuditVerdict};
use radmm_report::TextTable;
use radmm_study::number_format::count;

use crate::args::AuditArgs;
use crate::failure::Failure;
use crate::files;
use crate::message::message;
use crate::prepare;
use crate::progress::Progress;
use crate::render::plain;

/// Of an audit without a study, unless given.
const SEED: u64 = 1;

pub(crate) fn audit(typed: &AuditArgs) -> Result<(), Failure> {
    let quiet = typed.work.quiet;
    let study = match &typed.study {
        Some(path) => Some(prepare::study(Some(path), quiet)?),
        None => None,
    };
    if let Some(out) = &typed.out {
        files::make_folder(out)?;
    }
    let pool = typed.work.pool()?;
    let experiment = match study {
        Some(study) => Some(study.rows()?),
        None => None,
    };
    let audit = pool.install(|| match &experiment {
        Some(experiment) => {
            let seed = typed.seed.unwrap_or(experiment.study().run.seed);
            Audit::for_study(experiment, typed.runs, seed)
        }
        None => Ok(Audit::builtin(typed.runs, typed.seed.unwrap_or(SEED))),
    })?;
    let progress = Progress::counting(audit.progress_steps(), "steps", quiet);
    let audited = pool.install(|| audit.run(&|what| progress.named(what)))?;
    progress.done();
    if let Some(out) = &typed.out {
        write(out, &audited, quiet)?;
    }
    match typed.json {
        true => files::print(&files::json(&audited))?,
        false => files::print(&tables(&audited))?,
    }
    match audited.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(Failure::Audit(first_of(&failures))),
    }
}

/// The first few, and how many there are beyond.
fn first_of(failures: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = failures[..failures.len().min(SHOWN)].join("; ");
    match failures.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn write(out: &Path, audited: &AuditResult, quiet: bool) -> Result<(), Failure> {
    let mut all = vec![
        ("audit.json".to_owned(), files::json(audited)),
        ("report.html".to_owned(), audited.page().to_html()),
    ];
    for figure in audited.figures() {
        all.push((format!("{}.svg", figure.id), figure.to_svg()));
        all.push((format!("{}.csv", figure.id), figure.to_csv()));
    }
    for (name, text) in all {
        let path = out.join(name);
        files::write_whole(&path, &text)?;
        if !quiet {
            message!("wrote {}", path.display());
        }
    }
    Ok(())
}

fn tables(audited: &AuditResult) -> String {
    let attacked = match audited.attacks.is_empty() {
        true => "no noise, or releases in doubles: no ε is claimed, nothing to attack\n".to_owned(),
        false => format!("{}\n{}\n", plain(&narrow(audited.table())), legend(audited)),
    };
    format!(
        "{}; seed {}\n\n{attacked}\n{}\n{RETRACED_LEGEND}\n",
        count(audited.runs as usize, "victim", "victims") + " with either data set",
        audited.seed,
        plain(&audited.retraced_table())
    )
}

/// In eighty columns: without the numbers, which are for the report's figure, and without δ, which the law tells.
fn narrow(mut grid: TextTable) -> TextTable {
    let without = |row: &mut Vec<String>| {
        row.remove(3);
        row.remove(0);
    };
    without(&mut grid.header);
    grid.header[2] = "claimed".to_owned();
    grid.rows.iter_mut().for_each(without);
    grid
}

const RETRACED_LEGEND: &str =
    " what parties said, computed again by somebody else from earlier releases";

fn legend(audited: &AuditResult) -> String {
    let largest = audited.attacks.iter().map(|one| one.claimed.delta);
    let delta = match largest.fold(0.0, f64::max) {
        0.0 => "at δ = 0".to_owned(),
        delta => format!("at δ = {delta} with gaussian noise, else 0"),
    };
    let unresolved =
        |one: &AttackResult| matches!(one.verdict, AuditVerdict::TooSmall | AuditVerdict::TooLarge);
    let unseen = match audited.attacks.iter().any(unresolved) {
        true => "\n too small, too large: for so few victims to show that it does not hold",
        false => "",
    };
    format!(
        " claimed: ε, a total over all messages {delta},\n   for {}\n \
         at least: what an attack shows of it, with a confidence of 95 %{unseen}\n \
         steps: data steps; recycled ones are between them",
        audited.relation
    )
}
