//! Files that make a decoder panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread decodes a file right now, so that a panic is about the file, is caught and becomes a
/// [`DataError`](crate::DataError).
///
/// Rust's panic hook runs before a panic is caught, and prints it. A program with users sets a hook of its own that
/// stays silent while this holds. Files are decoded on the thread that asked for them, and on no other.
pub fn decoding() -> bool {
    // A hook may run while the thread's own values are being dropped; nothing is decoded then.
    DECODING.try_with(Cell::get).unwrap_or(false)
}

/// What the decoder made, or none if it panicked. What it leaves behind then must not be looked at again.
pub(crate) fn decode<T>(decoder: impl FnOnce() -> T) -> Option<T> {
    let before = DECODING.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decoder));
    DECODING.set(before);
    decoded.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_and_known_to_be_the_decoders() {
        assert!(!decoding());
        assert_eq!(decode(decoding), Some(true));
        assert_eq!(
            decode::<()>(|| std::panic::resume_unwind(Box::new(()))),
            None
        );
        assert!(!decoding(), "the next panic is not the decoder's");
        let elsewhere = decode(|| std::thread::spawn(decoding).join().ok());
        assert_eq!(elsewhere, Some(Some(false)));
    }
}
