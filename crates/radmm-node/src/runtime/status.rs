//! The status of a party, for progress, metrics and health.
//!
//! Privacy: it depends on rows only through releases.

use std::fmt::Write;

use radmm::node::StepKind;
use radmm::privacy::Guarantee;

use super::notice::{Notice, Suspicion};
use crate::machine::{Party, PeerState};

/// The status of a party.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// The iteration of its last value.
    pub iteration: u32,
    /// The number of iterations, `T`.
    pub iterations: u32,
    /// The kind of the step that made it.
    pub kind: StepKind,
    /// Whether all iterations are done.
    pub finished: bool,
    /// The total of this study so far.
    pub spent: Guarantee,
    /// The total of all studies on these rows and its limit, for each limit of the site.
    pub site: Vec<(Guarantee, f64)>,
    /// The largest distance between a neighbour's last value and this party's.
    pub consensus: f64,
    /// The states of the neighbours, by name.
    pub peers: Vec<(String, PeerState)>,
    /// Whether the noise protects anybody.
    pub protects: bool,
    /// The suspicions of neighbours since the start of the study.
    pub suspicions: Vec<Suspicion>,
    /// The counts of what happened on the links.
    pub counts: LinkCounts,
}

/// Counts of what happened on the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Links that were established.
    pub connected: u64,
    /// Links that were closed.
    pub disconnected: u64,
    /// Links that ended before the neighbour's greeting.
    pub failed: u64,
    /// Strangers that were rejected.
    pub refused: u64,
    /// Invalid frames of neighbours.
    pub misbehaviours: u64,
}

impl LinkCounts {
    /// Counts a notice.
    pub(super) fn add(&mut self, notice: &Notice) {
        match notice {
            Notice::Connected { .. } => self.connected += 1,
            Notice::Disconnected { .. } => self.disconnected += 1,
            Notice::Refused { more, .. } => self.refused += 1 + more,
            Notice::Misbehaved { .. } => self.misbehaviours += 1,
            _ => {}
        }
    }
}

impl NodeStatus {
    /// Takes the status of a party.
    pub(super) fn new(party: &Party, limits: &[f64], protects: bool, counts: LinkCounts) -> Self {
        let site = party.spent_on_rows();
        Self {
            iteration: party.iteration(),
            iterations: party.iterations(),
            kind: party.node().kind(),
            finished: party.is_finished(),
            spent: party.spent(),
            site: site.into_iter().zip(limits.iter().copied()).collect(),
            consensus: party.consensus(),
            peers: party
                .peers()
                .map(|(name, state)| (name.to_owned(), state))
                .collect(),
            protects,
            suspicions: party.suspicions().to_vec(),
            counts: LinkCounts {
                failed: party.early_ends(),
                ..counts
            },
        }
    }

    /// Renders the status in the text format of Prometheus.
    pub(super) fn metrics(&self) -> String {
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
            "The iteration of the last value that is persisted.",
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
                "Links that were established.",
                self.counts.connected,
            ),
            (
                "links_down_total",
                "Links that were closed.",
                self.counts.disconnected,
            ),
            (
                "links_failed_total",
                "Links that ended before the neighbour's greeting.",
                self.counts.failed,
            ),
            (
                "refused_total",
                "Strangers that were rejected.",
                self.counts.refused,
            ),
            (
                "lies_total",
                "Invalid frames of neighbours.",
                self.counts.misbehaviours,
            ),
            (
                "suspicions_total",
                "Suspicious values of neighbours.",
                self.suspicions.len() as u64,
            ),
        ] {
            metric(name, "counter", help, &plain(count as f64));
        }
        text
    }
}

impl PeerState {
    /// Returns the state as one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Away => "away",
            Self::Awaited => "awaited",
            Self::Received => "heard",
            Self::Disagrees => "disagrees",
            Self::Done => "done",
        }
    }
}
