//! `radmm status`: how a running node is doing.

use std::io;
use std::time::Duration;

use comfy_table::Table;
use indicatif::HumanDuration;
use radmm_node::runtime::{Health, PeerFinding, PeerReport, SpentTotal, StatusReport};
use radmm_study::number_format::{as_typed, brief, count, delta, epsilon, thousands};

use super::page::RunningNode;
use crate::args::StatusArgs;
use crate::error::CommandError;
use crate::output::files;
use crate::output::tables::{grid, paragraph};

/// The number of messages that are shown.
const SHOWN_MESSAGES: usize = 5;

pub(crate) fn run(args: &StatusArgs) -> Result<(), CommandError> {
    let node = RunningNode::find(&args.site)?;
    let text = node.status()?;
    let report: StatusReport = serde_json::from_str(&text)
        .map_err(|error| CommandError::Print(io::Error::other(format!("the report: {error}"))))?;
    files::print(&match args.json {
        true => files::json(&report),
        false => page(&report),
    })?;
    match report.health.is_good() {
        true => Ok(()),
        false => Err(CommandError::Unhealthy(report.health)),
    }
}

fn page(report: &StatusReport) -> String {
    let mut lines = vec![
        format!(
            "{}, study {} ({}): {}",
            report.party,
            report.study,
            &report.study_sha256[..12.min(report.study_sha256.len())],
            match (&report.health, report.finished) {
                (Health::Ready, true) => "over".to_owned(),
                (health, _) => health.to_string(),
            }
        ),
        match report.protects {
            true => paragraph("protects", &report.caveat),
            false => paragraph("note", &format!("THIS PROTECTS NOBODY: {}", report.caveat)),
        },
        paragraph("at", &progress(report)),
    ];
    if !report.waiting_for.is_empty() {
        let waiting = report.waiting_for.iter().map(|one| {
            format!(
                "{} ({}) for {}",
                one.name,
                one.state,
                ago(report.time, one.since)
            )
        });
        lines.push(paragraph(
            "waiting",
            &waiting.collect::<Vec<_>>().join(", "),
        ));
    }
    if let Some(privacy) = &report.privacy {
        lines.push(paragraph("ε", &total(&privacy.study, "of this study")));
        for rows in &privacy.rows {
            lines.push(paragraph("ε", &total(rows, "of all studies on these rows")));
        }
        lines.push(paragraph(
            "",
            &format!("each a total over all messages, for {}", privacy.relation),
        ));
    }
    if report.distance > 0.0 {
        let text = format!(
            "{} to the farthest neighbour's value",
            brief(report.distance)
        );
        lines.push(paragraph("distance", &text));
    }
    lines.push(format!("\n{}\n", neighbours(report)));
    let found = |name, findings: &[PeerFinding]| -> Vec<String> {
        let text = |one: &PeerFinding| paragraph(name, &format!("{}: {}", one.peer, one.what));
        findings.iter().map(text).collect()
    };
    lines.extend(found("evidence", &report.evidence));
    lines.extend(found("suspicion", &report.suspicions));
    if report.refused > 0 {
        let strangers = count(report.refused as usize, "stranger", "strangers");
        lines.push(paragraph("rejected", &strangers));
    }
    let first = report.messages.len().saturating_sub(SHOWN_MESSAGES);
    for message in &report.messages[first..] {
        let times = match message.count {
            1 => String::new(),
            many => format!(", {} times", thousands(many as usize)),
        };
        let text = format!(
            "{} ({} ago{times})",
            message.text,
            ago(report.time, message.time)
        );
        lines.push(paragraph("message", &text));
    }
    lines.join("\n") + "\n"
}

fn progress(report: &StatusReport) -> String {
    let (asked, all) = report.data_steps;
    let mut text = format!(
        "iteration {} of {}, {asked} of {all} data steps",
        report.iteration, report.iterations
    );
    if let Some(pace) = report.pace.filter(|_| !report.finished) {
        text += &format!(", {} a minute", brief(pace));
    }
    if let Some(left) = report.seconds_left {
        text += &format!(", {} left", HumanDuration(Duration::from_secs(left)));
    }
    text
}

fn total(total: &SpentTotal, of: &str) -> String {
    let text = |value: Option<f64>| epsilon(value.unwrap_or(f64::INFINITY));
    let limit = match total.limit {
        Some(limit) => format!(", limit {}", as_typed(limit)),
        None => String::new(),
    };
    format!(
        "{} {of}, {} when this study is over{limit}, at δ = {}",
        text(total.spent),
        text(total.planned),
        delta(total.delta)
    )
}

fn neighbours(report: &StatusReport) -> Table {
    let row = |one: &PeerReport| {
        vec![
            one.name.clone(),
            one.state.clone(),
            ago(report.time, one.since),
            one.iteration.to_string(),
            { one.heard }.map_or("never".to_owned(), |at| {
                format!("{} ago", ago(report.time, at))
            }),
            one.address.clone().unwrap_or_default(),
            one.dialled_by.clone().unwrap_or_default(),
            one.key.chars().take(16).collect::<String>() + "…",
        ]
    };
    let header = [
        "neighbour",
        "state",
        "for",
        "iteration",
        "heard",
        "address",
        "dialled by",
        "key",
    ];
    grid(&header, report.neighbours.iter().map(row))
}

/// Formats the time between two moments.
fn ago(now: u64, then: u64) -> String {
    HumanDuration(Duration::from_secs(now.saturating_sub(then))).to_string()
}
