//! The parties of a study as processes, to be started, watched and disturbed.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use radmm_node::key::SecretKey;
use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_study::Study;
use serde_json::Value;
use tempfile::TempDir;

/// Nothing takes that long; a test that waits for longer has failed.
pub const PATIENCE: Duration = Duration::from_secs(90);

const CLINIC: &str = include_str!("../../../../studies/clinic.toml");

/// Five hospitals on a ring, with noise from a seed.
pub struct Fleet {
    folder: TempDir,
    rehearsal: LocalNetwork,
    text: String,
}

impl Fleet {
    pub fn new(iterations: u32) -> Self {
        let text = CLINIC
            .replace("iterations = 30", &format!("iterations = {iterations}"))
            .replace("repetitions = 10", "repetitions = 1");
        let folder = tempfile::tempdir().unwrap();
        let (study, _) = Study::parse(&text, "clinic.toml").unwrap();
        assert_eq!(study.algorithm.iterations, iterations);
        let manner = LocalNetworkOptions {
            seeded: true,
            limit: Some(1000.0),
        };
        let rehearsal = LocalNetwork::prepare(&text, &study, folder.path(), manner).unwrap();
        Self {
            folder,
            rehearsal,
            text,
        }
    }

    pub fn len(&self) -> usize {
        self.rehearsal.sites.len()
    }

    pub fn name(&self, party: usize) -> &str {
        &self.rehearsal.sites[party].0
    }

    pub fn study(&self) -> Study {
        let text = fs::read_to_string(&self.rehearsal.study).unwrap();
        Study::parse(&text, "study.toml").unwrap().0
    }

    pub fn key(&self, party: usize) -> SecretKey {
        let site = self.rehearsal.sites[party].1.parent().unwrap();
        SecretKey::read(&site.join("key.pem")).unwrap()
    }

    /// Where a party listens.
    pub fn address(&self, party: usize) -> SocketAddr {
        let address = self.study().parties[party].address.clone().unwrap();
        address.parse().unwrap()
    }

    /// The neighbours of a party on the ring.
    pub fn neighbours(&self, party: usize) -> [usize; 2] {
        let count = self.len();
        [(party + 1) % count, (party + count - 1) % count]
    }

    /// From now on, a party dials its neighbours elsewhere than the study says.
    pub fn dials(&self, party: usize, addresses: &[(usize, SocketAddr)]) {
        let path = &self.rehearsal.sites[party].1;
        let mut text = fs::read_to_string(path).unwrap() + "\n[addresses]\n";
        for (neighbour, address) in addresses {
            text += &format!("{} = \"{address}\"\n", self.name(*neighbour));
        }
        fs::write(path, text).unwrap();
    }

    /// The study with another value in place of a line of it, in a file of its own.
    pub fn changed(&self, line: &str, other: &str) -> PathBuf {
        let text = fs::read_to_string(&self.rehearsal.study).unwrap();
        assert!(text.contains(line), "{text}");
        let path = self.folder.path().join("changed.toml");
        fs::write(&path, text.replace(line, other)).unwrap();
        path
    }

    pub fn start(&self, party: usize) -> Process {
        self.start_with(party, &self.rehearsal.study)
    }

    pub fn start_with(&self, party: usize, study: &Path) -> Process {
        let (name, site) = &self.rehearsal.sites[party];
        Process::start(name, study, site)
    }

    /// The last bits of everyone's model, as one process computes them: `radmm run`.
    pub fn expected(&self) -> Vec<Vec<u64>> {
        let study = self.folder.path().join("clinic.toml");
        fs::write(&study, &self.text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_radmm"))
            .args(["run", "--quiet", "--json"])
            .arg(study)
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let nodes = result["nodes"].as_array().unwrap();
        nodes.iter().map(|node| bits(&node["model"])).collect()
    }

    /// The bits of the model that a party has written.
    pub fn written(&self, party: usize) -> Vec<u64> {
        let path = self.folder.path().join(self.name(party));
        let text = fs::read_to_string(path.join("results/model.json")).unwrap();
        let model: Value = serde_json::from_str(&text).unwrap();
        bits(&model["weights"])
    }

    /// Everyone ends, with the bits of `radmm run`.
    pub fn ends_as_simulated(&self, processes: Vec<Process>) {
        for process in processes {
            process.ends_well();
        }
        for (party, expected) in self.expected().iter().enumerate() {
            assert_eq!(&self.written(party), expected, "{}", self.name(party));
        }
    }
}

fn bits(numbers: &Value) -> Vec<u64> {
    let numbers = numbers.as_array().unwrap();
    let bits: Vec<u64> = numbers
        .iter()
        .map(|number| number.as_f64().unwrap().to_bits())
        .collect();
    assert!(!bits.is_empty());
    bits
}

/// One party. It does not outlive its handle.
pub struct Process {
    pub name: String,
    child: Child,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    over: bool,
}

impl Process {
    fn start(name: &str, study: &Path, site: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_radmm"))
            .args(["node", "--log", "json", "--study"])
            .arg(study)
            .arg("--site")
            .arg(site)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let log = Arc::<Log>::default();
        let writing = log.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                writing.lines.lock().unwrap().lines.push(line);
                writing.changed.notify_all();
            }
            writing.lines.lock().unwrap().over = true;
            writing.changed.notify_all();
        });
        Self {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// Waits for a line of the log.
    pub fn says(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        let mut seen = 0;
        let mut log = self.log.lines.lock().unwrap();
        loop {
            for line in &log.lines[seen..] {
                let line = serde_json::from_str(line).unwrap_or_default();
                if wanted(&line) {
                    return line;
                }
            }
            seen = log.lines.len();
            let left = until.saturating_duration_since(Instant::now());
            if log.over || left.is_zero() {
                let said = ends(&log);
                drop(log);
                panic!("{} did not say: {what}; it said\n{said}", self.name);
            }
            log = self.log.changed.wait_timeout(log, left).unwrap().0;
        }
    }

    /// Waits for an event whose text, wherever it is, holds all of these words.
    pub fn tells(&self, event: &str, words: &[&str]) -> Value {
        self.says(&format!("{event} {words:?}"), |line| {
            let text = line.to_string();
            line["event"] == event && words.iter().all(|word| text.contains(word))
        })
    }

    /// How often an event was told so far.
    pub fn times(&self, event: &str) -> usize {
        let log = self.log.lines.lock().unwrap();
        let event = format!("\"event\":\"{event}\"");
        log.lines
            .iter()
            .filter(|line| line.contains(&event))
            .count()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// How much memory it has, in bytes.
    pub fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kilobytes * 1024)
    }

    /// Waits for its end, which is a good one.
    pub fn ends_well(mut self) {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
                None => panic!(
                    "{} does not end; it said\n{}",
                    self.name,
                    ends(&self.lines())
                ),
            }
        };
        assert!(
            status.success(),
            "{}: {status}\n{}",
            self.name,
            ends(&self.lines())
        );
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.log.lines.lock().unwrap()
    }
}

/// The last lines.
fn ends(log: &Lines) -> String {
    let first = log.lines.len().saturating_sub(40);
    log.lines[first..].join("\n")
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
