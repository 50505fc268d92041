//! `radmm node`: one party of a real network.

mod check;

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use radmm::privacy::Guarantee;
use radmm_node::evidence::write_result_files;
use radmm_node::machine::Party;
use radmm_node::public_facts::PublicFacts;
use radmm_node::runtime::{
    Ending, NodeStatus, Notice, Observer, forbid_core_dumps, run as run_node,
};
use radmm_node::setup::{BalanceTotal, Folders, PartySetup};
use radmm_study::number_format::{self, as_typed, epsilon};
use radmm_study::{Limit, SiteFile, Study};
use serde::Serialize;

use crate::args::{LogFormat, NodeArgs};
use crate::error::CommandError;
use crate::input::load::SourceText;
use crate::output::progress::NodeProgress;
use crate::output::{files, stderr};

pub(crate) fn run(args: &NodeArgs) -> Result<(), CommandError> {
    // Privacy: before the key and the rows are read.
    forbid_core_dumps();
    let setup = match load_setup(args) {
        // Privacy: logs must not reveal anything about rows, and errors in rows quote them.
        Err(error) if args.log == LogFormat::Json && error.quotes_rows() => {
            return Err(CommandError::RowsUnreadable);
        }
        setup => setup?,
    };
    match args.check {
        true => check::check(args, &setup),
        false => run_party(args, setup),
    }
}

fn load_setup(args: &NodeArgs) -> Result<PartySetup, CommandError> {
    let study_text = SourceText::read(&args.study)?;
    let site_text = SourceText::read(&args.site)?;
    let (study, mut notes) = Study::parse(&study_text.text, &study_text.name)?;
    let (site, site_notes) = SiteFile::parse(&site_text.text, &site_text.name)?;
    notes.extend(site_notes);
    stderr::notes(&notes, args.quiet);
    let folders = Folders {
        study: args.table_in.as_ref().unwrap_or(&study_text.folder),
        site: &site_text.folder,
    };
    let names = (study_text.name.as_str(), site_text.name.as_str());
    Ok(PartySetup::new(study, site, folders, names)?)
}

fn run_party(args: &NodeArgs, setup: PartySetup) -> Result<(), CommandError> {
    let out = setup.path(&setup.site().out);
    check_results_folder(&out, setup.study())?;
    let progress = NodeProgress::new(
        u64::from(setup.study().algorithm.iterations),
        args.quiet || args.log == LogFormat::Json,
    );
    let mut console = Console {
        format: args.log,
        quiet: args.quiet,
        progress,
        facts: setup.public_facts(),
        out: &out,
        last_status: None,
    };
    let ending = run_node(setup, &mut console)?;
    console.progress.done();
    let Some(status) = console.last_status else {
        return Ok(());
    };
    match args.json {
        true => files::print(&files::json(&FinalState::new(
            &console.facts,
            &status,
            ending,
        ))),
        false => files::print(&final_state(&console.facts, &status, ending)),
    }
}

/// Checks that results can be written, and do not overwrite those of another study. Called before anything is spent.
fn check_results_folder(out: &Path, study: &Study) -> Result<(), CommandError> {
    let unwritable = |cause| CommandError::ResultsFolder {
        path: out.to_owned(),
        cause,
    };
    fs::create_dir_all(out).map_err(unwritable)?;
    let probe = out.join(".radmm");
    fs::write(&probe, "").map_err(unwritable)?;
    fs::remove_file(&probe).map_err(unwritable)?;
    let statement = fs::read_to_string(out.join("privacy-statement.json"));
    let statement = statement
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    match statement.map(|statement| statement["statement"].clone()) {
        Some(existing) if existing["study_sha256"] != study.sha256().as_str() => {
            Err(CommandError::OtherResults {
                path: out.to_owned(),
                study: existing["study"].as_str().unwrap_or("?").to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// The terminal, or the log on stderr.
struct Console<'a> {
    format: LogFormat,
    quiet: bool,
    progress: NodeProgress,
    facts: PublicFacts,
    out: &'a Path,
    last_status: Option<NodeStatus>,
}

impl Observer for Console<'_> {
    fn notice(&mut self, notice: &Notice) {
        match self.format {
            LogFormat::Json => {
                let line = LogLine {
                    time: seconds_since_1970(),
                    party: self.facts.name(),
                    notice,
                };
                // Every map has string keys: serialisation cannot fail.
                stderr::line(serde_json::to_string(&line).unwrap_or_default());
            }
            LogFormat::Text if self.quiet => {}
            // The bar shows iterations.
            LogFormat::Text if matches!(notice, Notice::Iterated { .. }) => {}
            LogFormat::Text => {
                self.progress.line(&notice.to_string());
                if matches!(notice, Notice::Started { .. }) {
                    let legend = progress_legend(&self.facts);
                    legend.iter().for_each(|line| self.progress.line(line));
                }
            }
        }
    }

    fn status(&mut self, status: &NodeStatus) {
        self.progress.update(status);
        self.last_status = Some(status.clone());
    }

    fn results(&mut self, party: &Party) -> Result<Vec<String>, String> {
        let files = write_result_files(party, &self.facts, self.out).map_err(|e| e.to_string())?;
        Ok(files
            .iter()
            .map(|file| file.display().to_string())
            .collect())
    }
}

/// Explains the values of ε in the progress bar.
fn progress_legend(facts: &PublicFacts) -> Vec<String> {
    let mut lines = vec![format!(
        "ε: total of this study at δ = {}, for {}",
        number_format::delta(facts.study.privacy.delta),
        Guarantee::RELATION
    )];
    let limit = facts.limit.as_ref();
    if let Some((epsilon, delta)) = limit.and_then(shown_limit) {
        lines.push(format!(
            "rows: total ε of all studies on these rows at δ = {}, for the same; limit {}",
            number_format::delta(delta),
            as_typed(epsilon)
        ));
    }
    lines
}

/// Returns the limit whose total is in the bar: the last of the site's limits.
fn shown_limit(limit: &Limit) -> Option<(f64, f64)> {
    limit.relaxed.or(limit.pure.map(|epsilon| (epsilon, 0.0)))
}

#[derive(Serialize)]
struct LogLine<'a> {
    /// Seconds since 1970.
    time: f64,
    party: &'a str,
    #[serde(flatten)]
    notice: &'a Notice,
}

fn seconds_since_1970() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

/// The final state of a node, as JSON.
#[derive(Serialize)]
struct FinalState<'a> {
    party: &'a str,
    study: &'a str,
    study_sha256: String,
    ending: &'static str,
    iteration: u32,
    iterations: u32,
    total: Guarantee,
    protects: bool,
    consensus: f64,
    /// Absent if the site has no limit, as in the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<SiteTotals>,
}

/// The totals of all studies on these rows.
#[derive(Serialize)]
struct SiteTotals {
    totals: Vec<BalanceTotal>,
}

impl SiteTotals {
    fn new(status: &NodeStatus) -> Option<Self> {
        let limited = |(total, limit): &(Guarantee, f64)| BalanceTotal {
            total: *total,
            limit: Some(*limit),
            mu: None,
            mu_limit: None,
        };
        let totals: Vec<BalanceTotal> = status.site.iter().map(limited).collect();
        (!totals.is_empty()).then_some(Self { totals })
    }
}

impl<'a> FinalState<'a> {
    fn new(facts: &'a PublicFacts, status: &NodeStatus, ending: Ending) -> Self {
        Self {
            party: facts.name(),
            study: &facts.study.name,
            study_sha256: facts.study.sha256(),
            ending: match ending {
                Ending::Complete => "over",
                Ending::Finished => "finished",
                Ending::Stopped => "stopped",
            },
            iteration: status.iteration,
            iterations: status.iterations,
            total: status.spent,
            protects: facts.protects(),
            consensus: status.consensus,
            site: SiteTotals::new(status),
        }
    }
}

/// Formats the final state of a node.
fn final_state(facts: &PublicFacts, status: &NodeStatus, ending: Ending) -> String {
    let ending = match ending {
        Ending::Complete => "done: every neighbour has acknowledged everything",
        Ending::Finished => {
            "done; a neighbour may still need this party: start it again if one is waiting"
        }
        Ending::Stopped => "stopped; the same command resumes",
    };
    let mut text = format!(
        "{}, study {}: iteration {} of {}, {ending}\n",
        facts.name(),
        facts.study.name,
        status.iteration,
        status.iterations
    );
    text += &format!("spent by this study: {}\n", status.spent);
    for (spent, limit) in &status.site {
        text += &format!(
            "spent on these rows by all studies: ε = {} of {} at δ = {}, in total, for {}\n",
            epsilon(spent.epsilon),
            as_typed(*limit),
            number_format::delta(spent.delta),
            Guarantee::RELATION
        );
    }
    text += &format!("{}\n", facts.caveat());
    text
}
