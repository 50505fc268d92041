//! Studies: read, drafted, priced, planned, certified, simulated and compared.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use radmm_cli::{DraftTerms, draft_from_memory, text};
use radmm_data::RowFiles;
use radmm_lab::{
    Comparison, ComparisonOptions, ExcessiveNoise, Experiment, ForecastSource, Forecaster,
    PriorMethod, PublicRows, StudyBill, StudyRows,
};
use radmm_study::{Override, RowSource, Study};
use serde_json::Value;

use crate::background::{self, Work};
use crate::failure::{Failure, guarded};
use crate::outcome::{Certified, Compared, Forecasted, Priced, Simulated, Verified};
use crate::table::Table;

/// A study that was read and checked.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct StudyFile {
    study: Study,
    notes: Vec<String>,
    /// The name of the file in messages.
    file_name: String,
    /// The folder that paths in the study are relative to.
    folder: PathBuf,
}

#[pymethods]
impl StudyFile {
    /// Reads the text of a study file; `name` is that of the file in messages. `overrides` are keys in place of the file's: the
    /// name of each in messages, its dotted key, and its value as JSON.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: &str,
        name: &str,
        folder: PathBuf,
        overrides: Vec<(String, String, String)>,
    ) -> Result<Self, Failure> {
        let (study, notes) = guarded(py, || {
            let overrides: Vec<Override> = overrides
                .iter()
                .map(|(given, key, json)| override_of_json(given, key, json))
                .collect::<Result<_, _>>()?;
            Ok(Study::parse_with(text, name, &overrides)?)
        })?;
        Ok(Self {
            study,
            notes: notes.iter().map(ToString::to_string).collect(),
            file_name: name.to_owned(),
            folder,
        })
    }

    /// The notes on keys that have no effect or look like a mistake.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The study's name.
    #[getter]
    fn name(&self) -> &str {
        &self.study.name
    }

    /// The SHA-256 digest of the study's content.
    #[getter]
    fn sha256(&self) -> String {
        self.study.sha256()
    }

    /// The number of parties.
    #[getter]
    fn parties(&self) -> u32 {
        self.study.network.nodes
    }

    /// Whether the parties have rows of their own, which the study does not name.
    #[getter]
    fn has_own_rows(&self) -> bool {
        self.study.data.source == RowSource::Parties
    }

    /// Returns the study as a file, with its defaults filled in.
    fn to_toml(&self, py: Python<'_>) -> Result<String, Failure> {
        guarded(py, || Ok(self.study.to_toml()))
    }

    /// Returns the bill: with the given numbers of rows, those that parties declare, or those of the table or the study's own.
    #[pyo3(signature = (table, rows, threads))]
    fn bill(
        &self,
        py: Python<'_>,
        table: Option<&Table>,
        rows: Option<Vec<usize>>,
        threads: Option<usize>,
    ) -> Result<Priced, Failure> {
        let declared = self.declared_rows();
        let study = self.study.clone();
        let bill = match rows.or(declared) {
            Some(rows) => background::run(py, threads, None, move |_| {
                Ok(StudyBill::for_rows(&study, &rows)?)
            }),
            None => {
                let experiment = self.experiment(py, table)?;
                background::run(py, threads, None, move |_| Ok(experiment.bill()?))
            }
        }?;
        warn_of_noise(py, bill.noise_warning.as_ref())?;
        Ok(Priced(bill))
    }

    /// Forecasts the accuracy at several totals, from the schema or from public rows.
    #[pyo3(signature = (epsilons, rows, table, like, threads, progress))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn plan(
        &self,
        py: Python<'_>,
        epsilons: Vec<f64>,
        rows: Option<Vec<usize>>,
        table: Option<&Table>,
        like: Option<&Table>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Forecasted, Failure> {
        let parties = self.study.network.nodes as usize;
        let sizes = match rows.or(self.declared_rows()) {
            Some(all) if all.len() == 1 => vec![all[0]; parties],
            Some(each) => each,
            None => self.row_counts(py, table)?,
        };
        let source = match like {
            None => ForecastSource::Schema,
            Some(like) => {
                let schema = &self.study.data.schema;
                ForecastSource::Public(like.read(py, |rows| PublicRows::read(rows, schema))?)
            }
        };
        let study = self.study.clone();
        let epsilons = radmm_cli::planned_epsilons(&epsilons, &study);
        let forecast =
            background::run(py, threads, progress, move |work| {
                let forecaster = Forecaster::new(&study, &sizes, &source)?;
                work.set_total(forecaster.progress_steps(epsilons.len()));
                Ok(forecaster
                    .forecast(&epsilons, &|epsilon| work.step(|| format!("ε = {epsilon}")))?)
            })?;
        Ok(Forecasted(forecast))
    }

    /// Examines the convergence of the study's algorithm.
    #[pyo3(signature = (table, threads, progress))]
    fn certify(
        &self,
        py: Python<'_>,
        table: Option<&Table>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Certified, Failure> {
        let experiment = self.experiment(py, table)?;
        let certified = background::run(py, threads, progress, move |work| {
            work.set_total(experiment.certify_progress_steps());
            Ok(experiment.certify(&|step| work.step(|| step.to_owned()))?)
        })?;
        Ok(Certified(certified))
    }

    /// Simulates the study: all parties in this process, with noise from its seed.
    #[pyo3(signature = (table, limit, baselines, threads, progress))]
    fn run(
        &self,
        py: Python<'_>,
        table: Option<&Table>,
        limit: Option<f64>,
        baselines: bool,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> Result<Simulated, Failure> {
        let experiment = self.experiment(py, table)?;
        for note in text::notes_on_rows(&experiment) {
            warn(py, &note)?;
        }
        let folder = self.folder.clone();
        let (simulated, noise) = background::run(py, threads, progress, move |work| {
            let mut experiment = experiment.interrupted_by(work.interrupted());
            if !baselines {
                experiment = experiment.without_baselines();
            }
            work.set_total(experiment.progress_steps());
            let noise = experiment.noise_warning()?;
            let outcome = experiment.run(limit, &|snapshot| {
                work.step(|| format!("iteration {}", snapshot.iteration));
            })?;
            let simulated = Simulated {
                experiment: Arc::new(experiment),
                outcome,
                folder,
            };
            Ok((simulated, noise))
        })?;
        warn_of_noise(py, noise.as_ref())?;
        Ok(simulated)
    }
}

impl StudyFile {
    /// Returns the study.
    pub(crate) fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the name of the file in messages.
    pub(crate) fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the folder that paths in the study are relative to.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the numbers of rows that parties with rows of their own declare.
    fn declared_rows(&self) -> Option<Vec<usize>> {
        let declared = self.study.parties.iter().map(|party| party.rows);
        match self.study.data.source {
            RowSource::Parties => declared.collect(),
            _ => None,
        }
    }

    fn rows(&self, py: Python<'_>, table: Option<&Table>) -> Result<StudyRows, Failure> {
        match table {
            Some(table) => table.read(py, |rows| {
                StudyRows::from_memory(&self.study, rows, &self.folder)
            }),
            None => {
                // A file may take minutes, in which Ctrl-C is to be heard.
                let (study, folder) = (self.study.clone(), self.folder.clone());
                background::run(py, None, None, move |_| {
                    Ok(StudyRows::read(&study, &folder)?)
                })
            }
        }
    }

    fn row_counts(&self, py: Python<'_>, table: Option<&Table>) -> Result<Vec<usize>, Failure> {
        let rows = self.rows(py, table)?;
        let parties = rows.parties.iter();
        Ok(parties.map(|party| party.shard.rows()).collect())
    }

    fn experiment(&self, py: Python<'_>, table: Option<&Table>) -> Result<Experiment, Failure> {
        // The graph first: its errors show at once, a table may take minutes.
        self.study.network.graph()?;
        let rows = self.rows(py, table)?;
        Ok(Experiment::with_rows(self.study.clone(), rows)?)
    }
}

fn override_of_json(given: &str, key: &str, json: &str) -> Result<Override, Failure> {
    let wrong = |error: &dyn Display| Failure::Value(format!("{given}: {error}"));
    let value: Value = serde_json::from_str(json).map_err(|error| wrong(&error))?;
    Override::of_json(given.to_owned(), key, &value).map_err(|error| wrong(&error))
}

fn warn_of_noise(py: Python<'_>, noise: Option<&ExcessiveNoise>) -> Result<(), Failure> {
    match noise {
        Some(noise) => warn(py, &noise.to_string()),
        None => Ok(()),
    }
}

/// Warns in Python, as the caller of the public function.
pub(crate) fn warn(py: Python<'_>, message: &str) -> Result<(), Failure> {
    let category = py.import("radmm.errors")?.getattr("StudyWarning")?;
    py.import("warnings")?
        .call_method1("warn", (message, category, 4))?;
    Ok(())
}

/// Compares studies on the rows of the first, at equal total privacy.
#[pyfunction]
#[pyo3(signature = (studies, table, prior_methods, epsilon, delta, repetitions, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn compare(
    py: Python<'_>,
    studies: Vec<PyRef<'_, StudyFile>>,
    table: Option<&Table>,
    prior_methods: Vec<String>,
    epsilon: Option<f64>,
    delta: Option<f64>,
    repetitions: Option<u32>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> Result<Compared, Failure> {
    let Some((first, others)) = studies.split_first() else {
        return Err(Failure::Value("give at least one study".to_owned()));
    };
    let methods: Vec<PriorMethod> = prior_methods
        .iter()
        .map(|name| prior_method(name))
        .collect::<Result<_, _>>()?;
    let experiment = first.experiment(py, table)?;
    let mut others: Vec<Study> = others.iter().map(|other| other.study.clone()).collect();
    let source = &experiment.study().data.source;
    let is_same = |other: &Study, file: &StudyFile| match (&other.data.source, source) {
        (RowSource::File(one), RowSource::File(two)) => {
            let [one, two] = [file.folder.join(one), first.folder.join(two)];
            table.is_some() || RowFiles::resolve(&one).ok() == RowFiles::resolve(&two).ok()
        }
        _ => table.is_some(),
    };
    for (other, file) in others.iter_mut().zip(&studies[1..]) {
        if is_same(other, file) {
            other.data.source = source.clone();
        }
    }
    let (comparison, result) = background::run(py, threads, progress, move |work| {
        let experiment = experiment.interrupted_by(work.interrupted());
        let comparison = Comparison::new(
            experiment,
            ComparisonOptions {
                others,
                prior_methods: &methods,
                epsilon,
                delta,
                repetitions,
            },
        )?;
        work.set_total(comparison.progress_steps());
        let result = comparison.run(&|snapshot| {
            work.step(|| format!("iteration {}", snapshot.iteration));
        })?;
        Ok((comparison, result))
    })?;
    Ok(Compared { comparison, result })
}

fn prior_method(name: &str) -> Result<PriorMethod, Failure> {
    let found = PriorMethod::ALL.into_iter().find(|one| one.name() == name);
    found.ok_or_else(|| {
        let known = PriorMethod::ALL.map(|one| format!("{:?}", one.name()));
        Failure::Value(format!(
            "there is no prior method {name:?}; known are {}",
            known.join(", ")
        ))
    })
}

/// Drafts a study from a table as `radmm init` does; returns its text, and remarks.
#[pyfunction]
#[pyo3(signature = (table, label, positive, parties, by, epsilon, delta))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn draft_study(
    py: Python<'_>,
    table: &Table,
    label: Option<String>,
    positive: Option<String>,
    parties: u32,
    by: Option<String>,
    epsilon: f64,
    delta: Option<f64>,
) -> Result<(String, Vec<String>), Failure> {
    let terms = DraftTerms {
        label,
        positive,
        parties,
        by,
        epsilon,
        delta,
    };
    let drafted = table.read(py, |rows| {
        draft_from_memory(rows, terms).map_err(Failure::Value)
    })?;
    Ok((drafted.text, drafted.remarks))
}

/// Drafts `[data]` of a study from a table whose label has two values.
#[pyfunction]
pub(crate) fn draft_columns(
    py: Python<'_>,
    table: &Table,
    label: &str,
    positive: &str,
    numeric: &str,
) -> Result<String, Failure> {
    table.read(py, |rows| {
        radmm_cli::draft_columns(rows, label, positive, numeric).map_err(Failure::Value)
    })
}

/// Returns JSON of the form of a study or site file as TOML, unchecked.
#[pyfunction]
pub(crate) fn toml_of_json(py: Python<'_>, json: &str) -> Result<String, Failure> {
    guarded(py, || match serde_json::from_str(json) {
        Ok(Value::Object(map)) => Ok(radmm_study::toml_of_json(&map)),
        Ok(_) => Err(Failure::Value("a study is a dictionary".to_owned())),
        Err(error) => Err(Failure::Value(error.to_string())),
    })
}

/// Checks the files that the parties of a study show.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    study: &StudyFile,
    transcripts: Vec<PathBuf>,
    statements: Vec<PathBuf>,
    models: Vec<PathBuf>,
) -> Result<Verified, Failure> {
    let delta = study.study.privacy.delta;
    let study = study.study.clone();
    let verification = background::run(py, None, None, move |_: &Work| {
        let mut verification = radmm_node::evidence::verify(&study, &transcripts, &statements)?;
        for model in &models {
            verification.check_model(&study, model)?;
        }
        Ok(verification)
    })?;
    Ok(Verified {
        verification,
        delta,
    })
}
