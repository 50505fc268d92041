//! The price of a study, before a row is read: from a total ε to the noise of every party, and from noise to ε.
//!
//! When a party is queried, and at which price, depends on the study, the graph and the number of its rows alone.
//! [`plan`] lists the queries, [`calibrate`] finds the least noise that keeps them within a total, and [`noise_check`]
//! compares that noise with what the rows can say.

pub mod calibrate;
pub mod noise_check;
pub mod plan;

pub use calibrate::{PartyQueries, PricingError};
pub use noise_check::ExcessiveNoise;
pub use plan::{PartyPlan, PartySize, Plan, PlannedQueries, UnattainableBudget, amount_bits};
