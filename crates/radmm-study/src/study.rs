//! A study: the rows, the network, the problem, the algorithm and the privacy that all parties agree on.

use std::path::Path;

use radmm::graph::{Graph, GraphError, Topology};
use radmm::privacy::{Bound, Mechanism};
use radmm::problem::{Loss, RowCount};
use radmm_data::{Builtin, FileOptions, Holdout, Schema, Split};
use serde::{Serialize, Serializer};

use crate::choice::Choice;
use crate::error::{Note, StudyError};
use crate::identity::Identity;
use crate::overrides::PlacedOverride;
use crate::parse::reader::{Document, KnownNames, Section};
use crate::parse::{algorithm, data, network, parties, privacy, problem, run, split, test_rows};
use crate::{Method, Noise, Override, statement_text};

const KNOWN: KnownNames = KnownNames {
    keys: &["name"],
    sections: &["data", "network", "problem", "algorithm", "privacy", "run"],
    lists: &["parties"],
};

/// A study that was read and checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// A name for people; the file's stem unless given.
    pub name: String,
    /// The rows and their meaning.
    pub data: DataSection,
    /// The graph of the parties.
    pub network: NetworkSection,
    /// The parties by node; empty, and then not serialised, if the study is only simulated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parties: Vec<StudyParty>,
    /// The objective.
    pub problem: ProblemSection,
    /// The algorithm that minimises it.
    pub algorithm: AlgorithmSection,
    /// The noise that protects the rows.
    pub privacy: PrivacySection,
    /// Repetitions and seed.
    pub run: RunSection,
    /// The values that the file leaves to public rules, as far as they are known without the number of rows. They stand in the
    /// sections above too, and are not serialised twice.
    #[serde(skip)]
    pub choices: Vec<Choice>,
}

/// `[data]`: the rows and their meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSection {
    /// The source of the rows.
    pub source: RowSource,
    /// The way in which their file is written; built-in tables are CSV.
    pub options: FileOptions,
    /// The meaning of their columns.
    pub schema: Schema,
    /// Their partition among the nodes.
    pub split: Split,
    /// The rows that are tested on and not trained on.
    pub test: Option<TestRows>,
}

/// `[data.test]`: rows that are tested on and not trained on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TestRows {
    /// Some rows of the table.
    Held(Holdout),
    /// All rows of another file.
    File {
        /// The path as written: relative to the study file.
        path: String,
        /// The way in which that file is written.
        #[serde(flatten)]
        options: FileOptions,
    },
}

/// The source of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// A file, by its path as written: relative to the study file.
    File(String),
    /// A table that comes with the program.
    Builtin(Builtin),
    /// The parties: each has a file of its own, which the study does not name.
    Parties,
}

/// `[network]`: the graph of the parties.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSection {
    /// The number of nodes: at least two, or the one of [`Study::parse_for_one_party`].
    pub nodes: u32,
    /// The shape of the graph.
    pub topology: Topology,
}

impl NetworkSection {
    /// Builds the graph.
    pub fn graph(&self) -> Result<Graph, GraphError> {
        match self.nodes {
            1 => Ok(Graph::single()),
            nodes => Graph::new(&self.topology, nodes as usize),
        }
    }
}

/// A party of `[[parties]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StudyParty {
    /// A name for people, unique within the study.
    pub name: String,
    /// The public key by which the others know it, unique within the study.
    pub key: Identity,
    /// `B_i`, the number of its training rows; `None` if it is not declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// `host:port` where its neighbours reach it; `None` if it only dials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// `[problem]`: the objective, `Σ_i (C_i/B_i) Σ_n L(y_n fᵀx_n) + (ρ/N)·½‖f‖²`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProblemSection {
    /// `L`.
    #[serde(flatten)]
    pub loss: Loss,
    /// Whether rows or parties count alike, on which `C_i` depends.
    pub count: RowCount,
    /// `C > 0`.
    pub weight: f64,
    /// `ρ > 0`.
    pub ridge: f64,
}

/// `[algorithm]`: how the objective is minimised.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlgorithmSection {
    /// The algorithm and its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// The number of iterations, at least one.
    pub iterations: u32,
    /// `f(0)`.
    pub start: Start,
    /// The gradient norm at which a minimisation is taken as solved.
    pub tolerance: f64,
}

/// The models before the first iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// All zeros.
    Zeros,
    /// Independent normal draws with this standard deviation.
    Normal(f64),
}

/// `[privacy]`: the noise that protects the rows, and how its cost is stated.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivacySection {
    /// The mechanism and distribution of the noise, and its amount or the total that it may cost.
    pub noise: Noise,
    /// The proof that prices objective perturbation with gamma noise.
    pub bound: Bound,
    /// `δ`; 0 for pure privacy, and then not serialised.
    pub delta: f64,
}

impl PrivacySection {
    /// Returns the reason why no guarantee covers the answers, as the end of a sentence that begins "answers are released";
    /// `None` if one does.
    pub fn unprotected(&self) -> Option<&'static str> {
        matches!(self.noise.template(), Mechanism::None).then_some("without noise")
    }
}

impl Serialize for PrivacySection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            #[serde(flatten)]
            noise: &'a Noise,
            bound: Bound,
            #[serde(skip_serializing_if = "Option::is_none")]
            delta: Option<f64>,
            precision: &'static str,
        }
        let written = Written {
            noise: &self.noise,
            bound: self.bound,
            delta: (self.delta != 0.0).then_some(self.delta),
            precision: statement_text::PRECISION,
        };
        written.serialize(serializer)
    }
}

/// `[run]`: how often a study is simulated, from which seed, and when answers of real parties leave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSection {
    /// The number of repetitions, at least one.
    pub repetitions: u32,
    /// The seed of noise and of a random start.
    pub seed: u64,
    /// The tick in seconds on which answers of real parties leave; `None` for that of the public rule: [`Study::tick`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<f64>,
}

impl Study {
    /// Reads a study and checks it. `file` is its name in messages and, without directory and extension, in results.
    ///
    /// Notes come in the order of their lines.
    pub fn parse(text: &str, file: &str) -> Result<(Self, Vec<Note>), StudyError> {
        Self::read(text, file, &[], None)
    }

    /// Reads a study in which each of `overrides` takes the place of a key of the text, or adds one.
    pub fn parse_with(
        text: &str,
        file: &str,
        overrides: &[Override],
    ) -> Result<(Self, Vec<Note>), StudyError> {
        Self::read(text, file, overrides, None)
    }

    /// Reads the study of a party that trains on its own rows alone. The text has neither `[[parties]]` nor `[network]`.
    pub fn parse_for_one_party(
        text: &str,
        file: &str,
        party: StudyParty,
    ) -> Result<(Self, Vec<Note>), StudyError> {
        Self::read(text, file, &[], Some(party))
    }

    /// Reads a study, whose only party is `alone` if there is one.
    fn read(
        text: &str,
        file: &str,
        overrides: &[Override],
        alone: Option<StudyParty>,
    ) -> Result<(Self, Vec<Note>), StudyError> {
        let overrides = PlacedOverride::all(text.len(), overrides);
        let document = Document {
            file,
            text,
            overrides: &overrides,
        };
        let table = document.table()?;
        let top = Section::top(document, &table, &KNOWN)?;

        let mut notes = Vec::new();
        let is_alone = alone.is_some();
        if let Some(entry) = ["parties", "network"].iter().find_map(|name| top.get(name))
            && is_alone
        {
            return Err(entry.wrong("has no place in the study of one party; remove it"));
        }
        let parties = match alone {
            Some(party) => vec![party],
            None => parties::read(&top)?,
        };
        let name = name(&top, file, &parties)?;
        let (source, options, schema) = data::read(&top, &parties, &mut notes)?;
        let mut choices = Vec::new();
        let network = match is_alone {
            true => NetworkSection {
                nodes: 1,
                topology: Topology::Path,
            },
            false => network::read(&top, parties.len(), &mut notes, &mut choices)?,
        };
        let split = split::read(&top, &source, &schema, network.nodes, &mut notes)?;
        let test = test_rows::read(&top, &source, options, &mut notes)?;
        let problem = problem::read(&top, network.nodes, &mut notes, &mut choices)?;
        parties::check_rows(&top, &parties, problem.count)?;
        let public = algorithm::PublicSections {
            network: &network,
            schema: &schema,
            problem: &problem,
        };
        let algorithm = algorithm::read(&top, &public, &mut notes, &mut choices)?;
        problem::check(&top, &problem, algorithm.tolerance)?;
        problem::check_count(&top, &problem, &algorithm.method)?;
        let privacy = privacy::read(&top, &algorithm.method, &schema, &mut notes, &mut choices)?;
        let run = run::read(
            &top,
            &source,
            &algorithm,
            &privacy,
            &mut notes,
            &mut choices,
        )?;

        Note::sort(&mut notes);
        let study = Self {
            name,
            data: DataSection {
                source,
                options,
                schema,
                split,
                test,
            },
            network,
            parties,
            problem,
            algorithm,
            privacy,
            run,
            choices,
        };
        Ok((study, notes))
    }
}

/// The study's name as written, or the file's stem.
fn name(top: &Section<'_>, file: &str, parties: &[StudyParty]) -> Result<String, StudyError> {
    let Some(entry) = top.get("name") else {
        if parties.is_empty() {
            let stem = Path::new(file).file_stem();
            return Ok(stem.map_or("study".into(), |stem| stem.to_string_lossy().into_owned()));
        }
        let meaning = "the name that all parties use: each may keep the file under another name";
        return Err(top.missing("name", meaning));
    };
    match entry.words()? {
        words if words.chars().any(char::is_control) => {
            Err(entry.wrong("must not hold control characters"))
        }
        words => Ok(words.to_owned()),
    }
}
