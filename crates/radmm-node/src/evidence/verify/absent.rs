//! Checks the values of a party without a transcript, as far as its neighbours' transcripts hold the messages that they follow from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::graph::{Graph, NodeId};
use radmm::protocol::release::Release;
use radmm_study::Study;
use radmm_study::instantiate::{self, Instance};

use super::replay::ReplayedTranscript;
use super::{Fault, VerifyError};
use crate::evidence::transcript::{Transcript, TranscriptError};
use crate::machine::{Finding, NeighbourVerifier, StudyLimits};

/// The messages of a party and its neighbours, from the neighbours' transcripts.
#[derive(Default)]
struct Gathered {
    values: BTreeMap<(u32, NodeId), (Release, PathBuf)>,
    /// The messages of which there are two, which is reported elsewhere.
    ambiguous: BTreeSet<(u32, NodeId)>,
}

impl Gathered {
    /// Adds the signed messages of a party and its neighbours from one transcript. One transcript at a time is in memory.
    fn add_all(
        &mut self,
        study: &Study,
        graph: &Graph,
        party: NodeId,
        replay: &ReplayedTranscript,
    ) -> Result<(), VerifyError> {
        let transcript = match Transcript::read(replay.file(), study, graph) {
            Ok(transcript) => transcript,
            Err(error @ TranscriptError::Open { .. }) => {
                return Err(VerifyError::Transcript(error));
            }
            // It was readable before.
            Err(TranscriptError::Line { .. }) => return Ok(()),
        };
        for (&(t, from), signed) in &transcript.messages {
            let concerned = from == party || graph.neighbours(party).contains(&from);
            if concerned && !replay.forged.contains(&(t, from)) {
                self.add((t, from), &signed.message.release, replay.file());
            }
        }
        Ok(())
    }

    fn add(&mut self, key: (u32, NodeId), value: &Release, file: &Path) {
        let first = self.values.entry(key);
        let (before, _) = first.or_insert_with(|| (value.clone(), file.to_owned()));
        if before != value {
            self.ambiguous.insert(key);
        }
    }

    fn get(&self, iteration: u32, from: NodeId) -> Option<&(Release, PathBuf)> {
        let key = (iteration, from);
        let found = self.values.get(&key);
        found.filter(|_| !self.ambiguous.contains(&key))
    }
}

/// Recomputes the values of a party without a transcript up to the first that does not follow.
pub(super) fn check(
    study: &Study,
    graph: &Graph,
    party: NodeId,
    limits: &Arc<StudyLimits>,
    replayed: &[ReplayedTranscript],
) -> Result<Option<Fault>, VerifyError> {
    let around = graph.neighbours(party);
    let mut gathered = Gathered::default();
    for replay in replayed {
        if around.contains(&replay.node) {
            gathered.add_all(study, graph, party, replay)?;
        }
    }
    let start = Release::rounded(&instantiate::start(study, party, study.data.schema.width()));
    let first = gathered.get(0, party).map(|(first, _)| first.clone());
    let Some(first) = first.filter(|first| Some(first) == start.as_ref()) else {
        // Another start is reported with the transcripts that have it.
        return Ok(None);
    };
    let instance = Instance::declared(study, graph);
    let mut verifier = NeighbourVerifier::new(&instance, limits.clone(), party, party, first);
    for t in 0.. {
        let Some((next, file)) = gathered.get(t + 1, party) else {
            break;
        };
        verifier.close_iteration(|id| gathered.get(t, id).map(|(value, _)| value.clone()));
        let (what, by_others) = match verifier.check(next) {
            Finding::Possible => continue,
            Finding::Lost => break,
            Finding::Wrong { by_others } => {
                let what = "the recycled value does not follow from the messages before it";
                (what.to_owned(), by_others)
            }
            Finding::Beyond { limit, by_others } => (
                format!("the value cannot be an honest party's: {limit}"),
                by_others,
            ),
        };
        let others = match by_others {
            false => "",
            true => ", unless a neighbour sent it another value than its transcript has",
        };
        return Ok(Some(Fault {
            file: file.clone(),
            party: Some(study.parties[party.0 as usize].name.clone()),
            iteration: Some(t + 1),
            what: what + others,
        }));
    }
    Ok(None)
}
