//! Raters in browsers, over HTTP and JSON. Each address is bound by configuration to one namespace and one caller: a request says
//! which query, how it was and why, and nothing else of it is believed.
//!
//! | request | answer |
//! |---|---|
//! | `POST /v1/feedback` | 201 with the feedback's id; 400 with every field that is wrong; 403 for an origin that is not allowed; 429 with `Retry-After` |
//! | `POST /v1/ubi`, `/v1/ubi/queries`, `/v1/ubi/events` | what of documents of OpenSearch UBI was recorded: `queries/ubi.rs` |
//! | `GET /widget.js` | the element `<emend-rating>`, for pages |
//! | `GET /livez` | 200 while the process answers at all |

mod address;
mod config;
mod request;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    extract::State,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use emend_base::{Entropy, Error, Lifecycle};
use emend_serve::{
    auth::Access,
    fair_semaphore::ClientKey,
    plain_http::{self, Bounds},
};
use serde_json::json;
use tokio::time::timeout;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

pub use crate::ratings::http::config::{Binding, BindingError, KeyFile, RatingHttp};
use crate::{
    corrections::submit::Item,
    origin::Origin,
    ratings::{Ratings, http::address::ClientAddresses},
};

const WIDGET: &str = include_str!("widget.js");

/// One address, and whose ratings come there.
#[derive(Debug)]
pub(crate) struct Listener {
    ratings: Arc<Ratings>,
    pub(crate) binding: Binding,
    origins: Arc<[String]>,
    addresses: Arc<ClientAddresses>,
    bounds: Bounds,
    max_body: usize,
}

/// Binds the addresses and serves raters there, and `more` that has to do with searches; returns the addresses.
pub(crate) async fn serve(
    config: &RatingHttp,
    ratings: &Arc<Ratings>,
    entropy: &Entropy,
    lifecycle: &Lifecycle,
    more: impl Fn(&Arc<Listener>) -> Router,
) -> anyhow::Result<Vec<SocketAddr>> {
    let mut served = Vec::with_capacity(config.bindings.len());
    let key = config.key.read()?;
    if config.bindings.is_empty() {
        return Ok(served);
    }
    let key = match key {
        Some(key) => key,
        None => shared_key(ratings, entropy).await?,
    };
    let origins: Arc<[String]> = config.origins.clone().into();
    let addresses = Arc::new(ClientAddresses::new(config.trusted_proxies.clone(), &key));
    for binding in config.bindings.clone() {
        let listener = config.bind(&binding.address).await?;
        let address = listener.local_addr()?;
        let Binding {
            namespace, caller, ..
        } = &binding;
        tracing::info!(%address, %namespace, %caller, "ratings are taken over HTTP");
        let listening = Arc::new(Listener {
            ratings: Arc::clone(ratings),
            binding,
            origins: Arc::clone(&origins),
            addresses: Arc::clone(&addresses),
            bounds: config.bounds,
            max_body: config.max_body,
        });
        let routes = more(&listening).merge(routes(listening));
        lifecycle.spawn(
            "serve raters",
            plain_http::accept(listener, routes, config.bounds, lifecycle.clone()),
        );
        served.push(address);
    }
    Ok(served)
}

/// The key that all replicas share in their database.
async fn shared_key(ratings: &Ratings, entropy: &Entropy) -> Result<Vec<u8>, Error> {
    let mut drawn = [0; 32];
    entropy.fill(&mut drawn);
    Ok(ratings.store.address_key(drawn).await?)
}

fn routes(listener: Arc<Listener>) -> Router {
    Router::new()
        .route("/v1/feedback", post(rate).options(preflight))
        .route("/widget.js", get(widget))
        .route("/livez", get("ok\n"))
        .fallback((
            StatusCode::NOT_FOUND,
            "not found: there are only /v1/feedback, /v1/ubi, /widget.js and /livez\n",
        ))
        .with_state(listener)
}

async fn widget() -> impl IntoResponse {
    const HEADERS: [(HeaderName, &str); 4] = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (HEADERS, WIDGET)
}

/// What a browser asks before it sends something from a page of another origin.
pub(crate) async fn preflight(State(listener): State<Arc<Listener>>, headers: HeaderMap) -> Response {
    let Ok(Some(origin)) = listener.origin(&headers) else {
        return refusal(StatusCode::FORBIDDEN, &not_allowed()).into_response();
    };
    let mut answer = StatusCode::NO_CONTENT.into_response();
    allow(&mut answer, origin);
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    answer
        .headers_mut()
        .extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    answer
}

async fn rate(
    State(listener): State<Arc<Listener>>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let store = async |body: &[u8]| listener.store(peer, &headers, body).await;
    listener.take(&headers, body, listener.max_body, store).await
}

impl Listener {
    /// Reads a body of at most that many bytes and answers it, if the page that sends it may.
    pub(crate) async fn take(
        &self,
        headers: &HeaderMap,
        body: Body,
        max_body: usize,
        answer: impl AsyncFnOnce(&[u8]) -> Response,
    ) -> Response {
        let Ok(origin) = self.origin(headers) else {
            return refusal(StatusCode::FORBIDDEN, &not_allowed()).into_response();
        };
        let mut answer = match timeout(self.bounds.patience, to_bytes(body, max_body)).await {
            Ok(Ok(body)) => answer(&body).await,
            Ok(Err(_)) => {
                let error = Error::invalid("", format!("must be at most {max_body} bytes"));
                refusal(StatusCode::PAYLOAD_TOO_LARGE, &error).into_response()
            }
            Err(_) => refusal(StatusCode::REQUEST_TIMEOUT, &Error::DeadlineExceeded).into_response(),
        };
        if let Some(origin) = origin {
            allow(&mut answer, origin);
        }
        answer
    }

    /// The client that a request's permits are counted for.
    pub(crate) fn client_of(&self, peer: SocketAddr, headers: &HeaderMap) -> ClientKey {
        let client = self.addresses.client_of(peer.ip(), headers);
        ClientKey::of(None, Some(client.unwrap_or(peer.ip())))
    }

    async fn store(&self, peer: SocketAddr, headers: &HeaderMap, body: &[u8]) -> Response {
        let Binding {
            namespace, caller, ..
        } = &self.binding;
        let client = self.addresses.client_of(peer.ip(), headers);
        // Whose address nobody knows counts together with all such of this address's caller.
        let key = client
            .map(|client| self.addresses.key_of(client))
            .unwrap_or_default();
        let submission = match request::submission(body, namespace, &key) {
            Ok(submission) => submission,
            Err(violations) => return failed(&violations.into()),
        };
        let origin = Origin {
            caller: caller.clone(),
            // A rating has one right, that of this address; no event says another.
            access: Access::open(),
            client: self.client_of(peer, headers),
            traceparent: String::new(),
        };
        let item = Item::New(Box::new(submission));
        match self.ratings.corrections.submit(&origin, item, None).await {
            Ok(submitted) => {
                let stored = json!({"feedback_id": submitted.feedback.id.to_string()});
                (StatusCode::CREATED, JSON, stored.to_string()).into_response()
            }
            Err(error) => failed(&error),
        }
    }

    /// The origin of the page that sends the request, if it is another one; an error if it is not allowed.
    fn origin<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a HeaderValue>, ()> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(None);
        };
        let text = origin.to_str().map_err(|_| ())?;
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_own = text.split_once("://").is_some_and(|(_, rest)| Some(rest) == host);
        let is_allowed = self
            .origins
            .iter()
            .any(|allowed| allowed == "*" || allowed == text);
        if is_own || is_allowed {
            Ok(Some(origin))
        } else {
            Err(())
        }
    }
}

/// Lets the page read the answer.
fn allow(answer: &mut Response, origin: &HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static("retry-after");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

pub(crate) const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

fn not_allowed() -> Error {
    Error::PermissionDenied {
        reason: "ORIGIN_NOT_ALLOWED",
        message: "pages of this origin may not send ratings".to_owned(),
    }
}

fn failed(error: &Error) -> Response {
    let (status, wait) = match error {
        Error::InvalidArgument(_) => (StatusCode::BAD_REQUEST, None),
        Error::ResourceExhausted { retry_after, .. } => (StatusCode::TOO_MANY_REQUESTS, *retry_after),
        Error::Unavailable { retry_after, .. } => (StatusCode::SERVICE_UNAVAILABLE, *retry_after),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, None),
    };
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(?error, "a rating could not be stored");
    }
    let mut answer = refusal(status, error).into_response();
    if let Some(wait) = wait {
        retry_after(&mut answer, wait);
    }
    answer
}

/// Says how long to wait, in whole seconds, and never too early.
pub(crate) fn retry_after(answer: &mut Response, wait: Duration) {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let value = HeaderValue::from(seconds.max(1));
    answer.headers_mut().insert(header::RETRY_AFTER, value);
}

/// The error's reason, in a sentence, and the fields that are wrong.
fn refusal(status: StatusCode, error: &Error) -> impl IntoResponse + use<> {
    let fields: Vec<_> = match error {
        Error::InvalidArgument(violations) => violations
            .iter()
            .map(|violation| json!({"field": violation.field, "description": violation.description}))
            .collect(),
        _ => Vec::new(),
    };
    let body = json!({"error": {"reason": error.reason(), "message": error.to_string(), "fields": fields}});
    (status, JSON, body.to_string())
}
