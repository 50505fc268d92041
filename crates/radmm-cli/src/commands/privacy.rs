//! `radmm privacy`: the privacy bill of a study, before anything runs.

use std::fmt::Write;

use comfy_table::Table;
use radmm::node::StepKind;
use radmm::privacy::{Guarantee, PrivacyProfile};
use radmm_lab::{IterationCost, NodeBill, Saving, StudyBill};
use radmm_study::number_format::{self, brief, brief_up, count, epsilon, scale, thousands};
use radmm_study::{RowSource, Study};

use crate::args::PrivacyArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::output::tables::{chosen, grid, paragraph};
use crate::output::{files, stderr};

/// The most parties in the table; the JSON has all.
const MOST_PARTIES: usize = 20;

/// The most iterations in the table, including the first and the last.
const MOST_ITERATIONS: usize = 12;

pub(crate) fn run(args: &PrivacyArgs) -> Result<(), CommandError> {
    let overrides = args.sweep.overrides();
    let loaded = load::study(args.study.as_deref(), &overrides, args.work.quiet)?;
    let pool = args.work.thread_pool()?;
    let bill = match rows(args, &loaded.study) {
        None => {
            let experiment = loaded.experiment()?;
            let bill = pool.install(|| experiment.bill());
            bill.map_err(|cause| CommandError::unattainable_budget(loaded.name(), cause))?
        }
        Some(rows) => {
            let bill = pool.install(|| StudyBill::for_rows(&loaded.study, &rows));
            bill.map_err(|cause| CommandError::from_bill(loaded.name(), cause))?
        }
    };
    stderr::warning(bill.noise_warning.as_ref(), args.work.quiet);
    match args.json {
        true => files::print(&bill.to_json()),
        false => files::print(&page(&bill)),
    }
}

/// Returns the numbers of rows that were given, or those that parties with rows of their own declare; `None` if rows are to be
/// counted.
fn rows(args: &PrivacyArgs, study: &Study) -> Option<Vec<usize>> {
    if !args.rows.is_empty() {
        return Some(args.rows.clone());
    }
    declared_rows(study)
}

/// Returns the numbers of rows that parties with rows of their own declare, if all do.
pub(super) fn declared_rows(study: &Study) -> Option<Vec<usize>> {
    let declared = study.parties.iter().map(|party| party.rows);
    match study.data.source {
        RowSource::Parties => declared.collect(),
        _ => None,
    }
}

/// Formats the bill, in lines of eighty columns as far as names allow.
pub(crate) fn page(bill: &StudyBill) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(bill));
    let _ = writeln!(page, "{}\n{}\n", parties(bill), legend(bill));
    if bill.total.epsilon.is_finite() {
        let _ = writeln!(page, "{}\n", course(bill));
    }
    if let Some(saving) = &bill.saving {
        let _ = writeln!(page, "{}\n", paragraph("saved", &saved(bill, saving)));
    }
    if let Some(chosen) = chosen(&bill.choices) {
        let _ = writeln!(page, "{chosen}\n");
    }
    let _ = writeln!(page, "{}", paragraph("privacy", &total(bill)));
    if let Some(profile) = &bill.profile {
        let _ = writeln!(page, "{}", paragraph("other δ", &at_other_deltas(profile)));
        if let Some(mu) = profile.mu {
            let _ = writeln!(page, "{}", paragraph("μ", &gaussian(mu)));
        }
    }
    page
}

fn headline(bill: &StudyBill) -> String {
    format!(
        "{}: {} with {} and {}, {}\n{}; {}\nnoise {}; {}",
        bill.study,
        bill.algorithm,
        count(bill.nodes.len(), "party", "parties"),
        count(bill.edges, "edge", "edges"),
        count(bill.iterations as usize, "iteration", "iterations"),
        count(
            bill.data_steps,
            "data step, which costs privacy",
            "data steps, which cost privacy"
        ),
        count(
            bill.recycled_steps,
            "recycled step, which is free",
            "recycled steps, which are free"
        ),
        bill.noise_text(),
        count(bill.columns, "column", "columns"),
    )
}

/// Formats the table of the first parties, and the number of those left out.
fn parties(bill: &StudyBill) -> String {
    let noise = bill.nodes.first().and_then(|node| node.law);
    let noise = noise.map_or("noise", |law| law.family().symbol());
    let header = [
        "party",
        "rows",
        "neighbours",
        "steps",
        noise,
        "a step",
        "total ε",
        "noise/C",
    ];
    let row = |node: &NodeBill| {
        vec![
            node.name.clone(),
            thousands(node.rows),
            node.degree.to_string(),
            node.data_steps.to_string(),
            node.law
                .map_or("none".to_owned(), |law| brief(law.amount())),
            step_prices(node),
            epsilon(node.total.epsilon),
            brief(node.noise_norm / bill.signal),
        ]
    };
    let table = grid(&header, bill.nodes.iter().take(MOST_PARTIES).map(row));
    match bill.nodes.len().saturating_sub(MOST_PARTIES) {
        0 => table.to_string(),
        more => format!("{table}\n … and {} more, with --json", thousands(more)),
    }
}

/// Formats the privacy loss of a data step: of the first and the last, where they differ.
fn step_prices(node: &NodeBill) -> String {
    let ends = node.steps.first().zip(node.steps.last());
    let Some((first, last)) = ends.map(|(a, b)| (epsilon(a.price), epsilon(b.price))) else {
        return "–".to_owned();
    };
    match first == last {
        true => first,
        false => format!("{first} … {last}"),
    }
}

fn legend(bill: &StudyBill) -> String {
    let adds_up = match bill.total.delta == 0.0 {
        true => "its ε; of the first and the last, where they differ",
        false => "its ε at this δ if it were alone; many cost less than their sum",
    };
    format!(
        " steps: data steps\n \
         a step: {adds_up}\n \
         total ε: over every message of the run\n \
         noise/C: the expected norm of the noise, divided by the largest possible\n \
         norm of a party's gradient, {}",
        brief(bill.signal)
    )
}

/// Formats the total after some iterations.
fn course(bill: &StudyBill) -> Table {
    let last = bill.by_iteration.len() - 1;
    let shown = last.min(MOST_ITERATIONS);
    // Evenly spaced, from 1 to the last.
    let mut times: Vec<usize> = (0..shown)
        .map(|k| match shown {
            1 => last,
            _ => 1 + k * (last - 1) / (shown - 1),
        })
        .collect();
    times.dedup();
    let row = |t: usize| {
        let IterationCost {
            t,
            kind,
            epsilon: spent,
        } = bill.by_iteration[t];
        vec![
            t.to_string(),
            match kind {
                StepKind::Data => "data".to_owned(),
                StepKind::Recycled => "recycled".to_owned(),
                StepKind::Start => "start".to_owned(),
            },
            epsilon(spent),
        ]
    };
    let header = ["iteration", "step", "total ε so far"];
    grid(&header, times.into_iter().map(row))
}

fn saved(bill: &StudyBill, saving: &Saving) -> String {
    let queries = format!(
        "{} queries the rows in every iteration, {} times instead of {}",
        saving.conventional,
        thousands(saving.data_steps),
        thousands(bill.data_steps)
    );
    let cost = match saving.epsilon {
        Some(total) => format!(
            "With the same noise it would cost a total of ε = {} instead of {}",
            epsilon(total),
            epsilon(bill.total.epsilon)
        ),
        None => "The study's bound does not cover it".to_owned(),
    };
    let noise = match saving.noise {
        Some(ends) => format!(
            "for the same total it would need{} times the noise",
            scale("", ends)
        ),
        None => "no noise would keep it within the same total".to_owned(),
    };
    format!("{queries}. {cost}; {noise}")
}

/// Formats the total at several `δ`, the study's own among them.
fn at_other_deltas(profile: &PrivacyProfile) -> String {
    let total = |total: &Guarantee| {
        let delta = number_format::delta(total.delta);
        format!("ε = {} at δ = {delta}", epsilon(total.epsilon))
    };
    let totals: Vec<String> = profile.totals.iter().map(total).collect();
    format!(
        "{}: all of them hold, each a total over every message of the run, the largest of all parties, for {}",
        totals.join(", "),
        Guarantee::RELATION
    )
}

fn gaussian(mu: f64) -> String {
    format!(
        "Gaussian DP μ = {}, rounded up: the total over every message of the run, the largest of all parties, for {}, in exact \
         arithmetic; what rounding adds is in every ε",
        brief_up(mu),
        Guarantee::RELATION
    )
}

fn total(bill: &StudyBill) -> String {
    let Guarantee {
        epsilon: total,
        delta,
    } = bill.total;
    match total.is_finite() {
        true => format!(
            "ε = {} at δ = {}: the total over every message of the run, the largest of all parties, for {}; {}. \
             Nothing has been run yet",
            epsilon(total),
            number_format::delta(delta),
            Guarantee::RELATION,
            bill.composition
        ),
        false => {
            format!(
                "none: answers will be released {}. Nothing has been run yet",
                bill.privacy.unprotected().unwrap_or_default()
            )
        }
    }
}
