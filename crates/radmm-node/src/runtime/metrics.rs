//! Metrics and health over HTTP, on a loopback address.
//!
//! One thread answers one request at a time. The site file accepts no other than a loopback address, which needs no more.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::status::NodeStatus;

/// How long a request may take to arrive, and its answer to leave.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The largest request that is read, in bytes.
const MAX_REQUEST: u64 = 8192;

/// The latest status of a node, shared with the thread that serves it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStatus(Arc<Mutex<Option<NodeStatus>>>);

impl SharedStatus {
    pub(crate) fn set(&self, status: NodeStatus) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    fn get(&self) -> Option<NodeStatus> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Serves metrics on an address as long as the process lives.
pub(crate) fn serve(address: SocketAddr, shared: SharedStatus) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let local = listener.local_addr()?;
    thread::Builder::new()
        .name("radmm-metrics".to_owned())
        .spawn(move || {
            for stream in listener.incoming() {
                // A client that disconnects needs no answer.
                let _ = stream.and_then(|stream| answer(stream, &shared));
            }
        })?;
    Ok(local)
}

fn answer(stream: TcpStream, shared: &SharedStatus) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream.take(MAX_REQUEST));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    // The headers are ignored, but unread bytes would reset the connection before the answer is read.
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let (code, kind, body) = respond(&request, shared.get().as_ref());
    let mut stream = reader.into_inner().into_inner();
    write!(
        stream,
        "HTTP/1.1 {code}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns status line, content type and body.
fn respond(request: &str, status: Option<&NodeStatus>) -> (&'static str, &'static str, String) {
    let mut words = request.split_whitespace();
    let path = match (words.next(), words.next()) {
        (Some("GET"), Some(path)) => path,
        _ => {
            let body = "only GET is supported\n".to_owned();
            return ("405 Method Not Allowed", "text/plain", body);
        }
    };
    match (path, status) {
        ("/metrics", Some(status)) => ("200 OK", "text/plain; version=0.0.4", status.metrics()),
        ("/health", Some(status)) => {
            let peers: Vec<String> = status
                .peers
                .iter()
                .map(|(name, state)| format!("{name} {}", state.name()))
                .collect();
            let body = format!(
                "ok\niteration {} of {}\nneighbours: {}\n",
                status.iteration,
                status.iterations,
                peers.join(", ")
            );
            ("200 OK", "text/plain", body)
        }
        ("/metrics" | "/health", None) => {
            let body = "starting\n".to_owned();
            ("503 Service Unavailable", "text/plain", body)
        }
        _ => {
            let body = "not found; there are /metrics and /health\n".to_owned();
            ("404 Not Found", "text/plain", body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::PeerState;
    use crate::runtime::LinkCounts;
    use radmm::privacy::Guarantee;

    fn status() -> NodeStatus {
        let guarantee = |epsilon| Guarantee {
            epsilon,
            delta: 1e-5,
        };
        NodeStatus {
            iteration: 7,
            iterations: 30,
            finished: false,
            spent: guarantee(0.5),
            site: vec![(guarantee(0.75), 2.0)],
            consensus: 0.25,
            peers: vec![
                ("birch".to_owned(), PeerState::Away),
                ("maple".to_owned(), PeerState::Received),
            ],
            protects: true,
            suspicions: Vec::new(),
            counts: LinkCounts {
                refused: 3,
                ..LinkCounts::default()
            },
        }
    }

    #[test]
    fn metrics_and_health_are_served_over_http() {
        let shared = SharedStatus::default();
        let address = serve("127.0.0.1:0".parse().unwrap(), shared.clone()).unwrap();
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert!(ask("GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503"));
        shared.set(status());
        let answer = ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        for line in [
            "radmm_iteration 7",
            "radmm_epsilon_study{delta=\"1e-5\",relation=\"one row of one party replaced\"} 0.5",
            "radmm_epsilon_limit{delta=\"1e-5\",relation=\"one row of one party replaced\"} 2",
            "radmm_neighbour_connected{peer=\"birch\"} 0",
            "radmm_neighbour_connected{peer=\"maple\"} 1",
            "radmm_refused_total 3",
        ] {
            assert!(answer.lines().any(|one| one == line), "{line}\n{answer}");
        }
        let health = ask("GET /health HTTP/1.0\r\n\r\n");
        assert!(health.contains("iteration 7 of 30") && health.contains("birch away"));
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        // A silent client does not block the others for ever.
        let silent = TcpStream::connect(address).unwrap();
        assert!(ask("GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        drop(silent);
    }
}
