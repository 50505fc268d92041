//! `radmm data inspect`: drafts the `[data]` section of a study from a file of rows.

mod ask;
mod binning;
mod column_roles;
mod draft_memory;
mod label_guess;
mod round_bounds;
mod schema_draft;
mod study_draft;
mod toml_writer;

use std::path::Path;

use radmm_data::{Format, TableProfile, profile};

pub(crate) use self::binning::NumericEncoding;
pub use self::draft_memory::{DraftTerms, DraftedStudy, draft_columns, draft_from_memory};
use self::schema_draft::{LEAST_PARTY_ROWS, SchemaDraft, WARNING};
pub(crate) use self::study_draft::{Agreement, Parties, TEST_SHARE, default_delta, write as study};
use crate::args::{InspectArgs, LabelledTable, StudyTerms};
use crate::error::CommandError;
use crate::input::load;
use crate::output::{files, stderr};

pub(crate) fn run(args: &InspectArgs) -> Result<(), CommandError> {
    let profile = read(&args.table)?;
    let draft = draft(&args.table, &profile)?;
    stderr::line(format!("warning: {WARNING}\n\n{}", draft.table()));
    stderr::notes(draft.remarks(), false);
    match args.json {
        true => files::print(&draft.json()),
        false => {
            let agreement = Agreement::usual(profile.rows);
            let path = match (load::is_stdin(&args.table.file), profile.format) {
                (false, _) => &args.table.file,
                // A study cannot name stdin: its rows are read again and again.
                (true, Format::Libsvm) => Path::new("rows.svm"),
                (true, _) => Path::new("rows.csv"),
            };
            files::print(&study(&draft, path, &agreement))
        }
    }
}

/// Drafts the meaning of the columns and the terms of a study.
pub(crate) fn draft_study<'a>(
    table: &LabelledTable,
    terms: &StudyTerms,
    profile: &'a TableProfile,
) -> Result<(SchemaDraft<'a>, Agreement), CommandError> {
    let mut draft = draft(table, profile)?;
    if terms.delta == Some(0.0) {
        draft = draft.for_pure_total(table);
    }
    let parties = match &terms.by {
        Some(name) => {
            draft = draft.split_by(name).map_err(CommandError::Inspect)?;
            Parties::Column {
                name: name.clone(),
                values: draft.split_values(),
            }
        }
        None => {
            check_parties(table, profile.rows, terms.parties)?;
            Parties::Count(terms.parties)
        }
    };
    let agreement = Agreement {
        parties,
        epsilon: terms.epsilon,
        delta: terms.delta.unwrap_or(default_delta(profile.rows)),
    };
    Ok((draft, agreement))
}

/// Checks that every party of a simulation would have some rows.
fn check_parties(table: &LabelledTable, rows: usize, parties: u32) -> Result<(), CommandError> {
    if rows >= LEAST_PARTY_ROWS * parties as usize {
        return Ok(());
    }
    Err(CommandError::Inspect(format!(
        "{}: {rows} rows are too few for {parties} parties: each needs at least {LEAST_PARTY_ROWS}; choose fewer with --parties",
        table.file.display()
    )))
}

/// Profiles a file of rows.
pub(crate) fn read(table: &LabelledTable) -> Result<TableProfile, CommandError> {
    Ok(profile(load::table(&table.file, table.written.options())?)?)
}

/// Drafts the meaning of the columns of a file that was profiled.
pub(crate) fn draft<'a>(
    table: &LabelledTable,
    profile: &'a TableProfile,
) -> Result<SchemaDraft<'a>, CommandError> {
    let path = match load::is_stdin(&table.file) {
        true => Path::new("stdin"),
        false => &table.file,
    };
    let draft = SchemaDraft::new(path, profile, table).map_err(CommandError::Inspect)?;
    if let Some(reason) = draft.no_features() {
        return Err(CommandError::NoFeatures(reason));
    }
    if profile.format == Format::Csv && has_numeric_names(profile) {
        stderr::line(
            "note: some columns have numbers as names; does the first line name the columns?",
        );
    }
    Ok(draft)
}

/// Returns whether a column's name is a number, as if the first line were a row.
fn has_numeric_names(profile: &TableProfile) -> bool {
    let mut names = profile.columns.iter().map(|column| &column.name);
    names.any(|name| name.parse().is_ok_and(f64::is_finite))
}
