//! Prompts that are being generated.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use emend_base::{Error, Lifecycle, lifecycle::Shutdown};
use emend_core::{
    Correction, Policy, Status,
    outputs::{Improved, Material, SuggestionMaterial},
    ratings::RatingFields,
};
use learning_store::{self, contests::CandidateRecord, policies::PolicyKey};
use tokio::{sync::Notify, task::JoinHandle, time::timeout};
use tracing::instrument::WithSubscriber as _;

use super::{PATIENCE, TARGET, approve, findings, generate, key, proposed, put, rate, rating, told};
use crate::{
    capabilities::Capabilities,
    generator::{Generator, GeneratorError, Suggestions},
    ingest::event::{FeedbackChange, IngestEvent},
    outputs::{metrics::Generation, versions::UseVersion, worker::Failing},
    policies::update::PolicyUpdate,
    tests::{
        logged::Logged,
        on_both_databases,
        world::{World, apply, candidates, namespace, one, operator, rejection, review},
    },
};

on_both_databases!(
    a_prompt_that_changed_meanwhile_ends_the_generation_and_leaves_nothing,
    what_was_redacted_meanwhile_does_not_come_back_in_a_prompt,
    a_generator_that_fails_leaves_nothing,
    what_a_caller_began_is_proposed_when_it_has_gone,
    a_process_that_ends_gives_up_what_is_generated,
    a_lease_that_expired_is_taken_over,
    where_the_policy_says_so_improvements_come_by_themselves,
    a_generator_that_refuses_is_left_alone_and_its_reason_logged,
    ratings_that_say_nothing_are_no_failure_and_newer_ones_are_waited_for,
    ratings_are_taken_in_while_the_generator_works,
    a_rating_that_arrives_late_counts_for_the_next_improvement,
    ratings_count_for_the_current_version_until_another_is,
);

/// A generator that waits until it is told to go on.
#[derive(Default)]
pub(super) struct Held {
    pub(super) asked: Notify,
    pub(super) go_on: Notify,
    /// How it fails, if it does.
    pub(super) failure: Mutex<Option<GeneratorError>>,
}

impl Held {
    fn fails_with(&self, failure: GeneratorError) {
        *self.failure.lock().unwrap() = Some(failure);
    }
}

#[async_trait]
impl Generator for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    fn patience(&self) -> std::time::Duration {
        std::time::Duration::from_mins(1)
    }

    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError> {
        self.asked.notify_one();
        self.go_on.notified().await;
        if let Some(failure) = self.failure.lock().unwrap().clone() {
            return Err(failure);
        }
        Ok(Improved {
            text: format!("{} Better.", material.prompt.text()),
            reason: "because".into(),
        })
    }

    async fn suggest(&self, _: &SuggestionMaterial) -> Result<Suggestions, GeneratorError> {
        Ok(Suggestions::default())
    }

    async fn run(&self, prompt: &str, input: &str) -> Option<Result<String, GeneratorError>> {
        Some(if prompt.contains("Better") {
            Ok(format!("{prompt}|{input}"))
        } else {
            Err(GeneratorError::BadAnswer("worse".into()))
        })
    }
}

pub(super) fn held(app: &Capabilities) -> (Capabilities, Arc<Held>) {
    let generator = Arc::new(Held::default());
    let mut app = app.clone();
    app.outputs.generator = Arc::clone(&generator) as Arc<dyn Generator>;
    (app, generator)
}

/// A prompt that was rated, and its improvement, which the generator holds until it is told to go on.
async fn begun(
    world: &World,
) -> (
    Capabilities,
    Arc<Held>,
    JoinHandle<Result<CandidateRecord, Error>>,
) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    (app, generator, generating)
}

async fn a_prompt_that_changed_meanwhile_ends_the_generation_and_leaves_nothing(world: &World) {
    let (app, generator, generating) = begun(world).await;
    let (reason, message) = told(generate(&app).await);
    assert_eq!(reason, "IMPROVEMENT_OPEN");
    assert_eq!(message, "an improvement of SUMMARIZE_DAILY is being generated");
    put(&app, "Summarise briefly.").await;
    generator.go_on.notify_one();
    assert!(matches!(generating.await.unwrap(), Err(Error::Aborted { .. })));
    rate(world, &app, &["u", "v", "w"], "BAD").await;
    let proposed = generate(&app).await.unwrap();
    assert_eq!(
        proposed.candidate.proposal.map(|kept| (kept.version, kept.base)),
        Some((3, 2))
    );
    // Approving what was made for another version is refused likewise.
    put(&app, "Summarise very briefly.").await;
    let refused = approve(&app, proposed.candidate.id).await;
    assert!(matches!(refused, Err(Error::Aborted { .. })), "{refused:?}");
    assert_eq!(findings(world).await, "[]");
}

async fn what_was_redacted_meanwhile_does_not_come_back_in_a_prompt(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let events = rate(world, &app, &["w", "x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    one(&app, &world.redaction(&events[0])).await;
    generator.go_on.notify_one();
    assert!(matches!(generating.await.unwrap(), Err(Error::Aborted { .. })));
    assert_eq!(candidates(&app).await.len(), 1);
    // The three that are left are enough.
    let proposed = generate(&app).await.unwrap();
    assert_eq!(proposed.candidate.status, Status::AwaitingReview);
    assert_eq!(findings(world).await, "[]");
}

async fn a_generator_that_fails_leaves_nothing(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    generator.fails_with(GeneratorError::Unavailable("it is held".into()));
    generator.go_on.notify_one();
    let (reason, message) = told(generate(&slow).await);
    assert_eq!(reason, "GENERATOR_UNAVAILABLE");
    assert_eq!(message, "the generator is unavailable: it is held");
    assert_eq!(candidates(&app).await.len(), 1);
    assert_eq!(
        generate(&app).await.unwrap().candidate.status,
        Status::AwaitingReview
    );
    assert_eq!(findings(world).await, "[]");
}

async fn what_a_caller_began_is_proposed_when_it_has_gone(world: &World) {
    let (app, generator, generating) = begun(world).await;
    generating.abort();
    assert!(generating.await.unwrap_err().is_cancelled());
    let (_, message) = told(generate(&app).await);
    assert_eq!(message, "an improvement of SUMMARIZE_DAILY is being generated");
    generator.go_on.notify_one();
    let open = timeout(PATIENCE, async {
        loop {
            if let Some(open) = app.outputs.stats(&key()).await.unwrap().open {
                break open;
            }
        }
    });
    let open = app
        .decisions
        .candidate(&namespace(), open.await.unwrap())
        .await
        .unwrap();
    assert_eq!(open.candidate.status, Status::AwaitingReview);
    assert_eq!(findings(world).await, "[]");
}

async fn a_process_that_ends_gives_up_what_is_generated(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (mut slow, generator) = held(&app);
    slow.outputs.lifecycle = Lifecycle::new();
    let lifecycle = slow.outputs.lifecycle.clone();
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    assert_eq!(lifecycle.shutdown(PATIENCE).await, Shutdown::Graceful);
    let (reason, message) = told(generating.await.unwrap());
    assert_eq!(reason, "GENERATOR_UNAVAILABLE");
    assert!(message.contains("shuts down"), "{message}");
    // No lease is left to wait for.
    generate(&app).await.unwrap();
    assert_eq!(findings(world).await, "[]");
}

async fn a_lease_that_expired_is_taken_over(world: &World) {
    let (_, generator, generating) = begun(world).await;
    learning_store::testing::tamper(&world.url, "UPDATE improvements SET leased_until = 1").await;
    let app = world.instance().await;
    let proposed = generate(&app).await.unwrap();
    generator.go_on.notify_one();
    let late = generating.await.unwrap();
    assert!(late.is_err(), "{late:?}");
    let open: Vec<_> = candidates(&app)
        .await
        .into_iter()
        .filter(|record| record.candidate.status == Status::AwaitingReview)
        .collect();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].candidate.id, proposed.candidate.id);
    assert_eq!(findings(world).await, "[]");
}

async fn where_the_policy_says_so_improvements_come_by_themselves(world: &World) {
    let app = world.instance().await;
    let mut failing = Failing::default();
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    assert_eq!(app.outputs.improve_once(&mut failing).await.unwrap(), 0);
    automatic(&app).await;
    let (failed, generator) = held(&app);
    generator.fails_with(GeneratorError::Unavailable("it is held".into()));
    generator.go_on.notify_one();
    assert_eq!(failed.outputs.improve_once(&mut failing).await.unwrap(), 0);
    assert_eq!(
        app.outputs.improve_once(&mut failing).await.unwrap(),
        0,
        "it backs off"
    );
    assert_eq!(
        app.outputs.improve_once(&mut Failing::default()).await.unwrap(),
        1
    );
    assert_eq!(
        app.outputs.improve_once(&mut Failing::default()).await.unwrap(),
        0,
        "one is open"
    );
}

async fn a_generator_that_refuses_is_left_alone_and_its_reason_logged(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    automatic(&app).await;
    let (refused, generator) = held(&app);
    generator.fails_with(GeneratorError::Refused("no such model".into()));
    generator.go_on.notify_one();
    let (logged, mut failing) = (Logged::default(), Failing::default());
    for looks in 1..=2 {
        let look = refused.outputs.improve_once(&mut failing);
        assert_eq!(look.with_subscriber(logged.clone()).await.unwrap(), 0);
        // The second look would wait for the generator, which is not told to go on again.
        assert_eq!(logged.lines().len(), 1, "after {looks} looks");
    }
    let line = logged.lines().concat();
    for part in [
        "WARN no improvement until the generator's settings are mended",
        "target=SUMMARIZE_DAILY",
        "the generator refuses the request: no such model",
        "delay=",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(app.outputs.stats(&key()).await.unwrap().hindrance, None);
}

/// A rating that says only that the output was bad.
fn silent(world: &World, output: &str) -> IngestEvent {
    let mut event = rating(world, output, "BAD", "1");
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    let correction = Correction::parse_rating(RatingFields {
        target: TARGET,
        value: "BAD",
        target_id: output,
        input_text: "the day's tickets",
        output_text: output,
        ..RatingFields::default()
    });
    recorded.effects = correction.unwrap().effects(&namespace(), None);
    event
}

async fn automatic(app: &Capabilities) {
    let update = PolicyUpdate {
        key: PolicyKey::of(&key()),
        etag: None,
        actor: operator(),
        reason: None,
        change: Box::new(|policy: &mut Policy| policy.review.automatic = true),
    };
    app.policies.update_policy(&update).await.unwrap();
}

async fn ratings_that_say_nothing_are_no_failure_and_newer_ones_are_waited_for(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let events = ["x", "y", "z"].map(|output| silent(world, output));
    apply(&app, &events).await;
    let (reason, message) = told(generate(&app).await);
    assert_eq!(reason, "NOTHING_SAID");
    assert_eq!(
        message,
        "SUMMARIZE_DAILY can't be improved: nothing in the bad ratings says what is wrong: they have neither issues nor \
         corrected texts"
    );
    automatic(&app).await;
    let tried = |app: &Capabilities| app.outputs.generations.count(Generation::Unimproved);
    let mut failing = Failing::default();
    for _ in 0..2 {
        assert_eq!(app.outputs.improve_once(&mut failing).await.unwrap(), 0);
        assert_eq!(tried(&app), 2, "by request and by itself, each once");
    }
    one(&app, &silent(world, "w")).await;
    assert_eq!(app.outputs.improve_once(&mut failing).await.unwrap(), 0);
    assert_eq!(tried(&app), 3);
    rate(world, &app, &["v"], "BAD").await;
    assert_eq!(app.outputs.improve_once(&mut failing).await.unwrap(), 1);
    for failure in [Generation::Unavailable, Generation::BadAnswer, Generation::Failed] {
        assert_eq!(app.outputs.generations.count(failure), 0);
    }
    assert_eq!(findings(world).await, "[]");
}

async fn ratings_are_taken_in_while_the_generator_works(world: &World) {
    let (app, generator, generating) = begun(world).await;
    // If ingest waited for the generator, which waits for this, it would never end.
    rate(world, &app, &["late"], "BAD").await;
    generator.go_on.notify_one();
    generating.await.unwrap().unwrap();
    let stats = app.outputs.stats(&key()).await.unwrap();
    assert_eq!(stats.since.bad, 1, "what came meanwhile is for the next");
}

async fn a_rating_that_arrives_late_counts_for_the_next_improvement(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    // These were accepted before all others.
    let late: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|output| rating(world, output, "BAD", "1"))
        .collect();
    let first = proposed(world, &app, "in time").await;
    approve(&app, first).await.unwrap();
    apply(&app, &late).await;
    let stats = app.outputs.stats(&key()).await.unwrap();
    assert_eq!((stats.counted.bad, stats.hindrance), (3, None));
    let next = generate(&app).await.unwrap();
    let next = app.outputs.improvement(&next).await.unwrap().unwrap();
    assert_eq!(next.record.counts.bad, 3);
    assert!(next.text.contains("fault of a"), "{}", next.text);
    let stats = app.outputs.stats(&key()).await.unwrap();
    assert_eq!(stats.since.bad, 0, "nothing came since the newest proposal");
    assert_eq!(findings(world).await, "[]");
}

async fn ratings_count_for_the_current_version_until_another_is(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let first = proposed(world, &app, "a").await;
    review(&app, first, None, rejection()).await.unwrap();
    let counted = async || app.outputs.stats(&key()).await.unwrap().counted;
    assert_eq!(counted().await.bad, 3, "a rejected proposal uses nothing up");
    automatic(&app).await;
    let mut failing = Failing::default();
    assert_eq!(
        app.outputs.improve_once(&mut failing).await.unwrap(),
        0,
        "what was rejected is not proposed again by itself"
    );
    rate(world, &app, &["b"], "BAD").await;
    assert_eq!(app.outputs.improve_once(&mut failing).await.unwrap(), 1);
    put(&app, "Summarise briefly.").await;
    let closed = app.outputs.stats(&key()).await.unwrap();
    assert_eq!((closed.counted.bad, closed.missing), (0, 3), "another version");
    put_again(&app, 1).await;
    assert_eq!(counted().await.bad, 4, "all that name the version");
    let since = [("c", "BAD", "7"), ("d", "GOOD", "7"), ("e", "GOOD", "1")];
    apply(
        &app,
        &since.map(|(output, value, version)| rating(world, output, value, version)),
    )
    .await;
    let stats = app.outputs.stats(&key()).await.unwrap();
    assert_eq!((stats.current, stats.counted.bad, stats.counted.good), (1, 5, 2));
    let next = generate(&app).await.unwrap();
    let next = app.outputs.improvement(&next).await.unwrap().unwrap();
    assert_eq!((next.record.counts.bad, next.record.counts.good), (5, 2));

    let (all, has_more) = app.outputs.all_stats(&namespace(), "", 20).await.unwrap();
    let all: Vec<(&str, u64)> = all
        .iter()
        .map(|(target, stats)| (&**target, stats.counted.bad))
        .collect();
    assert_eq!((all, has_more), (vec![(TARGET, 5)], false));
    let (none, _) = app.outputs.all_stats(&namespace(), TARGET, 20).await.unwrap();
    assert!(none.is_empty());
    assert_eq!(findings(world).await, "[]");
}

async fn put_again(app: &Capabilities, version: u32) {
    let wanted = UseVersion {
        key: key(),
        version,
        reason: None,
        actor: operator(),
    };
    app.outputs.use_version(&wanted).await.unwrap();
}
