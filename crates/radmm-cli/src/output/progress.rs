//! Progress bars on stderr.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use radmm::sim::Snapshot;
use radmm_node::machine::PeerState;
use radmm_node::runtime::NodeStatus;
use radmm_study::number_format::{as_typed, epsilon};

use crate::output::stderr;

/// A progress bar over the iterations of all repetitions, or other steps. It shows only on a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar that counts iterations.
    pub(crate) fn new(steps: u64, quiet: bool) -> Self {
        Self::counting(steps, "iterations", quiet)
    }

    /// A bar that counts steps of the kind `unit`.
    pub(crate) fn counting(steps: u64, unit: &str, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        // The template is valid; if it were not, the default style would do.
        if let Ok(style) = ProgressStyle::with_template(&format!(
            "{{bar:24.cyan/dim}} {{pos}}/{{len}} {unit}, {{eta}} left, {{wide_msg}}",
        )) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self(bar)
    }

    /// Counts an iteration, and shows its loss.
    pub(crate) fn step(&self, snapshot: &Snapshot) {
        self.0.inc(1);
        self.0.set_message(format!("loss {:.4}", snapshot.loss));
    }

    /// Counts a step, and shows its name.
    pub(crate) fn named(&self, name: &str) {
        self.0.inc(1);
        self.0.set_message(name.to_owned());
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// The status line of a node, with a bar: iteration, privacy spent, distance between models, state of the neighbours.
pub(crate) struct NodeProgress {
    // Drawing may block, so it is left to the thread that writes messages.
    bar: ProgressBar,
    /// Whether the bar shows.
    shown: bool,
}

impl NodeProgress {
    /// A bar that counts iterations. It shows only on a terminal.
    pub(crate) fn new(iterations: u64, quiet: bool) -> Self {
        let bar = Progress::counting(iterations, "iterations", quiet).0;
        // Text first; the bar fills the rest of the line.
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar:.cyan/dim}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let shown = !bar.is_hidden();
        Self { bar, shown }
    }

    /// Writes a line to stderr, above the bar if it shows.
    pub(crate) fn line(&self, line: String) {
        match self.shown {
            false => stderr::line(line),
            true => {
                let bar = self.bar.clone();
                stderr::later(move || bar.println(line));
            }
        }
    }

    /// Shows a new status.
    pub(crate) fn update(&self, status: &NodeStatus) {
        if self.shown {
            let (bar, status) = (self.bar.clone(), status.clone());
            stderr::display(move || draw(&bar, &status));
        }
    }

    pub(crate) fn done(&self) {
        if self.shown {
            let bar = self.bar.clone();
            stderr::display(move || bar.finish_and_clear());
        }
    }
}

fn draw(bar: &ProgressBar, status: &NodeStatus) {
    bar.set_position(u64::from(status.iteration));
    let mut text = status_line(status, COLUMNS);
    let left = bar.eta();
    let left = match left.is_zero() {
        true => String::new(),
        false => format!(", {:#} left", HumanDuration(left)),
    };
    if text.chars().count() + left.chars().count() <= COLUMNS {
        text += &left;
    }
    bar.set_message(text);
}

/// The columns of a line: those of a terminal, without the last one.
const COLUMNS: usize = 79;

/// Formats the status of a node, the most important first, within `columns` columns if possible.
fn status_line(status: &NodeStatus, columns: usize) -> String {
    let NodeStatus {
        iteration,
        iterations,
        ..
    } = status;
    let mut text = format!(
        "{iteration}/{iterations}, ε {}",
        epsilon(status.spent.epsilon)
    );
    if let Some((spent, limit)) = status.site.last() {
        text += &format!(", rows {} of {}", epsilon(spent.epsilon), as_typed(*limit));
    }
    text += &format!(", apart {:.1e}", status.consensus);
    let room = columns.saturating_sub(text.chars().count() + 2);
    format!("{text}, {}", neighbours(&status.peers, room))
}

/// The states of neighbours, those that may need the operator's attention first.
const BY_URGENCY: [PeerState; 5] = [
    PeerState::Disagrees,
    PeerState::Away,
    PeerState::Awaited,
    PeerState::Received,
    PeerState::Done,
];

/// Formats the states of the neighbours within `room` columns: all by name; or only the most urgent by name; or the first of those that
/// are waited for, by name; or their numbers.
fn neighbours(peers: &[(String, PeerState)], room: usize) -> String {
    let all_named: Vec<String> = peers
        .iter()
        .map(|(name, state)| format!("{name} {}", state.name()))
        .collect();
    let groups: Vec<(&str, Vec<&str>)> = BY_URGENCY
        .iter()
        .map(|state| {
            let members = peers.iter().filter(|(_, other)| other == state);
            let names = members.map(|(name, _)| name.as_str()).collect();
            (state.name(), names)
        })
        .filter(|(_, names): &(_, Vec<&str>)| !names.is_empty())
        .collect();
    let counted = |(state, names): &(&str, Vec<&str>)| match names.len() == peers.len() {
        true => format!("all {} {state}", names.len()),
        false => format!("{} {state}", names.len()),
    };
    let all_counted: Vec<String> = groups.iter().map(counted).collect();
    let mut first_named = all_counted.clone();
    if let ([(state, names), ..], [first, ..]) = (&groups[..], &mut first_named[..]) {
        *first = format!("{} {state}", names.join(" and "));
    }
    let one_named = match groups.first() {
        Some((state, names)) if names.len() > 1 && !matches!(*state, "heard" | "done") => {
            vec![format!("{} and {} more {state}", names[0], names.len() - 1)]
        }
        _ => all_counted.clone(),
    };
    let choices = [all_named, first_named, one_named, all_counted].map(|parts| parts.join(", "));
    let fits = |text: &&String| text.chars().count() <= room;
    choices.iter().find(fits).unwrap_or(&choices[3]).clone()
}

#[cfg(test)]
mod tests {
    use radmm::node::StepKind;
    use radmm::privacy::Guarantee;
    use radmm_node::runtime::LinkCounts;

    use super::*;

    fn status(peers: &[(&str, PeerState)]) -> NodeStatus {
        let peers = peers.iter();
        let guarantee = |epsilon: f64| Guarantee {
            epsilon,
            delta: 1e-5,
        };
        NodeStatus {
            iteration: 120,
            iterations: 2000,
            kind: StepKind::Data,
            finished: false,
            spent: guarantee(0.12341),
            site: vec![(guarantee(12.5), 20.0)],
            consensus: 0.00123,
            peers: peers
                .map(|(name, state)| ((*name).into(), state.clone()))
                .collect(),
            protects: true,
            suspicions: Vec::new(),
            counts: LinkCounts::default(),
        }
    }

    #[test]
    fn the_status_line_fits_eighty_columns_and_shows_the_most_urgent_first() {
        use PeerState::{Awaited, Away, Received};
        let start = "120/2000, ε 0.1235, rows 12.5000 of 20, apart 1.2e-3, ";
        let names = ["alderney", "birchlow", "cedarton", "mapleton"];
        let all = |states: [PeerState; 4]| {
            let peers: Vec<(&str, PeerState)> = names.into_iter().zip(states).collect();
            status_line(&status(&peers), COLUMNS)
        };
        for (states, expected) in [
            ([Received, Received, Received, Received], "all 4 heard"),
            (
                [Received, Away, Received, Received],
                "birchlow away, 3 heard",
            ),
            ([Away, Away, Awaited, Received], "alderney and 1 more away"),
            ([Away, Away, Away, Away], "alderney and 3 more away"),
        ] {
            assert_eq!(all(states), format!("{start}{expected}"));
        }
        // If there is room, all are named.
        let few = status_line(&status(&[("birch", Received), ("rowan", Away)]), COLUMNS);
        assert_eq!(few, format!("{start}birch heard, rowan away"));
        let wide = status_line(&status(&[("alderney", Received), ("birchlow", Away)]), 200);
        assert_eq!(wide, format!("{start}alderney heard, birchlow away"));
    }
}
