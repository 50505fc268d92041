//! The end of a study, neighbour by neighbour.
//!
//! A neighbour that has all values acknowledges them. The acknowledgement is persisted, so that this party, when restarted, does
//! not wait for a neighbour that has left; and it is confirmed, so that the neighbour may leave. The sender of the last frame cannot
//! know whether it arrived, however many frames are added. But a party that waits for a last confirmation has all values already, and
//! leaves after a timeout.

use std::collections::BTreeSet;

use super::frame::Frame;
use super::party::{Party, PartyError};

impl Party {
    /// Persists and confirms that a neighbour has all values of this party. The neighbour may leave once it has the confirmation:
    /// otherwise this party, restarted after the neighbour has left, would wait for it.
    pub(super) fn receive_ack(&mut self, index: usize) -> Result<(), PartyError> {
        // Nobody can have values that were not sent yet.
        if self.node.iteration() == self.iterations {
            let id = self.edges[index].peer.id.0;
            if self.study_record.acked.insert(id) {
                self.store.append_acks(&self.study_record)?;
            }
            self.confirm_ack(index);
        }
        Ok(())
    }

    /// Persists that a neighbour has persisted this party's acknowledgement.
    pub(super) fn receive_ack_confirmed(
        &mut self,
        index: usize,
        mutual: bool,
    ) -> Result<(), PartyError> {
        // A party that has not finished has not sent an acknowledgement.
        if self.is_finished() {
            let id = self.edges[index].peer.id.0;
            if self.study_record.ack_confirmed.insert(id) {
                self.store.append_acks(&self.study_record)?;
            }
            self.edges[index].closed |= mutual;
            self.confirm_ack(index);
        }
        Ok(())
    }

    /// Confirms a neighbour's acknowledgement if there is one, and once for each state.
    fn confirm_ack(&mut self, index: usize) {
        let id = self.edges[index].peer.id.0;
        let mutual = self.study_record.ack_confirmed.contains(&id);
        let acked = self.study_record.acked.contains(&id);
        if acked && self.edges[index].confirmation_sent != Some(mutual) {
            self.edges[index].confirmation_sent = Some(mutual);
            self.send(index, &Frame::AckConfirmed { mutual });
        }
    }

    /// Returns whether all iterations are done and every neighbour has acknowledged all values of this party.
    pub fn all_acked(&self) -> bool {
        self.is_finished() && self.all_in(&self.study_record.acked)
    }

    /// Returns whether, beyond [`all_acked`](Self::all_acked), every neighbour has confirmed this party's acknowledgement. Until
    /// then a neighbour may wait for this party.
    pub fn all_acks_confirmed(&self) -> bool {
        self.all_acked() && self.all_in(&self.study_record.ack_confirmed)
    }

    /// Returns whether, beyond [`all_acks_confirmed`](Self::all_acks_confirmed), every neighbour is known to have the last
    /// confirmation. That frame may be lost, so this may never become true.
    pub fn all_closed(&self) -> bool {
        self.edges.iter().all(|edge| edge.closed)
    }

    fn all_in(&self, parties: &BTreeSet<u32>) -> bool {
        let mut edges = self.edges.iter();
        edges.all(|edge| parties.contains(&edge.peer.id.0))
    }
}
