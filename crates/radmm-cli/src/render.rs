//! What came out, as tables for people.

use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use radmm::node::StepKind;
use radmm::privacy::{Bound, Guarantee};
use radmm::sim::Snapshot;
use radmm_lab::noise_text;
use radmm_lab::report::tables;
use radmm_lab::{Experiment, Outcome, Repetition, caveat};
use radmm_report::TextTable;
use radmm_study::PrivacySection;
use radmm_study::number_format::{count, epsilon, number, percent, thousands};

/// Columns of a line that fits a terminal.
const WIDTH: usize = 60;

/// A line under the header and nothing else.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Everything worth looking at, in lines of eighty columns as far as names allow.
pub(crate) fn outcome(experiment: &Experiment, outcome: &Outcome) -> String {
    let first = &outcome.repetitions[0];
    let study = experiment.study();
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(experiment));
    let _ = writeln!(page, "{}", plain(&tables::comparison(experiment, outcome)));
    for line in tables::legend(experiment, outcome) {
        let _ = writeln!(page, " {line}");
    }
    page.push('\n');
    let _ = writeln!(page, "{}\n", parties(first, study.privacy.bound));
    let _ = writeln!(page, "{}\n", courses(first, outcome.repetitions.len()));
    let _ = writeln!(page, "{}\n", work(experiment, outcome));
    let _ = writeln!(page, "{}", privacy(outcome, &study.privacy));
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

/// The first of the parties, and how many there are beyond.
fn parties(run: &Repetition, bound: Bound) -> String {
    let grid = tables::parties(run, bound);
    let table = plain(&grid);
    match run.nodes.len() - grid.rows.len() {
        0 => table.to_string(),
        more => format!("{table}\n … and {} more, in result.json", thousands(more)),
    }
}

/// The loss over the iterations as lines of bars: of each model on its own rows, and of their mean on everybody's.
fn courses(run: &Repetition, repetitions: usize) -> String {
    let which = match repetitions {
        1 => "",
        _ => "first repetition: ",
    };
    format!(
        "own loss {}\nall rows {}\n         {which}each model on its own rows; the mean model on all",
        course(run, |made| made.loss),
        course(run, |made| made.mean_model.loss)
    )
}

fn course(run: &Repetition, of: fn(&Snapshot) -> f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    // Iteration 0 towers above the rest and would flatten it.
    let losses: Vec<f64> = run.iterations.iter().skip(1).map(of).collect();
    let Some(last) = losses.last() else {
        return "no iteration was made".to_owned();
    };
    let (low, high) = losses
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), &loss| {
            (low.min(loss), high.max(loss))
        });
    let shown = losses.len().min(WIDTH);
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
        number(of(&run.iterations[0])),
        number(low),
        number(high),
        number(*last)
    )
}

fn work(experiment: &Experiment, outcome: &Outcome) -> String {
    let run = &outcome.repetitions[0];
    let residual = outcome
        .repetitions
        .iter()
        .map(|run| run.largest_residual)
        .fold(0.0, f64::max);
    let messages = run.iterations.len() * 2 * experiment.graph().edge_count();
    format!(
        "steps    {}; {}\n         {}; minimisers certified to {:.1e}",
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
        residual
    )
}

fn privacy(outcome: &Outcome, privacy: &PrivacySection) -> String {
    let run = &outcome.repetitions[0];
    let Guarantee {
        epsilon: total,
        delta,
    } = outcome.total();
    let statement = if total.is_finite() {
        format!(
            "ε = {} at δ = {delta}: the total over every message of the run,\n\
             for {}; every ε above is such a total",
            epsilon(total),
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
    let noise = match laws().zip(laws().skip(1)).any(|(one, next)| one != next) {
        true => format!("\neach party has noise of its own: {}", noise_text(laws())),
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

pub(crate) fn plain(grid: &TextTable) -> Table {
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

/// A heading of nine columns and text beside it, broken before the eightieth.
pub(crate) fn block(heading: &str, text: &str) -> String {
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
        let text = block("so", &"word ".repeat(60));
        assert!(text.lines().all(|line| line.chars().count() < 80));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("         word"))
        );
    }
}
