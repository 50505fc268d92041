//! `[run]`: how often a study is simulated, and from which seed.

use radmm::privacy::Mechanism;

use super::entry::SEEDS;
use super::reader::Section;
use crate::error::{Note, StudyError};
use crate::{AlgorithmSection, Noise, PrivacySection, RowSource, RunSection, Start};

pub(crate) fn read(
    top: &Section<'_>,
    source: &RowSource,
    algorithm: &AlgorithmSection,
    privacy: &PrivacySection,
    notes: &mut Vec<Note>,
) -> Result<RunSection, StudyError> {
    let section = top.section("run", &["repetitions", "seed"])?;
    let mut repetitions = section.optional("repetitions", |entry| entry.integer(1..=100_000))?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    // There is no default where noise is drawn: two studies must not share it because nobody chose a seed.
    // Real parties draw secret noise, which has no seed.
    let no_noise = privacy.noise == Noise::Given(Mechanism::None) || *source == RowSource::Parties;
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
    if *source == RowSource::Parties
        && let Some(entry) = section.get("repetitions")
    {
        notes.push(entry.note("is not used: real parties run a study once"));
        repetitions = None;
    }
    Ok(RunSection {
        repetitions: repetitions.unwrap_or(1),
        seed,
    })
}
