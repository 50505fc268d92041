//! What is kept in one go.

use radmm::private::Recorded;
use radmm::public::release::{Precision, Release};

use super::charge::{Charge, Fingerprint};
use crate::machine::frame::{Reader, Signed, put_release, release};

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

    /// As a step of a study, whose charges are on these rows.
    pub(super) fn to_bytes(&self, study: u32, data: Fingerprint) -> Vec<u8> {
        let mut bytes = study.to_le_bytes().to_vec();
        bytes.push(u8::from(self.finished));
        put_all(&mut bytes, &self.heard, Signed::to_bytes);
        put_all(&mut bytes, &self.charged, |recorded| {
            let charge = Charge {
                study,
                iteration: recorded.iteration,
                data,
                event: recorded.event,
            };
            let mut bytes = Vec::new();
            put(&mut bytes, &charge.to_bytes());
            put(&mut bytes, &answer_bytes(recorded.answer.as_ref()));
            bytes
        });
        put_all(&mut bytes, &self.said, Signed::to_bytes);
        bytes
    }
}

/// A step that was kept.
pub(super) struct Kept {
    pub(super) study: u32,
    pub(super) heard: Vec<Signed>,
    pub(super) charged: Vec<(Charge, Option<Release>)>,
    pub(super) said: Vec<Signed>,
    pub(super) finished: bool,
}

impl Kept {
    /// `None` if the bytes cannot be right.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let study = rest.u32()?;
        let finished = match rest.array::<1>()? {
            [flag @ 0..=1] => flag == 1,
            _ => return None,
        };
        let signed = |bytes: &[u8]| Signed::from_bytes(bytes).ok();
        let mut heard = all(&mut rest, signed)?;
        // They came in any order, and are the same study in any.
        heard.sort_by_key(|signed| (signed.message.iteration, signed.message.from));
        let charged = all(&mut rest, |bytes| {
            let mut rest = Reader(bytes);
            let charge = Charge::from_bytes(one(&mut rest)?)?;
            let answer = answer(one(&mut rest)?)?;
            let right = rest.0.is_empty() && charge.study == study;
            right.then_some((charge, answer))
        })?;
        let said = all(&mut rest, signed)?;
        rest.0.is_empty().then_some(Self {
            study,
            heard,
            charged,
            said,
            finished,
        })
    }
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn put_all<T>(bytes: &mut Vec<u8>, all: &[T], each: impl Fn(&T) -> Vec<u8>) {
    bytes.extend_from_slice(&(all.len() as u32).to_le_bytes());
    for one in all {
        put(bytes, &each(one));
    }
}

fn one<'a>(rest: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = rest.u32()? as usize;
    let (part, after) = rest.0.split_at_checked(length)?;
    rest.0 = after;
    Some(part)
}

fn all<T>(rest: &mut Reader<'_>, read: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = rest.u32()?;
    (0..count).map(|_| read(one(rest)?)).collect()
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
