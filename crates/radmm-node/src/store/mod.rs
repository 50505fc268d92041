//! What a party must not forget, on disk, in one file of its state folder.
//!
//! A [`Step`] is kept in one durable record: the messages that an iteration was heard of, the charge and the answer of a
//! data step, and what the party is going to say. Only when it is kept may anything be said. Whatever is killed at whatever
//! moment, the store holds a step or nothing of it.
//!
//! The file is a journal. What is in memory follows from its records, and is a few numbers an iteration:
//!
//! ```text
//! made      format, salt of fingerprints
//! begun     secret of the noise, study as JSON
//! ended     study, who has everything of whom, as JSON
//! step      study, heard, charges and answers, said, whether it was the last
//! order     at which the limits of these rows are kept
//! evidence  study, what others said that cannot be right, as JSON
//! ```

mod charge;
mod error;
#[cfg(test)]
pub(crate) mod faulty_storage;
mod folder;
mod index;
mod journal;
mod step;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use radmm::private::Recorded;
use radmm::public::graph::NodeId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::machine::frame::Signed;
pub use charge::{Charge, Fingerprint};
pub use error::StoreError;
use error::{corrupt, fault};
use folder::{for_this_user_alone, make_folder, make_sure_of_names};
use index::{
    BEGUN, Change, Contents, ENDED, EVIDENCE, Ended, FORMAT, Known, MADE, ORDER, STEP, Times, place,
};
use journal::{Fault, Journal};
use step::Kept;
pub use step::Step;
use storage::{Locked, Medium};

/// The file of the state folder.
const FILE: &str = "state.journal";

/// What it is called until it is whole.
const UNFINISHED: &str = "state.journal.new";

/// As many lies of a study are kept.
const MOST_EVIDENCE: usize = 100;

/// And as many proofs beyond them.
const MOST_PROOFS: usize = 20;

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
    journal: Journal,
    contents: Contents,
    folder: PathBuf,
}

impl Store {
    /// Opens the store of a folder, and makes both if need be.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::Folder {
            path: folder.to_owned(),
            cause,
        };
        make_folder(folder).map_err(failed)?;
        make_file(folder)?;
        let file = folder.join(FILE);
        for_this_user_alone(&file).map_err(|cause| StoreError::Folder { path: file, cause })?;
        let store = Self::existing(folder)?;
        // Whoever made the file may have been killed before its name was on the disk.
        make_sure_of_names(folder).map_err(failed)?;
        Ok(store)
    }

    /// Opens the store of a folder that has one.
    pub fn existing(folder: &Path) -> Result<Self, StoreError> {
        let file = folder.join(FILE);
        if !file.is_file() {
            return Err(StoreError::Missing(folder.to_owned()));
        }
        match Locked::open(&file) {
            Ok(Some(locked)) => Self::of(folder, Box::new(locked)),
            Ok(None) => Err(StoreError::InUse(folder.to_owned())),
            Err(cause) => Err(StoreError::Folder { path: file, cause }),
        }
    }

    /// A store on something that is not a file of its own, for tests of what a failing one does.
    #[cfg(test)]
    pub(crate) fn on(folder: &Path, medium: impl Medium + 'static) -> Result<Self, StoreError> {
        match medium.len().map(|length| length == 0) {
            Ok(true) => Self::made(folder, Box::new(medium)),
            _ => Self::of(folder, Box::new(medium)),
        }
    }

    /// A new one.
    fn made(folder: &Path, medium: Box<dyn Medium>) -> Result<Self, StoreError> {
        let salt = random()?;
        let body = [&FORMAT.to_le_bytes()[..], &salt].concat();
        let journal = Journal::create(medium, MADE, &body).map_err(|e| fault(folder, e))?;
        Ok(Self {
            journal,
            contents: Contents {
                salt,
                ..Contents::default()
            },
            folder: folder.to_owned(),
        })
    }

    /// One that is there. All of it is read, once a start: what is damaged must not be found out in the middle of a study.
    fn of(folder: &Path, medium: Box<dyn Medium>) -> Result<Self, StoreError> {
        let mut contents = Contents::default();
        let journal = Journal::open(medium, |record| contents.take(record));
        let folder = folder.to_owned();
        match (journal, contents.foreign) {
            (_, Some(found)) => Err(StoreError::Format {
                path: folder,
                found,
            }),
            (Ok(journal), None) => Ok(Self {
                journal,
                contents,
                folder,
            }),
            (Err(error), None) => Err(fault(&folder, error)),
        }
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
        hash.update(self.contents.salt);
        hash.update(hash_of_rows);
        Fingerprint(hash.finalize().into())
    }

    /// All studies that were begun here.
    pub fn studies(&self) -> Vec<Begun> {
        let studies = self.contents.studies.iter();
        studies.map(|known| known.begun.clone()).collect()
    }

    /// Begins a study: from now on its noise has a secret, which nothing changes.
    pub fn begin(&mut self, study: impl FnOnce(u32) -> Begun) -> Result<Begun, StoreError> {
        let begun = study(self.contents.studies.len() as u32);
        let secret = random()?;
        let mut body = secret.to_vec();
        serde_json::to_writer(&mut body, &begun).map_err(|e| self.corrupt(e))?;
        let change = Change::Begun {
            secret,
            begun: begun.clone(),
        };
        self.add(BEGUN, &body, change)?;
        Ok(begun)
    }

    /// The order of Rényi losses at which the limits of these rows are kept: `order`, if nothing was kept before.
    pub fn order(&self, order: f64) -> f64 {
        self.contents.order.unwrap_or(order)
    }

    /// Keeps that order, for good.
    pub fn keep_order(&mut self, order: f64) -> Result<(), StoreError> {
        // A pure limit has none.
        match self.contents.order.is_none() && order.is_finite() {
            true => {
                let bits = order.to_bits().to_le_bytes();
                self.add(ORDER, &bits, Change::Order(order))
            }
            false => Ok(()),
        }
    }

    /// Keeps who has everything of whom.
    pub fn keep_ended(&mut self, begun: &Begun) -> Result<(), StoreError> {
        let ended = Ended {
            study: begun.number,
            served: begun.served.clone(),
            assured: begun.assured.clone(),
        };
        let json = serde_json::to_vec(&ended).map_err(|e| self.corrupt(e))?;
        self.add(ENDED, &json, Change::Ended(ended))
    }

    /// Adds a record, unless it cannot be right.
    fn add(&mut self, kind: u8, body: &[u8], change: Change) -> Result<(), StoreError> {
        let at = self.journal.end();
        let admitted = self.contents.admits(at, &change);
        admitted.map_err(|what| self.corrupt(what))?;
        let added = self.journal.add(kind, body);
        added.map_err(|e| fault(&self.folder, e))?;
        self.contents.apply(at, change);
        Ok(())
    }

    /// Where a study's noise comes from. It does not leave this crate.
    pub(crate) fn secret(&self, study: u32) -> Result<[u8; 32], StoreError> {
        Ok(self.known(study)?.secret)
    }

    /// Every charge ever made, in order.
    pub fn charges(&self) -> Result<Vec<Charge>, StoreError> {
        let mut charges = Vec::new();
        self.each_step(|kept| charges.extend(kept.charged.into_iter().map(|(charge, _)| charge)))?;
        Ok(charges)
    }

    /// What a study was answered, by iteration, with the charges of its own.
    pub fn recorded(&self, study: u32) -> Result<Vec<Recorded>, StoreError> {
        let mut recorded = Vec::new();
        self.each_step(|kept| {
            let of_study = kept.charged.into_iter();
            let of_study = of_study.filter(|(charge, _)| charge.study == study);
            recorded.extend(of_study.map(|(charge, answer)| Recorded {
                iteration: charge.iteration,
                event: charge.event,
                answer,
            }));
        })?;
        Ok(recorded)
    }

    fn each_step(&self, mut tell: impl FnMut(Kept)) -> Result<(), StoreError> {
        let read = self.journal.each(|record| match record.kind {
            STEP => {
                let kept = Kept::from_bytes(&record.body);
                tell(kept.ok_or_else(|| Fault::Damaged("a step cannot be read".to_owned()))?);
                Ok(())
            }
            _ => Ok(()),
        });
        read.map_err(|error| fault(&self.folder, error))
    }

    /// What was said in a study at an iteration.
    pub fn said(&self, study: u32, iteration: u32) -> Result<Option<Signed>, StoreError> {
        let Some(at) = place(&self.known(study)?.said, iteration) else {
            return Ok(None);
        };
        let mut said = self.step(at)?.said.into_iter();
        Ok(said.find(|signed| signed.message.iteration == iteration))
    }

    /// What was heard in a study of a party at an iteration.
    pub fn heard(
        &self,
        study: u32,
        iteration: u32,
        from: NodeId,
    ) -> Result<Option<Signed>, StoreError> {
        let Some(at) = place(&self.known(study)?.heard, iteration) else {
            return Ok(None);
        };
        let mut heard = self.step(at)?.heard.into_iter();
        Ok(heard.find(|one| one.message.iteration == iteration && one.message.from == from))
    }

    /// Everything that was heard in a study, by iteration and sender.
    pub fn all_heard(
        &self,
        study: u32,
        mut each: impl FnMut(Signed) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let steps = self.steps(&self.known(study)?.heard);
        { steps }.try_for_each(|step| step?.heard.into_iter().try_for_each(&mut each))
    }

    /// Everything that was said in a study, by iteration.
    pub fn all_said(
        &self,
        study: u32,
        mut each: impl FnMut(Signed) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let steps = self.steps(&self.known(study)?.said);
        { steps }.try_for_each(|step| step?.said.into_iter().try_for_each(&mut each))
    }

    /// The steps that are in some records, each once.
    fn steps(&self, records: &[(u32, u64)]) -> impl Iterator<Item = Result<Kept, StoreError>> {
        let same = records.chunk_by(|(_, one), (_, other)| one == other);
        same.map(|same| self.step(same[0].1))
    }

    fn step(&self, at: u64) -> Result<Kept, StoreError> {
        let record = self.journal.read(at).map_err(|e| fault(&self.folder, e))?;
        Kept::from_bytes(&record.body).ok_or_else(|| self.corrupt("a step cannot be read"))
    }

    /// Keeps a step, all of it or nothing. When this returns it has reached the disk.
    pub fn keep(
        &mut self,
        begun: &Begun,
        data: &Fingerprint,
        step: &Step,
    ) -> Result<(), StoreError> {
        let study = begun.number;
        let times = Times::of_step(step);
        let body = step.to_bytes(study, *data);
        self.add(STEP, &body, Change::Step { study, times })
    }

    /// Keeps what somebody said that cannot be right; of the first hundred times in a study.
    pub fn keep_evidence(&mut self, study: u32, evidence: &Evidence) -> Result<(), StoreError> {
        self.keep_words(study, evidence, MOST_EVIDENCE)
    }

    /// Keeps what ends a study. However much was kept before, there is room for it; for what is found again at every start, not for
    /// ever.
    pub fn keep_proof(&mut self, study: u32, evidence: &Evidence) -> Result<(), StoreError> {
        self.keep_words(study, evidence, MOST_EVIDENCE + MOST_PROOFS)
    }

    fn keep_words(
        &mut self,
        study: u32,
        evidence: &Evidence,
        most: usize,
    ) -> Result<(), StoreError> {
        if self.known(study)?.evidence.len() >= most {
            return Ok(());
        }
        let mut body = study.to_le_bytes().to_vec();
        serde_json::to_writer(&mut body, evidence).map_err(|e| self.corrupt(e))?;
        self.add(EVIDENCE, &body, Change::Evidence { study })
    }

    /// What was said in a study that cannot be right.
    pub fn evidence(&self, study: u32) -> Result<Vec<Evidence>, StoreError> {
        let read = |at: &u64| {
            let record = self.journal.read(*at).map_err(|e| fault(&self.folder, e))?;
            let json = record.body.get(4..).unwrap_or_default();
            serde_json::from_slice(json).map_err(|e| self.corrupt(format!("evidence: {e}")))
        };
        self.known(study)?.evidence.iter().map(read).collect()
    }

    fn known(&self, study: u32) -> Result<&Known, StoreError> {
        let known = self.contents.studies.get(study as usize);
        known.ok_or_else(|| self.corrupt(format!("study {study} was never begun")))
    }

    fn corrupt(&self, what: impl ToString) -> StoreError {
        corrupt(&self.folder, what.to_string())
    }
}

/// Makes the file if there is none. It gets its name once it is whole: who is killed in the middle must not leave what looks
/// like a damaged account.
fn make_file(folder: &Path) -> Result<(), StoreError> {
    let (file, unfinished) = (folder.join(FILE), folder.join(UNFINISHED));
    // A link that leads nowhere, as to a disk that is not mounted, is no reason to begin an account.
    let is_there = || fs::symlink_metadata(&file).is_ok();
    if is_there() {
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
    if is_there() {
        return Ok(());
    }
    match fs::remove_file(&unfinished) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
        _ => {}
    }
    let Some(made) = Locked::create(&unfinished).map_err(failed)? else {
        return Err(StoreError::InUse(folder.to_owned()));
    };
    drop(Store::made(folder, Box::new(made))?);
    for_this_user_alone(&unfinished).map_err(failed)?;
    fs::rename(&unfinished, &file).map_err(failed)
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
