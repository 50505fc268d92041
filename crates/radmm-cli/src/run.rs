//! `radmm run`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use radmm::public::graph::GraphError;
use radmm_lab::{Experiment, Outcome, PrepareError, ResultFile, RunError, TableError};
use radmm_study::{Study, StudyError};
use thiserror::Error;

use crate::args::RunArgs;
use crate::notes;
use crate::progress::Progress;
use crate::render;

const BUILT_IN: &str = include_str!("../../../studies/clinic.toml");

/// Why nothing, or less than was asked for, came out.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Study(#[from] StudyError),
    #[error("{}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; choose another folder for --out", path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error("{study}: [network] {cause}")]
    Network { study: String, cause: GraphError },
    #[error("{0}")]
    Rows(#[from] TableError),
    #[error("{0}")]
    Run(#[from] RunError),
    #[error("the run stopped early: {0}")]
    Stopped(String),
    #[error("the threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    #[error("the result could not be printed: {0}")]
    Print(#[from] io::Error),
}

impl Failure {
    /// 2 for what the user can put right in what was typed or written, 1 for the rest.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Study(_) | Self::Unreadable { .. } | Self::Run(_) | Self::Network { .. } => {
                ExitCode::from(2)
            }
            _ => ExitCode::from(1),
        }
    }
}

pub(crate) fn run(typed: RunArgs) -> Result<(), Failure> {
    let (text, name, folder) = read(typed.study.as_deref())?;
    let (study, notes) = Study::parse(&text, &name)?;
    if !typed.quiet {
        notes.iter().for_each(|note| eprintln!("note: {note}"));
    }
    // Before hours of computation, not after them.
    if let Some(out) = &typed.out {
        if out.is_file() {
            let cause = io::Error::other("it is a file, not a folder");
            return Err(unwritable(out, cause));
        }
        fs::create_dir_all(out).map_err(|cause| unwritable(out, cause))?;
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(typed.threads.map_or(0, usize::from))
        .build()?;
    let experiment = Experiment::prepare(study, &folder).map_err(|error| match error {
        PrepareError::Graph(cause) => Failure::Network {
            study: name.clone(),
            cause,
        },
        PrepareError::Table(cause) => Failure::Rows(cause),
    })?;
    if !typed.quiet {
        notes::on_rows(&experiment)
            .iter()
            .for_each(|note| eprintln!("note: {note}"));
    }
    let progress = Progress::new(experiment.steps(), typed.quiet);
    let outcome =
        pool.install(|| experiment.run(typed.limit, &|snapshot| progress.step(snapshot)))?;
    progress.done();
    tell(&typed, &experiment, &outcome)?;
    match outcome
        .repetitions
        .iter()
        .find_map(|run| run.stopped.clone())
    {
        Some(reason) => Err(Failure::Stopped(reason)),
        None => Ok(()),
    }
}

/// The study's text, its name in messages, and the folder that its paths are relative to.
fn read(path: Option<&Path>) -> Result<(String, String, PathBuf), Failure> {
    let Some(path) = path else {
        return Ok((
            BUILT_IN.to_owned(),
            "clinic.toml".to_owned(),
            PathBuf::new(),
        ));
    };
    let text = fs::read_to_string(path).map_err(|cause| Failure::Unreadable {
        path: path.to_owned(),
        cause: match cause.kind() {
            io::ErrorKind::InvalidData => {
                io::Error::other("it is not text in UTF-8; save it as UTF-8")
            }
            _ => cause,
        },
    })?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok((text, path.display().to_string(), folder))
}

fn tell(typed: &RunArgs, experiment: &Experiment, outcome: &Outcome) -> Result<(), Failure> {
    let json = ResultFile::new(experiment, outcome).to_json();
    if let Some(out) = &typed.out {
        let path = out.join("result.json");
        write_whole(&path, &json).map_err(|cause| unwritable(&path, cause))?;
        if !typed.quiet {
            eprintln!("wrote {}", path.display());
        }
    }
    let shown = match typed.json {
        true => json,
        false => render::outcome(experiment, outcome),
    };
    match io::stdout().write_all(shown.as_bytes()) {
        // Whoever reads has read enough: `radmm run | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

/// A reader sees the old file or the new one, never half of it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("json.new");
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn unwritable(path: &Path, cause: io::Error) -> Failure {
    Failure::Unwritable {
        path: path.to_owned(),
        cause,
    }
}
