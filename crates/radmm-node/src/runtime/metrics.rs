//! Metrics and health over HTTP, on a local address.
//!
//! One thread, one request at a time, one short answer each: who listens on the loopback needs no more. The site file does not
//! take any other address.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::runtime::status::Status;

/// So long a request may take to arrive, and its answer to leave.
const PATIENCE: Duration = Duration::from_secs(2);

/// No request that makes sense is longer.
const LONGEST: u64 = 8192;

/// What is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(Arc<Mutex<Option<Status>>>);

impl Shown {
    pub(crate) fn set(&self, status: Status) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    fn get(&self) -> Option<Status> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Answers on an address from now on, as long as the process lives.
pub(crate) fn serve(address: SocketAddr, shown: Shown) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let local = listener.local_addr()?;
    thread::Builder::new()
        .name("radmm-metrics".to_owned())
        .spawn(move || {
            for stream in listener.incoming() {
                // Whoever goes away in the middle of it did not want to know.
                let _ = stream.and_then(|stream| answer(stream, &shown));
            }
        })?;
    Ok(local)
}

fn answer(stream: TcpStream, shown: &Shown) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.take(LONGEST));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    // The headers are of no matter, but unread bytes would reset the connection before the answer is read.
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let (code, kind, body) = respond(&request, shown.get().as_ref());
    let mut stream = reader.into_inner().into_inner();
    write!(
        stream,
        "HTTP/1.1 {code}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Status line, type and text.
fn respond(request: &str, status: Option<&Status>) -> (&'static str, &'static str, String) {
    let mut words = request.split_whitespace();
    let path = match (words.next(), words.next()) {
        (Some("GET"), Some(path)) => path,
        _ => {
            let body = "only GET is answered\n".to_owned();
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
            let body = "there is /metrics and /health\n".to_owned();
            ("404 Not Found", "text/plain", body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::party::PeerState;
    use crate::runtime::status::Counts;
    use radmm::account::Guarantee;

    fn status() -> Status {
        let guarantee = |epsilon| Guarantee {
            epsilon,
            delta: 1e-5,
        };
        Status {
            iteration: 7,
            iterations: 30,
            finished: false,
            spent: guarantee(0.5),
            site: vec![(guarantee(0.75), 2.0)],
            consensus: 0.25,
            peers: vec![
                ("birch".to_owned(), PeerState::Away),
                ("maple".to_owned(), PeerState::Heard),
            ],
            protects: true,
            counts: Counts {
                refused: 3,
                ..Counts::default()
            },
        }
    }

    #[test]
    fn metrics_and_health_are_answered_over_http() {
        let shown = Shown::default();
        let address = serve("127.0.0.1:0".parse().unwrap(), shown.clone()).unwrap();
        let ask = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert!(ask("GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503"));
        shown.set(status());
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
        // Somebody who says nothing does not keep the others waiting for ever.
        let silent = TcpStream::connect(address).unwrap();
        assert!(ask("GET /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
        drop(silent);
    }
}
