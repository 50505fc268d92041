//! A private classifier on one party's rows, with a durable ledger.

use std::fs;
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
use radmm_study::{Identity, Limit, ModelFile, ModelGuarantee, NoiseOrigin, Study, StudyParty};

use crate::background;
use crate::failure::{Failure, guarded};
use crate::model::Model;
use crate::table::Table;

/// The file of the key that signs statements, in the folder of a ledger.
const KEY_FILE: &str = "key.pem";

/// The folder of results, in the folder of a ledger.
const RESULTS: &str = "fits";

/// The model, in the folder of a fit's results.
const MODEL_FILE: &str = "model.json";

/// The name of the study in messages.
const STUDY_NAME: &str = "this fit";

/// The name of the limit's origin in messages.
const LIMIT_NAME: &str = "the ledger";

/// The caveat of a fit whose bounds or vocabularies are not public.
const READ_OFF: &str =
    "bounds or vocabularies were read off the rows, and no guarantee covers what they tell";

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

/// Fits a classifier on the rows of a table, by a study without `name`, `[[parties]]` and `[network]`.
///
/// `ledger` is the folder of the durable ledger; without one the charges of this fit are forgotten when the process ends. `limits` are
/// candidates for the most that all fits with the ledger may cost at `delta`, of which the first that leaves room for this fit alone is
/// taken. With a `seed`, which must be the study's, noise repeats and
/// protects nobody; there must be no ledger then. Nor does a fit protect whose bounds or vocabularies were `read_off` the rows; it has
/// a model and no signed statement.
#[pyfunction]
#[pyo3(signature = (study, table, ledger, limits, delta, seed, read_off, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fit_one_party(
    py: Python<'_>,
    study: String,
    table: &Table,
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
    let store = match &ledger {
        Some(folder) => {
            check_not_lost(folder)?;
            Store::open(folder)?
        }
        None => Store::in_memory()?,
    };
    // The store is locked: no other fit writes a key meanwhile.
    let key = match &ledger {
        Some(folder) => key_in(folder)?,
        None => SecretKey::generate()?,
    };
    let results = ledger.as_ref().map(|folder| folder.join(RESULTS));
    let (setup, store) = table.read(py, move |rows| {
        // The model is written last.
        let is_delivered = |name: &str| match &results {
            Some(results) => results.join(name).join(MODEL_FILE).is_file(),
            None => true,
        };
        let numbered = |number: usize| format!("name = \"fit {number}\"\n{study}");
        let config = OnePartyConfig {
            study: &numbered,
            study_name: STUDY_NAME,
            table: rows,
            key,
            limits,
            noise: match seed {
                None => NoiseOrigin::Secret,
                Some(_) => NoiseOrigin::Seeded,
            },
            site_name: LIMIT_NAME,
            is_delivered: &is_delivered,
        };
        let setup = PartySetup::alone(config, &store)?;
        Ok::<_, Failure>((setup, store))
    })?;
    let facts = setup.public_facts();
    background::run(py, threads, progress, move |work| {
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
        let mut model = model.map_err(|error| Failure::Party(error.to_string()))?;
        if read_off {
            model = without_protection(&facts.study, &model)?;
        }
        let results = ledger.map(|folder| folder.join(RESULTS).join(&facts.study.name));
        match &results {
            // What is signed is for others: a fit that protects nobody has nothing to tell them.
            Some(out) if read_off => write_model(&model, out)?,
            Some(out) => drop(write_result_files(&party, &facts, out)?),
            None => {}
        }
        let Guarantee { epsilon, delta } = party.spent();
        let (protects, caveat) = match &model.trained().guarantee {
            Some(guarantee) => (guarantee.protects, guarantee.caveat.clone()),
            None => (false, String::new()),
        };
        Ok(OnePartyFit {
            model,
            epsilon,
            delta,
            protects,
            caveat,
            rows: facts.rows,
            data_steps: bill.data_steps,
            iterations: party.iterations(),
            ledger: totals(&party, facts.limit.as_ref()),
            study: facts.study.to_toml(),
            folder: results,
        })
    })
}

/// Returns a model that says that it protects nobody.
fn without_protection(study: &Study, model: &ModelFile) -> Result<ModelFile, Failure> {
    let mut trained = model.trained().clone();
    trained.guarantee = trained.guarantee.map(|guarantee| ModelGuarantee {
        protects: false,
        caveat: READ_OFF.to_owned(),
        ..guarantee
    });
    ModelFile::new(study, trained).map_err(|error| Failure::Party(error.to_string()))
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

/// Checks that a ledger is not begun anew where one was: its key is made after its journal.
// Privacy: an account that started from zero would not count what was released before.
fn check_not_lost(folder: &Path) -> Result<(), Failure> {
    let was_there = folder.join(KEY_FILE).exists();
    match was_there && fs::symlink_metadata(folder.join(JOURNAL_FILE)).is_err() {
        true => Err(Failure::Ledger(format!(
            "{}: the key of a ledger is here, and its {JOURNAL_FILE} is gone, which holds what was spent: put it back",
            folder.display()
        ))),
        false => Ok(()),
    }
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
        let party = StudyParty {
            name: "one party".to_owned(),
            key: Identity::from([0; 32]),
            rows: Some(rows.max(1)),
            address: None,
        };
        let study = format!("name = \"rule\"\n{study}");
        let (study, _) = Study::parse_for_one_party(&study, STUDY_NAME, party)?;
        let rule = OneAnswer::new(study.problem.loss, study.data.schema.shape(), rows, epsilon);
        Ok((rule.extra_ridge, rule.noise.name()))
    })
}
