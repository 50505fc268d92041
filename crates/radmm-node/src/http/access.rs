//! The decision who may see which page.
//!
//! Any program and any web page that this machine's browser shows can send requests to a loopback address. So a request must name
//! this host, or another site's name that resolves to this machine could read the answer; it must not come from another site's page;
//! and it must bring the token of this process, which only those can read who can read its folder.
//!
//! ```text
//! http://127.0.0.1:9411/p/PLACE/open?token=TOKEN    the link: sets the cookie TOKEN for /p/PLACE/, and leads there
//! http://127.0.0.1:9411/p/PLACE/                    the page, for whom sends the cookie, or the token as a bearer
//! ```
//!
//! Browsers send a cookie to every port of its host, and so to servers of other users of this machine. The cookie's path keeps it from
//! them: it is sent only to addresses below a place that is drawn at each start like the token, and that nobody else knows.

use std::net::{IpAddr, SocketAddr};

use radmm_study::hex;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use super::message::{HttpRequest, HttpResponse};

/// The pages behind the checks.
pub trait Routes: Send + Sync {
    /// Returns a page that needs no token, or `None` if there is none at this path.
    fn open(&self, request: &HttpRequest) -> Option<HttpResponse>;

    /// Returns a page that needs the token by its path below the place of the pages, which is empty for the first; `None` if there is
    /// none at this path.
    fn guarded(&self, page: &str, request: &HttpRequest) -> Option<HttpResponse>;
}

/// The checks of requests to one server.
#[derive(Clone)]
pub struct Access {
    address: SocketAddr,
    /// The values of the header `Host` that are accepted, in lower case.
    hosts: Vec<String>,
    /// The segment of the path below which the pages are.
    place: String,
    token: String,
}

/// The path before the place.
const PREFIX: &str = "/p/";

/// The name of the cookie. Every server has its own path, so that one name is enough.
const COOKIE: &str = "radmm";

const UNAUTHORISED: (u16, &str) = (401, "Unauthorized");
const FORBIDDEN: (u16, &str) = (403, "Forbidden");

impl Access {
    /// Draws a place and a token for the server at an address. `names` are further hosts by which it may be asked, with or without a
    /// port. `None` if the operating system has no randomness.
    pub fn new(address: SocketAddr, names: &[String]) -> Option<Self> {
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
            place: random_text()?,
            token: random_text()?,
        })
    }

    /// Returns the link that lets a browser in.
    pub fn link(&self) -> String {
        let Self { address, token, .. } = self;
        format!("http://{address}{}open?token={token}", self.path())
    }

    /// Returns the path of the first page, below which the others are.
    fn path(&self) -> String {
        format!("{PREFIX}{}/", self.place)
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
        let below = request.path().strip_prefix(PREFIX);
        let (place, page) = below.and_then(|path| path.split_once('/')).unzip();
        let is_place = place.is_some_and(|place| is_same(place, &self.place));
        if page == Some("open") {
            let token = request.query("token").unwrap_or_default();
            return match is_place & is_same(token, &self.token) {
                true => self.let_in(is_foreign),
                false => HttpResponse::text(
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
        // A wrong place and a missing token are told alike: the answer says nothing of the place.
        let (Some(page), true) = (page, is_place & self.is_known(request)) else {
            return HttpResponse::text(
                UNAUTHORISED,
                "there is no page here without its link, which is new after each start: radmm page prints it; /health and /metrics need none",
            );
        };
        let response = routes.guarded(page, request);
        response.unwrap_or_else(|| HttpResponse::text((404, "Not Found"), "not found"))
    }

    /// Sets the cookie and leads to the page, whose address does not show the token. A link on a foreign page leads there by a page of
    /// our own, since a request that is redirected still counts as that page's.
    fn let_in(&self, is_foreign: bool) -> HttpResponse {
        let cookie = format!(
            "{COOKIE}={}; HttpOnly; SameSite=Strict; Path={}",
            self.token,
            self.path()
        );
        let words = "the page is next to its link, at ./";
        let see = match is_foreign {
            true => HttpResponse::text((200, "OK"), words).with("Refresh", "0; url=./"),
            false => HttpResponse::text((303, "See Other"), words).with("Location", "./"),
        };
        see.with("Set-Cookie", cookie)
    }

    fn is_known(&self, request: &HttpRequest) -> bool {
        let bearer = request.header("authorization");
        if let Some(token) = bearer.and_then(|value| value.strip_prefix("Bearer ")) {
            return is_same(token, &self.token);
        }
        let cookies = request.header("cookie").unwrap_or_default().split(';');
        let mut pairs = cookies.filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE && is_same(value, &self.token))
    }
}

/// Returns 256 random bits as hexadecimal digits; `None` if the operating system has no randomness.
fn random_text() -> Option<String> {
    let mut random = [0; 32];
    SystemRandom::new().fill(&mut random).ok()?;
    Some(hex::encode(&random))
}

/// Compares hashes: the time that it takes says nothing of a secret.
fn is_same(text: &str, secret: &str) -> bool {
    Sha256::digest(text) == Sha256::digest(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pages;

    impl Routes for Pages {
        fn open(&self, request: &HttpRequest) -> Option<HttpResponse> {
            (request.path() == "/health").then(|| HttpResponse::ok("text/plain", "ready"))
        }

        fn guarded(&self, page: &str, _: &HttpRequest) -> Option<HttpResponse> {
            page.is_empty()
                .then(|| HttpResponse::ok("text/plain", "page"))
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
        let (path, token) = (access.path(), &access.token);
        let cookie = format!("Cookie: a=b; radmm={token}");
        let bearer = format!("Authorization: Bearer {token}");
        let other = Access::new(access.address, &[]).unwrap().token;
        for (line, expected) in [
            (cookie.as_str(), 200),
            (bearer.as_str(), 200),
            // A server on another port can set cookies of this name, too.
            (&format!("Cookie: radmm={other}; radmm={token}"), 200),
            ("A: b", 401),
            ("Cookie: radmm=", 401),
            ("Authorization: Bearer ", 401),
            (&format!("Cookie: radmm-9411={token}"), 401),
            (&format!("Cookie: radmm={other}"), 401),
            (&format!("Authorization: Bearer {other}"), 401),
            (&format!("Authorization: Bearer {other}\r\n{cookie}"), 401),
        ] {
            let request = format!("GET {path} HTTP/1.1");
            let found = status(&access, &[&request, "Host: localhost:9411", line]);
            assert_eq!(found, expected, "{line}");
        }
        let request = format!("GET {path}else HTTP/1.1");
        let found = status(&access, &[&request, "Host: localhost:9411", &cookie]);
        assert_eq!(found, 404);
    }

    #[test]
    fn a_wrong_place_is_answered_like_the_right_one_without_its_token() {
        let access = access();
        let other = Access::new(access.address, &[]).unwrap();
        let (place, token) = (&access.place, &access.token);
        let cookie = format!("Cookie: radmm={token}");
        let get = |path: &str, line: &str| {
            let request = format!("GET {path} HTTP/1.1");
            ask(&access, &[&request, "Host: localhost:9411", line])
        };
        let stranger = get(&access.path(), "A: b");
        assert_eq!(stranger.status(), 401);
        for path in [
            "/",
            "/p",
            "/p/",
            "/p//",
            &format!("/p/{place}"),
            &format!("/p/{}/", &place[1..]),
            &format!("/p/{place}0/"),
            &format!("/{place}/"),
            &format!("//p/{place}/"),
            &other.path(),
            &format!("{}api/status", other.path()),
        ] {
            assert_eq!(get(path, &cookie), stranger, "{path}");
            assert_eq!(get(path, "A: b"), stranger, "{path}");
        }
        // So are links, whichever half of them is wrong.
        let wrong = get(&format!("{}open?token=0", access.path()), "A: b");
        assert_eq!(wrong.status(), 403);
        for path in [
            format!("{}open?token={token}", other.path()),
            format!("{}open?token={}", access.path(), other.token),
            format!("{}open", access.path()),
        ] {
            assert_eq!(get(&path, &cookie), wrong, "{path}");
        }
    }

    #[test]
    fn the_link_sets_a_cookie_for_its_own_place_and_hides_the_token() {
        let access = access();
        let link = access.link();
        let target = link.strip_prefix("http://127.0.0.1:9411").unwrap();
        let line = format!("GET {target} HTTP/1.1");
        let response = ask(&access, &[&line, "Host: 127.0.0.1:9411"]);
        let text = String::from_utf8(response.into_bytes()).unwrap();
        assert!(text.starts_with("HTTP/1.1 303 "), "{text}");
        assert!(text.contains("\r\nLocation: ./\r\n"), "{text}");
        let cookie = format!(
            "\r\nSet-Cookie: radmm={}; HttpOnly; SameSite=Strict; Path=/p/{}/\r\n",
            access.token, access.place
        );
        assert!(text.contains(&cookie), "{text}");
        let foreign = ask(
            &access,
            &[&line, "Host: 127.0.0.1:9411", "Sec-Fetch-Site: same-site"],
        );
        let text = String::from_utf8(foreign.into_bytes()).unwrap();
        assert!(text.contains("\r\nRefresh: 0; url=./\r\n"), "{text}");
        assert!(text.contains(&cookie), "{text}");
    }

    #[test]
    fn pages_of_other_sites_are_refused_even_with_the_cookie() {
        let access = access();
        let request = format!("GET {} HTTP/1.1", access.path());
        let cookie = format!("Cookie: radmm={}", access.token);
        for (site, expected) in [
            ("none", 200),
            ("same-origin", 200),
            ("same-site", 403),
            ("cross-site", 403),
            ("", 403),
        ] {
            let site = format!("Sec-Fetch-Site: {site}");
            let lines = [request.as_str(), "Host: localhost:9411", &cookie, &site];
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
    fn places_and_tokens_are_different_and_long() {
        let [one, other] = [access(), access()];
        let texts = [one.place, one.token, other.place, other.token];
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(text.len(), 64);
            assert!(!texts[..at].contains(text));
        }
    }
}
