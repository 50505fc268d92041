//! Links come up, carry frames, go down, and come back.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use radmm_node::machine::link::Event;
use radmm_node::transport::TransportError;

use crate::party::{LARGEST, Party, Person, free, person};

/// Says something in both directions.
fn exchange(one: (&mut Party, &Person), other: (&mut Party, &Person)) {
    let (one, one_person) = one;
    let (other, other_person) = other;
    let (_, there) = one.up(other_person);
    let (_, back) = other.up(one_person);
    for size in [0, 1, 1000, LARGEST] {
        let frame = vec![size as u8; size];
        assert!(there.send(frame.clone()));
        other.hears(one_person, &frame);
        assert!(back.send(frame.clone()));
        one.hears(other_person, &frame);
    }
}

#[test]
fn frames_go_both_ways_whoever_dials() {
    for (first, second) in [(3, 7), (7, 3)] {
        let (listening, dialling) = (person(first), person(second));
        let mut there = listening.start(vec![dialling.dialling()]);
        let mut settings = dialling.settings(vec![listening.at(there.address())]);
        settings.listen = None;
        let mut here = Party::start(settings).unwrap();
        assert_eq!(here.network.local_address(), None);
        exchange((&mut here, &dialling), (&mut there, &listening));
    }
}

#[test]
fn if_both_dial_at_once_there_is_one_link() {
    for _ in 0..10 {
        let (low, high) = (person(0), person(1));
        let (low_address, high_address) = (free(), free());
        let mut low_settings = low.settings(vec![high.at(high_address)]);
        low_settings.listen = Some(low_address);
        let mut high_settings = high.settings(vec![low.at(low_address)]);
        high_settings.listen = Some(high_address);
        let barrier = Barrier::new(2);
        let start = |settings| {
            barrier.wait();
            Party::start(settings).unwrap()
        };
        let (mut low_party, mut high_party) = thread::scope(|scope| {
            let low_party = scope.spawn(|| start(low_settings));
            let high_party = start(high_settings);
            (low_party.join().unwrap(), high_party)
        });
        exchange((&mut low_party, &low), (&mut high_party, &high));
        for party in [&mut low_party, &mut high_party] {
            assert_eq!(party.times("up"), 1, "{:#?}", party.log);
            assert_eq!(party.times("down"), 0, "{:#?}", party.log);
        }
    }
}

#[test]
fn a_killed_party_comes_back_and_its_link_too() {
    for (first, second) in [(0, 1), (1, 0)] {
        let (steady, mortal) = (person(first), person(second));
        let (steady_address, mortal_address) = (free(), free());
        let mut settings = steady.settings(vec![mortal.at(mortal_address)]);
        settings.listen = Some(steady_address);
        let mut party = Party::start(settings).unwrap();
        for _ in 0..3 {
            let mut other = loop {
                let mut settings = mortal.settings(vec![steady.at(steady_address)]);
                settings.listen = Some(mortal_address);
                // A killed party's port is not free at once.
                match Party::start(settings) {
                    Ok(party) => break party,
                    Err(TransportError::Listen { .. }) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            };
            exchange((&mut party, &steady), (&mut other, &mortal));
            drop(other);
            party.down(&mortal);
        }
        assert_eq!(party.times("up"), party.times("down"));
    }
}

#[test]
fn what_was_queued_arrives_before_a_link_is_closed() {
    for (first, second) in [(3, 7), (7, 3)] {
        for at_end in [false, true] {
            let (listening, dialling) = (person(first), person(second));
            let mut there = listening.start(vec![dialling.dialling()]);
            let mut here = dialling.start(vec![listening.at(there.address())]);
            let (_, out) = here.up(&listening);
            let (_, back) = there.up(&dialling);
            for number in 0..8 {
                assert!(out.send(vec![number; 80_000]));
            }
            // The other side has to read, or not everything can leave.
            let network = here.network;
            let ending = thread::spawn(move || match at_end {
                true => network.shutdown(),
                false => {
                    out.close();
                    assert!(!out.send(vec![]), "a closed link takes nothing");
                    here.events
                        .into_iter()
                        .any(|event| matches!(event, Event::Down { .. }));
                    drop(network);
                }
            });
            for number in 0..8 {
                there.hears(&dialling, &vec![number; 80_000]);
            }
            assert_eq!(there.down(&dialling), "it has closed the link");
            assert!(!back.send(vec![]), "a link that has gone takes nothing");
            ending.join().unwrap();
        }
    }
}

#[test]
fn a_closed_link_goes_down_on_both_sides() {
    let (listening, dialling) = (person(0), person(1));
    let mut there = listening.start(vec![dialling.dialling()]);
    let mut here = dialling.start(vec![listening.at(there.address())]);
    for _ in 0..3 {
        let (_, out) = here.up(&listening);
        let (_, back) = there.up(&dialling);
        back.close();
        assert_eq!(there.down(&dialling), "this side has closed it");
        assert_eq!(here.down(&listening), "it has closed the link");
        assert!(!out.send(vec![]));
    }
}

#[test]
fn a_party_that_is_not_there_is_told_of_once() {
    let (here, away) = (person(0), person(1));
    let address = free();
    let mut party = here.start(vec![away.at(address)]);
    let reason = party.unreachable();
    assert!(reason.contains("connection refused"), "{reason}");
    let mut settings = away.settings(vec![here.dialling()]);
    settings.listen = Some(address);
    let mut other = Party::start(settings).unwrap();
    exchange((&mut party, &here), (&mut other, &away));
    assert_eq!(party.times("unreachable"), 1);
}

#[test]
fn a_name_that_is_not_known_is_told() {
    let (here, away) = (person(0), person(1));
    let mut neighbour = away.dialling();
    neighbour.address = Some("nobody.invalid:1".into());
    let reason = here.start(vec![neighbour]).unreachable();
    assert_eq!(reason, "name not found: nobody.invalid:1");
}

#[test]
fn an_address_in_use_is_an_error() {
    let (one, other) = (person(0), person(1));
    let party = one.start(vec![other.dialling()]);
    let mut settings = other.settings(vec![one.dialling()]);
    settings.listen = Some(party.address());
    let error = Party::start(settings).err().unwrap().to_string();
    assert!(error.contains("another program listens there"), "{error}");
}

#[test]
fn neighbours_that_cannot_be_are_errors() {
    let (me, one, other) = (person(0), person(1), person(2));
    let error = |settings| Party::start(settings).err().unwrap();
    let myself = me.settings(vec![me.dialling()]);
    assert!(matches!(error(myself), TransportError::Myself(_)));
    let mut copy = other.dialling();
    copy.key = one.key.public();
    let twice = me.settings(vec![one.dialling(), copy]);
    assert!(matches!(error(twice), TransportError::Twice(..)));
    let mut apart = me.settings(vec![one.dialling()]);
    apart.listen = None;
    assert!(matches!(error(apart), TransportError::Apart(_)));
}

/// Carries bytes between who connects and `to`, until told to stop: then it keeps connections open and carries nothing.
fn relay(to: SocketAddr, stopped: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.unwrap();
            let far = TcpStream::connect(to).unwrap();
            for (mut from, mut into) in [
                (near.try_clone().unwrap(), far.try_clone().unwrap()),
                (far, near),
            ] {
                let stopped = stopped.clone();
                thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    loop {
                        let count = from.read(&mut bytes).unwrap_or(0);
                        while stopped.load(Ordering::SeqCst) {
                            thread::park();
                        }
                        if count == 0 || into.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = into.shutdown(Shutdown::Both);
                });
            }
        }
    });
    address
}

#[test]
fn who_comes_back_is_told_that_its_old_link_was_not_missed_yet() {
    let (steady, mortal) = (person(0), person(1));
    let mut other = mortal.start(vec![steady.dialling()]);
    let stopped = Arc::new(AtomicBool::new(false));
    let address = relay(other.address(), stopped.clone());
    let mut party = steady.start(vec![mortal.at(address)]);
    let _links = (party.up(&mortal), other.up(&steady));
    // Nobody tells the steady one that the other has gone.
    stopped.store(true, Ordering::SeqCst);
    drop(other);
    let reason = mortal.start(vec![steady.at(party.address())]).unreachable();
    assert!(reason.starts_with("it still has an older link"), "{reason}");
}

#[test]
fn a_half_dead_link_is_found() {
    let (listening, dialling) = (person(0), person(1));
    let mut there = listening.start(vec![dialling.dialling()]);
    let stopped = Arc::new(AtomicBool::new(false));
    let address = relay(there.address(), stopped.clone());
    let mut here = dialling.start(vec![listening.at(address)]);
    let _links = (here.up(&listening), there.up(&dialling));
    stopped.store(true, Ordering::SeqCst);
    for reason in [here.down(&listening), there.down(&dialling)] {
        assert!(
            reason.starts_with("nothing was heard from it for"),
            "{reason}"
        );
    }
}
