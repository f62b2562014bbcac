//! Who has a candidate open shows, and prevents nobody from deciding.

use std::sync::Arc;

use emend_core::{Caller, Namespace, correction::Form};
use emend_serve::auth::{Access, Grant, Principal, Reach, Role};
use learning_store::actor::Actor;

use crate::{
    contests::queue::Opened,
    tests::{
        on_both_databases,
        world::{World, approval, candidate, candidate_id, candidates, namespace, one, operator, review},
    },
};

on_both_databases!(
    a_candidate_is_open_for_one_reviewer_and_anybody_may_decide,
    what_is_a_users_own_is_opened_with_the_right_to_act_for_users,
);

fn opened(person: &str) -> Opened {
    Opened {
        namespace: namespace(),
        candidate: candidate_id("p", "v"),
        actor: Actor {
            caller: operator().caller,
            on_behalf_of: person.to_owned(),
        },
    }
}

async fn a_candidate_is_open_for_one_reviewer_and_anybody_may_decide(world: &World) {
    let app = world.instance().await;
    let open = async |opened: &Opened| app.queue.acquire(opened, &Access::open()).await;
    let unknown = open(&opened("jane")).await.unwrap_err();
    assert_eq!(unknown.reason(), "NOT_FOUND");
    one(&app, &world.phrase("ann", "p", "v")).await;
    let elsewhere = Opened {
        namespace: Namespace::parse("elsewhere").unwrap(),
        ..opened("jane")
    };
    assert_eq!(open(&elsewhere).await.unwrap_err().reason(), "NOT_FOUND");

    let (lease, acquired) = open(&opened("jane")).await.unwrap();
    assert!(acquired);
    assert_eq!(lease.actor.on_behalf_of, "jane");
    // Another replica's reviewer sees it.
    let other = world.instance().await;
    let theirs = other
        .queue
        .acquire(&opened("tom"), &Access::open())
        .await
        .unwrap();
    assert_eq!(theirs, (lease.clone(), false));
    let record = candidate(&app, "p", "v").await;
    let shown = other.queue.leases(std::slice::from_ref(&record)).await.unwrap();
    assert_eq!(shown, [(record.candidate.id, lease)].into());

    review(&other, candidate_id("p", "v"), None, approval())
        .await
        .unwrap();
    assert!(app.queue.leases(&[record]).await.unwrap().is_empty());

    assert!(open(&opened("tom")).await.unwrap().1);
    app.queue.release(&opened("jane"), &Access::open()).await.unwrap();
    assert!(!open(&opened("jane")).await.unwrap().1);
    app.queue.release(&opened("tom"), &Access::open()).await.unwrap();
    assert!(open(&opened("jane")).await.unwrap().1);
}

async fn what_is_a_users_own_is_opened_with_the_right_to_act_for_users(world: &World) {
    let app = world.instance().await;
    one(&app, &world.own_feedback("mia", Form::PhraseMapping, "p", "v")).await;
    let own = Opened {
        candidate: candidates(&app).await[0].candidate.id,
        ..opened("")
    };
    for act_for_users in [false, true] {
        let grant = Grant {
            roles: vec![Role::Reviewer],
            reach: Reach::All,
            act_for_users,
        };
        let principal = Principal::new(Caller::parse("console").unwrap(), &[grant]);
        let access = Access::known(Arc::new(principal), Role::Reviewer);
        let reason = app
            .queue
            .acquire(&own, &access)
            .await
            .map_err(|error| error.reason());
        assert_eq!(
            reason.map(drop),
            if act_for_users {
                Ok(())
            } else {
                Err("NOT_FOR_USERS")
            }
        );
    }
}
