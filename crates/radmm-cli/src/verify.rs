//! `radmm verify`.

use std::fmt::Write;

use radmm::privacy::Guarantee;
use radmm_node::evidence::{CheckedTranscript, Verification, verify as check};
use radmm_report::TextTable;
use radmm_study::number_format::{count, epsilon, thousands};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::failure::Failure;
use crate::files;
use crate::prepare;
use crate::render::{block, plain};

/// What no file can show.
const BEYOND: &str = "whether the noise was really drawn, and not from a seed that others know, so that \"protects\" is each \
     party's word; whether the rows are real and as many as is said; and what else was ever asked of them, so that \"site\" of a \
     statement is its party's word, but for what this study has spent: nobody but the party can";

#[derive(Serialize)]
struct Printed<'a> {
    holds: bool,
    #[serde(flatten)]
    verdict: &'a Verification,
    not_checked: &'static str,
}

pub(crate) fn verify(typed: &VerifyArgs) -> Result<(), Failure> {
    // Notes on the study are for those who run it.
    let study = prepare::study(Some(&typed.study), true)?;
    let verdict = check(study.study(), &typed.transcripts, &typed.statement)?;
    match typed.json {
        true => files::print(&files::json(&Printed {
            holds: verdict.holds(),
            verdict: &verdict,
            not_checked: BEYOND,
        }))?,
        false => files::print(&page(&verdict, study.study().privacy.delta))?,
    }
    match verdict.faults.len() {
        0 => Ok(()),
        many => Err(Failure::Unverified(count(many, "thing does", "things do"))),
    }
}

fn page(verdict: &Verification, delta: f64) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    if !verdict.transcripts.is_empty() {
        let _ = writeln!(page, "{}\n", plain(&table(&verdict.transcripts)));
        let total = format!(
            "by the charges on record, at δ = {delta}: each party's total over all its messages, for {}",
            Guarantee::RELATION
        );
        let _ = writeln!(page, "{}", block("ε", &total));
    }
    for checked in &verdict.transcripts {
        if checked.iterations < checked.of || !checked.finished {
            let ends = format!(
                "{} is not over: it ends at iteration {} of {}",
                checked.party, checked.iterations, checked.of
            );
            let _ = writeln!(page, "{}", block("note", &ends));
        }
        let says = match checked.protects {
            true => "says that its noise protects: its word, which no file can show",
            false => "says that its noise protects nobody",
        };
        let says = format!("{} {says}", checked.party);
        let _ = writeln!(page, "{}", block("note", &says));
    }
    if !verdict.missing.is_empty() {
        let _ = writeln!(page, "{}", block("missing", &missing(verdict)));
    }
    for stated in &verdict.statements {
        let what = match stated.compared {
            true => "signed by it, and compared with its transcript",
            false => "signed by it; there is no transcript to compare it with",
        };
        let site = match (stated.site, stated.compared) {
            (false, _) => "",
            (true, true) => "; its site was compared with this study, and is its word beyond that",
            (true, false) => "; its site is its word",
        };
        let line = format!(
            "{} of {}: {what}{site}",
            stated.file.display(),
            stated.party
        );
        let _ = writeln!(page, "{}", block("stated", &line));
    }
    let _ = writeln!(page, "{}", block("unseen", BEYOND));
    for fault in &verdict.faults {
        let _ = writeln!(page, "fault    {fault}");
    }
    if verdict.holds() {
        let but = match verdict.missing.len() {
            0 => String::new(),
            many => format!(
                ", and {} not there to be checked",
                count(many, "party's transcript was", "parties' transcripts were")
            ),
        };
        let so = format!("everything that was checked holds{but}");
        let _ = writeln!(page, "{}", block("so", &so));
    }
    page
}

/// Of whom there is nothing, or only what others heard.
fn missing(verdict: &Verification) -> String {
    format!(
        "no transcript of {}: of what they did only what others heard was checked, and not their charges and totals",
        verdict.missing.join(", ")
    )
}

fn table(transcripts: &[CheckedTranscript]) -> TextTable {
    let row = |checked: &CheckedTranscript| {
        let CheckedTranscript {
            party,
            rows,
            messages,
            signed,
            recycled,
            answered,
            charges,
            total,
            ..
        } = checked;
        let mut row = vec![party.clone()];
        row.push(thousands(*rows as usize));
        row.push(thousands(*messages));
        row.push(thousands(*signed));
        row.push(thousands(*recycled));
        row.push(thousands(*answered));
        row.push(thousands(*charges));
        row.push(total.map_or("–".to_owned(), |total| epsilon(total.epsilon)));
        row
    };
    TextTable {
        caption: "Transcripts".to_owned(),
        header: [
            "party", "rows", "messages", "signed", "recycled", "answered", "charges", "ε",
        ]
        .map(str::to_owned)
        .into(),
        rows: transcripts.iter().map(row).collect(),
        folded: false,
    }
}
