//! What a study costs one party.

use radmm::account::Guarantee;
use radmm::private::Law;
use serde::Serialize;

/// What a study costs one party, before it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bill {
    /// `B_i`.
    pub rows: usize,
    /// How often the rows are asked.
    pub data_steps: usize,
    /// How often they are not.
    pub recycled_steps: usize,
    /// The noise.
    #[serde(flatten)]
    pub law: Option<Law>,
    /// What the whole study costs.
    pub total: Guarantee,
    /// For each limit of the site: what all studies have spent so far.
    pub before: Vec<Guarantee>,
    /// The same when the study is over.
    pub after: Vec<Guarantee>,
    /// The limits.
    pub limits: Vec<Guarantee>,
    /// Whether the noise protects anybody.
    pub protects: bool,
}
