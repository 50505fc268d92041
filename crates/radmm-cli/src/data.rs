//! `radmm data`.

use std::ffi::OsStr;
use std::path::Path;

use radmm_data::{Format, TableFile, TableProfile, profile};

use crate::args::{DataCommand, InspectArgs};
use crate::failure::Failure;
use crate::files;
use crate::message::message;
use crate::proposal::{Proposal, WARNING};

pub(crate) fn data(command: DataCommand) -> Result<(), Failure> {
    match command {
        DataCommand::Inspect(typed) => inspect_file(&typed),
    }
}

fn inspect_file(typed: &InspectArgs) -> Result<(), Failure> {
    let path = &typed.file;
    let table = open(path, typed.format)?;
    let profile = profile(table)?;
    let proposal = Proposal::new(path, &profile, typed).map_err(Failure::Inspect)?;
    if let Some(reason) = proposal.no_features() {
        return Err(Failure::NoFeatures(reason));
    }
    if profile.format == Format::Csv && has_numbers_for_names(&profile) {
        message!("note: some columns are called by numbers; does the first line name the columns?");
    }
    message!("warning: {WARNING}\n\n{}", proposal.table());
    match typed.json {
        true => files::print(&proposal.json()),
        false => files::print(&proposal.section()),
    }
}

/// Opens a file of rows, in the format that was typed or that its extension tells.
pub(crate) fn open(path: &Path, typed: Option<Format>) -> Result<TableFile, Failure> {
    let format = typed.or_else(|| Format::of(path));
    let format = format.ok_or_else(|| {
        let problem = unknown_format(path);
        Failure::Inspect(format!("{}: {problem}", path.display()))
    })?;
    TableFile::open(path, format).map_err(|cause| Failure::Unreadable {
        path: path.to_owned(),
        cause,
    })
}

/// Why a file with this name is not read, and what to do.
fn unknown_format(path: &Path) -> &'static str {
    let extension = path.extension().and_then(OsStr::to_str);
    let extension = extension.map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("gz" | "bz2" | "xz" | "zst" | "zip") => {
            "compressed files are not read; decompress it first"
        }
        Some("tsv" | "tab") => {
            "fields separated by tabs are not read; save the file with commas, as .csv"
        }
        Some("xls" | "xlsx" | "ods") => {
            "spreadsheets are not read; save the table with commas, as .csv"
        }
        _ => "its extension does not tell the format; give --format csv, parquet or libsvm",
    }
}

/// As if the first line were a row.
fn has_numbers_for_names(profile: &TableProfile) -> bool {
    let mut names = profile.columns.iter().map(|column| &column.name);
    names.any(|name| name.parse().is_ok_and(f64::is_finite))
}
