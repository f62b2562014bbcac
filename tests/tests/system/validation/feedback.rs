//! Bad requests to feedback-svc.

use emend_proto::{
    common::v1::{
        ClaimReject, ClaimRestore, Correction, DomainBlock, EdgeCorrect, EdgeRelation, EntityCorrection,
        PhraseMapping, Prohibition, Reporter, Scope, SearchRating, SearchTuningValue, TuningCorrection,
        VerbCorrection, correction::Correction as Form,
    },
    feedback::v1::{
        BatchSubmitFeedbackRequest, ExportFeedbackRequest, GetFeedbackRequest, GetSettingsRequest,
        ListDeadLettersRequest, ListFeedbackRequest, RatedTarget, RatedValue, RedactFeedbackRequest,
        RedactReporterRequest, RedriveDeadLettersRequest, RetractFeedbackRequest, SearchRatingFilter,
        Settings, SubmitFeedbackRequest, UpdateFeedbackLabelsRequest, UpdateSettingsRequest,
    },
};
use emend_tests::harness::{NAMESPACE, says, verb};
use prost_types::{Duration, FieldMask, Timestamp};

use super::{BAD_IDS, BAD_NAMESPACES, NOBODY, NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        submit(),
        batch(),
        get(),
        list(),
        retract(),
        redact_feedback(),
        redact_reporter(),
        update_labels(),
        export(),
        get_settings(),
        update_settings(),
        dead_letters(),
        redrive(),
    ]
}

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

fn submit() -> Rpc {
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
            ..EdgeCorrect::default()
        }));
        rpc = rpc.case(
            format!("an edge's relation {relation}"),
            &request,
            &["correction.edge_correct.correct_relation"],
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

fn batch() -> Rpc {
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

fn get() -> Rpc {
    let mut rpc = Rpc::of("/emend.feedback.v1.FeedbackService/GetFeedback").case(
        "empty",
        &GetFeedbackRequest::default(),
        &["namespace", "feedback_id"],
    );
    for id in BAD_IDS {
        let request = GetFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: id.into(),
        };
        rpc = rpc.case(format!("id {id:?}"), &request, &["feedback_id"]);
    }
    rpc
}

fn list() -> Rpc {
    let good = ListFeedbackRequest {
        namespace: NAMESPACE.into(),
        ..ListFeedbackRequest::default()
    };
    let at = |seconds: i64| Some(Timestamp { seconds, nanos: 0 });
    let received = |from: i64, before: i64| ListFeedbackRequest {
        received_from: at(from),
        received_before: at(before),
        ..good.clone()
    };
    Rpc::of("/emend.feedback.v1.FeedbackService/ListFeedback")
        .case("empty", &ListFeedbackRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListFeedbackRequest {
                namespace: "Not OK".into(),
                page_size: 501,
                page_token: "not a token".into(),
                reporter_id: long(129),
                kind: UNKNOWN,
                delivery_state: UNKNOWN,
                received_from: Some(Timestamp {
                    seconds: 0,
                    nanos: -1,
                }),
                received_before: Some(Timestamp {
                    seconds: i64::MAX,
                    nanos: 0,
                }),
                rating_target: long(513),
                rating_value: long(513),
                day: "2026-02-30".into(),
                time_zone: "Mars/Olympus".into(),
                search_ratings: None,
            },
            &[
                "namespace",
                "page_size",
                "page_token",
                "reporter_id",
                "kind",
                "delivery_state",
                "received_from",
                "received_before",
                "rating_target",
                "rating_value",
                "day",
                "time_zone",
            ],
        )
        .case(
            "a value of no target and a zone of no day",
            &ListFeedbackRequest {
                rating_value: "GOOD".into(),
                time_zone: "Asia/Tokyo".into(),
                ..good.clone()
            },
            &["rating_value", "time_zone"],
        )
        .case(
            "a negative page and U+0000",
            &ListFeedbackRequest {
                page_size: -1,
                page_token: NUL.into(),
                reporter_id: NUL.into(),
                ..good.clone()
            },
            &["page_size", "page_token", "reporter_id"],
        )
        .case(
            "ratings of search answers that are none",
            &ListFeedbackRequest {
                search_ratings: Some(SearchRatingFilter {
                    value: UNKNOWN,
                    query_type: NUL.into(),
                    tag: "Not fine".into(),
                    processed: None,
                }),
                ..good.clone()
            },
            &[
                "search_ratings.value",
                "search_ratings.query_type",
                "search_ratings.tag",
            ],
        )
        .case(
            "ratings of search answers that teach something",
            &ListFeedbackRequest {
                kind: 1,
                rating_target: "INTERPRET".into(),
                search_ratings: Some(SearchRatingFilter::default()),
                ..good.clone()
            },
            &["search_ratings"],
        )
        .case("a span of nothing", &received(7, 7), &["received_before"])
        .case(
            "a span that ends before it begins",
            &received(2, 1),
            &["received_before"],
        )
}

fn retract() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/RetractFeedback")
        .case(
            "empty",
            &RetractFeedbackRequest::default(),
            &["namespace", "feedback_id"],
        )
        .case(
            "everything at once",
            &RetractFeedbackRequest {
                namespace: "Not OK".into(),
                feedback_id: "x".into(),
                reason: long(2_001),
                wait: UNKNOWN,
            },
            &["namespace", "feedback_id", "reason", "wait"],
        )
        .case(
            "U+0000 in every text",
            &RetractFeedbackRequest {
                namespace: NUL.into(),
                feedback_id: NUL.into(),
                reason: NUL.into(),
                wait: 0,
            },
            &["namespace", "feedback_id", "reason"],
        )
}

fn update_labels() -> Rpc {
    let tags = |tags: &[&str]| tags.iter().map(ToString::to_string).collect();
    let good = UpdateFeedbackLabelsRequest {
        namespace: NAMESPACE.into(),
        feedback_id: NOBODY.into(),
        ..UpdateFeedbackLabelsRequest::default()
    };
    Rpc::of("/emend.feedback.v1.FeedbackService/UpdateFeedbackLabels")
        .case(
            "empty",
            &UpdateFeedbackLabelsRequest::default(),
            &["namespace", "feedback_id", "set_tags"],
        )
        .case(
            "tags that are none",
            &UpdateFeedbackLabelsRequest {
                set_tags: tags(&["fine", "Not fine", NUL]),
                clear_tags: vec!["a".repeat(33), String::new()],
                ..good.clone()
            },
            &["set_tags[1]", "set_tags[2]", "clear_tags[0]", "clear_tags[1]"],
        )
        .case(
            "too many tags, and one to set and to clear",
            &UpdateFeedbackLabelsRequest {
                set_tags: (0..17).map(|number| format!("t{number}")).collect(),
                clear_tags: tags(&["t3"]),
                ..good
            },
            &["set_tags", "clear_tags"],
        )
}

fn export() -> Rpc {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    Rpc::of("/emend.feedback.v1.QueryService/ExportFeedback")
        .case(
            "empty",
            &ExportFeedbackRequest::default(),
            &["namespace", "format"],
        )
        .case(
            "everything at once",
            &ExportFeedbackRequest {
                namespace: "Not OK".into(),
                search_ratings: Some(SearchRatingFilter {
                    value: UNKNOWN,
                    ..SearchRatingFilter::default()
                }),
                received_from: at(2),
                received_before: at(1),
                format: UNKNOWN,
                mark_processed: true,
            },
            &["namespace", "search_ratings.value", "received_before", "format"],
        )
}

fn redact_feedback() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/RedactFeedback")
        .case(
            "empty",
            &RedactFeedbackRequest::default(),
            &["namespace", "feedback_id"],
        )
        .case(
            "everything at once",
            &RedactFeedbackRequest {
                namespace: "Not OK".into(),
                feedback_id: "x".into(),
                wait: UNKNOWN,
            },
            &["namespace", "feedback_id", "wait"],
        )
}

fn redact_reporter() -> Rpc {
    let of = |reporter_id: &str| RedactReporterRequest {
        namespace: NAMESPACE.into(),
        reporter_id: reporter_id.into(),
    };
    Rpc::of("/emend.feedback.v1.FeedbackService/RedactReporter")
        .case(
            "empty",
            &RedactReporterRequest::default(),
            &["namespace", "reporter_id"],
        )
        .case("too long a reporter id", &of(&long(129)), &["reporter_id"])
        .case("U+0000", &of(NUL), &["reporter_id"])
        .case("a pseudonym", &of(&format!("erased:{NOBODY}")), &["reporter_id"])
}

fn get_settings() -> Rpc {
    let mut rpc = Rpc::of("/emend.feedback.v1.SettingsService/GetSettings").case(
        "empty",
        &GetSettingsRequest::default(),
        &["namespace"],
    );
    for namespace in BAD_NAMESPACES {
        let request = GetSettingsRequest {
            namespace: namespace.into(),
        };
        rpc = rpc.case(format!("namespace {namespace:?}"), &request, &["namespace"]);
    }
    rpc
}

fn update_settings() -> Rpc {
    let keeping = |seconds: i64, nanos: i32| UpdateSettingsRequest {
        settings: Some(Settings {
            namespace: NAMESPACE.into(),
            personal_retention: Some(Duration { seconds, nanos }),
            ..Settings::default()
        }),
        ..UpdateSettingsRequest::default()
    };
    let target = |(name, class): &(&str, i32)| RatedTarget {
        name: (*name).into(),
        values: vec![RatedValue {
            name: "RIGHT".into(),
            counts_as: *class,
        }],
        is_judgement: false,
    };
    let rating = |targets: &[(&str, i32)]| UpdateSettingsRequest {
        settings: Some(Settings {
            namespace: NAMESPACE.into(),
            rated_targets: targets.iter().map(target).collect(),
            ..Settings::default()
        }),
        ..UpdateSettingsRequest::default()
    };
    let many: Vec<String> = (0..51).map(|number| format!("T{number}")).collect();
    let retention = &["settings.personal_retention"];
    Rpc::of("/emend.feedback.v1.SettingsService/UpdateSettings")
        .case(
            "empty",
            &UpdateSettingsRequest::default(),
            &["settings.namespace"],
        )
        .case(
            "everything at once",
            &UpdateSettingsRequest {
                settings: Some(Settings {
                    namespace: "Not OK".into(),
                    personal_retention: Some(Duration { seconds: 0, nanos: 0 }),
                    etag: long(65),
                    rated_targets: vec![RatedTarget::default()],
                    query_retention: Some(Duration {
                        seconds: 90 * 86_400 + 1,
                        nanos: 0,
                    }),
                    max_queries: 999,
                    ..Settings::default()
                }),
                update_mask: Some(FieldMask {
                    paths: vec!["version".into()],
                }),
                on_behalf_of: long(129),
                reason: long(2_001),
            },
            &[
                "settings.namespace",
                "settings.personal_retention",
                "settings.etag",
                "settings.query_retention",
                "settings.max_queries",
                "settings.rated_targets[0].name",
                "settings.rated_targets[0].values",
                "update_mask",
                "on_behalf_of",
                "reason",
            ],
        )
        .case(
            "values without a class",
            &rating(&[("INTERPRET", 1), ("TRIAGE", 0), ("TRIAGE", UNKNOWN)]),
            &[
                "settings.rated_targets[1].values[0].counts_as",
                "settings.rated_targets[2].values[0].counts_as",
            ],
        )
        .case(
            "a target that every namespace has, and one twice",
            &rating(&[("INTERPRET", 1), ("TRIAGE", 2), ("TRIAGE", 3)]),
            &["settings.rated_targets[0].name", "settings.rated_targets[2].name"],
        )
        .case(
            "too many targets",
            &rating(&many.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>()),
            &["settings.rated_targets"],
        )
        .case("less than an hour", &keeping(3_599, 999_999_999), retention)
        .case("longer than 3,650 days", &keeping(3_650 * 86_400, 1), retention)
        .case("a negative time", &keeping(-3_600, 0), retention)
}

fn dead_letters() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/ListDeadLetters")
        .case(
            "everything at once",
            &ListDeadLettersRequest {
                namespace: "Not OK".into(),
                page_size: 501,
                page_token: "not a token".into(),
            },
            &["namespace", "page_size", "page_token"],
        )
        .case(
            "a negative page and a token of no list",
            &ListDeadLettersRequest {
                page_size: -1,
                page_token: "AAAA".into(),
                ..ListDeadLettersRequest::default()
            },
            &["page_size", "page_token"],
        )
}

fn redrive() -> Rpc {
    Rpc::of("/emend.feedback.v1.FeedbackService/RedriveDeadLetters")
        .case("empty", &RedriveDeadLettersRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &RedriveDeadLettersRequest {
                namespace: "Not OK".into(),
                event_ids: vec!["x".into(), String::new(), NOBODY.into(), NUL.into()],
            },
            &["namespace", "event_ids[0]", "event_ids[1]", "event_ids[3]"],
        )
        .case(
            "too many",
            &RedriveDeadLettersRequest {
                namespace: NAMESPACE.into(),
                event_ids: vec![NOBODY.into(); 501],
            },
            &["event_ids"],
        )
        .case(
            "too many, of any namespace",
            &RedriveDeadLettersRequest {
                event_ids: vec![NOBODY.into(); 501],
                ..RedriveDeadLettersRequest::default()
            },
            &["event_ids"],
        )
}
