//! Reads a page of a node on this machine.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long each step of a request may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest response that is read, in bytes.
const MAX_RESPONSE: u64 = 1 << 24;

/// The link to the pages of a server, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLink {
    /// The address of the server.
    pub address: SocketAddr,
    /// The path of the first page, which ends with a slash.
    pub path: String,
    /// The token that the pages need.
    pub token: String,
}

impl PageLink {
    /// Parses a link.
    pub fn parse(link: &str) -> Option<Self> {
        let rest = link.trim_end().strip_prefix("http://")?;
        let (rest, token) = rest.split_once("open?token=")?;
        let (address, path) = rest.split_at(rest.find('/')?);
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '/');
        if !path.ends_with('/') || !is_plain(path) || !is_plain(token) {
            return None;
        }
        Some(Self {
            address: address.parse().ok()?,
            path: path.to_owned(),
            token: token.to_owned(),
        })
    }

    /// Reads the page at a path below the first one; returns the status code and the body.
    pub fn get(&self, page: &str) -> io::Result<(u16, String)> {
        get(self.address, &self.token, &format!("{}{page}", self.path))
    }
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
    fn a_link_names_address_path_and_token() {
        let parsed = PageLink::parse("http://127.0.0.1:9411/p/a0/open?token=0f\n");
        let expected = PageLink {
            address: "127.0.0.1:9411".parse().unwrap(),
            path: "/p/a0/".to_owned(),
            token: "0f".to_owned(),
        };
        assert_eq!(parsed, Some(expected));
        assert!(PageLink::parse("http://[::1]:80/p/a0/open?token=0f").is_some());
        for wrong in [
            "",
            "http://127.0.0.1:9411/",
            "http://127.0.0.1:9411open?token=0f",
            "http://127.0.0.1:9411/p/a0open?token=0f",
            "http://127.0.0.1:9411/p/a 0/open?token=0f",
            "http://here:9411/p/a0/open?token=0f",
            "http://127.0.0.1:9411/p/a0/open?token=0f\r\nHost: there",
        ] {
            assert_eq!(PageLink::parse(wrong), None, "{wrong:?}");
        }
    }
}
