//! The paper's figures, reproduced on its own data set with every statement checked, and a table of accuracies.
//!
//! - Figure 1: no noise, `η = 0.5`, several `γ`, a small and a large random network.
//! - Figure 2: `η = 1`, `γ = 0.2`, `α = 2` and `α = 4`, against DVP, PP and PVP and the two baselines at equal total privacy.
//! - Figure 3: the same with `η(t) = 1.01ᵗ`, `γ(t) = 0.2·1.01ᵗ`.
//!
//! Figures 2 and 3 are made twice: with the paper's bound, and with ours at the same total. docs/algorithm.md has the notation.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests compare with the platform's functions"
    )
)]

pub mod accuracy;
mod claims;
mod fig1;
mod fig2;
mod fig3;
mod setting;

use radmm::privacy::Bound;
use radmm::sim::Snapshot;
use radmm_lab::{Experiment, MeanModels, PrepareError, RunError};
use radmm_report::{Block, Claim, Figure, Page, Section};
use radmm_study::Study;

use setting::{Setting, SettingResult};

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureNumber {
    /// Convergence without noise.
    Fig1,
    /// Accuracy and privacy.
    Fig2,
    /// Growing penalties.
    Fig3,
}

/// The paper's experiments, ready to run.
pub struct Reproduction {
    figures: Vec<FigureNumber>,
    repetitions: u32,
    networks: Vec<fig1::Network>,
    settings: Vec<Setting>,
}

/// The reproduced figures.
pub struct ReproductionResult {
    /// Everything on one page.
    pub page: Page,
    /// The same figures, for files of their own.
    pub figures: Vec<Figure>,
    /// The paper's statements and the observations.
    pub claims: Vec<Claim>,
    /// The meaning of P in them, if there is noise.
    pub privacy: Option<String>,
}

/// The part of the page about one figure.
struct FigurePart {
    section: Section,
    figure: Figure,
    claims: Vec<Claim>,
}

impl FigurePart {
    /// Returns the part with a figure, the claims about it and further blocks.
    fn new(heading: &str, figure: Figure, claims: Vec<Claim>, more: Vec<Block>) -> Self {
        let mut blocks = vec![Block::Figure(figure.clone()), Block::Claims(claims.clone())];
        blocks.extend(more);
        Self {
            section: Section {
                heading: heading.to_owned(),
                blocks,
            },
            figure,
            claims,
        }
    }
}

impl Reproduction {
    /// Reads the rows and calibrates the noise of all methods. `figures` must not be empty.
    pub fn prepare(figures: &[FigureNumber], repetitions: u32) -> Result<Self, PrepareError> {
        let mut figures = figures.to_vec();
        figures.sort_unstable();
        figures.dedup();
        let wanted = |figure| figures.contains(&figure);
        let networks = match wanted(FigureNumber::Fig1) {
            true => fig1::networks()?,
            false => Vec::new(),
        };
        let mut settings = Vec::new();
        if wanted(FigureNumber::Fig2) || wanted(FigureNumber::Fig3) {
            let first = Experiment::prepare(study(FIG2, "fig2.toml"), "".as_ref())?;
            let first = first.with_mean_models(MeanModels::Unmeasured);
            let mut totals = Vec::new();
            for bound in [Bound::Paper, Bound::Tight] {
                for (k, alpha) in [2.0, 4.0].into_iter().enumerate() {
                    let selection = setting::FigureSelection {
                        fig2: wanted(FigureNumber::Fig2),
                        fig3: wanted(FigureNumber::Fig3),
                        repetitions,
                    };
                    let setting =
                        Setting::new(&first, alpha, bound, totals.get(k).copied(), selection)?;
                    totals.push(setting.total);
                    settings.push(setting);
                }
            }
        }
        Ok(Self {
            figures,
            repetitions,
            networks,
            settings,
        })
    }

    /// Returns an upper bound on the number of calls of `progress`.
    pub fn progress_steps(&self) -> u64 {
        let one: u64 = self
            .networks
            .iter()
            .map(fig1::Network::progress_steps)
            .sum();
        one + self
            .settings
            .iter()
            .map(Setting::progress_steps)
            .sum::<u64>()
    }

    /// Runs everything, on all threads of the current pool.
    pub fn run(
        &self,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<ReproductionResult, RunError> {
        let mut parts = Vec::new();
        if self.figures.contains(&FigureNumber::Fig1) {
            parts.push(fig1::run(&self.networks, progress)?);
        }
        let results = self
            .settings
            .iter()
            .map(|setting| setting.run(progress))
            .collect::<Result<Vec<SettingResult>, RunError>>()?;
        let (paper, tight) = results.split_at(results.len() / 2);
        if self.figures.contains(&FigureNumber::Fig2) {
            parts.push(fig2::part(paper, Bound::Paper));
            parts.push(fig2::part(tight, Bound::Tight));
        }
        if self.figures.contains(&FigureNumber::Fig3) {
            parts.push(fig3::part(paper, Bound::Paper));
            parts.push(fig3::part(tight, Bound::Tight));
        }
        Ok(self.page(parts, &results))
    }

    fn page(&self, parts: Vec<FigurePart>, results: &[SettingResult]) -> ReproductionResult {
        let overview = claims::overview(results);
        let single_query = results.first().map_or(String::new(), claims::single_query);
        let claims: Vec<Claim> = parts.iter().flat_map(|part| part.claims.clone()).collect();
        let held = claims
            .iter()
            .filter(|claim| claim.holds == Some(true))
            .count();
        let lead = format!(
            "The paper’s experiments on the UCI Adult data{}. **Of {} statements about the figures {held} hold**; {}.{single_query}",
            match self.settings.is_empty() {
                true => String::new(),
                false => format!(
                    ", with {} a private setting",
                    claims::runs(self.repetitions)
                ),
            },
            claims.len(),
            claims::exceptions(&claims),
        );
        let figures = parts.iter().map(|part| part.figure.clone()).collect();
        let mut sections = Vec::from_iter(overview);
        sections.extend(parts.into_iter().map(|part| part.section));
        sections.push(claims::method(!self.settings.is_empty()));
        ReproductionResult {
            page: Page {
                title: "Recycled ADMM: the paper’s figures, reproduced".to_owned(),
                lead,
                headlines: claims::headlines(&claims, results),
                sections,
                footer: claims::FOOTER.to_owned(),
            },
            figures,
            claims,
            privacy: (!results.is_empty()).then(claims::meaning_of_p),
        }
    }
}

const FIG1: &str = include_str!("../studies/fig1.toml");
const FIG1_LARGE: &str = include_str!("../studies/fig1-large.toml");
const FIG2: &str = include_str!("../studies/fig2.toml");
const FIG3: &str = include_str!("../studies/fig3.toml");

/// Parses one of the studies above.
fn study(text: &str, file: &str) -> Study {
    // A test parses each of them.
    let (study, _) = Study::parse(text, file).expect("a study of this crate is valid");
    study
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_studies_are_valid_and_have_no_notes() {
        for text in [FIG1, FIG1_LARGE, FIG2, FIG3] {
            let (_, notes) = Study::parse(text, "fig.toml").unwrap();
            assert!(notes.is_empty(), "{notes:?}");
        }
    }
}
