//! What several tests of the stream teach learning-svc, and how they subscribe.

use emend_proto::learning::v1::{NodeInfo, SubscribeRequest};
use emend_tests::harness::{
    Learning, Subscriber, System,
    says::{alias_key, entity_value, forbidden_value, phrase_key, prohibition_key, verb_value},
};

/// Something of every kind.
pub(crate) async fn learn_a_little(learning: &Learning) {
    learning
        .put(phrase_key("set up a csa"), verb_value("create_csa"))
        .await;
    learning.put(alias_key("jd"), entity_value("person-17")).await;
    learning
        .put(
            prohibition_key("close it", "delete_fund"),
            forbidden_value("delete_fund"),
        )
        .await;
}

/// Adds, changes and deletes; answers with the head.
pub(crate) async fn go_on(learning: &Learning) -> i64 {
    learning
        .put(phrase_key("close it"), verb_value("close_position"))
        .await;
    learning.put(alias_key("jd"), entity_value("person-4")).await;
    learning
        .put(alias_key("came and went"), entity_value("person-5"))
        .await;
    learning.delete(alias_key("came and went")).await.unwrap();
    learning.delete(phrase_key("set up a csa")).await.unwrap()
}

/// Checks that a subscriber holds everything that is stored.
pub(crate) async fn assert_equals_the_database(subscriber: &Subscriber, system: &System) {
    assert_eq!(*subscriber.held(), system.stored().resources().await);
}

/// Everything that is not user-scoped, with bookmarks as often as the contract allows.
pub(crate) fn request(node_id: &str) -> SubscribeRequest {
    SubscribeRequest {
        node: Some(NodeInfo {
            id: node_id.into(),
            ..NodeInfo::default()
        }),
        bookmark_interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..SubscribeRequest::default()
    }
}
