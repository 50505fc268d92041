//! Whether neighbours can be reached, and hold the same study: for who wants to know before anything begins.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use radmm::public::graph::NodeId;
use radmm_study::first_difference;
use serde::Serialize;

use crate::machine::frame::{Frame, Hello, PROTOCOL};
use crate::machine::link::{Event, Link};
use crate::runtime::driver::{RunError, settings};
use crate::setup::Premises;
use crate::transport::Network;

/// What a neighbour says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "what", rename_all = "kebab-case")]
pub enum Reached {
    /// It is there, and holds the same study.
    Same,
    /// It is there, and something is wrong.
    Wrong(String),
    /// It is not there now.
    Away(String),
    /// It has no address: it dials.
    Dials,
}

/// So long a neighbour may take.
const PATIENCE: Duration = Duration::from_secs(6);

/// Asks all neighbours that can be dialled.
pub fn probe(premises: &Premises) -> Result<Vec<(String, Reached)>, RunError> {
    let mut settings = settings(premises)?;
    settings.listen = None;
    settings
        .neighbours
        .retain(|neighbour| neighbour.address.is_some());
    let mut waiting = settings.neighbours.len();
    let (sender, events) = channel();
    let network = Network::start(settings, sender)?;
    let mut said: BTreeMap<NodeId, Reached> = BTreeMap::new();
    let mut links: Vec<Box<dyn Link>> = Vec::new();
    let canonical = premises.study().canonical();
    let until = Instant::now() + PATIENCE;
    while waiting > 0 {
        let Ok(event) = events.recv_timeout(until.saturating_duration_since(Instant::now())) else {
            break;
        };
        let (peer, verdict) = match event {
            Event::Up { link, .. } => {
                let hello = Hello {
                    version: PROTOCOL,
                    study: premises.study().digest(),
                    from: premises.me(),
                    at: 0,
                    heard: None,
                    seen: None,
                    probe: true,
                };
                link.send(Frame::Hello(hello).encode());
                links.push(link);
                continue;
            }
            Event::Frame { peer, bytes, .. } => (peer, verdict(&canonical, premises, &bytes)),
            Event::Unreachable { peer, reason } => (peer, Some(Reached::Away(reason))),
            Event::Down { peer, reason, .. } => (peer, Some(Reached::Away(reason))),
            Event::Refused { .. } | Event::Stop => continue,
        };
        // The first word counts: who has answered may hang up.
        if let (Some(verdict), Entry::Vacant(place)) = (verdict, said.entry(peer)) {
            place.insert(verdict);
            waiting -= 1;
        }
    }
    for link in links {
        link.close();
    }
    network.shutdown();
    Ok(premises
        .neighbours()
        .map(|(peer, address)| {
            let silent = match address {
                Some(_) => Reached::Away("no answer".to_owned()),
                None => Reached::Dials,
            };
            (peer.name, said.remove(&peer.id).unwrap_or(silent))
        })
        .collect())
}

/// What a frame says about the study; nothing if another one will.
fn verdict(canonical: &str, premises: &Premises, bytes: &[u8]) -> Option<Reached> {
    match Frame::decode(bytes) {
        Ok(Frame::Hello(hello)) if hello.version != PROTOCOL => Some(Reached::Wrong(format!(
            "it speaks version {} of the protocol, and this program version {PROTOCOL}",
            hello.version
        ))),
        Ok(Frame::Hello(hello)) if hello.study == premises.study().digest() => Some(Reached::Same),
        // Its study comes next.
        Ok(Frame::Hello(_)) => None,
        Ok(Frame::Study(theirs)) => {
            let difference = first_difference(canonical, &theirs)?;
            Some(Reached::Wrong(format!(
                "another study: {}: {} here, {} there",
                difference.key, difference.mine, difference.theirs
            )))
        }
        Ok(_) => None,
        Err(error) => Some(Reached::Wrong(error.to_string())),
    }
}
