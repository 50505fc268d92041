//! What a neighbour may say to a party that must not be taken in, or not let pass.

use super::*;

/// Alder between birch and rowan, who are whoever holds their keys: nothing is on the wires but what a test says.
fn alder() -> World {
    let mut world = World::new("ring", 1);
    for peer in [1, 4] {
        world.connect(0, peer).unwrap();
    }
    world
}

fn party(world: &mut World) -> &mut Party {
    world.seats[0].party.as_mut().unwrap()
}

/// Says something to alder.
fn tell(world: &mut World, from: u32, bytes: Vec<u8>) -> Result<(), Halt> {
    let (serial, _) = world.wires[&(0, from)];
    party(world).handle(Event::Frame {
        peer: NodeId(from),
        serial,
        bytes,
        credit: Credit::new(|| ()),
    })
}

fn hello(world: &World, from: u32) -> Hello {
    Hello {
        version: PROTOCOL,
        study: world.study.digest(),
        from: NodeId(from),
        at: 0,
        heard: None,
        seen: None,
        probe: false,
    }
}

fn greet(world: &mut World, from: u32) {
    let hello = Frame::Hello(hello(world, from));
    tell(world, from, hello.encode()).unwrap();
}

/// Everyone's public start, signed by whose it is.
fn start(world: &World, of: u32) -> Vec<u8> {
    let columns = world.seats[0].shard.columns();
    say(
        world,
        of,
        0,
        instantiate::start(&world.study, NodeId(of), columns),
    )
}

fn say(world: &World, from: u32, iteration: u32, values: Vec<f64>) -> Vec<u8> {
    say_in(&world.study.digest(), world, from, iteration, values)
}

fn say_in(study: &[u8; 32], world: &World, from: u32, at: u32, values: Vec<f64>) -> Vec<u8> {
    let key = SecretKey::from_pem(&world.seats[from as usize].pem).unwrap();
    let message = Message {
        from: NodeId(from),
        iteration: at,
        release: Release::of(values, radmm::public::release::Precision::Grid).unwrap(),
    };
    Signed::new(message, study, &key).to_bytes()
}

/// As many coordinates as a model has.
fn flat(world: &World, value: f64) -> Vec<f64> {
    vec![value; world.seats[0].shard.columns()]
}

/// Everything that alder has put onto its wire to somebody.
fn told(world: &World, to: u32) -> Vec<Frame> {
    let (_, queue) = &world.wires[&(0, to)];
    let queue = queue.lock().unwrap();
    queue
        .iter()
        .map(|bytes| Frame::decode(bytes).unwrap())
        .collect()
}

fn is_value(frame: &Frame) -> bool {
    matches!(frame, Frame::Say(_))
}

fn is_asked(world: &World) -> bool {
    let (store, _) = world.seats[0].party.as_ref().unwrap().store();
    !store.charges().unwrap().is_empty()
}

/// Two values for one iteration, one after the other: the party stops and keeps both.
fn assert_caught(mut world: World, first: Vec<u8>, second: Vec<u8>, iteration: u32) {
    tell(&mut world, 1, first.clone()).unwrap();
    // What is said again is no second value.
    tell(&mut world, 1, first.clone()).unwrap();
    let text = tell(&mut world, 1, second.clone()).unwrap_err().to_string();
    let expected = format!("birch lies: it sent two different values for iteration {iteration}");
    assert!(text.starts_with(&expected), "{text}");
    let (store, begun) = party(&mut world).store();
    let evidence = store.evidence(begun.number).unwrap();
    let digits = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let both: Vec<String> = [first, second].iter().map(digits).collect();
    assert_eq!(evidence[0].frames, both);
}

#[test]
fn a_second_value_is_caught_where_the_first_came_early() {
    let mut world = alder();
    greet(&mut world, 1);
    let begin = start(&world, 1);
    tell(&mut world, 1, begin).unwrap();
    let [first, second] = [0.25, 0.5].map(|value| say(&world, 1, 1, flat(&world, value)));
    assert_eq!(party(&mut world).iteration(), 0);
    assert_caught(world, first, second, 1);
}

#[test]
fn a_second_value_is_caught_where_the_first_is_not_kept_yet() {
    // While rowan is missing, what birch says is on no disk: its start, and what it says when both are one further.
    let mut world = alder();
    greet(&mut world, 1);
    let (first, second) = (start(&world, 1), say(&world, 1, 0, flat(&world, SPACING)));
    assert_caught(world, first, second, 0);

    let mut world = alder();
    for peer in [1, 4] {
        greet(&mut world, peer);
        let begin = start(&world, peer);
        tell(&mut world, peer, begin).unwrap();
    }
    assert_eq!(party(&mut world).iteration(), 1);
    let [first, second] = [0.25, 0.5].map(|value| say(&world, 1, 1, flat(&world, value)));
    assert_caught(world, first, second, 1);
}

#[test]
fn a_start_that_is_not_the_public_one_is_not_taken_in() {
    let mut world = alder();
    greet(&mut world, 1);
    let mut values = instantiate::start(&world.study, NodeId(1), world.seats[0].shard.columns());
    values[0] += SPACING;
    let begin = say(&world, 1, 0, values);
    let halt = tell(&mut world, 1, begin).unwrap_err();
    let text = halt.to_string();
    assert!(
        text.starts_with("birch lies: its value of iteration 0 does not follow"),
        "{text}"
    );
    assert!(!is_asked(&world));
}

#[test]
fn a_greeting_that_cannot_be_right_is_a_lie_and_opens_nothing() {
    type Change = fn(&mut Hello);
    let changes: [Change; 2] = [|hello| hello.from = NodeId(4), |hello| hello.at = 10];
    for change in changes {
        let mut world = alder();
        let mut wrong = hello(&world, 1);
        change(&mut wrong);
        tell(&mut world, 1, Frame::Hello(wrong).encode()).unwrap();
        let told_of = lies(&mut world);
        assert_eq!(told_of.len(), 1);
        assert!(
            told_of[0].starts_with("birch: a greeting that is not its own"),
            "{told_of:?}"
        );
        assert!(matches!(
            told(&world, 1)[..],
            [Frame::Hello(_), Frame::Bye(_)]
        ));
        // The link is over; what comes on it still is of no account.
        let begin = start(&world, 1);
        tell(&mut world, 1, begin).unwrap();
        assert!(
            party(&mut world)
                .peers()
                .all(|(_, state)| state == PeerState::Away)
        );
    }
    // The last iteration is one.
    let mut world = alder();
    let last = Hello {
        at: 9,
        ..hello(&world, 1)
    };
    tell(&mut world, 1, Frame::Hello(last).encode()).unwrap();
    assert!(lies(&mut world).is_empty());
}

#[test]
fn nothing_is_heard_before_a_greeting() {
    let mut world = alder();
    greet(&mut world, 4);
    for of in [1, 4] {
        let begin = start(&world, of);
        tell(&mut world, of, begin).unwrap();
    }
    assert_eq!(lies(&mut world), ["birch: it speaks without a greeting"]);
    assert!(!told(&world, 1).iter().any(is_value));
    assert_eq!(party(&mut world).iteration(), 0);
    assert!(!is_asked(&world));
    let all_is_well = Frame::Ack { through: 9 }.encode();
    world.connect(0, 1).unwrap();
    tell(&mut world, 1, all_is_well).unwrap();
    assert_eq!(lies(&mut world), ["birch: it speaks without a greeting"]);
    let birch = party(&mut world).peers().next().unwrap();
    assert_eq!(birch, ("birch", PeerState::Away));
}

#[test]
fn who_holds_another_study_is_shown_ours_and_told_no_value() {
    let mut world = alder();
    let mut other = world.study.clone();
    other.algorithm.iterations = 8;
    let theirs = Hello {
        study: other.digest(),
        ..hello(&world, 1)
    };
    tell(&mut world, 1, Frame::Hello(theirs).encode()).unwrap();
    let canonical = world.study.canonical();
    let frames = told(&world, 1);
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert_eq!(frames[1], Frame::Study(canonical));
    // It shows its own, and that is the end of it.
    tell(&mut world, 1, Frame::Study(other.canonical()).encode()).unwrap();
    let notices = party(&mut world).take_notices();
    let difference = |notice: &Notice| match notice {
        Notice::Disagrees { peer, what } => peer == "birch" && what.contains("9 here, 8 there"),
        _ => false,
    };
    assert!(notices.iter().any(difference), "{notices:?}");
    let birch = party(&mut world).peers().next().unwrap();
    assert_eq!(birch, ("birch", PeerState::Disagrees));

    // Whoever goes on as if nothing were is not heard.
    let mut world = alder();
    tell(&mut world, 1, Frame::Hello(theirs).encode()).unwrap();
    let begin = start(&world, 1);
    tell(&mut world, 1, begin).unwrap();
    assert_eq!(lies(&mut world), ["birch: it speaks without a greeting"]);
    assert!(!told(&world, 1).iter().any(is_value));
}

#[test]
fn what_was_signed_for_something_else_is_not_taken_in() {
    let mut world = alder();
    let columns = world.seats[0].shard.columns();
    let begin = instantiate::start(&world.study, NodeId(1), columns);
    let elsewhere = say_in(&[7; 32], &world, 1, 0, begin);
    // Somebody else's word, which is genuine, and one that birch signs in his name.
    let rowans = start(&world, 4);
    let mut message = Signed::from_bytes(&rowans).unwrap().message;
    let key = SecretKey::from_pem(&world.seats[1].pem).unwrap();
    let in_his_name = Signed::new(message.clone(), &world.study.digest(), &key).to_bytes();
    // A signature of birch's, over the same value for another iteration.
    message.from = NodeId(1);
    let mut moved = Signed::new(message, &world.study.digest(), &key);
    moved.message.iteration = 1;
    let cases = [
        (elsewhere, 0),
        (rowans, 0),
        (in_his_name, 0),
        (moved.to_bytes(), 1),
    ];
    for (bytes, iteration) in cases {
        world.connect(0, 1).unwrap();
        greet(&mut world, 1);
        tell(&mut world, 1, bytes).unwrap();
        let caught = format!("birch: a value for iteration {iteration} without its signature");
        assert_eq!(lies(&mut world), [caught]);
        let heard = |(_, state)| state == PeerState::Heard;
        assert!(!party(&mut world).peers().any(heard));
    }
}

/// Everyone is at the last iteration and has finished, and nothing of the end was delivered to or from alder by birch.
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
fn who_says_over_and_over_that_all_is_well_gets_two_words_and_two_records() {
    let mut world = finished();
    let noted = |world: &World, to| {
        let is_noted = |frame: &Frame| matches!(frame, Frame::Noted { .. });
        told(world, to).into_iter().filter(is_noted).count()
    };
    let (before, used) = (noted(&world, 1), world.seats[0].disk.used());
    for k in 0..500 {
        for frame in [
            Frame::Ack { through: 9 },
            Frame::Ack { through: 8 },
            Frame::Noted { mutual: k % 2 == 0 },
            Frame::Noted { mutual: true },
        ] {
            tell(&mut world, 1, frame.encode()).unwrap();
        }
    }
    assert!(noted(&world, 1) - before <= 2);
    assert!(world.seats[0].disk.used() - used <= 4 * 1024);
    // Rowan has not been heard of.
    let (_, begun) = party(&mut world).store();
    let rowan = begun.served.contains(&4);
    assert_eq!(party(&mut world).is_over(), rowan);
    assert!(!party(&mut world).has_parted());
}

/// Says something to alder as birch: what alder answers, and whether it is on record that birch has everything, and that it knows
/// the same of alder.
fn answer(world: &mut World, frame: &Frame) -> (Vec<Frame>, (bool, bool)) {
    let before = told(world, 1).len();
    tell(world, 1, frame.encode()).unwrap();
    let (_, begun) = party(world).store();
    let record = (begun.served.contains(&1), begun.assured.contains(&1));
    (told(world, 1).split_off(before), record)
}

#[test]
fn who_has_everything_hears_that_this_is_known_and_later_that_it_is_mutual() {
    let mut world = finished();
    let noted = |mutual: bool| Frame::Noted { mutual };
    let said = answer(&mut world, &Frame::Ack { through: 9 });
    assert_eq!(said, (vec![noted(false)], (true, false)));
    let said = answer(&mut world, &noted(false));
    assert_eq!(said, (vec![noted(true)], (true, true)));
    assert_eq!(answer(&mut world, &noted(true)), (vec![], (true, true)));
}

#[test]
fn at_the_end_a_neighbour_hears_what_is_on_record_and_nothing_else() {
    let mut world = finished();
    let say = |world: &mut World, frame: Frame| answer(world, &frame);
    // It knows that alder has everything, and does not say that it has everything itself.
    let noted = |mutual: bool| Frame::Noted { mutual };
    assert_eq!(say(&mut world, noted(false)), (vec![], (false, true)));
    // It has something.
    let something = Frame::Ack { through: 8 };
    assert_eq!(say(&mut world, something), (vec![], (false, true)));
    let everything = Frame::Ack { through: 9 };
    let said = say(&mut world, everything.clone());
    assert_eq!(said, (vec![noted(true)], (true, true)));
    assert_eq!(say(&mut world, everything), (vec![], (true, true)));
    // Whether it knows of the last word is known when it says so.
    let parted = |world: &mut World| party(world).edges[0].parted;
    say(&mut world, noted(false));
    assert!(!parted(&mut world));
    say(&mut world, noted(true));
    assert!(parted(&mut world));
    // On another link it hears everything again.
    world.cut(0, 1);
    world.connect(0, 1).unwrap();
    let again = Frame::Hello(Hello {
        at: 9,
        heard: Some(9),
        seen: Some(9),
        ..hello(&world, 1)
    });
    tell(&mut world, 1, again.encode()).unwrap();
    let said = told(&world, 1);
    let last = Frame::Ack { through: 9 };
    assert!(
        matches!(&said[..], [Frame::Hello(_), ack, note] if *ack == last && *note == noted(true)),
        "{said:?}"
    );
}

#[test]
fn words_of_the_end_before_the_end_change_nothing() {
    let mut world = alder();
    greet(&mut world, 1);
    let used = world.seats[0].disk.used();
    for frame in [
        Frame::Ack { through: 9 },
        Frame::Noted { mutual: false },
        Frame::Noted { mutual: true },
    ] {
        tell(&mut world, 1, frame.encode()).unwrap();
    }
    let (_, begun) = party(&mut world).store();
    assert!(begun.served.is_empty() && begun.assured.is_empty());
    assert_eq!(world.seats[0].disk.used(), used);
    let is_noted = |frame: &Frame| matches!(frame, Frame::Noted { .. });
    assert!(!told(&world, 1).iter().any(is_noted));
}

#[test]
fn who_is_left_alone_parts_from_everyone_and_then_is_quiet() {
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
        assert!(quiet, "{topology}: they talk for ever");
        for seat in &world.seats {
            let party = seat.party.as_ref().unwrap();
            assert!(party.is_settled() && party.has_parted(), "{topology}");
        }
        // Whoever begins again knows it, and nothing more is said but greetings and this.
        for i in 0..5 {
            world.kill(i);
            world.open(i).unwrap();
            assert!(world.seats[i as usize].party.as_ref().unwrap().is_settled());
        }
    }
}

#[test]
fn who_greets_twice_on_a_link_is_not_told_everything_again() {
    let mut world = finished();
    let before = told(&world, 1).len();
    let hello = Frame::Hello(Hello {
        at: 9,
        ..hello(&world, 1)
    });
    for _ in 0..100 {
        tell(&mut world, 1, hello.encode()).unwrap();
    }
    // Why the link ends, and then there is none.
    let said = told(&world, 1).split_off(before);
    assert!(matches!(&said[..], [Frame::Bye(why)] if why.contains("a second greeting")));
}
