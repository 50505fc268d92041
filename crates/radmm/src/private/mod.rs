//! The only folder that touches rows. They come in through [`ShardBuilder`], move into a [`Curator`], and leave as paid
//! answers.

mod accuracy;
mod cholesky;
mod chunk;
mod curator;
mod elementary;
mod exact;
mod exam;
mod grid;
mod hands;
mod hessian;
mod kernel;
mod loss;
#[cfg(feature = "bench")]
pub mod measure;
mod mechanism;
mod noise;
mod point;
mod quadratic;
mod search;
mod shape;
mod shard;
mod solve;

pub(crate) use curator::{Asking, Fit};
pub use curator::{BadTerms, Curator, Recorded, Refusal, Terms};
pub(crate) use exam::examine;
pub use exam::{Score, area};
pub use grid::TooCoarse;
pub use hands::{Hands, OneHand};
pub use loss::Loss;
pub use mechanism::{Mechanism, Problem, Scaling, Unanswerable, Unreleasable};
pub use noise::{Law, NoiseKey};
pub(crate) use quadratic::Quadratic;
pub use shard::{NoRows, NormPolicy, RowError, Shard, ShardBuilder};
pub use solve::NotCertified;
