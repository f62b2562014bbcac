//! Messages as JSON, for `--json` and for assistants.
//!
//! Names are those of proto3's JSON mapping (lowerCamelCase, enums by their full names, times in RFC 3339, durations as
//! `"3600s"`). It differs in two ways, both for the sake of jq: every scalar is present even at its default, and 64-bit
//! integers are numbers, since none of them exceeds 2^53; the two fixed64 fields, which are hashes, are strings. Absent
//! messages are left out. The evidence graph has a form of its own: [`evidence`].

pub mod evidence;
mod learned;
mod message;
#[cfg(test)]
mod tests;
mod trust;

pub use learned::{
    arrow_text, correction_cell, correction_text, for_user, learned, learned_text, maps_to, pair, value_cell,
    value_pair, value_text,
};
pub use message::message;
pub use trust::{blocked_domain, domain_rule, trust_file};

use emend_proto::learning::v1::{Candidate, CandidateStatus, PromptVersion};
use jiff::Timestamp;
use serde_json::Value;

use crate::words;

/// The status of a version of a prompt, in the words of all candidates: applied if it is current under any label.
pub fn version_status(version: &PromptVersion) -> CandidateStatus {
    if version.labels.is_empty() {
        version
            .candidate
            .as_ref()
            .map(Candidate::status)
            .unwrap_or_default()
    } else {
        CandidateStatus::Applied
    }
}

/// A version of a prompt, and its status.
pub fn prompt_version(version: &PromptVersion) -> Value {
    let candidate = version.candidate.clone().unwrap_or_default();
    let mut shown = message(version);
    shown["status"] = words::status_name(version_status(version).into()).into();
    shown["candidate"] = message(&candidate);
    shown
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

/// Who did something: the caller, and on whose behalf.
pub fn actor(actor: &emend_proto::common::v1::Actor) -> String {
    format!("{} {}", actor.caller, actor.on_behalf_of)
        .trim()
        .to_owned()
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
