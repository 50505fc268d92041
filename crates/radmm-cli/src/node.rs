//! `radmm node`: one party of a real network.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use radmm::privacy::Guarantee;
use radmm::privacy::NoiseDistribution;
use radmm_study::number_format::{brief, count, epsilon, thousands};
use radmm_node::evidence::write_result_files;
use radmm_node::machine::Party;
use radmm_node::public_facts::PublicFacts;
use radmm_node::runtime::NodeStatus;
use radmm_node::runtime::Notice;
use radmm_node::runtime::{Ending, Observer, run};
use radmm_node::runtime::{ProbeResult, probe};
use radmm_node::setup::BalanceTotal;
use radmm_node::setup::DataCheck;
use radmm_node::setup::Folders;
use radmm_node::setup::{self, PartyBill, PartySetup};
use radmm_study::{Identity, Limit, SiteFile, Study};
use serde::Serialize;

use crate::args::{LogFormat, NodeArgs};
use crate::failure::Failure;
use crate::files::{self, StudyText};
use crate::message::message;
use crate::progress::Course;

pub(crate) fn node(typed: &NodeArgs) -> Result<(), Failure> {
    let premises = match premises(typed) {
        // Privacy: what goes into logs says nothing of rows, and errors about rows quote them.
        Err(failure) if typed.log == LogFormat::Json && failure.quotes_rows() => {
            return Err(Failure::RowsUnread);
        }
        premises => premises?,
    };
    match typed.check {
        true => check(typed, &premises),
        false => go(typed, premises),
    }
}

fn premises(typed: &NodeArgs) -> Result<PartySetup, Failure> {
    let study = StudyText::read(&typed.study)?;
    let site = StudyText::read(&typed.site)?;
    let (agreed, mut notes) = Study::parse(&study.text, &study.name)?;
    let (own, own_notes) = SiteFile::parse(&site.text, &site.name)?;
    notes.extend(own_notes);
    if !typed.quiet {
        notes.iter().for_each(|note| message!("note: {note}"));
    }
    let folders = Folders {
        study: typed.table_in.as_ref().unwrap_or(&study.folder),
        site: &site.folder,
    };
    let names = (study.name.as_str(), site.name.as_str());
    Ok(PartySetup::new(agreed, own, folders, names)?)
}

fn go(typed: &NodeArgs, premises: PartySetup) -> Result<(), Failure> {
    let out = premises.path(&premises.site().out);
    ready_for_results(&out, premises.study())?;
    let bar = Course::new(
        u64::from(premises.study().algorithm.iterations),
        typed.quiet || typed.log == LogFormat::Json,
    );
    let mut console = Console {
        format: typed.log,
        quiet: typed.quiet,
        bar,
        about: premises.public_facts(),
        out: &out,
        last: None,
    };
    let ending = run(premises, &mut console)?;
    console.bar.done();
    let Some(status) = console.last else {
        return Ok(());
    };
    match typed.json {
        true => files::print(&files::json(&Ended::new(&console.about, &status, ending))),
        false => files::print(&ended(&console.about, &status, ending)),
    }
}

/// Before anything is spent: that results can be written, and that they do not take the place of another study's.
fn ready_for_results(out: &Path, study: &Study) -> Result<(), Failure> {
    let unwritable = |cause| Failure::NoResults {
        path: out.to_owned(),
        cause,
    };
    fs::create_dir_all(out).map_err(unwritable)?;
    let trial = out.join(".radmm");
    fs::write(&trial, "").map_err(unwritable)?;
    fs::remove_file(&trial).map_err(unwritable)?;
    let statement = fs::read_to_string(out.join("privacy-statement.json"));
    let statement = statement
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    match statement.map(|statement| statement["statement"].clone()) {
        Some(of) if of["study_sha256"] != study.sha256().as_str() => Err(Failure::OtherResults {
            path: out.to_owned(),
            study: of["study"].as_str().unwrap_or("?").to_owned(),
        }),
        _ => Ok(()),
    }
}

/// The terminal, or the log.
struct Console<'a> {
    format: LogFormat,
    quiet: bool,
    bar: Course,
    about: PublicFacts,
    out: &'a Path,
    last: Option<NodeStatus>,
}

impl Observer for Console<'_> {
    fn notice(&mut self, notice: &Notice) {
        match self.format {
            LogFormat::Json => {
                let line = Line {
                    time: seconds(),
                    party: self.about.name(),
                    notice,
                };
                // Every map has string keys, so that nothing is left to fail.
                message!("{}", serde_json::to_string(&line).unwrap_or_default());
            }
            LogFormat::Text if self.quiet => {}
            // The bar tells of iterations.
            LogFormat::Text if matches!(notice, Notice::Iterated { .. }) => {}
            LogFormat::Text => {
                self.bar.say(&notice.to_string());
                if matches!(notice, Notice::Started { .. }) {
                    meaning(&self.about)
                        .iter()
                        .for_each(|line| self.bar.say(line));
                }
            }
        }
    }

    fn status(&mut self, status: &NodeStatus) {
        self.bar.at(status);
        self.last = Some(status.clone());
    }

    fn results(&mut self, party: &Party) -> Result<Vec<String>, String> {
        let files = write_result_files(party, &self.about, self.out).map_err(|e| e.to_string())?;
        Ok(files
            .iter()
            .map(|file| file.display().to_string())
            .collect())
    }
}

/// What the ε of the bar are.
fn meaning(about: &PublicFacts) -> Vec<String> {
    let mut lines = vec![format!(
        "ε: total of this study at δ = {:e}, for {}",
        about.study.privacy.delta,
        Guarantee::RELATION
    )];
    let limit = about.limit.as_ref();
    if let Some((epsilon, delta)) = limit.and_then(shown_limit) {
        lines.push(format!(
            "rows: total ε of all studies on these rows at δ = {delta:e}, likewise; limit {epsilon}"
        ));
    }
    lines
}

/// The limit whose total is in the bar: the last.
fn shown_limit(limit: &Limit) -> Option<(f64, f64)> {
    limit.relaxed.or(limit.pure.map(|epsilon| (epsilon, 0.0)))
}

/// One line of a log.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    time: f64,
    party: &'a str,
    #[serde(flatten)]
    notice: &'a Notice,
}

fn seconds() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

/// How a node ended, for machines.
#[derive(Serialize)]
struct Ended<'a> {
    party: &'a str,
    study: &'a str,
    study_sha256: String,
    ending: &'static str,
    iteration: u32,
    iterations: u32,
    total: Guarantee,
    protects: bool,
    consensus: f64,
    /// As in the statement: nothing where the site has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<OnRows>,
}

/// What all studies have spent on these rows.
#[derive(Serialize)]
struct OnRows {
    totals: Vec<BalanceTotal>,
}

impl OnRows {
    fn new(status: &NodeStatus) -> Option<Self> {
        let limited = |(total, limit): &(Guarantee, f64)| BalanceTotal {
            total: *total,
            limit: Some(*limit),
        };
        let totals: Vec<BalanceTotal> = status.site.iter().map(limited).collect();
        (!totals.is_empty()).then_some(Self { totals })
    }
}

impl<'a> Ended<'a> {
    fn new(about: &'a PublicFacts, status: &NodeStatus, ending: Ending) -> Self {
        Self {
            party: about.name(),
            study: &about.study.name,
            study_sha256: about.study.sha256(),
            ending: match ending {
                Ending::Complete => "over",
                Ending::Finished => "finished",
                Ending::Stopped => "stopped",
            },
            iteration: status.iteration,
            iterations: status.iterations,
            total: status.spent,
            protects: about.protects(),
            consensus: status.consensus,
            site: OnRows::new(status),
        }
    }
}

fn ended(about: &PublicFacts, status: &NodeStatus, ending: Ending) -> String {
    let how = match ending {
        Ending::Complete => "done: every neighbour has what it needs",
        Ending::Finished => {
            "done; a neighbour may still need this party: start it again if one waits"
        }
        Ending::Stopped => "stopped; the same command goes on from here",
    };
    let mut text = format!(
        "{}, study {}: iteration {} of {}, {how}\n",
        about.name(),
        about.study.name,
        status.iteration,
        status.iterations
    );
    text += &format!("spent by this study: {}\n", status.spent);
    for (spent, limit) in &status.site {
        text += &format!(
            "spent on these rows by all studies: ε = {} of {} at δ = {:e}, in total, for {}\n",
            epsilon(spent.epsilon),
            limit,
            spent.delta,
            Guarantee::RELATION
        );
    }
    text += &format!("{}\n", about.caveat());
    text
}

/// What a check found, for machines.
#[derive(Serialize)]
struct Checked<'a> {
    party: &'a str,
    study: &'a str,
    study_sha256: String,
    key: String,
    identity: Identity,
    bill: &'a PartyBill,
    neighbours: Vec<Reach<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<Private<'a>>,
}

/// What is printed for whoever may see rows, and goes nowhere else.
#[derive(Serialize)]
struct Private<'a> {
    note: &'static str,
    #[serde(flatten)]
    seen: &'a DataCheck,
}

#[derive(Serialize)]
struct Reach<'a> {
    name: &'a str,
    #[serde(flatten)]
    reached: &'a ProbeResult,
}

fn check(typed: &NodeArgs, premises: &PartySetup) -> Result<(), Failure> {
    let state = premises.path(&premises.site().state);
    let store = setup::open_existing_store(&state)?;
    let bill = premises.bill(store.as_ref())?;
    ready_for_results(&premises.path(&premises.site().out), premises.study())?;
    for (key, address) in [
        ("listen", premises.site().listen),
        ("metrics", premises.site().metrics),
    ] {
        if let Some(address) = address {
            TcpListener::bind(address).map_err(|cause| Failure::Address {
                site: typed.site.display().to_string(),
                key,
                address,
                cause,
            })?;
        }
    }
    let neighbours = probe(premises)?;
    let wrong = |(_, reached): &&(String, ProbeResult)| matches!(reached, ProbeResult::Wrong(_));
    let disagree = neighbours.iter().find(wrong).cloned();
    match typed.json {
        true => {
            let reach = |(name, reached)| Reach { name, reached };
            let checked = Checked {
                party: premises.name(),
                study: &premises.study().name,
                study_sha256: premises.study().sha256(),
                key: premises.key_file().display().to_string(),
                identity: premises.identity(),
                bill: &bill,
                neighbours: neighbours.iter().map(|(n, r)| reach((n, r))).collect(),
                private: { premises.data_check() }.map(|seen| Private {
                    note: PRIVATE,
                    seen,
                }),
            };
            files::print(&files::json(&checked))?;
        }
        false => files::print(&checked(premises, &bill, &neighbours))?,
    }
    match disagree {
        Some((name, ProbeResult::Wrong(what))) => Err(Failure::Disagrees { name, what }),
        _ => Ok(()),
    }
}

fn checked(
    premises: &PartySetup,
    bill: &PartyBill,
    neighbours: &[(String, ProbeResult)],
) -> String {
    let study = premises.study();
    let mut lines = vec![
        format!(
            "{} is party {} of study {} ({})",
            premises.name(),
            premises.me().0,
            study.name,
            &study.sha256()[..12]
        ),
        format!(
            "key: {} is {}'s, {}; {}",
            premises.key_file().display(),
            premises.name(),
            premises.identity(),
            match &premises.site().party {
                Some(_) => "so the site file says".to_owned(),
                None => format!(
                    "so this site is {0}: if it is not, the key file is wrong (party = {0:?} in the site file would tell)",
                    premises.name()
                ),
            }
        ),
        format!("rows: {}", count(bill.rows, "row", "rows")),
        format!(
            "asks: {} over {}, {} recycled",
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
            Some(NoiseDistribution::Gaussian { sigma }) => {
                format!("noise: Gaussian, σ {}", brief(sigma))
            }
            None => "noise: none".to_owned(),
        },
        format!("this study costs: {}", bill.total),
    ];
    for ((before, after), limit) in bill.before.iter().zip(&bill.after).zip(&bill.limits) {
        lines.push(format!(
            "on these rows, all studies, at δ = {}: ε {} spent, {} when this one is over, limit {}",
            limit.delta,
            epsilon(before.epsilon),
            epsilon(after.epsilon),
            limit.epsilon
        ));
    }
    if !bill.protects {
        lines.push("THIS PROTECTS NOBODY: noise repeats from a seed, or there is none".to_owned());
    }
    for (name, reached) in neighbours {
        lines.push(match reached {
            ProbeResult::Same => format!("{name}: reached, and holds the same study"),
            ProbeResult::Wrong(what) => format!("{name}: reached, but {what}"),
            ProbeResult::Away(why) => {
                format!("{name}: not there now ({why}); it is tried again when the node runs")
            }
            ProbeResult::Dials => format!("{name}: has no address, and will dial this party"),
        });
    }
    lines.extend(
        { premises.data_check() }
            .into_iter()
            .flat_map(|seen| private(seen, bill.rows)),
    );
    lines.join("\n") + "\n"
}

const PRIVATE: &str = "not for sharing: counted in the rows, and in no file, log or message";

/// What is only for whoever may see the rows.
fn private(seen: &DataCheck, rows: usize) -> Vec<String> {
    let mut lines = vec![format!("private, {PRIVATE}:")];
    let left_out = count(seen.left_out, "row", "rows");
    lines.push(format!("  left out for a missing field: {left_out}"));
    let clipped = seen.clipped.iter();
    let clipped: Vec<String> = clipped
        .map(|(column, values)| format!("{column} in {}", count(*values, "row", "rows")))
        .collect();
    lines.push(match clipped.is_empty() {
        true => "  beyond the bounds in [data.numeric]: no value".to_owned(),
        false => format!(
            "  beyond the bounds in [data.numeric], and taken to the nearer one: {}, of {}",
            clipped.join(", "),
            thousands(rows)
        ),
    });
    let mut labels: Vec<String> = { seen.labels.iter() }
        .map(|one| format!("{:?} in {}", one.value, count(one.rows, "row", "rows")))
        .collect();
    if seen.other_labels > 0 {
        labels.push(format!(
            "others in {}",
            count(seen.other_labels, "row", "rows")
        ));
    }
    let many = match labels.len() > 2 {
        true => format!(
            "; THESE ARE MORE THAN TWO VALUES, and all but {:?} count as negative",
            seen.positive
        ),
        false => String::new(),
    };
    lines.push(format!(
        "  label {}: {}{many}",
        seen.label,
        labels.join(", ")
    ));
    lines
}
