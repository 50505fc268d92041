//! `radmm node`: one party of a real network.

mod check;
mod pages;
mod reading;

use std::path::Path;

use radmm::privacy::Guarantee;
use radmm_node::evidence::write_result_files;
use radmm_node::machine::Party;
use radmm_node::public_facts::PublicFacts;
use radmm_node::runtime::{
    Ending, LogLevel, NodeStatus, Notice, Observer, StopSource, forbid_core_dumps, run as run_node,
};
use radmm_node::setup::{BalanceTotal, DataCheck, Folders, PartySetup};
use radmm_node::utc_time::UtcTime;
use radmm_study::number_format::{self, as_typed, count, epsilon};
use radmm_study::{Limit, SiteFile, SiteRows, Study};
use serde::Serialize;

use crate::args::{LogFormat, NodeArgs};
use crate::error::CommandError;
use crate::input::load::SourceText;
use crate::input::warnings;
use crate::output::progress::NodeProgress;
use crate::output::{files, stderr};
use reading::Reading;

pub(crate) fn run(args: &NodeArgs) -> Result<(), CommandError> {
    // Privacy: before the key and the rows are read.
    forbid_core_dumps();
    let format = args.log;
    stderr::never_block(move |messages| dropped_line(format, messages));
    let reading = Reading::new(args);
    let done = load_setup(args, &reading).and_then(|setup| match args.check {
        true => check::check(args, &setup, &reading),
        false => {
            // From here on a signal stops the party.
            reading.hand_over();
            run_party(args, setup)
        }
    });
    match done {
        // Privacy: logs must not reveal anything about rows, and errors in rows quote them.
        Err(error) if args.log == LogFormat::Json && error.quotes_rows() => {
            Err(CommandError::RowsUnreadable)
        }
        done => done,
    }
}

/// Returns the least urgent level that is written.
fn log_level(args: &NodeArgs) -> LogLevel {
    match (args.log, args.log_level) {
        (LogFormat::Text, _) if args.quiet => LogLevel::Error,
        (_, Some(level)) => level,
        (LogFormat::Text, None) => LogLevel::Info,
        (LogFormat::Json, None) => LogLevel::Debug,
    }
}

fn load_setup(args: &NodeArgs, reading: &Reading) -> Result<PartySetup, CommandError> {
    let study_text = SourceText::read(&args.study)?;
    let site_text = SourceText::read(&args.site)?;
    let (study, mut notes) = Study::parse(&study_text.text, &study_text.name)?;
    let (site, site_notes) = SiteFile::parse(&site_text.text, &site_text.name)?;
    notes.extend(site_notes);
    stderr::notes(&notes, args.quiet || log_level(args) < LogLevel::Info);
    let folders = Folders {
        study: args.table_in.as_ref().unwrap_or(&study_text.folder),
        site: &site_text.folder,
    };
    let names = (study_text.name.as_str(), site_text.name.as_str());
    if let SiteRows::Command { .. } = site.data.rows {
        reading.end_on_signal()?;
    }
    let setup =
        reading.during(|observer| PartySetup::observed(study, site, folders, names, observer))?;
    warn_of_dropped(args, &setup);
    Ok(setup)
}

/// Warns the operator that many rows are dropped.
fn warn_of_dropped(args: &NodeArgs, setup: &PartySetup) {
    // Privacy: logs in JSON go to collectors, and must not reveal anything about rows.
    if args.log == LogFormat::Json {
        return;
    }
    if let Some(DataCheck {
        left_out, lacking, ..
    }) = setup.data_check()
    {
        let warning = warnings::of_dropped(setup.rows() + left_out, *left_out, lacking);
        stderr::warning(warning.as_ref(), args.quiet);
    }
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
        level: log_level(args),
        progress,
        facts: setup.public_facts(),
        out: &out,
        last_status: None,
    };
    let stops = match args.stop_with_input {
        true => StopSource::SignalsAndInput,
        false => StopSource::Signals,
    };
    let ending = run_node(setup, stops, &mut console)?;
    console.progress.done();
    let Some(status) = console.last_status else {
        return Ok(());
    };
    let printed = match args.json {
        true => files::json(&FinalState::new(&console.facts, &status, ending)),
        false => final_state(&console.facts, &status, ending),
    };
    // Before what comes on the same terminal.
    stderr::finish();
    files::print_within(stderr::READER_PATIENCE, printed)
}

/// Checks that results can be written, and do not overwrite those of another study. Called before anything is spent.
fn check_results_folder(out: &Path, study: &Study) -> Result<(), CommandError> {
    files::try_folder(out).map_err(|cause| CommandError::ResultsFolder {
        path: out.to_owned(),
        cause,
    })?;
    files::check_other_results(out, study, "out in the site file")
}

/// The terminal, or the log on stderr.
struct Console<'a> {
    format: LogFormat,
    /// The least urgent level that is written.
    level: LogLevel,
    progress: NodeProgress,
    facts: PublicFacts,
    out: &'a Path,
    last_status: Option<NodeStatus>,
}

impl Observer for Console<'_> {
    fn notice(&mut self, notice: &Notice) {
        let level = notice.level();
        if level > self.level {
            return;
        }
        let time = UtcTime::now();
        match self.format {
            LogFormat::Json => stderr::line(json_line(&LogLine {
                time: time.to_string(),
                level,
                party: Some(self.facts.name()),
                event: notice,
            })),
            LogFormat::Text => {
                let warning = match level {
                    LogLevel::Warning => "warning: ",
                    _ => "",
                };
                self.progress.line(format!("{time} {warning}{notice}"));
                if matches!(notice, Notice::Started { .. }) {
                    let legend = progress_legend(&self.facts).into_iter();
                    legend.for_each(|line| self.progress.line(line));
                }
            }
        }
    }

    fn status(&mut self, status: &NodeStatus) {
        self.progress.update(status);
        self.last_status = Some(status.clone());
    }

    fn results(&mut self, party: &Party) -> Result<Vec<String>, String> {
        files::create_folder(self.out).map_err(|e| e.to_string())?;
        let files = write_result_files(party, &self.facts, self.out).map_err(|e| e.to_string())?;
        let pages = pages::write(party, &self.facts, self.out, &files)?;
        Ok(files
            .iter()
            .chain(&pages)
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

/// A line of the log in JSON.
#[derive(Serialize)]
struct LogLine<'a, E> {
    time: String,
    level: LogLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    party: Option<&'a str>,
    #[serde(flatten)]
    event: E,
}

/// The event that messages were dropped, since nobody read them.
#[derive(Serialize)]
struct Dropped {
    event: &'static str,
    messages: u64,
}

fn json_line(line: &impl Serialize) -> String {
    // Every map has string keys: serialisation cannot fail.
    serde_json::to_string(line).unwrap_or_default()
}

/// Formats the line in place of messages that nobody read.
fn dropped_line(format: LogFormat, messages: u64) -> String {
    let time = UtcTime::now();
    match format {
        LogFormat::Json => json_line(&LogLine {
            time: time.to_string(),
            level: LogLevel::Warning,
            party: None,
            event: Dropped {
                event: "dropped",
                messages,
            },
        }),
        LogFormat::Text => {
            let messages = count(messages as usize, "message was", "messages were");
            format!("{time} warning: {messages} dropped: nobody read them")
        }
    }
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
