//! The end, edge by edge.
//!
//! A neighbour that has everything says so. That is kept, so that this party, started again, need not wait for a neighbour that
//! has left; and it is told, so that the neighbour may leave. Who said the last word cannot know that it was heard, whatever is
//! added: whoever waits for one has everything already, and does not wait for ever.

use std::collections::BTreeSet;

use super::party::{Halt, Party};
use crate::machine::frame::Frame;

impl Party {
    /// A neighbour has everything. It may leave once it knows that this is on record here: otherwise this party, started again
    /// after the neighbour has left, would wait for it.
    pub(super) fn served(&mut self, place: usize) -> Result<(), Halt> {
        // Of what was not said yet, nobody can have everything.
        if self.node.iteration() == self.iterations {
            if self.begun.served.insert(self.edges[place].peer.id.0) {
                self.store.keep_ended(&self.begun)?;
            }
            self.note(place);
        }
        Ok(())
    }

    /// A neighbour knows that this party has everything of it.
    pub(super) fn assured(&mut self, place: usize, mutual: bool) -> Result<(), Halt> {
        // Who has not finished has not said so.
        if self.is_finished() {
            if self.begun.assured.insert(self.edges[place].peer.id.0) {
                self.store.keep_ended(&self.begun)?;
            }
            self.edges[place].parted |= mutual;
            self.note(place);
        }
        Ok(())
    }

    /// Tells a neighbour that it is known to have everything, if that is so, and once.
    fn note(&mut self, place: usize) {
        let id = self.edges[place].peer.id.0;
        let mutual = self.begun.assured.contains(&id);
        if self.begun.served.contains(&id) && self.edges[place].told != Some(mutual) {
            self.edges[place].told = Some(mutual);
            self.send(place, &Frame::Noted { mutual });
        }
    }

    /// Whether all iterations are done, and every neighbour has everything that this party will ever say.
    pub fn is_over(&self) -> bool {
        self.is_finished() && self.all_in(&self.begun.served)
    }

    /// Whether, beyond that, every neighbour knows that nothing of it is missing here. Until then one of them may wait for
    /// this party.
    pub fn is_settled(&self) -> bool {
        self.is_over() && self.all_in(&self.begun.assured)
    }

    /// Whether, beyond that, every neighbour is known to know that it may leave. What was last said to another one may be lost.
    pub fn has_parted(&self) -> bool {
        self.edges.iter().all(|edge| edge.parted)
    }

    fn all_in(&self, parties: &BTreeSet<u32>) -> bool {
        let mut edges = self.edges.iter();
        edges.all(|edge| parties.contains(&edge.peer.id.0))
    }
}
