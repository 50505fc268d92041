//! The clinic study and its variants, run.

use std::error::Error;

use radmm::privacy::Mechanism;
use radmm_lab::{Experiment, Outcome};
use radmm_study::{Method, Noise, Study, StudyError};

/// Why there is no picture; runs are shared out over threads, and so are their failures.
pub type Failure = Box<dyn Error + Send + Sync>;

/// As it is in `studies/`, run once.
pub fn study() -> Result<Study, StudyError> {
    let text = include_str!("../../../../studies/clinic.toml");
    let (mut study, _) = Study::parse(text, "clinic.toml")?;
    study.run.repetitions = 1;
    Ok(study)
}

/// The same with this many recycled iterations after each data iteration; none is conventional ADMM.
pub fn recycling(study: &Study, count: u32) -> Result<Study, Failure> {
    let mut other = study.clone();
    other.algorithm.method = match study.algorithm.method {
        Method::RecycledAdmm { penalty, .. } if count == 0 => Method::Admm { penalty },
        Method::RecycledAdmm {
            penalty, damping, ..
        } => Method::RecycledAdmm {
            penalty,
            damping,
            recycle: count,
        },
        _ => return Err("the pictures are about r-admm, and clinic.toml has another".into()),
    };
    Ok(other)
}

/// The same without noise, ended after this iteration.
pub fn exact(study: &Study, iterations: u32) -> Study {
    let mut other = study.clone();
    other.privacy.noise = Noise::Given(Mechanism::None);
    other.algorithm.iterations = iterations;
    other
}

/// What came out of a study; a run that stopped early is an error.
pub fn run(study: Study) -> Result<Outcome, Failure> {
    let outcome = Experiment::prepare(study, ".".as_ref())?.run(None, &|_| ())?;
    match &outcome.repetitions[0].stopped {
        Some(reason) => Err(reason.clone().into()),
        None => Ok(outcome),
    }
}
