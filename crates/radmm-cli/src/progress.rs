//! A bar on stderr, for people who watch.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use radmm::sim::Snapshot;

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
