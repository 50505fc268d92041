//! `radmm certify`: will it converge, and how fast?

use std::fmt::Write;

use comfy_table::Table;
use radmm::algorithm::schedule::Schedule;
use radmm::convergence::local_rate::LocalRate;
use radmm::convergence::theorem::Certificate;
use radmm_study::number_format::{brief, count, thousands};
use radmm_lab::{AlgorithmRate, Certification, ObservedConvergence, TheoremVerdict};
use radmm_report::TextTable;
use radmm_study::Method;

use crate::args::CertifyArgs;
use crate::failure::Failure;
use crate::files;
use crate::prepare;
use crate::progress::Progress;
use crate::render::{block, plain};

pub(crate) fn certify(typed: CertifyArgs) -> Result<(), Failure> {
    let experiment = prepare::study(typed.study.as_deref(), typed.work.quiet)?.rows()?;
    let pool = typed.work.pool()?;
    let progress = Progress::new(experiment.certify_progress_steps(), typed.work.quiet);
    let certified = pool.install(|| experiment.certify(&|done| progress.named(done)))?;
    progress.done();
    match typed.json {
        true => files::print(&certified.to_json()),
        false => files::print(&page(&certified)),
    }
}

/// Everything worth looking at, in lines of eighty columns.
fn page(certified: &Certification) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(certified));
    let _ = writeln!(page, "{}\n", theorem(certified));
    match &certified.no_rate {
        Some(reason) => {
            let _ = writeln!(page, "{}\n", block("rate", &format!("none: {reason}")));
        }
        None => {
            let _ = writeln!(page, "{}\n{RATES}\n", rates(certified));
            if let Some(reason) = certified.rates.iter().find_map(|rated| rated.undetermined) {
                let words = format!("untold: it {UNTOLD} in double precision: {reason}");
                let _ = writeln!(page, "{}\n", block("rate", &words));
            }
        }
    }
    let _ = writeln!(page, "{}\n", observed(certified));
    let so: Vec<String> = [diverges(certified), conservative(certified)]
        .into_iter()
        .flatten()
        .collect();
    if !so.is_empty() {
        let _ = writeln!(page, "{}\n", block("so", &so.join(". ")));
    }
    let _ = writeln!(page, "{}", block("caveat", certified.caveat));
    page
}

const RATES: &str =
    " the factor by which distances to the optimum shrink in the long run, noise left
 out: the spectral radius of the algorithm, linearised at the optimum
 a digit: iterations until a distance is a tenth";

const UNTOLD: &str = "cannot be told";

fn headline(certified: &Certification) -> String {
    let network = &certified.network;
    format!(
        "{}: {}\n{} and {}, {}; M = C·c₁ + ρ/N = {}",
        certified.name,
        with_parameters(&certified.algorithm),
        count(network.nodes, "party", "parties"),
        count(network.edges, "edge", "edges"),
        match network.bipartite {
            true => "bipartite",
            false => "not bipartite",
        },
        brief(certified.lipschitz),
    )
}

fn theorem(certified: &Certification) -> String {
    let text = match &certified.theorem {
        TheoremVerdict::NotCovered { reason } => format!("Theorem III.1 is silent: {reason}"),
        TheoremVerdict::Undetermined { reason } => format!(
            "whether the condition of Theorem III.1 is met cannot be told in double precision: {reason}"
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
            "the condition of Theorem III.1 is not met, for no L and μ. The least γ that meets it is {}, with {}",
            brief_up(least.damping),
            constants(least),
        ),
    };
    block("theorem", &text)
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
            return vec![
                with_parameters(algorithm),
                "untold".to_owned(),
                dash(),
                dash(),
            ];
        }
        vec![
            with_parameters(algorithm),
            factor(rate.per_data_step, rate.uncertainty),
            factor(rate.per_iteration, rate.uncertainty),
            match rate.iterations_per_digit {
                Some(iterations) if iterations < 100.0 => brief(iterations),
                Some(iterations) if iterations < 1e6 => thousands(iterations.round() as usize),
                // More digits than two would be rounding.
                Some(iterations) => brief(iterations),
                None => "never".to_owned(),
            },
        ]
    };
    plain(&TextTable {
        caption: String::new(),
        header: ["true local rate", "a data step", "an iteration", "a digit"]
            .map(str::to_owned)
            .into(),
        rows: certified.rates.iter().map(row).collect(),
        folded: false,
    })
}

fn observed(certified: &Certification) -> String {
    let ObservedConvergence {
        distance,
        per_iteration,
        per_iteration_late,
        stopped,
    } = &certified.observed;
    let away = |distance: f64| match distance.is_finite() {
        true => brief(distance),
        false => "farther than doubles reach".to_owned(),
    };
    let mut text = format!(
        "without noise the farthest party is {} from the optimum at the start and {} after {}",
        away(distance[0]),
        away(distance[distance.len() - 1]),
        count(distance.len() - 1, "iteration", "iterations"),
    );
    if let Some((whole, late)) = per_iteration.zip(*per_iteration_late) {
        let (whole, late) = (factor(whole, 0.0), factor(late, 0.0));
        let _ = write!(
            text,
            ": a mean factor of {whole} an iteration, {late} in the second half"
        );
    }
    if let Some(rate) = long_run(certified) {
        let rate = factor(rate.per_iteration, rate.uncertainty);
        let _ = write!(text, "; {rate} in the long run");
    }
    if let Some(reason) = stopped {
        let _ = write!(text, "; it stopped early: {reason}");
    }
    block("seen", &text)
}

/// The rate of the study's own algorithm, where it has one that can be told.
fn long_run(certified: &Certification) -> Option<&LocalRate> {
    if certified.no_rate.is_some() {
        return None;
    }
    let rated = certified.rates.first()?;
    rated.undetermined.is_none().then_some(&rated.rate)
}

/// That the study runs away from the optimum, if it does.
fn diverges(certified: &Certification) -> Option<String> {
    let distance = &certified.observed.distance;
    let grew = distance[distance.len() - 1] > distance[0];
    match long_run(certified) {
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

/// How much of the truth the theorem sees, in words.
fn conservative(certified: &Certification) -> Option<String> {
    let least = certified.theorem.least()?;
    let [study, admm, at_least] = certified.rates.as_slice() else {
        return None;
    };
    let Method::RecycledAdmm { damping, .. } = &certified.algorithm else {
        return None;
    };
    let does = |AlgorithmRate {
                    rate, undetermined, ..
                }: &AlgorithmRate| {
        if undetermined.is_some() {
            return format!("has a rate that {UNTOLD}");
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
    let there = match certified.theorem {
        TheoremVerdict::NotMet { .. } if study.rate.per_iteration < 1.0 => "it is silent, yet",
        TheoremVerdict::NotMet { .. } => "it is silent, and",
        _ => "it speaks, and",
    };
    Some(format!(
        "the theorem speaks from γ = {} on. At γ = {} {there} the true map {}; where it begins to speak the true map {}",
        brief_up(least.damping),
        typed(damping.at(1)),
        does(study),
        does(at_least),
    ))
}

fn with_parameters(method: &Method) -> String {
    let name = method.name();
    let of = |schedule: &Schedule| match schedule {
        Schedule::Constant(value) => typed(*value),
        varying => format!("{}…", typed(varying.at(1))),
    };
    // What parties may choose for themselves: once if all agree, else the least and the greatest.
    let range = |schedules: &[Schedule]| {
        let by_start = |a: &&Schedule, b: &&Schedule| a.at(1).total_cmp(&b.at(1));
        let ends = schedules
            .iter()
            .min_by(by_start)
            .zip(schedules.iter().max_by(by_start));
        match ends {
            Some((_, only)) if schedules.iter().all(|schedule| schedule == only) => of(only),
            Some((least, greatest)) => format!("{} to {}", of(least), of(greatest)),
            None => String::new(),
        }
    };
    let more = |recycle: &u32| match recycle {
        1 => String::new(),
        _ => format!(", recycle = {recycle}"),
    };
    match method {
        Method::Admm { penalty } => format!("{name}, η = {}", of(penalty)),
        Method::RecycledAdmm {
            penalty,
            damping,
            recycle,
        }
        | Method::RecycledDlm {
            penalty,
            damping,
            recycle,
        } => format!(
            "{name}, η = {}, γ = {}{}",
            of(penalty),
            of(damping),
            more(recycle)
        ),
        Method::Dlm { penalty, damping } => {
            format!("{name}, η = {}, γ = {}", of(penalty), of(damping))
        }
        Method::MAdmm { penalty, dual_step } => {
            format!("{name}, η = {}, θ = {}", range(penalty), typed(*dual_step))
        }
        Method::MRecycledAdmm {
            penalty,
            damping,
            recycle,
            dual_step,
        } => format!(
            "{name}, η = {}, γ = {}, θ = {}{}",
            range(penalty),
            range(damping),
            typed(*dual_step),
            more(recycle)
        ),
        Method::Dgd { step } => format!("{name}, s = {}", of(step)),
        Method::Local { .. } | Method::Average { .. } => name.to_owned(),
    }
}

/// As many digits as are known; near one, how far from it.
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

/// As it was typed, unless it is a long number, as a least damping of ours.
fn typed(x: f64) -> String {
    [x.to_string(), format!("{x:e}")]
        .into_iter()
        .find(|exact| exact.len() <= 7)
        .unwrap_or_else(|| brief_up(x))
}

/// Four digits, rounded up: a damping below the least would not do.
fn brief_up(x: f64) -> String {
    if x == 0.0 {
        return brief(x);
    }
    let unit = 10f64.powf(x.log10().floor() - 3.0);
    brief((x / unit).ceil() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let shown = [0.0, 1.0, 0.0123456, 437.5006, 1734.21875, 287.4486].map(brief);
        assert_eq!(shown, ["0", "1", "0.01235", "437.5", "1734", "287.4"]);
        assert_eq!(brief(4.1e-7), "4.1e-7");
    }

    #[test]
    fn a_least_damping_is_never_shown_smaller_than_it_is() {
        let shown = [0.0, 1734.21875, 91.41797, 0.754834].map(brief_up);
        assert_eq!(shown, ["0", "1735", "91.42", "0.7549"]);
        let shown = [0.5, 1e-300, 1.0 / 3.0].map(typed);
        assert_eq!(shown, ["0.5", "1e-300", "0.3334"]);
    }

    #[test]
    fn near_one_the_distance_from_it_is_shown() {
        let shown = [0.9841, 0.9996838722, 1.0003, 1.0, 1.2].map(|rate| factor(rate, 0.0));
        assert_eq!(shown, ["0.9841", "1 − 3.2e-4", "1 + 3.0e-4", "1", "1.2000"]);
        assert_eq!(factor(0.5, 0.1), "≈ 0.5000");
    }

    #[test]
    fn penalties_of_parties_are_shown_once_or_from_least_to_greatest() {
        let with = |penalty: &[f64]| {
            with_parameters(&Method::MAdmm {
                penalty: penalty.iter().copied().map(Schedule::Constant).collect(),
                dual_step: 0.3,
            })
        };
        assert_eq!(with(&[2.0, 2.0]), "m-admm, η = 2, θ = 0.3");
        assert_eq!(with(&[2.0, 0.5, 1.0]), "m-admm, η = 0.5 to 2, θ = 0.3");
    }
}
