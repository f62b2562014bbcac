//! Bad requests to the profile service.

use emend_proto::learning::v1::{
    AcceptSuggestionRequest, Activity, GenerateSuggestionsRequest, GetProfileRequest, Learning,
    ListSuggestionsRequest, Profile, RankLearningsRequest, RecordActivityRequest, RejectSuggestionRequest,
    UpdateProfileRequest,
};
use emend_tests::harness::NAMESPACE;
use prost_types::{FieldMask, Timestamp};

use super::{NOBODY, NUL, Rpc, UNKNOWN, long};

/// A time that no calendar has.
const NEVER: Timestamp = Timestamp {
    seconds: i64::MAX,
    nanos: -1,
};

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        get(),
        rank(),
        update(),
        record(),
        generate(),
        list(),
        accept(),
        reject(),
    ]
}

fn get() -> Rpc {
    Rpc::of("/emend.learning.v1.ProfileService/GetProfile")
        .case("empty", &GetProfileRequest::default(), &["namespace", "user_id"])
        .case(
            "everything at once",
            &GetProfileRequest {
                namespace: "Not OK".into(),
                user_id: long(129),
            },
            &["namespace", "user_id"],
        )
}

fn rank() -> Rpc {
    let item = |id: &str, topics, level| Learning {
        id: id.into(),
        topics,
        level,
    };
    Rpc::of("/emend.learning.v1.ProfileService/RankLearnings")
        .case(
            "empty",
            &RankLearningsRequest::default(),
            &["namespace", "user_id", "learnings"],
        )
        .case(
            "everything at once",
            &RankLearningsRequest {
                namespace: NAMESPACE.into(),
                user_id: "ann".into(),
                learnings: vec![item("", vec![long(513)], 9), item("a", vec!["x".into(); 51], 1)],
            },
            &[
                "learnings[0].id",
                "learnings[0].topics[0]",
                "learnings[0].level",
                "learnings[1].topics",
            ],
        )
}

fn update() -> Rpc {
    let of = |profile| UpdateProfileRequest {
        profile: Some(profile),
        ..UpdateProfileRequest::default()
    };
    let valid = || Profile {
        namespace: NAMESPACE.into(),
        user_id: "ann".into(),
        ..Profile::default()
    };
    Rpc::of("/emend.learning.v1.ProfileService/UpdateProfile")
        .case("empty", &UpdateProfileRequest::default(), &["profile"])
        .case(
            "nobody",
            &of(Profile::default()),
            &["profile.namespace", "profile.user_id"],
        )
        .case(
            "everything at once",
            &UpdateProfileRequest {
                reason: long(2_001),
                ..of(Profile {
                    experience_years: Some(81),
                    specialties: vec![String::new(), "search".into(), long(513)],
                    known_technologies: vec!["\u{200b}".into()],
                    learning_goals: vec!["x".into(); 201],
                    etag: long(65),
                    ..valid()
                })
            },
            &[
                "reason",
                "profile.experience_years",
                "profile.specialties[0]",
                "profile.specialties[2]",
                "profile.known_technologies[0]",
                "profile.learning_goals",
                "profile.etag",
            ],
        )
        .case(
            "U+0000, negative years and an unknown field",
            &UpdateProfileRequest {
                update_mask: Some(FieldMask {
                    paths: ["specialties", "experience_years", "etag"]
                        .map(String::from)
                        .to_vec(),
                }),
                ..of(Profile {
                    experience_years: Some(-1),
                    specialties: vec![NUL.into()],
                    ..valid()
                })
            },
            &[
                "update_mask",
                "profile.experience_years",
                "profile.specialties[0]",
            ],
        )
}

fn record() -> Rpc {
    let of = |activities| RecordActivityRequest {
        namespace: NAMESPACE.into(),
        user_id: "ann".into(),
        activities,
    };
    Rpc::of("/emend.learning.v1.ProfileService/RecordActivity")
        .case(
            "empty",
            &RecordActivityRequest::default(),
            &["namespace", "user_id", "activities"],
        )
        .case(
            "an empty activity",
            &of(vec![Activity::default()]),
            &["activities[0].source_type", "activities[0].source_id"],
        )
        .case(
            "everything at once",
            &of(vec![Activity {
                source_type: "GitHub".into(),
                source_id: " x".into(),
                occurred_at: Some(NEVER),
                summary: long(4_001),
                technologies: vec!["Rust".into(); 51],
                topics: vec![String::new()],
                goals: vec!["Kafka".into(), long(513)],
                experience_years: Some(-1),
            }]),
            &[
                "activities[0].source_type",
                "activities[0].source_id",
                "activities[0].occurred_at",
                "activities[0].summary",
                "activities[0].technologies",
                "activities[0].topics[0]",
                "activities[0].goals[1]",
                "activities[0].experience_years",
            ],
        )
        .case(
            "too many",
            &of(vec![
                Activity {
                    source_type: "GITHUB".into(),
                    source_id: "c".into(),
                    ..Activity::default()
                };
                101
            ]),
            &["activities"],
        )
}

fn generate() -> Rpc {
    Rpc::of("/emend.learning.v1.ProfileService/GenerateSuggestions").case(
        "everything at once",
        &GenerateSuggestionsRequest {
            namespace: String::new(),
            user_id: NUL.into(),
            since: Some(NEVER),
            include_experience: true,
        },
        &["namespace", "user_id", "since"],
    )
}

fn list() -> Rpc {
    Rpc::of("/emend.learning.v1.ProfileService/ListSuggestions")
        .case(
            "everything at once",
            &ListSuggestionsRequest {
                namespace: "Not OK".into(),
                user_id: String::new(),
                statuses: vec![0, 2, UNKNOWN],
                page_size: 501,
                page_token: "not a token".into(),
            },
            &[
                "namespace",
                "user_id",
                "statuses[0]",
                "statuses[2]",
                "page_size",
                "page_token",
            ],
        )
        .case(
            "too many statuses",
            &ListSuggestionsRequest {
                namespace: NAMESPACE.into(),
                user_id: "ann".into(),
                statuses: vec![1; 65],
                ..ListSuggestionsRequest::default()
            },
            &["statuses"],
        )
}

fn accept() -> Rpc {
    Rpc::of("/emend.learning.v1.ProfileService/AcceptSuggestion")
        .case(
            "empty",
            &AcceptSuggestionRequest::default(),
            &["namespace", "user_id", "candidate_id"],
        )
        .case(
            "a long etag",
            &AcceptSuggestionRequest {
                namespace: NAMESPACE.into(),
                user_id: "ann".into(),
                candidate_id: NOBODY.into(),
                etag: long(65),
            },
            &["etag"],
        )
}

fn reject() -> Rpc {
    Rpc::of("/emend.learning.v1.ProfileService/RejectSuggestion").case(
        "everything at once",
        &RejectSuggestionRequest {
            namespace: "Not OK".into(),
            user_id: long(129),
            candidate_id: "x".into(),
            reason: long(2_001),
            etag: NUL.into(),
        },
        &["namespace", "user_id", "candidate_id", "reason", "etag"],
    )
}
