//! What near answers follow from, who waits for a model, and what previews compare.

use std::{sync::Arc, time::Duration};

use emend_base::{Clock, Entropy, ManualClock};
use emend_core::{
    FeedbackId, Kind, Learned, Namespace, NearLookup, NormalizedKey, ResourceValue, Violations,
};
use emend_proto::learning::v1::{NearStatus, PreviewQuery, PreviewedChanges};
use emend_wire::value;
use jiff::{SignedDuration, Timestamp};
use learning_store::{
    Store,
    log::testing::{TestLog as _, Written, write},
};

use super::{
    Guesses, NearModels, Previews,
    exact::{self, Changes, ResolveQuery},
    preview::{self, Trial},
};
use crate::{
    ingest::event::{FeedbackChange, IngestEvent},
    stream::{
        Settings, Stream,
        testing::{MemoryLog, catch_up, replica},
    },
    tests::world::{self, World, core_on},
};

const LOST: &str = "report_lost_card";
const BALANCE: &str = "show_balance";
const ASKED: &str = "i think i lost my card";

fn learned(key: &str, learned: Learned) -> Written {
    let kind = learned.kind().number();
    let qualifier = match &learned {
        Learned::Forbidden(choice) => choice.clone(),
        _ => String::new(),
    };
    Written {
        value: Some(value::encode(&ResourceValue::of(learned)).to_vec()),
        ..write(key, None).of_kind("a", kind).qualified(&qualifier)
    }
}

fn verb(key: &str, verb: &str) -> Written {
    learned(key, Learned::Verb(verb.into()))
}

fn setting(line: &str) -> Written {
    let setting: NearLookup = line.parse().unwrap();
    learned("invocation_phrase", Learned::NearLookup(Some(setting)))
}

/// Enough phrases of two verbs for a model.
fn taught() -> Vec<Written> {
    let things = [
        "card",
        "bank card",
        "credit card",
        "debit card",
        "red card",
        "blue card",
    ];
    let lost = things.iter().flat_map(|thing| {
        [
            format!("i lost my {thing}"),
            format!("my {thing} was stolen"),
            format!("block the {thing}"),
        ]
    });
    let accounts = [
        "account",
        "bank account",
        "savings",
        "current account",
        "old account",
        "deposit",
    ];
    let balance = accounts.iter().flat_map(|account| {
        [
            format!("what is the balance of my {account}"),
            format!("how much money is in my {account}"),
            format!("show me my {account} balance"),
        ]
    });
    let lost = lost.map(|phrase| verb(&phrase, LOST));
    lost.chain(balance.map(|phrase| verb(&phrase, BALANCE))).collect()
}

fn namespace() -> Namespace {
    Namespace::parse("a").unwrap()
}

fn phrase(text: &str) -> NormalizedKey {
    NormalizedKey::parse(text).unwrap()
}

/// A replica whose log has been taught two verbs, and models for it.
struct Replica {
    log: MemoryLog,
    stream: Stream,
    clock: ManualClock,
    models: NearModels,
}

impl Replica {
    async fn new() -> Self {
        let log = MemoryLog::default();
        let settings = Settings {
            max_wait: Duration::from_secs(30),
            ..Settings::default()
        };
        let stream = replica(&log, settings).await;
        let clock = ManualClock::default();
        let models = NearModels::new(clock.shared(), None);
        let new = Self {
            log,
            stream,
            clock,
            models,
        };
        new.learn(&taught()).await;
        new
    }

    async fn learn(&self, changes: &[Written]) {
        self.log.append(changes).await;
        catch_up(&self.stream).await;
    }

    fn guesses(&self) -> Guesses {
        Guesses::new(self.stream.clone(), self.models.clone())
    }

    /// The verb that is near, by a model that is waited for.
    async fn near(&self, text: &str) -> Option<String> {
        let state = self.stream.state().unwrap();
        let query = ResolveQuery {
            namespace: namespace(),
            kind: Kind::InvocationPhrase,
            phrase: phrase(text),
            user_id: String::new(),
            backend: Vec::new(),
        };
        let exact = exact::resolve(&state, &query).unwrap();
        let (near, status) = self.models.resolve(&state, &query, &exact).await.unwrap();
        assert_eq!(status, NearStatus::Ready);
        near.map(|near| near.choice.to_string())
    }

    /// What would be answered differently if these keys were learned.
    async fn preview(&self, models: &NearModels, changes: Changes, texts: &[&str]) -> PreviewedChanges {
        let texts = texts.iter().map(|text| PreviewQuery {
            text: (*text).into(),
            ..PreviewQuery::default()
        });
        let queries = preview::queries(&texts.collect::<Vec<_>>(), &mut Violations::new()).unwrap();
        let trial = Trial {
            namespace: namespace(),
            kinds: vec![Kind::InvocationPhrase],
            user: None,
            changes,
            setting: None,
            queries,
        };
        let previews = Previews::new(self.stream.clone(), models.clone(), Arc::new(self.log.clone()));
        previews.compare(trial).await.unwrap()
    }
}

/// A store that corrections are decided in.
async fn deciding() -> Arc<dyn Store> {
    let store = MemoryLog::default();
    learning_store::begin_installation(&store, &Entropy::seeded(1))
        .await
        .unwrap();
    Arc::new(store)
}

/// Guesses until a model that was begun is made.
async fn guessed(guesses: &Guesses, text: &str) -> Vec<String> {
    loop {
        match guesses.guess(&namespace(), &phrase(text)).await {
            Ok(found) => return found.into_iter().map(|guess| guess.choice).collect(),
            Err(error) => assert_eq!(error.reason(), "NEAR_FITTING"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_learned_and_forgotten_counts_at_once_for_those_who_ask_the_service() {
    let replica = Replica::new().await;
    assert_eq!(replica.near(ASKED).await.as_deref(), Some(LOST));
    let asked = "kindly freeze that plastic thing of mine now";
    assert_eq!(replica.near(asked).await, None);
    replica
        .learn(&[verb("kindly freeze that plastic thing of mine", LOST)])
        .await;
    assert_eq!(replica.near(asked).await.as_deref(), Some(LOST));
    replica
        .learn(&[learned(asked, Learned::Forbidden(LOST.into()))])
        .await;
    assert_ne!(
        replica.near(asked).await.as_deref(),
        Some(LOST),
        "it is prohibited"
    );
    replica.learn(&[setting("min_confidence=1")]).await;
    assert_eq!(replica.near(ASKED).await, None, "it is not as sure as that");
    replica.learn(&[setting("min_confidence=0.8")]).await;
    assert_eq!(replica.near(ASKED).await.as_deref(), Some(LOST));

    let gone = taught()
        .into_iter()
        .chain([verb("kindly freeze that plastic thing of mine", LOST)]);
    let gone = gone.map(|written| Written {
        value: None,
        ..written
    });
    replica.learn(&gone.collect::<Vec<_>>()).await;
    assert_eq!(replica.near(ASKED).await, None, "nothing is learned any more");
}

#[tokio::test(start_paused = true)]
async fn no_correction_waits_for_a_model_that_is_being_made() {
    let replica = Replica::new().await;
    let (world, store) = (World::sqlite(), deciding().await);
    let app = core_on(store, &replica.clock, &Entropy::seeded(1));
    app.ingest.guess_by(replica.guesses());
    let unanswered = |text: &str| IngestEvent {
        feedback: FeedbackId::none(),
        namespace: namespace(),
        change: FeedbackChange::Unanswered {
            phrase: phrase(text),
            display: text.into(),
            evidence: "searched 3 times".into(),
        },
        ..world.phrase("", text, "v")
    };
    // The model of another namespace is being made.
    let making = replica.models.hold().await;
    let began = tokio::time::Instant::now();
    let events = [
        world.phrase("ann", "p", "v"),
        unanswered(ASKED),
        world.phrase("bob", "p", "v"),
    ];
    let results = app.ingest.apply(&events).await;
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert_eq!(results[1].as_ref().unwrap_err().reason(), "NEAR_FITTING");
    assert!(began.elapsed() < Duration::from_secs(1), "nothing waited");

    drop(making);
    assert_eq!(guessed(&replica.guesses(), ASKED).await, [LOST]);
    // An old model answers, with what was learned since, while a new one is being made.
    let making = replica.models.hold().await;
    replica.clock.advance(SignedDuration::from_mins(5));
    replica
        .learn(&[verb("kindly freeze that plastic thing of mine", "freeze_card")])
        .await;
    let asked = "kindly freeze that plastic thing of mine now";
    let found = replica
        .guesses()
        .guess(&namespace(), &phrase(asked))
        .await
        .unwrap();
    assert_eq!(found[0].choice, "freeze_card");
    drop(making);
}

#[tokio::test]
async fn a_query_is_proposed_once_it_is_near_to_something_and_only_once() {
    let replica = Replica::new().await;
    let (world, store) = (World::sqlite(), deciding().await);
    let app = core_on(Arc::clone(&store), &replica.clock, &Entropy::seeded(1));
    let guesses = replica.guesses();
    app.ingest.guess_by(guesses.clone());
    let asked = "kindly freeze that plastic thing of mine now";
    let event = || IngestEvent {
        feedback: FeedbackId::none(),
        change: FeedbackChange::Unanswered {
            phrase: phrase(asked),
            display: asked.into(),
            evidence: "searched 3 times".into(),
        },
        namespace: namespace(),
        ..world.phrase("", asked, "v")
    };
    let stored = || async { store.contents().await.unwrap() };
    guessed(&guesses, asked).await;
    let told = app.ingest.apply(&[event()]).await.pop().unwrap().unwrap();
    assert_eq!(told.message, "It is near to nothing that was learned.");
    assert!(stored().await.candidates.is_empty());

    replica
        .learn(&[verb("kindly freeze that plastic thing of mine", "freeze_card")])
        .await;
    for _ in 0..2 {
        app.ingest.apply(&[event()]).await.pop().unwrap().unwrap();
        assert_eq!(stored().await.candidates.len(), 1);
    }
    let told = app.ingest.apply(&[event()]).await.pop().unwrap().unwrap();
    assert_eq!(told.message, "It was proposed before.");
}

/// A clock on which 40 seconds pass each time somebody looks at it.
#[derive(Debug)]
struct Racing(ManualClock);

impl Clock for Racing {
    fn now(&self) -> Timestamp {
        self.0.advance(SignedDuration::from_secs(40));
        self.0.now()
    }
}

#[tokio::test]
async fn both_sides_of_a_preview_are_answered_by_one_model_of_one_state() {
    let replica = Replica::new().await;
    let asked = "kindly freeze that plastic thing of mine now";
    let models = NearModels::new(Arc::new(Racing(ManualClock::default())), None);
    let nothing = replica.preview(&models, Changes::new(), &[asked, ASKED]).await;
    assert_eq!(nothing.changed_query_count, 0);
    replica
        .learn(&[verb("kindly freeze that plastic thing of mine", LOST)])
        .await;
    let nothing = replica.preview(&models, Changes::new(), &[asked, ASKED]).await;
    assert_eq!(nothing.changed_query_count, 0, "nothing is tried: {nothing:?}");

    // What is learned but not followed yet is waited for.
    replica.log.append(&[verb("what a nice day", "greet")]).await;
    let follower = replica.stream.clone();
    let following = tokio::spawn(async move { catch_up(&follower).await });
    let key = emend_core::ResourceKey {
        namespace: namespace(),
        kind: Kind::InvocationPhrase,
        key: phrase("a lovely day today").into(),
        qualifier: String::new(),
        user: None,
    };
    let changes = [(key, Some(Learned::Verb("greet".into())))].into();
    let previewed = replica
        .preview(&models, changes, &["what a nice day", "a lovely day today"])
        .await;
    following.await.unwrap();
    assert_eq!(previewed.revision, replica.stream.state().unwrap().revision());
    assert_eq!(previewed.changed_query_count, 1, "{previewed:?}");
    assert_eq!(previewed.answers[0].text, "a lovely day today");
}

#[tokio::test]
async fn corrections_of_all_changed_answers_are_counted_not_only_of_those_that_are_listed() {
    const QUERIES: i64 = 150;
    const CHOICES: i64 = 11;
    let replica = Replica::new().await;
    let (world, store) = (World::sqlite(), deciding().await);
    let app = core_on(Arc::clone(&store), &replica.clock, &Entropy::seeded(1));
    let texts: Vec<String> = (0..QUERIES).map(|number| format!("phrase {number}")).collect();
    for choice in 0..CHOICES {
        let said = texts
            .iter()
            .map(|text| world.phrase(&format!("reporter-{choice}"), text, &format!("verb_{choice}")));
        for told in app.ingest.apply(&said.collect::<Vec<_>>()).await {
            told.unwrap();
        }
    }
    let key = |text: &String| emend_core::ResourceKey {
        namespace: world::namespace(),
        kind: Kind::InvocationPhrase,
        key: phrase(text).into(),
        qualifier: String::new(),
        user: None,
    };
    let queries = texts.iter().map(|text| PreviewQuery {
        text: text.clone(),
        rated_down_count: 1,
        right_choices: vec![if text.ends_with('7') { "verb_1" } else { "verb_0" }.into()],
        ..PreviewQuery::default()
    });
    let trial = Trial {
        namespace: world::namespace(),
        kinds: vec![Kind::InvocationPhrase],
        user: None,
        changes: texts
            .iter()
            .map(|text| (key(text), Some(Learned::Verb("verb_0".into()))))
            .collect(),
        setting: None,
        queries: preview::queries(&queries.collect::<Vec<_>>(), &mut Violations::new()).unwrap(),
    };
    let previews = Previews::new(replica.stream.clone(), replica.models.clone(), store);
    let previewed = previews.compare(trial).await.unwrap();
    assert_eq!(
        (previewed.changed_query_count, previewed.answers.len()),
        (QUERIES, 100)
    );
    assert_eq!(previewed.rated_for_count, QUERIES);
    assert_eq!(
        (previewed.corrected_for_count, previewed.corrected_against_count),
        (QUERIES, QUERIES * (CHOICES - 1))
    );
    // Every tenth is judged to be neither what is answered now nor what would be.
    assert_eq!(
        (previewed.judged_for_count, previewed.judged_against_count),
        (QUERIES - QUERIES / 10, 0)
    );
    assert_eq!(
        previewed.changed_search_count, 0,
        "they were judged, not searched"
    );
    let one = &previewed.answers[0];
    assert_eq!(
        (
            one.corrected_for_count,
            one.corrected_against_count,
            one.judged_for_count
        ),
        (1, CHOICES - 1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn who_looks_up_waits_less_for_a_model_than_calls_may_take() {
    let replica = Replica::new().await;
    let making = replica.models.hold().await;
    let state = replica.stream.state().unwrap();
    let query = ResolveQuery {
        namespace: namespace(),
        kind: Kind::InvocationPhrase,
        phrase: phrase(ASKED),
        user_id: String::new(),
        backend: Vec::new(),
    };
    let exact = exact::resolve(&state, &query).unwrap();
    let began = tokio::time::Instant::now();
    let (near, status) = replica.models.resolve(&state, &query, &exact).await.unwrap();
    assert_eq!((near, status), (None, NearStatus::Fitting));
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    drop(making);
    assert_eq!(replica.near(ASKED).await.as_deref(), Some(LOST));
}
