//! The price of a study for one party, and what it leaves of the site's limits.

use radmm::graph::{Graph, NodeId};
use radmm::privacy::{
    AccountRefusal, Budget, DatasetAccount, Guarantee, Ledger, Mechanism, NoiseDistribution,
    PrivacyEvent,
};
use radmm_study::instantiate::Instance;
use radmm_study::pricing::{PartyPlan, PartySize, UnattainableBudget};
use radmm_study::{Noise, Study};
use serde::Serialize;

use super::balance::replay;
use super::{PartySetup, SetupError};
use crate::store::{Charge, RowFingerprint, Store, StudyRecord};

/// The price of a study for one party, before it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartyBill {
    /// The number of rows, `B_i`.
    pub rows: usize,
    /// The number of steps that ask the rows.
    pub data_steps: usize,
    /// The number of steps that do not.
    pub recycled_steps: usize,
    /// The noise of an answer.
    #[serde(flatten)]
    pub law: Option<NoiseDistribution>,
    /// The total of the whole study.
    pub total: Guarantee,
    /// The total of all studies so far, for each limit of the site.
    pub before: Vec<Guarantee>,
    /// The total of all studies when this one is over, for each limit.
    pub after: Vec<Guarantee>,
    /// The limits.
    pub limits: Vec<Guarantee>,
    /// Whether the noise protects anybody.
    pub protects: bool,
}

impl PartySetup {
    /// Prices the study and checks it against the site's limits. There is no store if the state folder was never opened.
    pub fn bill(&self, store: Option<&Store>) -> Result<PartyBill, SetupError> {
        let Some(store) = store else {
            return Ok(self.price(None, &[], None)?.0);
        };
        let charges = store.charges()?;
        let started = self.find_study(store, &charges)?;
        Ok(self.price(Some(store), &charges, started.as_ref())?.0)
    }

    /// Prices what is left of the study after the charges on record. Returns the account of the rows as it is now, too.
    pub(super) fn price(
        &self,
        store: Option<&Store>,
        charges: &[Charge],
        started: Option<&StudyRecord>,
    ) -> Result<(PartyBill, Option<DatasetAccount>), SetupError> {
        let own = started.map(|started| started.number);
        let (account, before) = self.account(store, charges)?;
        let done = charges.iter().filter(|charge| Some(charge.study) == own);
        let left = self.plan.iter().skip(done.count());
        // An account as if everything that is left had been charged.
        let mut all_charges = charges.to_vec();
        all_charges.extend(left.map(|(iteration, event)| Charge {
            study: own.unwrap_or(u32::MAX),
            iteration: *iteration,
            rows: RowFingerprint(self.hash),
            event: *event,
        }));
        let (future, after) = self.account(store, &all_charges)?;
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
            // Written so that a NaN is rejected.
            let within = after.epsilon <= limit.epsilon;
            if !within {
                if let Some(Err(cause)) = future.map(|account| account.check())
                    && !matches!(cause, AccountRefusal::OverLimit { .. })
                {
                    let site = self.site_name.clone();
                    return Err(SetupError::Inadmissible { site, cause });
                }
                return Err(SetupError::BeyondLimit {
                    site: self.site_name.clone(),
                    spent: before.epsilon,
                    after: after.epsilon,
                    limit: *limit,
                });
            }
        }
        let bill = PartyBill {
            rows: self.rows(),
            data_steps: self.plan.len(),
            recycled_steps: self.study.algorithm.iterations as usize - self.plan.len(),
            law: self.mechanism.noise(),
            total: total.map_err(SetupError::Journal)?,
            before,
            after,
            limits,
            protects: self.protects(),
        };
        Ok((bill, account))
    }

    /// Returns the study's own budget.
    pub(super) fn budget(&self) -> Result<Budget, SetupError> {
        let delta = self.study.privacy.delta;
        Ok(match self.study.privacy.noise {
            Noise::Total(total) => Budget::limited(total.epsilon, delta)?,
            Noise::Given(_) => Budget::unlimited(delta)?,
        })
    }

    /// Returns the account of the rows after these charges, and its totals.
    fn account(
        &self,
        store: Option<&Store>,
        charges: &[Charge],
    ) -> Result<(Option<DatasetAccount>, Vec<Guarantee>), SetupError> {
        let Some(limit) = &self.site.limit else {
            return Ok((None, Vec::new()));
        };
        let recorded = store.and_then(Store::accounting);
        if let (Some(own), Some(recorded)) = (limit.limits.accounting(), recorded)
            && own.name() != recorded.name()
        {
            return Err(SetupError::OtherAccounting {
                site: self.site_name.clone(),
                found: own.name(),
                recorded: recorded.name(),
            });
        }
        let account = replay(&limit.limits, recorded, charges).map_err(SetupError::Journal)?;
        let refused = |refusal: AccountRefusal| SetupError::Journal(refusal.into());
        let totals = account.spent().map_err(refused)?.totals;
        Ok((Some(account), totals))
    }
}

/// Returns the noise and the charges, by iteration, that a study asks of a party with so many rows.
pub(crate) fn plan_party(
    study: &Study,
    graph: &Graph,
    node: NodeId,
    rows: usize,
) -> Result<(Mechanism, Vec<(u32, PrivacyEvent)>), UnattainableBudget> {
    let party = PartySize {
        name: study.parties[node.0 as usize].name.clone(),
        rows,
    };
    let instance = Instance::declared(study, graph);
    let plan = PartyPlan {
        instance: &instance,
        node,
        party: &party,
    };
    let mechanism = plan.noise()?;
    let charges = plan.charges(&mechanism)?;
    Ok((mechanism, charges))
}
