//! Frames of dishonest neighbours, which must be rejected or stop the party.

use super::*;

/// Returns alder between birch and rowan, which send only what a test sends with their keys.
fn alder() -> World {
    let mut world = World::new("ring", 1);
    for peer in [1, 4] {
        world.connect(0, peer).unwrap();
    }
    world
}

fn party(world: &mut World) -> &mut Party {
    world.hosts[0].party.as_mut().unwrap()
}

/// Sends a frame to alder.
fn send(world: &mut World, from: u32, bytes: Vec<u8>) -> Result<(), PartyError> {
    let (serial, _) = world.wires[&(0, from)];
    party(world).handle(LinkEvent::Frame {
        peer: NodeId(from),
        serial,
        bytes,
        credit: Credit::new(|| ()),
    })
}

fn hello(world: &World, from: u32) -> Hello {
    Hello {
        version: PROTOCOL,
        study: world.spoken(),
        from: NodeId(from),
        at: 0,
        persisted: None,
        received: None,
        probe: false,
    }
}

fn send_hello(world: &mut World, from: u32) {
    let hello = Frame::Hello(hello(world, from));
    send(world, from, hello.encode()).unwrap();
}

/// Returns the signed start of a party, which is public.
fn start(world: &World, of: u32) -> Vec<u8> {
    let columns = world.hosts[0].shard.columns();
    value(
        world,
        of,
        0,
        instantiate::start(&world.study, NodeId(of), columns),
    )
}

fn value(world: &World, from: u32, iteration: u32, values: Vec<f64>) -> Vec<u8> {
    value_in(&world.spoken(), world, from, iteration, values)
}

fn value_in(study: &[u8; 32], world: &World, from: u32, at: u32, values: Vec<f64>) -> Vec<u8> {
    let key = SecretKey::from_pem(&world.hosts[from as usize].pem).unwrap();
    let message = Message {
        from: NodeId(from),
        iteration: at,
        release: Release::rounded(&values).unwrap(),
    };
    SignedMessage::new(message, study, &key).to_bytes()
}

/// Returns a model with equal coordinates.
fn flat(world: &World, value: f64) -> Vec<f64> {
    vec![value; world.hosts[0].shard.columns()]
}

/// Returns the frames that alder has sent to a neighbour.
fn sent_to(world: &World, to: u32) -> Vec<Frame> {
    let (_, queue) = &world.wires[&(0, to)];
    let queue = queue.lock().unwrap();
    queue
        .iter()
        .map(|bytes| Frame::decode(bytes).unwrap())
        .collect()
}

fn is_value(frame: &Frame) -> bool {
    matches!(frame, Frame::Value(_))
}

fn is_charged(world: &World) -> bool {
    let (store, _) = world.hosts[0].party.as_ref().unwrap().store();
    !store.charges().unwrap().is_empty()
}

/// Asserts that two values for one iteration stop the party, and that both are kept.
fn assert_equivocation_is_caught(
    mut world: World,
    first: Vec<u8>,
    second: Vec<u8>,
    iteration: u32,
) {
    send(&mut world, 1, first.clone()).unwrap();
    let text = send(&mut world, 1, second.clone()).unwrap_err().to_string();
    let expected =
        format!("birch misbehaves: it sent two different values for iteration {iteration}");
    assert!(text.starts_with(&expected), "{text}");
    let (store, study_record) = party(&mut world).store();
    let evidence = store.misbehaviours(study_record.number).unwrap();
    let both = [first, second].map(|frame| radmm_study::hex::encode(&frame));
    assert_eq!(evidence[0].frames, both);
}

#[test]
fn equivocation_is_caught_where_the_first_value_came_early() {
    let mut world = alder();
    send_hello(&mut world, 1);
    let begin = start(&world, 1);
    send(&mut world, 1, begin).unwrap();
    let [first, second] = [0.25, 0.5].map(|v| value(&world, 1, 1, flat(&world, v)));
    assert_eq!(party(&mut world).iteration(), 0);
    assert_equivocation_is_caught(world, first, second, 1);
}

#[test]
fn equivocation_is_caught_where_the_first_value_is_not_persisted_yet() {
    // While rowan's value is missing, birch's is not persisted: neither its start nor its value of the next iteration.
    let mut world = alder();
    send_hello(&mut world, 1);
    let (first, second) = (start(&world, 1), value(&world, 1, 0, flat(&world, SPACING)));
    assert_equivocation_is_caught(world, first, second, 0);

    let mut world = alder();
    for peer in [1, 4] {
        send_hello(&mut world, peer);
        let begin = start(&world, peer);
        send(&mut world, peer, begin).unwrap();
    }
    assert_eq!(party(&mut world).iteration(), 1);
    let [first, second] = [0.25, 0.5].map(|v| value(&world, 1, 1, flat(&world, v)));
    assert_equivocation_is_caught(world, first, second, 1);
}

/// Returns the record of the last invalid frame that alder keeps.
fn last_evidence(world: &mut World) -> crate::store::MisbehaviourRecord {
    let (store, record) = party(world).store();
    store.misbehaviours(record.number).unwrap().pop().unwrap()
}

#[test]
fn a_value_that_was_sent_before_or_is_known_to_be_kept_is_misbehaviour() {
    let replayed = |iteration: u32| {
        format!(
            "birch: a value for iteration {iteration} again, which it had sent on this link, or had been told that we keep"
        )
    };
    // Twice on one link: a value of this iteration, and an early one.
    for early in [false, true] {
        let mut world = alder();
        send_hello(&mut world, 1);
        let mut bytes = start(&world, 1);
        if early {
            send(&mut world, 1, bytes).unwrap();
            bytes = value(&world, 1, 1, flat(&world, 0.25));
        }
        send(&mut world, 1, bytes.clone()).unwrap();
        assert!(misbehaviours(&mut world).is_empty());
        send(&mut world, 1, bytes.clone()).unwrap();
        let expected = replayed(u32::from(early));
        assert_eq!(misbehaviours(&mut world), [expected]);
        let kept = last_evidence(&mut world);
        assert_eq!(kept.party, "birch");
        assert_eq!(kept.frames, [radmm_study::hex::encode(&bytes)]);
        // The link is closed. On another one the neighbour must send again what alder has not persisted.
        world.connect(0, 1).unwrap();
        let again = Hello {
            at: u32::from(early),
            ..hello(&world, 1)
        };
        send(&mut world, 1, Frame::Hello(again).encode()).unwrap();
        let begin = start(&world, 1);
        send(&mut world, 1, begin).unwrap();
        if early {
            send(&mut world, 1, bytes).unwrap();
        }
        assert!(misbehaviours(&mut world).is_empty());
    }
    // A value that alder has persisted, and said so.
    let mut world = alder();
    for peer in [1, 4] {
        send_hello(&mut world, peer);
        let begin = start(&world, peer);
        send(&mut world, peer, begin).unwrap();
    }
    assert_eq!(party(&mut world).iteration(), 1);
    for _ in 0..3 {
        world.cut(0, 1);
        world.connect(0, 1).unwrap();
        send_hello(&mut world, 1);
        let begin = start(&world, 1);
        send(&mut world, 1, begin).unwrap();
        assert_eq!(misbehaviours(&mut world), [replayed(0)]);
    }
    // Another value than before is worse.
    world.connect(0, 1).unwrap();
    send_hello(&mut world, 1);
    let other = value(&world, 1, 0, flat(&world, SPACING));
    let text = send(&mut world, 1, other).unwrap_err().to_string();
    assert!(
        text.contains("two different values for iteration 0"),
        "{text}"
    );
}

#[test]
fn a_start_that_is_not_the_public_one_stops_the_party() {
    let mut world = alder();
    send_hello(&mut world, 1);
    let mut values = instantiate::start(&world.study, NodeId(1), world.hosts[0].shard.columns());
    values[0] += SPACING;
    let begin = value(&world, 1, 0, values);
    let error = send(&mut world, 1, begin).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("birch misbehaves: its value of iteration 0 does not follow"),
        "{text}"
    );
    assert!(!is_charged(&world));
}

#[test]
fn an_invalid_hello_is_rejected() {
    type Change = fn(&mut Hello);
    let changes: [Change; 2] = [|hello| hello.from = NodeId(4), |hello| hello.at = 10];
    for change in changes {
        let mut world = alder();
        let mut invalid = hello(&world, 1);
        change(&mut invalid);
        send(&mut world, 1, Frame::Hello(invalid).encode()).unwrap();
        let reported = misbehaviours(&mut world);
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].starts_with("birch: a hello in another party's name"),
            "{reported:?}"
        );
        assert!(matches!(
            sent_to(&world, 1)[..],
            [Frame::Hello(_), Frame::Bye(_)]
        ));
        // The link is closed; further frames on it are ignored.
        let begin = start(&world, 1);
        send(&mut world, 1, begin).unwrap();
        assert!(
            party(&mut world)
                .peers()
                .all(|(_, state)| state == PeerState::Away)
        );
    }
    // The last iteration is valid.
    let mut world = alder();
    let last = Hello {
        at: 9,
        ..hello(&world, 1)
    };
    send(&mut world, 1, Frame::Hello(last).encode()).unwrap();
    assert!(misbehaviours(&mut world).is_empty());
}

#[test]
fn frames_before_a_hello_are_rejected() {
    let mut world = alder();
    send_hello(&mut world, 4);
    for of in [1, 4] {
        let begin = start(&world, of);
        send(&mut world, of, begin).unwrap();
    }
    assert_eq!(
        misbehaviours(&mut world),
        ["birch: a frame before its hello"]
    );
    assert!(!sent_to(&world, 1).iter().any(is_value));
    assert_eq!(party(&mut world).iteration(), 0);
    assert!(!is_charged(&world));
    let ack = Frame::Ack { through: 9 }.encode();
    world.connect(0, 1).unwrap();
    send(&mut world, 1, ack).unwrap();
    assert_eq!(
        misbehaviours(&mut world),
        ["birch: a frame before its hello"]
    );
    let birch = party(&mut world).peers().next().unwrap();
    assert_eq!(birch, ("birch", PeerState::Away));
}

#[test]
fn a_neighbour_with_another_study_is_sent_ours_and_no_value() {
    let mut world = alder();
    let mut other = world.study.clone();
    other.algorithm.iterations = 8;
    let theirs = Hello {
        study: other.digest(),
        ..hello(&world, 1)
    };
    send(&mut world, 1, Frame::Hello(theirs).encode()).unwrap();
    let canonical = world.study.canonical();
    let frames = sent_to(&world, 1);
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert_eq!(frames[1], Frame::Study(canonical));
    // It shows its own, and the link is closed.
    send(&mut world, 1, Frame::Study(other.canonical()).encode()).unwrap();
    let notices = party(&mut world).take_notices();
    let difference = |notice: &Notice| match notice {
        Notice::Disagrees { peer, what } => peer == "birch" && what.contains("9 here, 8 there"),
        _ => false,
    };
    assert!(notices.iter().any(difference), "{notices:?}");
    let birch = party(&mut world).peers().next().unwrap();
    assert_eq!(birch, ("birch", PeerState::Disagrees));

    // If it sends values all the same, they are rejected.
    let mut world = alder();
    send(&mut world, 1, Frame::Hello(theirs).encode()).unwrap();
    let begin = start(&world, 1);
    send(&mut world, 1, begin).unwrap();
    assert_eq!(
        misbehaviours(&mut world),
        ["birch: a frame before its hello"]
    );
    assert!(!sent_to(&world, 1).iter().any(is_value));
}

#[test]
fn a_neighbour_with_other_noise_is_told_so_and_gets_no_value() {
    let mut world = alder();
    let earnest = Hello {
        study: world.study.spoken_digest(NoiseOrigin::Secret),
        ..hello(&world, 1)
    };
    send(&mut world, 1, Frame::Hello(earnest).encode()).unwrap();
    let notices = party(&mut world).take_notices();
    let noise = |notice: &Notice| match notice {
        Notice::Disagrees { peer, what } => {
            peer == "birch" && what.starts_with("noise: \"seeded\" here, \"secret\" there")
        }
        _ => false,
    };
    assert!(notices.iter().any(noise), "{notices:?}");
    assert!(matches!(
        sent_to(&world, 1)[..],
        [Frame::Hello(_), Frame::Bye(_)]
    ));
    let birch = party(&mut world).peers().next().unwrap();
    assert_eq!(birch, ("birch", PeerState::Disagrees));
}

#[test]
fn what_was_signed_in_a_rehearsal_is_rejected_in_earnest_and_the_other_way_round() {
    for secret in [false, true] {
        let mut world = World::new("ring", 1);
        if secret {
            world.secret_from_the_start();
        }
        world.connect(0, 1).unwrap();
        send_hello(&mut world, 1);
        let columns = world.hosts[0].shard.columns();
        let begin = instantiate::start(&world.study, NodeId(1), columns);
        let other = world.study.spoken_digest(world.noise().other());
        let replayed = value_in(&other, &world, 1, 0, begin);
        send(&mut world, 1, replayed).unwrap();
        let caught = "birch: a value for iteration 0 without its signature";
        assert_eq!(misbehaviours(&mut world), [caught]);
    }
}

#[test]
fn a_signature_for_another_study_sender_or_iteration_is_rejected() {
    let mut world = alder();
    let columns = world.hosts[0].shard.columns();
    let begin = instantiate::start(&world.study, NodeId(1), columns);
    let of_other_study = value_in(&[7; 32], &world, 1, 0, begin);
    // Rowan's genuine value, and one that birch signs in rowan's name.
    let rowans = start(&world, 4);
    let mut message = SignedMessage::from_bytes(&rowans).unwrap().message;
    let key = SecretKey::from_pem(&world.hosts[1].pem).unwrap();
    let in_rowans_name = SignedMessage::new(message.clone(), &world.spoken(), &key).to_bytes();
    // Birch's signature over the same value for another iteration.
    message.from = NodeId(1);
    let mut moved = SignedMessage::new(message, &world.spoken(), &key);
    moved.message.iteration = 1;
    let cases = [
        (of_other_study, 0),
        (rowans, 0),
        (in_rowans_name, 0),
        (moved.to_bytes(), 1),
    ];
    for (bytes, iteration) in cases {
        world.connect(0, 1).unwrap();
        send_hello(&mut world, 1);
        send(&mut world, 1, bytes).unwrap();
        let caught = format!("birch: a value for iteration {iteration} without its signature");
        assert_eq!(misbehaviours(&mut world), [caught]);
        let received = |(_, state)| state == PeerState::Received;
        assert!(!party(&mut world).peers().any(received));
    }
}

/// Returns a world where alder has finished, and birch's acknowledgement has not been delivered.
fn finished() -> World {
    let mut world = World::new("ring", 1);
    for (a, b) in world.edges() {
        world.connect(a, b).unwrap();
    }
    for _ in 0..2000 {
        for (a, b) in world.edges() {
            for (from, to) in [(a, b), (b, a)] {
                if party(&mut world).is_finished() {
                    return world;
                }
                world.deliver(from, to).unwrap();
            }
        }
    }
    panic!("alder does not finish");
}

#[test]
fn repeated_acks_cause_at_most_two_replies_and_records() {
    let mut world = finished();
    let confirmations = |world: &World, to| {
        let is_confirmation = |frame: &Frame| matches!(frame, Frame::AckConfirmed { .. });
        sent_to(world, to)
            .into_iter()
            .filter(is_confirmation)
            .count()
    };
    let (before, used) = (confirmations(&world, 1), world.hosts[0].disk.used());
    for k in 0..500 {
        for frame in [
            Frame::Ack { through: 9 },
            Frame::Ack { through: 8 },
            Frame::AckConfirmed { mutual: k % 2 == 0 },
            Frame::AckConfirmed { mutual: true },
        ] {
            send(&mut world, 1, frame.encode()).unwrap();
        }
    }
    assert!(confirmations(&world, 1) - before <= 2);
    assert!(world.hosts[0].disk.used() - used <= 4 * 1024);
    // All have acknowledged only if rowan has too.
    let (_, study_record) = party(&mut world).store();
    let rowan = study_record.acked.contains(&4);
    assert_eq!(party(&mut world).all_acked(), rowan);
    assert!(!party(&mut world).all_closed());
}

/// Sends a frame to alder as birch. Returns alder's replies, and whether it is on record that birch has acknowledged, and that birch
/// has confirmed alder's acknowledgement.
fn reply(world: &mut World, frame: &Frame) -> (Vec<Frame>, (bool, bool)) {
    let before = sent_to(world, 1).len();
    send(world, 1, frame.encode()).unwrap();
    let (_, study_record) = party(world).store();
    let record = (
        study_record.acked.contains(&1),
        study_record.ack_confirmed.contains(&1),
    );
    (sent_to(world, 1).split_off(before), record)
}

#[test]
fn an_ack_is_confirmed_and_later_confirmed_as_mutual() {
    let mut world = finished();
    let confirmed = |mutual: bool| Frame::AckConfirmed { mutual };
    let got = reply(&mut world, &Frame::Ack { through: 9 });
    assert_eq!(got, (vec![confirmed(false)], (true, false)));
    let got = reply(&mut world, &confirmed(false));
    assert_eq!(got, (vec![confirmed(true)], (true, true)));
    assert_eq!(reply(&mut world, &confirmed(true)), (vec![], (true, true)));
}

#[test]
fn an_ack_is_confirmed_only_once_it_is_on_record() {
    let mut world = finished();
    let send_as_birch = |world: &mut World, frame: Frame| reply(world, &frame);
    // It confirms alder's acknowledgement, and sends none itself.
    let confirmed = |mutual: bool| Frame::AckConfirmed { mutual };
    assert_eq!(
        send_as_birch(&mut world, confirmed(false)),
        (vec![], (false, true))
    );
    // It acknowledges some values.
    let some = Frame::Ack { through: 8 };
    assert_eq!(send_as_birch(&mut world, some), (vec![], (false, true)));
    let all = Frame::Ack { through: 9 };
    let got = send_as_birch(&mut world, all.clone());
    assert_eq!(got, (vec![confirmed(true)], (true, true)));
    assert_eq!(send_as_birch(&mut world, all), (vec![], (true, true)));
    // The edge is closed when birch confirms that both are on record.
    let closed = |world: &mut World| party(world).edges[0].closed;
    send_as_birch(&mut world, confirmed(false));
    assert!(!closed(&mut world));
    send_as_birch(&mut world, confirmed(true));
    assert!(closed(&mut world));
    // On another link everything is confirmed again.
    world.cut(0, 1);
    world.connect(0, 1).unwrap();
    let again = Frame::Hello(Hello {
        at: 9,
        persisted: Some(9),
        received: Some(9),
        ..hello(&world, 1)
    });
    send(&mut world, 1, again.encode()).unwrap();
    let frames = sent_to(&world, 1);
    let last = Frame::Ack { through: 9 };
    assert!(
        matches!(&frames[..], [Frame::Hello(_), ack, note] if *ack == last && *note == confirmed(true)),
        "{frames:?}"
    );
}

#[test]
fn acks_before_the_end_change_nothing() {
    let mut world = alder();
    send_hello(&mut world, 1);
    let used = world.hosts[0].disk.used();
    for frame in [
        Frame::Ack { through: 9 },
        Frame::AckConfirmed { mutual: false },
        Frame::AckConfirmed { mutual: true },
    ] {
        send(&mut world, 1, frame.encode()).unwrap();
    }
    let (_, study_record) = party(&mut world).store();
    assert!(study_record.acked.is_empty() && study_record.ack_confirmed.is_empty());
    assert_eq!(world.hosts[0].disk.used(), used);
    let is_confirmation = |frame: &Frame| matches!(frame, Frame::AckConfirmed { .. });
    assert!(!sent_to(&world, 1).iter().any(is_confirmation));
}

#[test]
fn undisturbed_parties_close_all_edges_and_then_send_nothing() {
    for topology in ["ring", "star", "complete", "path"] {
        let mut world = World::new(topology, 1);
        for (a, b) in world.edges() {
            world.connect(a, b).unwrap();
        }
        let mut quiet = false;
        for _ in 0..2000 {
            quiet = true;
            for (a, b) in world.edges() {
                for (from, to) in [(a, b), (b, a)] {
                    quiet &= !world.deliver(from, to).unwrap();
                }
            }
            if quiet {
                break;
            }
        }
        assert!(quiet, "{topology}: they send for ever");
        for host in &world.hosts {
            let party = host.party.as_ref().unwrap();
            assert!(
                party.all_acks_confirmed() && party.all_closed(),
                "{topology}"
            );
        }
        // A restarted party knows that its acknowledgements are confirmed.
        for i in 0..5 {
            world.kill(i);
            world.open(i).unwrap();
            assert!(
                world.hosts[i as usize]
                    .party
                    .as_ref()
                    .unwrap()
                    .all_acks_confirmed()
            );
        }
    }
}

#[test]
fn a_second_hello_on_a_link_closes_it() {
    let mut world = finished();
    let before = sent_to(&world, 1).len();
    let hello = Frame::Hello(Hello {
        at: 9,
        ..hello(&world, 1)
    });
    for _ in 0..100 {
        send(&mut world, 1, hello.encode()).unwrap();
    }
    // One bye with the reason, and nothing on the closed link.
    let frames = sent_to(&world, 1).split_off(before);
    assert!(matches!(&frames[..], [Frame::Bye(why)] if why.contains("a second hello")));
}

/// Runs a study of sums along a tree in which a party lies at an iteration. Returns the names of those that halted for it, by the
/// name of the party that they accuse, and whether it may have been another.
fn accusations(topology: &str, liar: u32, at: u32) -> Vec<(u32, u32, bool)> {
    let mut found = Vec::new();
    for metric in ["none", "gram"] {
        let text = on(topology, &consensus(metric));
        let mut world = World::with_liar(&text, 1, Some((liar, at)));
        let halted = world.run_until_halted();
        let accused = |(who, error): (&u32, &PartyError)| {
            let PartyError::Misbehaved { peer, what } = error else {
                panic!("{error}");
            };
            let expected = format!("its value of iteration {at} does not follow");
            assert!(what.starts_with(&expected), "{what}");
            let peer = (0..5).find(|i| name_of(NodeId(*i)) == *peer).unwrap();
            (*who, peer, what.contains("other values than us"))
        };
        found.push(halted.iter().map(accused).collect::<Vec<_>>());
    }
    assert_eq!(found[0], found[1]);
    found.remove(0)
}

#[test]
fn lies_in_sums_are_found_by_every_neighbour_that_has_the_inputs() {
    // On a path of five the root is in the middle, and its children have one child each. Iteration 1 asks; 2 and 3 add up, 4 and 5
    // hand the total down.
    let path = |liar, at| accusations("path", liar, at);
    // A partial sum: by the only child.
    assert_eq!(path(1, 2), [(0, 1, false)]);
    // A value that must be kept: by every neighbour.
    assert_eq!(path(1, 3), [(0, 1, false), (2, 1, false)]);
    assert_eq!(path(0, 2), [(1, 0, false)]);
    assert_eq!(path(2, 4), [(1, 2, false), (3, 2, false)]);
    // A total: by the parent, which sent it.
    assert_eq!(path(1, 4), [(2, 1, false)]);
    assert_eq!(path(4, 5), [(3, 4, false)]);
    // The sum of a root with two children: by neither of them. Transcripts show it.
    assert_eq!(path(2, 3), []);
    // Later sums are checked alike.
    assert_eq!(path(1, 7), [(0, 1, false)]);
    // On a complete graph everybody has all inputs, and another party may have sent the liar other values.
    let complete = accusations("complete", 0, 2);
    assert_eq!(
        complete,
        [(1, 0, true), (2, 0, true), (3, 0, true), (4, 0, true)]
    );
}

#[test]
fn different_totals_are_reported_and_nobody_is_accused() {
    // On a ring of five, birch is the root, and its grandchildren maple and rowan are neighbours. Birch sends cedar, maple's parent,
    // another total than alder, rowan's.
    for metric in ["none", "mean", "gram"] {
        let mut world = World::of(&on("ring", &consensus(metric)), 1);
        world.equivocator = Some((1, 2, 3));
        let mut halted = world.run_until_halted();
        // Birch is accused by nobody who knows better, and accuses cedar.
        halted.remove(&1);
        let texts: Vec<(u32, String)> = { halted.iter() }
            .map(|(who, error)| (*who, error.to_string()))
            .collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        for ((who, text), (expected, peer)) in texts.iter().zip([(3, "rowan"), (4, "maple")]) {
            assert_eq!(*who, expected);
            let start = format!("{peer}'s value of iteration 5 differs from this party's");
            assert!(text.starts_with(&start), "{text}");
            assert!(text.contains("does not tell who"), "{text}");
            let party = world.hosts[*who as usize].party.as_mut().unwrap();
            let notices = party.take_notices();
            let reported = |notice: &Notice| matches!(notice, Notice::Disagrees { .. });
            let accused = |notice: &Notice| matches!(notice, Notice::Misbehaved { .. });
            assert!(notices.iter().any(reported) && !notices.iter().any(accused));
            // Both values are kept, with their signatures.
            let (store, record) = party.store();
            let kept = store.misbehaviours(record.number).unwrap();
            assert_eq!((kept.len(), kept[0].frames.len()), (1, 2));
            // A restart comes to the same end.
            let image = world.hosts[*who as usize].disk.after_kill();
            world.hosts[*who as usize].party = None;
            world.hosts[*who as usize].disk = image;
            world.open(*who).unwrap();
        }
        let again = world.run_until_halted();
        let (store, record) = world.hosts[3].party.as_ref().unwrap().store();
        assert_eq!(store.misbehaviours(record.number).unwrap().len(), 1);
        assert!(matches!(
            again[&3],
            PartyError::NotCommon { iteration: 5, .. }
        ));
        assert!(matches!(
            again[&4],
            PartyError::NotCommon { iteration: 5, .. }
        ));
    }
}
