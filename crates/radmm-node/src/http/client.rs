//! Reads a page of a node on this machine.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long each step of a request may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest response that is read, in bytes.
const MAX_RESPONSE: u64 = 1 << 24;

/// Reads the link to a page: returns the address and the token.
pub fn parse_link(link: &str) -> Option<(SocketAddr, String)> {
    let rest = link.trim_end().strip_prefix("http://")?;
    let (address, token) = rest.split_once("/open?token=")?;
    let is_hex = token.chars().all(|c| c.is_ascii_hexdigit());
    is_hex.then(|| Some((address.parse().ok()?, token.to_owned())))?
}

/// Reads a page with the token of its server; returns the status code and the body.
pub fn get(address: SocketAddr, token: &str, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.take(MAX_RESPONSE).read_to_string(&mut response)?;
    let parsed = response.split_once("\r\n\r\n").and_then(|(head, body)| {
        let code = head.split(' ').nth(1)?.parse().ok()?;
        Some((code, body.to_owned()))
    });
    parsed.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_address_and_token() {
        let address = "127.0.0.1:9411".parse().unwrap();
        let link = "http://127.0.0.1:9411/open?token=0f\n";
        assert_eq!(parse_link(link), Some((address, "0f".to_owned())));
        assert!(parse_link("http://[::1]:80/open?token=0f").is_some());
        for wrong in [
            "",
            "http://127.0.0.1:9411/",
            "http://here:9411/open?token=0f",
            "http://127.0.0.1:9411/open?token=0f\r\nHost: there",
        ] {
            assert_eq!(parse_link(wrong), None, "{wrong:?}");
        }
    }
}
