//! Panics of decoders, caught and turned into errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is decoding a file, so that a panic is caught and becomes a
/// [`DataError`](crate::DataError).
///
/// Rust's panic hook runs before a panic is caught, and prints it. A program should set a hook that stays silent while
/// this is true. Files are decoded on the thread that asked for them, and on no other.
pub fn is_decoding() -> bool {
    // A hook may run while the thread's values are being dropped. Nothing is decoded then.
    DECODING.try_with(Cell::get).unwrap_or(false)
}

/// Runs a decoder, and returns `None` if it panicked. State that it leaves behind after a panic must not be used again.
pub(crate) fn catch_panic<T>(decoder: impl FnOnce() -> T) -> Option<T> {
    let before = DECODING.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decoder));
    DECODING.set(before);
    decoded.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_and_attributed_to_the_decoder() {
        assert!(!is_decoding());
        assert_eq!(catch_panic(is_decoding), Some(true));
        assert_eq!(
            catch_panic::<()>(|| std::panic::resume_unwind(Box::new(()))),
            None
        );
        assert!(!is_decoding(), "the next panic is not the decoder's");
        let elsewhere = catch_panic(|| std::thread::spawn(is_decoding).join().ok());
        assert_eq!(elsewhere, Some(Some(false)));
    }
}
