//! Everything that parties have ever said and been charged, as far as anybody could see it.

use std::collections::BTreeMap;

use radmm::graph::NodeId;
use radmm_node::machine::SignedMessage;
use radmm_node::store::{Charge, Store};

use crate::party_processes::PartyProcesses;

/// Opens the store of a party for reading, if the party has begun its study.
fn begun(parties: &PartyProcesses, party: usize) -> Option<Store> {
    let exists = parties.state_file(party).exists();
    let store = exists.then(|| parties.store(party));
    store.filter(|store| !store.studies().is_empty())
}

/// What was observed in the state folders of parties, over all their processes.
#[derive(Default, PartialEq)]
pub struct Observed {
    /// The message of each party and iteration, with its signature.
    said: BTreeMap<(usize, u32), Vec<u8>>,
    /// The charge of each party and data step.
    charges: BTreeMap<(usize, u32), Charge>,
}

impl Observed {
    /// Observes a party whose process has ended, and what its neighbours have received from it.
    ///
    /// Panics if something that was observed before is missing or has changed, if a neighbour has received what is not on record,
    /// or if an iteration was charged twice.
    // Privacy: what is visible is durable, and has one content.
    pub fn observe(&mut self, parties: &PartyProcesses, party: usize) {
        let (said, charges) = (self.said_by(party), self.charges_of(party));
        self.add_record(parties, party);
        let name = parties.name(party);
        for (key, bytes) in &said {
            assert_eq!(self.said.get(key), Some(bytes), "{name} said otherwise");
        }
        for (key, charge) in &charges {
            assert_eq!(self.charges.get(key), Some(charge), "{name}'s charge");
        }
        for neighbour in parties.neighbours(party) {
            let each = |signed: SignedMessage| {
                if signed.message.from == NodeId(party as u32) {
                    let key = (party, signed.message.iteration);
                    let bytes = Some(signed.to_bytes());
                    let said = self.said.get(&key).cloned();
                    assert_eq!(said, bytes, "{name} at {key:?}, by {neighbour}");
                }
                Ok(())
            };
            if let Some(store) = begun(parties, neighbour) {
                store.for_each_received(0, each).unwrap();
            }
        }
    }

    /// Replaces what is known of a party by what is on record.
    fn add_record(&mut self, parties: &PartyProcesses, party: usize) {
        self.said.retain(|(of, _), _| *of != party);
        self.charges.retain(|(of, _), _| *of != party);
        let Some(store) = begun(parties, party) else {
            return;
        };
        for charge in store.charges().unwrap() {
            let before = self.charges.insert((party, charge.iteration), charge);
            assert_eq!(before, None, "{} was charged twice", parties.name(party));
        }
        assert_eq!(store.studies().len(), 1);
        let misbehaviours = store.misbehaviours(0).unwrap();
        assert!(misbehaviours.is_empty(), "{misbehaviours:?}");
        let each = |signed: SignedMessage| {
            let key = (party, signed.message.iteration);
            let before = self.said.insert(key, signed.to_bytes());
            assert_eq!(before, None, "two messages at {key:?}");
            Ok(())
        };
        store.for_each_sent(0, each).unwrap();
    }

    fn said_by(&self, party: usize) -> BTreeMap<(usize, u32), Vec<u8>> {
        let own = self.said.iter().filter(|((of, _), _)| *of == party);
        own.map(|(key, bytes)| (*key, bytes.clone())).collect()
    }

    /// Returns the charges of a party, by iteration.
    pub fn charges_of(&self, party: usize) -> BTreeMap<(usize, u32), Charge> {
        let own = self.charges.iter().filter(|((of, _), _)| *of == party);
        own.map(|(key, charge)| (*key, *charge)).collect()
    }

    /// Observes all parties of a study that is over, whose processes have ended.
    pub fn observe_all(&mut self, parties: &PartyProcesses) {
        (0..parties.count()).for_each(|party| self.observe(parties, party));
        let iterations = parties.study().algorithm.iterations as usize;
        assert_eq!(self.said.len(), parties.count() * (iterations + 1));
    }

    /// Returns the steps that were charged, by party and iteration, with what they cost.
    pub fn schedule(&self) -> Vec<(usize, u32, String)> {
        let charges = self.charges.iter();
        // Fingerprints are salted in every folder.
        let entry = |((party, t), charge): (&(usize, u32), &Charge)| {
            (*party, *t, format!("{:?}", charge.event))
        };
        charges.map(entry).collect()
    }

    /// Returns all messages, by party and iteration.
    pub fn said(&self) -> &BTreeMap<(usize, u32), Vec<u8>> {
        &self.said
    }
}
