//! Fuzzes the requests of readers.

use emend_proto::{common::v1 as common, learning::v1 as pb};
use emend_wire::page::{self, QueryHash};
use prost::Message as _;

use super::{parse, parse_list, parse_resolve, position, token};

pub(crate) fn get_resource(request: &pb::GetResourceRequest) {
    if let Ok(key) = parse::resource_key(request.key.as_ref()) {
        let again = emend_wire::render::resource_key(&key);
        assert_eq!(parse::resource_key(Some(&again)), Ok(key));
    }
}

pub(crate) fn list_resources(request: pb::ListResourcesRequest) {
    let Ok((list, hash, _)) = parse_list(request) else {
        return;
    };
    // The token after a resource names the position where the next page begins.
    let key = list.after.map_or_else(
        || common::ResourceKey {
            kind: 1,
            key: list.prefix,
            ..Default::default()
        },
        |after| common::ResourceKey {
            kind: after.kind,
            key: after.key,
            qualifier: after.qualifier,
            ..Default::default()
        },
    );
    let resource = common::Resource {
        key: Some(key.clone()),
        ..Default::default()
    };
    let begins = position(hash, &token(hash, &resource));
    if let Ok(Some(begins)) = begins {
        assert_eq!(
            (begins.kind, begins.key, begins.qualifier),
            (key.kind, key.key, key.qualifier)
        );
    }
}

pub(crate) fn resolve(request: &pb::ResolveRequest) {
    if let Ok((query, _)) = parse_resolve(request) {
        let again = pb::ResolveRequest {
            phrase: query.phrase.as_str().to_owned(),
            ..request.clone()
        };
        let (again, _) = parse_resolve(&again).expect("a normalised phrase is a phrase");
        assert_eq!(again.phrase, query.phrase);
        assert!(query.backend.iter().all(|(_, score)| score.is_finite()));
    }
}

pub(crate) fn page_token(bytes: &[u8]) {
    let hash = QueryHash::of("ListResources", &pb::ListResourcesRequest::default());
    let found = position(hash, &page::token(hash, bytes));
    if let Ok(Some(found)) = found {
        assert_eq!(common::ResourceKey::decode(bytes).as_ref(), Ok(&found));
    }
}
