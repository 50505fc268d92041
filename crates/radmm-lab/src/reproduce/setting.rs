//! One noise parameter and one bound: R-ADMM and its rivals at the same total.

use radmm::account::{Bound, Guarantee};
use radmm::private::{Law, Mechanism, Scaling};
use radmm::sim::Snapshot;
use radmm_study::Noise;

use super::{FIG3, study};
use crate::assemble::RunError;
use crate::baseline::{Baseline, Criterion};
use crate::contender::{Contender, Measured};
use crate::experiment::{Experiment, PrepareError};
use crate::rival::Rival;

pub(super) const RECYCLED: &str = "R-ADMM";
pub(super) const GROWING: &str = "R-ADMM, growing η";
pub(super) const DVP: &str = "DVP";
pub(super) const SELDOM: &str = "DVP, as many questions";
pub(super) const PP: &str = "PP";
pub(super) const PVP: &str = "PVP";

/// Who is needed.
#[derive(Clone, Copy)]
pub(super) struct Cast {
    pub fig2: bool,
    pub fig3: bool,
    pub repetitions: u32,
}

/// One noise parameter and one bound.
pub(super) struct Setting {
    pub alpha: f64,
    /// `P`: what R-ADMM costs with this parameter by the paper's bound.
    pub total: f64,
    contenders: Vec<Contender>,
    with_baselines: bool,
}

/// What came of it.
pub(super) struct Seen {
    pub alpha: f64,
    pub total: f64,
    pub all: Vec<Measured>,
    /// Who could not be had at this total.
    pub too_dear: Vec<String>,
    /// `P(t)` of R-ADMM's noise by the other bound.
    pub by_other_bound: Option<Vec<f64>>,
}

impl Setting {
    /// By the paper's bound everyone's total is what R-ADMM costs with the rate `α` at all parties, by ours the `total` given. All of
    /// them, R-ADMM too, have the noise at which each party spends just that.
    pub(super) fn new(
        first: &Experiment,
        alpha: f64,
        bound: Bound,
        total: Option<f64>,
        cast: Cast,
    ) -> Result<Self, PrepareError> {
        let mut recycled = first.study().clone();
        recycled.run.repetitions = cast.repetitions;
        recycled.privacy.bound = bound;
        recycled.privacy.noise = Noise::Given(Mechanism::Objective {
            law: Law::Gamma { rate: alpha },
            scale: Scaling::Fixed,
        });
        let base = first.on_same_rows(recycled)?;
        let own = || base.course(&base.noise().ok()?, bound);
        let total = total
            .or_else(|| own().and_then(|course| course.last().copied()))
            .unwrap_or(f64::INFINITY);
        let equal = Guarantee {
            epsilon: total,
            delta: 0.0,
        };
        let mut others = Vec::new();
        let mut add = |name, study| -> Result<(), PrepareError> {
            let experiment = base.on_same_rows(study)?;
            others.push(Contender::at(name, experiment, equal));
            Ok(())
        };
        if cast.fig3 {
            let mut growing = base.study().clone();
            growing.algorithm = study(FIG3, "fig3.toml").algorithm;
            add(GROWING, growing)?;
        }
        let rivals = [(DVP, Rival::Dvp), (PP, Rival::Pp), (PVP, Rival::Pvp)];
        for (name, rival) in rivals {
            // Figure 3 is about penalties; output perturbation is in Figure 2.
            if let Some(study) = rival.of(base.study())
                && (cast.fig2 || rival != Rival::Pvp)
            {
                if rival == Rival::Dvp {
                    // As many questions as R-ADMM asks: every other iteration of it.
                    let mut seldom = study.clone();
                    seldom.algorithm.iterations = study.algorithm.iterations.div_ceil(2);
                    add(SELDOM, seldom)?;
                }
                add(name, study)?;
            }
        }
        let mut contenders = vec![Contender::at(RECYCLED, base, equal)];
        contenders.append(&mut others);
        Ok(Self {
            alpha,
            total,
            contenders,
            with_baselines: cast.fig2,
        })
    }

    pub(super) fn steps(&self) -> u64 {
        let first = &self.contenders[0].experiment;
        let own: u64 = self.contenders.iter().map(Contender::steps).sum();
        let baselines = self.baselines().into_iter();
        own + baselines.map(|baseline| baseline.steps(first)).sum::<u64>()
    }

    fn baselines(&self) -> Vec<Baseline> {
        match self.with_baselines {
            true => Baseline::all(&self.contenders[0].experiment),
            false => Vec::new(),
        }
    }

    pub(super) fn run(&self, progress: &(dyn Fn(&Snapshot) + Sync)) -> Result<Seen, RunError> {
        let mut seen = Seen {
            alpha: self.alpha,
            total: self.total,
            all: Vec::new(),
            too_dear: Vec::new(),
            by_other_bound: self.by_other_bound(),
        };
        let mut add = |contender: &Contender| -> Result<(), RunError> {
            match contender.measure(progress)? {
                Some(measured) => seen.all.push(measured),
                None => seen.too_dear.push(contender.name.clone()),
            }
            Ok(())
        };
        self.contenders.iter().try_for_each(&mut add)?;
        let first = &self.contenders[0].experiment;
        let equal = Guarantee {
            epsilon: self.total,
            delta: 0.0,
        };
        let totals = vec![equal; first.graph().len()];
        for baseline in self.baselines() {
            add(&baseline.contender(first, &totals, Criterion::Loss, progress)?)?;
        }
        Ok(seen)
    }

    fn by_other_bound(&self) -> Option<Vec<f64>> {
        let recycled = &self.contenders[0];
        let other = match recycled.experiment.study().privacy.bound {
            Bound::Paper => Bound::Tight,
            Bound::Tight => Bound::Paper,
        };
        recycled.experiment.course(recycled.noise.as_ref()?, other)
    }
}

impl Seen {
    pub(super) fn of(&self, name: &str) -> Option<&Measured> {
        self.all.iter().find(|measured| measured.name == name)
    }
}
