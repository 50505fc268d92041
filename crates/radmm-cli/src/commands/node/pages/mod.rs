//! `statement.html` and `report.html`: the end of a party's run for people, beside the files for programs.
//!
//! Privacy: everything on these pages is in the transcript, the statement or the study.

mod report;
mod statement;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use radmm::privacy::{Budget, Guarantee, Ledger, PrivacyEvent};
use radmm_node::atomic_file::AtomicFile;
use radmm_node::machine::Party;
use radmm_node::public_facts::PublicFacts;
use radmm_node::store::MisbehaviourRecord;
use radmm_node::utc_time::UtcTime;
use radmm_report::{Block, Section, TextTable};

/// The facts that the pages are made of.
struct RunRecord<'a> {
    facts: &'a PublicFacts,
    party: &'a Party,
    /// The iteration and event of every charge of this study.
    charges: Vec<(u32, PrivacyEvent)>,
    /// The total of this study so far.
    total: Guarantee,
    misbehaviours: Vec<MisbehaviourRecord>,
    written: UtcTime,
    /// The names of the files beside the pages.
    files: Vec<String>,
}

/// Writes both pages beside the other result files, and returns their paths.
pub(super) fn write(
    party: &Party,
    facts: &PublicFacts,
    out: &Path,
    beside: &[PathBuf],
) -> Result<Vec<PathBuf>, String> {
    let record = RunRecord::new(party, facts, beside).map_err(|error| error.to_string())?;
    let mut written = Vec::new();
    for (name, page) in [
        ("statement.html", statement::page(&record)),
        ("report.html", report::page(&record)),
    ] {
        let path = out.join(name);
        write_text(&path, &page.to_html())
            .map_err(|cause| format!("{}: {cause}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

fn write_text(path: &Path, text: &str) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(text.as_bytes())?;
    file.commit()
}

impl<'a> RunRecord<'a> {
    fn new(
        party: &'a Party,
        facts: &'a PublicFacts,
        beside: &[PathBuf],
    ) -> Result<Self, radmm_node::store::StoreError> {
        let (store, study) = party.store();
        let charges = store.charges()?.into_iter();
        let own = charges.filter(|charge| charge.study == study.number);
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        Ok(Self {
            facts,
            party,
            charges: own.map(|charge| (charge.iteration, charge.event)).collect(),
            total: party.spent(),
            misbehaviours: store.misbehaviours(study.number)?,
            written: UtcTime::now(),
            files: beside.iter().filter_map(name).collect(),
        })
    }

    /// Returns the total after the first `count` charges; `None` if it cannot be stated.
    fn total_after(&self, count: usize) -> Option<f64> {
        let privacy = &self.facts.study.privacy;
        let budget = Budget::unlimited(privacy.delta).ok()?;
        // Equal charges that follow each other take as much work as one.
        let charges: Vec<PrivacyEvent> = { self.charges.iter() }
            .take(count)
            .map(|(_, event)| *event)
            .collect();
        let equal = charges.chunk_by(|one, other| one == other);
        let events = equal.map(|equal| (equal[0], equal.len() as u32));
        let total = Ledger::total_of(budget, privacy.bound, events).ok()?;
        Some(total.epsilon)
    }

    /// Returns the names of the neighbours.
    fn neighbours(&self) -> Vec<&str> {
        let ids = self.facts.graph.neighbours(self.facts.node).iter();
        let parties = &self.facts.study.parties;
        ids.map(|id| parties[id.0 as usize].name.as_str()).collect()
    }

    /// Returns the least and the most numbers of a message that was sent.
    fn widths(&self) -> (usize, usize) {
        let node = self.party.node();
        let widths = (0..=self.party.iteration()).map(|t| node.width(t));
        let ends =
            |(least, most): (usize, usize), width: usize| (least.min(width), most.max(width));
        widths.fold((usize::MAX, 0), ends)
    }

    /// Returns day, month and year in words: `19 November 2026`.
    fn date(&self) -> String {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let (year, month, day) = self.written.date();
        let month = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
        format!("{day} {month} {year}")
    }

    /// Returns why nobody is protected, in a sentence; `None` if the party promises that somebody is.
    fn no_protection(&self) -> Option<String> {
        (!self.facts.protects()).then(|| {
            format!(
                "**This protects nobody.** The total below is no guarantee: {}.",
                self.facts.caveat()
            )
        })
    }
}

fn section(heading: &str, blocks: Vec<Block>) -> Section {
    Section {
        heading: heading.to_owned(),
        blocks,
    }
}

fn table(caption: &str, header: &[&str], rows: Vec<Vec<String>>) -> Block {
    Block::Table(TextTable {
        caption: caption.to_owned(),
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        folded: false,
    })
}
