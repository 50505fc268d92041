//! Checks the values of a party without a transcript, as far as its neighbours' transcripts hold the messages that they follow from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use radmm::graph::{Graph, NodeId};
use radmm::protocol::release::Release;
use radmm_study::Study;
use radmm_study::instantiate::{self, Instance};

use super::replay::ReplayedTranscript;
use super::{Fault, VerifyError};
use crate::evidence::transcript::{Transcript, TranscriptError};
use crate::machine::{Finding, NeighbourVerifier};

/// The messages of a party and its neighbours, from the neighbours' transcripts.
#[derive(Default)]
struct Gathered {
    values: BTreeMap<(u32, NodeId), (Release, PathBuf)>,
    /// The messages of which there are two, which is reported elsewhere.
    ambiguous: BTreeSet<(u32, NodeId)>,
}

impl Gathered {
    fn add(&mut self, key: (u32, NodeId), value: &Release, file: &PathBuf) {
        let first = self.values.entry(key);
        let (before, _) = first.or_insert_with(|| (value.clone(), file.clone()));
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
    replayed: &[ReplayedTranscript],
) -> Result<Option<Fault>, VerifyError> {
    let around = graph.neighbours(party);
    let mut gathered = Gathered::default();
    for replay in replayed
        .iter()
        .filter(|replay| around.contains(&replay.node))
    {
        // One transcript at a time is in memory, and this one was readable before.
        let transcript = match Transcript::read(replay.file(), study, graph) {
            Ok(transcript) => transcript,
            Err(error @ TranscriptError::Open { .. }) => {
                return Err(VerifyError::Transcript(error));
            }
            Err(_) => continue,
        };
        for (&(t, from), signed) in &transcript.messages {
            let concerned = from == party || around.contains(&from);
            if concerned && !replay.forged.contains(&(t, from)) {
                gathered.add((t, from), &signed.message.release, replay.file());
            }
        }
    }
    let fault = |iteration: u32, file: &PathBuf, what: String| Fault {
        file: file.clone(),
        party: Some(study.parties[party.0 as usize].name.clone()),
        iteration: Some(iteration),
        what,
    };
    let Some((first, file)) = gathered.get(0, party) else {
        return Ok(None);
    };
    let start = instantiate::start(study, party, study.data.schema.width());
    if Release::rounded(&start).as_ref() != Some(first) {
        let what = "the value is not the study's initial one".to_owned();
        return Ok(Some(fault(0, file, what)));
    }
    let instance = Instance::declared(study, graph);
    let mut verifier = NeighbourVerifier::new(&instance, party, party, first.clone());
    for t in 0.. {
        let Some((next, file)) = gathered.get(t + 1, party) else {
            break;
        };
        verifier.close_iteration(|id| gathered.get(t, id).map(|(value, _)| value.clone()));
        match verifier.check(next) {
            Finding::Possible => {}
            Finding::Lost => break,
            Finding::Wrong { by_others } => {
                let mut what =
                    "the recycled value does not follow from the messages before it".to_owned();
                if by_others {
                    what += ", unless a neighbour sent it another value than its transcript has";
                }
                return Ok(Some(fault(t + 1, file, what)));
            }
        }
    }
    Ok(None)
}
