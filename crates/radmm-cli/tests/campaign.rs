//! A campaign against real parties: disturbed processes, damaged accounts, failing disks. `make campaign` runs it, and it prints a table.
//!
//! Nothing may be charged twice, no step may be answered twice, no message may have two contents, and every damage must be noticed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/observed.rs"]
mod observed;
#[path = "support/party_processes.rs"]
mod party_processes;
#[path = "support/proxy.rs"]
mod proxy;
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use observed::Observed;
use party_processes::{ExitedProcess, PartyProcesses, clinic, consensus, replace_once};
use proxy::{Edge, Proxy};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use support::{radmm, text};

/// The number of disturbances of processes.
const DISTURBANCES: usize = 920;
/// The number of bit flips in journals, and in noise secrets.
const FLIPS: [usize; 2] = [500, 100];
/// The number of truncations of journals.
const CUTS: usize = 300;
/// The number of failing writes.
const FAULTS: usize = 120;

/// The privacy limit of parties in earnest, which these studies do not reach.
const LIMIT: f64 = 1e6;

/// A study of the campaign.
struct Trial {
    name: &'static str,
    text: String,
    /// Whether its noise is secret.
    in_earnest: bool,
}

impl Trial {
    fn prepare(&self) -> PartyProcesses {
        match self.in_earnest {
            true => PartyProcesses::in_earnest(&self.text, LIMIT),
            false => PartyProcesses::new(&self.text),
        }
    }
}

/// Returns a study with so many parties on a ring, who share its rows.
fn shared(study: &str, parties: usize) -> String {
    let (data, rest) = study.split_once("[data.split]").unwrap();
    let (_, rest) = rest.split_once("[network]").unwrap();
    let study = format!("{data}[data.split]\nmethod = \"shuffled\"\nseed = 3\n\n[network]{rest}");
    replace_once(&study, "nodes = 5", &format!("nodes = {parties}"))
}

fn trials() -> Vec<Trial> {
    let trial = |name, text, in_earnest| Trial {
        name,
        text,
        in_earnest,
    };
    vec![
        trial("minimisers, 5 parties, rehearsal", clinic(1000), false),
        trial(
            "minimisers, 3 parties, in earnest",
            shared(&clinic(500), 3),
            true,
        ),
        trial("sums, 5 parties, rehearsal", consensus("gram", 200), false),
        trial(
            "sums, 4 parties, in earnest",
            shared(&consensus("mean", 100), 4),
            true,
        ),
    ]
}

/// What was done, and what came of it.
#[derive(Default)]
struct Tally(BTreeMap<(&'static str, String), usize>);

impl Tally {
    fn add(&mut self, what: &'static str, outcome: impl Into<String>) {
        *self.0.entry((what, outcome.into())).or_default() += 1;
    }

    fn count(&self, what: &[&str]) -> usize {
        let counts = self.0.iter();
        let counts = counts.filter(|((name, _), _)| what.contains(name));
        counts.map(|(_, count)| count).sum()
    }
}

const PROCESS_DISTURBANCES: [&str; 4] = ["SIGKILL", "SIGTERM", "SIGSTOP", "connections cut"];

#[test]
#[ignore = "takes ten minutes: make campaign"]
fn disturbances_damage_and_faults_change_no_answer_and_no_account() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = std::env::var("SEED").map_or(now.as_secs(), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut tally = Tally::default();
    let trials = trials();
    for round in 0.. {
        let left = DISTURBANCES - tally.count(&PROCESS_DISTURBANCES);
        if left == 0 {
            break;
        }
        let trial = &trials[round % trials.len()];
        let quota = left.min(DISTURBANCES.div_ceil(2 * trials.len()));
        disturb(trial, quota, &mut rng, &mut tally);
        let made = tally.count(&PROCESS_DISTURBANCES);
        println!(
            "{made} of {DISTURBANCES} disturbances, at last {}",
            trial.name
        );
    }
    damage(&mut rng, &mut tally);
    fail_writes(&mut rng, &mut tally);
    println!("{:18} {:>6}   outcome", "disturbance", "number");
    for ((what, outcome), count) in &tally.0 {
        println!("{what:18} {count:6}   {outcome}");
    }
    assert_eq!(tally.count(&PROCESS_DISTURBANCES), DISTURBANCES);
    assert_eq!(tally.count(&["bit of a journal"]), FLIPS[0]);
    assert_eq!(tally.count(&["bit of a secret"]), FLIPS[1]);
    assert_eq!(tally.count(&["cut journal"]), CUTS);
    assert_eq!(tally.count(&["failed write"]), FAULTS);
}

/// Runs a study undisturbed, and again under so many disturbances, or fewer if it ends before.
fn disturb(trial: &Trial, quota: usize, rng: &mut ChaCha20Rng, tally: &mut Tally) {
    let mut parties = trial.prepare();
    parties.start_all();
    parties.wait_all();
    let mut undisturbed = Observed::default();
    undisturbed.observe_all(&parties);
    let models = parties.weights();
    for party in 0..parties.count() {
        fs::remove_dir_all(parties.home(party).join("state")).unwrap();
        fs::remove_dir_all(parties.home(party).join("results")).unwrap();
    }

    let edges = proxy::between(&parties, |_, _, address| Proxy::good(address));
    let mut observed = Observed::default();
    parties.start_all();
    let mut made = 0;
    while made < quota {
        let victim = rng.random_range(0..parties.count());
        await_moment(&parties, victim, rng);
        let is_over = |party: usize| parties.count_notices(party, "finished") > 0;
        if (0..parties.count()).any(is_over) {
            break;
        }
        made += match rng.random_range(0..12) {
            0..4 => stop_one("KILL", victim, &mut parties, &mut observed, rng, tally),
            4..6 => stop_one("TERM", victim, &mut parties, &mut observed, rng, tally),
            6 => {
                let left = quota - made;
                let all = (0..parties.count()).take(left);
                let stopped = all
                    .map(|party| stop_one("KILL", party, &mut parties, &mut observed, rng, tally));
                stopped.sum()
            }
            7..9 => pause(victim, &mut parties, rng, tally),
            _ => cut(victim, &edges, rng, tally),
        };
    }
    finish(&mut parties, &mut observed);
    assert!(
        observed.schedule() == undisturbed.schedule(),
        "other charges"
    );
    match trial.in_earnest {
        false => {
            assert!(observed.said() == undisturbed.said(), "other messages");
            assert_eq!(parties.weights(), models);
        }
        true => {
            let [first, again] = [&undisturbed, &observed].map(|run| run.said().values().last());
            assert_ne!(first, again, "secret noise repeats");
        }
    }
}

/// Waits for a study to end, and verifies everything that can be seen of it.
fn finish(parties: &mut PartyProcesses, observed: &mut Observed) {
    // Those who were stopped at the end have been started again.
    parties.wait_all();
    observed.observe_all(parties);
    let mut args = vec!["verify", "--study", "study.toml"];
    let names: Vec<&str> = (0..parties.count()).map(|i| parties.name(i)).collect();
    let paths = |file: &str| -> Vec<String> {
        let path = |name: &&str| format!("{name}/results/{file}");
        names.iter().map(path).collect()
    };
    let (transcripts, statements) = (paths("transcript.jsonl"), paths("privacy-statement.json"));
    args.extend(transcripts.iter().map(String::as_str));
    for statement in &statements {
        args.extend(["--statement", statement]);
    }
    assert_succeeds(parties.folder(), &args);
    for name in names {
        assert_account_is_intact(parties.folder(), name);
    }
}

fn assert_account_is_intact(folder: &Path, name: &str) {
    let state = format!("{name}/state");
    assert_succeeds(folder, &["ledger", "verify", "--state", &state]);
}

fn assert_succeeds(folder: &Path, args: &[&str]) {
    let ran = radmm(folder, args);
    let (out, err) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{args:?}\n{out}{err}");
}

/// Waits for a random moment, often just after the party has begun to write its journal.
fn await_moment(parties: &PartyProcesses, victim: usize, rng: &mut ChaCha20Rng) {
    thread::sleep(Duration::from_micros(rng.random_range(0..40_000)));
    if rng.random_bool(0.5) {
        let file = parties.state_file(victim);
        let version = || fs::metadata(&file).and_then(|file| file.modified()).ok();
        let (before, started) = (version(), Instant::now());
        while version() == before && started.elapsed() < Duration::from_millis(200) {
            thread::sleep(Duration::from_micros(30));
        }
        thread::sleep(Duration::from_micros(rng.random_range(0..1000)));
    }
}

/// Ends a party's process by a signal, and starts it again, mostly at once. Returns the number of disturbances.
fn stop_one(
    signal: &str,
    victim: usize,
    parties: &mut PartyProcesses,
    observed: &mut Observed,
    rng: &mut ChaCha20Rng,
    tally: &mut Tally,
) -> usize {
    let reported = parties.iteration(victim);
    parties.signal(victim, signal);
    let exited = parties.wait(victim);
    let what = match signal {
        "KILL" => "SIGKILL",
        _ => "SIGTERM",
    };
    match (exited.status.signal(), exited.status.code()) {
        (Some(9 | 15), _) => tally.add(what, "ended at once, resumed"),
        (_, Some(0)) if signal == "TERM" => tally.add(what, "ended between iterations, resumed"),
        // It had come to its end before.
        (_, Some(0)) => return 0,
        _ => parties.fail(&format!(
            "{} ended with {}",
            parties.name(victim),
            exited.status
        )),
    }
    observed.observe(parties, victim);
    if rng.random_bool(0.2) {
        thread::sleep(Duration::from_millis(rng.random_range(0..300)));
    }
    parties.start(victim);
    if rng.random_bool(0.5) {
        parties.wait_for_event(victim, "started", &[]);
        let resumed = parties.notices(victim)[0]["iteration"].as_u64();
        assert!(resumed >= Some(reported), "{reported} was reported");
    }
    1
}

/// Stops a party's process for a moment, as a suspended machine does.
fn pause(
    victim: usize,
    parties: &mut PartyProcesses,
    rng: &mut ChaCha20Rng,
    tally: &mut Tally,
) -> usize {
    parties.signal(victim, "STOP");
    thread::sleep(Duration::from_millis(rng.random_range(0..400)));
    parties.signal(victim, "CONT");
    tally.add("SIGSTOP", "went on");
    1
}

/// Cuts a party off for a moment.
fn cut(victim: usize, edges: &[Edge], rng: &mut ChaCha20Rng, tally: &mut Tally) -> usize {
    let own = |edge: &&Edge| edge.0 == victim || edge.1 == victim;
    edges.iter().filter(own).for_each(|edge| edge.2.sever());
    thread::sleep(Duration::from_millis(rng.random_range(0..300)));
    edges.iter().filter(own).for_each(|edge| edge.2.restore());
    tally.add("connections cut", "reconnected");
    1
}

/// A file of a state folder, as it was before it was damaged.
struct StateFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl StateFile {
    fn read(path: PathBuf) -> Self {
        let bytes = fs::read(&path).unwrap();
        Self { path, bytes }
    }

    /// Returns the bytes up to the end of the last record.
    fn records(&self) -> Range<usize> {
        let last = self.bytes.iter().rposition(|byte| *byte != 0).unwrap();
        0..(last + 1).next_multiple_of(512)
    }

    fn flip(&self, bit: usize) {
        let byte = [self.bytes[bit / 8] ^ 1 << (bit % 8)];
        let mut file = File::options().write(true).open(&self.path).unwrap();
        file.seek(SeekFrom::Start(bit as u64 / 8)).unwrap();
        file.write_all(&byte).unwrap();
    }

    fn cut(&self, length: usize) {
        let file = File::options().write(true).open(&self.path).unwrap();
        file.set_len(length as u64).unwrap();
    }

    /// Writes the bytes as they were into the same file.
    fn restore(&self) {
        fs::write(&self.path, &self.bytes).unwrap();
    }
}

/// Damages the accounts of a study in earnest, first while it is not over, then at its end.
fn damage(rng: &mut ChaCha20Rng, tally: &mut Tally) {
    let mut parties = PartyProcesses::in_earnest(&shared(&clinic(200), 3), LIMIT);
    parties.start_all();
    parties.wait_until("a party is on its way", |parties| parties.iteration(0) > 60);
    let mut observed = Observed::default();
    (0..3).for_each(|party| drop(parties.kill(party)));
    (0..3).for_each(|party| observed.observe(&parties, party));
    damage_files(&mut parties, rng, tally);
    parties.start_all();
    finish(&mut parties, &mut observed);
    damage_files(&mut parties, rng, tally);
    parties.start_all();
    finish(&mut parties, &mut observed);
}

/// Makes half of all damages.
fn damage_files(parties: &mut PartyProcesses, rng: &mut ChaCha20Rng, tally: &mut Tally) {
    let state = |party: usize, file: &str| parties.home(party).join("state").join(file);
    let read = |file: &str| [0, 1, 2].map(|party| StateFile::read(state(party, file)));
    let (journals, secrets) = (read("state.journal"), read("noise.secret"));
    let mut try_damage = |what, party: usize, damage: &dyn Fn()| {
        damage();
        let outcome = start_damaged(parties, party);
        tally.add(what, outcome);
        journals[party].restore();
        secrets[party].restore();
    };
    for _ in 0..FLIPS[0] / 2 {
        let party = rng.random_range(0..3);
        let file = &journals[party];
        // Most of the file is zeros that were written ahead.
        let bytes = match rng.random_bool(0.7) {
            true => file.records(),
            false => 0..file.bytes.len(),
        };
        let bit = 8 * rng.random_range(bytes) + rng.random_range(0..8);
        try_damage("bit of a journal", party, &|| file.flip(bit));
    }
    for _ in 0..FLIPS[1] / 2 {
        let party = rng.random_range(0..3);
        let bit = rng.random_range(0..8 * secrets[party].bytes.len());
        try_damage("bit of a secret", party, &|| secrets[party].flip(bit));
    }
    for _ in 0..CUTS / 2 {
        let party = rng.random_range(0..3);
        let file = &journals[party];
        let most = match rng.random_bool(0.5) {
            true => file.records().end,
            false => file.bytes.len(),
        };
        let length = rng.random_range(0..most);
        try_damage("cut journal", party, &|| file.cut(length));
    }
}

/// Starts a party whose state is damaged. It must refuse to run and name its state.
fn start_damaged(parties: &mut PartyProcesses, party: usize) -> &'static str {
    parties.start(party);
    let exited = parties.wait(party);
    let log = exited.log.join("\n");
    assert_eq!(exited.status.code(), Some(1), "{log}");
    assert!(
        exited
            .notices()
            .iter()
            .all(|notice| notice["event"] != "started"),
        "{log}"
    );
    let reasons = [
        ("the state is corrupt", "refused at the start: corrupt"),
        ("the file was cut", "refused at the start: cut"),
    ];
    let found = reasons.iter().find(|(words, _)| log.contains(words));
    found.unwrap_or_else(|| panic!("{log}")).1
}

/// Makes writes of running parties fail, in the middle or as a whole, in a study in earnest.
fn fail_writes(rng: &mut ChaCha20Rng, tally: &mut Tally) {
    while tally.count(&["failed write"]) < FAULTS {
        let mut parties = PartyProcesses::in_earnest(&shared(&clinic(500), 3), LIMIT);
        let mut observed = Observed::default();
        (0..3).for_each(|party| start_with_file_size(party, None, &mut parties));
        while tally.count(&["failed write"]) < FAULTS {
            let victim = rng.random_range(0..3);
            await_moment(&parties, victim, rng);
            let is_over = |party: usize| parties.count_notices(party, "finished") > 0;
            if (0..3).any(is_over) {
                break;
            }
            fail_write(victim, &mut parties, &mut observed, rng, tally);
        }
        finish(&mut parties, &mut observed);
    }
}

/// Starts a party whose files may not grow beyond a size, and which is told so by errors.
fn start_with_file_size(party: usize, sectors: Option<u64>, parties: &mut PartyProcesses) {
    let node = parties.command(party);
    let limit = sectors.map_or("true".to_owned(), |sectors| format!("ulimit -f {sectors}"));
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            &format!("trap '' XFSZ && {limit} && exec \"$@\""),
            "sh",
        ])
        .arg(node.get_program())
        .args(node.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    parties.spawn(party, shell);
}

/// Makes a party's next write beyond a point of its journal fail, and starts it again.
fn fail_write(
    victim: usize,
    parties: &mut PartyProcesses,
    observed: &mut Observed,
    rng: &mut ChaCha20Rng,
    tally: &mut Tally,
) {
    let outcome = match rng.random_range(0..4) {
        0 => {
            drop(parties.kill(victim));
            start_with_file_size(victim, Some(0), parties);
            "at the start; refused"
        }
        1 => {
            limit_file_size(parties.pid(victim), 0);
            "as a whole; stopped"
        }
        _ => {
            // What fits is written, and the rest of the record is not. There may be no journal yet.
            let journal = fs::read(parties.state_file(victim)).unwrap_or_default();
            let last = journal.iter().rposition(|byte| *byte != 0);
            let bytes = last.unwrap_or_default() + rng.random_range(0..3000);
            limit_file_size(parties.pid(victim), bytes);
            "in the middle; stopped"
        }
    };
    let exited: ExitedProcess = parties.wait(victim);
    let log = exited.log.join("\n");
    if exited.status.success() {
        // It had come to its end before.
        start_with_file_size(victim, None, parties);
        return;
    }
    // At the start its folder of results may be the first that cannot be written.
    assert!(matches!(exited.status.code(), Some(1 | 2)), "{log}");
    // A limit of the file size is told like a full disk.
    let told = ["nothing was sent that is not on record", "File too large"];
    assert!(told.iter().any(|words| log.contains(words)), "{log}");
    tally.add("failed write", outcome);
    observed.observe(parties, victim);
    if parties.state_file(victim).exists() {
        assert_account_is_intact(parties.folder(), parties.name(victim));
    }
    start_with_file_size(victim, None, parties);
}

/// Limits the size to which a running process may write files.
fn limit_file_size(process: u32, bytes: usize) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args([format!("--pid={process}"), format!("--fsize={bytes}:")]);
    assert!(prlimit.status().unwrap().success());
}
