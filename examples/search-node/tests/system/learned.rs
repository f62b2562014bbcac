//! Everything else that people teach, and the index.

use emend_client::proto::feedback::v1::{ListQueriesRequest, query_service_client::QueryServiceClient};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, alias, answered, eventually, prohibit, says,
        says::{decides, tunes},
    },
};
use search_node::backend::{Asked, NAMESPACES};

use crate::node::Node;

#[test]
fn a_card_that_only_its_fifth_effect_tells_of_is_found() {
    let found = Node::alone().search("次元の裂け目を広げるカード");
    let records: Vec<&str> = found.titles.iter().map(|title| &*title.record.id).collect();
    assert_eq!(records, ["JA-079:effect_5"]);
}

#[test]
fn a_title_comes_once_with_its_best_text() {
    let found = Node::alone().search("疾走を持つフォロワーは出したターンに攻撃できますか");
    let titles: Vec<&str> = found.titles.iter().map(|title| &*title.record.title).collect();
    let mut once = titles.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), titles.len(), "{titles:?}");
    assert!(found.titles.is_sorted_by(|one, other| one.score >= other.score));
    assert_eq!(found.titles[0].record.id, "JA-033:qa_question");
}

#[test]
fn english_is_searched_beside_japanese() {
    let ids = Node::alone().ids("cards that give Ward to followers");
    assert!(
        ids.iter().take(2).all(|id| ["EN-015", "EN-016"].contains(&&**id)),
        "{ids:?}"
    );
}

both_databases! {
    async fn what_is_searched_is_recorded_and_what_is_compared_is_not(system) {
        let node = Node::start(system, "search-1").await;
        let asked = Asked {
            query: "守護を無視して攻撃できるカード".to_owned(),
            session_id: "session-1".to_owned(),
            ..Asked::default()
        };
        let without_learning = Asked { without_learning: true, ..asked.clone() };
        node.ask(&without_learning).unwrap();
        let found = node.ask(&asked).unwrap();
        let queries = QueryServiceClient::new(system.feedback().channel);
        let recorded = eventually("the search is recorded", async || {
            let request = ListQueriesRequest { namespace: NAMESPACE.into(), ..ListQueriesRequest::default() };
            let listed = answered(queries.clone().list_queries(request).await).queries;
            match &listed[..] {
                [recorded] => Ok(recorded.clone()),
                _ => Err(format!("{listed:?}")),
            }
        })
        .await;
        assert_eq!((&recorded.query_id, &recorded.query_text), (&found.query_id, &asked.query));
        assert_eq!((recorded.query_type.as_str(), recorded.session_id.as_str()), ("HYBRID", "session-1"));
        assert_eq!((&recorded.namespaces[..], recorded.min_score), (&NAMESPACES.map(str::to_owned)[..], Some(0.4)));
        assert_eq!(recorded.top_results.len(), found.titles.len().min(5));
        assert_eq!(recorded.top_results[0].object_id, found.titles[0].record.of());
        assert!(recorded.index_version.starts_with("write-"));
    }

    async fn what_is_taught_counts_for_the_next_query(system) {
        let node = Node::start(system, "search-1").await;
        let feedback = system.feedback();
        let query = "手札を捨てるカード";
        let first = node.ids(query)[0].clone();
        feedback.learn_all(["ana", "ben", "cai"].map(|who| says(who, prohibit(query, &first)))).await;
        node.is_current(system).await;
        assert!(!node.ids(query).contains(&first), "{first} is prohibited");

        feedback.learn_all(["ana", "ben", "cai"].map(|who| says(who, alias(query, "JA-001")))).await;
        node.is_current(system).await;
        let found = node.search(query);
        assert_eq!((found.titles[0].record.of(), found.titles[0].learned), ("JA-001", true));
        assert!(!found.feedback_hint);
        let asked = Asked { query: query.to_owned(), without_learning: true, ..Asked::default() };
        let without = node.ask(&asked).unwrap();
        assert_eq!(without.titles[0].record.of(), first, "as if nothing had been learned");
    }

    async fn nothing_is_found_on_a_blocked_domain(system) {
        let node = Node::start(system, "search-1").await;
        let query = "ドローしたカードは墓場に置かれますか";
        assert_eq!(node.search(query).titles[0].record.url, "https://rulings.example/cards/JA-046");
        system.feedback().learn(decides("ana", "rulings.example", "block")).await;
        node.is_current(system).await;
        let found = node.search(query);
        assert!(found.titles.iter().all(|title| title.record.host() != Some("rulings.example")), "{found:?}");
    }

    async fn a_tuning_counts_for_the_next_query_of_its_type(system) {
        let node = Node::start(system, "search-1").await;
        let query = "フォロワー全体にダメージを与えるカード";
        assert!(node.ids(query).len() > 2);
        let line = "top_k=2 min_score=0.5 confidence.sure=0.9 confidence.likely=0.5 namespaces=flavor,effects retry=none suggestion=Ask us.";
        system.feedback().learn(tunes("ana", "HYBRID", line)).await;
        node.is_current(system).await;
        let found = node.search(query);
        assert_eq!((found.titles.len(), found.attempts), (2, 1));
        assert_eq!(found.namespaces.iter().collect::<Vec<_>>(), ["effects", "flavor"]);
        assert_eq!(found.titles[0].confidence, "sure");
        let nothing = node.search("冷蔵庫");
        assert_eq!((nothing.suggestion.as_str(), nothing.attempts), ("Ask us.", 1));
        let asked = Asked { query: query.to_owned(), query_type: "SEMANTIC".to_owned(), ..Asked::default() };
        assert_eq!(node.ask(&asked).unwrap().titles.len(), 10);
    }
}
