//! Bad submissions.

use emend_proto::{
    common::v1::{
        ClaimReject, ClaimRestore, Correction, DomainBlock, EdgeCorrect, EdgeRelation, EntityCorrection,
        PhraseMapping, Prohibition, Reporter, Scope, SearchRating, SearchTuningValue, TuningCorrection,
        VerbCorrection, correction::Correction as Form,
    },
    feedback::v1::{BatchSubmitFeedbackRequest, SubmitFeedbackRequest},
};
use emend_tests::harness::{says, verb};

use crate::validation::{BAD_NAMESPACES, NUL, Rpc, UNKNOWN, long};

fn good() -> SubmitFeedbackRequest {
    says("jane", verb("set up a csa", "create_csa"))
}

fn correcting(form: Form) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        correction: Some(Correction {
            correction: Some(form),
        }),
        ..good()
    }
}

pub(super) fn submit() -> Rpc {
    let context = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    let mut rpc = Rpc::of("/emend.feedback.v1.FeedbackService/SubmitFeedback")
        .case(
            "empty",
            &SubmitFeedbackRequest::default(),
            &["namespace", "correction"],
        )
        .case(
            "everything at once",
            &SubmitFeedbackRequest {
                request_id: "has space".into(),
                namespace: "Not OK".into(),
                reporter: Some(Reporter {
                    id: long(129),
                    session_id: long(129),
                    client: long(129),
                    client_key: long(129),
                }),
                query_id: long(129),
                reason: long(2_001),
                context: [(String::new(), String::new()), ("k".to_owned(), long(1_025))].into(),
                scope: UNKNOWN,
                wait: -1,
                correction: Some(Correction {
                    correction: Some(Form::Verb(VerbCorrection {
                        original_input: long(513),
                        system_choice: long(257),
                        correct_choice: String::new(),
                    })),
                }),
            },
            &[
                "request_id",
                "namespace",
                "reporter.id",
                "reporter.session_id",
                "reporter.client",
                "reporter.client_key",
                "query_id",
                "reason",
                "context",
                "context[\"k\"]",
                "scope",
                "wait",
                "correction.verb.original_input",
                "correction.verb.system_choice",
                "correction.verb.correct_choice",
            ],
        )
        .case(
            "U+0000 in every text",
            &SubmitFeedbackRequest {
                request_id: NUL.into(),
                namespace: NUL.into(),
                reporter: Some(Reporter {
                    id: NUL.into(),
                    session_id: NUL.into(),
                    client: NUL.into(),
                    client_key: NUL.into(),
                }),
                query_id: NUL.into(),
                reason: NUL.into(),
                context: context("k", NUL),
                correction: Some(Correction {
                    correction: Some(Form::Entity(EntityCorrection {
                        original_input: NUL.into(),
                        system_choice: NUL.into(),
                        correct_choice: NUL.into(),
                    })),
                }),
                ..SubmitFeedbackRequest::default()
            },
            &[
                "request_id",
                "namespace",
                "reporter.id",
                "reporter.session_id",
                "reporter.client",
                "reporter.client_key",
                "query_id",
                "reason",
                "context[\"k\"]",
                "correction.entity.original_input",
                "correction.entity.system_choice",
                "correction.entity.correct_choice",
            ],
        )
        .case(
            "a correction of nothing",
            &SubmitFeedbackRequest {
                correction: Some(Correction { correction: None }),
                ..good()
            },
            &["correction"],
        )
        .case(
            "an empty mapping",
            &correcting(Form::PhraseMapping(PhraseMapping::default())),
            &[
                "correction.phrase_mapping.phrase",
                "correction.phrase_mapping.verb",
            ],
        )
        .case(
            "an empty prohibition",
            &correcting(Form::Prohibition(Prohibition::default())),
            &[
                "correction.prohibition.phrase",
                "correction.prohibition.forbidden_choice",
            ],
        )
        .case(
            "a prohibition with U+0000 and of too long a choice",
            &correcting(Form::Prohibition(Prohibition {
                phrase: NUL.into(),
                forbidden_choice: long(257),
            })),
            &[
                "correction.prohibition.phrase",
                "correction.prohibition.forbidden_choice",
            ],
        )
        .case(
            "an empty name",
            &correcting(Form::Entity(EntityCorrection::default())),
            &[
                "correction.entity.original_input",
                "correction.entity.correct_choice",
            ],
        )
        .case(
            "a phrase of nothing visible",
            &correcting(Form::Verb(VerbCorrection {
                original_input: "\u{200B}\u{AD} \u{3164}".into(),
                correct_choice: "create_csa".into(),
                ..VerbCorrection::default()
            })),
            &["correction.verb.original_input"],
        )
        .case(
            "nothing to correct",
            &correcting(Form::Verb(VerbCorrection {
                original_input: "set up a csa".into(),
                system_choice: "create_csa".into(),
                correct_choice: "create_csa".into(),
            })),
            &["correction.verb.correct_choice"],
        )
        .case(
            "nothing to correct about a name",
            &correcting(Form::Entity(EntityCorrection {
                original_input: "jd".into(),
                system_choice: "person-1".into(),
                correct_choice: "person-1".into(),
            })),
            &["correction.entity.correct_choice"],
        )
        .case(
            "a rejection with everything wrong",
            &correcting(Form::ClaimReject(ClaimReject {
                claim_id: long(257),
                reason_code: "spam".into(),
                task_id: long(257),
            })),
            &[
                "correction.claim_reject.claim_id",
                "correction.claim_reject.reason_code",
                "correction.claim_reject.task_id",
                "reason",
            ],
        )
        .case(
            "a restoration for one user, without a reason",
            &SubmitFeedbackRequest {
                scope: Scope::User.into(),
                ..correcting(Form::ClaimRestore(ClaimRestore {
                    claim_id: "c1".into(),
                    task_id: String::new(),
                }))
            },
            &["reason", "scope"],
        )
        .case(
            "an empty restoration with U+0000",
            &correcting(Form::ClaimRestore(ClaimRestore {
                claim_id: String::new(),
                task_id: NUL.into(),
            })),
            &[
                "correction.claim_restore.claim_id",
                "correction.claim_restore.task_id",
                "reason",
            ],
        )
        .case(
            "an empty correction of an edge",
            &correcting(Form::EdgeCorrect(EdgeCorrect::default())),
            &[
                "correction.edge_correct.edge_id",
                "correction.edge_correct.correct_relation",
            ],
        )
        .case(
            "an empty tuning",
            &correcting(Form::Tuning(TuningCorrection::default())),
            &["correction.tuning.tuning", "correction.tuning.query_type"],
        )
        .case(
            "a tuning with too many results and a name with a space",
            &correcting(Form::Tuning(TuningCorrection {
                query_type: "HYBRID".into(),
                tuning: Some(SearchTuningValue {
                    top_k: Some(101),
                    namespaces: vec!["a b".into()],
                    ..SearchTuningValue::default()
                }),
            })),
            &[
                "correction.tuning.tuning.top_k",
                "correction.tuning.tuning.namespaces[0]",
            ],
        )
        .case(
            "a tuning that is cleared",
            &correcting(Form::Tuning(TuningCorrection {
                query_type: "HYBRID".into(),
                tuning: Some(SearchTuningValue {
                    cleared: true,
                    ..SearchTuningValue::default()
                }),
            })),
            &["correction.tuning.tuning"],
        )
        .case(
            "a rating without query and value",
            &correcting(Form::SearchRating(SearchRating::default())),
            &["query_id", "correction.search_rating.value"],
        )
        .case(
            "a rating for one user",
            &SubmitFeedbackRequest {
                query_id: "q".into(),
                scope: Scope::User.into(),
                ..correcting(Form::SearchRating(SearchRating { value: 1 }))
            },
            &["scope"],
        )
        .case(
            "a rating with a reason of 301 characters as people see them",
            &SubmitFeedbackRequest {
                query_id: "q".into(),
                reason: "e\u{301}".repeat(301),
                ..correcting(Form::SearchRating(SearchRating { value: UNKNOWN }))
            },
            &["reason", "correction.search_rating.value"],
        )
        .case(
            "a rating with a reason of more than 4 KiB",
            &SubmitFeedbackRequest {
                query_id: "q".into(),
                reason: "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".repeat(300),
                ..correcting(Form::SearchRating(SearchRating { value: 1 }))
            },
            &["reason"],
        )
        .case(
            "a domain blocked in a task with a control character",
            &SubmitFeedbackRequest {
                reason: "seen it".into(),
                ..correcting(Form::DomainBlock(DomainBlock {
                    pattern: "spam.example".into(),
                    task_id: "\u{7}".into(),
                }))
            },
            &["correction.domain_block.task_id"],
        )
        .case(
            "a negative scope",
            &SubmitFeedbackRequest { scope: -1, ..good() },
            &["scope"],
        )
        .case(
            "one user's own without the user",
            &SubmitFeedbackRequest {
                scope: Scope::User.into(),
                reporter: None,
                ..good()
            },
            &["reporter.id"],
        )
        .case(
            "too much context",
            &SubmitFeedbackRequest {
                context: (0..33).map(|n| (n.to_string(), String::new())).collect(),
                ..good()
            },
            &["context"],
        )
        .case(
            "context without a key",
            &SubmitFeedbackRequest {
                context: context("", "value"),
                ..good()
            },
            &["context"],
        )
        .case(
            "context with too long a key",
            &SubmitFeedbackRequest {
                context: context(&long(65), "value"),
                ..good()
            },
            &["context"],
        )
        .case(
            "a stray control character",
            &SubmitFeedbackRequest {
                reporter: Some(Reporter {
                    client_key: "\u{7}".into(),
                    ..Reporter::default()
                }),
                reason: "rings \u{7}".into(),
                ..good()
            },
            &["reporter.client_key", "reason"],
        )
        .case(
            "too long a request id",
            &SubmitFeedbackRequest {
                request_id: long(65),
                ..good()
            },
            &["request_id"],
        );
    for relation in [EdgeRelation::Cites as i32, UNKNOWN] {
        let request = correcting(Form::EdgeCorrect(EdgeCorrect {
            edge_id: "e1".into(),
            correct_relation: relation,
            task_id: long(257),
        }));
        rpc = rpc.case(
            format!("an edge's relation {relation}"),
            &request,
            &[
                "correction.edge_correct.correct_relation",
                "correction.edge_correct.task_id",
            ],
        );
    }
    for namespace in BAD_NAMESPACES
        .into_iter()
        .map(str::to_owned)
        .chain([String::new(), long(64)])
    {
        let request = SubmitFeedbackRequest {
            namespace: namespace.clone(),
            ..good()
        };
        rpc = rpc.case(format!("namespace {namespace:?}"), &request, &["namespace"]);
    }
    rpc
}

pub(super) fn batch() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/BatchSubmitFeedback")
        .case("empty", &BatchSubmitFeedbackRequest::default(), &["requests"])
        .case(
            "too many, to wait for what is not known",
            &BatchSubmitFeedbackRequest {
                requests: vec![good(); 101],
                wait: UNKNOWN,
            },
            &["requests", "wait"],
        )
}
