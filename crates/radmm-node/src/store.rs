//! What a party must not forget, on disk, in one file of its state folder.
//!
//! A [`Step`] is kept in one durable transaction: the messages that an iteration was heard of, the charge and the answer of a
//! data step, and what the party is going to say. Only when it is kept may anything be said. Whatever is killed at whatever
//! moment, the store holds a step or nothing of it.
//!
//! ```text
//! meta      what → bytes                        format, salt of fingerprints, order of the limits
//! studies   number → JSON                       every study that was begun here
//! secrets   number → 32 bytes                   where its noise comes from
//! charges   sequence → study, data, event, hash every charge ever made on these rows; each hash covers all before it
//! answers   study, iteration → release          what was paid for
//! said      study, iteration → signed message
//! heard     study, iteration, from → signed message
//! evidence  study, sequence → what, bytes       what others said that cannot be right
//! ```

mod charge;
#[cfg(test)]
pub(crate) mod fault;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use radmm::private::Recorded;
use radmm::public::graph::NodeId;
use radmm::public::release::{Precision, Release};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::frame::{Malformed, Reader, Signed, put_release, release};
pub use charge::{Charge, Fingerprint};

const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
const STUDIES: TableDefinition<u32, &str> = TableDefinition::new("studies");
const SECRETS: TableDefinition<u32, &[u8; 32]> = TableDefinition::new("secrets");
const CHARGES: TableDefinition<u64, &[u8]> = TableDefinition::new("charges");
const ANSWERS: TableDefinition<(u32, u32), &[u8]> = TableDefinition::new("answers");
const SAID: TableDefinition<(u32, u32), &[u8]> = TableDefinition::new("said");
const HEARD: TableDefinition<(u32, u32, u32), &[u8]> = TableDefinition::new("heard");
const EVIDENCE: TableDefinition<(u32, u32), &[u8]> = TableDefinition::new("evidence");

/// The file of the state folder.
const FILE: &str = "state.redb";

/// What it is called until it is whole.
const UNFINISHED: &str = "state.redb.new";

/// Of what is written here.
const FORMAT: u32 = 1;

/// How much of the file is kept in memory.
const CACHE: usize = 8 << 20;

/// As many lies of a study are kept.
const MOST_EVIDENCE: u32 = 100;

/// Why something was not kept or could not be read. Then nothing may be said.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another process has it.
    #[error(
        "{}: the state folder is in use by another process; a party runs once: stop the other one, or give this one a state folder of its own", .0.display()
    )]
    InUse(PathBuf),
    /// It is not there.
    #[error("{}: there is no state here; give the folder that a site's \"state\" names", .0.display())]
    Missing(PathBuf),
    /// The folder cannot be made or read.
    #[error("{}: {cause}", path.display())]
    Folder {
        /// The state folder.
        path: PathBuf,
        /// What the operating system says.
        cause: io::Error,
    },
    /// The disk does not take any more.
    #[error(
        "{}: the disk is full: nothing was released that is not on record; make room and start again", .0.display()
    )]
    Full(PathBuf),
    /// The disk fails.
    #[error(
        "{}: the disk fails ({cause}): nothing was released that is not on record", path.display()
    )]
    Disk {
        /// The state folder.
        path: PathBuf,
        /// What was said about it.
        cause: String,
    },
    /// What is there cannot be right.
    #[error(
        "{}: the state is corrupt ({what}): restore the folder from a backup; do not delete it, since it is the account of what was spent on these rows", path.display()
    )]
    Corrupt {
        /// The state folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Written by another version.
    #[error("{}: the state has format {found}, and this program knows {FORMAT}; use the version of radmm that wrote it", path.display())]
    Format {
        /// The state folder.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// There is no randomness.
    #[error("the operating system gives no random bytes; nothing can be protected without them")]
    NoEntropy,
}

/// A study that was begun here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// Counted from 0.
    pub number: u32,
    /// By which people call it.
    pub name: String,
    /// The hash of its canonical form, in hexadecimal digits.
    pub sha256: String,
    /// Which of its parties this is.
    pub party: u32,
    /// Of the rows that it asks, in hexadecimal digits.
    pub fingerprint: String,
    /// How many there are.
    pub rows: u64,
    /// Whether its noise repeats, and so protects nobody.
    pub seeded: bool,
    /// Whether all iterations are done.
    pub finished: bool,
    /// The neighbours that have everything which this party will ever say.
    #[serde(default)]
    pub served: BTreeSet<u32>,
    /// The neighbours that know the same of this party.
    #[serde(default)]
    pub assured: BTreeSet<u32>,
}

/// What is kept in one go.
#[derive(Default)]
pub struct Step {
    /// What was heard.
    pub heard: Vec<Signed>,
    /// What was charged, with the answer.
    pub charged: Vec<Recorded>,
    /// What is going to be said.
    pub said: Vec<Signed>,
    /// Whether this was the last.
    pub finished: bool,
}

impl Step {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.heard.is_empty() && self.charged.is_empty() && self.said.is_empty() && !self.finished
    }
}

/// Something that was said and cannot be right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Who said it.
    pub from: u32,
    /// In words.
    pub what: String,
    /// The frames, in hexadecimal digits.
    pub frames: Vec<String>,
}

/// The store of one state folder.
pub struct Store {
    database: Database,
    folder: PathBuf,
    salt: [u8; 32],
}

impl Store {
    /// Opens the store of a folder, and makes both if need be.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        make_folder(folder).map_err(|cause| StoreError::Folder {
            path: folder.to_owned(),
            cause,
        })?;
        make_file(folder)?;
        for_this_user_alone(&folder.join(FILE)).map_err(|cause| StoreError::Folder {
            path: folder.to_owned(),
            cause,
        })?;
        Self::of(folder, |builder| builder.open(folder.join(FILE)))
    }

    /// Opens the store of a folder that has one.
    pub fn existing(folder: &Path) -> Result<Self, StoreError> {
        let file = folder.join(FILE);
        if !file.is_file() {
            return Err(StoreError::Missing(folder.to_owned()));
        }
        Self::of(folder, |builder| builder.open(file))
    }

    /// A store on something that is not a file of its own, for tests of what a failing one does.
    #[cfg(test)]
    pub(crate) fn on(
        folder: &Path,
        backend: impl redb::StorageBackend,
    ) -> Result<Self, StoreError> {
        Self::of(folder, |builder| builder.create_with_backend(backend))
    }

    fn of(
        folder: &Path,
        open: impl FnOnce(&redb::Builder) -> Result<Database, DatabaseError>,
    ) -> Result<Self, StoreError> {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE);
        // A damaged file may be found out only where something is computed from it.
        let opened = guarded(|| open(&builder));
        let database = match opened {
            Ok(Ok(database)) => database,
            Ok(Err(error)) => return Err(opening(folder, error)),
            Err(what) => return Err(corrupt(folder, what)),
        };
        let mut store = Self {
            database,
            folder: folder.to_owned(),
            salt: [0; 32],
        };
        // All of it, once a start: what is damaged must not be found out in the middle of a study.
        if let Err(error) = store.check() {
            // What panicked once would panic again when it is closed; nothing of it is looked at any more.
            std::mem::forget(store);
            return Err(error);
        }
        store.salt = store.guarded(|store| store.prepare())?;
        Ok(store)
    }

    /// Makes the tables, or checks what is there; the salt of fingerprints.
    fn prepare(&self) -> Result<[u8; 32], StoreError> {
        let transaction = self.database.begin_write().map_err(|e| self.fault(e))?;
        let salt = {
            let mut meta = transaction.open_table(META).map_err(|e| self.fault(e))?;
            let found = meta.get("format").map_err(|e| self.fault(e))?;
            let found = found.map(|found| found.value().to_vec());
            match found {
                Some(format) if format == FORMAT.to_le_bytes() => {
                    let salt = meta.get("salt").map_err(|e| self.fault(e))?;
                    let salt = salt.and_then(|salt| salt.value().try_into().ok());
                    salt.ok_or_else(|| self.corrupt("there is no salt"))?
                }
                Some(format) => {
                    let path = self.folder.clone();
                    let found = format.try_into().map_or(0, u32::from_le_bytes);
                    return Err(StoreError::Format { path, found });
                }
                None => {
                    let salt = random()?;
                    let format = FORMAT.to_le_bytes();
                    meta.insert("format", &format[..])
                        .map_err(|e| self.fault(e))?;
                    meta.insert("salt", &salt[..]).map_err(|e| self.fault(e))?;
                    salt
                }
            }
        };
        // Readers find every table.
        transaction.open_table(STUDIES).map_err(|e| self.fault(e))?;
        transaction.open_table(SECRETS).map_err(|e| self.fault(e))?;
        transaction.open_table(CHARGES).map_err(|e| self.fault(e))?;
        transaction.open_table(ANSWERS).map_err(|e| self.fault(e))?;
        transaction.open_table(SAID).map_err(|e| self.fault(e))?;
        transaction.open_table(HEARD).map_err(|e| self.fault(e))?;
        transaction
            .open_table(EVIDENCE)
            .map_err(|e| self.fault(e))?;
        transaction.commit().map_err(|e| self.fault(e))?;
        Ok(salt)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What rows are called here: a hash of their bytes with a secret of this folder, so that nobody who sees it elsewhere can
    /// tell whether he guessed them.
    pub fn fingerprint(&self, hash_of_rows: &[u8; 32]) -> Fingerprint {
        let mut hash = Sha256::new();
        hash.update(b"radmm fingerprint v1\0");
        hash.update(self.salt);
        hash.update(hash_of_rows);
        Fingerprint(hash.finalize().into())
    }

    /// All studies that were begun here.
    pub fn studies(&self) -> Result<Vec<Begun>, StoreError> {
        self.guarded(|store| {
            let table = store.read(STUDIES)?;
            let mut studies = Vec::new();
            for entry in table.iter().map_err(|e| store.fault(e))? {
                let (number, json) = entry.map_err(|e| store.fault(e))?;
                let begun: Begun = serde_json::from_str(json.value())
                    .map_err(|error| store.corrupt(format!("a study: {error}")))?;
                if begun.number != number.value() {
                    return Err(store.corrupt("a study has another one's number"));
                }
                studies.push(begun);
            }
            Ok(studies)
        })
    }

    /// Begins a study: from now on its noise has a secret, which nothing changes.
    pub fn begin(&self, study: impl FnOnce(u32) -> Begun) -> Result<Begun, StoreError> {
        let number = self.studies()?.len() as u32;
        let begun = study(number);
        let secret = random()?;
        let json = serde_json::to_string(&begun).map_err(|e| self.corrupt(e))?;
        let transaction = self.database.begin_write().map_err(|e| self.fault(e))?;
        {
            let mut studies = transaction.open_table(STUDIES).map_err(|e| self.fault(e))?;
            studies
                .insert(number, json.as_str())
                .map_err(|e| self.fault(e))?;
            let mut secrets = transaction.open_table(SECRETS).map_err(|e| self.fault(e))?;
            secrets.insert(number, &secret).map_err(|e| self.fault(e))?;
        }
        transaction.commit().map_err(|e| self.fault(e))?;
        Ok(begun)
    }

    /// The order of Rényi losses at which the limits of these rows are kept: `order`, if nothing was kept before.
    pub fn order(&self, order: f64) -> Result<f64, StoreError> {
        let table = self.read(META)?;
        let kept = table.get("order").map_err(|e| self.fault(e))?;
        let kept = kept.and_then(|kept| kept.value().try_into().ok());
        Ok(kept.map_or(order, |bits| f64::from_bits(u64::from_le_bytes(bits))))
    }

    /// Keeps that order, for good.
    pub fn keep_order(&self, order: f64) -> Result<(), StoreError> {
        let transaction = self.database.begin_write().map_err(|e| self.fault(e))?;
        {
            let mut meta = transaction.open_table(META).map_err(|e| self.fault(e))?;
            let kept = meta.get("order").map_err(|e| self.fault(e))?.is_some();
            // A pure limit has none.
            if !kept && order.is_finite() {
                let bits = order.to_bits().to_le_bytes();
                meta.insert("order", &bits[..]).map_err(|e| self.fault(e))?;
            }
        }
        transaction.commit().map_err(|e| self.fault(e))
    }

    /// Keeps what became of a study.
    pub fn keep_begun(&self, begun: &Begun) -> Result<(), StoreError> {
        let json = serde_json::to_string(begun).map_err(|e| self.corrupt(e))?;
        let transaction = self.database.begin_write().map_err(|e| self.fault(e))?;
        {
            let mut studies = transaction.open_table(STUDIES).map_err(|e| self.fault(e))?;
            studies
                .insert(begun.number, json.as_str())
                .map_err(|e| self.fault(e))?;
        }
        transaction.commit().map_err(|e| self.fault(e))
    }

    /// Where a study's noise comes from. It does not leave this crate.
    pub(crate) fn secret(&self, study: u32) -> Result<[u8; 32], StoreError> {
        let table = self.read(SECRETS)?;
        let secret = table.get(study).map_err(|e| self.fault(e))?;
        let secret = secret.map(|secret| *secret.value());
        secret.ok_or_else(|| self.corrupt("a study has no secret"))
    }

    /// Every charge ever made, in order, once their hashes have been computed again.
    pub fn charges(&self) -> Result<Vec<Charge>, StoreError> {
        self.guarded(|store| {
            let table = store.read(CHARGES)?;
            let mut charges = Vec::new();
            let mut last = [0; 32];
            for entry in table.iter().map_err(|e| store.fault(e))? {
                let (place, bytes) = entry.map_err(|e| store.fault(e))?;
                let at = place.value();
                let wrong = |what: &str| store.corrupt(format!("charge {at}: {what}"));
                if at != charges.len() as u64 {
                    return Err(wrong("those before it are missing"));
                }
                let (charge, hash) =
                    Charge::from_bytes(bytes.value()).ok_or_else(|| wrong("it cannot be read"))?;
                last = charge.hash(&last);
                if hash != last {
                    return Err(wrong("it, or one before it, was changed"));
                }
                charges.push(charge);
            }
            Ok(charges)
        })
    }

    /// What a study was answered, by iteration, with the charges of its own.
    pub fn recorded(&self, study: u32) -> Result<Vec<Recorded>, StoreError> {
        let charges = self.charges()?;
        self.guarded(|store| {
            let table = store.read(ANSWERS)?;
            let mut recorded = Vec::new();
            for charge in charges.iter().filter(|charge| charge.study == study) {
                let at = charge.iteration;
                let bytes = table.get((study, at)).map_err(|e| store.fault(e))?;
                let wrong = || store.corrupt(format!("the answer of iteration {at}"));
                let bytes = bytes.ok_or_else(wrong)?;
                recorded.push(Recorded {
                    iteration: at,
                    event: charge.event,
                    answer: answer(bytes.value()).ok_or_else(wrong)?,
                });
            }
            Ok(recorded)
        })
    }

    /// What was said in a study at an iteration.
    pub fn said(&self, study: u32, iteration: u32) -> Result<Option<Signed>, StoreError> {
        let table = self.read(SAID)?;
        let found = table.get((study, iteration)).map_err(|e| self.fault(e))?;
        found.map(|bytes| self.signed(bytes.value())).transpose()
    }

    /// What was heard in a study of a party at an iteration.
    pub fn heard(
        &self,
        study: u32,
        iteration: u32,
        from: NodeId,
    ) -> Result<Option<Signed>, StoreError> {
        let table = self.read(HEARD)?;
        let key = (study, iteration, from.0);
        let found = table.get(key).map_err(|e| self.fault(e))?;
        found.map(|bytes| self.signed(bytes.value())).transpose()
    }

    /// Everything that was heard in a study, by iteration and sender.
    pub fn all_heard(
        &self,
        study: u32,
        mut each: impl FnMut(Signed) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let table = self.read(HEARD)?;
        let range = (study, 0, 0)..=(study, u32::MAX, u32::MAX);
        for entry in table.range(range).map_err(|e| self.fault(e))? {
            let (_, bytes) = entry.map_err(|e| self.fault(e))?;
            each(self.signed(bytes.value())?)?;
        }
        Ok(())
    }

    /// Everything that was said in a study, by iteration.
    pub fn all_said(
        &self,
        study: u32,
        mut each: impl FnMut(Signed) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let table = self.read(SAID)?;
        let range = (study, 0)..=(study, u32::MAX);
        for entry in table.range(range).map_err(|e| self.fault(e))? {
            let (_, bytes) = entry.map_err(|e| self.fault(e))?;
            each(self.signed(bytes.value())?)?;
        }
        Ok(())
    }

    /// Keeps a step, all of it or nothing. When this returns it has reached the disk.
    pub fn keep(&self, begun: &Begun, data: &Fingerprint, step: &Step) -> Result<(), StoreError> {
        let study = begun.number;
        let transaction = self.database.begin_write().map_err(|e| self.fault(e))?;
        if !step.heard.is_empty() {
            let mut heard = transaction.open_table(HEARD).map_err(|e| self.fault(e))?;
            for signed in &step.heard {
                let key = (study, signed.message.iteration, signed.message.from.0);
                heard
                    .insert(key, &signed.to_bytes()[..])
                    .map_err(|e| self.fault(e))?;
            }
        }
        if !step.charged.is_empty() {
            let mut charges = transaction.open_table(CHARGES).map_err(|e| self.fault(e))?;
            let mut answers = transaction.open_table(ANSWERS).map_err(|e| self.fault(e))?;
            for recorded in &step.charged {
                let (place, last) = match charges.last().map_err(|e| self.fault(e))? {
                    None => (0, Some([0; 32])),
                    Some((place, bytes)) => {
                        let read = Charge::from_bytes(bytes.value());
                        (place.value() + 1, read.map(|(_, hash)| hash))
                    }
                };
                let last = last.ok_or_else(|| self.corrupt("the last charge"))?;
                let charge = Charge {
                    study,
                    iteration: recorded.iteration,
                    data: *data,
                    event: recorded.event,
                };
                charges
                    .insert(place, &charge.to_bytes(&last)[..])
                    .map_err(|e| self.fault(e))?;
                let key = (study, recorded.iteration);
                // Never a second answer: whoever gets here twice has lost his mind.
                let before = answers
                    .insert(key, &answer_bytes(recorded.answer.as_ref())[..])
                    .map_err(|e| self.fault(e))?;
                if before.is_some() {
                    let at = recorded.iteration;
                    return Err(self.corrupt(format!("iteration {at} was answered before")));
                }
            }
        }
        if !step.said.is_empty() {
            let mut said = transaction.open_table(SAID).map_err(|e| self.fault(e))?;
            for signed in &step.said {
                let at = signed.message.iteration;
                let before = said
                    .insert((study, at), &signed.to_bytes()[..])
                    .map_err(|e| self.fault(e))?;
                if before.is_some() {
                    return Err(self.corrupt(format!("iteration {at} was said before")));
                }
            }
        }
        if step.finished {
            let mut studies = transaction.open_table(STUDIES).map_err(|e| self.fault(e))?;
            let finished = Begun {
                finished: true,
                ..begun.clone()
            };
            let json = serde_json::to_string(&finished).map_err(|e| self.corrupt(e))?;
            studies
                .insert(study, json.as_str())
                .map_err(|e| self.fault(e))?;
        }
        transaction.commit().map_err(|e| self.fault(e))
    }

    /// Keeps what somebody said that cannot be right; of the first hundred times in a study.
    pub fn keep_evidence(&self, study: u32, evidence: &Evidence) -> Result<(), StoreError> {
        self.keep_words(study, evidence, MOST_EVIDENCE)
    }

    /// Keeps what ends a study, however much was kept before.
    pub fn keep_proof(&self, study: u32, evidence: &Evidence) -> Result<(), StoreError> {
        self.keep_words(study, evidence, u32::MAX)
    }

    fn keep_words(&self, study: u32, evidence: &Evidence, most: u32) -> Result<(), StoreError> {
        let json = serde_json::to_vec(evidence).map_err(|e| self.corrupt(e))?;
        let transaction = self.database.begin_write().map_err(|e| self.fault(e))?;
        {
            let mut table = transaction
                .open_table(EVIDENCE)
                .map_err(|e| self.fault(e))?;
            let range = (study, 0)..=(study, u32::MAX);
            let count = table.range(range).map_err(|e| self.fault(e))?.count() as u32;
            if count < most {
                table
                    .insert((study, count), &json[..])
                    .map_err(|e| self.fault(e))?;
            }
        }
        transaction.commit().map_err(|e| self.fault(e))
    }

    /// What was said in a study that cannot be right.
    pub fn evidence(&self, study: u32) -> Result<Vec<Evidence>, StoreError> {
        let table = self.read(EVIDENCE)?;
        let mut all = Vec::new();
        let range = (study, 0)..=(study, u32::MAX);
        for entry in table.range(range).map_err(|e| self.fault(e))? {
            let (_, json) = entry.map_err(|e| self.fault(e))?;
            let read = serde_json::from_slice(json.value());
            all.push(read.map_err(|error| self.corrupt(format!("evidence: {error}")))?);
        }
        Ok(all)
    }

    /// Computes the checksums of the whole file again.
    fn check(&mut self) -> Result<(), StoreError> {
        match guarded(|| self.database.check_integrity()) {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(self.corrupt("its checksums were wrong")),
            Ok(Err(error)) => Err(opening(&self.folder, error)),
            Err(what) => Err(self.corrupt(what)),
        }
    }

    fn read<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<K, V>,
    ) -> Result<redb::ReadOnlyTable<K, V>, StoreError> {
        let transaction = self.database.begin_read().map_err(|e| self.fault(e))?;
        transaction.open_table(table).map_err(|e| self.fault(e))
    }

    fn signed(&self, bytes: &[u8]) -> Result<Signed, StoreError> {
        Signed::from_bytes(bytes).map_err(|error: Malformed| self.corrupt(error))
    }

    /// A damaged file may be found out only where something is computed from it.
    fn guarded<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        guarded(|| read(self)).unwrap_or_else(|what| Err(self.corrupt(what)))
    }

    fn fault(&self, error: impl Into<redb::Error>) -> StoreError {
        fault(&self.folder, error.into())
    }

    fn corrupt(&self, what: impl ToString) -> StoreError {
        corrupt(&self.folder, what.to_string())
    }
}

fn corrupt(folder: &Path, what: String) -> StoreError {
    StoreError::Corrupt {
        path: folder.to_owned(),
        what,
    }
}

fn opening(folder: &Path, error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(folder.to_owned()),
        DatabaseError::Storage(StorageError::Io(error))
            if error.kind() == io::ErrorKind::InvalidData =>
        {
            corrupt(folder, error.to_string())
        }
        error => fault(folder, error.into()),
    }
}

fn fault(folder: &Path, error: redb::Error) -> StoreError {
    let path = folder.to_owned();
    match error {
        redb::Error::Corrupted(what) => corrupt(folder, what),
        redb::Error::Io(cause) if is_full(&cause) => StoreError::Full(path),
        redb::Error::Io(cause) => StoreError::Disk {
            path,
            cause: cause.to_string(),
        },
        error @ (redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::RepairAborted
        | redb::Error::UpgradeRequired(_)) => corrupt(folder, error.to_string()),
        error => StoreError::Disk {
            path,
            cause: error.to_string(),
        },
    }
}

fn is_full(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// What a computation on damaged bytes panics with is told as an error.
fn guarded<T>(compute: impl FnOnce() -> T) -> Result<T, String> {
    crate::quiet::caught(compute)
}

/// A folder for this party alone, and its own entry on disk.
fn make_folder(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        if let Some(parent) = folder.parent().filter(|parent| parent.is_dir()) {
            fs::File::open(parent)?.sync_all()?;
        }
    }
    Ok(())
}

/// The file holds the secret of noise: nobody else may read it, whoever made the folder.
fn for_this_user_alone(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// Makes the file if there is none. It gets its name once it is whole: who is killed in the middle must not leave what looks
/// like a damaged account.
fn make_file(folder: &Path) -> Result<(), StoreError> {
    let (file, unfinished) = (folder.join(FILE), folder.join(UNFINISHED));
    if file.exists() {
        return Ok(());
    }
    let failed = |cause| StoreError::Folder {
        path: folder.to_owned(),
        cause,
    };
    let held = fs::File::open(folder).map_err(failed)?;
    // Where a file system has no locks, nobody is kept out; once the file has its name, its own lock does that.
    if let Err(fs::TryLockError::WouldBlock) = held.try_lock() {
        return Err(StoreError::InUse(folder.to_owned()));
    }
    if file.exists() {
        return Ok(());
    }
    match fs::remove_file(&unfinished) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
        _ => {}
    }
    drop(Store::of(folder, |builder| builder.create(&unfinished))?);
    fs::File::open(&unfinished)
        .and_then(|made| made.sync_all())
        .map_err(failed)?;
    for_this_user_alone(&unfinished).map_err(failed)?;
    fs::rename(&unfinished, &file).map_err(failed)?;
    held.sync_all().map_err(failed)
}

fn answer_bytes(answer: Option<&Release>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(answer) = answer {
        put_release(&mut bytes, answer);
    }
    bytes
}

/// Nothing where there was no answer; `None` if the bytes cannot be right.
fn answer(bytes: &[u8]) -> Option<Option<Release>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let mut rest = Reader(bytes);
    let form = match rest.array::<1>()?[0] {
        0 => Precision::Grid,
        1 => Precision::Float,
        _ => return None,
    };
    let columns = rest.u32()? as usize;
    if rest.0.len() != 8 * columns {
        return None;
    }
    release(form, rest.0).map(Some)
}

/// From the operating system.
fn random() -> Result<[u8; 32], StoreError> {
    use ring::rand::SecureRandom;
    let mut bytes = [0; 32];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| StoreError::NoEntropy)?;
    Ok(bytes)
}
