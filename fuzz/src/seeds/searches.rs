//! Requests of the example search node.

use emend_proto::search::v1::{Expansion, SearchRequest, TermGroup};
use prost::Message as _;

pub(super) fn requests() -> Vec<Vec<u8>> {
    let group = |start, end, alternatives: &[&str]| TermGroup {
        start,
        end,
        alternatives: alternatives.iter().map(ToString::to_string).collect(),
    };
    let expanded = |query: &str, groups: Vec<TermGroup>| SearchRequest {
        query: query.into(),
        expansion: Some(Expansion { groups }),
        ..SearchRequest::default()
    };
    let all = SearchRequest {
        query: "守護を無視して攻撃できるカード".into(),
        query_type: "SEMANTIC".into(),
        user_id: "ana".into(),
        without_learning: true,
        session_id: "s-1".into(),
        unrecorded: true,
        ..SearchRequest::default()
    };
    let requests = [
        all,
        expanded(
            "手札に返す cards",
            vec![
                group(0, 15, &["手札に戻す", "手札に返す", "バウンス"]),
                group(16, 21, &["cards", "card"]),
            ],
        ),
        expanded("cards", vec![group(0, 5, &["card \"draw\" OR", "a", ""])]),
        expanded("場", vec![group(1, 3, &["x"])]),
        expanded("cards", vec![group(3, 5, &["x"]), group(0, 2, &["y"])]),
        expanded("cards", vec![group(-1, i32::MAX, &[])]),
        SearchRequest::default(),
    ];
    requests.iter().map(SearchRequest::encode_to_vec).collect()
}
