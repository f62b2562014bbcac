//! Profiles: what a user decides applies at once, what is suggested waits for that user, and an erasure takes all of it.

use emend_base::Error;
use emend_core::{
    Caller, FeedbackId, Kind, Namespace, ProfileEntry, ReporterId, ResourceValue, Revision, Status, UserId,
    kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, Learned, SPECIALTIES},
    outputs::{Activity, Improved, Material, Suggested, SuggestionMaterial, SuggestionType},
};
use emend_serve::auth::Access;
use jiff::Timestamp;
use learning_store::{
    actor::Actor,
    contests::{CandidateFilter, CandidatePosition},
    profiles::{KEPT_ACTIVITIES, ProfileStore, StoredProfile, SuggestionRecord},
};
use tokio::sync::Semaphore;

use crate::{
    capabilities::Capabilities,
    decisions::review::{Review, Verdict},
    generator::{Generator, GeneratorError, Suggestions},
    ingest::event::{FeedbackChange, IngestEvent},
    profiles::{
        entries::ProfileUpdate,
        suggestions::{SuggestionDecided, SuggestionsAsked, entry_key},
    },
    tests::{
        erasure::assert_audited,
        on_both_databases,
        world::{World, assert_sound, head, namespace, one},
    },
};

on_both_databases!(
    an_update_is_one_revision_and_entries_alike_are_one,
    an_update_on_another_state_than_was_seen_is_aborted,
    what_is_suggested_waits_and_is_added_once,
    what_is_rejected_is_not_suggested_again_and_the_user_may_still_add_it,
    experience_is_suggested_on_request_and_once_at_a_time,
    another_users_suggestion_is_not_found_and_no_list_mixes_users,
    of_twenty_who_accept_at_once_one_wins,
    activities_are_recorded_once_and_the_oldest_go,
    what_a_generator_answers_is_checked,
    a_user_who_is_erased_while_the_generator_works_gets_no_suggestion,
    an_erased_user_leaves_nothing,
);

pub(super) fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

pub(super) fn on_behalf(name: &str) -> Actor {
    Actor {
        caller: Caller::parse("backend").unwrap(),
        on_behalf_of: name.to_owned(),
    }
}

pub(super) fn update(name: &str, lists: &[(&'static str, &[&str])]) -> ProfileUpdate {
    let entries = lists.iter().flat_map(|(field, texts)| {
        texts.iter().map(|text| {
            let entry = match *field {
                EXPERIENCE_YEARS => ProfileEntry::Years(text.parse().unwrap()),
                _ => ProfileEntry::Text((*text).to_owned()),
            };
            let named = if *field == EXPERIENCE_YEARS { "" } else { *text };
            let key = entry_key(&namespace(), &user(name), field, named).unwrap();
            (key, ResourceValue::new(*field, Learned::ProfileEntry(entry)))
        })
    });
    ProfileUpdate {
        namespace: namespace(),
        user: user(name),
        fields: lists.iter().map(|(field, _)| *field).collect(),
        entries: entries.collect(),
        etag: None,
        reason: None,
        actor: on_behalf(name),
    }
}

pub(super) async fn profile(app: &Capabilities, name: &str) -> StoredProfile {
    app.profiles.profile(&namespace(), &user(name)).await.unwrap()
}

pub(super) async fn list(app: &Capabilities, name: &str, field: &str) -> Vec<String> {
    let profile = profile(app, name).await.profile();
    profile.list(field).unwrap().values().cloned().collect()
}

pub(super) fn activity(day: i64, technologies: &[&str], goals: &[&str]) -> Activity {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Activity {
        source_type: "GITHUB".to_owned(),
        source_id: format!("commit-{day}"),
        occurred_at: Timestamp::from_second(day * 86_400).unwrap(),
        summary: format!("what was done on day {day}"),
        technologies: owned(technologies),
        topics: Vec::new(),
        goals: owned(goals),
        experience_years: None,
    }
}

pub(super) async fn record(app: &Capabilities, name: &str, activities: &[Activity]) -> u64 {
    app.profiles
        .record_activities(&namespace(), &user(name), activities)
        .await
        .unwrap()
}

fn asked(name: &str, include_experience: bool) -> SuggestionsAsked {
    SuggestionsAsked {
        namespace: namespace(),
        user: user(name),
        since: None,
        include_experience,
        actor: on_behalf(name),
    }
}

pub(super) async fn suggest(app: &Capabilities, name: &str) -> Vec<SuggestionRecord> {
    app.profiles
        .generate_suggestions(&asked(name, false))
        .await
        .unwrap()
}

fn entries(made: &[SuggestionRecord]) -> Vec<&str> {
    made.iter()
        .map(|of| of.record.candidate.value.learned.maps_to())
        .collect()
}

fn decided(name: &str, of: &SuggestionRecord, verdict: Verdict) -> SuggestionDecided {
    SuggestionDecided {
        user: user(name),
        review: Review {
            namespace: namespace(),
            candidate: of.record.candidate.id,
            etag: None,
            actor: on_behalf(name),
            operation: None,
            verdict,
        },
    }
}

pub(super) async fn accept(app: &Capabilities, name: &str, of: &SuggestionRecord) -> Result<Revision, Error> {
    let verdict = Verdict::Approve {
        edited: None,
        reason: None,
        accept_redacted: false,
    };
    let done = app
        .profiles
        .decide_suggestion(&decided(name, of, verdict), &Access::open())
        .await;
    done.map(|(_, _, revision)| revision)
}

async fn reject(app: &Capabilities, name: &str, of: &SuggestionRecord) -> Result<(), Error> {
    let verdict = Verdict::Reject {
        reason: "not me".to_owned(),
    };
    let done = app
        .profiles
        .decide_suggestion(&decided(name, of, verdict), &Access::open())
        .await;
    done.map(drop)
}

fn precondition(error: &Error) -> &'static str {
    match error {
        Error::FailedPrecondition { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

async fn an_update_is_one_revision_and_entries_alike_are_one(world: &World) {
    let app = world.instance().await;
    assert_eq!(profile(&app, "ann").await, StoredProfile::default());
    let first = update(
        "ann",
        &[
            (EXPERIENCE_YEARS, &["7"]),
            (KNOWN_TECHNOLOGIES, &["Rust", "SQL"]),
            (LEARNING_GOALS, &["Kafka"]),
        ],
    );
    let (stored, revision) = app.profiles.update_profile(&first).await.unwrap();
    assert_eq!((revision, head(&app).await), (Revision(1), 1));
    assert_eq!((stored.revision, stored.entries.len()), (Revision(1), 4));
    assert_eq!(stored.profile().experience_years, Some(7));

    let (_, revision) = app.profiles.update_profile(&first).await.unwrap();
    assert_eq!((revision, head(&app).await), (Revision(0), 1), "nothing changed");

    // One is written otherwise, one goes, one comes; goals stay.
    let second = update(
        "ann",
        &[(KNOWN_TECHNOLOGIES, &["ｒｕｓｔ", "Go"]), (EXPERIENCE_YEARS, &[])],
    );
    let (stored, revision) = app.profiles.update_profile(&second).await.unwrap();
    assert_eq!(revision, Revision(2));
    assert_eq!(stored.profile().experience_years, None);
    assert_eq!(list(&app, "ann", KNOWN_TECHNOLOGIES).await, ["Go", "ｒｕｓｔ"]);
    assert_eq!(list(&app, "ann", LEARNING_GOALS).await, ["Kafka"]);

    let emptied = update("ann", &[(KNOWN_TECHNOLOGIES, &[]), (LEARNING_GOALS, &[])]);
    let (stored, revision) = app.profiles.update_profile(&emptied).await.unwrap();
    assert_eq!((revision, stored.revision), (Revision(3), Revision(3)));
    assert!(stored.profile().is_empty());
    assert_eq!(profile(&app, "bob").await, StoredProfile::default());
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn an_update_on_another_state_than_was_seen_is_aborted(world: &World) {
    let app = world.instance().await;
    let of = |etag: &str, text: &'static str| ProfileUpdate {
        etag: Some(etag.to_owned()),
        ..update("ann", &[(SPECIALTIES, &[text])])
    };
    app.profiles.update_profile(&of("0", "search")).await.unwrap();
    let refused = app
        .profiles
        .update_profile(&of("0", "ranking"))
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Aborted { .. }), "{refused:?}");
    app.profiles.update_profile(&of("1", "ranking")).await.unwrap();
    // What is gone changed it as well.
    let emptied = update("ann", &[(SPECIALTIES, &[])]);
    app.profiles.update_profile(&emptied).await.unwrap();
    let refused = app.profiles.update_profile(&of("2", "search")).await.unwrap_err();
    assert!(matches!(refused, Error::Aborted { .. }), "{refused:?}");
    assert_eq!(list(&app, "ann", SPECIALTIES).await, [""; 0]);
}

async fn what_is_suggested_waits_and_is_added_once(world: &World) {
    let app = world.instance().await;
    assert_eq!(suggest(&app, "ann").await, [], "nothing was done");
    let done = [
        activity(3, &["Ｒｕｓｔ", "Go"], &[]),
        activity(2, &["rust", "SQL"], &["Kafka"]),
        activity(1, &["RUST", "sql"], &["kafka"]),
    ];
    record(&app, "ann", &done).await;
    app.profiles
        .update_profile(&update("ann", &[(KNOWN_TECHNOLOGIES, &["SQL"])]))
        .await
        .unwrap();
    let made = suggest(&app, "ann").await;
    assert_eq!(entries(&made), ["Ｒｕｓｔ", "Kafka"]);
    assert_eq!(made[0].details.suggestion, SuggestionType::AddTechnology);
    assert_eq!(
        (made[0].details.source_id.as_str(), made[0].details.confidence),
        ("commit-3", 600)
    );
    assert_eq!(made[0].record.candidate.status, Status::AwaitingReview);
    assert_eq!(suggest(&app, "ann").await, [], "they wait");
    assert_eq!(head(&app).await, 1, "nothing is learned of them yet");
    assert_audited(world).await;

    let (page, more) = app
        .profiles
        .list_suggestions(&namespace(), &user("ann"), &[Status::AwaitingReview], None, 1)
        .await
        .unwrap();
    assert!(more && page.len() == 1);
    let after = CandidatePosition::of(&page[0].record);
    let (rest, more) = app
        .profiles
        .list_suggestions(&namespace(), &user("ann"), &[], Some(after), 5)
        .await
        .unwrap();
    assert!(!more && rest.len() == 1 && rest[0] != page[0]);

    assert_eq!(accept(&app, "ann", &made[0]).await.unwrap(), Revision(2));
    assert_eq!(list(&app, "ann", KNOWN_TECHNOLOGIES).await, ["Ｒｕｓｔ", "SQL"]);
    let again = accept(&app, "ann", &made[0]).await.unwrap_err();
    assert_eq!(precondition(&again), "ALREADY_APPLIED");
    let again = reject(&app, "ann", &made[0]).await.unwrap_err();
    assert_eq!(precondition(&again), "ALREADY_APPLIED");
    // Added by the user meanwhile, so it is there already: the suggestion is closed.
    app.profiles
        .update_profile(&update("ann", &[(LEARNING_GOALS, &["KAFKA"])]))
        .await
        .unwrap();
    let refused = accept(&app, "ann", &made[1]).await.unwrap_err();
    assert!(matches!(refused, Error::Aborted { .. }), "{refused:?}");
    assert_eq!(list(&app, "ann", LEARNING_GOALS).await, ["KAFKA"]);
    // What the user removes is not suggested again.
    app.profiles
        .update_profile(&update("ann", &[(KNOWN_TECHNOLOGIES, &[])]))
        .await
        .unwrap();
    assert_eq!(suggest(&app, "ann").await, []);
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn what_is_rejected_is_not_suggested_again_and_the_user_may_still_add_it(world: &World) {
    let app = world.instance().await;
    record(&app, "ann", &[activity(1, &[], &["Kafka"])]).await;
    let made = suggest(&app, "ann").await;
    reject(&app, "ann", &made[0]).await.unwrap();
    let again = accept(&app, "ann", &made[0]).await.unwrap_err();
    assert_eq!(precondition(&again), "ALREADY_REJECTED");
    let again = reject(&app, "ann", &made[0]).await.unwrap_err();
    assert_eq!(precondition(&again), "ALREADY_REJECTED");
    record(&app, "ann", &[activity(2, &[], &["ＫＡＦＫＡ"])]).await;
    assert_eq!(suggest(&app, "ann").await, []);
    app.profiles
        .update_profile(&update("ann", &[(LEARNING_GOALS, &["Kafka"])]))
        .await
        .unwrap();
    assert_eq!(list(&app, "ann", LEARNING_GOALS).await, ["Kafka"]);
    // The same is suggested to others.
    record(&app, "bob", &[activity(1, &[], &["Kafka"])]).await;
    assert_eq!(suggest(&app, "bob").await.len(), 1);
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn experience_is_suggested_on_request_and_once_at_a_time(world: &World) {
    let app = world.instance().await;
    let shows = |day, years| Activity {
        experience_years: Some(years),
        ..activity(day, &[], &[])
    };
    record(&app, "ann", &[shows(1, 3)]).await;
    assert_eq!(suggest(&app, "ann").await, []);
    let experience = || async {
        app.profiles
            .generate_suggestions(&asked("ann", true))
            .await
            .unwrap()
    };
    let made = experience().await;
    assert_eq!(made[0].details.suggestion, SuggestionType::UpdateExperience);
    record(&app, "ann", &[shows(2, 4)]).await;
    assert_eq!(experience().await, [], "one waits");
    accept(&app, "ann", &made[0]).await.unwrap();
    assert_eq!(profile(&app, "ann").await.profile().experience_years, Some(3));
    let made = experience().await;
    assert_eq!(made.len(), 1);
    // The user takes the years away: what was suggested in their place is closed.
    app.profiles
        .update_profile(&update("ann", &[(EXPERIENCE_YEARS, &[])]))
        .await
        .unwrap();
    let refused = accept(&app, "ann", &made[0]).await.unwrap_err();
    assert!(matches!(refused, Error::Aborted { .. }), "{refused:?}");
    let made = experience().await;
    assert_eq!(made.len(), 1);
    accept(&app, "ann", &made[0]).await.unwrap();
    assert_eq!(profile(&app, "ann").await.profile().experience_years, Some(4));
    assert_sound(&app).await;
    assert_audited(world).await;
}

async fn another_users_suggestion_is_not_found_and_no_list_mixes_users(world: &World) {
    let app = world.instance().await;
    for name in ["ann", "bob"] {
        record(&app, name, &[activity(1, &[], &["Kafka"])]).await;
    }
    let of_ann = suggest(&app, "ann").await.remove(0);
    let of_bob = suggest(&app, "bob").await.remove(0);
    for refused in [
        accept(&app, "bob", &of_ann).await.map(drop),
        reject(&app, "bob", &of_ann).await,
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::NotFound { .. }), "{refused:?}");
    }
    let filter = |name: &str| CandidateFilter {
        reviewed: learning_store::contests::Involvement::default(),
        namespace: namespace(),
        kinds: Vec::new(),
        statuses: Vec::new(),
        keys: Vec::new(),
        user: Some(user(name)),
    };
    let (listed, _) = app
        .contests
        .list_candidates(&filter("ann"), None, 50)
        .await
        .unwrap();
    assert_eq!(listed, std::slice::from_ref(&of_ann.record));
    let of_kind = CandidateFilter {
        kinds: vec![Kind::Profile],
        statuses: vec![Status::AwaitingReview],
        keys: vec![of_bob.record.key.key.clone()],
        ..filter("bob")
    };
    let (listed, _) = app.contests.list_candidates(&of_kind, None, 50).await.unwrap();
    assert_eq!(listed, [of_bob.record]);
    let other = Namespace::parse("another").unwrap();
    let (none, _) = app
        .profiles
        .list_suggestions(&other, &user("ann"), &[], None, 50)
        .await
        .unwrap();
    assert_eq!(none, []);
    let id = of_ann.record.candidate.id;
    let details = app
        .contests
        .candidate_details(&namespace(), id, &Access::open())
        .await
        .unwrap();
    assert_eq!(details.suggestion, Some(of_ann.details));
}

async fn of_twenty_who_accept_at_once_one_wins(world: &World) {
    let app = world.instance().await;
    record(&app, "ann", &[activity(1, &[], &["Kafka"])]).await;
    let made = suggest(&app, "ann").await.remove(0);
    let calls = (0..20).map(|_| accept(&app, "ann", &made));
    let results = futures::future::join_all(calls).await;
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 19));
    for error in lost {
        assert_eq!(precondition(&error.unwrap_err()), "ALREADY_APPLIED");
    }
    assert_eq!(head(&app).await, 1);
}

async fn activities_are_recorded_once_and_the_oldest_go(world: &World) {
    let app = world.instance().await;
    let first: Vec<Activity> = (1..=100).map(|day| activity(day, &["Rust"], &[])).collect();
    assert_eq!(record(&app, "ann", &first).await, 100);
    assert_eq!(record(&app, "ann", &first[50..]).await, 0);
    let mut day = 101;
    while day <= i64::from(KEPT_ACTIVITIES) + 50 {
        let more: Vec<Activity> = (day..day + 1_000).map(|day| activity(day, &[], &[])).collect();
        record(&app, "ann", &more).await;
        day += 1_000;
    }
    let store = world.store().await;
    let profiles: &dyn ProfileStore = &*store;
    let all = profiles
        .activities(&namespace(), &user("ann"), None, 2 * KEPT_ACTIVITIES)
        .await
        .unwrap();
    assert_eq!(all.len(), KEPT_ACTIVITIES as usize);
    assert_eq!(
        all[0].source_id,
        format!("commit-{}", day - 1),
        "the newest first"
    );
    let since = Some(all[9].occurred_at);
    let newest = profiles
        .activities(&namespace(), &user("ann"), since, 500)
        .await
        .unwrap();
    assert_eq!(newest, all[..10]);
    let none = profiles
        .activities(&namespace(), &user("bob"), None, 500)
        .await
        .unwrap();
    assert_eq!(none, []);
}

/// Answers what it was told to, once it may.
struct Told(Vec<Suggested>, Semaphore);

#[async_trait::async_trait]
impl Generator for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn patience(&self) -> std::time::Duration {
        std::time::Duration::from_mins(1)
    }

    async fn improve(&self, _material: &Material) -> Result<Improved, GeneratorError> {
        Err(GeneratorError::Unavailable("not asked".to_owned()))
    }

    async fn suggest(&self, _material: &SuggestionMaterial) -> Result<Suggestions, GeneratorError> {
        let _may = self.1.acquire().await.unwrap();
        if self.0.is_empty() {
            return Err(GeneratorError::BadAnswer("no JSON".to_owned()));
        }
        Ok(Suggestions {
            usable: self.0.clone(),
            unusable: Vec::new(),
        })
    }

    async fn run(&self, _prompt: &str, _input: &str) -> Option<Result<String, GeneratorError>> {
        None
    }
}

fn told(entry: &str, source_id: &str) -> Suggested {
    Suggested {
        suggestion: SuggestionType::AddGoal,
        entry: ProfileEntry::Text(entry.to_owned()),
        reason: "so it seems".to_owned(),
        source_type: "GITHUB".to_owned(),
        source_id: source_id.to_owned(),
        confidence: 900,
    }
}

async fn what_a_generator_answers_is_checked(world: &World) {
    let mut app = world.instance().await;
    record(&app, "ann", &[activity(1, &[], &[])]).await;
    let answer = vec![
        told("Kafka", "commit-1"),
        told("kafka", "commit-1"),
        told("NATS", "commit-2"),
        told("call 030 901820 now", "commit-1"),
        told("", "commit-1"),
    ];
    app.profiles.generator = std::sync::Arc::new(Told(answer, Semaphore::new(1)));
    let made = suggest(&app, "ann").await;
    assert_eq!(entries(&made), ["Kafka"]);
    app.profiles.generator = std::sync::Arc::new(Told(Vec::new(), Semaphore::new(1)));
    let failed = app
        .profiles
        .generate_suggestions(&asked("ann", false))
        .await
        .unwrap_err();
    assert!(matches!(failed, Error::Unavailable { .. }), "{failed:?}");
    assert_audited(world).await;
}

fn erasure(world: &World, name: &str) -> IngestEvent {
    IngestEvent {
        feedback: FeedbackId::none(),
        change: FeedbackChange::ReporterErased {
            caller: Caller::parse("console").unwrap(),
            reporter: ReporterId::parse(name).unwrap(),
        },
        ..world.phrase(name, "p", "v")
    }
}

async fn a_user_who_is_erased_while_the_generator_works_gets_no_suggestion(world: &World) {
    let mut app = world.instance().await;
    record(&app, "ann", &[activity(1, &[], &[])]).await;
    let generator = std::sync::Arc::new(Told(vec![told("Kafka", "commit-1")], Semaphore::new(0)));
    app.profiles.generator = std::sync::Arc::clone(&generator) as _;
    let slow = app.clone();
    let suggesting = tokio::spawn(async move { suggest(&slow, "ann").await });
    one(&app, &erasure(world, "ann")).await;
    generator.1.add_permits(1);
    assert_eq!(suggesting.await.unwrap(), []);
    assert_audited(world).await;
}

async fn an_erased_user_leaves_nothing(world: &World) {
    let app = world.instance().await;
    for name in ["ann", "bob"] {
        record(
            &app,
            name,
            &[activity(1, &["Go"], &["Kafka"]), activity(2, &["Go"], &["NATS"])],
        )
        .await;
        let made = suggest(&app, name).await;
        assert_eq!(made.len(), 3);
        accept(&app, name, &made[0]).await.unwrap();
        reject(&app, name, &made[1]).await.unwrap();
        app.profiles
            .update_profile(&update(name, &[(SPECIALTIES, &["search"])]))
            .await
            .unwrap();
    }
    one(&app, &erasure(world, "ann")).await;
    let store = world.store().await;
    let profiles: &dyn ProfileStore = &*store;
    for (name, activities, suggestions, entries) in [("ann", 0, 0, 0), ("bob", 2, 3, 2)] {
        let whose = (&namespace(), &user(name));
        let done = profiles.activities(whose.0, whose.1, None, 10).await.unwrap();
        let made = profiles
            .suggestions(whose.0, whose.1, &[], None, 10)
            .await
            .unwrap();
        let stored = profile(&app, name).await;
        assert_eq!(
            (done.len(), made.len(), stored.entries.len()),
            (activities, suggestions, entries),
            "{name}"
        );
    }
    // Who comes back begins anew: also what was rejected before may be suggested.
    record(
        &app,
        "ann",
        &[activity(1, &["Go"], &["Kafka"]), activity(2, &["Go"], &["NATS"])],
    )
    .await;
    assert_eq!(suggest(&app, "ann").await.len(), 3);
    assert_sound(&app).await;
    assert_audited(world).await;
}
