//! Fuzzes requests to the evidence service.

use emend_core::evidence::{EvidenceId, Weight};
use emend_proto::learning::v1 as pb;
use emend_wire::page::{self, QueryHash};

use super::{parse, reads};
use crate::fuzzing::requests::{read, same};

/// Parses a request to one of the methods, 0 to 7.
pub(crate) fn request(which: u8, message: &[u8]) {
    match which {
        0 => read(message, |request| upsert(&request)),
        1 => read(message, |request| list_claims(&request)),
        2 => read(message, |request| list_edges(&request)),
        3 => read(message, |request| list_events(&request)),
        4 => read(message, |request: pb::GetReviewStatsRequest| {
            let _ = reads::review_stats(&request);
        }),
        5 => read(message, |request: pb::ExportCorrectionsRequest| {
            if let Ok((_, percent)) = reads::export_corrections(&request) {
                assert!(percent < 100);
            }
        }),
        6 => read(message, |request: pb::GetClaimRequest| {
            if let Ok(id) = EvidenceId::parse(&request.claim_id) {
                same(EvidenceId::parse(id.as_str()), &id);
            }
        }),
        _ => read(message, |request: pb::ExportMaterialsRequest| {
            let _ = reads::export_materials(&request);
        }),
    }
}

/// What is upserted is read back under the same ids.
fn upsert(request: &pb::UpsertEvidenceRequest) {
    let Ok(upsert) = parse::upsert(request) else {
        return;
    };
    for edge in &upsert.edges {
        same(EvidenceId::parse(edge.id.as_str()), &edge.id);
        let weight = edge.confidence.map(|(confidence, _)| Weight::parse(confidence));
        assert_eq!(weight, edge.confidence.map(|(_, weight)| Ok(weight)));
    }
    for page in upsert.pages.iter().filter(|page| !page.host.is_empty()) {
        assert_eq!(
            emend_core::evidence::host(&page.host).as_deref(),
            Ok(page.host.as_str())
        );
    }
}

fn list_claims(request: &pb::ListClaimsRequest) {
    let query = QueryHash::of("ListClaims", &());
    if let Ok((_, after, _)) = parse::list_claims(request, query) {
        let token = page::number_token(query, after);
        assert_eq!(page::number_position(query, &token), Ok(Some(after)));
    }
}

fn list_edges(request: &pb::ListEdgesRequest) {
    let query = QueryHash::of("ListEdges", &());
    if let Ok((_, after, _)) = parse::list_edges(request, query) {
        let token = parse::edge_token(query, after);
        let position = parse::pair_position(query, &token);
        assert_eq!(position, Ok(Some((after.first, after.edge))));
    }
}

fn list_events(request: &pb::ListEvidenceEventsRequest) {
    let query = reads::events_query(request);
    if let Ok((filter, before, limit)) = reads::list_events(request, query) {
        let again = pb::ListEvidenceEventsRequest {
            target: filter
                .target
                .as_ref()
                .map(|(_, key)| key.to_string())
                .unwrap_or_default(),
            page_size: i32::try_from(limit).expect("pages are small"),
            page_token: String::new(),
            ..request.clone()
        };
        let query = reads::events_query(&again);
        let again = pb::ListEvidenceEventsRequest {
            page_token: before.map_or_else(String::new, |before| reads::event_token(query, before)),
            ..again
        };
        same(reads::list_events(&again, query), &(filter, before, limit));
    }
}
