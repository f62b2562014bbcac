//! An edge beyond loopback: over TLS it knows its callers by their tokens, and each reads what it may.

use std::{path::Path, time::Duration};

use emend_base::{
    Lifecycle,
    status::Explained,
    tls::{ClientTls, Remote, testing::Authority},
};
use emend_binding::{ConnectionSettings, NodeSettings};
use emend_edge::{Config, Edge, Tls};
use emend_proto::edge::v1::{
    LookUpRequest, ProfileQuestion, PromptQuestion, Question, SynonymsQuestion, answer,
    look_up_service_client::LookUpServiceClient, question,
};
use emend_tests::harness::{Database, eventually, process::run, rpc::item_refusal, wait::holds};
use serde_json::Value;
use tokio::process::Command;
use tonic::{Code, transport::Channel};

use super::{Caller, EVERYWHERE, FOREIGN, Guarded, IN_OWN, OWN, OWN_FOR_USERS, token_of, with_token};

const CALLERS: [Caller<'_>; 4] = [
    ("edge", "subscriber", EVERYWHERE),
    ("shop", "subscriber", IN_OWN),
    ("desk", "subscriber", OWN_FOR_USERS),
    ("writer", "reporter", IN_OWN),
];

/// What curl is answered: the status, and the body.
async fn curl(edge: &Edge, ca: &Path, token: Option<&str>, path: &str) -> (u16, Value) {
    let mut command = Command::new("curl");
    command.args(["-s", "-w", "\n%{http_code}", "--cacert"]).arg(ca);
    if let Some(token) = token {
        command.args(["-H", &format!("Authorization: Bearer {}", token_of(token))]);
    }
    command.arg(format!("https://localhost:{}{path}", edge.addresses()[0].port()));
    let printed = run("curl", command)
        .await
        .unwrap_or_else(|failure| panic!("{failure}"));
    let (body, status) = printed.trim_end().rsplit_once('\n').unwrap();
    (
        status.parse().unwrap(),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// What somebody may ask: synonyms, for a user too, and what needs the right to act for users.
fn synonyms(user: Option<&str>) -> question::Question {
    question::Question::Synonyms(SynonymsQuestion {
        term: "a".into(),
        user: user.map(str::to_owned),
    })
}

fn prompt(user: Option<&str>) -> question::Question {
    question::Question::Prompt(PromptQuestion {
        target: "t".into(),
        user: user.map(str::to_owned),
        ..PromptQuestion::default()
    })
}

fn profile() -> question::Question {
    question::Question::Profile(ProfileQuestion { user: "mia".into() })
}

/// What one question is answered over gRPC: its code and reason, be it refused with the whole call or alone.
async fn asked(
    client: &LookUpServiceClient<Channel>,
    token: Option<&str>,
    namespace: &str,
    question: question::Question,
) -> (Code, String) {
    // What one may not ask holds back nothing beside it.
    let questions = [question, synonyms(None)].map(|question| Question {
        question: Some(question),
    });
    let request = LookUpRequest {
        namespace: namespace.into(),
        questions: questions.to_vec(),
        ..LookUpRequest::default()
    };
    let token = token.map(token_of);
    let told = |refusal: Explained| (refusal.code, refusal.reason.unwrap_or_default());
    let answers = match client
        .clone()
        .look_up(with_token(request, token.as_deref()))
        .await
    {
        Ok(answered) => answered.into_inner().answers,
        Err(refused) => return told(Explained::from(refused)),
    };
    let [asked, beside] = &answers[..] else {
        panic!("{answers:?}");
    };
    let is_answered = matches!(beside.answer, Some(answer::Answer::Synonyms(_)));
    assert!(is_answered, "{beside:?}");
    match &asked.answer {
        Some(answer::Answer::Error(error)) => told(item_refusal(Some(error)).unwrap()),
        _ => (Code::Ok, String::new()),
    }
}

/// The same rights over gRPC.
async fn by_grpc(edge: &Edge, ca: &Path) {
    let port = edge.grpc_address().unwrap().port();
    let remote = Remote::new(&format!("https://localhost:{port}")).unwrap();
    let tls = ClientTls::default().ca(ca.display().to_string());
    let client = LookUpServiceClient::new(remote.tls(tls).unwrap().connect_lazy());
    for (token, namespace, question, code, reason) in [
        (
            None,
            OWN,
            synonyms(None),
            Code::Unauthenticated,
            "CREDENTIALS_MISSING",
        ),
        (
            Some("nobody"),
            OWN,
            synonyms(None),
            Code::Unauthenticated,
            "CREDENTIALS_NOT_ACCEPTED",
        ),
        (
            Some("writer"),
            OWN,
            synonyms(None),
            Code::PermissionDenied,
            "ROLE_MISSING",
        ),
        (Some("shop"), OWN, synonyms(None), Code::Ok, ""),
        (Some("shop"), OWN, synonyms(Some("mia")), Code::Ok, ""),
        (
            Some("shop"),
            FOREIGN,
            synonyms(None),
            Code::PermissionDenied,
            "NAMESPACE_DENIED",
        ),
        (
            Some("shop"),
            OWN,
            profile(),
            Code::PermissionDenied,
            "NOT_FOR_USERS",
        ),
        (
            Some("shop"),
            OWN,
            prompt(Some("mia")),
            Code::PermissionDenied,
            "NOT_FOR_USERS",
        ),
        (Some("shop"), OWN, prompt(None), Code::NotFound, "NOT_FOUND"),
        (Some("desk"), OWN, profile(), Code::Ok, ""),
        (
            Some("desk"),
            OWN,
            prompt(Some("mia")),
            Code::NotFound,
            "NOT_FOUND",
        ),
        (
            Some("desk"),
            FOREIGN,
            profile(),
            Code::PermissionDenied,
            "NAMESPACE_DENIED",
        ),
    ] {
        let answered = asked(&client, token, namespace, question.clone()).await;
        assert_eq!(
            answered,
            (code, reason.to_owned()),
            "{token:?} {namespace}: {question:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_answers_over_tls_what_each_caller_may_read() {
    let guarded = Guarded::start(Database::sqlite(), &CALLERS).await;
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("edge");
    authority.issue(1, &["localhost"]).write(directory.path(), "edge");
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).unwrap();
    let lifecycle = Lifecycle::new();
    let config = Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        listen_grpc: Some(([127, 0, 0, 1], 0).into()),
        auth_config: Some(guarded.file.clone()),
        tls: Some(Tls {
            certificate: directory.path().join("edge.pem"),
            key: directory.path().join("edge.key"),
            client_ca: None,
            client_crl: None,
        }),
        node: NodeSettings {
            id: "edge".into(),
            include_user_scoped: true,
            connection: ConnectionSettings {
                addresses: vec![guarded.system.learning[0].address().to_string()],
                token: Some(token_of("edge")),
                ..ConnectionSettings::default()
            },
            ..NodeSettings::default()
        },
        ..Config::default()
    };
    let edge = emend_edge::start(config, &lifecycle).await.unwrap();
    assert!(edge.is_secured());
    eventually("it is ready", || async {
        let (status, body) = curl(&edge, &ca, None, "/readyz").await;
        holds(status == 200, || format!("{status} {body}"))
    })
    .await;
    let own = |path: &str| format!("/v1/{OWN}/{path}");
    for (token, path, expected, reason) in [
        (None, own("synonyms?term=a"), 401, "CREDENTIALS_MISSING"),
        (
            Some("nobody"),
            own("synonyms?term=a"),
            401,
            "CREDENTIALS_NOT_ACCEPTED",
        ),
        (None, "/v1/status".to_owned(), 401, "CREDENTIALS_MISSING"),
        (None, "/openapi.json".to_owned(), 200, ""),
        (Some("writer"), own("synonyms?term=a"), 403, "ROLE_MISSING"),
        (Some("shop"), own("synonyms?term=a"), 200, ""),
        (Some("shop"), own("synonyms?term=a&user=mia"), 200, ""),
        (
            Some("shop"),
            format!("/v1/{FOREIGN}/synonyms?term=a"),
            403,
            "NAMESPACE_DENIED",
        ),
        (Some("shop"), own("profile?user=mia"), 403, "NOT_FOR_USERS"),
        (
            Some("shop"),
            own("prompt?target=t&user=mia"),
            403,
            "NOT_FOR_USERS",
        ),
        (Some("shop"), own("prompt?target=t"), 404, "NOT_FOUND"),
        (Some("desk"), own("profile?user=mia"), 200, ""),
        (Some("desk"), own("prompt?target=t&user=mia"), 404, "NOT_FOUND"),
        (Some("shop"), "/v1/status".to_owned(), 200, ""),
    ] {
        let (status, body) = curl(&edge, &ca, token, &path).await;
        assert_eq!(status, expected, "{token:?} {path}: {body}");
        assert_eq!(
            body["error"]["reason"].as_str().unwrap_or_default(),
            reason,
            "{token:?} {path}: {body}"
        );
    }
    by_grpc(&edge, &ca).await;
    guarded.rewrite(&[CALLERS[0], CALLERS[2]]);
    eventually("who is no longer known is no longer answered", || async {
        let (status, body) = curl(&edge, &ca, Some("shop"), &own("synonyms?term=a")).await;
        holds(status == 401, || format!("{status} {body}"))
    })
    .await;
    assert_eq!(
        curl(&edge, &ca, Some("desk"), &own("synonyms?term=a")).await.0,
        200
    );
    edge.node().close().await.unwrap();
    drop(edge);
    lifecycle.shutdown(Duration::from_secs(5)).await;
    guarded.system.stop().await;
}
