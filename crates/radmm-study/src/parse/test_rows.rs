//! `[data.test]`: rows that are tested on and not trained on.

use std::path::Path;

use radmm_data::{FileOptions, Format, Holdout};

use super::entry::{Range, SEEDS};
use super::reader::Section;
use super::{data, file_options};
use crate::error::{Note, StudyError};
use crate::{RowSource, TestRows};

const KEYS: [&str; 7] = [
    "last",
    "share",
    "seed",
    "path",
    "format",
    "separator",
    "decimal",
];

const SHARES: Range = Range {
    holds: |x| x > 0.0 && x < 1.0,
    needed: "above 0 and below 1",
};

/// Reads the section. `source` and `rows` are the source of the rows that are trained on and how they are written. Where every party
/// has its own rows it is checked and noted, and has no effect.
pub(crate) fn read(
    top: &Section<'_>,
    source: &RowSource,
    rows: FileOptions,
    notes: &mut Vec<Note>,
) -> Result<Option<TestRows>, StudyError> {
    if *source != RowSource::Parties {
        return read_test_set(top, source, rows, notes);
    }
    read_test_set(top, source, rows, &mut Vec::new())?;
    data::note_idle(top, "test", notes)?;
    Ok(None)
}

fn read_test_set(
    top: &Section<'_>,
    source: &RowSource,
    rows: FileOptions,
    notes: &mut Vec<Note>,
) -> Result<Option<TestRows>, StudyError> {
    let section = top.section("data", &data::KEYS)?.section("test", &KEYS)?;
    if section.table.is_none() {
        return Ok(None);
    }
    let last = section.optional("last", |entry| entry.integer(1..=1_000_000_000_usize))?;
    let share = section.optional("share", |entry| entry.number(SHARES))?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    let path = section.optional("path", |entry| entry.words())?;
    file_options::format(&section)?;

    let given = ["last", "share", "path"].map(|name| section.get(name));
    let mut given = given.into_iter().flatten();
    if let (Some(first), Some(second)) = (given.next(), given.next()) {
        return Err(second.wrong(format!("{} is given too; keep one of them", first.name)));
    }
    match (last, share, path) {
        (Some(last), ..) => {
            section.note_all_but(&["last"], "last", notes);
            Ok(Some(TestRows::Held(Holdout::Last { rows: last })))
        }
        (_, Some(share), _) => {
            section.note_all_but(&["share", "seed"], "share", notes);
            let seed = seed.ok_or_else(|| {
                section.missing("seed", "the seed of the draw, an integer from 0")
            })?;
            Ok(Some(TestRows::Held(Holdout::Share { share, seed })))
        }
        (.., Some(path)) => {
            let used = ["path", "format", "separator", "decimal"];
            section.note_all_but(&used, "path", notes);
            let options = file_options::read(&section, path, rows)?;
            check(&section, rows.format, options.format)?;
            // The same with and without a leading `./`.
            let place = |path: &str| Path::new(".").join(path);
            if matches!(source, RowSource::File(rows) if place(rows) == place(path)) {
                let remark = "is the file that is trained on: the test says nothing about new rows";
                notes.extend(section.get("path").map(|entry| entry.note(remark)));
            }
            let path = path.to_owned();
            Ok(Some(TestRows::File { path, options }))
        }
        (None, None, None) => Err(section.missing(
            "last",
            "how many of the last rows are held out (or share, or path, a file of its own)",
        )),
    }
}

/// Checks that columns have numbers in both files, or names in both.
fn check(
    section: &Section<'_>,
    rows: Option<Format>,
    format: Option<Format>,
) -> Result<(), StudyError> {
    let numbered = |format| format == Some(Format::Libsvm);
    let advice = match (numbered(rows), numbered(format)) {
        (true, false) => {
            "must be LIBSVM like the rows that are trained on: their columns have numbers, and here they have names"
        }
        (false, true) => {
            "must not be LIBSVM: the columns of the rows that are trained on have names, and here they have numbers"
        }
        (true, true) | (false, false) => return Ok(()),
    };
    match section.get("format").or_else(|| section.get("path")) {
        Some(entry) => Err(entry.wrong(advice)),
        // Unreachable: there is a path.
        None => Ok(()),
    }
}
