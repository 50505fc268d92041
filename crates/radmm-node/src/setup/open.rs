//! The start of a party: a new study, or one that is resumed from the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use radmm::curator::{ChargedAnswer, Curator, CuratorConfig, NoiseKey, WarmStart};
use radmm::exec::ChunkExecutor;
use radmm::node::{Node, NodeConfig};
use radmm::privacy::Ledger;
use radmm_study::instantiate::{self, Instance};
use radmm_study::{NoiseOrigin, SiteRows};
use rayon::prelude::*;

use super::{PartyBill, PartySetup, SetupError};
use crate::machine::{Party, PartyError, PartyParts};
use crate::store::{Charge, PlannedCharges, RowFingerprint, Store, StoreError, StudyRecord};

impl PartySetup {
    /// Opens the store of this party's state folder, with the witness that the site names.
    pub fn open_store(&self) -> Result<Store, StoreError> {
        let store = Store::open(&self.path(&self.site.state))?;
        match &self.site.witness {
            Some(witness) => store.with_witness(&self.path(witness)),
            None => store.check_named_witness(None).map(|()| store),
        }
    }

    /// Opens the store of this party's state folder for reading alone, if there is one, and checks that [`open_store`](Self::open_store)
    /// would not refuse it.
    pub fn read_store(&self) -> Result<Option<Store>, StoreError> {
        let witness = self.site.witness.as_ref();
        let witness = witness.map(|path| self.path(path));
        match Store::open_checked(&self.path(&self.site.state), witness.as_deref()) {
            Err(StoreError::Missing(_)) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Starts the study, or resumes it where it stopped.
    pub fn open(self, mut store: Store) -> Result<(Party, PartyBill), SetupError> {
        // The journal is scanned once: nothing up to the first question adds a charge.
        let history = store.charges_with_answers()?;
        let charges: Vec<Charge> = history.iter().map(|(charge, _)| *charge).collect();
        let started = self.find_study(&store, &charges)?;
        // Privacy: a study starts only if everything that it will cost is within the limits.
        let (bill, account) = self.price(Some(&store), &charges, started.as_ref())?;
        let rows = store.row_fingerprint(&self.hash);
        let record = match started {
            Some(started) => match store.forgotten(started.number) {
                Some((peer, iteration)) => {
                    let peer = peer.to_owned();
                    return Err(PartyError::StateRolledBack { peer, iteration }.into());
                }
                None => started,
            },
            None => store.begin_study(|number| StudyRecord {
                number,
                name: self.study.name.clone(),
                sha256: self.study.sha256(),
                party: self.me.0,
                fingerprint: rows.to_string(),
                rows: self.rows.rows() as u64,
                seeded: self.site.noise == NoiseOrigin::Seeded,
                read_off: self.read_off,
                plan: PlannedCharges::of(&self.plan),
                finished: false,
                ended: false,
                acked: BTreeSet::new(),
                ack_confirmed: BTreeSet::new(),
            })?,
        };
        if let Some(limit) = &self.site.limit {
            // Privacy: fixed before the first question, so that no release has a part in it.
            if let Some(accounting) = limit.limits.accounting() {
                store.set_accounting(accounting)?;
            }
        }
        let own = history
            .into_iter()
            .filter(|(charge, _)| charge.study == record.number);
        let charged_answers: Vec<ChargedAnswer> = own
            .map(|(charge, answer)| ChargedAnswer {
                iteration: charge.iteration,
                event: charge.event,
                answer,
            })
            .collect();
        let events = charged_answers.iter().map(|recorded| recorded.event);
        let ledger = Ledger::resumed(self.budget()?, self.study.privacy.bound, events);
        let mut ledger = ledger.map_err(SetupError::Journal)?;
        if let Some(account) = &account {
            ledger = ledger.with_account(account);
        }
        let noise = match self.site.noise {
            NoiseOrigin::Secret => NoiseKey::secret(store.noise_secret(record.number)?),
            NoiseOrigin::Seeded => NoiseKey::repeating(self.study.run.seed, 0, self.me.0),
        };
        let instance = Instance::declared(&self.study, &self.graph);
        let config = CuratorConfig {
            problem: instance.problem(self.me),
            mechanism: self.mechanism,
            ledger,
            noise,
        };
        let peers = self.neighbours().map(|(peer, _)| peer).collect();
        let columns = self.rows.columns();
        let (study, graph, me) = (&self.study, &self.graph, self.me);
        let node = Node::new(NodeConfig {
            id: me,
            neighbours: graph.neighbours(me).to_vec(),
            iterations: study.algorithm.iterations,
            start: instantiate::start(study, me, columns),
            algorithm: instance.algorithm(me, vec![0.0; columns]),
            curator: Curator::new(self.rows, config)?
                .with_executor(Arc::new(RayonExecutor))
                // Seeded noise repeats the bits of the simulator, which keeps solver state; secret noise ignores it.
                .with_warm_start(WarmStart::default()),
        })?;
        let party = Party::open(PartyParts {
            study,
            graph,
            noise: self.site.noise,
            node,
            peers,
            key: self.key,
            store,
            study_record: record,
            charged_answers,
            rows,
            account,
            stop_on_suspicion: self.site.stop_on_suspicion,
        })?;
        Ok((party, bill))
    }

    /// Finds the study in the store, if it was started, and checks that it may be started or resumed.
    pub(super) fn find_study(
        &self,
        store: &Store,
        charges: &[Charge],
    ) -> Result<Option<StudyRecord>, SetupError> {
        let rows = store.row_fingerprint(&self.hash);
        let continued =
            |of: &RowFingerprint| *of == rows || self.site.data.continues.contains(&of.0);
        // Privacy: rows that changed are taken for the same people's unless the operator says otherwise. An account that
        // started from zero with every new version of a file would protect nobody.
        if let Some(other) = charges.iter().find(|charge| !continued(&charge.rows)) {
            return Err(SetupError::OtherRows {
                found: rows,
                before: other.rows,
                hint: self.order_hint(),
            });
        }
        // Privacy: everybody who knows the seed can subtract the noise, so that an answer with seeded noise has no finite price.
        let seeded = |record: &&StudyRecord| {
            record.seeded && charges.iter().any(|c| c.study == record.number)
        };
        let studies = store.studies();
        if let (NoiseOrigin::Secret, Some(rehearsal)) =
            (self.site.noise, studies.iter().find(seeded))
        {
            return Err(SetupError::Rehearsed {
                study: rehearsal.name.clone(),
            });
        }
        let sha256 = self.study.sha256();
        let Some(started) = studies.into_iter().find(|record| record.sha256 == sha256) else {
            return Ok(None);
        };
        let differently = |how: &str| SetupError::StartedDifferently {
            study: self.study.name.clone(),
            how: how.to_owned(),
        };
        if started.party != self.me.0 {
            let party = self.study.parties.get(started.party as usize);
            return Err(differently(&format!(
                "as {}, not as {}, whose key is in {}",
                party.map_or("another party", |party| party.name.as_str()),
                self.name(),
                self.key_file().display()
            )));
        }
        if started.fingerprint != rows.to_string() {
            return Err(differently(&format!("on other rows{}", self.order_hint())));
        }
        match (started.seeded, self.site.noise) {
            (true, NoiseOrigin::Secret) => Err(differently("with noise = \"seeded\"")),
            (false, NoiseOrigin::Seeded) => Err(differently("with noise = \"secret\"")),
            _ => Ok(Some(started)),
        }
    }

    /// Returns what makes the same rows look like others, if they come from where no order is kept.
    fn order_hint(&self) -> &'static str {
        match self.site.data.rows {
            SiteRows::Command { .. } | SiteRows::Stdin { .. } => {
                " (the same rows in another order count as others: a query without order by, or by a column that is not unique, may \
                 change their order; radmm node --check runs a command twice and compares)"
            }
            _ => "",
        }
    }
}

/// An executor that spreads the chunks of one party's rows over all threads.
pub struct RayonExecutor;

impl ChunkExecutor for RayonExecutor {
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).into_par_iter().with_max_len(1).for_each(work);
    }
}
