//! Few-shot sets: the newest outputs of a target by their live ratings, each once, whatever arrives when.

use emend_base::Error;
use emend_core::{
    Correction, FewShotSet, Kind, Learned, Namespace, Policy, ResourceKey, ResourceValue,
    ratings::RatingFields,
};
use emend_proto::common::v1::{self as pb, Outcome};
use emend_serve::auth::Access;
use emend_store::audit::{Findings, IgnoreProgress};
use futures::StreamExt as _;
use learning_store::{
    audit::{Audit, check_entry},
    log::{ChangeRecord, RevisionFilter},
    outputs::OfVoter,
    policies::PolicyKey,
};

use crate::{
    capabilities::Capabilities,
    decisions::open::RatingsAhead,
    ingest::event::{ErasedVoter, FeedbackChange, IngestEvent},
    log::revert::Revert,
    policies::update::PolicyUpdate,
    resources::write::{Delete, Put},
    tests::{
        on_both_databases,
        world::{World, apply, namespace, one, operator},
    },
};

on_both_databases!(
    the_newest_five_good_and_three_bad_are_shown_and_what_changes_nothing_is_not_published,
    a_newer_rating_of_the_same_output_replaces_the_earlier_one,
    an_output_stands_once_however_many_rated_it,
    an_output_that_10_000_rated_costs_no_more_to_rate_than_one_that_100_did,
    a_retraction_or_redaction_that_overtakes_its_rating_is_honoured,
    a_redaction_takes_the_example_away_and_leaves_nothing_of_its_texts,
    any_order_of_arrival_gives_the_same_set,
    the_log_keeps_the_newest_set_and_the_checksums_of_earlier_ones,
    what_was_missed_while_frozen_is_shown_when_released,
    a_set_that_had_no_room_is_shown_once_the_limit_is_raised,
    a_changed_policy_is_applied_to_every_set,
    nobody_sets_deletes_or_reverts_a_set,
    a_rating_is_recorded_once,
    an_audit_finds_what_does_not_agree,
);

/// A rating by a reporter of one output.
pub(super) fn rating(world: &World, reporter: &str, output: &str, value: &str) -> IngestEvent {
    let mut event = world.phrase(reporter, "a", "b");
    let FeedbackChange::Recorded(recorded) = &mut event.change else {
        unreachable!("it was recorded")
    };
    let issues = ["vague".to_owned()];
    let text = format!("text of {}", event.feedback);
    let fields = RatingFields {
        target: "SUMMARIZE_DAILY",
        value,
        target_id: output,
        input_text: &text,
        output_text: output,
        issues: &issues,
        corrected_text: "better",
        ..RatingFields::default()
    };
    let correction = Correction::parse_rating(fields);
    recorded.effects = correction.unwrap().effects(&namespace(), None);
    event
}

fn key() -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::FewShotSet), "SUMMARIZE_DAILY", "", "").unwrap()
}

async fn set(app: &Capabilities) -> FewShotSet {
    let contents = app.store.contents().await.unwrap();
    let resource = contents
        .resources
        .iter()
        .find(|(contest, ..)| *contest == key().contest_id());
    match resource.map(|(_, _, value)| emend_wire::value::decode(value).unwrap().learned) {
        Some(Learned::FewShotSet(set)) => set,
        Some(other) => panic!("{other:?}"),
        None => FewShotSet::default(),
    }
}

/// The outputs that are shown.
async fn shown(app: &Capabilities) -> (Vec<String>, Vec<String>) {
    let set = set(app).await;
    let outputs =
        |examples: Vec<emend_core::Example>| examples.into_iter().map(|example| example.output).collect();
    (outputs(set.good), outputs(set.bad))
}

fn told(outcome: &Outcome) -> (pb::OutcomeState, &str) {
    (outcome.state(), outcome.reason.as_str())
}

async fn head(app: &Capabilities) -> i64 {
    app.store.contents().await.unwrap().head.0
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

pub(super) async fn change_policy(app: &Capabilities, change: impl Fn(&mut Policy) + Send + Sync + 'static) {
    let update = PolicyUpdate {
        key: PolicyKey {
            namespace: namespace(),
            kind: Kind::FewShotSet,
        },
        etag: None,
        actor: operator(),
        reason: None,
        change: Box::new(change),
    };
    app.policies.update_policy(&update).await.unwrap();
    let mut after = None;
    loop {
        let step = app.contests.reevaluate_once(after).await.unwrap();
        assert_eq!(step.failed, 0);
        after = step.last;
        if after.is_none() {
            break;
        }
    }
}

use pb::OutcomeState::{Applied, NoEffect, Pending, Withdrawn};

async fn the_newest_five_good_and_three_bad_are_shown_and_what_changes_nothing_is_not_published(
    world: &World,
) {
    let app = world.instance().await;
    let late = rating(world, "late", "late", "GOOD");
    for number in 1..=6 {
        for value in ["GOOD", "BAD"] {
            let event = rating(world, "ann", &format!("{value} {number}"), value);
            let outcome = one(&app, &event).await;
            assert_eq!(told(&outcome), (Applied, ""));
            assert_eq!(
                (outcome.kind, outcome.candidate_id.as_str()),
                (Kind::FewShotSet.number(), "")
            );
            assert_eq!(outcome.revision, head(&app).await);
        }
    }
    let (good, bad) = shown(&app).await;
    assert_eq!(good, ["GOOD 6", "GOOD 5", "GOOD 4", "GOOD 3", "GOOD 2"]);
    assert_eq!(bad, ["BAD 6", "BAD 5", "BAD 4"]);
    let set = set(&app).await;
    assert!(set.good.iter().all(|example| example.corrected.is_empty()));
    assert!(
        set.bad
            .iter()
            .all(|example| example.corrected == "better" && example.issues == ["vague"])
    );
    let before = head(&app).await;
    assert_eq!(
        told(&one(&app, &rating(world, "ann", "neutral", "NEUTRAL")).await),
        (NoEffect, "NEUTRAL")
    );
    assert_eq!(told(&one(&app, &late).await), (NoEffect, "NOT_IN_WINDOW"));
    assert_eq!(
        told(&one(&app, &world.retraction(&late)).await),
        (NoEffect, "RETRACTED")
    );
    assert_eq!(head(&app).await, before);
    assert_eq!(findings(world).await, "[]");
}

async fn a_newer_rating_of_the_same_output_replaces_the_earlier_one(world: &World) {
    let app = world.instance().await;
    let older = rating(world, "ann", "x", "NEUTRAL");
    let (good, bad) = (
        rating(world, "ann", "x", "GOOD"),
        rating(world, "ann", "x", "BAD"),
    );
    apply(&app, &[good.clone(), bad.clone()]).await;
    assert_eq!(shown(&app).await, (vec![], vec!["x".into()]));
    assert_eq!(told(&one(&app, &older).await), (NoEffect, "NEUTRAL"));
    let back = one(&app, &world.retraction(&bad)).await;
    assert_eq!(told(&back), (Withdrawn, "RETRACTED"));
    assert_eq!(shown(&app).await, (vec!["x".into()], vec![]));
    assert_eq!(
        told(&one(&app, &world.retraction(&good)).await),
        (Withdrawn, "RETRACTED")
    );
    assert_eq!(
        set(&app).await,
        FewShotSet::default(),
        "a neutral one is live and never shown"
    );
    assert_eq!(findings(world).await, "[]");
}

/// What it says is wrong with an output, and what is right.
fn saying(mut event: IngestEvent, issues: &[&str], corrected: &str) -> IngestEvent {
    if let FeedbackChange::Recorded(recorded) = &mut event.change {
        let texts = &mut recorded.effects[0].rating.as_mut().unwrap().texts;
        texts.issues = issues.iter().map(|issue| (*issue).to_owned()).collect();
        corrected.clone_into(&mut texts.corrected);
    }
    event
}

async fn an_output_stands_once_however_many_rated_it(world: &World) {
    let app = world.instance().await;
    let bad = [
        saying(rating(world, "ann", "x", "BAD"), &["vague"], "first"),
        saying(rating(world, "bob", "x", "BAD"), &["long", "vague"], "second"),
        saying(rating(world, "cid", "x", "BAD"), &["long"], ""),
    ];
    for event in &bad {
        assert_eq!(told(&one(&app, event).await), (Applied, ""));
    }
    let only = |set: FewShotSet| {
        assert_eq!((set.good.len(), set.bad.len()), (0, 1));
        set.bad[0].clone()
    };
    let example = only(set(&app).await);
    assert_eq!(
        example.feedback, bad[2].feedback,
        "its place is that of the newest"
    );
    assert_eq!(example.input, format!("text of {}", bad[2].feedback));
    assert_eq!(example.corrected, "second", "the newest that says what is right");
    assert_eq!(example.issues, ["long", "vague"], "of equals the newer first");

    // A redaction takes what was said along, and leaves the output where it is.
    assert_eq!(
        told(&one(&app, &world.redaction(&bad[1])).await),
        (NoEffect, "REDACTED")
    );
    let example = only(set(&app).await);
    assert_eq!((&*example.corrected, example.issues.len()), ("first", 2));

    // As many say that it is good: it is neither.
    let good: Vec<IngestEvent> = ["dan", "eve", "fay"]
        .map(|reporter| rating(world, reporter, "x", "GOOD"))
        .into();
    assert_eq!(told(&one(&app, &good[0]).await), (NoEffect, "OUTVOTED"));
    assert_eq!(told(&one(&app, &good[1]).await), (NoEffect, "OUTVOTED"));
    assert_eq!(set(&app).await, FewShotSet::default());
    assert_eq!(told(&one(&app, &good[2]).await), (Applied, ""));
    assert_eq!(shown(&app).await, (vec!["x".into()], vec![]));
    assert_eq!(
        told(&one(&app, &rating(world, "gus", "x", "NEUTRAL")).await),
        (NoEffect, "NEUTRAL")
    );
    assert_eq!(
        shown(&app).await,
        (vec!["x".into()], vec![]),
        "neutral counts for neither"
    );
    // A rater who says otherwise now counts once.
    assert_eq!(
        told(&one(&app, &rating(world, "fay", "x", "BAD")).await),
        (Applied, "")
    );
    assert_eq!(shown(&app).await, (vec![], vec!["x".into()]));
    assert_eq!(findings(world).await, "[]");
}

/// How many ratings and outputs are read to decide on one more rating of an output.
async fn read_for_one_more(app: &Capabilities, event: &IngestEvent) -> (usize, usize) {
    let FeedbackChange::Recorded(recorded) = &event.change else {
        panic!("it is recorded")
    };
    let rated = recorded.effects[0].rating.as_ref().unwrap().rated_id();
    let contest = key().contest_id();
    let ahead = RatingsAhead {
        known: Vec::new(),
        voters: vec![OfVoter {
            contest,
            voter: recorded.voter(&event.namespace).key,
            rated,
            limit: 1,
        }],
        outputs: [((contest, rated), 1)].into(),
    };
    let mut tx = app.store.begin().await.unwrap();
    let unit = app.decisions.open_for(&mut *tx, [key()], 1, ahead).await;
    let unit = unit.unwrap();
    let state = unit.state(contest).unwrap();
    (state.ratings.len(), state.outputs.len())
}

async fn an_output_that_10_000_rated_costs_no_more_to_rate_than_one_that_100_did(world: &World) {
    let app = world.instance().await;
    let raters = |from: usize, to: usize| -> Vec<IngestEvent> {
        let of = |number: usize| {
            rating(
                world,
                &format!("r{number}"),
                "x",
                ["BAD", "BAD", "GOOD"][number % 3],
            )
        };
        (from..to).map(of).collect()
    };
    let others: Vec<IngestEvent> = (0..20)
        .map(|number| rating(world, "ann", &format!("{number}"), ["GOOD", "BAD"][number % 2]))
        .collect();
    apply(&app, &others).await;
    apply(&app, &raters(0, 100)).await;
    let next = rating(world, "new", "x", "BAD");
    let few = read_for_one_more(&app, &next).await;
    for from in (100..10_000).step_by(900) {
        apply(&app, &raters(from, from + 900)).await;
    }
    assert_eq!(read_for_one_more(&app, &next).await, few);
    // Of the output itself 2 good and 17 bad ones, and one each of the 5 good and 3 bad others that may be shown.
    assert_eq!(few, (2 + 17 + 5 + 3, 1 + 5 + 3));
    let last = rating(world, "last", "x", "BAD");
    assert_eq!(told(&one(&app, &last).await), (Applied, ""));
    assert_eq!(set(&app).await.bad[0].feedback, last.feedback);
    assert_eq!(findings(world).await, "[]");
}

async fn a_retraction_or_redaction_that_overtakes_its_rating_is_honoured(world: &World) {
    let app = world.instance().await;
    let (one_of_them, other, nameless) = (
        rating(world, "a", "1", "GOOD"),
        rating(world, "b", "2", "GOOD"),
        rating(world, "c", "3", "GOOD"),
    );
    apply(&app, &[world.retraction(&one_of_them), world.redaction(&other)]).await;
    assert_eq!(told(&one(&app, &one_of_them).await), (NoEffect, "RETRACTED"));
    assert_eq!(told(&one(&app, &other).await), (NoEffect, "REDACTED"));
    // Its texts were erased before it was sent.
    let mut stripped = nameless.clone();
    if let FeedbackChange::Recorded(recorded) = &mut stripped.change {
        recorded.erased = Some(ErasedVoter {
            key: emend_core::voter::VoterKey(nameless.feedback.0),
            identified: true,
            own: false,
        });
        recorded.effects[0].rating.as_mut().unwrap().texts = emend_core::RatedTexts::default();
    }
    assert_eq!(told(&one(&app, &stripped).await), (NoEffect, "REDACTED"));
    assert_eq!(
        told(&one(&app, &world.redaction(&nameless)).await),
        (NoEffect, "REDACTED")
    );
    assert_eq!(head(&app).await, 0);
    assert_eq!(findings(world).await, "[]");
}

async fn a_redaction_takes_the_example_away_and_leaves_nothing_of_its_texts(world: &World) {
    let app = world.instance().await;
    let (kept, redacted) = (
        rating(world, "ann", "kept", "BAD"),
        rating(world, "bob", "gone", "BAD"),
    );
    apply(&app, &[redacted.clone(), kept.clone()]).await;
    let outcome = one(&app, &world.redaction(&redacted)).await;
    assert_eq!(told(&outcome), (Withdrawn, "REDACTED"));
    assert_eq!((shown(&app).await.1, outcome.revision), (vec!["kept".into()], 3));
    let last = one(&app, &world.redaction(&kept)).await;
    assert_eq!((told(&last), last.revision), ((Withdrawn, "REDACTED"), 4));
    assert_eq!(set(&app).await, FewShotSet::default());
    for change in changes(&app).await {
        assert_eq!((change.before, change.after), (None, None));
    }
    assert_eq!(findings(world).await, "[]");
}

async fn any_order_of_arrival_gives_the_same_set(world: &World) {
    let app = world.instance().await;
    let ratings = [
        rating(world, "ann", "x", "GOOD"),
        rating(world, "ann", "x", "BAD"),
        rating(world, "bob", "x", "GOOD"),
        rating(world, "bob", "y", "GOOD"),
        rating(world, "cid", "x", "BAD"),
        saying(rating(world, "dan", "y", "BAD"), &["vague", "long"], "first"),
        saying(rating(world, "eve", "y", "BAD"), &["long"], ""),
    ];
    let (retraction, redaction) = (world.retraction(&ratings[1]), world.redaction(&ratings[3]));
    let events: Vec<IngestEvent> = ratings.into_iter().chain([retraction, redaction]).collect();
    let mut expected = None;
    // Each order in a namespace of its own, in groups of one to three events.
    for order in 0..24 {
        let name = Namespace::parse(&format!("order-{order}")).unwrap();
        let mut arriving = events.clone();
        arriving.rotate_left(order % 9);
        arriving.swap(order % 8, 8 - order / 6);
        for event in &mut arriving {
            event.namespace = name.clone();
            event.id = emend_core::EventId(uuid::Uuid::new_v5(&event.id.0, name.as_str().as_bytes()));
            event.feedback =
                emend_core::FeedbackId(uuid::Uuid::new_v5(&event.feedback.0, name.as_str().as_bytes()));
            if let FeedbackChange::Recorded(recorded) = &mut event.change {
                recorded.effects[0].key.namespace = name.clone();
            }
        }
        for group in arriving.chunks(1 + order % 3) {
            apply(&app, group).await;
        }
        let contents = app.store.contents().await.unwrap();
        let key = ResourceKey {
            namespace: name,
            ..key()
        };
        let found = contents
            .resources
            .iter()
            .find(|(contest, ..)| *contest == key.contest_id());
        let Learned::FewShotSet(set) = emend_wire::value::decode(&found.unwrap().2).unwrap().learned else {
            panic!("another kind")
        };
        let outputs: Vec<_> = set
            .examples()
            .map(|example| {
                let texts = [&example.input, &example.output, &example.corrected].map(String::clone);
                (texts, example.issues.clone())
            })
            .collect();
        assert_eq!((set.good.len(), set.bad.len()), (1, 1), "order {order}");
        assert_eq!(set.bad[0].issues, ["long", "vague"], "order {order}");
        assert_eq!(expected.get_or_insert(outputs.clone()), &outputs, "order {order}");
    }
    assert_eq!(findings(world).await, "[]");
}

/// Every change of the set, newest first.
async fn changes(app: &Capabilities) -> Vec<ChangeRecord> {
    let filter = RevisionFilter {
        namespace: namespace(),
        kind: Some(Kind::FewShotSet),
        keys: Vec::new(),
        operation: None,
    };
    let (revisions, _) = app.store.list_revisions(&filter, None, 500).await.unwrap();
    revisions
        .into_iter()
        .flat_map(|revision| revision.changes)
        .collect()
}

async fn the_log_keeps_the_newest_set_and_the_checksums_of_earlier_ones(world: &World) {
    let app = world.instance().await;
    let group: Vec<IngestEvent> = (0..5)
        .map(|number| rating(world, "ann", &format!("{number}"), "GOOD"))
        .collect();
    apply(&app, &group).await;
    one(&app, &rating(world, "bob", "0", "BAD")).await;
    let changes = changes(&app).await;
    assert_eq!(changes.len(), 6);
    let newest = changes[0].after.clone().map(|value| value.learned);
    assert_eq!(newest, Some(Learned::FewShotSet(set(&app).await)));
    for (index, change) in changes.iter().enumerate() {
        assert!(change.before.is_none() && change.checksum != 0);
        assert_eq!(
            (change.is_dropped, change.after.is_none()),
            (index > 0, index > 0),
            "{index}"
        );
    }
    assert_eq!(findings(world).await, "[]");
}

async fn what_was_missed_while_frozen_is_shown_when_released(world: &World) {
    let app = world.instance().await;
    let first = rating(world, "ann", "1", "GOOD");
    apply(&app, &[first.clone(), rating(world, "ann", "2", "GOOD")]).await;
    change_policy(&app, |policy| policy.frozen = true).await;
    let outcome = one(&app, &rating(world, "ann", "3", "GOOD")).await;
    assert_eq!(told(&outcome), (Pending, "FROZEN"));
    assert_eq!(shown(&app).await.0, ["2", "1"]);
    assert_eq!(
        told(&one(&app, &world.redaction(&first)).await),
        (Withdrawn, "REDACTED")
    );
    assert_eq!(shown(&app).await.0, ["2"]);
    assert_eq!(findings(world).await, "[]");
    change_policy(&app, |policy| policy.frozen = false).await;
    assert_eq!(shown(&app).await.0, ["3", "2"]);
    assert_eq!(findings(world).await, "[]");
}

async fn a_set_that_had_no_room_is_shown_once_the_limit_is_raised(world: &World) {
    let app = world.instance().await;
    change_policy(&app, |policy| policy.max_resources = 1).await;
    let mut elsewhere = rating(world, "ann", "1", "GOOD");
    if let FeedbackChange::Recorded(recorded) = &mut elsewhere.change {
        let key = ResourceKey::parse("fund-admin", Some(Kind::FewShotSet), "INTERPRET", "", "");
        recorded.effects[0].key = key.unwrap();
    }
    apply(&app, &[elsewhere]).await;
    let outcome = one(&app, &rating(world, "ann", "2", "GOOD")).await;
    assert_eq!(told(&outcome), (Pending, "RESOURCE_LIMIT"));
    change_policy(&app, |policy| policy.max_resources = 2).await;
    assert_eq!(shown(&app).await.0, ["2"]);
    assert_eq!(findings(world).await, "[]");
}

async fn a_changed_policy_is_applied_to_every_set(world: &World) {
    let app = world.instance().await;
    let ratings: Vec<_> = (0..7)
        .map(|number| rating(world, "ann", &number.to_string(), "GOOD"))
        .collect();
    apply(&app, &ratings).await;
    change_policy(&app, |policy| {
        policy.window.good = 7;
        policy.window.language = emend_core::Language::Ja;
    })
    .await;
    let shown = set(&app).await;
    assert_eq!((shown.good.len(), shown.language), (7, emend_core::Language::Ja));
    change_policy(&app, |policy| policy.window.good = 0).await;
    assert_eq!(set(&app).await, FewShotSet::default());
    assert_eq!(findings(world).await, "[]");
}

async fn nobody_sets_deletes_or_reverts_a_set(world: &World) {
    let app = world.instance().await;
    one(&app, &rating(world, "ann", "1", "GOOD")).await;
    let is_refused = |error: Error| {
        let Error::FailedPrecondition { reason, message, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(reason, "WINDOW");
        assert!(message.contains("retract or redact a rating"), "{message}");
    };
    let put = Put {
        key: key(),
        value: ResourceValue::new("SUMMARIZE_DAILY", Learned::FewShotSet(FewShotSet::default())),
        etag: None,
        reason: None,
        actor: operator(),
    };
    is_refused(app.resources.put(&put).await.unwrap_err());
    let delete = Delete {
        key: key(),
        etag: None,
        reason: None,
        actor: operator(),
    };
    is_refused(app.resources.delete(&delete).await.unwrap_err());
    let revert = Revert {
        namespace: namespace(),
        revision: emend_core::Revision(1),
        reason: "no".into(),
        actor: operator(),
    };
    is_refused(app.log.revert(&revert, &Access::open()).await.unwrap_err());
    assert_eq!(head(&app).await, 1);
}

async fn a_rating_is_recorded_once(world: &World) {
    let app = world.instance().await;
    let first = rating(world, "ann", "1", "GOOD");
    let outcome = one(&app, &first).await;
    assert_eq!(
        one(&app, &first).await,
        outcome,
        "a redelivery gets the same answer"
    );
    let again = IngestEvent {
        id: world.retraction(&first).id,
        ..first.clone()
    };
    let refused = app.ingest.apply(&[again]).await.remove(0).unwrap_err();
    assert!(matches!(refused, Error::AlreadyExists { .. }), "{refused}");
    one(&app, &world.retraction(&first)).await;
    let twice = one(&app, &world.retraction(&first)).await;
    assert_eq!((told(&twice), head(&app).await), ((NoEffect, "RETRACTED"), 2));
}

async fn an_audit_finds_what_does_not_agree(world: &World) {
    let app = world.instance().await;
    let ratings = ["1", "2", "3"].map(|output| rating(world, "ann", output, "GOOD"));
    apply(&app, &ratings).await;
    one(&app, &world.retraction(&ratings[0])).await;
    assert_eq!(findings(world).await, "[]");
    // Each statement undoes itself when it is executed again.
    for (checks, damage) in [
        (&["RATING_LIVE"][..], "UPDATE ratings SET live = 1 - live"),
        (
            &["RATED_OUTPUT", "RESOURCE_WINDOW"][..],
            "UPDATE ratings SET class = 4 - class",
        ),
        (&["RATED_OUTPUT"][..], "UPDATE rated_outputs SET good = 3 - good"),
        (
            &["RATED_OUTPUT"][..],
            "UPDATE rated_outputs SET accept_order = -accept_order",
        ),
        (
            &["RATED_OUTPUT", "CONTEST_MISSING"][..],
            "UPDATE rated_outputs SET contest = -contest",
        ),
        (
            &["RATING_TEXTS", "RATING_EXCLUDED", "RATING_LIVE"][..],
            "UPDATE ratings SET excluded = 1 - excluded",
        ),
        (&["CONTEST_MISSING"][..], "UPDATE ratings SET contest = -contest"),
        (&["CONTEST_ROW"][..], "UPDATE contests SET pending = 1 - pending"),
    ] {
        learning_store::testing::tamper(&world.url, damage).await;
        let found = findings(world).await;
        for check in checks {
            assert!(found.contains(check), "{damage}: {found}");
        }
        learning_store::testing::tamper(&world.url, damage).await;
        assert_eq!(findings(world).await, "[]", "{damage}");
    }
    for (check, damage) in [
        (
            "LOG_WINDOW",
            "UPDATE changes SET before_value = (SELECT value FROM resources)",
        ),
        (
            "LOG_WINDOW",
            "UPDATE changes SET before_value = NULL, value = (SELECT value FROM resources)",
        ),
        ("RESOURCE_REPLAY", "UPDATE resources SET revision = revision - 1"),
    ] {
        learning_store::testing::tamper(&world.url, damage).await;
        let found = findings(world).await;
        assert!(found.contains(check), "{damage}: {found}");
    }
}
