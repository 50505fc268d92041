//! All parties of a study on one machine, for trying it out: keys, site files, and a study that names the parties.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use radmm_data::Split;
use radmm_study::{Identity, Study};
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;

use crate::key::{KeyError, SecretKey};

/// A folder with everything that the parties of a study need on one machine.
#[derive(Clone, Debug)]
pub struct LocalNetwork {
    /// The study file, with its parties.
    pub study: PathBuf,
    /// The name and site file of each party.
    pub sites: Vec<(String, PathBuf)>,
    /// The ports of the parties, which no other local network takes as long as this value lives.
    _ports: Arc<[PortBlock]>,
}

/// The options of a local network.
#[derive(Clone, Copy, Debug)]
pub struct LocalNetworkOptions<'a> {
    /// The number of training rows of every party, by node.
    pub rows: &'a [usize],
    /// Whether the noise repeats from the study's seed, as in a simulation.
    pub seeded: bool,
    /// The limit of every site at the study's `δ`. Without one the noise must be seeded.
    pub limit: Option<f64>,
}

/// The reason why a local network cannot be prepared.
#[derive(Debug, Error)]
pub enum LocalNetworkError {
    /// A folder or file cannot be written.
    #[error("{}: {cause}; choose another folder with --dir", path.display())]
    Unwritable {
        /// The folder or file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The folder holds another local network.
    #[error(
        "{}: another study was tried here, or this one with other options; choose another folder with --dir, or remove this one", .0.display()
    )]
    Other(PathBuf),
    /// A key cannot be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No ports are free.
    #[error("no free ports on this machine: {0}")]
    Ports(io::Error),
}

/// A file with the study and options that the folder was made from, to tell whether they are the same.
const ORIGINAL: &str = "original.toml";

impl LocalNetwork {
    /// Fills a folder, or finds it filled by an earlier call. `text` is that of the study file.
    pub fn prepare(
        text: &str,
        study: &Study,
        folder: &Path,
        options: LocalNetworkOptions<'_>,
    ) -> Result<Self, LocalNetworkError> {
        let names = names(study);
        let file = folder.join("study.toml");
        let site = |name: &String| (name.clone(), folder.join(name).join("site.toml"));
        let sites: Vec<(String, PathBuf)> = names.iter().map(site).collect();
        let LocalNetworkOptions {
            rows,
            seeded,
            limit,
        } = options;
        // Compared with the file of an earlier version: its form must not change.
        let original = format!("# Manner {{ seeded: {seeded}, limit: {limit:?} }}\n{text}");
        match fs::read_to_string(folder.join(ORIGINAL)) {
            Ok(before) if before == original => {
                return Ok(Self {
                    _ports: PortBlock::of_study(&file).into(),
                    study: file,
                    sites,
                });
            }
            Ok(_) => return Err(LocalNetworkError::Other(folder.to_owned())),
            Err(_) if file.exists() => {
                return Err(LocalNetworkError::Other(folder.to_owned()));
            }
            Err(_) => {}
        }
        let (blocks, ports) = free_ports(names.len()).map_err(LocalNetworkError::Ports)?;
        let mut parties = String::new();
        for (((name, _), port), rows) in sites.iter().zip(&ports).zip(rows) {
            let own = folder.join(name);
            fs::create_dir_all(&own).map_err(|cause| unwritable(&own, cause))?;
            let path = own.join("key.pem");
            let key = match SecretKey::read(&path) {
                Ok(key) => key,
                Err(_) => {
                    let key = SecretKey::generate()?;
                    key.write_new(&path)?;
                    key
                }
            };
            let identity = Identity::from(key.public());
            parties += &format!(
                "\n[[parties]]\nname = {name:?}\nkey = \"{identity}\"\nrows = {rows}\naddress = \"127.0.0.1:{port}\"\n"
            );
        }
        let name = match study_has_name(text) {
            true => String::new(),
            false => format!("name = {:?}\n", study.name),
        };
        let bare = without_parties(text);
        let text = format!("{name}{bare}{parties}");
        write(&file, &text)?;
        let named = Study::parse(&text, "study.toml").map(|(study, _)| study.sha256());
        let sha256 = named.unwrap_or_default();
        for ((_, site), port) in sites.iter().zip(ports) {
            write(site, &site_file(port, study, &sha256, options))?;
        }
        // Written last, so that an incomplete folder is filled again.
        write(&folder.join(ORIGINAL), &original)?;
        Ok(Self {
            study: file,
            sites,
            _ports: blocks.into(),
        })
    }
}

fn site_file(port: u16, study: &Study, sha256: &str, options: LocalNetworkOptions<'_>) -> String {
    let mut text = format!(
        "key = \"key.pem\"\nstate = \"state\"\nout = \"results\"\nlisten = \"127.0.0.1:{port}\"\nmetrics = \"127.0.0.1:0\" # any free port: radmm page prints it\n"
    );
    if options.seeded {
        text += "noise = \"seeded\" # from the study's seed: it repeats, and protects nobody\n";
    }
    text += &format!(
        "\n# With these two lines the site runs this study and no other: radmm study show prints its digest.\n# [study]\n# sha256 = \"{sha256}\"\n"
    );
    text +=
        "\n[data]\nshare = true # the rows that the study's own table and split give this party\n";
    if let Some(epsilon) = options.limit {
        text += &format!("\n[limit]\nepsilon = {epsilon:?}\n");
        if study.privacy.delta > 0.0 {
            text += &format!("delta = {:?}\n", study.privacy.delta);
        }
    }
    text
}

/// Returns the names of the parties: those of the study, or of its split where they are valid names, or numbers.
fn names(study: &Study) -> Vec<String> {
    if !study.parties.is_empty() {
        let names = study.parties.iter().map(|party| party.name.clone());
        return names.collect();
    }
    let nodes = study.network.nodes as usize;
    let plain = |name: &String| {
        let fits = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        fits && !name.is_empty() && name.len() <= 64
    };
    match &study.data.split {
        Split::Column { values, .. } if values.len() == nodes && values.iter().all(plain) => {
            let mut lower: Vec<String> = values.iter().map(|v| v.to_ascii_lowercase()).collect();
            let names = lower.clone();
            lower.sort();
            lower.dedup();
            match lower.len() == nodes {
                true => names,
                false => values.clone(),
            }
        }
        _ => (0..nodes).map(|i| format!("node-{i}")).collect(),
    }
}

fn study_has_name(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    let before_sections = lines.by_ref().take_while(|line| !line.starts_with('['));
    { before_sections }.any(|line| {
        let rest = line.strip_prefix("name").map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with('='))
    })
}

/// Returns the text without the tables of its parties, which have other keys here.
fn without_parties(text: &str) -> String {
    let mut keep = true;
    let mut kept = String::new();
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with('[') {
            keep = !start.starts_with("[[parties]]");
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The ports of local networks. Those that the operating system would choose are not among them: it gives the same ones to
/// outgoing connections.
const PORTS: Range<u16> = 10_000..32_768;

/// The number of ports of a block.
const BLOCK: u16 = 64;

/// Ports that one local network on this machine takes at a time.
///
/// A port that was found free is not bound until its party starts, nor while a party that was killed is restarted. So each network
/// locks the blocks that it takes its ports from.
#[derive(Debug)]
struct PortBlock {
    /// A locked file. The operating system unlocks it when the process ends.
    _lock: Option<File>,
    first: u16,
}

impl PortBlock {
    /// Locks the block of a port. Returns `None` if another network has it.
    fn lock(port: u16) -> Option<Self> {
        let first = port - port % BLOCK;
        let path = env::temp_dir().join(format!("radmm-ports-{first}.lock"));
        let created = File::options().create(true).append(true).open(&path);
        // The file of another user can only be read, which suffices for a lock. Without any file there is none.
        let file = created.or_else(|_| File::open(&path)).ok();
        match file.as_ref().map(File::try_lock) {
            Some(Err(TryLockError::WouldBlock)) => None,
            _ => Some(Self { _lock: file, first }),
        }
    }

    /// Locks the blocks of a study's ports, as far as no other network has them.
    fn of_study(file: &Path) -> Vec<Self> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let study = Study::parse(&text, "").ok();
        let parties = study.iter().flat_map(|(study, _)| &study.parties);
        let port = |address: &String| address.rsplit_once(':')?.1.parse().ok();
        let ports = parties.filter_map(|party| party.address.as_ref().and_then(port));
        let blocks: BTreeSet<u16> = ports.map(|port: u16| port - port % BLOCK).collect();
        blocks.into_iter().filter_map(Self::lock).collect()
    }
}

/// Returns different ports that are free, and the blocks that they are from.
fn free_ports(count: usize) -> io::Result<(Vec<PortBlock>, Vec<u16>)> {
    let (mut blocks, mut listeners) = (Vec::<PortBlock>::new(), Vec::new());
    let mut failed = io::ErrorKind::AddrInUse.into();
    for _ in 0..100 + count {
        let mut random = [0; 4];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| io::Error::other("no randomness"))?;
        let offset = u32::from_le_bytes(random) % u32::from(PORTS.end - PORTS.start);
        let Some(block) = PortBlock::lock(PORTS.start + offset as u16) else {
            continue;
        };
        for port in block.first.max(PORTS.start)..block.first + BLOCK {
            match TcpListener::bind(("127.0.0.1", port)) {
                Ok(listener) => listeners.push(listener),
                Err(error) => failed = error,
            }
            if listeners.len() == count {
                blocks.push(block);
                let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
                let ports = listeners.iter().map(port).collect::<io::Result<_>>()?;
                return Ok((blocks, ports));
            }
        }
        blocks.push(block);
    }
    Err(failed)
}

fn write(path: &Path, text: &str) -> Result<(), LocalNetworkError> {
    fs::write(path, text).map_err(|cause| unwritable(path, cause))
}

fn unwritable(path: &Path, cause: io::Error) -> LocalNetworkError {
    LocalNetworkError::Unwritable {
        path: path.to_owned(),
        cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radmm_study::SiteFile;

    const STUDY: &str = r#"
[data]
builtin = "clinic"
[data.split]
method = "column"
name = "hospital"
values = ["Alder", "Birch", "Cedar", "Maple", "Rowan"]
[network]
nodes = 5
topology = "ring"
[problem]
weight = 100
ridge = 0.5
[algorithm]
name = "admm"
iterations = 3
penalty = 3
[privacy]
mechanism = "objective"
noise = "gaussian"
sigma = 5
delta = 1e-4
[run]
seed = 11
"#;

    const ROWS: [usize; 5] = [500, 400, 300, 200, 100];

    #[test]
    fn a_study_gets_parties_and_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let (study, _) = Study::parse(STUDY, "trial.toml").unwrap();
        let options = LocalNetworkOptions {
            rows: &ROWS,
            seeded: false,
            limit: Some(3.0),
        };
        let made = LocalNetwork::prepare(STUDY, &study, folder.path(), options).unwrap();
        let text = fs::read_to_string(&made.study).unwrap();
        let (named, _) = Study::parse(&text, "study.toml").unwrap();
        let names: Vec<&str> = named
            .parties
            .iter()
            .map(|party| party.name.as_str())
            .collect();
        assert_eq!(names, ["alder", "birch", "cedar", "maple", "rowan"]);
        assert_eq!(named.name, "trial");
        let rows: Vec<Option<usize>> = named.parties.iter().map(|party| party.rows).collect();
        assert_eq!(rows, ROWS.map(Some));
        for (_, site) in &made.sites {
            let (site, _) = SiteFile::parse(&fs::read_to_string(site).unwrap(), "site").unwrap();
            assert_eq!(site.limit.unwrap().relaxed, Some((3.0, 1e-4)));
        }
        // No other network has its ports, however long its parties take to start.
        let port = |party: &radmm_study::StudyParty| {
            let address: std::net::SocketAddr = party.address.as_ref().unwrap().parse().unwrap();
            address.port()
        };
        let ports: Vec<u16> = named.parties.iter().map(port).collect();
        assert!(ports.iter().all(|port| PortBlock::lock(*port).is_none()));
        drop(made.clone());
        assert!(PortBlock::lock(ports[0]).is_none());
        // A second call finds the same keys and ports.
        LocalNetwork::prepare(STUDY, &study, folder.path(), options).unwrap();
        assert_eq!(fs::read_to_string(&made.study).unwrap(), text);
        // The parties of a study are replaced by new ones.
        let other = tempfile::tempdir().unwrap();
        let again = LocalNetwork::prepare(&text, &named, other.path(), options).unwrap();
        let again = fs::read_to_string(&again.study).unwrap();
        let (renamed, _) = Study::parse(&again, "study.toml").unwrap();
        assert_eq!(renamed.parties.len(), 5);
        assert_ne!(renamed.parties[0].key, named.parties[0].key);
        // Other options are another local network.
        let seeded = LocalNetworkOptions {
            seeded: true,
            ..options
        };
        let rejected = LocalNetwork::prepare(STUDY, &study, folder.path(), seeded);
        assert!(matches!(rejected, Err(LocalNetworkError::Other(_))));
        drop(made);
        let resumed = LocalNetwork::prepare(STUDY, &study, folder.path(), options).unwrap();
        assert!(PortBlock::lock(ports[0]).is_none());
        drop(resumed);
    }
}
