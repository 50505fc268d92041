//! A bar on stderr, for people who watch.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use radmm::sim::Snapshot;
use radmm_node::machine::PeerState;
use radmm_node::runtime::NodeStatus;
use radmm_study::number_format;

use crate::message;

/// Counts iterations over all repetitions, or other steps.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar of that many iterations; it shows only on a terminal.
    pub(crate) fn new(steps: u64, quiet: bool) -> Self {
        Self::counting(steps, "iterations", quiet)
    }

    /// A bar of that many steps of another kind.
    pub(crate) fn counting(steps: u64, what: &str, quiet: bool) -> Self {
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        // A template that does not parse would be a slip of ours; the plain bar does then.
        if let Ok(style) = ProgressStyle::with_template(&format!(
            "{{bar:24.cyan/dim}} {{pos}}/{{len}} {what}, {{eta}} left, {{wide_msg}}",
        )) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self(bar)
    }

    pub(crate) fn step(&self, snapshot: &Snapshot) {
        self.0.inc(1);
        self.0.set_message(format!("loss {:.4}", snapshot.loss));
    }

    /// A step of another kind, and what it was.
    pub(crate) fn named(&self, what: &str) {
        self.0.inc(1);
        self.0.set_message(what.to_owned());
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// How far a node is: its iteration, what it has spent, how far apart the models are, and how its neighbours are doing.
pub(crate) struct Course(ProgressBar);

impl Course {
    /// A bar of that many iterations; it shows only on a terminal.
    pub(crate) fn new(iterations: u64, quiet: bool) -> Self {
        let bar = Progress::counting(iterations, "iterations", quiet).0;
        // Words first: the bar has what they leave of the line.
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar:.cyan/dim}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self(bar)
    }

    /// A line above the bar.
    pub(crate) fn say(&self, line: &str) {
        // On a terminal lines go above the bar; elsewhere there is none.
        match self.0.is_hidden() {
            true => message::line(line),
            false => self.0.println(line),
        }
    }

    pub(crate) fn at(&self, status: &NodeStatus) {
        self.0.set_position(u64::from(status.iteration));
        if self.0.is_hidden() {
            return;
        }
        let mut words = line(status, COLUMNS);
        let left = self.0.eta();
        let left = match left.is_zero() {
            true => String::new(),
            false => format!(", {:#} left", HumanDuration(left)),
        };
        if words.chars().count() + left.chars().count() <= COLUMNS {
            words += &left;
        }
        self.0.set_message(words);
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// A terminal has eighty, and the last one stays free.
const COLUMNS: usize = 79;

/// How a node is doing, what matters first, within so many columns if that can be.
fn line(status: &NodeStatus, columns: usize) -> String {
    let NodeStatus {
        iteration,
        iterations,
        ..
    } = status;
    let mut words = format!(
        "{iteration}/{iterations}, ε {}",
        number_format::epsilon(status.spent.epsilon)
    );
    if let Some((spent, limit)) = status.site.last() {
        words += &format!(
            ", rows {} of {limit}",
            number_format::epsilon(spent.epsilon)
        );
    }
    words += &format!(", apart {:.1e}", status.consensus);
    let room = columns.saturating_sub(words.chars().count() + 2);
    format!("{words}, {}", neighbours(&status.peers, room))
}

/// Those to whom an operator might have to turn come first.
const ORDER: [PeerState; 5] = [
    PeerState::Disagrees,
    PeerState::Away,
    PeerState::Awaited,
    PeerState::Received,
    PeerState::Done,
];

/// How the neighbours are doing: everyone by name; or those whom the others wait for; or how many.
fn neighbours(peers: &[(String, PeerState)], room: usize) -> String {
    let everyone: Vec<String> = peers
        .iter()
        .map(|(name, state)| format!("{name} {}", state.name()))
        .collect();
    let groups: Vec<(&str, Vec<&str>)> = ORDER
        .iter()
        .map(|state| {
            let of = peers.iter().filter(|(_, other)| other == state);
            (state.name(), of.map(|(name, _)| name.as_str()).collect())
        })
        .filter(|(_, names): &(_, Vec<&str>)| !names.is_empty())
        .collect();
    let counted = |(state, names): &(&str, Vec<&str>)| match names.len() == peers.len() {
        true => format!("all {} {state}", names.len()),
        false => format!("{} {state}", names.len()),
    };
    let numbers: Vec<String> = groups.iter().map(counted).collect();
    let mut first = numbers.clone();
    if let ([(state, names), ..], [one, ..]) = (&groups[..], &mut first[..]) {
        *one = format!("{} {state}", names.join(" and "));
    }
    let choices = [everyone, first, numbers].map(|words| words.join(", "));
    let fits = |words: &&String| words.chars().count() <= room;
    choices.iter().find(fits).unwrap_or(&choices[2]).clone()
}

#[cfg(test)]
mod tests {
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
            finished: false,
            spent: guarantee(0.12341),
            site: vec![(guarantee(12.5), 20.0)],
            consensus: 0.00123,
            peers: peers
                .map(|(name, state)| ((*name).into(), state.clone()))
                .collect(),
            protects: true,
            counts: LinkCounts::default(),
        }
    }

    #[test]
    fn the_line_of_a_node_fits_eighty_columns_and_says_what_matters_first() {
        use PeerState::{Awaited, Away, Received};
        let start = "120/2000, ε 0.1235, rows 12.5000 of 20, apart 1.2e-3, ";
        let names = ["alderney", "birchlow", "cedarton", "mapleton"];
        let all = |states: [PeerState; 4]| {
            let peers: Vec<(&str, PeerState)> = names.into_iter().zip(states).collect();
            line(&status(&peers), COLUMNS)
        };
        for (states, said) in [
            ([Received, Received, Received, Received], "all 4 heard"),
            (
                [Received, Away, Received, Received],
                "birchlow away, 3 heard",
            ),
            (
                [Away, Away, Awaited, Received],
                "2 away, 1 awaited, 1 heard",
            ),
            ([Away, Away, Away, Away], "all 4 away"),
        ] {
            let line = all(states);
            assert_eq!(line, format!("{start}{said}"));
        }
        // As long as there is room, everybody is named.
        let few = line(&status(&[("birch", Received), ("rowan", Away)]), COLUMNS);
        assert_eq!(few, format!("{start}birch heard, rowan away"));
        let wide = line(&status(&[("alderney", Received), ("birchlow", Away)]), 200);
        assert_eq!(wide, format!("{start}alderney heard, birchlow away"));
    }
}
