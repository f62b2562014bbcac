//! The messages that both services share: corrections, outcomes, resources.

use emend_base::status::{Explained, from_item_status};
use emend_core::{Learned, ProfileEntry};
use emend_proto::common::v1::{
    Actor, Correction, EdgeRelation, FewShotExample, FewShotSetValue, ItemStatus, Language, Outcome,
    OutcomeState, RatingClass, Reporter, Resource, ResourceKey, ResourceValue, SearchRatingValue, Standing,
    SynonymRelation, TrustLevel, correction::Correction as Variant, resource_value,
};
use serde_json::{Value, json};

use super::{kind, name, present, risk, time};
use crate::{failure::explained_to_json, output::Cell};

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
        Some(Variant::Term(term)) => json!({"term": {
            "term": term.term,
            "equivalents": term.equivalents,
            "relation": name(
                SynonymRelation::try_from(term.relation).ok().map(|relation| relation.as_str_name()),
                term.relation,
            ),
        }}),
        Some(Variant::DomainBlock(of)) => json!({"domainBlock": {
            "pattern": of.pattern,
            "taskId": of.task_id,
        }}),
        Some(Variant::DomainUnblock(of)) => json!({"domainUnblock": {
            "pattern": of.pattern,
            "level": trust_level(of.level),
            "taskId": of.task_id,
        }}),
        Some(Variant::DomainClearOverride(of)) => json!({"domainClearOverride": {
            "pattern": of.pattern,
            "taskId": of.task_id,
        }}),
        Some(Variant::DomainSetTrust(of)) => json!({"domainSetTrust": {
            "pattern": of.pattern,
            "level": trust_level(of.level),
            "taskId": of.task_id,
        }}),
        Some(Variant::ClaimReject(of)) => json!({"claimReject": {
            "claimId": of.claim_id,
            "reasonCode": of.reason_code,
            "taskId": of.task_id,
        }}),
        Some(Variant::ClaimRestore(of)) => json!({"claimRestore": {
            "claimId": of.claim_id,
            "taskId": of.task_id,
        }}),
        Some(Variant::EdgeCorrect(of)) => json!({"edgeCorrect": {
            "edgeId": of.edge_id,
            "correctRelation": name(
                EdgeRelation::try_from(of.correct_relation).ok().map(|relation| relation.as_str_name()),
                of.correct_relation,
            ),
            "taskId": of.task_id,
        }}),
        Some(Variant::Tuning(of)) => json!({"tuning": {
            "queryType": of.query_type,
            "tuning": of.tuning.as_ref().map_or(Value::Null, super::search::tuning),
        }}),
        Some(Variant::SearchRating(of)) => json!({"searchRating": {
            "value": name(
                SearchRatingValue::try_from(of.value).ok().map(|value| value.as_str_name()),
                of.value,
            ),
        }}),
        Some(Variant::Rating(of)) => json!({"rating": {
            "target": of.target,
            "value": of.value,
            "targetId": of.target_id,
            "inputText": of.input_text,
            "outputText": of.output_text,
            "promptVersion": of.prompt_version,
            "issues": of.issues,
            "correctedText": of.corrected_text,
            "correctJudgement": of.correct_judgement,
            "countsAs": name(
                RatingClass::try_from(of.counts_as).ok().map(|class| class.as_str_name()),
                of.counts_as,
            ),
        }}),
    }
}

fn trust_level(number: i32) -> Value {
    name(
        TrustLevel::try_from(number).ok().map(|level| level.as_str_name()),
        number,
    )
}

/// A correction in short: `set up a CSA → create_isda`, of a rating what was rated and how; several things it asserts are separated by semicolons.
pub fn correction_text(correction: Option<&Correction>) -> String {
    correction_cell(correction).text()
}

/// The same for a table. Of several things that it asserts all give way.
pub fn correction_cell(correction: Option<&Correction>) -> Cell {
    let Ok(correction) = emend_wire::parse::correction(correction) else {
        return "?".to_owned().into();
    };
    if let Some(rating) = correction.search_rating() {
        return format!("search rated {}", rating.name()).into();
    }
    if let Some(rating) = correction.rating() {
        let (target, value, id) = (&rating.target, &rating.value, &rating.target_id);
        return format!("{target}: {value} of {id}, counts as {}", rating.class.name()).into();
    }
    let assertions = correction.assertions();
    if let [assertion] = &*assertions {
        return Cell::pair(assertion.input.clone(), arrow_text(&assertion.learned));
    }
    let texts: Vec<_> = assertions
        .iter()
        .map(|assertion| pair(&assertion.input, &assertion.learned))
        .collect();
    texts.join("; ").into()
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
        "decisionReason": outcome.decision_reason,
        "evaluatedAt": time(outcome.evaluated_at.as_ref()),
        "revision": outcome.revision,
        "effects": outcome.effects.iter().map(|effect| self::outcome(Some(effect))).collect::<Vec<_>>(),
    }))
}

/// What has become of a correction.
pub(super) fn standing(standing: Option<&Standing>) -> Value {
    let Some(standing) = standing else {
        return Value::Null;
    };
    present(json!({
        "state": name(
            OutcomeState::try_from(standing.state).ok().map(|state| state.as_str_name()),
            standing.state,
        ),
        "reason": standing.reason,
        "candidateId": standing.candidate_id,
        "kind": kind(standing.kind),
        "confirmationsNeeded": standing.confirmations_needed,
        "reporterCount": standing.reporter_count,
        "revision": standing.revision,
        "message": standing.message,
        "effects": standing.effects.iter().map(|effect| self::standing(Some(effect))).collect::<Vec<_>>(),
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
    if let Some(resource_value::Value::FewShotSet(set)) = &value.value {
        object["fewShotSet"] = few_shot_set(set);
    } else if let Some(resource_value::Value::Prompt(prompt)) = &value.value {
        object["prompt"] = super::outputs::prompt(prompt);
    } else if let Some(resource_value::Value::Profile(entry)) = &value.value {
        object["profile"] = super::outputs::profile_entry(entry);
    } else if let Some(resource_value::Value::SearchTuning(tuning)) = &value.value {
        object["searchTuning"] = super::search::tuning(tuning);
    } else if let Some(learned) = learned(Some(value)) {
        let fields: serde_json::Map<_, _> = learned
            .fields()
            .into_iter()
            .map(|field| (camel_case(field.name), field.text.into_owned().into()))
            .collect();
        object[camel_case(learned.kind().name())] = fields.into();
    }
    object
}

fn few_shot_set(set: &FewShotSetValue) -> Value {
    let examples = |examples: &[FewShotExample]| -> Value {
        let examples = examples.iter().map(|example| {
            json!({
                "feedbackId": example.feedback_id,
                "outputId": example.output_id,
                "input": example.input,
                "output": example.output,
                "corrected": example.corrected,
                "issues": example.issues,
            })
        });
        examples.collect()
    };
    json!({
        "language": name(
            Language::try_from(set.language).ok().map(|language| language.as_str_name()),
            set.language,
        ),
        "good": examples(&set.good),
        "bad": examples(&set.bad),
    })
}

/// A name of the wire contract as JSON has it.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(usize::from(!word.is_empty()));
        name + &initial.to_ascii_uppercase() + rest
    })
}

/// What a value says was learned; `None` if this version does not know the value.
pub fn learned(value: Option<&ResourceValue>) -> Option<Learned> {
    emend_wire::kinds::learned(value?.value.as_ref()?).ok()
}

/// What a value maps its key to; empty if this version does not know the value.
pub fn maps_to(value: Option<&ResourceValue>) -> String {
    learned(value).map_or_else(String::new, |learned| learned.maps_to().to_owned())
}

/// What was learned, for people: `create_isda`, `board (one_way)`, or `5 good, 3 bad examples`.
pub fn learned_text(learned: &Learned) -> String {
    if let Learned::FewShotSet(set) = learned {
        return format!("{} good, {} bad examples", set.good.len(), set.bad.len());
    }
    match learned {
        Learned::Prompt(prompt) => return format!("version {}: {}", prompt.version, learned.maps_to()),
        Learned::ProfileEntry(ProfileEntry::Years(years)) => return format!("{years} years"),
        Learned::ProfileEntry(ProfileEntry::Text(entry)) => return entry.clone(),
        Learned::SearchTuning(_) => return learned.maps_to().to_owned(),
        _ => {}
    }
    let fields = learned.fields();
    // What the choice says already is not said again: `unblock:low` says both of its fields.
    let is_said = |text: &str| {
        text.is_empty() || learned.maps_to() == text || learned.maps_to().split(':').any(|part| part == text)
    };
    let others: Vec<_> = fields
        .iter()
        .map(|field| &*field.text)
        .filter(|text| !is_said(text))
        .collect();
    match &others[..] {
        [] => learned.maps_to().to_owned(),
        others => format!("{} ({})", learned.maps_to(), others.join(", ")),
    }
}

/// What a value says was learned, for people; empty if this version does not know the value.
pub fn value_text(value: Option<&ResourceValue>) -> String {
    learned(value).map_or_else(String::new, |learned| learned_text(&learned))
}

/// A key and what was learned for it: `set up a CSA → create_isda`.
pub fn pair(input: &str, learned: &Learned) -> String {
    format!("{input}{}", arrow_text(learned))
}

/// What follows the key in a [`pair`]: ` → create_isda`.
pub fn arrow_text(learned: &Learned) -> String {
    format!(" {} {}", learned.arrow(), learned_text(learned))
}

/// A value and the key that it was learned for, as people write it.
pub fn value_pair(value: Option<&ResourceValue>) -> String {
    let display = value.map_or("", |value| value.display.as_str());
    learned(value).map_or_else(|| display.to_owned(), |learned| pair(display, &learned))
}

/// The same in the two parts of a table's cell.
pub fn value_cell(value: Option<&ResourceValue>, after: &str) -> Cell {
    let display = value.map_or("", |value| value.display.as_str()).to_owned();
    let learned = learned(value).map_or_else(String::new, |learned| arrow_text(&learned));
    Cell::pair(display, learned + after)
}

/// Whose something is, after it, if it is one user's own: ` (for mia)`.
pub fn for_user(user_id: &str) -> String {
    match user_id {
        "" => String::new(),
        user_id => format!(" (for {user_id})"),
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
