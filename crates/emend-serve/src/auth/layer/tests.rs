//! Calls in progress while their caller's token expires or its rights change.

use std::{fs, path::PathBuf};

use emend_base::tls::Validity;
use emend_base::{
    clock::{ManualClock, SharedClock},
    entropy::Entropy,
    reload::Reload as _,
    telemetry::metrics::Metrics,
};
use futures::FutureExt as _;
use http::header::AUTHORIZATION;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tower::{ServiceExt as _, service_fn};

use super::*;
use crate::{
    auth::{
        Namespaces, Reaches, Role, rule,
        testing::{access_of, by_shared_key},
    },
    library::{FOLLOW, IMPORT, SERVICE, descriptors},
    metrics::ServerMetrics,
    server::trace_context::TraceLayer,
    tls::PeerNames,
};

const RULES: [Rule; 2] = [
    rule(FOLLOW, Role::Subscriber, Reaches::Narrowed),
    rule(IMPORT, Role::Operator, Reaches::One),
];
const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A stream that never yields anything.
struct Silent;

impl HttpBody for Silent {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        Poll::Pending
    }
}

fn token(expires_at: i64) -> String {
    let claims = json!({"sub": "node", "aud": "emend", "exp": expires_at});
    by_shared_key(KEY, &json!({"alg": "HS256"}), &claims)
}

/// An authenticator that knows one principal, by its JWTs.
struct Known {
    authenticator: Arc<Authenticator>,
    clock: Arc<ManualClock>,
    directory: TempDir,
}

impl Known {
    /// The clock shows 1,000 s.
    fn new(name: &str, role: &str, namespaces: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("key"), KEY).unwrap();
        let file = write(&directory, name, role, namespaces);
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_000).unwrap()));
        let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
        let authenticator = Arc::new(Authenticator::load_by(&file, shared).unwrap());
        Self {
            authenticator,
            clock,
            directory,
        }
    }

    /// Replaces the file's content.
    fn rewrite(&self, name: &str, role: &str, namespaces: &str) {
        write(&self.directory, name, role, namespaces);
        assert!(self.authenticator.reload_if_changed());
    }
}

fn write(directory: &TempDir, name: &str, role: &str, namespaces: &str) -> PathBuf {
    let file = directory.path().join("auth.toml");
    let text = format!(
        "[jwt]\naudience = \"emend\"\nshared_key_file = \"key\"\n[[principals]]\nname = \"{name}\"\n\
         jwt_subjects = [\"node\"]\ncertificates = [\"node.example\"]\ngrants = [{{ roles = [\"{role}\"], namespaces = {namespaces} }}]\n"
    );
    fs::write(&file, text).unwrap();
    file
}

fn layer(authenticator: &Arc<Authenticator>) -> AuthLayer {
    let authentication = (Arc::clone(authenticator), Rules::of(&RULES));
    AuthLayer::new(Some(authentication), Methods::of(descriptors()))
}

/// Names the namespace `shop`.
struct Header;
struct Messages;

crate::addresses! {
    Messages;
    Header => |_it| Namespaces::One("shop");
}

/// Subscribes with a token or, without one, on a connection with a certificate that is valid until 1,059 s.
async fn subscribe(authenticator: &Arc<Authenticator>, token: Option<&str>) -> Response<Body> {
    subscribe_until(authenticator, token, CancellationToken::new()).await
}

/// The same; the certificate is withdrawn with `withdrawn`.
async fn subscribe_until(
    authenticator: &Arc<Authenticator>,
    token: Option<&str>,
    withdrawn: CancellationToken,
) -> Response<Body> {
    let silent =
        service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::new(Silent))) });
    let mut request = Request::builder().uri(FOLLOW).extension(PeerNames {
        names: ["node.example".to_owned()].into(),
        validity: Some(Validity {
            not_before: 0,
            not_after: 1_059,
        }),
        withdrawn,
    });
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).unwrap();
    layer(authenticator)
        .layer(GateLayer.layer(silent))
        .oneshot(request)
        .await
        .unwrap()
}

async fn frame(response: &mut Response<Body>) -> Option<Result<Frame<<Body as HttpBody>::Data>, Status>> {
    std::future::poll_fn(|cx| Pin::new(response.body_mut()).poll_frame(cx)).await
}

/// Why a stream ends that has nothing more to say.
async fn end_of(stream: &mut Response<Body>) -> Status {
    let last = frame(stream).await.unwrap().unwrap();
    Status::from_header_map(&last.into_trailers().unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_or_certificate_expires_and_a_new_one_is_refused() {
    ends_with(Some(&token(1_060)), "TOKEN_EXPIRED").await;
    ends_with(None, "CERTIFICATE_EXPIRED").await;
}

#[tokio::test]
async fn a_stream_ends_when_its_certificate_is_withdrawn_unless_a_token_is_its_own() {
    let known = Known::new("node", "subscriber", "\"*\"");
    let certificate = CancellationToken::new();
    let by_token = token(1_060);
    let mut own = subscribe_until(&known.authenticator, Some(&by_token), certificate.clone()).await;
    let mut stream = subscribe_until(&known.authenticator, None, certificate.clone()).await;
    assert!(frame(&mut stream).now_or_never().is_none(), "it goes on");
    certificate.cancel();
    let ended = end_of(&mut stream).await;
    let reason = |status| emend_base::status::Explained::from(status).reason;
    assert_eq!(reason(ended).as_deref(), Some("CERTIFICATE_REVOKED"));
    assert!(frame(&mut own).now_or_never().is_none(), "it goes on");
    let refused = subscribe_until(&known.authenticator, None, certificate).await;
    let refused = Status::from_header_map(refused.headers()).unwrap();
    assert_eq!(reason(refused).as_deref(), Some("CERTIFICATE_REVOKED"));
}

async fn ends_with(token: Option<&str>, reason: &str) {
    let known = Known::new("node", "subscriber", "\"*\"");
    let mut stream = subscribe(&known.authenticator, token).await;
    assert!(frame(&mut stream).now_or_never().is_none(), "it goes on");
    known.clock.advance(SignedDuration::from_secs(60));
    let ended = end_of(&mut stream).await;
    assert_eq!(ended.code(), Code::Unauthenticated);
    assert_eq!(
        emend_base::status::Explained::from(ended).reason.as_deref(),
        Some(reason)
    );
    assert!(frame(&mut stream).await.is_none());

    let refused = subscribe(&known.authenticator, token).await;
    let refused = Status::from_header_map(refused.headers()).unwrap();
    assert_eq!(
        emend_base::status::Explained::from(refused).reason.as_deref(),
        Some(reason)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_ended_by_the_layer_counts_with_its_final_code() {
    let known = Known::new("node", "subscriber", "\"*\"");
    let metrics = Metrics::new();
    let calls = ServerMetrics::of(&metrics)
        .rpc()
        .calls(&Methods::of(descriptors()), &[SERVICE]);
    let silent =
        service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::new(Silent))) });
    let traced = TraceLayer::new(Entropy::seeded(1), calls);
    let service = layer(&known.authenticator).layer(traced.layer(GateLayer.layer(silent)));
    let request = Request::builder()
        .uri(FOLLOW)
        .header(AUTHORIZATION, format!("Bearer {}", token(1_060)))
        .body(Body::empty())
        .unwrap();
    let mut stream = service.oneshot(request).await.unwrap();
    assert!(frame(&mut stream).now_or_never().is_none(), "it goes on");
    known.clock.advance(SignedDuration::from_secs(60));
    assert!(frame(&mut stream).await.unwrap().unwrap().is_trailers());
    drop(stream);
    let counted = metrics.render();
    let ended = |line: &str| line.contains("grpc_server_handled_total") && line.contains("\"Follow\"");
    let counted: Vec<_> = counted
        .lines()
        .filter(|line| ended(line) && !line.ends_with(" 0"))
        .collect();
    assert!(
        matches!(counted[..], [line] if line.contains("grpc_code=\"Unauthenticated\"") && line.ends_with(" 1")),
        "{counted:?}"
    );
}

#[tokio::test]
async fn a_long_call_can_check_its_callers_current_rights() {
    let known = Known::new("ops", "operator", "[\"shop\", \"help\"]");
    let access = access_of(&known.authenticator, &RULES, IMPORT, &token(1_060)).await;
    let now = || {
        access
            .as_of_now()
            .and_then(|now| now.admit::<Messages, _>(&Header))
    };
    let refusal_reason = || now().err().map(|refused| refused.reason());
    assert_eq!(refusal_reason(), None);
    for (name, role, namespaces, expected) in [
        ("ops", "reviewer", "\"*\"", Some("ROLE_MISSING")),
        ("ops", "admin", "[\"help\"]", Some("NAMESPACE_DENIED")),
        // Otherwise the audit trail would name a caller whom the token no longer identifies.
        ("another", "operator", "\"*\"", Some("ACCESS_CHANGED")),
        ("ops", "admin", "[\"shop\"]", None),
    ] {
        known.rewrite(name, role, namespaces);
        assert_eq!(refusal_reason(), expected, "{name} {role} {namespaces}");
    }
    assert!(
        access.admit::<Messages, _>(&Header).is_ok(),
        "what was so when it began"
    );
    known.clock.advance(SignedDuration::from_secs(59));
    assert_eq!(refusal_reason(), None);
    known.clock.advance(SignedDuration::from_secs(1));
    assert_eq!(refusal_reason(), Some("TOKEN_EXPIRED"));
}
