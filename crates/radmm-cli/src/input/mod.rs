//! Input: study files, their rows, and notes on what looks wrong in them.

pub(crate) mod load;
pub(crate) mod relative_path;
pub(crate) mod warnings;
