//! The processes of a command.

use std::io;
use std::path::{self, Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use radmm_study::RowCommand;

/// How long a command that is told to end may take before it is killed.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The state of a command.
pub(super) enum ProcessState {
    Running,
    /// Stopped by the system, since it reads from the terminal of another process.
    AsksTerminal,
    Ended,
}

/// The process of a command with those that it starts, which end with this value.
pub(super) struct ProcessGroup {
    child: Child,
    status: Option<ExitStatus>,
}

impl ProcessGroup {
    /// Starts a command in a folder; returns its outputs with it.
    pub(super) fn start(
        command: &RowCommand,
        folder: &Path,
    ) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        // Absolute, since the command runs in the folder. The folder of a file without one is empty.
        let folder = path::absolute(Path::new(".").join(folder))?;
        let named = Path::new(&command.program).components().count() > 1;
        let program = match named {
            true => folder.join(&command.program),
            false => PathBuf::from(&command.program),
        };
        let mut process = Command::new(program);
        process
            .args(&command.arguments)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let mut child = process.spawn()?;
        let missing = || io::Error::other("its output cannot be read");
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let group = Self {
            child,
            status: None,
        };
        Ok((group, stdout, stderr))
    }

    /// Ends what is left of the command and of all that it started; returns its status.
    pub(super) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        // As Ctrl-C would: the client of a database cancels its query.
        self.signal(Strength::Interrupt);
        let until = Instant::now() + GRACE_PERIOD;
        while matches!(self.state(), Ok(ProcessState::Running)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        // Before its status is taken: its number is its own until then.
        self.signal(Strength::Kill);
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The signals that end a command.
enum Strength {
    Interrupt,
    Kill,
}

#[cfg(unix)]
impl ProcessGroup {
    /// Returns the state of the command, and leaves its status where it is.
    pub(super) fn state(&mut self) -> io::Result<ProcessState> {
        use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
        if self.status.is_some() {
            return Ok(ProcessState::Ended);
        }
        let changes = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        let options = changes | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let asks = [Signal::TTIN, Signal::TTOU].map(|signal| Some(signal.as_raw()));
        Ok(
            match waitid(WaitId::Pid(Pid::from_child(&self.child)), options)? {
                Some(status) if asks.contains(&status.stopping_signal()) => {
                    ProcessState::AsksTerminal
                }
                Some(status) if !status.stopped() => ProcessState::Ended,
                _ => ProcessState::Running,
            },
        )
    }

    fn signal(&mut self, strength: Strength) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let signal = match strength {
            Strength::Interrupt => Signal::INT,
            Strength::Kill => Signal::KILL,
        };
        // It fails if nobody is left.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    /// Returns the state of the command.
    pub(super) fn state(&mut self) -> io::Result<ProcessState> {
        Ok(match self.child.try_wait()? {
            Some(_) => ProcessState::Ended,
            None => ProcessState::Running,
        })
    }

    fn signal(&mut self, strength: Strength) {
        if let Strength::Kill = strength {
            let _ = self.child.kill();
        }
    }
}
