//! The facts about a party that everybody may know.

use radmm::graph::{Graph, NodeId};
use radmm::privacy::{
    Budget, Guarantee, InvalidBudget, Ledger, Mechanism, PrivacyEvent, PrivacyProfile, SpendError,
};
use radmm_study::{Limit, NoiseOrigin, Study};
use thiserror::Error;

/// The public facts about a party: its place in a study, the number of its rows, and its noise.
#[derive(Clone, Debug)]
pub struct PublicFacts {
    /// The study that all parties agreed on.
    pub study: Study,
    /// The study's network.
    pub graph: Graph,
    /// The party's node in it.
    pub node: NodeId,
    /// The number of rows, `B_i`.
    pub rows: usize,
    /// The noise of its answers.
    pub mechanism: Mechanism,
    /// The source of the noise.
    pub noise: NoiseOrigin,
    /// Whether the study's bounds or vocabularies were read off the rows, so that no guarantee covers what they tell.
    pub read_off: bool,
    /// The site's limit over all studies on its rows.
    pub limit: Option<Limit>,
}

/// The reason why charges have no total.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum TotalError {
    /// The study's δ is invalid.
    #[error(transparent)]
    Budget(#[from] InvalidBudget),
    /// A charge is invalid.
    #[error(transparent)]
    Charge(#[from] SpendError),
}

impl PublicFacts {
    /// Returns the party's name.
    pub fn name(&self) -> &str {
        &self.study.parties[self.node.0 as usize].name
    }

    /// Returns whether the noise protects anybody.
    pub fn protects(&self) -> bool {
        self.noise == NoiseOrigin::Secret
            && !self.read_off
            && self.study.privacy.unprotected().is_none()
    }

    /// Returns the caveat that goes with the party's total.
    pub fn caveat(&self) -> String {
        if let Some(how) = self.study.privacy.unprotected() {
            return format!("answers were released {how}: nobody is protected");
        }
        if self.read_off {
            return "bounds, vocabularies or other facts were read off the rows, and no guarantee covers what they tell"
                .to_owned();
        }
        match self.noise {
            NoiseOrigin::Seeded => "a rehearsal: the noise repeats from the study's seed, which all parties know: nobody is protected",
            NoiseOrigin::Secret => {
                "it is a promise of this party, whose noise nobody else can see drawn; a person with several rows is protected \
                 less than a person with one"
            }
        }
        .to_owned()
    }
}

/// Returns the total of a study's charges, by the study's bound and at its δ. It is the same to the bit on every machine.
pub(crate) fn study_total(
    study: &Study,
    events: impl IntoIterator<Item = PrivacyEvent>,
) -> Result<Guarantee, TotalError> {
    let budget = Budget::unlimited(study.privacy.delta)?;
    let once = events.into_iter().map(|event| (event, 1));
    Ok(Ledger::total_of(budget, study.privacy.bound, once)?)
}

/// Returns the same total at several `δ`; `None` if it is pure or infinite.
pub(crate) fn study_profile(
    study: &Study,
    events: impl IntoIterator<Item = PrivacyEvent>,
) -> Result<Option<PrivacyProfile>, TotalError> {
    let budget = Budget::unlimited(study.privacy.delta)?;
    let once = events.into_iter().map(|event| (event, 1));
    Ok(Ledger::profile_of(budget, study.privacy.bound, once)?)
}
