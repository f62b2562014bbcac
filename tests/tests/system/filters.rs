//! A subscriber gets what it asks for, and nothing else.

use emend_proto::{
    common::v1::{ResourceKind, Scope},
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::SubscribeRequest,
};
use emend_tests::{
    both_databases,
    harness::{NAMESPACE, StreamEvent, Subscriber, alias, prohibit, says, subscriber::kinds},
};

use crate::story::{learn_a_little, request};

both_databases! {
    async fn the_same_filter_in_another_order_is_the_same(system) {
        let learning = system.learning();
        learn_a_little(&learning).await;
        let mut subscriber = Subscriber::of(SubscribeRequest {
            kinds: kinds(&[ResourceKind::EntityAlias, ResourceKind::InvocationPhrase]),
            namespaces: vec!["elsewhere".into(), NAMESPACE.into()],
            ..request("n")
        });
        subscriber.begin(&learning.channel).await;
        subscriber.ask(|request| {
            request.kinds.reverse();
            request.namespaces.reverse();
            request.namespaces.push(NAMESPACE.into());
        });
        assert_eq!(subscriber.begin(&learning.channel).await, StreamEvent::Resumed);
    }

    async fn a_filter_never_leaks(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let filters = [
            request("everything"),
            SubscribeRequest { kinds: kinds(&[ResourceKind::Prohibition]), ..request("prohibitions") },
            SubscribeRequest { namespaces: vec!["elsewhere".into()], ..request("elsewhere") },
            SubscribeRequest { namespaces: vec![NAMESPACE.into()], ..request("here") },
            SubscribeRequest { include_user_scoped: true, ..request("users") },
            SubscribeRequest {
                namespaces: vec![NAMESPACE.into()],
                kinds: kinds(&[ResourceKind::EntityAlias]),
                include_user_scoped: true,
                ..request("a-little-of-it")
            },
        ];
        let mut subscribers: Vec<Subscriber> = filters.into_iter().map(Subscriber::of).collect();
        for subscriber in &mut subscribers {
            subscriber.begin(&learning.channel).await;
        }
        for n in 0..3 {
            for namespace in [NAMESPACE, "elsewhere", "else"] {
                for scope in [Scope::Global, Scope::User] {
                    let request = SubmitFeedbackRequest {
                        namespace: namespace.into(),
                        scope: scope.into(),
                        ..says(&format!("user-{n}"), alias(&format!("name {n}"), &format!("person-{n}")))
                    };
                    feedback.learn(request).await;
                    let prohibition = SubmitFeedbackRequest {
                        namespace: namespace.into(),
                        scope: scope.into(),
                        ..says(&format!("user-{n}"), prohibit("close it", "delete_fund"))
                    };
                    feedback.learn(prohibition).await;
                }
            }
        }
        let head = learning.head().await;
        let stored = system.stored().resources().await;
        for subscriber in &mut subscribers {
            // The subscriber itself rejects what it did not ask for, and compares digests.
            subscriber.until(head).await;
            let request = subscriber.request();
            let expected = stored.iter().filter(|(key, _)| {
                (request.namespaces.is_empty() || request.namespaces.contains(&key.namespace))
                    && (request.kinds.is_empty() || request.kinds.contains(&key.kind))
                    && (request.include_user_scoped || key.user_id.is_empty())
            });
            assert!(subscriber.held().iter().eq(expected), "{request:?}");
        }
        assert!(subscribers.iter().all(|subscriber| !subscriber.held().is_empty()));
    }
}
