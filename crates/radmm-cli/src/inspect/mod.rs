//! `radmm data inspect`: drafts the `[data]` section of a study from a file of rows.

mod label_guess;
mod round_bounds;
mod schema_draft;
mod toml_writer;

use radmm_data::{Format, TableProfile, profile};

use self::schema_draft::{SchemaDraft, WARNING};
use crate::args::InspectArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::output::{files, stderr};

pub(crate) fn run(args: &InspectArgs) -> Result<(), CommandError> {
    let path = &args.file;
    let profile = profile(load::table(path, args.format)?)?;
    let draft = SchemaDraft::new(path, &profile, args).map_err(CommandError::Inspect)?;
    if let Some(reason) = draft.no_features() {
        return Err(CommandError::NoFeatures(reason));
    }
    if profile.format == Format::Csv && has_numeric_names(&profile) {
        stderr::line(
            "note: some columns have numbers as names; does the first line name the columns?",
        );
    }
    stderr::line(format!("warning: {WARNING}\n\n{}", draft.table()));
    match args.json {
        true => files::print(&draft.json()),
        false => files::print(&draft.section()),
    }
}

/// Returns whether a column's name is a number, as if the first line were a row.
fn has_numeric_names(profile: &TableProfile) -> bool {
    let mut names = profile.columns.iter().map(|column| &column.name);
    names.any(|name| name.parse().is_ok_and(f64::is_finite))
}
