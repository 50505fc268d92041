//! A private classifier on one party's rows, with a durable ledger.

use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use radmm::privacy::Guarantee;
use radmm_node::atomic_file::AtomicFile;
use radmm_node::evidence::{trained_model, write_result_files};
use radmm_node::key::SecretKey;
use radmm_node::machine::Party;
use radmm_node::setup::{OnePartyConfig, PartySetup};
use radmm_node::store::{JOURNAL_FILE, Store};
use radmm_study::algorithm::OneAnswer;
use radmm_study::{Identity, Limit, ModelFile, NoiseOrigin, Study, StudyParty};

use crate::background::{self, Work};
use crate::failure::{Failure, guarded};
use crate::model::Model;
use crate::workers::HandedRows;

/// The file of the key that signs statements, in the folder of a ledger.
const KEY_FILE: &str = "key.pem";

/// The folder of results, in the folder of a ledger.
const RESULTS: &str = "fits";

/// The model, in the folder of a fit's results.
const MODEL_FILE: &str = "model.json";

/// The beginning of a fit's name, before its number.
const FIT: &str = "fit ";

/// The name of the study in messages.
const STUDY_NAME: &str = "this fit";

/// The name of the limit's origin in messages.
const LIMIT_NAME: &str = "the ledger";

/// A finished fit.
#[pyclass(frozen, module = "radmm._radmm")]
pub(crate) struct OnePartyFit {
    model: ModelFile,
    #[pyo3(get)]
    epsilon: f64,
    #[pyo3(get)]
    delta: f64,
    #[pyo3(get)]
    protects: bool,
    #[pyo3(get)]
    caveat: String,
    /// The number of fits with this ledger, this one among them, whose bounds or vocabularies were read off the rows.
    #[pyo3(get)]
    uncovered: u32,
    /// The number of rows that were trained on.
    #[pyo3(get)]
    rows: usize,
    /// The number of steps that asked the rows.
    #[pyo3(get)]
    data_steps: usize,
    /// The number of iterations.
    #[pyo3(get)]
    iterations: u32,
    /// The total of all fits with this ledger, as `(epsilon, delta, limit)`.
    #[pyo3(get)]
    ledger: Vec<(f64, f64, f64)>,
    /// The study of the fit, with everything that rules chose.
    #[pyo3(get)]
    study: String,
    /// The folder with model, statement and transcript; `None` without a durable ledger.
    #[pyo3(get)]
    folder: Option<PathBuf>,
}

#[pymethods]
impl OnePartyFit {
    /// The model.
    #[getter]
    fn model(&self) -> Model {
        Model(self.model.clone())
    }
}

/// Fits a classifier on rows of a table or of workers, by a study without `name`, `[[parties]]` and `[network]`.
///
/// `ledger` is the folder of the durable ledger; without one the charges of this fit are forgotten when the process ends. `limits` are
/// candidates for the most that all fits with the ledger may cost at `delta`, of which the first that leaves room for this fit alone is
/// taken. With a `seed`, which must be the study's, noise repeats and
/// protects nobody; there must be no ledger then. Nor does a fit protect whose bounds or vocabularies were `read_off` the rows; it has
/// a model and no signed statement.
#[pyfunction]
#[pyo3(signature = (study, rows, ledger, limits, delta, seed, read_off, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fit_one_party(
    py: Python<'_>,
    study: String,
    rows: HandedRows<'_>,
    ledger: Option<PathBuf>,
    limits: Vec<f64>,
    delta: f64,
    seed: Option<u64>,
    read_off: bool,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> Result<OnePartyFit, Failure> {
    if seed.is_some() && ledger.is_some() {
        return Err(Failure::Value(
            "noise that repeats has no place in a ledger".to_owned(),
        ));
    }
    let limits = limits.into_iter();
    let limits = limits.map(|epsilon| Limit::for_gradients(epsilon, delta));
    let limits: Result<Vec<Limit>, _> = limits.collect();
    let limits = limits.map_err(|error| Failure::Value(format!("limit: {error}")))?;
    let (store, key) = guarded(py, || match &ledger {
        Some(folder) => open_ledger(folder),
        None => Ok((Store::in_memory()?, SecretKey::generate()?)),
    })?;
    let results = ledger.as_ref().map(|folder| folder.join(RESULTS));
    let work = Work::default();
    let (setup, store) = rows.read(py, work.interrupted(), move |rows| {
        // The model is written last.
        let is_delivered = |name: &str| match &results {
            Some(results) => results.join(name).join(MODEL_FILE).is_file(),
            None => true,
        };
        let numbered = |number: usize| format!("name = \"{FIT}{number}\"\n{study}");
        let config = OnePartyConfig {
            study: &numbered,
            study_name: STUDY_NAME,
            rows,
            key,
            limits,
            noise: match seed {
                None => NoiseOrigin::Secret,
                Some(_) => NoiseOrigin::Seeded,
            },
            read_off,
            site_name: LIMIT_NAME,
            is_delivered: &is_delivered,
        };
        let setup = PartySetup::alone(config, &store)?;
        Ok::<_, Failure>((setup, store))
    })?;
    let facts = setup.public_facts();
    background::run_as(py, &work, threads, progress, move |work| {
        let (mut party, bill) = setup.open(store).map_err(Failure::from)?;
        work.set_total(u64::from(party.iterations()));
        (0..party.iteration()).for_each(|_| work.step(String::new));
        while party.advance_alone()? {
            if work.is_interrupted() {
                return Err(Failure::Interrupted);
            }
            let spent = party.spent();
            work.step(|| progress_text(spent));
        }
        let model = trained_model(&party, &facts);
        let model = model.map_err(|error| Failure::Party(error.to_string()))?;
        let results = ledger.map(|folder| folder.join(RESULTS).join(&facts.study.name));
        match &results {
            // What is signed is for others: a fit that protects nobody has nothing to tell them.
            Some(out) if read_off => write_model(&model, out)?,
            Some(out) => drop(write_result_files(&party, &facts, out)?),
            None => {}
        }
        let Guarantee { epsilon, delta } = party.spent();
        let (store, _) = party.store();
        Ok(OnePartyFit {
            model,
            epsilon,
            delta,
            protects: facts.protects(),
            caveat: facts.caveat(),
            uncovered: store.uncovered(&store.charges()?),
            rows: facts.rows,
            data_steps: bill.data_steps,
            iterations: party.iterations(),
            ledger: totals(&party, facts.limit.as_ref()),
            study: facts.study.to_toml(),
            folder: results,
        })
    })
}

/// Writes `model.json` alone into a folder, which is made if need be.
fn write_model(model: &ModelFile, out: &Path) -> Result<(), Failure> {
    let path = out.join(MODEL_FILE);
    let write = || -> io::Result<()> {
        fs::create_dir_all(out)?;
        let mut file = AtomicFile::create(&path)?;
        file.write_all(model.to_json().as_bytes())?;
        file.commit()
    };
    write().map_err(|error| Failure::Ledger(format!("{}: {error}", path.display())))
}

fn progress_text(spent: Guarantee) -> String {
    // Rounded up: never less than was spent.
    let shown = (1e4 * spent.epsilon).ceil() / 1e4;
    format!("total ε {shown:.4}")
}

/// Returns the total of all fits with its limit.
fn totals(party: &Party, limit: Option<&Limit>) -> Vec<(f64, f64, f64)> {
    let limits = limit.into_iter();
    let limits = limits.flat_map(|limit| [limit.pure, limit.relaxed.map(|(epsilon, _)| epsilon)]);
    let spent = party.spent_on_rows().into_iter().zip(limits.flatten());
    spent
        .map(|(total, limit)| (total.epsilon, total.delta, limit))
        .collect()
}

/// Opens the ledger in a folder, and reads its key. Both are made if need be.
// Privacy: an account that started from zero, or from an older copy of its journal, would not count what was released since.
fn open_ledger(folder: &Path) -> Result<(Store, SecretKey), Failure> {
    let refused = |what: String| Err(Failure::Ledger(format!("{}: {what}", folder.display())));
    let fits = fits_in(&folder.join(RESULTS))
        .map_err(|error| Failure::Ledger(format!("{}: {error}", folder.join(RESULTS).display())))?;
    // The key is made after the journal, and a fit has results after it.
    let was_there = folder.join(KEY_FILE).exists() || !fits.is_empty();
    if was_there && fs::symlink_metadata(folder.join(JOURNAL_FILE)).is_err() {
        return refused(format!(
            "a ledger was here, and its {JOURNAL_FILE} is gone, which holds what was spent: put it back"
        ));
    }
    let store = Store::open(folder)?;
    let studies = store.studies();
    let is_on_record = |fit: &String| studies.iter().any(|one| one.finished && one.name == *fit);
    if let Some(fit) = fits.iter().find(|fit| !is_on_record(fit)) {
        return refused(format!(
            "{RESULTS} has the results of {fit:?}, of which {JOURNAL_FILE} knows nothing: it is an older copy, and what was spent \
             since is missing in it. Put the newest one back; if it is lost, no fit on these rows can be charged correctly here"
        ));
    }
    // The store is locked: no other fit writes a key meanwhile.
    let key = key_in(folder)?;
    Ok((store, key))
}

/// Returns the names of the fits that have results.
fn fits_in(results: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(results) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<io::Result<_>>()?;
    names.retain(|name| {
        name.strip_prefix(FIT)
            .is_some_and(|n| n.parse::<u32>().is_ok())
    });
    names.sort();
    Ok(names)
}

/// Reads the key in the folder of a ledger, or makes one.
fn key_in(folder: &Path) -> Result<SecretKey, Failure> {
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        SecretKey::generate()?.write_new(&path)?;
    }
    Ok(SecretKey::read(&path)?)
}

/// Returns the extra ridge and the noise of one answer, as a public rule chooses them for a party with so many rows and a pure total.
#[pyfunction]
pub(crate) fn one_answer(
    py: Python<'_>,
    study: &str,
    rows: usize,
    epsilon: f64,
) -> Result<(f64, &'static str), Failure> {
    guarded(py, || {
        let study = study_of_one_party(study, rows)?;
        let rule = OneAnswer::new(study.problem.loss, study.data.schema.shape(), rows, epsilon);
        Ok((rule.extra_ridge, rule.noise.name()))
    })
}

/// Reads the study of a party with so many rows, without `name`, `[[parties]]` and `[network]`.
pub(crate) fn study_of_one_party(study: &str, rows: usize) -> Result<Study, Failure> {
    let party = StudyParty {
        name: "one party".to_owned(),
        key: Identity::from([0; 32]),
        rows: Some(rows.max(1)),
        address: None,
    };
    let study = format!("name = \"rule\"\n{study}");
    Ok(Study::parse_for_one_party(&study, STUDY_NAME, party)?.0)
}
