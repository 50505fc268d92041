//! What follows from the records of a journal, and whether they can be right.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Begun;
use super::journal::Record;
use super::step::{Kept, Step};
use crate::machine::frame::{Reader, Signed};

/// Of what is written here.
pub(super) const FORMAT: u32 = 1;

pub(super) const MADE: u8 = 1;
pub(super) const BEGUN: u8 = 2;
pub(super) const ENDED: u8 = 3;
pub(super) const STEP: u8 = 4;
pub(super) const ORDER: u8 = 5;
pub(super) const EVIDENCE: u8 = 6;

/// What follows from the records.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) salt: [u8; 32],
    pub(super) order: Option<f64>,
    pub(super) studies: Vec<Known>,
    /// A format that is not this one.
    pub(super) foreign: Option<u32>,
}

/// What follows of one study.
pub(super) struct Known {
    pub(super) begun: Begun,
    pub(super) secret: [u8; 32],
    /// Of which iterations there are values of neighbours, and in which records; ascending.
    pub(super) heard: Vec<(u32, u64)>,
    /// The same of what was said.
    pub(super) said: Vec<(u32, u64)>,
    /// The last iteration that was charged.
    pub(super) charged: Option<u32>,
    /// Records.
    pub(super) evidence: Vec<u64>,
}

/// Of which iterations a step is.
pub(super) struct Times {
    pub(super) heard: BTreeSet<u32>,
    pub(super) charged: Vec<u32>,
    pub(super) said: Vec<u32>,
    pub(super) finished: bool,
}

impl Times {
    pub(super) fn of_step(step: &Step) -> Self {
        let iteration = |signed: &Signed| signed.message.iteration;
        Self {
            heard: step.heard.iter().map(iteration).collect(),
            charged: step.charged.iter().map(|one| one.iteration).collect(),
            said: step.said.iter().map(iteration).collect(),
            finished: step.finished,
        }
    }

    pub(super) fn of_kept(kept: &Kept) -> Self {
        let iteration = |signed: &Signed| signed.message.iteration;
        let charges = kept.charged.iter();
        Self {
            heard: kept.heard.iter().map(iteration).collect(),
            charged: charges.map(|(charge, _)| charge.iteration).collect(),
            said: kept.said.iter().map(iteration).collect(),
            finished: kept.finished,
        }
    }
}

impl Known {
    /// Whether a step may come now. Never a second answer, and never a second thing said: whoever gets here twice has lost his
    /// mind.
    pub(super) fn admits(&self, times: &Times) -> Result<(), String> {
        let mut charged = self.charged;
        for t in &times.charged {
            if charged.is_some_and(|last| *t <= last) {
                return Err(format!("iteration {t} was answered before"));
            }
            charged = Some(*t);
        }
        let mut said = self.said.last().map(|(t, _)| *t);
        for t in &times.said {
            if said.is_some_and(|last| *t <= last) {
                return Err(format!("iteration {t} was said before"));
            }
            said = Some(*t);
        }
        let heard = self.heard.last().map(|(t, _)| *t);
        match times.heard.first() {
            Some(t) if heard.is_some_and(|last| *t <= last) => {
                Err(format!("iteration {t} was heard before"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn add(&mut self, at: u64, times: &Times) {
        self.heard.extend(times.heard.iter().map(|t| (*t, at)));
        self.said.extend(times.said.iter().map(|t| (*t, at)));
        self.charged = times.charged.last().copied().or(self.charged);
        self.begun.finished |= times.finished;
    }
}

/// The record of an iteration.
pub(super) fn place(records: &[(u32, u64)], iteration: u32) -> Option<u64> {
    let found = records.binary_search_by_key(&iteration, |(t, _)| *t);
    found.ok().map(|index| records[index].1)
}

/// What a record adds.
pub(super) enum Change {
    Made { format: u32, salt: [u8; 32] },
    Begun { secret: [u8; 32], begun: Begun },
    Ended(Ended),
    Step { study: u32, times: Times },
    Order(f64),
    Evidence { study: u32 },
}

/// Who has everything of whom at the end of a study. Neighbours are only ever added.
#[derive(Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) study: u32,
    pub(super) served: BTreeSet<u32>,
    pub(super) assured: BTreeSet<u32>,
}

impl Change {
    /// What a record says; `None` if it cannot be read.
    pub(super) fn read(kind: u8, body: &[u8]) -> Option<Self> {
        let mut rest = Reader(body);
        Some(match kind {
            MADE => Self::Made {
                format: rest.u32()?,
                salt: rest.array()?,
            },
            BEGUN => Self::Begun {
                secret: rest.array()?,
                begun: serde_json::from_slice(rest.0).ok()?,
            },
            ENDED => Self::Ended(serde_json::from_slice(rest.0).ok()?),
            STEP => {
                let kept = Kept::from_bytes(rest.0)?;
                Self::Step {
                    study: kept.study,
                    times: Times::of_kept(&kept),
                }
            }
            ORDER => Self::Order(rest.f64()?),
            EVIDENCE => Self::Evidence { study: rest.u32()? },
            _ => return None,
        })
    }
}

impl Contents {
    /// Takes in a record that was found, unless it cannot be right.
    pub(super) fn take(&mut self, record: &Record) -> Result<(), String> {
        let change = Change::read(record.kind, &record.body);
        let change = change.ok_or_else(|| "it cannot be read".to_owned())?;
        if let Change::Made { format, .. } = change {
            self.foreign = (format != FORMAT).then_some(format);
        }
        self.admits(record.at, &change)?;
        self.apply(record.at, change);
        Ok(())
    }

    /// Whether a record may come at a place.
    pub(super) fn admits(&self, at: u64, change: &Change) -> Result<(), String> {
        let known = |study: u32| {
            let known = self.studies.get(study as usize);
            known.ok_or_else(|| format!("study {study} was never begun"))
        };
        match change {
            Change::Made { .. } if self.foreign.is_some() => Err("another format".to_owned()),
            Change::Made { .. } if at == 0 => Ok(()),
            Change::Made { .. } => Err("it begins another journal".to_owned()),
            _ if at == 0 => Err("it is not the first of a journal".to_owned()),
            Change::Begun { begun, .. } if begun.number as usize != self.studies.len() => {
                Err("a study has another one's number".to_owned())
            }
            Change::Order(order) if self.order.is_some() || !order.is_finite() => {
                Err("there is an order, or this is none".to_owned())
            }
            Change::Begun { .. } | Change::Order(_) => Ok(()),
            Change::Ended(Ended { study, .. }) | Change::Evidence { study } => {
                known(*study).map(|_| ())
            }
            Change::Step { study, times } => known(*study)?.admits(times),
        }
    }

    /// Takes in what was admitted, and is on the disk.
    pub(super) fn apply(&mut self, at: u64, change: Change) {
        match change {
            Change::Made { salt, .. } => self.salt = salt,
            Change::Begun { secret, begun } => self.studies.push(Known {
                begun,
                secret,
                heard: Vec::new(),
                said: Vec::new(),
                charged: None,
                evidence: Vec::new(),
            }),
            Change::Order(order) => self.order = Some(order),
            Change::Ended(ended) => {
                if let Some(known) = self.studies.get_mut(ended.study as usize) {
                    known.begun.served.extend(ended.served);
                    known.begun.assured.extend(ended.assured);
                }
            }
            Change::Step { study, times } => {
                if let Some(known) = self.studies.get_mut(study as usize) {
                    known.add(at, &times);
                }
            }
            Change::Evidence { study } => {
                if let Some(known) = self.studies.get_mut(study as usize) {
                    known.evidence.push(at);
                }
            }
        }
    }
}
