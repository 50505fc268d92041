//! `radmm up`: all parties of a study as processes of this machine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use radmm::privacy::Guarantee;
use radmm_lab::Experiment;
use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_node::runtime::{NodeError, on_stop_signal};
use radmm_report::TextTable;
use radmm_study::number_format::epsilon;
use radmm_study::{ModelFile, RowSource, Study};
use serde::Serialize;
use serde_json::Value;

use crate::args::UpArgs;
use crate::failure::Failure;
use crate::files::{self, StudyText};
use crate::message::message;
use crate::render;

pub(crate) fn up(typed: &UpArgs) -> Result<(), Failure> {
    let StudyText { text, name, folder } = match &typed.study {
        Some(path) => StudyText::read(path)?,
        None => StudyText {
            text: CLINIC.to_owned(),
            name: "clinic.toml".to_owned(),
            folder: PathBuf::from("."),
        },
    };
    let (study, notes) = Study::parse(&text, &name)?;
    if !typed.quiet {
        notes.iter().for_each(|note| message!("note: {note}"));
    }
    if study.data.source == RowSource::Parties {
        return Err(Failure::NoRows { study: name });
    }
    if study.network.nodes > MOST {
        return Err(Failure::TooManyProcesses {
            nodes: study.network.nodes,
            most: MOST,
        });
    }
    let dir = match &typed.dir {
        Some(dir) => dir.clone(),
        None => PathBuf::from(format!("radmm-up-{}", plain(&study.name))),
    };
    files::make_folder(&dir)?;
    // The folder of a bare file name is written as nothing.
    let folder = match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder,
    };
    let manner = manner(&study, &folder, &name, typed.seeded)?;
    let rehearsal = LocalNetwork::prepare(&text, &study, &dir, manner)?;
    let fleet = Fleet::new(&rehearsal, &folder, &study, typed.quiet);
    if !fleet.run()? {
        if !typed.quiet {
            message!("stopped; the same command goes on from here");
        }
        return Ok(());
    }
    let parties = results(&rehearsal, &dir)?;
    match typed.json {
        true => files::print(&files::json(&Ended {
            study: &study.name,
            seeded: manner.seeded,
            parties: &parties,
        })),
        false => files::print(&table(&study, &parties, manner.seeded, &dir)),
    }
}

/// Five hospitals: small, and quickly done.
const CLINIC: &str = include_str!("../../../studies/clinic.toml");

/// So long processes may take to stop by themselves.
const PATIENCE: Duration = Duration::from_secs(2);

/// More processes would not be tried out but endured.
const MOST: u32 = 64;

/// Twice what the study costs whom it costs most: as a site that wants to take part would allow.
fn manner(
    study: &Study,
    folder: &Path,
    name: &str,
    seeded: bool,
) -> Result<LocalNetworkOptions, Failure> {
    // Reads the rows, so that what is wrong with them shows before any process starts.
    let experiment = Experiment::prepare(study.clone(), folder);
    let experiment = experiment.map_err(|error| Failure::of_study(name, error))?;
    let bill = experiment.bill();
    let total = bill.map_err(|cause| Failure::too_dear(name, cause))?.total;
    // Without noise nothing is protected, and no limit could be kept.
    let unprotected = study.privacy.unprotected().is_some();
    Ok(LocalNetworkOptions {
        seeded: seeded || unprotected,
        limit: (!unprotected).then(|| (20.0 * total.epsilon).ceil() / 10.0),
    })
}

fn plain(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    name.chars().map(fits).collect()
}

/// One process, and what it says.
struct Said {
    party: usize,
    what: What,
}

enum What {
    Line(String),
    Ended(ExitStatus),
}

/// A process that does not outlive its handle.
struct Process(Arc<Mutex<Child>>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(mut child) = self.0.lock() {
            let _ = child.kill();
        }
    }
}

/// All processes.
struct Fleet<'a> {
    rehearsal: &'a LocalNetwork,
    /// Where the study's own table is.
    folder: &'a Path,
    bars: Vec<ProgressBar>,
    all: MultiProgress,
    quiet: bool,
}

impl<'a> Fleet<'a> {
    fn new(rehearsal: &'a LocalNetwork, folder: &'a Path, study: &Study, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let all = MultiProgress::with_draw_target(target);
        let width = rehearsal.sites.iter().map(|(name, _)| name.len()).max();
        let template = format!(
            "{{prefix:{}}} {{bar:20.cyan/dim}} {{pos:>4}}/{{len}} {{wide_msg}}",
            width.unwrap_or(8)
        );
        let bar = |(name, _): &(String, PathBuf)| {
            let bar = all.add(ProgressBar::new(u64::from(study.algorithm.iterations)));
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar.set_prefix(name.clone());
            bar
        };
        Self {
            bars: rehearsal.sites.iter().map(bar).collect(),
            rehearsal,
            folder,
            all,
            quiet,
        }
    }

    /// Whether all have finished.
    fn run(&self) -> Result<bool, Failure> {
        let (sender, said) = channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = stopping.clone();
        // The processes hear the signal too, and stop by themselves.
        on_stop_signal(move || stop.store(true, Ordering::Relaxed)).map_err(NodeError::Signals)?;
        let count = self.rehearsal.sites.len();
        let mut crew: BTreeMap<usize, Process> = BTreeMap::new();
        for party in 0..count {
            crew.insert(party, self.start(party, &sender)?);
        }
        let mut errors: Vec<Option<String>> = vec![None; count];
        let mut finished = vec![false; count];
        let mut until = None;
        while !crew.is_empty() {
            if stopping.load(Ordering::Relaxed) {
                // Ctrl-C reaches them all; a signal to this process alone does not, and to end them loses nothing.
                let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
                if Instant::now() > until {
                    break;
                }
            }
            let Said { party, what } = match said.recv_timeout(PATIENCE / 10) {
                Ok(said) => said,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let (name, _) = &self.rehearsal.sites[party];
            match what {
                What::Line(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(event) => {
                        finished[party] |= event["event"] == "finished";
                        self.show(party, &event);
                    }
                    Err(_) => {
                        if let Some(error) = line.strip_prefix("error: ") {
                            errors[party] = Some(error.to_owned());
                        }
                    }
                },
                What::Ended(status) if status.success() => {
                    crew.remove(&party);
                    self.bars[party].finish();
                }
                What::Ended(status) => {
                    crew.remove(&party);
                    let stopped = stopping.load(Ordering::Relaxed);
                    if status.code().is_none() && !stopped {
                        self.say(&format!(
                            "{name} was killed; starting it again where it was"
                        ));
                        // Those who have ended come back too: who was killed after the last iteration has to hear from
                        // them that nothing of it is missing there.
                        for party in 0..count {
                            if let Entry::Vacant(place) = crew.entry(party) {
                                place.insert(self.start(party, &sender)?);
                            }
                        }
                        continue;
                    }
                    let error = errors[party].take();
                    let error = error.unwrap_or_else(|| format!("it ended with {status}"));
                    return Err(Failure::Party {
                        name: name.clone(),
                        error,
                    });
                }
            }
        }
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
        let stopped = stopping.load(Ordering::Relaxed);
        Ok(!stopped || finished.iter().all(|finished| *finished))
    }

    /// Starts a process, and a thread that tells what it says and how it ended.
    fn start(&self, party: usize, said: &Sender<Said>) -> Result<Process, Failure> {
        let (name, site) = &self.rehearsal.sites[party];
        let failed = |cause| Failure::Process {
            name: name.clone(),
            cause,
        };
        let mut child = Command::new(env::current_exe().map_err(failed)?)
            .arg("node")
            .arg("--study")
            .arg(&self.rehearsal.study)
            .arg("--site")
            .arg(site)
            .arg("--table-in")
            .arg(self.folder)
            .args(["--log", "json", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let lines = child.stderr.take();
        let child = Arc::new(Mutex::new(child));
        let (process, said) = (Process(child.clone()), said.clone());
        thread::spawn(move || {
            let lines = lines
                .into_iter()
                .flat_map(|lines| BufReader::new(lines).lines());
            for line in lines.map_while(Result::ok) {
                let what = What::Line(line);
                let _ = said.send(Said { party, what });
            }
            // Its last line was read, so it has ended or is about to.
            let ended = child.lock().map(|mut child| child.wait());
            if let Ok(Ok(status)) = ended {
                let what = What::Ended(status);
                let _ = said.send(Said { party, what });
            }
        });
        Ok(process)
    }

    fn show(&self, party: usize, event: &Value) {
        let bar = &self.bars[party];
        let name = &self.rehearsal.sites[party].0;
        match event["event"].as_str().unwrap_or("") {
            "iterated" => {
                bar.set_position(event["iteration"].as_u64().unwrap_or(0));
                let spent = event["epsilon"].as_f64().unwrap_or(f64::INFINITY);
                let apart = event["consensus"].as_f64().unwrap_or(0.0);
                bar.set_message(format!("ε {}, apart {apart:.1e}", epsilon(spent)));
            }
            "disconnected" => bar.set_message(format!(
                "waiting for {}",
                event["peer"].as_str().unwrap_or("a neighbour")
            )),
            "lied" | "disagrees" | "refused" => {
                let about = event["peer"].as_str().or(event["address"].as_str());
                let what = event["what"].as_str().or(event["reason"].as_str());
                let (about, what) = (about.unwrap_or(""), what.unwrap_or(""));
                self.say(&format!("{name}: {about}: {what}"));
            }
            "started" if event["iteration"].as_u64() == Some(0) => {
                let at = event["listening"].as_str().unwrap_or("nowhere");
                self.say(&format!("{name} listens on {at}"));
            }
            _ => {}
        }
    }

    fn say(&self, line: &str) {
        if self.quiet {
            return;
        }
        match self.all.is_hidden() {
            true => message!("{line}"),
            false => {
                let _ = self.all.println(line);
            }
        }
    }
}

/// What came of a party.
#[derive(Serialize)]
struct Party {
    name: String,
    #[serde(flatten)]
    total: Guarantee,
    results: PathBuf,
    #[serde(skip)]
    weights: Vec<f64>,
}

#[derive(Serialize)]
struct Ended<'a> {
    study: &'a str,
    seeded: bool,
    parties: &'a [Party],
}

/// From the models that the parties wrote.
fn results(rehearsal: &LocalNetwork, dir: &Path) -> Result<Vec<Party>, Failure> {
    let party = |(name, _): &(String, PathBuf)| {
        let results = dir.join(name).join("results");
        let path = results.join("model.json");
        let model = ModelFile::parse(&files::read_text(&path)?, &path.display().to_string())?;
        let trained = model.trained();
        let nothing = Guarantee {
            epsilon: f64::INFINITY,
            delta: 0.0,
        };
        Ok(Party {
            name: name.clone(),
            total: trained.guarantee.as_ref().map_or(nothing, |g| g.total),
            weights: trained.weights.clone(),
            results,
        })
    };
    rehearsal.sites.iter().map(party).collect()
}

fn table(study: &Study, parties: &[Party], seeded: bool, dir: &Path) -> String {
    let mean = |k: usize| {
        let sum: f64 = parties.iter().map(|party| party.weights[k]).sum();
        sum / parties.len() as f64
    };
    let columns = parties.first().map_or(0, |party| party.weights.len());
    let mean: Vec<f64> = (0..columns).map(mean).collect();
    let apart = |party: &Party| {
        let pairs = party.weights.iter().zip(&mean);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    let row = |party: &Party| {
        vec![
            party.name.clone(),
            epsilon(party.total.epsilon),
            format!("{:.2e}", apart(party)),
            party.results.display().to_string(),
        ]
    };
    let grid = TextTable {
        caption: String::new(),
        folded: false,
        header: ["party", "total ε", "from the mean", "results"]
            .map(str::to_owned)
            .to_vec(),
        rows: parties.iter().map(row).collect(),
    };
    let delta = parties.first().map_or(0.0, |party| party.total.delta);
    let mut text = format!(
        "{}: {} parties, each a process of its own, {} iterations over TLS\n\n{}\n\n",
        study.name,
        parties.len(),
        study.algorithm.iterations,
        render::plain(&grid)
    );
    text += &format!(
        "ε is the total over all messages, at δ = {delta:?}, for {}\n",
        Guarantee::RELATION
    );
    if seeded {
        text += "noise repeats from the study's seed: this run protects nobody\n";
    }
    text += &format!(
        "keys, site files and states are in {}; docs/node.md says what to do with them\n",
        dir.display()
    );
    text
}
