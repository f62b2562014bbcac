//! A stream of a caller whose token expires.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::FutureExt as _;
use jiff::Timestamp;
use tonic::Code;
use tower::{ServiceExt as _, service_fn};

use super::*;
use crate::clock::ManualClock;

const STREAM: &str = "/emend.learning.v1.SubscriptionService/Subscribe";
const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A stream on which nothing comes.
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
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let claims = format!("{{\"sub\":\"node\",\"aud\":\"emend\",\"exp\":{expires_at}}}");
    let message = format!("{}.{}", part("{\"alg\":\"HS256\"}"), part(&claims));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, KEY);
    let tag = ring::hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
}

async fn subscribe(authenticator: &Arc<Authenticator>, token: &str) -> Response<Body> {
    let silent =
        service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::new(Silent))) });
    let layer = AuthLayer::new(Some(Arc::clone(authenticator)), &[STREAM]);
    let request = Request::builder()
        .uri(STREAM)
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    layer
        .layer(GateLayer.layer(silent))
        .oneshot(request)
        .await
        .unwrap()
}

async fn frame(response: &mut Response<Body>) -> Option<Result<Frame<<Body as HttpBody>::Data>, Status>> {
    std::future::poll_fn(|cx| Pin::new(response.body_mut()).poll_frame(cx)).await
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_expires_and_a_new_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("auth.toml");
    std::fs::write(directory.path().join("key"), KEY).unwrap();
    let text = "[jwt]\naudience = \"emend\"\nshared_key_file = \"key\"\n[[principals]]\nname = \"node\"\n\
                jwt_subjects = [\"node\"]\ngrants = [{ roles = [\"subscriber\"], namespaces = \"*\" }]\n";
    std::fs::write(&file, text).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_000).unwrap()));
    let shared: crate::clock::SharedClock = Arc::<ManualClock>::clone(&clock);
    let authenticator = Arc::new(Authenticator::load_by(&file, shared).unwrap());
    let token = token(1_060);

    let mut stream = subscribe(&authenticator, &token).await;
    assert!(frame(&mut stream).now_or_never().is_none(), "it goes on");
    clock.advance(jiff::SignedDuration::from_secs(60));
    let last = frame(&mut stream)
        .await
        .unwrap()
        .unwrap()
        .into_trailers()
        .unwrap();
    let ended = Status::from_header_map(&last).unwrap();
    assert_eq!(ended.code(), Code::Unauthenticated);
    assert_eq!(
        crate::status::Explained::from(ended).reason.as_deref(),
        Some("TOKEN_EXPIRED")
    );
    assert!(frame(&mut stream).await.is_none());

    let refused = subscribe(&authenticator, &token).await;
    let refused = Status::from_header_map(refused.headers()).unwrap();
    assert_eq!(
        crate::status::Explained::from(refused).reason.as_deref(),
        Some("TOKEN_EXPIRED")
    );
}
