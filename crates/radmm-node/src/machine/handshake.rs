//! The handshake of a link: protocol version, study, and how far each side is.

use std::mem;

use radmm_study::{NoiseOrigin, first_difference};

use super::frame::{Frame, Hello, PROTOCOL, SignedMessage};
use super::party::{Party, PartyError};
use crate::public_key::PublicKey;
use crate::runtime::Notice;

impl Party {
    pub(super) fn hello(&self, index: usize) -> Hello {
        Hello {
            version: PROTOCOL,
            study: self.digest,
            from: self.node.id(),
            at: self.node.iteration(),
            persisted: self.edges[index].persisted,
            received: self.last_received(index),
            probe: false,
        }
    }

    /// Returns the last iteration of which a neighbour's value was received, persisted or not.
    fn last_received(&self, index: usize) -> Option<u32> {
        let edge = &self.edges[index];
        let early = edge.early.as_ref();
        let recent = early.or_else(|| self.in_inbox(edge.peer.id));
        recent
            .map(|signed| signed.message.iteration)
            .max(edge.persisted)
    }

    /// Returns the last value that was received from a neighbour.
    fn last_value_of(&self, index: usize) -> Result<Option<SignedMessage>, PartyError> {
        let edge = &self.edges[index];
        let is_last = |signed: &&SignedMessage| {
            let message = &signed.message;
            message.from == edge.peer.id && Some(message.iteration) == self.last_received(index)
        };
        let recent = self.inbox.iter().chain(&edge.early).find(is_last);
        let study = self.study_record.number;
        match (recent, edge.persisted) {
            (Some(signed), _) => Ok(Some(signed.clone())),
            (None, Some(t)) => Ok(self.store.received(study, t, edge.peer.id)?),
            (None, None) => Ok(None),
        }
    }

    /// Returns whether this is a value of this party's own, of an iteration that it has no record of.
    pub(super) fn proves_rollback(&self, index: usize, signed: &SignedMessage) -> bool {
        let message = &signed.message;
        !self.edges[index].handshake_done
            && message.from == self.node.id()
            && message.iteration > self.node.iteration()
            && signed.is_signed_by(&PublicKey::new(&self.key.public()), &self.digest)
    }

    pub(super) fn receive_hello(
        &mut self,
        index: usize,
        hello: Hello,
        bytes: &[u8],
    ) -> Result<(), PartyError> {
        if mem::replace(&mut self.edges[index].hello_received, true) {
            // Each hello makes this party send everything that is due again.
            return self.reject(index, "a second hello".to_owned(), &[bytes]);
        }
        if hello.version != PROTOCOL {
            let what = format!(
                "it speaks version {} of the protocol, and this program version {PROTOCOL}; all parties need the same version of radmm",
                hello.version
            );
            self.report_disagreement(index, what.clone());
            self.send(index, &Frame::Bye(what));
            self.close_link(index);
            return Ok(());
        }
        if hello.study == self.other_digest {
            let what = noise_difference(self.noise);
            self.report_disagreement(index, what);
            self.send(index, &Frame::Bye("it has other noise".to_owned()));
            self.close_link(index);
            return Ok(());
        }
        if hello.study != self.digest {
            // Both sides show their study, and both name the first difference.
            let canonical = self.canonical.clone();
            self.send(index, &Frame::Study(canonical));
            return Ok(());
        }
        let from_peer = hello.from == self.edges[index].peer.id;
        if !from_peer || hello.at > self.iterations {
            let what = "a hello in another party's name, or of an iteration beyond the last";
            return self.reject(index, what.to_owned(), &[bytes]);
        }
        if hello.probe {
            self.send(index, &Frame::Bye("it answered a probe".to_owned()));
            self.close_link(index);
            return Ok(());
        }
        let now = self.node.iteration();
        let after = |last: Option<u32>| last.map_or(0, |last| last.saturating_add(1));
        // Privacy: everything that was sent is on record, so a neighbour that has more shows that this state is older than what was
        // sent, or was lost and begun anew with another secret. Such a neighbour could send other values than before, and get a
        // second answer that the account does not know of.
        // Its claim is not enough, or any neighbour could stop this party: it is ignored until it shows our own signed value.
        if after(hello.received.max(hello.persisted)) > now + 1 {
            return Ok(());
        }
        // Conversely, a neighbour that is behind what it has sent is shown its own signed value.
        if self.last_received(index) > Some(hello.at) {
            if let Some(proof) = self.last_value_of(index)? {
                self.send(index, &Frame::Value(proof));
            }
            return Ok(());
        }
        let edge = &mut self.edges[index];
        edge.handshake_done = true;
        edge.disagreement = None;
        edge.early_ends = 0;
        edge.at = hello.at;
        edge.next = after(hello.persisted);
        let peer = edge.peer.name.clone();
        self.notices.push(Notice::Connected {
            peer,
            iteration: hello.at,
        });
        if self.is_finished() {
            self.send_ack(index);
        }
        if hello.persisted == Some(self.iterations) {
            self.receive_ack(index)?;
        }
        self.send_due_values(index)
    }

    /// Handles a neighbour's study, which differs from this party's.
    pub(super) fn receive_study(&mut self, index: usize, theirs: &str) {
        let what = match first_difference(&self.canonical, theirs) {
            Some(difference) => format!(
                "{}: {} here, {} there; all parties need the same study",
                difference.key, difference.mine, difference.theirs
            ),
            None => {
                "its hello names another study, and the study that it shows is the same".to_owned()
            }
        };
        self.report_disagreement(index, what);
        self.close_link(index);
    }

    fn report_disagreement(&mut self, index: usize, what: String) {
        let edge = &mut self.edges[index];
        if edge.disagreement.as_ref() != Some(&what) {
            edge.disagreement = Some(what.clone());
            let peer = edge.peer.name.clone();
            self.notices.push(Notice::Disagrees { peer, what });
        }
    }
}

/// Returns the difference between a party with this noise and a neighbour with the other, of the same study.
pub(crate) fn noise_difference(mine: NoiseOrigin) -> String {
    format!(
        "noise: {:?} here, {:?} there; a rehearsal and a run in earnest do not mix, so that all site files need the same noise",
        mine.name(),
        mine.other().name()
    )
}
