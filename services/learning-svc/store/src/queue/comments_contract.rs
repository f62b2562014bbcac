//! What reviewers ask and answer, and who approved first, on both databases.

use emend_core::{
    Caller, CandidateId, Kind, Learned, Namespace, ResourceKey, ResourceValue, Revision, Status,
    decide::Cause,
};
use emend_store::sql::Statement;
use jiff::Timestamp;

use super::{MAX_COMMENTS, QueueStore as _, comments_sql::comments_on};
use crate::{
    SqlStore, Store as _,
    actor::Actor,
    contests::{
        Asked, CandidateFilter, ContestStore as _, Involvement, Listing, TransitionWrite, fixtures,
        lists_sql::listed,
    },
    log::LogStore as _,
    testing::{TestDatabase, on_both},
};

fn key(phrase: &str) -> ResourceKey {
    ResourceKey::parse("fund-admin", Some(Kind::EntityAlias), phrase, "", "").unwrap()
}

fn value(phrase: &str) -> ResourceValue {
    ResourceValue::new(phrase, Learned::Entity("job description".to_owned()))
}

fn id(phrase: &str) -> CandidateId {
    value(phrase).candidate_id(key(phrase).contest_id())
}

fn person(name: &str) -> Actor {
    Actor::caller(Caller::parse(name).unwrap())
}

/// Writes a phrase's candidate, which waits, with these transitions by people.
async fn waits(store: &SqlStore, phrase: &str, by: &[&str]) {
    let mut tx = store.begin().await.unwrap();
    let key = key(phrase);
    fixtures::store_empty(&mut *tx, &[&key]).await;
    let candidate = emend_core::Candidate {
        status: Status::AwaitingReview,
        ..fixtures::put(&key, value(phrase))
    };
    let transitions = by.iter().zip(0..).map(|(name, sequence)| {
        let write = TransitionWrite {
            candidate: candidate.id,
            sequence,
            from: (sequence > 0).then_some(Status::AwaitingReview),
            to: Status::AwaitingReview,
            cause: Cause::Review,
            reason: format!("as {name} says"),
            actor: person(name),
            at: Timestamp::UNIX_EPOCH,
            revision: Revision::default(),
            policy_version: 0,
        };
        (key.contest_id(), write)
    });
    let transitions: Vec<_> = transitions.collect();
    let mut write = fixtures::write(&key, candidate, 1);
    write.kept.transitions = i64::try_from(transitions.len()).unwrap();
    tx.contests()
        .save_candidates(&[write], &transitions)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn opened(database: TestDatabase) -> Option<(SqlStore, impl Sized)> {
    let (store, guard) = database.open().await?;
    let epoch = emend_core::Epoch(uuid::Uuid::from_u128(1));
    let installation = emend_core::InstallationId(uuid::Uuid::from_u128(2));
    store.create_head(epoch, installation).await.unwrap();
    Some((store, guard))
}

fn filter(reviewed: Involvement) -> CandidateFilter {
    CandidateFilter {
        namespace: Namespace::parse("fund-admin").unwrap(),
        kinds: Vec::new(),
        statuses: Vec::new(),
        keys: Vec::new(),
        user: None,
        reviewed,
    }
}

async fn found(store: &SqlStore, reviewed: Involvement) -> Vec<CandidateId> {
    let listing = Listing::default();
    let page = store.list_candidates(&filter(reviewed), &listing, None, 10).await;
    page.unwrap().iter().map(|record| record.candidate.id).collect()
}

fn asked(of: &str, by: &str) -> Involvement {
    let (of, by) = (of.to_owned(), by.to_owned());
    Involvement {
        asked: Some(Asked { of, by }),
        ..Involvement::default()
    }
}

async fn a_question_waits_for_whoever_is_asked_until_they_answer(database: TestDatabase) {
    let Some((store, _guard)) = opened(database).await else {
        return;
    };
    waits(&store, "jd", &["ann"]).await;
    let write = async |name: &str, comment: &str, asked: Option<&str>| {
        let written = store.comment(id("jd"), &person(name), comment, asked).await;
        written.unwrap().unwrap()
    };
    let question = write("ann", "is this right?", Some("tom")).await;
    assert_eq!((question.actor.clone(), question.open), (person("ann"), true));
    // Neither the asker nor a third one answers.
    write("ann", "I doubt it", None).await;
    write("eve", "so do I", None).await;
    let open = store.open_questions(&[id("jd"), id("other")]).await.unwrap();
    assert_eq!(open, [(id("jd"), question)].into());
    for (reviewed, waits) in [
        (asked("", ""), true),
        (asked("tom", ""), true),
        (asked("eve", ""), false),
        (asked("ann", ""), false),
        (asked("", "ann"), true),
        (asked("", "tom"), false),
    ] {
        assert_eq!(
            found(&store, reviewed.clone()).await.len(),
            usize::from(waits),
            "{reviewed:?}"
        );
    }
    write("tom", "it is", None).await;
    assert!(found(&store, asked("", "")).await.is_empty());
    // Asking somebody else answers, too; of anybody, the first to write does.
    write("ann", "sure?", Some("tom")).await;
    write("tom", "does anybody know?", Some("")).await;
    assert_eq!(found(&store, asked("eve", "")).await, [id("jd")]);
    write("eve", "I do", None).await;
    assert!(store.open_questions(&[id("jd")]).await.unwrap().is_empty());
    let written = store.comments(id("jd")).await.unwrap();
    let words: Vec<&str> = written.iter().map(|comment| &*comment.comment).collect();
    assert_eq!((words.len(), words[0], words[6]), (7, "is this right?", "I do"));

    for _ in 7..MAX_COMMENTS {
        write("ann", "again", None).await;
    }
    let full = store.comment(id("jd"), &person("ann"), "one more", None).await;
    assert_eq!(full.unwrap(), None);
}

async fn a_question_ends_a_while_after_its_candidate_was_decided(database: TestDatabase) {
    let Some((store, _guard)) = opened(database).await else {
        return;
    };
    waits(&store, "jd", &["ann"]).await;
    let ann = person("ann");
    let asks = store.comment(id("jd"), &ann, "well?", Some(""));
    asks.await.unwrap().unwrap();
    assert_eq!(store.close_questions().await.unwrap(), 0, "it still waits");
    let mut transaction = store.begin_write().await.unwrap();
    // It was decided in 1970.
    let decide = Statement::new("UPDATE candidates SET status = 4, updated_at = 0");
    transaction.execute(decide).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(store.close_questions().await.unwrap(), 1);
}

async fn the_last_first_approval_and_a_reviewers_decisions_are_found(database: TestDatabase) {
    let Some((store, _guard)) = opened(database).await else {
        return;
    };
    waits(&store, "jd", &["ann", "tom"]).await;
    let first = store.first_approvals(&[id("jd"), id("other")]).await.unwrap();
    let first = &first[&id("jd")];
    assert_eq!((&first.actor, &*first.reason), (&person("tom"), "as tom says"));
    let decided = |name: &str| Involvement {
        decided: Some((name.to_owned(), Timestamp::UNIX_EPOCH)),
        ..Involvement::default()
    };
    assert_eq!(found(&store, decided("tom")).await, [id("jd")]);
    assert!(found(&store, decided("ann")).await.is_empty(), "she proposed it");
    // Both of two reviewers approved it, and each is told so; of an approval that was undone nobody is.
    let mut tx = store.begin().await.unwrap();
    let second = |sequence, name: &str, cause, to| TransitionWrite {
        candidate: id("jd"),
        sequence,
        from: Some(Status::AwaitingReview),
        to,
        cause,
        reason: String::new(),
        actor: person(name),
        at: Timestamp::UNIX_EPOCH,
        revision: Revision::default(),
        policy_version: 0,
    };
    let mut write = fixtures::write(&key("jd"), fixtures::put(&key("jd"), value("jd")), 2);
    write.kept.transitions = 3;
    let approval = second(2, "eve", Cause::Review, Status::Applied);
    let approval = [(key("jd").contest_id(), approval)];
    fixtures::store_empty(&mut *tx, &[&key("jd")]).await;
    tx.contests()
        .save_candidates(&[write.clone()], &approval)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        found(&store, decided("tom")).await,
        [id("jd")],
        "he was the first"
    );
    assert_eq!(
        found(&store, decided("eve")).await,
        [id("jd")],
        "she was the second"
    );
    // Who only wrote about it is involved, too.
    assert!(found(&store, decided("sam")).await.is_empty());
    let comment = store.comment(id("jd"), &person("sam"), "looks right", None).await;
    comment.unwrap().unwrap();
    assert_eq!(found(&store, decided("sam")).await, [id("jd")]);

    waits(&store, "other", &["ann", "ida"]).await;
    assert_eq!(found(&store, decided("ida")).await, [id("other")]);
    let mut tx = store.begin().await.unwrap();
    let taken_back = TransitionWrite {
        candidate: id("other"),
        ..second(2, "ida", Cause::Undo, Status::AwaitingReview)
    };
    let other = key("other");
    let mut write = fixtures::write(&other, fixtures::put(&other, value("other")), 2);
    write.kept.transitions = 3;
    fixtures::store_empty(&mut *tx, &[&other]).await;
    let taken_back = [(other.contest_id(), taken_back)];
    tx.contests()
        .save_candidates(&[write], &taken_back)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert!(found(&store, decided("ida")).await.is_empty());
}

async fn what_reviewers_did_is_read_from_indexes(database: TestDatabase) {
    let Some((store, _guard)) = database.open().await else {
        return;
    };
    let mut reader = store.reader().await.unwrap();
    if matches!(database, TestDatabase::Postgres) {
        reader.execute_text("SET enable_seqscan = off").await.unwrap();
    }
    let decided = Involvement {
        decided: Some(("tom".to_owned(), Timestamp::UNIX_EPOCH)),
        ..Involvement::default()
    };
    let approved_once = Involvement {
        approved_once: true,
        ..Involvement::default()
    };
    for (query, index) in [
        (
            listed(&filter(asked("tom", "")), &Listing::default(), None, 50),
            "review_comments_open",
        ),
        (
            listed(&filter(decided), &Listing::default(), None, 50),
            "transitions_by_people",
        ),
        (
            listed(&filter(approved_once), &Listing::default(), None, 50),
            "candidates_approved_once",
        ),
        (comments_on(&[id("jd")]), "review_comments_of_candidate"),
    ] {
        let plan = reader.plan(query).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{plan}");
        for table in ["a", "t", "d", "b", "r", "s", "k", "c"] {
            let scans = |step: &str| format!("{step} ").contains(&format!("SCAN {table} "));
            assert!(!plan.lines().any(scans), "{plan}");
        }
    }
}

on_both! {
    a_question_waits_for_whoever_is_asked_until_they_answer,
    a_question_ends_a_while_after_its_candidate_was_decided,
    the_last_first_approval_and_a_reviewers_decisions_are_found,
    what_reviewers_did_is_read_from_indexes,
}
