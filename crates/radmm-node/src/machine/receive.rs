//! What neighbours say, and whether it can be right.

use radmm::message::Message;
use radmm::node::ProtocolError;
use radmm::private::Recorded;
use radmm::public::graph::NodeId;
use radmm::public::release::Release;

use super::party::{Edge, Halt, Party};
use crate::machine::frame::{Frame, Signed};

/// What became of a value.
pub(super) enum Taken {
    Fine,
    /// It cannot be right.
    Wrong(String),
}

impl Party {
    pub(super) fn frame(&mut self, place: usize, bytes: &[u8]) -> Result<(), Halt> {
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(malformed) => return self.lie(place, malformed.to_string(), &[bytes]),
        };
        match frame {
            Frame::Hello(hello) => self.greet(place, hello, bytes),
            Frame::Study(theirs) => {
                self.differs(place, &theirs);
                Ok(())
            }
            Frame::Say(own) if self.proves_forgotten(place, &own) => Err(Halt::Forgotten {
                peer: self.edges[place].peer.name.clone(),
                heard: own.message.iteration,
            }),
            Frame::Say(_) | Frame::Ack { .. } | Frame::Noted { .. }
                if !self.edges[place].greeted =>
            {
                let what = "it speaks without a greeting".to_owned();
                self.lie(place, what, &[bytes])
            }
            Frame::Say(signed) => self.hear(place, signed, bytes),
            Frame::Ack { through } => match through == self.iterations {
                true => self.served(place),
                false => Ok(()),
            },
            Frame::Noted { mutual } => self.assured(place, mutual),
            Frame::Bye(reason) => {
                self.lost(place, printable(&reason));
                self.close(place);
                Ok(())
            }
        }
    }

    /// A value of a neighbour.
    pub(super) fn hear(&mut self, place: usize, signed: Signed, bytes: &[u8]) -> Result<(), Halt> {
        let edge = &self.edges[place];
        let Message {
            from, iteration, ..
        } = signed.message;
        if from != edge.peer.id || !signed.is_by(&edge.peer.key, &self.digest) {
            let what = format!("a value for iteration {iteration} without its signature");
            return self.lie(place, what, &[bytes]);
        }
        let now = self.node.iteration();
        if !self.is_finished() && iteration == now && edge.heard.is_none() {
            let mut nothing = |_| None;
            match self.take(place, signed, &mut nothing)? {
                Taken::Fine => self.go_on()?,
                Taken::Wrong(what) => return self.lie(place, what, &[bytes]),
            }
        } else if iteration <= now {
            let before = self.store.heard(self.begun.number, iteration, from)?;
            let fresh = self
                .fresh
                .iter()
                .find(|one| one.message.from == from && one.message.iteration == iteration);
            let before = before.as_ref().or(fresh);
            if let Some(before) = before.filter(|before| before.message != signed.message) {
                let first = before.to_bytes();
                return self.equivocation(place, iteration, &first, bytes);
            }
        } else if iteration == now + 1 && iteration <= self.iterations {
            match &edge.early {
                Some(early) if early.message != signed.message => {
                    let first = early.to_bytes();
                    return self.equivocation(place, iteration, &first, bytes);
                }
                Some(_) => {}
                None => {
                    if let Some(what) = self.misshapen(&signed.message) {
                        return self.lie(place, what, &[bytes]);
                    }
                    self.edges[place].early = Some(signed);
                }
            }
        } else {
            let what = format!(
                "a value for iteration {iteration}, while this party is at {now} and it cannot be beyond {}",
                now + 1
            );
            return self.lie(place, what, &[bytes]);
        }
        let edge = &mut self.edges[place];
        edge.at = edge.at.max(iteration);
        self.pump(place)
    }

    /// What is wrong with the form of a value, if anything is.
    pub(super) fn misshapen(&self, message: &Message) -> Option<String> {
        let (columns, precision) = (
            self.node.curator().columns(),
            self.node.curator().precision(),
        );
        let got = message.release.values().len();
        let t = message.iteration;
        if got != columns {
            return Some(format!(
                "a vector of dimension {got} for iteration {t}; {columns} is right"
            ));
        }
        (message.release.precision() != precision)
            .then(|| format!("values for iteration {t} in another form than the study's precision"))
    }

    /// Takes in a value of this iteration, and goes on if it was the last one missing.
    pub(super) fn take(
        &mut self,
        place: usize,
        signed: Signed,
        record: &mut dyn FnMut(u32) -> Option<Recorded>,
    ) -> Result<Taken, Halt> {
        if let Some(what) = self.misshapen(&signed.message) {
            return Ok(Taken::Wrong(what));
        }
        let t = signed.message.iteration;
        let release = signed.message.release.clone();
        let edge = &mut self.edges[place];
        let follows = match t {
            0 => Some(release == edge.start),
            _ => edge
                .shadow
                .as_mut()
                .and_then(|shadow| shadow.agrees(&release)),
        };
        match follows {
            Some(true) => {}
            Some(false) => {
                let bytes = signed.to_bytes();
                let what = format!(
                    "its value of iteration {t} does not follow from the messages before it, or somebody who is a neighbour of both told it something else than us: everyone's transcripts (radmm verify) will tell which"
                );
                return Err(self.caught(place, what, &[&bytes]));
            }
            None if t > 0 => edge.shadow = None,
            None => {}
        }
        let outputs = match self.node.recall(signed.message.clone(), record) {
            Ok(outputs) => outputs,
            // The form was looked at before; what is left is out of turn.
            Err(error @ ProtocolError::Equivocation { .. }) => {
                return Err(self.caught(place, error.to_string(), &[&signed.to_bytes()]));
            }
            Err(error) => return Ok(Taken::Wrong(error.to_string())),
        };
        self.edges[place].heard = Some(release);
        self.fresh.push(signed);
        if !outputs.is_empty() {
            self.close_round();
            self.perform(outputs)?;
            self.own = self.node.model().clone();
        }
        Ok(Taken::Fine)
    }

    /// Everyone was heard: what neighbours must say next follows, and how far apart all are.
    pub(super) fn close_round(&mut self) {
        let me = self.node.id();
        let mut values: Vec<(NodeId, Release)> = Vec::with_capacity(self.edges.len() + 1);
        for edge in &mut self.edges {
            values.extend(edge.heard.take().map(|value| (edge.peer.id, value)));
        }
        let distance = |release: &Release| {
            let pairs = release.values().iter().zip(self.own.values());
            pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let apart = values.iter().map(|(_, value)| distance(value));
        self.consensus = apart.fold(0.0, f64::max);
        values.push((me, self.own.clone()));
        let value_of = |id: NodeId| {
            let found = values.iter().find(|(of, _)| *of == id);
            found.map(|(_, value)| value.clone())
        };
        for edge in &mut self.edges {
            if let Some(shadow) = &mut edge.shadow {
                shadow.close(value_of);
            }
        }
    }

    /// Takes in what came early, now that its time may have come.
    pub(super) fn go_on(&mut self) -> Result<(), Halt> {
        loop {
            let now = self.node.iteration();
            let due = |edge: &Edge| {
                let early = edge.early.as_ref();
                early.is_some_and(|early| early.message.iteration == now)
            };
            let Some(place) = self.edges.iter().position(due) else {
                return Ok(());
            };
            let Some(early) = self.edges[place].early.take() else {
                return Ok(());
            };
            let bytes = early.to_bytes();
            match self.take(place, early, &mut |_| None)? {
                Taken::Fine => {}
                Taken::Wrong(what) => self.lie(place, what, &[&bytes])?,
            }
        }
    }
}

/// What others write into our logs.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
