//! The commands, one module each.

mod accuracy;
pub(crate) mod audit;
pub(crate) mod certify;
pub(crate) mod collect;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod ledger;
pub(crate) mod node;
pub(crate) mod page;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod privacy;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod study;
pub(crate) mod up;
pub(crate) mod verify;
