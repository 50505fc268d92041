//! Real nodes on a bad network compute the same bits as the simulator.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/party_processes.rs"]
mod party_processes;
mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use party_processes::{PartyProcesses, clinic};

/// A linear congruential generator.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A proxy for one direction of an edge: it delays and splits bytes, and cuts connections.
struct Proxy {
    address: SocketAddr,
    state: Arc<ProxyState>,
}

struct ProxyState {
    target: SocketAddr,
    down: AtomicBool,
    cuts: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    fn new(target: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(ProxyState {
            target,
            down: AtomicBool::new(false),
            cuts: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let accepting = state.clone();
        thread::spawn(move || {
            for (number, caller) in listener.incoming().enumerate() {
                let Ok(caller) = caller else { continue };
                // During an outage, callers are disconnected.
                if !accepting.down.load(Ordering::SeqCst) {
                    accepting.connect(caller, seed + 1000 * number as u64);
                }
            }
        });
        Self { address, state }
    }

    /// Cuts all connections, and accepts none until it is restored.
    fn sever(&self) {
        self.state.down.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn restore(&self) {
        self.state.down.store(false, Ordering::SeqCst);
    }
}

impl ProxyState {
    fn connect(self: &Arc<Self>, caller: TcpStream, seed: u64) {
        let Ok(callee) = TcpStream::connect(self.target) else {
            return;
        };
        for stream in [&caller, &callee] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let directions = [
            (caller.try_clone().unwrap(), callee.try_clone().unwrap()),
            (callee, caller),
        ];
        for (direction, (from, to)) in directions.into_iter().enumerate() {
            let state = self.clone();
            thread::spawn(move || state.forward(from, to, Lcg(seed + 500 * direction as u64)));
        }
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream, mut rng: Lcg) {
        // Fewer than the frames of a run, so that every edge is cut.
        let mut left = 12 + rng.below(12);
        let mut buffer = [0; 4096];
        loop {
            let most = 1 + rng.below(buffer.len() as u64) as usize;
            let Ok(got @ 1..) = from.read(&mut buffer[..most]) else {
                break;
            };
            left -= 1;
            if left == 0 {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
            let pause = match rng.below(50) {
                0 => 300,
                _ => rng.below(31),
            };
            thread::sleep(Duration::from_millis(pause));
            let middle = rng.below(got as u64 + 1) as usize;
            let halves = [&buffer[..middle], &buffer[middle..got]];
            if halves.iter().any(|half| to.write_all(half).is_err()) {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

#[test]
fn delays_cuts_and_an_outage_change_no_bit() {
    let mut parties = PartyProcesses::with_limit(&clinic(36), Some(1000.0));
    let mut edges = Vec::new();
    for party in 0..parties.count() {
        let proxies = parties.neighbours(party).map(|neighbour| {
            let seed = 10 * party as u64 + neighbour as u64;
            let proxy = Proxy::new(parties.address(neighbour), seed);
            (neighbour, proxy)
        });
        let addresses = proxies
            .each_ref()
            .map(|(neighbour, proxy)| (*neighbour, proxy.address));
        parties.redirect(party, &addresses);
        edges.extend(proxies.map(|(neighbour, proxy)| (party, neighbour, proxy)));
    }
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
    let cuts: usize = edges
        .iter()
        .map(|(_, _, proxy)| proxy.state.cuts.load(Ordering::SeqCst))
        .sum();
    assert!(
        cuts >= parties.count(),
        "{cuts} cuts: the network was too good"
    );
    parties.assert_end_as_simulated();
}
