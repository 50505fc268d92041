//! Links come up, carry frames, go down, and are restored.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use radmm::protocol::query::gram_width;
use radmm_node::machine::{LinkEvent, value_frame_length};
use radmm_node::transport::{TransportConfig, TransportError};

use crate::party::{KeyHolder, MAX_FRAME, TestParty, free_address, key_holder};

/// Sends frames in both directions.
fn exchange(one: (&mut TestParty, &KeyHolder), other: (&mut TestParty, &KeyHolder)) {
    let (one, one_holder) = one;
    let (other, other_holder) = other;
    let (_, there) = one.up(other_holder);
    let (_, back) = other.up(one_holder);
    for size in [1, 2, 1000, MAX_FRAME] {
        let frame = vec![size as u8; size];
        assert!(there.send(frame.clone()));
        other.receives(one_holder, &frame);
        assert!(back.send(frame.clone()));
        one.receives(other_holder, &frame);
    }
}

#[test]
fn frames_go_both_ways_whichever_side_dials() {
    for (first, second) in [(3, 7), (7, 3)] {
        let (listening, dialling) = (key_holder(first), key_holder(second));
        let mut there = listening.start(vec![dialling.dialling()]);
        let mut config = dialling.config(vec![listening.at(there.address())]);
        config.listen = None;
        let mut here = TestParty::start(config).unwrap();
        assert_eq!(here.transport.local_address(), None);
        exchange((&mut here, &dialling), (&mut there, &listening));
    }
}

#[test]
fn simultaneous_dials_give_one_link() {
    for _ in 0..10 {
        let (low, high) = (key_holder(0), key_holder(1));
        let (low_address, high_address) = (free_address(), free_address());
        let mut low_config = low.config(vec![high.at(high_address)]);
        low_config.listen = Some(low_address);
        let mut high_config = high.config(vec![low.at(low_address)]);
        high_config.listen = Some(high_address);
        let barrier = Barrier::new(2);
        let start = |config| {
            barrier.wait();
            TestParty::start(config).unwrap()
        };
        let (mut low_party, mut high_party) = thread::scope(|scope| {
            let low_party = scope.spawn(|| start(low_config));
            let high_party = start(high_config);
            (low_party.join().unwrap(), high_party)
        });
        exchange((&mut low_party, &low), (&mut high_party, &high));
        for party in [&mut low_party, &mut high_party] {
            assert_eq!(party.count("up"), 1, "{:#?}", party.log);
            assert_eq!(party.count("down"), 0, "{:#?}", party.log);
        }
    }
}

#[test]
fn a_restarted_party_gets_a_new_link() {
    for (first, second) in [(0, 1), (1, 0)] {
        let (steady, mortal) = (key_holder(first), key_holder(second));
        let (steady_address, mortal_address) = (free_address(), free_address());
        let mut config = steady.config(vec![mortal.at(mortal_address)]);
        config.listen = Some(steady_address);
        let mut party = TestParty::start(config).unwrap();
        for _ in 0..3 {
            let mut other = loop {
                let mut config = mortal.config(vec![steady.at(steady_address)]);
                config.listen = Some(mortal_address);
                // The port of a killed party is not free at once.
                match TestParty::start(config) {
                    Ok(party) => break party,
                    Err(TransportError::Listen { .. }) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            };
            exchange((&mut party, &steady), (&mut other, &mortal));
            drop(other);
            party.down(&mortal);
        }
        assert_eq!(party.count("up"), party.count("down"));
    }
}

#[test]
fn queued_frames_arrive_before_a_link_closes() {
    for (first, second) in [(3, 7), (7, 3)] {
        for at_end in [false, true] {
            let (listening, dialling) = (key_holder(first), key_holder(second));
            let mut there = listening.start(vec![dialling.dialling()]);
            let mut here = dialling.start(vec![listening.at(there.address())]);
            let (_, out) = here.up(&listening);
            let (_, back) = there.up(&dialling);
            for number in 0..8 {
                assert!(out.send(vec![number; 80_000]));
            }
            // The other side has to read, or not all frames can leave.
            let transport = here.transport;
            let ending = thread::spawn(move || match at_end {
                true => transport.shutdown(),
                false => {
                    out.close();
                    assert!(!out.send(vec![]), "a closed link rejects frames");
                    while !matches!(
                        here.events.blocking_recv(),
                        Some(LinkEvent::Down { .. }) | None
                    ) {}
                    drop(transport);
                }
            });
            for number in 0..8 {
                there.receives(&dialling, &vec![number; 80_000]);
            }
            assert_eq!(there.down(&dialling), "it has closed the link");
            assert!(!back.send(vec![]), "a link that is down rejects frames");
            ending.join().unwrap();
        }
    }
}

#[test]
fn a_closed_link_goes_down_on_both_sides() {
    let (listening, dialling) = (key_holder(0), key_holder(1));
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
fn an_unreachable_party_is_reported_once() {
    let (here, away) = (key_holder(0), key_holder(1));
    let address = free_address();
    let mut party = here.start(vec![away.at(address)]);
    let reason = party.unreachable();
    assert!(reason.contains("connection refused"), "{reason}");
    let mut config = away.config(vec![here.dialling()]);
    config.listen = Some(address);
    let mut other = TestParty::start(config).unwrap();
    exchange((&mut party, &here), (&mut other, &away));
    assert_eq!(party.count("unreachable"), 1);
}

#[test]
fn an_unknown_host_name_is_reported() {
    let (here, away) = (key_holder(0), key_holder(1));
    let mut neighbour = away.dialling();
    neighbour.address = Some("nobody.invalid:1".into());
    let reason = here.start(vec![neighbour]).unreachable();
    assert_eq!(reason, "name not found: nobody.invalid:1");
}

#[test]
fn an_address_in_use_is_an_error() {
    let (one, other) = (key_holder(0), key_holder(1));
    let party = one.start(vec![other.dialling()]);
    let mut config = other.config(vec![one.dialling()]);
    config.listen = Some(party.address());
    let error = TestParty::start(config).err().unwrap().to_string();
    assert!(error.contains("another program listens there"), "{error}");
}

#[test]
fn invalid_neighbours_are_errors() {
    let (me, one, other) = (key_holder(0), key_holder(1), key_holder(2));
    let error = |config| TestParty::start(config).err().unwrap();
    let myself = me.config(vec![me.dialling()]);
    assert!(matches!(error(myself), TransportError::SelfNeighbour(_)));
    let mut copy = other.dialling();
    copy.key = one.key.public();
    let twice = me.config(vec![one.dialling(), copy]);
    assert!(matches!(
        error(twice),
        TransportError::DuplicateNeighbour(..)
    ));
    let mut apart = me.config(vec![one.dialling()]);
    apart.listen = None;
    assert!(matches!(error(apart), TransportError::NoAddress(_)));
}

/// Relays bytes between clients and `to`. Once `stopped` is set, it keeps connections open and relays nothing.
fn relay(to: SocketAddr, stopped: Arc<AtomicBool>) -> SocketAddr {
    slow_relay(to, stopped, Duration::ZERO)
}

/// The number of bytes that a relay takes at a time.
const PIECE: usize = 4096;

/// Relays bytes with a pause after each piece.
fn slow_relay(to: SocketAddr, stopped: Arc<AtomicBool>, pause: Duration) -> SocketAddr {
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
                    let mut bytes = [0; PIECE];
                    loop {
                        let count = from.read(&mut bytes).unwrap_or(0);
                        while stopped.load(Ordering::SeqCst) {
                            thread::park();
                        }
                        if count == 0 || into.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                        thread::sleep(pause);
                    }
                    let _ = into.shutdown(Shutdown::Both);
                });
            }
        }
    });
    address
}

#[test]
fn a_restarted_party_learns_that_its_old_link_is_still_open() {
    let (steady, mortal) = (key_holder(0), key_holder(1));
    let mut other = mortal.start(vec![steady.dialling()]);
    let stopped = Arc::new(AtomicBool::new(false));
    let address = relay(other.address(), stopped.clone());
    let mut party = steady.start(vec![mortal.at(address)]);
    let _links = (party.up(&mortal), other.up(&steady));
    // The steady party does not see that the other is gone.
    stopped.store(true, Ordering::SeqCst);
    drop(other);
    let reason = mortal.start(vec![steady.at(party.address())]).unreachable();
    assert!(reason.starts_with("it still has an older link"), "{reason}");
}

#[test]
fn a_half_dead_link_goes_down() {
    let (listening, dialling) = (key_holder(0), key_holder(1));
    let mut there = listening.start(vec![dialling.dialling()]);
    let stopped = Arc::new(AtomicBool::new(false));
    let address = relay(there.address(), stopped.clone());
    let mut here = dialling.start(vec![listening.at(address)]);
    let _links = (here.up(&listening), there.up(&dialling));
    stopped.store(true, Ordering::SeqCst);
    for reason in [here.down(&listening), there.down(&dialling)] {
        assert!(
            reason.starts_with("nothing was received from it for"),
            "{reason}"
        );
    }
}

#[test]
fn a_wide_frame_crosses_a_slow_network() {
    // Half the Gram matrix of 1,000 columns each way, at a megabit a second: it takes longer than a link may be silent.
    let frame = vec![7; value_frame_length(gram_width(1000)) / 2];
    let (listening, dialling) = (key_holder(0), key_holder(1));
    let config = |holder: &KeyHolder, neighbour| TransportConfig {
        largest_frame: value_frame_length(gram_width(1000)),
        ..holder.config(vec![neighbour])
    };
    let mut there = TestParty::start(config(&listening, dialling.dialling())).unwrap();
    let pause = Duration::from_secs(1) * PIECE as u32 / 131_072;
    let address = slow_relay(there.address(), Arc::default(), pause);
    let mut here = TestParty::start(config(&dialling, listening.at(address))).unwrap();
    let ((_, link), (_, back)) = (here.up(&listening), there.up(&dialling));
    let started = Instant::now();
    assert!(link.send(frame.clone()) && back.send(frame.clone()));
    there.receives(&dialling, &frame);
    here.receives(&listening, &frame);
    assert!(started.elapsed() > Duration::from_secs(12));
    assert_eq!((there.count("down"), here.count("down")), (0, 0));
}
