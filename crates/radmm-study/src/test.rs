//! `[data.test]`: rows that are tested on and not trained on.

use radmm_data::Holdout;

use crate::Test;
use crate::data;
use crate::entry::{Range, SEEDS};
use crate::error::{Note, StudyError};
use crate::reader::Section;

const KEYS: [&str; 4] = ["last", "share", "seed", "path"];

const SHARES: Range = Range {
    holds: |x| x > 0.0 && x < 1.0,
    needed: "above 0 and below 1",
};

pub(crate) fn read(top: &Section<'_>, notes: &mut Vec<Note>) -> Result<Option<Test>, StudyError> {
    let section = top.section("data", &data::KEYS)?.section("test", &KEYS)?;
    if section.table.is_none() {
        return Ok(None);
    }
    let last = section.optional("last", |entry| entry.integer(1..=1_000_000_000_usize))?;
    let share = section.optional("share", |entry| entry.number(SHARES))?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    let path = section.optional("path", |entry| entry.words())?;

    let given = ["last", "share", "path"].map(|name| section.get(name));
    let mut given = given.into_iter().flatten();
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        return Err(second.wrong(format!("{} is given too; keep one of them", first.name)));
    }
    match (last, share, path) {
        (Some(rows), ..) => {
            section.note_all_but(&["last"], "last", notes);
            Ok(Some(Test::Held(Holdout::Last { rows })))
        }
        (_, Some(share), _) => {
            let seed = seed.ok_or_else(|| {
                section.missing("seed", "the seed of the draw, an integer from 0")
            })?;
            Ok(Some(Test::Held(Holdout::Share { share, seed })))
        }
        (.., Some(path)) => {
            section.note_all_but(&["path"], "path", notes);
            let path = path.to_owned();
            Ok(Some(Test::File { path }))
        }
        (None, None, None) => Err(section.missing(
            "last",
            "how many of the last rows are held out (or share, or path, a file of its own)",
        )),
    }
}
