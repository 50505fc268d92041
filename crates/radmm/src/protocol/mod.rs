//! Messages between parties, released values, and questions to rows.

pub mod message;
pub mod metric;
pub mod query;
pub mod release;

pub use message::Message;
pub use metric::Metric;
pub use query::Query;
pub use release::Release;
