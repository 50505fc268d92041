//! Rejection of invalid frames, and the evidence that is kept of them.

use radmm::graph::NodeId;
use radmm_study::hex;

use super::frame::Frame;
use super::party::{Party, PartyError};
use crate::runtime::Notice;
use crate::store::MisbehaviourRecord;

/// The number of rejected frames of a neighbour that are reported and kept.
const MAX_REPORTED: u32 = 20;

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
            let evidence = evidence(edge.peer.id, &what, frames);
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
        let evidence = evidence(self.edges[index].peer.id, &what, frames);
        self.notices.push(Notice::Misbehaved {
            peer: peer.clone(),
            what: what.clone(),
        });
        for index in 0..self.edges.len() {
            self.close_link(index);
        }
        let study = self.study_record.number;
        match self.store.append_proof(study, &evidence) {
            Ok(()) => PartyError::Misbehaved { peer, what },
            Err(error) => PartyError::Store(error),
        }
    }
}

fn evidence(from: NodeId, what: &str, frames: &[&[u8]]) -> MisbehaviourRecord {
    let digits = |bytes: &&[u8]| {
        // A frame can be as long as a study; its first part shows what it was.
        let shown = &bytes[..bytes.len().min(1 << 16)];
        hex::encode(shown)
    };
    MisbehaviourRecord {
        from: from.0,
        what: what.to_owned(),
        frames: frames.iter().map(digits).collect(),
    }
}
