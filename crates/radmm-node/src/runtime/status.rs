//! How a party is doing: for progress, metrics and health. Nothing in it depends on rows but through releases.

use std::fmt::Write;

use radmm::account::Guarantee;

use crate::machine::party::{Party, PeerState};
use crate::runtime::notice::Notice;

/// How a party is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// The iteration of its last value.
    pub iteration: u32,
    /// `T`.
    pub iterations: u32,
    /// Whether all iterations are done.
    pub finished: bool,
    /// What this study has spent.
    pub spent: Guarantee,
    /// For each limit of the site: what all studies have spent, and the limit.
    pub site: Vec<(Guarantee, f64)>,
    /// The largest distance of a neighbour's last value from this party's.
    pub consensus: f64,
    /// How the neighbours are doing, by name.
    pub peers: Vec<(String, PeerState)>,
    /// Whether the noise protects anybody.
    pub protects: bool,
    /// What happened so far.
    pub counts: Counts,
}

/// What happened so far, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Links that came up.
    pub connected: u64,
    /// Links that went.
    pub disconnected: u64,
    /// Strangers that were turned away.
    pub refused: u64,
    /// Lies of neighbours.
    pub lies: u64,
}

impl Counts {
    /// Counts what is told.
    pub(crate) fn add(&mut self, notice: &Notice) {
        match notice {
            Notice::Connected { .. } => self.connected += 1,
            Notice::Disconnected { .. } => self.disconnected += 1,
            Notice::Refused { .. } => self.refused += 1,
            Notice::Lied { .. } => self.lies += 1,
            _ => {}
        }
    }
}

impl Status {
    /// Of a party now.
    pub(crate) fn of(party: &Party, limits: &[f64], protects: bool, counts: Counts) -> Self {
        let site = party.spent_on_rows();
        Self {
            iteration: party.iteration(),
            iterations: party.iterations(),
            finished: party.is_finished(),
            spent: party.spent(),
            site: site.into_iter().zip(limits.iter().copied()).collect(),
            consensus: party.consensus(),
            peers: party
                .peers()
                .map(|(name, state)| (name.to_owned(), state))
                .collect(),
            protects,
            counts,
        }
    }

    /// In the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, lines: &[(String, f64)]| {
            let _ = writeln!(
                text,
                "# HELP radmm_{name} {help}\n# TYPE radmm_{name} {kind}"
            );
            for (labels, value) in lines {
                let value = match value {
                    value if value.is_infinite() => "+Inf".to_owned(),
                    value => value.to_string(),
                };
                let _ = writeln!(text, "radmm_{name}{labels} {value}");
            }
        };
        let plain = |value: f64| vec![(String::new(), value)];
        let at = |delta: f64| {
            format!(
                "{{delta=\"{delta:e}\",relation=\"{}\"}}",
                Guarantee::RELATION
            )
        };
        metric(
            "iteration",
            "gauge",
            "The iteration of the last value that is on record.",
            &plain(f64::from(self.iteration)),
        );
        metric(
            "iterations",
            "gauge",
            "The iterations of the study.",
            &plain(f64::from(self.iterations)),
        );
        metric(
            "finished",
            "gauge",
            "1 when all iterations are done.",
            &plain(f64::from(u8::from(self.finished))),
        );
        metric(
            "epsilon_study",
            "gauge",
            "Total privacy loss of this study so far, over all messages.",
            &[(at(self.spent.delta), self.spent.epsilon)],
        );
        let each = |value: fn(&(Guarantee, f64)) -> f64| -> Vec<(String, f64)> {
            let lines = self.site.iter();
            lines.map(|line| (at(line.0.delta), value(line))).collect()
        };
        metric(
            "epsilon_rows",
            "gauge",
            "Total privacy loss of all studies on these rows.",
            &each(|(spent, _)| spent.epsilon),
        );
        metric(
            "epsilon_limit",
            "gauge",
            "The site's limit on it.",
            &each(|(_, limit)| *limit),
        );
        metric(
            "consensus_distance",
            "gauge",
            "The largest distance of a neighbour's model from this party's.",
            &plain(self.consensus),
        );
        let peers: Vec<(String, f64)> = self
            .peers
            .iter()
            .map(|(name, state)| {
                let up = !matches!(state, PeerState::Away | PeerState::Disagrees);
                (format!("{{peer=\"{name}\"}}"), f64::from(u8::from(up)))
            })
            .collect();
        metric(
            "neighbour_connected",
            "gauge",
            "1 while a neighbour is connected or needs nothing more.",
            &peers,
        );
        for (name, help, count) in [
            (
                "links_up_total",
                "Links that came up.",
                self.counts.connected,
            ),
            (
                "links_down_total",
                "Links that went.",
                self.counts.disconnected,
            ),
            (
                "refused_total",
                "Strangers that were turned away.",
                self.counts.refused,
            ),
            ("lies_total", "Lies of neighbours.", self.counts.lies),
        ] {
            metric(name, "counter", help, &plain(count as f64));
        }
        text
    }
}

impl PeerState {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Awaited => "awaited",
            Self::Heard => "heard",
            Self::Disagrees => "disagrees",
            Self::Done => "done",
        }
    }
}
