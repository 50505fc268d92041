//! What a party that was led astray, was set back, or cannot keep anything must not say.

use super::*;
use crate::store::Step;

impl World {
    fn connected(topology: &str, secret: bool) -> Self {
        let mut world = World::new(topology, 1);
        if secret {
            world.secret = true;
            for i in 0..5 {
                world.seats[i as usize].party = None;
                world.seats[i as usize].disk = Disk::default();
                world.open(i).unwrap();
            }
        }
        for (a, b) in world.edges() {
            world.connect(a, b).unwrap();
        }
        world
    }

    fn alder(&self) -> &Party {
        self.seats[0].party.as_ref().unwrap()
    }

    /// Goes on until alder is at an iteration, or somebody halts.
    fn until(&mut self, iteration: u32) -> Result<(), (u32, Halt)> {
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

    /// Alder begins again on another disk.
    fn set_back(&mut self, disk: Disk) -> Result<(), Halt> {
        self.seats[0].party = None;
        self.seats[0].disk = disk;
        for peer in [1, 4] {
            self.cut(0, peer);
        }
        self.open(0)?;
        for peer in [1, 4] {
            self.connect(0, peer).unwrap();
        }
        Ok(())
    }

    /// The values of alder that are on wires and that nobody has taken off yet.
    fn under_way(&self) -> Vec<Signed> {
        let mut found = Vec::new();
        for peer in [1, 4] {
            let Some((_, queue)) = self.wires.get(&(0, peer)) else {
                continue;
            };
            for bytes in queue.lock().unwrap().iter() {
                if let Ok(Frame::Say(signed)) = Frame::decode(bytes) {
                    found.push(signed);
                }
            }
        }
        found
    }

    /// What alder has said, by iteration.
    fn on_record(&self) -> Vec<Signed> {
        let (store, begun) = self.alder().store();
        let mut said = Vec::new();
        let keep = |signed| {
            said.push(signed);
            Ok(())
        };
        store.all_said(begun.number, keep).unwrap();
        said
    }
}

#[test]
fn nothing_is_on_a_wire_that_is_not_on_a_disk() {
    let mut failures = 0;
    // A step is a write, and the wait until it is on the disk; two steps are asked for.
    for operations in (0..4).cycle().take(12) {
        let mut world = World::connected("ring", false);
        world.until(2).unwrap();
        let disk = world.seats[0].disk.clone();
        disk.fail_after(operations);
        // Nobody takes anything of alder off a wire any more: what it says stays to be seen.
        let columns = world.seats[0].shard.columns();
        let mut halted = false;
        'outer: for at in 2..4 {
            for from in [1, 4] {
                let key = SecretKey::from_pem(&world.seats[from as usize].pem).unwrap();
                let message = Message {
                    from: NodeId(from),
                    iteration: at,
                    release: Release::on_grid(vec![1 << 20; columns]).unwrap(),
                };
                let bytes = Signed::new(message, &world.study.digest(), &key).to_bytes();
                let (serial, _) = world.wires[&(0, from)];
                let event = Event::Frame {
                    peer: NodeId(from),
                    serial,
                    bytes,
                    credit: Credit::new(|| ()),
                };
                match world.seats[0].party.as_mut().unwrap().handle(event) {
                    Ok(()) => {}
                    Err(Halt::Store(_)) => {
                        halted = true;
                        break 'outer;
                    }
                    Err(halt) => panic!("{halt}"),
                }
            }
        }
        failures += u32::from(halted);
        let under_way = world.under_way();
        world.seats[0].party = None;
        let left = disk.after_power_failure(&mut world.rng);
        let store = Store::on(Path::new("state"), left).unwrap();
        for signed in under_way {
            let kept = store.said(0, signed.message.iteration).unwrap();
            assert_eq!(kept, Some(signed), "after {operations} writes");
        }
    }
    assert!(failures > 6, "{failures}");
}

#[test]
fn who_lost_its_state_stops_before_it_answers_anew() {
    let mut world = World::connected("ring", true);
    world.until(7).unwrap();
    world.set_back(Disk::default()).unwrap();
    let (who, halt) = world.until(9).unwrap_err();
    assert_eq!(who, 0);
    assert!(
        matches!(&halt, Halt::Forgotten { heard, .. } if *heard >= 5),
        "{halt}"
    );
    assert!(world.under_way().is_empty());
    assert!(world.alder().store().0.charges().unwrap().is_empty());
}

#[test]
fn who_lost_its_first_answer_stops_though_nobody_has_kept_it() {
    let mut world = World::connected("ring", true);
    world.until(1).unwrap();
    // Both neighbours have seen alder's first answer, and wait for others before they keep it.
    for _ in 0..4 {
        for peer in [1, 4] {
            world.deliver(0, peer).unwrap();
            world.deliver(peer, 0).unwrap();
        }
    }
    assert!(world.said.contains_key(&(0, 1)));
    world.set_back(Disk::default()).unwrap();
    let (who, halt) = world.until(2).unwrap_err();
    assert_eq!(who, 0);
    assert!(matches!(halt, Halt::Forgotten { heard: 1, .. }), "{halt}");
    assert!(world.alder().store().0.charges().unwrap().is_empty());
}

#[test]
fn a_neighbour_that_only_says_so_stops_nobody() {
    let mut world = World::connected("ring", true);
    world.until(2).unwrap();
    world.cut(0, 1);
    world.connect(0, 1).unwrap();
    let hello = Hello {
        version: PROTOCOL,
        study: world.study.digest(),
        from: NodeId(1),
        at: 8,
        heard: Some(8),
        seen: Some(8),
        probe: false,
    };
    let (serial, _) = world.wires[&(0, 1)];
    let event = Event::Frame {
        peer: NodeId(1),
        serial,
        bytes: Frame::Hello(hello).encode(),
        credit: Credit::new(|| ()),
    };
    let party = world.seats[0].party.as_mut().unwrap();
    party.handle(event).unwrap();
    let (_, state) = party.peers().find(|(name, _)| *name == "birch").unwrap();
    assert_eq!(state, PeerState::Away);
    // With the truth all goes on.
    world.cut(0, 1);
    world.run(0);
}

#[test]
fn an_old_copy_of_a_disk_stops_before_it_says_anything_else() {
    let mut world = World::connected("ring", true);
    world.until(2).unwrap();
    let copy = world.seats[0].disk.after_kill();
    world.until(7).unwrap();
    let before = world.on_record();
    world.set_back(copy).unwrap();
    // Birch pretends to know of nothing, and says something else than before: alder would be asked something else.
    let columns = world.seats[0].shard.columns();
    let hello = Hello {
        version: PROTOCOL,
        study: world.study.digest(),
        from: NodeId(1),
        at: 9,
        heard: None,
        seen: None,
        probe: false,
    };
    let lie = said_by_birch(&world, 2, vec![0.5; columns]);
    let (serial, _) = world.wires[&(0, 1)];
    for bytes in [Frame::Hello(hello).encode(), lie] {
        let event = Event::Frame {
            peer: NodeId(1),
            serial,
            bytes,
            credit: Credit::new(|| ()),
        };
        let party = world.seats[0].party.as_mut().unwrap();
        party.handle(event).unwrap();
    }
    // Rowan is honest.
    let halted = (0..20).find_map(|_| {
        let (there, back) = (world.deliver(0, 4), world.deliver(4, 0));
        there.and(back).err()
    });
    let (who, halt) = halted.unwrap();
    assert_eq!(who, 0);
    let text = halt.to_string();
    assert!(
        text.starts_with("rowan shows that it has heard this party up to iteration"),
        "{text}"
    );
    assert!(matches!(halt, Halt::Forgotten { .. }));
    let said = world.under_way();
    assert!(!said.is_empty());
    for signed in said {
        assert_eq!(before[signed.message.iteration as usize], signed);
    }
}

#[test]
fn a_copy_that_is_as_new_as_what_was_said_goes_on() {
    let mut world = World::connected("ring", true);
    world.until(4).unwrap();
    let copy = world.seats[0].disk.after_kill();
    world.set_back(copy).unwrap();
    world.run(0);
    world.assert_ledgers_are_the_plan();
}

/// A party like alder whose study may spend so much.
fn limited(world: &World, like: &Begun, disk: &Disk, epsilon: f64) -> Result<Party, Halt> {
    let study = &world.study;
    let seat = &world.seats[0];
    let mut store = Store::on(Path::new("state"), disk.clone())?;
    let data = store.fingerprint(&[0; 32]);
    let begun = match store.studies().pop() {
        Some(begun) => begun,
        None => store.begin(|number| Begun {
            number,
            ..like.clone()
        })?,
    };
    let budget = Budget::limited(epsilon, study.privacy.delta).unwrap();
    let recorded = store.recorded(begun.number)?;
    let events = recorded.iter().map(|recorded| recorded.event);
    let ledger = Ledger::resumed(budget, study.privacy.bound, events).unwrap();
    let id = NodeId(0);
    let peers = world.graph.neighbours(id).iter().map(|id| Peer {
        id: *id,
        name: names(*id),
        key: world.study.parties[id.0 as usize].key.bytes(),
    });
    Party::open(Opening {
        study,
        graph: &world.graph,
        node: node(study, &world.graph, id, &seat.shard, ledger),
        peers: peers.collect(),
        key: SecretKey::from_pem(&seat.pem).unwrap(),
        store,
        begun,
        data,
        account: None,
    })
}

#[test]
fn a_party_that_may_not_answer_stops_and_says_nothing_more() {
    // What the first question costs is allowed, and no second one.
    let mut world = World::connected("ring", false);
    world.until(1).unwrap();
    let epsilon = world.alder().spent().epsilon * 1.001;
    let mut world = World::new("ring", 1);
    let disk = Disk::default();
    let begun = world.alder().store().1.clone();
    // Whoever starts it again comes to the same end.
    for again in 0..2 {
        let party = limited(&world, &begun, &disk, epsilon).unwrap();
        assert_eq!(party.iteration(), 2 * again);
        world.seats[0].party = Some(party);
        for (a, b) in world.edges() {
            world.connect(a, b).unwrap();
        }
        let (who, halt) = world.until(9).unwrap_err();
        assert_eq!(who, 0);
        let Halt::Stopped(stop) = halt else {
            panic!("{halt}");
        };
        assert!(
            matches!(*stop, Stop::Refused { iteration: 3, .. }),
            "{stop}"
        );
        let (store, _) = world.alder().store();
        assert_eq!(store.charges().unwrap().len(), 1);
        let latest = |said: Vec<Signed>| said.iter().map(|one| one.message.iteration).max();
        assert_eq!(latest(world.on_record()), Some(2));
        assert!(latest(world.under_way()) <= Some(2));
        assert!(!world.said.contains_key(&(0, 3)));
        // Its store is closed before its disk is read again.
        world.seats[0].party = None;
    }
}

/// Alder's disk with its study written anew, otherwise than it was.
fn rewritten(world: &World, change: impl FnOnce(&mut Step)) -> Disk {
    let (store, begun) = world.alder().store();
    let mut step = Step {
        charged: store.recorded(begun.number).unwrap(),
        said: world.on_record(),
        ..Step::default()
    };
    let heard = |signed| {
        step.heard.push(signed);
        Ok(())
    };
    store.all_heard(begun.number, heard).unwrap();
    change(&mut step);
    let disk = Disk::default();
    let mut copy = Store::on(Path::new("state"), disk.clone()).unwrap();
    let data = copy.fingerprint(&[0; 32]);
    let begun = copy.begin(|number| Begun {
        number,
        ..begun.clone()
    });
    copy.keep(&begun.unwrap(), &data, &step).unwrap();
    disk
}

#[test]
fn a_state_that_leads_elsewhere_than_to_what_was_said_is_not_opened() {
    let mut world = World::connected("ring", false);
    world.until(4).unwrap();
    let at = world.alder().iteration();
    let key = SecretKey::from_pem(&world.seats[0].pem).unwrap();
    let digest = world.study.digest();
    type Change<'a> = Box<dyn FnOnce(&mut Step) + 'a>;
    let nudged = |release: &Release| {
        let mut units = release.units().unwrap();
        units[0] += 1;
        Release::on_grid(units).unwrap()
    };
    let changes: [(u32, Change<'_>); 3] = [
        (
            2,
            Box::new(|step| {
                let mut message = step.said[2].message.clone();
                message.release = nudged(&message.release);
                step.said[2] = Signed::new(message, &digest, &key);
            }),
        ),
        // An answer to a question that was never asked.
        (
            5,
            Box::new(|step| {
                let more = Recorded {
                    iteration: 5,
                    ..step.charged[1].clone()
                };
                step.charged.push(more);
            }),
        ),
        // The word of somebody who is no neighbour.
        (
            1,
            Box::new(|step| {
                let mut stranger = step.heard[2].clone();
                stranger.message.from = NodeId(2);
                step.heard.push(stranger);
            }),
        ),
    ];
    // What was copied as it was is opened.
    let same = rewritten(&world, |_| ());
    let answered_otherwise = rewritten(&world, |step| {
        let answer = step.charged[1].answer.as_ref().unwrap();
        step.charged[1].answer = Some(nudged(answer));
    });
    let disks: Vec<(u32, Disk)> = changes
        .into_iter()
        .map(|(at, change)| (at, rewritten(&world, change)))
        .collect();
    world.set_back(same).unwrap();
    assert_eq!(world.alder().iteration(), at);
    for (iteration, disk) in disks {
        let halt = world.set_back(disk).unwrap_err();
        assert!(
            matches!(halt, Halt::Astray(found) if found == iteration),
            "{iteration}: {halt}"
        );
    }
    // An answer that these rows do not give is found by who gives them.
    let halt = world.set_back(answered_otherwise).unwrap_err();
    let Halt::Stopped(stop) = halt else {
        panic!("{halt}");
    };
    assert!(
        matches!(*stop, Stop::Refused { iteration: 3, .. }),
        "{stop}"
    );
}

/// A process that is killed after its write and before the disk has it leaves a record that the next one finds in the memory of
/// the operating system. What the next one says because of it must outlast a power failure: otherwise a neighbour that lies
/// would get a second answer to another question of the same iteration, and the account would hold one charge for both.
#[test]
fn who_goes_by_a_record_that_is_not_on_the_disk_yet_says_nothing_that_can_be_lost() {
    let mut world = World::connected("ring", true);
    world.until(2).unwrap();
    let disk = world.seats[0].disk.clone();
    // The write of the next step succeeds, and the wait for the disk does not.
    disk.fail_after(1);
    let (who, halt) = world.until(3).unwrap_err();
    assert_eq!(who, 0);
    assert!(matches!(halt, Halt::Store(_)), "{halt}");
    disk.heal();
    // Started again on the same machine, which has not lost power.
    world.set_back(disk.clone()).unwrap();
    for _ in 0..3 {
        for peer in [1, 4] {
            world.deliver(peer, 0).unwrap();
        }
    }
    let under_way = world.under_way();
    assert!(under_way.iter().any(|signed| signed.message.iteration == 3));
    for _ in 0..50 {
        let left = disk.after_power_failure(&mut world.rng);
        let store = Store::on(Path::new("state"), left).unwrap();
        for signed in &under_way {
            let kept = store.said(0, signed.message.iteration).unwrap();
            assert!(
                kept.is_some(),
                "iteration {} was said, and its charge is lost: {} charges",
                signed.message.iteration,
                store.charges().unwrap().len()
            );
        }
    }
}
