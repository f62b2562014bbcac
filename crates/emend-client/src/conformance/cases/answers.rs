//! Look-ups, and what goes wrong.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use emend_base::error::{Error, PreconditionViolation};
use emend_core::violation::FieldViolation;
use serde_json::{Value, json};
use tonic::Status;

use super::Case;

pub(super) fn lookups() -> Vec<Case> {
    let ask = |phrase: &str, more: Value| {
        let mut input = json!({"state": "answers", "namespace": "fund-admin", "kind": 1, "phrase": phrase});
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        input
    };
    let two = json!([["create_isda", 0.7], ["create_csa", 0.6]]);
    vec![
        (
            "exact",
            "a phrase that was learned",
            ask("set up a csa", json!({})),
        ),
        (
            "spelling",
            "in any spelling",
            ask(" Set  up a ＣＳＡ", json!({"candidates": two})),
        ),
        (
            "japanese",
            "in another script",
            ask("相手の顔にダメージ", json!({})),
        ),
        (
            "unknown",
            "one that was not: the backend should ask its user",
            ask("buy a boat", json!({"candidates": two})),
        ),
        (
            "other-namespace",
            "another application learned nothing",
            ask("set up a csa", json!({"namespace": "other"})),
        ),
        (
            "other-kind",
            "another kind learned nothing",
            ask("set up a csa", json!({"kind": 2})),
        ),
        (
            "entity",
            "an entity by its name",
            ask("THE fund", json!({"kind": 2})),
        ),
        (
            "own-first",
            "the user's own comes first",
            ask("set up a csa", json!({"user": "jane"})),
        ),
        (
            "everybodys",
            "who has none of his own gets everybody's",
            ask("set up a csa", json!({"user": "joe"})),
        ),
        (
            "prohibited",
            "a prohibited answer is never given",
            ask("close the fund", json!({})),
        ),
        (
            "prohibited-for-one",
            "what a user prohibited is not given to that user",
            ask("book it", json!({"user": "joe"})),
        ),
        (
            "not-prohibited-for-all",
            "and is given to all others",
            ask("book it", json!({"user": "mia"})),
        ),
        (
            "own-prohibited-for-all",
            "what is prohibited for everybody is so for each user: then everybody's is given",
            ask("pay", json!({"user": "mia"})),
        ),
        (
            "both-prohibitions",
            "the user's prohibitions and everybody's, sorted",
            ask("show nav", json!({"user": "joe"})),
        ),
        (
            "hint",
            "two candidates in doubt: ask",
            ask("x", json!({"candidates": [["a", 0.89], ["b", 0.5]]})),
        ),
        (
            "no-hint-sure",
            "the best is sure: do not ask",
            ask("x", json!({"candidates": [["a", 0.9], ["b", 0.5]]})),
        ),
        (
            "no-hint-one",
            "one candidate: do not ask",
            ask("x", json!({"candidates": [["a", 0.5]]})),
        ),
        (
            "no-hint-left",
            "one candidate that is not prohibited: do not ask",
            ask(
                "close the fund",
                json!({"candidates": [["a", 0.5], ["close_fund", 0.5]]}),
            ),
        ),
        (
            "hint-left",
            "the sure one is prohibited: ask",
            ask(
                "close the fund",
                json!({"candidates": [["close_fund", 0.95], ["b", 0.5], ["c", 0.4]]}),
            ),
        ),
        (
            "composed-candidate",
            "a candidate is compared in composed form",
            ask(
                "show nav",
                json!({"candidates": [["cafe\u{301}", 0.5], ["b", 0.5]]}),
            ),
        ),
        (
            "empty-node",
            "a node that holds nothing answers nothing",
            ask("set up a csa", json!({"state": "nothing", "candidates": two})),
        ),
    ]
}

pub(super) fn errors() -> Vec<Case> {
    let of = |status: Status| {
        json!({
            "code": i32::from(status.code()), "message": status.message(),
            "details": BASE64_STANDARD.encode(status.details()),
        })
    };
    let violation = |field: &str, description: &str| FieldViolation {
        field: field.into(),
        description: description.into(),
    };
    let precondition = PreconditionViolation {
        kind: "NEWER_REVISION".into(),
        subject: "fund-admin/INVOCATION_PHRASE/set up a csa".into(),
        description: "revision 9 changed it since".into(),
    };
    let refused = |phrase: &str| json!({"state": "answers", "namespace": "fund-admin", "phrase": phrase});
    let fields = vec![
        violation("namespace", "is required"),
        violation(
            "correction.verb.correct_choice",
            "must be at most 256 characters, has 300",
        ),
    ];
    vec![
        (
            "fields",
            "every violated field, with its bound",
            of(Error::InvalidArgument(fields).into()),
        ),
        (
            "reused",
            "a stable reason",
            of(Error::AlreadyExists {
                reason: "REQUEST_ID_REUSED",
                message: "this request_id was used with different content".into(),
            }
            .into()),
        ),
        (
            "busy",
            "how long to wait",
            of(Error::ResourceExhausted {
                reason: "RATING_LIMIT",
                message: "at most 30 ratings a minute".into(),
                retry_after: Some(Duration::from_millis(12_500)),
            }
            .into()),
        ),
        (
            "preconditions",
            "violated preconditions",
            of(Error::FailedPrecondition {
                reason: "CHANGED_SINCE",
                message: "newer revisions changed some keys".into(),
                violations: vec![precondition],
            }
            .into()),
        ),
        (
            "not-found",
            "what was not found",
            of(Error::not_found("candidate", "0192d3c5").into()),
        ),
        (
            "plain",
            "a status without details",
            of(Status::unavailable("connection refused")),
        ),
        (
            "unreadable",
            "details that can't be read do not hide the status",
            of(Status::with_details(
                tonic::Code::Aborted,
                "etag",
                vec![0xff; 9].into(),
            )),
        ),
        (
            "empty-phrase",
            "a look-up of an empty phrase is refused without a server",
            refused(""),
        ),
        (
            "nothing-left",
            "one of what is not seen",
            refused("\u{200B}\u{3164}"),
        ),
        (
            "long-phrase",
            "one of more than 512 characters",
            refused(&"x".repeat(513)),
        ),
        (
            "grown-phrase",
            "one that is longer once it is normalised",
            refused(&"\u{FDFA}".repeat(100)),
        ),
        ("control", "one with a control character", refused("a\u{7}b")),
        (
            "hidden",
            "one with a character that people do not see and normalisation leaves",
            refused("set\u{FFF9} up"),
        ),
    ]
}
