//! `radmm certify`: will it converge, and how fast?

use std::fmt::Write;

use comfy_table::Table;
use radmm_lab::{Certification, Observed, Rated, Verdict};
use radmm_study::Method;

use crate::args::CertifyArgs;
use crate::failure::Failure;
use crate::files;
use crate::prepare;
use crate::progress::Progress;
use crate::render::{count, number, plain};

pub(crate) fn certify(typed: CertifyArgs) -> Result<(), Failure> {
    let experiment = prepare::study(typed.study.as_deref(), typed.quiet)?.rows()?;
    let pool = prepare::pool(typed.threads)?;
    let progress = Progress::new(experiment.certify_steps(), typed.quiet);
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
        }
    }
    let _ = writeln!(page, "{}\n", observed(certified));
    if let Some(words) = conservative(certified) {
        let _ = writeln!(page, "{}\n", block("so", &words));
    }
    let _ = writeln!(page, "{}", block("caveat", certified.caveat));
    page
}

const RATES: &str =
    " the factor by which distances to the optimum shrink in the long run, noise left
 out: the spectral radius of the algorithm linearised at the optimum of these rows";

fn headline(certified: &Certification) -> String {
    let network = &certified.network;
    format!(
        "{}: {}\n{} and {}, {}; M = C·c₁ + ρ/N = {}",
        certified.name,
        with_parameters(&certified.algorithm),
        count(network.nodes, "party", "parties"),
        count(network.edges, "edge", "edges"),
        if network.bipartite {
            "bipartite"
        } else {
            "not bipartite"
        },
        number(certified.lipschitz),
    )
}

fn theorem(certified: &Certification) -> String {
    let text = match &certified.theorem {
        Verdict::NotCovered { reason } => format!("Theorem III.1 is silent: {reason}"),
        Verdict::Impossible { reason } => {
            format!("the condition of Theorem III.1 cannot be met: {reason}")
        }
        Verdict::Met { certificate, least } => format!(
            "the condition of Theorem III.1 is met with L = {}, μ = {}; its two inequalities hold by {} and {}. The least γ that meets it is {}",
            number(certificate.l),
            number(certificate.mu),
            number(certificate.first_margin),
            number(certificate.second_margin),
            number(least.damping),
        ),
        Verdict::NotMet { least } => format!(
            "the condition of Theorem III.1 is not met, for no L and μ. The least γ that meets it is {} (with L = {}, μ = {}; its two inequalities hold by {} and {})",
            number(least.damping),
            number(least.l),
            number(least.mu),
            number(least.first_margin),
            number(least.second_margin),
        ),
    };
    block("theorem", &text)
}

fn rates(certified: &Certification) -> Table {
    let mut table = plain(&[
        "true local rate",
        "a data step",
        "an iteration",
        "iterations a digit",
    ]);
    for Rated { algorithm, rate } in &certified.rates {
        table.add_row(vec![
            with_parameters(algorithm),
            factor(rate.per_data_step, rate.uncertainty),
            factor(rate.per_iteration, rate.uncertainty),
            match rate.iterations_per_digit {
                Some(iterations) => number(iterations),
                None => "never".to_owned(),
            },
        ]);
    }
    table
}

fn observed(certified: &Certification) -> String {
    let Observed {
        distance,
        per_iteration,
        per_iteration_late,
        stopped,
    } = &certified.observed;
    let shown = |factor: &Option<f64>| factor.map_or("–".to_owned(), |x| format!("{x:.4}"));
    let mut text = format!(
        "without noise the farthest party is {} from the optimum at the start and {} after {}: a mean factor of {} an iteration, {} in the second half",
        number(distance[0]),
        number(distance[distance.len() - 1]),
        count(distance.len() - 1, "iteration", "iterations"),
        shown(per_iteration),
        shown(per_iteration_late),
    );
    if let (None, Some(study)) = (&certified.no_rate, certified.rates.first()) {
        let _ = write!(
            text,
            "; in the long run it is {:.4}",
            study.rate.per_iteration
        );
    }
    if let Some(reason) = stopped {
        let _ = write!(text, "; it stopped early: {reason}");
    }
    block("seen", &text)
}

/// How much of the truth the theorem sees, in words.
fn conservative(certified: &Certification) -> Option<String> {
    let least = certified.theorem.least()?;
    let (study, at_least) = (certified.rates.first()?, certified.rates.last()?);
    let (now, then) = (study.rate.per_iteration, at_least.rate.per_iteration);
    let does = |rate: f64| match rate < 1.0 {
        true => format!("contracts by {rate:.4} an iteration"),
        false => format!("expands by {rate:.4} an iteration"),
    };
    let at = match &certified.algorithm {
        Method::RecycledAdmm { damping, .. } => damping.at(1),
        _ => return None,
    };
    Some(match &certified.theorem {
        Verdict::NotMet { .. } => format!(
            "the theorem speaks from γ = {} on. At γ = {} it is silent, and the true map {}. At the γ where it speaks it {}",
            number(least.damping),
            number(at),
            does(now),
            does(then),
        ),
        _ => format!(
            "the theorem speaks from γ = {} on, and at γ = {} the true map {}. At the least γ where it speaks it {}",
            number(least.damping),
            number(at),
            does(now),
            does(then),
        ),
    })
}

fn with_parameters(method: &Method) -> String {
    let name = method.name();
    match method {
        Method::Admm { penalty } => format!("{name}, η = {}", penalty.at(1)),
        Method::RecycledAdmm {
            penalty,
            damping,
            recycle,
        }
        | Method::RecycledDlm {
            penalty,
            damping,
            recycle,
        } => {
            let more = match recycle {
                1 => String::new(),
                _ => format!(", recycle = {recycle}"),
            };
            format!(
                "{name}, η = {}, γ = {}{more}",
                penalty.at(1),
                number(damping.at(1))
            )
        }
        Method::Dlm { penalty, damping } => {
            format!(
                "{name}, η = {}, γ = {}",
                penalty.at(1),
                number(damping.at(1))
            )
        }
        Method::MAdmm { dual_step, .. } | Method::MRecycledAdmm { dual_step, .. } => {
            format!("{name}, θ = {dual_step}")
        }
        Method::Dgd { .. } | Method::Local | Method::Average => name.to_owned(),
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

/// A heading of nine columns and text beside it, broken before the eightieth.
fn block(heading: &str, text: &str) -> String {
    let mut lines = vec![format!("{heading:<9}")];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.chars().count() + word.chars().count() >= 79 {
            lines.push(format!("{:9}{word} ", ""));
        } else {
            line.push_str(word);
            line.push(' ');
        }
    }
    let trimmed: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    trimmed.join("\n")
}
