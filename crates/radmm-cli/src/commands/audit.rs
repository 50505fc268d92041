//! `radmm audit`: attacks the mechanisms.

use std::path::Path;

use radmm_lab::audit::{AttackResult, Audit, AuditResult, AuditVerdict};
use radmm_report::TextTable;
use radmm_study::number_format::{self, count};

use crate::args::AuditArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::tables::table;

/// The default seed of an audit without a study.
const SEED: u64 = 1;

pub(crate) fn run(args: &AuditArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let overrides = &args.keys.set;
    let study = match &args.study {
        Some(path) => Some(load::study(Some(path), overrides, quiet)?),
        None if overrides.is_empty() => None,
        None => return Err(CommandError::NothingToSet),
    };
    if let Some(out) = &args.out {
        files::check_folder(out)?;
    }
    let pool = args.work.thread_pool()?;
    let experiment = match study {
        Some(study) => Some(study.experiment()?),
        None => None,
    };
    let audit = pool.install(|| match &experiment {
        Some(experiment) => {
            let seed = args.seed.unwrap_or(experiment.study().run.seed);
            Audit::for_study(experiment, args.runs, seed)
        }
        None => Ok(Audit::builtin(args.runs, args.seed.unwrap_or(SEED))),
    })?;
    let progress = Progress::counting(audit.progress_steps(), "steps", quiet);
    let audited = pool.install(|| audit.run(&|step| progress.named(step)))?;
    progress.done();
    if let Some(out) = &args.out {
        write(out, &audited, quiet)?;
    }
    match args.json {
        true => files::print(&files::json(&audited))?,
        false => files::print(&page(&audited))?,
    }
    match audited.failures() {
        failures if failures.is_empty() => Ok(()),
        failures => Err(CommandError::AuditFailed(first_few(&failures))),
    }
}

/// Lists the first failures, and the number of those left out.
fn first_few(failures: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = failures[..failures.len().min(SHOWN)].join("; ");
    match failures.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn write(out: &Path, audited: &AuditResult, quiet: bool) -> Result<(), CommandError> {
    let mut texts = vec![
        ("audit.json".to_owned(), files::json(audited)),
        ("report.html".to_owned(), audited.page().to_html()),
    ];
    for figure in audited.figures() {
        texts.push((format!("{}.svg", figure.id), figure.to_svg()));
        texts.push((format!("{}.csv", figure.id), figure.to_csv()));
    }
    files::write_all(out, quiet, texts)
}

fn page(audited: &AuditResult) -> String {
    let attacked = match audited.attacks.is_empty() {
        true => "no noise: no ε is claimed, and there is nothing to attack\n".to_owned(),
        false => format!("{}\n{}\n", table(&narrow(audited.table())), legend(audited)),
    };
    format!(
        "{}; seed {}\n\n{attacked}\n{}\n{RETRACED_LEGEND}\n",
        count(audited.runs as usize, "victim", "victims") + " with either data set",
        audited.seed,
        table(&audited.retraced_table())
    )
}

/// Fits a table into eighty columns: removes the numbers, which refer to the report's figure, δ, which follows from the noise, and
/// the share of the claim, which follows from its neighbours.
fn narrow(mut grid: TextTable) -> TextTable {
    let remove_columns = |row: &mut Vec<String>| {
        row.remove(6);
        row.remove(3);
        row.remove(0);
    };
    remove_columns(&mut grid.header);
    grid.header[2] = "claimed".to_owned();
    grid.rows.iter_mut().for_each(remove_columns);
    grid
}

const RETRACED_LEGEND: &str =
    " messages of parties, recomputed by an outsider from earlier releases";

fn legend(audited: &AuditResult) -> String {
    let largest = audited.attacks.iter().map(|attack| attack.claimed.delta);
    let delta = match largest.fold(0.0, f64::max) {
        0.0 => "at δ = 0".to_owned(),
        delta => format!(
            "at δ = {} with gaussian noise, else 0",
            number_format::delta(delta)
        ),
    };
    let is_unresolved = |attack: &AttackResult| {
        matches!(
            attack.verdict,
            AuditVerdict::TooSmall | AuditVerdict::TooLarge
        )
    };
    let unresolved = match audited.attacks.iter().any(is_unresolved) {
        true => "\n too small, too large: this many victims could not refute the claim",
        false => "",
    };
    format!(
        " claimed: ε, a total over all messages {delta},\n   for {}\n \
         at least: the lower bound of an attack, with a confidence of 95 %{unresolved}\n \
         steps: data steps; recycled ones are between them",
        audited.relation
    )
}
