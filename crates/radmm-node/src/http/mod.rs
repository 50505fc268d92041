//! A small HTTP/1.1 server for a loopback address, and the client that reads it.
//!
//! [`Access`] checks for which host a page is asked, and who asks. [`serve`] answers one request a connection, on a thread of its own,
//! within deadlines and with a bounded number of connections.

mod access;
pub mod client;
mod message;
mod server;

pub use access::{Access, Routes};
pub use message::{HttpRequest, HttpResponse};
pub use server::{ServerLimits, serve};
