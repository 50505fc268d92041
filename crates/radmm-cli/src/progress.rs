//! A bar on stderr, for people who watch.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use radmm::sim::Snapshot;
use radmm_lab::shown;
use radmm_node::status::Status;

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
        Self(Progress::counting(iterations, "iterations", quiet).0)
    }

    /// A line above the bar.
    pub(crate) fn say(&self, line: &str) {
        // On a terminal lines go above the bar; elsewhere there is none.
        match self.0.is_hidden() {
            true => eprintln!("{line}"),
            false => self.0.println(line),
        }
    }

    pub(crate) fn at(&self, status: &Status) {
        self.0.set_position(u64::from(status.iteration));
        if self.0.is_hidden() {
            return;
        }
        let mut words = format!("ε {}", shown::epsilon(status.spent.epsilon));
        if let Some((spent, limit)) = status.site.last() {
            let of_limit = shown::epsilon(spent.epsilon);
            words += &format!(" (rows: {of_limit} of {limit})");
        }
        words += &format!(", apart {:.1e}", status.consensus);
        for (name, state) in &status.peers {
            words += &format!(", {name} {}", state.name());
        }
        self.0.set_message(words);
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}
