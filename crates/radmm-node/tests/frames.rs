//! Frames from somebody who means ill: whatever comes, decoding does not panic, takes no more memory than there are bytes, and
//! what it takes for a frame is one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use peak_alloc::PeakAlloc;
use radmm::message::Message;
use radmm::public::graph::NodeId;
use radmm::public::release::{Precision, Release};
use radmm_node::key::SecretKey;
use radmm_node::machine::frame::{Frame, Hello, PROTOCOL, Signed};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MANY: usize = 100_000;

fn valid() -> Vec<Vec<u8>> {
    let key = SecretKey::generate().unwrap();
    let say = |precision, columns: u32| {
        let values = (0..columns).map(|k| f64::from(k) / 8.0 - 3.0).collect();
        let message = Message {
            from: NodeId(3),
            iteration: 17,
            release: Release::of(values, precision).unwrap(),
        };
        Frame::Say(Signed::new(message, &[7; 32], &key))
    };
    let hello = |version, heard, probe| {
        Frame::Hello(Hello {
            version,
            study: [7; 32],
            from: NodeId(3),
            at: 16,
            heard,
            seen: heard,
            probe,
        })
    };
    let frames = [
        hello(PROTOCOL, None, true),
        hello(PROTOCOL, Some(4), false),
        hello(PROTOCOL + 1, Some(4), false),
        Frame::Study("{\"name\":\"clinic\",\"ε\":1}".to_owned()),
        say(Precision::Grid, 12),
        say(Precision::Float, 12),
        say(Precision::Float, 0),
        Frame::Ack { through: 30 },
        Frame::Bye("it was stopped".to_owned()),
    ];
    frames.iter().map(Frame::encode).collect()
}

fn noise(dice: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0; dice.random_range(0..300)];
    dice.fill_bytes(&mut bytes);
    if let Some(kind) = bytes.first_mut() {
        // Most first bytes mean nothing at all.
        *kind %= 7;
    }
    bytes
}

fn mutated(mut bytes: Vec<u8>, dice: &mut ChaCha8Rng) -> Vec<u8> {
    for _ in 0..dice.random_range(1..4) {
        let at = dice.random_range(0..=bytes.len());
        match dice.random_range(0..5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, dice.random()),
            2 if at < bytes.len() => bytes[at] ^= 1 << dice.random_range(0..8),
            // Lengths and iterations as large as they get.
            3 => bytes
                .iter_mut()
                .skip(at)
                .take(4)
                .for_each(|byte| *byte = 0xff),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

#[test]
fn a_hundred_thousand_frames_of_somebody_else() {
    let valid = valid();
    for bytes in &valid {
        assert_eq!(&Frame::decode(bytes).unwrap().encode(), bytes);
    }
    let mut dice = ChaCha8Rng::seed_from_u64(1);
    let mut taken = 0;
    for turn in 0..MANY {
        let bytes = match turn % 2 {
            0 => noise(&mut dice),
            _ => mutated(valid[turn / 2 % valid.len()].clone(), &mut dice),
        };
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let decoded = Frame::decode(&bytes);
        let took = ALLOCATOR.peak_usage() - before;
        assert!(took <= 4 * bytes.len() + 256, "{took} bytes for {bytes:?}");
        match decoded {
            Ok(Frame::Hello(hello)) if hello.version != PROTOCOL => {
                // What a later protocol adds is not read, and so is not said again.
                assert!(bytes.starts_with(&Frame::Hello(hello).encode()));
                taken += 1;
            }
            Ok(frame) => {
                assert_eq!(frame.encode(), bytes);
                taken += 1;
            }
            Err(malformed) => assert!(!malformed.to_string().is_empty()),
        }
    }
    // Of both, or this shows nothing.
    assert!((MANY / 50..MANY / 2).contains(&taken), "{taken} were taken");
}
