//! The files of five parties that have run a study, in this process and without a network.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use radmm::graph::NodeId;
use radmm_node::evidence::write_result_files;
use radmm_node::key::SecretKey;
use radmm_node::machine::{Credit, Link, LinkEvent, Party, Serial};
use radmm_node::setup::{Folders, PartySetup};
use radmm_node::store::{Store, StoreError};
use radmm_study::{Identity, SiteFile, Study};
use tempfile::TempDir;

/// The parties in the order of their nodes. Each has a folder of that name, with its `state` and results.
pub const PARTIES: [&str; 5] = ["alder", "birch", "cedar", "maple", "rowan"];

const STUDY: &str = r#"
name = "finished"
[data]
builtin = "clinic"
[data.split]
method = "column"
name = "hospital"
values = ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
[network]
topology = "ring"
[problem]
weight = 100
ridge = 0.5
[algorithm]
name = "r-admm"
iterations = 6
penalty = 3
damping = 1
[privacy]
mechanism = "objective"
noise = "gaussian"
sigma = 5
delta = 1e-4
[run]
seed = 11
"#;

/// The complete rows of the hospitals.
const ROWS: [usize; 5] = [530, 491, 363, 350, 246];

const SITE: &str = r#"
key = "site.key"
state = "state"
[data]
share = true
[limit]
epsilon = 500
delta = 1e-4
"#;

type Wire = Arc<Mutex<VecDeque<Vec<u8>>>>;

struct SendEnd(Wire);

impl Link for SendEnd {
    fn send(&self, frame: Vec<u8>) -> bool {
        self.0.lock().unwrap().push_back(frame);
        true
    }

    fn close(&self) {}
}

/// Runs the study in a temporary folder, with `study.toml` in it, after these changes of its text and that of sites.
pub fn run_study(changes: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let changed = |text: &str| {
        let change = |text: String, (old, new): &(&str, &str)| text.replace(old, new);
        changes.iter().fold(text.to_owned(), change)
    };
    let mut text = changed(STUDY);
    for (name, rows) in PARTIES.iter().zip(ROWS) {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        let key = SecretKey::generate().unwrap();
        key.write_new(&own.join("site.key")).unwrap();
        let key = Identity::from(key.public());
        text += &format!("[[parties]]\nname = \"{name}\"\nkey = \"{key}\"\nrows = {rows}\n");
    }
    fs::write(folder.path().join("study.toml"), &text).unwrap();
    let (study, _) = Study::parse(&text, "study.toml").unwrap();
    let (site, _) = SiteFile::parse(&changed(SITE), "site.toml").unwrap();

    let mut parties = Vec::new();
    let mut public_facts = Vec::new();
    let mut edges = Vec::new();
    for (i, name) in PARTIES.iter().enumerate() {
        let folders = Folders {
            study: folder.path(),
            site: &folder.path().join(name),
        };
        let names = ("study.toml", "site.toml");
        let setup = PartySetup::new(study.clone(), site.clone(), folders, names).unwrap();
        public_facts.push(setup.public_facts());
        let around = setup.neighbours().map(|(peer, _)| peer.id.0 as usize);
        edges.extend(around.map(|j| (i, j)));
        let store = open_when_free(&folders.site.join("state"));
        parties.push(setup.open(store).unwrap().0);
    }
    run(&mut parties, &edges);
    for (i, name) in PARTIES.iter().enumerate() {
        write_result_files(&parties[i], &public_facts[i], &folder.path().join(name)).unwrap();
    }
    folder
}

fn run(parties: &mut [Party], edges: &[(usize, usize)]) {
    let mut wires: BTreeMap<(usize, usize), Wire> = BTreeMap::new();
    for &(from, to) in edges {
        let wire = wires.entry((from, to)).or_default().clone();
        let up = LinkEvent::Up {
            peer: NodeId(to as u32),
            serial: Serial(0),
            link: Box::new(SendEnd(wire)),
        };
        parties[from].handle(up).unwrap();
    }
    while !parties.iter().all(Party::all_acked) {
        for &(from, to) in edges {
            let Some(bytes) = wires[&(from, to)].lock().unwrap().pop_front() else {
                continue;
            };
            let frame = LinkEvent::Frame {
                peer: NodeId(from as u32),
                serial: Serial(0),
                bytes,
                credit: Credit::new(|| ()),
            };
            parties[to].handle(frame).unwrap();
        }
    }
}

/// Returns the path of a party's file, relative to the folder.
pub fn file(party: &str, name: &str) -> String {
    Path::new(party).join(name).display().to_string()
}

/// Opens a store. A process that another test is starting may hold a copy of its lock for a moment.
fn open_when_free(path: &Path) -> Store {
    let mut tries = 0;
    loop {
        match Store::open(path) {
            Err(StoreError::InUse(_)) if tries < 100 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            opened => return opened.unwrap(),
        }
    }
}
