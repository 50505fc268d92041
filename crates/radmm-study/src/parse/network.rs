//! `[network]`: the number of nodes and the graph between them.

use std::collections::BTreeSet;

use radmm::graph::Topology;

use super::entry::{Entry, Range, SEEDS};
use super::reader::Section;
use crate::NetworkSection;
use crate::choice::Choice;
use crate::error::{Note, StudyError};

const KEYS: [&str; 8] = [
    "nodes",
    "topology",
    "edges",
    "width",
    "probability",
    "degree",
    "rewire",
    "seed",
];

const MAX_NODES: u32 = 1_000_000;

/// The most parties that are put on a ring unless the study says so.
const LARGEST_RING: u32 = 10;

/// The probability of an edge: with 0 there would be no graph.
const PROBABILITY: Range = Range {
    holds: |x| x > 0.0 && x <= 1.0,
    needed: "above 0 and at most 1",
};

/// The probability that an edge is rewired.
const REWIRE: Range = Range {
    holds: |x| (0.0..=1.0).contains(&x),
    needed: "from 0 to 1",
};

#[derive(Clone, Copy)]
enum Kind {
    Ring,
    Path,
    Star,
    Complete,
    Grid,
    Random,
    Regular,
    SmallWorld,
}

const KINDS: [(&str, Kind); 8] = [
    ("ring", Kind::Ring),
    ("path", Kind::Path),
    ("star", Kind::Star),
    ("complete", Kind::Complete),
    ("grid", Kind::Grid),
    ("random", Kind::Random),
    ("random-regular", Kind::Regular),
    ("small-world", Kind::SmallWorld),
];

/// Reads the section. `parties` is the number of listed parties, 0 if the study is only simulated.
pub(crate) fn read(
    top: &Section<'_>,
    parties: usize,
    notes: &mut Vec<Note>,
    choices: &mut Vec<Choice>,
) -> Result<NetworkSection, StudyError> {
    let section = top.section("network", &KEYS)?;
    let nodes = nodes(&section, parties)?;
    section.optional("width", |entry| entry.integer(1..=MAX_NODES))?;
    section.optional("probability", |entry| entry.number(PROBABILITY))?;
    section.optional("degree", |entry| entry.integer(1..=MAX_NODES))?;
    section.optional("rewire", |entry| entry.number(REWIRE))?;
    section.optional("seed", |entry| entry.integer(SEEDS))?;

    let topology = match (section.given("topology"), section.get("edges")) {
        (Some(entry), None) => {
            let kind = entry.choice(&KINDS)?;
            let used = [&["nodes", "topology"], parameters(kind)].concat();
            section.note_all_but(&used, entry.string()?, notes);
            generated(&section, kind, nodes)?
        }
        (None, Some(entry)) => {
            section.note_all_but(&["nodes", "edges"], "a list of edges", notes);
            Topology::Edges {
                edges: edges(&entry, nodes)?,
            }
        }
        (Some(_), Some(entry)) => {
            return Err(entry.wrong("topology is given too; keep one of the two"));
        }
        (None, None) => {
            section.note_all_but(
                &["nodes", "topology"],
                "the topology that was chosen",
                notes,
            );
            chosen(nodes, choices)
        }
    };
    Ok(NetworkSection { nodes, topology })
}

/// Returns the topology of a study that has none: a ring of few parties, else a random graph whose diameter is small.
fn chosen(nodes: u32, choices: &mut Vec<Choice>) -> Topology {
    let mut choose = |key, value: &str, reason: &str| {
        choices.push(Choice::new("network", key, value, reason));
    };
    if nodes <= LARGEST_RING {
        let reason = "every party talks to two others, and half the ring is a short way";
        choose("topology", "\"ring\"", reason);
        return Topology::Ring;
    }
    let reason = "any two of many parties are a few steps apart";
    choose("topology", "\"random-regular\"", reason);
    choose("degree", "4", "so many neighbours for each party");
    choose("seed", "1", "the graph is drawn from it");
    Topology::Regular { degree: 4, seed: 1 }
}

fn nodes(section: &Section<'_>, parties: usize) -> Result<u32, StudyError> {
    let listed = u32::try_from(parties).unwrap_or(u32::MAX);
    match section.get("nodes") {
        None if listed > 0 => Ok(listed),
        None => {
            let meaning = "the number of parties, an integer from 2 to 1000000";
            Err(section.missing("nodes", meaning))
        }
        Some(entry) => {
            let nodes = entry.integer(2..=MAX_NODES)?;
            if listed > 0 && nodes != listed {
                return Err(entry.wrong(format!(
                    "there are {listed} [[parties]] for {nodes} nodes; list as many, or leave out nodes"
                )));
            }
            Ok(nodes)
        }
    }
}

fn parameters(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Ring | Kind::Path | Kind::Star | Kind::Complete => &[],
        Kind::Grid => &["width"],
        Kind::Random => &["probability", "seed"],
        Kind::Regular => &["degree", "seed"],
        Kind::SmallWorld => &["degree", "rewire", "seed"],
    }
}

fn generated(section: &Section<'_>, kind: Kind, nodes: u32) -> Result<Topology, StudyError> {
    let number = |name, meaning, range| section.required(name, meaning)?.number(range);
    let seed = || {
        section
            .required("seed", "the seed of the random graph, an integer from 0")?
            .integer(SEEDS)
    };
    Ok(match kind {
        Kind::Ring => Topology::Ring,
        Kind::Path => Topology::Path,
        Kind::Star => Topology::Star,
        Kind::Complete => Topology::Complete,
        Kind::Grid => Topology::Grid {
            width: width(section, nodes)?,
        },
        Kind::Random => Topology::Random {
            probability: number(
                "probability",
                "the probability of an edge, above 0 and at most 1",
                PROBABILITY,
            )?,
            seed: seed()?,
        },
        Kind::Regular => Topology::Regular {
            degree: regular_degree(section, nodes)?,
            seed: seed()?,
        },
        Kind::SmallWorld => Topology::SmallWorld {
            degree: lattice_degree(section, nodes)?,
            rewire: number(
                "rewire",
                "the probability that an edge is rewired, from 0 to 1",
                REWIRE,
            )?,
            seed: seed()?,
        },
    })
}

fn width(section: &Section<'_>, nodes: u32) -> Result<u32, StudyError> {
    let entry = section.required(
        "width",
        "the nodes in a row of the grid, a divisor of nodes",
    )?;
    let width = entry.integer(1..=MAX_NODES)?;
    if !nodes.is_multiple_of(width) {
        return Err(entry.wrong(format!("must divide the number of nodes, {nodes}")));
    }
    Ok(width)
}

fn regular_degree(section: &Section<'_>, nodes: u32) -> Result<u32, StudyError> {
    let entry = section.required("degree", "the neighbours of a node, an integer")?;
    // With one neighbour each, only two nodes are connected.
    let degree = entry.integer(if nodes == 2 { 1..=1 } else { 2..=nodes - 1 })?;
    // Every edge has two ends.
    if !nodes.is_multiple_of(2) && !degree.is_multiple_of(2) {
        return Err(entry.wrong(format!(
            "must be even, since the number of nodes, {nodes}, is odd"
        )));
    }
    Ok(degree)
}

fn lattice_degree(section: &Section<'_>, nodes: u32) -> Result<u32, StudyError> {
    let entry = section.required(
        "degree",
        "the neighbours of a node before rewiring, an even number",
    )?;
    let degree = entry.integer(1..=MAX_NODES)?;
    if degree >= nodes || !degree.is_multiple_of(2) {
        return Err(entry.wrong(format!(
            "must be even and below the number of nodes, {nodes}"
        )));
    }
    Ok(degree)
}

fn edges(entry: &Entry<'_>, nodes: u32) -> Result<Vec<[u32; 2]>, StudyError> {
    let mut seen = BTreeSet::new();
    let mut edges = Vec::new();
    for edge in entry.elements()? {
        let form = "must be a pair of different nodes, such as [0, 1]";
        if !edge.is_array() {
            return Err(edge.wrong(form));
        }
        let ends = edge.elements()?;
        let [a, b] = ends.as_slice() else {
            return Err(edge.wrong(form));
        };
        let (a, b) = (a.integer(0..=nodes - 1)?, b.integer(0..=nodes - 1)?);
        if a == b {
            return Err(edge.wrong(form));
        }
        if !seen.insert([a.min(b), a.max(b)]) {
            return Err(edge.wrong("is listed twice"));
        }
        edges.push([a, b]);
    }
    if edges.is_empty() {
        return Err(entry.wrong("must have at least one edge"));
    }
    Ok(edges)
}
