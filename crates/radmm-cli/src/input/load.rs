//! Reads study files, their rows, and tables.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use radmm::curator::RowMemory;
use radmm_data::{FileOptions, Format, TableFile};
use radmm_lab::Experiment;
use radmm_study::{Note, Override, Study};

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
#[derive(Clone)]
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

/// Reads a study file, or the built-in study on the UCI Adult data without one, with the keys given beside it. Prints the notes
/// on it.
pub(crate) fn study(
    path: Option<&Path>,
    overrides: &[Override],
    quiet: bool,
) -> Result<LoadedStudy, CommandError> {
    study_or(path, ADULT, overrides, quiet)
}

/// Reads a study file, or the built-in study of an algorithm that converges without one, with the keys given beside it. Prints
/// the notes on it.
pub(crate) fn converging_study(
    path: Option<&Path>,
    overrides: &[Override],
    quiet: bool,
) -> Result<LoadedStudy, CommandError> {
    study_or(path, ADULT_ADMM, overrides, quiet)
}

fn study_or(
    path: Option<&Path>,
    (text, name): (&str, &str),
    overrides: &[Override],
    quiet: bool,
) -> Result<LoadedStudy, CommandError> {
    let source = match path {
        Some(path) => study_text(path)?,
        None => SourceText::built_in(text, name),
    };
    LoadedStudy::parse(source, overrides, quiet)
}

/// Reads the text of a study file.
pub(crate) fn study_text(path: &Path) -> Result<SourceText, CommandError> {
    match Format::of(path).is_some() || path.is_dir() {
        true => Err(CommandError::Inspect(format!(
            "{}: this is a table of rows, not a study; write one for it with: radmm init {}",
            path.display(),
            path.display()
        ))),
        false => SourceText::read(path),
    }
}

impl LoadedStudy {
    /// Parses a study with the keys given beside it, and prints the notes on it unless `quiet`.
    pub(crate) fn parse(
        source: SourceText,
        overrides: &[Override],
        quiet: bool,
    ) -> Result<Self, CommandError> {
        let (loaded, notes) = Self::parse_with_notes(source, overrides, quiet)?;
        stderr::notes(&notes, quiet);
        Ok(loaded)
    }

    /// Parses a study with the keys given beside it, and returns the notes on it.
    pub(crate) fn parse_with_notes(
        source: SourceText,
        overrides: &[Override],
        quiet: bool,
    ) -> Result<(Self, Vec<Note>), CommandError> {
        let (study, notes) = Study::parse_with(&source.text, &source.name, overrides)?;
        let loaded = Self {
            study,
            source,
            quiet,
        };
        Ok((loaded, notes))
    }

    /// The study's name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// Reads the rows, and prints the notes on them.
    pub(crate) fn experiment(&self) -> Result<Experiment, CommandError> {
        self.experiment_within(None)
    }

    /// Reads the rows, stores those that exceed the memory, and prints the notes on them.
    pub(crate) fn experiment_within(
        &self,
        memory: Option<&RowMemory>,
    ) -> Result<Experiment, CommandError> {
        let (study, folder) = (self.study.clone(), &self.source.folder);
        let experiment = Experiment::prepare_within(study, folder, memory)
            .map_err(|error| CommandError::from_prepare(self.name(), error))?;
        stderr::notes(warnings::on_rows(&experiment), self.quiet);
        stderr::warning(warnings::of_dropped_rows(&experiment).as_ref(), self.quiet);
        Ok(experiment)
    }
}

/// Returns whether a path stands for stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Opens files of rows, whose format is given or follows from their extension. A path `-` is stdin, with CSV unless a format is given.
pub(crate) fn table(path: &Path, options: FileOptions) -> Result<TableFile, CommandError> {
    if is_stdin(path) {
        return stdin(options);
    }
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

fn stdin(options: FileOptions) -> Result<TableFile, CommandError> {
    if options.format == Some(Format::Parquet) {
        return Err(CommandError::Inspect(
            "-: a Parquet file is read from its end, and stdin cannot be; give the path of the file, or CSV".to_owned(),
        ));
    }
    if io::stdin().is_terminal() {
        return Err(CommandError::Inspect(
            "-: the rows come through stdin, which is a terminal; give them, as in psql … | radmm …, or give the path of their file"
                .to_owned(),
        ));
    }
    let path = Path::new("/dev/stdin");
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
            "spreadsheets are not read; export the table as CSV in UTF-8"
        }
        _ => "unknown file extension; give --format csv, parquet or libsvm",
    }
}
