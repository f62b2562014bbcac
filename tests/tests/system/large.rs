//! Answers that would be too large for a gRPC client, which reads messages of at most 4 MiB by default.

use std::collections::BTreeSet;

use emend_proto::{
    feedback::v1::{BatchSubmitFeedbackRequest, SubmitFeedbackRequest, Wait},
    learning::v1::{
        ImportAs, ImportHeader, ImportMode, ImportResourcesRequest, ImportRow, ImportRows,
        import_resources_request::Message,
    },
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, alias, answered, says},
};
use prost::Message as _;

const CLIENT_LIMIT: usize = 4 * 1024 * 1024;

/// As large as possible: characters of four bytes.
fn large(number: u64, kind: &str) -> emend_proto::common::v1::Correction {
    let name = format!("{number:04} {}", "\u{10437}".repeat(500));
    alias(&name, &format!("{kind}{}", "\u{10437}".repeat(250)))
}

fn import(kind: &str) -> Vec<ImportResourcesRequest> {
    let header = ImportHeader {
        namespace: NAMESPACE.into(),
        mode: ImportMode::AllOrNothing.into(),
        import_as: ImportAs::Decision.into(),
        ..ImportHeader::default()
    };
    let rows: Vec<ImportRow> = (1..=1_000)
        .map(|line| ImportRow {
            line: line.try_into().unwrap(),
            correction: Some(large(line, kind)),
            user_id: String::new(),
        })
        .collect();
    let rows = rows
        .chunks(200)
        .map(|rows| Message::Rows(ImportRows { rows: rows.to_vec() }));
    std::iter::once(Message::Header(header))
        .chain(rows)
        .map(|message| ImportResourcesRequest {
            message: Some(message),
        })
        .collect()
}

both_databases! {
    async fn a_revision_of_a_thousand_large_changes_can_be_read(system) {
        let learning = system.learning();
        for kind in ["a", "b"] {
            answered(learning.resources.clone().import_resources(tokio_stream::iter(import(kind))).await);
        }
        let revisions = learning.revisions().await;
        let newest = revisions[0].revision;
        let changes: Vec<_> = revisions
            .iter()
            .filter(|revision| revision.revision == newest)
            .flat_map(|revision| &revision.changes)
            .collect();
        let bytes: usize = changes.iter().map(|change| change.encoded_len()).sum();
        assert!(bytes > CLIENT_LIMIT, "{bytes}");
        let keys: BTreeSet<&str> = changes.iter().map(|change| change.key.as_ref().unwrap().key.as_str()).collect();
        assert_eq!((changes.len(), keys.len()), (1_000, 1_000), "all of it, nothing twice");
        assert!(revisions[0].changes_continue, "in parts, and it says so");
    }

    async fn a_batch_with_too_large_a_response_is_stored_and_says_what_it_leaves_out(system) {
        let requests: Vec<SubmitFeedbackRequest> = (0..100)
            .map(|number| SubmitFeedbackRequest {
                request_id: format!("large-{number}"),
                context: (0..32).map(|n| (format!("key-{n}"), "x".repeat(1_015))).collect(),
                ..says("jane", large(number, "c"))
            })
            .collect();
        // As much as a request may hold: with what the answer adds, too much.
        let mut request = BatchSubmitFeedbackRequest { requests, wait: Wait::Evaluated.into() };
        let room = (CLIENT_LIMIT - 24 * 1024 - request.encoded_len()) / 100;
        for padded in &mut request.requests {
            padded.reason = "\u{10437}".repeat(room / 4 - 2);
        }
        assert!(request.encoded_len() < CLIENT_LIMIT, "{}", request.encoded_len());
        let answer = answered(system.feedback().service.clone().batch_submit_feedback(request.clone()).await);
        assert_eq!(answer.results.len(), 100);
        for (result, asked) in answer.results.iter().zip(&request.requests) {
            assert_eq!(result.status.as_ref().unwrap().code, 0, "{:?}", result.status);
            assert!(result.abridged);
            let shown = result.feedback.as_ref().unwrap();
            assert!(shown.context.is_empty());
            let stored = system.feedback().get(NAMESPACE, &shown.feedback_id).await;
            assert_eq!((&stored.context, &stored.reason), (&asked.context, &asked.reason));
        }
    }
}
