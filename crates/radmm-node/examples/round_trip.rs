//! Measures the round trip of a frame to a neighbour over TLS on this machine: the cost of one iteration's messages.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use radmm::graph::NodeId;
use radmm_node::key::SecretKey;
use radmm_node::machine::{Link, LinkEvent};
use radmm_node::transport::{EventReceiver, PeerEndpoint, Transport, TransportConfig, event_queue};

const WARM: usize = 500;
const MEASURED: usize = 5000;

/// Nothing takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = [
        Arc::new(SecretKey::generate()?),
        Arc::new(SecretKey::generate()?),
    ];
    let start = |me: u32, address: Option<String>| {
        let other = 1 - me;
        let config = TransportConfig {
            me: NodeId(me),
            key: keys[me as usize].clone(),
            listen: Some(([127, 0, 0, 1], 0).into()),
            neighbours: vec![PeerEndpoint {
                id: NodeId(other),
                key: keys[other as usize].public(),
                address,
            }],
            parties: Vec::new(),
            largest_frame: 100_000,
        };
        let (sender, events) = event_queue();
        Transport::start(config, sender).map(|transport| (transport, events))
    };
    let (there, mut there_events) = start(0, None)?;
    let address = there.local_address().map(|address| address.to_string());
    let (here, mut events) = start(1, address)?;

    let echo = thread::spawn(move || {
        let mut link: Option<Box<dyn Link>> = None;
        while let Some(event) = there.next_event(&mut there_events, PATIENCE) {
            match event {
                LinkEvent::Up { link: up, .. } => link = Some(up),
                LinkEvent::Frame { bytes, .. } => {
                    if !link.as_ref().is_some_and(|link| link.send(bytes)) {
                        break;
                    }
                }
                _ => break,
            }
        }
        there.shutdown();
    });

    let link = loop {
        match here.next_event(&mut events, PATIENCE) {
            Some(LinkEvent::Up { link, .. }) => break link,
            Some(_) => {}
            None => return Err("no link".into()),
        }
    };
    println!(
        "{:>7}  {:>9}  {:>9}  {:>9}",
        "bytes", "median", "90 %", "99 %"
    );
    for size in [1000, 80_000] {
        for _ in 0..WARM {
            round(&here, &*link, &mut events, size)?;
        }
        let mut times = Vec::new();
        for _ in 0..MEASURED {
            times.push(round(&here, &*link, &mut events, size)?);
        }
        times.sort();
        let [median, most, nearly_all] =
            [50, 90, 99].map(|percent| times[MEASURED * percent / 100].as_secs_f64() * 1e6);
        println!("{size:>7}  {median:>6.0} µs  {most:>6.0} µs  {nearly_all:>6.0} µs");
    }
    here.shutdown();
    echo.join().map_err(|_| "the other side failed")?;
    Ok(())
}

fn round(
    transport: &Transport,
    link: &dyn Link,
    events: &mut EventReceiver,
    size: usize,
) -> Result<Duration, String> {
    let frame = vec![7; size];
    let start = Instant::now();
    if !link.send(frame) {
        return Err("the link is down".into());
    }
    match transport.next_event(events, PATIENCE) {
        Some(LinkEvent::Frame { bytes, .. }) if bytes.len() == size => Ok(start.elapsed()),
        _ => Err("no frame came back".into()),
    }
}
