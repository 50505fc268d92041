//! The messages of each party over all transcripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use radmm::graph::NodeId;
use radmm_study::Study;
use sha2::{Digest, Sha256};

use super::Fault;
use super::replay::ReplayedTranscript;
use crate::evidence::Transcript;
use crate::machine::write_release;

/// The signed messages of all transcripts so far, by sender and iteration: a hash of each, and the transcript that had it first.
#[derive(Default)]
pub(super) struct SentMessages(BTreeMap<(NodeId, u32), ([u8; 32], PathBuf, NodeId)>);

impl SentMessages {
    /// Adds the messages of a transcript; returns those that differ from another transcript's. Messages without a valid signature
    /// are ignored, since anybody can write them.
    pub(super) fn compare(
        &mut self,
        study: &Study,
        path: &Path,
        transcript: &Transcript,
        replay: &ReplayedTranscript,
    ) -> Vec<Fault> {
        let name = |id: NodeId| study.parties[id.0 as usize].name.as_str();
        let mut faults = Vec::new();
        for (&(t, from), signed) in &transcript.messages {
            if replay.forged.contains(&(t, from)) {
                continue;
            }
            let mut bytes = Vec::new();
            write_release(&mut bytes, &signed.message.release);
            let hash: [u8; 32] = Sha256::digest(&bytes).into();
            let entry = self.0.entry((from, t));
            let (before, file, of) = entry.or_insert((hash, path.to_owned(), transcript.node));
            if *before != hash {
                faults.push(Fault {
                    file: path.to_owned(),
                    party: Some(name(from).to_owned()),
                    iteration: Some(t),
                    what: format!(
                        "it sent two different values: one in the transcript of {} ({}), another in that of {}; both have its signature",
                        name(*of),
                        file.display(),
                        name(transcript.node)
                    ),
                });
            }
        }
        faults
    }

    /// Finds the first message of a party after an iteration; returns its iteration and who has it, in words.
    pub(super) fn after(&self, study: &Study, party: NodeId, end: u32) -> Option<(u32, String)> {
        let mut beyond = self.0.range((party, end)..=(party, u32::MAX));
        let (&(_, t), (_, file, of)) = beyond.find(|((_, t), _)| *t > end)?;
        let more = match beyond.count() {
            0 => String::new(),
            more => format!(", and {more} after it"),
        };
        let of = &study.parties[of.0 as usize].name;
        let holder = format!(
            "the transcript of {of} ({}) has this message, with its signature{more}",
            file.display()
        );
        Some((t, holder))
    }

    /// Checks that a transcript does not end before the last message that others received from its party. A party persists a value
    /// before it sends it, so that no honest transcript of a finished study does.
    pub(super) fn truncation(&self, study: &Study, replay: &ReplayedTranscript) -> Option<Fault> {
        let end = replay.summary.iterations;
        let (t, holder) = self.after(study, replay.node, end)?;
        Some(Fault {
            file: replay.file().clone(),
            party: Some(replay.checked.party.clone()),
            iteration: Some(t),
            what: format!("its own transcript ends at iteration {end}, and {holder}"),
        })
    }
}
