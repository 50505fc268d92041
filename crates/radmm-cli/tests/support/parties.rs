//! Real parties, each a process of its own, of which somebody watches what they say.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_node::store::Store;
use radmm_study::Study;
use serde_json::Value;
use tempfile::TempDir;

/// Far beyond what anything takes: whoever waits so long waits in vain.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Five hospitals, with as many iterations.
pub fn clinic(iterations: u32) -> String {
    let text = include_str!("../../../../studies/clinic.toml");
    let text = swap(
        text,
        "iterations = 30",
        &format!("iterations = {iterations}"),
    );
    swap(&text, "repetitions = 10", "repetitions = 1")
}

/// The same text but for one thing, which is there once.
pub fn swap(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// Everything that `radmm run --json` says of a study's models, bit for bit.
pub fn simulated(folder: &Path, study: &str) -> Vec<Vec<u64>> {
    fs::write(folder.join("simulated.toml"), study).unwrap();
    let ran = crate::support::radmm(folder, &["run", "simulated.toml", "--json", "--quiet"]);
    assert!(
        ran.status.success(),
        "{}",
        crate::support::text(&ran.stderr)
    );
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let nodes = result["nodes"].as_array().unwrap().iter();
    nodes.map(|node| bits(&node["model"])).collect()
}

/// The bits of numbers.
pub fn bits(numbers: &Value) -> Vec<u64> {
    let numbers = numbers.as_array().unwrap().iter();
    numbers.map(|x| x.as_f64().unwrap().to_bits()).collect()
}

/// The weights of the model that a party wrote, bit for bit.
pub fn weights(party: &Path) -> Vec<u64> {
    let path = party.join("results").join("model.json");
    let text = fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let model: Value = serde_json::from_str(&text).unwrap();
    bits(&model["weights"])
}

/// One process.
struct Process {
    child: Child,
    reader: JoinHandle<()>,
    /// Where its part of the log begins.
    since: usize,
}

/// How a process was when it ended.
pub struct End {
    pub status: ExitStatus,
    /// What it had said, from its start on.
    pub said: Vec<String>,
    /// What it printed.
    pub printed: String,
}

impl End {
    /// The events in what it had said.
    pub fn events(&self) -> Vec<Value> {
        events(&self.said)
    }
}

fn events(lines: &[String]) -> Vec<Value> {
    let read = |line: &String| serde_json::from_str(line).ok();
    lines.iter().filter_map(read).collect()
}

/// All parties of a study in a folder of their own.
pub struct Parties {
    folder: TempDir,
    rehearsal: LocalNetwork,
    processes: Vec<Option<Process>>,
    /// All lines that a party's processes ever said.
    logs: Vec<Arc<Mutex<Vec<String>>>>,
    begun: Instant,
}

impl Parties {
    /// Keys, sites and a study with parties; nobody runs.
    pub fn of(study: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (read, _) = Study::parse(study, "trial.toml").unwrap();
        let manner = LocalNetworkOptions {
            seeded: true,
            limit: None,
        };
        let rehearsal = LocalNetwork::prepare(study, &read, folder.path(), manner).unwrap();
        let count = rehearsal.sites.len();
        Self {
            folder,
            rehearsal,
            processes: (0..count).map(|_| None).collect(),
            logs: (0..count).map(|_| Arc::default()).collect(),
            begun: Instant::now(),
        }
    }

    /// Where everything is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rehearsal.sites.len()
    }

    /// Where a party has its files.
    pub fn home(&self, party: usize) -> PathBuf {
        self.folder.path().join(&self.rehearsal.sites[party].0)
    }

    /// Its site file.
    pub fn site(&self, party: usize) -> &Path {
        &self.rehearsal.sites[party].1
    }

    /// Its name.
    pub fn name(&self, party: usize) -> &str {
        &self.rehearsal.sites[party].0
    }

    /// What it must not forget.
    pub fn store(&self, party: usize) -> Store {
        Store::open_existing(&self.home(party).join("state")).unwrap()
    }

    /// The file of its store.
    pub fn state_file(&self, party: usize) -> PathBuf {
        self.home(party).join("state").join("state.journal")
    }

    /// The command that runs it.
    pub fn command(&self, party: usize) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_radmm"));
        command
            .arg("node")
            .arg("--study")
            .arg(&self.rehearsal.study)
            .arg("--site")
            .arg(self.site(party))
            .args(["--log", "json", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts it.
    pub fn start(&mut self, party: usize) {
        assert!(self.processes[party].is_none());
        let mut child = self.command(party).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = self.logs[party].clone();
        let since = log.lock().unwrap().len();
        let reader = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().push(line);
            }
        });
        self.processes[party] = Some(Process {
            child,
            reader,
            since,
        });
    }

    /// Starts everyone.
    pub fn start_all(&mut self) {
        (0..self.count()).for_each(|party| self.start(party));
    }

    /// The number of its process.
    pub fn pid(&self, party: usize) -> u32 {
        self.processes[party].as_ref().unwrap().child.id()
    }

    /// Whether a process is there that has not ended.
    pub fn is_alive(&mut self, party: usize) -> bool {
        let process = self.processes[party].as_mut();
        process.is_some_and(|process| process.child.try_wait().unwrap().is_none())
    }

    /// What its process has said so far.
    pub fn said(&self, party: usize) -> Vec<Value> {
        let since = self.processes[party].as_ref().map_or(0, |p| p.since);
        events(&self.logs[party].lock().unwrap()[since..])
    }

    /// Whether its process has said such a thing.
    pub fn has_said(&self, party: usize, event: &str) -> bool {
        self.said(party).iter().any(|said| said["event"] == event)
    }

    /// How often any process of it has said such a thing.
    pub fn ever_said(&self, party: usize, event: &str) -> usize {
        let all = events(&self.logs[party].lock().unwrap());
        all.iter().filter(|said| said["event"] == event).count()
    }

    /// The last iteration that its process has told of.
    pub fn iteration(&self, party: usize) -> u64 {
        let since = self.processes[party].as_ref().map_or(0, |p| p.since);
        let lines = self.logs[party].lock().unwrap();
        // From the end, since it may have said a lot.
        let event = |line: &String| iteration(&events(std::slice::from_ref(line)));
        lines[since..].iter().rev().find_map(event).unwrap_or(0)
    }

    /// Ends it as `kill -9` does.
    pub fn kill(&mut self, party: usize) -> End {
        let process = self.processes[party].as_mut().unwrap();
        process.child.kill().unwrap();
        self.wait(party)
    }

    /// Asks it to stop, as Ctrl-C does.
    pub fn interrupt(&mut self, party: usize) {
        assert!(signal(self.pid(party), "INT"));
    }

    /// Waits until its process has ended.
    pub fn wait(&mut self, party: usize) -> End {
        self.until("a process ends", |parties| !parties.is_alive(party));
        let mut process = self.processes[party].take().unwrap();
        let status = process.child.wait().unwrap();
        process.reader.join().unwrap();
        let printed = io::read_to_string(process.child.stdout.take().unwrap()).unwrap();
        let said = self.logs[party].lock().unwrap()[process.since..].to_vec();
        End {
            status,
            said,
            printed,
        }
    }

    /// Waits until all processes have ended, every one of them well.
    pub fn wait_all(&mut self) {
        for party in 0..self.count() {
            let end = self.wait(party);
            if !end.status.success() {
                self.fail(&format!("{} ended with {}", self.name(party), end.status));
            }
        }
    }

    /// Waits until something is so.
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        while !is_so(self) {
            if self.begun.elapsed() > PATIENCE {
                self.fail(&format!("waited in vain until {what}"));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the test, and shows what everyone last said.
    pub fn fail(&self, why: &str) -> ! {
        let mut text = format!("{why}\n");
        for (party, log) in self.logs.iter().enumerate() {
            let log = log.lock().unwrap();
            let last = log.len().saturating_sub(25);
            text += &format!("--- {} (of {} lines)\n", self.name(party), log.len());
            text += &log[last..].join("\n");
            text.push('\n');
        }
        panic!("{text}");
    }

    /// The weights that everyone wrote.
    pub fn weights(&self) -> Vec<Vec<u64>> {
        let parties = 0..self.count();
        parties.map(|party| weights(&self.home(party))).collect()
    }
}

impl Drop for Parties {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().flatten() {
            // Whoever has ended is not killed, and that is well.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

/// Sends a signal to a process; whether there is one.
pub fn signal(process: u32, name: &str) -> bool {
    let kill = format!("kill -{name} {process}");
    let sent = Command::new("sh").arg("-c").arg(kill).status().unwrap();
    sent.success()
}

/// The last iteration that events tell of.
pub fn iteration(events: &[Value]) -> Option<u64> {
    let told = |event: &Value| match event["event"].as_str()? {
        "started" | "iterated" => event["iteration"].as_u64(),
        "finished" => event["iterations"].as_u64(),
        _ => None,
    };
    events.iter().filter_map(told).next_back()
}
