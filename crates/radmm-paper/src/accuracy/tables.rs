//! The table of accuracies as text tables and as a page.

use radmm::privacy::Guarantee;
use radmm_lab::SampleStats;
use radmm_report::{Block, Headline, Page, Section, TextTable, sentences};
use radmm_study::number_format::{self, brief, count, percent, thousands};

use super::{AccuracyCell, AccuracyMethod, AccuracyTable, ParameterSet, SplitTable};

impl AccuracyTable {
    /// Returns the accuracies on held-out rows, one table for each split.
    pub fn accuracy_tables(&self) -> Vec<TextTable> {
        let grid = |split: &SplitTable| {
            let mut rows: Vec<Vec<String>> = Vec::new();
            for method in AccuracyMethod::ALL {
                let cells = split.of(method);
                let shown = cells.map(|cell| match &cell.chosen {
                    Some(chosen) => percent_text(&chosen.held_out.accuracy),
                    None => "unattainable".to_owned(),
                });
                rows.push(
                    [method.title().to_owned()]
                        .into_iter()
                        .chain(shown)
                        .collect(),
                );
            }
            let centralised = split.centralised.as_ref();
            let held_out = centralised.and_then(|result| result.held_out.as_ref());
            let centralised =
                held_out.map_or("–".to_owned(), |score| percent_text(&score.accuracy));
            let totals = split.of(AccuracyMethod::Alone).count();
            let last = std::iter::repeat_n(centralised, totals);
            rows.push(
                ["centralised, no noise".to_owned()]
                    .into_iter()
                    .chain(last)
                    .collect(),
            );
            TextTable {
                caption: format!("{}: accuracy on held-out rows, in per cent", split.name),
                header: self.header(split),
                rows,
                folded: false,
            }
        };
        self.splits.iter().map(grid).collect()
    }

    /// Returns the rows of each party, over all splits.
    pub fn party_table(&self) -> TextTable {
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
            caption: "Rows of each party, and the share of the positive class".to_owned(),
            header: [String::new()].into_iter().chain(names).collect(),
            rows,
            folded: false,
        }
    }

    /// Returns the chosen parameters, one table for each split.
    pub fn parameter_tables(&self) -> Vec<TextTable> {
        let grid = |split: &SplitTable| {
            let row = |method: AccuracyMethod| {
                let shown = split.of(method).map(|cell| match &cell.chosen {
                    Some(chosen) => parameter_text(&chosen.parameters, chosen.data_steps),
                    None => "–".to_owned(),
                });
                [method.title().to_owned()]
                    .into_iter()
                    .chain(shown)
                    .collect()
            };
            TextTable {
                caption: format!("{}: the chosen parameters", split.name),
                header: self.header(split),
                rows: AccuracyMethod::ALL.map(row).to_vec(),
                folded: true,
            }
        };
        self.splits.iter().map(grid).collect()
    }

    /// Returns the meaning of the totals, and the runs that ended early.
    pub fn remarks(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "totals are those of every party over its whole run, for {}; they do not cover the choice of the parameters, which used training rows",
                Guarantee::RELATION
            ),
            format!(
                "mean ± standard deviation of {}, on {}",
                count(self.repetitions as usize, "run", "runs"),
                count(self.held_out, "held-out row", "held-out rows")
            ),
        ];
        for split in &self.splits {
            for cell in &split.cells {
                if let Some(chosen) = cell.chosen.as_ref().filter(|chosen| chosen.stopped > 0) {
                    lines.push(format!(
                        "{}, {}, {}: {} early, and count with the models that they had",
                        split.name,
                        cell.method.title(),
                        total(cell),
                        count(chosen.stopped, "run ended", "runs ended"),
                    ));
                }
            }
        }
        lines
    }

    /// Returns everything on one page.
    pub fn page(&self) -> Page {
        let mut sections: Vec<Section> = Vec::new();
        let tables = self
            .accuracy_tables()
            .into_iter()
            .zip(self.parameter_tables());
        for (split, (accuracy, parameters)) in self.splits.iter().zip(tables) {
            sections.push(Section {
                heading: split.name.clone(),
                blocks: vec![Block::Table(accuracy), Block::Table(parameters)],
            });
        }
        sections.push(Section {
            heading: "Method".to_owned(),
            blocks: vec![Block::Table(self.party_table()), Block::Text(self.method())],
        });
        Page {
            title: "Accuracy at equal total privacy".to_owned(),
            headlines: self.headlines(),
            lead: format!(
                "The accuracy of all methods on {}, at the same totals. {}",
                count(self.held_out, "held-out row", "held-out rows"),
                sentences(&self.remarks())
            ),
            sections,
            footer: "Simulations: they hold all rows, and their noise repeats from a seed."
                .to_owned(),
        }
    }

    /// Returns the accuracy of R-ADMM at the last total of each split, and what it means.
    fn headlines(&self) -> Vec<Headline> {
        let mut headlines = Vec::new();
        for split in &self.splits {
            let shown = |method| {
                let chosen = split.of(method).last()?.chosen.as_ref()?;
                Some(chosen.held_out.accuracy.format_with(percent))
            };
            let last = split.of(AccuracyMethod::Recycled).last();
            if let Some((cell, accuracy)) = last.zip(shown(AccuracyMethod::Recycled)) {
                let others = [
                    AccuracyMethod::Admm,
                    AccuracyMethod::Averaged,
                    AccuracyMethod::Alone,
                ];
                let others = others
                    .into_iter()
                    .filter_map(|method| Some(format!("{} {}", shown(method)?, method.title())));
                headlines.push(Headline::new(
                    &format!("R-ADMM, {}", split.name),
                    accuracy,
                    format!(
                        "on held-out rows at a total of {}. At the same total: {}",
                        total(cell),
                        others.collect::<Vec<_>>().join("; ")
                    ),
                ));
            }
        }
        headlines.push(Headline::new(
            "runs of each cell",
            thousands(self.repetitions as usize),
            format!(
                "mean ± standard deviation, on {}; each total is over every message of the run, for {}",
                count(self.held_out, "held-out row", "held-out rows"),
                Guarantee::RELATION
            ),
        ));
        headlines.push(Headline::new(
            "protects these rows?",
            "no",
            "These are simulations: they hold all rows, and their noise repeats from a seed. Only `radmm node` protects rows.",
        ));
        headlines
    }

    fn method(&self) -> String {
        format!(
            "**Choice.** For every cell all parameters of a fixed list were tried in one run each (noise from seed {}), and those that \
             classify most of everybody’s training rows correctly were taken; then they were run {} (seed {}). The rule is the same for \
             all; held-out rows have no part in it. The choice reads training rows, and the totals do not cover that.\n\n\
             **Privacy.** Every party has the least noise at which its whole run costs the total: Laplace noise at δ = 0, Gaussian noise \
             otherwise; in the objective, for linearised R-ADMM in the gradient, for consensus in sums of gradients. “{}” is one party with all rows that answers a single query by \
             the same mechanism; without noise it is the minimiser of the parties’ common objective, in which every row counts the same. Consensus has no \
             parameters to choose: a public rule sets them.",
            self.choosing_seed,
            count(self.repetitions as usize, "time", "times"),
            self.seed,
            AccuracyMethod::Centralised.title(),
        )
    }

    fn header(&self, split: &SplitTable) -> Vec<String> {
        let totals = split.of(AccuracyMethod::Alone).map(total);
        [String::new()].into_iter().chain(totals).collect()
    }
}

impl SplitTable {
    /// Returns the cells of one method, by total.
    pub fn of(&self, method: AccuracyMethod) -> impl Iterator<Item = &AccuracyCell> {
        self.cells.iter().filter(move |cell| cell.method == method)
    }
}

/// Returns a total as in `ε 0.5, δ 0`.
fn total(cell: &AccuracyCell) -> String {
    let Guarantee { epsilon, delta } = cell.total;
    format!(
        "ε {}, δ {}",
        number_format::as_typed(epsilon),
        number_format::delta(delta)
    )
}

/// Returns a share as in `81.9 ± 0.3`.
fn percent_text(share: &SampleStats) -> String {
    share.format_with(percent).trim_end_matches(" %").to_owned()
}

/// Returns parameters as in `η 4.4, γ 0.9, ρ 8.8, 5 data steps`.
fn parameter_text(parameters: &ParameterSet, data_steps: u32) -> String {
    let ridge = format!("ρ {}", brief(parameters.ridge));
    let steps = count(data_steps as usize, "data step", "data steps");
    let method = &parameters.method;
    if method.data_steps().is_some() {
        return format!("by the rule, {steps}");
    }
    if let Some(extra_ridge) = method.extra_ridge() {
        return format!("extra ridge {}", brief(extra_ridge));
    }
    let mut text = String::new();
    for (symbol, schedule) in [("η", method.penalty()), ("γ", method.damping())] {
        if let Some(schedule) = schedule {
            text += &format!("{symbol} {}, ", brief(schedule.at(1)));
        }
    }
    format!("{text}{ridge}, {steps}")
}
