//! A party that runs: its network, its store, and what the operator is told.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::signals::on_signal;
use crate::machine::frame::say_length;
use crate::machine::link::Event;
use crate::machine::party::{Halt, Party};
use crate::runtime::metrics::{self, Shown};
use crate::runtime::notice::Notice;
use crate::runtime::status::{Counts, Status};
use crate::setup::{Premises, PremisesError};
use crate::store::Store;
use crate::transport::{Neighbour, Network, Settings, TransportError};

/// Why a party stopped before its time.
#[derive(Debug, Error)]
pub enum RunError {
    /// It could not begin.
    #[error(transparent)]
    Premises(#[from] PremisesError),
    /// There is no network.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The address for metrics cannot be had.
    #[error("metrics = \"{address}\": {cause}; choose another port, or leave metrics out")]
    Metrics {
        /// Which.
        address: SocketAddr,
        /// What the operating system says.
        cause: io::Error,
    },
    /// It cannot go on.
    #[error(transparent)]
    Halt(#[from] Halt),
    /// The results cannot be written.
    #[error("{0}")]
    Results(String),
    /// Signals cannot be heard.
    #[error("the operating system does not tell when to stop: {0}")]
    Signals(io::Error),
}

/// How a party ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All iterations are done, and every neighbour has what it needs.
    Over,
    /// All iterations are done, and the operator did not wait for the neighbours.
    Finished,
    /// The operator stopped it in the middle. It goes on when it is started again.
    Stopped,
}

/// Who is told.
pub trait Watch {
    /// Something worth a line.
    fn notice(&mut self, notice: &Notice);

    /// How things are now.
    fn status(&mut self, status: &Status);

    /// What is to be done with the results of a party that has finished; the files that came of it.
    fn results(&mut self, party: &Party) -> Result<Vec<String>, String>;
}

/// After the end, so long a neighbour is waited for that has everything, but may not know that nothing of it is missing here.
const FAREWELL: Duration = Duration::from_secs(60);

/// So long a neighbour is waited for that knows this, but may not know that this side knows.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Runs a party until its study is over, or until it is told to stop.
pub fn run(premises: Premises, watch: &mut dyn Watch) -> Result<Ending, RunError> {
    let (sender, receiver) = channel();
    let stop = sender.clone();
    on_signal(move || {
        let _ = stop.send(Event::Stop);
    })
    .map_err(RunError::Signals)?;
    run_with(premises, watch, sender, &receiver)
}

/// The same, with whoever else has something to tell.
pub fn run_with(
    premises: Premises,
    watch: &mut dyn Watch,
    sender: Sender<Event>,
    events: &Receiver<Event>,
) -> Result<Ending, RunError> {
    let store = Store::open(&premises.path(&premises.site().state)).map_err(PremisesError::from)?;
    let shown = Shown::default();
    if let Some(address) = premises.site().metrics {
        metrics::serve(address, shown.clone())
            .map_err(|cause| RunError::Metrics { address, cause })?;
    }
    let settings = settings(&premises)?;
    let study = premises.study().name.clone();
    let study_sha256 = premises.study().sha256();
    let name = premises.name().to_owned();
    let protects = premises.protects();
    let (mut party, bill) = premises.open(store)?;
    let network = Network::start(settings, sender)?;
    let mut desk = Desk {
        limits: bill.limits.iter().map(|limit| limit.epsilon).collect(),
        protects,
        counts: Counts::default(),
        shown,
        watch,
        written: false,
        unwritten: None,
    };
    desk.watch.notice(&Notice::Started {
        study,
        study_sha256,
        party: name,
        listening: network.local_address().map(|address| address.to_string()),
        iteration: party.iteration(),
        iterations: party.iterations(),
        protects,
    });
    let mut ended = desk.attend(&mut party, events);
    if let (Ok(_), Some(why)) = (&ended, desk.unwritten) {
        ended = Err(RunError::Results(why));
    }
    // Frames that were queued leave, whatever happened.
    network.shutdown();
    ended
}

pub(crate) fn settings(premises: &Premises) -> Result<Settings, PremisesError> {
    let study = premises.study().canonical();
    let columns = premises.study().data.schema.width();
    let neighbours = premises.neighbours().map(|(peer, address)| Neighbour {
        id: peer.id,
        key: peer.key,
        address,
    });
    Ok(Settings {
        me: premises.me(),
        key: Arc::new(premises.key()?),
        listen: premises.site().listen,
        neighbours: neighbours.collect(),
        // A study that differs is shown to the other side, and may be longer.
        largest_frame: say_length(columns).max(study.len() + (1 << 16)),
    })
}

/// Where everything comes together.
struct Desk<'a> {
    limits: Vec<f64>,
    protects: bool,
    counts: Counts,
    shown: Shown,
    watch: &'a mut dyn Watch,
    written: bool,
    unwritten: Option<String>,
}

impl Desk<'_> {
    fn attend(&mut self, party: &mut Party, events: &Receiver<Event>) -> Result<Ending, RunError> {
        self.tell(party)?;
        if party.is_settled() {
            // It was before: everybody has gone home.
            return Ok(Ending::Over);
        }
        let mut over: Option<Instant> = None;
        let mut settled: Option<Instant> = None;
        let since = |is_so: bool, when: &mut Option<Instant>| {
            is_so.then(|| when.get_or_insert_with(Instant::now).elapsed())
        };
        loop {
            let over = since(party.is_over(), &mut over);
            let settled = since(party.is_settled(), &mut settled);
            if may_leave(over, settled, party.has_parted()) {
                return Ok(Ending::Over);
            }
            let event = match events.recv_timeout(Duration::from_millis(500)) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(Ending::Stopped),
            };
            let stop = matches!(event, Event::Stop);
            let handled = party.handle(event);
            self.tell(party)?;
            handled?;
            if stop {
                return Ok(match party.is_finished() {
                    true => Ending::Finished,
                    false => Ending::Stopped,
                });
            }
        }
    }

    fn tell(&mut self, party: &mut Party) -> Result<(), RunError> {
        for notice in party.take_notices() {
            self.counts.add(&notice);
            self.watch.notice(&notice);
        }
        let status = Status::of(party, &self.limits, self.protects, self.counts);
        self.watch.status(&status);
        self.shown.set(status);
        if party.is_finished() && !self.written {
            self.written = true;
            // Neighbours need this party whether or not its own files can be written.
            match self.watch.results(party) {
                Ok(files) => {
                    for file in files {
                        self.watch.notice(&Notice::Wrote { file });
                    }
                }
                Err(why) => self.unwritten = Some(why),
            }
        }
        Ok(())
    }
}

/// Whether a party may leave that has been over, and settled, for so long.
fn may_leave(over: Option<Duration>, settled: Option<Duration>, parted: bool) -> bool {
    match (over, settled) {
        (None, _) => false,
        (Some(over), None) => over > FAREWELL,
        (Some(_), Some(settled)) => parted || settled > LAST_WORDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leaves_before_the_end_and_nobody_stays_for_ever() {
        let now = Some(Duration::ZERO);
        let after = |patience: Duration| Some(patience + Duration::from_millis(1));
        for parted in [false, true] {
            // A neighbour needs something, however long that takes.
            assert!(!may_leave(None, None, parted));
            // All have everything, and one may not know that it may leave.
            assert!(!may_leave(now, None, parted));
            assert!(!may_leave(Some(FAREWELL), None, parted));
            assert!(may_leave(after(FAREWELL), None, parted));
            assert!(may_leave(after(FAREWELL), after(LAST_WORDS), parted));
        }
        // All know it, and one may not know that this side does.
        assert!(!may_leave(after(FAREWELL), now, false));
        assert!(!may_leave(now, Some(LAST_WORDS), false));
        assert!(may_leave(now, after(LAST_WORDS), false));
        assert!(may_leave(now, now, true));
    }
}
