//! Figure 1: R-ADMM without noise, with several dampings, against conventional ADMM.

use radmm::algorithm::schedule::Schedule;
use radmm::sim::Snapshot;
use radmm_lab::{Candidate, CandidateResult, Experiment, MeanModels, PrepareError, RunError};
use radmm_report::{Block, Claim, Figure, Panel, Style, TextTable};
use radmm_study::Method;
use radmm_study::number_format::number;

use crate::claims::{axis, claim, frame, list, losses};
use crate::{FIG1, FIG1_LARGE, FigurePart, study};

const GAMMAS: [f64; 4] = [0.0, 0.5, 1.0, 2.0];

/// The largest relative distance of odd iterations from ADMM's.
const TRACKING: f64 = 0.01;

/// ADMM and R-ADMM on one graph.
pub(super) struct Network {
    nodes: u32,
    admm: Candidate,
    /// R-ADMM, in the order of [`GAMMAS`].
    recycled: Vec<Candidate>,
}

/// The results on one graph.
struct NetworkResult {
    nodes: u32,
    admm: CandidateResult,
    recycled: Vec<CandidateResult>,
}

pub(super) fn networks() -> Result<Vec<Network>, PrepareError> {
    let studies = [
        study(FIG1, "fig1.toml"),
        study(FIG1_LARGE, "fig1-large.toml"),
    ];
    let network = |study: radmm_study::Study| {
        // The paper's L(t) is that of each party's own model.
        let base = Experiment::prepare(study, "".as_ref())?;
        let base = base.with_mean_models(MeanModels::Unmeasured);
        let with = |name: &str, method| {
            let mut study = base.study().clone();
            study.algorithm.method = method;
            Ok::<_, PrepareError>(Candidate::with_own_noise(name, base.on_same_rows(study)?))
        };
        let Method::RecycledAdmm {
            penalty, recycle, ..
        } = base.study().algorithm.method
        else {
            unreachable!("the figure is about R-ADMM")
        };
        let recycled = GAMMAS.map(|gamma| {
            let damping = Schedule::Constant(gamma);
            with(
                &format!("R-ADMM, γ = {gamma}"),
                Method::RecycledAdmm {
                    penalty,
                    damping,
                    recycle,
                },
            )
        });
        Ok(Network {
            nodes: base.study().network.nodes,
            admm: with("ADMM", Method::Admm { penalty })?,
            recycled: recycled.into_iter().collect::<Result<_, _>>()?,
        })
    };
    studies.into_iter().map(network).collect()
}

impl Network {
    pub(super) fn progress_steps(&self) -> u64 {
        let recycled = self.recycled.iter().map(Candidate::progress_steps);
        self.admm.progress_steps() + recycled.sum::<u64>()
    }

    fn run(
        &self,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Option<NetworkResult>, RunError> {
        let mut recycled = Vec::new();
        for candidate in &self.recycled {
            recycled.extend(candidate.measure(progress)?);
        }
        let admm = self.admm.measure(progress)?;
        Ok(admm.map(|admm| NetworkResult {
            nodes: self.nodes,
            admm,
            recycled,
        }))
    }
}

pub(super) fn run(
    networks: &[Network],
    progress: &(dyn Fn(&Snapshot) + Sync),
) -> Result<FigurePart, RunError> {
    let mut results = Vec::new();
    for network in networks {
        results.extend(network.run(progress)?);
    }
    let claims: Vec<Claim> = results.iter().flat_map(NetworkResult::claims).collect();
    let title = match claims.iter().all(|claim| claim.holds == Some(true)) {
        true => {
            "Even iterations overshoot less as γ grows, odd ones track ADMM with half the queries"
        }
        false => "R-ADMM without noise, for several γ, against ADMM",
    };
    let figure = Figure {
        id: "fig1".to_owned(),
        title: title.to_owned(),
        caption: "Average loss on the training rows; no noise, η = 0.5. ADMM queries the rows in every iteration, R-ADMM in odd ones."
            .to_owned(),
        columns: 2,
        panels: results.iter().map(NetworkResult::panel).collect(),
    };
    let tables = vec![Block::Table(table(&results))];
    let heading = "Figure 1: convergence without noise";
    Ok(FigurePart::new(heading, figure, claims, tables))
}

impl NetworkResult {
    fn panel(&self) -> Panel {
        let mut series = vec![losses(&self.admm, 1, Style::Line)];
        for (measured, colour) in self.recycled.iter().zip([3, 5, 2, 0]) {
            series.push(losses(measured, colour, Style::Line));
        }
        let all = self.recycled.iter().chain([&self.admm]);
        Panel {
            title: format!("N = {}", self.nodes),
            x: axis("iteration t", None),
            y: axis("average loss L(t)", frame(all)),
            series,
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let nodes = self.nodes;
        let overshoots: Vec<f64> = self.recycled.iter().map(overshoot).collect();
        let shrinks = overshoots
            .windows(2)
            .all(|pair| pair[1] < pair[0] || pair == [0.0, 0.0]);
        let tracking: Vec<f64> = self.recycled.iter().map(|run| self.tracking(run)).collect();
        let farthest = tracking.iter().copied().fold(0.0, f64::max);
        let ends: Vec<f64> = self.recycled.iter().map(|run| run.loss.mean).collect();
        let gammas = list(&GAMMAS.map(|gamma| gamma.to_string()));
        vec![
            claim(
                format!("N = {nodes}: even iterations overshoot less as γ grows"),
                format!(
                    "the largest rise from an odd iteration to the next is {} for γ = {gammas}",
                    list(&overshoots.iter().copied().map(number).collect::<Vec<_>>())
                ),
                shrinks,
            ),
            claim(
                format!("N = {nodes}: odd iterations track ADMM within 1 %"),
                format!(
                    "{:.2} % off at most, over all odd iterations and γ = {gammas}",
                    100.0 * farthest
                ),
                farthest <= TRACKING,
            ),
            claim(
                format!("N = {nodes}: beyond γ = 0.5 a larger γ lowers the rate of convergence"),
                format!(
                    "loss at the end {} for γ = {}; {} for γ = 0, where it still overshoots",
                    list(&ends[1..].iter().copied().map(number).collect::<Vec<_>>()),
                    list(&GAMMAS[1..].iter().map(f64::to_string).collect::<Vec<_>>()),
                    number(ends[0])
                ),
                // From γ = 0 to the next, less overshooting outweighs it.
                ends[1..].is_sorted(),
            ),
        ]
    }

    /// Returns the largest relative distance of odd iterations from ADMM's.
    fn tracking(&self, run: &CandidateResult) -> f64 {
        let pairs = run
            .by_iteration
            .iter()
            .zip(&self.admm.by_iteration)
            .skip(1)
            .step_by(2);
        pairs
            .map(|(own, admm)| (own.loss.mean / admm.loss.mean - 1.0).abs())
            .fold(0.0, f64::max)
    }
}

/// Returns the largest rise of the loss from an odd iteration to the even one after it; zero if there is none.
fn overshoot(run: &CandidateResult) -> f64 {
    let pairs = run.by_iteration[1..].chunks_exact(2);
    pairs
        .map(|pair| pair[1].loss.mean - pair[0].loss.mean)
        .fold(0.0, f64::max)
}

fn table(results: &[NetworkResult]) -> TextTable {
    let mut rows = Vec::new();
    for network in results {
        for measured in std::iter::once(&network.admm).chain(&network.recycled) {
            rows.push(vec![
                network.nodes.to_string(),
                measured.name.clone(),
                measured.data_steps.to_string(),
                number(overshoot(measured)),
                format!("{:.2} %", 100.0 * network.tracking(measured)),
                number(measured.loss.mean),
            ]);
        }
    }
    TextTable {
        caption: "Largest rise from an odd to an even iteration, distance of odd iterations from ADMM’s, and loss at the end"
            .to_owned(),
        header: [
            "N",
            "algorithm",
            "data steps",
            "overshoot",
            "odd iterations off",
            "loss at the end",
        ]
        .map(str::to_owned)
        .into(),
        rows,
        folded: false,
    }
}
