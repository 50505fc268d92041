//! What follows from the records of a journal, and whether they can be right.

use std::collections::BTreeSet;

use super::Begun;
use super::journal::Record;
use super::step::{Kept, Step};
use crate::frame::{Reader, Signed};

/// Of what is written here.
pub(super) const FORMAT: u32 = 1;

pub(super) const MADE: u8 = 1;
pub(super) const BEGUN: u8 = 2;
pub(super) const CHANGED: u8 = 3;
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

impl Contents {
    /// Takes in a record, unless it cannot be right.
    pub(super) fn take(&mut self, record: &Record) -> Result<(), String> {
        let unreadable = || "it cannot be read".to_owned();
        let mut rest = Reader(&record.body);
        match (record.kind, record.at) {
            (MADE, 0) => {
                let format = rest.u32().ok_or_else(unreadable)?;
                self.foreign = (format != FORMAT).then_some(format);
                if self.foreign.is_some() {
                    return Err(unreadable());
                }
                self.salt = rest.array().ok_or_else(unreadable)?;
                Ok(())
            }
            (_, 0) => Err("it is not the first of a journal".to_owned()),
            (BEGUN, _) => {
                let secret = rest.array().ok_or_else(unreadable)?;
                let begun: Begun =
                    serde_json::from_slice(rest.0).map_err(|error| error.to_string())?;
                if begun.number as usize != self.studies.len() {
                    return Err("a study has another one's number".to_owned());
                }
                self.studies.push(Known {
                    begun,
                    secret,
                    heard: Vec::new(),
                    said: Vec::new(),
                    charged: None,
                    evidence: Vec::new(),
                });
                Ok(())
            }
            (CHANGED, _) => {
                let begun: Begun =
                    serde_json::from_slice(rest.0).map_err(|error| error.to_string())?;
                let known = self.known_mut(begun.number)?;
                known.begun = begun;
                Ok(())
            }
            (STEP, at) => {
                let kept = Kept::from_bytes(rest.0).ok_or_else(unreadable)?;
                let times = Times::of_kept(&kept);
                let known = self.known_mut(kept.study)?;
                known.admits(&times)?;
                known.add(at, &times);
                Ok(())
            }
            (ORDER, _) => {
                self.order = Some(rest.f64().ok_or_else(unreadable)?);
                Ok(())
            }
            (EVIDENCE, at) => {
                let study = rest.u32().ok_or_else(unreadable)?;
                self.known_mut(study)?.evidence.push(at);
                Ok(())
            }
            _ => Err("it is of no known kind".to_owned()),
        }
    }

    pub(super) fn known(&self, study: u32) -> Result<&Known, String> {
        let known = self.studies.get(study as usize);
        known.ok_or_else(|| format!("study {study} was never begun"))
    }

    pub(super) fn known_mut(&mut self, study: u32) -> Result<&mut Known, String> {
        let known = self.studies.get_mut(study as usize);
        known.ok_or_else(|| format!("study {study} was never begun"))
    }
}
