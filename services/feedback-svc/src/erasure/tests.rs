//! What is erased and what stays, on both databases.

use std::sync::Arc;

use emend_base::{Entropy, telemetry::metrics::prometheus::Counter};
use emend_core::{
    Caller, Correction, FeedbackId, RatedTexts, RatingClass, Reporter, ReporterId, Scope,
    ratings::RatingFields,
};
use emend_proto::learning::v1::{Event, event};
use emend_serve::fair_semaphore::ClientKey;
use feedback_store::{
    ports::{Claimed, Connected, ErasureStore, Inserted, Redacted, Retracted, Settlement},
    records::{
        erasure::NewRedaction,
        event as events,
        feedback::{FeedbackQuery, NewFeedback, Submission},
        outbox::{DeadLetterQuery, EncodedOutcome, Refusal},
        settings::{Change, SettingsUpdate},
    },
    testing::{
        Backend, TestStore, feedback, lease, namespace, new_feedback, outcome, retraction, stored,
        submission, with_request_id,
    },
};
use prost::Message as _;
use tokio::time::{Duration, Instant};

use crate::{
    corrections::cleaned::cleaned,
    erasure::{
        redact::{Erased, Erasures},
        worker::Eraser,
    },
    origin::Origin,
    outbox::{delivery_queue::DeliveryQueue, dispatch::Reserved, waiters::Waiters},
    settings::NamespaceSettings,
    testing::{corrections, dispatch, ids},
};

macro_rules! on_both {
    ($($scenario:ident)*) => {
        on_both!(on_sqlite, Backend::Sqlite, $($scenario)*);
        on_both!(on_postgres, Backend::Postgres, $($scenario)*);
    };
    ($module:ident, $backend:expr, $($scenario:ident)*) => {
        mod $module {
            use super::*;
            $(#[tokio::test]
            async fn $scenario() {
                if let Some(database) = TestStore::open($backend).await {
                    super::$scenario(&database).await;
                    database.close().await;
                }
            })*
        }
    };
}

on_both! {
    a_redaction_erases_the_personal_parts_and_keeps_the_rest
    pending_events_lose_their_personal_parts_and_keep_the_voter
    a_redaction_erases_what_a_rating_says_and_keeps_that_it_was_given
    events_queued_in_memory_are_not_sent_after_a_redaction
    a_refusal_that_may_quote_the_feedback_is_erased
    a_retraction_after_a_redaction_keeps_no_reason
    a_redaction_does_not_change_the_evaluation
    only_the_first_redaction_counts
    a_request_that_was_redacted_can_not_be_repeated
    all_feedback_of_a_reporter_is_erased_by_one_call
    the_worker_finishes_what_a_call_left_unerased
    feedback_older_than_the_retention_is_redacted
}

pub(crate) fn redaction(id: FeedbackId) -> NewRedaction {
    let caller = Caller::parse("console").unwrap();
    let event_id = emend_core::EventId(Entropy::system().uuid_v4());
    NewRedaction {
        namespace: namespace(),
        id,
        caller: caller.clone(),
        event: events::redacted(event_id, id, &namespace(), &caller, ""),
    }
}

async fn redacted(database: &TestStore, id: FeedbackId) -> Redacted {
    let erasures = database.sql();
    erasures.redact(&[redaction(id)]).await.unwrap()[0]
}

async fn claimed(database: &TestStore) -> Vec<(Claimed, Event)> {
    let claimed = database.store.claim(1_000, lease()).await.unwrap();
    let decoded = |claimed: Claimed| {
        let event = Event::decode(claimed.payload.clone()).unwrap();
        (claimed, event)
    };
    claimed.into_iter().map(decoded).collect()
}

async fn settle_all(database: &TestStore, text: &'static str) {
    let settlements: Vec<_> = claimed(database)
        .await
        .into_iter()
        .map(|(claimed, _)| Settlement::Delivered {
            event_id: claimed.event_id,
            outcome: outcome(text),
        })
        .collect();
    database.store.settle(&settlements).await.unwrap();
}

fn erasures(database: &TestStore, delivery_queue: &DeliveryQueue) -> Arc<Erasures> {
    Arc::new(Erasures {
        store: database.sql(),
        corrections: corrections(database, delivery_queue),
        dispatch: dispatch(delivery_queue),
        waiters: Waiters::default(),
        ids: ids(),
        wake: Arc::default(),
    })
}

fn origin() -> Origin {
    Origin {
        access: emend_serve::auth::Access::open(),
        caller: Caller::parse("console").unwrap(),
        client: ClientKey::Unknown,
        traceparent: String::new(),
    }
}

fn said_by(reporter: &str, phrase: &str) -> NewFeedback {
    let mut submission = submission(phrase);
    submission.reporter = Reporter::parse(reporter, "s", "web", "k").unwrap();
    new_feedback(submission, &Caller::parse("web").unwrap())
}

async fn erase(erasures: &Erasures, reporter: &str, patience: Duration) -> Erased {
    let reporter = ReporterId::parse(reporter).unwrap();
    let until = Instant::now() + patience;
    erasures
        .erase_reporter(&origin(), namespace(), reporter, until)
        .await
        .unwrap()
}

async fn a_redaction_erases_the_personal_parts_and_keeps_the_rest(database: &TestStore) {
    let new = feedback("a");
    stored(&*database.store, &new, None).await;
    database
        .store
        .retract(&retraction(new.id, "a slip"), None)
        .await
        .unwrap();
    assert_eq!(redacted(database, new.id).await, Redacted::Now);

    let after = database
        .store
        .feedback(&namespace(), new.id)
        .await
        .unwrap()
        .unwrap();
    let mut kept = new.submission.clone();
    kept.reporter = Reporter::default();
    kept.query_id.clear();
    kept.reason.clear();
    kept.context.clear();
    assert_eq!(after.submission, kept);
    assert_eq!(after.retraction.unwrap().reason, "");
    let redaction = after.redaction.unwrap();
    let voter = new.submission.reporter.voter(&new.caller);
    assert_eq!(
        (redaction.voter, redaction.identified),
        (voter.key(&namespace()), true)
    );
    let of_jane = FeedbackQuery {
        namespace: namespace(),
        reporter: new.submission.reporter.id.clone(),
        kind: None,
        search_ratings: None,
        target: None,
        rating: None,
        delivery: None,
        from: None,
        before: None,
        after: None,
        limit: 10,
    };
    assert!(database.store.list(&of_jane).await.unwrap().is_empty());
}

async fn a_redaction_erases_what_a_rating_says_and_keeps_that_it_was_given(database: &TestStore) {
    let fields = RatingFields {
        target: "INTERPRET",
        value: "BAD",
        target_id: "output-1",
        input_text: "secret input",
        output_text: "secret output of jane@example.org",
        prompt_version: "v7",
        issues: &["secret issue".to_owned()],
        corrected_text: "secret correction",
        ..RatingFields::default()
    };
    let rated = Correction::parse_rating(fields);
    let submission = Submission {
        correction: rated.unwrap(),
        ..submission("a")
    };
    let new = new_feedback(cleaned(submission).0, &Caller::parse("web").unwrap());
    stored(&*database.store, &new, None).await;
    let found = database
        .store
        .feedback(&namespace(), new.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.submission, new.submission, "its texts are read with it");
    let texts = &found.submission.correction.rating().unwrap().texts;
    assert_eq!(texts.output, "secret output of [email]");
    // What each database calls the ledger's rows that contain "secret".
    let update = "UPDATE feedback_status SET redacted_by = NULL WHERE accept_order IN (SELECT accept_order FROM feedback WHERE ";
    let [sqlite, postgres] = [
        "hex(correction) LIKE '%736563726574%')",
        "encode(correction, 'hex') LIKE '%736563726574%')",
    ]
    .map(|contains| format!("{update}{contains}"));
    let holding = match database.execute(&sqlite).await {
        Ok(rows) => rows,
        Err(_) => database.execute(&postgres).await.unwrap(),
    };
    assert_eq!(
        holding, 0,
        "the ledger, which is never changed, holds none of them"
    );

    assert_eq!(redacted(database, new.id).await, Redacted::Now);
    let found = database
        .store
        .feedback(&namespace(), new.id)
        .await
        .unwrap()
        .unwrap();
    let rating = found.submission.correction.rating().unwrap();
    assert_eq!(rating.texts, RatedTexts::default());
    let kept = [
        &rating.target,
        &rating.value,
        &rating.target_id,
        &rating.prompt_version,
    ];
    assert_eq!(kept, ["INTERPRET", "BAD", "output-1", "v7"]);
    assert_eq!(rating.class, RatingClass::Bad);
    for (claimed, _) in claimed(database).await {
        let payload = String::from_utf8_lossy(&claimed.payload).into_owned();
        assert!(!payload.contains("secret"), "{payload}");
    }
}

async fn pending_events_lose_their_personal_parts_and_keep_the_voter(database: &TestStore) {
    let mut own = submission("a");
    own.scope = Scope::User;
    let new = new_feedback(own, &Caller::parse("web").unwrap());
    stored(&*database.store, &new, None).await;
    database
        .store
        .retract(&retraction(new.id, "a slip"), None)
        .await
        .unwrap();
    redacted(database, new.id).await;
    let events = claimed(database).await;
    assert_eq!(events.len(), 3);
    let voter = new.submission.reporter.voter(&new.caller).key(&namespace());
    for (claimed, message) in events {
        let payload = String::from_utf8_lossy(&claimed.payload).into_owned();
        for personal in [
            "jane",
            "session-1",
            "web/4.2",
            "query-1",
            "other one",
            "custody",
            "a slip",
        ] {
            assert!(!payload.contains(personal), "{personal} in {payload}");
        }
        if let Some(event::Event::Recorded(recorded)) = message.event {
            let erased = recorded.erased_voter.clone().unwrap();
            assert_eq!((erased.key, erased.identified), (voter.0.to_string(), true));
            assert_eq!(recorded.scope(), emend_proto::common::v1::Scope::User);
        }
    }
}

async fn events_queued_in_memory_are_not_sent_after_a_redaction(database: &TestStore) {
    let new = feedback("a");
    let lease = lease();
    stored(&*database.store, &new, Some(lease)).await;
    let held = [(new.event.id, lease.token)];
    assert_eq!(database.store.still_leased(&held).await.unwrap(), [new.event.id]);
    redacted(database, new.id).await;
    assert_eq!(database.store.still_leased(&held).await.unwrap(), []);
    let events = claimed(database).await;
    assert_eq!(events.len(), 2, "it is claimed at once, and encoded again");

    // On the replica that redacts, it is no longer in memory.
    let delivery_queue = DeliveryQueue::new(10);
    let erasures = erasures(database, &delivery_queue);
    let other = feedback("b");
    let reserved = erasures.dispatch.reserve(1);
    let lease = reserved.as_ref().map(Reserved::lease);
    let inserted = database.store.insert(std::slice::from_ref(&other), lease).await;
    let Ok(Inserted::Stored(accepted)) = inserted.unwrap().remove(0) else {
        panic!("it is stored")
    };
    erasures
        .dispatch
        .stored(reserved, vec![(other.event.clone(), accepted)]);
    assert_eq!(delivery_queue.len(), 1);
    erasures
        .redact(&origin(), namespace(), other.id, None)
        .await
        .unwrap();
    assert_eq!(delivery_queue.len(), 0);
}

async fn a_refusal_that_may_quote_the_feedback_is_erased(database: &TestStore) {
    let new = feedback("a");
    let lease = lease();
    stored(&*database.store, &new, Some(lease)).await;
    let refused = Settlement::Dead {
        event_id: new.event.id,
        token: lease.token,
        refusal: Refusal {
            code: 3,
            error: "context: must not be \"custody\"".to_owned(),
        },
    };
    database.store.settle(&[refused]).await.unwrap();
    redacted(database, new.id).await;
    let all = DeadLetterQuery {
        namespace: None,
        after: None,
        limit: 10,
    };
    let letters = database.store.dead_letters(&all).await.unwrap();
    let refusals: Vec<_> = letters
        .iter()
        .map(|letter| (letter.event_id, letter.refusal.code, &*letter.refusal.error))
        .collect();
    assert_eq!(refusals, [(new.event.id, 3, "")]);
}

async fn a_retraction_after_a_redaction_keeps_no_reason(database: &TestStore) {
    let new = feedback("a");
    stored(&*database.store, &new, None).await;
    redacted(database, new.id).await;
    let retracted = database
        .store
        .retract(&retraction(new.id, "jane was wrong"), None)
        .await
        .unwrap();
    assert!(matches!(
        retracted,
        Retracted::Now {
            has_reason: false,
            ..
        }
    ));
    let after = database.store.feedback(&namespace(), new.id).await.unwrap();
    assert_eq!(after.unwrap().retraction.unwrap().reason, "");
    for (claimed, _) in claimed(database).await {
        let payload = String::from_utf8_lossy(&claimed.payload).into_owned();
        assert!(!payload.contains("jane"), "{payload}");
    }
}

async fn a_redaction_does_not_change_the_evaluation(database: &TestStore) {
    let new = feedback("a");
    stored(&*database.store, &new, None).await;
    settle_all(database, "applied").await;
    let before = database
        .store
        .feedback(&namespace(), new.id)
        .await
        .unwrap()
        .unwrap();
    redacted(database, new.id).await;
    for _ in 0..2 {
        let after = database
            .store
            .feedback(&namespace(), new.id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (&after.outcome, after.delivery),
            (&before.outcome, before.delivery)
        );
        settle_all(database, "erased").await;
    }
    assert_eq!(before.outcome, Some(EncodedOutcome("applied".into())));
}

async fn only_the_first_redaction_counts(database: &TestStore) {
    let new = feedback("a");
    assert_eq!(redacted(database, new.id).await, Redacted::NotFound);
    stored(&*database.store, &new, None).await;
    let (replica, both) = (
        database.sql_replica().await,
        [redaction(new.id), redaction(new.id)],
    );
    let store = database.sql();
    let (one, other) = tokio::join!(store.redact(&both[..1]), replica.redact(&both[1..]),);
    let mut answers = [one.unwrap()[0], other.unwrap()[0]];
    answers.sort_by_key(|answer| *answer != Redacted::Now);
    assert_eq!(answers, [Redacted::Now, Redacted::Before]);
    assert_eq!(
        claimed(database).await.len(),
        2,
        "it was recorded, and redacted once"
    );
    replica.close().await;
}

async fn a_request_that_was_redacted_can_not_be_repeated(database: &TestStore) {
    let new = with_request_id("a", "r-1");
    stored(&*database.store, &new, None).await;
    redacted(database, new.id).await;
    // Whether it is the same request can no longer be told, and it must not count twice.
    let again = with_request_id("a", "r-1");
    let answer = database
        .store
        .insert(&[again], None)
        .await
        .unwrap()
        .remove(0)
        .unwrap();
    assert_eq!(answer, Inserted::RequestIdReused);
}

async fn all_feedback_of_a_reporter_is_erased_by_one_call(database: &TestStore) {
    let mine: Vec<_> = (0..3).map(|n| said_by("jane", &format!("phrase {n}"))).collect();
    database.store.insert(&mine, None).await.unwrap();
    let others = said_by("tom", "a");
    stored(&*database.store, &others, None).await;
    settle_all(database, "applied").await;

    let erasures = erasures(database, &DeliveryQueue::new(10));
    let erased = erase(&erasures, "jane", Duration::ZERO).await;
    // A call whose time is up does one page.
    assert_eq!(
        (erased.redacted, erased.left.remaining, erased.left.undelivered),
        (3, 0, 4)
    );
    let again = erase(&erasures, "jane", Duration::ZERO).await;
    assert_eq!(
        (again.redacted, again.left),
        (0, erased.left),
        "no second event while one waits"
    );
    let of_reporter = claimed(database)
        .await
        .into_iter()
        .filter(|(_, event)| matches!(event.event, Some(event::Event::ReporterRedacted(_))));
    assert_eq!(of_reporter.count(), 1);
    let tom = database
        .store
        .feedback(&namespace(), others.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&tom.submission, &tom.redaction), (&others.submission, &None));
}

async fn the_worker_finishes_what_a_call_left_unerased(database: &TestStore) {
    let mine: Vec<_> = (0..250)
        .map(|n| said_by("jane", &format!("phrase {n}")))
        .collect();
    for part in mine.chunks(50) {
        database.store.insert(part, None).await.unwrap();
    }
    let erasures = erasures(database, &DeliveryQueue::new(10));
    let erased = erase(&erasures, "jane", Duration::ZERO).await;
    assert_eq!((erased.redacted, erased.left.remaining), (100, 150));
    let mut worker = Eraser::new(Arc::clone(&erasures), Counter::default());
    assert_eq!(worker.run_once().await.unwrap(), 150);
    assert_eq!(worker.run_once().await.unwrap(), 0);
    assert!(
        database.sql().unfinished(10).await.unwrap().is_empty(),
        "the name is no longer needed"
    );
}

async fn feedback_older_than_the_retention_is_redacted(database: &TestStore) {
    let erasures = erasures(database, &DeliveryQueue::new(10));
    let old: Vec<_> = (0..120).map(|n| said_by("jane", &format!("old {n}"))).collect();
    for part in old.chunks(60) {
        database.store.insert(part, None).await.unwrap();
    }
    database.advance(7_200).await;
    let new = said_by("jane", "new");
    stored(&*database.store, &new, None).await;
    let mut worker = Eraser::new(Arc::clone(&erasures), Counter::default());
    assert_eq!(
        worker.run_once().await.unwrap(),
        0,
        "by default everything is kept"
    );

    let update = SettingsUpdate {
        namespace: namespace(),
        etag: None,
        personal_retention: Change::Set(Some(Duration::from_hours(1))),
        rated_targets: Change::Keep,
        query_retention: Change::Keep,
        max_queries: Change::Keep,
        rating_limits: Change::Keep,
        caller: Caller::parse("console").unwrap(),
        on_behalf_of: String::new(),
        reason: "policy".to_owned(),
    };
    let settings = NamespaceSettings {
        store: database.sql(),
        wake: Arc::default(),
    };
    settings.update(&update).await.unwrap();
    assert_eq!(worker.run_once().await.unwrap(), 120);
    assert_eq!(worker.run_once().await.unwrap(), 0);
    let kept = database
        .store
        .feedback(&namespace(), new.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.redaction, None);
    database.advance(3_700).await;
    assert_eq!(worker.run_once().await.unwrap(), 1);
}
