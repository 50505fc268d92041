//! What parties say to each other, and what an algorithm asks of rows.

pub mod message;
pub mod query;
pub mod release;

pub use message::Message;
pub use query::Query;
pub use release::Release;
