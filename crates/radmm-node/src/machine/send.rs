//! Frames to neighbours: persisted first, then sent to each neighbour when it is due.

use std::mem;

use radmm::curator::ChargedAnswer;
use radmm::node::{Output, StopReason};

use super::frame::{Frame, SignedMessage};
use super::party::{Party, PartyError};
use crate::runtime::Notice;
use crate::store::PendingStep;

impl Party {
    /// Persists the outputs of the node, then sends its value. Outputs that are on record already are only compared with it.
    pub(super) fn perform(&mut self, outputs: Vec<Output>) -> Result<(), PartyError> {
        let study = self.study_record.number;
        let mut step = PendingStep::default();
        let mut stopped = None;
        for output in outputs {
            match output {
                Output::Record {
                    iteration,
                    event,
                    answer,
                } => step.charged.push(ChargedAnswer {
                    iteration,
                    event,
                    answer,
                }),
                Output::Broadcast(message) => {
                    let t = message.iteration;
                    let signed = match self.store.sent(study, t)? {
                        Some(before) if before.message == message => before,
                        Some(_) => return Err(PartyError::StateDiverged(t)),
                        None => {
                            let signed = SignedMessage::new(message, &self.digest, &self.key);
                            step.sent.push(signed.clone());
                            signed
                        }
                    };
                    if self.recently_sent.len() == 2 {
                        self.recently_sent.pop_front();
                    }
                    self.recently_sent.push_back((t, signed.to_bytes()));
                }
                Output::Done(_) => {
                    step.finished = !self.study_record.finished;
                }
                Output::Stopped(stop) => stopped = Some(stop),
            }
        }
        let received = mem::take(&mut self.inbox);
        if !step.is_empty() {
            step.received = received;
        }
        let recorded = self.record(&step);
        // Privacy: that a party stops is seen as well, and it may stop because its disk or a worker failed at an answer.
        let has_failed = matches!(stopped, Some(StopReason::PassFailed { .. }));
        if !step.charged.is_empty() || has_failed {
            self.wait_for_tick();
        }
        recorded?;
        if let Some(stop) = stopped {
            return Err(PartyError::Stopped(Box::new(stop)));
        }
        if step.is_empty() {
            // A replay: everything is on record already, and nobody is connected.
            if self.node.iteration() > 0 {
                self.distances.push((self.node.iteration(), self.consensus));
            }
            return Ok(());
        }
        let (spent, iterations) = (self.spent(), self.iterations);
        if step.finished {
            self.notices.push(Notice::Finished { iterations, spent });
            for index in 0..self.edges.len() {
                self.send_ack(index);
            }
        } else if self.node.iteration() > 0 && !self.study_record.finished {
            self.notices.push(Notice::Iterated {
                iteration: self.node.iteration(),
                iterations,
                kind: self.node.kind(),
                spent,
                consensus: self.consensus,
            });
        }
        for index in 0..self.edges.len() {
            self.send_due_values(index)?;
        }
        Ok(())
    }

    /// Persists a step.
    // Privacy: durable before visible. Whatever fails here, nothing has been sent.
    fn record(&mut self, step: &PendingStep) -> Result<(), PartyError> {
        if step.is_empty() {
            return Ok(());
        }
        self.store
            .append_step(&self.study_record, &self.rows, step)?;
        for signed in &step.received {
            if let Some(index) = self.edge_of(signed.message.from) {
                self.edges[index].persisted = Some(signed.message.iteration);
            }
        }
        self.study_record.finished |= step.finished;
        Ok(())
    }

    /// Waits until an answer may leave.
    ///
    /// Privacy: the time of an answer depends on rows. Nothing that this party sends after it leaves before the tick, which does not.
    fn wait_for_tick(&mut self) {
        let ticks = self.pacer.as_mut().map_or(1, |pacer| pacer.wait());
        if ticks > 1 {
            let iteration = self.node.iteration();
            self.notices.push(Notice::Late { iteration, ticks });
        }
    }

    /// Sends to a neighbour the values that it lacks and would accept.
    pub(super) fn send_due_values(&mut self, index: usize) -> Result<(), PartyError> {
        loop {
            let edge = &self.edges[index];
            let t = edge.next;
            let due =
                edge.handshake_done && t <= self.node.iteration() && t <= edge.at.saturating_add(1);
            if !due {
                return Ok(());
            }
            let recent = self.recently_sent.iter().find(|(at, _)| *at == t);
            let bytes = match recent {
                Some((_, bytes)) => bytes.clone(),
                None => match self.store.sent(self.study_record.number, t)? {
                    Some(signed) => signed.to_bytes(),
                    // The node is still computing it.
                    None => return Ok(()),
                },
            };
            if !self.send_bytes(index, bytes) {
                return Ok(());
            }
            self.edges[index].next = t + 1;
        }
    }

    /// Acknowledges all values of a neighbour.
    pub(super) fn send_ack(&mut self, index: usize) {
        if self.edges[index].handshake_done {
            let through = self.iterations;
            self.send(index, &Frame::Ack { through });
        }
    }

    pub(super) fn send(&mut self, index: usize, frame: &Frame) -> bool {
        self.send_bytes(index, frame.encode())
    }

    fn send_bytes(&mut self, index: usize, bytes: Vec<u8>) -> bool {
        let link = self.edges[index].link.as_ref();
        // A link that is down is reported by an event of its own, after the last frame that arrived on it.
        link.is_some_and(|(_, link)| link.send(bytes))
    }

    pub(super) fn close_link(&mut self, index: usize) {
        let edge = &mut self.edges[index];
        edge.handshake_done = false;
        if let Some((_, link)) = edge.link.take() {
            link.close();
        }
    }
}
