//! The page of `radmm compare --grid`.

use radmm_report::{Block, Figure, Headline, Page};
use radmm_study::number_format::{count, delta, epsilon, percent, thousands};

use super::compare::{FOOTER, LOSS_CAPTION, section, studies};
use super::headlines::{accuracy_references, capitalised, protection};
use crate::experiment::Experiment;
use crate::grid::{BestCombination, GridComparison, GridResult, GridTotal};

impl BestCombination {
    /// Returns its accuracy with the standard error, as in `85.3 %, with a standard error of 0.1 %`.
    pub fn accuracy_text(&self) -> String {
        let error = match self.standard_error {
            Some(error) => format!("with a standard error of {}", percent(error)),
            None => "in a single run; --repetitions tells its standard error".to_owned(),
        };
        format!("{}, {error}", percent(self.accuracy))
    }

    /// Returns the combinations that are as good within the errors, in words; nothing for a single run.
    pub fn as_good_text(&self) -> Option<String> {
        self.standard_error?;
        Some(match &self.as_good[..] {
            [] => "no other is within two standard errors of it".to_owned(),
            [one] => format!("{one} is within two standard errors of it"),
            [some @ .., last] => format!(
                "{} and {last} are within two standard errors of it",
                some.join("; ")
            ),
        })
    }
}

impl GridTotal {
    /// Returns the total, as in `ε = 0.5000 at δ = 1e-5`.
    fn total_text(&self) -> String {
        let total = self.result.total;
        match total.epsilon.is_finite() {
            true => format!(
                "ε = {} at δ = {}",
                epsilon(total.epsilon),
                delta(total.delta)
            ),
            false => "ε = ∞".to_owned(),
        }
    }
}

impl GridResult {
    /// Returns the loss over the iterations and over the data steps, at each total.
    pub fn figure(&self) -> Figure {
        // There is at least one total.
        let mut figure = self.totals[0].result.figure();
        if self.totals.len() > 1 {
            let panels = |total: &GridTotal| {
                let at = format!(", {}", total.total_text());
                total.result.loss_panels(&at)
            };
            let notes = self.totals.iter().map(|total| total.result.drawn_note());
            figure.caption = format!("{LOSS_CAPTION}{}", notes.max().unwrap_or_default());
            figure.panels = self.totals.iter().flat_map(panels).collect();
        }
        figure
    }

    /// Returns the page: for each total the accuracy and the cost of all combinations.
    pub fn page(&self, grid: &GridComparison) -> Page {
        let mut paragraphs = Vec::new();
        let mut sections = Vec::new();
        for (number, total) in (1..).zip(&self.totals) {
            let result = &total.result;
            paragraphs.push(format!(
                "{}.{}",
                capitalised(&result.statement()),
                result.most_accurate()
            ));
            let exceptions = result.exceptions();
            paragraphs.extend(exceptions.iter().map(|line| format!("**{line}**")));
            let at = match self.totals.len() {
                1 => String::new(),
                _ => format!(" at {}", total.total_text()),
            };
            let accuracy = result.accuracy_blocks(&format!("accuracy-{number}"));
            sections.push(section(&format!("Accuracy{at}"), accuracy));
            sections.push(section(&format!("Cost{at}"), result.cost_blocks()));
        }
        let caveat = self.caveat.iter();
        paragraphs.extend(caveat.map(|caveat| format!("**{}.**", capitalised(caveat))));
        sections.push(section("Loss", vec![Block::Figure(self.figure())]));
        let first = &grid.comparisons()[0];
        sections.push(section("The studies", studies(first)));
        let combinations = count(self.combinations, "combination", "combinations");
        Page {
            title: format!("{combinations} at equal privacy"),
            lead: paragraphs.join("\n\n"),
            headlines: self.headlines(&first.candidates()[0].experiment),
            sections,
            footer: FOOTER.to_owned(),
        }
    }

    fn headlines(&self, experiment: &Experiment) -> Vec<Headline> {
        let best = |total: &GridTotal| {
            let best = total.best.as_ref()?;
            let as_good = best.as_good_text().map(|text| format!("; {text}"));
            Some(Headline::new(
                &format!("best combination at {}", total.total_text()),
                percent(best.accuracy),
                format!(
                    "**{}**: {}{}.",
                    best.name,
                    best.accuracy_text(),
                    as_good.unwrap_or_default()
                ),
            ))
        };
        let mut headlines: Vec<Headline> = self.totals.iter().filter_map(best).collect();
        let optimum = self.totals[0].result.optimum_accuracy();
        let references = accuracy_references(experiment, optimum.map(|(_, share)| share));
        let runs = experiment.study().run.repetitions as usize;
        headlines.push(Headline::new(
            "combinations × runs",
            format!("{} × {}", thousands(self.combinations), thousands(runs)),
            format!(
                "{} of {}. For comparison: {references}.",
                count(experiment.table().rows(), "row", "rows"),
                count(experiment.graph().len(), "party", "parties")
            ),
        ));
        headlines.push(protection(&experiment.study().privacy));
        headlines
    }
}
