//! All parties of a study on one machine, for trying it out: keys, site files, and a study that names the parties.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

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
        let network = Self {
            study: folder.join("study.toml"),
            sites: names
                .iter()
                .map(|name| (name.clone(), folder.join(name).join("site.toml")))
                .collect(),
        };
        let LocalNetworkOptions {
            rows,
            seeded,
            limit,
        } = options;
        // Compared with the file of an earlier version: its form must not change.
        let original = format!("# Manner {{ seeded: {seeded}, limit: {limit:?} }}\n{text}");
        match fs::read_to_string(folder.join(ORIGINAL)) {
            Ok(before) if before == original => return Ok(network),
            Ok(_) => return Err(LocalNetworkError::Other(folder.to_owned())),
            Err(_) if folder.join("study.toml").exists() => {
                return Err(LocalNetworkError::Other(folder.to_owned()));
            }
            Err(_) => {}
        }
        let ports = free_ports(names.len()).map_err(LocalNetworkError::Ports)?;
        let mut parties = String::new();
        for (((name, site), port), rows) in network.sites.iter().zip(ports).zip(rows) {
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
            write(site, &site_file(port, study, options))?;
        }
        let name = match study_has_name(text) {
            true => String::new(),
            false => format!("name = {:?}\n", study.name),
        };
        let bare = without_parties(text);
        write(&network.study, &format!("{name}{bare}{parties}"))?;
        // Written last, so that an incomplete folder is filled again.
        write(&folder.join(ORIGINAL), &original)?;
        Ok(network)
    }
}

fn site_file(port: u16, study: &Study, options: LocalNetworkOptions<'_>) -> String {
    let mut text = format!(
        "key = \"key.pem\"\nstate = \"state\"\nout = \"results\"\nlisten = \"127.0.0.1:{port}\"\nmetrics = \"127.0.0.1:0\" # any free port: radmm page prints it\n"
    );
    if options.seeded {
        text += "noise = \"seeded\" # from the study's seed: it repeats, and protects nobody\n";
    }
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

/// Returns different ports that are free, and most likely still free when the parties are started later. Ports that the operating
/// system would choose are not: it gives the same ones to outgoing connections.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    const FIRST: u16 = 10_000;
    const END: u16 = 32_768;
    let mut listeners = Vec::new();
    let mut failed = io::ErrorKind::AddrInUse.into();
    for _ in 0..100 * count {
        if listeners.len() == count {
            break;
        }
        let mut random = [0; 4];
        let filled = SystemRandom::new().fill(&mut random);
        filled.map_err(|_| io::Error::other("no randomness"))?;
        let offset = u32::from_le_bytes(random) % u32::from(END - FIRST);
        match TcpListener::bind(("127.0.0.1", FIRST + offset as u16)) {
            Ok(listener) => listeners.push(listener),
            Err(error) => failed = error,
        }
    }
    if listeners.len() < count {
        return Err(failed);
    }
    let port = |listener: &TcpListener| Ok(listener.local_addr()?.port());
    listeners.iter().map(port).collect()
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
    }
}
