//! Prompts: versions, and better ones from what people found wrong.

mod generation;
mod versions;

use std::time::Duration;

use emend_base::Error;
use emend_core::{
    CandidateId, Correction, Kind, Learned, Prompt, ResourceKey, ResourceValue, Status,
    candidate::Verdict as Decided, ratings::RatingFields,
};
use emend_store::audit::{Findings, IgnoreProgress};
use futures::{StreamExt as _, future::join_all};
use learning_store::audit::{Audit, check_entry};
use learning_store::contests::CandidateRecord;

use crate::{
    capabilities::Capabilities,
    decisions::review::{Reviewed, Verdict},
    ingest::event::{FeedbackChange, IngestEvent},
    resources::write::{Delete, Put},
    tests::{
        on_both_databases,
        world::{World, apply, approval, candidates, head, namespace, operator, rejection, review},
    },
};

on_both_databases!(
    an_improvement_needs_a_prompt_and_enough_bad_ratings_and_one_is_open_at_a_time,
    of_twenty_callers_on_two_replicas_one_generates,
    a_proposal_is_decided_once,
    of_twenty_approvals_one_wins,
    an_edited_proposal_is_a_version_of_its_own,
    what_a_person_writes_closes_what_is_proposed,
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

async fn put_to(app: &Capabilities, label: &str, text: &str) {
    app.resources
        .put(&Put {
            key: key_of(label),
            value: value(text),
            etag: None,
            reason: None,
            actor: operator(),
        })
        .await
        .unwrap();
}

async fn put(app: &Capabilities, text: &str) {
    put_to(app, "production", text).await;
}

/// A rating of one output, made by a version of the prompt.
fn rating(world: &World, output: &str, value: &str, prompt_version: &str) -> IngestEvent {
    let mut event = world.phrase("ann", "a", "b");
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    let issues = [format!("fault of {output}"), "vague".to_owned()];
    let correction = Correction::parse_rating(RatingFields {
        target: TARGET,
        value,
        target_id: output,
        input_text: "the day's tickets",
        output_text: output,
        prompt_version,
        issues: if value == "BAD" { &issues } else { &[] },
        corrected_text: if value == "BAD" { "forty tickets" } else { "" },
        ..RatingFields::default()
    });
    recorded.effects = correction.unwrap().effects(&namespace(), None);
    event
}

async fn rate(world: &World, app: &Capabilities, outputs: &[&str], value: &str) -> Vec<IngestEvent> {
    let events: Vec<_> = outputs
        .iter()
        .map(|output| rating(world, output, value, "1"))
        .collect();
    apply(app, &events).await;
    events
}

async fn generate(app: &Capabilities) -> Result<CandidateRecord, Error> {
    app.outputs.generate_improvement(&key(), &operator()).await
}

fn told<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, String) {
    let error = result.unwrap_err();
    (error.reason(), error.to_string())
}

/// The text and version that apply under a label.
async fn current_of(app: &Capabilities, label: &str) -> Option<(String, u32)> {
    let records = app.store.contents().await.unwrap();
    let contest = key_of(label).contest_id();
    let (.., value) = records.resources.iter().find(|(id, ..)| *id == contest)?;
    match emend_wire::value::decode(value).unwrap().learned {
        Learned::Prompt(prompt) => Some((prompt.text().to_owned(), prompt.version)),
        other => panic!("{other:?}"),
    }
}

async fn version(app: &Capabilities) -> Option<u32> {
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
            check_entry(&entry, &mut findings);
        }
    }
    format!("{:?}", findings.kept())
}

async fn approve(app: &Capabilities, id: CandidateId) -> Result<Reviewed, Error> {
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
    let improvement = app.outputs.improvement(&proposed).await.unwrap().unwrap();
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
        .filter(|record| record.candidate.status == Status::AwaitingReview);
    assert_eq!(open.count(), 1);
    assert_eq!(findings(world).await, "[]");
}

async fn proposed(world: &World, app: &Capabilities, prefix: &str) -> CandidateId {
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
    let record = app.decisions.candidate(&namespace(), third).await.unwrap();
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

async fn an_edited_proposal_is_a_version_of_its_own(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let id = proposed(world, &app, "a").await;
    let edited = Verdict::Approve {
        edited: Some(value("Summarise well.")),
        reason: None,
        accept_redacted: false,
    };
    let reviewed = review(&app, id, None, edited).await.unwrap();
    assert_ne!(reviewed.candidate.candidate.id, id);
    assert_eq!(reviewed.candidate.candidate.edited_from, Some(id));
    assert_eq!(
        current_of(&app, "production").await,
        Some(("Summarise well.".to_owned(), 3))
    );
    let original = app.decisions.candidate(&namespace(), id).await.unwrap().candidate;
    assert_eq!(original.status, Status::Superseded);
    assert_eq!(app.outputs.stats(&key()).await.unwrap().open, None);
    assert_eq!(findings(world).await, "[]");
}

async fn what_a_person_writes_closes_what_is_proposed(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let id = proposed(world, &app, "a").await;
    put(&app, "Summarise otherwise.").await;
    let closed = app.decisions.candidate(&namespace(), id).await.unwrap().candidate;
    assert_eq!(closed.status, Status::Superseded);
    assert_eq!(closed.proposal.map(|kept| kept.verdict), Some(Decided::Closed));
    assert_eq!(closed.proposal.and_then(|kept| kept.decided_at), None);
    assert_eq!(version(&app).await, Some(3));
    app.resources
        .delete(&Delete {
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
