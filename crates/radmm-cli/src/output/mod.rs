//! Output: tables on stdout, messages and progress on stderr, files.

pub(crate) mod files;
mod message_queue;
pub(crate) mod metrics;
pub(crate) mod prediction_writer;
pub(crate) mod progress;
pub(crate) mod sqlite;
pub(crate) mod stderr;
pub(crate) mod tables;
