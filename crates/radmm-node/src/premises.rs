//! What a party is before it says anything: study and site, brought together and held against each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::account::{BadBudget, Budget, Guarantee, Ledger, Site, SpendError};
use radmm::node::{BadStart, Node, Setup};
use radmm::private::{BadTerms, Curator, Hands, Law, Mechanism, NoiseKey, Shard, Terms};
use radmm::public::graph::{Graph, GraphError, NodeId};
use radmm_study::pricing::{PartySize, Plan, UnattainableBudget};
use radmm_study::{Identity, Noise, NoiseOrigin, SiteFile, Study, instantiate, pricing::calibrate};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::about::About;
use crate::balance::replay;
use crate::key::{KeyError, SecretKey};
use crate::party::{Halt, Opening, Party, Peer};
use crate::rows::{Folders, Rows, RowsError};
use crate::seat::{SeatError, seat};
use crate::seen::Seen;
use crate::store::{Begun, Charge, Fingerprint, Store, StoreError};

/// Why a party cannot begin.
#[derive(Debug, Error)]
pub enum PremisesError {
    /// The study is for simulations.
    #[error(
        "{0}: there are no [[parties]]; give every party a name, a key (radmm key new) and an address, or try the study on this machine with \"radmm up\""
    )]
    NoParties(String),
    /// The network is none.
    #[error("{study}: [network] {cause}")]
    Graph {
        /// The study's name.
        study: String,
        /// What is wrong.
        cause: GraphError,
    },
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key is nobody's, or not that of the party that the site should be.
    #[error(transparent)]
    Seat(#[from] Box<SeatError>),
    /// A name in `[addresses]` that is no neighbour's.
    #[error(
        "{site}: [addresses] {name}: this site is {me}, by its key, and has no such neighbour; its neighbours are {neighbours}"
    )]
    NoNeighbour {
        /// The site file.
        site: String,
        /// Which party this is.
        me: String,
        /// What stands there.
        name: String,
        /// Who it could have been.
        neighbours: String,
    },
    /// There are no rows.
    #[error(transparent)]
    Rows(Box<RowsError>),
    /// The study's privacy cannot be had.
    #[error("{study}: {cause}")]
    TooDear {
        /// The study's name.
        study: String,
        /// Why.
        cause: Box<UnattainableBudget>,
    },
    /// The study spends more than the site allows.
    #[error(
        "{site}: [limit] epsilon = {} at delta = {:?}: all studies have spent {spent:.4} of it on these rows, and with this one it would be {after:.4}; {}; nothing was spent",
        limit.epsilon,
        limit.delta,
        beyond(*after, limit)
    )]
    BeyondLimit {
        /// The site file.
        site: String,
        /// ε so far.
        spent: f64,
        /// ε when the study is over.
        after: f64,
        /// Which limit.
        limit: Guarantee,
    },
    /// Noise that protects nobody needs no limit, and noise that does needs one.
    #[error(
        "this site has no [limit]; give epsilon and delta, over everything ever asked of its rows"
    )]
    NoLimit,
    /// The total is none.
    #[error(transparent)]
    Budget(#[from] BadBudget),
    /// What is on record cannot have been charged.
    #[error(
        "what is on record cannot have been charged: {0}; restore the state folder from a backup"
    )]
    Journal(SpendError),
    /// The problem or the noise is out of range.
    #[error(transparent)]
    Terms(#[from] BadTerms),
    /// A starting model is out of range.
    #[error(transparent)]
    Start(#[from] BadStart),
    /// The rows are not those of the account.
    #[error(
        "the rows are not those that this state folder accounts for ({found} now, {before} before). If they are the same people's rows in a later state, say so: [data] continues = [\"{before}\"] in the site file, and everything spent on them counts on. If they are other people's, use another state folder"
    )]
    OtherRows {
        /// Of the rows as they are.
        found: Fingerprint,
        /// Of rows that were charged.
        before: Fingerprint,
    },
    /// The rows were asked with noise that protects nobody.
    #[error(
        "study {study} asked these rows with noise = \"seeded\" in this state folder: whoever knows the seed knows the answers without noise, so nothing asked of them later is private. Rehearse on other rows, in another state folder"
    )]
    Rehearsed {
        /// The rehearsal's name.
        study: String,
    },
    /// The study was begun on other rows, with other noise, or as another party.
    #[error(
        "study {study} was begun in this state folder {how}, and cannot go on otherwise; restore what was, or give the study a new name to begin anew"
    )]
    BegunOtherwise {
        /// The study's name.
        study: String,
        /// How it was begun.
        how: String,
    },
    /// What must not be forgotten cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The party cannot go on.
    #[error(transparent)]
    Halt(#[from] Halt),
}

/// What would help.
fn beyond(after: f64, limit: &Guarantee) -> &'static str {
    match (after.is_infinite(), limit.delta == 0.0) {
        (true, true) => {
            "Gaussian noise has no pure total: give the limit a delta, or the study gamma noise"
        }
        (true, false) => "without noise there is no total",
        _ => "lower the study's epsilon or its number of data steps, or raise the limit if you may",
    }
}

impl From<RowsError> for PremisesError {
    fn from(error: RowsError) -> Self {
        Self::Rows(Box::new(error))
    }
}

/// A study and a site that belong together.
pub struct Premises {
    study: Study,
    graph: Graph,
    site: SiteFile,
    site_folder: PathBuf,
    site_name: String,
    me: NodeId,
    shard: Shard,
    hash: [u8; 32],
    seen: Option<Seen>,
    mechanism: Mechanism,
    plan: Vec<(u32, radmm::account::Event)>,
}

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

impl Premises {
    /// Reads key and rows, and finds out which party this is and which noise it needs.
    pub fn new(
        study: Study,
        site: SiteFile,
        folders: Folders<'_>,
        names: (&str, &str),
    ) -> Result<Self, PremisesError> {
        let (study_name, site_name) = names;
        if study.parties.is_empty() {
            return Err(PremisesError::NoParties(study_name.to_owned()));
        }
        let graph = Graph::new(&study.network.topology, study.network.nodes as usize);
        let graph = graph.map_err(|cause| PremisesError::Graph {
            study: study_name.to_owned(),
            cause,
        })?;
        let key = folders.site.join(&site.key);
        let public = SecretKey::read(&key)?.public();
        let me = seat(&study, &site, site_name, (&key, public))?;
        let neighbour = |name: &String| {
            let mut ids = graph.neighbours(me).iter();
            ids.any(|id| study.parties[id.0 as usize].name == *name)
        };
        if let Some(name) = site.addresses.keys().find(|name| !neighbour(name)) {
            let ids = graph.neighbours(me).iter();
            let names = ids.map(|id| study.parties[id.0 as usize].name.as_str());
            return Err(PremisesError::NoNeighbour {
                site: site_name.to_owned(),
                me: study.parties[me.0 as usize].name.clone(),
                name: name.clone(),
                neighbours: names.collect::<Vec<_>>().join(", "),
            });
        }
        if site.limit.is_none() && site.noise == NoiseOrigin::Secret {
            return Err(PremisesError::NoLimit);
        }
        let rows = Rows::read(&study, &site.data.rows, folders, me)?;
        let dear = |cause| PremisesError::TooDear {
            study: study_name.to_owned(),
            cause: Box::new(cause),
        };
        let billed = PartySize {
            name: study.parties[me.0 as usize].name.clone(),
            rows: rows.shard.rows(),
        };
        let plan = Plan {
            study: &study,
            graph: &graph,
            parties: vec![billed; graph.len()],
        };
        let mechanism = plan.party(me.0 as usize).noise().map_err(dear)?;
        let charges = plan
            .party(me.0 as usize)
            .charges(&mechanism)
            .map_err(dear)?;
        Ok(Self {
            site_folder: folders.site.to_owned(),
            site_name: site_name.to_owned(),
            me,
            shard: rows.shard,
            hash: rows.hash,
            seen: rows.seen,
            mechanism,
            plan: charges,
            study,
            graph,
            site,
        })
    }

    /// What all parties agreed on.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// What this party decides alone.
    pub fn site(&self) -> &SiteFile {
        &self.site
    }

    /// Who talks to whom.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Which party this is.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.study.parties[self.me.0 as usize].name
    }

    /// `B_i`.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }

    /// What may be shown to whoever may see the rows, and to nobody else; nothing of the study's own table.
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_ref()
    }

    /// The file of its key.
    pub fn key_file(&self) -> PathBuf {
        self.path(&self.site.key)
    }

    /// Its public key.
    pub fn identity(&self) -> Identity {
        self.study.parties[self.me.0 as usize].key
    }

    /// A path of the site file.
    pub fn path(&self, written: &str) -> PathBuf {
        self.site_folder.join(written)
    }

    /// Whether its noise protects anybody.
    pub fn protects(&self) -> bool {
        self.site.noise == NoiseOrigin::Secret && self.study.privacy.unprotected().is_none()
    }

    /// What everybody may know of this party; taken before it is opened.
    pub fn about(&self) -> About {
        About {
            study: self.study.clone(),
            graph: self.graph.clone(),
            node: self.me,
            rows: self.rows(),
            mechanism: self.mechanism,
            seeded: self.site.noise == NoiseOrigin::Seeded,
            limit: self.site.limit.clone(),
        }
    }

    /// The site's key.
    pub fn key(&self) -> Result<SecretKey, KeyError> {
        SecretKey::read(&self.key_file())
    }

    /// The neighbours, with where they are dialled.
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

    /// What the study costs, and what it leaves of the site's limits. A store that was never opened holds no charges.
    pub fn bill(&self, store: Option<&Store>) -> Result<Bill, PremisesError> {
        let charges = store.map_or(Ok(Vec::new()), Store::charges)?;
        let own = self.begun(store)?.map(|begun| begun.number);
        let (_, before) = self.account(store, &charges)?;
        let done = charges.iter().filter(|charge| Some(charge.study) == own);
        let left = self.plan.iter().skip(done.count());
        // As if everything that is left had been charged: an account that is forgotten.
        let mut future = charges.clone();
        future.extend(left.map(|(iteration, event)| Charge {
            study: own.unwrap_or(u32::MAX),
            iteration: *iteration,
            data: Fingerprint(self.hash),
            event: *event,
        }));
        let (_, after) = self.account(store, &future)?;
        let all = self.plan.iter().map(|(_, event)| (*event, 1));
        let total = Ledger::total_of(self.budget()?, self.study.privacy.bound, all);
        let limits = self.site.limit.iter().flat_map(|limit| {
            let pure = limit.pure.map(|epsilon| (epsilon, 0.0));
            [pure, limit.relaxed].into_iter().flatten()
        });
        let limits: Vec<Guarantee> = limits
            .map(|(epsilon, delta)| Guarantee { epsilon, delta })
            .collect();
        for ((limit, before), after) in limits.iter().zip(&before).zip(&after) {
            // Written so that a NaN is refused.
            let within = after.epsilon <= limit.epsilon;
            if !within {
                return Err(PremisesError::BeyondLimit {
                    site: self.site_name.clone(),
                    spent: before.epsilon,
                    after: after.epsilon,
                    limit: *limit,
                });
            }
        }
        Ok(Bill {
            rows: self.rows(),
            data_steps: self.plan.len(),
            recycled_steps: self.study.algorithm.iterations as usize - self.plan.len(),
            law: calibrate::law(&self.mechanism),
            total: total.map_err(PremisesError::Journal)?,
            before,
            after,
            limits,
            protects: self.protects(),
        })
    }

    /// What the study itself promises.
    fn budget(&self) -> Result<Budget, PremisesError> {
        let delta = self.study.privacy.delta;
        Ok(match self.study.privacy.noise {
            Noise::Total(total) => Budget::limited(total.epsilon, delta)?,
            Noise::Given(_) => Budget::unlimited(delta)?,
        })
    }

    /// The account of these rows after everything on record, and what that comes to.
    fn account(
        &self,
        store: Option<&Store>,
        charges: &[Charge],
    ) -> Result<(Option<Site>, Vec<Guarantee>), PremisesError> {
        let Some(limit) = &self.site.limit else {
            return Ok((None, Vec::new()));
        };
        let own = limit.limits.order();
        let order = store.map_or(own, |store| store.order(own));
        let site = replay(&limit.limits, order, charges).map_err(PremisesError::Journal)?;
        let before = site.spent().map_err(journal)?.totals;
        Ok((Some(site), before))
    }

    /// The study in the store, if it was begun; and whether it may go on.
    fn begun(&self, store: Option<&Store>) -> Result<Option<Begun>, PremisesError> {
        let Some(store) = store else {
            return Ok(None);
        };
        let data = store.fingerprint(&self.hash);
        let continued = |of: &Fingerprint| *of == data || self.site.data.continues.contains(&of.0);
        let charges = store.charges()?;
        // Privacy: rows that changed are still the same people's, unless somebody who knows says otherwise. An account that
        // began at nothing with every new version of a file would be none.
        if let Some(other) = charges.iter().find(|charge| !continued(&charge.data)) {
            return Err(PremisesError::OtherRows {
                found: data,
                before: other.data,
            });
        }
        // Privacy: who knows the seed subtracts the noise, so what was asked with it has no finite price.
        let seeded =
            |begun: &&Begun| begun.seeded && charges.iter().any(|c| c.study == begun.number);
        let studies = store.studies();
        if let (NoiseOrigin::Secret, Some(rehearsed)) =
            (self.site.noise, studies.iter().find(seeded))
        {
            return Err(PremisesError::Rehearsed {
                study: rehearsed.name.clone(),
            });
        }
        let sha256 = self.study.sha256();
        let begun = studies.into_iter();
        let Some(begun) = { begun }.find(|begun| begun.sha256 == sha256) else {
            return Ok(None);
        };
        let otherwise = |how: &str| PremisesError::BegunOtherwise {
            study: self.study.name.clone(),
            how: how.to_owned(),
        };
        if begun.party != self.me.0 {
            let party = self.study.parties.get(begun.party as usize);
            return Err(otherwise(&format!(
                "as {}, not as {}, whose key is in {}",
                party.map_or("another party", |party| party.name.as_str()),
                self.name(),
                self.key_file().display()
            )));
        }
        if begun.fingerprint != data.to_string() {
            return Err(otherwise("on other rows"));
        }
        match (begun.seeded, self.site.noise) {
            (true, NoiseOrigin::Secret) => Err(otherwise("with noise = \"seeded\"")),
            (false, NoiseOrigin::Seeded) => Err(otherwise("with noise = \"secret\"")),
            _ => Ok(Some(begun)),
        }
    }

    /// Opens the party: new, or where it was.
    pub fn open(self, mut store: Store) -> Result<(Party, Bill), PremisesError> {
        // Everything that the study will cost is within the limits, or it does not begin.
        let bill = self.bill(Some(&store))?;
        let data = store.fingerprint(&self.hash);
        let begun = match self.begun(Some(&store))? {
            Some(begun) => begun,
            None => store.begin(|number| Begun {
                number,
                name: self.study.name.clone(),
                sha256: self.study.sha256(),
                party: self.me.0,
                fingerprint: data.to_string(),
                rows: self.shard.rows() as u64,
                seeded: self.site.noise == NoiseOrigin::Seeded,
                finished: false,
                served: BTreeSet::new(),
                assured: BTreeSet::new(),
            })?,
        };
        if let Some(limit) = &self.site.limit {
            // Before the first question: what is released must have no part in it.
            store.keep_order(limit.limits.order())?;
        }
        let (account, _) = self.account(Some(&store), &store.charges()?)?;
        let recorded = store.recorded(begun.number)?;
        let events = recorded.iter().map(|recorded| recorded.event);
        let ledger = Ledger::resumed(self.budget()?, self.study.privacy.bound, events);
        let mut ledger = ledger.map_err(PremisesError::Journal)?;
        if let Some(account) = &account {
            ledger = ledger.at(account);
        }
        let noise = match self.site.noise {
            NoiseOrigin::Secret => NoiseKey::secret(store.secret(begun.number)?),
            NoiseOrigin::Seeded => NoiseKey::repeating(self.study.run.seed, 0, self.me.0),
        };
        let terms = Terms {
            problem: instantiate::problem(&self.study),
            mechanism: self.mechanism,
            ledger,
            noise,
        };
        let key = self.key()?;
        let peers = self.neighbours().map(|(peer, _)| peer).collect();
        let columns = self.shard.columns();
        let (study, graph, me) = (&self.study, &self.graph, self.me);
        let node = Node::new(Setup {
            id: me,
            neighbours: graph.neighbours(me).to_vec(),
            iterations: study.algorithm.iterations,
            start: instantiate::start(study, me, columns),
            algorithm: instantiate::algorithm(
                &study.algorithm.method,
                graph,
                me,
                vec![0.0; columns],
            ),
            curator: Curator::new(self.shard, terms)?.with_hands(Arc::new(Pool)),
        })?;
        let party = Party::open(Opening {
            study,
            graph,
            node,
            peers,
            key,
            store,
            begun,
            data,
            account,
        })?;
        Ok((party, bill))
    }
}

fn journal(refusal: radmm::account::SiteRefusal) -> PremisesError {
    PremisesError::Journal(refusal.into())
}

/// All threads of this machine, for one party's rows.
struct Pool;

impl Hands for Pool {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}

/// The store of a site, if it was ever opened.
pub fn existing(folder: &Path) -> Result<Option<Store>, StoreError> {
    match Store::existing(folder) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
