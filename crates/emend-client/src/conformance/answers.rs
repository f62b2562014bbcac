//! What this crate answers to the input of a vector.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use emend_base::{
    Entropy, SystemClock,
    status::{Explained, code_name},
};
use emend_core::{
    Digest, InstallationId, Kind, Language, Namespace, Scope, UserId, Violations,
    digest::{Item, value_checksum},
    normalize::normalize,
    search::ExpandMode,
};
use emend_proto::{common::v1::ResourceKey, learning::v1::Cursor, wire};
use jiff::SignedDuration;
use prost::Message as _;
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::Line;
use crate::{
    keyed_hash::KeyedHash,
    replica::{Effect, Replica},
    subscriber::reported,
    view::{LearnedView, RenderOptions},
};

/// The answer to a vector of a group. `states` are the lines of `stream`, which others refer to.
pub(super) fn of(group: &str, input: &Value, states: &[Line]) -> Value {
    match group {
        "normalisation" => normalisation(input),
        "digests" => digests(input),
        "stream" => stream(input).1,
        "reports" => report(input, states),
        "lookups" => lookup(input, &view(input, states)),
        "near" => near(input, states),
        "expansion" => expansion(input, &view(input, states)),
        "prompts" => prompt(input, &view(input, states)),
        "errors" => error(input, states),
        other => panic!("no group is called {other}"),
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

/// Of one text its normal form; of all characters from one to another, what theirs have together.
fn normalisation(input: &Value) -> Value {
    let Some(range) = input.get("characters") else {
        return json!({"key": normalize(text(input, "text"))});
    };
    let place = |index: usize| u32::try_from(range[index].as_u64().unwrap()).unwrap();
    let characters = (place(0)..=place(1)).filter_map(char::from_u32);
    let joined: Vec<String> = characters.map(|c| normalize(&format!("a{c}b"))).collect();
    json!({"xxh3": format!("{:016x}", value_checksum(joined.join("\n").as_bytes()))})
}

/// The hash of each item and the digest of all.
fn digests(input: &Value) -> Value {
    let mut sum = Digest::default();
    let mut hashes = Vec::new();
    for listed in input["items"].as_array().unwrap() {
        let value_checksum = match listed.get("value_bytes") {
            Some(value) => value_checksum(&bytes(value.as_str().unwrap())),
            None => u64::from_str_radix(text(listed, "value_checksum"), 16).unwrap(),
        };
        let item = Item {
            namespace: text(listed, "namespace"),
            kind: i32::try_from(listed["kind"].as_i64().unwrap()).unwrap(),
            key: text(listed, "key"),
            qualifier: text(listed, "qualifier"),
            user_id: text(listed, "user_id"),
            revision: text(listed, "revision").parse().unwrap(),
            value_checksum,
        };
        let mut alone = Digest::default();
        alone.add(&item);
        sum.add(&item);
        hashes.push(json!({
            "value_checksum": format!("{value_checksum:016x}"), "hashed_bytes": hex(&hashed_bytes(&item)),
            "hash": hex(&alone.bytes()),
        }));
    }
    json!({"items": hashes, "count": sum.count, "hash": hex(&sum.bytes())})
}

/// What is hashed of an item, written out for those who look for a fault in their own.
fn hashed_bytes(item: &Item<'_>) -> Vec<u8> {
    let parts: [&[u8]; 7] = [
        item.namespace.as_bytes(),
        &item.kind.to_le_bytes(),
        item.key.as_bytes(),
        item.qualifier.as_bytes(),
        item.user_id.as_bytes(),
        &item.revision.to_le_bytes(),
        &item.value_checksum.to_le_bytes(),
    ];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&u32::try_from(part.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

fn cursor(cursor: Option<&Cursor>) -> Value {
    cursor.map_or(Value::Null, |cursor| {
        json!({
            "epoch": cursor.epoch, "revision": cursor.revision,
            "filter_hash": format!("{:016x}", cursor.filter_hash),
        })
    })
}

fn key(key: &ResourceKey) -> Value {
    json!({
        "namespace": key.namespace, "kind": key.kind, "key": key.key, "qualifier": key.qualifier,
        "user_id": key.user_id,
    })
}

/// Feeds streams, one after the other, to a new replica.
fn stream(input: &Value) -> (Replica, Value) {
    let mut replica = Replica::new(Arc::new(KeyedHash::new(&Entropy::seeded(1))));
    let mut streams = Vec::new();
    for stream in input["streams"].as_array().unwrap() {
        if let Some(accept) = stream.get("accept").and_then(Value::as_str) {
            replica.accept(InstallationId::parse(accept).unwrap());
        }
        let sent = replica.open();
        let (mut ended, mut taken) = (Value::Null, 0);
        for message in stream["messages"].as_array().unwrap() {
            taken += 1;
            ended = end_of(&mut replica, message.as_str().unwrap());
            if !ended.is_null() {
                break;
            }
        }
        streams.push(json!({"cursor": cursor(sent.as_ref()), "taken": taken, "ended": ended}));
    }
    let mut resources = Vec::new();
    for envelope in replica.held().iter() {
        let parts = envelope.key().to_key();
        let mut resource = key(&parts);
        resource["revision"] = json!(envelope.revision());
        resource["value_checksum"] = json!(format!("{:016x}", envelope.value_checksum()));
        resource["usable"] = json!(envelope.is_usable());
        let ResourceKey {
            namespace,
            kind,
            key,
            qualifier,
            user_id,
        } = parts;
        resources.push(((namespace, kind, key, qualifier, user_id), resource));
    }
    resources.sort_by(|(one, _), (other, _)| one.cmp(other));
    let resources: Vec<Value> = resources.into_iter().map(|(_, resource)| resource).collect();
    let digests: Vec<Value> = replica
        .held()
        .digests()
        .iter()
        .filter(|(_, digest)| digest.count != 0)
        .map(|(group, digest)| {
            json!({
                "namespace": group.namespace, "kind": group.kind, "user_scoped": group.user_scoped,
                "count": digest.count, "hash": hex(&digest.bytes()),
            })
        })
        .collect();
    let answer = json!({
        "streams": streams,
        "position": cursor(replica.position()),
        "next_cursor": cursor(replica.open().as_ref()),
        "installation": replica.installation().map(|id| id.to_string()),
        "resources": resources,
        "digests": digests,
    });
    (replica, answer)
}

/// How a message ends its stream; null if it does not.
fn end_of(replica: &mut Replica, message: &str) -> Value {
    let bytes = BASE64_STANDARD.decode(message).unwrap();
    let Ok(message) = wire::SubscribeResponse::decode(&*bytes) else {
        return json!("PROTOCOL_VIOLATION");
    };
    let differs = |check: crate::replica::DigestCheck| check.differs();
    match replica.receive(message) {
        Err(_) => json!("PROTOCOL_VIOLATION"),
        Ok(Effect::OtherInstallation { .. }) => json!("INSTALLATION_MISMATCH"),
        Ok(Effect::Drain { .. }) => json!("DRAIN"),
        Ok(Effect::Installed(done)) if differs(done.digest_check.clone()) => json!("DIGEST_MISMATCH"),
        Ok(Effect::Applied(done)) if differs(done.digest_check.clone()) => json!("DIGEST_MISMATCH"),
        Ok(Effect::Current { digest_check, .. }) if differs(digest_check.clone()) => json!("DIGEST_MISMATCH"),
        Ok(_) => Value::Null,
    }
}

/// The input of the line of `stream` that an input refers to.
fn state<'s>(input: &Value, states: &'s [Line]) -> &'s Value {
    let id = text(input, "state");
    let line = states.iter().find(|line| line.id == id);
    &line
        .unwrap_or_else(|| panic!("no line of stream is called {id}"))
        .input
}

fn report(input: &Value, states: &[Line]) -> Value {
    let (replica, _) = stream(state(input, states));
    let delays = input["delays_ms"].as_array().unwrap().iter();
    let delays = delays.map(|delay| SignedDuration::from_millis(delay.as_i64().unwrap()));
    let Some(report) = reported(&replica, text(input, "node_id"), delays) else {
        return json!({"report": null});
    };
    let delays = report.delays.unwrap_or_default();
    let rejected: Vec<Value> = report
        .rejected
        .iter()
        .map(|rejected| {
            json!({
                "key": key(&rejected.key.clone().unwrap_or_default()), "revision": rejected.revision,
                "error": rejected.error,
            })
        })
        .collect();
    json!({"report": {
        "node_id": report.node_id,
        "applied": cursor(report.applied.as_ref()),
        "rejected": rejected,
        "rejected_count": report.rejected_count,
        "delays": {"bounds_ms": delays.bounds_ms, "counts": delays.counts, "sum_ms": delays.sum_ms},
    }})
}

/// The view of a node that has followed the streams of a state.
fn view(input: &Value, states: &[Line]) -> LearnedView {
    let (replica, _) = stream(state(input, states));
    let (mut publisher, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
    publisher.replace(replica.len(), replica.facts(), replica.revision());
    view
}

fn user(input: &Value) -> Option<UserId> {
    let user = input.get("user").and_then(Value::as_str);
    user.map(|user| UserId::parse(user).unwrap())
}

fn namespace(input: &Value) -> Namespace {
    Namespace::parse(text(input, "namespace")).unwrap()
}

fn candidates(input: &Value) -> Vec<(&str, f64)> {
    let candidates = input["candidates"].as_array().into_iter().flatten();
    candidates
        .map(|candidate| (candidate[0].as_str().unwrap(), candidate[1].as_f64().unwrap()))
        .collect()
}

fn lookup(input: &Value, view: &LearnedView) -> Value {
    let kind = Kind::from_number(i32::try_from(input["kind"].as_i64().unwrap()).unwrap()).unwrap();
    let (namespace, user) = (namespace(input), user(input));
    let found = view.resolve(
        &namespace,
        kind,
        text(input, "phrase"),
        user.as_ref(),
        candidates(input),
    );
    let found = found.unwrap();
    let answer = found.found.map(|answer| {
        let scope = if answer.scope == Scope::User {
            "USER"
        } else {
            "GLOBAL"
        };
        json!({"value": answer.value, "score": answer.score, "revision": answer.revision.0, "scope": scope})
    });
    json!({
        "found": answer,
        "found_prohibited": found.found_prohibited,
        "prohibited": found.prohibited,
        "feedback_hint": found.feedback_hint,
        "phrase": found.phrase.as_str(),
        "revision": found.revision.0,
    })
}

fn near(input: &Value, states: &[Line]) -> Value {
    let (replica, _) = stream(state(input, states));
    let (mut publisher, view) = LearnedView::new(&Entropy::seeded(1), SystemClock::shared());
    view.keep_near();
    publisher.replace(replica.len(), replica.facts(), replica.revision());
    publisher.fit_near();
    let kind = Kind::from_number(i32::try_from(input["kind"].as_i64().unwrap()).unwrap()).unwrap();
    let (namespace, user) = (namespace(input), user(input));
    let found = view.resolve_near(&namespace, kind, text(input, "phrase"), user.as_ref(), []);
    let found = found.unwrap();
    json!({"status": found.near_status.name(), "near": found.near.map(|near| {
        let because = near.because.iter().map(|learned| {
            json!([*learned.phrase, *learned.choice, f64::from(learned.similarity).to_string()])
        });
        json!({
            "choice": *near.choice, "confidence": f64::from(near.confidence).to_string(),
            "because": because.collect::<Vec<_>>(), "model": near.revision.to_string(),
        })
    })})
}

fn expansion(input: &Value, view: &LearnedView) -> Value {
    let (namespace, user) = (namespace(input), user(input));
    if let Some(term) = input.get("term").and_then(Value::as_str) {
        return json!({"terms": view.synonyms(&namespace, term, user.as_ref()).unwrap()});
    }
    let mode = match text(input, "mode") {
        "embedding" => ExpandMode::Embedding,
        _ => ExpandMode::Keyword,
    };
    let expanded = view.expand(&namespace, text(input, "text"), mode, user.as_ref());
    let groups: Vec<Value> = expanded
        .groups
        .iter()
        .map(|group| json!({"text": &expanded.original[group.span.clone()], "alternatives": group.alternatives}))
        .collect();
    json!({"groups": groups, "rendered": expanded.render()})
}

fn prompt(input: &Value, view: &LearnedView) -> Value {
    let variables = input["variables"].as_object().into_iter().flatten();
    let variables = variables.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let user = user(input);
    let options = RenderOptions {
        label: input.get("label").and_then(Value::as_str),
        variables: variables.collect::<BTreeMap<_, _>>(),
        user: user.as_ref(),
        language: match text(input, "language") {
            "ja" => Some(Language::Ja),
            "en" => Some(Language::En),
            _ => None,
        },
    };
    match view.render(&namespace(input), text(input, "target"), &options) {
        Ok(rendered) => json!({"rendered": rendered.map(|rendered| {
            json!({"text": rendered.text, "version": rendered.version})
        })}),
        Err(violations) => json!({"error": invalid(violations)}),
    }
}

/// What a call that failed tells: of a status as it came, or of a look-up that is refused without a server.
fn error(input: &Value, states: &[Line]) -> Value {
    if let Some(phrase) = input.get("phrase").and_then(Value::as_str) {
        let (view, namespace) = (view(input, states), namespace(input));
        let refused = view.resolve(&namespace, Kind::InvocationPhrase, phrase, None, []);
        let mut violations = Violations::new();
        violations.check("phrase", refused);
        return invalid(violations);
    }
    let code = Code::from(i32::try_from(input["code"].as_i64().unwrap()).unwrap());
    let details = BASE64_STANDARD.decode(text(input, "details")).unwrap();
    let explained = Explained::from(Status::with_details(code, text(input, "message"), details.into()));
    json!({
        "code": code_name(explained.code),
        "reason": explained.reason,
        "message": explained.message,
        "violations": explained.field_violations.iter().map(violation).collect::<Vec<_>>(),
        "preconditions": explained.preconditions.iter().map(|precondition| json!({
            "type": precondition.kind, "subject": precondition.subject, "description": precondition.description,
        })).collect::<Vec<_>>(),
        "retry_after_ms": explained.retry_after.map(|after| after.as_millis()),
        "request_id": explained.request_id,
    })
}

fn violation(violation: &emend_core::FieldViolation) -> Value {
    json!({"field": violation.field, "description": violation.description})
}

fn invalid(violations: Violations) -> Value {
    let listed: Vec<Value> = violations.into_vec().iter().map(violation).collect();
    json!({"code": "INVALID_ARGUMENT", "violations": listed})
}
