//! Bad requests to rank citations.

use emend_proto::learning::v1::{EvidencePage, RankCitationsRequest, RelatedPaper};
use emend_tests::harness::NAMESPACE;

use super::{NUL, Rpc, long};

pub(super) fn cases() -> Vec<Rpc> {
    vec![rank()]
}

fn paper(page_id: &str, doi: &str) -> RelatedPaper {
    RelatedPaper {
        page: Some(EvidencePage {
            page_id: page_id.into(),
            domain: "journal.example.org".into(),
            doi: doi.into(),
            ..EvidencePage::default()
        }),
        ..RelatedPaper::default()
    }
}

fn rank() -> Rpc {
    let related = |related| RankCitationsRequest {
        namespace: NAMESPACE.into(),
        page_id: "paper".into(),
        related,
        ..RankCitationsRequest::default()
    };
    Rpc::of("/emend.learning.v1.EvidenceService/RankCitations")
        .case(
            "empty",
            &RankCitationsRequest::default(),
            &["namespace", "page_id", "related"],
        )
        .case("too many", &related(vec![paper("a", ""); 501]), &["related"])
        .case(
            "everything at once",
            &RankCitationsRequest {
                namespace: "Not OK".into(),
                page_id: NUL.into(),
                keep: -1,
                task_id: long(257),
                related: vec![
                    RelatedPaper::default(),
                    RelatedPaper {
                        r#abstract: long(32_769),
                        similarity: f64::NAN,
                        relevance: 1.01,
                        ..paper("", "10.1000/")
                    },
                ],
            },
            &[
                "namespace",
                "page_id",
                "keep",
                "task_id",
                "related[0].page",
                "related[1].page.page_id",
                "related[1].page.doi",
                "related[1].abstract",
                "related[1].similarity",
                "related[1].relevance",
            ],
        )
        .case(
            "the paper itself, and a page that is there twice with no id in common",
            &related(vec![
                paper("paper", ""),
                paper("a", "10.1000/a"),
                paper("a", "10.1000/A"),
                paper("a", "10.1000/b"),
            ]),
            &["related[0].page.page_id", "related[3].page.page_id"],
        )
}
