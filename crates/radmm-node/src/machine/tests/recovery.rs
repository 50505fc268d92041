//! A party whose state diverged, was rolled back, or could not be persisted sends nothing.

use super::*;
use crate::store::{PendingStep, StoreError};

impl World {
    fn connected(topology: &str, secret: bool) -> Self {
        Self::connected_for(STUDY, topology, secret)
    }

    fn connected_for(study: &str, topology: &str, secret: bool) -> Self {
        let mut world = World::of(&on(topology, study), 1);
        if secret {
            world.secret_from_the_start();
        }
        for (a, b) in world.edges() {
            world.connect(a, b).unwrap();
        }
        world
    }

    fn alder(&self) -> &Party {
        self.hosts[0].party.as_ref().unwrap()
    }

    /// Runs until alder is at an iteration, or a party fails.
    fn until(&mut self, iteration: u32) -> Result<(), (u32, PartyError)> {
        for _ in 0..500 {
            for (a, b) in self.edges() {
                for (from, to) in [(a, b), (b, a)] {
                    if self.alder().iteration() >= iteration {
                        return Ok(());
                    }
                    self.deliver(from, to)?;
                }
            }
        }
        panic!("alder stays at {}", self.alder().iteration());
    }

    /// Restarts alder on another disk.
    fn restart_on(&mut self, disk: FaultyDisk) -> Result<(), PartyError> {
        self.hosts[0].party = None;
        self.hosts[0].disk = disk;
        for peer in [1, 4] {
            self.cut(0, peer);
        }
        self.open(0)?;
        for peer in [1, 4] {
            self.connect(0, peer).unwrap();
        }
        Ok(())
    }

    /// Returns the values of alder that are on wires.
    fn on_wires(&self) -> Vec<SignedMessage> {
        let mut found = Vec::new();
        for peer in [1, 4] {
            let Some((_, queue)) = self.wires.get(&(0, peer)) else {
                continue;
            };
            for bytes in queue.lock().unwrap().iter() {
                if let Ok(Frame::Value(signed)) = Frame::decode(bytes) {
                    found.push(signed);
                }
            }
        }
        found
    }

    /// Returns the values that alder has sent, by iteration.
    fn on_record(&self) -> Vec<SignedMessage> {
        let (store, study_record) = self.alder().store();
        let mut sent = Vec::new();
        let keep = |signed| {
            sent.push(signed);
            Ok(())
        };
        store.for_each_sent(study_record.number, keep).unwrap();
        sent
    }
}

#[test]
fn nothing_is_sent_before_it_is_durable() {
    let mut failures = 0;
    // A step is a write and a sync; there are two steps.
    for operations in (0..4).cycle().take(12) {
        let mut world = World::connected("ring", false);
        world.until(2).unwrap();
        let disk = world.hosts[0].disk.clone();
        disk.fail_after(operations);
        // Nothing is delivered from alder any more, so that everything it sends stays on the wires.
        let columns = world.hosts[0].shard.columns();
        let mut halted = false;
        'outer: for at in 2..4 {
            for from in [1, 4] {
                let key = SecretKey::from_pem(&world.hosts[from as usize].pem).unwrap();
                let message = Message {
                    from: NodeId(from),
                    iteration: at,
                    release: Release::from_units(vec![1 << 20; columns]).unwrap(),
                };
                let bytes = SignedMessage::new(message, &world.spoken(), &key).to_bytes();
                let (serial, _) = world.wires[&(0, from)];
                let event = LinkEvent::Frame {
                    peer: NodeId(from),
                    serial,
                    bytes,
                    credit: Credit::new(|| ()),
                };
                match world.hosts[0].party.as_mut().unwrap().handle(event) {
                    Ok(()) => {}
                    Err(PartyError::Store(_)) => {
                        halted = true;
                        break 'outer;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        failures += u32::from(halted);
        let on_wires = world.on_wires();
        world.hosts[0].party = None;
        let left = disk.after_power_failure(&mut world.rng);
        let store = Store::on(&left).unwrap();
        for signed in on_wires {
            let persisted = store.sent(0, signed.message.iteration).unwrap();
            assert_eq!(persisted, Some(signed), "after {operations} writes");
        }
    }
    assert!(failures > 6, "{failures}");
}

#[test]
fn a_party_that_lost_its_state_stops_before_it_answers_again() {
    let mut world = World::connected("ring", true);
    world.until(7).unwrap();
    world.restart_on(FaultyDisk::default()).unwrap();
    let (who, error) = world.until(9).unwrap_err();
    assert_eq!(who, 0);
    assert!(
        matches!(&error, PartyError::StateRolledBack { iteration, .. } if *iteration >= 5),
        "{error}"
    );
    assert!(world.on_wires().is_empty());
    assert!(world.alder().store().0.charges().unwrap().is_empty());
    // The proof is on record: it is not needed again.
    let (store, study) = world.alder().store();
    let (peer, iteration) = store.forgotten(study.number).unwrap();
    assert_eq!(error.to_string().split(' ').next(), Some(peer));
    assert!(iteration >= 5);
}

#[test]
fn a_party_whose_state_is_taken_away_sends_nothing_more_not_even_what_is_on_record() {
    let mut world = World::connected("ring", true);
    world.until(4).unwrap();
    world.cut(0, 1);
    world.hosts[0].disk.take_away();
    let (who, error) = world.connect(0, 1).unwrap_err();
    assert_eq!(who, 0);
    assert!(
        matches!(error, PartyError::Store(StoreError::Replaced(_))),
        "{error}"
    );
    assert!(
        world
            .on_wires()
            .iter()
            .all(|signed| signed.message.iteration <= 4)
    );
    let (_, queue) = &world.wires[&(0, 1)];
    assert!(queue.lock().unwrap().is_empty(), "it said hello");
}

#[test]
fn a_party_that_lost_its_first_answer_stops_although_no_peer_persisted_it() {
    let mut world = World::connected("ring", true);
    world.until(1).unwrap();
    // Both neighbours have received alder's first answer, and wait for other values before they persist it.
    for _ in 0..4 {
        for peer in [1, 4] {
            world.deliver(0, peer).unwrap();
            world.deliver(peer, 0).unwrap();
        }
    }
    assert!(world.sent.contains_key(&(0, 1)));
    world.restart_on(FaultyDisk::default()).unwrap();
    let (who, error) = world.until(2).unwrap_err();
    assert_eq!(who, 0);
    assert!(
        matches!(error, PartyError::StateRolledBack { iteration: 1, .. }),
        "{error}"
    );
    assert!(world.alder().store().0.charges().unwrap().is_empty());
}

#[test]
fn an_unproved_claim_of_rollback_stops_nobody() {
    let mut world = World::connected("ring", true);
    world.until(2).unwrap();
    world.cut(0, 1);
    world.connect(0, 1).unwrap();
    let hello = Hello {
        version: PROTOCOL,
        study: world.spoken(),
        from: NodeId(1),
        at: 8,
        persisted: Some(8),
        received: Some(8),
        probe: false,
    };
    let (serial, _) = world.wires[&(0, 1)];
    let event = LinkEvent::Frame {
        peer: NodeId(1),
        serial,
        bytes: Frame::Hello(hello).encode(),
        credit: Credit::new(|| ()),
    };
    let party = world.hosts[0].party.as_mut().unwrap();
    party.handle(event).unwrap();
    let (_, state) = party.peers().find(|(name, _)| *name == "birch").unwrap();
    assert_eq!(state, PeerState::Away);
    // With the true hello the study goes on.
    world.cut(0, 1);
    world.run(0);
}

#[test]
fn an_old_copy_of_the_state_stops_before_it_sends_other_values() {
    let mut world = World::connected("ring", true);
    world.until(2).unwrap();
    let copy = world.hosts[0].disk.after_kill();
    world.until(7).unwrap();
    let before = world.on_record();
    world.restart_on(copy).unwrap();
    // Birch pretends to have nothing, and sends another value than before, which would change alder's query.
    let columns = world.hosts[0].shard.columns();
    let hello = Hello {
        version: PROTOCOL,
        study: world.spoken(),
        from: NodeId(1),
        at: 9,
        persisted: None,
        received: None,
        probe: false,
    };
    let changed = value_of_birch(&world, 2, vec![0.5; columns]);
    let (serial, _) = world.wires[&(0, 1)];
    for bytes in [Frame::Hello(hello).encode(), changed] {
        let event = LinkEvent::Frame {
            peer: NodeId(1),
            serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        let party = world.hosts[0].party.as_mut().unwrap();
        party.handle(event).unwrap();
    }
    // Rowan is honest.
    let halted = (0..20).find_map(|_| {
        let (there, back) = (world.deliver(0, 4), world.deliver(4, 0));
        there.and(back).err()
    });
    let (who, error) = halted.unwrap();
    assert_eq!(who, 0);
    let text = error.to_string();
    assert!(
        text.starts_with("rowan shows that it has received this party's values up to iteration"),
        "{text}"
    );
    assert!(matches!(error, PartyError::StateRolledBack { .. }));
    let sent = world.on_wires();
    assert!(!sent.is_empty());
    for signed in sent {
        assert_eq!(before[signed.message.iteration as usize], signed);
    }
}

#[test]
fn an_up_to_date_copy_of_the_state_goes_on() {
    let mut world = World::connected("ring", true);
    world.until(4).unwrap();
    let copy = world.hosts[0].disk.after_kill();
    world.restart_on(copy).unwrap();
    world.run(0);
    world.assert_ledgers_are_the_plan();
}

#[test]
fn a_kill_after_any_record_changes_no_bit() {
    for study in studies() {
        let mut world = World::connected_for(&study, "ring", false);
        let undisturbed = world.undisturbed();
        // Alder is killed and restarted after each of its records.
        for iteration in 1..=world.study.algorithm.iterations {
            world.until(iteration).unwrap();
            let copy = world.hosts[0].disk.after_kill();
            world.restart_on(copy).unwrap();
            assert_eq!(world.alder().iteration(), iteration);
        }
        world.run(0);
        assert_eq!(world.models(), undisturbed, "{study}");
        world.assert_ledgers_are_the_plan();
    }
}

/// Returns a party like alder whose study may spend so much.
fn limited(
    world: &World,
    like: &StudyRecord,
    disk: &FaultyDisk,
    epsilon: f64,
) -> Result<Party, PartyError> {
    let study = &world.study;
    let host = &world.hosts[0];
    let mut store = Store::on(disk)?;
    let rows = store.row_fingerprint(&[0; 32]);
    let study_record = match store.studies().pop() {
        Some(record) => record,
        None => store.begin_study(|number| StudyRecord {
            number,
            ..like.clone()
        })?,
    };
    let budget = Budget::limited(epsilon, study.privacy.delta).unwrap();
    let charged_answers = store.charged_answers(study_record.number)?;
    let events = charged_answers.iter().map(|answer| answer.event);
    let ledger = Ledger::resumed(budget, study.privacy.bound, events).unwrap();
    let id = NodeId(0);
    let peers = world.graph.neighbours(id).iter().map(|id| Peer {
        id: *id,
        name: name_of(*id),
        key: world.study.parties[id.0 as usize].key.bytes(),
    });
    Party::open(PartyParts {
        study,
        graph: &world.graph,
        noise: world.noise(),
        node: node(study, &world.graph, id, &host.shard, ledger),
        peers: peers.collect(),
        key: SecretKey::from_pem(&host.pem).unwrap().into(),
        store,
        study_record,
        charged_answers,
        rows,
        account: None,
        stop_on_suspicion: false,
    })
}

#[test]
fn a_party_beyond_its_budget_stops_and_sends_nothing_more() {
    // The budget covers the first query, and no second one.
    let mut world = World::connected("ring", false);
    world.until(1).unwrap();
    let epsilon = world.alder().spent().epsilon * 1.001;
    let mut world = World::new("ring", 1);
    let disk = FaultyDisk::default();
    let study_record = world.alder().store().1.clone();
    // A restart ends the same way.
    for again in 0..2 {
        let party = limited(&world, &study_record, &disk, epsilon).unwrap();
        assert_eq!(party.iteration(), 2 * again);
        world.hosts[0].party = Some(party);
        for (a, b) in world.edges() {
            world.connect(a, b).unwrap();
        }
        let (who, error) = world.until(9).unwrap_err();
        assert_eq!(who, 0);
        let PartyError::Stopped(stop) = error else {
            panic!("{error}");
        };
        assert!(
            matches!(*stop, StopReason::Refused { iteration: 3, .. }),
            "{stop}"
        );
        let (store, _) = world.alder().store();
        assert_eq!(store.charges().unwrap().len(), 1);
        let latest = |sent: Vec<SignedMessage>| sent.iter().map(|one| one.message.iteration).max();
        assert_eq!(latest(world.on_record()), Some(2));
        assert!(latest(world.on_wires()) <= Some(2));
        assert!(!world.sent.contains_key(&(0, 3)));
        // The store must be closed before the disk is opened again.
        world.hosts[0].party = None;
    }
}

/// Returns alder's disk with its study rewritten after a change.
fn rewritten(world: &World, change: impl FnOnce(&mut PendingStep)) -> FaultyDisk {
    let (store, study_record) = world.alder().store();
    let mut step = PendingStep {
        charged: store.charged_answers(study_record.number).unwrap(),
        sent: world.on_record(),
        ..PendingStep::default()
    };
    let push = |signed| {
        step.received.push(signed);
        Ok(())
    };
    store.for_each_received(study_record.number, push).unwrap();
    change(&mut step);
    let disk = FaultyDisk::default();
    let mut copy = Store::on(&disk).unwrap();
    let rows = copy.row_fingerprint(&[0; 32]);
    let study_record = copy.begin_study(|number| StudyRecord {
        number,
        ..study_record.clone()
    });
    copy.append_step(&study_record.unwrap(), &rows, &step)
        .unwrap();
    disk
}

#[test]
fn a_state_whose_replay_diverges_is_not_opened() {
    for (study, until) in studies().into_iter().zip([4, 8, 8, 8]) {
        let world = World::connected_for(&study, "ring", false);
        assert_diverging_replays_are_not_opened(world, until);
    }
}

/// Changes alder's state, which holds two charges.
fn assert_diverging_replays_are_not_opened(mut world: World, until: u32) {
    world.until(until).unwrap();
    let at = world.alder().iteration();
    let second = world.data_steps()[1];
    let key = SecretKey::from_pem(&world.hosts[0].pem).unwrap();
    let digest = world.spoken();
    type Change<'a> = Box<dyn FnOnce(&mut PendingStep) + 'a>;
    let nudged = |release: &Release| {
        let mut units = release.units();
        units[0] += 1;
        Release::from_units(units).unwrap()
    };
    let changes: [(u32, Change<'_>); 3] = [
        (
            2,
            Box::new(|step| {
                let mut message = step.sent[2].message.clone();
                message.release = nudged(&message.release);
                step.sent[2] = SignedMessage::new(message, &digest, &key);
            }),
        ),
        // An answer to a query that was never asked.
        (
            at + 1,
            Box::new(|step| {
                let more = ChargedAnswer {
                    iteration: at + 1,
                    ..step.charged[1].clone()
                };
                step.charged.push(more);
            }),
        ),
        // A value of a party that is not a neighbour.
        (
            1,
            Box::new(|step| {
                let mut stranger = step.received[2].clone();
                stranger.message.from = NodeId(2);
                step.received.push(stranger);
            }),
        ),
    ];
    // An unchanged copy is opened.
    let same = rewritten(&world, |_| ());
    let other_answer = rewritten(&world, |step| {
        let answer = step.charged[1].answer.as_ref().unwrap();
        step.charged[1].answer = Some(nudged(answer));
    });
    let disks: Vec<(u32, FaultyDisk)> = changes
        .into_iter()
        .map(|(at, change)| (at, rewritten(&world, change)))
        .collect();
    world.restart_on(same).unwrap();
    assert_eq!(world.alder().iteration(), at);
    for (iteration, disk) in disks {
        let error = world.restart_on(disk).unwrap_err();
        assert!(
            matches!(error, PartyError::StateDiverged(found) if found == iteration),
            "{iteration}: {error}"
        );
    }
    // A changed minimiser is found by the curator, which computes it again; another answer by the value that follows from it.
    match world.restart_on(other_answer).unwrap_err() {
        PartyError::Stopped(stop) => assert!(
            matches!(*stop, StopReason::Refused { iteration, .. } if iteration == second),
            "{stop}"
        ),
        PartyError::StateDiverged(found) => assert_eq!(found, second),
        error => panic!("{error}"),
    }
}

/// A process that is killed between write and sync leaves a record that the next process finds in the memory of the operating
/// system. Values that the next process sends because of it must survive a power failure: otherwise a dishonest neighbour would get a
/// second answer to another query of the same iteration, and the account would hold one charge for both.
#[test]
fn a_restart_makes_an_unsynced_record_durable_before_it_sends() {
    let mut world = World::connected("ring", true);
    world.until(2).unwrap();
    let disk = world.hosts[0].disk.clone();
    // The write of the next step succeeds, and the sync fails.
    disk.fail_after(1);
    let (who, error) = world.until(3).unwrap_err();
    assert_eq!(who, 0);
    assert!(matches!(error, PartyError::Store(_)), "{error}");
    disk.heal();
    // Restarted on the same machine, which has not lost power.
    world.restart_on(disk.clone()).unwrap();
    for _ in 0..3 {
        for peer in [1, 4] {
            world.deliver(peer, 0).unwrap();
        }
    }
    let on_wires = world.on_wires();
    assert!(on_wires.iter().any(|signed| signed.message.iteration == 3));
    for _ in 0..50 {
        let left = disk.after_power_failure(&mut world.rng);
        let store = Store::on(&left).unwrap();
        for signed in &on_wires {
            let persisted = store.sent(0, signed.message.iteration).unwrap();
            assert!(
                persisted.is_some(),
                "iteration {} was sent, and its charge is lost: {} charges",
                signed.message.iteration,
                store.charges().unwrap().len()
            );
        }
    }
}
