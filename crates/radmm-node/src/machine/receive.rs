//! Frames of neighbours: decoding, signatures, order, equivocation.

use radmm::curator::ChargedAnswer;
use radmm::graph::NodeId;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use radmm_study::foreign_text::quoted;

use super::frame::{Frame, SignedMessage};
use super::neighbour_verifier::Finding;
use super::party::{EdgeState, Party, PartyError};

/// The verdict on a value of this iteration.
pub(super) enum Verdict {
    Accepted,
    /// The value cannot be right, for this reason.
    Rejected(String),
}

impl Party {
    pub(super) fn receive_frame(&mut self, index: usize, bytes: &[u8]) -> Result<(), PartyError> {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(malformed) => return self.reject(index, malformed.to_string(), &[bytes]),
        };
        match frame {
            Frame::Hello(hello) => self.receive_hello(index, hello, bytes),
            Frame::Study(theirs) => {
                self.receive_study(index, &theirs);
                Ok(())
            }
            Frame::Value(own) if self.proves_rollback(index, &own) => {
                let peer = self.edges[index].peer.name.clone();
                let (study, iteration) = (self.study_record.number, own.message.iteration);
                // Privacy: the next start may find only neighbours who keep it to themselves.
                self.store.append_forgotten(study, &peer, iteration)?;
                Err(PartyError::StateRolledBack { peer, iteration })
            }
            Frame::Value(_) | Frame::Ack { .. } | Frame::AckConfirmed { .. }
                if !self.edges[index].handshake_done =>
            {
                self.reject(index, "a frame before its hello".to_owned(), &[bytes])
            }
            Frame::Value(signed) => self.receive_value(index, signed, bytes),
            Frame::Ack { through } => match through == self.iterations {
                true => self.receive_ack(index),
                false => Ok(()),
            },
            Frame::AckConfirmed { mutual } => self.receive_ack_confirmed(index, mutual),
            Frame::Bye(reason) => {
                self.report_disconnect(index, format!("it says {}", quoted(&reason)));
                self.close_link(index);
                Ok(())
            }
        }
    }

    /// Handles a value of a neighbour.
    fn receive_value(
        &mut self,
        index: usize,
        signed: SignedMessage,
        bytes: &[u8],
    ) -> Result<(), PartyError> {
        let edge = &self.edges[index];
        let Message {
            from, iteration, ..
        } = signed.message;
        if from != edge.peer.id || !signed.is_signed_by(&edge.key, &self.digest) {
            let what = format!("a value for iteration {iteration} without its signature");
            return self.reject(index, what, &[bytes]);
        }
        let (now, due) = (self.node.iteration(), edge.due);
        let in_inbox = self.in_inbox(from);
        if !self.is_finished() && iteration == now && in_inbox.is_none() {
            match self.accept(index, signed, &mut |_| None)? {
                Verdict::Accepted => self.accept_early()?,
                Verdict::Rejected(what) => return self.reject(index, what, &[bytes]),
            }
        } else if iteration <= now {
            let study = self.study_record.number;
            let persisted = self.store.received(study, iteration, from)?;
            let in_inbox = in_inbox.filter(|before| before.message.iteration == iteration);
            let before = persisted.as_ref().or(in_inbox);
            if let Some(before) = before.filter(|before| before.message != signed.message) {
                let first = before.to_bytes();
                return Err(self.equivocation(index, iteration, &first, bytes));
            }
            if iteration < due {
                return self.reject_replay(index, iteration, bytes);
            }
        } else if iteration == now + 1 && iteration <= self.iterations {
            match &edge.early {
                Some(early) if early.message != signed.message => {
                    let first = early.to_bytes();
                    return Err(self.equivocation(index, iteration, &first, bytes));
                }
                Some(_) if iteration < due => {
                    return self.reject_replay(index, iteration, bytes);
                }
                Some(_) => {}
                None => {
                    if let Some(what) = self.invalid_form(&signed.message) {
                        return self.reject(index, what, &[bytes]);
                    }
                    self.edges[index].early = Some(signed);
                }
            }
        } else {
            let what = format!(
                "a value for iteration {iteration}, while this party is at {now} and no neighbour can be beyond {}",
                now + 1
            );
            return self.reject(index, what, &[bytes]);
        }
        let edge = &mut self.edges[index];
        edge.at = edge.at.max(iteration);
        edge.due = edge.due.max(iteration + 1);
        self.send_due_values(index)
    }

    /// Rejects a value that the neighbour has sent before on this link, or that our hello said to be persisted.
    ///
    /// No honest neighbour sends one, whatever was in flight: it sends values on a link only after it has read our hello there,
    /// from the iteration after the persisted one onwards, each once and in order. (A value that we had received on an earlier
    /// link, and had not persisted when we said hello, it must send again.)
    fn reject_replay(
        &mut self,
        index: usize,
        iteration: u32,
        bytes: &[u8],
    ) -> Result<(), PartyError> {
        let what = format!(
            "a value for iteration {iteration} again, which it had sent on this link, or had been told that we keep"
        );
        self.reject(index, what, &[bytes])
    }

    /// Returns the reason for which the form of a value is invalid, if it is.
    fn invalid_form(&self, message: &Message) -> Option<String> {
        let got = message.release.values().len();
        let t = message.iteration;
        let width = self.node.width(t);
        (got != width)
            .then(|| format!("a vector of dimension {got} for iteration {t}; expected {width}"))
    }

    /// Accepts a value of this iteration unless it cannot be right, and advances the node if it was the last one missing.
    pub(super) fn accept(
        &mut self,
        index: usize,
        signed: SignedMessage,
        recall: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Result<Verdict, PartyError> {
        if let Some(what) = self.invalid_form(&signed.message) {
            return Ok(Verdict::Rejected(what));
        }
        let t = signed.message.iteration;
        let now = self.node.iteration();
        if t != now || self.in_inbox(signed.message.from).is_some() {
            let what = format!("a value for iteration {t}; expected one for iteration {now}");
            return Ok(Verdict::Rejected(what));
        }
        let value = &signed.message.release;
        let edge = &mut self.edges[index];
        let finding = match (t, edge.verifier.as_mut()) {
            (0, _) if *value != edge.start => Finding::Wrong { by_others: false },
            (0, _) | (_, None) => Finding::Possible,
            (_, Some(verifier)) => verifier.check(value),
        };
        let (mut what, by_others) = match finding {
            Finding::Possible => (String::new(), false),
            Finding::Lost => {
                edge.verifier = None;
                (String::new(), false)
            }
            Finding::Wrong { by_others } => {
                let what = format!(
                    "its value of iteration {t} does not follow from the messages before it"
                );
                (what, by_others)
            }
            Finding::Beyond { limit, by_others } => {
                let what =
                    format!("its value of iteration {t} cannot be an honest party's: {limit}");
                (what, by_others)
            }
        };
        if !what.is_empty() {
            if by_others {
                what += ", or somebody who is a neighbour of both sent it other values than us: everyone's transcripts (radmm verify) will tell which";
            }
            return Err(self.proved_dishonest(index, what, &[&signed.to_bytes()]));
        }
        if self.node.is_common(t) && *value != self.own {
            return Err(self.not_common(index, &signed)?);
        }
        self.inbox.push(signed);
        if self.inbox.len() == self.edges.len() {
            self.watch_values()?;
            if let Some(pacer) = &mut self.pacer {
                pacer.start();
            }
            let value = |id: &NodeId| Some(self.in_inbox(*id)?.message.release.clone());
            // The inbox holds one value of this iteration for every neighbour.
            let values = self.node.neighbours().iter().filter_map(value).collect();
            let outputs = self.node.advance_with(values, recall);
            self.close_iteration();
            self.perform(outputs)?;
            self.own = self.node.released().clone();
        }
        Ok(Verdict::Accepted)
    }

    /// Derives from a full inbox the values that neighbours must send next, and how far apart all are.
    fn close_iteration(&mut self) {
        let distance = |release: &Release| {
            let pairs = release.values().iter().zip(self.own.values());
            pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let closed = self
            .inbox
            .first()
            .map_or(0, |signed| signed.message.iteration);
        if self.node.releases_model() || self.node.is_common(closed) {
            let releases = self.inbox.iter().map(|signed| &signed.message.release);
            self.consensus = releases.map(distance).fold(0.0, f64::max);
        }
        let value_of = |id: NodeId| match id == self.node.id() {
            true => Some(self.own.clone()),
            false => {
                let mut values = self.inbox.iter().map(|signed| &signed.message);
                let found = values.find(|message| message.from == id);
                found.map(|message| message.release.clone())
            }
        };
        for edge in &mut self.edges {
            if let Some(verifier) = &mut edge.verifier {
                verifier.close_iteration(value_of);
            }
        }
    }

    /// Accepts the values that came early and are of this iteration now.
    fn accept_early(&mut self) -> Result<(), PartyError> {
        loop {
            let now = self.node.iteration();
            let is_due = |edge: &EdgeState| {
                let early = edge.early.as_ref();
                early.is_some_and(|early| early.message.iteration == now)
            };
            let Some(index) = self.edges.iter().position(is_due) else {
                return Ok(());
            };
            let Some(early) = self.edges[index].early.take() else {
                return Ok(());
            };
            let bytes = early.to_bytes();
            match self.accept(index, early, &mut |_| None)? {
                Verdict::Accepted => {}
                Verdict::Rejected(what) => self.reject(index, what, &[&bytes])?,
            }
        }
    }
}
