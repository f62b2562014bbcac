//! The page in a browser, by keyboard and by pointer; and what the service takes of what a browser sends.

use std::sync::Arc;

use axum::{
    body::{Body, to_bytes},
    http::{Request, header},
};
use emend_browser::{Browser, keys};
use emend_client::{
    Query,
    proto::feedback::v1::{ListQueriesRequest, query_service_client::QueryServiceClient},
};
use emend_tests::harness::{NAMESPACE, System, answered, eventually};
use search_node::page::routes;
use tower::ServiceExt as _;

use crate::node::Node;

#[tokio::test]
async fn a_search_is_typed_and_its_results_can_be_read_by_everybody() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let node = Node::alone();
    let at = node.serve("").await;

    browser.open(&format!("http://{}/", at.http)).await;
    assert_eq!(browser.barriers().await, [""; 0]);
    // The field has the focus.
    browser.press(&format!("守護{}", keys::ENTER)).await;
    let first = browser.find("ol li:first-child h2").await;
    let expected = &node.search("守護").titles[0].record.title;
    let is = first.text().await.unwrap();
    assert!(is.starts_with(expected.as_str()), "{is}, not {expected}");
    assert_eq!(browser.barriers().await, [""; 0]);
    browser.close().await;
}

/// The recorded queries, the oldest first, once they are as they should be.
async fn recorded(system: &System, what: &str, is_right: impl Fn(&[Query]) -> bool) -> Vec<Query> {
    let queries = QueryServiceClient::new(system.feedback().channel);
    eventually(what, async || {
        let request = ListQueriesRequest {
            namespace: NAMESPACE.into(),
            ..ListQueriesRequest::default()
        };
        let mut listed = answered(queries.clone().list_queries(request).await).queries;
        listed.reverse();
        if is_right(&listed) {
            Ok(listed)
        } else {
            Err(format!("{listed:?}"))
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_opened_by_key_and_by_pointer_and_each_is_recorded() {
    let Some(browser) = Browser::start().await else {
        return;
    };
    let system = System::sqlite().await;
    let node = Node::start(&system, "search-1").await;
    let at = node.serve("").await;
    let expected = node.search("守護");
    let titles = &expected.titles;

    browser.open(&format!("http://{}/", at.http)).await;
    browser.press(&format!("守護{}", keys::ENTER)).await;
    browser.find("ol[data-query]").await;
    // From the field over the button to the first result.
    browser
        .press(&format!("{}{}{}", keys::TAB, keys::TAB, keys::ENTER))
        .await;
    let heading = browser.find("main > h2").await;
    assert_eq!(heading.text().await.unwrap(), titles[0].record.title);
    assert_eq!(browser.barriers().await, [""; 0]);

    browser.open(&format!("http://{}/?q=守護", at.http)).await;
    let second = browser.find("ol li:nth-child(2) a").await;
    second.click().await.unwrap();
    let heading = browser.find("main > h2").await;
    assert_eq!(heading.text().await.unwrap(), titles[1].record.title);

    // One search without a page, and two with one.
    let clicked = |query: &Query| !query.interactions.is_empty();
    let all = recorded(&system, "both clicks are recorded", |all| {
        all.len() == 3 && all.iter().filter(|query| clicked(query)).count() == 2
    })
    .await;
    let by_page: Vec<&Query> = all.iter().filter(|query| clicked(query)).collect();
    for (position, query) in (1..).zip(&by_page) {
        let [click] = &query.interactions[..] else {
            panic!("{query:?}");
        };
        let object = titles[usize::try_from(position).unwrap() - 1].record.of();
        assert_eq!(
            (click.action.as_str(), click.object_id.as_str(), click.position),
            ("click", object, position)
        );
    }
    assert_eq!(by_page[0].session_id.len(), 36);
    assert_eq!(by_page[0].session_id, by_page[1].session_id, "it is one session");
    browser.close().await;
    system.stop().await;
}

#[tokio::test]
async fn a_click_is_refused_with_all_that_is_wrong() {
    let node = Node::alone();
    let json = "application/json";
    let id = node.search("守護").titles[0].record.of().to_owned();
    let click = |query: &str, object: &str, position: u32| {
        format!("{{\"query_id\": \"{query}\", \"object_id\": \"{object}\", \"position\": {position}}}")
    };
    let all_wrong = "query_id: is required: 1 to 128 characters; object_id: must be the id of a card or product in the \
                     index; position: must be 1 to 100, is 0";
    let cases = [
        (click("q-1", &id, 100), json, 204, ""),
        (click("", "nothing", 0), json, 400, all_wrong),
        (
            click("q-1", &id, 101),
            json,
            400,
            "position: must be 1 to 100, is 101",
        ),
        (
            format!(
                "{{\"query_id\": \"q-1\", \"object_id\": \"{id}\", \"position\": 1, \"action\": \"buy\"}}"
            ),
            json,
            422,
            "unknown field `action`",
        ),
        (click("q-1", &id, 1), "text/plain", 415, ""),
        (click(&"x".repeat(5_000), &id, 1), json, 413, ""),
    ];
    for (body, content_type, status, message) in cases {
        let request = Request::post("/clicks")
            .header(header::CONTENT_TYPE, content_type)
            .body(Body::from(body))
            .unwrap();
        let answer = routes(Arc::clone(&node.backend), "")
            .oneshot(request)
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{message}");
        let body = to_bytes(answer.into_body(), 10_000).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains(message), "{body}");
    }
}

#[tokio::test]
async fn a_title_has_a_page_and_a_browser_has_one_session() {
    let node = Node::alone();
    let ask = async |path: &str, cookie: &str| {
        let request = Request::get(path)
            .header(header::COOKIE, cookie)
            .body(Body::empty());
        let answer = routes(Arc::clone(&node.backend), "")
            .oneshot(request.unwrap())
            .await;
        let (head, body) = answer.unwrap().into_parts();
        let body = to_bytes(body, 1_000_000).await.unwrap();
        let set = head
            .headers
            .get(header::SET_COOKIE)
            .map(|set| set.to_str().unwrap().to_owned());
        (
            head.status.as_u16(),
            set,
            String::from_utf8(body.to_vec()).unwrap(),
        )
    };
    let (status, _, page) = ask("/titles/JA-001", "").await;
    assert!(status == 200 && page.contains("<h2>霧笛の渡し守</h2>"), "{page}");
    assert!(page.contains("JA-001:qa_answer"), "{page}");
    assert_eq!(ask("/titles/%3Cb%3E", "").await.0, 404);

    let (_, set, _) = ask("/", "session=<script>").await;
    let set = set.expect("a new session");
    let (session, rest) = set.split_once(';').unwrap();
    assert_eq!(rest, " Path=/; HttpOnly; SameSite=Lax");
    let (_, set, _) = ask("/?q=x", &format!("other=1; {session}")).await;
    assert_eq!(set, None, "it has one");
}
