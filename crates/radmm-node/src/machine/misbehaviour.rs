//! Rejection of invalid frames, and the evidence that is kept of them.

use radmm_study::hex;

use super::frame::{Frame, SignedMessage};
use super::party::{Party, PartyError, Peer};
use crate::runtime::Notice;
use crate::store::{MisbehaviourRecord, StoreError};

/// The number of rejected frames of a neighbour that are reported and kept.
const MAX_REPORTED: u32 = 20;

/// The number of bytes of a rejected frame that are kept. Frames that prove something are kept whole, with their signatures.
const MAX_KEPT_BYTES: usize = 1 << 16;

impl Party {
    /// Rejects a frame that had no effect: the link is closed, and the neighbour may open another.
    pub(super) fn reject(
        &mut self,
        index: usize,
        what: String,
        frames: &[&[u8]],
    ) -> Result<(), PartyError> {
        let edge = &mut self.edges[index];
        edge.rejected += 1;
        if edge.rejected <= MAX_REPORTED {
            let peer = edge.peer.name.clone();
            // A frame can be as long as a study; its first part shows what it was.
            let first_parts: Vec<&[u8]> = frames
                .iter()
                .map(|bytes| &bytes[..bytes.len().min(MAX_KEPT_BYTES)])
                .collect();
            let evidence = evidence(&edge.peer, &what, &first_parts);
            self.notices.push(Notice::Misbehaved {
                peer,
                what: what.clone(),
            });
            let study = self.study_record.number;
            self.store.append_misbehaviour(study, &evidence)?;
        }
        self.send(index, &Frame::Bye(format!("you sent {what}")));
        self.close_link(index);
        Ok(())
    }

    /// Returns the error that halts this party because a neighbour sent two values for one iteration.
    pub(super) fn equivocation(
        &mut self,
        index: usize,
        iteration: u32,
        first: &[u8],
        second: &[u8],
    ) -> PartyError {
        let what = format!("it sent two different values for iteration {iteration}");
        self.proved_dishonest(index, what, &[first, second])
    }

    /// Closes all links, keeps the proof that a neighbour is dishonest, and returns the error that halts this party.
    pub(super) fn proved_dishonest(
        &mut self,
        index: usize,
        what: String,
        frames: &[&[u8]],
    ) -> PartyError {
        let peer = self.edges[index].peer.name.clone();
        self.notices.push(Notice::Misbehaved {
            peer: peer.clone(),
            what: what.clone(),
        });
        match self.halt_with_evidence(index, &what, frames) {
            Ok(()) => PartyError::Misbehaved { peer, what },
            Err(error) => PartyError::Store(error),
        }
    }

    /// Returns the error that halts this party because a neighbour's value differs from its own where all must be the same. The
    /// neighbour is not accused: it may have been sent the value by another party.
    pub(super) fn not_common(
        &mut self,
        index: usize,
        signed: &SignedMessage,
    ) -> Result<PartyError, StoreError> {
        let iteration = signed.message.iteration;
        let what = format!(
            "its value of iteration {iteration} differs from this party's, and all must be the same: somebody passed on a wrong value, and this does not tell who"
        );
        let peer = self.edges[index].peer.name.clone();
        self.notices.push(Notice::Disagrees {
            peer: peer.clone(),
            what: what.clone(),
        });
        let mut frames = vec![signed.to_bytes()];
        let own = self.store.sent(self.study_record.number, iteration)?;
        frames.extend(own.map(|own| own.to_bytes()));
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        self.halt_with_evidence(index, &what, &frames)?;
        Ok(PartyError::NotCommon { peer, iteration })
    }

    /// Closes all links, and keeps whole frames of a neighbour as evidence.
    pub(super) fn halt_with_evidence(
        &mut self,
        index: usize,
        what: &str,
        frames: &[&[u8]],
    ) -> Result<(), StoreError> {
        for index in 0..self.edges.len() {
            self.close_link(index);
        }
        let evidence = evidence(&self.edges[index].peer, what, frames);
        let study = self.study_record.number;
        self.store.append_proof(study, &evidence)
    }
}

fn evidence(peer: &Peer, what: &str, frames: &[&[u8]]) -> MisbehaviourRecord {
    MisbehaviourRecord {
        party: peer.name.clone(),
        from: peer.id.0,
        what: what.to_owned(),
        frames: frames.iter().map(|bytes| hex::encode(bytes)).collect(),
    }
}
