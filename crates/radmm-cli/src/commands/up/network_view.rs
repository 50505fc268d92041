//! The page of all parties: what their logs have told so far, served on a loopback port of its own.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use radmm::graph::NodeId;
use radmm::privacy::Guarantee;
use radmm_lab::StudyBill;
use radmm_node::http::{Access, HttpRequest, HttpResponse, Routes, ServerLimits, serve};
use radmm_node::local_network::LocalNetwork;
use radmm_node::runtime::{PAGE_SCRIPT, PAGE_STYLE, link_file};
use radmm_study::Study;
use serde::Serialize;
use serde_json::Value;

use crate::error::CommandError;

/// The number of messages that are kept.
const MAX_MESSAGES: usize = 200;

/// The view of all parties.
pub(super) struct NetworkView {
    facts: Facts,
    /// The state folders.
    states: Vec<PathBuf>,
    state: Mutex<State>,
}

/// The facts that do not change while the parties run.
#[derive(Serialize)]
struct Facts {
    version: u32,
    study: String,
    study_sha256: String,
    algorithm: &'static str,
    iterations: u32,
    protects: bool,
    delta: f64,
    relation: &'static str,
    /// The largest total of a party when the study is over; `None` if it is infinite.
    planned: Option<f64>,
    /// Pairs of neighbours.
    edges: Vec<(u32, u32)>,
}

#[derive(Default)]
struct State {
    parties: Vec<PartyView>,
    steps: Vec<Step>,
    messages: Vec<Message>,
    over: bool,
}

#[derive(Clone, Serialize)]
struct PartyView {
    name: String,
    rows: usize,
    /// `starting`, `running`, `killed`, `finished` or `ended`.
    state: &'static str,
    iteration: u32,
    /// The link to its own page.
    link: Option<String>,
}

/// An iteration of a party.
#[derive(Clone, Serialize)]
struct Step {
    party: usize,
    iteration: u32,
    kind: String,
    epsilon: Option<f64>,
    consensus: f64,
}

#[derive(Clone, Serialize)]
struct Message {
    party: String,
    warning: bool,
    text: String,
}

/// The answer to a question for everything from a step on.
#[derive(Serialize)]
struct NetworkReport<'a> {
    #[serde(flatten)]
    facts: &'a Facts,
    over: bool,
    parties: &'a [PartyView],
    messages: &'a [Message],
    /// The number of steps so far.
    steps: usize,
    /// The steps from the one that was asked for.
    since: &'a [Step],
}

impl NetworkView {
    /// Returns the view of parties that have not started. `protects` tells whether their noise protects anybody.
    pub(super) fn new(
        study: &Study,
        bill: &StudyBill,
        network: &LocalNetwork,
        protects: bool,
    ) -> Self {
        let graph = study.network.graph();
        let edges = graph.iter().flat_map(|graph| {
            (0..study.network.nodes).flat_map(move |one| {
                let others = graph.neighbours(NodeId(one)).iter().map(|id| id.0);
                others
                    .filter(move |other| one < *other)
                    .map(move |other| (one, other))
            })
        });
        let parties = network.sites.iter().zip(&bill.nodes);
        Self {
            facts: Facts {
                version: 1,
                study: study.name.clone(),
                study_sha256: study.sha256(),
                algorithm: study.algorithm.method.name(),
                iterations: study.algorithm.iterations,
                protects,
                delta: bill.total.delta,
                relation: Guarantee::RELATION,
                planned: Some(bill.total.epsilon).filter(|epsilon| epsilon.is_finite()),
                edges: edges.collect(),
            },
            states: { network.sites.iter() }
                .map(|(_, site)| site.with_file_name("state"))
                .collect(),
            state: Mutex::new(State {
                parties: parties
                    .map(|((name, _), node)| PartyView {
                        name: name.clone(),
                        rows: node.rows,
                        state: "starting",
                        iteration: 0,
                        link: None,
                    })
                    .collect(),
                ..State::default()
            }),
        }
    }

    /// Serves the page; returns the link to it.
    pub(super) fn serve(self: &Arc<Self>) -> Result<String, CommandError> {
        let serving = || {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let access = Access::new(listener.local_addr()?, &[]);
            let access = access.ok_or_else(|| io::Error::other("no randomness"))?;
            let link = access.link();
            let pages = Pages(self.clone());
            serve(listener, ServerLimits::default(), move |request| {
                access.respond(request, &pages)
            })?;
            Ok(link)
        };
        serving().map_err(CommandError::Page)
    }

    /// Takes a line of a party's log.
    pub(super) fn notice(&self, party: usize, notice: &Value) {
        let mut state = self.lock();
        let iteration = notice["iteration"].as_u64().unwrap_or(0) as u32;
        let event = notice["event"].as_str().unwrap_or_default();
        match event {
            "started" => {
                state.parties[party].state = "running";
                state.parties[party].iteration = iteration;
                let link = fs::read_to_string(link_file(&self.states[party])).ok();
                state.parties[party].link = link.map(|link| link.trim_end().to_owned());
            }
            "iterated" => {
                state.parties[party].iteration = iteration;
                state.steps.push(Step {
                    party,
                    iteration,
                    kind: notice["kind"].as_str().unwrap_or_default().to_owned(),
                    epsilon: notice["epsilon"].as_f64(),
                    consensus: notice["consensus"].as_f64().unwrap_or(0.0),
                });
                return;
            }
            "finished" => {
                state.parties[party].state = "finished";
                state.parties[party].iteration = self.facts.iterations;
            }
            _ => {}
        }
        let what = ["reason", "what", "file"]
            .iter()
            .find_map(|key| notice[key].as_str());
        let peer = notice["peer"].as_str().or(notice["address"].as_str());
        let mut text = event.to_owned();
        for part in [peer, what].into_iter().flatten() {
            text += &format!(" {part}");
        }
        let warning = matches!(event, "lied" | "disagrees" | "refused");
        state.message(party, text, warning);
    }

    /// Notes that the process of a party has ended.
    pub(super) fn exited(&self, party: usize, killed: bool) {
        let mut state = self.lock();
        state.parties[party].state = if killed { "killed" } else { "ended" };
        state.parties[party].link = None;
        if killed {
            state.message(party, "was killed; it is started again".to_owned(), true);
        }
    }

    /// Notes that all processes have ended.
    pub(super) fn over(&self) {
        self.lock().over = true;
    }

    /// Returns everything from a step on, as JSON.
    fn report(&self, from: usize) -> Vec<u8> {
        let state = self.lock();
        let report = NetworkReport {
            facts: &self.facts,
            over: state.over,
            parties: &state.parties,
            messages: &state.messages,
            steps: state.steps.len(),
            since: state.steps.get(from..).unwrap_or_default(),
        };
        // Every map has string keys: serialisation cannot fail.
        serde_json::to_vec(&report).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn message(&mut self, party: usize, text: String, warning: bool) {
        if self.messages.len() == MAX_MESSAGES {
            self.messages.remove(0);
        }
        let party = self.parties[party].name.clone();
        self.messages.push(Message {
            party,
            warning,
            text,
        });
    }
}

struct Pages(Arc<NetworkView>);

impl Routes for Pages {
    fn open(&self, _: &HttpRequest) -> Option<HttpResponse> {
        None
    }

    fn guarded(&self, page: &str, request: &HttpRequest) -> Option<HttpResponse> {
        let css = |text| HttpResponse::ok("text/css; charset=utf-8", text);
        let script = |text| HttpResponse::ok("text/javascript; charset=utf-8", text);
        match page {
            "" => Some(HttpResponse::ok(
                "text/html; charset=utf-8",
                include_str!("network.html"),
            )),
            "page.css" => Some(css(PAGE_STYLE)),
            "network.css" => Some(css(include_str!("network.css"))),
            "common.js" => Some(script(PAGE_SCRIPT)),
            "network.js" => Some(script(include_str!("network.js"))),
            "api/network" => {
                let from = request.query("since").and_then(|text| text.parse().ok());
                let report = self.0.report(from.unwrap_or(0));
                Some(HttpResponse::ok("application/json", report))
            }
            _ => None,
        }
    }
}
