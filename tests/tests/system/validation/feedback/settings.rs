//! Bad settings.

use emend_proto::feedback::v1::{
    GetSettingsRequest, RatedTarget, RatedValue, Settings, UpdateSettingsRequest,
};
use emend_tests::harness::NAMESPACE;
use prost_types::{Duration, FieldMask};

use crate::validation::{BAD_NAMESPACES, Rpc, UNKNOWN, long};

pub(super) fn get_settings() -> Rpc {
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

pub(super) fn update_settings() -> Rpc {
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
