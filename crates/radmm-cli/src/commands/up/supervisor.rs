//! Starts the processes of all parties, shows their progress, and restarts those that are killed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use radmm_node::local_network::LocalNetwork;
use radmm_node::runtime::{NodeError, on_stop_signal};
use radmm_study::Study;
use radmm_study::number_format::epsilon;
use serde_json::Value;

use super::network_view::NetworkView;
use crate::error::CommandError;
use crate::output::stderr;

/// The time that processes have to stop by themselves.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The processes of all parties.
pub(super) struct Supervisor<'a> {
    /// The command that starts this program, with its leading arguments.
    program: &'a [OsString],
    network: &'a LocalNetwork,
    /// The folder that the study's own table is relative to.
    folder: &'a Path,
    bars: Vec<ProgressBar>,
    all_bars: MultiProgress,
    quiet: bool,
}

/// A report about the process of a party.
struct Report {
    party: usize,
    event: ProcessEvent,
}

enum ProcessEvent {
    /// A line of its log.
    Line(String),
    Exited(ExitStatus),
}

/// A process that is killed when its handle is dropped.
struct Process {
    child: Arc<Mutex<Child>>,
    /// Its stdin, which the operating system closes when this process ends, so that none is left behind.
    input: Option<ChildStdin>,
}

impl Process {
    /// Tells the process to stop.
    fn stop(&mut self) {
        self.input = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock() {
            let _ = child.kill();
        }
    }
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        program: &'a [OsString],
        network: &'a LocalNetwork,
        folder: &'a Path,
        study: &Study,
        quiet: bool,
    ) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let all_bars = MultiProgress::with_draw_target(target);
        let width = network.sites.iter().map(|(name, _)| name.len()).max();
        let template = format!(
            "{{prefix:{}}} {{bar:20.cyan/dim}} {{pos:>4}}/{{len}} {{wide_msg}}",
            width.unwrap_or(8)
        );
        let bar = |(name, _): &(String, PathBuf)| {
            let bar = all_bars.add(ProgressBar::new(u64::from(study.algorithm.iterations)));
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar.set_prefix(name.clone());
            bar
        };
        Self {
            program,
            bars: network.sites.iter().map(bar).collect(),
            network,
            folder,
            all_bars,
            quiet,
        }
    }

    /// Runs all parties, and with a page stays until the user stops it. Returns whether all have finished; if not, the user has stopped
    /// them.
    pub(super) fn run(&self, view: Option<&NetworkView>) -> Result<bool, CommandError> {
        let (sender, reports) = channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = stopping.clone();
        on_stop_signal(move || stop.store(true, Ordering::Relaxed)).map_err(NodeError::Signals)?;
        let count = self.network.sites.len();
        let mut running: BTreeMap<usize, Process> = BTreeMap::new();
        for party in 0..count {
            running.insert(party, self.start(party, &sender)?);
        }
        let mut errors: Vec<Option<String>> = vec![None; count];
        let mut finished = vec![false; count];
        let mut deadline = None;
        while !running.is_empty() {
            if stopping.load(Ordering::Relaxed) {
                // Ctrl-C reaches all processes, and a signal to this process alone does not. Killing the slow ones loses nothing.
                running.values_mut().for_each(Process::stop);
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + GRACE_PERIOD);
                if Instant::now() > deadline {
                    break;
                }
            }
            let Report { party, event } = match reports.recv_timeout(GRACE_PERIOD / 10) {
                Ok(report) => report,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let (name, _) = &self.network.sites[party];
            match event {
                ProcessEvent::Line(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(notice) => {
                        finished[party] |= notice["event"] == "finished";
                        if let Some(view) = view {
                            view.notice(party, &notice);
                        }
                        self.show(party, &notice);
                    }
                    Err(_) => {
                        if let Some(error) = line.strip_prefix("error: ") {
                            errors[party] = Some(error.to_owned());
                        }
                    }
                },
                ProcessEvent::Exited(status) if status.success() => {
                    running.remove(&party);
                    self.bars[party].finish();
                    if let Some(view) = view {
                        view.exited(party, false);
                    }
                }
                ProcessEvent::Exited(status) => {
                    running.remove(&party);
                    if status.code().is_none() && !stopping.load(Ordering::Relaxed) {
                        self.line(&format!("{name} was killed; restarting it"));
                        if let Some(view) = view {
                            view.exited(party, true);
                        }
                        // Restarts finished parties, too: a party that was killed after the last iteration needs their
                        // acknowledgements.
                        for party in 0..count {
                            if let Entry::Vacant(entry) = running.entry(party) {
                                entry.insert(self.start(party, &sender)?);
                            }
                        }
                        continue;
                    }
                    let error = errors[party].take();
                    let error = error.unwrap_or_else(|| format!("it ended with {status}"));
                    return Err(CommandError::Party {
                        name: name.clone(),
                        error,
                    });
                }
            }
        }
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
        if let Some(view) = view {
            view.over();
            self.line("all parties have ended; the page stays until Ctrl-C");
            while !stopping.load(Ordering::Relaxed) {
                thread::sleep(GRACE_PERIOD / 10);
            }
        }
        let stopped = stopping.load(Ordering::Relaxed);
        Ok(!stopped || finished.iter().all(|finished| *finished))
    }

    /// Starts a process, and a thread that reports its log and its exit.
    fn start(&self, party: usize, reports: &Sender<Report>) -> Result<Process, CommandError> {
        let (name, site) = &self.network.sites[party];
        let failed = |cause| CommandError::Process {
            name: name.clone(),
            cause,
        };
        let mut child = Command::new(
            self.program
                .first()
                .map_or("radmm".as_ref(), OsString::as_os_str),
        )
        .args(self.program.iter().skip(1))
        .arg("node")
        .arg("--study")
        .arg(&self.network.study)
        .arg("--site")
        .arg(site)
        .arg("--table-in")
        .arg(self.folder)
        .args(["--log", "json", "--json", "--stop-with-input"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
        let (log, input) = (child.stderr.take(), child.stdin.take());
        let child = Arc::new(Mutex::new(child));
        let process = Process {
            child: child.clone(),
            input,
        };
        let reports = reports.clone();
        thread::spawn(move || {
            let lines = log.into_iter().flat_map(|log| BufReader::new(log).lines());
            for line in lines.map_while(Result::ok) {
                let event = ProcessEvent::Line(line);
                let _ = reports.send(Report { party, event });
            }
            // The log is closed, so the process has exited or is about to.
            let status = child.lock().map(|mut child| child.wait());
            if let Ok(Ok(status)) = status {
                let event = ProcessEvent::Exited(status);
                let _ = reports.send(Report { party, event });
            }
        });
        Ok(process)
    }

    /// Shows a notice of a party's log.
    fn show(&self, party: usize, notice: &Value) {
        let bar = &self.bars[party];
        let name = &self.network.sites[party].0;
        match notice["event"].as_str().unwrap_or("") {
            "iterated" => {
                bar.set_position(notice["iteration"].as_u64().unwrap_or(0));
                let spent = notice["epsilon"].as_f64().unwrap_or(f64::INFINITY);
                let consensus = notice["consensus"].as_f64().unwrap_or(0.0);
                bar.set_message(format!("ε {}, apart {consensus:.1e}", epsilon(spent)));
            }
            "disconnected" => bar.set_message(format!(
                "waiting for {}",
                notice["peer"].as_str().unwrap_or("a neighbour")
            )),
            "lied" | "disagrees" | "refused" => {
                let peer = notice["peer"].as_str().or(notice["address"].as_str());
                let problem = notice["what"].as_str().or(notice["reason"].as_str());
                let (peer, problem) = (peer.unwrap_or(""), problem.unwrap_or(""));
                self.line(&format!("{name}: {peer}: {problem}"));
            }
            "started" if notice["iteration"].as_u64() == Some(0) => {
                let address = notice["listening"].as_str().unwrap_or("no address");
                self.line(&format!("{name} listens on {address}"));
            }
            _ => {}
        }
    }

    /// Writes a line to stderr, above the bars if they show.
    fn line(&self, line: &str) {
        if self.quiet {
            return;
        }
        match self.all_bars.is_hidden() {
            true => stderr::line(line),
            false => {
                let _ = self.all_bars.println(line);
            }
        }
    }
}
