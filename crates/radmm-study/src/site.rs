//! The site file: the settings that one party keeps to itself.
//!
//! All parties agree on a study. The places of a party's key and rows, and the limit of what may ever be learnt of these rows,
//! are its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use radmm::privacy::{DatasetLimits, InvalidLimits, SiteAccounting};
use radmm_data::{FileOptions, Format};

use crate::error::{Note, StudyError};
use crate::parse::entry::{Entry, POSITIVE, Range};
use crate::parse::reader::{Document, KnownNames, Section};
use crate::parse::{address, file_options, parties};
use crate::{byte_size, hex, identity};

const KNOWN: KnownNames = KnownNames {
    keys: &[
        "key",
        "party",
        "state",
        "witness",
        "out",
        "listen",
        "metrics",
        "hosts",
        "noise",
        "stop_on_suspicion",
    ],
    sections: &["study", "data", "limit", "addresses"],
    lists: &[],
};

const STUDY: [&str; 1] = ["sha256"];

const DATA: [&str; 9] = [
    "path",
    "command",
    "format",
    "separator",
    "decimal",
    "share",
    "continues",
    "memory",
    "scratch",
];

const LIMIT: [&str; 4] = ["epsilon", "delta", "pure", "accounting"];

/// The path that stands for stdin.
const STDIN: &str = "-";

/// The folder of results, unless given.
const OUT: &str = "results";

const DELTA: Range = Range {
    holds: |x| (0.0..1.0).contains(&x),
    needed: "at least 0 and below 1",
};

/// The settings of one party. Paths are as written: relative to the site file.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteFile {
    /// The file of this party's secret key.
    pub key: String,
    /// The name of the party whose key that must be; `None` if any party's key is accepted.
    pub party: Option<String>,
    /// The SHA-256 digest of the only study that the owner of the rows has approved; `None` if any study is run.
    pub approved: Option<[u8; 32]>,
    /// The folder of persistent state: charges and the steps of studies.
    pub state: String,
    /// A file on another disk that knows how far the state is, so that an older copy of it is refused.
    pub witness: Option<String>,
    /// The folder of results.
    pub out: String,
    /// The address on which neighbours are accepted; `None` if this party only dials.
    pub listen: Option<SocketAddr>,
    /// The address of the page and of metrics, for this machine alone.
    pub metrics: Option<SocketAddr>,
    /// The hosts by which the page may be asked for, besides this machine's own, with or without a port.
    pub hosts: Vec<String>,
    /// The source of noise.
    pub noise: NoiseOrigin,
    /// Whether the node stops when a neighbour's values are suspicious.
    pub stop_on_suspicion: bool,
    /// This party's rows.
    pub data: SiteData,
    /// The limit of everything ever asked of these rows; always there if the noise is secret.
    pub limit: Option<Limit>,
    /// `host:port` where neighbours are dialled, by their name, instead of the study's address.
    pub addresses: BTreeMap<String, String>,
}

/// The source of a party's noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseOrigin {
    /// Drawn from the operating system, and known to nobody.
    Secret,
    /// Drawn from the study's seed: it repeats, and protects nobody. For rehearsals.
    Seeded,
}

impl NoiseOrigin {
    /// Returns the name as site files have it: `secret` or `seeded`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Seeded => "seeded",
        }
    }

    /// Returns the other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Secret => Self::Seeded,
            Self::Seeded => Self::Secret,
        }
    }
}

/// A party's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteData {
    /// The source of the rows.
    pub rows: SiteRows,
    /// SHA-256 fingerprints of earlier versions of these people's rows, whose charges still count.
    pub continues: Vec<[u8; 32]>,
    /// The memory for these rows; `None` if all are kept in memory.
    pub memory: Option<MemoryLimit>,
}

/// The memory that a party's encoded rows may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The number of bytes.
    pub bytes: u64,
    /// The folder of the file for the rows beyond it; the folder of persistent state, unless given.
    pub scratch: Option<String>,
}

/// The source of a party's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteRows {
    /// All rows of a file.
    File {
        /// The path as written: relative to the site file.
        path: String,
        /// The way in which the file is written.
        options: FileOptions,
    },
    /// All rows that a command prints.
    Command {
        /// The command.
        command: RowCommand,
        /// The way in which it prints them: as text.
        options: FileOptions,
    },
    /// All rows that come through stdin.
    Stdin {
        /// The way in which they are written: as text.
        options: FileOptions,
    },
    /// This party's part of the study's own table. For rehearsals.
    Share,
}

/// A command that prints a party's rows. It is run without a shell, in the folder of the site file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCommand {
    /// The program: a name that is looked up on the path, or a path, relative to the site file.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// The limit of what may ever be spent on a party's rows, by all studies together.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The largest pure `ε`.
    pub pure: Option<f64>,
    /// The largest `ε` at a `δ` above 0, and that `δ`.
    pub relaxed: Option<(f64, f64)>,
    /// Both limits.
    pub limits: DatasetLimits,
}

impl Limit {
    /// Creates a limit on ε at a δ, which is kept by the rule for answers with Gaussian noise; a pure one if δ is 0.
    pub fn for_gradients(epsilon: f64, delta: f64) -> Result<Self, InvalidLimits> {
        let (pure, relaxed) = match delta > 0.0 {
            true => (None, Some((epsilon, delta))),
            false => (Some(epsilon), None),
        };
        let limits = DatasetLimits::new(pure, relaxed)?;
        Ok(Self {
            pure,
            relaxed,
            limits: match relaxed {
                Some(_) => limits.kept_by(SiteAccounting::Gaussian),
                None => limits,
            },
        })
    }
}

impl SiteFile {
    /// Reads a site file and checks it. `file` is its name in messages.
    ///
    /// Notes come in the order of their lines.
    pub fn parse(text: &str, file: &str) -> Result<(Self, Vec<Note>), StudyError> {
        let document = Document {
            file,
            text,
            overrides: &[],
        };
        let table = document.table()?;
        let top = Section::top(document, &table, &KNOWN)?;

        let mut notes = Vec::new();
        let key = top.required("key", "the file of this party's secret key")?;
        let key = key_file(&key)?;
        let party = top.optional("party", party)?;
        let state = top.required(
            "state",
            "a folder for the state that must survive a restart",
        )?;
        let state = state.words()?.to_owned();
        let witness = top.optional("witness", |entry| Ok(entry.words()?.to_owned()))?;
        let out = top.optional("out", |entry| entry.words())?;
        let listen = top.optional("listen", |entry| socket(entry, "0.0.0.0:7411"))?;
        let metrics = top.optional("metrics", metrics)?;
        let hosts = top.optional("hosts", hosts)?;
        let noise = noise(&top, &mut notes)?;
        let stop = top.optional("stop_on_suspicion", |entry| entry.boolean())?;
        let site = Self {
            key,
            party,
            approved: approved(&top)?,
            state,
            witness,
            out: out.unwrap_or(OUT).to_owned(),
            listen,
            metrics,
            hosts: hosts.unwrap_or_default(),
            noise,
            stop_on_suspicion: stop == Some(true),
            data: data(&top)?,
            limit: limit(&top, noise)?,
            addresses: addresses(&top)?,
        };
        Note::sort(&mut notes);
        Ok((site, notes))
    }
}

fn key_file(entry: &Entry<'_>) -> Result<String, StudyError> {
    match entry.words()? {
        secret if identity::is_secret(secret) => {
            Err(entry.wrong_hidden("is the secret key itself; give the path of its file"))
        }
        path => Ok(path.to_owned()),
    }
}

fn party(entry: &Entry<'_>) -> Result<String, StudyError> {
    let name = entry.string()?;
    parties::check_name(entry, name)?;
    Ok(name.to_owned())
}

fn approved(top: &Section<'_>) -> Result<Option<[u8; 32]>, StudyError> {
    top.section("study", &STUDY)?.optional("sha256", |entry| {
        hex::decode(entry.string()?).map_err(|error| {
            entry.wrong(format!(
                "{error}; copy the digest that radmm study show prints"
            ))
        })
    })
}

fn socket(entry: &Entry<'_>, example: &str) -> Result<SocketAddr, StudyError> {
    let socket = entry.string()?.parse().ok();
    socket.ok_or_else(|| {
        entry.wrong(format!(
            "must be an IP address and a port, such as {example:?}"
        ))
    })
}

// Privacy: metrics tell when this party works and how long, and are shown to anybody who asks.
fn metrics(entry: &Entry<'_>) -> Result<SocketAddr, StudyError> {
    let socket = socket(entry, "127.0.0.1:9411")?;
    match socket.ip().is_loopback() {
        true => Ok(socket),
        false => Err(entry.wrong(
            "must be an address of this machine alone, such as \"127.0.0.1:9411\"; from elsewhere, use an ssh tunnel or a local proxy that authenticates",
        )),
    }
}

fn hosts(entry: &Entry<'_>) -> Result<Vec<String>, StudyError> {
    let elements = entry.elements()?;
    elements.iter().map(address::read_host).collect()
}

fn noise(top: &Section<'_>, notes: &mut Vec<Note>) -> Result<NoiseOrigin, StudyError> {
    let Some(entry) = top.get("noise") else {
        return Ok(NoiseOrigin::Secret);
    };
    let origins = [NoiseOrigin::Secret, NoiseOrigin::Seeded];
    let origin = entry.choice(&origins.map(|origin| (origin.name(), origin)))?;
    if origin == NoiseOrigin::Seeded {
        notes.push(entry.note(
            "is \"seeded\": anybody who knows the study's seed can subtract the noise, so that it protects nobody",
        ));
    }
    Ok(origin)
}

fn data(top: &Section<'_>) -> Result<SiteData, StudyError> {
    let section = top.section("data", &DATA)?;
    let path = section.optional("path", |entry| entry.words())?;
    let command = section.optional("command", row_command)?;
    let share = section.optional("share", |entry| entry.boolean())?;
    let continues = section.optional("continues", fingerprints)?;
    let memory = memory(&section)?;
    let shared = section.get("share").filter(|_| share == Some(true));
    // The command comes first, so that no error shows it: it may hold a password.
    let given = [section.get("command"), section.get("path"), shared];
    let mut given = given.into_iter().flatten();
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(other.wrong(format!("{} is given too; keep one of the two", one.name)));
    }
    let rows = match (path, command, share) {
        (Some(STDIN), ..) => SiteRows::Stdin {
            options: stream_options(&section)?,
        },
        (Some(path), ..) => SiteRows::File {
            path: path.to_owned(),
            options: file_options::read(&section, path, FileOptions::default())?,
        },
        (None, Some(command), _) => SiteRows::Command {
            command,
            options: stream_options(&section)?,
        },
        (None, None, Some(true)) => {
            let advice = "is that of a file, and share is not one; remove it";
            file_options::refuse(&section, &file_options::KEYS, advice)?;
            SiteRows::Share
        }
        (None, None, _) => {
            let meaning = "the file of this party's rows, relative to the site file (or command, a program that prints them, or share = true, this party's share of the study's own table)";
            return Err(section.missing("path", meaning));
        }
    };
    Ok(SiteData {
        rows,
        continues: continues.unwrap_or_default(),
        memory,
    })
}

fn memory(section: &Section<'_>) -> Result<Option<MemoryLimit>, StudyError> {
    let scratch = section.optional("scratch", |entry| Ok(entry.words()?.to_owned()))?;
    let Some(entry) = section.get("memory") else {
        return match section.get("scratch") {
            None => Ok(None),
            Some(entry) => Err(entry.wrong(
                "is where rows beyond memory are stored; give memory too, as in memory = \"4 GB\", or remove it",
            )),
        };
    };
    match byte_size::parse(entry.string()?) {
        Some(bytes) => Ok(Some(MemoryLimit { bytes, scratch })),
        None => Err(entry.wrong(format!("must be {}", byte_size::FORM))),
    }
}

fn row_command(entry: &Entry<'_>) -> Result<RowCommand, StudyError> {
    if !entry.is_array() {
        return Err(entry.wrong_hidden(
            "must be an array of the program and its arguments, without a shell, such as [\"psql\", \"-c\", \"copy (select … order by id) to stdout (format csv, header)\"]",
        ));
    }
    let mut words = Vec::new();
    for element in entry.elements()? {
        let word = element.string()?;
        if word.contains('\0') {
            return Err(
                element.wrong_hidden("has the character U+0000, which no argument can have")
            );
        }
        words.push(word.to_owned());
    }
    let mut words = words.into_iter();
    match words.next() {
        Some(program) if !program.trim().is_empty() => Ok(RowCommand {
            program,
            arguments: words.collect(),
        }),
        _ => Err(entry.wrong("must begin with the program to run")),
    }
}

/// Reads how rows are written that are read once, from the first to the last byte.
fn stream_options(section: &Section<'_>) -> Result<FileOptions, StudyError> {
    match (file_options::format(section)?, section.get("format")) {
        (Some(Format::Parquet), Some(entry)) => Err(entry.wrong(
            "is read from its end, and these rows come once, from the first to the last; let them come as CSV, or save them in a file",
        )),
        _ => file_options::read(section, STDIN, Format::Csv.into()),
    }
}

fn fingerprints(entry: &Entry<'_>) -> Result<Vec<[u8; 32]>, StudyError> {
    let mut fingerprints = Vec::new();
    for element in entry.elements()? {
        let fingerprint =
            hex::decode(element.string()?).map_err(|error| element.wrong(error.to_string()))?;
        if fingerprints.contains(&fingerprint) {
            return Err(element.wrong("is listed twice"));
        }
        fingerprints.push(fingerprint);
    }
    Ok(fingerprints)
}

// Privacy: secret noise is drawn only under a limit that outlives every study.
fn limit(top: &Section<'_>, noise: NoiseOrigin) -> Result<Option<Limit>, StudyError> {
    let section = top.section("limit", &LIMIT)?;
    if section.table.is_none() && noise == NoiseOrigin::Seeded {
        return Ok(None);
    }
    let entry = section.required(
        "epsilon",
        "how much may ever be learnt of these rows, by all studies together, such as 2.0",
    )?;
    let epsilon = entry.number(POSITIVE)?;
    let delta = section.optional("delta", |entry| entry.number(DELTA))?;
    let pure = section.optional("pure", |entry| entry.number(POSITIVE))?;
    let (pure, relaxed) = match (delta.filter(|&delta| delta > 0.0), section.get("pure")) {
        (Some(delta), _) => (pure, Some((epsilon, delta))),
        (None, None) => (Some(epsilon), None),
        (None, Some(entry)) => {
            let advice = "epsilon is pure already, without a delta above 0; keep one of the two, or give delta";
            return Err(entry.wrong(advice));
        }
    };
    let mut limits =
        DatasetLimits::new(pure, relaxed).map_err(|error| entry.wrong(error.to_string()))?;
    if let Some(entry) = section.get("accounting") {
        let gaussian = entry.choice(&[
            ("renyi", None),
            ("gaussian", Some(SiteAccounting::Gaussian)),
        ])?;
        if relaxed.is_none() {
            return Err(entry.wrong("is of a limit at a delta; give delta, or remove it"));
        }
        limits = gaussian.into_iter().fold(limits, DatasetLimits::kept_by);
    }
    Ok(Some(Limit {
        pure,
        relaxed,
        limits,
    }))
}

fn addresses(top: &Section<'_>) -> Result<BTreeMap<String, String>, StudyError> {
    let section = top.open_section("addresses")?;
    let mut addresses = BTreeMap::new();
    for entry in section.entries() {
        parties::check_name(&entry, entry.name)?;
        addresses.insert(entry.name.to_owned(), address::read(&entry)?);
    }
    Ok(addresses)
}
