//! Fuzzes requests to the profile service.

use emend_core::{Caller, ProfileEntry, kinds::Learned};
use emend_proto::learning::v1 as pb;
use emend_wire::page;
use jiff::Timestamp;

use super::parse;
use crate::fuzzing::requests::read;

/// Parses a request to one of the methods, 0 to 5.
pub(crate) fn request(which: u8, message: &[u8]) {
    let caller = Caller::anonymous();
    match which {
        0 => read(message, |request| update(&caller, &request)),
        1 => read(message, |request| activities(&request)),
        2 => read(message, |request: pb::GenerateSuggestionsRequest| {
            let _ = parse::asked(&caller, &request);
        }),
        3 => read(message, |request: pb::ListSuggestionsRequest| {
            let _ = parse::list(&request, parse::query(&request));
        }),
        5 => read(message, |request: pb::RankLearningsRequest| {
            let count = request.learnings.len();
            if let Ok((.., learnings)) = parse::learnings(request) {
                assert!((1..=1_000).contains(&count));
                assert_eq!(learnings.len(), count);
            }
        }),
        _ => read(message, |request: pb::RejectSuggestionRequest| {
            let _ = parse::rejected(&caller, &request);
        }),
    }
}

/// What is changed is stored and read under the same key.
fn update(caller: &Caller, request: &pb::UpdateProfileRequest) {
    let Ok(update) = parse::update(caller, request) else {
        return;
    };
    for (key, value) in &update.entries {
        assert!(update.fields.contains(&key.key.as_str()));
        assert_eq!(key.check_new(), Ok(()));
        let stored = emend_wire::value::encode(value);
        assert_eq!(emend_wire::value::decode(&stored).as_ref(), Ok(value));
        if let Learned::ProfileEntry(ProfileEntry::Text(text)) = &value.learned {
            assert_eq!(emend_core::normalize(text), key.qualifier);
        }
    }
}

/// Nothing personal is left in what is recorded, and no activity is twice in it.
fn activities(request: &pb::RecordActivityRequest) {
    let Ok((.., activities)) = parse::activities(request, Timestamp::UNIX_EPOCH) else {
        return;
    };
    let mut seen = std::collections::HashSet::new();
    for activity in &activities {
        assert!(seen.insert((&activity.source_type, &activity.source_id)));
        assert!(!emend_core::personal_data::found_in(&activity.summary));
    }
}

/// Sends a position back in a page token.
pub(crate) fn page_token(position: &[u8]) {
    let mut list = pb::ListSuggestionsRequest {
        namespace: "a".to_owned(),
        user_id: "u".to_owned(),
        ..Default::default()
    };
    let query = parse::query(&list);
    list.page_token = page::token(query, position);
    assert_eq!(parse::list(&list, query).is_ok(), position.len() == 24);
}
