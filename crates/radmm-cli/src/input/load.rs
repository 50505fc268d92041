//! From a path, or none, to a study with its rows.

use std::path::{Path, PathBuf};

use radmm_lab::Experiment;
use radmm_study::Study;

use crate::error::Failure;
use crate::input::warnings as notes;
use crate::output::files::StudyText;
use crate::output::stderr::message;

const BUILT_IN: &str = include_str!("../../../../studies/adult.toml");

/// A study, and where its paths begin.
pub(crate) struct Prepared {
    study: Study,
    name: String,
    folder: PathBuf,
    quiet: bool,
}

/// Reads a study, or the built-in one, and tells what looks odd in it.
pub(crate) fn study(path: Option<&Path>, quiet: bool) -> Result<Prepared, Failure> {
    let StudyText { text, name, folder } = match path {
        Some(path) => StudyText::read(path)?,
        None => StudyText {
            text: BUILT_IN.to_owned(),
            name: "adult.toml".to_owned(),
            folder: PathBuf::new(),
        },
    };
    let (study, notes) = Study::parse(&text, &name)?;
    if !quiet {
        notes.iter().for_each(|note| message!("note: {note}"));
    }
    Ok(Prepared {
        study,
        name,
        folder,
        quiet,
    })
}

impl Prepared {
    /// What is to be run.
    pub(crate) fn study(&self) -> &Study {
        &self.study
    }

    /// By which it goes in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Reads the rows, and tells what looks odd in them.
    pub(crate) fn rows(&self) -> Result<Experiment, Failure> {
        let experiment = Experiment::prepare(self.study.clone(), &self.folder)
            .map_err(|error| Failure::of_study(&self.name, error))?;
        if !self.quiet {
            notes::on_rows(&experiment)
                .iter()
                .for_each(|note| message!("note: {note}"));
        }
        Ok(experiment)
    }
}
