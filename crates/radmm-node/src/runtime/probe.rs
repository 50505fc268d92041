//! Checks before a study starts whether the neighbours can be reached and hold the same study.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use radmm::graph::NodeId;
use radmm_study::first_difference;
use serde::Serialize;

use super::driver::{NodeError, transport_config};
use crate::machine::{Frame, Hello, Link, LinkEvent, PROTOCOL, noise_difference};
use crate::setup::PartySetup;
use crate::transport::{Transport, event_queue};

/// The result of probing a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "what", rename_all = "kebab-case")]
pub enum ProbeResult {
    /// The neighbour answers and holds the same study.
    Same,
    /// The neighbour answers and something is wrong.
    Wrong(String),
    /// The neighbour does not answer.
    Away(String),
    /// The neighbour has no address, and dials this party instead.
    Dials,
}

/// How long to wait for all answers.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Dials all neighbours that have an address; returns the result of each by name.
pub fn probe(setup: &PartySetup) -> Result<Vec<(String, ProbeResult)>, NodeError> {
    let mut config = transport_config(setup);
    config.listen = None;
    config
        .neighbours
        .retain(|neighbour| neighbour.address.is_some());
    let mut waiting = config.neighbours.len();
    let (sender, mut events) = event_queue();
    let transport = Transport::start(config, sender)?;
    let mut results: BTreeMap<NodeId, ProbeResult> = BTreeMap::new();
    let mut links: Vec<Box<dyn Link>> = Vec::new();
    let canonical = setup.study().canonical();
    let until = Instant::now() + TIMEOUT;
    while waiting > 0 {
        let patience = until.saturating_duration_since(Instant::now());
        let Some(event) = transport.next_event(&mut events, patience) else {
            break;
        };
        let (peer, result) = match event {
            LinkEvent::Up { link, .. } => {
                let hello = Hello {
                    version: PROTOCOL,
                    study: setup.study().spoken_digest(setup.site().noise),
                    from: setup.me(),
                    at: 0,
                    persisted: None,
                    received: None,
                    probe: true,
                };
                link.send(Frame::Hello(hello).encode());
                links.push(link);
                continue;
            }
            LinkEvent::Frame { peer, bytes, .. } => (peer, study_result(&canonical, setup, &bytes)),
            LinkEvent::Unreachable { peer, reason } => (peer, Some(ProbeResult::Away(reason))),
            LinkEvent::Down { peer, reason, .. } => (peer, Some(ProbeResult::Away(reason))),
            LinkEvent::Refused { .. } | LinkEvent::Stop => continue,
        };
        // The first result counts: a neighbour that has answered may hang up.
        if let (Some(result), Entry::Vacant(place)) = (result, results.entry(peer)) {
            place.insert(result);
            waiting -= 1;
        }
    }
    for link in links {
        link.close();
    }
    transport.shutdown();
    Ok(setup
        .neighbours()
        .map(|(peer, address)| {
            let no_answer = match address {
                Some(_) => ProbeResult::Away("no answer".to_owned()),
                None => ProbeResult::Dials,
            };
            (peer.name, results.remove(&peer.id).unwrap_or(no_answer))
        })
        .collect())
}

/// Returns what a frame tells about the study; `None` if a later frame will tell.
fn study_result(canonical: &str, setup: &PartySetup, bytes: &[u8]) -> Option<ProbeResult> {
    let spoken = |noise| setup.study().spoken_digest(noise);
    match Frame::decode(bytes) {
        Ok(Frame::Hello(hello)) if hello.version != PROTOCOL => Some(ProbeResult::Wrong(format!(
            "it speaks version {} of the protocol, and this program speaks version {PROTOCOL}",
            hello.version
        ))),
        Ok(Frame::Hello(hello)) if hello.study == spoken(setup.site().noise) => {
            Some(ProbeResult::Same)
        }
        Ok(Frame::Hello(hello)) if hello.study == spoken(setup.site().noise.other()) => {
            Some(ProbeResult::Wrong(noise_difference(setup.site().noise)))
        }
        // Its study follows in the next frame.
        Ok(Frame::Hello(_)) => None,
        Ok(Frame::Study(theirs)) => {
            let difference = first_difference(canonical, &theirs)?;
            Some(ProbeResult::Wrong(format!(
                "another study: {}: {} here, {} there",
                difference.key, difference.mine, difference.theirs
            )))
        }
        Ok(_) => None,
        Err(error) => Some(ProbeResult::Wrong(error.to_string())),
    }
}
