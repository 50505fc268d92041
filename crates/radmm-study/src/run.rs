//! `[run]`: how often the study is run, and from which seed.

use radmm::private::Mechanism;

use crate::entry::SEEDS;
use crate::error::{Note, StudyError};
use crate::reader::Section;
use crate::{Algorithm, Noise, Privacy, Run, Source, Start};

pub(crate) fn read(
    top: &Section<'_>,
    source: &Source,
    algorithm: &Algorithm,
    privacy: &Privacy,
    notes: &mut Vec<Note>,
) -> Result<Run, StudyError> {
    let section = top.section("run", &["repetitions", "seed"])?;
    let mut repetitions = section.optional("repetitions", |entry| entry.integer(1..=100_000))?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    // No default where it matters: two studies must not share their noise because nobody thought of a seed.
    // Real parties draw secret noise, which has no seed.
    let no_noise = privacy.noise == Noise::Given(Mechanism::None) || *source == Source::Parties;
    let drawn = match algorithm.start {
        Start::Zeros if no_noise => None,
        Start::Normal(_) if no_noise => Some("the start is drawn from it, an integer from 0"),
        _ => Some("noise is drawn from it, an integer from 0"),
    };
    let seed = match (seed, drawn) {
        (Some(seed), _) => seed,
        (None, None) => 0,
        (None, Some(reason)) => return Err(section.missing("seed", reason)),
    };
    if *source == Source::Parties
        && let Some(entry) = section.get("repetitions")
    {
        notes.push(entry.note("is not used: real parties run a study once"));
        repetitions = None;
    }
    Ok(Run {
        repetitions: repetitions.unwrap_or(1),
        seed,
    })
}
