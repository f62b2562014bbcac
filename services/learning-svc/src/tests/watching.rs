//! What changes in the queue is told on every replica.

use emend_core::Status;
use emend_serve::auth::Access;

use crate::{
    contests::queue::{
        Opened,
        watch::{Watched, Watching},
    },
    tests::{
        on_both_databases,
        world::{World, approval, candidate_id, key, namespace, one, operator, review},
    },
};

on_both_databases!(a_decision_and_a_lease_on_one_replica_are_told_on_another);

async fn a_decision_and_a_lease_on_one_replica_are_told_on_another(world: &World) {
    let (here, there) = (world.instance().await, world.instance().await);
    one(&here, &world.phrase("ann", "p", "v")).await;
    let watched = Watched {
        namespace: namespace(),
        kinds: Vec::new(),
    };
    let mut follower = there.queue.follower();
    let (watch, read) = tokio::join!(there.queue.watch(watched), follower.run_once());
    read.unwrap();
    let mut watch = watch.unwrap();
    assert_eq!(watch.next().await, Some(Watching::Opened));

    let opened = Opened {
        namespace: namespace(),
        candidate: candidate_id("p", "v"),
        actor: operator(),
    };
    let (lease, _) = here.queue.acquire(&opened, &Access::open()).await.unwrap();
    let approved = review(&here, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    let mut told = Vec::new();
    while told.len() < 2 {
        // Others' transactions on the same PostgreSQL may hold it back for a moment.
        follower.run_once().await.unwrap();
        if let Ok(Some(Watching::Change(change))) =
            tokio::time::timeout(std::time::Duration::from_millis(100), watch.next()).await
        {
            told.push(change);
        }
    }
    let expected = (
        candidate_id("p", "v"),
        key(emend_core::correction::Form::PhraseMapping, "p", "v"),
    );
    for change in &told {
        assert_eq!((change.candidate, change.key.clone()), expected);
    }
    // When it is read, the lease has ended already, as deciding ends it.
    assert_eq!(
        (told[0].decided_by.clone(), told[0].previous),
        (None, Some(told[0].status))
    );
    assert_ne!(told[0].lease, Some(lease), "the decision ended it");
    assert_eq!(
        (told[1].previous, told[1].status, told[1].revision),
        (Some(Status::Pending), Status::Applied, approved.revision)
    );
    assert_eq!(told[1].decided_by, Some(operator()));
}
