//! `radmm certify`: whether a study's algorithm converges, and how fast.

use std::fmt::Write;

use comfy_table::Table;
use radmm::convergence::local_rate::LocalRate;
use radmm::convergence::theorem::Certificate;
use radmm_lab::{AlgorithmRate, Certification, ObservedConvergence, TheoremVerdict};
use radmm_study::number_format::{as_typed, brief, brief_up, count, thousands};

use crate::args::CertifyArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::tables::{grid, paragraph};

pub(crate) fn run(args: &CertifyArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let overrides = args.sweep.overrides();
    let study = load::converging_study(args.study.as_deref(), &overrides, quiet)?;
    let experiment = study.experiment()?;
    let pool = args.work.thread_pool()?;
    let progress = Progress::new(experiment.certify_progress_steps(), quiet);
    let certified = pool.install(|| experiment.certify(&|step| progress.named(step)))?;
    progress.done();
    match args.json {
        true => files::print(&certified.to_json()),
        false => files::print(&page(&certified)),
    }
}

/// Formats the certification, in lines of eighty columns.
pub(crate) fn page(certified: &Certification) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(certified));
    let _ = writeln!(page, "{}\n", theorem(certified));
    match &certified.no_rate {
        Some(reason) => {
            let _ = writeln!(page, "{}\n", paragraph("rate", &format!("none: {reason}")));
        }
        None => {
            let _ = writeln!(page, "{}\n{RATES_LEGEND}\n", rates(certified));
            if let Some(reason) = certified.rates.iter().find_map(|rated| rated.undetermined) {
                let text = format!("undecided: it {UNDECIDED} in double precision: {reason}");
                let _ = writeln!(page, "{}\n", paragraph("rate", &text));
            }
        }
    }
    let _ = writeln!(page, "{}\n", observed(certified));
    let conclusions: Vec<String> = [divergence(certified), conservatism(certified)]
        .into_iter()
        .flatten()
        .collect();
    if !conclusions.is_empty() {
        let _ = writeln!(page, "{}\n", paragraph("result", &conclusions.join(". ")));
    }
    let _ = writeln!(page, "{}", paragraph("caveat", certified.caveat));
    page
}

const RATES_LEGEND: &str =
    " the factor by which distances to the optimum shrink in the long run, without
 noise: the spectral radius of the algorithm, linearised at the optimum
 a digit: iterations until a distance is a tenth";

const UNDECIDED: &str = "cannot be determined";

fn headline(certified: &Certification) -> String {
    let network = &certified.network;
    format!(
        "{}: {}\n{} and {}, {}; {}",
        certified.name,
        certified.algorithm.summary(),
        count(network.nodes, "party", "parties"),
        count(network.edges, "edge", "edges"),
        match network.bipartite {
            true => "bipartite",
            false => "not bipartite",
        },
        lipschitz(certified),
    )
}

/// Formats the Lipschitz constants of the parties' gradients, which differ where rows count alike.
fn lipschitz(certified: &Certification) -> String {
    let (least, greatest) = (brief(certified.least_lipschitz), brief(certified.lipschitz));
    match least == greatest {
        true => format!("M = C·c₁ + ρ/N = {greatest}"),
        false => format!("M_i = C_i·c₁ + ρ/N = {least} to {greatest}"),
    }
}

fn theorem(certified: &Certification) -> String {
    let text = match &certified.theorem {
        TheoremVerdict::NotCovered { reason } => format!("Theorem III.1 does not apply: {reason}"),
        TheoremVerdict::Undetermined { reason } => format!(
            "whether the condition of Theorem III.1 is met {UNDECIDED} in double precision: {reason}"
        ),
        TheoremVerdict::Impossible { reason } => {
            format!("the condition of Theorem III.1 cannot be met: {reason}")
        }
        TheoremVerdict::Met { certificate, least } => format!(
            "the condition of Theorem III.1 is met, with {}. The least γ that meets it is {}",
            constants(certificate),
            brief_up(least.damping),
        ),
        TheoremVerdict::NotMet { least } => format!(
            "the condition of Theorem III.1 is not met, for any L and μ. The least γ that meets it is {}, with {}",
            brief_up(least.damping),
            constants(least),
        ),
    };
    paragraph("theorem", &text)
}

fn constants(certificate: &Certificate) -> String {
    format!(
        "L = {}, μ = {} (its inequalities hold by {} and {})",
        brief(certificate.l),
        brief(certificate.mu),
        brief(certificate.first_margin),
        brief(certificate.second_margin),
    )
}

fn rates(certified: &Certification) -> Table {
    let row = |AlgorithmRate {
                   algorithm,
                   rate,
                   undetermined,
               }: &AlgorithmRate| {
        if undetermined.is_some() {
            let dash = || "–".to_owned();
            return vec![algorithm.summary(), "undecided".to_owned(), dash(), dash()];
        }
        vec![
            algorithm.summary(),
            factor(rate.per_data_step, rate.uncertainty),
            factor(rate.per_iteration, rate.uncertainty),
            match rate.iterations_per_digit {
                Some(iterations) if iterations < 100.0 => brief(iterations),
                Some(iterations) if iterations < 1e6 => thousands(iterations.round() as usize),
                // More than two digits would be rounding errors.
                Some(iterations) => brief(iterations),
                None => "never".to_owned(),
            },
        ]
    };
    let header = ["true local rate", "a data step", "an iteration", "a digit"];
    grid(&header, certified.rates.iter().map(row))
}

fn observed(certified: &Certification) -> String {
    let ObservedConvergence {
        distance,
        per_iteration,
        per_iteration_late,
        stopped,
    } = &certified.observed;
    let shown = |distance: f64| match distance.is_finite() {
        true => brief(distance),
        false => "beyond the range of doubles".to_owned(),
    };
    let mut text = format!(
        "without noise the farthest party is {} from the optimum at the start and {} after {}",
        shown(distance[0]),
        shown(distance[distance.len() - 1]),
        count(distance.len() - 1, "iteration", "iterations"),
    );
    if let Some((whole, late)) = per_iteration.zip(*per_iteration_late) {
        let (whole, late) = (factor(whole, 0.0), factor(late, 0.0));
        let _ = write!(
            text,
            ": a mean factor of {whole} an iteration, {late} in the second half"
        );
    }
    if let Some(rate) = long_run_rate(certified) {
        let rate = factor(rate.per_iteration, rate.uncertainty);
        let _ = write!(text, "; {rate} in the long run");
    }
    if let Some(reason) = stopped {
        let _ = write!(text, "; it stopped early: {reason}");
    }
    paragraph("observed", &text)
}

/// Returns the rate of the study's own algorithm, if it can be determined.
fn long_run_rate(certified: &Certification) -> Option<&LocalRate> {
    if certified.no_rate.is_some() {
        return None;
    }
    let rated = certified.rates.first()?;
    rated.undetermined.is_none().then_some(&rated.rate)
}

/// Explains that the study diverges, if it does.
fn divergence(certified: &Certification) -> Option<String> {
    let distance = &certified.observed.distance;
    let grew = distance[distance.len() - 1] > distance[0];
    match long_run_rate(certified) {
        Some(rate) if rate.per_iteration > 1.0 => Some(format!(
            "this study diverges even without noise: in the long run distances grow by {} an iteration",
            factor(rate.per_iteration, rate.uncertainty)
        )),
        Some(_) if grew => Some(
            "this run without noise ends farther from the optimum than it began, although near the optimum distances shrink"
                .to_owned(),
        ),
        None if grew => Some(
            "this study diverges even without noise: its run ends farther from the optimum than it began"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Compares the theorem's condition with the true rates.
fn conservatism(certified: &Certification) -> Option<String> {
    let least = certified.theorem.least()?;
    let [study, admm, at_least] = certified.rates.as_slice() else {
        return None;
    };
    let damping = certified.algorithm.damping()?;
    let contraction = |AlgorithmRate {
                           rate, undetermined, ..
                       }: &AlgorithmRate| {
        if undetermined.is_some() {
            return format!("has a rate that {UNDECIDED}");
        }
        let by = factor(rate.per_iteration, rate.uncertainty);
        match (rate.per_iteration < 1.0, admm.undetermined) {
            (true, None) => {
                let worth = rate.per_data_step.ln() / admm.rate.per_data_step.ln();
                format!(
                    "contracts by {by} an iteration, a data step being worth {worth:.2} of conventional ADMM's"
                )
            }
            (true, Some(_)) => format!("contracts by {by} an iteration"),
            (false, _) => format!("expands by {by} an iteration"),
        }
    };
    let applies = match certified.theorem {
        TheoremVerdict::NotMet { .. } if study.rate.per_iteration < 1.0 => "it does not, yet",
        TheoremVerdict::NotMet { .. } => "it does not, and",
        _ => "it does, and",
    };
    Some(format!(
        "the theorem applies from γ = {} on. At γ = {} {applies} the true map {}; at the least γ where it applies the true map {}",
        brief_up(least.damping),
        as_typed(damping.at(1)),
        contraction(study),
        contraction(at_least),
    ))
}

/// Formats a rate with four decimals; near one, as the distance from it.
fn factor(rate: f64, uncertainty: f64) -> String {
    let about = if uncertainty > 1e-2 { "≈ " } else { "" };
    match (1.0 - rate).abs() {
        0.0 => "1".to_owned(),
        gap if gap < 1e-3 => {
            let sign = if rate < 1.0 { '−' } else { '+' };
            format!("{about}1 {sign} {gap:.1e}")
        }
        _ => format!("{about}{rate:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_one_the_distance_from_it_is_shown() {
        let shown = [0.9841, 0.9996838722, 1.0003, 1.0, 1.2].map(|rate| factor(rate, 0.0));
        assert_eq!(shown, ["0.9841", "1 − 3.2e-4", "1 + 3.0e-4", "1", "1.2000"]);
        assert_eq!(factor(0.5, 0.1), "≈ 0.5000");
    }
}
