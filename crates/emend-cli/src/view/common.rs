//! The messages that both services share: corrections, outcomes, resources.

use emend_base::status::{Explained, from_item_status};
use emend_proto::common::v1::{
    Actor, Correction, ItemStatus, Outcome, OutcomeState, Reporter, Resource, ResourceKey, ResourceValue,
    correction::Correction as Variant, resource_value::Value as Learned,
};
use serde_json::{Value, json};

use super::{kind, name, present, risk, time};
use crate::failure::explained_to_json;

pub(super) fn reporter(reporter: Option<&Reporter>) -> Value {
    reporter.map_or(Value::Null, |reporter| {
        json!({
            "id": reporter.id,
            "sessionId": reporter.session_id,
            "client": reporter.client,
            "clientKey": reporter.client_key,
        })
    })
}

/// A correction.
pub fn correction(correction: Option<&Correction>) -> Value {
    match correction.and_then(|correction| correction.correction.as_ref()) {
        None => Value::Null,
        Some(Variant::Verb(verb)) => json!({"verb": {
            "originalInput": verb.original_input,
            "systemChoice": verb.system_choice,
            "correctChoice": verb.correct_choice,
        }}),
        Some(Variant::PhraseMapping(mapping)) => json!({"phraseMapping": {
            "phrase": mapping.phrase,
            "verb": mapping.verb,
        }}),
        Some(Variant::Entity(entity)) => json!({"entity": {
            "originalInput": entity.original_input,
            "systemChoice": entity.system_choice,
            "correctChoice": entity.correct_choice,
        }}),
        Some(Variant::Prohibition(prohibition)) => json!({"prohibition": {
            "phrase": prohibition.phrase,
            "forbiddenChoice": prohibition.forbidden_choice,
        }}),
    }
}

/// The outcome of a correction.
pub fn outcome(outcome: Option<&Outcome>) -> Value {
    let Some(outcome) = outcome else {
        return Value::Null;
    };
    let learned = outcome.what_was_learned.as_ref().map(
        |learned| json!({"input": learned.input, "mapsTo": learned.maps_to, "kind": kind(learned.kind)}),
    );
    present(json!({
        "state": name(
            OutcomeState::try_from(outcome.state).ok().map(|state| state.as_str_name()),
            outcome.state,
        ),
        "reason": outcome.reason,
        "candidateId": outcome.candidate_id,
        "kind": kind(outcome.kind),
        "riskLevel": risk(outcome.risk_level),
        "occurrenceCount": outcome.occurrence_count,
        "reporterCount": outcome.reporter_count,
        "confirmationsNeeded": outcome.confirmations_needed,
        "wasNew": outcome.was_new,
        "autoApplied": outcome.auto_applied,
        "thresholdApplied": outcome.threshold_applied,
        "whatWasLearned": learned,
        "message": outcome.message,
        "evaluatedAt": time(outcome.evaluated_at.as_ref()),
        "revision": outcome.revision,
    }))
}

/// A resource key.
pub fn key(key: Option<&ResourceKey>) -> Value {
    key.map_or(Value::Null, |key| {
        json!({
            "namespace": key.namespace,
            "kind": kind(key.kind),
            "key": key.key,
            "qualifier": key.qualifier,
            "userId": key.user_id,
        })
    })
}

/// A learned value.
pub fn value(value: Option<&ResourceValue>) -> Value {
    let Some(value) = value else { return Value::Null };
    let mut object = json!({
        "display": value.display,
        "normalizationVersion": value.normalization_version,
    });
    match &value.value {
        None => {}
        Some(Learned::InvocationPhrase(phrase)) => object["invocationPhrase"] = json!({"verb": phrase.verb}),
        Some(Learned::EntityAlias(alias)) => object["entityAlias"] = json!({"entityId": alias.entity_id}),
        Some(Learned::Prohibition(prohibition)) => {
            object["prohibition"] = json!({"forbiddenChoice": prohibition.forbidden_choice});
        }
    }
    object
}

/// What a value maps its key to; empty if this version does not know the value.
pub fn maps_to(value: Option<&ResourceValue>) -> &str {
    match value.and_then(|value| value.value.as_ref()) {
        None => "",
        Some(Learned::InvocationPhrase(phrase)) => &phrase.verb,
        Some(Learned::EntityAlias(alias)) => &alias.entity_id,
        Some(Learned::Prohibition(prohibition)) => &prohibition.forbidden_choice,
    }
}

/// A resource.
pub fn resource(resource: &Resource) -> Value {
    present(json!({
        "key": key(resource.key.as_ref()),
        "revision": resource.revision,
        "value": value(resource.value.as_ref()),
        "valueChecksum": resource.value_checksum.to_string(),
        "committedAt": time(resource.committed_at.as_ref()),
        "etag": resource.etag,
    }))
}

pub(super) fn actor(actor: Option<&Actor>) -> Value {
    actor.map_or(
        Value::Null,
        |actor| json!({"caller": actor.caller, "onBehalfOf": actor.on_behalf_of}),
    )
}

/// Why an item of a batch failed; null if it succeeded.
pub(super) fn item_error(status: Option<&ItemStatus>) -> Value {
    status
        .and_then(from_item_status)
        .map_or(Value::Null, |status| explained_to_json(&Explained::from(&status)))
}
