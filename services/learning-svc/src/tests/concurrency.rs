//! Several service instances on one database, all at once.

use std::sync::Arc;

use emend_core::{Status, correction::Form};
use emend_proto::common::v1::OutcomeState;
use futures::future::join_all;

use crate::tests::{
    on_both_databases,
    world::{
        World, applies, apply, approval, assert_sound, candidate, candidate_id, candidates, head, one, put,
        review, verb,
    },
};

on_both_databases!(
    a_hundred_identical_concurrent_submissions_cause_one_promotion,
    three_concurrent_votes_on_three_instances_are_applied,
    batches_with_the_same_contests_in_opposite_order_do_not_deadlock,
    the_same_event_on_two_instances_at_once_counts_once,
    a_feedback_concurrent_with_its_retraction_never_counts,
    revisions_of_concurrent_writers_have_no_gap,
    concurrent_reviews_and_votes_stay_consistent,
);

async fn a_hundred_identical_concurrent_submissions_cause_one_promotion(world: &World) {
    let (one, two) = (world.instance().await, world.instance().await);
    let submissions = (0..100).map(|n| {
        let app = if n % 2 == 0 { one.clone() } else { two.clone() };
        let event = world.phrase(&format!("reporter-{n}"), "set up a csa", "create_csa");
        tokio::spawn(async move { super::world::one(&app, &event).await })
    });
    let outcomes: Vec<_> = join_all(submissions)
        .await
        .into_iter()
        .map(|joined| joined.unwrap())
        .collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.auto_applied).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.was_new).count(), 1);
    assert_eq!(candidates(&one).await.len(), 1);
    let record = candidate(&two, "set up a csa", "create_csa").await;
    assert_eq!(
        (record.candidate.occurrences, record.candidate.reporters),
        (100, 100)
    );
    assert_eq!((record.candidate.status, head(&one).await), (Status::Applied, 1));
    assert_sound(&one).await;
}

async fn three_concurrent_votes_on_three_instances_are_applied(world: &World) {
    let mut instances = Vec::new();
    for _ in 0..3 {
        instances.push(world.instance().await);
    }
    for round in 0..10 {
        let phrase = format!("phrase {round}");
        let submissions = instances.iter().enumerate().map(|(n, app)| {
            let (app, event) = (app.clone(), world.phrase(&format!("r{n}"), &phrase, "v"));
            tokio::spawn(async move { one(&app, &event).await })
        });
        let applied = join_all(submissions)
            .await
            .into_iter()
            .filter(|joined| joined.as_ref().unwrap().state == OutcomeState::Applied as i32);
        assert_eq!(applied.count(), 1, "the third of three");
        assert_eq!(verb(&instances[0], &phrase).await.as_deref(), Some("v"));
    }
    assert_eq!(head(&instances[0]).await, 10);
    assert_sound(&instances[0]).await;
}

async fn batches_with_the_same_contests_in_opposite_order_do_not_deadlock(world: &World) {
    let (one, two) = (world.instance().await, world.instance().await);
    let mut batches = Vec::new();
    for n in 0..30 {
        let (a, b) = (
            world.feedback(&format!("a{n}"), Form::Entity, "alpha", "x"),
            world.feedback(&format!("b{n}"), Form::Entity, "beta", "y"),
        );
        let (app, batch) = if n % 2 == 0 {
            (one.clone(), vec![a, b])
        } else {
            // The accept orders are swapped too, so that the events are decided in the opposite order.
            let (mut a, mut b) = (a, b);
            std::mem::swap(&mut a.accept_order, &mut b.accept_order);
            (two.clone(), vec![b, a])
        };
        batches.push(tokio::spawn(async move { apply(&app, &batch).await }));
    }
    for batch in join_all(batches).await {
        assert_eq!(batch.unwrap().len(), 2);
    }
    assert_eq!(head(&one).await, 2);
    assert_sound(&one).await;
}

async fn the_same_event_on_two_instances_at_once_counts_once(world: &World) {
    let (one, two) = (world.instance().await, world.instance().await);
    for n in 0..20 {
        let event = world.feedback("ann", Form::Entity, &format!("alias {n}"), "e");
        let (first, second) = tokio::join!(super::world::one(&one, &event), super::world::one(&two, &event));
        assert_eq!(first, second);
    }
    assert_eq!(head(&one).await, 20);
    assert!(
        candidates(&one)
            .await
            .iter()
            .all(|record| record.candidate.occurrences == 1)
    );
    assert_sound(&one).await;
}

async fn a_feedback_concurrent_with_its_retraction_never_counts(world: &World) {
    let (one, two) = (world.instance().await, world.instance().await);
    for n in 0..20 {
        let alias = format!("alias {n}");
        let feedback = world.feedback("ann", Form::Entity, &alias, "e");
        let retraction = world.retraction(&feedback);
        tokio::join!(
            super::world::one(&one, &feedback),
            super::world::one(&two, &retraction)
        );
        assert_eq!(applies(&one, Form::Entity, &alias, "x").await, None);
    }
    assert_sound(&one).await;
}

async fn revisions_of_concurrent_writers_have_no_gap(world: &World) {
    let instances = [world.instance().await, world.instance().await];
    let writers = (0..8).map(|writer| {
        let app = instances[writer % 2].clone();
        let batches: Vec<Vec<_>> = (0..6)
            .map(|batch| {
                let alias = |n| format!("alias {writer} {batch} {n}");
                (0..5)
                    .map(|n| world.feedback("ann", Form::Entity, &alias(n), "e"))
                    .collect()
            })
            .collect();
        tokio::spawn(async move {
            for batch in batches {
                apply(&app, &batch).await;
            }
        })
    });
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    assert_eq!(head(&instances[0]).await, 8 * 6 * 5);
    assert_sound(&instances[0]).await;
}

async fn concurrent_reviews_and_votes_stay_consistent(world: &World) {
    let instances = Arc::new([world.instance().await, world.instance().await]);
    one(&instances[0], &world.phrase("first", "p0", "v0")).await;
    let mut work = Vec::new();
    for n in 0..40_usize {
        let app = instances[n % 2].clone();
        let phrase = format!("p{}", n % 2);
        let event = world.phrase(&format!("r{n}"), &phrase, &format!("v{}", n % 3));
        work.push(tokio::spawn(async move {
            match n % 10 {
                7 => drop(app.resources.put(&put(&phrase, "set")).await.unwrap()),
                // It may or may not be applied by then: either answer is right.
                8 => drop(review(&app, candidate_id("p0", "v0"), None, approval()).await),
                _ => drop(one(&app, &event).await),
            }
        }));
    }
    for done in join_all(work).await {
        done.unwrap();
    }
    assert_sound(&instances[0]).await;
}
