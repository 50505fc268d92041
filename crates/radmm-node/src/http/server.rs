//! The server: one thread, one request a connection, a deadline for every step, and a bounded number of connections.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::message::{HttpRequest, HttpResponse};

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 8192;

/// How long a client may take to read the end of a response, and to close the connection.
const DRAIN: Duration = Duration::from_secs(1);

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// The most connections at a time. When there is one more, the oldest is cut.
    pub connections: usize,
    /// How long a request may take to arrive, from the first byte to the last.
    pub request: Duration,
    /// How long a response may take to leave.
    pub response: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            request: Duration::from_secs(5),
            response: Duration::from_secs(60),
        }
    }
}

type Respond = dyn Fn(&HttpRequest) -> HttpResponse + Send + Sync;

/// Serves as long as the process lives, on a thread of its own.
pub fn serve(
    listener: TcpListener,
    limits: ServerLimits,
    respond: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    thread::Builder::new()
        .name("radmm-http".to_owned())
        .spawn(move || runtime.block_on(accept(listener, limits, Arc::new(respond))))?;
    Ok(())
}

async fn accept(listener: tokio::net::TcpListener, limits: ServerLimits, respond: Arc<Respond>) {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely there are no file descriptors left; there may be some later.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= limits.connections
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let respond = respond.clone();
        open.push_back(tokio::spawn(async move {
            // A client that disconnects needs no answer.
            let _ = answer(stream, limits, &*respond).await;
        }));
    }
}

async fn answer(mut stream: TcpStream, limits: ServerLimits, respond: &Respond) -> io::Result<()> {
    let response = match timeout(limits.request, read_head(&mut stream)).await {
        Ok(Ok(head)) => match HttpRequest::parse(&head) {
            Some(request) => respond(&request),
            None => HttpResponse::text((400, "Bad Request"), "the request is malformed"),
        },
        Ok(Err(Unreadable::TooLong)) => HttpResponse::text(
            (431, "Request Header Fields Too Large"),
            "the request is too long",
        ),
        Ok(Err(Unreadable::Failed(error))) => return Err(error),
        Err(_) => HttpResponse::text((408, "Request Timeout"), "the request took too long"),
    };
    let bytes = response.into_bytes();
    timeout(limits.response, stream.write_all(&bytes)).await??;
    stream.shutdown().await?;
    // Bytes that nobody has read would reset the connection before the client has read the end.
    timeout(DRAIN, drain(&mut stream)).await?
}

/// The reason why there is no head.
enum Unreadable {
    TooLong,
    Failed(io::Error),
}

/// Reads up to the empty line that ends the head.
async fn read_head(stream: &mut TcpStream) -> Result<Vec<u8>, Unreadable> {
    const END: &[u8] = b"\r\n\r\n";
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while head.len() < MAX_HEAD {
        let count = stream.read(&mut part).await.map_err(Unreadable::Failed)?;
        if count == 0 {
            return Err(Unreadable::Failed(io::ErrorKind::UnexpectedEof.into()));
        }
        // The end may have begun in the part before.
        let from = head.len().saturating_sub(END.len() - 1);
        head.extend(&part[..count]);
        if let Some(at) = head[from..].windows(END.len()).position(|w| w == END) {
            head.truncate(from + at);
            return Ok(head);
        }
    }
    Err(Unreadable::TooLong)
}

async fn drain(stream: &mut TcpStream) -> io::Result<()> {
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The time after which a test has failed, far beyond what it takes.
    const GUARD: Duration = Duration::from_secs(60);

    /// A deadline that no test reaches.
    const NEVER: Duration = Duration::from_secs(100_000);

    const PATIENT: ServerLimits = ServerLimits {
        connections: 8,
        request: NEVER,
        response: NEVER,
    };

    fn start(limits: ServerLimits) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, limits, |request| match request.path() {
            "/huge" => HttpResponse::ok("text/plain", vec![b'x'; 1 << 26]),
            _ => HttpResponse::ok("text/plain", "short"),
        })
        .unwrap();
        address
    }

    fn connect(address: SocketAddr) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = connect(address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a byte every 20 ms until the connection is closed.
    fn drip(mut stream: std::net::TcpStream) {
        thread::spawn(move || {
            while stream.write_all(b"a").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
    }

    #[test]
    fn slow_clients_delay_nobody() {
        let address = start(PATIENT);
        let silent = connect(address);
        let slow = connect(address);
        drip(slow.try_clone().unwrap());
        // The response fills all buffers, and the server waits for this client.
        let mut blind = connect(address);
        blind.write_all(b"GET /huge HTTP/1.1\r\n\r\n").unwrap();
        for _ in 0..3 {
            assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nshort"));
        }
        for stream in [silent, slow, blind] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    #[test]
    fn a_request_that_drips_in_ends_at_its_deadline() {
        let request = Duration::from_millis(200);
        let address = start(ServerLimits { request, ..PATIENT });
        let mut slow = connect(address);
        drip(slow.try_clone().unwrap());
        let mut answer = Vec::new();
        // The byte that is on its way when the connection is closed may reset it.
        let _ = slow.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 408 "), "{answer:?}");
    }

    #[test]
    fn a_client_that_never_reads_is_cut_off_at_its_deadline() {
        let response = Duration::from_millis(200);
        let address = start(ServerLimits {
            response,
            ..PATIENT
        });
        let mut blind = connect(address);
        blind.write_all(b"GET /huge HTTP/1.1\r\n\r\n").unwrap();
        // It is gone once writing to it fails.
        let gone = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let begun = std::time::Instant::now();
                while blind.write_all(b"a").is_ok() {
                    assert!(begun.elapsed() < GUARD);
                    thread::sleep(Duration::from_millis(20));
                }
                gone.store(true, Ordering::Relaxed);
            });
        });
        assert!(gone.load(Ordering::Relaxed));
    }

    #[test]
    fn the_oldest_connection_makes_room_for_a_new_one() {
        let connections = 3;
        let limits = ServerLimits {
            connections,
            ..PATIENT
        };
        let address = start(limits);
        let mut silent: Vec<_> = (0..connections).map(|_| connect(address)).collect();
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").ends_with("short"));
        // The first one was closed for it.
        let mut rest = Vec::new();
        let _ = silent[0].read_to_end(&mut rest);
        assert_eq!(rest, b"");
        let last = silent.last_mut().unwrap();
        last.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        last.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("short"), "{answer}");
    }

    #[test]
    fn long_and_malformed_requests_are_told_so() {
        let address = start(PATIENT);
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2 * MAX_HEAD));
        assert!(ask(address, &long).starts_with("HTTP/1.1 431 "));
        assert!(ask(address, "hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
        // The end of a head may arrive in parts.
        let mut stream = connect(address);
        for part in ["GET / HTTP/1.1\r", "\n\r", "\n"] {
            stream.write_all(part.as_bytes()).unwrap();
            stream.flush().unwrap();
            thread::sleep(Duration::from_millis(20));
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("short"), "{answer}");
    }
}
