//! Real nodes on a bad network end with the bits that the simulator computes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod fleet;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fleet::{Fleet, Process};

/// Numbers that look like any.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One direction of an edge: carries bytes late, in pieces, and not for ever.
struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    target: SocketAddr,
    down: AtomicBool,
    cuts: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    fn new(target: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            target,
            down: AtomicBool::new(false),
            cuts: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let accepting = state.clone();
        thread::spawn(move || {
            for (number, caller) in listener.incoming().enumerate() {
                let Ok(caller) = caller else { continue };
                // Who is called in vain is hung up on.
                if !accepting.down.load(Ordering::SeqCst) {
                    accepting.connect(caller, seed + 1000 * number as u64);
                }
            }
        });
        Self { address, state }
    }

    /// Nothing goes through until it is mended.
    fn sever(&self) {
        self.state.down.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        self.state.down.store(false, Ordering::SeqCst);
    }
}

impl State {
    fn connect(self: &Arc<Self>, caller: TcpStream, seed: u64) {
        let Ok(called) = TcpStream::connect(self.target) else {
            return;
        };
        for stream in [&caller, &called] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let ways = [
            (caller.try_clone().unwrap(), called.try_clone().unwrap()),
            (called, caller),
        ];
        for (way, (from, to)) in ways.into_iter().enumerate() {
            let state = self.clone();
            thread::spawn(move || state.carry(from, to, Dice(seed + 500 * way as u64)));
        }
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream, mut dice: Dice) {
        // Fewer than the frames of a run, so that every edge is cut.
        let mut left = 12 + dice.below(12);
        let mut buffer = [0; 4096];
        loop {
            let most = 1 + dice.below(buffer.len() as u64) as usize;
            let Ok(got @ 1..) = from.read(&mut buffer[..most]) else {
                break;
            };
            left -= 1;
            if left == 0 {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
            let pause = match dice.below(50) {
                0 => 300,
                _ => dice.below(31),
            };
            thread::sleep(Duration::from_millis(pause));
            let middle = dice.below(got as u64 + 1) as usize;
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
    let fleet = Fleet::new(36);
    let mut edges = Vec::new();
    for party in 0..fleet.len() {
        let proxy = |neighbour: usize| {
            let seed = 10 * party as u64 + neighbour as u64;
            Proxy::new(fleet.address(neighbour), seed)
        };
        let proxies = fleet.neighbours(party).map(|other| (other, proxy(other)));
        let addresses = proxies
            .each_ref()
            .map(|(other, proxy)| (*other, proxy.address));
        fleet.dials(party, &addresses);
        edges.extend(proxies.map(|(other, proxy)| (party, other, proxy)));
    }
    let processes: Vec<Process> = (0..fleet.len()).map(|party| fleet.start(party)).collect();
    processes[0].says("iteration 5", |line| line["iteration"] == 5);
    let outage: Vec<&Proxy> = edges
        .iter()
        .filter(|(one, other, _)| [*one, *other] == [0, 1] || [*one, *other] == [1, 0])
        .map(|(_, _, proxy)| proxy)
        .collect();
    assert_eq!(outage.len(), 2);
    outage.iter().for_each(|proxy| proxy.sever());
    thread::sleep(Duration::from_secs(2));
    outage.iter().for_each(|proxy| proxy.mend());
    processes[0].says("the last iteration", |line| line["event"] == "finished");
    let cuts: usize = edges
        .iter()
        .map(|(_, _, proxy)| proxy.state.cuts.load(Ordering::SeqCst))
        .sum();
    assert!(cuts >= fleet.len(), "the network was a good one");
    fleet.ends_as_simulated(processes);
}
