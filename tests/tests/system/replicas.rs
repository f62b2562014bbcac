//! Two replicas of learning-svc on one PostgreSQL with writers at both: every subscriber of either sees every
//! revision's effect, in order and none twice.

use std::collections::BTreeMap;

use emend_tests::{
    harness::{
        NAMESPACE, StreamEvent, Subscriber, alias,
        node::Node,
        says,
        says::{alias_key, entity_value},
    },
    replicated,
};
use futures::future::join_all;

/// Each writer writes one revision per round.
const WRITERS: usize = 6;
const ROUNDS: usize = 25;

replicated! {
    async fn every_subscriber_of_either_sees_every_revision_once_and_in_order(system: 2 x 2) {
        let mut listening = Vec::new();
        for n in 0..6 {
            let learning = system.learning_at(n % 2);
            let mut subscriber = Subscriber::of_everything(&format!("n-{n}"));
            subscriber.begin(&learning.channel).await;
            listening.push(subscriber);
        }
        let mut nodes = Vec::new();
        for n in 0..2 {
            nodes.push(Node::start(system.learning[n].front.address(), &format!("search-{n}")).await);
        }
        // Each revision is about a key of its own, so that none can be skipped for a newer one.
        let operators = (0..WRITERS).map(|writer| {
            let learning = system.learning_at(writer % 2);
            async move {
                for round in 0..ROUNDS {
                    learning.put(alias_key(&format!("{writer} {round}")), entity_value("person-1")).await;
                }
            }
        });
        let reporters = (0..WRITERS).map(|writer| {
            let feedback = system.feedback_at(writer % 2);
            async move {
                for round in 0..ROUNDS {
                    feedback.learn(says("jane", alias(&format!("said {writer} {round}"), "person-2"))).await;
                }
            }
        });
        tokio::join!(join_all(operators), join_all(reporters));

        let head = i64::try_from(2 * WRITERS * ROUNDS).unwrap();
        assert_eq!(system.stored().head().await, head);
        let stored = system.stored().resources().await;
        for subscriber in &mut listening {
            subscriber.until(head).await;
            assert_eq!(*subscriber.held(), stored);
            let updates = subscriber.heard.iter().filter_map(|heard| match heard {
                StreamEvent::Update { changes, .. } => Some(changes),
                _ => None,
            });
            let revisions: Vec<i64> = updates.flatten().map(|(revision, ..)| *revision).collect();
            assert_eq!(revisions, (1..=head).collect::<Vec<_>>(), "every revision, in order, none twice");
        }
        for node in &nodes {
            node.until(head).await;
            node.assert_answers_by(&stored, &["never said"]);
        }
    }

    async fn concurrently_written_keys_end_with_their_newest_value_everywhere(system: 2 x 2) {
        let mut listening = Vec::new();
        for n in 0..4 {
            let mut subscriber = Subscriber::new(&format!("n-{n}"));
            subscriber.begin(&system.learning_at(n % 2).channel).await;
            listening.push(subscriber);
        }
        let writers = (0..WRITERS).map(|writer| {
            let learning = system.learning_at(writer % 2);
            async move {
                for round in 0..ROUNDS {
                    let key = alias_key(&format!("name {}", round % 3));
                    learning.put(key, entity_value(&format!("person-{writer}-{round}"))).await;
                }
            }
        });
        join_all(writers).await;
        let head = system.stored().head().await;
        let stored = system.stored().resources().await;
        for subscriber in &mut listening {
            subscriber.until(head).await;
            assert_eq!(*subscriber.held(), stored);
            let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
            for heard in &subscriber.heard {
                if let StreamEvent::Update { changes, .. } = heard {
                    for (revision, key, _) in changes {
                        let before = newest.insert(&key.key, *revision);
                        assert!(before < Some(*revision), "{key:?} never goes back");
                    }
                }
            }
        }
    }

    async fn a_write_at_one_replica_can_be_read_at_the_other(system: 1 x 2) {
        let (one, other) = (system.learning_at(0), system.learning_at(1));
        for n in 0..10 {
            let key = alias_key(&format!("name {n}"));
            let put = one.put(key.clone(), entity_value("person-1")).await;
            let request = emend_proto::learning::v1::GetResourceRequest {
                key: Some(key),
                min_revision: put.revision,
            };
            let read = emend_tests::harness::answered(other.resources.clone().get_resource(request).await);
            assert_eq!(read.resource, put.resource);
        }
        assert_eq!(one.resources_in(NAMESPACE).await, other.resources_in(NAMESPACE).await);
    }
}
