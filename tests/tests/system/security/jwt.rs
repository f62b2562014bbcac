//! Tokens from another issuer, at both services as the installed programs: which are accepted, what callers with others
//! are told, when streams end, and how keys are replaced.

use std::{fmt::Write as _, fs, path::Path};

use emend_base::{SystemClock, status::Explained};
use emend_proto::{
    common::v1::Outcome,
    feedback::v1::{Feedback, GetFeedbackRequest},
    learning::v1::{ListRevisionsRequest, PutResourceRequest, SubscribeResponse},
};
use emend_serve::auth::testing::{Issuer, base64, by_shared_key, unsigned};
use emend_tests::harness::{
    alias, answered,
    deployment::{Arguments, Deployment},
    eventually, says,
    says::{alias_key, entity_value},
    within,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::{Code, Status, Streaming};

use super::{OWN, messages::subscription, with_token};

/// Longer than any test takes, in seconds.
const LONG: i64 = 3_600;

/// Who signs tokens.
enum Signer {
    /// An issuer with a key in the JWKS file.
    Set(Box<Issuer>),
    /// The holder of a key shared with the services.
    Shared(Vec<u8>),
}

impl Signer {
    fn token(&self, claims: &Value) -> String {
        match self {
            Self::Set(issuer) => issuer.token(claims),
            Self::Shared(key) => by_shared_key(key, &json!({"alg": "HS256", "typ": "JWT"}), claims),
        }
    }

    /// Tokens made without the key.
    fn forged(&self, claims: &Value) -> Vec<String> {
        match self {
            Self::Set(issuer) => {
                let jwk = issuer.jwk();
                let public = jwk["x"].as_str().unwrap();
                vec![
                    Issuer::new("current").token(claims),
                    Issuer::new("another").token(claims),
                    issuer.token_by(&json!({"alg": "ES256", "kid": "another"}), claims),
                    by_shared_key(
                        public.as_bytes(),
                        &json!({"alg": "HS256", "kid": "current"}),
                        claims,
                    ),
                ]
            }
            Self::Shared(_) => vec![
                by_shared_key(&[7; 32], &json!({"alg": "HS256"}), claims),
                Issuer::new("current").token(claims),
            ],
        }
    }

    /// Writes what the services verify with, under the name that their file has for it.
    fn write(&self, directory: &Path) {
        match self {
            Self::Set(issuer) => write_set(directory, &[issuer]),
            Self::Shared(key) => fs::write(directory.join("shared.key"), key).unwrap(),
        }
    }
}

fn write_set(directory: &Path, issuers: &[&Issuer]) {
    let keys: Vec<Value> = issuers.iter().map(|issuer| issuer.jwk()).collect();
    fs::write(directory.join("jwks.json"), json!({"keys": keys}).to_string()).unwrap();
}

fn now() -> i64 {
    SystemClock::shared().now().as_second()
}

/// The claims of a good token with this subject and lifetime, in seconds.
fn claims(subject: &str, lifetime: i64) -> Value {
    json!({"iss": "https://login.example", "aud": ["other", "emend"], "sub": subject, "exp": now() + lifetime})
}

/// Good claims, except for this one; null removes it.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims("web@prod", LONG);
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

/// Both services, which know four callers by their tokens' subjects. One of them is feedback-svc, as learning-svc's
/// caller.
struct JwtDeployment {
    deployment: Deployment,
    directory: TempDir,
    by: Signer,
}

impl JwtDeployment {
    async fn start(by: Signer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keys = match by {
            Signer::Set(_) => "jwks_file = \"jwks.json\"",
            Signer::Shared(_) => "shared_key_file = \"shared.key\"",
        };
        let mut text = format!("[jwt]\naudience = \"emend\"\nissuer = \"https://login.example\"\n{keys}\n");
        for (name, role) in [
            ("feedback-svc", "ingester"),
            ("web", "reporter"),
            ("node", "subscriber"),
            ("ops", "operator"),
        ] {
            let _ = write!(
                text,
                "[[principals]]\nname = \"{name}\"\njwt_subjects = [\"{name}@prod\"]\n\
                 grants = [{{ roles = [\"{role}\"], namespaces = [\"{OWN}\"] }}]\n"
            );
        }
        let file = directory.path().join("auth.toml");
        fs::write(&file, text).unwrap();
        by.write(directory.path());
        let token = directory.path().join("relay.token");
        fs::write(&token, by.token(&claims("feedback-svc@prod", LONG))).unwrap();
        let path = |path: &Path| path.display().to_string();
        let known = vec!["--auth-config".to_owned(), path(&file)];
        let relay = vec!["--learning-token-file".to_owned(), path(&token)];
        let arguments = Arguments {
            feedback: [known.clone(), relay].concat(),
            learning: known,
        };
        Self {
            deployment: Deployment::sqlite_with(arguments).await,
            directory,
            by,
        }
    }

    /// A token with this subject and a long lifetime.
    fn token(&self, subject: &str) -> String {
        self.by.token(&claims(subject, LONG))
    }

    async fn submit(&self, token: &str, name: &str) -> Result<Feedback, Status> {
        let mut request = says("jane", alias(name, "person-17"));
        request.namespace = OWN.into();
        let mut service = self.deployment.feedback().service;
        let answer = service.submit_feedback(with_token(request, Some(token))).await?;
        Ok(answer.into_inner().feedback.unwrap())
    }

    /// Submits and waits for the outcome: learning-svc accepts feedback-svc's token.
    async fn learn(&self, name: &str) -> (Feedback, Outcome) {
        let token = self.token("web@prod");
        let stored = self.submit(&token, name).await.unwrap();
        eventually("the feedback is evaluated", || async {
            let request = GetFeedbackRequest {
                namespace: OWN.into(),
                feedback_id: stored.feedback_id.clone(),
            };
            let mut service = self.deployment.feedback().service;
            let seen = answered(service.get_feedback(with_token(request, Some(&token))).await);
            let seen = seen.feedback.unwrap();
            let outcome = seen.outcome.clone();
            outcome
                .map(|outcome| (seen.clone(), outcome))
                .ok_or_else(|| format!("{seen:?}"))
        })
        .await
    }

    async fn subscribe(&self, token: &str) -> Result<Streaming<SubscribeResponse>, Status> {
        let mut service = self.deployment.learning().subscriptions;
        let request = with_token(subscription(&[]), Some(token));
        Ok(service.subscribe(request).await?.into_inner())
    }

    /// What each service tells a caller with this token; both must tell the same.
    async fn explained(&self, token: &str) -> Explained {
        let submitted = explained(self.submit(token, "never learned").await.map(drop));
        let subscribed = explained(self.subscribe(token).await.map(drop));
        assert_eq!(submitted, subscribed);
        submitted
    }
}

/// A refusal without the request id.
fn explained(answer: Result<(), Status>) -> Explained {
    Explained {
        request_id: None,
        ..Explained::from(answer.unwrap_err())
    }
}

/// Reads until a message says this.
async fn until_message_contains(stream: &mut Streaming<SubscribeResponse>, what: &str) {
    within("the stream tells it", async {
        loop {
            let message = stream.message().await.unwrap().expect("the stream goes on");
            if format!("{message:?}").contains(what) {
                return;
            }
        }
    })
    .await;
}

/// Reads until the stream ends with a refusal.
pub(super) async fn end_of(stream: &mut Streaming<SubscribeResponse>) -> Explained {
    within("the stream ends", async {
        loop {
            match stream.message().await {
                Ok(message) => assert!(message.is_some(), "it ends with a refusal"),
                Err(status) => return Explained::from(status),
            }
        }
    })
    .await
}

pub(super) fn reason(refusal: &Explained) -> (Code, &str) {
    (refusal.code, refusal.reason.as_deref().unwrap_or_default())
}

const NOT_ACCEPTED: (Code, &str) = (Code::Unauthenticated, "CREDENTIALS_NOT_ACCEPTED");
const EXPIRED: (Code, &str) = (Code::Unauthenticated, "TOKEN_EXPIRED");

/// What holds however tokens are signed.
async fn check(issued: &JwtDeployment) {
    // A good token: feedback is submitted, delivered, learned and streamed, each by the name of its principal.
    let node = issued.token("node@prod");
    let mut stream = issued.subscribe(&node).await.unwrap();
    let (stored, outcome) = issued.learn("jd").await;
    assert_eq!(stored.caller, "web");
    assert!(outcome.revision > 0, "one vote is enough for a name: {outcome:?}");
    until_message_contains(&mut stream, "person-17").await;
    let ops = issued.token("ops@prod");
    let put = PutResourceRequest {
        key: Some(emend_proto::common::v1::ResourceKey {
            namespace: OWN.into(),
            ..alias_key("jd")
        }),
        value: Some(entity_value("person-18")),
        ..Default::default()
    };
    let mut resources = issued.deployment.learning().resources;
    answered(resources.put_resource(with_token(put, Some(&ops))).await);
    let trail = ListRevisionsRequest {
        namespace: OWN.into(),
        ..Default::default()
    };
    let trail = answered(resources.list_revisions(with_token(trail, Some(&ops))).await);
    assert_eq!(trail.revisions[0].actor.clone().unwrap().caller, "ops");

    // Any other token: refused in exactly the same words as a guessed one.
    let guessed = issued.explained("guessed").await;
    assert_eq!(reason(&guessed), NOT_ACCEPTED);
    assert_eq!(guessed.message, "the credentials are not accepted");
    let good = claims("web@prod", LONG);
    let over = claims("web@prod", -1);
    let mut others = issued.by.forged(&good);
    others.extend(issued.by.forged(&over));
    others.extend(
        [
            with("aud", json!("other")),
            with("aud", Value::Null),
            with("iss", json!("https://stranger.example")),
            with("iss", Value::Null),
            with("sub", json!("stranger@prod")),
            with("sub", Value::Null),
            with("exp", Value::Null),
            with("nbf", json!(now() + LONG)),
        ]
        .map(|claims| issued.by.token(&claims)),
    );
    let bare = unsigned(&json!({"alg": "none"}), &good);
    others.extend([
        bare.clone(),
        format!("{bare}."),
        format!("{bare}.{}", base64("x")),
    ]);
    let token = issued.by.token(&good);
    others.push(token[..token.len() - 4].to_owned());
    for token in others {
        assert_eq!(issued.explained(&token).await, guessed, "{token}");
    }
    let expired = issued.explained(&issued.by.token(&over)).await;
    assert_eq!(reason(&expired), EXPIRED);
    assert_eq!(expired.message, "the token has expired");

    // A stream ends with its token, and others continue.
    let (short, mut brief) = eventually("a stream begins while its token is good", || async {
        let short = claims("node@prod", 3);
        let opened = issued.subscribe(&issued.by.token(&short)).await;
        let mut stream = opened.map_err(|status| status.to_string())?;
        match stream.message().await {
            Ok(Some(_)) => Ok((short, stream)),
            ended => Err(format!("{ended:?}")),
        }
    })
    .await;
    assert_eq!(reason(&end_of(&mut brief).await), EXPIRED);
    assert!(now() >= short["exp"].as_i64().unwrap(), "not before its time");
    issued.learn("jane d").await;
    until_message_contains(&mut stream, "jane d").await;
}

/// Waits until both services, which must notice the new key by themselves, accept tokens signed with it.
async fn until_taken(issued: &JwtDeployment, by: &Signer) {
    let (web, node) = (claims("web@prod", LONG), claims("node@prod", LONG));
    eventually("tokens by the new key are taken", || async {
        let submitted = issued.submit(&by.token(&web), "rotated").await.map(drop);
        submitted.map_err(|status| format!("feedback-svc: {status}"))?;
        let subscribed = issued.subscribe(&by.token(&node)).await.map(drop);
        subscribed.map_err(|status| format!("learning-svc: {status}"))
    })
    .await;
}

/// The key is replaced by that of `new`: tokens signed with the old one become worthless, and nothing is lost
/// meanwhile.
async fn replace(mut issued: JwtDeployment, new: Signer) {
    let mut stream = issued.subscribe(&issued.token("node@prod")).await.unwrap();
    within("it begins", stream.message()).await.unwrap();
    new.write(issued.directory.path());
    let old = std::mem::replace(&mut issued.by, new);
    until_taken(&issued, &issued.by).await;
    assert_eq!(reason(&end_of(&mut stream).await), NOT_ACCEPTED);
    let (web, node) = (claims("web@prod", LONG), claims("node@prod", LONG));
    let refused = eventually("neither service takes tokens by the old key", || async {
        let submitted = issued.submit(&old.token(&web), "after").await.map(drop);
        let subscribed = issued.subscribe(&old.token(&node)).await.map(drop);
        match (submitted, subscribed) {
            (Err(submitted), Err(subscribed)) => Ok([submitted, subscribed]),
            taken => Err(format!("{taken:?}")),
        }
    })
    .await;
    for status in refused {
        assert_eq!(reason(&Explained::from(status)), NOT_ACCEPTED);
    }
    // What was submitted while learning-svc did not accept feedback-svc waits until it does.
    let waiting = issued.submit(&issued.token("web@prod"), "said meanwhile").await;
    waiting.unwrap();
    let mut stream = issued.subscribe(&issued.token("node@prod")).await.unwrap();
    let token = issued.token("feedback-svc@prod");
    fs::write(issued.directory.path().join("relay.token"), token).unwrap();
    until_message_contains(&mut stream, "said meanwhile").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_by_a_key_of_a_set_are_taken_and_the_set_may_change() {
    let by_key = |key_id| Signer::Set(Box::new(Issuer::new(key_id)));
    let next = by_key("next");
    let issued = JwtDeployment::start(by_key("current")).await;
    check(&issued).await;

    // While both keys are present, tokens signed with either are good and streams continue.
    let mut stream = issued.subscribe(&issued.token("node@prod")).await.unwrap();
    let (Signer::Set(first), Signer::Set(second)) = (&issued.by, &next) else {
        unreachable!("said so above")
    };
    write_set(issued.directory.path(), &[first, second]);
    until_taken(&issued, &next).await;
    issued.learn("said by the old key").await;
    until_message_contains(&mut stream, "said by the old key").await;
    drop(stream);

    replace(issued, next).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_by_a_shared_key_are_taken_and_the_key_may_change() {
    let issued = JwtDeployment::start(Signer::Shared(b"0123456789abcdef0123456789abcdef".to_vec())).await;
    check(&issued).await;
    replace(issued, Signer::Shared(vec![b'x'; 48])).await;
}
