//! Messages to people.

/// Writes a line to stderr. Whoever reads it may have gone, and that stops nothing: `eprintln!` would panic.
macro_rules! message {
    ($($words:tt)*) => {
        $crate::output::stderr::line(&format!($($words)*))
    };
}

pub(crate) use message;

/// In one go, so that lines of several processes stay whole.
pub(crate) fn line(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
