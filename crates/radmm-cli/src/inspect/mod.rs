//! `radmm data inspect`: drafts a `[data]` section from a file of rows.

pub(crate) mod label_guess;
pub(crate) mod round_bounds;
pub(crate) mod schema_draft;
pub(crate) mod toml_writer;
