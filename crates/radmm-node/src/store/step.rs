//! One step of a study, the unit of persistence.

use radmm::curator::ChargedAnswer;
use radmm::protocol::release::Release;

use super::charge_encoding::{Charge, RowFingerprint};
use crate::machine::{ByteReader, GRID_FORM, SignedMessage, read_release, write_release};

/// A step that is to be persisted.
#[derive(Default)]
pub(crate) struct PendingStep {
    /// The values received for the iteration.
    pub(crate) received: Vec<SignedMessage>,
    /// The charges, with their answers.
    pub(crate) charged: Vec<ChargedAnswer>,
    /// The values that are going to be sent.
    pub(crate) sent: Vec<SignedMessage>,
    /// Whether this is the last step of the study.
    pub(crate) finished: bool,
    /// Whether the study ends here without its other steps.
    pub(crate) ended: bool,
}

/// The flags of a step.
const FINISHED: u8 = 1;
const ENDED: u8 = 2;

impl PendingStep {
    /// Returns whether there is nothing to persist.
    pub(crate) fn is_empty(&self) -> bool {
        self.received.is_empty()
            && self.charged.is_empty()
            && self.sent.is_empty()
            && !self.finished
            && !self.ended
    }

    /// Encodes the step of a study, whose charges are on these rows.
    pub(super) fn to_bytes(&self, study: u32, rows: RowFingerprint) -> Vec<u8> {
        let mut bytes = study.to_le_bytes().to_vec();
        bytes.push(u8::from(self.finished) * FINISHED + u8::from(self.ended) * ENDED);
        write_all(&mut bytes, &self.received, SignedMessage::to_bytes);
        write_all(&mut bytes, &self.charged, |recorded| {
            let charge = Charge {
                study,
                iteration: recorded.iteration,
                rows,
                event: recorded.event,
            };
            let mut bytes = Vec::new();
            write_part(&mut bytes, &charge.to_bytes());
            write_part(&mut bytes, &answer_bytes(recorded.answer.as_ref()));
            bytes
        });
        write_all(&mut bytes, &self.sent, SignedMessage::to_bytes);
        bytes
    }
}

/// A step that was persisted.
pub(super) struct StoredStep {
    pub(super) study: u32,
    pub(super) received: Vec<SignedMessage>,
    pub(super) charged: Vec<(Charge, Option<Release>)>,
    pub(super) sent: Vec<SignedMessage>,
    pub(super) finished: bool,
    pub(super) ended: bool,
}

impl StoredStep {
    /// Decodes a step; `None` if the bytes are invalid.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = ByteReader(bytes);
        let study = rest.u32()?;
        let (finished, ended) = match rest.array()? {
            [0] => (false, false),
            [FINISHED] => (true, false),
            [ENDED] => (false, true),
            _ => return None,
        };
        let signed = |bytes: &[u8]| SignedMessage::from_bytes(bytes).ok();
        let mut received = read_all(&mut rest, signed)?;
        // They arrived in any order, and replaying them in any order gives the same study.
        received.sort_by_key(|signed| (signed.message.iteration, signed.message.from));
        let charged = read_all(&mut rest, |bytes| {
            let mut rest = ByteReader(bytes);
            let charge = Charge::from_bytes(read_part(&mut rest)?)?;
            let answer = read_answer(read_part(&mut rest)?)?;
            let valid = rest.0.is_empty() && charge.study == study;
            valid.then_some((charge, answer))
        })?;
        let sent = read_all(&mut rest, signed)?;
        rest.0.is_empty().then_some(Self {
            study,
            received,
            charged,
            sent,
            finished,
            ended,
        })
    }
}

fn write_part(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn write_all<T>(bytes: &mut Vec<u8>, all: &[T], each: impl Fn(&T) -> Vec<u8>) {
    bytes.extend_from_slice(&(all.len() as u32).to_le_bytes());
    for one in all {
        write_part(bytes, &each(one));
    }
}

fn read_part<'a>(rest: &mut ByteReader<'a>) -> Option<&'a [u8]> {
    let length = rest.u32()? as usize;
    let (part, after) = rest.0.split_at_checked(length)?;
    rest.0 = after;
    Some(part)
}

fn read_all<T>(rest: &mut ByteReader<'_>, read: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = rest.u32()?;
    (0..count).map(|_| read(read_part(rest)?)).collect()
}

fn answer_bytes(answer: Option<&Release>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(answer) = answer {
        write_release(&mut bytes, answer);
    }
    bytes
}

/// Decodes an answer, which may be missing; `None` if the bytes are invalid.
fn read_answer(bytes: &[u8]) -> Option<Option<Release>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let mut rest = ByteReader(bytes);
    if rest.array::<1>()?[0] != GRID_FORM {
        return None;
    }
    let columns = rest.u32()? as usize;
    if rest.0.len() != 8 * columns {
        return None;
    }
    read_release(rest.0).map(Some)
}
