//! Proxies between the parties of a study, which cut connections, and delay and split what they forward.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::party_processes::PartyProcesses;

/// A proxy and its edge: the party that dials, and the one that is dialled.
pub type Edge = (usize, usize, Proxy);

/// Puts proxies between the parties on a ring, one for each direction of an edge.
pub fn between(
    parties: &PartyProcesses,
    proxy: impl Fn(usize, usize, SocketAddr) -> Proxy,
) -> Vec<Edge> {
    let mut edges = Vec::new();
    for party in 0..parties.count() {
        let proxies = parties.neighbours(party).map(|neighbour| {
            (
                neighbour,
                proxy(party, neighbour, parties.address(neighbour)),
            )
        });
        let addresses = proxies
            .each_ref()
            .map(|(neighbour, proxy)| (*neighbour, proxy.address));
        parties.redirect(party, &addresses);
        edges.extend(proxies.map(|(neighbour, proxy)| (party, neighbour, proxy)));
    }
    edges
}

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

/// A proxy for one direction of an edge.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<ProxyState>,
}

struct ProxyState {
    target: SocketAddr,
    /// Whether it delays and splits bytes, and cuts connections by itself.
    bad: bool,
    down: AtomicBool,
    cuts: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A proxy that delays and splits bytes, and cuts connections by itself.
    pub fn bad(target: SocketAddr, seed: u64) -> Self {
        Self::new(target, true, seed)
    }

    /// A proxy that forwards everything until it is told to cut its connections.
    pub fn good(target: SocketAddr) -> Self {
        Self::new(target, false, 0)
    }

    fn new(target: SocketAddr, bad: bool, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(ProxyState {
            target,
            bad,
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
    pub fn sever(&self) {
        self.state.down.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn restore(&self) {
        self.state.down.store(false, Ordering::SeqCst);
    }

    /// Returns how many connections it has cut by itself.
    pub fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
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
            if self.bad {
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
            }
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
