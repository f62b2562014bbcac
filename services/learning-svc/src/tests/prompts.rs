//! Prompts: versions, and better ones from what people found wrong.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use emend_base::{Error, Lifecycle, lifecycle::Shutdown};
use emend_core::{
    CandidateId, Correction, Kind, Learned, Policy, Prompt, ResourceKey, ResourceValue, Status,
    contest::Verdict as Decided,
    outputs::{Improved, Material, RatingFields, Suggested, SuggestionMaterial},
};
use emend_serve::auth::Access;
use emend_store::audit::{Findings, IgnoreProgress};
use futures::{StreamExt as _, future::join_all};
use tokio::{sync::Notify, time::timeout};

use crate::{
    app::App,
    audit::Audit,
    contests::{
        review::{Reviewed, Verdict},
        store::CandidateRecord,
    },
    evidence::exports::ExportSlots,
    ingest::apply::{FeedbackChange, IngestEvent},
    log::revert::Revert,
    outputs::{
        examples::ExampleFormat,
        generator::{Generator, GeneratorError},
        metrics::Generation,
        preview::RunSlots,
        versions::UseVersion,
        worker::Failing,
    },
    policies::{store::PolicyKey, update::PolicyUpdate},
    resources::write::{Delete, Put},
    store,
    tests::{
        on_both_databases,
        world::{World, apply, approval, candidates, head, namespace, one, operator, rejection, review},
    },
};

on_both_databases!(
    an_improvement_needs_a_prompt_and_enough_bad_ratings_and_one_is_open_at_a_time,
    of_twenty_callers_on_two_replicas_one_generates,
    a_proposal_is_decided_once,
    of_twenty_approvals_one_wins,
    a_prompt_that_changed_meanwhile_ends_the_generation_and_leaves_nothing,
    what_was_redacted_meanwhile_does_not_come_back_in_a_prompt,
    a_generator_that_fails_leaves_nothing,
    what_a_caller_began_is_proposed_when_it_has_gone,
    a_process_that_ends_gives_up_what_is_generated,
    a_lease_that_expired_is_taken_over,
    an_edited_proposal_is_a_version_of_its_own,
    what_a_person_writes_closes_what_is_proposed,
    versions_count_over_labels_and_are_used_again,
    a_reverted_version_is_the_one_before,
    statistics_tell_versions_apart_and_say_what_is_missing,
    a_redacted_rating_is_counted_with_what_was_made_of_it,
    where_the_policy_says_so_improvements_come_by_themselves,
    ratings_that_say_nothing_are_no_failure_and_newer_ones_are_waited_for,
    examples_are_exported_with_a_stable_split,
    a_preview_shows_both_prompts_on_rated_inputs,
    ratings_are_taken_in_while_the_generator_works,
    a_rating_that_arrives_late_counts_for_the_next_improvement,
);

const TARGET: &str = "SUMMARIZE_DAILY";
/// How long a test waits for what goes on without it.
const PATIENCE: Duration = Duration::from_secs(30);

fn key_of(label: &str) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::Prompt), TARGET, label, "").unwrap()
}

fn key() -> ResourceKey {
    key_of("production")
}

fn value(text: &str) -> ResourceValue {
    ResourceValue::new(
        TARGET,
        Learned::Prompt(Prompt::new(text, vec![], vec![]).unwrap()),
    )
}

async fn put_to(app: &App, label: &str, text: &str) {
    app.put(&Put {
        key: key_of(label),
        value: value(text),
        etag: None,
        reason: None,
        actor: operator(),
    })
    .await
    .unwrap();
}

async fn put(app: &App, text: &str) {
    put_to(app, "production", text).await;
}

/// A rating of one output, made by a version of the prompt.
fn rating(world: &World, output: &str, value: &str, prompt_version: &str) -> IngestEvent {
    let mut event = world.phrase("ann", "a", "b");
    let FeedbackChange::Recorded(recorded) = &mut event.what else {
        unreachable!("it was recorded")
    };
    let issues = [format!("fault of {output}"), "vague".to_owned()];
    let correction = Correction::parse_rating(
        RatingFields {
            target: TARGET,
            value,
            target_id: output,
            input_text: "the day's tickets",
            output_text: output,
            prompt_version,
            issues: if value == "BAD" { &issues } else { &[] },
            corrected_text: if value == "BAD" { "forty tickets" } else { "" },
            ..RatingFields::default()
        },
        &[],
    );
    recorded.effects = correction.unwrap().effects(&namespace(), None);
    event
}

async fn rate(world: &World, app: &App, outputs: &[&str], value: &str) -> Vec<IngestEvent> {
    let events: Vec<_> = outputs
        .iter()
        .map(|output| rating(world, output, value, "1"))
        .collect();
    apply(app, &events).await;
    events
}

async fn generate(app: &App) -> Result<CandidateRecord, Error> {
    app.generate_improvement(&key(), &operator()).await
}

fn told<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, String) {
    let error = result.unwrap_err();
    (error.reason(), error.to_string())
}

/// The text and version that apply under a label.
async fn current_of(app: &App, label: &str) -> Option<(String, u32)> {
    let records = app.store.contents().await.unwrap();
    let contest = key_of(label).contest_id();
    let (.., value) = records.resources.iter().find(|(of, ..)| *of == contest)?;
    match emend_wire::value::decode(value).unwrap().learned {
        Learned::Prompt(prompt) => Some((prompt.text().to_owned(), prompt.version)),
        other => panic!("{other:?}"),
    }
}

async fn version(app: &App) -> Option<u32> {
    current_of(app, "production").await.map(|(_, version)| version)
}

/// What an audit finds.
async fn findings(world: &World) -> String {
    let mut audit = Audit::open(&world.url).await.unwrap();
    let mut findings = Findings::default();
    audit.check(&mut findings, &mut IgnoreProgress).await.unwrap();
    let mut entries = audit.entries();
    while let Some(entry) = entries.next().await {
        if let Some(entry) = findings.readable(entry).unwrap() {
            entry.check(&mut findings);
        }
    }
    format!("{:?}", findings.kept())
}

async fn approve(app: &App, id: CandidateId) -> Result<Reviewed, Error> {
    review(app, id, None, approval()).await
}

async fn an_improvement_needs_a_prompt_and_enough_bad_ratings_and_one_is_open_at_a_time(world: &World) {
    let app = world.instance().await;
    rate(world, &app, &["x", "y"], "BAD").await;
    assert_eq!(told(generate(&app).await).0, "NO_PROMPT");
    put(&app, "Summarise.").await;
    assert_eq!(version(&app).await, Some(1));
    let (reason, message) = told(generate(&app).await);
    assert_eq!(reason, "TOO_FEW_RATINGS");
    assert_eq!(
        message,
        "an improvement of SUMMARIZE_DAILY needs 1 more bad rating"
    );
    rate(world, &app, &["z"], "BAD").await;
    rate(world, &app, &["g"], "GOOD").await;
    let before = head(&app).await;
    let proposed = generate(&app).await.unwrap();
    assert_eq!(head(&app).await, before, "a proposal publishes nothing");
    assert_eq!(proposed.candidate.status, Status::AwaitingReview);
    let (reason, message) = told(generate(&app).await);
    assert_eq!(reason, "IMPROVEMENT_OPEN");
    assert!(message.contains(&proposed.candidate.id.to_string()), "{message}");
    let improvement = app.improvement(&proposed).await.unwrap().unwrap();
    assert_eq!(improvement.previous_text, "Summarise.");
    assert!(
        improvement
            .text
            .starts_with("Summarise.\n\n## Guidelines from feedback\n")
    );
    assert!(improvement.text.contains("- vague (×3)"), "{}", improvement.text);
    let counts = improvement.record.counts;
    assert_eq!((counts.bad, counts.good, counts.neutral), (3, 1, 0));
    assert_eq!(improvement.record.generator, "embedded");

    approve(&app, proposed.candidate.id).await.unwrap();
    assert_eq!(head(&app).await, before + 1, "one revision");
    assert_eq!(version(&app).await, Some(2));
    let (reason, message) = told(generate(&app).await);
    assert_eq!(
        (reason, message.as_str()),
        (
            "TOO_FEW_RATINGS",
            "an improvement of SUMMARIZE_DAILY needs 3 more bad ratings"
        ),
        "earlier ratings are used up"
    );
    assert_eq!(findings(world).await, "[]");
}

async fn of_twenty_callers_on_two_replicas_one_generates(world: &World) {
    let apps = [world.instance().await, world.instance().await];
    put(&apps[0], "Summarise.").await;
    rate(world, &apps[0], &["x", "y", "z"], "BAD").await;
    let calls = (0..20).map(|number| {
        let app = apps[number % 2].clone();
        tokio::spawn(async move { generate(&app).await })
    });
    let mut proposed = 0;
    for called in join_all(calls).await {
        match called.unwrap() {
            Ok(_) => proposed += 1,
            Err(error) => assert_eq!(error.reason(), "IMPROVEMENT_OPEN", "{error}"),
        }
    }
    assert_eq!(proposed, 1);
    let open = candidates(&apps[1]).await;
    let open = open
        .iter()
        .filter(|of| of.candidate.status == Status::AwaitingReview);
    assert_eq!(open.count(), 1);
    assert_eq!(findings(world).await, "[]");
}

async fn proposed(world: &World, app: &App, prefix: &str) -> CandidateId {
    let outputs: Vec<String> = (0..3).map(|number| format!("{prefix} {number}")).collect();
    rate(
        world,
        app,
        &outputs.iter().map(String::as_str).collect::<Vec<_>>(),
        "BAD",
    )
    .await;
    generate(app).await.unwrap().candidate.id
}

async fn a_proposal_is_decided_once(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let first = proposed(world, &app, "a").await;
    approve(&app, first).await.unwrap();
    assert_eq!(told(approve(&app, first).await).0, "ALREADY_APPLIED");
    assert_eq!(
        told(review(&app, first, None, rejection()).await).0,
        "ALREADY_APPLIED"
    );
    let second = proposed(world, &app, "b").await;
    review(&app, second, None, rejection()).await.unwrap();
    assert_eq!(told(approve(&app, second).await).0, "ALREADY_REJECTED");
    assert_eq!(
        told(review(&app, second, None, rejection()).await).0,
        "ALREADY_REJECTED"
    );
    assert_eq!(version(&app).await, Some(2), "a rejection changes nothing");
    let third = proposed(world, &app, "c").await;
    let record = app.candidate(&namespace(), third).await.unwrap();
    assert_eq!(
        record.candidate.proposal.map(|kept| kept.version),
        Some(4),
        "a rejected number is not used again"
    );
    assert_eq!(findings(world).await, "[]");
}

async fn of_twenty_approvals_one_wins(world: &World) {
    let apps = [world.instance().await, world.instance().await];
    put(&apps[0], "Summarise.").await;
    let id = proposed(world, &apps[0], "a").await;
    let before = head(&apps[0]).await;
    let calls = (0..20).map(|number| {
        let app = apps[number % 2].clone();
        tokio::spawn(async move { approve(&app, id).await })
    });
    let done: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
    for refused in done.into_iter().filter_map(Result::err) {
        assert_eq!(refused.reason(), "ALREADY_APPLIED");
    }
    assert_eq!(head(&apps[0]).await, before + 1);
}

/// A generator that waits until it is told to go on.
#[derive(Default)]
struct Held {
    asked: Notify,
    go_on: Notify,
    fails: AtomicBool,
}

#[async_trait]
impl Generator for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError> {
        self.asked.notify_one();
        self.go_on.notified().await;
        if self.fails.load(Ordering::SeqCst) {
            return Err(GeneratorError::Unavailable("it is held".into()));
        }
        Ok(Improved {
            text: format!("{} Better.", material.prompt.text()),
            reason: "because".into(),
        })
    }

    async fn suggest(&self, _: &SuggestionMaterial) -> Result<Vec<Suggested>, GeneratorError> {
        Ok(Vec::new())
    }

    async fn run(&self, prompt: &str, input: &str) -> Option<Result<String, GeneratorError>> {
        Some(if prompt.contains("Better") {
            Ok(format!("{prompt}|{input}"))
        } else {
            Err(GeneratorError::BadAnswer("worse".into()))
        })
    }
}

fn held(app: &App) -> (App, Arc<Held>) {
    let generator = Arc::new(Held::default());
    let app = App {
        generator: Arc::clone(&generator) as Arc<dyn Generator>,
        ..app.clone()
    };
    (app, generator)
}

async fn a_prompt_that_changed_meanwhile_ends_the_generation_and_leaves_nothing(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    let (reason, message) = told(generate(&app).await);
    assert_eq!(reason, "IMPROVEMENT_OPEN");
    assert_eq!(message, "an improvement of SUMMARIZE_DAILY is being generated");
    put(&app, "Summarise briefly.").await;
    generator.go_on.notify_one();
    assert!(matches!(generating.await.unwrap(), Err(Error::Aborted { .. })));
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
    generator.fails.store(true, Ordering::SeqCst);
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
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    generating.abort();
    assert!(generating.await.unwrap_err().is_cancelled());
    let (_, message) = told(generate(&app).await);
    assert_eq!(message, "an improvement of SUMMARIZE_DAILY is being generated");
    generator.go_on.notify_one();
    let open = timeout(PATIENCE, async {
        loop {
            if let Some(open) = app.output_stats(&key()).await.unwrap().open {
                break open;
            }
        }
    });
    let open = app.candidate(&namespace(), open.await.unwrap()).await.unwrap();
    assert_eq!(open.candidate.status, Status::AwaitingReview);
    assert_eq!(findings(world).await, "[]");
}

async fn a_process_that_ends_gives_up_what_is_generated(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (mut slow, generator) = held(&app);
    slow.lifecycle = Lifecycle::new();
    let lifecycle = slow.lifecycle.clone();
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
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    store::tamper(&world.url, "UPDATE improvements SET leased_until = 1").await;
    let app = world.instance().await;
    let proposed = generate(&app).await.unwrap();
    generator.go_on.notify_one();
    let late = generating.await.unwrap();
    assert!(late.is_err(), "{late:?}");
    let open: Vec<_> = candidates(&app)
        .await
        .into_iter()
        .filter(|of| of.candidate.status == Status::AwaitingReview)
        .collect();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].candidate.id, proposed.candidate.id);
    assert_eq!(findings(world).await, "[]");
}

async fn an_edited_proposal_is_a_version_of_its_own(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let id = proposed(world, &app, "a").await;
    let edited = Verdict::Approve {
        edited: Some(value("Summarise well.")),
        reason: None,
    };
    let reviewed = review(&app, id, None, edited).await.unwrap();
    assert_ne!(reviewed.candidate.candidate.id, id);
    assert_eq!(reviewed.candidate.candidate.edited_from, Some(id));
    assert_eq!(
        current_of(&app, "production").await,
        Some(("Summarise well.".to_owned(), 3))
    );
    let original = app.candidate(&namespace(), id).await.unwrap().candidate;
    assert_eq!(original.status, Status::Superseded);
    assert_eq!(app.output_stats(&key()).await.unwrap().open, None);
    assert_eq!(findings(world).await, "[]");
}

async fn what_a_person_writes_closes_what_is_proposed(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let id = proposed(world, &app, "a").await;
    put(&app, "Summarise otherwise.").await;
    let closed = app.candidate(&namespace(), id).await.unwrap().candidate;
    assert_eq!(closed.status, Status::Superseded);
    assert_eq!(closed.proposal.map(|kept| kept.verdict), Some(Decided::Closed));
    assert_eq!(closed.proposal.and_then(|kept| kept.decided_at), None);
    assert_eq!(version(&app).await, Some(3));
    app.delete(&Delete {
        key: key(),
        etag: None,
        reason: None,
        actor: operator(),
    })
    .await
    .unwrap();
    assert_eq!(version(&app).await, None);
    assert_eq!(told(generate(&app).await).0, "NO_PROMPT");
    put(&app, "Once more.").await;
    assert_eq!(version(&app).await, Some(4));
    assert_eq!(findings(world).await, "[]");
}

async fn use_version(app: &App, label: &str, version: u32) -> Result<Vec<String>, Error> {
    let wanted = UseVersion {
        key: key_of(label),
        version,
        reason: None,
        actor: operator(),
    };
    let (version, ..) = app.use_version(&wanted).await?;
    Ok(version.labels)
}

async fn versions_count_over_labels_and_are_used_again(world: &World) {
    let app = world.instance().await;
    put(&app, "One.").await;
    put_to(&app, "staging", "Two.").await;
    put(&app, "Three.").await;
    let waiting = proposed(world, &app, "a").await;
    assert_eq!(current_of(&app, "staging").await, Some(("Two.".into(), 2)));
    assert_eq!(told(use_version(&app, "staging", 4).await).0, "NOT_APPROVED");
    assert_eq!(told(use_version(&app, "staging", 5).await).0, "NOT_FOUND");
    assert_eq!(told(use_version(&app, "staging", 2).await).0, "ALREADY_APPLIED");
    assert_eq!(
        use_version(&app, "production", 2).await.unwrap(),
        ["production", "staging"]
    );
    assert_eq!(current_of(&app, "production").await, Some(("Two.".into(), 2)));
    let closed = app.candidate(&namespace(), waiting).await.unwrap().candidate;
    assert_eq!(closed.status, Status::Superseded);
    assert_eq!(use_version(&app, "production", 1).await.unwrap(), ["production"]);
    assert_eq!(
        use_version(&app, "production", 2).await.unwrap(),
        ["production", "staging"]
    );
    let (versions, more) = app.prompt_versions(&key(), None, 3).await.unwrap();
    let numbers: Vec<_> = versions
        .iter()
        .map(|(of, _)| (of.record.candidate.proposal.unwrap().version, of.labels.len()))
        .collect();
    assert_eq!((numbers, more), (vec![(4, 0), (3, 0), (2, 2)], true));
    let (rest, more) = app.prompt_versions(&key(), Some(2), 3).await.unwrap();
    assert_eq!((rest.len(), more), (1, false));
    assert_eq!(findings(world).await, "[]");
}

async fn a_reverted_version_is_the_one_before(world: &World) {
    let app = world.instance().await;
    put(&app, "One.").await;
    put(&app, "Two.").await;
    let revert = Revert {
        namespace: namespace(),
        revision: emend_core::Revision(head(&app).await),
        reason: "worse".into(),
        actor: operator(),
    };
    app.revert(&revert, &Access::open()).await.unwrap();
    assert_eq!(current_of(&app, "production").await, Some(("One.".into(), 1)));
    put(&app, "Three.").await;
    assert_eq!(version(&app).await, Some(3));
    assert_eq!(findings(world).await, "[]");
}

async fn statistics_tell_versions_apart_and_say_what_is_missing(world: &World) {
    let app = world.instance().await;
    let stats = app.output_stats(&key()).await.unwrap();
    assert_eq!((stats.hindrance, stats.missing), (Some("NO_PROMPT"), 3));
    put(&app, "Summarise.").await;
    let first = rating(world, "x", "BAD", "1");
    let again = rating(world, "x", "GOOD", "1");
    world.clock.advance(jiff::SignedDuration::from_secs(60));
    let events = [
        first,
        again,
        rating(world, "y", "BAD", "2"),
        rating(world, "z", "NEUTRAL", "2"),
        rating(world, "w", "BAD", "2"),
    ];
    apply(&app, &events).await;
    let stats = app.output_stats(&key()).await.unwrap();
    let rows: Vec<_> = stats
        .versions
        .iter()
        .map(|of| {
            (
                of.prompt_version.as_str(),
                of.counts.good,
                of.counts.neutral,
                of.counts.bad,
            )
        })
        .collect();
    assert_eq!(rows, [("2", 0, 1, 2), ("1", 1, 0, 0)]);
    assert!(stats.versions[0].first > stats.versions[1].last);
    assert_eq!((stats.hindrance, stats.missing), (Some("TOO_FEW_RATINGS"), 1));
    one(&app, &world.retraction(&events[1])).await;
    let stats = app.output_stats(&key()).await.unwrap();
    assert_eq!((stats.hindrance, stats.since.bad), (None, 3));
    let id = generate(&app).await.unwrap().candidate.id;
    let stats = app.output_stats(&key()).await.unwrap();
    assert_eq!(
        (stats.hindrance, stats.open),
        (Some("IMPROVEMENT_OPEN"), Some(id))
    );
    assert_eq!((stats.since.bad, stats.missing), (0, 3));
    assert!(stats.proposed_at.is_some());
}

async fn a_redacted_rating_is_counted_with_what_was_made_of_it(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let events = rate(world, &app, &["x", "y", "z"], "BAD").await;
    let record = generate(&app).await.unwrap();
    one(&app, &world.redaction(&events[0])).await;
    one(&app, &world.retraction(&events[1])).await;
    let improvement = app.improvement(&record).await.unwrap().unwrap();
    assert_eq!(improvement.record.redacted, 1, "a retraction is no redaction");
    let (versions, _) = app.prompt_versions(&key(), None, 10).await.unwrap();
    let redacted: Vec<u64> = versions.iter().map(|(_, redacted)| *redacted).collect();
    assert_eq!(redacted, [1, 0]);

    // Operators find all such texts: the proposal, and what a person made of it.
    let edited = Verdict::Approve {
        edited: Some(value("Summarise, without being vague.")),
        reason: None,
    };
    review(&app, record.candidate.id, None, edited).await.unwrap();
    let listed = async |target: Option<&ResourceKey>, after, limit| {
        let page = app.redacted_versions(&namespace(), target, after, limit).await;
        page.unwrap()
    };
    let all = listed(None, None, 10).await;
    let found: Vec<_> = all
        .versions
        .iter()
        .map(|(of, redacted)| {
            let kept = of.record.candidate.proposal.unwrap();
            (kept.version, of.labels.len(), *redacted)
        })
        .collect();
    assert_eq!((found, all.more), (vec![(3, 1, 1), (2, 0, 1)], false));
    let first = listed(Some(&key()), None, 1).await;
    assert!(first.more);
    let rest = listed(Some(&key()), first.places.last().copied(), 1).await;
    assert!(!rest.more && rest.versions[0].0.record.candidate.id == record.candidate.id);
    let another = ResourceKey::parse("fund-admin", Some(Kind::Prompt), "INTERPRET", "", "").unwrap();
    assert_eq!(listed(Some(&another), None, 10).await.versions, []);
    let elsewhere = emend_core::Namespace::parse("another").unwrap();
    let none = app.redacted_versions(&elsewhere, None, None, 10).await.unwrap();
    assert_eq!(none.versions, []);
    assert_eq!(findings(world).await, "[]");
}

async fn where_the_policy_says_so_improvements_come_by_themselves(world: &World) {
    let app = world.instance().await;
    let mut failing = Failing::default();
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    assert_eq!(app.improve_once(&mut failing).await.unwrap(), 0);
    automatic(&app).await;
    let (failed, generator) = held(&app);
    generator.fails.store(true, Ordering::SeqCst);
    generator.go_on.notify_one();
    assert_eq!(failed.improve_once(&mut failing).await.unwrap(), 0);
    assert_eq!(app.improve_once(&mut failing).await.unwrap(), 0, "it backs off");
    assert_eq!(app.improve_once(&mut Failing::default()).await.unwrap(), 1);
    assert_eq!(
        app.improve_once(&mut Failing::default()).await.unwrap(),
        0,
        "one is open"
    );
}

/// A rating that says only that the output was bad.
fn silent(world: &World, output: &str) -> IngestEvent {
    let mut event = rating(world, output, "BAD", "1");
    let FeedbackChange::Recorded(recorded) = &mut event.what else {
        unreachable!("it was recorded")
    };
    let correction = Correction::parse_rating(
        RatingFields {
            target: TARGET,
            value: "BAD",
            target_id: output,
            input_text: "the day's tickets",
            output_text: output,
            ..RatingFields::default()
        },
        &[],
    );
    recorded.effects = correction.unwrap().effects(&namespace(), None);
    event
}

async fn automatic(app: &App) {
    let update = PolicyUpdate {
        key: PolicyKey::of(&key()),
        etag: None,
        actor: operator(),
        reason: None,
        change: Box::new(|policy: &mut Policy| policy.review.automatic = true),
    };
    app.update_policy(&update).await.unwrap();
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
    let tried = |app: &App| app.generations.count(Generation::Unimproved);
    let mut failing = Failing::default();
    for _ in 0..2 {
        assert_eq!(app.improve_once(&mut failing).await.unwrap(), 0);
        assert_eq!(tried(&app), 2, "by request and by itself, each once");
    }
    one(&app, &silent(world, "w")).await;
    assert_eq!(app.improve_once(&mut failing).await.unwrap(), 0);
    assert_eq!(tried(&app), 3);
    rate(world, &app, &["v"], "BAD").await;
    assert_eq!(app.improve_once(&mut failing).await.unwrap(), 1);
    for failure in [Generation::Unavailable, Generation::BadAnswer, Generation::Failed] {
        assert_eq!(app.generations.count(failure), 0);
    }
    assert_eq!(findings(world).await, "[]");
}

async fn examples_are_exported_with_a_stable_split(world: &World) {
    let app = world.instance().await;
    rate(world, &app, &["x", "y"], "BAD").await;
    let many: Vec<String> = (0..70).map(|number| format!("g {number}")).collect();
    rate(
        world,
        &app,
        &many.iter().map(String::as_str).collect::<Vec<_>>(),
        "GOOD",
    )
    .await;
    rate(world, &app, &["n"], "NEUTRAL").await;
    let slots = ExportSlots::default();
    let export = async |format, prompt| {
        let pages = app.export_examples(&key(), format, prompt, slots.take().unwrap());
        let pages: Vec<Vec<String>> = pages.map(Result::unwrap).collect().await;
        let lines = pages.concat();
        let lines = lines
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    let chat = export(ExampleFormat::Chat, None).await;
    assert_eq!(chat.len(), 72);
    assert_eq!(chat[0]["messages"][1]["content"], "forty tickets");
    assert_eq!(chat[2]["messages"][1]["content"], "g 0");
    assert_eq!(chat[0]["target"], TARGET);
    let splits = |split: &str| chat.iter().filter(|line| line["split"] == split).count();
    assert!(splits("train") > 40 && splits("train") + splits("validation") + splits("test") == 72);
    let prompt = Prompt::new("Summarise.", vec![], vec![]).unwrap();
    let again = export(ExampleFormat::Chat, Some(prompt.clone())).await;
    assert_eq!(again[0]["messages"][0]["role"], "system");
    assert!(
        again
            .iter()
            .zip(&chat)
            .all(|(one, other)| one["split"] == other["split"])
    );
    let pairs = export(ExampleFormat::Preference, Some(prompt)).await;
    assert_eq!(pairs.len(), 2);
    assert_eq!(pairs[0]["prompt"], "Summarise.\n\nthe day's tickets");
    assert_eq!(
        (&pairs[0]["chosen"], &pairs[0]["rejected"]),
        (&"forty tickets".into(), &"x".into())
    );
    assert_eq!(pairs[0]["split"], chat[0]["split"]);
}

async fn a_preview_shows_both_prompts_on_rated_inputs(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let (app, generator) = held(&app);
    generator.go_on.notify_one();
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    rate(world, &app, &["g"], "GOOD").await;
    let id = generate(&app).await.unwrap().candidate.id;
    let slots = RunSlots::default();
    let preview = app.preview(&namespace(), id, 4, &slots).await.unwrap();
    let outputs: Vec<_> = preview
        .inputs
        .iter()
        .map(|of| of.rated.texts.output.as_str())
        .collect();
    assert_eq!(outputs, ["z", "y", "x", "g"]);
    assert_eq!(
        preview.inputs[0].prompts,
        [
            "Summarise.\n\nthe day's tickets",
            "Summarise. Better.\n\nthe day's tickets"
        ]
    );
    let runs = preview.inputs[0].runs.clone().unwrap();
    assert_eq!(runs[1], Ok("Summarise. Better.|the day's tickets".to_owned()));
    assert_eq!(
        runs[0],
        Err("the generator's answer can't be used: worse".to_owned())
    );
    assert!(preview.was_run && preview.improvement.is_some());
    approve(&app, id).await.unwrap();
    assert_eq!(told(app.preview(&namespace(), id, 4, &slots).await).0, "NOT_OPEN");
}

async fn ratings_are_taken_in_while_the_generator_works(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    rate(world, &app, &["x", "y", "z"], "BAD").await;
    let (slow, generator) = held(&app);
    let generating = tokio::spawn(async move { generate(&slow).await });
    generator.asked.notified().await;
    // If ingest waited for the generator, which waits for this, it would never end.
    rate(world, &app, &["late"], "BAD").await;
    generator.go_on.notify_one();
    generating.await.unwrap().unwrap();
    let stats = app.output_stats(&key()).await.unwrap();
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
    let stats = app.output_stats(&key()).await.unwrap();
    assert_eq!((stats.since.bad, stats.hindrance), (3, None));
    let next = generate(&app).await.unwrap();
    let next = app.improvement(&next).await.unwrap().unwrap();
    assert_eq!(next.record.counts.bad, 3);
    assert!(next.text.contains("fault of a"), "{}", next.text);
    let stats = app.output_stats(&key()).await.unwrap();
    assert_eq!(stats.since.bad, 0, "what was used counts no more");
    assert_eq!(findings(world).await, "[]");
}
