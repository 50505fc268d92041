//! `radmm up`: all parties of a study as processes on this machine.

mod network_view;
mod supervisor;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm::privacy::Guarantee;
use radmm_lab::{Experiment, StudyBill};
use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_study::number_format::{self, epsilon};
use radmm_study::{ModelFile, RowSource, Study};
use serde::Serialize;

use self::network_view::NetworkView;
use self::supervisor::Supervisor;
use crate::args::UpArgs;
use crate::error::CommandError;
use crate::input::load::{self, LoadedStudy, SourceText};
use crate::output::{files, stderr, tables};

/// The built-in study: five hospitals.
const CLINIC: &str = include_str!("../../../studies/clinic.toml");

/// The most processes for one machine.
const MOST_PROCESSES: u32 = 64;

/// Runs the command. `program` starts this program, with its leading arguments.
pub(crate) fn run(args: &UpArgs, program: &[OsString]) -> Result<(), CommandError> {
    let source = match &args.study {
        Some(path) => SourceText::read(path)?,
        None => SourceText::built_in(CLINIC, "clinic.toml"),
    };
    let LoadedStudy { study, source, .. } = LoadedStudy::parse(source, &[], args.quiet)?;
    let SourceText { text, name, folder } = source;
    if study.data.source == RowSource::Parties {
        return Err(CommandError::NoRows { study: name });
    }
    if study.network.nodes > MOST_PROCESSES {
        return Err(CommandError::TooManyProcesses {
            nodes: study.network.nodes,
            most: MOST_PROCESSES,
        });
    }
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => PathBuf::from(format!("radmm-up-{}", folder_name(&study.name))),
    };
    files::create_folder(&dir)?;
    // The parent of a bare file name is the empty path.
    let folder = match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder,
    };
    stderr::never_block(|messages| {
        format!("warning: {messages} messages were dropped: nobody read them")
    });
    let bill = bill(&study, &folder, &name)?;
    let rows: Vec<usize> = bill.nodes.iter().map(|node| node.rows).collect();
    // Without noise the total is infinite, and no limit could be met.
    let unprotected = study.privacy.unprotected().is_some();
    let options = LocalNetworkOptions {
        rows: &rows,
        seeded: args.seeded || unprotected,
        // Twice the largest total of a party.
        limit: (!unprotected).then(|| (20.0 * bill.total.epsilon).ceil() / 10.0),
    };
    let network = LocalNetwork::prepare(&text, &study, &dir, options)?;
    let view = match args.page {
        true => {
            // The study as the parties have it, with their names.
            let text = load::read_text(&network.study)?;
            let (named, _) = Study::parse(&text, &network.study.display().to_string())?;
            let view = Arc::new(NetworkView::new(&named, &bill, &network, !options.seeded));
            stderr::line(format!("the page of all parties: {}", view.serve()?));
            Some(view)
        }
        false => None,
    };
    let supervisor = Supervisor::new(program, &network, &folder, &study, args.quiet);
    let finished = supervisor.run(view.as_deref())?;
    if !finished {
        if !args.quiet {
            stderr::line("stopped; the same command resumes");
        }
        return Ok(());
    }
    let parties = results(&network, &dir)?;
    // Before what comes on the same terminal.
    stderr::finish();
    match args.json {
        true => files::print(&files::json(&FinalState {
            study: &study.name,
            seeded: options.seeded,
            parties: &parties,
        })),
        false => files::print(&page(&study, &parties, options.seeded, &dir)),
    }
}

/// Returns what the study costs. Reads the rows, so that errors in them show before any process starts.
fn bill(study: &Study, folder: &Path, name: &str) -> Result<StudyBill, CommandError> {
    let experiment = Experiment::prepare(study.clone(), folder);
    let experiment = experiment.map_err(|error| CommandError::from_prepare(name, error))?;
    let bill = experiment.bill();
    bill.map_err(|cause| CommandError::unattainable_budget(name, cause))
}

/// Replaces everything but ASCII letters and digits by hyphens.
fn folder_name(study: &str) -> String {
    let replaced = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    study.chars().map(replaced).collect()
}

/// The result of a party.
#[derive(Serialize)]
struct PartyResult {
    name: String,
    #[serde(flatten)]
    total: Guarantee,
    results: PathBuf,
    #[serde(skip)]
    weights: Vec<f64>,
}

/// The final state of all parties, as JSON.
#[derive(Serialize)]
struct FinalState<'a> {
    study: &'a str,
    seeded: bool,
    parties: &'a [PartyResult],
}

/// Reads the models that the parties wrote.
fn results(network: &LocalNetwork, dir: &Path) -> Result<Vec<PartyResult>, CommandError> {
    let party = |(name, _): &(String, PathBuf)| {
        let results = dir.join(name).join("results");
        let path = results.join("model.json");
        let model = ModelFile::parse(&load::read_text(&path)?, &path.display().to_string())?;
        let trained = model.trained();
        let no_guarantee = Guarantee {
            epsilon: f64::INFINITY,
            delta: 0.0,
        };
        Ok(PartyResult {
            name: name.clone(),
            total: trained.guarantee.as_ref().map_or(no_guarantee, |g| g.total),
            weights: trained.weights.clone(),
            results,
        })
    };
    network.sites.iter().map(party).collect()
}

fn page(study: &Study, parties: &[PartyResult], seeded: bool, dir: &Path) -> String {
    let mean = |k: usize| {
        let sum: f64 = parties.iter().map(|party| party.weights[k]).sum();
        sum / parties.len() as f64
    };
    let columns = parties.first().map_or(0, |party| party.weights.len());
    let mean: Vec<f64> = (0..columns).map(mean).collect();
    let distance = |party: &PartyResult| {
        let pairs = party.weights.iter().zip(&mean);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    let row = |party: &PartyResult| {
        vec![
            party.name.clone(),
            epsilon(party.total.epsilon),
            format!("{:.2e}", distance(party)),
            party.results.display().to_string(),
        ]
    };
    let header = ["party", "total ε", "from the mean", "results"];
    let delta = parties.first().map_or(0.0, |party| party.total.delta);
    let mut text = format!(
        "{}: {} parties, each in its own process, {} iterations over TLS\n\n{}\n\n",
        study.name,
        parties.len(),
        study.algorithm.iterations,
        tables::grid(&header, parties.iter().map(row))
    );
    text += &format!(
        "ε is the total over all messages, at δ = {}, for {}\n",
        number_format::delta(delta),
        Guarantee::RELATION
    );
    if seeded {
        text += "noise repeats from the study's seed: this run protects nobody\n";
    }
    text += &format!(
        "keys, site files and states are in {}; docs/node.md explains how to use them\n",
        dir.display()
    );
    text
}
