//! `radmm node --check`: checks everything that a run needs, and releases nothing.

use std::collections::BTreeMap;
use std::net::TcpListener;

use radmm::privacy::NoiseDistribution;
use radmm_data::in_columns;
use radmm_node::runtime::{ProbeResult, probe};
use radmm_node::setup::{DataCheck, PartyBill, PartySetup};
use radmm_node::store::Store;
use radmm_study::Identity;
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, quoted, visible};
use radmm_study::number_format::{as_typed, brief, count, delta, epsilon, thousands};
use serde::Serialize;

use super::check_results_folder;
use super::reading::Reading;
use crate::args::NodeArgs;
use crate::error::CommandError;
use crate::output::files;

/// The findings, as JSON.
#[derive(Serialize)]
struct CheckReport<'a> {
    party: &'a str,
    study: &'a str,
    study_sha256: String,
    key: String,
    identity: Identity,
    bill: &'a PartyBill,
    /// Whether the party runs, so that ports and neighbours were not tried.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    running: bool,
    neighbours: Vec<NeighbourReport<'a>>,
    /// Whether the command that prints the rows prints the same twice; absent if they come from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_repeat: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<PrivateCounts<'a>>,
}

/// Counts for those who may see the rows. They are printed and nothing else.
#[derive(Serialize)]
struct PrivateCounts<'a> {
    note: &'static str,
    #[serde(flatten)]
    data_check: &'a DataCheck,
}

#[derive(Serialize)]
struct NeighbourReport<'a> {
    name: &'a str,
    #[serde(flatten)]
    reached: &'a ProbeResult,
}

pub(super) fn check(
    args: &NodeArgs,
    setup: &PartySetup,
    reading: &Reading,
) -> Result<(), CommandError> {
    let store = setup.read_store()?;
    let bill = setup.bill(store.as_ref())?;
    let state = setup.path(&setup.site().state);
    files::try_folder(&state).map_err(|cause| CommandError::StateFolder {
        path: state.clone(),
        cause,
    })?;
    check_results_folder(&setup.path(&setup.site().out), setup.study())?;
    // Ports and links belong to the party itself while it runs.
    let running = Store::is_in_use(&state)?;
    let neighbours = match running {
        true => Vec::new(),
        false => {
            try_addresses(args, setup)?;
            probe(setup)?
        }
    };
    let repeats = reading.during(|observer| setup.command_repeats(observer))?;
    match args.json {
        true => {
            let neighbours = neighbours.iter();
            let report = CheckReport {
                party: setup.name(),
                study: &setup.study().name,
                study_sha256: setup.study().sha256(),
                key: setup.key_file().display().to_string(),
                identity: setup.identity(),
                bill: &bill,
                running,
                neighbours: neighbours
                    .map(|(name, reached)| NeighbourReport { name, reached })
                    .collect(),
                rows_repeat: repeats,
                private: { setup.data_check() }.map(|data_check| PrivateCounts {
                    note: PRIVATE,
                    data_check,
                }),
            };
            files::print(&files::json(&report))?;
        }
        false => files::print(&page(setup, &bill, running, &neighbours, repeats))?,
    }
    if repeats == Some(false) {
        return Err(CommandError::UnstableRows {
            site: args.site.display().to_string(),
        });
    }
    let disagreement = |(name, reached)| match reached {
        ProbeResult::Wrong(difference) => Some(CommandError::PeerDisagrees { name, difference }),
        _ => None,
    };
    match neighbours.into_iter().find_map(disagreement) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Checks that nobody else listens where this party is going to.
fn try_addresses(args: &NodeArgs, setup: &PartySetup) -> Result<(), CommandError> {
    let site = setup.site();
    for (key, address) in [("listen", site.listen), ("metrics", site.metrics)] {
        if let Some(address) = address {
            TcpListener::bind(address).map_err(|cause| CommandError::Address {
                site: args.site.display().to_string(),
                key,
                address,
                cause,
            })?;
        }
    }
    Ok(())
}

fn page(
    setup: &PartySetup,
    bill: &PartyBill,
    running: bool,
    neighbours: &[(String, ProbeResult)],
    repeats: Option<bool>,
) -> String {
    let study = setup.study();
    let mut lines = vec![
        format!(
            "{} is party {} of study {} ({})",
            setup.name(),
            setup.me().0,
            study.name,
            &study.sha256()[..12]
        ),
        format!(
            "key: {} is {}'s, {}; {}",
            setup.key_file().display(),
            setup.name(),
            setup.identity(),
            match &setup.site().party {
                Some(_) => "the site file agrees".to_owned(),
                None => format!(
                    "so this site is {0}: if it is not, the key file is wrong (with party = \"{0}\" in the site file this is checked)",
                    setup.name()
                ),
            }
        ),
        format!(
            "rows: {}{}",
            count(bill.rows, "row", "rows"),
            match repeats {
                None => "",
                Some(true) => "; the command was run twice, and printed the same",
                Some(false) =>
                    "; the command was run twice, AND PRINTED OTHER BYTES THE SECOND TIME",
            }
        ),
        format!(
            "queries: {} over {}, {} recycled",
            count(bill.data_steps, "data step", "data steps"),
            count(
                study.algorithm.iterations as usize,
                "iteration",
                "iterations"
            ),
            bill.recycled_steps
        ),
        match bill.law {
            Some(NoiseDistribution::Gamma { rate }) => {
                format!("noise: gamma, rate {}", brief(rate))
            }
            Some(NoiseDistribution::Laplace { rate }) => {
                format!("noise: Laplace, rate {}", brief(rate))
            }
            Some(NoiseDistribution::Gaussian { sigma }) => {
                format!("noise: Gaussian, σ {}", brief(sigma))
            }
            None => "noise: none".to_owned(),
        },
        format!("this study costs: {}", bill.total),
    ];
    for ((before, after), limit) in bill.before.iter().zip(&bill.after).zip(&bill.limits) {
        lines.push(format!(
            "on these rows, all studies, at δ = {}: ε {} spent, {} after this study, limit {}",
            delta(limit.delta),
            epsilon(before.epsilon),
            epsilon(after.epsilon),
            as_typed(limit.epsilon)
        ));
    }
    if !bill.protects {
        lines.push("THIS PROTECTS NOBODY: noise repeats from a seed, or there is none".to_owned());
    }
    if running {
        lines.push(RUNNING.to_owned());
    }
    for (name, reached) in neighbours {
        lines.push(match reached {
            ProbeResult::Same => format!("{name}: reached, and has the same study"),
            ProbeResult::Wrong(difference) => format!("{name}: reached, but {difference}"),
            ProbeResult::Away(reason) => {
                let reason = visible(reason, MAX_FOREIGN_TEXT);
                format!(
                    "{name}: not reachable now ({reason}); the node will try again when it runs"
                )
            }
            ProbeResult::Dials => format!("{name}: has no address, and will dial this party"),
        });
    }
    if let Some(data_check) = setup.data_check() {
        lines.extend(private_counts(data_check, bill.rows));
    }
    lines.join("\n") + "\n"
}

const RUNNING: &str =
    "this party is running: its ports and its neighbours were left alone (radmm status shows them)";

const PRIVATE: &str = "not for sharing: counted in the rows, and in no file, log or message";

/// Formats the counts for those who may see the rows.
fn private_counts(data_check: &DataCheck, rows: usize) -> Vec<String> {
    let in_rows = |number| count(number, "row", "rows");
    let mut lines = vec![format!("private, {PRIVATE}:")];
    let lacking = match data_check.lacking.is_empty() {
        true => String::new(),
        false => format!(" ({})", in_columns(&data_check.lacking)),
    };
    lines.push(format!(
        "  dropped for a missing field: {}{lacking}",
        in_rows(data_check.left_out)
    ));
    let by_column = |counts: &BTreeMap<String, usize>| -> Vec<String> {
        let counts = counts.iter();
        counts
            .map(|(column, values)| format!("{column} in {}", in_rows(*values)))
            .collect()
    };
    let clipped = by_column(&data_check.clipped);
    lines.push(match clipped.is_empty() {
        true => "  outside the bounds in [data.numeric]: no value".to_owned(),
        false => format!(
            "  outside the bounds in [data.numeric], and clipped to the nearer one: {}, of {}",
            clipped.join(", "),
            thousands(rows)
        ),
    });
    let others = by_column(&data_check.others);
    if !others.is_empty() {
        lines.push(format!(
            "  not a number, or not in the vocabulary, and counted as missing: {}, of {}",
            others.join(", "),
            thousands(rows)
        ));
    }
    let labels = data_check.labels.iter();
    let mut labels: Vec<String> = labels
        .map(|label| format!("{} in {}", quoted(&label.value), in_rows(label.rows)))
        .collect();
    if data_check.other_labels > 0 {
        labels.push(format!("others in {}", in_rows(data_check.other_labels)));
    }
    let more_than_two = match labels.len() > 2 {
        true => format!(
            "; THESE ARE MORE THAN TWO VALUES, and all but {} count as negative",
            quoted(&data_check.positive)
        ),
        false => String::new(),
    };
    lines.push(format!(
        "  label {}: {}{more_than_two}",
        data_check.label,
        labels.join(", ")
    ));
    lines
}
