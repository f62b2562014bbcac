//! The page in a browser, by keyboard.

use emend_tests::harness::browser::{Browser, keys};

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
