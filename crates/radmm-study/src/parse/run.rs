//! `[run]`: how often a study is simulated, from which seed, and when answers of real parties leave.

use radmm::privacy::Mechanism;

use super::entry::{Range, SEEDS};
use super::reader::Section;
use crate::choice::Choice;
use crate::error::{Note, StudyError};
use crate::{AlgorithmSection, Noise, PrivacySection, RowSource, RunSection, Start};

/// The seed where something is drawn from it, unless given.
const DEFAULT_SEED: u64 = 1;

const TICK: Range = Range {
    holds: |x| (0.0..=3600.0).contains(&x),
    needed: "at least 0 and at most 3600 seconds",
};

pub(crate) fn read(
    top: &Section<'_>,
    source: &RowSource,
    algorithm: &AlgorithmSection,
    privacy: &PrivacySection,
    notes: &mut Vec<Note>,
    choices: &mut Vec<Choice>,
) -> Result<RunSection, StudyError> {
    let section = top.section("run", &["repetitions", "seed", "tick"])?;
    let mut repetitions = section.optional("repetitions", |entry| entry.integer(1..=100_000))?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    let tick = section.optional("tick", |entry| entry.number(TICK))?;
    // Real parties draw secret noise, which has no seed.
    let no_noise = privacy.noise == Noise::Given(Mechanism::None) || *source == RowSource::Parties;
    let drawn = match algorithm.start {
        Start::Zeros if no_noise => None,
        Start::Normal(_) if no_noise => Some("the start is drawn from it"),
        _ => Some("the noise of a simulation is drawn from it"),
    };
    let seed = match (seed, drawn) {
        (Some(seed), _) => seed,
        (None, None) => 0,
        (None, Some(reason)) => {
            choices.push(Choice::new("run", "seed", DEFAULT_SEED.to_string(), reason));
            DEFAULT_SEED
        }
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
        tick,
    })
}
