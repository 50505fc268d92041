//! `[run]`: how often the study is run, and from which seed.

use radmm::private::Mechanism;

use crate::entry::SEEDS;
use crate::error::StudyError;
use crate::reader::Section;
use crate::{Algorithm, Noise, Privacy, Run, Start};

pub(crate) fn read(
    top: &Section<'_>,
    algorithm: &Algorithm,
    privacy: &Privacy,
) -> Result<Run, StudyError> {
    let section = top.section("run", &["repetitions", "seed"])?;
    let repetitions = section.optional("repetitions", |entry| entry.integer(1..=100_000))?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    // No default where it matters: two studies must not share their noise because nobody thought of a seed.
    let drawn = match (privacy.noise, algorithm.start) {
        (Noise::Given(Mechanism::None), Start::Zeros) => None,
        (Noise::Given(Mechanism::None), Start::Normal(_)) => {
            Some("the start is drawn from it, an integer from 0")
        }
        _ => Some("noise is drawn from it, an integer from 0"),
    };
    let seed = match (seed, drawn) {
        (Some(seed), _) => seed,
        (None, None) => 0,
        (None, Some(reason)) => return Err(section.missing("seed", reason)),
    };
    Ok(Run {
        repetitions: repetitions.unwrap_or(1),
        seed,
    })
}
