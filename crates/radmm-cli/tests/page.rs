//! `radmm status` and `radmm page` beside a running node, and the link that they use. A browser is driven in page_in_browser.rs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::fs;
use std::process::Output;

use party_processes::{PartyProcesses, clinic, replace_once};
use radmm_node::http::client::{self, PageLink};
use serde_json::Value;
use support::{radmm, text};

const ALDER: usize = 0;

fn beside(parties: &PartyProcesses, args: &[&str]) -> Output {
    let site = parties.site(ALDER).to_str().unwrap();
    radmm(parties.folder(), &[args, &["--site", site]].concat())
}

#[test]
fn status_and_page_are_shown_beside_a_running_node() {
    let mut parties = PartyProcesses::with_limit(&clinic(6), Some(1000.0));
    let none = beside(&parties, &["status"]);
    assert_eq!(none.status.code(), Some(1));
    let words = text(&none.stderr);
    assert!(
        words.contains("page.token") && words.contains("while it runs"),
        "{words}"
    );

    parties.start(ALDER);
    parties.wait_for_event(ALDER, "started", &[]);
    parties.wait_until("alder waits", |parties| {
        let shown = beside(parties, &["status"]);
        shown.status.success() && text(&shown.stdout).contains("waiting for birch, rowan")
    });
    let shown = beside(&parties, &["status"]);
    let page = text(&shown.stdout);
    for words in [
        "alder, study clinic (",
        "THIS PROTECTS NOBODY",
        "iteration 0 of 6, 0 of 3 data steps",
        "limit 1000, at δ = 1e-4",
        "one row of one party replaced",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    let json = beside(&parties, &["status", "--json"]);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(report["version"], 1);
    assert_eq!(report["health"]["for"][0], "birch");
    assert_eq!(report["neighbours"][1]["name"], "rowan");
    assert_eq!(report["protects"], false);

    let link = beside(&parties, &["page"]);
    assert!(link.status.success());
    let link = PageLink::parse(text(&link.stdout)).unwrap();
    let (code, body) = link.get("").unwrap();
    assert!(code == 200 && body.starts_with("<!doctype html>"));
    let without_token = |page: &str| {
        let path = format!("{}{page}", link.path);
        client::get(link.address, "", &path).unwrap().0
    };
    assert_eq!(without_token(&format!("open?token={}", link.token)), 303);
    assert_eq!(without_token(""), 401);
    let elsewhere = client::get(link.address, &link.token, "/");
    assert_eq!(elsewhere.unwrap().0, 401);

    parties.kill(ALDER);
    for command in ["status", "page"] {
        let gone = beside(&parties, &[command]);
        assert_eq!(gone.status.code(), Some(1));
        let words = text(&gone.stderr);
        assert!(words.contains("no node answers at 127.0.0.1:"), "{words}");
    }
}

#[test]
fn a_site_without_an_address_for_its_page_is_wrong_use() {
    let parties = PartyProcesses::new(&clinic(6));
    let site = fs::read_to_string(parties.site(ALDER)).unwrap();
    let without = replace_once(&site, "metrics = ", "# metrics = ");
    fs::write(parties.site(ALDER), without).unwrap();
    for command in ["status", "page"] {
        let output = beside(&parties, &[command]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("add, for example, metrics = "));
    }
}
