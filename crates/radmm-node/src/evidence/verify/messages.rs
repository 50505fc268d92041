//! What all transcripts together have of one party.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use radmm::public::graph::NodeId;
use radmm_study::Study;
use sha2::{Digest, Sha256};

use super::Fault;
use super::replay::Course;
use crate::evidence::transcript::Transcript;
use crate::machine::frame::put_release;

/// What everybody said, by all transcripts so far: a hash of it, and in which it was seen first.
#[derive(Default)]
pub(super) struct Said(BTreeMap<(NodeId, u32), ([u8; 32], PathBuf, NodeId)>);

impl Said {
    /// Messages that this transcript and another one have otherwise. Only what is signed counts: anybody can write the rest.
    pub(super) fn compare(
        &mut self,
        study: &Study,
        path: &Path,
        transcript: &Transcript,
        course: &Course,
    ) -> Vec<Fault> {
        let name = |id: NodeId| study.parties[id.0 as usize].name.as_str();
        let mut faults = Vec::new();
        for (&(t, from), signed) in &transcript.messages {
            if course.forged.contains(&(t, from)) {
                continue;
            }
            let mut bytes = Vec::new();
            put_release(&mut bytes, &signed.message.release);
            let hash: [u8; 32] = Sha256::digest(&bytes).into();
            let entry = self.0.entry((from, t));
            let (before, file, of) = entry.or_insert((hash, path.to_owned(), transcript.node));
            if *before != hash {
                faults.push(Fault {
                    file: path.to_owned(),
                    party: Some(name(from).to_owned()),
                    iteration: Some(t),
                    what: format!(
                        "it said two different things: one in the transcript of {} ({}), another in that of {}; both have its signature",
                        name(*of),
                        file.display(),
                        name(transcript.node)
                    ),
                });
            }
        }
        faults
    }

    /// How far a party came by what others heard: the first message beyond an iteration, as it is told, and when that was.
    pub(super) fn after(&self, study: &Study, party: NodeId, end: u32) -> Option<(u32, String)> {
        let mut beyond = self.0.range((party, end)..=(party, u32::MAX));
        let (&(_, t), (_, file, of)) = beyond.find(|((_, t), _)| *t > end)?;
        let more = match beyond.count() {
            0 => String::new(),
            more => format!(", and {more} after it"),
        };
        let of = &study.parties[of.0 as usize].name;
        let told = format!(
            "the transcript of {of} ({}) has this message, with its signature{more}",
            file.display()
        );
        Some((t, told))
    }

    /// Whether a transcript ends before what others heard of its party. What a party said is on its record first, so that no
    /// honest one that was written when the study was over does.
    pub(super) fn beyond(&self, study: &Study, course: &Course) -> Option<Fault> {
        let end = course.summary.iterations;
        let (t, told) = self.after(study, course.node, end)?;
        Some(Fault {
            file: course.file().clone(),
            party: Some(course.checked.party.clone()),
            iteration: Some(t),
            what: format!("its own transcript ends at iteration {end}, and {told}"),
        })
    }
}
