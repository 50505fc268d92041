//! The pages of a running node: `/health` and `/metrics` for other programs, and one for its operator.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::driver::NodeError;
use super::live_view::{LiveView, Moment};
use crate::http::{Access, HttpRequest, HttpResponse, Routes, ServerLimits, serve};
use crate::setup::PartySetup;

/// The styles that all pages share.
pub const PAGE_STYLE: &str = include_str!("page/page.css");

/// The script that all pages share.
pub const PAGE_SCRIPT: &str = include_str!("page/common.js");

/// The file in the state folder that holds the link to the page of the running node.
const LINK_FILE: &str = "page.token";

/// The largest file of results that is served, in bytes.
const MAX_FILE: u64 = 1 << 26;

/// Returns the file that holds the link to the page of a node with this state folder. Only its owner can read it.
pub fn link_file(state: &Path) -> PathBuf {
    state.join(LINK_FILE)
}

/// Serves the pages of a node as long as the process lives. The state folder must exist.
pub(super) fn start(setup: &PartySetup, address: SocketAddr) -> Result<Arc<LiveView>, NodeError> {
    let failed = |cause| NodeError::Metrics { address, cause };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    let access = Access::new(local, &setup.site().hosts);
    let access = access.ok_or_else(|| failed(io::Error::other("no randomness")))?;
    let path = link_file(&setup.path(&setup.site().state));
    let written = write_secret(&path, &format!("{}\n", access.link()));
    written.map_err(|cause| NodeError::PageLink { path, cause })?;
    let live = Arc::new(LiveView::new(setup, Moment::now()));
    let pages = Pages(live.clone());
    let limits = ServerLimits::default();
    serve(listener, limits, move |request| {
        access.respond(request, &pages)
    })
    .map_err(failed)?;
    Ok(live)
}

/// Writes a file that only its owner can read, in place of an earlier one.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)?.write_all(text.as_bytes())
}

struct Pages(Arc<LiveView>);

const TEXT: &str = "text/plain; charset=utf-8";

impl Routes for Pages {
    fn open(&self, request: &HttpRequest) -> Option<HttpResponse> {
        match request.path() {
            "/health" => Some(self.health()),
            "/metrics" => Some(match self.0.status() {
                Some(status) => {
                    HttpResponse::ok("text/plain; version=0.0.4; charset=utf-8", status.metrics())
                }
                None => HttpResponse::ok(TEXT, "starting\n").unavailable(),
            }),
            _ => None,
        }
    }

    fn guarded(&self, page: &str, _: &HttpRequest) -> Option<HttpResponse> {
        match page {
            "" => Some(HttpResponse::ok(
                "text/html; charset=utf-8",
                include_str!("page/index.html"),
            )),
            "page.css" => Some(HttpResponse::ok("text/css; charset=utf-8", PAGE_STYLE)),
            "page.js" => Some(HttpResponse::ok(
                "text/javascript; charset=utf-8",
                include_str!("page/page.js"),
            )),
            "common.js" => Some(HttpResponse::ok(
                "text/javascript; charset=utf-8",
                PAGE_SCRIPT,
            )),
            "api/status" => {
                let report = serde_json::to_vec(&self.0.report(Moment::now()));
                Some(HttpResponse::ok("application/json", report.ok()?))
            }
            page => self.result(page.strip_prefix("files/")?),
        }
    }
}

impl Pages {
    /// Returns the health in the first line, and the state of the party in the others.
    fn health(&self) -> HttpResponse {
        let health = self.0.health(Moment::now());
        let mut text = format!("{health}\n");
        if let Some(status) = self.0.status() {
            let peers: Vec<String> = { status.peers.iter() }
                .map(|(name, state)| format!("{name} {}", state.name()))
                .collect();
            text += &format!(
                "iteration {} of {}\nneighbours: {}\n",
                status.iteration,
                status.iterations,
                peers.join(", ")
            );
        }
        let response = HttpResponse::ok(TEXT, text);
        match health.is_good() {
            true => response,
            false => response.unavailable(),
        }
    }

    /// Returns a file of results that this process has written.
    fn result(&self, name: &str) -> Option<HttpResponse> {
        let path = self.0.file(name)?;
        if fs::metadata(&path).ok()?.len() > MAX_FILE {
            let text = format!("{} is too large for this page\n", path.display());
            return Some(HttpResponse::ok(TEXT, text));
        }
        let bytes = fs::read(&path).ok()?;
        let extension = path.extension().and_then(|extension| extension.to_str());
        Some(match extension {
            Some("html") => HttpResponse::ok("text/html; charset=utf-8", bytes).inert(),
            Some("json") => HttpResponse::ok("application/json", bytes),
            _ => HttpResponse::ok(TEXT, bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::http::client::{PageLink, get};
    use crate::machine::Party;
    use crate::runtime::status::LinkCounts;
    use crate::runtime::{Health, NodeStatus, Notice, REPORT_VERSION, StatusReport};
    use crate::setup::tests::TestSite;

    /// A node whose pages are served, and which a test drives.
    struct Served {
        site: TestSite,
        live: Arc<LiveView>,
        link: PageLink,
    }

    impl Served {
        fn new() -> Self {
            let site = TestSite::new();
            drop(site.store());
            let setup = site.setup().unwrap();
            let live = start(&setup, setup.site().metrics.unwrap()).unwrap();
            let link = fs::read_to_string(link_file(&site.state())).unwrap();
            let link = PageLink::parse(&link).unwrap();
            Self { site, live, link }
        }

        fn open(&self) -> Party {
            let (party, bill) = { self.site.setup().unwrap() }
                .open(self.site.store())
                .unwrap();
            self.live.opened(&party, bill);
            self.live.beat(Instant::now());
            self.update(&party);
            party
        }

        fn update(&self, party: &Party) {
            let status = NodeStatus::new(party, &[2.0], true, LinkCounts::default());
            self.live.update(status, party, Moment::now());
        }

        fn get(&self, page: &str) -> (u16, String) {
            self.link.get(page).unwrap()
        }

        /// Reads a page that needs no token.
        fn get_open(&self, path: &str) -> (u16, String) {
            get(self.link.address, "", path).unwrap()
        }

        fn health(&self) -> (u16, String) {
            let (code, text) = self.get_open("/health");
            (code, text.lines().next().unwrap().to_owned())
        }

        fn report(&self) -> StatusReport {
            serde_json::from_str(&self.get("api/status").1).unwrap()
        }
    }

    #[test]
    fn health_tells_whom_a_node_waits_for_and_whether_its_loop_runs() {
        let served = Served::new();
        assert_eq!(served.health(), (503, "starting".to_owned()));
        let mut party = served.open();
        let waiting = (200, "waiting for birch, rowan".to_owned());
        assert_eq!(served.health(), waiting);
        let (_, text) = served.get_open("/health");
        assert!(text.contains("\niteration 0 of 9\n"), "{text}");
        assert!(
            text.contains("\nneighbours: birch away, rowan away\n"),
            "{text}"
        );
        served.site.ask(&mut party);
        served.update(&party);
        assert_eq!(served.health(), (200, "ready".to_owned()));
        // A value that is missing for longer than usual is waited for.
        let mut later = Moment::now();
        later.seconds += 3600;
        let names = ["birch", "rowan"].map(str::to_owned).to_vec();
        assert_eq!(served.live.health(later), Health::Waiting(names));
        // The main loop stands still for longer than a data step on these rows takes.
        let long_ago = Instant::now().checked_sub(Duration::from_secs(62));
        served.live.beat(long_ago.unwrap());
        assert_eq!(served.health(), (503, "stuck".to_owned()));
        served.live.beat(Instant::now());
        assert_eq!(served.health(), (200, "ready".to_owned()));
        served.live.stop();
        assert_eq!(served.health(), (503, "stopped".to_owned()));
    }

    #[test]
    fn metrics_are_served_without_a_token() {
        let served = Served::new();
        let ask = || served.get_open("/metrics");
        assert_eq!(ask(), (503, "starting\n".to_owned()));
        let mut party = served.open();
        served.site.ask(&mut party);
        served.update(&party);
        let (code, text) = ask();
        assert_eq!(code, 200);
        let relation = "relation=\"one row of one party replaced\"";
        for line in [
            "radmm_iteration 1".to_owned(),
            format!("radmm_epsilon_limit{{delta=\"1e-4\",{relation}}} 2"),
            "radmm_neighbour_connected{peer=\"birch\"} 1".to_owned(),
            "radmm_refused_total 0".to_owned(),
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        assert!(
            text.contains("radmm_epsilon_study{delta=\"1e-4\""),
            "{text}"
        );
    }

    #[test]
    fn the_page_its_data_and_results_need_the_token() {
        let served = Served::new();
        let results = served.site.state().join("model.json");
        fs::write(&results, "{}").unwrap();
        let file = results.display().to_string();
        served.live.notice(&Notice::Wrote { file }, Moment::now());
        let path = &served.link.path;
        for page in [
            "",
            "page.css",
            "page.js",
            "common.js",
            "api/status",
            "files/model.json",
        ] {
            assert_eq!(served.get(page).0, 200, "{page}");
            assert_eq!(served.get_open(&format!("{path}{page}")).0, 401, "{page}");
        }
        assert_eq!(served.get("files/model.json").1, "{}");
        // Nothing but results that were written, whatever the name.
        for page in [
            "files/",
            "files/page.token",
            "files/../page.token",
            "files/%2e",
            "x",
        ] {
            assert_eq!(served.get(page).0, 404, "{page}");
        }
    }

    #[test]
    fn the_report_follows_the_party() {
        let served = Served::new();
        let before = served.report();
        assert_eq!(before.version, REPORT_VERSION);
        assert_eq!((before.health, before.privacy), (Health::Starting, None));
        let mut party = served.open();
        served.site.ask(&mut party);
        for notice in party.take_notices() {
            served.live.notice(&notice, Moment::now());
        }
        served.update(&party);
        let report = served.report();
        assert_eq!((report.party.as_str(), report.iteration), ("alder", 1));
        assert_eq!((report.kind.as_str(), report.data_steps.0), ("data", 1));
        assert!(report.protects);
        let privacy = report.privacy.unwrap();
        let spent = party.spent().epsilon;
        assert_eq!(privacy.study.spent, Some(spent));
        assert!(privacy.study.planned.unwrap() > spent);
        assert_eq!(privacy.rows[0].limit, Some(2.0));
        assert!(privacy.rows[0].planned.unwrap() > privacy.rows[0].spent.unwrap());
        assert_eq!(report.distances, [(1, party.consensus())]);
        let names: Vec<&str> = { report.waiting_for.iter() }
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["birch", "rowan"]);
        assert_eq!(report.neighbours[0].state, "awaited");
        let said: Vec<&str> = { report.messages.iter() }
            .map(|one| one.text.as_str())
            .collect();
        assert_eq!(
            said,
            [
                "birch is connected, at iteration 0",
                "rowan is connected, at iteration 0"
            ]
        );
        // A later process remembers the distances.
        drop(party);
        served.open();
        assert_eq!(served.report().distances, report.distances);
    }

    #[test]
    fn misbehaviour_is_in_the_report_and_equal_messages_are_counted() {
        let served = Served::new();
        let peer = || "birch".to_owned();
        let what = "a value without its signature".to_owned();
        served
            .live
            .notice(&Notice::Misbehaved { peer: peer(), what }, Moment::now());
        for _ in 0..3 {
            let reason = "no route".to_owned();
            let notice = Notice::Unreachable {
                peer: peer(),
                reason,
            };
            served.live.notice(&notice, Moment::now());
        }
        let report = served.report();
        assert_eq!(report.evidence[0].what, "a value without its signature");
        let messages: Vec<(bool, u32)> = { report.messages.iter() }
            .map(|message| (message.warning, message.count))
            .collect();
        assert_eq!(messages, [(true, 1), (true, 3)]);
    }

    #[cfg(unix)]
    #[test]
    fn the_link_is_new_at_each_start_and_its_file_is_for_the_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let served = Served::new();
        let path = link_file(&served.site.state());
        // A file that others could read is replaced, and not written into.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::read_to_string(&path).unwrap();
        let setup = served.site.setup().unwrap();
        start(&setup, setup.site().metrics.unwrap()).unwrap();
        let [before, after] = [before, fs::read_to_string(&path).unwrap()]
            .map(|link| PageLink::parse(&link).unwrap());
        assert_ne!(before.token, after.token);
        assert_ne!(before.path, after.path);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn the_page_has_the_colours_of_reports_and_asks_no_other_host() {
        let report = include_str!("../../../radmm-report/src/html/page.css");
        let page = include_str!("page/page.css");
        let roots: Vec<&str> = { report.lines() }
            .filter(|line| line.trim_start().starts_with(":root"))
            .collect();
        assert_eq!(roots.len(), 2);
        for root in roots {
            assert!(page.lines().any(|line| line == root), "{root}");
        }
        let files = [
            include_str!("page/index.html"),
            page,
            include_str!("page/page.js"),
            include_str!("page/common.js"),
        ];
        for file in files {
            // The name of SVG's vocabulary is no address.
            let text = file.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !text.contains("http://") && !text.contains("https://") && !text.contains("style=")
            );
        }
    }
}
