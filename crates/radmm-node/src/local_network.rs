//! All parties of a study on one machine: keys, site files and a study that names them, for trying it out.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use radmm_data::Split;
use radmm_study::{Identity, Study};
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;

use crate::key::{KeyError, SecretKey};

/// Everything that the parties of a rehearsal need, in one folder.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The study with its parties.
    pub study: PathBuf,
    /// Names and site files, by party.
    pub sites: Vec<(String, PathBuf)>,
}

/// How a rehearsal is made.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether noise repeats from the study's seed, as in a simulation.
    pub seeded: bool,
    /// What every site allows at the study's `δ`; `None` if it allows anything, and then noise must be seeded.
    pub limit: Option<f64>,
}

/// Why there is no rehearsal.
#[derive(Debug, Error)]
pub enum RehearsalError {
    /// A folder or file cannot be written.
    #[error("{}: {cause}; choose another folder with --dir", path.display())]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        cause: io::Error,
    },
    /// There is another one in the folder.
    #[error(
        "{}: another study was tried here, or this one otherwise; choose another folder with --dir, or remove this one", .0.display()
    )]
    Other(PathBuf),
    /// No key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// No ports.
    #[error("no free ports on this machine: {0}")]
    Ports(io::Error),
}

/// What the study was made from, to tell whether it is the same.
const ORIGINAL: &str = "original.toml";

impl Rehearsal {
    /// Makes a folder with everything, or finds it there from an earlier time. `text` is the study file's.
    pub fn prepare(
        text: &str,
        study: &Study,
        folder: &Path,
        manner: Manner,
    ) -> Result<Self, RehearsalError> {
        let names = names(study);
        let rehearsal = Self {
            study: folder.join("study.toml"),
            sites: names
                .iter()
                .map(|name| (name.clone(), folder.join(name).join("site.toml")))
                .collect(),
        };
        let original = format!("# {manner:?}\n{text}");
        match fs::read_to_string(folder.join(ORIGINAL)) {
            Ok(before) if before == original => return Ok(rehearsal),
            Ok(_) => return Err(RehearsalError::Other(folder.to_owned())),
            Err(_) if folder.join("study.toml").exists() => {
                return Err(RehearsalError::Other(folder.to_owned()));
            }
            Err(_) => {}
        }
        let ports = free_ports(names.len()).map_err(RehearsalError::Ports)?;
        let mut parties = String::new();
        for ((name, site), port) in rehearsal.sites.iter().zip(ports) {
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
                "\n[[parties]]\nname = {name:?}\nkey = \"{identity}\"\naddress = \"127.0.0.1:{port}\"\n"
            );
            write(site, &site_file(port, study, manner))?;
        }
        let name = match study_has_name(text) {
            true => String::new(),
            false => format!("name = {:?}\n", study.name),
        };
        let bare = without_parties(text);
        write(&rehearsal.study, &format!("{name}{bare}{parties}"))?;
        // Last, so that a folder that was not made to the end is made again.
        write(&folder.join(ORIGINAL), &original)?;
        Ok(rehearsal)
    }
}

fn site_file(port: u16, study: &Study, manner: Manner) -> String {
    let mut text = format!(
        "key = \"key.pem\"\nstate = \"state\"\nout = \"results\"\nlisten = \"127.0.0.1:{port}\"\n"
    );
    if manner.seeded {
        text += "noise = \"seeded\" # from the study's seed: it repeats, and protects nobody\n";
    }
    text +=
        "\n[data]\nshare = true # the rows that the study's own table and split give this party\n";
    if let Some(epsilon) = manner.limit {
        text += &format!("\n[limit]\nepsilon = {epsilon:?}\n");
        if study.privacy.delta > 0.0 {
            text += &format!("delta = {:?}\n", study.privacy.delta);
        }
    }
    text
}

/// Those of the study; or of its split, where they can be names; or numbers.
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

/// The text without the tables of its parties, who have other keys here.
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

/// Ports that are free now, all different, and most likely still free when the parties are started, again and again. Those that
/// the operating system would choose are not: it gives the same ones to connections.
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

fn write(path: &Path, text: &str) -> Result<(), RehearsalError> {
    fs::write(path, text).map_err(|cause| unwritable(path, cause))
}

fn unwritable(path: &Path, cause: io::Error) -> RehearsalError {
    RehearsalError::Unwritable {
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

    #[test]
    fn a_study_becomes_one_with_parties_and_stays_it() {
        let folder = tempfile::tempdir().unwrap();
        let (study, _) = Study::parse(STUDY, "trial.toml").unwrap();
        let manner = Manner {
            seeded: false,
            limit: Some(3.0),
        };
        let made = Rehearsal::prepare(STUDY, &study, folder.path(), manner).unwrap();
        let text = fs::read_to_string(&made.study).unwrap();
        let (named, _) = Study::parse(&text, "study.toml").unwrap();
        let names: Vec<&str> = named
            .parties
            .iter()
            .map(|party| party.name.as_str())
            .collect();
        assert_eq!(names, ["alder", "birch", "cedar", "maple", "rowan"]);
        assert_eq!(named.name, "trial");
        for (_, site) in &made.sites {
            let (site, _) = SiteFile::parse(&fs::read_to_string(site).unwrap(), "site").unwrap();
            assert_eq!(site.limit.unwrap().relaxed, Some((3.0, 1e-4)));
        }
        // Found again, with the same keys and ports.
        Rehearsal::prepare(STUDY, &study, folder.path(), manner).unwrap();
        assert_eq!(fs::read_to_string(&made.study).unwrap(), text);
        // A study with parties loses them for new ones.
        let other = tempfile::tempdir().unwrap();
        let again = Rehearsal::prepare(&text, &named, other.path(), manner).unwrap();
        let again = fs::read_to_string(&again.study).unwrap();
        let (renamed, _) = Study::parse(&again, "study.toml").unwrap();
        assert_eq!(renamed.parties.len(), 5);
        assert_ne!(renamed.parties[0].key, named.parties[0].key);
        // Another way of trying is another rehearsal.
        let seeded = Manner {
            seeded: true,
            ..manner
        };
        let refused = Rehearsal::prepare(STUDY, &study, folder.path(), seeded);
        assert!(matches!(refused, Err(RehearsalError::Other(_))));
    }
}
