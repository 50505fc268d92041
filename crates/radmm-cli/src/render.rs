//! What came out, as tables for people.

use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use radmm::account::{Bound, Guarantee};
use radmm::node::Kind;
use radmm::private::Mechanism;
use radmm_lab::{End, Experiment, NodeResult, Outcome, Repetition, caveat};

/// More parties than this are in result.json alone.
const PARTIES: usize = 20;
/// Columns of a line that fits a terminal.
const WIDTH: usize = 60;

const LEGEND: &str = " own rows, all rows: the share of them classified rightly; loss: on own rows
 range: over the repetitions; consensus: the largest distance from the mean model";

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
    let _ = writeln!(page, "{}", comparison(experiment, outcome));
    let _ = writeln!(page, "{LEGEND}\n");
    let _ = writeln!(page, "{}\n", parties(first, study.privacy.bound));
    let _ = writeln!(page, "{}\n", course(first, outcome.repetitions.len()));
    let _ = writeln!(page, "{}\n", work(experiment, outcome));
    let _ = writeln!(page, "{}", privacy(first, &study.privacy.mechanism));
    page
}

fn headline(experiment: &Experiment) -> String {
    let (study, table) = (experiment.study(), experiment.table());
    let positive = table.counts.positive as f64 / table.rows() as f64;
    format!(
        "{}: {} with {} and {}, {}{}\n{} of {}, {} positive; {} dropped for a missing field",
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
    )
}

/// The study's algorithm beside training alone, averaging once, and one party with all rows.
fn comparison(experiment: &Experiment, outcome: &Outcome) -> Table {
    let several = outcome.repetitions.len() > 1;
    let loss = if several { "loss (range)" } else { "loss" };
    let mut table = plain(&["", loss, "own rows", "all rows", "consensus", "total ε"]);
    let ends: Vec<End> = outcome.repetitions.iter().map(Repetition::end).collect();
    table.add_row(ends_row(experiment.study().algorithm.method.name(), &ends));
    for other in &outcome.beside {
        let name = match other.name {
            "local" => "each party alone",
            _ => "averaged once",
        };
        if other.ends.is_empty() {
            table.add_row(vec![name, "too dear", "", "", "", ""]);
        } else {
            table.add_row(ends_row(name, &other.ends));
        }
    }
    if let Some(optimum) = &outcome.centralised {
        table.add_row(vec![
            "pooled, no noise".to_owned(),
            number(optimum.loss),
            percent(optimum.accuracy),
            percent(optimum.accuracy),
            "0".to_owned(),
            "∞".to_owned(),
        ]);
    }
    table
}

fn ends_row(name: &str, ends: &[End]) -> Vec<String> {
    let mean = |of: fn(&End) -> f64| ends.iter().map(of).sum::<f64>() / ends.len() as f64;
    let losses = || ends.iter().map(|end| end.last.loss);
    let mut loss = number(mean(|end| end.last.loss));
    if ends.len() > 1 {
        let range = losses().fold(f64::MIN, f64::max) - losses().fold(f64::MAX, f64::min);
        let _ = write!(loss, " ({})", number(range));
    }
    vec![
        name.to_owned(),
        loss,
        percent(mean(|end| end.last.accuracy)),
        percent(mean(|end| end.everywhere.accuracy)),
        number(mean(|end| end.last.consensus)),
        epsilon(ends[0].last.spent.epsilon),
    ]
}

fn parties(run: &Repetition, bound: Bound) -> String {
    // Beside the study's own bound the other one, where it has something to say.
    let (other, of_other): (&str, fn(&NodeResult) -> Option<f64>) = match bound {
        Bound::Tight => ("by the paper's bound", |node| node.epsilon_paper),
        Bound::Paper => ("by the tight bound", |node| Some(node.epsilon_tight)),
    };
    let compared = run.nodes.iter().any(|node| of_other(node).is_some());
    let mut header = vec!["party", "rows", "neighbours", "data steps", "total ε"];
    if compared {
        header.push(other);
    }
    let mut table = plain(&header);
    for node in run.nodes.iter().take(PARTIES) {
        let mut row = vec![
            node.name.clone(),
            thousands(node.rows),
            node.degree.to_string(),
            node.data_steps.to_string(),
            epsilon(node.spent.epsilon),
        ];
        if compared {
            row.push(of_other(node).map_or("–".to_owned(), epsilon));
        }
        table.add_row(row);
    }
    match run.nodes.len().saturating_sub(PARTIES) {
        0 => table.to_string(),
        more => format!("{table}\n … and {} more, in result.json", thousands(more)),
    }
}

/// The loss over the iterations as a line of bars.
fn course(run: &Repetition, repetitions: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    // Iteration 0 towers above the rest and would flatten it.
    let losses: Vec<f64> = run
        .iterations
        .iter()
        .skip(1)
        .map(|made| made.loss)
        .collect();
    let Some(last) = losses.last() else {
        return "loss     no iteration was made".to_owned();
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
    let which = match repetitions {
        1 => "",
        _ => "first repetition: ",
    };
    format!(
        "loss     {bars}\n         {which}{} at the start, then {} to {}, {} at the end",
        number(run.iterations[0].loss),
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
        "steps    {}, which cost privacy; {}, which are free\n         {}; minimisers certified to {:.1e}",
        count(run.count(Kind::Data), "data step", "data steps"),
        count(run.count(Kind::Recycled), "recycled step", "recycled steps"),
        count(messages, "message", "messages"),
        residual
    )
}

fn privacy(run: &Repetition, mechanism: &Mechanism) -> String {
    let Guarantee {
        epsilon: total,
        delta,
    } = run.end().last.spent;
    let statement = if total.is_finite() {
        format!(
            "ε = {} at δ = {delta}: the total over every message of the run,\n\
             for {}; every ε above is such a total",
            epsilon(total),
            Guarantee::RELATION
        )
    } else {
        "none: answers were released without noise".to_owned()
    };
    let text = format!(
        "{statement}\n{}",
        caveat(mechanism)
            .replace("; ", ";\n")
            .replace(", and", ",\nand")
    );
    format!("privacy  {}", text.replace('\n', "\n         "))
}

pub(crate) fn plain(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(header.to_vec());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Four decimals, or powers of ten where these would say nothing or too much.
fn number(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => format!("{x:.4}"),
        _ => format!("{x:.1e}"),
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Rounded up, like everything about privacy.
fn epsilon(epsilon: f64) -> String {
    if epsilon.is_infinite() {
        "∞".to_owned()
    } else if epsilon < 1e6 {
        format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
    } else {
        // A tenth more than two digits can lose.
        format!("{:.1e}", epsilon * 1.05)
    }
}

/// `1 row`, `2,000 rows`.
fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", thousands(number)),
    }
}

pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(
            [0, 999, 1000, 45222, 1234567].map(thousands),
            ["0", "999", "1,000", "45,222", "1,234,567"]
        );
    }

    #[test]
    fn an_epsilon_is_never_shown_smaller_than_it_is() {
        assert_eq!(epsilon(0.12341), "0.1235");
        assert_eq!(epsilon(1e-9), "0.0001");
        assert_eq!(epsilon(f64::INFINITY), "∞");
    }
}
