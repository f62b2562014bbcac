//! Search nodes as applications embed them: current, answering while the service is down, and reported on.

use emend_client::SubscriberEvent;
use emend_core::Kind;
use emend_proto::{
    common::v1::Scope, feedback::v1::SubmitFeedbackRequest, learning::v1::ReportStatusRequest,
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, Subscriber, node::Node, phrase, refused, says},
};
use tonic::Code;

use crate::story::{go_on, learn_a_little};

both_databases! {
    async fn users_own_resources_are_sent_only_on_request(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let own = SubmitFeedbackRequest {
            scope: Scope::User.into(),
            ..says("jane", phrase("set up a csa", "create_isda"))
        };
        let mut without = Subscriber::new("without");
        without.begin(&learning.channel).await;
        let outcome = feedback.learn(own).await.outcome.unwrap();
        let node = Node::start(system.learning[0].front.address(), "with").await;
        node.until(outcome.revision).await;
        without.until(outcome.revision).await;
        assert!(without.held().is_empty());
        let answer = node.answer(NAMESPACE, Kind::InvocationPhrase, "set up a csa", "jane");
        assert_eq!(answer.found, Some(("create_isda".into(), outcome.revision)));
        assert_eq!(node.answer(NAMESPACE, Kind::InvocationPhrase, "set up a csa", "tom").found, None);
    }

    async fn a_node_follows_every_kind_of_change_and_catches_up_after_a_restart(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let mut node = Node::start(system.learning[0].front.address(), "search-1").await;
        learn_a_little(&learning).await;
        node.until(learning.head().await).await;
        let once = ["set up a csa", "jd", "close it", "came and went"];
        node.assert_answers_by(&system.stored().resources().await, &once);
        system.stop_learning().await;
        node.until_event("the stream is closed", |event| {
            matches!(event, SubscriberEvent::Disconnected { .. }).then_some(())
        })
        .await;
        // It keeps answering from what it has.
        assert_eq!(node.answer(NAMESPACE, Kind::EntityAlias, "jd", "").found.unwrap().0, "person-17");
        system.start_learning().await;
        go_on(&learning).await;
        for reporter in ["a", "b", "c"] {
            feedback.learn(says(reporter, phrase("set up a csa", "create_isda"))).await;
        }
        node.until(learning.head().await).await;
        node.assert_answers_by(&system.stored().resources().await, &once);
        for event in node.events_so_far().await {
            let fine = !matches!(&*event, SubscriberEvent::Snapshot { .. } | SubscriberEvent::DigestMismatch { .. });
            assert!(fine, "resumed, and nothing was wrong: {event:?}");
        }
    }

    async fn a_node_starts_from_its_copy_while_learning_is_away(system) {
        let learning = system.learning();
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("learned.emend");
        let address = system.learning[0].front.address();
        let node = Node::start_from(address, "search-1", Some(copy.clone())).await;
        learn_a_little(&learning).await;
        node.until(learning.head().await).await;
        node.stop().await;
        let stored = system.stored().resources().await;
        system.stop_learning().await;

        let mut node = Node::start_from(address, "search-1", Some(copy)).await;
        node.assert_answers_by(&stored, &["jd", "set up a csa"]);
        assert!(!node.view().staleness().connected);
        system.start_learning().await;
        let head = go_on(&learning).await;
        node.until_event("the stream goes on from the copy", |event| match event {
            SubscriberEvent::Resumed { revision } => Some(*revision),
            SubscriberEvent::Snapshot { snapshot, .. } => panic!("{snapshot:?}"),
            _ => None,
        })
        .await;
        node.until(head).await;
        node.assert_answers_by(&system.stored().resources().await, &["jd", "set up a csa"]);
    }

    async fn only_the_caller_that_opened_a_stream_reports_for_its_node(system) {
        let learning = system.learning();
        let report = ReportStatusRequest {
            node_id: "nobody-opened-this".into(),
            ..ReportStatusRequest::default()
        };
        let refusal = refused(learning.subscriptions.clone().report_status(report).await);
        assert_eq!(refusal.code, Code::PermissionDenied);
    }
}
