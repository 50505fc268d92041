//! `radmm verify`: checks the transcripts and statements of a study's parties.

use std::fmt::Write;

use comfy_table::Table;
use radmm::privacy::Guarantee;
use radmm_node::evidence::{CheckedTranscript, Verification, verify};
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, visible};
use radmm_study::number_format::{self, count, epsilon, thousands};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::output::files;
use crate::output::tables::{grid, paragraph};

/// The limits of verification.
const NOT_CHECKED: &str = "whether the noise was really drawn, and not from a seed that others know: \"protects\" is each party's \
     own claim; whether the rows are real and as many as stated; and which other queries were answered from them: \"site\" of a \
     statement is its party's own claim, except for what this study has spent. No file can show these";

#[derive(Serialize)]
struct JsonVerdict<'a> {
    holds: bool,
    #[serde(flatten)]
    verdict: &'a Verification,
    not_checked: &'static str,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<(), CommandError> {
    // Quiet: notes on the study are for its authors.
    let study = load::study(Some(&args.study), &[], true)?.study;
    let mut verdict = verify(&study, &args.transcripts, &args.statement)?;
    for model in &args.model {
        verdict.check_model(&study, model)?;
    }
    match args.json {
        true => files::print(&json(&verdict))?,
        false => files::print(&page(&verdict, study.privacy.delta))?,
    }
    match verdict.faults.len() {
        0 => Ok(()),
        many => {
            let faults = count(many, "fault", "faults");
            Err(CommandError::VerificationFailed(faults))
        }
    }
}

/// Formats a verdict as JSON.
pub(crate) fn json(verdict: &Verification) -> String {
    files::json(&JsonVerdict {
        holds: verdict.holds(),
        verdict,
        not_checked: NOT_CHECKED,
    })
}

pub(crate) fn page(verdict: &Verification, delta: f64) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    if !verdict.transcripts.is_empty() {
        let _ = writeln!(page, "{}\n", transcripts(&verdict.transcripts));
        let total = format!(
            "by the charges on record, at δ = {}: each party's total over all its messages, for {}",
            number_format::delta(delta),
            Guarantee::RELATION
        );
        let _ = writeln!(page, "{}", paragraph("ε", &total));
    }
    for checked in &verdict.transcripts {
        if checked.iterations < checked.of || !checked.finished {
            let text = format!(
                "{} has not finished: its transcript ends at iteration {} of {}",
                checked.party, checked.iterations, checked.of
            );
            let _ = writeln!(page, "{}", paragraph("note", &text));
        }
        let claim = match (checked.protects, checked.rehearsal) {
            (true, _) => "claims that its noise protects, which no file can show",
            (false, true) => {
                "REHEARSED: its noise comes from the study's seed, which everybody knows, and protects nobody. Nothing that it signed \
                 there means anything in earnest"
            }
            (false, false) => "states that its noise protects nobody",
        };
        let text = format!("{} {claim}", checked.party);
        let _ = writeln!(page, "{}", paragraph("note", &text));
    }
    if !verdict.missing.is_empty() {
        let text = format!(
            "no transcript of {}: only their messages to others were checked, as far as others' transcripts allow, not their \
             charges and totals",
            verdict.missing.join(", ")
        );
        let _ = writeln!(page, "{}", paragraph("missing", &text));
    }
    for stated in &verdict.statements {
        let compared = match stated.compared {
            true => "signed by it, and compared with its transcript",
            false => "signed by it; there is no transcript to compare it with",
        };
        let site = match (stated.site, stated.compared) {
            (false, _) => "",
            (true, true) => {
                "; its site was compared with this study, and is its own claim beyond that"
            }
            (true, false) => "; its site is its own claim",
        };
        let text = format!(
            "{} of {}: {compared}{site}",
            stated.file.display(),
            stated.party
        );
        let _ = writeln!(page, "{}", paragraph("stated", &text));
    }
    for model in &verdict.models {
        let compared = match model.compared {
            true => "compared with the model that follows from its transcript",
            false => "there is no transcript from which its model follows",
        };
        let text = format!(
            "{} of {}: {compared}",
            model.file.display(),
            visible(&model.party, MAX_FOREIGN_TEXT)
        );
        let _ = writeln!(page, "{}", paragraph("model", &text));
    }
    let _ = writeln!(page, "{}", paragraph("unseen", NOT_CHECKED));
    for fault in &verdict.faults {
        let _ = writeln!(page, "fault    {fault}");
    }
    if verdict.holds() {
        let unchecked = match verdict.missing.len() {
            0 => String::new(),
            many => format!(
                "; {} missing",
                count(many, "party's transcript is", "parties' transcripts are")
            ),
        };
        let text = format!("every check passed{unchecked}");
        let _ = writeln!(page, "{}", paragraph("result", &text));
    }
    page
}

fn transcripts(transcripts: &[CheckedTranscript]) -> Table {
    let row = |checked: &CheckedTranscript| {
        vec![
            checked.party.clone(),
            thousands(checked.rows as usize),
            thousands(checked.messages),
            thousands(checked.signed),
            thousands(checked.recycled),
            thousands(checked.answered),
            thousands(checked.charges),
            match checked.total {
                Some(total) => epsilon(total.epsilon),
                None => "–".to_owned(),
            },
        ]
    };
    let header = [
        "party", "rows", "messages", "signed", "recycled", "answered", "charges", "ε",
    ];
    grid(&header, transcripts.iter().map(row))
}
