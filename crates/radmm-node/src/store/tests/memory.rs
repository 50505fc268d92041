//! The memory of this process, searched for secrets that have done their work.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use super::*;

/// The mask under which this test keeps the bytes that it looks for, so that it does not find its own.
const MASK: u8 = 0x5a;

/// Returns the writable parts of this process's memory.
fn writable() -> Vec<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let parts = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let (from, to) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        rights.starts_with("rw").then(|| number(from)..number(to))
    });
    parts.collect()
}

/// Returns how often each of some masked secrets is in memory.
fn found(masked: &[[u8; 32]]) -> Vec<usize> {
    let mut memory = fs::File::open("/proc/self/mem").unwrap();
    let mut piece = vec![0; 1 << 20];
    let own = piece.as_ptr() as u64..piece.as_ptr() as u64 + piece.len() as u64;
    let mut counts = vec![0; masked.len()];
    for part in writable() {
        let mut at = part.start;
        while at < part.end {
            let length = (part.end - at).min(piece.len() as u64) as usize;
            let piece = &mut piece[..length];
            // Parts of the memory may be gone by now.
            if memory.seek(SeekFrom::Start(at)).is_ok() && memory.read_exact(piece).is_ok() {
                for byte in piece.iter_mut() {
                    *byte ^= MASK;
                }
                for (place, window) in piece.windows(32).enumerate() {
                    if own.contains(&(at + place as u64)) {
                        continue;
                    }
                    for (count, masked) in counts.iter_mut().zip(masked) {
                        // The first byte decides for nearly all windows.
                        *count += usize::from(window[0] == masked[0] && window == masked);
                    }
                }
            }
            at += match length == 1 << 20 {
                true => (length - 31) as u64,
                false => length as u64,
            };
        }
    }
    counts
}

/// Returns the first secrets of the first study in a folder, masked.
fn masked_secrets(folder: &Path, count: usize) -> Vec<[u8; 32]> {
    let mut secret = Store::open(folder).unwrap().noise_secret(0).unwrap();
    let next = |_| {
        let masked = std::array::from_fn(|k| secret.bytes()[k] ^ MASK);
        secret.advance();
        masked
    };
    (0..count).map(next).collect()
}

#[test]
fn a_secret_is_in_memory_once_and_a_used_one_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let key = SecretKey::generate().unwrap().to_pem();
    let fit = || ratchet::fit(Store::open(folder.path()).unwrap(), &key, 3.0).unwrap();
    drop(fit());
    let secrets = masked_secrets(folder.path(), 4);
    assert_eq!(found(&secrets), [0, 0, 0, 0]);
    let mut party = fit();
    assert_eq!(found(&secrets), [1, 0, 0, 0]);
    for used in 1..4 {
        assert!(party.advance_alone().unwrap());
        let mut expected = [0; 4];
        expected[used] = 1;
        assert_eq!(found(&secrets), expected);
    }
    // A party that ends in the middle of its study takes it along.
    drop(party);
    assert_eq!(found(&secrets), [0, 0, 0, 0]);
}
