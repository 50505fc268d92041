//! Five parties that have run a study in this process: what they leave behind is what nodes leave behind.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use radmm::graph::NodeId;
use radmm_node::evidence::write_evidence;
use radmm_node::key::SecretKey;
use radmm_node::machine::Party;
use radmm_node::machine::{Credit, Link, LinkEvent, Serial};
use radmm_node::setup::Folders;
use radmm_node::setup::PartySetup;
use radmm_node::store::Store;
use radmm_study::{Identity, SiteFile, Study};
use tempfile::TempDir;

/// By node; each has a folder of that name, with `state` and results in it.
pub const PARTIES: [&str; 5] = ["alder", "birch", "cedar", "maple", "rowan"];

const STUDY: &str = r#"
name = "rehearsal"
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

struct End(Wire);

impl Link for End {
    fn send(&self, frame: Vec<u8>) -> bool {
        self.0.lock().unwrap().push_back(frame);
        true
    }

    fn close(&self) {}
}

/// Runs the study in a folder of its own, with `study.toml` in it.
pub fn rehearse() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = STUDY.to_owned();
    for name in PARTIES {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        let key = SecretKey::generate().unwrap();
        key.write_new(&own.join("site.key")).unwrap();
        let key = Identity::from(key.public());
        text += &format!("[[parties]]\nname = \"{name}\"\nkey = \"{key}\"\n");
    }
    fs::write(folder.path().join("study.toml"), &text).unwrap();
    let (study, _) = Study::parse(&text, "study.toml").unwrap();
    let (site, _) = SiteFile::parse(SITE, "site.toml").unwrap();

    let mut parties = Vec::new();
    let mut abouts = Vec::new();
    let mut edges = Vec::new();
    for (i, name) in PARTIES.iter().enumerate() {
        let folders = Folders {
            study: folder.path(),
            site: &folder.path().join(name),
        };
        let names = ("study.toml", "site.toml");
        let premises = PartySetup::new(study.clone(), site.clone(), folders, names).unwrap();
        abouts.push(premises.public_facts());
        let around = premises.neighbours().map(|(peer, _)| peer.id.0 as usize);
        edges.extend(around.map(|j| (i, j)));
        let store = Store::open(&folders.site.join("state")).unwrap();
        parties.push(premises.open(store).unwrap().0);
    }
    run(&mut parties, &edges);
    for (i, name) in PARTIES.iter().enumerate() {
        write_evidence(&parties[i], &abouts[i], &folder.path().join(name)).unwrap();
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
            link: Box::new(End(wire)),
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

/// The path of a party's file, from the folder of all.
pub fn file(party: &str, name: &str) -> String {
    Path::new(party).join(name).display().to_string()
}
