//! `radmm ledger export`: the account as lines for a spreadsheet, or as tables of a database.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use radmm::privacy::{Guarantee, IdealRelease, NoiseDistribution, PrivacyEvent};
use radmm_node::atomic_file::AtomicFile;
use radmm_node::evidence::{AccountError, AccountReport, StudyReport};
use radmm_node::store::Store;

use crate::args::ExportLedgerArgs;
use crate::error::CommandError;
use crate::output::sqlite::{SqlTable, SqlValue, sqlite_file};
use crate::output::{files, stderr};

type Row<'a> = Vec<SqlValue<'a>>;

/// The columns of charges.
const CHARGES: [(&str, &str); 11] = [
    ("study", "INTEGER"),
    ("name", "TEXT"),
    ("sha256", "TEXT"),
    ("fingerprint", "TEXT"),
    ("iteration", "INTEGER"),
    ("released", "TEXT"),
    ("noise", "TEXT"),
    ("amount", "REAL"),
    ("sensitivity", "REAL"),
    ("spread", "REAL"),
    ("slack", "REAL"),
];

/// The columns of studies.
const STUDIES: [(&str, &str); 10] = [
    ("number", "INTEGER"),
    ("name", "TEXT"),
    ("sha256", "TEXT"),
    ("node", "INTEGER"),
    ("rows", "INTEGER"),
    ("fingerprint", "TEXT"),
    ("seeded", "INTEGER"),
    ("read_off", "INTEGER"),
    ("finished", "INTEGER"),
    ("charges", "INTEGER"),
];

/// The columns of totals. Those of all studies together have no study.
const TOTALS: [(&str, &str); 5] = [
    ("study", "INTEGER"),
    ("epsilon", "REAL"),
    ("delta", "REAL"),
    ("relation", "TEXT"),
    ("epsilon_limit", "REAL"),
];

/// The columns of what the file is about: the program, and the journal that was read.
const ABOUT: [(&str, &str); 3] = [
    ("program", "TEXT"),
    ("records", "INTEGER"),
    ("last_record", "TEXT"),
];

pub(super) fn run(args: &ExportLedgerArgs) -> Result<(), CommandError> {
    let (store, limit) = super::open(&args.folder)?;
    match &args.sqlite {
        None => files::print(&csv(&charges(&store)?)),
        Some(path) => {
            let report = super::report(&store, limit.as_ref(), None)?;
            write_sqlite(path, &store, &report)
        }
    }
}

/// Returns a row for each charge, in the order of the journal.
fn charges(store: &Store) -> Result<Vec<Row<'static>>, AccountError> {
    let studies = store.studies();
    let charges = store.charges()?.into_iter().map(|charge| {
        let study = studies.get(charge.study as usize);
        let [released, noise, amount, sensitivity, spread] = event_values(&charge.event);
        vec![
            SqlValue::Integer(charge.study.into()),
            study.map_or(SqlValue::Null, |study| text(study.name.clone())),
            study.map_or(SqlValue::Null, |study| text(study.sha256.clone())),
            text(charge.rows.to_string()),
            SqlValue::Integer(charge.iteration.into()),
            released,
            noise,
            amount,
            sensitivity,
            spread,
            SqlValue::Real(charge.event.slack),
        ]
    });
    Ok(charges.collect())
}

/// Returns what was released, its noise, the amount of it, sensitivity and spread.
fn event_values(event: &PrivacyEvent) -> [SqlValue<'static>; 5] {
    let noise = |law: &NoiseDistribution| match *law {
        NoiseDistribution::Gamma { rate } => (text("gamma"), SqlValue::Real(rate)),
        NoiseDistribution::Gaussian { sigma } => (text("gaussian"), SqlValue::Real(sigma)),
        NoiseDistribution::Laplace { rate } => (text("laplace"), SqlValue::Real(rate)),
    };
    let (released, (noise, amount), sensitivity, spread) = match &event.ideal {
        IdealRelease::Exact => (
            "answer",
            (text("none"), SqlValue::Null),
            SqlValue::Null,
            SqlValue::Null,
        ),
        IdealRelease::Additive { sensitivity, law } => (
            "answer",
            noise(law),
            SqlValue::Real(*sensitivity),
            SqlValue::Null,
        ),
        IdealRelease::Objective {
            sensitivity,
            spread,
            law,
            ..
        } => (
            "minimiser",
            noise(law),
            SqlValue::Real(*sensitivity),
            SqlValue::Real(*spread),
        ),
    };
    [text(released), noise, amount, sensitivity, spread]
}

/// Formats charges as CSV (RFC 4180), with all digits of numbers.
fn csv(charges: &[Row<'_>]) -> String {
    let mut lines = CHARGES.map(|(name, _)| name).join(",") + "\n";
    for row in charges {
        let fields: Vec<String> = row.iter().map(csv_field).collect();
        lines += &fields.join(",");
        lines.push('\n');
    }
    lines
}

fn csv_field(value: &SqlValue<'_>) -> String {
    match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text(text) if text.contains([',', '"', '\r', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        SqlValue::Text(text) => text.to_string(),
    }
}

fn write_sqlite(path: &Path, store: &Store, report: &AccountReport) -> Result<(), CommandError> {
    if path.symlink_metadata().is_ok() {
        return Err(CommandError::NotOverwritten(path.to_owned()));
    }
    let (records, last_record) = store.last_record();
    let about = vec![
        text(concat!("radmm ", env!("CARGO_PKG_VERSION"))),
        SqlValue::Integer(records as i64),
        text(last_record),
    ];
    let file = sqlite_file(&[
        table(
            "studies",
            &STUDIES,
            report.studies.iter().map(study).collect(),
        ),
        table("charges", &CHARGES, charges(store)?),
        table("totals", &TOTALS, totals(report)),
        table("about", &ABOUT, vec![about]),
    ])?;
    let written = AtomicFile::create(path).and_then(|mut new| {
        new.write_all(&file)?;
        new.commit()
    });
    written.map_err(|cause| CommandError::NotExported {
        path: path.to_owned(),
        cause,
    })?;
    stderr::wrote(path, false);
    Ok(())
}

fn table<'a>(name: &'static str, columns: &[(&str, &str)], rows: Vec<Row<'a>>) -> SqlTable<'a> {
    let columns: Vec<String> = { columns.iter() }
        .map(|(name, kind)| format!("{name} {kind}"))
        .collect();
    SqlTable {
        name,
        columns: columns.join(", "),
        rows,
    }
}

fn study(study: &StudyReport) -> Row<'_> {
    vec![
        SqlValue::Integer(study.number.into()),
        text(&*study.name),
        text(&*study.sha256),
        SqlValue::Integer(study.node.into()),
        SqlValue::Integer(study.rows as i64),
        text(&*study.fingerprint),
        SqlValue::Integer(study.seeded.into()),
        SqlValue::Integer(study.read_off.into()),
        SqlValue::Integer(study.finished.into()),
        SqlValue::Integer(study.charges.len() as i64),
    ]
}

fn totals(report: &AccountReport) -> Vec<Row<'_>> {
    let row = |study: SqlValue<'static>, total: &Guarantee, limit: Option<f64>| {
        vec![
            study,
            SqlValue::Real(total.epsilon),
            SqlValue::Real(total.delta),
            text(Guarantee::RELATION),
            limit.map_or(SqlValue::Null, SqlValue::Real),
        ]
    };
    let own = report.studies.iter().flat_map(|study| {
        let totals = study.totals.iter();
        totals.map(move |total| row(SqlValue::Integer(study.number.into()), total, None))
    });
    let all = report.site.balance.totals.iter();
    own.chain(all.map(|one| row(SqlValue::Null, &one.total, one.limit)))
        .collect()
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> SqlValue<'a> {
    SqlValue::Text(text.into())
}
