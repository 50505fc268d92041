//! Panics that are caught and told as errors need no second telling.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is going to be caught and told as an error.
pub fn catching() -> bool {
    CATCHING.get()
}

/// What a computation comes to, or what it panicked with.
pub(crate) fn caught<T>(compute: impl FnOnce() -> T) -> Result<T, String> {
    let before = CATCHING.replace(true);
    // Whatever was half done is not looked at again: the caller gives up on it.
    let outcome = catch_unwind(AssertUnwindSafe(compute));
    CATCHING.set(before);
    outcome.map_err(|panic| {
        let words = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        words.unwrap_or("it cannot be read").to_owned()
    })
}
