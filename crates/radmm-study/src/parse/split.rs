//! `[data.split]`: how rows are partitioned among nodes.

use radmm_data::{Schema, Split};

use super::data;
use super::entry::{POSITIVE, SEEDS};
use super::reader::Section;
use crate::RowSource;
use crate::error::{Note, StudyError};

const KEYS: [&str; 6] = ["method", "seed", "name", "values", "alpha", "sizes"];

#[derive(Clone, Copy)]
enum Kind {
    RoundRobin,
    Shuffled,
    Sizes,
    Column,
    Dirichlet,
}

/// Reads the section. Where every party has its own rows it is checked and noted, and has no effect.
pub(crate) fn read(
    top: &Section<'_>,
    source: &RowSource,
    schema: &Schema,
    nodes: u32,
    notes: &mut Vec<Note>,
) -> Result<Split, StudyError> {
    if *source != RowSource::Parties {
        return read_split(top, schema, nodes, notes);
    }
    read_split(top, schema, nodes, &mut Vec::new())?;
    data::note_idle(top, "split", notes)?;
    Ok(Split::RoundRobin)
}

fn read_split(
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
            ("sizes", Kind::Sizes),
            ("column", Kind::Column),
            ("dirichlet", Kind::Dirichlet),
        ])
    })?;
    let seed = section.optional("seed", |entry| entry.integer(SEEDS))?;
    let alpha = section.optional("alpha", |entry| entry.number(POSITIVE))?;
    let sizes = section.optional("sizes", |entry| {
        let sizes = entry.elements()?;
        sizes.iter().map(|size| size.number(POSITIVE)).collect()
    })?;
    section.optional("name", |entry| entry.words())?;
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
        Kind::Sizes => {
            section.note_all_but(&["method", "sizes", "seed"], "sizes", notes);
            let sizes: Vec<f64> = sizes.ok_or_else(|| {
                section.missing("sizes", "how large the nodes are, such as [4, 2, 1]")
            })?;
            if sizes.len() != nodes as usize {
                let count = sizes.len();
                let entry = section.required("sizes", "how large the nodes are")?;
                return Err(entry.wrong(format!(
                    "{count} sizes for {nodes} nodes; give each node one, or change [network] nodes"
                )));
            }
            Ok(Split::Sizes {
                sizes,
                seed: seed()?,
            })
        }
        Kind::Column => {
            section.note_all_but(&["method", "name", "values"], "column", notes);
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
    if schema.numbered > 0
        && let Some(method) = section.get("method")
    {
        return Err(method.wrong("a LIBSVM file has no column to split by; use another method"));
    }
    let column = section.required("name", "the column that tells the nodes apart")?;
    let name = column.words()?;
    let vocabulary = schema.categorical.iter().find(|column| column.name == name);
    let (entry, values) = match (section.get("values"), vocabulary) {
        (Some(entry), _) => {
            let values = entry.vocabulary()?;
            (entry, values)
        }
        (None, Some(vocabulary)) => (column, vocabulary.values.clone()),
        // The values are found in the rows.
        (None, None) => (column, Vec::new()),
    };
    if !values.is_empty() && values.len() != nodes as usize {
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
