//! A console beside a system, and somebody who uses it as browsers without scripts do: by addresses, forms and cookies.

use std::{net::SocketAddr, sync::Mutex};

use emend_base::{
    Entropy, Environment, Lifecycle, SharedClock, SystemClock, telemetry::Metrics, tls::Remote,
};
use emend_console::{ConsoleConfig, Services};
use tokio::net::TcpListener;

use super::{
    NAMESPACE, System,
    http::{Answer, ask_with},
};

/// A console in this process.
#[derive(Debug)]
pub struct Console {
    /// Where it listens.
    pub address: SocketAddr,
    lifecycle: Lifecycle,
}

impl Console {
    /// A console of the system's first replicas.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn beside(system: &System) -> Self {
        Self::beside_with(system, SystemClock::shared(), |_| {}).await
    }

    /// A console whose rating dialogs these applications may show in a frame.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn framed_by(system: &System, applications: &[&str]) -> Self {
        let origins = applications.iter().map(|name| name.parse().expect("an origin"));
        Self::beside_with(system, SystemClock::shared(), |config| {
            config.frame_ancestors = origins.collect();
        })
        .await
    }

    /// A console by this clock and with other settings.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn beside_with(
        system: &System,
        clock: SharedClock,
        change: impl FnOnce(&mut ConsoleConfig),
    ) -> Self {
        let remote = |address: SocketAddr| Remote::new(&format!("http://{address}")).expect("an address");
        let services = Services::new(
            remote(system.feedback[0].front.address()),
            remote(system.learning[0].front.address()),
        );
        let mut config = ConsoleConfig {
            namespace: NAMESPACE.into(),
            public_urls: Vec::new(),
            key: [7; 32],
            token_header: None,
            frame_ancestors: Vec::new(),
        };
        change(&mut config);
        let lifecycle = Lifecycle::new();
        let environment = Environment {
            lifecycle: lifecycle.clone(),
            clock,
            entropy: Entropy::system(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let console = emend_console::serve(listener, &config, services, &Metrics::new(), &environment);
        Self {
            address: console.expect("the console starts").address(),
            lifecycle,
        }
    }

    /// The address of a page of the tests' namespace.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/ns/{NAMESPACE}/{path}", self.address)
    }

    /// Somebody without a session.
    pub fn visitor(&self) -> Visitor {
        Visitor::at(self.address)
    }

    /// Ends it.
    pub async fn stop(self) {
        self.lifecycle.shutdown(std::time::Duration::from_secs(5)).await;
    }
}

/// Somebody with cookies and no scripts.
#[derive(Debug)]
pub struct Visitor {
    address: SocketAddr,
    cookies: Mutex<Vec<(String, String)>>,
}

impl Visitor {
    /// Somebody without a session, at a console that listens there.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            cookies: Mutex::default(),
        }
    }

    /// Asks with these headers besides host and cookies, and keeps what cookies are set.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = self.address.to_string();
        let cookies: Vec<String> = self
            .cookies
            .lock()
            .expect("nobody panicked")
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut all = headers.to_vec();
        if !headers.iter().any(|(name, _)| *name == "Host") {
            all.push(("Host", &host));
        }
        if !cookies.is_empty() {
            all.push(("Cookie", &cookies));
        }
        if method == "POST" {
            all.push(("Content-Type", "application/x-www-form-urlencoded"));
        }
        let answer = ask_with(self.address, method, path, &all, body).await;
        let mut kept = self.cookies.lock().expect("nobody panicked");
        for cookie in header(&answer, "set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                kept.retain(|(known, _)| known != name);
                kept.push((name.to_owned(), value.to_owned()));
            }
        }
        drop(kept);
        answer
    }

    /// Opens a page of the tests' namespace.
    pub async fn open(&self, path: &str) -> Answer {
        self.ask("GET", &format!("/ns/{NAMESPACE}/{path}"), &[], "").await
    }

    /// Sends a form of a page, with the token that the page gave.
    ///
    /// # Panics
    /// If the page has no token.
    pub async fn send(&self, page: &Answer, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = form_token(page).expect("the page has forms");
        let fields: Vec<String> = fields
            .iter()
            .chain(&[("form_token", &*token)])
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        let path = format!("/ns/{NAMESPACE}/{path}");
        self.ask("POST", &path, &[], &fields.join("&")).await
    }

    /// Signs in.
    pub async fn sign_in(&self, token: &str) -> Answer {
        self.sign_in_as(token, &[]).await
    }

    /// The same, with these headers besides cookies.
    pub async fn sign_in_as(&self, token: &str, headers: &[(&str, &str)]) -> Answer {
        let page = self.ask("GET", "/sign-in", headers, "").await;
        let form = form_token(&page).unwrap_or_default();
        let body = format!("form_token={form}&back=%2F&token={}", encoded(token));
        self.ask("POST", "/sign-in", headers, &body).await
    }
}

/// The token of a page's forms.
pub fn form_token(page: &Answer) -> Option<String> {
    let (_, rest) = page.body.split_once("name=\"form_token\" value=\"")?;
    Some(rest.split('"').next()?.to_owned())
}

/// All values of a header.
pub fn header(answer: &Answer, name: &str) -> Vec<String> {
    answer
        .head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.to_owned())
        .collect()
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect::<Vec<_>>()
        .concat()
}
