//! The reasons why a party cannot start.

use radmm::curator::InvalidCuratorConfig;
use radmm::graph::GraphError;
use radmm::node::InvalidStart;
use radmm::privacy::{AccountRefusal, Guarantee, InvalidBudget, SpendError};
use radmm_study::number_format::as_typed;
use radmm_study::pricing::UnattainableBudget;
use thiserror::Error;

use super::{IdentifyError, RowsError};
use crate::key::KeyError;
use crate::machine::PartyError;
use crate::store::{RowFingerprint, StoreError};

/// The reason why a party cannot start.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The study names no parties: it is for simulations.
    #[error(
        "{0}: there are no [[parties]]; give every party a name, a key (radmm key new) and an address, or try the study on this machine with \"radmm up\""
    )]
    NoParties(String),
    /// The owner of the rows has approved another study.
    #[error(
        "{site}: [study] sha256: this site's owner approved the study {approved}, and {study} is {found}; find out what was changed, and if its owner approves it as it is (radmm study show {study}), write the new digest into the site file; nothing was spent"
    )]
    OtherStudy {
        /// The site file.
        site: String,
        /// The digest of the approved study.
        approved: String,
        /// The study's file.
        study: String,
        /// The study's digest.
        found: String,
    },
    /// The network is invalid.
    #[error("{study}: [network] {cause}")]
    Graph {
        /// The study's name.
        study: String,
        /// The reason.
        cause: GraphError,
    },
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key is not that of a party, or not that of the party the site file names.
    #[error(transparent)]
    Identify(#[from] Box<IdentifyError>),
    /// A name in `[addresses]` is not that of a neighbour.
    #[error(
        "{site}: [addresses] {name}: this site is {me}, by its key, and has no such neighbour; its neighbours are {neighbours}"
    )]
    NoNeighbour {
        /// The site file.
        site: String,
        /// The site's party.
        me: String,
        /// The unknown name.
        name: String,
        /// The names of the neighbours.
        neighbours: String,
    },
    /// The rows cannot be read.
    #[error(transparent)]
    Rows(Box<RowsError>),
    /// No noise attains the study's privacy.
    #[error("{study}: {cause}")]
    UnattainableBudget {
        /// The study's name.
        study: String,
        /// The reason.
        cause: Box<UnattainableBudget>,
    },
    /// The study spends more than the site allows.
    #[error(
        "{site}: [limit] epsilon = {} at delta = {}: all studies have spent {spent:.4} of it on these rows, and with this one it would be {after:.4}; {}; nothing was spent",
        limit.epsilon,
        as_typed(limit.delta),
        remedy(*after, limit)
    )]
    BeyondLimit {
        /// The site file.
        site: String,
        /// The ε spent so far.
        spent: f64,
        /// The ε spent when the study is over.
        after: f64,
        /// The limit.
        limit: Guarantee,
    },
    /// The account of the site does not admit the study's noise.
    #[error("{site}: [limit]: {cause}; nothing was spent")]
    Inadmissible {
        /// The site file.
        site: String,
        /// The reason.
        cause: AccountRefusal,
    },
    /// The limit is to be kept by another rule than before.
    #[error(
        "{site}: [limit] accounting = \"{found}\": the limit of these rows is kept by accounting = \"{recorded}\" since it was first set, before anything was released; write that"
    )]
    OtherAccounting {
        /// The site file.
        site: String,
        /// The rule in the site file.
        found: &'static str,
        /// The rule on record.
        recorded: &'static str,
    },
    /// A site with secret noise has no limit.
    #[error(
        "this site has no [limit]; give epsilon and delta, over everything ever asked of its rows"
    )]
    NoLimit,
    /// The study's budget is invalid.
    #[error(transparent)]
    Budget(#[from] InvalidBudget),
    /// The charges on record are invalid.
    #[error("the charges on record are invalid: {0}; put back the state folder as it was last")]
    Journal(SpendError),
    /// The problem or the noise is out of range.
    #[error(transparent)]
    Curator(#[from] InvalidCuratorConfig),
    /// The initial model is out of range.
    #[error(transparent)]
    Start(#[from] InvalidStart),
    /// The rows are not those of the account.
    #[error(
        "the rows are not those that this state folder accounts for (fingerprint {found} now, {before} before). If they are the same people's rows in a later state, add [data] continues = [\"{before}\"] to the site file, and what was spent on them still counts. If they are other people's rows, use another state folder{hint}"
    )]
    OtherRows {
        /// The fingerprint of the rows as they are.
        found: RowFingerprint,
        /// The fingerprint of rows that were charged.
        before: RowFingerprint,
        /// A reason that the place of the rows suggests, or nothing.
        hint: &'static str,
    },
    /// A rehearsal asked the rows with noise that protects nobody.
    #[error(
        "study {study} asked these rows with noise = \"seeded\" in this state folder: everybody who knows the seed knows the answers without noise, so that nothing asked of them later is private. Rehearse on other rows, in another state folder"
    )]
    Rehearsed {
        /// The rehearsal's name.
        study: String,
    },
    /// The study was started on other rows, with other noise, or as another party.
    #[error(
        "study {study} was started in this state folder {how}, and cannot be resumed differently; restore what was, or give the study a new name to start again"
    )]
    StartedDifferently {
        /// The study's name.
        study: String,
        /// The noise origin with which it was started.
        how: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The party cannot be resumed.
    #[error(transparent)]
    Party(#[from] PartyError),
}

/// Returns what would help a study beyond a limit.
fn remedy(after: f64, limit: &Guarantee) -> &'static str {
    match (after.is_infinite(), limit.delta == 0.0) {
        (true, true) => {
            "Gaussian noise has no pure total: give the limit a delta, or the study gamma or Laplace noise"
        }
        (true, false) => "without noise there is no total",
        _ => "lower the study's epsilon or its number of data steps, or raise the limit if you may",
    }
}

impl From<RowsError> for SetupError {
    fn from(error: RowsError) -> Self {
        Self::Rows(Box::new(error))
    }
}
