//! The service and the page.

use emend_client::{
    Code, Explained,
    proto::search::v1::{Expansion, SearchRequest, TermGroup, search_service_client::SearchServiceClient},
};
use emend_tests::harness::http;

use crate::node::Node;

const QUERY: &str = "守護を無視して攻撃できるカード";

#[tokio::test]
async fn the_service_and_the_page_say_the_same() {
    let node = Node::alone();
    let at = node.serve("http://ratings.example/").await;

    let mut client = SearchServiceClient::connect(format!("http://{}", at.grpc))
        .await
        .unwrap();
    let request = SearchRequest {
        query: QUERY.to_owned(),
        ..SearchRequest::default()
    };
    let found = client.search(request).await.unwrap().into_inner();
    let expected = node.search(QUERY);
    let served: Vec<(String, String)> = found
        .results
        .iter()
        .map(|result| (result.id.clone(), result.title.clone()))
        .collect();
    let own: Vec<(String, String)> = expected
        .titles
        .iter()
        .map(|result| (result.record.of().to_owned(), result.record.title.clone()))
        .collect();
    assert_eq!(served, own);
    assert_eq!(
        (found.attempts, found.top_k, found.expanded_query.as_str()),
        (1, 10, QUERY)
    );

    let bad = SearchRequest {
        query_type: "x".repeat(65),
        expansion: Some(Expansion {
            groups: vec![TermGroup::default()],
        }),
        ..SearchRequest::default()
    };
    let refused = client.search(bad).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let refused = Explained::from(refused);
    assert_eq!(refused.reason.as_deref(), Some("INVALID_FIELDS"));
    let fields: Vec<&str> = refused
        .field_violations
        .iter()
        .map(|violation| &*violation.field)
        .collect();
    assert_eq!(
        fields,
        [
            "query",
            "query_type",
            "expansion.groups[0].end",
            "expansion.groups[0].alternatives"
        ]
    );

    let page = http::ask(at.http, "GET", "/?q=%E5%AE%88%E8%AD%B7", "").await;
    assert_eq!(page.status, 200);
    for part in [
        "橋の上の武僧",
        "<script src=\"http://ratings.example/widget.js\">",
        "<emend-rating query-id=\"",
    ] {
        assert!(page.body.contains(part), "{part}: {page:?}");
    }
    let page = http::ask(at.http, "GET", "/?q=%3Cscript%3Ealert(1)%3C/script%3E", "").await;
    assert!(
        page.status == 200 && !page.body.contains("<script>alert"),
        "{page:?}"
    );
}
