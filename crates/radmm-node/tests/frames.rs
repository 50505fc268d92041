//! Fuzzing of the frame decoder: it never panics, allocates no more than the frame has bytes, and accepts only what it would
//! encode itself.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use peak_alloc::PeakAlloc;
use radmm::graph::NodeId;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use radmm_node::key::SecretKey;
use radmm_node::machine::{Frame, Hello, PROTOCOL, SignedMessage};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const FRAMES: usize = 100_000;

fn valid() -> Vec<Vec<u8>> {
    let key = SecretKey::generate().unwrap();
    let value = |columns: u32| {
        let values: Vec<f64> = (0..columns).map(|k| f64::from(k) / 8.0 - 3.0).collect();
        let message = Message {
            from: NodeId(3),
            iteration: 17,
            release: Release::rounded(&values).unwrap(),
        };
        Frame::Value(SignedMessage::new(message, &[7; 32], &key))
    };
    let hello = |version, persisted, probe| {
        Frame::Hello(Hello {
            version,
            study: [7; 32],
            from: NodeId(3),
            at: 16,
            persisted,
            received: persisted,
            probe,
        })
    };
    let frames = [
        hello(PROTOCOL, None, true),
        hello(PROTOCOL, Some(4), false),
        hello(PROTOCOL + 1, Some(4), false),
        Frame::Study("{\"name\":\"clinic\",\"ε\":1}".to_owned()),
        value(12),
        value(0),
        Frame::Ack { through: 30 },
        Frame::Bye("it was stopped".to_owned()),
    ];
    frames.iter().map(Frame::encode).collect()
}

fn noise(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.random_range(0..300)];
    rng.fill_bytes(&mut bytes);
    if let Some(kind) = bytes.first_mut() {
        // Most first bytes are unknown kinds.
        *kind %= 7;
    }
    bytes
}

fn mutated(mut bytes: Vec<u8>, rng: &mut ChaCha8Rng) -> Vec<u8> {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.random()),
            2 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
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

/// Returns the bytes that the process allocates while a frame is decoded.
fn decoding_memory(bytes: &[u8]) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let decoded = Frame::decode(bytes);
    let allocated = ALLOCATOR.peak_usage().saturating_sub(before);
    drop(decoded);
    allocated
}

#[test]
fn arbitrary_frames_are_rejected_or_decoded_exactly() {
    let valid = valid();
    for bytes in &valid {
        assert_eq!(&Frame::decode(bytes).unwrap().encode(), bytes);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut accepted = 0;
    for turn in 0..FRAMES {
        let bytes = match turn % 2 {
            0 => noise(&mut rng),
            _ => mutated(valid[turn / 2 % valid.len()].clone(), &mut rng),
        };
        let most = 4 * bytes.len() + 256;
        // The test harness may allocate on another thread meanwhile: then the measurement is repeated.
        let allocated = (0..3)
            .map(|_| decoding_memory(&bytes))
            .find(|allocated| *allocated <= most);
        assert!(allocated.is_some(), "more than {most} bytes for {bytes:?}");
        match Frame::decode(&bytes) {
            Ok(Frame::Hello(hello)) if hello.version != PROTOCOL => {
                // Fields that a later protocol adds are not read, and so are not encoded again.
                assert!(bytes.starts_with(&Frame::Hello(hello).encode()));
                accepted += 1;
            }
            Ok(frame) => {
                assert_eq!(frame.encode(), bytes);
                accepted += 1;
            }
            Err(malformed) => assert!(!malformed.to_string().is_empty()),
        }
    }
    // Both outcomes must occur, or this shows nothing.
    assert!(
        (FRAMES / 50..FRAMES / 2).contains(&accepted),
        "{accepted} were accepted"
    );
}
