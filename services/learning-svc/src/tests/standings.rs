//! What has become of feedbacks, as they are stored, on both databases.

use emend_core::{FeedbackId, Namespace, OutcomeState, Reason, Standing, correction::Form};

use crate::{
    capabilities::Capabilities,
    ingest::event::IngestEvent,
    resources::write::Delete,
    tests::{
        on_both_databases,
        rulings::{REVIEWER, decision, retraction},
        windows::{change_policy, rating},
        world::{World, apply, approval, candidate_id, key, namespace, one, operator, rejection, review},
    },
};

on_both_databases!(
    every_voter_is_told_what_became_of_the_value,
    a_ruling_stands_as_the_newer_ones_leave_it,
    a_rating_stands_by_its_place_in_the_window,
    each_effect_has_a_standing_and_a_retraction_that_came_first_has_too,
    a_page_is_answered_in_the_order_in_which_it_was_asked_and_leaves_out_what_is_not_known_here,
);

use OutcomeState::{Applied, NoEffect, Pending, Rejected, Withdrawn};

type Short = (OutcomeState, Option<Reason>, i64);

fn short(standing: &Standing) -> Short {
    (standing.state, standing.reason, standing.revision.0)
}

async fn all(app: &Capabilities, feedback: &[FeedbackId]) -> Vec<(FeedbackId, Vec<Standing>)> {
    app.standings.read(&namespace(), feedback).await.unwrap()
}

/// The standings of the effects of one feedback.
async fn effects(app: &Capabilities, event: &IngestEvent) -> Vec<Standing> {
    let mut found = all(app, &[event.feedback]).await;
    assert_eq!(found.len(), 1);
    found.remove(0).1
}

/// The standing of a feedback with one effect.
async fn standing(app: &Capabilities, event: &IngestEvent) -> Short {
    let effects = effects(app, event).await;
    assert_eq!(effects.len(), 1);
    short(&effects[0])
}

async fn every_voter_is_told_what_became_of_the_value(world: &World) {
    let app = world.instance().await;
    let votes: Vec<_> = ["ann", "bob", "cid", "dan"]
        .map(|reporter| world.phrase(reporter, "set up a csa", "create_csa"))
        .into();
    one(&app, &votes[0]).await;
    let first = effects(&app, &votes[0]).await;
    assert_eq!(short(&first[0]), (Pending, Some(Reason::BelowThreshold), 0));
    assert_eq!((first[0].confirmations_needed, first[0].reporters), (2, 1));
    apply(&app, &votes[1..3]).await;
    assert_eq!(standing(&app, &votes[0]).await, (Applied, None, 1));
    one(&app, &world.retraction(&votes[2])).await;
    assert_eq!(
        standing(&app, &votes[0]).await,
        (Withdrawn, Some(Reason::Retracted), 0)
    );
    assert_eq!(
        standing(&app, &votes[2]).await,
        (NoEffect, Some(Reason::Retracted), 0)
    );
    one(&app, &votes[3]).await;
    assert_eq!(standing(&app, &votes[0]).await, (Applied, None, 3));

    let delete = Delete {
        key: key(Form::PhraseMapping, "set up a csa", "create_csa"),
        etag: None,
        reason: None,
        actor: operator(),
    };
    app.resources.delete(&delete).await.unwrap();
    assert_eq!(
        standing(&app, &votes[0]).await,
        (Withdrawn, Some(Reason::Deleted), 0)
    );
    let candidate = candidate_id("set up a csa", "create_csa");
    review(&app, candidate, None, approval()).await.unwrap();
    assert_eq!(standing(&app, &votes[0]).await, (Applied, None, 5));
    review(&app, candidate, None, rejection()).await.unwrap();
    assert_eq!(standing(&app, &votes[0]).await, (Rejected, None, 0));
}

async fn a_ruling_stands_as_the_newer_ones_leave_it(world: &World) {
    let app = world.instance().await;
    let block = decision(world, "example.org", "block", REVIEWER);
    let trust = decision(world, "example.org", "academic", REVIEWER);
    apply(&app, &[block.clone(), trust.clone()]).await;
    assert_eq!(
        standing(&app, &block).await,
        (NoEffect, Some(Reason::NewerRuling), 0)
    );
    assert_eq!(standing(&app, &trust).await, (Applied, None, 2));
    one(&app, &retraction(world, &trust, REVIEWER)).await;
    assert_eq!(standing(&app, &block).await, (Applied, None, 3));
    assert_eq!(
        standing(&app, &trust).await,
        (NoEffect, Some(Reason::Retracted), 0)
    );
}

async fn a_rating_stands_by_its_place_in_the_window(world: &World) {
    let app = world.instance().await;
    let first = rating(world, "ann", "x", "GOOD");
    one(&app, &first).await;
    assert_eq!(standing(&app, &first).await, (Applied, None, 1));
    let second = rating(world, "ann", "x", "GOOD");
    let neutral = rating(world, "bob", "x", "NEUTRAL");
    apply(&app, &[second.clone(), neutral.clone()]).await;
    assert_eq!(
        standing(&app, &neutral).await,
        (NoEffect, Some(Reason::Neutral), 0)
    );
    assert_eq!(
        standing(&app, &first).await,
        (NoEffect, Some(Reason::Replaced), 0)
    );
    assert_eq!(standing(&app, &second).await, (Applied, None, 2));
    one(&app, &world.retraction(&second)).await;
    assert_eq!(
        standing(&app, &second).await,
        (NoEffect, Some(Reason::Retracted), 0)
    );
    assert_eq!(standing(&app, &first).await, (Applied, None, 3));

    change_policy(&app, |policy| policy.frozen = true).await;
    let newer: Vec<_> = (0..6)
        .map(|output| rating(world, "cid", &output.to_string(), "GOOD"))
        .collect();
    apply(&app, &newer).await;
    assert_eq!(
        standing(&app, &newer[5]).await,
        (Pending, Some(Reason::Frozen), 0)
    );
    assert_eq!(
        standing(&app, &newer[0]).await,
        (NoEffect, Some(Reason::NotInWindow), 0)
    );
    assert_eq!(
        standing(&app, &first).await,
        (Applied, None, 3),
        "it is still shown"
    );
    change_policy(&app, |policy| policy.frozen = false).await;
    assert_eq!(standing(&app, &newer[5]).await.0, Applied);
    assert_eq!(
        standing(&app, &first).await,
        (NoEffect, Some(Reason::NotInWindow), 0)
    );
    one(&app, &world.redaction(&newer[5])).await;
    assert_eq!(
        standing(&app, &newer[5]).await,
        (NoEffect, Some(Reason::Redacted), 0)
    );
}

async fn each_effect_has_a_standing_and_a_retraction_that_came_first_has_too(world: &World) {
    let app = world.instance().await;
    let several = world.several("ann", &["alpha", "beta"], "open");
    let votes = ["bob", "cid"].map(|reporter| world.phrase(reporter, "alpha", "open"));
    one(&app, &several).await;
    apply(&app, &votes).await;
    let mut states: Vec<_> = effects(&app, &several).await.iter().map(short).collect();
    states.sort_by_key(|(state, ..)| state.advancement());
    assert_eq!(
        states,
        [(Pending, Some(Reason::BelowThreshold), 0), (Applied, None, 1)]
    );

    let late = world.phrase("dan", "gamma", "open");
    one(&app, &world.retraction(&late)).await;
    assert_eq!(
        all(&app, &[late.feedback]).await,
        [],
        "nothing is known of it but the mark"
    );
    one(&app, &late).await;
    assert_eq!(
        standing(&app, &late).await,
        (NoEffect, Some(Reason::Retracted), 0)
    );
}

async fn a_page_is_answered_in_the_order_in_which_it_was_asked_and_leaves_out_what_is_not_known_here(
    world: &World,
) {
    let app = world.instance().await;
    let votes: Vec<_> = (0..300)
        .map(|number| world.phrase(&format!("r{number}"), &format!("phrase {}", number % 7), "open"))
        .collect();
    apply(&app, &votes).await;
    let unknown = world.phrase("nobody", "a", "b").feedback;
    let mut asked: Vec<FeedbackId> = votes.iter().rev().map(|vote| vote.feedback).collect();
    asked.insert(150, unknown);
    let found = all(&app, &asked).await;
    let answered: Vec<FeedbackId> = found.iter().map(|(id, _)| *id).collect();
    asked.remove(150);
    assert_eq!(answered, asked);
    assert!(
        found
            .iter()
            .all(|(_, effects)| effects.len() == 1 && effects[0].state == Applied)
    );
    let elsewhere = Namespace::parse("research").unwrap();
    assert_eq!(app.standings.read(&elsewhere, &asked).await.unwrap(), []);
}
