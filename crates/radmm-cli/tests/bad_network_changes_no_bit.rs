//! Real nodes on a bad network compute the same bits as the simulator.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
#[path = "support/proxy.rs"]
mod proxy;
mod support;

use std::thread;
use std::time::Duration;

use party_processes::{PartyProcesses, clinic};
use proxy::Proxy;

#[test]
fn delays_cuts_and_an_outage_change_no_bit() {
    let mut parties = PartyProcesses::with_limit(&clinic(36), Some(1000.0));
    let edges = proxy::between(&parties, |party, neighbour, address| {
        Proxy::bad(address, 10 * party as u64 + neighbour as u64)
    });
    parties.start_all();
    parties.wait_for(0, "iteration 5", |notice| notice["iteration"] == 5);
    let outage: Vec<&Proxy> = edges
        .iter()
        .filter(|(one, other, _)| [*one, *other] == [0, 1] || [*one, *other] == [1, 0])
        .map(|(_, _, proxy)| proxy)
        .collect();
    assert_eq!(outage.len(), 2);
    outage.iter().for_each(|proxy| proxy.sever());
    thread::sleep(Duration::from_secs(2));
    outage.iter().for_each(|proxy| proxy.restore());
    parties.wait_for_event(0, "finished", &[]);
    let cuts: usize = edges.iter().map(|(_, _, proxy)| proxy.cuts()).sum();
    assert!(
        cuts >= parties.count(),
        "{cuts} cuts: the network was too good"
    );
    parties.assert_end_as_simulated();
}
