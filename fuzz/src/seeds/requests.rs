//! Valid requests of every method.

mod evidence;
mod feedback_svc;
mod learning_svc;
mod outputs;

use emend_base::Error;
use emend_proto::{
    common::v1::{
        self as common, ClaimReject, ClaimRestore, Correction, DomainBlock, DomainUnblock, EdgeCorrect,
        EdgeRelation, EntityCorrection, PhraseMapping, Prohibition, Rating, Reporter, SearchTuningValue,
        SynonymRelation, TermCorrection, TrustLevel, TuningCorrection, VerbCorrection,
        correction::Correction as Oneof,
    },
    learning::v1::{self as learning, event, import_resources_request},
};
use emend_wire::page::{self, QueryHash};
use prost::Message;
use tonic::Status;

use self::feedback_svc::submissions;
pub(super) use self::{feedback_svc::feedback, learning_svc::learning};
use super::stream::key;

const ID: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

/// A message after the byte that selects its method.
fn of(which: u8, message: &impl Message) -> Vec<u8> {
    [vec![which], message.encode_to_vec()].concat()
}

fn namespace() -> String {
    "fund-admin".to_owned()
}

fn at(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds, nanos: 5 }
}

fn minutes(minutes: i64) -> prost_types::Duration {
    prost_types::Duration {
        seconds: 60 * minutes,
        nanos: 0,
    }
}

fn corrections() -> Vec<Option<Correction>> {
    let oneofs = [
        Oneof::Verb(VerbCorrection {
            original_input: "Set up a CSA".into(),
            system_choice: "create_isda".into(),
            correct_choice: "create_csa".into(),
        }),
        Oneof::PhraseMapping(PhraseMapping {
            phrase: "mail jane.doe@example.org".into(),
            verb: "send_mail".into(),
        }),
        Oneof::Entity(EntityCorrection {
            original_input: "J. Smith".into(),
            system_choice: String::new(),
            correct_choice: "person:jane-smith".into(),
        }),
        Oneof::Prohibition(Prohibition {
            phrase: "wind down the fund".into(),
            forbidden_choice: "delete_fund".into(),
        }),
        Oneof::Term(TermCorrection {
            term: "フィールド".into(),
            equivalents: vec!["盤面".into(), "Board".into()],
            relation: SynonymRelation::OneWay.into(),
        }),
        Oneof::DomainUnblock(DomainUnblock {
            pattern: "*.Bücher.example".into(),
            level: TrustLevel::Low.into(),
            task_id: "t-17".into(),
        }),
        Oneof::DomainBlock(DomainBlock {
            pattern: "spam.example.".into(),
            task_id: String::new(),
        }),
        Oneof::ClaimReject(ClaimReject {
            claim_id: "claim:12".into(),
            reason_code: "SPAM".into(),
            task_id: "t-17".into(),
        }),
        Oneof::ClaimRestore(ClaimRestore {
            claim_id: "claim:12".into(),
            task_id: String::new(),
        }),
        Oneof::EdgeCorrect(EdgeCorrect {
            edge_id: "edge:7".into(),
            correct_relation: EdgeRelation::Refutes.into(),
            task_id: "t-17".into(),
        }),
        Oneof::SearchRating(common::SearchRating { value: 3 }),
        Oneof::Tuning(TuningCorrection {
            query_type: "HYBRID".into(),
            tuning: Some(SearchTuningValue {
                top_k: Some(20),
                min_score: Some(0.3),
                namespaces: vec!["effects".into()],
                ..SearchTuningValue::default()
            }),
        }),
        Oneof::Rating(Rating {
            target: "EVALUATE".into(),
            value: "MISSED".into(),
            target_id: "claim-4".into(),
            input_text: "mail a@b.cd".into(),
            output_text: "nothing\nnew".into(),
            issues: vec!["it refutes it".into()],
            correct_judgement: "REFUTES".into(),
            ..Rating::default()
        }),
    ];
    oneofs
        .map(|oneof| {
            Some(Correction {
                correction: Some(oneof),
            })
        })
        .to_vec()
}

fn reporter() -> Reporter {
    Reporter {
        id: "jane".into(),
        session_id: "s-1".into(),
        client: "search/2.1".into(),
        client_key: "k".into(),
    }
}

pub(super) fn events() -> Vec<Vec<u8>> {
    let mut events: Vec<_> = submissions().iter().map(Message::encode_to_vec).collect();
    // A mask may be longer than the address it replaces.
    let mut long = submissions().remove(0);
    long.reason = "a@b.cd ".repeat(280);
    events.push(long.encode_to_vec());
    events.extend(ingested().iter().map(Message::encode_to_vec));
    events
}

fn ingested() -> Vec<learning::Event> {
    let of = |event| learning::Event {
        event_id: ID.into(),
        feedback_id: ID.into(),
        namespace: namespace(),
        accept_order: 5,
        traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into(),
        event: Some(event),
    };
    let mut events: Vec<_> = corrections()
        .into_iter()
        .map(|correction| {
            of(event::Event::Recorded(learning::FeedbackRecorded {
                reporter: Some(reporter()),
                caller: "anonymous".into(),
                query_id: "q".into(),
                reason: "because".into(),
                context: [("topic".to_owned(), "x".to_owned())].into(),
                scope: 2,
                correction,
                received_at: Some(at(1_700_000_000)),
                erased_voter: None,
                sender_roles: vec!["reviewer".into()],
            }))
        })
        .collect();
    events.push(of(event::Event::Retracted(learning::FeedbackRetracted {
        caller: "anonymous".into(),
        reason: "oops".into(),
        retracted_at: Some(at(1_700_000_001)),
        sender_roles: vec!["reporter".into()],
    })));
    events.push(of(event::Event::Redacted(learning::FeedbackRedacted {
        caller: "anonymous".into(),
        redacted_at: Some(at(1_700_000_002)),
    })));
    events
}

pub(super) fn imports() -> Vec<Vec<u8>> {
    let header = |mode| {
        import_resources_request::Message::Header(learning::ImportHeader {
            namespace: namespace(),
            mode,
            import_as: 1,
            reason: "at first".into(),
            on_behalf_of: "ana".into(),
            ..learning::ImportHeader::default()
        })
    };
    let rows = |correction: Option<Correction>| {
        import_resources_request::Message::Rows(learning::ImportRows {
            rows: vec![
                learning::ImportRow {
                    line: 2,
                    correction,
                    user_id: String::new(),
                },
                learning::ImportRow {
                    line: 3,
                    correction: corrections().remove(1),
                    user_id: "mia".into(),
                },
            ],
        })
    };
    (1..=2)
        .map(|mode| {
            let messages = corrections().into_iter().map(rows);
            // The target takes the messages of a stream as one field 1 each.
            let sent = std::iter::once(header(mode)).chain(messages).map(|message| {
                learning::ImportResourcesRequest {
                    message: Some(message),
                }
                .encode_to_vec()
            });
            super::stream::sent(sent)
        })
        .collect()
}

pub(super) fn page_tokens() -> Vec<Vec<u8>> {
    let query = QueryHash::of("List", &common::ResourceKey::default());
    vec![
        vec![],
        77_i64.to_le_bytes().to_vec(),
        vec![3; 24],
        b"search-1\0anonymous".to_vec(),
        key().encode_to_vec(),
        page::number_token(query, 77).into_bytes(),
        page::token(query, b"").into_bytes(),
    ]
}

pub(super) fn statuses() -> Vec<Vec<u8>> {
    let errors = [
        Error::invalid("correction.verb.original_input", "is required"),
        Error::not_found("resource", "fund-admin/1/x"),
        Error::Aborted {
            reason: "ETAG_MISMATCH",
            message: "read it again".into(),
        },
        Error::ResourceExhausted {
            reason: "IMPORTS_BUSY",
            message: "later".into(),
            retry_after: Some(std::time::Duration::from_secs(10)),
        },
    ];
    errors
        .map(|error| Status::from(error).details().to_vec())
        .to_vec()
}
