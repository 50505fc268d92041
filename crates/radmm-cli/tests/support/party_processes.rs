//! The parties of a study as real processes, which tests start, watch, disturb and kill.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use radmm_node::key::SecretKey;
use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_node::store::Store;
use radmm_study::Study;
use radmm_study::rows::StudyRows;
use serde_json::Value;
use tempfile::TempDir;

use crate::support;

/// The time limit of a test, far beyond what any takes.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// Returns the study of five hospitals on a ring, with another number of iterations.
pub fn clinic(iterations: u32) -> String {
    let text = include_str!("../../studies/clinic.toml");
    let text = replace_once(
        text,
        "iterations = 30",
        &format!("iterations = {iterations}"),
    );
    replace_once(&text, "repetitions = 10", "repetitions = 1")
}

/// Returns the same study with recycling to consensus: this metric, and so many gradients.
pub fn consensus(metric: &str, steps: u32) -> String {
    let text = clinic(30);
    let (before, rest) = text.split_once("name = \"r-admm\"").unwrap();
    let (_, after) = rest.split_once("[privacy]").unwrap();
    let own = format!("name = \"consensus\"\nmetric = \"{metric}\"\nsteps = {steps}");
    let text = format!("{before}{own}\n\n[privacy]{after}");
    replace_once(&text, "\"objective\"", "\"gradient\"")
}

/// Replaces a text that occurs exactly once.
pub fn replace_once(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// Returns the models of `radmm run --json`, bit for bit.
pub fn simulated(folder: &Path, study: &str) -> Vec<Vec<u64>> {
    fs::write(folder.join("simulated.toml"), study).unwrap();
    let ran = support::radmm(folder, &["run", "simulated.toml", "--json", "--quiet"]);
    assert!(ran.status.success(), "{}", support::text(&ran.stderr));
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let nodes = result["nodes"].as_array().unwrap().iter();
    nodes.map(|node| bits(&node["model"])).collect()
}

fn bits(numbers: &Value) -> Vec<u64> {
    let numbers = numbers.as_array().unwrap().iter();
    let bits: Vec<u64> = numbers.map(|x| x.as_f64().unwrap().to_bits()).collect();
    assert!(!bits.is_empty());
    bits
}

/// Returns the weights of the model that a party wrote, bit for bit.
pub fn weights(party: &Path) -> Vec<u64> {
    let path = party.join("results").join("model.json");
    let text = fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let model: Value = serde_json::from_str(&text).unwrap();
    bits(&model["weights"])
}

struct Process {
    child: Child,
    reader: JoinHandle<()>,
    /// The index of its first line in the party's log.
    first_line: usize,
}

/// A process that has exited.
pub struct ExitedProcess {
    pub status: ExitStatus,
    /// The lines of its log.
    pub log: Vec<String>,
    pub stdout: String,
}

impl ExitedProcess {
    /// Returns the notices of its log.
    pub fn notices(&self) -> Vec<Value> {
        parse_notices(&self.log)
    }
}

fn parse_notices(lines: &[String]) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).ok();
    lines.iter().filter_map(parse).collect()
}

/// All parties of a study, with their files in one temporary folder, and noise from a seed unless they are in earnest.
pub struct PartyProcesses {
    folder: TempDir,
    text: String,
    network: LocalNetwork,
    processes: Vec<Option<Process>>,
    /// The log of every party, over all its processes.
    logs: Vec<Arc<Mutex<Vec<String>>>>,
    created: Instant,
}

impl PartyProcesses {
    /// Writes the files of all parties, and starts none.
    pub fn new(study: &str) -> Self {
        Self::with_limit(study, None)
    }

    /// Writes the files of all parties, with a privacy limit, and starts none.
    pub fn with_limit(text: &str, limit: Option<f64>) -> Self {
        Self::within(tempfile::tempdir().unwrap(), text, limit, true)
    }

    /// Writes the files of all parties, whose noise is secret, and starts none.
    pub fn in_earnest(text: &str, limit: f64) -> Self {
        Self::within(tempfile::tempdir().unwrap(), text, Some(limit), false)
    }

    /// Writes `rows.csv` and the files of all parties, and starts none.
    pub fn with_rows(text: &str, rows: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rows.csv"), rows).unwrap();
        Self::within(folder, text, None, true)
    }

    fn within(folder: TempDir, text: &str, limit: Option<f64>, seeded: bool) -> Self {
        let (study, _) = Study::parse(text, "trial.toml").unwrap();
        let table = StudyRows::read(&study, folder.path()).unwrap();
        let rows: Vec<usize> = table.parties.iter().map(|p| p.shard.rows()).collect();
        let options = LocalNetworkOptions {
            rows: &rows,
            seeded,
            limit,
        };
        let network = LocalNetwork::prepare(text, &study, folder.path(), options).unwrap();
        let count = network.sites.len();
        Self {
            folder,
            text: text.to_owned(),
            network,
            processes: (0..count).map(|_| None).collect(),
            logs: (0..count).map(|_| Arc::default()).collect(),
            created: Instant::now(),
        }
    }

    /// The folder of all files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn count(&self) -> usize {
        self.network.sites.len()
    }

    pub fn name(&self, party: usize) -> &str {
        &self.network.sites[party].0
    }

    /// The folder of a party.
    pub fn home(&self, party: usize) -> PathBuf {
        self.folder.path().join(self.name(party))
    }

    /// The site file of a party.
    pub fn site(&self, party: usize) -> &Path {
        &self.network.sites[party].1
    }

    /// Reads the study that the parties run.
    pub fn study(&self) -> Study {
        let text = fs::read_to_string(&self.network.study).unwrap();
        Study::parse(&text, "study.toml").unwrap().0
    }

    /// Reads the secret key of a party.
    pub fn key(&self, party: usize) -> SecretKey {
        SecretKey::read(&self.home(party).join("key.pem")).unwrap()
    }

    /// The address that a party listens on.
    pub fn address(&self, party: usize) -> SocketAddr {
        let address = self.study().parties[party].address.clone().unwrap();
        address.parse().unwrap()
    }

    /// The neighbours of a party on a ring.
    pub fn neighbours(&self, party: usize) -> [usize; 2] {
        let count = self.count();
        [(party + 1) % count, (party + count - 1) % count]
    }

    /// Makes a party dial its neighbours at other addresses than the study's.
    pub fn redirect(&self, party: usize, addresses: &[(usize, SocketAddr)]) {
        let path = self.site(party);
        let mut text = fs::read_to_string(path).unwrap() + "\n[addresses]\n";
        for (neighbour, address) in addresses {
            text += &format!("{} = \"{address}\"\n", self.name(*neighbour));
        }
        fs::write(path, text).unwrap();
    }

    /// Writes a copy of the study in which one line is replaced.
    pub fn changed_study(&self, line: &str, replacement: &str) -> PathBuf {
        let text = fs::read_to_string(&self.network.study).unwrap();
        let path = self.folder.path().join("changed.toml");
        fs::write(&path, replace_once(&text, line, replacement)).unwrap();
        path
    }

    /// Opens the store of a party for reading.
    pub fn store(&self, party: usize) -> Store {
        Store::open_read_only(&self.home(party).join("state")).unwrap()
    }

    /// The file of a party's store.
    pub fn state_file(&self, party: usize) -> PathBuf {
        self.home(party).join("state").join("state.journal")
    }

    /// Returns the command that runs a party.
    pub fn command(&self, party: usize) -> Command {
        self.command_with(party, &self.network.study)
    }

    fn command_with(&self, party: usize, study: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_radmm"));
        command
            .arg("node")
            .arg("--study")
            .arg(study)
            .arg("--site")
            .arg(self.site(party))
            .args(["--log", "json", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn start(&mut self, party: usize) {
        self.spawn(party, self.command(party));
    }

    /// Starts a party with another study file.
    pub fn start_with(&mut self, party: usize, study: &Path) {
        self.spawn(party, self.command_with(party, study));
    }

    /// Starts a party by another command.
    pub fn spawn(&mut self, party: usize, mut command: Command) {
        assert!(self.processes[party].is_none());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = self.logs[party].clone();
        let first_line = log.lock().unwrap().len();
        let reader = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().push(line);
            }
        });
        self.processes[party] = Some(Process {
            child,
            reader,
            first_line,
        });
    }

    pub fn start_all(&mut self) {
        (0..self.count()).for_each(|party| self.start(party));
    }

    /// The process id of a party.
    pub fn pid(&self, party: usize) -> u32 {
        self.processes[party].as_ref().unwrap().child.id()
    }

    pub fn is_alive(&mut self, party: usize) -> bool {
        let process = self.processes[party].as_mut();
        process.is_some_and(|process| process.child.try_wait().unwrap().is_none())
    }

    /// Returns the resident memory of a party in bytes, on Linux.
    pub fn memory(&self, party: usize) -> Option<u64> {
        Some(self.process_status(party, "VmRSS")? * 1024)
    }

    /// Returns a number from the status of a party's process, on Linux.
    pub fn process_status(&self, party: usize, key: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid(party))).ok()?;
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| *name == key)?;
        value.split_whitespace().next()?.parse().ok()
    }

    fn first_line(&self, party: usize) -> usize {
        self.processes[party].as_ref().map_or(0, |p| p.first_line)
    }

    /// Returns the notices of a party's current process.
    pub fn notices(&self, party: usize) -> Vec<Value> {
        parse_notices(&self.logs[party].lock().unwrap()[self.first_line(party)..])
    }

    /// Counts the notices of one event from a party's current process.
    pub fn count_notices(&self, party: usize, event: &str) -> usize {
        count_events(&self.notices(party), event)
    }

    /// Counts the notices of one event from all processes of a party.
    pub fn count_all_notices(&self, party: usize, event: &str) -> usize {
        count_events(&parse_notices(&self.logs[party].lock().unwrap()), event)
    }

    /// Returns the last iteration that a party's current process has reported.
    pub fn iteration(&self, party: usize) -> u64 {
        let first_line = self.first_line(party);
        let lines = self.logs[party].lock().unwrap();
        // From the end, since a log can be long.
        let event = |line: &String| last_iteration(&parse_notices(std::slice::from_ref(line)));
        let mut lines = lines[first_line..].iter().rev();
        lines.find_map(event).unwrap_or(0)
    }

    /// Kills a party with SIGKILL.
    pub fn kill(&mut self, party: usize) -> ExitedProcess {
        let process = self.processes[party].as_mut().unwrap();
        process.child.kill().unwrap();
        self.wait(party)
    }

    /// Sends a party SIGINT, as Ctrl-C does.
    pub fn interrupt(&mut self, party: usize) {
        self.signal(party, "INT");
    }

    /// Sends a party a signal by its name. One that has just exited gets none.
    pub fn signal(&mut self, party: usize, name: &str) {
        if self.is_alive(party) {
            let kill = format!("kill -{name} {}", self.pid(party));
            let sent = Command::new("sh").arg("-c").arg(kill).status().unwrap();
            assert!(sent.success());
        }
    }

    /// Waits until a party's process has exited.
    pub fn wait(&mut self, party: usize) -> ExitedProcess {
        self.wait_until("a process exits", |parties| !parties.is_alive(party));
        let mut process = self.processes[party].take().unwrap();
        let status = process.child.wait().unwrap();
        process.reader.join().unwrap();
        let stdout = io::read_to_string(process.child.stdout.take().unwrap()).unwrap();
        let log = self.logs[party].lock().unwrap()[process.first_line..].to_vec();
        ExitedProcess {
            status,
            log,
            stdout,
        }
    }

    /// Waits until all processes have exited, and asserts that they succeeded.
    pub fn wait_all(&mut self) {
        for party in 0..self.count() {
            let exited = self.wait(party);
            if !exited.status.success() {
                self.fail(&format!(
                    "{} ended with {}",
                    self.name(party),
                    exited.status
                ));
            }
        }
    }

    /// Waits until a condition holds.
    pub fn wait_until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        while !condition(self) {
            if self.created.elapsed() > TIMEOUT {
                self.fail(&format!("timeout: waited until {what}"));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for a notice of a party's current process.
    pub fn wait_for(&mut self, party: usize, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        self.wait_until(what, |parties| {
            let exited = parties.processes[party]
                .as_ref()
                .unwrap()
                .reader
                .is_finished();
            found = parties.notices(party).into_iter().find(&wanted);
            if exited && found.is_none() {
                parties.fail(&format!("{} exited without {what}", parties.name(party)));
            }
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits for a notice of one event that contains all these words anywhere.
    pub fn wait_for_event(&mut self, party: usize, event: &str, words: &[&str]) -> Value {
        self.wait_for(party, &format!("{event} {words:?}"), |notice| {
            let text = notice.to_string();
            notice["event"] == event && words.iter().all(|word| text.contains(word))
        })
    }

    /// Waits until all parties have exited, and asserts that their models are those of `radmm run`, bit for bit.
    pub fn assert_end_as_simulated(&mut self) {
        self.wait_all();
        assert_eq!(self.weights(), simulated(self.folder(), &self.text));
    }

    /// Panics with the last lines of all logs.
    pub fn fail(&self, reason: &str) -> ! {
        let mut text = format!("{reason}\n");
        for (party, log) in self.logs.iter().enumerate() {
            let log = log.lock().unwrap();
            let last = log.len().saturating_sub(40);
            text += &format!("--- {} (of {} lines)\n", self.name(party), log.len());
            text += &log[last..].join("\n");
            text.push('\n');
        }
        panic!("{text}");
    }

    /// Returns the weights that all parties wrote, bit for bit.
    pub fn weights(&self) -> Vec<Vec<u64>> {
        let parties = 0..self.count();
        parties.map(|party| weights(&self.home(party))).collect()
    }
}

impl Drop for PartyProcesses {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().flatten() {
            // Fails if the process has exited, which is fine.
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

fn count_events(notices: &[Value], event: &str) -> usize {
    let matching = notices.iter().filter(|notice| notice["event"] == event);
    matching.count()
}

/// Returns the last iteration that notices report.
pub fn last_iteration(notices: &[Value]) -> Option<u64> {
    let iteration = |notice: &Value| match notice["event"].as_str()? {
        "started" | "iterated" => notice["iteration"].as_u64(),
        "finished" => notice["iterations"].as_u64(),
        _ => None,
    };
    notices.iter().filter_map(iteration).next_back()
}
