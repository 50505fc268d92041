//! What a real network costs beside computing: an iteration of five processes over TLS, against the bare exchange of the same
//! bytes over the same transport.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use radmm::graph::NodeId;
use radmm_lab::Experiment;
use radmm_node::local_network::{LocalNetwork, LocalNetworkOptions};
use radmm_node::machine::value_frame_length;
use radmm_node::machine::{Link, LinkEvent};
use radmm_node::setup::Folders;
use radmm_node::setup::PartySetup;
use radmm_node::transport::{EventReceiver, PeerEndpoint, Transport, TransportConfig, event_queue};
use radmm_study::rows::StudyRows;
use radmm_study::{SiteFile, Study};

use crate::clock::{median, on_threads, timed};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, times};

const PARTIES: usize = 5;
const ROWS: usize = 40;
const ITERATIONS: u32 = 1_000;
const TURNS: usize = 3;

/// Nothing takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// An iteration of five processes beside its computing, against two round trips of the same bytes.
pub fn overhead() -> Found {
    let binary = crate::figures::binary();
    let mut found = Found::default();
    let mut lines = Vec::new();
    for columns in [12, 105] {
        let trial = Trial::new(columns);
        let (mut ours, mut bare, mut durable) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            ours.push(trial.nodes(&binary));
            bare.push(trial.bare());
            durable.push(trial.durable());
        }
        let (iteration, trip, computing) = (median(ours), median(bare), trial.computing());
        let beside = iteration - computing;
        found.ratios.push(Ratio {
            work: format!("an iteration of five processes without its computing, d = {columns}"),
            ours: duration(beside),
            other: format!("{}, two bare round trips", duration(2.0 * trip)),
            ratio: beside / (2.0 * trip),
            target: Target::AtMost(1.3),
        });
        lines.push(vec![
            columns.to_string(),
            value_frame_length(columns).to_string(),
            duration(iteration),
            duration(computing),
            duration(median(durable)),
            duration(trip),
            times(beside / (2.0 * trip)),
        ]);
    }
    found.details.push(Detail {
        title: "Real nodes".to_owned(),
        head: vec![
            "columns",
            "bytes per message",
            "iteration",
            "computing in it",
            "one durable write",
            "bare round trip",
            "ratio",
        ],
        lines,
        notes: vec![format!(
            "`radmm node` in {PARTIES} processes on a ring, on this machine's loopback: {ITERATIONS} iterations of R-ADMM, every second \
             one recycled, {ROWS} rows per party, a limit at every site, a log line per iteration, and every iteration in one durable \
             record before its message leaves. Computing is the time of the simulator for an iteration of all parties on one \
             thread, including its losses, divided by the number of cores. A durable write is the mean time until a page has reached an \
             otherwise idle disk; an iteration waits for the slowest of three. A bare round trip is the time in which each of {PARTIES} \
             processes with the same transport and keys sends as many bytes to both its neighbours and receives them back, all at the \
             same time. Medians of {TURNS} runs in turns.",
        )],
    });
    found
}

/// Everything that five parties need, in a folder.
struct Trial {
    folder: PathBuf,
    rehearsal: LocalNetwork,
    columns: usize,
}

impl Trial {
    fn new(columns: usize) -> Self {
        let folder = super::target().join(format!("bench-data/node-{columns}"));
        // What an earlier run left has other ports.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("rows.svm"), rows(columns)).unwrap();
        let text = study(columns);
        let (parsed, _) = Study::parse(&text, "node.toml").unwrap();
        let table = StudyRows::read(&parsed, &folder).unwrap();
        let rows: Vec<usize> = table.parties.iter().map(|p| p.shard.rows()).collect();
        let manner = LocalNetworkOptions {
            rows: &rows,
            seeded: true,
            limit: Some(1e6),
        };
        Self {
            rehearsal: LocalNetwork::prepare(&text, &parsed, &folder, manner).unwrap(),
            folder,
            columns,
        }
    }

    /// Seconds of an iteration.
    fn nodes(&self, binary: &Path) -> f64 {
        let logs: Vec<PathBuf> = self.parties().map(|party| party.join("log")).collect();
        for party in self.parties() {
            // Everything from the start.
            let _ = fs::remove_dir_all(party.join("state"));
        }
        let start = |(k, ((_, site), log)): (usize, (&(String, PathBuf), &PathBuf))| {
            // The times in a log are whole seconds. So the lines of the first party are timed as they come.
            let stderr = match k {
                0 => Stdio::piped(),
                _ => File::create(log).unwrap().into(),
            };
            Command::new(binary)
                .args(["node", "--log", "json", "--study"])
                .arg(&self.rehearsal.study)
                .arg("--site")
                .arg(site)
                .stdout(Stdio::null())
                .stderr(stderr)
                .spawn()
                .unwrap()
        };
        let sites = self.rehearsal.sites.iter().zip(&logs).enumerate();
        let mut children: Vec<Child> = sites.map(start).collect();
        let seconds = between_iterations(children[0].stderr.take().unwrap());
        for child in children {
            let ended = child.wait_with_output().unwrap().status;
            assert!(ended.success(), "radmm node: {ended}");
        }
        seconds
    }

    fn parties(&self) -> impl Iterator<Item = PathBuf> {
        let folder = |(name, _): &(String, PathBuf)| self.folder.join(name);
        self.rehearsal.sites.iter().map(folder)
    }

    /// Seconds of a round trip.
    fn bare(&self) -> f64 {
        let this = std::env::current_exe().unwrap();
        let start = |(_, site): &(String, PathBuf)| {
            Command::new(&this)
                .args(["--child", "bare"])
                .arg(&self.rehearsal.study)
                .arg(site)
                .arg(value_frame_length(self.columns).to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children: Vec<Child> = self.rehearsal.sites.iter().map(start).collect();
        let seconds = |child: Child| {
            let ended = child.wait_with_output().unwrap();
            assert!(ended.status.success(), "bare: {}", ended.status);
            let said = String::from_utf8(ended.stdout).unwrap();
            said.trim().parse::<f64>().unwrap()
        };
        median(children.into_iter().map(seconds).collect())
    }

    /// Seconds until a page is on the disk on which the states are.
    fn durable(&self) -> f64 {
        let mut file = File::create(self.folder.join("page")).unwrap();
        let mut write = || {
            file.rewind().unwrap();
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
        };
        write();
        let (seconds, ()) = timed(|| (0..ITERATIONS).for_each(|_| write()));
        seconds / f64::from(ITERATIONS)
    }

    /// Seconds of an iteration in which all cores do nothing but compute.
    fn computing(&self) -> f64 {
        let (study, _) = Study::parse(&study(self.columns), "node.toml").unwrap();
        let experiment = Experiment::prepare(study, &self.folder).unwrap();
        let noise = experiment.noise().unwrap();
        let once = || on_threads(1, || timed(|| experiment.repeat(&noise, None, &|_| ())).0);
        let seconds = median((0..TURNS).map(|_| once()).collect());
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get().min(PARTIES));
        seconds / f64::from(ITERATIONS) / cores as f64
    }
}

/// The seconds between the lines of a log that report an iteration, while it is written.
fn between_iterations(log: impl Read) -> f64 {
    let lines = BufReader::new(log).lines().map_while(Result::ok);
    let iterated = lines.filter(|line| line.contains(r#""event":"iterated""#));
    let when: Vec<Instant> = iterated.map(|_| Instant::now()).collect();
    assert!(when.len() > 1, "no iterations in the log");
    when[when.len() - 1].duration_since(when[0]).as_secs_f64() / (when.len() - 1) as f64
}

fn study(columns: usize) -> String {
    format!(
        "name = \"node\"\n[data]\npath = \"rows.svm\"\ncolumns = {columns}\npositive = \"+1\"\n\
         [network]\nnodes = {PARTIES}\ntopology = \"ring\"\n[problem]\nweight = 100.0\nridge = 0.5\n\
         [algorithm]\nname = \"r-admm\"\niterations = {ITERATIONS}\nrecycle = 1\npenalty = 3.0\ndamping = 1.0\n\
         [privacy]\nmechanism = \"objective\"\nnoise = \"gaussian\"\nsigma = 50.0\ndelta = 1e-4\n[run]\nseed = 1\n"
    )
}

/// Full rows, of numbers that look like any.
fn rows(columns: usize) -> String {
    let mut state = 1_u32;
    let mut text = String::new();
    for row in 0..PARTIES * ROWS {
        text += if row % 2 == 0 { "+1" } else { "-1" };
        for column in 1..=columns {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f64::from(state) / f64::from(u32::MAX) - 0.5;
            text += &format!(" {column}:{value}");
        }
        text += "\n";
    }
    text
}

/// One of the processes that only exchange bytes: prints the seconds of a round trip.
pub fn bare(study: &Path, site: &Path, bytes: usize) {
    let (agreed, _) = Study::parse(&fs::read_to_string(study).unwrap(), "study").unwrap();
    let (own, _) = SiteFile::parse(&fs::read_to_string(site).unwrap(), "site").unwrap();
    let folders = Folders {
        study: study.parent().unwrap(),
        site: site.parent().unwrap(),
    };
    let premises = PartySetup::new(agreed, own, folders, ("study", "site")).unwrap();
    let neighbour = |(peer, address): (radmm_node::machine::Peer, _)| PeerEndpoint {
        id: peer.id,
        key: peer.key,
        address,
    };
    let settings = TransportConfig {
        me: premises.me(),
        key: premises.key().clone(),
        listen: premises.site().listen,
        neighbours: premises.neighbours().map(neighbour).collect(),
        parties: Vec::new(),
        largest_frame: bytes,
    };
    let neighbours = settings.neighbours.len();
    let (sender, events) = event_queue();
    let transport = Transport::start(settings, sender).unwrap();
    let mut echo = Echo {
        transport,
        events,
        links: BTreeMap::new(),
        back: 0,
        done: 0,
    };
    while echo.links.len() < neighbours {
        echo.attend();
    }
    let mut seconds = 0.0;
    // The first half warms up.
    for rounds in [ITERATIONS / 2, ITERATIONS] {
        let begun = Instant::now();
        for _ in 0..rounds {
            echo.back = 0;
            echo.say(vec![ASK; bytes]);
            while echo.back < neighbours {
                echo.attend();
            }
        }
        seconds = begun.elapsed().as_secs_f64() / f64::from(rounds);
    }
    // The others are answered until they are done as well.
    echo.say(vec![DONE; bytes]);
    while echo.done < neighbours {
        echo.attend();
    }
    echo.transport.shutdown();
    println!("{seconds}");
}

const ASK: u8 = 0;
const ANSWER: u8 = 1;
const DONE: u8 = 2;

/// Sends back what it is asked.
struct Echo {
    transport: Transport,
    events: EventReceiver,
    links: BTreeMap<NodeId, Box<dyn Link>>,
    /// How many have answered.
    back: usize,
    done: usize,
}

impl Echo {
    fn say(&self, frame: Vec<u8>) {
        for link in self.links.values() {
            assert!(link.send(frame.clone()), "a link does not take a frame");
        }
    }

    fn attend(&mut self) {
        let event = self.transport.next_event(&mut self.events, PATIENCE);
        match event.unwrap() {
            LinkEvent::Up { peer, link, .. } => drop(self.links.insert(peer, link)),
            LinkEvent::Frame {
                peer, mut bytes, ..
            } => match bytes[0] {
                ASK => {
                    bytes.fill(ANSWER);
                    assert!(
                        self.links[&peer].send(bytes),
                        "a link does not take a frame"
                    );
                }
                ANSWER => self.back += 1,
                _ => self.done += 1,
            },
            _ => {}
        }
    }
}
