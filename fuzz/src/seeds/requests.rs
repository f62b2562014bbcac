//! Valid requests of every method.

use emend_base::Error;
use emend_proto::{
    common::v1::{
        self as common, ClaimReject, ClaimRestore, Correction, DomainBlock, DomainUnblock, EdgeCorrect,
        EdgeRelation, EntityCorrection, PhraseMapping, Prohibition, Rating, Reporter, SearchTuningValue,
        SynonymRelation, TermCorrection, TrustLevel, TuningCorrection, VerbCorrection,
        correction::Correction as Oneof,
    },
    feedback::v1 as feedback,
    learning::v1::{self as learning, event, import_resources_request},
};
use emend_wire::page::{self, QueryHash};
use prost::Message;
use tonic::Status;

use super::stream::{key, value};

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

fn submissions() -> Vec<feedback::SubmitFeedbackRequest> {
    let of = |(number, correction): (usize, Option<Correction>)| feedback::SubmitFeedbackRequest {
        request_id: format!("request-{number}"),
        namespace: namespace(),
        reporter: Some(reporter()),
        query_id: "q-7".into(),
        reason: "I meant the annex; call +49 30 901820 or a@b.cd".into(),
        context: [("topic".to_owned(), "derivatives, mail a@b.cd".to_owned())].into(),
        scope: i32::from(number % 2 == 0) + 1,
        wait: feedback::Wait::Evaluated.into(),
        correction,
    };
    corrections().into_iter().enumerate().map(of).collect()
}

pub(super) fn feedback() -> Vec<Vec<u8>> {
    let mut list = feedback::ListFeedbackRequest {
        namespace: namespace(),
        page_size: 20,
        page_token: String::new(),
        reporter_id: "jane".into(),
        kind: 1,
        delivery_state: 2,
        received_from: Some(at(1_700_000_000)),
        received_before: Some(at(1_800_000_000)),
        rating_target: "TRIAGE".into(),
        rating_value: "RIGHT".into(),
        day: "2023-11-26".into(),
        time_zone: "America/New_York".into(),
        search_ratings: None,
    };
    let rated = feedback::ListFeedbackRequest {
        namespace: namespace(),
        search_ratings: Some(feedback::SearchRatingFilter {
            value: 3,
            query_type: "SEMANTIC".into(),
            tag: "low_recall".into(),
            processed: Some(false),
        }),
        ..Default::default()
    };
    let hash = QueryHash::of(
        "ListFeedback",
        &feedback::ListFeedbackRequest {
            page_size: 0,
            ..list.clone()
        },
    );
    list.page_token = page::number_token(hash, 77);
    let mut letters = feedback::ListDeadLettersRequest {
        namespace: namespace(),
        page_size: 0,
        page_token: String::new(),
    };
    letters.page_token = page::token(QueryHash::of("ListDeadLetters", &letters), &[3; 24]);
    let mut requests: Vec<_> = submissions().iter().map(|request| of(0, request)).collect();
    requests.extend([
        of(
            1,
            &feedback::BatchSubmitFeedbackRequest {
                requests: submissions(),
                wait: 1,
            },
        ),
        of(
            2,
            &feedback::GetFeedbackRequest {
                namespace: namespace(),
                feedback_id: ID.into(),
            },
        ),
        of(3, &list),
        of(3, &rated),
        of(
            11,
            &feedback::ExportFeedbackRequest {
                namespace: namespace(),
                format: 4,
                received_from: Some(at(1_700_000_000)),
                ..Default::default()
            },
        ),
        of(
            10,
            &feedback::UpdateFeedbackLabelsRequest {
                namespace: namespace(),
                feedback_id: ID.into(),
                set_tags: vec!["low_recall".into()],
                clear_tags: vec!["synonym_miss".into()],
                processed: Some(true),
            },
        ),
        of(
            4,
            &feedback::RetractFeedbackRequest {
                namespace: namespace(),
                feedback_id: ID.into(),
                reason: "a mistake\nof mine".into(),
                wait: 2,
            },
        ),
        of(5, &letters),
        of(
            6,
            &feedback::RedriveDeadLettersRequest {
                namespace: namespace(),
                event_ids: vec![ID.into(), ID.into()],
            },
        ),
    ]);
    requests.extend(queries());
    requests
}

fn queries() -> [Vec<u8>; 5] {
    let query = feedback::Query {
        query_id: "q-1".into(),
        query_text: "手札に戻すカード, a@b.cd".into(),
        answer_text: "Bounce".into(),
        query_type: "HYBRID".into(),
        top_results: vec![
            feedback::QueryResult {
                title: "Card".into(),
                score: 0.5,
                object_id: "card-1".into(),
            };
            6
        ],
        namespaces: vec!["combined".into()],
        min_score: Some(0.4),
        hit_count: Some(7),
        searched_at: Some(at(-5)),
        ..feedback::Query::default()
    };
    let interaction = feedback::QueryInteraction {
        query_id: "q-1".into(),
        object_id: "card-1".into(),
        action: "Click".into(),
        position: 1,
        acted_at: Some(at(-4)),
    };
    let mut list = feedback::ListQueriesRequest {
        namespace: namespace(),
        query_type: "HYBRID".into(),
        only_without_hits: true,
        searched_from: Some(at(1_700_000_000)),
        searched_before: Some(at(1_800_000_000)),
        ..feedback::ListQueriesRequest::default()
    };
    list.page_token = page::number_token(QueryHash::of("ListQueries", &list), 77);
    [
        of(
            7,
            &feedback::RecordQueryRequest {
                namespace: namespace(),
                queries: vec![query],
            },
        ),
        of(
            8,
            &feedback::RecordInteractionRequest {
                namespace: namespace(),
                interactions: vec![interaction],
            },
        ),
        of(9, &list),
        of(
            11,
            &feedback::GetFeedbackStatsRequest {
                namespace: namespace(),
                rated_from: Some(at(1_700_000_000)),
                rated_before: Some(at(1_800_000_000)),
                query_type: "HYBRID".into(),
                compare: Some(feedback::StatsComparison {
                    by: 4,
                    one: "A".into(),
                    other: "B".into(),
                }),
            },
        ),
        of(
            12,
            &feedback::ListNegativeTermsRequest {
                namespace: namespace(),
                query_type: "HYBRID".into(),
                page_size: 20,
                ..feedback::ListNegativeTermsRequest::default()
            },
        ),
    ]
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

pub(super) fn learning() -> Vec<Vec<u8>> {
    let cursor = learning::Cursor {
        epoch: ID.into(),
        revision: 9,
        filter_hash: 10,
    };
    let approve = learning::ApproveCandidateRequest {
        namespace: namespace(),
        candidate_id: ID.into(),
        etag: "7".into(),
        reason: "right".into(),
        edited_value: Some(value()),
        on_behalf_of: "ana".into(),
    };
    let reject = learning::RejectCandidateRequest {
        namespace: namespace(),
        candidate_id: ID.into(),
        etag: "7".into(),
        reason: "wrong".into(),
        on_behalf_of: "ana".into(),
    };
    let policy = learning::Policy {
        namespace: namespace(),
        kind: 1,
        risk_level: 2,
        threshold: 3,
        counting: 1,
        half_life: Some(minutes(600)),
        max_derived_voters: 1,
        max_resources: 1_000,
        max_value_bytes: 1_000,
        max_counted_feedback: 1_000,
        etag: "4".into(),
        ..Default::default()
    };
    let paths = ["half_life", "threshold", "max_resources"]
        .map(str::to_owned)
        .to_vec();
    vec![
        of(
            0,
            &learning::GetResourceRequest {
                key: Some(key()),
                min_revision: 3,
            },
        ),
        of(
            1,
            &learning::ListResourcesRequest {
                namespace: namespace(),
                kinds: vec![1, 3],
                key_prefix: "Set Up".into(),
                user_id: "jane".into(),
                min_revision: 3,
                page_size: 10,
                page_token: String::new(),
            },
        ),
        of(
            2,
            &learning::ResolveRequest {
                namespace: namespace(),
                kind: 1,
                phrase: "Set up a CSA".into(),
                user_id: "jane".into(),
                backend_candidates: vec![learning::BackendCandidate {
                    value: "create_isda".into(),
                    score: 0.7,
                }],
                min_revision: 1,
            },
        ),
        of(
            3,
            &learning::PutResourceRequest {
                key: Some(key()),
                value: Some(value()),
                etag: "7".into(),
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            4,
            &learning::DeleteResourceRequest {
                key: Some(key()),
                etag: "7".into(),
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            5,
            &learning::RevertRevisionRequest {
                namespace: namespace(),
                revision: 9,
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            6,
            &learning::ListRevisionsRequest {
                namespace: namespace(),
                kind: 1,
                key: "Set up a CSA".into(),
                operation_id: ID.into(),
                page_size: 10,
                page_token: String::new(),
            },
        ),
        of(
            7,
            &learning::ListCandidatesRequest {
                namespace: namespace(),
                kinds: vec![1, 2],
                statuses: vec![1, 2, 6],
                key: "Set up a CSA".into(),
                page_size: 10,
                page_token: String::new(),
                user_id: String::new(),
            },
        ),
        of(8, &approve),
        of(
            9,
            &learning::BatchApproveCandidatesRequest {
                requests: vec![approve.clone(), approve],
            },
        ),
        of(10, &reject),
        of(
            11,
            &learning::IngestRequest {
                events: ingested(),
                ..Default::default()
            },
        ),
        of(
            12,
            &learning::GetPolicyRequest {
                namespace: namespace(),
                kind: 3,
            },
        ),
        of(
            13,
            &learning::UpdatePolicyRequest {
                policy: Some(policy.clone()),
                update_mask: Some(prost_types::FieldMask { paths }),
                reason: "because".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            13,
            &learning::UpdatePolicyRequest {
                policy: Some(policy),
                ..Default::default()
            },
        ),
        of(
            14,
            &learning::SubscribeRequest {
                node: Some(learning::NodeInfo {
                    id: "search-1".into(),
                    version: "2.1".into(),
                    zone: "a".into(),
                    labels: [("rack".to_owned(), "7".to_owned())].into(),
                }),
                namespaces: vec![namespace(), "another".into()],
                kinds: vec![1, 3],
                include_user_scoped: true,
                cursor: Some(cursor.clone()),
                bookmark_interval: Some(minutes(1)),
                max_batch_bytes: 100_000,
            },
        ),
        of(
            15,
            &learning::ReportStatusRequest {
                node_id: "search-1".into(),
                applied: Some(cursor),
                rejected: vec![learning::RejectedResource {
                    key: Some(key()),
                    revision: 8,
                    error: "unknown kind".into(),
                }],
                rejected_count: 1,
                delays: Some(learning::DelayHistogram {
                    bounds_ms: vec![1, 10, 100],
                    counts: vec![5, 4, 3, 2],
                    sum_ms: 99,
                }),
                problem: "DIGEST_MISMATCH".into(),
                effect_delays: Some(learning::DelayHistogram {
                    bounds_ms: vec![100],
                    counts: vec![1, 0],
                    sum_ms: 7,
                }),
                effect_traces: vec![learning::EffectTrace {
                    delay_ms: 7,
                    trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".into(),
                }],
            },
        ),
        of(
            16,
            &learning::ListNodesRequest {
                page_size: 10,
                page_token: String::new(),
                seen_within: Some(minutes(60)),
            },
        ),
        of(
            17,
            &learning::BatchRejectCandidatesRequest {
                requests: vec![reject],
            },
        ),
        of(
            18,
            &learning::GetCandidateRequest {
                namespace: namespace(),
                candidate_id: ID.into(),
            },
        ),
        of(
            19,
            &learning::GetStandingsRequest {
                namespace: namespace(),
                feedback_ids: vec![ID.into(), ID.into()],
                installation_id: ID.into(),
            },
        ),
        of(
            20,
            &learning::UpdateNamespacePolicyRequest {
                policy: Some(learning::NamespacePolicy {
                    namespace: namespace(),
                    combining: 2,
                    min_claims: 9,
                    rejected_permille: 250,
                    ..Default::default()
                }),
                ..Default::default()
            },
        ),
    ]
    .into_iter()
    .chain(evidence())
    .chain(outputs())
    .chain(profiles())
    .collect()
}

/// Valid requests to the profile service.
fn profiles() -> Vec<Vec<u8>> {
    let user = || "jane".to_owned();
    vec![
        of(
            29,
            &learning::UpdateProfileRequest {
                profile: Some(learning::Profile {
                    namespace: namespace(),
                    user_id: user(),
                    experience_years: Some(7),
                    specialties: vec!["Search".into()],
                    known_technologies: vec!["Ｒｕｓｔ".into(), "rust".into()],
                    learning_goals: vec!["盤面".into()],
                    etag: "12".into(),
                    revision: 0,
                }),
                update_mask: Some(prost_types::FieldMask {
                    paths: vec!["known_technologies".into(), "experience_years".into()],
                }),
                reason: "as of today".into(),
            },
        ),
        of(
            30,
            &learning::RecordActivityRequest {
                namespace: namespace(),
                user_id: user(),
                activities: vec![learning::Activity {
                    source_type: "GITHUB".into(),
                    source_id: "commit-7".into(),
                    occurred_at: Some(at(1_700_000_000)),
                    summary: "asked a@b.cd".into(),
                    technologies: vec!["Rust".into()],
                    topics: vec!["search".into()],
                    goals: vec!["Kafka".into()],
                    experience_years: Some(7),
                }],
            },
        ),
        of(
            31,
            &learning::GenerateSuggestionsRequest {
                namespace: namespace(),
                user_id: user(),
                since: Some(at(1_700_000_000)),
                include_experience: true,
            },
        ),
        of(
            32,
            &learning::ListSuggestionsRequest {
                namespace: namespace(),
                user_id: user(),
                statuses: vec![2, 3],
                page_size: 20,
                page_token: String::new(),
            },
        ),
        of(
            33,
            &learning::RejectSuggestionRequest {
                namespace: namespace(),
                user_id: user(),
                candidate_id: ID.into(),
                reason: "not me".into(),
                etag: "3".into(),
            },
        ),
    ]
}

/// Valid requests to the evidence service.
fn evidence() -> Vec<Vec<u8>> {
    let task = || "t-17".to_owned();
    let node = |node| Some(learning::NodeRef { node: Some(node) });
    vec![
        of(
            20,
            &learning::UpsertEvidenceRequest {
                namespace: namespace(),
                pages: vec![learning::EvidencePage {
                    page_id: "p1".into(),
                    url: "https://blog.example.org/a?b#c".into(),
                    title: "A page".into(),
                    doi: "10.1000/X".into(),
                    arxiv_id: "2101.00001v2".into(),
                    ..Default::default()
                }],
                fragments: vec![learning::EvidenceFragment {
                    fragment_id: "f1".into(),
                    page_id: "p1".into(),
                    text: "What it says.".into(),
                }],
                claims: vec![learning::EvidenceClaim {
                    claim_id: "c1".into(),
                    task_id: task(),
                    text: "The claim.".into(),
                    page_id: "p1".into(),
                    adoption: 1,
                    dangerous_patterns: vec!["prompt injection".into()],
                }],
                edges: vec![learning::EvidenceEdge {
                    edge_id: "e1".into(),
                    relation: 1,
                    source: node(learning::node_ref::Node::FragmentId("f1".into())),
                    target: node(learning::node_ref::Node::ClaimId("c1".into())),
                    task_id: task(),
                    nli_label: 3,
                    nli_confidence: Some(0.9),
                }],
            },
        ),
        of(
            21,
            &learning::ListClaimsRequest {
                namespace: namespace(),
                task_id: task(),
                status: 2,
                adoption: 1,
                page_size: 10,
                page_token: String::new(),
            },
        ),
        of(
            22,
            &learning::ListEdgesRequest {
                namespace: namespace(),
                claim_id: "c1".into(),
                relations: vec![1, 2],
                levels: vec![3],
                reviewed: Some(true),
                corrected: Some(false),
                task_id: task(),
                page_size: 10,
                page_token: String::new(),
                edge_id: "e1".into(),
            },
        ),
        of(
            23,
            &learning::ListEvidenceEventsRequest {
                namespace: namespace(),
                target: "*.Spam.Example.".into(),
                kind: 5,
                task_id: task(),
                caller: "backend".into(),
                from: Some(at(1)),
                to: Some(at(2)),
                page_size: 10,
                page_token: String::new(),
            },
        ),
        of(
            24,
            &learning::GetReviewStatsRequest {
                namespace: namespace(),
                task_id: task(),
                predicted_label: 1,
                from: Some(at(1)),
                to: Some(at(2)),
            },
        ),
        of(
            25,
            &learning::ExportCorrectionsRequest {
                namespace: namespace(),
                task_id: task(),
                correct_labels: vec![1, 3],
                from: Some(at(1)),
                to: Some(at(2)),
                test_percent: Some(30),
            },
        ),
        of(
            26,
            &learning::GetClaimRequest {
                namespace: namespace(),
                claim_id: "c1".into(),
            },
        ),
        of(
            27,
            &learning::ExportMaterialsRequest {
                namespace: namespace(),
                task_id: task(),
            },
        ),
    ]
}

/// Requests about prompts.
fn outputs() -> Vec<Vec<u8>> {
    let target = || "SUMMARIZE_DAILY".to_owned();
    vec![
        of(
            29,
            &learning::RenderPromptRequest {
                namespace: namespace(),
                target: target(),
                label: "staging".into(),
                variables: [("day".to_owned(), "Monday".to_owned())].into(),
                user_id: "ana".into(),
                language: 2,
                min_revision: 7,
            },
        ),
        of(
            30,
            &learning::GetOutputStatsRequest {
                namespace: namespace(),
                target: target(),
            },
        ),
        of(
            31,
            &learning::ListPromptVersionsRequest {
                namespace: namespace(),
                target: target(),
                page_size: 10,
                page_token: String::new(),
                only_redacted: false,
            },
        ),
        of(
            32,
            &learning::PreviewImprovementRequest {
                namespace: namespace(),
                candidate_id: ID.into(),
                inputs: 3,
            },
        ),
        of(
            33,
            &learning::GenerateImprovementRequest {
                namespace: namespace(),
                target: target(),
                label: String::new(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            34,
            &learning::UsePromptVersionRequest {
                namespace: namespace(),
                target: target(),
                label: "staging".into(),
                version: 2,
                reason: "better".into(),
                on_behalf_of: "ana".into(),
            },
        ),
        of(
            35,
            &learning::ExportExamplesRequest {
                namespace: namespace(),
                target: target(),
                format: 2,
                label: String::new(),
            },
        ),
    ]
}

pub(super) fn imports() -> Vec<Vec<u8>> {
    let header = |mode| {
        import_resources_request::Message::Header(learning::ImportHeader {
            namespace: namespace(),
            mode,
            import_as: 1,
            reason: "at first".into(),
            on_behalf_of: "ana".into(),
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
