//! What everybody may know of a party.

use radmm::account::{BadBudget, Budget, Event, Guarantee, Ledger, SpendError};
use radmm::private::Mechanism;
use radmm::public::graph::{Graph, NodeId};
use radmm_study::{Limit, Study};
use thiserror::Error;

/// What everybody may know of a party: its part of a study, how many rows it has, and where its noise comes from.
#[derive(Clone, Debug)]
pub struct About {
    /// What all agreed on.
    pub study: Study,
    /// Who talks to whom.
    pub graph: Graph,
    /// Which party this is.
    pub node: NodeId,
    /// `B_i`.
    pub rows: usize,
    /// Its noise.
    pub mechanism: Mechanism,
    /// Whether that repeats, and so protects nobody.
    pub seeded: bool,
    /// Over everything ever asked of its rows.
    pub limit: Option<Limit>,
}

/// Why charges have no total.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum NoTotal {
    /// The study's δ is none.
    #[error(transparent)]
    Budget(#[from] BadBudget),
    /// A charge cannot have been made.
    #[error(transparent)]
    Charge(#[from] SpendError),
}

impl About {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.study.parties[self.node.0 as usize].name
    }

    /// Whether its noise protects anybody.
    pub fn protects(&self) -> bool {
        !self.seeded && self.study.privacy.unprotected().is_none()
    }

    /// What must be said with its total.
    pub fn caveat(&self) -> String {
        if let Some(how) = self.study.privacy.unprotected() {
            return format!("answers were released {how}: nobody is protected");
        }
        match self.seeded {
            true => "a rehearsal: the noise repeats from the study's seed, which all parties know: nobody is protected",
            false => {
                "it is a promise of this party, whose noise nobody else can see drawn; a person with several rows is protected \
                 less than a person with one"
            }
        }
        .to_owned()
    }
}

/// What a study's charges come to, by its own bound and at its own δ: the same to the bit for whoever computes it.
pub fn total(study: &Study, events: impl IntoIterator<Item = Event>) -> Result<Guarantee, NoTotal> {
    let budget = Budget::unlimited(study.privacy.delta)?;
    let once = events.into_iter().map(|event| (event, 1));
    Ok(Ledger::total_of(budget, study.privacy.bound, once)?)
}
