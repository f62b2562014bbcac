//! What callers send: requests of every method, events between the services, streamed imports, page tokens.

use emend_proto::{common::v1::ResourceKey, search::v1::SearchRequest};
use emend_wire::page::{self, QueryHash};
use prost::Message as _;

use super::lossy;

pub(super) fn feedback(bytes: &[u8]) -> usize {
    feedback_svc::fuzzing::request(bytes);
    bytes.len()
}

pub(super) fn learning(bytes: &[u8]) -> usize {
    learning_svc::fuzzing::request(bytes);
    bytes.len()
}

/// A request of the example search node.
pub(super) fn search(bytes: &[u8]) -> usize {
    if let Ok(request) = SearchRequest::decode(bytes) {
        search_node::fuzzing::request(request);
    }
    bytes.len()
}

/// Whatever feedback-svc stores and sends, learning-svc must accept: an event that it refuses would become a dead
/// letter.
pub(super) fn events(bytes: &[u8]) -> usize {
    // First as untrusted input.
    let _ = learning_svc::fuzzing::event(bytes);
    match feedback_svc::fuzzing::event(bytes) {
        None => bytes.len(),
        Some(event) => {
            if let Err(refused) = learning_svc::fuzzing::event(&event) {
                panic!("feedback-svc took it and learning-svc refuses it: {refused}");
            }
            event.len()
        }
    }
}

pub(super) fn import_stream(bytes: &[u8]) -> usize {
    learning_svc::fuzzing::import(bytes);
    bytes.len()
}

/// Any text as a token, and any bytes as a position.
pub(super) fn page_tokens(bytes: &[u8]) -> usize {
    let query = QueryHash::of("List", &ResourceKey::default());
    let text = lossy(bytes);
    let _ = page::number_position(query, &text);
    if let Ok(Some(position)) = page::position(query, &text) {
        // Another text may encode the same position.
        assert_eq!(
            page::position(query, &page::token(query, &position)),
            Ok(Some(position))
        );
    }
    let token = page::token(query, bytes);
    if token.len() <= 8 * 1024 {
        assert_eq!(page::position(query, &token), Ok(Some(bytes.to_vec())));
        let other = QueryHash::of("Another", &ResourceKey::default());
        assert!(page::position(other, &token).is_err());
    }
    feedback_svc::fuzzing::page_token(bytes);
    learning_svc::fuzzing::page_token(bytes);
    bytes.len()
}
