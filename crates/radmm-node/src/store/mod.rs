//! The durable state of a party: one journal in its state folder.
//!
//! A `PendingStep` is appended as one durable record: the values received for an iteration, the charge and the answer of a data
//! step, and the value that the party is going to send. Only when it is persisted may anything be sent. Whatever is killed at
//! whatever moment, the store holds a whole step or nothing of it.
//!
//! The secrets of the noise are in a file beside it, in which they are written over (`noise_secrets`).
//!
//! The memory of a store is an index of the journal, a few numbers an iteration. The records are:
//!
//! ```text
//! created       format, salt of row fingerprints
//! study         study as JSON
//! acks          study, acknowledgements at its end, as JSON
//! step          study, received values, charges and answers, sent values, whether it was the last, or an adoption ended the study
//! order         the Rényi order at which the limit of these rows is kept, or 1 if the Gaussian filter keeps it
//! misbehaviour  study, invalid frames of neighbours, as JSON
//! location      where the folder lives: salted hash of the machine's id, inode of the journal
//! forgotten     study, neighbour and iteration by which this state was proved to be an old copy, as JSON
//! witnessed     from here on a witness has seen every record
//! ```

mod adoption;
mod charge_encoding;
mod check;
mod error;
#[cfg(test)]
pub(crate) mod faulty_storage;
mod folder;
mod index;
mod journal;
mod location;
mod noise_secrets;
mod plan;
mod step;
mod storage;
#[cfg(test)]
mod tests;
mod witness;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use radmm::curator::{ChargedAnswer, NoiseSecret};
use radmm::graph::NodeId;
use radmm::privacy::SiteAccounting;
use radmm::protocol::release::Release;
use radmm_study::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::machine::SignedMessage;
pub use adoption::Adoption;
pub use charge_encoding::{Charge, RowFingerprint};
pub use error::StoreError;
use error::{corrupt, fault};
pub(crate) use folder::create_folder;
use folder::{restrict_to_owner, sync_names};
use index::{
    ACKS, Acks, CREATED, Entry, FORGOTTEN, FORMAT, Forgotten, LOCATION, MISBEHAVIOUR, ORDER, STEP,
    STUDY, StepIterations, StoreIndex, StudyIndex, record_of,
};
use journal::{Journal, JournalError};
use location::Location;
use noise_secrets::{NoiseSecretError, NoiseSecrets, Progress};
pub(crate) use plan::PlannedCharges;
pub(crate) use step::PendingStep;
use step::StoredStep;
use storage::{MemoryStorage, StateFile, Storage};
use witness::Witness;

/// The name of the journal in the state folder.
pub const JOURNAL_FILE: &str = "state.journal";

/// The name of the file of noise secrets in the state folder.
pub const SECRETS_FILE: &str = "noise.secret";

/// The name of the journal until its first record is written.
const UNFINISHED: &str = "state.journal.new";

/// The number of rejected frames that are kept of a study.
const MAX_MISBEHAVIOURS: usize = 100;

/// The order on record where the Gaussian filter keeps a limit. It is no Rényi order: older programs then refuse every answer.
const GAUSSIAN_ORDER: f64 = 1.0;

/// The number of proofs that are kept beyond [`MAX_MISBEHAVIOURS`].
const MAX_PROOFS: usize = 20;

/// A study that was begun in a state folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// The study's number in this folder, counted from 0.
    pub number: u32,
    /// The study's name.
    pub name: String,
    /// The digest of its canonical form, in hexadecimal digits.
    pub sha256: String,
    /// This party's number in the study.
    pub party: u32,
    /// The fingerprint of the rows, in hexadecimal digits.
    pub fingerprint: String,
    /// The number of rows.
    pub rows: u64,
    /// Whether the noise is seeded, and so protects nobody.
    pub seeded: bool,
    /// Whether the bounds or vocabularies were read off the rows, so that no guarantee covers what they tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_off: bool,
    /// The charges of all its data steps.
    #[serde(default)]
    pub(crate) plan: Vec<PlannedCharges>,
    /// Whether all iterations are done.
    pub finished: bool,
    /// Whether it was ended by an adoption, and charged for all of its plan.
    #[serde(skip)]
    pub ended: bool,
    /// The neighbours that have acknowledged all values of this party.
    #[serde(default, rename = "served")]
    pub acked: BTreeSet<u32>,
    /// The neighbours that have confirmed this party's acknowledgement.
    #[serde(default, rename = "assured")]
    pub ack_confirmed: BTreeSet<u32>,
}

impl StudyRecord {
    /// Returns whether it asks nothing any more.
    pub(crate) fn is_over(&self) -> bool {
        self.finished || self.ended
    }
}

/// Invalid frames of a neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MisbehaviourRecord {
    /// The neighbour's name.
    pub party: String,
    /// The neighbour's number.
    pub from: u32,
    /// The misbehaviour, in words.
    pub what: String,
    /// The frames, in hexadecimal digits.
    pub frames: Vec<String>,
}

/// The store of one state folder.
pub struct Store {
    journal: Journal,
    index: StoreIndex,
    /// `None` if the store is open for reading alone.
    secrets: Option<NoiseSecrets>,
    witness: Option<(PathBuf, Witness)>,
    folder: PathBuf,
}

impl Store {
    /// Opens the store of a folder, and creates both if need be.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::Folder {
            path: folder.to_owned(),
            cause,
        };
        create_folder(folder).map_err(failed)?;
        create_file(folder)?;
        for name in [JOURNAL_FILE, SECRETS_FILE] {
            let path = folder.join(name);
            match restrict_to_owner(&path) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::Folder { path, cause });
                }
                _ => {}
            }
        }
        let store = Self::open_existing(folder)?;
        // The process that created the file may have been killed before its name was durable.
        sync_names(folder).map_err(failed)?;
        Ok(store)
    }

    /// Opens the store of a folder that has one.
    fn open_existing(folder: &Path) -> Result<Self, StoreError> {
        let store = Self::open_journal(folder)?;
        store.check_home()?;
        let path = folder.join(SECRETS_FILE);
        let secrets = match StateFile::open(&path) {
            // A power failure after the creation of both may leave one.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                match store.index.studies.is_empty() {
                    true => StateFile::create(&path),
                    false => return Err(StoreError::SecretsMissing(path)),
                }
            }
            opened => opened,
        };
        let secrets = secrets.map_err(|cause| StoreError::Folder { path, cause })?;
        store.with_noise_secrets(Box::new(secrets))
    }

    /// Locks and opens the journal of a folder that has one.
    fn open_journal(folder: &Path) -> Result<Self, StoreError> {
        Self::load(folder, Box::new(lock_journal(folder)?))
    }

    /// Reads the journal of a folder, while no other process may use it, and changes nothing.
    fn read_locked(folder: &Path) -> Result<Self, StoreError> {
        let locked = lock_journal(folder)?;
        Self::read(folder, locked)
    }

    /// Opens the store of a folder for reading alone. It changes nothing, works on media that cannot be written, and beside a process
    /// that has the store open: a record that is being written is left out.
    pub fn open_read_only(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(JOURNAL_FILE);
        match StateFile::open_read_only(&path) {
            Ok(file) => Self::read(folder, file),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::Missing(folder.to_owned()))
            }
            Err(cause) => Err(StoreError::Folder { path, cause }),
        }
    }

    fn read(folder: &Path, file: StateFile) -> Result<Self, StoreError> {
        Self::load_with(folder, |index| {
            Journal::open_read_only(Box::new(file), |record| index.load(record))
        })
    }

    /// Returns whether another process has the store of a folder open for more than reading.
    pub fn is_in_use(folder: &Path) -> Result<bool, StoreError> {
        let path = folder.join(JOURNAL_FILE);
        let held = StateFile::open_read_only(&path).and_then(|file| file.is_locked());
        match held {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
            held => held.map_err(|cause| StoreError::Folder { path, cause }),
        }
    }

    /// Creates a store that is forgotten with the process, for a party that nobody else relies on.
    pub fn in_memory() -> Result<Self, StoreError> {
        let storage = || Box::new(MemoryStorage::default());
        Self::create(Path::new("(in memory)"), storage(), storage())
    }

    /// Opens or creates a store on other storage than a file, for tests of storage that fails.
    #[cfg(test)]
    pub(crate) fn on(disk: &faulty_storage::FaultyDisk) -> Result<Self, StoreError> {
        let (folder, journal, secrets) = (
            Path::new("state"),
            Box::new(disk.clone()),
            Box::new(disk.secrets()),
        );
        match journal.len().map(|length| length == 0) {
            Ok(true) => Self::create(folder, journal, secrets),
            _ => Self::load(folder, journal)?.with_noise_secrets(secrets),
        }
    }

    /// Creates a store on empty storage.
    fn create(
        folder: &Path,
        storage: Box<dyn Storage>,
        secrets: Box<dyn Storage>,
    ) -> Result<Self, StoreError> {
        let mut salt = [0; 32];
        fill_randomly(&mut salt)?;
        let body = [&FORMAT.to_le_bytes()[..], &salt].concat();
        let journal = Journal::create(storage, CREATED, &body).map_err(|e| fault(folder, e))?;
        let mut store = Self {
            journal,
            index: StoreIndex {
                salt,
                ..StoreIndex::default()
            },
            secrets: Some(NoiseSecrets::new(secrets)),
            witness: None,
            folder: folder.to_owned(),
        };
        store.append_location()?;
        Ok(store)
    }

    /// Loads a store. The whole journal is read at every start, so that damage is not found in the middle of a study.
    fn load(folder: &Path, journal: Box<dyn Storage>) -> Result<Self, StoreError> {
        Self::load_with(folder, |index| {
            Journal::open(journal, |record| index.load(record))
        })
    }

    /// Adds the noise secrets, which catch up with the journal.
    fn with_noise_secrets(mut self, storage: Box<dyn Storage>) -> Result<Self, StoreError> {
        let mut secrets = NoiseSecrets::new(storage);
        let caught_up = secrets.advance_all(&self.progress());
        caught_up.map_err(|error| self.secret_fault(error))?;
        self.secrets = Some(secrets);
        Ok(self)
    }

    /// Returns the progress of every study.
    fn progress(&self) -> Vec<Progress> {
        let studies = self.index.studies.iter();
        studies.map(StudyIndex::progress).collect()
    }

    fn load_with(
        folder: &Path,
        open: impl FnOnce(&mut StoreIndex) -> Result<Journal, JournalError>,
    ) -> Result<Self, StoreError> {
        let mut index = StoreIndex::default();
        let journal = open(&mut index);
        let folder = folder.to_owned();
        match (journal, index.unknown_format) {
            (_, Some(found)) => Err(StoreError::Format {
                path: folder,
                found,
            }),
            (Ok(journal), None) => Ok(Self {
                journal,
                index,
                secrets: None,
                witness: None,
                folder,
            }),
            (Err(error), None) => Err(fault(&folder, error)),
        }
    }

    /// Returns the number of records, and the hash of the last one, which is over all of them, in hexadecimal digits.
    pub fn last_record(&self) -> (u64, String) {
        let last = self.journal.last();
        (last.sequence + 1, hex::encode(&last.hash))
    }

    /// Returns the state folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the fingerprint of rows: a hash of their bytes with a secret salt of this folder, so that nobody who sees it can
    /// test a guess of the rows.
    pub(crate) fn row_fingerprint(&self, hash_of_rows: &[u8; 32]) -> RowFingerprint {
        let mut hash = Sha256::new();
        hash.update(b"radmm fingerprint v1\0");
        hash.update(self.index.salt);
        hash.update(hash_of_rows);
        RowFingerprint(hash.finalize().into())
    }

    /// Returns all studies that were begun here.
    pub fn studies(&self) -> Vec<StudyRecord> {
        let studies = self.index.studies.iter();
        studies.map(|study| study.record.clone()).collect()
    }

    /// Returns how many studies asked something here that no total covers.
    pub fn uncovered(&self, charges: &[Charge]) -> u32 {
        let asked = |record: &StudyRecord| charges.iter().any(|one| one.study == record.number);
        let studies = self.index.studies.iter().map(|study| &study.record);
        studies.filter(|one| one.read_off && asked(one)).count() as u32
    }

    /// Begins a study, and draws the first secret of its noise.
    pub(crate) fn begin_study(
        &mut self,
        record: impl FnOnce(u32) -> StudyRecord,
    ) -> Result<StudyRecord, StoreError> {
        let number = self.index.studies.len() as u32;
        let record = record(number);
        let body = serde_json::to_vec(&record).map_err(|e| self.corrupt(e))?;
        self.check_place()?;
        // Privacy: durable before the study is, so that no answer is drawn from a secret that a crash replaces by another one.
        let secret = draw_secret()?;
        self.with_secrets(|secrets| secrets.begin(number, secret))?;
        self.append(STUDY, &body, Entry::Study(record.clone()))?;
        Ok(record)
    }

    /// Returns the rule by which the limit of these rows is kept, if it is on record.
    pub(crate) fn accounting(&self) -> Option<SiteAccounting> {
        self.index.order.map(|order| match order {
            GAUSSIAN_ORDER => SiteAccounting::Gaussian,
            order => SiteAccounting::Renyi { order },
        })
    }

    /// Persists that rule, unless one is on record.
    pub(crate) fn set_accounting(&mut self, accounting: SiteAccounting) -> Result<(), StoreError> {
        let order = match accounting {
            SiteAccounting::Gaussian => GAUSSIAN_ORDER,
            SiteAccounting::Renyi { order } => order,
        };
        match self.index.order {
            None => self.append(ORDER, &order.to_bits().to_le_bytes(), Entry::Order(order)),
            Some(_) => Ok(()),
        }
    }

    /// Persists the acknowledgements at the end of a study.
    pub(crate) fn append_acks(&mut self, record: &StudyRecord) -> Result<(), StoreError> {
        let acks = Acks {
            study: record.number,
            acked: record.acked.clone(),
            ack_confirmed: record.ack_confirmed.clone(),
        };
        let json = serde_json::to_vec(&acks).map_err(|e| self.corrupt(e))?;
        self.append(ACKS, &json, Entry::Acks(acks))
    }

    /// Appends a record, unless it is inconsistent with those before it.
    fn append(&mut self, kind: u8, body: &[u8], entry: Entry) -> Result<(), StoreError> {
        self.check_place()?;
        let at = self.journal.end();
        let checked = self.index.check(at, &entry);
        checked.map_err(|what| self.corrupt(what))?;
        let appended = self.journal.append(kind, body);
        appended.map_err(|e| fault(&self.folder, e))?;
        self.index.apply(at, entry);
        if let Some((path, witness)) = &self.witness {
            let seen = witness.see(self.journal.last());
            seen.map_err(|cause| StoreError::Folder {
                path: path.clone(),
                cause,
            })?;
        }
        // Privacy: what was written to a file that nobody will find again is not on record.
        self.check_place()
    }

    /// Returns where the journal lives; `None` if it is in no file.
    fn location(&self) -> Result<Option<Location>, StoreError> {
        let inode = self.journal.inode();
        let inode = inode.map_err(|e| fault(&self.folder, JournalError::Disk(e)))?;
        Ok(inode.map(|inode| Location::here(&self.index.salt, inode)))
    }

    /// Persists where the journal lives.
    fn append_location(&mut self) -> Result<(), StoreError> {
        match self.location()? {
            Some(here) => self.append(LOCATION, &here.to_bytes(), Entry::Location(here)),
            None => Ok(()),
        }
    }

    /// Checks that this is not a copy, and not known to be an old one.
    // Privacy: two copies of one state answer twice, and each counts its own answers alone.
    pub(crate) fn check_home(&self) -> Result<(), StoreError> {
        if let (Some(home), Some(here)) = (self.index.location, self.location()?)
            && !home.agrees_with(&here)
        {
            return Err(StoreError::Elsewhere(self.folder.clone()));
        }
        self.proof_of_old_copy().map_or(Ok(()), Err)
    }

    /// Returns what a neighbour has proved about this state, unless an operator has adopted it since.
    fn proof_of_old_copy(&self) -> Option<StoreError> {
        let forgotten = self.index.forgotten.last()?;
        (!self.index.is_adopted).then(|| StoreError::Forgotten {
            path: self.folder.clone(),
            peer: forgotten.peer.clone(),
            iteration: forgotten.iteration,
        })
    }

    /// Persists that a neighbour has shown a value that this party sent, and of which nothing is on record: the folder stays refused.
    pub(crate) fn append_forgotten(
        &mut self,
        study: u32,
        peer: &str,
        iteration: u32,
    ) -> Result<(), StoreError> {
        let forgotten = Forgotten {
            study,
            peer: peer.to_owned(),
            iteration,
        };
        let json = serde_json::to_vec(&forgotten).map_err(|e| self.corrupt(e))?;
        self.append(FORGOTTEN, &json, Entry::Forgotten(forgotten))
    }

    /// Returns the neighbour and the iteration by which a study's state was proved to be an old copy, if it was.
    pub(crate) fn forgotten(&self, study: u32) -> Option<(&str, u32)> {
        let mut all = self.index.forgotten.iter();
        let found = all.find(|forgotten| forgotten.study == study)?;
        Some((&found.peer, found.iteration))
    }

    /// Checks that the next process will find the file that this one writes: nobody has deleted, moved or replaced it.
    pub(crate) fn check_place(&self) -> Result<(), StoreError> {
        let check = |path: PathBuf, is_in_place| match is_in_place {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError::Replaced(path)),
            Err(cause) => Err(StoreError::Folder { path, cause }),
        };
        check(self.folder.join(JOURNAL_FILE), self.journal.is_in_place())?;
        if let Some(secrets) = &self.secrets {
            check(self.folder.join(SECRETS_FILE), secrets.is_in_place())?;
        }
        if let Some((path, witness)) = &self.witness {
            check(path.clone(), witness.is_in_place())?;
        }
        Ok(())
    }

    /// Does something with the secrets.
    fn with_secrets<T>(
        &mut self,
        operation: impl FnOnce(&mut NoiseSecrets) -> Result<T, NoiseSecretError>,
    ) -> Result<T, StoreError> {
        match &mut self.secrets {
            Some(secrets) => operation(secrets).map_err(|error| self.secret_fault(error)),
            None => Err(StoreError::Disk {
                path: self.folder.clone(),
                cause: "it is open for reading alone".to_owned(),
            }),
        }
    }

    fn secret_fault(&self, error: NoiseSecretError) -> StoreError {
        match error {
            NoiseSecretError::Disk(cause) => fault(&self.folder, JournalError::Disk(cause)),
            NoiseSecretError::Damaged(study) => self.corrupt(format!(
                "{SECRETS_FILE}: the part of study {study} is damaged or missing"
            )),
            NoiseSecretError::Ahead { study, answered } => StoreError::RolledBack {
                path: self.folder.clone(),
                study,
                answered,
                recorded: self.index.answered(study),
            },
        }
    }

    /// Returns the secret from which the noise of a study's next answer is derived. It does not leave this crate.
    pub(crate) fn noise_secret(&mut self, study: u32) -> Result<NoiseSecret, StoreError> {
        let is_finished = self.study(study)?.record.finished;
        match self.with_secrets(|secrets| secrets.secret(study))? {
            Some(secret) => Ok(secret),
            // It asks nothing any more.
            None if is_finished => draw_secret(),
            None => Err(StoreError::SecretErased(self.folder.join(SECRETS_FILE))),
        }
    }

    /// Returns whether a study can be taken up where it was: it asks nothing any more, or has the secret of its next answer.
    pub(crate) fn can_resume(&self, study: u32) -> Result<bool, StoreError> {
        let is_finished = self.study(study)?.record.finished;
        let secret = self.secrets.as_ref().map(|secrets| secrets.secret(study));
        let secret = secret
            .transpose()
            .map_err(|error| self.secret_fault(error))?;
        Ok(is_finished || secret.flatten().is_some())
    }

    /// Returns every charge ever made, in order.
    pub fn charges(&self) -> Result<Vec<Charge>, StoreError> {
        let charges = self.charges_with_answers()?.into_iter();
        Ok(charges.map(|(charge, _)| charge).collect())
    }

    /// Returns every charge ever made with its answer, in order.
    pub(crate) fn charges_with_answers(
        &self,
    ) -> Result<Vec<(Charge, Option<Release>)>, StoreError> {
        let mut charges = Vec::new();
        let read = self.journal.for_each(|record| {
            if record.kind == STEP {
                let step = StoredStep::from_bytes(&record.body);
                let step = step.ok_or_else(|| JournalError::Damaged(BAD_STEP.to_owned()))?;
                charges.extend(step.charged);
            }
            Ok(())
        });
        read.map_err(|error| fault(&self.folder, error))?;
        Ok(charges)
    }

    /// Returns the charges and answers of a study, by iteration.
    pub(crate) fn charged_answers(&self, study: u32) -> Result<Vec<ChargedAnswer>, StoreError> {
        let charges = self.charges_with_answers()?.into_iter();
        let of_study = charges.filter(|(charge, _)| charge.study == study);
        let recorded = of_study.map(|(charge, answer)| ChargedAnswer {
            iteration: charge.iteration,
            event: charge.event,
            answer,
        });
        Ok(recorded.collect())
    }

    /// Returns the value that this party sent in a study at an iteration.
    pub(crate) fn sent(
        &self,
        study: u32,
        iteration: u32,
    ) -> Result<Option<SignedMessage>, StoreError> {
        let Some(at) = record_of(&self.study(study)?.sent, iteration) else {
            return Ok(None);
        };
        let mut sent = self.step(at)?.sent.into_iter();
        Ok(sent.find(|signed| signed.message.iteration == iteration))
    }

    /// Returns the value that was received in a study from a party at an iteration.
    pub fn received(
        &self,
        study: u32,
        iteration: u32,
        from: NodeId,
    ) -> Result<Option<SignedMessage>, StoreError> {
        let mut received = self.received_at(study, iteration)?.into_iter();
        Ok(received.find(|one| one.message.from == from))
    }

    /// Returns all values that were received in a study at an iteration, by sender.
    pub(crate) fn received_at(
        &self,
        study: u32,
        iteration: u32,
    ) -> Result<Vec<SignedMessage>, StoreError> {
        let Some(at) = record_of(&self.study(study)?.received, iteration) else {
            return Ok(Vec::new());
        };
        let mut received = self.step(at)?.received;
        received.retain(|one| one.message.iteration == iteration);
        Ok(received)
    }

    /// Returns the iterations of a study whose values were received, ascending.
    pub(crate) fn received_iterations(&self, study: u32) -> Result<Vec<u32>, StoreError> {
        let received = self.study(study)?.received.iter();
        Ok(received.map(|(t, _)| *t).collect())
    }

    /// Calls `each` with every value that was received in a study, by iteration and sender.
    pub fn for_each_received(
        &self,
        study: u32,
        mut each: impl FnMut(SignedMessage) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let steps = self.steps(&self.study(study)?.received);
        { steps }.try_for_each(|step| step?.received.into_iter().try_for_each(&mut each))
    }

    /// Calls `each` with every value that this party sent in a study, by iteration.
    pub fn for_each_sent(
        &self,
        study: u32,
        mut each: impl FnMut(SignedMessage) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let steps = self.steps(&self.study(study)?.sent);
        { steps }.try_for_each(|step| step?.sent.into_iter().try_for_each(&mut each))
    }

    /// Returns the steps at some records, each once.
    fn steps(
        &self,
        records: &[(u32, u64)],
    ) -> impl Iterator<Item = Result<StoredStep, StoreError>> {
        let same = records.chunk_by(|(_, one), (_, other)| one == other);
        same.map(|same| self.step(same[0].1))
    }

    fn step(&self, at: u64) -> Result<StoredStep, StoreError> {
        let record = self.journal.read(at).map_err(|e| fault(&self.folder, e))?;
        StoredStep::from_bytes(&record.body).ok_or_else(|| self.corrupt(BAD_STEP))
    }

    /// Persists a step, all of it or nothing. When this returns, the step is durable, and the secret that drew the noise of its answer
    /// is replaced by the next one.
    pub(crate) fn append_step(
        &mut self,
        study: &StudyRecord,
        rows: &RowFingerprint,
        step: &PendingStep,
    ) -> Result<(), StoreError> {
        let study = study.number;
        let iterations = StepIterations::of_pending(step);
        let body = step.to_bytes(study, *rows);
        self.append(STEP, &body, Entry::Step { study, iterations })?;
        if step.charged.is_empty() && !step.finished {
            return Ok(());
        }
        // Privacy: the answers are durable, so what drew their noise has done its work. Only then may they leave.
        let progress = self.study(study)?.progress();
        self.with_secrets(|secrets| secrets.advance(study, progress))
    }

    /// Persists a rejected frame of a neighbour, for the first hundred of a study.
    pub(crate) fn append_misbehaviour(
        &mut self,
        study: u32,
        misbehaviour: &MisbehaviourRecord,
    ) -> Result<(), StoreError> {
        self.append_evidence(study, misbehaviour, MAX_MISBEHAVIOURS)
    }

    /// Persists a proof that ends a study, unless it is kept already. However many frames were kept before, there is room for it; but
    /// not for a new proof at every one of many restarts.
    pub(crate) fn append_proof(
        &mut self,
        study: u32,
        misbehaviour: &MisbehaviourRecord,
    ) -> Result<(), StoreError> {
        if self.misbehaviours(study)?.contains(misbehaviour) {
            return Ok(());
        }
        self.append_evidence(study, misbehaviour, MAX_MISBEHAVIOURS + MAX_PROOFS)
    }

    fn append_evidence(
        &mut self,
        study: u32,
        misbehaviour: &MisbehaviourRecord,
        most: usize,
    ) -> Result<(), StoreError> {
        if self.study(study)?.misbehaviours.len() >= most {
            return Ok(());
        }
        let mut body = study.to_le_bytes().to_vec();
        serde_json::to_writer(&mut body, misbehaviour).map_err(|e| self.corrupt(e))?;
        self.append(MISBEHAVIOUR, &body, Entry::Misbehaviour { study })
    }

    /// Returns the invalid frames of a study.
    pub fn misbehaviours(&self, study: u32) -> Result<Vec<MisbehaviourRecord>, StoreError> {
        let read = |at: &u64| {
            let record = self.journal.read(*at).map_err(|e| fault(&self.folder, e))?;
            let json = record.body.get(4..).unwrap_or_default();
            serde_json::from_slice(json).map_err(|e| self.corrupt(format!("evidence: {e}")))
        };
        self.study(study)?.misbehaviours.iter().map(read).collect()
    }

    fn study(&self, study: u32) -> Result<&StudyIndex, StoreError> {
        let found = self.index.studies.get(study as usize);
        found.ok_or_else(|| self.corrupt(format!("study {study} was never begun")))
    }

    fn corrupt(&self, what: impl ToString) -> StoreError {
        corrupt(&self.folder, what.to_string())
    }
}

const BAD_STEP: &str = "a step cannot be read";

/// Opens and locks the journal of a folder that has one.
fn lock_journal(folder: &Path) -> Result<StateFile, StoreError> {
    let path = folder.join(JOURNAL_FILE);
    match StateFile::open_locked(&path) {
        Ok(Some(locked)) => Ok(locked),
        Ok(None) => Err(StoreError::InUse(folder.to_owned())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            Err(StoreError::Missing(folder.to_owned()))
        }
        Err(cause) => Err(StoreError::Folder { path, cause }),
    }
}

/// Creates the journal if there is none. It gets its name once its first record is durable: a process that is killed in between
/// must not leave what looks like a damaged account.
fn create_file(folder: &Path) -> Result<(), StoreError> {
    let (file, unfinished) = (folder.join(JOURNAL_FILE), folder.join(UNFINISHED));
    // A dangling symbolic link, as to a disk that is not mounted, must not be replaced by an empty account.
    let exists = || fs::symlink_metadata(&file).is_ok();
    if exists() {
        return Ok(());
    }
    let failed = |cause| StoreError::Folder {
        path: folder.to_owned(),
        cause,
    };
    let held = fs::File::open(folder).map_err(failed)?;
    // Where folders cannot be locked, two processes may get here; the lock of the file keeps one of them out.
    if let Err(fs::TryLockError::WouldBlock) = held.try_lock() {
        return Err(StoreError::InUse(folder.to_owned()));
    }
    if exists() {
        return Ok(());
    }
    match fs::remove_file(&unfinished) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
        _ => {}
    }
    let Some(created) = StateFile::create_locked(&unfinished).map_err(failed)? else {
        return Err(StoreError::InUse(folder.to_owned()));
    };
    // A file that is there already is that of a journal that is gone, and says so when it is read.
    let secrets = match StateFile::create(&folder.join(SECRETS_FILE)) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            StateFile::open(&folder.join(SECRETS_FILE))
        }
        created => created,
    };
    let secrets = secrets.map_err(failed)?;
    drop(Store::create(folder, Box::new(created), Box::new(secrets))?);
    restrict_to_owner(&unfinished).map_err(failed)?;
    fs::rename(&unfinished, &file).map_err(failed)
}

/// Draws a secret.
fn draw_secret() -> Result<NoiseSecret, StoreError> {
    let mut bytes = Zeroizing::new([0; 32]);
    fill_randomly(&mut bytes)?;
    Ok(NoiseSecret::copy_of(&bytes))
}

/// Fills an array with random bytes of the operating system.
fn fill_randomly(bytes: &mut [u8; 32]) -> Result<(), StoreError> {
    use ring::rand::SecureRandom;
    let filled = ring::rand::SystemRandom::new().fill(bytes);
    filled.map_err(|_| StoreError::NoEntropy)
}
