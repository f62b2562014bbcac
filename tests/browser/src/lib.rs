//! A headless Chromium, as people use it: by pointer and by keyboard.

use std::{env, error::Error, fs, net::SocketAddr, process::Stdio, sync::Arc, time::Duration};

use bytes::Bytes;
use emend_base::testing::skipped;
use http::{HeaderValue, Request, Response, Uri, header::HOST};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
pub use thirtyfour::By;
use thirtyfour::{
    Capabilities, WebDriver, WebElement,
    error::{WebDriverError, WebDriverResult},
    prelude::ElementQueryable as _,
    session::http::{Body, HttpClient},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
};
use tokio_util::task::AbortOnDropHandle;

/// The bound of every wait: reached only if something is broken.
const PATIENCE: Duration = Duration::from_secs(90);
const DRIVER: &str = "EMEND_TEST_CHROMEDRIVER";
const AXE: &str = "EMEND_TEST_AXE";

/// The keys that have no character.
pub mod keys {
    /// Moves the focus on.
    pub const TAB: &str = "\u{E004}";
    /// Presses what has the focus.
    pub const ENTER: &str = "\u{E007}";
    /// Closes what is open.
    pub const ESCAPE: &str = "\u{E00C}";
}

/// A browser with one window. Dropping this kills it.
#[derive(Debug)]
pub struct Browser {
    driver: WebDriver,
    axe: String,
    _process: Child,
}

impl Browser {
    /// Starts one; `None`, after a line of output that says so, if there is no driver.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start() -> Option<Self> {
        Self::begin(json!({})).await
    }

    /// The same as narrow as a telephone: 390 pixels, which no window can be.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_narrow() -> Option<Self> {
        let metrics = json!({"width": 390, "height": 844, "pixelRatio": 1.0, "touch": false});
        Self::begin(json!({"deviceMetrics": metrics})).await
    }

    async fn begin(emulation: Value) -> Option<Self> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let (Some(driver), Some(axe)) = (variable(DRIVER), variable(AXE)) else {
            skipped(format_args!("{DRIVER} or {AXE} is not set"));
            return None;
        };
        let mut child = Command::new(driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let port = within("chromedriver says its port", async {
            loop {
                let line = lines
                    .next_line()
                    .await
                    .expect("it is read")
                    .expect("it says its port");
                if let Some((_, port)) = line.split_once("started successfully on port ") {
                    return port.trim_end_matches('.').to_owned();
                }
            }
        })
        .await;
        let mut options = json!({"args": [
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=900,700",
        ]});
        if emulation != json!({}) {
            options["mobileEmulation"] = emulation;
        }
        let mut capabilities = Capabilities::new();
        capabilities.set("browserName", "chrome").expect("a text");
        capabilities
            .set("goog:chromeOptions", options)
            .expect("an object");
        let address: SocketAddr = format!("127.0.0.1:{port}").parse().expect("a port");
        let connecting =
            WebDriver::builder(format!("http://{address}"), capabilities).client(Loopback(address));
        let driver = within("a browser starts", async { connecting.await }).await;
        Some(Self {
            driver: driver.expect("a browser starts"),
            axe: fs::read_to_string(axe).expect("axe-core can be read"),
            _process: child,
        })
    }

    /// What drives it.
    pub fn driver(&self) -> &WebDriver {
        &self.driver
    }

    /// Opens a page.
    ///
    /// # Panics
    /// If it can't be opened.
    pub async fn open(&self, url: &str) {
        self.driver.goto(url).await.expect("the page opens");
    }

    /// Evaluates the body of a function.
    ///
    /// # Panics
    /// If it throws.
    pub async fn evaluate(&self, body: &str) -> Value {
        let value = self.driver.execute(body, Vec::new()).await.expect(body);
        value.json().clone()
    }

    /// The element that this selector finds, once there is one.
    ///
    /// # Panics
    /// If there is none in time.
    pub async fn find(&self, css: &str) -> WebElement {
        within(css, self.driver.query(By::Css(css)).first())
            .await
            .expect(css)
    }

    /// Types these characters, one after another, wherever the focus is; [`keys`] are among them.
    ///
    /// # Panics
    /// If the browser has gone.
    pub async fn press(&self, keys: &str) {
        let pressed = self.driver.action_chain().send_keys(keys).perform().await;
        if let Err(error) = pressed {
            // The last key may have led to another page before the driver had looked at this one again.
            let error = format!("{error:?}");
            let has_left = ["aborted by navigation", "no such execution context"];
            assert!(has_left.iter().any(|left| error.contains(left)), "{error}");
        }
    }

    /// What keeps people from using the page as it is now, by the rules of WCAG 2.1 A and AA: one line each.
    ///
    /// # Panics
    /// If it can't be checked.
    pub async fn barriers(&self) -> Vec<String> {
        self.driver
            .execute(&self.axe, Vec::new())
            .await
            .expect("axe-core loads");
        let check = "const done = arguments[arguments.length - 1];
            const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'];
            axe.run(document, {runOnly: {type: 'tag', values: tags}}).then(
                found => done(found.violations.map(of => of.id + ': ' + of.nodes.map(node => node.html).join(' '))),
                error => done(['' + error]),
            );";
        let found = self.driver.execute_async(check, Vec::new()).await;
        let found = found.expect("the page is checked");
        let lines = found.json().as_array().expect("a list").iter();
        lines
            .map(|line| line.as_str().expect("a text").to_owned())
            .collect()
    }

    /// What the window shows, as PNG.
    ///
    /// # Panics
    /// If the browser has gone.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.driver.screenshot_as_png().await.expect("a picture")
    }

    /// Ends it.
    pub async fn close(self) {
        let _ = self.driver.quit().await;
    }
}

/// HTTP to the driver, a connection for each request.
struct Loopback(SocketAddr);

impl Loopback {
    async fn ask(&self, request: Request<String>) -> Result<Response<Bytes>, Box<dyn Error + Send + Sync>> {
        let stream = TokioIo::new(TcpStream::connect(self.0).await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }
}

#[async_trait::async_trait]
impl HttpClient for Loopback {
    async fn send(&self, request: Request<Body<'_>>) -> WebDriverResult<Response<Bytes>> {
        let (mut head, body) = request.into_parts();
        let body = match body {
            Body::Empty => String::new(),
            Body::Json(body) => body.to_string(),
        };
        // The driver does not know the absolute form.
        head.uri = Uri::try_from(head.uri.path()).expect("a path");
        head.headers.insert(HOST, HeaderValue::from_static("127.0.0.1"));
        let answer = self.ask(Request::from_parts(head, body)).await;
        answer.map_err(|error| WebDriverError::HttpError(error.to_string()))
    }

    async fn new(&self) -> Arc<dyn HttpClient> {
        Arc::new(Self(self.0))
    }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"))
}
