//! One noise parameter and one bound: R-ADMM and the prior methods at the same total.

use radmm::privacy::{Bound, Guarantee, Mechanism, NoiseDistribution, NoiseScaling};
use radmm::sim::Snapshot;
use radmm_lab::{
    Baseline, Candidate, CandidateResult, Criterion, Experiment, PrepareError, PriorMethod,
    RunError,
};
use radmm_study::Noise;

use crate::{FIG3, study};

pub(super) const RECYCLED: &str = "R-ADMM";
pub(super) const GROWING: &str = "R-ADMM, growing η";
pub(super) const DVP: &str = "DVP";
pub(super) const HALF_DVP: &str = "DVP, as many queries";
pub(super) const PP: &str = "PP";
pub(super) const PVP: &str = "PVP";

/// The figures to be made, and the number of runs.
#[derive(Clone, Copy)]
pub(super) struct FigureSelection {
    pub fig2: bool,
    pub fig3: bool,
    pub repetitions: u32,
}

/// One noise parameter and one bound.
pub(super) struct Setting {
    pub alpha: f64,
    /// `P`: the cost of R-ADMM with this parameter by the paper's bound.
    pub total: f64,
    candidates: Vec<Candidate>,
    with_baselines: bool,
}

/// The results of all methods in a setting.
pub(super) struct SettingResult {
    pub alpha: f64,
    pub total: f64,
    pub all: Vec<CandidateResult>,
    /// The methods that no noise brings down to this total.
    pub unattainable: Vec<String>,
    /// `P(t)` of R-ADMM's noise, by the other bound.
    pub by_other_bound: Option<Vec<f64>>,
}

impl Setting {
    /// Calibrates all selection. By the paper's bound the total is the cost of R-ADMM with the rate `α` at all parties, by ours it
    /// is the given `total`. In all methods, R-ADMM too, each party has the noise at which it spends just that.
    pub(super) fn new(
        first: &Experiment,
        alpha: f64,
        bound: Bound,
        total: Option<f64>,
        selection: FigureSelection,
    ) -> Result<Self, PrepareError> {
        let mut recycled = first.study().clone();
        recycled.run.repetitions = selection.repetitions;
        recycled.privacy.bound = bound;
        recycled.privacy.noise = Noise::Given(Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate: alpha },
            scale: NoiseScaling::Fixed,
        });
        let base = first.on_same_rows(recycled)?;
        let own = || base.cumulative_epsilon(&base.noise().ok()?, bound);
        let total = total
            .or_else(|| own().and_then(|totals| totals.last().copied()))
            .unwrap_or(f64::INFINITY);
        let equal = Guarantee {
            epsilon: total,
            delta: 0.0,
        };
        let mut others = Vec::new();
        let mut add = |name, study| -> Result<(), PrepareError> {
            let experiment = base.on_same_rows(study)?;
            others.push(Candidate::at_total(name, experiment, equal));
            Ok(())
        };
        if selection.fig3 {
            let mut growing = base.study().clone();
            growing.algorithm = study(FIG3, "fig3.toml").algorithm;
            add(GROWING, growing)?;
        }
        let prior_methods = [
            (DVP, PriorMethod::Dvp),
            (PP, PriorMethod::Pp),
            (PVP, PriorMethod::Pvp),
        ];
        for (name, prior) in prior_methods {
            // Figure 3 is about penalties; output perturbation is in Figure 2.
            if let Some(study) = prior.study_from(base.study())
                && (selection.fig2 || prior != PriorMethod::Pvp)
            {
                if prior == PriorMethod::Dvp {
                    // As many queries as R-ADMM makes, in half of its iterations.
                    let mut half = study.clone();
                    half.algorithm.iterations = study.algorithm.iterations.div_ceil(2);
                    add(HALF_DVP, half)?;
                }
                add(name, study)?;
            }
        }
        let mut candidates = vec![Candidate::at_total(RECYCLED, base, equal)];
        candidates.append(&mut others);
        Ok(Self {
            alpha,
            total,
            candidates,
            with_baselines: selection.fig2,
        })
    }

    pub(super) fn progress_steps(&self) -> u64 {
        let first = &self.candidates[0].experiment;
        let own: u64 = self.candidates.iter().map(Candidate::progress_steps).sum();
        own + Baseline::progress_steps(&self.baselines(), first)
    }

    fn baselines(&self) -> Vec<Baseline> {
        match self.with_baselines {
            true => Baseline::all(&self.candidates[0].experiment),
            false => Vec::new(),
        }
    }

    pub(super) fn run(
        &self,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<SettingResult, RunError> {
        let mut result = SettingResult {
            alpha: self.alpha,
            total: self.total,
            all: Vec::new(),
            unattainable: Vec::new(),
            by_other_bound: self.by_other_bound(),
        };
        let mut add = |candidate: &Candidate| -> Result<(), RunError> {
            match candidate.measure(progress)? {
                Some(measured) => result.all.push(measured),
                None => result.unattainable.push(candidate.name.clone()),
            }
            Ok(())
        };
        self.candidates.iter().try_for_each(&mut add)?;
        let first = &self.candidates[0].experiment;
        let equal = Guarantee {
            epsilon: self.total,
            delta: 0.0,
        };
        let totals = vec![equal; first.graph().len()];
        let baselines = self.baselines();
        Baseline::candidates(&baselines, first, &totals, Criterion::Loss, progress)?
            .iter()
            .try_for_each(add)?;
        Ok(result)
    }

    fn by_other_bound(&self) -> Option<Vec<f64>> {
        let recycled = &self.candidates[0];
        let other = match recycled.experiment.study().privacy.bound {
            Bound::Paper => Bound::Tight,
            Bound::Tight => Bound::Paper,
        };
        recycled
            .experiment
            .cumulative_epsilon(recycled.noise.as_ref()?, other)
    }
}

impl SettingResult {
    /// Returns the result of the method with this name.
    pub(super) fn of(&self, name: &str) -> Option<&CandidateResult> {
        self.all.iter().find(|measured| measured.name == name)
    }
}
