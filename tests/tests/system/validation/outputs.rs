//! Bad requests about prompts.

use emend_proto::learning::v1::{
    ExportExamplesRequest, GenerateImprovementRequest, GetOutputStatsRequest, ListOutputStatsRequest,
    ListPromptVersionsRequest, PreviewImprovementRequest, RenderPromptRequest, UsePromptVersionRequest,
};
use emend_tests::harness::NAMESPACE;

use super::{NUL, Rpc, long};

const BAD: &str = "Not OK";

pub(super) fn cases() -> Vec<Rpc> {
    vec![
        render(),
        Rpc::of("/emend.learning.v1.OutputService/GetOutputStats").case(
            "everything at once",
            &GetOutputStatsRequest {
                namespace: BAD.into(),
                target: String::new(),
            },
            &["namespace", "target"],
        ),
        Rpc::of("/emend.learning.v1.OutputService/ListOutputStats").case(
            "everything at once",
            &ListOutputStatsRequest {
                namespace: BAD.into(),
                page_size: 51,
                page_token: "x".into(),
            },
            &["namespace", "page_size", "page_token"],
        ),
        Rpc::of("/emend.learning.v1.OutputService/ListPromptVersions")
            .case(
                "everything at once",
                &ListPromptVersionsRequest {
                    namespace: BAD.into(),
                    target: long(257),
                    page_size: 101,
                    page_token: "x".into(),
                    only_redacted: false,
                },
                &["namespace", "target", "page_size", "page_token"],
            )
            .case(
                "of redacted ratings, everything at once",
                &ListPromptVersionsRequest {
                    namespace: NAMESPACE.into(),
                    target: long(257),
                    page_size: -1,
                    page_token: "x".into(),
                    only_redacted: true,
                },
                &["target", "page_size", "page_token"],
            ),
        Rpc::of("/emend.learning.v1.OutputService/PreviewImprovement").case(
            "everything at once",
            &PreviewImprovementRequest {
                namespace: BAD.into(),
                candidate_id: "1".into(),
                inputs: 21,
            },
            &["namespace", "candidate_id", "inputs"],
        ),
        Rpc::of("/emend.learning.v1.OutputService/GenerateImprovement").case(
            "everything at once",
            &GenerateImprovementRequest {
                namespace: BAD.into(),
                target: NUL.into(),
                label: long(257),
                on_behalf_of: long(129),
            },
            &["namespace", "target", "label", "on_behalf_of"],
        ),
        Rpc::of("/emend.learning.v1.OutputService/UsePromptVersion").case(
            "everything at once",
            &UsePromptVersionRequest {
                namespace: BAD.into(),
                target: String::new(),
                label: NUL.into(),
                version: 0,
                reason: long(2_001),
                on_behalf_of: NUL.into(),
            },
            &[
                "namespace",
                "target",
                "label",
                "version",
                "reason",
                "on_behalf_of",
            ],
        ),
        Rpc::of("/emend.learning.v1.OutputService/ExportExamples").case(
            "everything at once",
            &ExportExamplesRequest {
                namespace: BAD.into(),
                target: String::new(),
                format: 3,
                label: NUL.into(),
            },
            &["namespace", "target", "format", "label"],
        ),
    ]
}

fn render() -> Rpc {
    Rpc::of("/emend.learning.v1.OutputService/RenderPrompt")
        .case("empty", &RenderPromptRequest::default(), &["namespace", "target"])
        .case(
            "everything at once",
            &RenderPromptRequest {
                namespace: NAMESPACE.into(),
                target: "T".into(),
                label: NUL.into(),
                user_id: long(129),
                language: 3,
                min_revision: -1,
                ..RenderPromptRequest::default()
            },
            &["label", "user_id", "language", "min_revision"],
        )
}
