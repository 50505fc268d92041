//! Rows that do not fit in memory: the same bits as in memory, nothing left on the disk, and clear errors where it fails.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use radmm_node::key::SecretKey;
use radmm_node::store::Store;
use support::text;
use tempfile::TempDir;

/// The rows of a full chunk.
const CHUNK: usize = 16_384;
/// The rows of each of two parties: two full chunks, and one that is never stored.
const ROWS: usize = 2 * CHUNK + 1_000;
/// Memory for one of a party's chunks, which take 24 bytes a row.
const LITTLE: &str = "500 kB";

/// Returns two parties' rows.
fn rows() -> String {
    let mut text = "age,weight,ward,ill\n".to_owned();
    for n in 0..2 * ROWS {
        let (age, weight, ward) = (n * 37 % 71, n * 7919 % 113, n * 31 % 5);
        let ill = match (age + ward * 9 + n * 13 % 29) > 60 {
            true => "yes",
            false => "no",
        };
        text += &format!("{age},{weight},w{ward},{ill}\n");
    }
    text
}

const DATA: &str = "label = \"ill\"\npositive = \"yes\"\nintercept = true\n[data.numeric]\nage = [0, 90]\nweight = [0, 120]\n\
                    [data.categorical]\nward = [\"w0\", \"w1\", \"w2\", \"w3\", \"w4\"]\n";

const ADMM: &str = "[algorithm]\nname = \"r-admm\"\niterations = 4\npenalty = 0.5\ndamping = 1.0\n[privacy]\nmechanism = \"objective\"\n";

const CONSENSUS: &str =
    "[algorithm]\nname = \"consensus\"\nmetric = \"gram\"\nsteps = 3\n[privacy]\n";

const REST: &str = "epsilon = 2.0\ndelta = 1e-5\n[run]\nseed = 1\n";

/// A folder with the rows, a study for `radmm run`, and an empty folder.
fn simulation(split: &str, algorithm: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let study = format!(
        "[data]\npath = \"rows.csv\"\n{DATA}{split}[network]\nnodes = 2\ntopology = \"path\"\n{algorithm}{REST}"
    );
    fs::write(folder.path().join("rows.csv"), rows()).unwrap();
    fs::write(folder.path().join("study.toml"), study).unwrap();
    fs::create_dir(folder.path().join("scratch")).unwrap();
    folder
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_simulation_gives_the_same_bytes_with_any_memory_and_threads() {
    let shuffled = "[data.split]\nmethod = \"shuffled\"\nseed = 3\n[data.test]\nlast = 20_000\n";
    for (split, algorithm) in [(shuffled, ADMM), ("", CONSENSUS)] {
        let folder = simulation(split, algorithm);
        let run = |more: &[&str]| {
            let mut arguments = vec!["run", "study.toml", "--json", "--quiet", "--no-baselines"];
            arguments.extend(more);
            let ran = support::radmm(folder.path(), &arguments);
            assert!(ran.status.success(), "{}", text(&ran.stderr));
            ran.stdout
        };
        let in_memory = run(&["--threads", "2"]);
        for memory in ["0", LITTLE, "1 GB"] {
            for threads in ["1", "2"] {
                let limited = [
                    "--memory",
                    memory,
                    "--scratch",
                    "scratch",
                    "--threads",
                    threads,
                ];
                assert!(run(&limited) == in_memory, "{algorithm} {memory} {threads}");
            }
        }
        assert!(
            run(&["--memory", "0"]) == in_memory,
            "in the study's folder"
        );
        assert!(is_empty(&folder.path().join("scratch")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}

/// Two parties with rows and keys of their own, and noise from a seed.
struct Trial {
    folder: TempDir,
    listen: Vec<String>,
}

const NAMES: [&str; 2] = ["alder", "birch"];

impl Trial {
    fn new(algorithm: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Both ports are taken until both are known.
        let free = NAMES.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let listen = free.iter().map(|socket| socket.local_addr().unwrap());
        let listen: Vec<String> = listen.map(|address| address.to_string()).collect();
        let mut study = format!(
            "name = \"trial\"\n[data]\n{DATA}[network]\ntopology = \"path\"\n{algorithm}{REST}"
        );
        let all = rows();
        let lines: Vec<&str> = all.lines().collect();
        for (k, (name, address)) in NAMES.iter().zip(&listen).enumerate() {
            let home = folder.path().join(name);
            fs::create_dir_all(home.join("scratch")).unwrap();
            let key = SecretKey::generate().unwrap();
            key.write_new(&home.join("key.pem")).unwrap();
            study += &format!(
                "[[parties]]\nname = \"{name}\"\nkey = \"{}\"\nrows = {ROWS}\naddress = \"{address}\"\n",
                key.identity()
            );
            let own = lines[1..].iter().skip(k * ROWS).take(ROWS);
            let own: Vec<&str> = [lines[0]].iter().chain(own).copied().collect();
            fs::write(home.join("rows.csv"), own.join("\n")).unwrap();
        }
        fs::write(folder.path().join("study.toml"), study).unwrap();
        let trial = Self { folder, listen };
        trial.site("birch", "");
        trial
    }

    /// Writes a site file with these lines in its section `[data]`.
    fn site(&self, party: &str, lines: &str) {
        let k = NAMES.iter().position(|name| *name == party).unwrap();
        let site = format!(
            "key = \"key.pem\"\nstate = \"state\"\nnoise = \"seeded\"\nlisten = \"{}\"\n[data]\npath = \"rows.csv\"\n{lines}\n",
            self.listen[k]
        );
        fs::write(self.folder.path().join(party).join("site.toml"), site).unwrap();
    }

    fn node(&self, party: &str) -> Command {
        let site = format!("{party}/site.toml");
        let arguments = [
            "node",
            "--study",
            "study.toml",
            "--site",
            &site,
            "--log",
            "json",
        ];
        let mut command = support::command(self.folder.path(), &arguments);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn output(&self, party: &str) -> Output {
        self.node(party).output().unwrap()
    }

    /// Runs both parties, and returns the transcript and the model of alder.
    fn run(&self) -> [Vec<u8>; 2] {
        let parties = NAMES.map(|party| self.node(party).spawn().unwrap());
        for party in parties {
            let output = party.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        let results = self.folder.path().join("alder/results");
        let found = ["transcript.jsonl", "model.json"].map(|name| fs::read(results.join(name)));
        for party in NAMES {
            let home = self.folder.path().join(party);
            fs::remove_dir_all(home.join("state")).unwrap();
            fs::remove_dir_all(home.join("results")).unwrap();
        }
        found.map(Result::unwrap)
    }

    fn scratch(&self) -> std::path::PathBuf {
        self.folder.path().join("alder/scratch")
    }
}

#[test]
fn a_node_gives_the_same_bytes_with_any_memory() {
    for algorithm in [ADMM, CONSENSUS] {
        let trial = Trial::new(algorithm);
        trial.site("alder", "");
        let in_memory = trial.run();
        for lines in [
            "memory = \"0\"\nscratch = \"scratch\"".to_owned(),
            format!("memory = \"{LITTLE}\"\nscratch = \"scratch\""),
            "memory = \"0\"".to_owned(),
        ] {
            trial.site("alder", &lines);
            assert!(trial.run() == in_memory, "{algorithm} {lines}");
            assert!(is_empty(&trial.scratch()));
        }
    }
}

/// Waits until a node has read its rows.
fn wait_for_start(node: &mut Child) {
    let mut log = BufReader::new(node.stderr.take().unwrap()).lines();
    let started = |line: &String| line.contains(r#""event":"started""#);
    assert!(
        log.any(|line| started(&line.unwrap())),
        "it has not started"
    );
}

#[test]
fn a_killed_node_leaves_no_row_behind() {
    let trial = Trial::new(ADMM);
    trial.site("alder", "memory = \"0\"\nscratch = \"scratch\"");
    let mut node = trial.node("alder").spawn().unwrap();
    wait_for_start(&mut node);
    let files = fs::read_dir(format!("/proc/{}/fd", node.id())).unwrap();
    let in_scratch = |path: &Path| path.starts_with(trial.scratch().canonicalize().unwrap());
    let opened: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|file| in_scratch(&fs::read_link(file).unwrap_or_default()))
        .collect();
    assert_eq!(opened.len(), 1, "the file of rows");
    let file = fs::metadata(&opened[0]).unwrap();
    assert!(file.len() > 2 * CHUNK as u64 * 20, "{}", file.len());
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(is_empty(&trial.scratch()), "it has no name");
    node.kill().unwrap();
    node.wait().unwrap();
    assert!(is_empty(&trial.scratch()));
}

/// Returns the output of a command that may write no file of more than 32 kB.
fn within_a_full_disk(command: &Command) -> Output {
    let words = command.get_args().map(|word| word.to_str().unwrap());
    // Without the trap, the signal that goes with the error ends the process.
    Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_radmm"))
        .args(words)
        .current_dir(command.get_current_dir().unwrap())
        .output()
        .unwrap()
}

#[test]
fn a_full_disk_is_an_error_that_says_what_to_do() {
    let said = "cannot store the rows beyond the memory limit in ";
    let advice = "make room there, name another folder, or allow more memory";
    let folder = simulation("", ADMM);
    let arguments = ["run", "study.toml", "--memory", "0", "--scratch", "scratch"];
    let ran = within_a_full_disk(&support::command(folder.path(), &arguments));
    let error = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{error}");
    assert!(error.contains(said) && error.contains(advice), "{error}");
    // A node has charged nothing by then, and its log in JSON may say where the disk is full.
    let trial = Trial::new(ADMM);
    trial.site("alder", "memory = \"0\"");
    let ran = within_a_full_disk(&trial.node("alder"));
    let error = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{error}");
    assert!(error.contains(said) && error.contains(advice), "{error}");
    let state = trial.folder.path().join("alder/state");
    assert!(Store::open(&state).unwrap().studies().is_empty());
}

#[test]
fn a_wrong_limit_names_the_key_and_the_remedy() {
    let folder = simulation("", ADMM);
    for (arguments, expected) in [
        (
            &["--memory", "4"][..],
            "must be an amount of memory, such as \"4 GB\" or \"512 MiB\"",
        ),
        (&["--scratch", "scratch"], "--memory"),
        (
            &["--memory", "4GB", "--scratch", "none"],
            "the rows beyond --memory are stored in this folder: choose another with --scratch",
        ),
    ] {
        let ran = support::radmm(folder.path(), &[&["run", "study.toml"], arguments].concat());
        let error = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let trial = Trial::new(ADMM);
    for (lines, expected) in [
        (
            "memory = \"much\"",
            "site.toml:7: [data] memory = \"much\": must be an amount of memory",
        ),
        (
            "scratch = \"scratch\"",
            "site.toml:7: [data] scratch = \"scratch\": is where rows beyond memory are stored",
        ),
        (
            "memory = \"1 GB\"\nscratch = \"none\"",
            "the rows beyond [data] memory are stored in this folder, which [data] scratch names",
        ),
    ] {
        trial.site("alder", lines);
        let ran = trial.output("alder");
        let error = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
