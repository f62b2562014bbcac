//! Fuzzes requests to the output service.

use emend_core::{Caller, kinds::PRODUCTION};
use emend_proto::learning::v1 as pb;
use emend_wire::page;

use super::parse;
use crate::fuzzing::requests::{read, same};

/// Parses a request to one of the methods, 0 to 7.
pub(crate) fn request(which: u8, message: &[u8]) {
    let caller = Caller::parse("fuzz").expect("it is a caller's name");
    match which {
        0 => read(message, |request: pb::RenderPromptRequest| {
            if let Ok((of, _)) = parse::render(request.clone()) {
                let again = pb::RenderPromptRequest {
                    target: of.key.key.to_string(),
                    label: of.key.qualifier.clone(),
                    ..request
                };
                same(parse::render(again).map(|(of, _)| of.key), &of.key);
            }
        }),
        1 => read(message, |request: pb::GetOutputStatsRequest| {
            if let Ok(key) = parse::target(&request.namespace, &request.target) {
                assert_eq!(key.qualifier, PRODUCTION);
                same(parse::target(key.namespace.as_str(), key.key.as_str()), &key);
            }
        }),
        2 => read(message, |request| list_versions(&request)),
        3 => read(message, |request: pb::PreviewImprovementRequest| {
            if let Ok((.., inputs)) = parse::preview(&request) {
                assert!((1..=20).contains(&inputs));
            }
        }),
        4 => read(message, |request: pb::GenerateImprovementRequest| {
            let _ = parse::generate(&caller, &request);
        }),
        5 => read(message, |request: pb::UsePromptVersionRequest| {
            if let Ok(wanted) = parse::use_version(&caller, &request) {
                assert!(wanted.version > 0);
            }
        }),
        7 => read(message, |request: pb::ListOutputStatsRequest| {
            let query = parse::stats_query(&request);
            if let Ok((_, after, limit)) = parse::stats(&request, query) {
                assert!((1..=50).contains(&limit));
                let again = pb::ListOutputStatsRequest {
                    page_token: page::token(query, after.as_bytes()),
                    ..request
                };
                same(parse::stats(&again, query).map(|(_, after, _)| after), &after);
            }
        }),
        _ => read(message, |request: pb::ExportExamplesRequest| {
            let _ = parse::export(&request);
        }),
    }
}

fn list_versions(request: &pb::ListPromptVersionsRequest) {
    let query = parse::versions_query(request);
    let Ok((wanted, limit)) = parse::versions(request, query) else {
        return;
    };
    assert!((1..=100).contains(&limit));
    let position = match wanted {
        parse::Versions::Of { before, .. } => before.map(i64::from),
        parse::Versions::Redacted { after, .. } => after,
    };
    if let Some(position) = position {
        let token = page::number_token(query, position);
        assert_eq!(page::number_position(query, &token), Ok(Some(position)));
    }
}
