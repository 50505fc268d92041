//! The decision who may see which page.
//!
//! Any program and any web page that this machine's browser shows can send requests to a loopback address. So a request must name
//! this host, or another site's name that resolves to this machine could read the answer; it must not come from another site's page;
//! and it must bring the token of this process, which only those can read who can read its folder.

use std::net::{IpAddr, SocketAddr};

use radmm_study::hex;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use super::message::{HttpRequest, HttpResponse};

/// The pages behind the checks.
pub trait Routes: Send + Sync {
    /// Returns a page that needs no token, or `None` if there is none at this path.
    fn open(&self, request: &HttpRequest) -> Option<HttpResponse>;

    /// Returns a page that needs the token, or `None` if there is none at this path.
    fn guarded(&self, request: &HttpRequest) -> Option<HttpResponse>;
}

/// The checks of requests to one server.
#[derive(Clone)]
pub struct Access {
    address: SocketAddr,
    /// The values of the header `Host` that are accepted, in lower case.
    hosts: Vec<String>,
    token: String,
}

const UNAUTHORISED: (u16, &str) = (401, "Unauthorized");
const FORBIDDEN: (u16, &str) = (403, "Forbidden");

impl Access {
    /// Draws a token for the server at an address. `names` are further hosts by which it may be asked, with or without a port.
    /// `None` if the operating system has no randomness.
    pub fn new(address: SocketAddr, names: &[String]) -> Option<Self> {
        let mut random = [0; 32];
        SystemRandom::new().fill(&mut random).ok()?;
        let port = address.port();
        let own = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let local = ["localhost", "127.0.0.1", "[::1]", &own].map(|name| format!("{name}:{port}"));
        let named = names.iter().map(|name| name.to_ascii_lowercase());
        Some(Self {
            address,
            hosts: local.into_iter().chain(named).collect(),
            token: hex::encode(&random),
        })
    }

    /// Returns the link that lets a browser in.
    pub fn link(&self) -> String {
        format!("http://{}/open?token={}", self.address, self.token)
    }

    /// Returns the response to a request.
    pub fn respond(&self, request: &HttpRequest, routes: &dyn Routes) -> HttpResponse {
        let host = request.header("host").map(str::to_ascii_lowercase);
        if !host.is_some_and(|host| self.hosts.contains(&host)) {
            return HttpResponse::text(
                FORBIDDEN,
                "this server does not go by that name; hosts in the site file adds names",
            );
        }
        if request.method != "GET" {
            let only = HttpResponse::text((405, "Method Not Allowed"), "only GET is supported");
            return only.with("Allow", "GET");
        }
        if let Some(response) = routes.open(request) {
            return response;
        }
        // A page on another port of this machine is of the same site, and no better than one of another.
        let is_foreign = request.has_header("sec-fetch-site")
            && !matches!(
                request.header("sec-fetch-site"),
                Some("none" | "same-origin")
            );
        if request.path() == "/open" {
            return match request.query("token") {
                Some(token) if self.is_token(token) => self.let_in(is_foreign),
                _ => HttpResponse::text(
                    FORBIDDEN,
                    "this link is not valid any more: a new one is printed by radmm page",
                ),
            };
        }
        if is_foreign {
            return HttpResponse::text(
                FORBIDDEN,
                "another site's page may not ask; type the link into the address bar",
            );
        }
        if !self.is_known(request) {
            return HttpResponse::text(
                UNAUTHORISED,
                "open the link that radmm page prints; without it there are /health and /metrics",
            );
        }
        let response = routes.guarded(request);
        response.unwrap_or_else(|| HttpResponse::text((404, "Not Found"), "not found"))
    }

    /// Sets the cookie and leads to the page, whose address does not show the token. A link on a foreign page leads there by a page of
    /// our own, since a request that is redirected still counts as that page's.
    fn let_in(&self, is_foreign: bool) -> HttpResponse {
        let cookie = format!(
            "{}={}; HttpOnly; SameSite=Strict; Path=/",
            self.cookie_name(),
            self.token
        );
        let see = match is_foreign {
            true => HttpResponse::text((200, "OK"), "the page is at /").with("Refresh", "0; url=/"),
            false => {
                let other = HttpResponse::text((303, "See Other"), "the page is at /");
                other.with("Location", "/")
            }
        };
        see.with("Set-Cookie", cookie)
    }

    /// Returns the name of the cookie. Browsers send a cookie to all ports of a host, so that each port needs its own.
    fn cookie_name(&self) -> String {
        format!("radmm-{}", self.address.port())
    }

    fn is_known(&self, request: &HttpRequest) -> bool {
        let bearer = request.header("authorization");
        if let Some(token) = bearer.and_then(|value| value.strip_prefix("Bearer ")) {
            return self.is_token(token);
        }
        let name = self.cookie_name();
        let cookies = request.header("cookie").unwrap_or_default().split(';');
        let mut pairs = cookies.filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(key, value)| key == name && self.is_token(value))
    }

    /// Compares hashes: the time that it takes says nothing of the token.
    fn is_token(&self, token: &str) -> bool {
        Sha256::digest(token) == Sha256::digest(&self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pages;

    impl Routes for Pages {
        fn open(&self, request: &HttpRequest) -> Option<HttpResponse> {
            (request.path() == "/health").then(|| HttpResponse::ok("text/plain", "ready"))
        }

        fn guarded(&self, request: &HttpRequest) -> Option<HttpResponse> {
            (request.path() == "/").then(|| HttpResponse::ok("text/plain", "page"))
        }
    }

    fn access() -> Access {
        let address = "127.0.0.1:9411".parse().unwrap();
        Access::new(address, &["Node.Example".to_owned()]).unwrap()
    }

    fn ask(access: &Access, lines: &[&str]) -> HttpResponse {
        let request = HttpRequest::parse(lines.join("\r\n").as_bytes()).unwrap();
        access.respond(&request, &Pages)
    }

    fn status(access: &Access, lines: &[&str]) -> u16 {
        ask(access, lines).status()
    }

    #[test]
    fn only_a_request_that_names_this_host_is_answered() {
        let access = access();
        for (host, expected) in [
            ("Host: 127.0.0.1:9411", 200),
            ("Host: LOCALHOST:9411", 200),
            ("Host: [::1]:9411", 200),
            ("Host: node.example", 200),
            ("Host: 127.0.0.1", 403),
            ("Host: 127.0.0.1:80", 403),
            ("Host: localhost:94110", 403),
            ("Host: attacker.example:9411", 403),
            ("Host: localhost.attacker.example:9411", 403),
            ("Host: ", 403),
            ("A: b", 403),
            ("Host: localhost:9411\r\nHost: attacker.example", 403),
        ] {
            let found = status(&access, &["GET /health HTTP/1.1", host]);
            assert_eq!(found, expected, "{host}");
        }
    }

    #[test]
    fn only_get_is_answered() {
        for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "get"] {
            let line = format!("{method} /health HTTP/1.1");
            assert_eq!(status(&access(), &[&line, "Host: localhost:9411"]), 405);
        }
    }

    #[test]
    fn a_page_needs_the_token_of_this_process() {
        let access = access();
        let token = access.token.clone();
        let cookie = format!("Cookie: a=b; radmm-9411={token}");
        let bearer = format!("Authorization: Bearer {token}");
        let other = Access::new(access.address, &[]).unwrap().token;
        for (line, expected) in [
            (cookie.as_str(), 200),
            (bearer.as_str(), 200),
            ("A: b", 401),
            ("Cookie: radmm-9411=", 401),
            ("Authorization: Bearer ", 401),
            (&format!("Cookie: radmm-9412={token}"), 401),
            (&format!("Cookie: radmm-9411={other}"), 401),
            (&format!("Authorization: Bearer {other}"), 401),
            (&format!("Authorization: Bearer {other}\r\n{cookie}"), 401),
        ] {
            let found = status(&access, &["GET / HTTP/1.1", "Host: localhost:9411", line]);
            assert_eq!(found, expected, "{line}");
        }
        let found = ask(
            &access,
            &["GET /else HTTP/1.1", "Host: localhost:9411", &cookie],
        );
        assert_eq!(found.status(), 404);
    }

    #[test]
    fn the_link_sets_a_cookie_for_this_site_alone_and_hides_the_token() {
        let access = access();
        let link = access.link();
        let target = link.strip_prefix("http://127.0.0.1:9411").unwrap();
        let line = format!("GET {target} HTTP/1.1");
        let response = ask(&access, &[&line, "Host: 127.0.0.1:9411"]);
        let text = String::from_utf8(response.into_bytes()).unwrap();
        assert!(text.starts_with("HTTP/1.1 303 "), "{text}");
        assert!(text.contains("\r\nLocation: /\r\n"), "{text}");
        let cookie = format!(
            "\r\nSet-Cookie: radmm-9411={}; HttpOnly; SameSite=Strict; Path=/\r\n",
            access.token
        );
        assert!(text.contains(&cookie), "{text}");
        let foreign = ask(
            &access,
            &[&line, "Host: 127.0.0.1:9411", "Sec-Fetch-Site: same-site"],
        );
        let text = String::from_utf8(foreign.into_bytes()).unwrap();
        assert!(text.contains("\r\nRefresh: 0; url=/\r\n"), "{text}");
        assert!(text.contains(&cookie), "{text}");
        for wrong in ["/open", "/open?token=", "/open?token=0000"] {
            let line = format!("GET {wrong} HTTP/1.1");
            assert_eq!(status(&access, &[&line, "Host: 127.0.0.1:9411"]), 403);
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused_even_with_the_cookie() {
        let access = access();
        let cookie = format!("Cookie: radmm-9411={}", access.token);
        for (site, expected) in [
            ("none", 200),
            ("same-origin", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("", 403),
        ] {
            let site = format!("Sec-Fetch-Site: {site}");
            let lines = ["GET / HTTP/1.1", "Host: localhost:9411", &cookie, &site];
            assert_eq!(status(&access, &lines), expected, "{site}");
        }
    }

    #[test]
    fn every_response_forbids_caching_embedding_and_foreign_content() {
        let response = ask(&access(), &["GET /health HTTP/1.1", "Host: localhost:9411"]);
        let text = String::from_utf8(response.into_bytes()).unwrap();
        for line in [
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Referrer-Policy: no-referrer",
        ] {
            assert!(text.contains(&format!("\r\n{line}\r\n")), "{text}");
        }
        assert!(
            text.contains("default-src 'none'; script-src 'self';"),
            "{text}"
        );
        assert!(text.contains("frame-ancestors 'none'"), "{text}");
        assert!(!text.contains("unsafe"), "{text}");
    }

    #[test]
    fn tokens_are_different_and_long() {
        let [one, other] = [access(), access()].map(|access| access.token);
        assert_ne!(one, other);
        assert_eq!(one.len(), 64);
    }
}
