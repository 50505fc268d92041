//! `[data.split]`: which row goes to which node.

use radmm_data::{Schema, Split};

use crate::data;
use crate::entry::{POSITIVE, SEEDS};
use crate::error::{Note, StudyError};
use crate::reader::Section;

const KEYS: [&str; 5] = ["method", "seed", "column", "values", "alpha"];

#[derive(Clone, Copy)]
enum Kind {
    RoundRobin,
    Shuffled,
    Column,
    Dirichlet,
}

pub(crate) fn read(
    top: &Section<'_>,
    schema: &Schema,
    nodes: u32,
    notes: &mut Vec<Note>,
) -> Result<Split, StudyError> {
    let section = top.section("data", &data::KEYS)?.section("split", &KEYS)?;
    let kind = section.optional("method", |entry| {
        entry.choice(&[
            ("round-robin", Kind::RoundRobin),
            ("shuffled", Kind::Shuffled),
            ("column", Kind::Column),
            ("dirichlet", Kind::Dirichlet),
        ])
    })?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    let alpha = section.optional("alpha", |entry| entry.number(POSITIVE))?;
    section.optional("column", |entry| entry.words())?;
    section.optional("values", |entry| entry.vocabulary())?;

    let seed = || {
        seed.ok_or_else(|| {
            section.missing("seed", "the seed of the random split, an integer from 0")
        })
    };
    match kind.unwrap_or(Kind::RoundRobin) {
        Kind::RoundRobin => {
            section.note_all_but(&["method"], "round-robin", notes);
            Ok(Split::RoundRobin)
        }
        Kind::Shuffled => {
            section.note_all_but(&["method", "seed"], "shuffled", notes);
            Ok(Split::Shuffled { seed: seed()? })
        }
        Kind::Column => {
            section.note_all_but(&["method", "column", "values"], "column", notes);
            by_column(&section, schema, nodes)
        }
        Kind::Dirichlet => {
            section.note_all_but(&["method", "alpha", "seed"], "dirichlet", notes);
            let alpha = alpha.ok_or_else(|| {
                section.missing("alpha", "how even the split is, a positive number")
            })?;
            Ok(Split::Dirichlet {
                alpha,
                seed: seed()?,
            })
        }
    }
}

fn by_column(section: &Section<'_>, schema: &Schema, nodes: u32) -> Result<Split, StudyError> {
    let column = section.required(
        "column",
        "the name of the column that tells the nodes apart",
    )?;
    let name = column.words()?;
    let vocabulary = schema.categorical.iter().find(|column| column.name == name);
    let (entry, values) = match (section.get("values"), vocabulary) {
        (Some(entry), _) => {
            let values = entry.vocabulary()?;
            (entry, values)
        }
        (None, Some(vocabulary)) => (column, vocabulary.values.clone()),
        (None, None) => {
            return Err(section.missing(
                "values",
                "the column's value for each node, an array of strings (only for a column of [data.categorical] \
                 may it be left out)",
            ));
        }
    };
    if values.len() != nodes as usize {
        let count = values.len();
        return Err(entry.wrong(format!(
            "{count} values for {nodes} nodes; give each node one in values, or change [network] nodes"
        )));
    }
    Ok(Split::Column {
        column: name.to_owned(),
        values,
    })
}
