//! Requests as they arrive, and responses as they leave.

use std::fmt::Write;

/// The policy of every response: scripts, styles and data of this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The head of a request. Only its method, target and headers count: no request that is answered has a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// Names are in lower case.
    headers: Vec<(String, String)>,
}

impl HttpRequest {
    /// Parses a head, without the empty line at its end; `None` if it is malformed.
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let version = words.next()?;
        if !matches!(version, "HTTP/1.0" | "HTTP/1.1") || words.next().is_some() {
            return None;
        }
        if !target.starts_with('/') || target.chars().any(char::is_control) {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.is_empty() || !name.chars().all(is_token) {
                return None;
            }
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: headers.collect::<Option<_>>()?,
        })
    }

    /// Returns the path, without the query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns a value of the query, such as `b` of `a=b`.
    pub fn query(&self, name: &str) -> Option<&str> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns a header; `None` if there is none, or more than one.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name);
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Returns whether there is such a header.
    pub(super) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(key, _)| key == name)
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    status: (u16, &'static str),
    kind: &'static str,
    policy: &'static str,
    /// Further headers, with names and values.
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl HttpResponse {
    /// Returns a successful response with a content type.
    pub fn ok(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self::new((200, "OK"), kind, body)
    }

    /// Returns a response of one line of text.
    pub(super) fn text(status: (u16, &'static str), line: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", format!("{line}\n"))
    }

    fn new(status: (u16, &'static str), kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            kind,
            policy: POLICY,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// Returns the response as one that says that the service is not available.
    pub fn unavailable(mut self) -> Self {
        self.status = (503, "Service Unavailable");
        self
    }

    /// Returns the response with the policy of a page that runs nothing and has its styles inside.
    pub fn inert(mut self) -> Self {
        self.policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";
        self
    }

    /// Returns the response with one more header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Returns the status code.
    pub fn status(&self) -> u16 {
        self.status.0
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns all bytes of the response.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let (code, words) = self.status;
        let mut head = format!(
            "HTTP/1.1 {code} {words}\r\n\
             Content-Type: {}\r\n\
             Content-Length: {}\r\n\
             Content-Security-Policy: {}\r\n\
             Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Cross-Origin-Opener-Policy: same-origin\r\n\
             Connection: close\r\n",
            self.kind,
            self.body.len(),
            self.policy,
        );
        for (name, value) in self.headers {
            // Writing to a string does not fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend(self.body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_parsed_or_rejected_as_a_whole() {
        let request = HttpRequest::parse(b"GET /a?x=1&token=t HTTP/1.1\r\nHost: here\r\nA:  b ");
        let request = request.unwrap();
        assert_eq!((request.method.as_str(), request.path()), ("GET", "/a"));
        assert_eq!(request.query("token"), Some("t"));
        assert_eq!(request.query("tok"), None);
        assert_eq!(request.header("host"), Some("here"));
        assert_eq!(request.header("a"), Some("b"));
        for head in [
            "",
            "GET",
            "GET /",
            "GET / HTTP/2",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 x",
            "GET http://here/ HTTP/1.1",
            "GET / HTTP/1.1\r\nHost",
            "GET / HTTP/1.1\r\nHost : here",
            "GET / HTTP/1.1\r\n folded: here",
            "GET / HTTP/1.1\r\n: here",
        ] {
            assert_eq!(HttpRequest::parse(head.as_bytes()), None, "{head:?}");
        }
        assert_eq!(HttpRequest::parse(b"GET /\xff HTTP/1.1"), None);
    }

    #[test]
    fn a_header_that_occurs_twice_has_no_value() {
        let head = b"GET / HTTP/1.1\r\nHost: here\r\nhost: there";
        let request = HttpRequest::parse(head).unwrap();
        assert_eq!(request.header("host"), None);
        assert!(request.has_header("host"));
    }
}
