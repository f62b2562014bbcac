//! Asking a service over HTTP for JSON: at a bounded rate, with retries, over connections that are kept, and taking only so much of
//! an answer.

mod connection;
pub mod model;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::connection::{Connection, Kept};
use crate::{
    Clock, Entropy, SharedClock,
    backoff::{Backoff, BackoffConfig},
    tls::ClientTls,
};

/// How often a service may send on to another of its addresses.
const MAX_REDIRECTS: usize = 3;
/// Where services say in JSON what is wrong, the place that says most first.
const MESSAGES: [&str; 9] = [
    "/error/message",
    "/error",
    "/message",
    "/detail",
    "/detail/0/msg",
    "/error/msg",
    "/error/caused_by/caused_by/reason",
    "/error/caused_by/reason",
    "/error/reason",
];
/// The longest wait that a service may ask for.
const MAX_WAIT: Duration = Duration::from_mins(2);
/// The most bytes that are read of the answer to a request that failed.
const MAX_ERROR: usize = 64 << 10;
/// The most characters that are shown of it.
const MAX_ERROR_CHARS: usize = 300;
/// The waits between attempts, where the service does not say how long.
const BACKOFF: BackoffConfig = BackoffConfig {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(30),
    multiplier: 2.0,
};

/// The time, and waiting for it; injected.
pub trait Timer: Send + Sync {
    /// The current instant.
    fn now(&self) -> Timestamp;

    /// Ends after this long.
    fn wait(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl Timer for SharedClock {
    fn now(&self) -> Timestamp {
        Clock::now(self.as_ref())
    }

    fn wait(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(span))
    }
}

impl<W: Timer + ?Sized> Timer for &W {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn wait(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        (**self).wait(span)
    }
}

/// How a service is called.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How often a request is tried at most.
    pub attempts: u32,
    /// The least time from one request to the next.
    pub interval: Duration,
    /// The most bytes of an answer; whole MiB.
    pub max_answer: usize,
}

/// How a service knows its caller.
#[derive(Clone)]
pub enum Key {
    /// It does not.
    None,
    /// By a header.
    Header(HeaderName, HeaderValue),
    /// By a parameter of the query; its value is percent-encoded.
    Parameter(&'static str, String),
}

/// Why a service gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{service}: {message}")]
pub struct ServiceError {
    /// The service's name.
    pub service: &'static str,
    /// What happened.
    pub message: String,
    /// What that means for the caller.
    pub kind: ErrorKind,
    /// How long the service asks to wait before it is asked again.
    pub after: Option<Duration>,
    /// The JSON with which it refuses, if it is JSON: what a program reads there, in the service's own terms.
    pub answer: Option<Box<Value>>,
}

/// What having no answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The service has no such thing.
    NotFound,
    /// It may answer later.
    Later,
    /// It refuses the request with this status, and will again: the request, or the right to make it, is wrong.
    Refused(u16),
    /// It answers with a page for browsers, or sends a request elsewhere that can't be sent on: the address is likely not that of
    /// the service.
    Misplaced,
    /// What it answers can't be used.
    Never,
}

/// Why an attempt failed.
enum Attempt {
    Final(ErrorKind, String),
    /// It is refused with this status, in these words and in this JSON.
    Refused(StatusCode, String, Option<Box<Value>>),
    Retry {
        message: String,
        after: Option<Duration>,
    },
}

/// Is told, before each further attempt, what happened and how long is waited.
pub type OnRetry = Box<dyn Fn(&str, Duration) + Send + Sync>;

/// A client of one service.
pub struct Client<'a> {
    service: &'static str,
    /// Its address, without a slash at the end.
    base: Uri,
    key: Key,
    tls: ClientTls,
    limits: Limits,
    waiting: Arc<dyn Timer + 'a>,
    entropy: Entropy,
    agent: &'static str,
    on_retry: OnRetry,
    next: Mutex<Option<Timestamp>>,
    kept: Kept,
}

impl fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl<'a> Client<'a> {
    /// A client of the service at this address; `agent` is how it calls itself.
    pub fn new(
        service: &'static str,
        base: Uri,
        key: Key,
        limits: Limits,
        waiting: Arc<dyn Timer + 'a>,
        entropy: Entropy,
        agent: &'static str,
    ) -> Self {
        Self {
            service,
            base,
            key,
            tls: ClientTls::default(),
            limits,
            waiting,
            entropy,
            agent,
            on_retry: Box::new(|_, _| {}),
            next: Mutex::new(None),
            kept: Kept::default(),
        }
    }

    /// The same, telling of each further attempt.
    #[must_use]
    pub fn on_retry(mut self, on_retry: OnRetry) -> Self {
        self.on_retry = on_retry;
        self
    }

    /// The same, verifying the service with these files instead of the system's CAs.
    #[must_use]
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = tls;
        self
    }

    /// Gets what is at a path below the service's address, with its query.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ServiceError> {
        self.send(Method::GET, path, None).await
    }

    /// Sends JSON to a path below the service's address; an empty one is the address itself.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, message: &Value) -> Result<T, ServiceError> {
        self.send(Method::POST, path, Some(message)).await
    }

    /// The same with any method, with JSON or without.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        message: Option<&Value>,
    ) -> Result<T, ServiceError> {
        let body = message.map(|message| message.to_string().into());
        let answer = self
            .ask(&method, path, &HeaderMap::new(), body.unwrap_or_default())
            .await?;
        serde_json::from_slice(&answer).map_err(|error| {
            if is_page(&answer) {
                return self.error(ErrorKind::Misplaced, "answered a page for browsers, not JSON");
            }
            self.error(
                ErrorKind::Never,
                format!("answered something else than expected: {error}"),
            )
        })
    }

    /// Sends JSON with these headers to the service's address, whatever it answers with success.
    pub async fn deliver(&self, headers: &HeaderMap, json: Bytes) -> Result<(), ServiceError> {
        self.ask(&Method::POST, "", headers, json).await.map(drop)
    }

    /// That the service gave no answer that can be used.
    pub fn error(&self, kind: ErrorKind, message: impl Into<String>) -> ServiceError {
        ServiceError {
            service: self.service,
            message: message.into(),
            kind,
            after: None,
            answer: None,
        }
    }

    async fn ask(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Bytes, ServiceError> {
        let mut backoff = Backoff::new(BACKOFF, self.entropy.clone());
        let mut tried = 0;
        loop {
            self.pace().await;
            let answer = tokio::select! {
                answer = self.attempt(method, path, headers, &body) => answer,
                () = self.waiting.wait(self.limits.timeout) => Err(Attempt::Retry {
                    message: format!("no answer within {:?}", self.limits.timeout),
                    after: None,
                }),
            };
            tried += 1;
            let (message, after) = match answer {
                Ok(answer) => return Ok(answer),
                Err(Attempt::Final(kind, message)) => return Err(self.error(kind, message)),
                Err(Attempt::Refused(status, message, answer)) => {
                    let kind = match status {
                        StatusCode::NOT_FOUND => ErrorKind::NotFound,
                        status => ErrorKind::Refused(status.as_u16()),
                    };
                    return Err(ServiceError {
                        answer,
                        ..self.error(kind, message)
                    });
                }
                Err(Attempt::Retry { message, after }) => (message, after),
            };
            if tried >= self.limits.attempts {
                let message = format!("{message} (attempt {tried} of {tried})");
                return Err(ServiceError {
                    after,
                    ..self.error(ErrorKind::Later, message)
                });
            }
            let wait = match after {
                Some(asked) if asked > MAX_WAIT => {
                    let message =
                        format!("{message}, and asks to wait {asked:?}; at most {MAX_WAIT:?} are waited");
                    return Err(ServiceError {
                        after,
                        ..self.error(ErrorKind::Later, message)
                    });
                }
                Some(asked) => asked,
                None => backoff.next(),
            };
            (self.on_retry)(&format!("{}: {message}", self.service), wait);
            self.waiting.wait(wait).await;
        }
    }

    /// Waits until the next request may begin.
    async fn pace(&self) {
        let now = self.waiting.now();
        let wait = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = next.map_or(now, |next| next.max(now));
            let interval = SignedDuration::try_from(self.limits.interval).unwrap_or(SignedDuration::MAX);
            *next = Some(begin.saturating_add(interval).unwrap_or(begin));
            Duration::try_from(begin.duration_since(now)).unwrap_or_default()
        };
        if !wait.is_zero() {
            self.waiting.wait(wait).await;
        }
    }

    /// One request, and those that its answer sends on to.
    async fn attempt(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Bytes, Attempt> {
        let mut path = self.path(path);
        for _ in 0..=MAX_REDIRECTS {
            let (status, answer) = self.exchange(method, &path, headers, body).await?;
            match answer {
                Answer::Whole(bytes) => return Ok(bytes),
                Answer::Elsewhere(location) if method == Method::GET => {
                    path = self.on_this_host(&location)?;
                }
                Answer::Elsewhere(location) => {
                    let to = self.shown(&location).unwrap_or_default();
                    return Err(Attempt::Final(
                        ErrorKind::Misplaced,
                        format!("answered {status} and sends on to {to}, which is not followed"),
                    ));
                }
            }
        }
        Err(Attempt::Final(
            ErrorKind::Never,
            format!("sends on more than {MAX_REDIRECTS} times"),
        ))
    }

    /// The path below the service's address, with the key if that is a parameter.
    fn path(&self, path: &str) -> String {
        let base = self.base.path_and_query().map_or("", |path| path.as_str());
        let path = format!("{}{path}", base.trim_end_matches('/'));
        let path = if path.starts_with('/') {
            path
        } else {
            format!("/{path}")
        };
        let Key::Parameter(name, key) = &self.key else {
            return path;
        };
        let joint = if path.contains('?') { '&' } else { '?' };
        format!("{path}{joint}{name}={key}")
    }

    /// Where an answer sends on to, if that is on the same host.
    fn on_this_host(&self, location: &str) -> Result<String, Attempt> {
        let refuse =
            |why: &str| Attempt::Final(ErrorKind::Never, format!("sends on {why}, which is not followed"));
        // What begins so names a host, though `Uri` reads it as a path.
        let absolute = if location.starts_with("//") {
            format!("{}:{location}", self.base.scheme_str().unwrap_or_default())
        } else {
            location.to_owned()
        };
        let to: Uri = absolute.parse().map_err(|_| refuse("to what is no address"))?;
        if let Some(host) = to.authority()
            && (to.scheme() != self.base.scheme() || Some(host) != self.base.authority())
        {
            return Err(refuse(&format!("to another host, {host}")));
        }
        match to.path_and_query() {
            Some(path) if path.as_str().starts_with('/') => Ok(path.as_str().to_owned()),
            _ => Err(refuse("to what is no address")),
        }
    }

    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<(StatusCode, Answer), Attempt> {
        let request = self.request(method, path, headers, body)?;
        // The service may close what was kept just as the request is sent; then another one is used.
        while let Some(kept) = self.kept.take(self.waiting.now()).await {
            if let Ok(answer) = self.exchange_over(kept, request.clone()).await {
                return answer;
            }
        }
        let lost = |message: String| Attempt::Retry { message, after: None };
        let new = Connection::open(&self.base, self.tls.clone())
            .await
            .map_err(|error| lost(format!("can't be reached: {error}")))?;
        self.exchange_over(new, request)
            .await
            .map_err(|error| lost(format!("the connection ended before an answer: {error}")))?
    }

    /// An exchange over this connection, which is kept if the answer was read to its end; an error if it ended before one.
    async fn exchange_over(
        &self,
        mut connection: Connection,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Result<(StatusCode, Answer), Attempt>> {
        let answer = connection
            .exchange(request, async |response| self.read(response).await)
            .await?;
        if let Ok((_, Answer::Whole(_))) = answer {
            self.kept.keep(connection, self.waiting.now());
        }
        Ok(answer)
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Request<Full<Bytes>>, Attempt> {
        let host = self.base.authority().map_or("", http::uri::Authority::as_str);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, host)
            // What is JSON may be called otherwise, as sets of keys are.
            .header(ACCEPT, "application/json, */*;q=0.1")
            .header(USER_AGENT, self.agent);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Key::Header(name, value) = &self.key {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(Full::new(body.clone())).map_err(|_| {
            Attempt::Final(
                ErrorKind::Never,
                "can't be asked: its address is not valid".into(),
            )
        })
    }

    async fn read(&self, response: Response<hyper::body::Incoming>) -> Result<(StatusCode, Answer), Attempt> {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if status.is_redirection()
            && let Some(location) = header(LOCATION)
        {
            return Ok((status, Answer::Elsewhere(location.to_owned())));
        }
        if !status.is_success() {
            let now = self.waiting.now();
            let after = header(RETRY_AFTER).and_then(|value| retry_after(value, now));
            let is_passing = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY
            );
            let body = Limited::new(response.into_body(), MAX_ERROR).collect().await;
            let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let answer: Option<Value> = serde_json::from_slice(&body).ok();
            let reason = match &answer {
                Some(json) => self.message_of(json),
                // A page for browsers says nothing that a line has room for.
                None if is_page(&body) => None,
                None => self.shown(&String::from_utf8_lossy(&body)),
            };
            let message = match reason {
                Some(reason) => format!("answered {status}: {reason}"),
                None => format!("answered {status}"),
            };
            return Err(if is_passing || status.is_server_error() {
                Attempt::Retry { message, after }
            } else {
                Attempt::Refused(status, message, answer.map(Box::new))
            });
        }
        match Limited::new(response.into_body(), self.limits.max_answer)
            .collect()
            .await
        {
            Ok(whole) => Ok((status, Answer::Whole(whole.to_bytes()))),
            Err(error) if error.is::<LengthLimitError>() => Err(Attempt::Final(
                ErrorKind::Never,
                format!("answered more than {} MiB", self.limits.max_answer >> 20),
            )),
            Err(_) => Err(Attempt::Retry {
                message: "the connection ended within the answer".into(),
                after: None,
            }),
        }
    }
}

impl Client<'_> {
    /// The message of an error as services put it into JSON, in one line and shortened.
    pub fn message_of(&self, error: &Value) -> Option<String> {
        let message = MESSAGES.iter().find_map(|place| error.pointer(place)?.as_str())?;
        self.shown(message)
    }

    /// A service's own words in one line, shortened and without the key, which some services repeat; none if nothing is left.
    pub fn shown(&self, text: &str) -> Option<String> {
        let text = match self.key.secret() {
            Some(secret) => text.replace(secret, "[key]"),
            None => text.to_owned(),
        };
        let cleaned = emend_core::text::clean(&text);
        let mut line = cleaned.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(MAX_ERROR_CHARS) {
            line.truncate(end);
            line.push('…');
        }
        (!line.is_empty()).then_some(line)
    }
}

/// Whether an answer is a page for browsers.
fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

impl Key {
    /// What must not be shown.
    fn secret(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Header(_, value) => value.to_str().ok()?.rsplit(' ').next(),
            Self::Parameter(_, value) => Some(value.as_str()),
        }
        .filter(|secret| !secret.is_empty())
    }
}

/// What was answered.
enum Answer {
    /// This.
    Whole(Bytes),
    /// That it is to be had there.
    Elsewhere(String),
}

/// How long to wait by the header `Retry-After`: a number of seconds or a date (RFC 9110, 10.2.3).
fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(value)
        .ok()?;
    // What is past is now.
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}
