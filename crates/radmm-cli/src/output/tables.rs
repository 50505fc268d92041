//! Tables and texts for the terminal.

use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use radmm::node::StepKind;
use radmm::privacy::{Bound, Guarantee};
use radmm::sim::Snapshot;
use radmm_lab::noise_text;
use radmm_lab::report::tables;
use radmm_lab::{Experiment, Outcome, Repetition, caveat};
use radmm_report::TextTable;
use radmm_study::number_format::{self, brief, count, epsilon, number, percent, thousands};
use radmm_study::{Choice, PrivacySection};

/// The number of bars in a line of bars.
const BAR_COUNT: usize = 60;

/// A table style with a line under the header and no other lines.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Formats the result of `radmm run`, in lines of eighty columns as far as names allow.
pub(crate) fn outcome(experiment: &Experiment, outcome: &Outcome) -> String {
    let first = &outcome.repetitions[0];
    let study = experiment.study();
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(experiment));
    let _ = writeln!(page, "{}", table(&tables::comparison(experiment, outcome)));
    for line in tables::legend(experiment, outcome) {
        let _ = writeln!(page, " {line}");
    }
    if let Some(below) = &outcome.below_majority {
        let _ = writeln!(page, "\n{}", paragraph("result", &below.sentence));
    }
    page.push('\n');
    let _ = writeln!(page, "{}\n", parties(first, study.privacy.bound));
    let _ = writeln!(page, "{}\n", loss_courses(first, outcome.repetitions.len()));
    let _ = writeln!(page, "{}\n", work_done(experiment, outcome));
    if let Some(chosen) = chosen(&experiment.instance().choices()) {
        let _ = writeln!(page, "{chosen}\n");
    }
    let _ = writeln!(page, "{}", privacy_statement(outcome, &study.privacy));
    page
}

fn headline(experiment: &Experiment) -> String {
    let (study, table) = (experiment.study(), experiment.table());
    let positive = table.counts.positive as f64 / table.rows() as f64;
    format!(
        "{}: {} with {} and {}, {}{}\n{} of {}, {} positive; {} dropped for a missing field{}",
        study.name,
        study.algorithm.method.name(),
        count(study.network.nodes as usize, "party", "parties"),
        count(experiment.graph().edge_count(), "edge", "edges"),
        count(
            study.algorithm.iterations as usize,
            "iteration",
            "iterations"
        ),
        match study.run.repetitions {
            1 => String::new(),
            many => format!(", {many} repetitions"),
        },
        count(table.rows(), "row", "rows"),
        count(table.columns.len(), "column", "columns"),
        percent(positive),
        thousands(table.counts.dropped),
        match table.counts.held_out {
            0 => String::new(),
            rows => format!(
                "\n{} held out to test on",
                count(rows, "row is", "rows are")
            ),
        },
    )
}

/// Formats the table of the first parties, and the number of those left out.
fn parties(run: &Repetition, bound: Bound) -> String {
    let grid = tables::parties(run, bound);
    let shown = table(&grid);
    match run.nodes.len() - grid.rows.len() {
        0 => shown.to_string(),
        more => format!("{shown}\n … and {} more, in result.json", thousands(more)),
    }
}

/// Draws the loss over the iterations as bars: of each model on its own rows, and of the mean model on all rows.
fn loss_courses(run: &Repetition, repetitions: usize) -> String {
    let repetition = match repetitions {
        1 => "",
        _ => "first repetition: ",
    };
    format!(
        "own loss {}\nall rows {}\n         {repetition}each model on its own rows; the mean model on all",
        loss_course(run, |snapshot| Some(snapshot.loss)),
        loss_course(run, |snapshot| Some(snapshot.mean_model?.loss))
    )
}

fn loss_course(run: &Repetition, loss: fn(&Snapshot) -> Option<f64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let losses: Vec<f64> = run.iterations.iter().filter_map(loss).collect();
    // The loss of iteration 0 is so high that it would flatten the rest.
    let [start, losses @ ..] = losses.as_slice() else {
        return "nothing was measured".to_owned();
    };
    let Some(last) = losses.last() else {
        return "no iteration was completed".to_owned();
    };
    let (low, high) = losses
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), &loss| {
            (low.min(loss), high.max(loss))
        });
    let shown = losses.len().min(BAR_COUNT);
    let bars: String = (0..shown)
        .map(|k| {
            let loss = losses[k * losses.len() / shown];
            let height = if high > low {
                (loss - low) / (high - low)
            } else {
                0.0
            };
            // At most 7, since the height is at most 1.
            BARS[(height * 7.0).round() as usize]
        })
        .collect();
    format!(
        "{bars}\n         {} at the start, then {} to {}, {} at the end",
        number(*start),
        number(low),
        number(high),
        number(*last)
    )
}

fn work_done(experiment: &Experiment, outcome: &Outcome) -> String {
    let run = &outcome.repetitions[0];
    let residual = outcome
        .repetitions
        .iter()
        .map(|run| run.largest_residual)
        .fold(0.0, f64::max);
    let messages = run.iterations.len() * 2 * experiment.graph().edge_count();
    // Gradients are exact, and only minimisers are found to a residual.
    let residual = match residual > 0.0 {
        true => format!("; minimisers certified to {residual:.1e}"),
        false => String::new(),
    };
    format!(
        "steps    {}; {}\n         {}{residual}",
        count(
            run.count(StepKind::Data),
            "data step, which costs privacy",
            "data steps, which cost privacy"
        ),
        count(
            run.count(StepKind::Recycled),
            "recycled step, which is free",
            "recycled steps, which are free"
        ),
        count(messages, "message", "messages"),
    )
}

/// Formats what public rules chose, and why; `None` if the study gives everything itself.
pub(crate) fn chosen(choices: &[Choice]) -> Option<String> {
    let lines = choices.iter().enumerate().map(|(index, choice)| {
        let heading = if index == 0 { "chosen" } else { "" };
        let (key, value) = (choice.key, choice.short_value());
        paragraph(heading, &format!("{key} {value}: {}", choice.reason))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn privacy_statement(outcome: &Outcome, privacy: &PrivacySection) -> String {
    let run = &outcome.repetitions[0];
    let Guarantee {
        epsilon: total,
        delta,
    } = outcome.total();
    let statement = if total.is_finite() {
        format!(
            "ε = {} at δ = {}: the total over every message of the run,\n\
             for {}; every ε above is such a total",
            epsilon(total),
            number_format::delta(delta),
            Guarantee::RELATION
        )
    } else {
        format!(
            "none: answers were released {}",
            privacy
                .unprotected()
                .unwrap_or_default()
                .replace(", ", ",\n")
        )
    };
    let laws = || run.nodes.iter().filter_map(|node| node.law);
    let amounts = || laws().map(|law| brief(law.amount()));
    let noise = match amounts()
        .zip(amounts().skip(1))
        .any(|(one, next)| one != next)
    {
        true => format!("\neach party has its own noise: {}", noise_text(laws())),
        false => String::new(),
    };
    let text = format!(
        "{statement}{noise}\n{}",
        caveat(privacy)
            .replace("; ", ";\n")
            .replace(", and", ",\nand")
    );
    format!("privacy  {}", text.replace('\n', "\n         "))
}

/// Formats a table without caption.
pub(crate) fn grid(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    table(&TextTable {
        caption: String::new(),
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows: rows.into_iter().collect(),
        folded: false,
    })
}

/// Formats a table: the first column aligned left, the others right.
pub(crate) fn table(grid: &TextTable) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(grid.header.clone());
    for row in &grid.rows {
        table.add_row(row.clone());
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Formats a heading of nine columns with the text beside it, broken before the eightieth column.
pub(crate) fn paragraph(heading: &str, text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_before_the_eightieth_column() {
        let text = paragraph("result", &"word ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() < 80));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("         word"))
        );
    }
}
