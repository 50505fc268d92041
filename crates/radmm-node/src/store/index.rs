//! The index of a journal: what its records amount to, and whether they are consistent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::StudyRecord;
use super::journal::Record;
use super::location::Location;
use super::noise_secrets::Progress;
use super::step::{PendingStep, StoredStep};
use crate::machine::{ByteReader, SignedMessage};

/// The version of the format of records.
pub(super) const FORMAT: u32 = 2;

pub(super) const CREATED: u8 = 1;
pub(super) const STUDY: u8 = 2;
pub(super) const ACKS: u8 = 3;
pub(super) const STEP: u8 = 4;
pub(super) const ORDER: u8 = 5;
pub(super) const MISBEHAVIOUR: u8 = 6;
pub(super) const LOCATION: u8 = 7;
pub(super) const FORGOTTEN: u8 = 8;
pub(super) const WITNESSED: u8 = 9;

/// The index of all records.
#[derive(Default)]
pub(super) struct StoreIndex {
    pub(super) salt: [u8; 32],
    pub(super) order: Option<f64>,
    pub(super) studies: Vec<StudyIndex>,
    /// The place in which the folder lives.
    pub(super) location: Option<Location>,
    /// Everything that a neighbour has shown to be missing here.
    pub(super) forgotten: Vec<Forgotten>,
    /// Whether the folder was adopted since.
    pub(super) is_adopted: bool,
    /// Whether a witness has seen this journal since it was last adopted.
    pub(super) is_witnessed: bool,
    /// The format of the journal, if it is not [`FORMAT`].
    pub(super) unknown_format: Option<u32>,
}

/// The index of one study's records.
pub(super) struct StudyIndex {
    pub(super) record: StudyRecord,
    /// The number of data steps that were answered.
    pub(super) answered: u32,
    /// The iterations of received values with the positions of their records, ascending.
    pub(super) received: Vec<(u32, u64)>,
    /// The same of sent values.
    pub(super) sent: Vec<(u32, u64)>,
    /// The last iteration that was charged.
    pub(super) charged: Option<u32>,
    /// The positions of misbehaviour records.
    pub(super) misbehaviours: Vec<u64>,
}

/// The iterations of a step.
pub(super) struct StepIterations {
    received: BTreeSet<u32>,
    charged: Vec<u32>,
    sent: Vec<u32>,
    finished: bool,
    ended: bool,
}

impl StepIterations {
    pub(super) fn of_pending(step: &PendingStep) -> Self {
        let iteration = |signed: &SignedMessage| signed.message.iteration;
        Self {
            received: step.received.iter().map(iteration).collect(),
            charged: step.charged.iter().map(|one| one.iteration).collect(),
            sent: step.sent.iter().map(iteration).collect(),
            finished: step.finished,
            ended: step.ended,
        }
    }

    fn of_stored(step: &StoredStep) -> Self {
        let iteration = |signed: &SignedMessage| signed.message.iteration;
        let charges = step.charged.iter();
        Self {
            received: step.received.iter().map(iteration).collect(),
            charged: charges.map(|(charge, _)| charge.iteration).collect(),
            sent: step.sent.iter().map(iteration).collect(),
            finished: step.finished,
            ended: step.ended,
        }
    }
}

impl StudyIndex {
    /// Returns how far the study is.
    pub(super) fn progress(&self) -> Progress {
        Progress {
            answered: self.answered,
            is_over: self.record.is_over(),
        }
    }

    /// Checks that a step may come next: no iteration is answered, sent or received twice.
    fn check(&self, step: &StepIterations) -> Result<(), String> {
        if self.record.ended {
            return Err("its study was ended before".to_owned());
        }
        let mut charged = self.charged;
        for t in &step.charged {
            if charged.is_some_and(|last| *t <= last) {
                return Err(format!("iteration {t} was answered before"));
            }
            charged = Some(*t);
        }
        let mut sent = self.sent.last().map(|(t, _)| *t);
        for t in &step.sent {
            if sent.is_some_and(|last| *t <= last) {
                return Err(format!("iteration {t} was sent before"));
            }
            sent = Some(*t);
        }
        let received = self.received.last().map(|(t, _)| *t);
        match step.received.first() {
            Some(t) if received.is_some_and(|last| *t <= last) => {
                Err(format!("iteration {t} was received before"))
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, at: u64, step: &StepIterations) {
        self.received.extend(step.received.iter().map(|t| (*t, at)));
        self.sent.extend(step.sent.iter().map(|t| (*t, at)));
        self.charged = step.charged.last().copied().or(self.charged);
        self.answered += step.charged.len() as u32;
        self.record.finished |= step.finished;
        self.record.ended |= step.ended;
    }
}

/// Returns the position of the record of an iteration.
pub(super) fn record_of(records: &[(u32, u64)], iteration: u32) -> Option<u64> {
    let found = records.binary_search_by_key(&iteration, |(t, _)| *t);
    found.ok().map(|index| records[index].1)
}

/// The content of a record, as far as the index needs it.
pub(super) enum Entry {
    Created {
        format: u32,
        salt: [u8; 32],
    },
    Study(StudyRecord),
    Acks(Acks),
    Step {
        study: u32,
        iterations: StepIterations,
    },
    Order(f64),
    Misbehaviour {
        study: u32,
    },
    Location(Location),
    Forgotten(Forgotten),
    Witnessed,
}

/// A neighbour's proof that this state is older than what was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Forgotten {
    pub(super) study: u32,
    /// The neighbour's name.
    pub(super) peer: String,
    /// The last iteration of this party that the neighbour has shown.
    pub(super) iteration: u32,
}

/// The acknowledgements at the end of a study. Neighbours are only ever added.
#[derive(Serialize, Deserialize)]
pub(super) struct Acks {
    pub(super) study: u32,
    #[serde(rename = "served")]
    pub(super) acked: BTreeSet<u32>,
    #[serde(rename = "assured")]
    pub(super) ack_confirmed: BTreeSet<u32>,
}

impl Entry {
    /// Decodes a record; `None` if it cannot be read.
    fn read(kind: u8, body: &[u8]) -> Option<Self> {
        let mut rest = ByteReader(body);
        Some(match kind {
            CREATED => Self::Created {
                format: rest.u32()?,
                salt: rest.array()?,
            },
            STUDY => Self::Study(serde_json::from_slice(rest.0).ok()?),
            ACKS => Self::Acks(serde_json::from_slice(rest.0).ok()?),
            STEP => {
                let step = StoredStep::from_bytes(rest.0)?;
                Self::Step {
                    study: step.study,
                    iterations: StepIterations::of_stored(&step),
                }
            }
            ORDER => Self::Order(rest.f64()?),
            MISBEHAVIOUR => Self::Misbehaviour { study: rest.u32()? },
            LOCATION => Self::Location(Location::from_bytes(rest.0)?),
            FORGOTTEN => Self::Forgotten(serde_json::from_slice(rest.0).ok()?),
            WITNESSED if rest.0.is_empty() => Self::Witnessed,
            _ => return None,
        })
    }
}

impl StoreIndex {
    /// Returns the number of data steps of a study that were answered.
    pub(super) fn answered(&self, study: u32) -> u32 {
        let found = self.studies.get(study as usize);
        found.map_or(0, |study| study.answered)
    }

    /// Adds a record of the journal, unless it is inconsistent with those before it.
    pub(super) fn load(&mut self, record: &Record) -> Result<(), String> {
        let entry = Entry::read(record.kind, &record.body);
        let entry = entry.ok_or_else(|| "it cannot be read".to_owned())?;
        if let Entry::Created { format, .. } = entry {
            self.unknown_format = (format != FORMAT).then_some(format);
        }
        self.check(record.at, &entry)?;
        self.apply(record.at, entry);
        Ok(())
    }

    /// Checks that a record may come at a position.
    pub(super) fn check(&self, at: u64, entry: &Entry) -> Result<(), String> {
        let study = |study: u32| {
            let found = self.studies.get(study as usize);
            found.ok_or_else(|| format!("study {study} was never begun"))
        };
        match entry {
            Entry::Created { .. } if self.unknown_format.is_some() => {
                Err("another format".to_owned())
            }
            Entry::Created { .. } if at == 0 => Ok(()),
            Entry::Created { .. } => Err("it begins another journal".to_owned()),
            _ if at == 0 => Err("it is not the first of a journal".to_owned()),
            Entry::Study(record) if record.number as usize != self.studies.len() => {
                Err("a study has another one's number".to_owned())
            }
            Entry::Order(order) if self.order.is_some() || !order.is_finite() => {
                Err("a second or invalid Rényi order".to_owned())
            }
            Entry::Study(_) | Entry::Order(_) | Entry::Location(_) | Entry::Witnessed => Ok(()),
            Entry::Acks(Acks { study: number, .. })
            | Entry::Misbehaviour { study: number }
            | Entry::Forgotten(Forgotten { study: number, .. }) => study(*number).map(|_| ()),
            Entry::Step {
                study: number,
                iterations,
            } => study(*number)?.check(iterations),
        }
    }

    /// Adds a record that was checked and is durable.
    pub(super) fn apply(&mut self, at: u64, entry: Entry) {
        match entry {
            Entry::Created { salt, .. } => self.salt = salt,
            Entry::Study(record) => self.studies.push(StudyIndex {
                record,
                answered: 0,
                received: Vec::new(),
                sent: Vec::new(),
                charged: None,
                misbehaviours: Vec::new(),
            }),
            Entry::Order(order) => self.order = Some(order),
            Entry::Acks(acks) => {
                if let Some(study) = self.studies.get_mut(acks.study as usize) {
                    study.record.acked.extend(acks.acked);
                    study.record.ack_confirmed.extend(acks.ack_confirmed);
                }
            }
            Entry::Step { study, iterations } => {
                if let Some(study) = self.studies.get_mut(study as usize) {
                    study.apply(at, &iterations);
                }
            }
            Entry::Location(location) => {
                self.location = Some(location);
                self.is_adopted = true;
                self.is_witnessed = false;
            }
            Entry::Forgotten(forgotten) => {
                self.forgotten.push(forgotten);
                self.is_adopted = false;
            }
            Entry::Witnessed => self.is_witnessed = true,
            Entry::Misbehaviour { study } => {
                if let Some(study) = self.studies.get_mut(study as usize) {
                    study.misbehaviours.push(at);
                }
            }
        }
    }
}
