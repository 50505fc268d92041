//! The draft of a study from a table in memory, for callers that are not on the command line.

use std::path::PathBuf;

use clap::ValueEnum;
use radmm_data::{MemoryTable, profile};

use super::binning::NumericEncoding;
use super::schema_draft::SchemaDraft;
use super::{WARNING, draft_study, study};
use crate::args::{FileArgs, LabelledTable, StudyTerms};

/// The terms of a study to be drafted from a table in memory.
#[derive(Clone, Debug)]
pub struct DraftTerms {
    /// The column of the label; guessed if it has two values and is the only such column.
    pub label: Option<String>,
    /// The label's value for the positive class; one of its two values if not given.
    pub positive: Option<String>,
    /// The number of parties among which a simulation deals out the rows.
    pub parties: u32,
    /// A column that tells whose a row is: a party for each of its values, in place of a number of parties.
    pub by: Option<String>,
    /// ε, the total of every party.
    pub epsilon: f64,
    /// δ; by the number of rows if not given.
    pub delta: Option<f64>,
}

/// A study that was drafted.
#[derive(Clone, Debug)]
pub struct DraftedStudy {
    /// The study file.
    pub text: String,
    /// The warning that bounds were read off the rows, and remarks on columns.
    pub remarks: Vec<String>,
}

/// Drafts a study from a table in memory, as `radmm init` does from a file. The study names the table in place of a path.
pub fn draft_from_memory(
    table: &MemoryTable<'_>,
    terms: DraftTerms,
) -> Result<DraftedStudy, String> {
    let labelled = LabelledTable {
        file: PathBuf::from(table.name()),
        label: terms.label,
        positive: terms.positive,
        written: FileArgs::default(),
        numeric: None,
    };
    let terms = StudyTerms {
        parties: terms.parties,
        by: terms.by,
        epsilon: terms.epsilon,
        delta: terms.delta,
    };
    let profile = profile(table).map_err(|error| error.to_string())?;
    let drafted = draft_study(&labelled, &terms, &profile);
    let (draft, agreement) = drafted.map_err(|error| error.to_string())?;
    let mut remarks = vec![WARNING.replace('\n', " ")];
    remarks.extend(draft.remarks());
    Ok(DraftedStudy {
        text: study(&draft, &labelled.file, &agreement),
        remarks,
    })
}

/// Drafts `[data]` of a study from a table in memory, whose label has two values. There may be no column to learn from. Numbers become
/// columns as `--numeric` of the command line names it.
pub fn draft_columns(
    table: &MemoryTable<'_>,
    label: &str,
    positive: &str,
    numeric: &str,
) -> Result<String, String> {
    let labelled = LabelledTable {
        file: PathBuf::from(table.name()),
        label: Some(label.to_owned()),
        positive: Some(positive.to_owned()),
        written: FileArgs::default(),
        numeric: Some(NumericEncoding::from_str(numeric, false)?),
    };
    let profile = profile(table).map_err(|error| error.to_string())?;
    let draft = SchemaDraft::new(&labelled.file, &profile, &labelled)?;
    Ok(draft.section(&labelled.file))
}
