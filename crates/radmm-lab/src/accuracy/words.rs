//! The table in words: for the terminal and for a page.

use radmm::account::Guarantee;
use radmm::public::schedule::Schedule;
use radmm_study::Method;

use super::{Candidate, Cell, Contested, Entrant, SplitTable};
use crate::shown::{brief, count, percent, thousands};
use crate::spread::Spread;
use radmm_report::{Block, Page, Section, TextTable};

impl Contested {
    /// Accuracy on the rows held out, a table for each way to deal the rows out.
    pub fn accuracy(&self) -> Vec<TextTable> {
        let grid = |split: &SplitTable| {
            let mut rows: Vec<Vec<String>> = Vec::new();
            for entrant in Entrant::ALL {
                let cells = split.of(entrant);
                let shown = cells.map(|cell| match &cell.chosen {
                    Some(chosen) => in_words(&chosen.held_out.accuracy),
                    None => "too dear".to_owned(),
                });
                rows.push(
                    [entrant.title().to_owned()]
                        .into_iter()
                        .chain(shown)
                        .collect(),
                );
            }
            let pooled = split
                .pooled
                .as_ref()
                .and_then(|pooled| pooled.held_out.as_ref());
            let pooled = pooled.map_or("–".to_owned(), |score| in_words(&score.accuracy));
            let totals = split.of(Entrant::Alone).count();
            let last = std::iter::repeat_n(pooled, totals);
            rows.push(
                ["centralised, no noise".to_owned()]
                    .into_iter()
                    .chain(last)
                    .collect(),
            );
            TextTable {
                caption: format!(
                    "{}: rows held out that are classified rightly, in per cent",
                    split.name
                ),
                header: self.header(split),
                rows,
                folded: false,
            }
        };
        self.splits.iter().map(grid).collect()
    }

    /// Who has which rows, over all ways to deal them out.
    pub fn parties(&self) -> TextTable {
        let mut rows = Vec::new();
        for split in &self.splits {
            let shown = split.parties.iter().map(|party| {
                let share = party.positive as f64 / party.rows as f64;
                format!("{}, {}", thousands(party.rows), percent(share))
            });
            rows.push([split.name.clone()].into_iter().chain(shown).collect());
        }
        let names = self.splits[0]
            .parties
            .iter()
            .map(|party| party.name.clone());
        TextTable {
            caption: "Rows of each party, and how many of them are of the positive class"
                .to_owned(),
            header: [String::new()].into_iter().chain(names).collect(),
            rows,
            folded: false,
        }
    }

    /// The parameters that were chosen.
    pub fn parameters(&self) -> Vec<TextTable> {
        let grid = |split: &SplitTable| {
            let row = |entrant: Entrant| {
                let shown = split.of(entrant).map(|cell| match &cell.chosen {
                    Some(chosen) => parameters(&chosen.candidate, chosen.data_steps),
                    None => "–".to_owned(),
                });
                [entrant.title().to_owned()]
                    .into_iter()
                    .chain(shown)
                    .collect()
            };
            TextTable {
                caption: format!("{}: the parameters that were chosen", split.name),
                header: self.header(split),
                rows: Entrant::ALL.map(row).to_vec(),
                folded: true,
            }
        };
        self.splits.iter().map(grid).collect()
    }

    /// What the totals mean, and which runs to mistrust.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "totals are of every party over its whole run, for {}; the parameters were chosen on training rows, which they do not cover",
                Guarantee::RELATION
            ),
            format!(
                "mean ± standard deviation of {}, on {} that nobody trained on",
                count(self.repetitions as usize, "run", "runs"),
                count(self.held_out, "row", "rows")
            ),
        ];
        for split in &self.splits {
            for cell in &split.cells {
                if let Some(chosen) = cell.chosen.as_ref().filter(|chosen| chosen.stopped > 0) {
                    lines.push(format!(
                        "{}, {}, {}: {} early, and count with the models that they had",
                        split.name,
                        cell.entrant.title(),
                        total(cell),
                        count(chosen.stopped, "run ended", "runs ended"),
                    ));
                }
            }
        }
        lines
    }

    /// Everything on one page.
    pub fn page(&self) -> Page {
        let mut sections: Vec<Section> = Vec::new();
        let tables = self.accuracy().into_iter().zip(self.parameters());
        for (split, (accuracy, parameters)) in self.splits.iter().zip(tables) {
            sections.push(Section {
                heading: split.name.clone(),
                blocks: vec![Block::Table(accuracy), Block::Table(parameters)],
            });
        }
        sections.push(Section {
            heading: "How it was done".to_owned(),
            blocks: vec![Block::Table(self.parties()), Block::Text(self.method())],
        });
        Page {
            title: "Accuracy at equal total privacy".to_owned(),
            headlines: Vec::new(),
            lead: format!(
                "Everyone’s accuracy on {} that nobody trained on, at the same totals. {}.",
                count(self.held_out, "row", "rows"),
                self.remarks().join(". ")
            ),
            sections,
            footer: "Simulations: they hold all rows, and their noise repeats from a seed."
                .to_owned(),
        }
    }

    fn method(&self) -> String {
        format!(
            "**Choice.** For every cell all parameters of a fixed list were tried in one run each (noise from seed {}), and those that \
             classify most of everybody’s training rows rightly were taken; then they were run {} (seed {}). The rule is the same for \
             all; rows held out have no part in it. The choice reads training rows, and the totals do not cover that.\n\n\
             **Privacy.** Every party has the least noise at which its whole run costs the total: gamma noise at δ = 0, Gaussian noise \
             otherwise; in the objective, for linearised R-ADMM in the gradient. {} is one party with all rows that answers once by the \
             same mechanism; without noise it is the minimiser of the parties’ common objective, in which each party counts the same.",
            self.choosing_seed,
            count(self.repetitions as usize, "time", "times"),
            self.seed,
            Entrant::Centralised.title(),
        )
    }

    fn header(&self, split: &SplitTable) -> Vec<String> {
        let totals = split.of(Entrant::Alone).map(total);
        [String::new()].into_iter().chain(totals).collect()
    }
}

impl SplitTable {
    /// One entrant's cells, by total.
    pub fn of(&self, entrant: Entrant) -> impl Iterator<Item = &Cell> {
        self.cells
            .iter()
            .filter(move |cell| cell.entrant == entrant)
    }
}

/// `ε 0.5, δ 0`.
fn total(cell: &Cell) -> String {
    let Guarantee { epsilon, delta } = cell.total;
    match delta {
        0.0 => format!("ε {epsilon}, δ 0"),
        _ => format!("ε {epsilon}, δ {delta:e}"),
    }
}

/// `81.9 ± 0.3`.
fn in_words(share: &Spread) -> String {
    share.in_words(percent).trim_end_matches(" %").to_owned()
}

/// `η 4.4, γ 0.9, ρ 8.8, 5 data steps`.
fn parameters(candidate: &Candidate, data_steps: u32) -> String {
    let value = |schedule: &Schedule| brief(schedule.at(1));
    let ridge = format!("ρ {}", brief(candidate.ridge));
    let steps = count(data_steps as usize, "data step", "data steps");
    match &candidate.method {
        Method::Local { extra_ridge } | Method::Average { extra_ridge } => {
            format!("extra ridge {}", brief(*extra_ridge))
        }
        Method::Admm { penalty } => format!("η {}, {ridge}, {steps}", value(penalty)),
        Method::RecycledAdmm {
            penalty, damping, ..
        }
        | Method::Dlm { penalty, damping }
        | Method::RecycledDlm {
            penalty, damping, ..
        } => {
            format!(
                "η {}, γ {}, {ridge}, {steps}",
                value(penalty),
                value(damping)
            )
        }
        other => format!("{}, {ridge}, {steps}", other.name()),
    }
}
