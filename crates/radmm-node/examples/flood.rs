//! Floods a party with connections of strangers, and measures how long a neighbour at a round trip of 80 ms takes to reconnect meanwhile.
//!
//! `flood [silent | begun] [connections per second] [other | same]`: whether strangers send nothing or begin a TLS handshake, how many
//! they are, and whether they share the neighbour's address.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use radmm::graph::NodeId;
use radmm_node::key::SecretKey;
use radmm_node::machine::LinkEvent;
use radmm_node::transport::{
    EventReceiver, PeerEndpoint, Transport, TransportConfig, TransportError, event_queue,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::{interval, sleep_until};

/// The number of times that the neighbour connects.
const ROUNDS: usize = 20;

/// The longest that it may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The time that bytes between the neighbour and the party take.
const DELAY: Duration = Duration::from_millis(40);

/// How long the flood runs before anything is measured.
const WARM_UP: Duration = Duration::from_secs(2);

/// The number of addresses from which strangers connect, if not from the neighbour's.
const SOURCES: u64 = 8;

/// The beginning of a TLS handshake.
const HANDSHAKE: [u8; 3] = [0x16, 3, 1];

/// The strangers: what they do, and how many there were.
#[derive(Default)]
struct Flood {
    begun: bool,
    same_address: bool,
    rate: u64,
    closed: AtomicU64,
    failed: AtomicU64,
}

impl Flood {
    /// Connects at the rate. Connections stay until the party closes them.
    async fn run(self: Arc<Self>, to: SocketAddr) -> io::Result<()> {
        let start = Instant::now();
        let mut ticks = interval(Duration::from_millis(1));
        let mut connected = 0;
        loop {
            ticks.tick().await;
            while connected < start.elapsed().as_micros() as u64 * self.rate / 1_000_000 {
                connected += 1;
                let (flood, number) = (self.clone(), connected);
                tokio::spawn(async move {
                    let count = match flood.stranger(number, to).await {
                        Ok(()) => &flood.closed,
                        Err(_) => &flood.failed,
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
        }
    }

    async fn stranger(&self, number: u64, to: SocketAddr) -> io::Result<()> {
        let last = match self.same_address {
            true => 1,
            false => 2 + (number % SOURCES) as u8,
        };
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into())?;
        let mut stream = socket.connect(to).await?;
        if self.begun {
            stream.write_all(&HANDSHAKE).await?;
        }
        // It ends when the party closes the connection.
        let _ = stream.read(&mut [0; 64]).await;
        Ok(())
    }
}

/// Relays connections to `to` from a port of its own. Bytes are delayed.
async fn relay(listener: std::net::TcpListener, to: SocketAddr) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (near, _) = listener.accept().await?;
        tokio::spawn(async move {
            let far = TcpStream::connect(to).await?;
            near.set_nodelay(true)?;
            far.set_nodelay(true)?;
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(forward(far_in, near_out));
            forward(near_in, far_out).await;
            io::Result::Ok(())
        });
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Send + Unpin + 'static,
) {
    let (sender, mut pieces) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((due, bytes)) = pieces.recv().await {
            sleep_until(due.into()).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    });
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if sender
            .send((Instant::now() + DELAY, bytes[..count].to_vec()))
            .is_err()
        {
            break;
        }
    }
}

/// The keys of the party and of its neighbour.
struct Pair([Arc<SecretKey>; 2]);

impl Pair {
    fn start(
        &self,
        me: usize,
        address: Option<SocketAddr>,
    ) -> Result<(Transport, EventReceiver), TransportError> {
        let other = 1 - me;
        let config = TransportConfig {
            me: NodeId(me as u32),
            key: self.0[me].clone(),
            listen: address.is_none().then(|| (Ipv4Addr::LOCALHOST, 0).into()),
            neighbours: vec![PeerEndpoint {
                id: NodeId(other as u32),
                key: self.0[other].public(),
                address: address.map(|address| address.to_string()),
            }],
            parties: Vec::new(),
            largest_frame: 100_000,
        };
        let (sender, events) = event_queue();
        Ok((Transport::start(config, sender)?, events))
    }

    /// Returns how long the neighbour takes until it has a frame of the party, and what it complained of.
    fn reconnect(&self, address: SocketAddr) -> Result<(Duration, Vec<String>), TransportError> {
        let mut complaints = Vec::new();
        let start = Instant::now();
        let (transport, mut events) = self.start(1, Some(address))?;
        loop {
            match transport.next_event(&mut events, 2 * LIMIT) {
                Some(LinkEvent::Frame { .. }) | None => break,
                Some(LinkEvent::Unreachable { reason, .. } | LinkEvent::Down { reason, .. }) => {
                    complaints.push(reason);
                }
                Some(_) => {}
            }
        }
        let took = start.elapsed();
        transport.shutdown();
        Ok((took, complaints))
    }
}

/// Runs the party until `over`: it sends a frame on each link.
fn attend(
    transport: Transport,
    mut events: EventReceiver,
    over: Arc<AtomicBool>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut links = Vec::new();
        while !over.load(Ordering::Relaxed) {
            match transport.next_event(&mut events, Duration::from_millis(100)) {
                Some(LinkEvent::Up { link, .. }) => {
                    link.send(b"welcome".to_vec());
                    links.push(link);
                }
                Some(LinkEvent::Down { .. }) => links.clear(),
                _ => {}
            }
        }
        transport.shutdown();
    })
}

/// Runs a task on a thread of its own, as long as the process lives.
fn on_thread(
    task: impl Future<Output = io::Result<()>> + Send + 'static,
) -> JoinHandle<io::Result<()>> {
    thread::spawn(|| {
        Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(task)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |index: usize, default| args.get(index).map_or(default, String::as_str);
    let flood = Arc::new(Flood {
        begun: arg(0, "silent") == "begun",
        rate: arg(1, "3000").parse()?,
        same_address: arg(2, "other") == "same",
        ..Flood::default()
    });
    let pair = Pair([SecretKey::generate()?, SecretKey::generate()?].map(Arc::new));
    let (party, events) = pair.start(0, None)?;
    let address = party.local_address().ok_or("the party does not listen")?;
    let over = Arc::new(AtomicBool::new(false));
    let party = attend(party, events, over.clone());

    let near = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let relayed = near.local_addr()?;
    on_thread(relay(near, address));
    on_thread(flood.clone().run(address));
    thread::sleep(WARM_UP);

    let (start, before) = (Instant::now(), flood.closed.load(Ordering::Relaxed));
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let (took, complaints) = pair.reconnect(relayed)?;
        println!("{:.3} s {}", took.as_secs_f64(), complaints.join("; "));
        times.push(took);
        if took > LIMIT {
            break;
        }
    }
    let closed = flood.closed.load(Ordering::Relaxed) - before;
    let rate = closed as f64 / start.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    party.join().map_err(|_| "the party failed")?;
    times.sort();
    let slowest = times[times.len() - 1];
    println!(
        "{rate:.0} strangers a second were closed, {} could not connect; the neighbour took {:.3} s, at most {:.3} s",
        flood.failed.load(Ordering::Relaxed),
        times[times.len() / 2].as_secs_f64(),
        slowest.as_secs_f64(),
    );
    match slowest < LIMIT {
        true => Ok(()),
        false => Err(format!("the neighbour took longer than {} s", LIMIT.as_secs()).into()),
    }
}
