//! Messages → domain values. Paths in violations are relative to the parsed message; [`Violations::nest`] prefixes the
//! caller's path.

use std::collections::{BTreeMap, HashMap};

use emend_core::{
    Correction, FieldViolation, Invalid, Kind, Learned, OutcomeState, RatedTexts, Reporter, ResourceKey,
    ResourceValue, RiskLevel, Scope, Status, Violations,
    correction::Form,
    ratings::{OwnTarget, RefusedRating},
    violation::bounded_prose,
};
use emend_proto::{
    common::v1::{self as pb, resource_value},
    learning::v1::CandidateStatus,
};
use jiff::{SignedDuration, Timestamp};

use crate::kinds;

/// The kind with this number.
pub fn kind(number: i32) -> Result<Kind, Invalid> {
    match (Kind::from_number(number), number) {
        (Some(kind), _) => Ok(kind),
        (None, 0) => Err(Invalid::new("is required: a resource kind")),
        (None, _) => Err(Invalid::new(format!("is not a known resource kind: {number}"))),
    }
}

/// The kind with this number; `None` (any) for UNSPECIFIED.
pub fn optional_kind(number: i32) -> Result<Option<Kind>, Invalid> {
    if number == 0 {
        Ok(None)
    } else {
        kind(number).map(Some)
    }
}

/// The kinds of a filter. An unspecified or unknown element is a violation of `field[index]`.
pub fn kinds(field: &str, numbers: &[i32], violations: &mut Violations) -> Vec<Kind> {
    let parsed = numbers.iter().enumerate();
    parsed
        .filter_map(|(index, &number)| violations.check(&format!("{field}[{index}]"), kind(number)))
        .collect()
}

/// The state with this number, if it is known.
pub fn outcome_state(number: i32) -> Option<OutcomeState> {
    match pb::OutcomeState::try_from(number).ok()? {
        pb::OutcomeState::Unspecified => None,
        pb::OutcomeState::Pending => Some(OutcomeState::Pending),
        pb::OutcomeState::Applied => Some(OutcomeState::Applied),
        pb::OutcomeState::AwaitingReview => Some(OutcomeState::AwaitingReview),
        pb::OutcomeState::Rejected => Some(OutcomeState::Rejected),
        pb::OutcomeState::NoEffect => Some(OutcomeState::NoEffect),
        pb::OutcomeState::Refused => Some(OutcomeState::Refused),
        pb::OutcomeState::Withdrawn => Some(OutcomeState::Withdrawn),
    }
}

/// The status of a candidate with this number, if it is known.
pub fn candidate_status(number: i32) -> Option<Status> {
    match CandidateStatus::try_from(number).ok()? {
        CandidateStatus::Unspecified => None,
        CandidateStatus::Pending => Some(Status::Pending),
        CandidateStatus::AwaitingReview => Some(Status::AwaitingReview),
        CandidateStatus::Applied => Some(Status::Applied),
        CandidateStatus::Rejected => Some(Status::Rejected),
        CandidateStatus::Superseded => Some(Status::Superseded),
        CandidateStatus::Withdrawn => Some(Status::Withdrawn),
    }
}

/// The scope with this number; UNSPECIFIED is GLOBAL.
pub fn scope(number: i32) -> Result<Scope, Invalid> {
    match pb::Scope::try_from(number) {
        Ok(pb::Scope::Unspecified | pb::Scope::Global) => Ok(Scope::Global),
        Ok(pb::Scope::User) => Ok(Scope::User),
        Err(_) => Err(Invalid::new(format!("is not a known scope: {number}"))),
    }
}

/// The risk level with this number; `None` for UNSPECIFIED.
pub fn risk_level(number: i32) -> Result<Option<RiskLevel>, Invalid> {
    match pb::RiskLevel::try_from(number) {
        Ok(pb::RiskLevel::Unspecified) => Ok(None),
        Ok(pb::RiskLevel::Low) => Ok(Some(RiskLevel::Low)),
        Ok(pb::RiskLevel::Medium) => Ok(Some(RiskLevel::Medium)),
        Ok(pb::RiskLevel::High) => Ok(Some(RiskLevel::High)),
        Err(_) => Err(Invalid::new(format!("is not a known risk level: {number}"))),
    }
}

/// A reporter; the default (anonymous) one if absent.
pub fn reporter(message: Option<&pb::Reporter>) -> Result<Reporter, Violations> {
    match message {
        None => Ok(Reporter::default()),
        Some(pb::Reporter {
            id,
            session_id,
            client,
            client_key,
        }) => Reporter::parse(id, session_id, client, client_key),
    }
}

/// A correction as it was stored or travels: of a rating it is said what it counts as. If it is absent or its oneof is empty,
/// the violation has no path; the caller nests it under its field.
pub fn correction(message: Option<&pb::Correction>) -> Result<Correction, Violations> {
    let form = form(message)?;
    kinds::correction(form).map_err(|violations| nested(kinds::form_of(form).name(), violations))
}

/// The same as somebody says it, where the application has these targets of its own, which can be rated.
pub fn new_correction(
    message: Option<&pb::Correction>,
    own_targets: &[OwnTarget],
) -> Result<Correction, RefusedRating> {
    let form = form(message)?;
    kinds::new_correction(form, own_targets).map_err(|refused| RefusedRating {
        violations: nested(kinds::form_of(form).name(), refused.violations),
        ..refused
    })
}

fn form(message: Option<&pb::Correction>) -> Result<&pb::correction::Correction, Violations> {
    let mut violations = Violations::new();
    let form = message.and_then(|message| message.correction.as_ref());
    if form.is_none() {
        let names: Vec<_> = Form::ALL.iter().map(|form| form.name()).collect();
        violations.add("", format!("is required: one of {}", names.join(", ")));
    }
    violations.finish(form)
}

fn nested(path: &str, part: Violations) -> Violations {
    let mut violations = Violations::new();
    violations.nest(path, part);
    violations
}

/// A resource key. If it is absent, every required part is a violation.
pub fn resource_key(message: Option<&pb::ResourceKey>) -> Result<ResourceKey, Violations> {
    let absent = pb::ResourceKey::default();
    let message = message.unwrap_or(&absent);
    let parsed = ResourceKey::parse(
        &message.namespace,
        Kind::from_number(message.kind),
        &message.key,
        &message.qualifier,
        &message.user_id,
    );
    let Err(violations) = parsed else { return parsed };
    // Distinguishes an absent kind from an unknown one.
    let mut better = Violations::new();
    for FieldViolation { field, description } in violations.into_vec() {
        match kind(message.kind) {
            Err(Invalid(why)) if field == "kind" => better.add(field, why),
            _ => better.add(field, description),
        }
    }
    Err(better)
}

/// A value of the key's kind. `key_as_sent` replaces an empty display, and a display that is the key itself is left out. The
/// field that says the key's qualifier must agree with it. Without a (valid) key, only the other violations of the value are
/// reported.
pub fn resource_value(
    message: Option<&pb::ResourceValue>,
    key: Option<&ResourceKey>,
    key_as_sent: &str,
) -> Result<ResourceValue, Violations> {
    let mut violations = Violations::new();
    let display = message.map_or("", |message| message.display.as_str());
    let display = if display.trim().is_empty() {
        key_as_sent
    } else {
        display
    };
    // With no text at all, the violation is the missing key.
    let display = match (display.trim(), key) {
        ("", None) => None,
        _ => violations.check("display", ResourceValue::parse_display(display)),
    };
    let learned = match message.and_then(|message| message.value.as_ref()) {
        None => {
            violations.add("value", "is required: the value of the key's kind");
            None
        }
        Some(value) => learned(value, key, &mut violations),
    };
    let parsed = (|| {
        let value = ResourceValue::new(display?, learned?);
        Some(match key {
            Some(key) => value.at(key.key.as_str()),
            None => value,
        })
    })();
    violations.finish(parsed)
}

fn learned(
    value: &resource_value::Value,
    key: Option<&ResourceKey>,
    violations: &mut Violations,
) -> Option<Learned> {
    let kind = kinds::kind_of(value);
    let learned = violations.part(kind.name(), kinds::learned(value));
    let key = key?;
    if kind != key.kind {
        violations.add("value", format!("must be of the key's kind, {}", key.kind));
        return None;
    }
    let learned = learned?;
    if let Err((field, Invalid(why))) = learned.check_key(key.key.as_str()) {
        violations.add(format!("{kind}.{field}"), why);
        return None;
    }
    if let (Some(qualifier), Some(of_value)) = (learned.qualifier(), learned.qualifier_of_key()) {
        let field = format!("{kind}.{}", qualifier.name);
        let of_value = violations.check(&field, of_value)?;
        if of_value != key.qualifier {
            violations.add(field, "must equal the key's qualifier");
        }
    }
    Some(learned)
}

/// What a stored rating says.
pub fn rated_texts(rating: pb::Rating) -> RatedTexts {
    RatedTexts {
        input: rating.input_text,
        output: rating.output_text,
        issues: rating.issues,
        corrected: rating.corrected_text,
        judgement: rating.correct_judgement,
    }
}

/// Maximum length of a reason in characters.
pub const MAX_REASON_CHARS: usize = 2_000;

/// Maximum size of a context value in bytes.
pub const MAX_CONTEXT_VALUE_BYTES: usize = 1_024;

/// The context of a correction: at most 32 entries, keys of 1 to 64 characters, values of at most 1 KiB; no control
/// characters except tabs and line breaks in values.
pub fn context(map: &HashMap<String, String>) -> Result<BTreeMap<String, String>, Violations> {
    let mut violations = Violations::new();
    if map.len() > 32 {
        violations.add(
            "context",
            format!("must have at most 32 entries, has {}", map.len()),
        );
    }
    let sorted: BTreeMap<_, _> = map.iter().collect();
    let mut parsed = BTreeMap::new();
    for (key, value) in sorted {
        let shown: String = key.chars().take(64).collect();
        let name = violations.check(
            "context",
            emend_core::violation::bounded_text(key, 1, 64).map_err(in_key(&shown)),
        );
        if value.len() > MAX_CONTEXT_VALUE_BYTES {
            violations.add(
                format!("context[{shown:?}]"),
                format!("must be at most 1 KiB, has {} bytes", value.len()),
            );
        } else if let (Some(name), Some(value)) = (
            name,
            violations.check(
                &format!("context[{shown:?}]"),
                bounded_prose(value, 0, MAX_CONTEXT_VALUE_BYTES),
            ),
        ) {
            // Two keys may differ only in surrounding white space.
            if parsed.insert(name, value).is_some() {
                violations.add(format!("context[{shown:?}]"), "appears twice");
            }
        }
    }
    violations.finish(Some(parsed))
}

fn in_key(key: &str) -> impl Fn(Invalid) -> Invalid {
    move |Invalid(why)| Invalid(format!("key {key:?} {why}"))
}

/// Free text of at most `max` characters; `None` if empty.
pub fn free_text(raw: &str, max: usize) -> Result<Option<String>, Invalid> {
    bounded_prose(raw, 0, max).map(|text| (!text.is_empty()).then_some(text))
}

/// A point in time within the calendar's range.
pub fn timestamp(message: &prost_types::Timestamp) -> Result<Timestamp, Invalid> {
    const NANOS: std::ops::Range<i32> = 0..1_000_000_000;
    if !NANOS.contains(&message.nanos) {
        return Err(Invalid::new("nanos must be 0 to 999,999,999"));
    }
    Timestamp::new(message.seconds, message.nanos)
        .map_err(|_| Invalid::new("must be from year 1 to 9999 in seconds since 1970-01-01T00:00:00Z"))
}

/// The times in the fields `<name>_from` and `<name>_before`, either of which may be absent; the latter must be later.
pub fn period(
    name: &str,
    from: Option<&prost_types::Timestamp>,
    before: Option<&prost_types::Timestamp>,
) -> Result<(Option<Timestamp>, Option<Timestamp>), Violations> {
    let mut violations = Violations::new();
    let from_field = format!("{name}_from");
    let before_field = format!("{name}_before");
    let from = violations.check(&from_field, from.map(timestamp).transpose());
    let before = violations.check(&before_field, before.map(timestamp).transpose());
    if let (Some(Some(from)), Some(Some(before))) = (from, before)
        && before <= from
    {
        violations.add(before_field, format!("must be later than {from_field}"));
    }
    violations.finish(from.zip(before))
}

/// A duration between `min` and `max`.
pub fn duration(
    message: &prost_types::Duration,
    min: SignedDuration,
    max: SignedDuration,
) -> Result<SignedDuration, Invalid> {
    const NANOS: std::ops::RangeInclusive<i32> = -999_999_999..=999_999_999;
    if !NANOS.contains(&message.nanos) {
        return Err(Invalid::new("nanos must be -999,999,999 to 999,999,999"));
    }
    let duration = SignedDuration::new(message.seconds, message.nanos);
    if (min..=max).contains(&duration) {
        Ok(duration)
    } else {
        Err(Invalid::new(format!(
            "must be {min:#} to {max:#}, is {duration:#}"
        )))
    }
}

/// A page size. 0 means the default; a negative size or one above the maximum is a violation.
pub fn page_size(raw: i32, default: u32, max: u32) -> Result<u32, Invalid> {
    match u32::try_from(raw) {
        Ok(0) => Ok(default),
        Ok(size) if size <= max => Ok(size),
        _ => Err(Invalid::new(format!(
            "must be 1 to {max}, or 0 for {default}; is {raw}"
        ))),
    }
}

/// A non-negative revision.
pub fn revision(raw: i64) -> Result<emend_core::Revision, Invalid> {
    if raw >= 0 {
        Ok(emend_core::Revision(raw))
    } else {
        Err(Invalid::new(format!("must be 0 or more, is {raw}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_violations() {
        assert!(kind(99).unwrap_err().0.contains("99"));
        assert!(scope(7).is_err());
        assert!(risk_level(7).is_err());
        assert_eq!(scope(0), Ok(Scope::Global));
    }

    #[test]
    fn a_value_of_another_kind_is_a_violation() {
        let key = ResourceKey::parse("a", Some(Kind::EntityAlias), "x", "", "").unwrap();
        let value = pb::ResourceValue {
            value: Some(resource_value::Value::InvocationPhrase(
                pb::InvocationPhraseValue { verb: "v".into() },
            )),
            ..Default::default()
        };
        assert_eq!(
            resource_value(Some(&value), Some(&key), "X")
                .unwrap_err()
                .into_vec()[0]
                .field,
            "value"
        );
    }

    #[test]
    fn a_display_that_is_the_key_is_left_out() {
        let key = ResourceKey::parse("a", Some(Kind::InvocationPhrase), "x y", "", "").unwrap();
        let value = |display: &str| pb::ResourceValue {
            display: display.into(),
            value: Some(resource_value::Value::InvocationPhrase(
                pb::InvocationPhraseValue { verb: "v".into() },
            )),
            ..Default::default()
        };
        for (display, as_sent, kept) in [
            ("x y", "X  Y", ""),
            ("", "x y", ""),
            ("", "X  Y", "X  Y"),
            ("X y", "x y", "X y"),
        ] {
            let parsed = resource_value(Some(&value(display)), Some(&key), as_sent).unwrap();
            assert_eq!(parsed.display, kept, "{display:?} {as_sent:?}");
            let shown = crate::render::value_of(&key, &parsed).display;
            assert_eq!(shown, if kept.is_empty() { "x y" } else { kept });
        }
    }

    #[test]
    fn durations_out_of_range_are_violations() {
        let day = SignedDuration::from_hours(24);
        let parsed = |seconds, nanos| {
            duration(
                &prost_types::Duration { seconds, nanos },
                SignedDuration::ZERO,
                day,
            )
        };
        assert_eq!(parsed(1, 5), Ok(SignedDuration::new(1, 5)));
        for (seconds, nanos) in [
            (i64::MAX, i32::MAX),
            (i64::MIN, i32::MIN),
            (i64::MAX, 999_999_999),
            (i64::MIN, -999_999_999),
            (1, i32::MAX),
        ] {
            assert!(parsed(seconds, nanos).is_err(), "{seconds} s, {nanos} ns");
        }
    }

    #[test]
    fn page_sizes_have_a_default_and_a_bound() {
        assert_eq!(page_size(0, 50, 500), Ok(50));
        assert_eq!(page_size(500, 50, 500), Ok(500));
        assert!(page_size(501, 50, 500).is_err());
        assert!(page_size(-1, 50, 500).is_err());
    }
}
