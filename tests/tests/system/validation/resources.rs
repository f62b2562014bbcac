//! Bad requests about resources.

use emend_proto::{
    common::v1::{ResourceKey, ResourceKind, ResourceValue},
    learning::v1::{
        BackendCandidate, DeleteResourceRequest, GetResourceRequest, ImportHeader, ImportResourcesRequest,
        ImportRow, ImportRows, ListResourcesRequest, ListRevisionsRequest, PutResourceRequest,
        ResolveRequest, RevertRevisionRequest, import_resources_request::Message,
    },
};
use emend_tests::harness::{
    NAMESPACE, alias, phrase,
    says::{alias_key, entity_value, forbidden_value, phrase_key, prohibition_key, verb_value},
};

use super::{NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        get(),
        list(),
        put(),
        delete(),
        import(),
        revisions(),
        revert(),
        resolve(),
    ]
}

fn bad_key() -> ResourceKey {
    ResourceKey {
        namespace: "Not OK".into(),
        kind: UNKNOWN,
        key: long(513),
        qualifier: String::new(),
        user_id: long(129),
    }
}

fn get() -> Rpc {
    let by = |key: ResourceKey| GetResourceRequest {
        key: Some(key),
        min_revision: 0,
    };
    Rpc::of("/emend.learning.v1.ResourceService/GetResource")
        .case(
            "empty",
            &GetResourceRequest::default(),
            &["key.namespace", "key.kind", "key.key"],
        )
        .case(
            "everything at once",
            &GetResourceRequest {
                key: Some(bad_key()),
                min_revision: -1,
            },
            &[
                "key.namespace",
                "key.kind",
                "key.key",
                "key.user_id",
                "min_revision",
            ],
        )
        .case(
            "U+0000 in every text",
            &by(ResourceKey {
                namespace: NUL.into(),
                kind: ResourceKind::Prohibition.into(),
                key: NUL.into(),
                qualifier: NUL.into(),
                user_id: NUL.into(),
            }),
            &["key.namespace", "key.key", "key.qualifier", "key.user_id"],
        )
        .case(
            "a qualifier where there is none",
            &by(ResourceKey {
                qualifier: "x".into(),
                ..alias_key("jd")
            }),
            &["key.qualifier"],
        )
        .case(
            "a prohibition of nothing",
            &by(prohibition_key("close it", "")),
            &["key.qualifier"],
        )
}

fn list() -> Rpc {
    Rpc::of("/emend.learning.v1.ResourceService/ListResources")
        .case("empty", &ListResourcesRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListResourcesRequest {
                namespace: "Not OK".into(),
                kinds: vec![1, UNKNOWN],
                key_prefix: long(513),
                user_id: long(129),
                min_revision: -1,
                page_size: 1_001,
                page_token: "not a token".into(),
            },
            &[
                "namespace",
                "kinds[1]",
                "key_prefix",
                "user_id",
                "min_revision",
                "page_size",
                "page_token",
            ],
        )
        .case(
            "a negative page and U+0000",
            &ListResourcesRequest {
                namespace: NAMESPACE.into(),
                key_prefix: NUL.into(),
                user_id: NUL.into(),
                page_size: -1,
                page_token: NUL.into(),
                ..ListResourcesRequest::default()
            },
            &["key_prefix", "user_id", "page_size", "page_token"],
        )
}

fn put() -> Rpc {
    let of = |key: ResourceKey, value: ResourceValue| PutResourceRequest {
        key: Some(key),
        value: Some(value),
        ..PutResourceRequest::default()
    };
    Rpc::of("/emend.learning.v1.ResourceService/PutResource")
        .case(
            "empty",
            &PutResourceRequest::default(),
            &["key.namespace", "key.kind", "key.key", "value.value"],
        )
        .case(
            "everything at once",
            &PutResourceRequest {
                key: Some(bad_key()),
                value: Some(ResourceValue {
                    display: long(513),
                    ..verb_value("")
                }),
                etag: long(65),
                reason: long(2_001),
                on_behalf_of: long(129),
            },
            &[
                "key.namespace",
                "key.kind",
                "key.key",
                "key.user_id",
                "value.display",
                "value.invocation_phrase.verb",
                "etag",
                "reason",
                "on_behalf_of",
            ],
        )
        .case(
            "U+0000 in every text",
            &PutResourceRequest {
                key: Some(alias_key("jd")),
                value: Some(ResourceValue {
                    display: NUL.into(),
                    ..entity_value(NUL)
                }),
                etag: NUL.into(),
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
            },
            &[
                "value.display",
                "value.entity_alias.entity_id",
                "etag",
                "reason",
                "on_behalf_of",
            ],
        )
        .case(
            "no value",
            &of(alias_key("jd"), ResourceValue::default()),
            &["value.value"],
        )
        .case(
            "nothing to display but a bad key",
            &PutResourceRequest {
                key: Some(bad_key()),
                ..PutResourceRequest::default()
            },
            &[
                "key.namespace",
                "key.kind",
                "key.key",
                "key.user_id",
                "value.display",
                "value.value",
            ],
        )
        .case(
            "a value of another kind",
            &of(phrase_key("jd"), entity_value("x")),
            &["value.value"],
        )
        .case(
            "another choice than the qualifier",
            &of(prohibition_key("close it", "one"), forbidden_value("two")),
            &["value.prohibition.forbidden_choice"],
        )
}

fn delete() -> Rpc {
    Rpc::of("/emend.learning.v1.ResourceService/DeleteResource")
        .case(
            "empty",
            &DeleteResourceRequest::default(),
            &["key.namespace", "key.kind", "key.key"],
        )
        .case(
            "everything at once",
            &DeleteResourceRequest {
                key: Some(bad_key()),
                etag: long(65),
                reason: long(2_001),
                on_behalf_of: long(129),
            },
            &[
                "key.namespace",
                "key.kind",
                "key.key",
                "key.user_id",
                "etag",
                "reason",
                "on_behalf_of",
            ],
        )
        .case(
            "U+0000 in every text",
            &DeleteResourceRequest {
                key: Some(alias_key("jd")),
                etag: NUL.into(),
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
            },
            &["etag", "reason", "on_behalf_of"],
        )
}

fn import() -> Rpc {
    let message = |message: Message| ImportResourcesRequest {
        message: Some(message),
    };
    let header = message(Message::Header(ImportHeader {
        namespace: NAMESPACE.into(),
        ..ImportHeader::default()
    }));
    let rows = |rows: Vec<ImportRow>| message(Message::Rows(ImportRows { rows }));
    let row = |line: i64| ImportRow {
        line,
        correction: Some(alias("jd", "person-1")),
        user_id: String::new(),
    };
    let bad_row = ImportRow {
        line: 0,
        correction: Some(phrase(" ", NUL)),
        user_id: long(129),
    };
    // However many rows are bad, the refusal is small enough to travel: it names twenty fields and the rows.
    let mut most = ["rows[line 0].line", "rows[line 0].correction"].repeat(10);
    most.push("rows");
    let nothing = ImportResourcesRequest { message: None };
    let none: [&ImportResourcesRequest; 0] = [];
    Rpc::of("/emend.learning.v1.ResourceService/ImportResources")
        .stream("no header", &none, &["header"])
        .stream("neither header nor rows", &[&nothing], &["header"])
        .stream("rows before the header", &[&rows(vec![row(1)])], &["header"])
        .stream(
            "everything at once",
            &[&message(Message::Header(ImportHeader {
                namespace: "Not OK".into(),
                mode: UNKNOWN,
                import_as: UNKNOWN,
                reason: long(2_001),
                on_behalf_of: long(129),
                ..ImportHeader::default()
            }))],
            &[
                "header.namespace",
                "header.mode",
                "header.import_as",
                "header.reason",
                "header.on_behalf_of",
            ],
        )
        .stream(
            "U+0000 in every text",
            &[&message(Message::Header(ImportHeader {
                namespace: NUL.into(),
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
                ..ImportHeader::default()
            }))],
            &["header.namespace", "header.reason", "header.on_behalf_of"],
        )
        .stream("a second header", &[&header, &header], &["header"])
        .stream(
            "no rows in a message of rows",
            &[&header, &rows(vec![])],
            &["rows.rows"],
        )
        .stream(
            "too many rows in a message",
            &[&header, &rows((1..=1_001).map(row).collect())],
            &["rows.rows"],
        )
        .stream(
            "a bad row",
            &[&header, &rows(vec![bad_row])],
            &[
                "rows[line 0].line",
                "rows[line 0].correction.phrase_mapping.phrase",
                "rows[line 0].correction.phrase_mapping.verb",
                "rows[line 0].user_id",
            ],
        )
        .stream(
            "a thousand bad rows",
            &[&header, &rows(vec![ImportRow::default(); 1_000])],
            &most,
        )
}

fn revisions() -> Rpc {
    Rpc::of("/emend.learning.v1.ResourceService/ListRevisions")
        .case("empty", &ListRevisionsRequest::default(), &["namespace"])
        .case(
            "everything at once",
            &ListRevisionsRequest {
                namespace: "Not OK".into(),
                kind: UNKNOWN,
                key: long(513),
                operation_id: "x".into(),
                page_size: 501,
                page_token: "not a token".into(),
                revision: -1,
            },
            &[
                "namespace",
                "kind",
                "key",
                "operation_id",
                "page_size",
                "page_token",
                "revision",
            ],
        )
        .case(
            "a negative page and U+0000",
            &ListRevisionsRequest {
                namespace: NAMESPACE.into(),
                key: NUL.into(),
                operation_id: NUL.into(),
                page_size: -1,
                page_token: NUL.into(),
                ..ListRevisionsRequest::default()
            },
            &["key", "operation_id", "page_size", "page_token"],
        )
        .case(
            "a phrase of nothing visible and a token of no list",
            &ListRevisionsRequest {
                namespace: NAMESPACE.into(),
                kind: ResourceKind::EntityAlias.into(),
                key: "\u{200B}".into(),
                page_token: "AAAA".into(),
                ..ListRevisionsRequest::default()
            },
            &["key", "page_token"],
        )
}

fn revert() -> Rpc {
    Rpc::of("/emend.learning.v1.ResourceService/RevertRevision")
        .case(
            "empty",
            &RevertRevisionRequest::default(),
            &["namespace", "revision", "reason"],
        )
        .case(
            "everything at once",
            &RevertRevisionRequest {
                namespace: "Not OK".into(),
                revision: -1,
                reason: long(2_001),
                on_behalf_of: long(129),
                operation_id: "no id".into(),
                preview: true,
            },
            &["namespace", "operation_id", "revision", "reason", "on_behalf_of"],
        )
        .case(
            "U+0000 in every text",
            &RevertRevisionRequest {
                namespace: NUL.into(),
                revision: 0,
                reason: NUL.into(),
                on_behalf_of: NUL.into(),
                operation_id: NUL.into(),
                preview: false,
            },
            &["namespace", "operation_id", "reason", "on_behalf_of"],
        )
}

fn resolve() -> Rpc {
    let candidate = |value: &str, score: f64| BackendCandidate {
        value: value.into(),
        score,
    };
    let good = ResolveRequest {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::EntityAlias.into(),
        phrase: "jd".into(),
        ..ResolveRequest::default()
    };
    Rpc::of("/emend.learning.v1.ResourceService/Resolve")
        .case(
            "empty",
            &ResolveRequest::default(),
            &["namespace", "kind", "phrase"],
        )
        .case(
            "everything at once",
            &ResolveRequest {
                namespace: "Not OK".into(),
                kind: UNKNOWN,
                phrase: long(513),
                user_id: long(129),
                backend_candidates: vec![
                    candidate("", 0.5),
                    candidate("x", 1.5),
                    candidate(&long(257), f64::NAN),
                    candidate("y", -0.1),
                ],
                min_revision: -1,
                near: false,
            },
            &[
                "namespace",
                "kind",
                "phrase",
                "user_id",
                "backend_candidates[0].value",
                "backend_candidates[1].score",
                "backend_candidates[2].value",
                "backend_candidates[2].score",
                "backend_candidates[3].score",
                "min_revision",
            ],
        )
        .case(
            "U+0000 in every text",
            &ResolveRequest {
                namespace: NUL.into(),
                phrase: NUL.into(),
                user_id: NUL.into(),
                backend_candidates: vec![candidate(NUL, 0.5)],
                ..good.clone()
            },
            &["namespace", "phrase", "user_id", "backend_candidates[0].value"],
        )
        .case(
            "too many candidates",
            &ResolveRequest {
                backend_candidates: vec![candidate("x", 0.5); 101],
                ..good.clone()
            },
            &["backend_candidates"],
        )
        .case(
            "what is prohibited is no answer",
            &ResolveRequest {
                kind: ResourceKind::Prohibition.into(),
                ..good
            },
            &["kind"],
        )
}
