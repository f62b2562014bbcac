//! Valid requests about what AIs make, and about profiles.

use emend_proto::learning::v1 as learning;

use super::{ID, at, namespace, of};

/// Valid requests to the profile service.
pub(super) fn profiles() -> Vec<Vec<u8>> {
    let user = || "jane".to_owned();
    vec![
        of(
            36,
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
            37,
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
            38,
            &learning::GenerateSuggestionsRequest {
                namespace: namespace(),
                user_id: user(),
                since: Some(at(1_700_000_000)),
                include_experience: true,
            },
        ),
        of(
            39,
            &learning::ListSuggestionsRequest {
                namespace: namespace(),
                user_id: user(),
                statuses: vec![2, 3],
                page_size: 20,
                page_token: String::new(),
            },
        ),
        of(
            40,
            &learning::RejectSuggestionRequest {
                namespace: namespace(),
                user_id: user(),
                candidate_id: ID.into(),
                reason: "not me".into(),
                etag: "3".into(),
            },
        ),
        of(
            46,
            &learning::RankLearningsRequest {
                namespace: namespace(),
                user_id: user(),
                learnings: [("docker-101", "Docker"), ("k8s-101", "Kubernetes")]
                    .map(|(id, topic)| learning::Learning {
                        id: id.into(),
                        topics: vec![topic.into()],
                        level: 2,
                    })
                    .into(),
            },
        ),
    ]
}

/// Requests about prompts.
pub(super) fn outputs() -> Vec<Vec<u8>> {
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
        of(
            45,
            &learning::ListOutputStatsRequest {
                namespace: namespace(),
                page_size: 10,
                page_token: String::new(),
            },
        ),
    ]
}
