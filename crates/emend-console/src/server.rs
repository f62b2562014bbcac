//! How each request becomes a page.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::to_bytes,
    extract::{Path, Request, State},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use emend_base::{Environment, Lifecycle, telemetry::Metrics};
use emend_serve::plain_http::{self, Bounds};
use http::{HeaderMap, Method, StatusCode, Uri, header::SET_COOKIE};
use serde::Deserialize;
use tokio::{
    net::TcpListener,
    time::{Instant, timeout},
};

use crate::{
    access::Access,
    addresses,
    assets::Assets,
    config::ConsoleConfig,
    failure::{Failure, Refused},
    form::{Fields, segment},
    guard::{self, Hosts, NO_ANCESTORS},
    live::Hub,
    metrics::ConsoleMetrics,
    page::{Answer, Part, SignIn, Visitor, failed, html},
    pages,
    services::Services,
    session::{self, Sessions, Theme},
    text::Language,
};

/// The longest form that is read, in bytes: a prompt of 32,768 characters and what is sent beside it, encoded.
const MAX_FORM: usize = 1024 * 1024;
/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// Open pages hold a connection each, often all through one proxy.
const BOUNDS: Bounds = Bounds {
    connections: 4_096,
    patience: plain_http::PATIENCE,
    served: Duration::from_hours(12),
};

/// What the console shares among requests.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The two services.
    pub services: Services,
    /// Scripts and styles.
    pub assets: Arc<Assets>,
    /// Cookies.
    pub sessions: Sessions,
    /// What changes.
    pub hub: Hub,
    /// What is counted and measured.
    pub metrics: ConsoleMetrics,
    /// The clock.
    pub clock: emend_base::SharedClock,
    /// Random ids.
    pub entropy: emend_base::Entropy,
    /// Where people reach the console: scheme and host.
    pub own_address: String,
    hosts: Hosts,
    namespace: String,
    ancestors: String,
}

/// A console that is served.
#[derive(Debug)]
pub struct Console {
    address: SocketAddr,
}

impl Console {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves the console until the environment's lifecycle ends.
pub fn serve(
    listener: TcpListener,
    config: &ConsoleConfig,
    services: Services,
    metrics: &Metrics,
    environment: &Environment,
) -> std::io::Result<Console> {
    let address = listener.local_addr()?;
    let Environment {
        lifecycle,
        clock,
        entropy,
    } = environment;
    let ancestors: Vec<_> = config.frame_ancestors.iter().map(ToString::to_string).collect();
    let shared = Arc::new(Shared {
        services,
        assets: Arc::new(Assets::new()),
        sessions: Sessions::new(config, clock.clone(), entropy.clone()),
        hub: Hub::new(lifecycle.clone(), entropy.clone(), ConsoleMetrics::of(metrics)),
        metrics: ConsoleMetrics::of(metrics),
        clock: clock.clone(),
        entropy: entropy.clone(),
        own_address: match config.public_urls.first() {
            Some(url) => url.to_string(),
            None => format!("http://{address}"),
        },
        hosts: Hosts::new(config, address),
        namespace: config.namespace.clone(),
        ancestors: format!("'self' {}", ancestors.join(" ")).trim_end().to_owned(),
    });
    let lifecycle: &Lifecycle = lifecycle;
    let accepting = plain_http::accept(listener, addresses::routes(shared), BOUNDS, lifecycle.clone());
    lifecycle.spawn("serve the console", accepting);
    Ok(Console { address })
}

/// What the paths of pages name.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Parameters {
    namespace: String,
    #[serde(default)]
    item: String,
}

pub(crate) async fn asset(
    State(console): State<Arc<Shared>>,
    path: Path<String>,
    headers: HeaderMap,
) -> Response {
    console.assets.send(path, &headers)
}

/// The script of the rating dialogs, under an address that stays the same for pages of applications.
pub(crate) async fn rate_script(State(console): State<Arc<Shared>>) -> Redirect {
    Redirect::temporary(console.assets.path("rate.js"))
}

/// Refuses what no page should see, and adds to every answer what browsers must keep to.
pub(crate) async fn guarded(State(console): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let refusal = console
        .hosts
        .refusal(request.method(), request.uri(), request.headers());
    let is_rate = request
        .uri()
        .path()
        .strip_prefix("/ns/")
        .and_then(|rest| rest.split('/').nth(1))
        == Some(Part::Rate.path());
    let mut response = match refusal {
        Some(why) => (StatusCode::MISDIRECTED_REQUEST, why).into_response(),
        None => next.run(request).await,
    };
    let ancestors = if is_rate {
        &*console.ancestors
    } else {
        NO_ANCESTORS
    };
    guard::protect(response.headers_mut(), ancestors);
    response
}

/// The peer of a request.
pub(crate) fn peer(request: &Request) -> SocketAddr {
    let peer = request.extensions().get::<SocketAddr>().copied();
    peer.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)))
}

/// Shows a page, or does what a form says and then sends the person on.
pub(crate) async fn answer(
    console: Arc<Shared>,
    path: Parameters,
    request: Request,
    part: Part,
    handler: impl AsyncFnOnce(&Visitor, &Fields) -> Answer,
) -> Response {
    let (began, metrics) = (Instant::now(), console.metrics.clone());
    let response = answered(console, path, request, part, handler).await;
    metrics.answered(part, response.status(), began.elapsed());
    response
}

async fn answered(
    console: Arc<Shared>,
    path: Parameters,
    request: Request,
    part: Part,
    handler: impl AsyncFnOnce(&Visitor, &Fields) -> Answer,
) -> Response {
    let session = console.sessions.of(request.headers(), peer(&request));
    let (language, theme) = (
        session::language(request.headers()),
        session::theme(request.headers()),
    );
    let is_form = request.method() == Method::POST;
    // A link from elsewhere comes without the cookie that the browser has: no other one may replace it.
    let is_foreign = request
        .headers()
        .get("sec-fetch-site")
        .is_some_and(|site| site == "cross-site");
    let uri = request.uri().clone();
    let fields = match fields(request).await {
        Ok(fields) => fields,
        Err(why) => return (StatusCode::PAYLOAD_TOO_LARGE, why).into_response(),
    };
    let services = console.services.by(session.authorization.clone());
    let asked = if services.is_nobody() {
        Err(Refused::SignIn { why: None })
    } else {
        let asked = Access::read(&services, &path.namespace).await;
        asked.map_err(Refused::from)
    };
    let (access, refused) = match asked {
        Ok(access) => (access, None),
        Err(refused) => (Access::unknown(), Some(refused)),
    };
    let visitor = Visitor {
        console: Arc::clone(&console),
        session,
        services,
        access,
        language,
        theme,
        namespace: path.namespace,
        item: path.item,
        uri,
        is_form,
    };
    let answer = match refused {
        Some(refused) => Err(refused),
        None if is_form
            && !console
                .sessions
                .is_form_token(&visitor.session, fields.get("form_token")) =>
        {
            // Without a session the form is of one that has ended: signing in again keeps what was typed.
            if visitor.session.has_expired || visitor.session.is_new && visitor.access.authenticated {
                Err(Refused::SignIn { why: None })
            } else {
                Err(Refused::Failed(Failure::new(
                    StatusCode::FORBIDDEN,
                    language.t(
                        "This form is of another session: send it again.",
                        "フォームの有効期限が切れています。もう一度送信してください。",
                    ),
                )))
            }
        }
        None => handler(&visitor, &fields).await,
    };
    let sent = if is_form { fields } else { Fields::default() };
    let mut response = match answer {
        Ok(response) => response,
        Err(Refused::Failed(failure)) => failed(&visitor, part, failure, &sent),
        Err(Refused::Answered(status)) => {
            let failure = visitor.failure(&status);
            if failure.status == StatusCode::SERVICE_UNAVAILABLE {
                // The page's own watch warns of it, once.
                tracing::info!(%status, "a page can't be shown: a service is away");
            }
            failed(&visitor, part, failure, &sent)
        }
        Err(Refused::SignIn { why }) => {
            // Of whoever showed no token there is nothing to say.
            let why = why.filter(|_| visitor.session.authorization.is_some());
            let sent = is_form.then_some(&sent);
            let framed = (part == Part::Rate).then(|| pages::rate::signed_out(&visitor, sent));
            framed
                .flatten()
                .unwrap_or_else(|| must_sign_in(&visitor, why, sent))
        }
    };
    if visitor.session.is_new && visitor.session.authorization.is_none() && !is_foreign {
        let cookie = console.sessions.keep_anonymous(&visitor.session.id);
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The fields of a form, or of an address.
pub(crate) async fn fields(request: Request) -> Result<Fields, &'static str> {
    if request.method() != Method::POST {
        return Ok(Fields::parse(
            request.uri().query().unwrap_or_default().as_bytes(),
        ));
    }
    let reading = to_bytes(request.into_body(), MAX_FORM);
    match timeout(PATIENCE, reading).await {
        Ok(Ok(body)) => Ok(Fields::parse(&body)),
        Ok(Err(_)) => Err("the form is longer than 1 MiB, or ended early\n"),
        Err(_) => Err("the form did not arrive within 20 s\n"),
    }
}

/// Asks somebody to sign in; what a form sent is carried on.
fn must_sign_in(visitor: &Visitor, why: Option<String>, sent: Option<&Fields>) -> Response {
    let language = visitor.language;
    let kept = language.t(
        "Your session has ended. What you typed is kept: sign in and send it again.",
        "セッションが終了しました。入力内容は保持されています。再度サインインして送信してください。",
    );
    let why = match why {
        Some(why) if sent.is_some() => format!("{kept} ({why})"),
        Some(why) => why,
        None if visitor.session.has_expired || sent.is_some() => kept.to_owned(),
        None => String::new(),
    };
    let path = visitor.uri.path().to_owned();
    let resume = sent.map(|fields| (path, fields.without(&["form_token"]).pairs().to_vec()));
    let back = if resume.is_some() {
        visitor.to(Part::Today, &Fields::default())
    } else {
        visitor.uri.to_string()
    };
    let page = SignIn {
        language,
        theme: visitor.theme,
        assets: Arc::clone(&visitor.console.assets),
        form_token: visitor.console.sessions.form_token(&visitor.session),
        back,
        why,
        by_proxy: visitor.session.by_proxy,
        resume,
    };
    html(StatusCode::UNAUTHORIZED, &page)
}

pub(crate) async fn home(State(console): State<Arc<Shared>>) -> Redirect {
    Redirect::to(&format!("/ns/{}/today", segment(&console.namespace)))
}

/// Goes to the same part of another namespace, which somebody typed or chose.
pub(crate) async fn choose(State(console): State<Arc<Shared>>, uri: Uri) -> Redirect {
    let fields = Fields::parse(uri.query().unwrap_or_default().as_bytes());
    let namespace = match fields.get("namespace") {
        "" => &console.namespace,
        namespace => namespace,
    };
    let part = Part::ALL
        .into_iter()
        .find(|part| part.path() == fields.get("part"));
    let part = part.unwrap_or(Part::Today);
    Redirect::to(&format!("/ns/{}/{}", segment(namespace), part.path()))
}

/// An address of this console to go back to; its first page for everything else.
pub(crate) fn own_address(text: &str) -> &str {
    let is_own = text.starts_with('/') && !text.starts_with("//") && !text.contains(['\\', '\r', '\n', '\t']);
    if is_own { text } else { "/" }
}

/// Keeps a language or colours, and shows the page again.
pub(crate) async fn prefer(State(console): State<Arc<Shared>>, request: Request) -> Response {
    let fields = fields(request).await.unwrap_or_default();
    let mut response = Redirect::to(own_address(fields.get("back"))).into_response();
    let headers = response.headers_mut();
    if let Some(language) = Language::of(fields.get("language")) {
        headers.append(SET_COOKIE, console.sessions.prefer_language(language));
    }
    if fields.has("theme") {
        headers.append(
            SET_COOKIE,
            console.sessions.prefer_theme(Theme::of(fields.get("theme"))),
        );
    }
    response
}

pub(crate) async fn live(
    State(console): State<Arc<Shared>>,
    Path(path): Path<Parameters>,
    Extension(peer): Extension<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let session = console.sessions.of(&headers, peer);
    console
        .hub
        .follow(&console.services.by(session.authorization), &path.namespace)
}

#[cfg(test)]
mod tests {
    use super::own_address;

    #[test]
    fn nobody_is_sent_to_another_site() {
        assert_eq!(
            own_address("/ns/default/review?item=1"),
            "/ns/default/review?item=1"
        );
        for foreign in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "evil",
            "/\tx",
        ] {
            assert_eq!(own_address(foreign), "/", "{foreign}");
        }
    }
}
