//! Versions of prompts, and what is told of them.

use emend_base::{Clock as _, Error};
use emend_core::{Kind, Prompt, ResourceKey, Status};
use emend_serve::auth::Access;
use futures::StreamExt as _;
use learning_store::actor::Actor;

use super::{
    TARGET, approve, current_of, findings, generate, generation::held, key, key_of, proposed, put, put_to,
    rate, rating, told, value, version,
};
use crate::{
    capabilities::Capabilities,
    decisions::{
        review::{Review, Verdict},
        undo::Undo,
    },
    export_slots::ExportSlots,
    log::revert::Revert,
    outputs::{examples::ExampleFormat, preview::RunSlots, versions::UseVersion},
    resources::write::Put,
    tests::{
        on_both_databases,
        world::{World, apply, approval, head, namespace, one, operator, rejection, review},
    },
};

on_both_databases!(
    versions_count_over_labels_and_are_used_again,
    the_history_of_a_version_names_who_decided_what_and_when,
    a_reverted_version_is_the_one_before,
    statistics_tell_versions_apart_and_say_what_is_missing,
    a_redacted_rating_is_counted_with_what_was_made_of_it,
    examples_are_exported_with_a_stable_split,
    an_output_is_exported_once_however_many_rated_it,
    a_preview_shows_both_prompts_on_rated_inputs,
    a_proposal_is_open_again_after_either_decision_is_undone,
);

async fn a_proposal_is_open_again_after_either_decision_is_undone(world: &World) {
    let app = world.instance().await;
    put(&app, "One.").await;
    let candidate = proposed(world, &app, "a").await;
    let undo = Undo {
        namespace: namespace(),
        candidate,
        etag: None,
        actor: operator(),
    };
    review(&app, candidate, None, rejection()).await.unwrap();
    let open = app
        .decisions
        .undo(&undo, &Access::open())
        .await
        .unwrap()
        .candidate;
    assert_eq!(open.candidate.status, Status::AwaitingReview);
    assert_eq!(open.candidate.proposal.unwrap().decided_at, None);
    review(&app, candidate, None, approval()).await.unwrap();
    assert_ne!(current_of(&app, "production").await, Some(("One.".into(), 1)));
    let undone = app.decisions.undo(&undo, &Access::open()).await.unwrap();
    assert_eq!(undone.candidate.candidate.status, Status::AwaitingReview);
    assert_eq!(current_of(&app, "production").await, Some(("One.".into(), 1)));
    assert_eq!(findings(world).await, "[]");
    // It was made for what is current again.
    review(&app, candidate, None, approval()).await.unwrap();
    assert_eq!(version(&app).await, Some(2));
    assert_eq!(findings(world).await, "[]");
}

async fn use_version(app: &Capabilities, label: &str, version: u32) -> Result<Vec<String>, Error> {
    let wanted = UseVersion {
        key: key_of(label),
        version,
        reason: None,
        actor: operator(),
    };
    let (version, ..) = app.outputs.use_version(&wanted).await?;
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
    let closed = app
        .decisions
        .candidate(&namespace(), waiting)
        .await
        .unwrap()
        .candidate;
    assert_eq!(closed.status, Status::Superseded);
    assert_eq!(use_version(&app, "production", 1).await.unwrap(), ["production"]);
    assert_eq!(
        use_version(&app, "production", 2).await.unwrap(),
        ["production", "staging"]
    );
    let (versions, more) = app.outputs.prompt_versions(&key(), None, 3).await.unwrap();
    let numbers: Vec<_> = versions
        .iter()
        .map(|(version, _)| {
            (
                version.record.candidate.proposal.unwrap().version,
                version.labels.len(),
            )
        })
        .collect();
    assert_eq!((numbers, more), (vec![(4, 0), (3, 0), (2, 2)], true));
    let (rest, more) = app.outputs.prompt_versions(&key(), Some(2), 3).await.unwrap();
    assert_eq!((rest.len(), more), (1, false));
    assert_eq!(findings(world).await, "[]");
}

/// What was decided about a version: under which label, from which status to which, by whom, why, and after how many minutes.
type Decided = (String, Option<Status>, Status, String, String, i64);

async fn decided(app: &Capabilities, number: u32) -> Vec<Decided> {
    let (versions, _) = app
        .outputs
        .prompt_versions(&key(), Some(number + 1), 1)
        .await
        .unwrap();
    let decided = versions[0].0.history.iter().map(|(label, transition)| {
        let minutes = transition.at.as_second() / 60 % 60;
        let by = transition.actor.on_behalf_of.clone();
        (
            label.clone(),
            transition.from,
            transition.to,
            by,
            transition.reason.clone(),
            minutes,
        )
    });
    decided.collect()
}

async fn the_history_of_a_version_names_who_decided_what_and_when(world: &World) {
    use Status::{Applied, AwaitingReview, Pending, Superseded};

    let app = world.instance().await;
    let by = |person: &str| Actor {
        on_behalf_of: person.to_owned(),
        ..operator()
    };
    let start = world.clock.now().as_second() / 60 % 60;
    let later = || world.clock.advance(jiff::SignedDuration::from_mins(1));
    let first = Put {
        key: key(),
        value: value("One."),
        etag: None,
        reason: Some("the first".into()),
        actor: by("dana"),
    };
    app.resources.put(&first).await.unwrap();
    later();
    let waiting = proposed(world, &app, "a").await;
    later();
    let approval = Review {
        namespace: namespace(),
        candidate: waiting,
        etag: None,
        actor: by("kim"),
        operation: None,
        verdict: Verdict::Approve {
            edited: None,
            reason: Some("clearer".into()),
            accept_redacted: false,
        },
    };
    app.decisions.review(&approval, &Access::open()).await.unwrap();
    later();
    for label in ["production", "staging"] {
        let again = UseVersion {
            key: key_of(label),
            version: 1,
            reason: Some("as before".into()),
            actor: by("lee"),
        };
        app.outputs.use_version(&again).await.unwrap();
    }
    let entry = |label: &str, from, to, by: &str, reason: &str, minute: i64| -> Decided {
        (
            label.into(),
            from,
            to,
            by.into(),
            reason.into(),
            (start + minute) % 60,
        )
    };
    assert_eq!(
        decided(&app, 1).await,
        [
            entry("production", None, Pending, "dana", "the first", 0),
            entry("production", Some(Pending), Applied, "dana", "the first", 0),
            entry("production", Some(Applied), Superseded, "kim", "clearer", 2),
            entry("production", Some(Superseded), Applied, "lee", "as before", 3),
            entry("staging", None, Pending, "lee", "as before", 3),
            entry("staging", Some(Pending), Applied, "lee", "as before", 3),
        ]
    );
    let second = decided(&app, 2).await;
    assert_eq!(second.len(), 4);
    assert_eq!(
        (second[1].1, second[1].2, second[1].5),
        (Some(Pending), AwaitingReview, (start + 1) % 60)
    );
    assert_eq!(
        second[2..],
        [
            entry("production", Some(AwaitingReview), Applied, "kim", "clearer", 2),
            entry("production", Some(Applied), Superseded, "lee", "as before", 3),
        ]
    );
    assert_eq!(findings(world).await, "[]");
    // A decider that is not the one of the last transition is found.
    learning_store::testing::tamper(&world.url, "UPDATE candidates SET decided_for = 'mallory'").await;
    assert!(findings(world).await.contains("CANDIDATE_HISTORY"));
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
    app.log.revert(&revert, &Access::open()).await.unwrap();
    assert_eq!(current_of(&app, "production").await, Some(("One.".into(), 1)));
    put(&app, "Three.").await;
    assert_eq!(version(&app).await, Some(3));
    assert_eq!(findings(world).await, "[]");
}

async fn statistics_tell_versions_apart_and_say_what_is_missing(world: &World) {
    let app = world.instance().await;
    let stats = app.outputs.stats(&key()).await.unwrap();
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
    let stats = app.outputs.stats(&key()).await.unwrap();
    let rows: Vec<_> = stats
        .versions
        .iter()
        .map(|statistics| {
            (
                statistics.prompt_version.as_str(),
                statistics.counts.good,
                statistics.counts.neutral,
                statistics.counts.bad,
            )
        })
        .collect();
    assert_eq!(rows, [("2", 0, 1, 2), ("1", 1, 0, 0)]);
    assert!(stats.versions[0].first > stats.versions[1].last);
    assert_eq!((stats.hindrance, stats.missing), (Some("TOO_FEW_RATINGS"), 1));
    one(&app, &world.retraction(&events[1])).await;
    let stats = app.outputs.stats(&key()).await.unwrap();
    assert_eq!((stats.hindrance, stats.since.bad), (None, 3));
    let id = generate(&app).await.unwrap().candidate.id;
    let stats = app.outputs.stats(&key()).await.unwrap();
    assert_eq!(
        (stats.hindrance, stats.open),
        (Some("IMPROVEMENT_OPEN"), Some(id))
    );
    assert_eq!((stats.since.bad, stats.counted.bad, stats.missing), (0, 3, 0));
    assert!(stats.proposed_at.is_some());
}

async fn a_redacted_rating_is_counted_with_what_was_made_of_it(world: &World) {
    let app = world.instance().await;
    put(&app, "Summarise.").await;
    let events = rate(world, &app, &["x", "y", "z"], "BAD").await;
    let record = generate(&app).await.unwrap();
    one(&app, &world.redaction(&events[0])).await;
    one(&app, &world.retraction(&events[1])).await;
    let improvement = app.outputs.improvement(&record).await.unwrap().unwrap();
    assert_eq!(improvement.record.redacted, 1, "a retraction is no redaction");
    let (versions, _) = app.outputs.prompt_versions(&key(), None, 10).await.unwrap();
    let redacted: Vec<u64> = versions.iter().map(|(_, redacted)| *redacted).collect();
    assert_eq!(redacted, [1, 0]);
    let records: Vec<_> = versions
        .iter()
        .map(|(version, _)| version.record.clone())
        .collect();
    let counted: Vec<u64> = app
        .outputs
        .redactions(&records)
        .await
        .unwrap()
        .into_values()
        .collect();
    assert_eq!(counted, [1]);

    // Operators find all such texts: the proposal, and what a person made of it.
    let edited = |accept_redacted| Verdict::Approve {
        edited: Some(value("Summarise, without being vague.")),
        reason: None,
        accept_redacted,
    };
    let refused = review(&app, record.candidate.id, None, edited(false)).await;
    assert_eq!(told(refused).0, "RATINGS_REDACTED");
    review(&app, record.candidate.id, None, edited(true))
        .await
        .unwrap();
    let listed = async |target: Option<&ResourceKey>, after, limit| {
        let page = app
            .outputs
            .redacted_versions(&namespace(), target, after, limit)
            .await;
        page.unwrap()
    };
    let all = listed(None, None, 10).await;
    let found: Vec<_> = all
        .versions
        .iter()
        .map(|(version, redacted)| {
            let kept = version.record.candidate.proposal.unwrap();
            (kept.version, version.labels.len(), *redacted)
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
    let none = app
        .outputs
        .redacted_versions(&elsewhere, None, None, 10)
        .await
        .unwrap();
    assert_eq!(none.versions, []);
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
        let pages = app
            .outputs
            .export_examples(&key(), format, prompt, slots.take().unwrap());
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

async fn an_output_is_exported_once_however_many_rated_it(world: &World) {
    let app = world.instance().await;
    let by = |reporter: &str, output: &str, value: &str| {
        super::super::windows::rating(world, reporter, output, value)
    };
    let mut events = Vec::new();
    for reporter in ["ann", "bob", "cid"] {
        events.push(by(reporter, "good", "GOOD"));
        events.push(by(reporter, "bad", "BAD"));
    }
    events.push(by("dan", "good", "BAD"));
    events.push(by("dan", "bad", "GOOD"));
    events.push(by("ann", "both", "GOOD"));
    events.push(by("bob", "both", "BAD"));
    apply(&app, &events).await;
    let slots = ExportSlots::default();
    let export = async |format| {
        let pages = app
            .outputs
            .export_examples(&key(), format, None, slots.take().unwrap());
        let pages: Vec<Vec<String>> = pages.map(Result::unwrap).collect().await;
        let lines = pages.concat();
        let lines = lines
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    let chat = export(ExampleFormat::Chat).await;
    let said: Vec<_> = chat.iter().map(|line| &line["messages"][1]["content"]).collect();
    assert_eq!(said, ["good", "better"]);
    let pairs = export(ExampleFormat::Preference).await;
    let said: Vec<_> = pairs
        .iter()
        .map(|line| (&line["chosen"], &line["rejected"]))
        .collect();
    assert_eq!(said, [(&"better".into(), &"bad".into())]);
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
    let preview = app.outputs.preview(&namespace(), id, 4, &slots).await.unwrap();
    let outputs: Vec<_> = preview
        .inputs
        .iter()
        .map(|example| example.rated.texts.output.as_str())
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
    assert_eq!(
        told(app.outputs.preview(&namespace(), id, 4, &slots).await).0,
        "NOT_OPEN"
    );
}
