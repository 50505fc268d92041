//! What came out, as tables for people.

use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use radmm::account::{Bound, Guarantee};
use radmm::node::Kind;
use radmm_lab::{CAVEAT, End, Experiment, NodeResult, Outcome, Repetition};

/// More parties than this are in result.json alone.
const PARTIES: usize = 20;
/// Columns of a line that fits a terminal.
const WIDTH: usize = 60;

/// A line under the header and nothing else.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Everything worth looking at.
pub(crate) fn outcome(experiment: &Experiment, outcome: &Outcome) -> String {
    let first = &outcome.repetitions[0];
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", headline(experiment));
    let _ = writeln!(page, "{}\n", comparison(experiment, outcome));
    let _ = writeln!(
        page,
        "{}\n",
        parties(first, experiment.study().privacy.bound)
    );
    let _ = writeln!(page, "{}", course(first));
    let _ = writeln!(page, "{}\n", work(experiment, outcome));
    let _ = writeln!(page, "{}", privacy(first));
    page
}

fn headline(experiment: &Experiment) -> String {
    let (study, table) = (experiment.study(), experiment.table());
    let repetitions = match study.run.repetitions {
        1 => String::new(),
        many => format!(", {many} repetitions"),
    };
    format!(
        "{}: {} with {} parties and {} edges, {} rows of {} ({} dropped), {} iterations{}",
        study.name,
        study.algorithm.method.name(),
        study.network.nodes,
        experiment.graph().edge_count(),
        thousands(table.rows()),
        match table.columns.len() {
            1 => "1 column".to_owned(),
            many => format!("{many} columns"),
        },
        thousands(table.counts.dropped),
        study.algorithm.iterations,
        repetitions,
    )
}

/// The study's algorithm beside training alone, averaging once, and one party with all rows.
fn comparison(experiment: &Experiment, outcome: &Outcome) -> Table {
    let several = outcome.repetitions.len() > 1;
    let loss = if several { "loss (range)" } else { "loss" };
    let mut table = plain(&[
        "",
        loss,
        "right on own rows",
        "right on all rows",
        "consensus",
        &total_header(&outcome.repetitions[0]),
    ]);
    let ends: Vec<End> = outcome.repetitions.iter().map(Repetition::end).collect();
    table.add_row(ends_row(experiment.study().algorithm.method.name(), &ends));
    for other in &outcome.beside {
        let name = match other.name {
            "local" => "each party alone",
            _ => "averaged once",
        };
        if other.ends.is_empty() {
            let none = "not to be had at this ε";
            table.add_row(vec![name, none, "", "", "", ""]);
        } else {
            table.add_row(ends_row(name, &other.ends));
        }
    }
    if let Some(optimum) = &outcome.centralised {
        table.add_row(vec![
            "one party with all rows, no noise".to_owned(),
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
    let total = total_header(run);
    let mut header = vec!["party", "rows", "neighbours", "data steps", &total];
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

/// No ε without its δ.
fn total_header(run: &Repetition) -> String {
    format!("total ε (δ = {})", run.end().last.spent.delta)
}

/// The loss over the iterations as a line of bars.
fn course(run: &Repetition) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    // Iteration 0 towers above the rest and would flatten it.
    let losses: Vec<f64> = run
        .iterations
        .iter()
        .skip(1)
        .map(|made| made.loss)
        .collect();
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
    match losses.last() {
        None => String::new(),
        Some(last) => format!(
            "loss   {bars}  {} at the start, {} to {} from then on, {} at the end",
            number(run.iterations[0].loss),
            number(low),
            number(high),
            number(*last)
        ),
    }
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
        "steps  {} data steps, which cost privacy; {} recycled, which are free; {} messages; largest residual {:.1e}",
        run.count(Kind::Data),
        run.count(Kind::Recycled),
        thousands(messages),
        residual
    )
}

fn privacy(run: &Repetition) -> String {
    let Guarantee {
        epsilon: total,
        delta,
    } = run.end().last.spent;
    let statement = if total.is_finite() {
        format!(
            "ε = {} at δ = {delta}: the total over every message of the run, with {}",
            epsilon(total),
            Guarantee::RELATION
        )
    } else {
        "none: answers were released without noise".to_owned()
    };
    format!("privacy  {statement}\n         {CAVEAT}")
}

fn plain(header: &[&str]) -> Table {
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

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Rounded up, like everything about privacy.
fn epsilon(epsilon: f64) -> String {
    if epsilon.is_finite() {
        format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
    } else {
        "∞".to_owned()
    }
}

fn thousands(number: usize) -> String {
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
