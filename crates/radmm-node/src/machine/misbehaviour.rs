//! What cannot be right, and what comes of it.

use radmm::public::graph::NodeId;

use super::party::{Halt, Party};
use crate::machine::frame::Frame;
use crate::runtime::notice::Notice;
use crate::store::Evidence;

/// As many lies of a neighbour are told and kept; after that it is known for them.
const MOST_LIES: u32 = 20;

impl Party {
    /// Somebody said what cannot be right, and nothing came of it: the link ends, and a better one may begin.
    pub(super) fn lie(&mut self, place: usize, what: String, frames: &[&[u8]]) -> Result<(), Halt> {
        let edge = &mut self.edges[place];
        edge.lies += 1;
        if edge.lies <= MOST_LIES {
            let peer = edge.peer.name.clone();
            let evidence = evidence(edge.peer.id, &what, frames);
            self.notices.push(Notice::Lied {
                peer,
                what: what.clone(),
            });
            self.store.keep_evidence(self.begun.number, &evidence)?;
        }
        self.send(place, &Frame::Bye(format!("you said {what}")));
        self.close(place);
        Ok(())
    }

    pub(super) fn equivocation(
        &mut self,
        place: usize,
        iteration: u32,
        first: &[u8],
        second: &[u8],
    ) -> Result<(), Halt> {
        let what = format!("it sent two different values for iteration {iteration}");
        Err(self.caught(place, what, &[first, second]))
    }

    /// Somebody's word is worth nothing any more.
    pub(super) fn caught(&mut self, place: usize, what: String, frames: &[&[u8]]) -> Halt {
        let peer = self.edges[place].peer.name.clone();
        let evidence = evidence(self.edges[place].peer.id, &what, frames);
        self.notices.push(Notice::Lied {
            peer: peer.clone(),
            what: what.clone(),
        });
        for place in 0..self.edges.len() {
            self.close(place);
        }
        match self.store.keep_proof(self.begun.number, &evidence) {
            Ok(()) => Halt::Lied { peer, what },
            Err(error) => Halt::Store(error),
        }
    }
}

fn evidence(from: NodeId, what: &str, frames: &[&[u8]]) -> Evidence {
    let digits = |bytes: &&[u8]| {
        // A frame can be as long as a study; the first part of it shows what it was.
        let shown = &bytes[..bytes.len().min(1 << 16)];
        shown.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    Evidence {
        from: from.0,
        what: what.to_owned(),
        frames: frames.iter().map(digits).collect(),
    }
}
