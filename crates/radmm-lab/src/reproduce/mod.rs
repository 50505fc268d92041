//! The paper's numerical section (math of docs/algorithm.md), run on its own data set: what was expected beside what is seen.
//!
//! - Figure 1: no noise, `η = 0.5`, several `γ`, a small and a large random network.
//! - Figure 2: `η = 1`, `γ = 0.2`, `α = 2` and `α = 4`, against DVP, PP and PVP and the two baselines at equal total privacy.
//! - Figure 3: the same with `η(t) = 1.01ᵗ`, `γ(t) = 0.2·1.01ᵗ`.
//!
//! Figures 2 and 3 come twice: with the paper's bound, and with ours at the same total.

mod fig1;
mod fig2;
mod fig3;
mod setting;
mod words;

use radmm::account::Bound;
use radmm::sim::Snapshot;
use radmm_study::Study;

use crate::assemble::RunError;
use crate::experiment::{Experiment, PrepareError};
use radmm_report::{Block, Claim, Figure, Page, Section};
use setting::{Seen, Setting};

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// Convergence without noise.
    Fig1,
    /// Accuracy and privacy.
    Fig2,
    /// Growing penalties.
    Fig3,
}

/// Experiments of the paper, ready to run.
pub struct Reproduction {
    which: Vec<Which>,
    repetitions: u32,
    networks: Vec<fig1::Network>,
    settings: Vec<Setting>,
}

/// What came out.
pub struct Reproduced {
    /// Everything on one page.
    pub page: Page,
    /// The same pictures, for files of their own.
    pub figures: Vec<Figure>,
    /// What the paper says, and what was seen.
    pub claims: Vec<Claim>,
    /// What P means in them, if there is noise.
    pub privacy: Option<String>,
}

/// A figure's part of the page.
struct Part {
    section: Section,
    figure: Figure,
    claims: Vec<Claim>,
}

impl Part {
    /// A figure, what was said of it, and what else there is to say.
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
    /// Reads the rows and finds every rival's noise. `which` must not be empty.
    pub fn prepare(which: &[Which], repetitions: u32) -> Result<Self, PrepareError> {
        let mut which = which.to_vec();
        which.sort_unstable();
        which.dedup();
        let asked = |figure| which.contains(&figure);
        let networks = match asked(Which::Fig1) {
            true => fig1::networks()?,
            false => Vec::new(),
        };
        let mut settings = Vec::new();
        if asked(Which::Fig2) || asked(Which::Fig3) {
            let first = Experiment::prepare(study(FIG2, "fig2.toml"), "".as_ref())?;
            let mut totals = Vec::new();
            for bound in [Bound::Paper, Bound::Tight] {
                for (k, alpha) in [2.0, 4.0].into_iter().enumerate() {
                    let cast = setting::Cast {
                        fig2: asked(Which::Fig2),
                        fig3: asked(Which::Fig3),
                        repetitions,
                    };
                    let setting = Setting::new(&first, alpha, bound, totals.get(k).copied(), cast)?;
                    totals.push(setting.total);
                    settings.push(setting);
                }
            }
        }
        Ok(Self {
            which,
            repetitions,
            networks,
            settings,
        })
    }

    /// How often `progress` will be called, at most.
    pub fn steps(&self) -> u64 {
        let one: u64 = self.networks.iter().map(fig1::Network::steps).sum();
        one + self.settings.iter().map(Setting::steps).sum::<u64>()
    }

    /// Runs everything, on all threads of the current pool.
    pub fn run(&self, progress: &(dyn Fn(&Snapshot) + Sync)) -> Result<Reproduced, RunError> {
        let mut parts = Vec::new();
        if self.which.contains(&Which::Fig1) {
            parts.push(fig1::run(&self.networks, progress)?);
        }
        let seen = self
            .settings
            .iter()
            .map(|setting| setting.run(progress))
            .collect::<Result<Vec<Seen>, RunError>>()?;
        let (paper, tight) = seen.split_at(seen.len() / 2);
        if self.which.contains(&Which::Fig2) {
            parts.push(fig2::part(paper, Bound::Paper));
            parts.push(fig2::part(tight, Bound::Tight));
        }
        if self.which.contains(&Which::Fig3) {
            parts.push(fig3::part(paper, Bound::Paper));
            parts.push(fig3::part(tight, Bound::Tight));
        }
        Ok(self.page(parts, &seen))
    }

    fn page(&self, parts: Vec<Part>, seen: &[Seen]) -> Reproduced {
        let glance = words::glance(seen);
        let asking_once = seen.first().map_or(String::new(), words::asking_once);
        let claims: Vec<Claim> = parts.iter().flat_map(|part| part.claims.clone()).collect();
        let held = claims
            .iter()
            .filter(|claim| claim.holds == Some(true))
            .count();
        let lead = format!(
            "The paper’s experiments on the UCI Adult data{}. **Of {} statements about the figures {held} hold**; {}.{asking_once}",
            match self.settings.is_empty() {
                true => String::new(),
                false => format!(", with {} a private setting", words::runs(self.repetitions)),
            },
            claims.len(),
            words::exceptions(&claims),
        );
        let figures = parts.iter().map(|part| part.figure.clone()).collect();
        let mut sections = Vec::from_iter(glance);
        sections.extend(parts.into_iter().map(|part| part.section));
        sections.push(words::method(!self.settings.is_empty()));
        Reproduced {
            page: Page {
                title: "Recycled ADMM: the paper’s figures, reproduced".to_owned(),
                lead,
                headlines: Vec::new(),
                sections,
                footer: words::FOOTER.to_owned(),
            },
            figures,
            claims,
            privacy: (!seen.is_empty()).then(words::meaning),
        }
    }
}

const FIG1: &str = include_str!("../../../../studies/fig1.toml");
const FIG1_LARGE: &str = include_str!("../../../../studies/fig1-large.toml");
const FIG2: &str = include_str!("../../../../studies/fig2.toml");
const FIG3: &str = include_str!("../../../../studies/fig3.toml");

/// One of the studies above.
fn study(text: &str, file: &str) -> Study {
    // A test parses each of them.
    let (study, _) = Study::parse(text, file).expect("a study of the program itself is valid");
    study
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_studies_are_valid_and_have_nothing_to_note() {
        for text in [FIG1, FIG1_LARGE, FIG2, FIG3] {
            let (_, notes) = Study::parse(text, "fig.toml").unwrap();
            assert!(notes.is_empty(), "{notes:?}");
        }
    }
}
