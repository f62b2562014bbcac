//! Messages as JSON, for `--json` and for assistants.
//!
//! Names are those of proto3's JSON mapping (lowerCamelCase, enums by their full names, times in RFC 3339, durations as
//! `"3600s"`). It differs in two ways, both for the sake of jq: every scalar is present even at its default, and 64-bit
//! integers are numbers, since none of them exceeds 2^53; the two fixed64 fields, which are hashes, are strings. Absent
//! messages are left out. The evidence graph has a form of its own: [`evidence`].

mod common;
pub mod evidence;
mod feedback;
mod learning;
mod outputs;
mod search;
mod trust;

pub use common::{
    arrow_text, correction, correction_cell, correction_text, for_user, key, learned, learned_text, maps_to,
    outcome, pair, resource, value, value_cell, value_pair, value_text,
};
pub use feedback::{dead_letter, feedback, reporter_redaction, settings};
pub use learning::{
    candidate, candidate_details, import, namespace_policy, node, policy, resolved, reverted, review,
    revision,
};
pub use outputs::{
    improvement, output_stats, preview, profile, prompt_version, rendered, standing_word, suggestion,
};
pub use search::{feedback_stats, negative_term, query, tuning as search_tuning};
pub use trust::{blocked_domain, domain_rule, trust_file};

use emend_proto::common::v1 as pb;
use jiff::Timestamp;
use serde_json::Value;

/// Removes absent fields.
fn present(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// An enum's name, or its number if this version does not know it.
fn name(known: Option<&str>, number: i32) -> Value {
    known.map_or_else(|| number.into(), Into::into)
}

fn kind(number: i32) -> Value {
    name(
        pb::ResourceKind::try_from(number)
            .ok()
            .map(|kind| kind.as_str_name()),
        number,
    )
}

fn cause(number: i32) -> Value {
    name(
        pb::Cause::try_from(number).ok().map(|cause| cause.as_str_name()),
        number,
    )
}

fn risk(number: i32) -> Value {
    name(
        pb::RiskLevel::try_from(number)
            .ok()
            .map(|risk| risk.as_str_name()),
        number,
    )
}

fn scope(number: i32) -> Value {
    name(
        pb::Scope::try_from(number).ok().map(|scope| scope.as_str_name()),
        number,
    )
}

/// A time in RFC 3339; null if absent or out of range.
pub fn time(at: Option<&prost_types::Timestamp>) -> Value {
    at.and_then(instant)
        .map_or(Value::Null, |at| at.to_string().into())
}

/// A time to the second, for tables; a dash if absent.
pub fn short_time(at: Option<&prost_types::Timestamp>) -> String {
    at.and_then(|at| Timestamp::from_second(at.seconds).ok())
        .map_or_else(|| "–".into(), |at| at.to_string())
}

/// A point in time; `None` if out of range.
pub fn instant(at: &prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(at.seconds, at.nanos).ok()
}

/// A duration as in proto3's JSON mapping.
fn span(span: Option<&prost_types::Duration>) -> Value {
    span.map_or(Value::Null, |span| {
        let fraction = if span.nanos == 0 {
            String::new()
        } else {
            format!(".{:09}", span.nanos.unsigned_abs())
        };
        format!("{}{fraction}s", span.seconds).into()
    })
}

/// A duration for people, in the largest unit that it is a whole number of.
pub fn span_text(span: &prost_types::Duration) -> String {
    let seconds = span.seconds;
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "m")] {
        if seconds != 0 && seconds % unit == 0 && span.nanos == 0 {
            return format!("{} {name}", seconds / unit);
        }
    }
    let millis = span.nanos / 1_000_000;
    if millis == 0 {
        format!("{seconds} s")
    } else {
        format!("{seconds}.{millis:03} s")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_durations_are_written_as_in_proto3_json() {
        let at = prost_types::Timestamp {
            seconds: 1_767_225_600,
            nanos: 5_000_000,
        };
        assert_eq!(time(Some(&at)), json!("2026-01-01T00:00:00.005Z"));
        assert_eq!(time(None), Value::Null);
        assert_eq!(short_time(Some(&at)), "2026-01-01T00:00:00Z");
        assert_eq!(
            span(Some(&prost_types::Duration {
                seconds: 3_600,
                nanos: 0
            })),
            json!("3600s")
        );
        assert_eq!(
            span(Some(&prost_types::Duration {
                seconds: 1,
                nanos: 500_000_000
            })),
            json!("1.500000000s")
        );
    }

    #[test]
    fn a_span_is_shown_in_its_largest_whole_unit() {
        let text = |seconds, nanos| span_text(&prost_types::Duration { seconds, nanos });
        assert_eq!(text(90 * 86_400, 0), "90 d");
        assert_eq!(text(36 * 3_600, 0), "36 h");
        assert_eq!(text(90, 0), "90 s");
        assert_eq!(text(60, 500_000_000), "60.500 s");
    }

    #[test]
    fn unknown_enum_numbers_are_shown_as_numbers() {
        assert_eq!(kind(1), json!("RESOURCE_KIND_INVOCATION_PHRASE"));
        assert_eq!(kind(99), json!(99));
    }

    #[test]
    fn default_scalars_are_shown_and_absent_messages_are_not() {
        let shown = candidate(&emend_proto::learning::v1::Candidate::default());
        assert_eq!(shown["reporterCount"], json!(0));
        assert_eq!(shown["statusReason"], json!(""));
        assert!(shown.get("value").is_none());
    }
}
