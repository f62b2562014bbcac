//! Look-ups over HTTP and JSON.
//!
//! `GET` takes what a look-up takes from the address, `POST` from a JSON object, or a list of them for many at once. Every answer
//! names the revision that answered; `min_revision` waits for one.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, RawQuery, Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use emend_binding::{Error, Node};
use emend_serve::{auth::Authenticator, hosts::Hosts};
use http::{StatusCode, Uri, header::CONTENT_TYPE};
use serde_json::Value;
use tokio::time::Instant;
use tonic::Code;

use crate::{
    answer::{Answered, Answers, Item, Refusal, Refused, json_of},
    caller::Caller,
    fields::Fields,
    followed::Followed,
    lookups::{self, Lookup, Visitor},
    metrics::EdgeMetrics,
    openapi, violations,
};

/// The longest body, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// The most look-ups of one request.
pub(crate) const MOST: usize = 1_000;
/// What probes ask, under whatever name they know the process.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The node that answers.
    pub node: Arc<Node>,
    /// The namespaces that it answers for.
    pub followed: Arc<Followed>,
    /// Whether it holds what users taught for themselves, and their profiles.
    pub holds_users: bool,
    /// Who may ask; none: whoever can connect.
    pub authenticator: Option<Arc<Authenticator>>,
    /// Where requests are counted.
    pub metrics: EdgeMetrics,
    /// Under which names it may be asked; none on a socket that browsers can't reach.
    pub hosts: Option<Hosts>,
}

/// All addresses.
pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    let mut lookups = Lookups {
        shared: Arc::clone(&shared),
        routes: Router::new(),
    };
    lookups::each(&mut lookups);
    Router::new()
        .route("/v1/status", get(status))
        .route("/livez", get(|| async { "live\n" }))
        .route("/readyz", get(ready))
        .route("/openapi.json", get(description))
        .merge(lookups.routes)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(&shared), guarded))
        .with_state(shared)
}

/// The addresses of look-ups.
struct Lookups {
    shared: Arc<Shared>,
    routes: Router<Arc<Shared>>,
}

impl Visitor for Lookups {
    fn visit<L: Lookup + 'static>(&mut self) {
        let methods = get(ask::<L>)
            .post(tell::<L>)
            .layer(from_fn_with_state(Arc::clone(&self.shared), measured::<L>));
        let routes = std::mem::take(&mut self.routes);
        self.routes = routes.route(&format!("/v1/{{namespace}}/{}", L::NAME), methods);
    }
}

/// The names of look-ups.
struct Names(Vec<&'static str>);

impl Visitor for Names {
    fn visit<L: Lookup + 'static>(&mut self) {
        self.0.push(L::NAME);
    }
}

async fn unknown(uri: Uri) -> Refused {
    let mut names = Names(Vec::new());
    lookups::each(&mut names);
    let path = uri.path();
    Refused(Error::not_found(format!(
        "nothing is at {path}: look-ups are at /v1/NAMESPACE/ and one of {}",
        names.0.join(", ")
    )))
}

/// Refuses what was asked under a foreign name or by a page of another site.
async fn guarded(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if let Some(hosts) = &shared.hosts {
        let (uri, headers) = (request.uri(), request.headers());
        let is_ours = hosts.is_asked(uri, headers) && hosts.is_own_origin(headers);
        if !is_ours && !PROBES.contains(&uri.path()) {
            let why = "asked under the name of another host, or by a page of another site; the setting names says by which \
                       names the edge is reached";
            return Refused(Error::new(Code::PermissionDenied, "FOREIGN_HOST", why)).into_response();
        }
    }
    next.run(request).await
}

/// Counts a request for a look-up.
async fn measured<L: Lookup>(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let answer = next.run(request).await;
    shared.metrics.answered(L::NAME, answer.status(), began.elapsed());
    answer
}

async fn status(_: Caller, State(shared): State<Arc<Shared>>) -> Result<Response, Refused> {
    Ok(json_of(StatusCode::OK, &shared.node.status()?))
}

async fn ready(State(shared): State<Arc<Shared>>) -> Result<&'static str, Refused> {
    revision(&shared.node)?;
    Ok("ready\n")
}

async fn description() -> Response {
    ([(CONTENT_TYPE, "application/json")], openapi::text()).into_response()
}

/// The revision that it answers from; an error before its first state.
pub(crate) fn revision(node: &Node) -> Result<i64, Error> {
    let status = node.status()?;
    if status.origin == "nothing" {
        let why = if status.last_error.is_empty() {
            "it is connecting"
        } else {
            &status.last_error
        };
        return Err(Error::unavailable(format!(
            "the edge has nothing to answer from yet: {why}"
        )));
    }
    Ok(status.revision)
}

async fn ask<L: Lookup>(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Path(namespace): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    shared.admit(&caller, &namespace)?;
    let mut fields = Fields::of(query.as_deref());
    fields.waited(&shared.node).await?;
    Ok(shared.answered::<L>(&caller, &namespace, &Value::Object(fields.0))?)
}

async fn tell<L: Lookup>(
    caller: Caller,
    State(shared): State<Arc<Shared>>,
    Path(namespace): Path<String>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, Refused> {
    shared.admit(&caller, &namespace)?;
    let mut fields = Fields::of(query.as_deref());
    fields.waited(&shared.node).await?;
    if let Some(name) = fields.0.keys().next() {
        let why = "must be in the body; the address has min_revision and timeout alone";
        return Err(Error::of_field(name, why).into());
    }
    let body: Value =
        serde_json::from_slice(&body).map_err(|error| Error::of_field("body", error.to_string()))?;
    match &body {
        Value::Array(asked) => Ok(shared.all_answered::<L>(&caller, &namespace, asked)?),
        asked => Ok(shared.answered::<L>(&caller, &namespace, asked)?),
    }
}

/// Why nothing of a user's own is answered: an answer without it would look like one with it.
fn without_users() -> Error {
    let why = "this edge holds nothing of users' own: to have it answer with that, set include_user_scoped = true in [node] of its \
               edge.toml, or start it with --user-scoped";
    Error::of_field("user", why)
}

impl Shared {
    /// Refuses a namespace that the caller may not read, or that the edge does not follow.
    fn admit(&self, caller: &Caller, namespace: &str) -> Result<(), Error> {
        caller.may_ask(namespace, false).map_err(Error::refused)?;
        self.followed.check(namespace)
    }

    // The revision is read before what is answered: whatever is applied meanwhile, the answer is not older than it says.

    fn answered<L: Lookup>(
        &self,
        caller: &Caller,
        namespace: &str,
        asked: &Value,
    ) -> Result<Response, Error> {
        let revision = revision(&self.node)?;
        let answer = self.answer::<L>(caller, namespace, asked)?;
        Ok(json_of(StatusCode::OK, &Answered { revision, answer }))
    }

    fn all_answered<L: Lookup>(
        &self,
        caller: &Caller,
        namespace: &str,
        asked: &[Value],
    ) -> Result<Response, Error> {
        if asked.len() > MOST {
            let why = format!("must be at most {MOST} look-ups, are {}", asked.len());
            return Err(Error::of_field("body", why));
        }
        let revision = revision(&self.node)?;
        let answers = asked
            .iter()
            .map(|asked| match self.answer::<L>(caller, namespace, asked) {
                Ok(answer) => Item::Answer(answer),
                Err(error) => Item::Refused(Refusal::from(&error)),
            });
        let answers = answers.collect();
        Ok(json_of(StatusCode::OK, &Answers { revision, answers }))
    }

    /// Answers one look-up, if its caller may ask it.
    pub(crate) fn answer<L: Lookup>(
        &self,
        caller: &Caller,
        namespace: &str,
        asked: &Value,
    ) -> Result<L::Answer, Error> {
        let lookup = violations::parse::<L>(asked)?;
        if lookup.is_for_a_user() {
            caller.may_ask(namespace, true).map_err(Error::refused)?;
        }
        if lookup.user().is_some() && !self.holds_users {
            return Err(without_users());
        }
        lookup.answer(&self.node, namespace)
    }
}
