//! Bad requests to the update stream, to ingest and to what has become of it.

use emend_proto::{
    common::v1::ResourceKey,
    learning::v1::{
        Cursor, DelayHistogram, EffectTrace, Event, GetStandingsRequest, IngestRequest, ListNodesRequest,
        NodeInfo, RejectedResource, ReportStatusRequest, SubscribeRequest,
    },
};
use emend_tests::harness::{NAMESPACE, says::alias_key};
use prost_types::Duration;

use super::{BAD_IDS, NOBODY, NUL, Rpc, UNKNOWN, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![ingest(), standings(), subscribe(), report(), nodes()]
}

fn ingest() -> Rpc {
    Rpc::of("/emend.learning.v1.IngestService/Ingest")
        .case("an empty batch", &IngestRequest::default(), &["events"])
        .case(
            "too large a batch",
            &IngestRequest {
                events: vec![Event::default(); 257],
                ..Default::default()
            },
            &["events"],
        )
}

fn standings() -> Rpc {
    let bad = |namespace: &str, feedback_ids: Vec<String>, installation_id: &str| GetStandingsRequest {
        namespace: namespace.into(),
        feedback_ids,
        installation_id: installation_id.into(),
    };
    let mut rpc = Rpc::of("/emend.learning.v1.IngestService/GetStandings")
        .case(
            "empty",
            &GetStandingsRequest::default(),
            &["namespace", "feedback_ids"],
        )
        .case(
            "everything at once",
            &bad("Not OK", vec![NOBODY.into(), "x".into()], "x"),
            &["namespace", "feedback_ids[1]", "installation_id"],
        )
        .case(
            "too many feedbacks",
            &bad(NAMESPACE, vec![NOBODY.into(); 1_001], ""),
            &["feedback_ids"],
        );
    for id in BAD_IDS {
        rpc = rpc.case(
            format!("the id {id:?}"),
            &bad(NAMESPACE, vec![id.into()], ""),
            &["feedback_ids[0]"],
        );
    }
    rpc
}

fn subscribe() -> Rpc {
    let good = SubscribeRequest {
        node: Some(NodeInfo {
            id: "n".into(),
            ..NodeInfo::default()
        }),
        ..SubscribeRequest::default()
    };
    let mut rpc = Rpc::of("/emend.learning.v1.SubscriptionService/Subscribe")
        .case("empty", &SubscribeRequest::default(), &["node.id"])
        .case(
            "everything at once",
            &SubscribeRequest {
                node: Some(NodeInfo {
                    id: "has space".into(),
                    version: long(65),
                    zone: long(65),
                    labels: (0..17).map(|n| (n.to_string(), String::new())).collect(),
                    transient: true,
                }),
                namespaces: vec!["fund-admin".into(), "Not OK".into()],
                kinds: vec![UNKNOWN, 0],
                cursor: Some(Cursor {
                    epoch: "x".into(),
                    revision: -1,
                    filter_hash: 0,
                }),
                bookmark_interval: Some(Duration {
                    seconds: 0,
                    nanos: 999_999_999,
                }),
                max_batch_bytes: 65_535,
                ..SubscribeRequest::default()
            },
            &[
                "node.id",
                "node.version",
                "node.zone",
                "node.labels",
                "namespaces[1]",
                "kinds[0]",
                "kinds[1]",
                "cursor.epoch",
                "cursor.revision",
                "bookmark_interval",
                "max_batch_bytes",
            ],
        )
        .case(
            "U+0000 in every text",
            &SubscribeRequest {
                node: Some(NodeInfo {
                    id: NUL.into(),
                    version: NUL.into(),
                    zone: NUL.into(),
                    labels: [("k".to_owned(), NUL.to_owned())].into(),
                    transient: false,
                }),
                namespaces: vec![NUL.into()],
                cursor: Some(Cursor {
                    epoch: NUL.into(),
                    ..Cursor::default()
                }),
                ..SubscribeRequest::default()
            },
            &[
                "node.id",
                "node.version",
                "node.zone",
                "node.labels[\"k\"]",
                "namespaces[0]",
                "cursor.epoch",
            ],
        )
        .case(
            "too many of everything",
            &SubscribeRequest {
                namespaces: vec!["fund-admin".into(); 1_001],
                kinds: vec![1; 65],
                bookmark_interval: Some(Duration {
                    seconds: 3_601,
                    nanos: 0,
                }),
                max_batch_bytes: 3 * 1024 * 1024 + 1,
                ..good.clone()
            },
            &["namespaces", "kinds", "bookmark_interval", "max_batch_bytes"],
        );
    for id in ["", " ", "ä", "a/b"] {
        let request = SubscribeRequest {
            node: Some(NodeInfo {
                id: id.into(),
                ..NodeInfo::default()
            }),
            ..good.clone()
        };
        rpc = rpc.case(format!("node id {id:?}"), &request, &["node.id"]);
    }
    rpc
}

fn report() -> Rpc {
    let cursor = Cursor {
        epoch: NOBODY.into(),
        revision: 1,
        filter_hash: 0,
    };
    let good = ReportStatusRequest {
        node_id: "n".into(),
        applied: Some(cursor),
        ..ReportStatusRequest::default()
    };
    let rejected = |key: ResourceKey| RejectedResource {
        key: Some(key),
        revision: 1,
        error: "unknown kind".into(),
    };
    Rpc::of("/emend.learning.v1.SubscriptionService/ReportStatus")
        .case("empty", &ReportStatusRequest::default(), &["node_id"])
        .case(
            "everything at once",
            &ReportStatusRequest {
                node_id: "has space".into(),
                applied: Some(Cursor {
                    epoch: "x".into(),
                    revision: -1,
                    filter_hash: 0,
                }),
                rejected: vec![RejectedResource {
                    key: None,
                    revision: -1,
                    error: long(513),
                }],
                rejected_count: -1,
                delays: Some(DelayHistogram {
                    bounds_ms: vec![2, 1],
                    counts: vec![1, -1],
                    sum_ms: -1,
                }),
                problem: "not upper case".into(),
                effect_delays: Some(DelayHistogram {
                    bounds_ms: vec![-1],
                    counts: vec![1],
                    sum_ms: -1,
                }),
                effect_traces: vec![EffectTrace {
                    delay_ms: -1,
                    trace_id: "no trace".into(),
                }],
            },
            &[
                "node_id",
                "applied.epoch",
                "applied.revision",
                "rejected[0].key.namespace",
                "rejected[0].key.kind",
                "rejected[0].key.key",
                "rejected[0].revision",
                "rejected[0].error",
                "rejected_count",
                "delays.bounds_ms",
                "delays.counts",
                "delays.sum_ms",
                "effect_delays.bounds_ms",
                "effect_delays.counts",
                "effect_delays.sum_ms",
                "effect_traces[0].delay_ms",
                "effect_traces[0].trace_id",
                "problem",
            ],
        )
        .case(
            "too many of everything",
            &ReportStatusRequest {
                rejected: vec![rejected(alias_key("jd")); 101],
                rejected_count: 101,
                delays: Some(DelayHistogram {
                    bounds_ms: (1..=33).collect(),
                    counts: vec![0; 34],
                    sum_ms: 0,
                }),
                effect_traces: vec![EffectTrace::default(); 33],
                ..good
            },
            &["rejected", "delays.bounds_ms", "effect_traces"],
        )
}

fn nodes() -> Rpc {
    Rpc::of("/emend.learning.v1.SubscriptionService/ListNodes")
        .case(
            "everything at once",
            &ListNodesRequest {
                page_size: 1_001,
                page_token: "not a token".into(),
                seen_within: Some(Duration {
                    seconds: -1,
                    nanos: 0,
                }),
                state: UNKNOWN,
                zone: long(65),
                labels: vec!["=gold".into(), format!("tier={}", long(129))],
            },
            &[
                "page_size",
                "page_token",
                "seen_within",
                "state",
                "zone",
                "labels[0]",
                "labels[1]",
            ],
        )
        .case(
            "a negative page",
            &ListNodesRequest {
                page_size: -1,
                page_token: NUL.into(),
                ..ListNodesRequest::default()
            },
            &["page_size", "page_token"],
        )
}
