//! The driver of a running party: feeds it events until its study is over, and tells an observer.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use radmm::graph::Graph;
use radmm_study::Study;
use thiserror::Error;

use super::live_view::{LiveView, Moment};
use super::notice::Notice;
use super::notice_limit::NoticeLimit;
use super::pacer::MonotonicPacer;
use super::page;
use super::signals::{StopSource, on_end_of_input, on_stop_signal};
use super::status::{LinkCounts, NodeStatus};
use crate::machine::{LinkEvent, Party, PartyError, value_frame_length};
use crate::message_widths::MessageWidths;
use crate::setup::{PartySetup, SetupError};
use crate::transport::{
    EventReceiver, EventSender, PeerEndpoint, Transport, TransportConfig, TransportError,
    event_queue,
};

/// The reason why a node failed.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The party cannot start.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The address for metrics is not available.
    #[error("metrics = \"{address}\": {cause}; choose another port, or leave metrics out")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The link to the page cannot be written.
    #[error("{}: {cause}; the page cannot be served without it", path.display())]
    PageLink {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The party cannot continue.
    #[error(transparent)]
    Party(#[from] PartyError),
    /// The results cannot be written.
    #[error("{0}")]
    Results(String),
    /// No handler for signals can be installed.
    #[error("no handler for signals can be installed: {0}")]
    Signals(io::Error),
}

/// The way in which a party ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All iterations are done, and every neighbour has what it needs.
    Complete,
    /// All iterations are done, and the operator stopped the node before every neighbour had what it needs.
    Finished,
    /// The operator stopped the node before its last iteration. It resumes when it is started again.
    Stopped,
}

/// The receiver of a node's reports to its operator.
pub trait Observer {
    /// Takes a line of the log.
    fn notice(&mut self, notice: &Notice);

    /// Takes the current status.
    fn status(&mut self, status: &NodeStatus);

    /// Writes the results of a party that has finished, or what others can check of one that stops before; returns the names of the
    /// files.
    fn results(&mut self, party: &Party) -> Result<Vec<String>, String>;
}

/// How long to linger for a peer that has acknowledged us but may not have received our acknowledgement.
const LINGER_UNCONFIRMED: Duration = Duration::from_secs(60);

/// How long to linger for a peer that has confirmed our acknowledgement but may not know that we received the confirmation.
const LINGER_CONFIRMED: Duration = Duration::from_secs(10);

/// Runs a party until its study is over or the operator stops it.
pub fn run(
    setup: PartySetup,
    stops: StopSource,
    observer: &mut dyn Observer,
) -> Result<Ending, NodeError> {
    let (sender, mut events) = event_queue();
    let stop = |sender: EventSender| move || drop(sender.send(LinkEvent::Stop));
    on_stop_signal(stop(sender.clone())).map_err(NodeError::Signals)?;
    if stops == StopSource::SignalsAndInput {
        on_end_of_input(stop(sender.clone())).map_err(NodeError::Signals)?;
    }
    let store = setup.open_store().map_err(SetupError::from)?;
    let live = match setup.site().metrics {
        Some(address) => Some(page::start(&setup, address)?),
        None => None,
    };
    let config = transport_config(&setup);
    let study = setup.study().name.clone();
    let study_sha256 = setup.study().sha256();
    let name = setup.name().to_owned();
    let protects = setup.protects();
    let tick = setup.tick();
    let (mut party, bill) = setup.open(store)?;
    if let Some(tick) = tick {
        party.set_pacer(Box::new(MonotonicPacer::new(tick)));
    }
    let transport = Transport::start(config, sender)?;
    let limits = bill.limits.iter().map(|limit| limit.epsilon).collect();
    if let Some(live) = &live {
        live.opened(&party, bill);
    }
    let mut driver = Driver {
        limits,
        protects,
        counts: LinkCounts::default(),
        notice_limit: NoticeLimit::default(),
        live,
        observer,
        results_written: false,
        results_error: None,
    };
    driver.notice(&Notice::Started {
        study,
        study_sha256,
        party: name,
        listening: transport.local_address().map(|address| address.to_string()),
        iteration: party.iteration(),
        iterations: party.iterations(),
        protects,
    });
    let mut ended = driver.drive(&mut party, &transport, &mut events);
    let left_out = driver.notice_limit.take_all_counts(Instant::now());
    left_out.iter().for_each(|count| driver.notice(count));
    if let (Ok(_), Some(error)) = (&ended, driver.results_error.take()) {
        ended = Err(NodeError::Results(error));
    }
    if let Some(live) = &driver.live {
        live.stop();
    }
    // Sends the frames that are queued, whatever happened.
    transport.shutdown();
    if let Some(live) = &driver.live {
        live.say_goodbye();
    }
    ended
}

pub(super) fn transport_config(setup: &PartySetup) -> TransportConfig {
    let neighbours = setup.neighbours().map(|(peer, address)| PeerEndpoint {
        id: peer.id,
        key: peer.key,
        address,
    });
    TransportConfig {
        me: setup.me(),
        key: setup.key().clone(),
        listen: setup.site().listen,
        neighbours: neighbours.collect(),
        parties: setup
            .study()
            .parties
            .iter()
            .map(|party| (party.name.clone(), party.key.bytes()))
            .collect(),
        largest_frame: largest_frame(setup.study(), setup.graph()),
    }
}

/// Returns the length of the longest frame that a study needs: its widest message, or a study that differs from it, which may be
/// longer than its own.
fn largest_frame(study: &Study, graph: &Graph) -> usize {
    let widest = MessageWidths::new(study, graph).largest();
    value_frame_length(widest).max(study.canonical().len() + (1 << 16))
}

/// The event loop of a party.
struct Driver<'a> {
    limits: Vec<f64>,
    protects: bool,
    counts: LinkCounts,
    notice_limit: NoticeLimit,
    /// The view that the pages show, if they are served.
    live: Option<Arc<LiveView>>,
    observer: &'a mut dyn Observer,
    results_written: bool,
    results_error: Option<String>,
}

impl Driver<'_> {
    fn drive(
        &mut self,
        party: &mut Party,
        transport: &Transport,
        events: &mut EventReceiver,
    ) -> Result<Ending, NodeError> {
        self.report(party);
        if party.all_acks_confirmed() {
            // The study was over before this start: nobody waits for this party.
            return Ok(Ending::Complete);
        }
        let mut acked: Option<Instant> = None;
        let mut confirmed: Option<Instant> = None;
        let elapsed_since = |is_so: bool, start: &mut Option<Instant>| {
            is_so.then(|| start.get_or_insert_with(Instant::now).elapsed())
        };
        loop {
            if let Some(live) = &self.live {
                live.beat(Instant::now());
            }
            let acked = elapsed_since(party.all_acked(), &mut acked);
            let confirmed = elapsed_since(party.all_acks_confirmed(), &mut confirmed);
            if may_exit(acked, confirmed, party.all_closed()) {
                return Ok(Ending::Complete);
            }
            let event = transport.next_event(events, Duration::from_millis(500));
            let left_out = self.notice_limit.take_counts(Instant::now());
            left_out.iter().for_each(|count| self.notice(count));
            let Some(event) = event else {
                continue;
            };
            let stop = matches!(event, LinkEvent::Stop);
            if let Some(live) = &self.live {
                live.link_event(&event, Moment::now());
            }
            let handled = party.handle(event);
            // Neighbours wait for frames, and nobody waits for the report.
            transport.flush();
            self.report(party);
            let disputed = matches!(
                handled,
                Err(PartyError::Misbehaved { .. }
                    | PartyError::NotCommon { .. }
                    | PartyError::Suspicious(_))
            );
            if stop || disputed {
                // The other parties need this one's transcript to find out who sent a wrong value.
                self.write_results(party);
            }
            handled?;
            if stop {
                return Ok(match party.is_finished() {
                    true => Ending::Finished,
                    false => Ending::Stopped,
                });
            }
        }
    }

    /// Passes notices, status and results on to the observer.
    fn report(&mut self, party: &mut Party) {
        for notice in party.take_notices() {
            self.counts.add(&notice);
            if self.notice_limit.admits(&notice, Instant::now()) {
                self.notice(&notice);
            }
        }
        let status = NodeStatus::new(party, &self.limits, self.protects, self.counts);
        self.observer.status(&status);
        if let Some(live) = &self.live {
            live.update(status, party, Moment::now());
        }
        if party.is_finished() {
            self.write_results(party);
        }
    }

    fn notice(&mut self, notice: &Notice) {
        if let Some(live) = &self.live {
            live.notice(notice, Moment::now());
        }
        self.observer.notice(notice);
    }

    /// Writes the party's files, unless they are written.
    fn write_results(&mut self, party: &Party) {
        if self.results_written {
            return;
        }
        self.results_written = true;
        // Neighbours need this party even if its files cannot be written.
        match self.observer.results(party) {
            Ok(files) => {
                for file in files {
                    self.notice(&Notice::Wrote { file });
                }
            }
            Err(error) => self.results_error = Some(error),
        }
    }
}

/// Returns whether a party may exit, given for how long all neighbours have acknowledged it and confirmed its acknowledgement, and
/// whether all links have closed.
fn may_exit(acked: Option<Duration>, confirmed: Option<Duration>, all_closed: bool) -> bool {
    match (acked, confirmed) {
        (None, _) => false,
        (Some(acked), None) => acked > LINGER_UNCONFIRMED,
        (Some(_), Some(confirmed)) => all_closed || confirmed > LINGER_CONFIRMED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::{World, on, wide_study};
    use crate::runtime::Health;
    use crate::setup::tests::TestSite;
    use radmm::protocol::query::gram_width;

    #[test]
    fn frames_are_as_long_as_the_study_needs_and_no_longer() {
        let limit = |metric: &str| {
            let world = World::of(&on("ring", &wide_study(metric)), 1);
            let columns = world.study.data.schema.width();
            let shortest = world.study.canonical().len() + (1 << 16);
            (largest_frame(&world.study, &world.graph), columns, shortest)
        };
        let (gram, columns, _) = limit("gram");
        assert_eq!(gram, value_frame_length(gram_width(columns)));
        let (plain, _, shortest) = limit("none");
        assert_eq!(plain, shortest);
        assert!(plain < gram);
    }

    #[test]
    fn the_loop_shows_that_it_runs() {
        let site = TestSite::new();
        let (mut party, bill) = site.setup().unwrap().open(site.store()).unwrap();
        let live = Arc::new(LiveView::new(&site.setup().unwrap(), Moment::now()));
        live.opened(&party, bill);
        let (sender, mut events) = event_queue();
        let mut config = transport_config(&site.setup().unwrap());
        config.neighbours.clear();
        let transport = Transport::start(config, sender.clone()).unwrap();
        let mut driver = Driver {
            limits: vec![1.0],
            protects: true,
            counts: LinkCounts::default(),
            notice_limit: NoticeLimit::default(),
            live: Some(live.clone()),
            observer: &mut Silent,
            results_written: false,
            results_error: None,
        };
        assert_eq!(live.health(Moment::now()), Health::Starting);
        assert!(sender.send(LinkEvent::Stop).is_ok());
        let ending = driver.drive(&mut party, &transport, &mut events).unwrap();
        assert_eq!(ending, Ending::Stopped);
        let names = ["birch", "rowan"].map(str::to_owned).to_vec();
        assert_eq!(live.health(Moment::now()), Health::Waiting(names));
        transport.shutdown();
    }

    struct Silent;

    impl Observer for Silent {
        fn notice(&mut self, _: &Notice) {}

        fn status(&mut self, _: &NodeStatus) {}

        fn results(&mut self, _: &Party) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_party_waits_for_acknowledgements_and_lingers_a_limited_time() {
        let now = Some(Duration::ZERO);
        let after = |linger: Duration| Some(linger + Duration::from_millis(1));
        for closed in [false, true] {
            // A neighbour needs something, however long that takes.
            assert!(!may_exit(None, None, closed));
            // All have acknowledged, and one may not have our acknowledgement.
            assert!(!may_exit(now, None, closed));
            assert!(!may_exit(Some(LINGER_UNCONFIRMED), None, closed));
            assert!(may_exit(after(LINGER_UNCONFIRMED), None, closed));
            assert!(may_exit(
                after(LINGER_UNCONFIRMED),
                after(LINGER_CONFIRMED),
                closed
            ));
        }
        // All have confirmed, and one may not know that we received the confirmation.
        assert!(!may_exit(after(LINGER_UNCONFIRMED), now, false));
        assert!(!may_exit(now, Some(LINGER_CONFIRMED), false));
        assert!(may_exit(now, after(LINGER_CONFIRMED), false));
        assert!(may_exit(now, now, true));
    }
}
