//! A party that trains alone: charges are durable, add up, and are never made twice.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::Cell;
use std::path::Path;

use radmm_data::{CellValue, MemoryColumn, MemoryTable, NamedColumn};
use radmm_node::key::SecretKey;
use radmm_node::machine::Party;
use radmm_node::setup::{GivenRows, OnePartyConfig, OnePartyError, PartySetup, SetupError};
use radmm_node::store::{Store, StoreError};
use radmm_study::{Limit, NoiseOrigin};

const ROWS: usize = 400;

/// A column computed from the number of the row.
struct Computed(fn(usize) -> f64);

impl MemoryColumn for Computed {
    fn cell(&self, row: usize) -> CellValue<'_> {
        CellValue::Float((self.0)(row))
    }
}

fn table(age: fn(usize) -> f64) -> MemoryTable<'static> {
    let column = |name: &str, cells: fn(usize) -> f64| NamedColumn {
        name: name.to_owned(),
        cells: Ok(Box::new(Computed(cells))),
    };
    let ill = |row: usize| f64::from(u8::from(row % 100 > 60));
    MemoryTable::new("rows", ROWS, vec![column("age", age), column("ill", ill)])
}

fn age(row: usize) -> f64 {
    (row % 100) as f64
}

fn study(number: usize, epsilon: f64) -> String {
    format!(
        "name = \"fit {number}\"\n[data]\nlabel = \"ill\"\npositive = \"1\"\nintercept = true\n\
         [data.numeric]\nage = [0, 100]\n[privacy]\nepsilon = {epsilon}\ndelta = 1e-5\n"
    )
}

struct Fit {
    epsilon: f64,
    limit: f64,
    age: fn(usize) -> f64,
    /// Whether the results of finished fits were handed over.
    delivered: bool,
    read_off: bool,
}

const USUAL: Fit = Fit {
    epsilon: 1.0,
    limit: 3.0,
    age,
    delivered: true,
    read_off: false,
};

impl Fit {
    fn open(&self, store: Store, key: &Path) -> Result<Party, OnePartyError> {
        let config = OnePartyConfig {
            study: &|number| study(number, self.epsilon),
            study_name: "fit",
            rows: GivenRows::Memory(&table(self.age)),
            key: SecretKey::read(key).unwrap(),
            noise: NoiseOrigin::Secret,
            limits: vec![Limit::for_gradients(self.limit, 1e-5).unwrap()],
            site_name: "ledger",
            read_off: self.read_off,
            is_delivered: &|_| self.delivered,
        };
        let setup = PartySetup::alone(config, &store)?;
        Ok(setup.open(store)?.0)
    }
}

fn key(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("key.pem");
    if !path.exists() {
        SecretKey::generate().unwrap().write_new(&path).unwrap();
    }
    path
}

fn in_folder(folder: &Path, fit: &Fit) -> Result<Party, OnePartyError> {
    let store = Store::open(&folder.join("state")).map_err(SetupError::from)?;
    fit.open(store, &key(folder))
}

fn finish(mut party: Party) -> Vec<f64> {
    while party.advance_alone().unwrap() {}
    assert!(party.is_finished() && party.all_acks_confirmed());
    party.node().model().values().to_vec()
}

#[test]
fn a_party_alone_learns_and_every_answer_is_charged() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_memory().unwrap();
    let mut party = USUAL.open(store, &key(folder.path())).unwrap();
    while party.advance_alone().unwrap() {}
    let (store, _) = party.store();
    // One Gram matrix and 25 gradients, and no recycled step: there is nobody to add up with.
    assert_eq!(party.iterations(), 26);
    assert_eq!(store.charges().unwrap().len(), 26);
    let spent = party.spent();
    assert!(spent.epsilon <= 1.0 && spent.epsilon > 0.99, "{spent:?}");
    let model = party.node().model().values();
    assert!(model[0] > 0.0, "the ill are older: {model:?}");
}

#[test]
fn fits_differ_since_their_noise_is_secret() {
    let folder = tempfile::tempdir().unwrap();
    let fit = || {
        let store = Store::in_memory().unwrap();
        finish(USUAL.open(store, &key(folder.path())).unwrap())
    };
    assert_ne!(fit(), fit());
}

#[test]
fn a_fit_that_was_killed_resumes_with_the_answers_that_were_charged() {
    let folder = tempfile::tempdir().unwrap();
    let mut party = in_folder(folder.path(), &USUAL).unwrap();
    for _ in 0..7 {
        assert!(party.advance_alone().unwrap());
    }
    let released = |party: &Party| {
        let (store, _) = party.store();
        let charges = store.charges().unwrap();
        (charges, party.node().released().values().to_vec())
    };
    let before = released(&party);
    assert_eq!(before.0.len(), 7);
    drop(party);
    let party = in_folder(folder.path(), &USUAL).unwrap();
    assert_eq!(party.iteration(), 7);
    assert_eq!(released(&party), before);
    finish(party);
    let store = Store::open(&folder.path().join("state")).unwrap();
    assert_eq!(store.charges().unwrap().len(), 26);
}

#[test]
fn a_second_fit_is_charged_on_top_and_refused_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let fit = Fit {
        limit: 1.6,
        ..USUAL
    };
    let first = finish(in_folder(folder.path(), &fit).unwrap());
    let second = finish(in_folder(folder.path(), &fit).unwrap());
    assert_ne!(first, second);
    let store = Store::open(&folder.path().join("state")).unwrap();
    assert_eq!(store.charges().unwrap().len(), 52);
    drop(store);
    match in_folder(folder.path(), &fit).err().unwrap() {
        OnePartyError::Setup(SetupError::BeyondLimit { spent, limit, .. }) => {
            assert!(spent > 1.2 && limit.epsilon == 1.6, "{spent}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn other_rows_in_the_same_folder_count_as_the_same_people() {
    let folder = tempfile::tempdir().unwrap();
    finish(in_folder(folder.path(), &USUAL).unwrap());
    let other = Fit {
        age: |row| ((7 * row) % 100) as f64,
        ..USUAL
    };
    // Unfinished on these rows, so that the same study on others is a new one.
    let mut party = in_folder(folder.path(), &other).unwrap();
    party.advance_alone().unwrap();
    drop(party);
    finish(in_folder(folder.path(), &USUAL).unwrap());
    let store = Store::open(&folder.path().join("state")).unwrap();
    assert_eq!(store.charges().unwrap().len(), 26 + 1 + 26);
    let names: Vec<String> = store
        .studies()
        .into_iter()
        .map(|study| study.name)
        .collect();
    assert_eq!(names, ["fit 1", "fit 2", "fit 3"]);
}

#[test]
fn fits_with_other_parameters_have_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let less = Fit {
        epsilon: 0.5,
        ..USUAL
    };
    finish(in_folder(folder.path(), &USUAL).unwrap());
    // Unfinished, and resumed after another fit was begun.
    let mut party = in_folder(folder.path(), &less).unwrap();
    party.advance_alone().unwrap();
    drop(party);
    finish(in_folder(folder.path(), &USUAL).unwrap());
    finish(in_folder(folder.path(), &less).unwrap());
    let store = Store::open(&folder.path().join("state")).unwrap();
    let names: Vec<String> = { store.studies().into_iter() }
        .map(|study| study.name)
        .collect();
    assert_eq!(names, ["fit 1", "fit 2", "fit 3"]);
    assert_eq!(store.charges().unwrap().len(), 3 * 26);
}

#[test]
fn a_fit_that_was_paid_for_and_not_handed_over_is_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let lost = Fit {
        limit: 1.02,
        delivered: false,
        ..USUAL
    };
    let first = finish(in_folder(folder.path(), &lost).unwrap());
    // The limit admits no second fit: this is the first one, and the rows are not asked again.
    let again = in_folder(folder.path(), &lost).unwrap();
    assert!(again.is_finished());
    assert_eq!(finish(again), first);
    let store = Store::open(&folder.path().join("state")).unwrap();
    assert_eq!(store.charges().unwrap().len(), 26);
    drop(store);
    let other = Fit {
        age: |row| ((7 * row) % 100) as f64,
        ..lost
    };
    assert!(in_folder(folder.path(), &other).is_err());
}

#[test]
fn a_folder_admits_one_fit_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = in_folder(folder.path(), &USUAL).unwrap();
    let refused = in_folder(folder.path(), &USUAL).err().unwrap();
    assert!(matches!(
        refused,
        OnePartyError::Setup(SetupError::Store(StoreError::InUse(_)))
    ));
    finish(first);
}

/// Sets up a fit in memory with a key of its own.
fn alone(
    study: &dyn Fn(usize) -> String,
    table: &MemoryTable<'_>,
    limits: Vec<Limit>,
) -> Result<(PartySetup, Store), OnePartyError> {
    let store = Store::in_memory().map_err(SetupError::from)?;
    let config = OnePartyConfig {
        study,
        study_name: "fit",
        rows: GivenRows::Memory(table),
        key: SecretKey::generate().unwrap(),
        noise: NoiseOrigin::Secret,
        limits,
        site_name: "ledger",
        read_off: false,
        is_delivered: &|_| true,
    };
    Ok((PartySetup::alone(config, &store)?, store))
}

#[test]
fn one_answer_costs_a_pure_total_and_is_charged_once() {
    let one_answer = |number| {
        study(number, 1.0).replace(
            "delta = 1e-5",
            "mechanism = \"objective\"\nnoise = \"gamma\"\n[problem]\nloss = \"smooth-hinge\"\n\
             [algorithm]\nname = \"local\"\nextra_ridge = 0.01\niterations = 1",
        )
    };
    let limit = |epsilon| vec![Limit::for_gradients(epsilon, 0.0).unwrap()];
    let (setup, store) = alone(&one_answer, &table(age), limit(1.0)).unwrap();
    let mut party = setup.open(store).unwrap().0;
    while party.advance_alone().unwrap() {}
    assert_eq!(party.store().0.charges().unwrap().len(), 1);
    let spent = party.spent();
    assert!(spent.epsilon <= 1.0 && spent.epsilon > 0.999, "{spent:?}");
    assert_eq!(spent.delta, 0.0);
    let (setup, store) = alone(&one_answer, &table(age), limit(0.9)).unwrap();
    assert!(setup.open(store).is_err());
}

#[test]
fn secret_noise_without_a_limit_is_refused() {
    let refused = alone(&|number| study(number, 1.0), &table(age), Vec::new());
    let refused = refused.err().unwrap();
    assert!(
        matches!(refused, OnePartyError::Setup(SetupError::NoLimit)),
        "{refused}"
    );
}

#[test]
fn the_first_limit_that_admits_one_fit_is_taken() {
    let limits = [0.5, 1.0, 1.02, 5.0].map(|epsilon| Limit::for_gradients(epsilon, 1e-5).unwrap());
    let (setup, _) = alone(&|number| study(number, 1.0), &table(age), limits.to_vec()).unwrap();
    let taken = setup.site().limit.clone().unwrap();
    assert_eq!(taken.relaxed, Some((1.02, 1e-5)));
}

/// A column that another thread writes to while it is read.
struct Changing(Cell<usize>);

impl MemoryColumn for Changing {
    fn cell(&self, row: usize) -> CellValue<'_> {
        self.0.set(self.0.get() + 1);
        // Row 7 is another one from the second pass on.
        let changed = row == 7 && self.0.get() > ROWS;
        CellValue::Float(if changed { 99.0 } else { age(row) })
    }
}

#[test]
fn rows_that_change_while_they_are_read_are_refused() {
    let ill = |row: usize| f64::from(u8::from(row % 100 > 60));
    let columns: Vec<(&str, Box<dyn MemoryColumn>)> = vec![
        ("age", Box::new(Changing(Cell::new(0)))),
        ("ill", Box::new(Computed(ill))),
    ];
    let columns = columns.into_iter().map(|(name, cells)| NamedColumn {
        name: name.to_owned(),
        cells: Ok(cells),
    });
    let table = MemoryTable::new("rows", ROWS, columns.collect());
    let limits = vec![Limit::for_gradients(3.0, 1e-5).unwrap()];
    let refused = alone(&|number| study(number, 1.0), &table, limits).err();
    let message = refused.unwrap().to_string();
    assert!(
        message.contains("changed while they were read"),
        "{message}"
    );
}

#[test]
fn a_study_of_one_party_has_no_network() {
    for section in ["[network]\nnodes = 3\n", "[[parties]]\nname = \"a\"\n"] {
        let text = |number| study(number, 1.0) + section;
        let limits = vec![Limit::for_gradients(1.0, 1e-5).unwrap()];
        let refused = alone(&text, &table(age), limits);
        let message = refused.err().unwrap().to_string();
        assert!(
            message.contains("has no place in the study of one party"),
            "{message}"
        );
    }
}
