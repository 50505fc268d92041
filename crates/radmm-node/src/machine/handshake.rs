//! What neighbours say first on a link: who they are, what they hold, and how far each has come.

use std::mem;

use radmm_study::first_difference;

use super::party::{Halt, Party};
use crate::machine::frame::{Frame, Hello, PROTOCOL, Signed};
use crate::runtime::notice::Notice;

impl Party {
    pub(super) fn hello(&self, place: usize) -> Hello {
        Hello {
            version: PROTOCOL,
            study: self.digest,
            from: self.node.id(),
            at: self.node.iteration(),
            heard: self.edges[place].kept,
            seen: self.seen(place),
            probe: false,
        }
    }

    /// The last iteration of which a neighbour's value was seen.
    pub(super) fn seen(&self, place: usize) -> Option<u32> {
        let edge = &self.edges[place];
        let early = edge.early.as_ref().map(|early| early.message.iteration);
        let heard = edge.heard.as_ref().map(|_| self.node.iteration());
        early.or(heard).max(edge.kept)
    }

    /// What a neighbour said last.
    pub(super) fn last_of(&self, place: usize) -> Result<Option<Signed>, Halt> {
        let edge = &self.edges[place];
        let is_last = |signed: &&Signed| {
            let message = &signed.message;
            message.from == edge.peer.id && Some(message.iteration) == self.seen(place)
        };
        let recent = self.fresh.iter().chain(&edge.early).find(is_last);
        match (recent, edge.kept) {
            (Some(signed), _) => Ok(Some(signed.clone())),
            (None, Some(kept)) => Ok(self.store.heard(self.begun.number, kept, edge.peer.id)?),
            (None, None) => Ok(None),
        }
    }

    /// Whether these are this party's own words, of an iteration that it has no record of.
    pub(super) fn proves_forgotten(&self, place: usize, signed: &Signed) -> bool {
        let message = &signed.message;
        !self.edges[place].greeted
            && message.from == self.node.id()
            && message.iteration > self.node.iteration()
            && signed.is_by(&self.key.public(), &self.digest)
    }

    pub(super) fn greet(&mut self, place: usize, hello: Hello, bytes: &[u8]) -> Result<(), Halt> {
        if mem::replace(&mut self.edges[place].met, true) {
            // Everything that is due would be said anew.
            return self.lie(place, "a second greeting".to_owned(), &[bytes]);
        }
        if hello.version != PROTOCOL {
            let what = format!(
                "it speaks version {} of the protocol, and this program version {PROTOCOL}; all parties need the same version of radmm",
                hello.version
            );
            self.complain(place, what.clone());
            self.send(place, &Frame::Bye(what));
            self.close(place);
            return Ok(());
        }
        if hello.study != self.digest {
            // Whoever gets the other's study first names the difference; both do.
            let canonical = self.canonical.clone();
            self.send(place, &Frame::Study(canonical));
            return Ok(());
        }
        let known = hello.from == self.edges[place].peer.id;
        if !known || hello.at > self.iterations {
            let what = "a greeting that is not its own, or of an iteration beyond the last";
            return self.lie(place, what.to_owned(), &[bytes]);
        }
        if hello.probe {
            self.send(place, &Frame::Bye("it was only asked for".to_owned()));
            self.close(place);
            return Ok(());
        }
        let now = self.node.iteration();
        let after = |last: Option<u32>| last.map_or(0, |last| last.saturating_add(1));
        let known = after(hello.seen.max(hello.heard));
        // Privacy: everything that was said is on record, so this state is older than what was said, or lost and begun anew with
        // another secret. A neighbour that knows could say something else than before, and get a second answer that the
        // account does not know of.
        // Its word is not enough, or any neighbour could stop this party: it is not listened to until it shows our own.
        if known > now + 1 {
            return Ok(());
        }
        // The other way round: it is behind what it has said, and shown what that was.
        if self.seen(place) > Some(hello.at) {
            if let Some(proof) = self.last_of(place)? {
                self.send(place, &Frame::Say(proof));
            }
            return Ok(());
        }
        let edge = &mut self.edges[place];
        edge.greeted = true;
        edge.complaint = None;
        edge.at = hello.at;
        edge.next = after(hello.heard);
        let peer = edge.peer.name.clone();
        self.notices.push(Notice::Connected {
            peer,
            iteration: hello.at,
        });
        if self.is_finished() {
            self.acknowledge(place);
        }
        if hello.heard == Some(self.iterations) {
            self.served(place)?;
        }
        self.pump(place)
    }

    /// A neighbour shows its study, which is another one.
    pub(super) fn differs(&mut self, place: usize, theirs: &str) {
        let what = match first_difference(&self.canonical, theirs) {
            Some(difference) => format!(
                "{}: {} here, {} there; all parties need the same study",
                difference.key, difference.mine, difference.theirs
            ),
            None => "it says that its study is another one, and shows the same".to_owned(),
        };
        self.complain(place, what);
        self.close(place);
    }

    fn complain(&mut self, place: usize, what: String) {
        let edge = &mut self.edges[place];
        if edge.complaint.as_ref() != Some(&what) {
            edge.complaint = Some(what.clone());
            let peer = edge.peer.name.clone();
            self.notices.push(Notice::Disagrees { peer, what });
        }
    }
}
