//! Reads study files, their rows, and tables.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use radmm_data::{FileOptions, Format, TableFile};
use radmm_lab::Experiment;
use radmm_study::Study;

use crate::error::CommandError;
use crate::input::warnings;
use crate::output::stderr;

/// The built-in study on the UCI Adult data.
const ADULT: (&str, &str) = (include_str!("../../studies/adult.toml"), "adult.toml");

/// The built-in study of the paper's algorithm, on the same data.
const ADULT_ADMM: (&str, &str) = (
    include_str!("../../studies/adult-admm.toml"),
    "adult-admm.toml",
);

/// The text of a configuration file.
pub(crate) struct SourceText {
    pub text: String,
    /// The file name in messages.
    pub name: String,
    /// The folder that paths in the file are relative to.
    pub folder: PathBuf,
}

impl SourceText {
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        Ok(Self {
            text: read_text(path)?,
            name: path.display().to_string(),
            folder: path.parent().unwrap_or(Path::new("")).to_owned(),
        })
    }

    /// A study that is part of the program.
    pub(crate) fn built_in(text: &str, name: &str) -> Self {
        Self {
            text: text.to_owned(),
            name: name.to_owned(),
            folder: PathBuf::new(),
        }
    }
}

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, CommandError> {
    fs::read_to_string(path).map_err(|cause| CommandError::Unreadable {
        path: path.to_owned(),
        cause: match cause.kind() {
            io::ErrorKind::InvalidData => {
                io::Error::other("it is not text in UTF-8; save it as UTF-8")
            }
            _ => cause,
        },
    })
}

/// A parsed study file, whose rows have not been read.
pub(crate) struct LoadedStudy {
    pub study: Study,
    pub source: SourceText,
    quiet: bool,
}

/// Reads a study file, or the built-in study on the UCI Adult data without one, and prints the notes on it.
pub(crate) fn study(path: Option<&Path>, quiet: bool) -> Result<LoadedStudy, CommandError> {
    study_or(path, ADULT, quiet)
}

/// Reads a study file, or the built-in study of an algorithm that converges without one, and prints the notes on it.
pub(crate) fn converging_study(
    path: Option<&Path>,
    quiet: bool,
) -> Result<LoadedStudy, CommandError> {
    study_or(path, ADULT_ADMM, quiet)
}

fn study_or(
    path: Option<&Path>,
    (text, name): (&str, &str),
    quiet: bool,
) -> Result<LoadedStudy, CommandError> {
    if let Some(path) = path.filter(|path| Format::of(path).is_some() || path.is_dir()) {
        return Err(CommandError::Inspect(format!(
            "{}: this is a table of rows, not a study; write one for it with: radmm init {}",
            path.display(),
            path.display()
        )));
    }
    let source = match path {
        Some(path) => SourceText::read(path)?,
        None => SourceText::built_in(text, name),
    };
    LoadedStudy::parse(source, quiet)
}

impl LoadedStudy {
    /// Parses a study, and prints the notes on it unless `quiet`.
    pub(crate) fn parse(source: SourceText, quiet: bool) -> Result<Self, CommandError> {
        let (study, notes) = Study::parse(&source.text, &source.name)?;
        stderr::notes(&notes, quiet);
        Ok(Self {
            study,
            source,
            quiet,
        })
    }

    /// The study's name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// Reads the rows, and prints the notes on them.
    pub(crate) fn experiment(&self) -> Result<Experiment, CommandError> {
        let experiment = Experiment::prepare(self.study.clone(), &self.source.folder)
            .map_err(|error| CommandError::from_prepare(self.name(), error))?;
        stderr::notes(warnings::on_rows(&experiment), self.quiet);
        Ok(experiment)
    }
}

/// Opens files of rows, whose format is given or follows from their extension.
pub(crate) fn table(path: &Path, options: FileOptions) -> Result<TableFile, CommandError> {
    let is_known = options.format.or_else(|| Format::of(path)).is_some();
    if path.is_file() && !is_known {
        let problem = unknown_format(path);
        return Err(CommandError::Inspect(format!(
            "{}: {problem}",
            path.display()
        )));
    }
    TableFile::open(path, options).map_err(|cause| CommandError::Unreadable {
        path: path.to_owned(),
        cause,
    })
}

/// Explains why a file with this extension cannot be read, and what to do.
fn unknown_format(path: &Path) -> &'static str {
    let extension = path.extension().and_then(OsStr::to_str);
    let extension = extension.map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("bz2" | "xz" | "zip") => {
            "this compression is not supported; decompress it first, or compress it with gzip or zstd"
        }
        Some("xls" | "xlsx" | "ods") => {
            "spreadsheets are not supported; save the table with commas, as .csv"
        }
        _ => "unknown file extension; give --format csv, parquet or libsvm",
    }
}
