//! Chromium, driven over WebDriver.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use radmm_node::http::client::{self, PageLink};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The time limit for anything that a page shows.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A browser with an empty profile.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
}

/// The window, and the preference for colours.
#[derive(Clone, Copy)]
pub struct Window {
    pub width: u32,
    pub height: u32,
    pub dark: bool,
}

/// A window on a desk.
pub const DESKTOP: Window = Window {
    width: 1200,
    height: 900,
    dark: false,
};

/// A phone, upright.
pub const PHONE: Window = Window {
    width: 390,
    height: 844,
    dark: true,
};

impl Browser {
    /// Starts Chromium.
    pub fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let driver = Command::new("chromedriver")
            .arg(format!("--port={}", address.port()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is needed: apt-get install chromium chromium-driver");
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self {
            driver,
            address,
            session: String::new(),
            _profile: profile,
        };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < TIMEOUT, "chromedriver does not start");
            thread::sleep(Duration::from_millis(50));
        }
        let profile = format!("--user-data-dir={}", browser._profile.path().display());
        let mut args = vec![profile.as_str(), "--no-sandbox"];
        args.extend([
            "--headless",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]);
        let options = json!({ "browserName": "chrome", "goog:chromeOptions": { "args": args } });
        let created = browser.call(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": options } }),
        );
        browser.session = created["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Sends a command; returns the value of its answer.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        match self.try_call(method, path, body) {
            Ok((200, mut answer)) => answer["value"].take(),
            Ok((code, answer)) => panic!("{path}: {code} {answer}"),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Sends a command; returns the status code and the answer.
    fn try_call(&self, method: &str, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let body = match method {
            "POST" => body.to_string(),
            _ => String::new(),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all((head + &body).as_bytes())?;
        // The connection stays open, whatever is asked.
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let parsed = |text: Option<&str>| text.and_then(|text| text.trim().parse::<usize>().ok());
        let code = parsed(head.split(' ').nth(1)).unwrap_or(0);
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            parsed(Some(value)).filter(|_| name.eq_ignore_ascii_case("content-length"))
        });
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        Ok((code as u16, serde_json::from_slice(&body)?))
    }

    fn command(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}{path}", self.session), body)
    }

    /// Sends a command of the developer tools.
    fn devtools(&self, command: &str, params: &Value) -> Value {
        let body = json!({ "cmd": command, "params": params });
        self.command("/goog/cdp/execute", &body)
    }

    /// Sets the window.
    pub fn resize(&self, window: Window) {
        let Window {
            width,
            height,
            dark,
        } = window;
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 }),
        );
        let value = if dark { "dark" } else { "light" };
        let scheme = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": scheme }));
    }

    /// Opens a page.
    pub fn open(&self, link: &str) {
        self.command("/url", &json!({ "url": link }));
    }

    /// Runs a script; returns its result.
    pub fn run(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Returns the text of an element as it is shown; empty if it is hidden.
    pub fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector('{selector}')?.innerText ?? ''");
        self.run(&script).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element shows a text.
    pub fn wait_for(&self, selector: &str, text: &str) {
        self.wait_until(&format!("{selector} shows {text:?}"), || {
            self.text(selector).contains(text)
        });
    }

    /// Waits until a condition holds.
    pub fn wait_until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !condition() {
            if begun.elapsed() > TIMEOUT {
                let page = self.text("body");
                panic!("timeout: waited until {what}; the page is\n{page}");
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that the page fits into the width of the window.
    pub fn assert_fits(&self) {
        let widths = self
            .run("return ['scrollWidth', 'clientWidth'].map(of => document.documentElement[of])");
        assert_eq!(widths[0], widths[1], "the page is wider than its window");
    }

    /// Asserts that the page has loaded nothing from elsewhere, and that the browser complains of nothing.
    pub fn assert_alone(&self) {
        let origin = self.run("return location.origin");
        let loaded = self.run("return performance.getEntries().filter(e => /^(resource|navigation)$/.test(e.entryType)).map(e => e.name)");
        let loaded = loaded.as_array().unwrap();
        assert!(loaded.len() > 3, "{loaded:?}");
        for name in loaded {
            let name = name.as_str().unwrap();
            assert!(name.starts_with(origin.as_str().unwrap()), "{name}");
            assert!(!name.contains("token"), "{name}");
        }
        let complaints = self.command("/se/log", &json!({ "type": "browser" }));
        let blocked = |one: &&Value| {
            one["message"]
                .as_str()
                .unwrap_or("")
                .contains("Content Security Policy")
        };
        let complaints = complaints.as_array().unwrap();
        assert_eq!(complaints.iter().find(blocked), None);
    }

    /// Saves a picture of the whole page in the folder that `RADMM_PICTURES` names, if it is set.
    pub fn picture(&self, name: &str) {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;

        let Ok(folder) = std::env::var("RADMM_PICTURES") else {
            return;
        };
        let size = self.run("return [innerWidth, document.documentElement.scrollHeight]");
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let taken = self.devtools(
            "Page.captureScreenshot",
            &json!({ "format": "png", "captureBeyondViewport": true, "clip": clip }),
        );
        let bytes = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver does not take the browser with it when it is killed.
        let path = format!("/session/{}", self.session);
        let _ = self.try_call("DELETE", &path, &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Returns the link to the page of a node with this state folder, as soon as it is served.
pub fn link_of(state: &Path) -> String {
    let path = radmm_node::runtime::link_file(state);
    let begun = Instant::now();
    loop {
        let link = fs::read_to_string(&path).unwrap_or_default();
        let served = PageLink::parse(&link).is_some_and(|link| {
            client::get(link.address, "", "/health").is_ok_and(|(code, _)| code == 200)
        });
        if served {
            return link.trim_end().to_owned();
        }
        assert!(begun.elapsed() < TIMEOUT, "no page is served");
        thread::sleep(Duration::from_millis(20));
    }
}
