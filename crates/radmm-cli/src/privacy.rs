//! `radmm privacy`: what a study will cost, before anything runs.

use std::fmt::Write;

use comfy_table::Table;
use radmm::node::StepKind;
use radmm::privacy::Guarantee;
use radmm::privacy::NoiseDistribution;
use radmm_study::number_format::{brief, count, epsilon, scale, thousands};
use radmm_lab::{IterationCost, NodeBill, Saving, StudyBill};
use radmm_report::TextTable;

use crate::args::PrivacyArgs;
use crate::failure::Failure;
use crate::files;
use crate::message::message;
use crate::prepare;
use crate::render::{block, plain};

/// More parties than this are in the JSON alone.
const PARTIES: usize = 20;

/// As many iterations are shown, the first and the last among them.
const MOMENTS: usize = 12;

pub(crate) fn privacy(typed: &PrivacyArgs) -> Result<(), Failure> {
    let study = prepare::study(typed.study.as_deref(), typed.work.quiet)?;
    let pool = typed.work.pool()?;
    let rows: Vec<usize> = typed.rows.iter().map(|&rows| rows as usize).collect();
    let bill = match rows.is_empty() {
        true => {
            let experiment = study.rows()?;
            let bill = pool.install(|| experiment.bill());
            bill.map_err(|cause| Failure::too_dear(study.name(), cause))?
        }
        false => {
            let bill = pool.install(|| StudyBill::for_rows(study.study(), &rows));
            bill.map_err(|cause| Failure::of_bill(study.name(), cause))?
        }
    };
    if let Some(drowned) = &bill.noise_warning
        && !typed.work.quiet
    {
        message!("warning: {drowned}");
    }
    match typed.json {
        true => files::print(&bill.to_json()),
        false => files::print(&page(&bill)),
    }
}

/// Everything worth looking at, in lines of eighty columns as far as names allow.
fn page(bill: &StudyBill) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(bill));
    let _ = writeln!(page, "{}\n{}\n", parties(bill), legend(bill));
    if bill.total.epsilon.is_finite() {
        let _ = writeln!(page, "{}\n", course(bill));
    }
    if let Some(saving) = &bill.saving {
        let _ = writeln!(page, "{}\n", block("saved", &saved(bill, saving)));
    }
    let _ = writeln!(page, "{}", block("privacy", &total(bill)));
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

/// The first of the parties, and how many there are beyond.
fn parties(bill: &StudyBill) -> String {
    let noise = match bill.nodes.first().and_then(|node| node.law) {
        Some(NoiseDistribution::Gamma { .. }) => "rate",
        Some(NoiseDistribution::Gaussian { .. }) => "σ",
        None => "noise",
    };
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
            match node.law {
                Some(
                    NoiseDistribution::Gamma { rate: amount }
                    | NoiseDistribution::Gaussian { sigma: amount },
                ) => brief(amount),
                None => "none".to_owned(),
            },
            prices(node),
            epsilon(node.total.epsilon),
            brief(node.noise_norm / bill.signal),
        ]
    };
    let grid = TextTable {
        caption: String::new(),
        header: header.map(str::to_owned).into(),
        rows: bill.nodes.iter().take(PARTIES).map(row).collect(),
        folded: false,
    };
    let table = plain(&grid);
    match bill.nodes.len().saturating_sub(PARTIES) {
        0 => table.to_string(),
        more => format!("{table}\n … and {} more, with --json", thousands(more)),
    }
}

/// What data steps cost: the first and the last, where these differ.
fn prices(node: &NodeBill) -> String {
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
        true => "what it costs; the first and the last, where these differ",
        false => "what one would cost alone at this δ; many cost less than their sum",
    };
    format!(
        " steps: data steps\n \
         a step: {adds_up}\n \
         total ε: over every message of the run\n \
         noise/C: the norm of the noise that is to be expected, over the largest that\n \
         the rows' gradient can have, C = {}",
        brief(bill.signal)
    )
}

/// A few moments of the run.
fn course(bill: &StudyBill) -> Table {
    let last = bill.by_iteration.len() - 1;
    let shown = last.min(MOMENTS);
    // From 1 to the last, evenly.
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
    plain(&TextTable {
        caption: String::new(),
        header: ["iteration", "step", "total ε so far"]
            .map(str::to_owned)
            .into(),
        rows: times.into_iter().map(row).collect(),
        folded: false,
    })
}

fn saved(bill: &StudyBill, saving: &Saving) -> String {
    let name = saving.conventional;
    let asks = format!(
        "{name} asks in every iteration, {} times in place of {}",
        thousands(saving.data_steps),
        thousands(bill.data_steps)
    );
    let cost = match saving.epsilon {
        Some(total) => format!(
            "With the same noise it would cost a total of ε = {} in place of {}",
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
    format!("{asks}. {cost}; {noise}")
}

fn total(bill: &StudyBill) -> String {
    let Guarantee {
        epsilon: total,
        delta,
    } = bill.total;
    match total.is_finite() {
        true => format!(
            "ε = {} at δ = {delta}: the total over every message of the run, the largest of the parties', for {}; {}. \
             Nothing has been run yet",
            epsilon(total),
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
