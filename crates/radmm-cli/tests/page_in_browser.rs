//! The pages of nodes and of `radmm up` in a real browser: `make test-page`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/browser.rs"]
mod browser;
#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use browser::{Browser, DESKTOP, PHONE, Window, link_of};
use party_processes::{PartyProcesses, TIMEOUT, clinic, replace_once};
use radmm::graph::NodeId;
use radmm_node::http::client::PageLink;
use radmm_node::machine::LinkEvent;
use radmm_node::transport::{PeerEndpoint, Transport, TransportConfig, event_queue};
use serde_json::Value;

/// How long a server of a test waits for a connection that says nothing.
const IDLE: Duration = Duration::from_millis(200);

const ALDER: usize = 0;
const BIRCH: usize = 1;
const ROWAN: usize = 4;

fn link(parties: &PartyProcesses, party: usize) -> String {
    link_of(&parties.home(party).join("state"))
}

/// Asserts that a page fits into every window, and takes pictures of it.
fn assert_looks(browser: &Browser, name: &str) {
    for window in [DESKTOP, PHONE] {
        for dark in [false, true] {
            browser.resize(Window { dark, ..window });
            browser.assert_fits();
            let scheme = if dark { "dark" } else { "light" };
            browser.picture(&format!("{name}-{}-{scheme}", window.width));
        }
    }
    browser.resize(DESKTOP);
}

#[test]
#[ignore = "needs Chromium: make test-page"]
fn the_page_follows_a_run_in_which_a_neighbour_is_killed_and_comes_back() {
    let mut parties = PartyProcesses::new(&clinic(400));
    parties.start(ALDER);
    let browser = Browser::start();
    browser.resize(DESKTOP);
    browser.open(&link(&parties, ALDER));
    // The token is gone from the address, and scripts do not see the cookie.
    let place = browser.run("return location.pathname + location.search + document.cookie");
    let link = PageLink::parse(&link(&parties, ALDER)).unwrap();
    assert_eq!(place, link.path);
    browser.wait_for("#health", "waiting for birch, rowan");
    browser.wait_for("#banner", "REHEARSAL");
    browser.wait_for("#party", "alder");
    (BIRCH..=ROWAN).for_each(|party| parties.start(party));
    parties.wait_until("alder is at 20", |parties| parties.iteration(ALDER) >= 20);
    parties.kill(BIRCH);
    browser.wait_for("#health", "waiting for birch");
    browser.wait_for("#neighbours .state.away", "away");
    let at = parties.iteration(ALDER);
    browser.wait_for("#headlines", &format!("{at} of 400"));
    browser.wait_for("#headlines", "waiting for birch since");
    browser.wait_for("#messages", "birch is disconnected");
    // The lower party dials, or its link replaces the other.
    browser.wait_for("#neighbours", "dialled by");
    assert!(browser.run("return document.querySelectorAll('#distance .curve').length") == 1);
    assert_looks(&browser, "waiting");
    parties.start(BIRCH);
    // The node waits for the page before it exits.
    browser.wait_for("#lost", "The study is over, and the node has ended.");
    browser.wait_for("#headlines", "400 of 400");
    browser.wait_for("#files", "privacy-statement.json");
    browser.assert_alone();
    assert_looks(&browser, "over");
    parties.assert_end_as_simulated();
}

#[test]
#[ignore = "needs Chromium: make test-page"]
fn the_page_shows_that_the_limit_is_reached() {
    let mut parties = PartyProcesses::with_limit(&clinic(6), Some(100.0));
    // The total under a limit depends on the limit: a few rounds lead to one that is just enough.
    let site = parties.site(ALDER).to_owned();
    let mut limit = 100.0;
    let mut text = fs::read_to_string(&site).unwrap();
    loop {
        let output = parties.command(ALDER).arg("--check").output().unwrap();
        let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
        let after = checked["bill"]["after"][0]["epsilon"].as_f64().unwrap();
        if after >= limit * (1.0 - 1e-7) {
            break;
        }
        let least = after * (1.0 + 1e-9);
        text = text.replace(
            &format!("epsilon = {limit:?}"),
            &format!("epsilon = {least:?}"),
        );
        fs::write(&site, &text).unwrap();
        limit = least;
    }
    parties.start(ALDER);
    let browser = Browser::start();
    browser.open(&link(&parties, ALDER));
    browser.wait_for("#privacy", "The limit does not stop this study");
    (BIRCH..=ROWAN).for_each(|party| parties.start(party));
    browser.wait_for("#privacy", "The limit is reached");
    assert_looks(&browser, "limit");
    parties.wait_all();
}

#[test]
#[ignore = "needs Chromium: make test-page"]
fn the_page_shows_what_is_kept_as_evidence() {
    let mut parties = PartyProcesses::new(&clinic(6));
    parties.start(ALDER);
    let browser = Browser::start();
    browser.open(&link(&parties, ALDER));
    browser.wait_for("#findings", "Nothing was found.");
    // With rowan's key, and no sense.
    let alder = PeerEndpoint {
        id: NodeId(ALDER as u32),
        key: parties.key(ALDER).public(),
        address: Some(parties.address(ALDER).to_string()),
    };
    let config = TransportConfig {
        me: NodeId(ROWAN as u32),
        key: Arc::new(parties.key(ROWAN)),
        listen: None,
        neighbours: vec![alder],
        parties: Vec::new(),
        largest_frame: 1 << 17,
    };
    let (sender, mut events) = event_queue();
    let transport = Transport::start(config, sender).unwrap();
    loop {
        match transport.next_event(&mut events, TIMEOUT) {
            Some(LinkEvent::Up { link, .. }) => assert!(link.send(b"nonsense".to_vec())),
            Some(LinkEvent::Down { .. }) => break,
            Some(_) => {}
            None => panic!("timeout: alder does not close the link"),
        }
    }
    transport.shutdown();
    browser.wait_for("#findings", "evidence: rowan");
    browser.wait_for("#messages", "rowan misbehaves");
    assert_looks(&browser, "evidence");
    // It had no effect.
    (BIRCH..=ROWAN).for_each(|party| parties.start(party));
    parties.assert_end_as_simulated();
}

#[test]
#[ignore = "needs Chromium: make test-page"]
fn the_page_is_shown_to_nobody_without_its_link() {
    let mut parties = PartyProcesses::new(&clinic(6));
    parties.start(ALDER);
    let link = link(&parties, ALDER);
    let PageLink {
        address,
        path,
        token,
    } = PageLink::parse(&link).unwrap();
    let browser = Browser::start();
    let code = "return performance.getEntriesByType('navigation')[0].responseStatus";
    for (path, expected) in [
        ("/", 401),
        (path.as_str(), 401),
        (&format!("/open?token={token}"), 401),
        (&format!("{path}open?token=0"), 403),
    ] {
        browser.open(&format!("http://{address}{path}"));
        assert_eq!(browser.run(code), expected, "{path}");
    }
    // A name that leads here, as an attacker's own name could.
    browser.open(&format!(
        "http://attacker.localhost:{}/health",
        address.port()
    ));
    assert_eq!(browser.run(code), 403);
    browser.open(&link);
    browser.wait_for("#party", "alder");
    // A page on another port, with links here; the browser has the cookie.
    let body = format!(
        "<a id=page href='http://{address}{path}'>page</a><a id=link href='{link}'>link</a><iframe src='http://{address}/health'></iframe>"
    );
    let foreign = OtherServer::start(body).address;
    browser.open(&format!("http://{foreign}/"));
    let asked = format!(
        "return fetch('http://{address}{path}api/status', {{ credentials: 'include' }}).then(() => 'read', () => 'refused')"
    );
    assert_eq!(browser.run(&asked), "refused");
    browser.run("document.getElementById('page').click()");
    browser.wait_for("body", "may not ask");
    assert_eq!(browser.run(code), 403);
    // With the token in it, a link on such a page is as good as one that is typed.
    browser.open(&format!("http://{foreign}/"));
    browser.run("document.getElementById('link').click()");
    browser.wait_for("#party", "alder");
}

#[test]
#[ignore = "needs Chromium: make test-page"]
fn a_server_on_another_port_learns_nothing_of_the_cookie() {
    let mut parties = PartyProcesses::new(&clinic(6));
    parties.start(ALDER);
    let link = link(&parties, ALDER);
    let browser = Browser::start();
    browser.open(&link);
    browser.wait_for("#party", "alder");
    let other = OtherServer::start(
        "<title>other</title><img src='/p/image'><iframe src='/p/'></iframe>".to_owned(),
    );
    let PageLink {
        address,
        path,
        token,
    } = PageLink::parse(&link).unwrap();
    for visited in ["/", "/p", "/p/", "/p/api/status", "/p/0/", "/open"] {
        browser.open(&format!("http://{}{visited}", other.address));
        browser.wait_until("the other server is asked", || {
            other.heads().iter().any(|head| asks_for(head, visited))
        });
    }
    let fetch = "return fetch('/p/fetched', { credentials: 'include' }).then(() => 'read')";
    assert_eq!(browser.run(fetch), "read");
    for head in other.heads() {
        assert!(!head.to_lowercase().contains("\r\ncookie:"), "{head}");
        assert!(!head.contains(&path) && !head.contains(&token), "{head}");
    }
    // It is the place that keeps the cookie back: who knew it would be sent the token.
    browser.open(&format!("http://{}{path}", other.address));
    browser.wait_until("the cookie is sent", || {
        let heads = other.heads();
        heads
            .iter()
            .any(|head| asks_for(head, &path) && head.contains(&token))
    });
    // The page is there as before, and the place of a node that is started again is another one.
    browser.open(&link);
    browser.wait_for("#party", "alder");
    parties.kill(ALDER);
    browser.wait_for("#lost", "The node does not answer");
    let site = fs::read_to_string(parties.site(ALDER)).unwrap();
    let site = replace_once(&site, "127.0.0.1:0", &address.to_string());
    fs::write(parties.site(ALDER), site).unwrap();
    parties.start(ALDER);
    browser.wait_for("#lost", "The node was started again");
    let after = PageLink::parse(&link_of(&parties.home(ALDER).join("state"))).unwrap();
    assert!(after.path != path && after.token != token);
}

#[test]
#[ignore = "needs Chromium: make test-page"]
fn the_page_of_all_parties_plays_the_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), clinic(30)).unwrap();
    let mut up = KilledAtEnd(
        support::command(
            folder.path(),
            &["up", "study.toml", "--dir", "trial", "--page"],
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap(),
    );
    let mut lines = BufReader::new(up.0.stderr.take().unwrap()).lines();
    let shown = lines.find_map(|line| {
        line.unwrap()
            .split_once("http")
            .map(|(_, rest)| rest.to_owned())
    });
    let reader = thread::spawn(move || lines.map_while(Result::ok).count());
    let browser = Browser::start();
    browser.resize(DESKTOP);
    browser.open(&format!("http{}", shown.unwrap()));
    browser.wait_for("#banner", "protects");
    browser.wait_for("#state", "the run is over");
    let parties = browser.run("return document.querySelectorAll('#graph .count').length");
    assert_eq!(parties, 5);
    browser.run("document.getElementById('live').click()");
    browser.wait_for("#headlines", "30 of 30");
    // From the start, slowly.
    browser.run("document.getElementById('speed').value = '0.5'");
    browser.run("document.getElementById('play').click()");
    browser.wait_until("messages move", || {
        browser.run("return document.querySelectorAll('#flying circle').length") == 10
    });
    browser.wait_until("an iteration in the middle is shown", || {
        (1..30).contains(&browser.text("#at").parse().unwrap_or(0))
    });
    browser.run("document.getElementById('play').click()");
    assert_looks(&browser, "network");
    browser.assert_alone();
    let pid = up.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert!(up.0.wait().unwrap().success());
    reader.join().unwrap();
}

/// A server of somebody else's on this host, which answers everything with one page, and keeps what it is asked.
struct OtherServer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl OtherServer {
    fn start(body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = heads.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 8192];
                // A browser also opens connections in advance.
                stream.set_read_timeout(Some(IDLE)).unwrap();
                let count = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..count]).into_owned();
                kept.lock().unwrap().push(head);
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { address, heads }
    }

    /// Returns the heads of all requests so far.
    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Returns whether a head asks for this path.
fn asks_for(head: &str, path: &str) -> bool {
    head.starts_with(&format!("GET {path} HTTP/1.1\r\n"))
}

/// A process that does not outlive its test.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
