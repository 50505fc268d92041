//! Runs of the clinic study and its variants.

use std::error::Error;

use radmm::privacy::Mechanism;
use radmm_lab::{Experiment, Outcome};
use radmm_study::{Method, Noise, Study, StudyError};

/// The reason why there is no image. Runs are spread over threads, so errors must be `Send`.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Returns the study of `studies/`, with one repetition.
pub fn study() -> Result<Study, StudyError> {
    let text = include_str!("../../../../studies/clinic.toml");
    let (mut study, _) = Study::parse(text, "clinic.toml")?;
    study.run.repetitions = 1;
    Ok(study)
}

/// Returns the study with `count` recycled iterations after each data iteration; 0 is conventional ADMM.
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
        _ => return Err("the images show r-admm, and clinic.toml has another algorithm".into()),
    };
    Ok(other)
}

/// Returns the study without noise and with this number of iterations.
pub fn exact(study: &Study, iterations: u32) -> Study {
    let mut other = study.clone();
    other.privacy.noise = Noise::Given(Mechanism::None);
    other.algorithm.iterations = iterations;
    other
}

/// Runs a study; a run that stopped early is an error.
pub fn run(study: Study) -> Result<Outcome, Failure> {
    let outcome = Experiment::prepare(study, ".".as_ref())?.run(None, &|_| ())?;
    match &outcome.repetitions[0].stopped {
        Some(reason) => Err(reason.clone().into()),
        None => Ok(outcome),
    }
}
