//! One party with up to a hundred million rows: a real node that reads them from a command, and asks them within a limit of memory.
//!
//! The other party of the study has few rows and waits. The numbers are written into docs/scale.md.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use radmm_bench::power_law::{Timing, exponent, steepest};
use radmm_bench::report::{self, Detail, Found, duration, thousands};
use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_study::Study;

use crate::{machine, reading};

/// More memory than the rows take.
const ENOUGH: &str = "8 GB";
/// The rows of the party, and its memory for them.
const SIZES: [(usize, &str); 9] = [
    (100_000, ENOUGH),
    (1_000_000, ENOUGH),
    (10_000_000, ENOUGH),
    (100_000_000, ENOUGH),
    (100_000_000, "1 GB"),
    (100_000, "0"),
    (1_000_000, "0"),
    (10_000_000, "0"),
    (100_000_000, "0"),
];
/// The rows of the other party.
const FEW: usize = 1_000;
/// The gradients of the study, each of which is a pass over the rows.
const STEPS: u32 = 10;
const EPSILON: f64 = 5.0;
/// The largest exponent of the time of the whole run.
const MOST: f64 = 1.05;
/// The seconds between two looks at the memory of a process.
const LOOK: Duration = Duration::from_millis(50);
/// The part of docs/scale.md that this writes.
const PART: &str = "make bench ONLY=rows";

/// Measures a node at all sizes, and writes the part of docs/scale.md about it.
pub fn one_party() -> Found {
    let binary = crate::figures::binary();
    let mut measured = Vec::new();
    for (rows, memory) in SIZES {
        let run = Run::of(&binary, rows, memory);
        eprintln!(
            "  {} rows, memory {memory}: reading {}, answering {}",
            thousands(rows),
            duration(run.reading.seconds),
            duration(run.answering.seconds)
        );
        measured.push(run);
    }
    let details = [detail(&measured), exponents(&measured)];
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scale.md");
    let tables = details.each_ref().map(Detail::to_markdown).join("\n");
    let text = format!("{}\n\n{tables}", machine::words(&[]));
    report::rewrite_part(&page, PART, &text).unwrap();
    Found {
        details: details.into(),
        ..Found::default()
    }
}

/// Prints a table of so many rows.
pub fn print(rows: usize) {
    let mut out = BufWriter::with_capacity(1 << 20, stdout().lock());
    // The node has gone if this fails, and says why.
    let _ = reading::write_rows(&mut out, rows, ",").and_then(|()| out.flush());
}

/// Time that a phase took.
#[derive(Clone, Copy, Default)]
struct Phase {
    seconds: f64,
    /// The seconds that the node's own threads computed.
    cpu: f64,
}

/// One run of a node.
struct Run {
    rows: usize,
    memory: &'static str,
    reading: Phase,
    answering: Phase,
    /// The largest memory of the process after reading, and at all, in bytes.
    peak_reading: f64,
    peak: f64,
    /// The bytes of its file without a name.
    stored: f64,
}

impl Run {
    fn of(binary: &Path, rows: usize, memory: &'static str) -> Self {
        let folder = crate::target().join("bench-data/rows");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let text = study();
        let (parsed, _) = Study::parse(&text, "rows.toml").unwrap();
        let options = LocalNetworkOptions {
            rows: &[rows, FEW],
            seeded: false,
            limit: Some(2.0 * EPSILON),
        };
        let network = LocalNetwork::prepare(&text, &parsed, &folder, options).unwrap();
        for ((_, site), (rows, memory)) in network.sites.iter().zip([(rows, memory), (FEW, "1 GB")])
        {
            print_rows_for(site, rows, memory);
        }
        let mut parties = network.sites.iter().map(|(_, site)| site);
        let (large, small) = (parties.next().unwrap(), parties.next().unwrap());
        let begun = Instant::now();
        let mut node = start(binary, &network.study, large, Stdio::piped());
        let log = BufReader::new(node.stderr.take().unwrap());
        let (sender, events) = channel();
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let _ = sender.send((Instant::now(), line));
            }
        });
        let mut run = Self {
            rows,
            memory,
            reading: Phase::default(),
            answering: Phase::default(),
            peak_reading: 0.0,
            peak: 0.0,
            stored: 0.0,
        };
        let mut other: Option<Child> = None;
        let mut read = begun;
        loop {
            let event = events.recv_timeout(LOOK);
            if let Some(process) = Process::look(node.id()) {
                run.peak = process.peak;
                run.stored = run.stored.max(process.stored);
                run.answering.cpu = process.cpu - run.reading.cpu;
            }
            match event {
                Ok((when, line)) if line.contains(r#""event":"started""#) => {
                    read = when;
                    run.reading.seconds = when.duration_since(begun).as_secs_f64();
                    run.reading.cpu = run.answering.cpu;
                    run.peak_reading = run.peak;
                    let log = File::create(folder.join("other.log")).unwrap();
                    other = Some(start(binary, &network.study, small, log.into()));
                }
                Ok((when, line)) if line.contains(r#""event":"finished""#) => {
                    run.answering.seconds = when.duration_since(read).as_secs_f64();
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for mut child in [Some(node), other].into_iter().flatten() {
            let ended = child.wait().unwrap();
            assert!(ended.success(), "radmm node: {ended}");
        }
        fs::remove_dir_all(&folder).unwrap();
        run
    }
}

fn start(binary: &Path, study: &Path, site: &Path, log: Stdio) -> Child {
    let mut node = Command::new(binary);
    node.args(["node", "--log", "json", "--study"]).arg(study);
    node.arg("--site").arg(site);
    node.stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// Lets a site's rows come from this program, in place of its share of the study's own table.
fn print_rows_for(site: &PathBuf, rows: usize, memory: &str) {
    let this = std::env::current_exe().unwrap();
    let command =
        format!("command = [{this:?}, \"--child\", \"rows\", \"{rows}\"]\nmemory = {memory:?}");
    let text = fs::read_to_string(site).unwrap();
    let share = text.lines().find(|line| line.starts_with("share = true"));
    fs::write(site, text.replace(share.unwrap(), &command)).unwrap();
}

/// What the operating system tells of a process.
struct Process {
    cpu: f64,
    peak: f64,
    stored: f64,
}

impl Process {
    fn look(id: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{id}"));
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let peak = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let peak: f64 = peak.split_whitespace().nth(1)?.parse().ok()?;
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |k: usize| fields.get(k)?.parse::<f64>().ok();
        // The fields 14 and 15, in hundredths of a second on every Linux.
        let cpu = (ticks(11)? + ticks(12)?) / 100.0;
        let files = fs::read_dir(folder.join("fd")).ok()?.flatten();
        let stored = files.filter(|file| {
            let name = fs::read_link(file.path()).unwrap_or_default();
            name.to_string_lossy().ends_with("(deleted)")
        });
        let sizes = stored.filter_map(|file| fs::metadata(file.path()).ok());
        Some(Self {
            cpu,
            peak: peak * 1024.0,
            stored: sizes.map(|size| size.len() as f64).fold(0.0, f64::max),
        })
    }
}

fn study() -> String {
    let words = |letter: &str| {
        let words = (0..reading::WARDS).map(|k| format!("\"{letter}{k}\""));
        words.collect::<Vec<String>>().join(", ")
    };
    format!(
        "name = \"rows\"\n[data]\npath = \"none.csv\"\nlabel = \"ill\"\npositive = \"yes\"\n\
         [data.numeric]\na = [0, 1000]\nb = [0, 1000]\nc = [0, 1000]\nd = [0, 1000]\ne = [0, 1000]\n\
         [data.categorical]\nward = [{}]\nclinic = [{}]\n\
         [network]\nnodes = 2\ntopology = \"path\"\n[problem]\nloss = \"smooth-hinge\"\n\
         [algorithm]\nname = \"consensus\"\nsteps = {STEPS}\n[privacy]\nepsilon = {EPSILON}\ndelta = 1e-6\n[run]\ntick = 0\n",
        words("w"),
        words("c"),
    )
}

fn detail(runs: &[Run]) -> Detail {
    let line = |run: &Run| {
        vec![
            thousands(run.rows),
            run.memory.to_owned(),
            bytes(run.stored),
            duration(run.reading.seconds),
            duration(run.reading.cpu),
            bytes(run.peak_reading),
            duration(run.answering.seconds),
            duration(run.answering.cpu),
            bytes(run.peak),
        ]
    };
    Detail {
        title: String::new(),
        head: vec![
            "rows",
            "`memory`",
            "file",
            "reading",
            "CPU",
            "peak",
            "answering",
            "CPU",
            "peak",
        ],
        lines: runs.iter().map(line).collect(),
        notes: Vec::new(),
    }
}

/// The time of a run, or of a part of it.
type TimeOf<'a> = &'a dyn Fn(&Run) -> f64;

/// Returns a table of the exponents of all phases, with all rows in memory and with none.
fn exponents(runs: &[Run]) -> Detail {
    let whole = |run: &Run| run.reading.seconds + run.answering.seconds;
    let phases: [(&str, TimeOf<'_>); 4] = [
        ("all", &whole),
        ("reading", &|run| run.reading.seconds),
        ("answering", &|run| run.answering.seconds),
        ("the processor", &|run| run.reading.cpu + run.answering.cpu),
    ];
    let mut lines = Vec::new();
    for memory in [ENOUGH, "0"] {
        let limited = runs.iter().filter(|run| run.memory == memory);
        let limited: Vec<&Run> = limited.collect();
        for (name, time) in phases {
            let timing = |run: &&Run| (run.rows as f64, time(run));
            let timings: Vec<Timing> = limited.iter().map(timing).collect();
            let (fitted, (local, from, to)) =
                (exponent(&timings).unwrap(), steepest(&timings).unwrap());
            let sizes = [from, to].map(|size| thousands(size as usize)).join(" to ");
            lines.push(vec![
                memory.to_owned(),
                name.to_owned(),
                format!("{fitted:.2}"),
                format!("{local:.2} ({sizes})"),
                format!("≤ {MOST:.2}"),
                if fitted <= MOST { "yes" } else { "**no**" }.to_owned(),
            ]);
        }
    }
    Detail {
        title: String::new(),
        head: vec![
            "`memory`",
            "time of",
            "exponent",
            "largest between neighbouring sizes",
            "target",
            "met",
        ],
        lines,
        notes: Vec::new(),
    }
}

fn bytes(count: f64) -> String {
    match count {
        0.0 => "none".to_owned(),
        _ if count < 1e9 => format!("{:.0} MB", count / 1e6),
        _ => format!("{:.2} GB", count / 1e9),
    }
}
