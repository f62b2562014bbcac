//! Replicas that lag behind the database: a subscriber that moves to one from a current replica is neither set back nor
//! sent a snapshot.

use emend_base::status::Explained;
use emend_proto::learning::v1::ListResourcesRequest;
use emend_tests::{
    harness::{
        NAMESPACE, StreamEvent, Subscriber, answered, eventually,
        says::{alias_key, entity_value},
    },
    replicated,
};
use tonic::Code;

use crate::story::{assert_equals_the_database, go_on, learn_a_little};

replicated! {
    async fn a_node_moved_to_a_replica_that_lags_gets_no_snapshot(system: 1 x 2) {
        let (ahead, behind) = (system.learning_at(0), system.learning_at(1));
        learn_a_little(&ahead).await;
        behind.resources_in(NAMESPACE).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&ahead.channel).await;

        // From here on the second replica hears nothing from its database.
        let road = system.learning[1].road.as_ref().unwrap();
        road.hold();
        let head = go_on(&ahead).await;
        subscriber.until(head).await;
        subscriber.disconnect();
        let shown = answered(behind.resources.clone().list_resources(
            ListResourcesRequest { namespace: NAMESPACE.into(), ..Default::default() },
        ).await);
        assert!(shown.revision < head, "the second replica lags");

        let moved = async {
            let begun = subscriber.begin(&behind.channel).await;
            (begun, subscriber)
        };
        let released = async {
            // It may not answer before it hears from its database again.
            tokio::task::yield_now().await;
            road.release();
        };
        let ((begun, mut subscriber), ()) = tokio::join!(moved, released);
        assert_eq!(begun, StreamEvent::Resumed);
        let put = ahead.put(alias_key("afterwards"), entity_value("person-6")).await;
        subscriber.until(put.revision).await;
        assert_equals_the_database(&subscriber, system).await;
    }

    async fn a_replica_that_lags_too_long_says_when_to_retry(system: 1 x 2) {
        let (ahead, behind) = (system.learning_at(0), system.learning_at(1));
        learn_a_little(&ahead).await;
        behind.resources_in(NAMESPACE).await;
        let mut subscriber = Subscriber::new("n");
        subscriber.begin(&ahead.channel).await;
        let road = system.learning[1].road.as_ref().unwrap();
        road.hold();
        let head = go_on(&ahead).await;
        subscriber.until(head).await;
        subscriber.disconnect();
        let refusal = match subscriber.connect(&behind.channel).await {
            Err(status) => status,
            Ok(()) => subscriber.try_next().await.unwrap_err(),
        };
        let refusal = Explained::from(refusal);
        assert_eq!(refusal.code, Code::Unavailable);
        assert!(refusal.retry_after.is_some(), "{refusal}");
        road.release();
        let begun = eventually("the replica takes the subscriber", || async {
            let mut again = Subscriber::new("n");
            again.resume_from(subscriber.cursor().clone());
            again.connect(&behind.channel).await.map_err(|status| status.to_string())?;
            again.try_next().await.map_err(|status| status.to_string())
        })
        .await;
        assert_eq!(begun, StreamEvent::Resumed);
    }
}
