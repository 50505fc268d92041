//! The parser of study files: one file for each section.
//!
//! [`reader`] finds sections and rejects unknown keys, [`entry`] turns one value into a number, a string or a choice,
//! and [`suggest`] finds the name that was probably meant.

pub(crate) mod address;
pub(crate) mod algorithm;
pub(crate) mod data;
pub(crate) mod entry;
pub(crate) mod features;
pub(crate) mod file_options;
pub(crate) mod network;
pub(crate) mod parties;
pub(crate) mod privacy;
pub(crate) mod problem;
pub(crate) mod reader;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod split;
pub(crate) mod suggest;
pub(crate) mod test_rows;
