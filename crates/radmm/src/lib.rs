//! Recycled ADMM: many parties train one linear classifier, without a server, under one differential-privacy guarantee that
//! covers every message of the whole run.
//!
//! Five parties on a ring, each with a hundred rows of its own, and the total that all their messages cost:
//!
//! ```
//! use radmm::*;
//!
//! let graph = Graph::new(&Topology::Ring, 5)?;
//! let problem = Problem::new(Loss::Logistic, 5).with_weight(10.0);
//! let mechanism = Mechanism::objective(NoiseDistribution::gaussian(1.0));
//! let mut simulation = Simulation::on_graph::<Box<dyn std::error::Error>>(&graph, 20, |id| {
//!     let mut rows = ShardBuilder::new(2, NormPolicy::Clip);
//!     for n in 0..100 {
//!         let x = f64::from(n * 5 + id.0) * 0.7;
//!         rows.push(&[(0, 0.9 * x.sin()), (1, 0.4)], x.sin() + 0.3 * x.cos() > 0.0)?;
//!     }
//!     let ledger = Ledger::new(Budget::unlimited(1e-5)?, Bound::Tight);
//!     let noise = NoiseKey::repeating(1, 0, id.0); // a simulation protects nobody; see NoiseKey::secret
//!     let config = CuratorConfig::new(problem, mechanism, ledger, noise);
//!     let algorithm = Recycled::admm(1.0, 0.5, 2);
//!     Ok((Box::new(algorithm), Curator::new(rows.finish()?, config)?))
//! })?;
//! let last = simulation.run(&Sequential).last().unwrap()?;
//! println!("{:.1} % of rows, {}", 100.0 * last.mean_model.unwrap().accuracy, last.spent);
//! # assert!(last.mean_model.unwrap().accuracy > 0.8 && last.spent.epsilon < 10.0 && last.spent.epsilon > 1.0, "{last:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One idea carries the crate: an analyst who never sees rows, and a curator who never lets one go unpaid.
//!
//! - An *algorithm* ([`algorithm`]) is a function of released values. At each iteration it asks, which costs privacy, or
//!   recycles, which is free.
//! - A *curator* ([`curator`]) owns the rows. It prices a question, charges it to its ledger ([`privacy`]), and answers it
//!   with noise.
//! - A *node* ([`node`]) joins the two into one state machine; the simulator ([`sim`]) drives many of them.
//!
//! | to … | see |
//! |---|---|
//! | write an algorithm of one's own | [`Algorithm`], `examples/own_algorithm.rs` |
//! | price a run before it happens | [`algorithm::dry_run`], [`Mechanism::price`], `examples/budget.rs` |
//! | drive a party over a network | [`Node::receive`], and the crate `radmm-node`, which does |
//! | know whether a run converges | [`convergence`] |
//! | recompute what a party must say | [`step_verifier`] |
//!
//! The crate is pure: no IO, no clock, no threads, no randomness but what it is given.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests compare with the platform's functions"
    )
)]

pub mod algorithm;
pub mod convergence;
pub mod curator;
pub mod exec;
pub mod graph;
mod linalg;
pub mod node;
pub mod privacy;
pub mod problem;
pub mod protocol;
pub mod sim;
pub mod step_verifier;

pub use algorithm::admm::{Admm, Penalty};
pub use algorithm::dgd::Dgd;
pub use algorithm::dlm::Dlm;
pub use algorithm::recycled::Recycled;
pub use algorithm::schedule::Schedule;
pub use algorithm::{Algorithm, Step, View};
pub use curator::{Curator, CuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder};
pub use exec::Sequential;
pub use graph::{Graph, NodeId, Topology};
pub use node::{Node, NodeConfig, Output};
pub use privacy::{Bound, Budget, Guarantee, Ledger, Mechanism, NoiseDistribution};
pub use problem::{Loss, Problem};
pub use protocol::{Message, Query, Release};
pub use sim::{Simulation, Snapshot};
