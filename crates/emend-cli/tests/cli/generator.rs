//! Language models that generate prompts and suggestions: what reaches them, how long the command waits, and what it says of those
//! that refuse or are silent.

use std::{
    convert::Infallible,
    fs,
    future::{Ready, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use emend_base::http_client::testing::{Reply, Server};
use serde_json::json;
use tokio::{net::TcpListener, time::timeout};
use tonic::{
    Status,
    body::Body,
    codegen::{
        Service,
        http::{Request, Response},
    },
    server::NamedService,
    transport::server::TcpIncoming,
};

use crate::{
    harness::{TIMEOUT, Up, command, run},
    prompts::TARGET,
};

/// One of two services, which refuses every call and notes whether it came with a limit of time.
#[derive(Debug, Clone, Default)]
struct Refusing<const OF_PROFILES: bool>(Arc<Mutex<Vec<bool>>>);

impl NamedService for Refusing<false> {
    const NAME: &'static str = "emend.learning.v1.OutputService";
}

impl NamedService for Refusing<true> {
    const NAME: &'static str = "emend.learning.v1.ProfileService";
}

impl<const OF_PROFILES: bool> Service<Request<Body>> for Refusing<OF_PROFILES> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_limited = request.headers().contains_key("grpc-timeout");
        self.0.lock().expect("it is not poisoned").push(is_limited);
        ready(Ok(Status::failed_precondition("not now").into_http()))
    }
}

#[tokio::test]
async fn what_asks_a_model_has_no_time_limit_unless_one_is_given() {
    let limits: Arc<Mutex<Vec<bool>>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let services = tonic::transport::Server::builder()
        .add_service(Refusing::<false>(Arc::clone(&limits)))
        .add_service(Refusing::<true>(Arc::clone(&limits)));
    let serving = tokio::spawn(services.serve_with_incoming(TcpIncoming::from(listener)));
    let candidate = "0e939fab-e5c7-8140-b875-9d80da3294c0";
    for (words, asks_a_model) in [
        (&["prompts", "generate", TARGET][..], true),
        (&["prompts", "preview", candidate], true),
        (&["profile", "suggest", "--user", "mia"], true),
        (&["prompts", "stats", TARGET], false),
    ] {
        for (limit, is_limited) in [(&[][..], !asks_a_model), (&["--timeout", "7s"], true)] {
            let place = ["--learning-addr", &address];
            let refused = run(&[&["outputs"], words, &place, limit].concat()).await;
            assert_eq!(refused.code, 4, "{refused:?}");
            let limits = std::mem::take(&mut *limits.lock().expect("it is not poisoned"));
            assert_eq!(limits, [is_limited], "{words:?} {limit:?}");
        }
    }
    serving.abort();
}

/// What a model answers with a better prompt.
fn better() -> Reply {
    let answer = json!({"prompt": "Summarise the day in one line.", "reason": "Shorter."}).to_string();
    Reply::Json(json!({"choices": [{"message": {"content": answer}}]}))
}

#[tokio::test]
async fn an_improvement_that_takes_longer_than_the_caller_waits_is_listed_later() {
    let asked = AtomicUsize::new(0);
    let model = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Hang,
        _ => better(),
    })
    .await;
    let url = format!("--generator-url={}/v1", model.url);
    // The first attempt outlasts the caller.
    let up = Up::start(&[
        "--ephemeral",
        &url,
        "--generator-model=small-1",
        "--generator-timeout=3s",
        "--generator-attempts=2",
    ])
    .await;
    up.puts(TARGET, "Summarise the day.", &[]).await.ok();
    up.rates_three_bad().await;
    let generate = ["outputs", "prompts", "generate", TARGET, "--timeout", "1s"];
    let left = up.run(&generate).await;
    assert_eq!(left.code, 5, "{left:?}");
    let look = format!("`emend outputs prompts list {TARGET}` shows it once it is proposed");
    assert!(left.stderr.contains(&look), "{left:?}");
    let listed = async {
        loop {
            let listed = up.shows(&["list", TARGET]).await;
            if listed.contains("awaiting_review") {
                break;
            }
        }
    };
    timeout(TIMEOUT, listed).await.expect("it is never listed");
    assert_eq!(model.asked().len(), 2);
}

#[tokio::test]
async fn a_setting_of_the_generator_without_its_address_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("emend.toml");
    let config = format!("--config={}", file.display());
    for (name, value) in [
        ("model", "'small-1'"),
        ("key", "'k-17'"),
        ("key-file", "'key'"),
        ("timeout", "'5s'"),
        ("attempts", "2"),
        ("parameters", "'{\"seed\": 7}'"),
    ] {
        fs::write(&file, format!("generator-{name} = {value}\n")).expect("a file");
        let flag = format!("--generator-{name}={}", value.trim_matches('\''));
        for given in [&flag, &config] {
            let refused = run(&["up", "--ephemeral", "--check-config", given]).await;
            assert_eq!(refused.code, 2, "{given}: {refused:?}");
            assert!(refused.stderr.contains("--generator-url"), "{given}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn the_generator_of_a_settings_file_is_asked_with_the_key_of_a_variable() {
    let model = Server::start(|_| better()).await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("emend.toml");
    let settings = format!(
        "generator-url = '{}/v1'\ngenerator-model = 'small-1'\ngenerator-parameters = '{{\"seed\": 7}}'\n",
        model.url
    );
    fs::write(&file, settings).expect("a file");
    let mut with_key = command();
    with_key.env("EMEND_LEARNING_GENERATOR_KEY", "k-23");
    let config = format!("--config={}", file.display());
    let up = Up::start_by(with_key, "127.0.0.1:0", &["--ephemeral", &config]).await;
    up.puts(TARGET, "Summarise the day.", &[]).await.ok();
    up.rates_three_bad().await;
    up.generates().await;
    let asked = model.asked();
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    assert!(asked.contains("authorization: Bearer k-23\r\n"), "{asked}");
    assert!(asked.contains("\"seed\":7"), "{asked}");
}

#[tokio::test]
async fn a_model_that_refuses_to_suggest_is_told_and_one_that_is_silent_is_given_up() {
    let asked = AtomicUsize::new(0);
    let model = Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Status(
            403,
            String::new(),
            r#"{"error": {"message": "this model is not for you"}}"#,
        ),
        _ => Reply::Hang,
    })
    .await;
    let url = format!("--generator-url={}/v1", model.url);
    let up = Up::start(&["--ephemeral", &url, "--generator-model=small-1"]).await;
    let user = ["--user", "mia"];
    let record = [
        "outputs", "profile", "record", "--source", "GITHUB", "--id", "pr-17", "--goal", "Go",
    ];
    up.run(&[&record[..], &user].concat()).await.ok();
    let suggest = [&["outputs", "profile", "suggest"][..], &user].concat();
    let refused = up.run(&suggest).await;
    assert_eq!(refused.code, 4, "{refused:?}");
    for part in [
        "GENERATOR_REFUSED",
        "answered 403 Forbidden: this model is not for you (no key was sent; see --generator-key-file",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let late = up.run(&[&suggest[..], &["--timeout", "1s"]].concat()).await;
    assert_eq!(late.code, 5, "{late:?}");
    let told = "there was no answer within --timeout, and what was being generated is given up";
    assert!(late.stderr.contains(told), "{late:?}");
    let suggestions = [&["outputs", "profile", "suggestions"][..], &user].concat();
    let stored = up.run(&suggestions).await.ok().stdout;
    assert!(
        stored.starts_with("No suggestions for the user \"mia\""),
        "{stored}"
    );
}
