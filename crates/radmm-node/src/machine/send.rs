//! What a party says: kept first, and to whom it is due.

use std::mem;

use radmm::node::Output;
use radmm::private::Recorded;

use super::party::{Halt, Party};
use crate::machine::frame::{Frame, Signed};
use crate::runtime::notice::Notice;
use crate::store::Step;

impl Party {
    /// Keeps what a node gives out, then says what it has to say. Where everything is on record already, only that it is the
    /// same is checked.
    pub(super) fn perform(&mut self, outputs: Vec<Output>) -> Result<(), Halt> {
        let study = self.begun.number;
        let mut step = Step::default();
        let mut stopped = None;
        for output in outputs {
            match output {
                Output::Record {
                    iteration,
                    event,
                    answer,
                } => step.charged.push(Recorded {
                    iteration,
                    event,
                    answer,
                }),
                Output::Broadcast(message) => {
                    let t = message.iteration;
                    let signed = match self.store.said(study, t)? {
                        Some(before) if before.message == message => before,
                        Some(_) => return Err(Halt::Astray(t)),
                        None => {
                            let signed = Signed::new(message, &self.digest, &self.key);
                            step.said.push(signed.clone());
                            signed
                        }
                    };
                    if self.said.len() == 2 {
                        self.said.pop_front();
                    }
                    self.said.push_back((t, signed.to_bytes()));
                }
                Output::Done(_) => {
                    step.finished = !self.begun.finished;
                }
                Output::Stopped(stop) => stopped = Some(stop),
            }
        }
        if !step.is_empty() {
            step.heard = mem::take(&mut self.fresh);
            // Privacy: durable before visible. Whatever fails here, nothing has been said.
            self.store.keep(&self.begun, &self.data, &step)?;
            for signed in &step.heard {
                if let Some(place) = self.place(signed.message.from) {
                    self.edges[place].kept = Some(signed.message.iteration);
                }
            }
            self.begun.finished |= step.finished;
        } else {
            self.fresh.clear();
        }
        if let Some(stop) = stopped {
            return Err(Halt::Stopped(Box::new(stop)));
        }
        let (spent, iterations) = (self.spent(), self.iterations);
        if step.finished {
            self.notices.push(Notice::Finished { iterations, spent });
            for place in 0..self.edges.len() {
                self.acknowledge(place);
            }
        } else if self.node.iteration() > 0 && !self.begun.finished {
            self.notices.push(Notice::Iterated {
                iteration: self.node.iteration(),
                iterations,
                kind: self.node.kind(),
                spent,
                consensus: self.consensus,
            });
        }
        for place in 0..self.edges.len() {
            self.pump(place)?;
        }
        Ok(())
    }

    /// Says to a neighbour what it needs and can take.
    pub(super) fn pump(&mut self, place: usize) -> Result<(), Halt> {
        loop {
            let edge = &self.edges[place];
            let t = edge.next;
            let ready =
                edge.greeted && t <= self.node.iteration() && t <= edge.at.saturating_add(1);
            if !ready {
                return Ok(());
            }
            let recent = self.said.iter().find(|(at, _)| *at == t);
            let bytes = match recent {
                Some((_, bytes)) => bytes.clone(),
                None => match self.store.said(self.begun.number, t)? {
                    Some(signed) => signed.to_bytes(),
                    // Not made yet: the node is in the middle of it.
                    None => return Ok(()),
                },
            };
            if !self.send_bytes(place, bytes) {
                return Ok(());
            }
            self.edges[place].next = t + 1;
        }
    }

    pub(super) fn acknowledge(&mut self, place: usize) {
        if self.edges[place].greeted {
            let through = self.iterations;
            self.send(place, &Frame::Ack { through });
        }
    }

    pub(super) fn send(&mut self, place: usize, frame: &Frame) -> bool {
        self.send_bytes(place, frame.encode())
    }

    pub(super) fn send_bytes(&mut self, place: usize, bytes: Vec<u8>) -> bool {
        let link = self.edges[place].link.as_ref();
        // Where it has gone, that is an event of its own, and comes after what was last said on it.
        link.is_some_and(|(_, link)| link.send(bytes))
    }

    pub(super) fn close(&mut self, place: usize) {
        let edge = &mut self.edges[place];
        edge.greeted = false;
        if let Some((_, link)) = edge.link.take() {
            link.close();
        }
    }
}
