//! The time in which a command prints the rows: what the operator hears meanwhile, and how a signal ends it.

use std::mem;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use radmm_node::runtime::{LogLevel, NodeError, Notice, on_stop_signal};
use radmm_node::setup::{ReadingObserver, SetupError, StillReading};
use radmm_node::utc_time::UtcTime;

use super::{LogLine, json_line, log_level};
use crate::args::{LogFormat, NodeArgs};
use crate::error::CommandError;
use crate::output::stderr;

/// The doings of a node, as a signal finds them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It reads files, or checks them: a signal ends the process.
    Setup,
    /// It reads the rows of a command: a signal ends the command, which ends the process.
    Reading,
    /// A signal has come while it read.
    Cancelled,
    /// It runs, and handles signals itself.
    Running,
}

/// The reading of rows by a node.
pub(super) struct Reading {
    phase: Arc<Mutex<Phase>>,
    format: LogFormat,
    level: LogLevel,
}

impl Reading {
    pub(super) fn new(args: &NodeArgs) -> Self {
        Self {
            phase: Arc::new(Mutex::new(Phase::Setup)),
            format: args.log,
            level: log_level(args),
        }
    }

    /// Makes a signal end a command that is being read, with all that it has started.
    pub(super) fn end_on_signal(&self) -> Result<(), CommandError> {
        let phase = self.phase.clone();
        let first = move || {
            let mut phase = lock(&phase);
            match *phase {
                Phase::Setup => process::exit(130),
                Phase::Reading => *phase = Phase::Cancelled,
                Phase::Cancelled | Phase::Running => {}
            }
        };
        Ok(on_stop_signal(first).map_err(NodeError::Signals)?)
    }

    /// Calls a function that may read a command.
    pub(super) fn during<T>(
        &self,
        read: impl FnOnce(&dyn ReadingObserver) -> Result<T, SetupError>,
    ) -> Result<T, CommandError> {
        *lock(&self.phase) = Phase::Reading;
        let done = read(self);
        let phase = mem::replace(&mut *lock(&self.phase), Phase::Setup);
        if phase == Phase::Cancelled && done.is_ok() {
            // The signal came after the last row.
            process::exit(130);
        }
        Ok(done?)
    }

    /// Leaves all further signals to the party.
    pub(super) fn hand_over(&self) {
        *lock(&self.phase) = Phase::Running;
    }
}

impl ReadingObserver for Reading {
    fn still_reading(&self, reading: StillReading) {
        let notice = Notice::ReadingRows {
            seconds: reading.seconds,
            silent: reading.silent,
        };
        if notice.level() > self.level {
            return;
        }
        let time = UtcTime::now();
        stderr::line(match self.format {
            LogFormat::Text => format!("{time} {notice}"),
            LogFormat::Json => json_line(&LogLine {
                time: time.to_string(),
                level: notice.level(),
                party: None,
                event: notice,
            }),
        });
    }

    fn is_cancelled(&self) -> bool {
        *lock(&self.phase) == Phase::Cancelled
    }
}

fn lock(phase: &Mutex<Phase>) -> MutexGuard<'_, Phase> {
    phase.lock().unwrap_or_else(PoisonError::into_inner)
}
