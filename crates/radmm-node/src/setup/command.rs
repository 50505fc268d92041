//! The output of a command that prints a party's rows: a database's client, a converter.
//!
//! The command is run without a shell, in the folder of the site file, with the environment of this process and without input. It has
//! a process group of its own, which does not outlive the reading of its output. The output counts only if the command succeeds:
//! otherwise a reader meets an error in place of the end.
//!
//! Privacy: what a command writes to stderr may quote rows. It is kept for the error, which is for the operator, and nowhere else.

mod messages;
mod process;

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use radmm_study::RowCommand;
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, visible};
use thiserror::Error;

pub use self::messages::LastMessages;
use self::messages::MessageReader;
use self::process::{ProcessGroup, ProcessState};

/// The length of the pieces in which output is read.
const PIECE: usize = 1 << 16;

/// The most pieces that wait to be taken.
const MAX_PIECES: usize = 16;

/// How long to wait for output before the command and the operator are looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The time between two reports of a command that is still being read.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// How long the output of a command that has ended may stay open, while nothing comes.
const OPEN_AFTER_END: Duration = Duration::from_secs(2);

/// The operator's eyes on a command while it prints rows, and the operator's hand.
pub trait ReadingObserver {
    /// Takes note that the command is still being read; called every ten seconds.
    fn still_reading(&self, reading: StillReading);

    /// Returns whether the operator wants the reading to end.
    fn is_cancelled(&self) -> bool;
}

/// The observer that says nothing and waits as long as it takes.
impl ReadingObserver for () {
    fn still_reading(&self, _: StillReading) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The time for which a command has been read, in whole seconds.
// Privacy: this goes into logs. It says nothing of rows but when they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillReading {
    /// The time since its start.
    pub seconds: u64,
    /// The time since it last printed something.
    pub silent: u64,
}

/// The reason why the rows of a command cannot be used.
#[derive(Debug, Error)]
#[error("[data] command: {program} {cause}{messages}")]
pub struct RowCommandError {
    /// The program.
    pub program: String,
    /// The cause.
    pub cause: RowCommandFailure,
    /// The end of what it wrote to stderr.
    pub messages: LastMessages,
}

/// The way in which a command failed.
#[derive(Debug)]
pub enum RowCommandFailure {
    /// It cannot be started.
    Start(io::Error),
    /// It ended with another exit code than 0, or by a signal.
    Status(ExitStatus),
    /// It succeeded and printed nothing.
    PrintedNothing,
    /// It succeeded, and its last line has no end.
    CutLine,
    /// It ended, and what it started keeps its output open.
    KeptOpen,
    /// It was stopped by the system since it asks something on the terminal.
    AsksTerminal,
    /// The operator ended it.
    Cancelled,
    /// The operating system failed.
    System(io::Error),
}

impl fmt::Display for RowCommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(cause) => {
                write!(f, "cannot be started: {cause}; ")?;
                f.write_str(match cause.kind() {
                    io::ErrorKind::NotFound => {
                        "give the program as the first element, by a name that is on the PATH of this process or by a path relative to \
                         the site file, and its arguments as further elements; the interpreter of a script must exist too"
                    }
                    io::ErrorKind::PermissionDenied => {
                        "the user of this process must be allowed to run it (chmod +x), and a service to run programs (docs/database.md)"
                    }
                    _ => "a script begins with a line such as #!/bin/sh",
                })
            }
            Self::Status(status) => {
                match status.code() {
                    Some(code) => write!(f, "failed with exit code {code}")?,
                    None => write!(f, "was ended by {status}")?,
                }
                f.write_str("; none of its rows are used, and nothing was spent")
            }
            Self::PrintedNothing => f.write_str(
                "printed nothing and ended with exit code 0; its first line must name the columns (for psql: format csv, header), \
                 and a pipeline in a shell must fail when a part of it fails (set -o pipefail)",
            ),
            Self::CutLine => f.write_str(
                "ended with exit code 0 in the middle of a line; the rows after it seem to be lost. Let it end every line with a line \
                 break, and fail when a part of it fails (set -o pipefail)",
            ),
            Self::KeptOpen => f.write_str(
                "has ended, and a process that it started keeps its output open; let it wait for that process, or give that process \
                 another output",
            ),
            Self::AsksTerminal => f.write_str(
                "asks something on the terminal, and nobody can answer; put the password where the client looks for it (for psql: the file \
                 of PGPASSFILE), and let it fail without one (--no-password)",
            ),
            Self::Cancelled => f.write_str("was ended before all its rows were read; nothing was spent"),
            Self::System(cause) => write!(f, "cannot be followed: {cause}"),
        }
    }
}

/// The output of a running command. Its last read fails if the command has failed.
pub(super) struct CommandOutput<'a> {
    program: String,
    process: ProcessGroup,
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// The piece that is being read, and how much of it is.
    piece: Vec<u8>,
    taken: usize,
    last_byte: Option<u8>,
    messages: MessageReader,
    observer: &'a dyn ReadingObserver,
    started: Instant,
    last_output: Instant,
    reports: u32,
    at_end: bool,
    failure: Option<RowCommandError>,
}

impl<'a> CommandOutput<'a> {
    /// Starts a command in a folder.
    pub(super) fn start(
        command: &RowCommand,
        folder: &Path,
        observer: &'a dyn ReadingObserver,
    ) -> Result<Self, RowCommandError> {
        let program = visible(&command.program, MAX_FOREIGN_TEXT);
        let (process, mut stdout, stderr) =
            ProcessGroup::start(command, folder).map_err(|cause| RowCommandError {
                program: program.clone(),
                cause: RowCommandFailure::Start(cause),
                messages: LastMessages::default(),
            })?;
        let (sender, pieces) = sync_channel(MAX_PIECES);
        // A thread, because a read waits, and the command and its operator are looked after meanwhile.
        thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = match stdout.read(&mut piece) {
                    Ok(0) => return,
                    Ok(count) => {
                        piece.truncate(count);
                        Ok(piece)
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = read.is_err();
                // The receiver is gone if the rows were found to be wrong.
                if sender.send(read).is_err() || failed {
                    return;
                }
            }
        });
        let now = Instant::now();
        Ok(Self {
            program,
            process,
            pieces,
            piece: Vec::new(),
            taken: 0,
            last_byte: None,
            messages: MessageReader::start(stderr),
            observer,
            started: now,
            last_output: now,
            reports: 0,
            at_end: false,
            failure: None,
        })
    }

    /// Returns the name of the program, in visible characters.
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Returns the failure that a read has met.
    pub(super) fn take_failure(&mut self) -> Option<RowCommandError> {
        self.failure.take()
    }

    /// Waits for the next piece; `None` after the last one of a command that has succeeded.
    fn next_piece(&mut self) -> Result<Option<Vec<u8>>, RowCommandFailure> {
        let mut ended = None;
        loop {
            match self.pieces.recv_timeout(LOOK_EVERY) {
                Ok(piece) => {
                    self.last_output = Instant::now();
                    return piece.map(Some).map_err(RowCommandFailure::System);
                }
                Err(RecvTimeoutError::Disconnected) => return self.finish().map(|()| None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.look()? {
                let since = *ended.get_or_insert_with(Instant::now);
                if since.elapsed() > OPEN_AFTER_END {
                    self.check_status()?;
                    return Err(RowCommandFailure::KeptOpen);
                }
            }
        }
    }

    /// Looks after the command and the operator, and returns whether the command has ended.
    fn look(&mut self) -> Result<bool, RowCommandFailure> {
        if self.observer.is_cancelled() {
            return Err(RowCommandFailure::Cancelled);
        }
        if self.started.elapsed() >= REPORT_EVERY * (self.reports + 1) {
            self.reports += 1;
            self.observer.still_reading(StillReading {
                seconds: self.started.elapsed().as_secs(),
                silent: self.last_output.elapsed().as_secs(),
            });
        }
        match self.process.state().map_err(RowCommandFailure::System)? {
            ProcessState::Running => Ok(false),
            ProcessState::AsksTerminal => Err(RowCommandFailure::AsksTerminal),
            ProcessState::Ended => Ok(true),
        }
    }

    /// Waits until the command has ended, and checks that it has succeeded.
    fn finish(&mut self) -> Result<(), RowCommandFailure> {
        while !self.look()? {
            thread::sleep(LOOK_EVERY / 20);
        }
        self.check_status()?;
        match self.last_byte {
            Some(b'\n') => Ok(()),
            Some(_) => Err(RowCommandFailure::CutLine),
            None => Err(RowCommandFailure::PrintedNothing),
        }
    }

    fn check_status(&mut self) -> Result<(), RowCommandFailure> {
        let status = self.process.end().map_err(RowCommandFailure::System)?;
        match status.success() {
            true => Ok(()),
            false => Err(RowCommandFailure::Status(status)),
        }
    }
}

impl Read for CommandOutput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() && !self.at_end {
            match self.next_piece() {
                Ok(Some(piece)) => {
                    self.last_byte = piece.last().copied();
                    (self.piece, self.taken) = (piece, 0);
                }
                Ok(None) => self.at_end = true,
                Err(cause) => {
                    let _ = self.process.end();
                    self.failure = Some(RowCommandError {
                        program: self.program.clone(),
                        cause,
                        messages: self.messages.take(),
                    });
                    return Err(io::Error::other("the command has failed"));
                }
            }
        }
        let count = (&self.piece[self.taken..]).read(buffer)?;
        self.taken += count;
        Ok(count)
    }
}
