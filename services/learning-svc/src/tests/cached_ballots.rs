//! Contests with many votes: ballots cached between units of work never make a count wrong.

use emend_base::{Clock as _, Entropy};
use emend_core::{Counting, Kind, Policy, ballots::Tally, correction::Form};

use crate::{
    capabilities::Capabilities,
    decisions::ballot_cache::MIN_BALLOTS,
    ingest::event::IngestEvent,
    tests::{
        on_both_databases, policies,
        world::{World, apply, approval, assert_sound, candidate_id, candidates, key, one, review},
    },
};

on_both_databases!(
    counts_equal_the_ballots_whatever_several_instances_write_in_turn,
    older_votes_replace_retracted_ones_where_not_all_count,
    a_vote_that_replaces_another_is_seen_by_the_other_instance,
    a_refused_action_leaves_the_cached_ballots,
);

const PHRASE: &str = "set up a csa";
const VERBS: [&str; 3] = ["create_csa", "create_isda", "open_account"];

/// Every candidate's figures equal those recounted from its contest's stored ballots.
async fn assert_counted(world: &World, app: &Capabilities, when: &str) {
    let contest = key(Form::PhraseMapping, PHRASE, VERBS[0]).contest_id();
    let scope = learning_store::policies::PolicyKey::of(&key(Form::PhraseMapping, PHRASE, VERBS[0]));
    let policy = app.policies.policy(&scope).await.unwrap().stored.policy;
    let ballots = app.store.ballots(contest, 100_000).await.unwrap();
    let tally = Tally::count(&ballots, &policy, world.clock.now());
    let candidates: Vec<_> = candidates(app)
        .await
        .into_iter()
        .map(|record| record.candidate)
        .collect();
    let standings = tally.standings(&candidates);
    for candidate in &candidates {
        assert_eq!(
            (candidate.reporters, candidate.net),
            (tally.of(candidate.id).voters, standings.net(candidate.id)),
            "{when}: {}",
            candidate.value.learned.maps_to()
        );
    }
}

/// A random number below `below`.
fn draw(entropy: &Entropy, below: usize) -> usize {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    usize::try_from(u64::from_le_bytes(bytes) % below as u64).unwrap()
}

async fn counts_equal_the_ballots_whatever_several_instances_write_in_turn(world: &World) {
    let seed = std::env::var("EMEND_TEST_SEED").map_or(7, |seed| seed.parse().unwrap());
    let steps = if std::env::var_os("EMEND_TEST_LONG").is_some_and(|long| long == "1") {
        1_000
    } else {
        60
    };
    let entropy = Entropy::seeded(seed);
    let instances = [world.instance().await, world.instance().await];
    let vote = |number: usize| world.phrase(&format!("r{}", number % 300), PHRASE, VERBS[number % 3]);
    let mut cast: Vec<IngestEvent> = (0..MIN_BALLOTS + 50).map(vote).collect();
    apply(&instances[0], &cast).await;
    for step in 0..steps {
        let app = &instances[draw(&entropy, 2)];
        let mut events = Vec::new();
        for _ in 0..=draw(&entropy, 3) {
            let event = match draw(&entropy, 4) {
                0 | 1 => {
                    let event = vote(draw(&entropy, 3_000));
                    cast.push(event.clone());
                    event
                }
                _ => world.retraction(&cast.swap_remove(draw(&entropy, cast.len()))),
            };
            events.push(event);
        }
        apply(app, &events).await;
        match draw(&entropy, 20) {
            0 => {
                let candidate = candidate_id(PHRASE, VERBS[draw(&entropy, 3)]);
                // Refused if it applies already.
                let _ = review(app, candidate, None, approval()).await;
            }
            1 => {
                let counting = if draw(&entropy, 2) == 0 {
                    Counting::Occurrences
                } else {
                    Counting::DistinctVoters
                };
                let counted = 100 + u32::try_from(draw(&entropy, 200)).unwrap();
                let change = move |policy: &mut Policy| {
                    policy.votes.counting = counting;
                    policy.votes.max_counted_feedback = counted;
                };
                policies::set(app, Kind::InvocationPhrase, change).await;
                // What is not pending is re-evaluated by the next event.
                one(&instances[draw(&entropy, 2)], &vote(step)).await;
            }
            _ => {}
        }
        assert_counted(world, app, &format!("seed {seed}, step {step}")).await;
    }
}

async fn older_votes_replace_retracted_ones_where_not_all_count(world: &World) {
    let app = world.instance().await;
    policies::set(&app, Kind::InvocationPhrase, |policy| {
        policy.votes.max_counted_feedback = 250;
    })
    .await;
    // More than are read at once.
    let votes: Vec<IngestEvent> = (0..1_400)
        .map(|n| world.phrase(&format!("r{n}"), PHRASE, VERBS[0]))
        .collect();
    apply(&app, &votes).await;
    let reporters = async || candidates(&app).await[0].candidate.reporters;
    assert_eq!(reporters().await, 250);
    let newest_first: Vec<IngestEvent> = votes.iter().rev().map(|vote| world.retraction(vote)).collect();
    let other = world.instance().await;
    apply(&other, &newest_first[..1_030]).await;
    assert_eq!(reporters().await, 250, "370 are left");
    apply(&other, &newest_first[1_030..1_155]).await;
    assert_eq!(reporters().await, 245);
    assert_sound(&app).await;
}

async fn a_vote_that_replaces_another_is_seen_by_the_other_instance(world: &World) {
    let (one_instance, other) = (world.instance().await, world.instance().await);
    let votes: Vec<IngestEvent> = (0..MIN_BALLOTS + 50)
        .map(|n| world.phrase(&format!("r{n}"), PHRASE, VERBS[0]))
        .collect();
    apply(&one_instance, &votes).await;
    // All figures come out the same.
    let again = IngestEvent {
        id: world.phrase("x", PHRASE, VERBS[0]).id,
        feedback: world.phrase("x", PHRASE, VERBS[0]).feedback,
        ..votes[7].clone()
    };
    apply(&other, &[world.retraction(&votes[7]), again.clone()]).await;
    one(&one_instance, &world.retraction(&again)).await;
    assert_counted(world, &one_instance, "reporter 7 has no vote left").await;
}

async fn a_refused_action_leaves_the_cached_ballots(world: &World) {
    let app = world.instance().await;
    let votes: Vec<IngestEvent> = (0..MIN_BALLOTS + 50)
        .map(|n| world.phrase(&format!("r{n}"), PHRASE, VERBS[0]))
        .collect();
    apply(&app, &votes).await;
    let kept = app.decisions.ballots.ballots();
    assert!(kept > MIN_BALLOTS, "{kept}");
    let candidate = candidate_id(PHRASE, VERBS[0]);
    let stale = review(&app, candidate, Some("stale".to_owned()), approval()).await;
    assert!(stale.is_err(), "{stale:?}");
    assert_eq!(
        app.decisions.ballots.ballots(),
        kept,
        "refused before anything was decided"
    );
    let again = review(&app, candidate, None, approval()).await;
    assert!(again.is_err(), "{again:?}");
    assert_eq!(app.decisions.ballots.ballots(), kept, "refused by the rules");
    // And the cached ballots equal the stored ones.
    one(&app, &world.retraction(&votes[7])).await;
    assert_counted(world, &app, "after a refusal").await;
}
