use emend_core::{FewShotSet, Learned, ResourceValue};
use emend_wire::value;
use learning_store::log::testing::{TestLog as _, Written, write};
use tonic::Code;

use super::*;
use crate::stream::{
    Settings,
    testing::{MemoryLog, catch_up, replica},
};

fn learned(key: &str, learned: Learned) -> Written {
    let kind = learned.kind().number();
    let qualifier = match &learned {
        Learned::Forbidden(choice) => choice.clone(),
        _ => String::new(),
    };
    Written {
        value: Some(value::encode(&ResourceValue::of(learned)).to_vec()),
        ..write(key, None).of_kind("a", kind).qualified(&qualifier)
    }
}

fn verb(key: &str, verb: &str) -> Written {
    learned(key, Learned::Verb(verb.into()))
}

fn forbidden(key: &str, choice: &str) -> Written {
    learned(key, Learned::Forbidden(choice.into()))
}

async fn stream(changes: &[Written]) -> Stream {
    let log = MemoryLog::default();
    let settings = Settings {
        max_wait: std::time::Duration::from_millis(10),
        ..Settings::default()
    };
    let stream = replica(&log, settings).await;
    log.append(changes).await;
    catch_up(&stream).await;
    stream
}

fn fields(error: Error) -> Vec<String> {
    match error {
        Error::InvalidArgument(violations) => {
            violations.into_iter().map(|violation| violation.field).collect()
        }
        other => panic!("{other}"),
    }
}

fn key(kind: Kind, key: &str) -> common::ResourceKey {
    common::ResourceKey {
        namespace: "a".into(),
        kind: kind.number(),
        key: key.into(),
        ..Default::default()
    }
}

async fn resolve(
    stream: &Stream,
    request: pb::ResolveRequest,
    deadline: Option<Instant>,
) -> Result<pb::ResolveResponse, Error> {
    let models = NearModels::new(emend_base::SystemClock::shared(), None);
    super::resolve(stream, &models, request, deadline).await
}

#[tokio::test]
async fn a_resource_is_found_by_its_key_in_any_form() {
    let stream = stream(&[verb("set up a csa", "create_isda")]).await;
    let request = pb::GetResourceRequest {
        key: Some(key(Kind::InvocationPhrase, "  Set UP a CSA ")),
        min_revision: 1,
    };
    let found = get_resource(&stream, request, None)
        .await
        .unwrap()
        .resource
        .unwrap();
    assert_eq!((found.revision, found.etag.as_str()), (1, "1"));
    let value = found.value.unwrap();
    assert_eq!(
        value.display, "set up a csa",
        "also where the key alone is stored"
    );
    assert_eq!(
        value.value,
        Some(common::resource_value::Value::InvocationPhrase(
            common::InvocationPhraseValue {
                verb: "create_isda".into()
            }
        ))
    );
    let missing = pb::GetResourceRequest {
        key: Some(key(Kind::EntityAlias, "set up a csa")),
        min_revision: 0,
    };
    assert_eq!(
        get_resource(&stream, missing, None).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn a_page_of_large_resources_holds_no_more_than_a_client_can_decode() {
    let long = "\u{1d538}".repeat(500);
    let changes: Vec<_> = (0..1_000).map(|n| verb(&format!("{n:04}{long}"), "x")).collect();
    let stream = stream(&changes).await;
    let mut request = pb::ListResourcesRequest {
        namespace: "a".into(),
        page_size: 1_000,
        ..Default::default()
    };
    let (mut keys, mut pages) = (Vec::new(), 0);
    loop {
        let page = list_resources(&stream, request.clone(), None).await.unwrap();
        assert!(
            page.encoded_len() < 4 * 1024 * 1024,
            "{} bytes",
            page.encoded_len()
        );
        keys.extend(
            page.resources
                .into_iter()
                .map(|resource| resource.key.unwrap().key),
        );
        pages += 1;
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert!(pages > 1);
    assert_eq!(keys.len(), 1_000);
    assert!(keys.is_sorted(), "each once");
}

#[tokio::test]
async fn a_read_waits_for_its_min_revision_and_then_is_unavailable() {
    let stream = stream(&[verb("a", "x")]).await;
    let request = pb::GetResourceRequest {
        key: Some(key(Kind::InvocationPhrase, "a")),
        min_revision: 2,
    };
    assert_eq!(
        get_resource(&stream, request, None).await.unwrap_err().code(),
        Code::Unavailable
    );
}

#[tokio::test]
async fn all_violated_fields_are_named_at_once() {
    let stream = stream(&[]).await;
    let get = pb::GetResourceRequest {
        key: None,
        min_revision: -1,
    };
    assert_eq!(
        fields(get_resource(&stream, get, None).await.unwrap_err()),
        ["key.namespace", "key.kind", "key.key", "min_revision"]
    );
    let list = pb::ListResourcesRequest {
        namespace: "NO".into(),
        kinds: vec![0, 1, 99],
        key_prefix: "x".repeat(513),
        user_id: "u".repeat(129),
        min_revision: -1,
        page_size: 1_001,
        page_token: "?".into(),
    };
    assert_eq!(
        fields(list_resources(&stream, list, None).await.unwrap_err()),
        [
            "page_size",
            "page_token",
            "namespace",
            "kinds[0]",
            "kinds[2]",
            "key_prefix",
            "user_id",
            "min_revision"
        ]
    );
    let resolving = pb::ResolveRequest {
        namespace: String::new(),
        kind: Kind::Prohibition.number(),
        phrase: " ".into(),
        near: false,
        user_id: "\u{0}".into(),
        backend_candidates: vec![pb::BackendCandidate {
            value: String::new(),
            score: f64::NAN,
        }],
        min_revision: -1,
    };
    assert_eq!(
        fields(resolve(&stream, resolving, None).await.unwrap_err()),
        [
            "namespace",
            "kind",
            "phrase",
            "user_id",
            "backend_candidates[0].value",
            "backend_candidates[0].score",
            "min_revision"
        ]
    );
}

#[tokio::test]
async fn lists_are_ordered_by_kind_key_and_qualifier_across_pages() {
    let stream = stream(&[
        forbidden("card", "y"),
        forbidden("card", "x"),
        verb("car", "b"),
        verb("card", "c"),
        verb("cat", "d"),
        learned("cards", Learned::Entity("e".into())),
        verb("car", "own").of_user("jane"),
        write("card", Some("")).of_kind("a", 99),
        verb("card", "elsewhere").of_kind("b", 1),
    ])
    .await;
    let all = pb::ListResourcesRequest {
        namespace: "a".into(),
        key_prefix: " CAR".into(),
        page_size: 2,
        ..Default::default()
    };
    let (mut token, mut found) = (String::new(), Vec::new());
    loop {
        let request = pb::ListResourcesRequest {
            page_token: token,
            ..all.clone()
        };
        let page = list_resources(&stream, request, None).await.unwrap();
        assert!(page.resources.len() <= 2 && page.revision == 1);
        for resource in page.resources {
            let key = resource.key.unwrap();
            found.push(format!("{} {} {}", key.kind, key.key, key.qualifier));
        }
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(
        found,
        [
            "1 car ", "1 card ", "2 cards ", "3 card x", "3 card y", "99 card "
        ]
    );
    let own = pb::ListResourcesRequest {
        namespace: "a".into(),
        user_id: "jane".into(),
        kinds: vec![1],
        ..Default::default()
    };
    let own = list_resources(&stream, own, None).await.unwrap().resources;
    assert_eq!(own.len(), 1);
    assert_eq!(own[0].key.as_ref().unwrap().user_id, "jane");
}

#[tokio::test]
async fn a_list_counts_what_is_users_own_by_kind_and_names_nobody() {
    let stream = stream(&[
        verb("car", "b"),
        verb("car", "own").of_user("jane"),
        verb("van", "own").of_user("joe"),
        learned("cards", Learned::Entity("e".into())).of_user("joe"),
        verb("elsewhere", "own").of_kind("b", 1).of_user("jane"),
    ])
    .await;
    let count = async |kinds: &[Kind], prefix: &str| {
        let request = pb::ListResourcesRequest {
            namespace: "a".into(),
            kinds: kinds.iter().map(|kind| kind.number()).collect(),
            key_prefix: prefix.into(),
            ..Default::default()
        };
        list_resources(&stream, request, None)
            .await
            .unwrap()
            .user_scoped_count
    };
    assert_eq!(count(&[], "").await, 3);
    assert_eq!(count(&[Kind::InvocationPhrase], "").await, 2);
    // Whether somebody has a key of one's own, no prefix tells.
    assert_eq!(count(&[], "c").await, 3);
    assert_eq!(count(&[Kind::Prohibition], "").await, 0);
}

#[tokio::test]
async fn a_page_token_of_another_list_is_refused() {
    let stream = stream(&[verb("a", "x"), verb("b", "x")]).await;
    let first = pb::ListResourcesRequest {
        namespace: "a".into(),
        page_size: 1,
        ..Default::default()
    };
    let token = list_resources(&stream, first.clone(), None)
        .await
        .unwrap()
        .next_page_token;
    let other = pb::ListResourcesRequest {
        user_id: "jane".into(),
        page_token: token,
        ..first
    };
    assert_eq!(
        fields(list_resources(&stream, other, None).await.unwrap_err()),
        ["page_token"]
    );
}

fn resolving(phrase: &str, user_id: &str) -> pb::ResolveRequest {
    pb::ResolveRequest {
        namespace: "a".into(),
        kind: Kind::InvocationPhrase.number(),
        phrase: phrase.into(),
        user_id: user_id.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_phrase_resolves_to_the_users_own_first_and_never_to_what_is_prohibited() {
    let stream = stream(&[
        verb("pay", "pay_all"),
        verb("pay", "pay_own").of_user("jane"),
        forbidden("pay", "pay_own").of_user("joe"),
        verb("pay", "pay_own").of_user("joe"),
        forbidden("pay", "never"),
        forbidden("send", "send_all"),
        verb("send", "send_all"),
    ])
    .await;
    let resolved = |request| {
        let stream = stream.clone();
        async move { resolve(&stream, request, None).await.unwrap() }
    };
    let value = |response: &pb::ResolveResponse| response.r#match.as_ref().map(|found| found.value.clone());
    assert_eq!(
        value(&resolved(resolving(" PAY", "")).await).as_deref(),
        Some("pay_all")
    );
    let jane = resolved(resolving("pay", "jane")).await;
    assert_eq!(value(&jane).as_deref(), Some("pay_own"));
    assert_eq!(jane.r#match.unwrap().scope(), common::Scope::User);
    assert_eq!(jane.prohibited, ["never"]);
    let joe = resolved(resolving("pay", "joe")).await;
    assert_eq!(value(&joe).as_deref(), Some("pay_all"));
    assert_eq!(
        (joe.match_prohibited, joe.prohibited),
        (true, vec!["never".into(), "pay_own".into()])
    );
    let send = resolved(resolving("send", "")).await;
    assert_eq!((value(&send), send.match_prohibited), (None, true));
    assert_eq!((send.normalized_phrase.as_str(), send.revision), ("send", 1));
}

#[tokio::test]
async fn a_feedback_hint_is_given_where_the_backends_candidates_are_close() {
    let stream = stream(&[forbidden("pay", "b")]).await;
    let candidate = |value: &str, score| pb::BackendCandidate {
        value: value.into(),
        score,
    };
    let mut request = resolving("pay", "");
    request.backend_candidates = vec![candidate("a", 0.5), candidate("b", 0.95)];
    assert!(
        !resolve(&stream, request.clone(), None)
            .await
            .unwrap()
            .feedback_hint
    );
    request.backend_candidates.push(candidate("c", 0.4));
    assert!(resolve(&stream, request, None).await.unwrap().feedback_hint);
}

#[tokio::test]
async fn a_prefix_is_in_the_form_of_the_kinds_keys() {
    let set = Learned::FewShotSet(FewShotSet::default());
    let stream = stream(&[learned("INTERPRET", set), verb("interpret", "x")]).await;
    for (kind, prefix, found) in [
        (Kind::FewShotSet, "INTER", 1),
        (Kind::FewShotSet, "inter", 0),
        (Kind::InvocationPhrase, "INTER", 1),
    ] {
        let request = pb::ListResourcesRequest {
            namespace: "a".into(),
            kinds: vec![kind.number()],
            key_prefix: prefix.into(),
            ..Default::default()
        };
        let page = list_resources(&stream, request, None).await.unwrap();
        assert_eq!(page.resources.len(), found, "{kind} {prefix}");
    }
}
