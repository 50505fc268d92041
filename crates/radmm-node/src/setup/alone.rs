//! The setup of a party that trains on its own rows alone, without a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use radmm::graph::NodeId;
use radmm_data::FileOptions;
use radmm_study::{
    Limit, NoiseOrigin, SiteData, SiteFile, SiteRows, Study, StudyError, StudyParty,
};
use thiserror::Error;

use super::rows::{GivenRows, LocalRows};
use super::{Parts, PartySetup, SetupError};
use crate::key::SecretKey;
use crate::store::{Store, StoreError, StudyRecord};

/// The name of a party that nobody else talks to.
const UNNAMED_PARTY: &str = "this party";

/// The parts of a party that trains on its own rows alone.
pub struct OnePartyConfig<'a> {
    /// The study as text, without `[[parties]]` and `[network]`. Its name must tell its number, and nothing else.
    pub study: &'a dyn Fn(usize) -> String,
    /// The name of the study in messages.
    pub study_name: &'a str,
    /// The rows.
    pub rows: GivenRows<'a>,
    /// The key that signs statements.
    pub key: SecretKey,
    /// The source of the noise.
    pub noise: NoiseOrigin,
    /// Whether bounds or vocabularies of the study were read off the rows. No guarantee covers what they tell.
    pub read_off: bool,
    /// The limit of everything that is ever asked of these rows: the first of these that leaves room for this fit alone.
    pub limits: Vec<Limit>,
    /// The name of the limit's origin in messages.
    pub site_name: &'a str,
    /// Whether the results of a finished fit were handed over, by its name. One that was paid for and is not handed over yet is
    /// taken up again by the same fit.
    pub is_delivered: &'a dyn Fn(&str) -> bool,
}

impl PartySetup {
    /// Brings together a party without neighbours.
    ///
    /// A store that holds an unfinished fit with the same parameters on the same rows resumes it, unless an adoption has erased its
    /// secret: what was charged is used, and nothing is charged twice. So it does with a finished one whose results were not handed over.
    /// Every other fit is a new study with a name of its own, which is charged on top of all earlier ones.
    pub fn alone(config: OnePartyConfig<'_>, store: &Store) -> Result<Self, OnePartyError> {
        let parse = |number: usize, rows: usize| {
            let party = StudyParty {
                name: UNNAMED_PARTY.to_owned(),
                key: config.key.identity(),
                rows: Some(rows),
                address: None,
            };
            let text = (config.study)(number);
            let parsed = Study::parse_for_one_party(&text, config.study_name, party);
            parsed.map(|(study, _)| study)
        };
        let name = config.rows.name().to_owned();
        let mut study = parse(1, config.rows.rows())?;
        let rows = LocalRows::given(&study, config.rows).map_err(SetupError::from)?;
        let fingerprint = store.row_fingerprint(&rows.hash).to_string();
        let records = store.studies();
        for number in 1.. {
            // Rows with a missing value are not trained on.
            study = parse(number, rows.rows.rows())?;
            let mut namesakes = records.iter().filter(|record| record.name == study.name);
            let Some(before) = namesakes.next() else {
                break;
            };
            let is_same = |record: &StudyRecord| {
                record.sha256 == study.sha256()
                    && record.fingerprint == fingerprint
                    && record.read_off == config.read_off
            };
            let is_over = before.finished && (config.is_delivered)(&before.name);
            // Privacy: one whose secret was erased answers nothing any more, and its charges stay.
            let can_resume = store.can_resume(before.number).map_err(SetupError::from)?;
            if is_same(before) && !is_over && can_resume {
                break;
            }
        }
        let graph = study.network.graph().map_err(|cause| SetupError::Graph {
            study: config.study_name.to_owned(),
            cause,
        })?;
        let site = SiteFile {
            key: String::new(),
            party: None,
            approved: None,
            state: String::new(),
            witness: None,
            out: String::new(),
            listen: None,
            metrics: None,
            hosts: Vec::new(),
            noise: config.noise,
            stop_on_suspicion: false,
            data: SiteData {
                rows: SiteRows::File {
                    path: name,
                    options: FileOptions::default(),
                },
                // Privacy: everything that was ever asked in this folder counts, on whichever rows.
                continues: earlier_fingerprints(store).map_err(SetupError::from)?,
            },
            limit: None,
            addresses: BTreeMap::new(),
        };
        // Privacy: secret noise is drawn only under a limit.
        if config.limits.is_empty() {
            return Err(SetupError::NoLimit.into());
        }
        let mut setup = Self::assemble(Parts {
            study,
            study_name: config.study_name,
            graph,
            site,
            site_name: config.site_name,
            site_folder: Path::new(""),
            me: NodeId(0),
            key: config.key,
            rows,
            read_off: config.read_off,
        })?;
        for limit in config.limits {
            // Privacy: a function of public facts, and the same for every fit with these parameters.
            setup.site.limit = Some(limit);
            if setup.bill(None).is_ok() {
                break;
            }
        }
        Ok(setup)
    }
}

/// The reason why a party cannot train alone.
#[derive(Debug, Error)]
pub enum OnePartyError {
    /// The study is invalid.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The parts do not go together, or the limit is reached.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Returns the fingerprints of all rows that were ever charged in a folder.
fn earlier_fingerprints(store: &Store) -> Result<Vec<[u8; 32]>, StoreError> {
    let charges = store.charges()?;
    let distinct: BTreeSet<[u8; 32]> = charges.iter().map(|charge| charge.rows.0).collect();
    Ok(distinct.into_iter().collect())
}
