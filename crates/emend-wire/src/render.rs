//! Domain values → messages.

use emend_core::{
    Correction, Kind, Outcome, OutcomeState, RatedTexts, Rating, Reason, Reporter, ResourceKey,
    ResourceValue, RiskLevel, Scope, Standing, decide::Cause,
};
use emend_proto::common::v1 as pb;
use jiff::Timestamp;

use crate::kinds;

/// The kind's number on the wire.
pub fn kind(kind: Kind) -> i32 {
    kind.number()
}

/// The scope's number on the wire.
pub fn scope(scope: Scope) -> pb::Scope {
    match scope {
        Scope::Global => pb::Scope::Global,
        Scope::User => pb::Scope::User,
    }
}

/// The risk level's number on the wire.
pub fn risk_level(risk: RiskLevel) -> pb::RiskLevel {
    match risk {
        RiskLevel::Low => pb::RiskLevel::Low,
        RiskLevel::Medium => pb::RiskLevel::Medium,
        RiskLevel::High => pb::RiskLevel::High,
    }
}

/// The cause's number on the wire.
pub fn cause(cause: Cause) -> i32 {
    cause.number()
}

/// A reporter.
pub fn reporter(reporter: &Reporter) -> pb::Reporter {
    pb::Reporter {
        id: reporter.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        session_id: reporter.session.clone().unwrap_or_default(),
        client: reporter.client.clone(),
        client_key: reporter.client_key.clone(),
    }
}

/// A correction, in the form in which it was sent.
pub fn correction(correction: &Correction) -> pb::Correction {
    pb::Correction {
        correction: Some(kinds::form(correction)),
    }
}

/// A rating of which it is not known what it counts as.
pub fn rating_without_class(rating: &Rating<()>) -> pb::Correction {
    pb::Correction {
        correction: Some(pb::correction::Correction::Rating(kinds::rating_message(
            rating, None,
        ))),
    }
}

/// What a rating says, and nothing else of it.
pub fn rated_texts(texts: &RatedTexts) -> pb::Rating {
    let RatedTexts {
        input,
        output,
        issues,
        corrected,
        judgement,
    } = texts.clone();
    pb::Rating {
        input_text: input,
        output_text: output,
        issues,
        corrected_text: corrected,
        correct_judgement: judgement,
        ..pb::Rating::default()
    }
}

/// Erases what can be erased of a correction: the texts of a rating.
pub fn erase_texts(correction: &mut pb::Correction) {
    if let Some(pb::correction::Correction::Rating(rating)) = &mut correction.correction {
        rating.input_text.clear();
        rating.output_text.clear();
        rating.issues.clear();
        rating.corrected_text.clear();
        rating.correct_judgement.clear();
    }
}

/// A resource key.
pub fn resource_key(key: &ResourceKey) -> pb::ResourceKey {
    pb::ResourceKey {
        namespace: key.namespace.to_string(),
        kind: key.kind.number(),
        key: key.key.to_string(),
        qualifier: key.qualifier.clone(),
        user_id: key.user_id().to_owned(),
    }
}

/// The value of a key, for people: with how they write the key, also where that is the key itself.
pub fn value_of(key: &ResourceKey, value: &ResourceValue) -> pb::ResourceValue {
    pb::ResourceValue {
        display: value.written(key.key.as_str()).to_owned(),
        ..stored_value(value)
    }
}

/// A value as it is stored.
pub fn stored_value(value: &ResourceValue) -> pb::ResourceValue {
    pb::ResourceValue {
        display: value.display.clone(),
        normalization_version: i32::try_from(value.normalization_version).unwrap_or(i32::MAX),
        value: Some(kinds::value(&value.learned)),
    }
}

/// An outcome.
pub fn outcome(outcome: &Outcome) -> pb::Outcome {
    let kind = outcome.learned.kind().number();
    pb::Outcome {
        state: outcome_state(outcome.state) as i32,
        reason: reason(outcome.reason),
        candidate_id: outcome.candidate_id.map(|id| id.to_string()).unwrap_or_default(),
        kind,
        risk_level: risk_level(outcome.risk) as i32,
        occurrence_count: saturated(outcome.occurrences),
        reporter_count: saturated(outcome.reporters),
        confirmations_needed: i32::try_from(outcome.confirmations_needed).unwrap_or(i32::MAX),
        was_new: outcome.was_new,
        auto_applied: outcome.auto_applied,
        threshold_applied: i32::try_from(outcome.threshold).unwrap_or(i32::MAX),
        what_was_learned: Some(pb::WhatWasLearned {
            input: outcome.input.clone(),
            maps_to: outcome.learned.maps_to().to_owned(),
            kind,
        }),
        message: outcome.message.clone(),
        decision_reason: outcome.decision_reason.clone().unwrap_or_default(),
        evaluated_at: Some(timestamp(outcome.evaluated_at)),
        revision: outcome.revision.0,
        effects: outcome.effects.iter().map(self::outcome).collect(),
    }
}

/// What has become of one effect of a correction.
pub fn standing(standing: &Standing) -> pb::Standing {
    pb::Standing {
        state: outcome_state(standing.state) as i32,
        reason: reason(standing.reason),
        candidate_id: standing.candidate_id.map(|id| id.to_string()).unwrap_or_default(),
        kind: standing.kind.number(),
        confirmations_needed: i32::try_from(standing.confirmations_needed).unwrap_or(i32::MAX),
        reporter_count: saturated(standing.reporters),
        revision: standing.revision.0,
        message: standing.message.clone(),
        effects: Vec::new(),
    }
}

/// The state's number on the wire.
fn outcome_state(state: OutcomeState) -> pb::OutcomeState {
    match state {
        OutcomeState::Pending => pb::OutcomeState::Pending,
        OutcomeState::Applied => pb::OutcomeState::Applied,
        OutcomeState::AwaitingReview => pb::OutcomeState::AwaitingReview,
        OutcomeState::Rejected => pb::OutcomeState::Rejected,
        OutcomeState::NoEffect => pb::OutcomeState::NoEffect,
        OutcomeState::Refused => pb::OutcomeState::Refused,
        OutcomeState::Withdrawn => pb::OutcomeState::Withdrawn,
    }
}

fn reason(reason: Option<Reason>) -> String {
    reason.map(|reason| reason.name().to_owned()).unwrap_or_default()
}

/// A count, capped at the wire's maximum.
pub fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A point in time.
pub fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    // On the wire, nanoseconds count forward even before 1970.
    let (seconds, nanos) = (at.as_second(), at.subsec_nanosecond());
    if nanos < 0 {
        prost_types::Timestamp {
            seconds: seconds - 1,
            nanos: nanos + 1_000_000_000,
        }
    } else {
        prost_types::Timestamp { seconds, nanos }
    }
}

/// A point in time given in microseconds since 1970, as stored in databases.
pub fn timestamp_from_micros(micros: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse;

    proptest! {
        #[test]
        fn timestamps_survive_a_round_trip(micros in -1_000_000_000_000i64..4_000_000_000_000_000) {
            let at = Timestamp::from_microsecond(micros).unwrap();
            prop_assert_eq!(parse::timestamp(&timestamp(at)).unwrap(), at);
            prop_assert_eq!(timestamp_from_micros(micros), timestamp(at));
        }
    }
}
