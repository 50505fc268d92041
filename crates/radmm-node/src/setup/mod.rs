//! The setup of a party: study, site file, key and rows, brought together and checked against each other before anything is sent.

mod alone;
mod balance;
mod bill;
mod command;
mod data_check;
mod error;
mod identify;
mod open;
mod rows;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use radmm::curator::HeldRows;
use radmm::graph::{Graph, NodeId};
use radmm::privacy::{Mechanism, PrivacyEvent};
use radmm_study::{Identity, NoiseOrigin, SiteFile, SiteRows, Study, hex};

use crate::key::SecretKey;
use crate::machine::Peer;
use crate::public_facts::PublicFacts;
pub use alone::{OnePartyConfig, OnePartyError};
pub use balance::{Balance, BalanceTotal};
pub use bill::PartyBill;
pub(crate) use bill::plan_party;
pub use command::{
    LastMessages, ReadingObserver, RowCommandError, RowCommandFailure, StillReading,
};
pub use data_check::{DataCheck, LabelCount};
pub use error::SetupError;
pub use identify::IdentifyError;
use identify::identify_party;
pub use open::RayonExecutor;
use rows::LocalRows;
pub use rows::{Folders, GivenRows, RowsError, hash_of_files};

/// A study and a site that belong together, with the party's key and rows.
pub struct PartySetup {
    study: Study,
    graph: Graph,
    site: SiteFile,
    site_folder: PathBuf,
    site_name: String,
    me: NodeId,
    key: Arc<SecretKey>,
    rows: HeldRows,
    hash: [u8; 32],
    data_check: Option<DataCheck>,
    mechanism: Mechanism,
    /// Whether the study's bounds or vocabularies were read off the rows.
    read_off: bool,
    /// The charges of the whole study, by iteration.
    plan: Vec<(u32, PrivacyEvent)>,
}

/// The parts of a setup, checked against each other.
struct Parts<'a> {
    study: Study,
    study_name: &'a str,
    graph: Graph,
    site: SiteFile,
    site_name: &'a str,
    site_folder: &'a Path,
    me: NodeId,
    key: SecretKey,
    rows: LocalRows,
    read_off: bool,
}

impl PartySetup {
    /// Reads key and rows, and finds out which party this is and which noise it needs. `names` are those of the study and the
    /// site file in messages.
    pub fn new(
        study: Study,
        site: SiteFile,
        folders: Folders<'_>,
        names: (&str, &str),
    ) -> Result<Self, SetupError> {
        Self::observed(study, site, folders, names, &())
    }

    /// Does the same as [`new`](Self::new) while an observer sees how a command prints the rows.
    pub fn observed(
        study: Study,
        site: SiteFile,
        folders: Folders<'_>,
        names: (&str, &str),
        observer: &dyn ReadingObserver,
    ) -> Result<Self, SetupError> {
        Self::bring_together(study, site, folders, names, |study, site, me| {
            LocalRows::read(study, &site.data.rows, folders, me, observer)
        })
    }

    /// Does the same as [`new`](Self::new) with rows that a program hands over, in place of those that the site file names.
    pub fn with_rows(
        study: Study,
        site: SiteFile,
        folders: Folders<'_>,
        names: (&str, &str),
        rows: GivenRows<'_>,
    ) -> Result<Self, SetupError> {
        Self::bring_together(study, site, folders, names, |study, _, me| {
            let name = rows.name().into();
            let rows = LocalRows::given(study, rows)?;
            rows.check_declared(study, me, name)?;
            Ok(rows)
        })
    }

    fn bring_together(
        study: Study,
        site: SiteFile,
        folders: Folders<'_>,
        names: (&str, &str),
        read: impl FnOnce(&Study, &SiteFile, NodeId) -> Result<LocalRows, RowsError>,
    ) -> Result<Self, SetupError> {
        let (study_name, site_name) = names;
        if study.parties.is_empty() {
            return Err(SetupError::NoParties(study_name.to_owned()));
        }
        // Privacy: before anything else of the study is believed.
        if let Some(approved) = site.approved.filter(|approved| *approved != study.digest()) {
            return Err(SetupError::OtherStudy {
                site: site_name.to_owned(),
                approved: hex::encode(&approved),
                study: study_name.to_owned(),
                found: study.sha256(),
            });
        }
        let graph = study.network.graph();
        let graph = graph.map_err(|cause| SetupError::Graph {
            study: study_name.to_owned(),
            cause,
        })?;
        let key_file = folders.site.join(&site.key);
        let key = SecretKey::read(&key_file)?;
        let me = identify_party(&study, &site, site_name, (&key_file, key.identity()))?;
        let ids = graph.neighbours(me).iter();
        let neighbours: Vec<&str> = ids
            .map(|id| study.parties[id.0 as usize].name.as_str())
            .collect();
        let mut dialled = site.addresses.keys();
        if let Some(name) = dialled.find(|name| !neighbours.contains(&name.as_str())) {
            return Err(SetupError::NoNeighbour {
                site: site_name.to_owned(),
                me: study.parties[me.0 as usize].name.clone(),
                name: name.clone(),
                neighbours: neighbours.join(", "),
            });
        }
        if site.limit.is_none() && site.noise == NoiseOrigin::Secret {
            return Err(SetupError::NoLimit);
        }
        let rows = read(&study, &site, me)?;
        Self::assemble(Parts {
            study,
            study_name,
            graph,
            site,
            site_name,
            site_folder: folders.site,
            me,
            key,
            rows,
            read_off: false,
        })
    }

    /// Plans the questions to the rows, and the noise that the study's total takes.
    fn assemble(parts: Parts<'_>) -> Result<Self, SetupError> {
        let Parts {
            study, graph, rows, ..
        } = parts;
        let plan = plan_party(&study, &graph, parts.me, rows.rows.rows());
        let (mechanism, plan) = plan.map_err(|cause| SetupError::UnattainableBudget {
            study: parts.study_name.to_owned(),
            cause: Box::new(cause),
        })?;
        Ok(Self {
            site_folder: parts.site_folder.to_owned(),
            site_name: parts.site_name.to_owned(),
            me: parts.me,
            key: Arc::new(parts.key),
            rows: rows.rows,
            hash: rows.hash,
            data_check: rows.data_check,
            mechanism,
            read_off: parts.read_off,
            plan,
            study,
            graph,
            site: parts.site,
        })
    }

    /// Returns the study that all parties agreed on.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the site file, which is this party's own.
    pub fn site(&self) -> &SiteFile {
        &self.site
    }

    /// Returns the study's network.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns this party's node in the network.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Returns this party's name.
    pub fn name(&self) -> &str {
        &self.study.parties[self.me.0 as usize].name
    }

    /// Returns the number of rows, `B_i`.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.rows.columns()
    }

    /// Returns the iterations that ask the rows.
    pub fn data_steps(&self) -> impl Iterator<Item = u32> {
        self.plan.iter().map(|(iteration, _)| *iteration)
    }

    /// Returns what was counted in the party's own file; `None` if the rows are a share of the study's table.
    // Privacy: only for people who may see the rows.
    pub fn data_check(&self) -> Option<&DataCheck> {
        self.data_check.as_ref()
    }

    /// Runs the command that prints the rows once more, and returns whether it prints the same; `None` if the rows come from elsewhere.
    ///
    /// A node that is started again reads its rows again, and resumes if they are the same, in the same order.
    pub fn command_repeats(
        &self,
        observer: &dyn ReadingObserver,
    ) -> Result<Option<bool>, SetupError> {
        let SiteRows::Command { command, .. } = &self.site.data.rows else {
            return Ok(None);
        };
        let hash = rows::hash_of_command(command, &self.site_folder, observer)?;
        Ok(Some(hash == self.hash))
    }

    /// Returns the path of the key file.
    pub fn key_file(&self) -> PathBuf {
        self.path(&self.site.key)
    }

    /// Returns the party's secret key.
    pub fn key(&self) -> &Arc<SecretKey> {
        &self.key
    }

    /// Returns the party's public key.
    pub fn identity(&self) -> Identity {
        self.study.parties[self.me.0 as usize].key
    }

    /// Resolves a path of the site file.
    pub fn path(&self, written: &str) -> PathBuf {
        self.site_folder.join(written)
    }

    /// Returns whether the noise protects anybody.
    pub fn protects(&self) -> bool {
        let exact = self.study.privacy.unprotected().is_some();
        self.site.noise == NoiseOrigin::Secret && !self.read_off && !exact
    }

    /// Returns the tick on which answers leave; `None` if they leave at once, as in a rehearsal.
    pub fn tick(&self) -> Option<Duration> {
        let exact = self.study.privacy.unprotected().is_some();
        let paced = self.site.noise == NoiseOrigin::Secret && !exact;
        // The network is valid: it was built before.
        let tick = self.study.tick().ok().filter(|tick| !tick.is_zero());
        tick.filter(|_| paced)
    }

    /// Returns the public facts about this party.
    pub fn public_facts(&self) -> PublicFacts {
        PublicFacts {
            study: self.study.clone(),
            graph: self.graph.clone(),
            node: self.me,
            rows: self.rows(),
            mechanism: self.mechanism,
            noise: self.site.noise,
            read_off: self.read_off,
            limit: self.site.limit.clone(),
        }
    }

    /// Returns the neighbours, each with the address to dial if it has one.
    pub fn neighbours(&self) -> impl Iterator<Item = (Peer, Option<String>)> {
        self.graph.neighbours(self.me).iter().map(|id| {
            let party = &self.study.parties[id.0 as usize];
            let own = self.site.addresses.get(&party.name);
            let peer = Peer {
                id: *id,
                name: party.name.clone(),
                key: party.key.bytes(),
            };
            (peer, own.or(party.address.as_ref()).cloned())
        })
    }
}
