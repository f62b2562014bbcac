//! What is printed for a message of every kind.

use emend_proto::{DESCRIPTOR_SET, common::v1 as common, feedback::v1 as feedback, learning::v1 as learning};
use prost::{Message, Name};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value as Field,
};
use serde_json::{Value, json};

use crate::view;

/// For each message that [`shown`] lists, a line.
const PRINTED: &str = include_str!("messages.txt");

#[test]
fn every_message_is_printed_by_the_names_that_programs_know() {
    let parsed = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
    let expected: Vec<_> = PRINTED.lines().map(parsed).collect();
    let shown = shown();
    for (shown, expected) in shown.iter().zip(&expected) {
        assert_eq!(shown, expected, "{shown}");
    }
    assert_eq!(shown.len(), expected.len());
}

/// Of each kind of message an empty one, and one for each choice that it has; by the kind's name.
fn shown() -> Vec<Value> {
    let mut all = Vec::new();
    add::<common::Correction>(&mut all, view::message);
    add::<common::Outcome>(&mut all, view::message);
    add::<common::NearLookupValue>(&mut all, view::message);
    add::<common::Resource>(&mut all, view::message);
    add::<common::ResourceKey>(&mut all, view::message);
    add::<common::ResourceValue>(&mut all, view::message);
    add::<common::SearchTuningValue>(&mut all, view::message);
    add::<feedback::DeadLetter>(&mut all, view::message);
    add::<feedback::Feedback>(&mut all, view::message);
    add::<feedback::GetFeedbackStatsResponse>(&mut all, view::message);
    add::<feedback::NegativeTerm>(&mut all, view::message);
    add::<feedback::Query>(&mut all, view::message);
    add::<feedback::RedactReporterResponse>(&mut all, view::message);
    add::<feedback::Settings>(&mut all, view::message);
    add::<learning::AcquireReviewLeaseResponse>(&mut all, view::message);
    add::<learning::Candidate>(&mut all, view::message);
    add::<learning::GetCandidateResponse>(&mut all, view::message);
    add::<learning::GetOutputStatsResponse>(&mut all, view::message);
    add::<learning::GetQueueStatsResponse>(&mut all, view::message);
    add::<learning::ImportResourcesResponse>(&mut all, view::message);
    add::<learning::Improvement>(&mut all, view::message);
    add::<learning::NamespacePolicy>(&mut all, view::message);
    add::<learning::Node>(&mut all, view::message);
    add::<learning::Policy>(&mut all, view::message);
    add::<learning::PreviewCandidateResponse>(&mut all, view::message);
    add::<learning::PreviewImprovementResponse>(&mut all, view::message);
    add::<learning::PreviewPolicyResponse>(&mut all, view::message);
    add::<learning::Profile>(&mut all, view::message);
    add(&mut all, view::prompt_version);
    add::<learning::RenderPromptResponse>(&mut all, view::message);
    add::<learning::ResolveResponse>(&mut all, view::message);
    add::<learning::RevertRevisionResponse>(&mut all, view::message);
    add::<learning::ReviewComment>(&mut all, view::message);
    add::<learning::ReviewResult>(&mut all, view::message);
    add::<learning::Revision>(&mut all, view::message);
    add::<learning::Suggestion>(&mut all, view::message);
    add::<learning::TargetStats>(&mut all, view::message);
    add::<learning::WatchQueueResponse>(&mut all, view::message);
    all
}

fn add<M: Message + Name + Default>(all: &mut Vec<Value>, show: impl Fn(&M) -> Value) {
    let pool = DescriptorPool::decode(DESCRIPTOR_SET).unwrap();
    let kind = pool.get_message_by_name(&M::full_name()).unwrap();
    let choices = kind
        .oneofs()
        .map(|choice| choice.fields().len())
        .max()
        .unwrap_or(1);
    let filled = (0..choices).map(|choice| filled(&kind, choice, &mut Vec::new()));
    let messages = filled.map(|message| message.transcode_to().unwrap());
    let messages = [M::default()].into_iter().chain(messages);
    all.extend(messages.map(|message| json!({M::NAME: show(&message)})));
}

/// A message with every field set, of what excludes each other the one at `choice`.
fn filled(kind: &MessageDescriptor, choice: usize, within: &mut Vec<String>) -> DynamicMessage {
    let mut message = DynamicMessage::new(kind.clone());
    within.push(kind.full_name().to_owned());
    for field in kind.fields() {
        let is_chosen = field.containing_oneof().is_none_or(|oneof| {
            let index = choice % oneof.fields().len();
            oneof.fields().nth(index) == Some(field.clone())
        });
        if let Some(value) = sample(&field, within).filter(|_| is_chosen) {
            let value = if field.is_list() {
                Field::List(vec![value])
            } else {
                value
            };
            message.set_field(&field, value);
        }
    }
    within.pop();
    message
}

/// A value that tells which field it is in; none of a message within itself.
fn sample(field: &FieldDescriptor, within: &mut Vec<String>) -> Option<Field> {
    let text = Field::String(field.name().into());
    let number = i32::try_from(field.number()).unwrap();
    if field.is_map() {
        return Some(Field::Map([(MapKey::String("name".into()), text)].into()));
    }
    Some(match field.kind() {
        Kind::String => text,
        // A value that was cleared says nothing else.
        Kind::Bool => Field::Bool(field.name() != "cleared"),
        Kind::Double => Field::F64(f64::from(number) + 0.25),
        Kind::Int32 => Field::I32(number),
        Kind::Int64 => Field::I64(number.into()),
        Kind::Uint32 => Field::U32(field.number()),
        Kind::Uint64 | Kind::Fixed64 => Field::U64(field.number().into()),
        Kind::Bytes => Field::Bytes(b"bytes".to_vec().into()),
        Kind::Enum(kind) => Field::EnumNumber(kind.values().nth(1)?.number()),
        Kind::Message(kind) if within.iter().any(|name| name == kind.full_name()) => return None,
        Kind::Message(kind) => Field::Message(filled(&kind, 0, within)),
        other => panic!("a sample of {other:?}"),
    })
}

#[test]
fn times_and_durations_are_written_as_in_proto3_json() {
    let at = prost_types::Timestamp {
        seconds: 1_767_225_600,
        nanos: 5_000_000,
    };
    assert_eq!(view::time(Some(&at)), json!("2026-01-01T00:00:00.005Z"));
    assert_eq!(view::time(None), Value::Null);
    assert_eq!(view::short_time(Some(&at)), "2026-01-01T00:00:00Z");
    assert_eq!(
        view::span(Some(&prost_types::Duration {
            seconds: 3_600,
            nanos: 0
        })),
        json!("3600s")
    );
    assert_eq!(
        view::span(Some(&prost_types::Duration {
            seconds: 1,
            nanos: 500_000_000
        })),
        json!("1.500000000s")
    );
}

#[test]
fn a_span_is_shown_in_its_largest_whole_unit() {
    let text = |seconds, nanos| view::span_text(&prost_types::Duration { seconds, nanos });
    assert_eq!(text(90 * 86_400, 0), "90 d");
    assert_eq!(text(36 * 3_600, 0), "36 h");
    assert_eq!(text(90, 0), "90 s");
    assert_eq!(text(60, 500_000_000), "60.500 s");
}

#[test]
fn unknown_enum_numbers_are_shown_as_numbers() {
    let shown = |kind| {
        view::message(&common::ResourceKey {
            kind,
            ..Default::default()
        })["kind"]
            .clone()
    };
    assert_eq!(shown(1), json!("RESOURCE_KIND_INVOCATION_PHRASE"));
    assert_eq!(shown(99), json!(99));
}

#[test]
fn default_scalars_are_shown_and_absent_messages_are_not() {
    let shown = view::message(&learning::Candidate::default());
    assert_eq!(shown["reporterCount"], json!(0));
    assert_eq!(shown["statusReason"], json!(""));
    assert!(shown.get("value").is_none());
}

#[test]
fn a_cleared_tuning_says_nothing_else() {
    let tuning = common::SearchTuningValue {
        top_k: Some(5),
        cleared: true,
        ..Default::default()
    };
    assert_eq!(view::message(&tuning), json!({"cleared": true}));
}
