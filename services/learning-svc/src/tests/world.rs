//! A database, any number of service instances on it, and short helpers for what reporters and people do.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use emend_base::{Clock as _, Entropy, Error, ManualClock};
use emend_core::{
    AcceptOrder, Caller, CandidateId, Correction, EventId, FeedbackId, Namespace, Reporter, ResourceKey,
    ResourceValue, Revision, Roles, UserId, correction::Form,
};
use emend_proto::common::v1 as pb;
use emend_serve::auth::Access;
use emend_store::{DatabaseUrl, testing::TestPostgres};
use learning_store::{
    self,
    actor::Actor,
    contests::{CandidateFilter, CandidateRecord},
};

use crate::{
    capabilities::{Capabilities, CoreCapabilities, Parts},
    consistency::inconsistencies,
    decisions::{
        Follower,
        review::{Review, Reviewed, Verdict},
    },
    ingest::event::{FeedbackChange, IngestEvent, Recorded},
    resources::write::Put,
};

/// A log follower that does nothing.
struct NoFollower;

#[async_trait]
impl Follower for NoFollower {
    fn wake(&self) {}

    async fn reached(&self, _revision: Revision) {}
}

/// The use cases that any store is enough for.
pub(crate) fn core_on(
    store: Arc<dyn learning_store::Store>,
    clock: &ManualClock,
    entropy: &Entropy,
) -> CoreCapabilities {
    CoreCapabilities::new(Parts::new(
        store,
        Arc::new(NoFollower),
        clock.shared(),
        entropy.clone(),
    ))
}

/// The use cases on a database.
fn app_on(store: Arc<dyn learning_store::Database>, clock: &ManualClock, entropy: &Entropy) -> Capabilities {
    Capabilities::new(Parts::new(
        store,
        Arc::new(NoFollower),
        clock.shared(),
        entropy.clone(),
    ))
}

/// A database for one test.
pub(crate) struct World {
    pub(crate) url: DatabaseUrl,
    pub(crate) clock: ManualClock,
    entropy: Entropy,
    order: AtomicI64,
    _guard: Box<dyn std::any::Any + Send + Sync>,
}

impl World {
    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = DatabaseUrl::sqlite(directory.path().join("learning.db"));
        Self::new(url, Box::new(directory))
    }

    pub(crate) async fn postgres() -> Option<Self> {
        let database = TestPostgres::create().await?;
        Some(Self::new(database.database_url(), Box::new(database)))
    }

    fn new(url: DatabaseUrl, guard: Box<dyn std::any::Any + Send + Sync>) -> Self {
        Self {
            url,
            clock: ManualClock::default(),
            entropy: Entropy::system(),
            order: AtomicI64::new(1),
            _guard: guard,
        }
    }

    /// A connection to this database.
    pub(crate) async fn store(&self) -> Arc<dyn learning_store::Database> {
        let store = learning_store::open(&self.url, 2).await.unwrap();
        learning_store::begin_installation(&*store, &self.entropy)
            .await
            .unwrap();
        store
    }

    /// Another service instance on this database.
    pub(crate) async fn instance(&self) -> Capabilities {
        let store = learning_store::open(&self.url, 4).await.unwrap();
        learning_store::begin_installation(&*store, &self.entropy)
            .await
            .unwrap();
        app_on(store, &self.clock, &self.entropy)
    }

    fn next_order(&self) -> AcceptOrder {
        AcceptOrder(self.order.fetch_add(1, Ordering::SeqCst))
    }

    /// A feedback by a reporter; empty: by nobody in particular.
    pub(crate) fn feedback(&self, reporter: &str, form: Form, input: &str, choice: &str) -> IngestEvent {
        self.feedback_with(reporter, form, input, choice, None)
    }

    /// A feedback that applies to its reporter alone.
    pub(crate) fn own_feedback(&self, user: &str, form: Form, input: &str, choice: &str) -> IngestEvent {
        self.feedback_with(user, form, input, choice, Some(&UserId::parse(user).unwrap()))
    }

    fn feedback_with(
        &self,
        reporter: &str,
        form: Form,
        input: &str,
        choice: &str,
        user: Option<&UserId>,
    ) -> IngestEvent {
        let correction = choice_correction(form, input, choice);
        IngestEvent {
            id: EventId(self.entropy.uuid_v4()),
            feedback: FeedbackId(self.entropy.uuid_v4()),
            namespace: namespace(),
            accept_order: self.next_order(),
            traceparent: String::new(),
            applied_under: None,
            change: FeedbackChange::Recorded(Box::new(Recorded {
                reporter: Reporter::parse(reporter, "", "web", "").unwrap(),
                caller: Caller::parse("backend").unwrap(),
                query_id: "q-1".to_owned(),
                reason: "because".to_owned(),
                context: BTreeMap::from([("topic".to_owned(), "funds".to_owned())]),
                effects: correction.effects(&namespace(), user),
                sender: Roles::default(),
                received_at: self.clock.now(),
                erased: None,
            })),
        }
    }

    /// A feedback that maps a phrase to a verb.
    pub(crate) fn phrase(&self, reporter: &str, phrase: &str, verb: &str) -> IngestEvent {
        self.feedback(reporter, Form::PhraseMapping, phrase, verb)
    }

    /// A feedback with an effect for each phrase: it maps to that verb.
    pub(crate) fn several(&self, reporter: &str, phrases: &[&str], verb: &str) -> IngestEvent {
        let mut event = self.phrase(reporter, phrases[0], verb);
        let FeedbackChange::Recorded(recorded) = &mut event.change else {
            unreachable!("it was recorded")
        };
        recorded.effects = phrases
            .iter()
            .flat_map(|phrase| {
                let correction = Correction::parse_phrase_mapping(phrase, verb).unwrap();
                correction.effects(&namespace(), None)
            })
            .collect();
        event
    }

    pub(crate) fn retraction(&self, recorded: &IngestEvent) -> IngestEvent {
        IngestEvent {
            id: EventId(self.entropy.uuid_v4()),
            change: FeedbackChange::Retracted {
                caller: Caller::parse("backend").unwrap(),
                at: self.clock.now(),
                sender: Roles::default(),
            },
            ..recorded.clone()
        }
    }

    /// A retraction by somebody who is entitled.
    pub(crate) fn retraction_by_reviewer(&self, recorded: &IngestEvent) -> IngestEvent {
        let mut event = self.retraction(recorded);
        if let FeedbackChange::Retracted { sender, .. } = &mut event.change {
            *sender = Roles::parse(["reporter", "reviewer"].into_iter()).expect("known roles");
        }
        event
    }

    pub(crate) fn redaction(&self, recorded: &IngestEvent) -> IngestEvent {
        IngestEvent {
            id: EventId(self.entropy.uuid_v4()),
            change: FeedbackChange::Redacted {
                caller: Caller::parse("backend").unwrap(),
                at: self.clock.now(),
            },
            ..recorded.clone()
        }
    }
}

pub(crate) fn namespace() -> Namespace {
    Namespace::parse("fund-admin").unwrap()
}

/// For a caller that keeps its right to import.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the use case asks a question that may be answered with an error"
)]
pub(crate) fn still() -> Result<(), Error> {
    Ok(())
}

pub(crate) fn operator() -> Actor {
    Actor {
        caller: Caller::parse("console").unwrap(),
        on_behalf_of: "olga".to_owned(),
    }
}

/// Applies events, all of which must succeed.
pub(crate) async fn apply(app: &Capabilities, events: &[IngestEvent]) -> Vec<pb::Outcome> {
    let results = app.ingest.apply(events).await;
    results.into_iter().map(|result| result.unwrap()).collect()
}

/// Applies one event.
pub(crate) async fn one(app: &Capabilities, event: &IngestEvent) -> pb::Outcome {
    apply(app, std::slice::from_ref(event)).await.pop().unwrap()
}

/// The value that applies for a phrase.
pub(crate) async fn applies(
    app: &Capabilities,
    form: Form,
    input: &str,
    choice: &str,
) -> Option<ResourceValue> {
    let key = key(form, input, choice);
    let records = app.store.contents().await.unwrap();
    records
        .resources
        .iter()
        .find(|(contest, ..)| *contest == key.contest_id())
        .map(|(_, _, value)| emend_wire::value::decode(value).unwrap())
}

/// The correction of that form that maps an input to a choice.
pub(crate) fn choice_correction(form: Form, input: &str, choice: &str) -> Correction {
    let parsed = match form {
        Form::Verb => Correction::parse_verb(input, "", choice),
        Form::Entity => Correction::parse_entity(input, "", choice),
        Form::Prohibition => Correction::parse_prohibition(input, choice),
        Form::PhraseMapping => Correction::parse_phrase_mapping(input, choice),
        other => panic!("{} maps no input to a choice", other.name()),
    };
    parsed.unwrap()
}

/// The verb that applies for a phrase.
pub(crate) async fn verb(app: &Capabilities, phrase: &str) -> Option<String> {
    let value = applies(app, Form::PhraseMapping, phrase, "x").await?;
    Some(value.learned.maps_to().to_owned())
}

pub(crate) fn key(form: Form, input: &str, choice: &str) -> ResourceKey {
    let correction = choice_correction(form, input, choice);
    correction.effects(&namespace(), None).remove(0).key
}

/// The candidate that maps a phrase to a verb.
pub(crate) fn candidate_id(phrase: &str, verb: &str) -> CandidateId {
    let correction = Correction::parse_phrase_mapping(phrase, verb).unwrap();
    let proposal = correction.effects(&namespace(), None).remove(0);
    proposal.value.candidate_id(proposal.key.contest_id())
}

pub(crate) async fn candidate(app: &Capabilities, phrase: &str, verb: &str) -> CandidateRecord {
    app.decisions
        .candidate(&namespace(), candidate_id(phrase, verb))
        .await
        .unwrap()
}

/// All candidates.
pub(crate) async fn candidates(app: &Capabilities) -> Vec<CandidateRecord> {
    let filter = CandidateFilter {
        reviewed: learning_store::contests::Involvement::default(),
        user: None,
        namespace: namespace(),
        kinds: Vec::new(),
        statuses: Vec::new(),
        keys: Vec::new(),
    };
    app.contests.list_candidates(&filter, None, 500).await.unwrap().0
}

/// The newest revision.
pub(crate) async fn head(app: &Capabilities) -> i64 {
    app.store.contents().await.unwrap().head.0
}

pub(crate) async fn review(
    app: &Capabilities,
    candidate: CandidateId,
    etag: Option<String>,
    verdict: Verdict,
) -> Result<Reviewed, Error> {
    let review = Review {
        namespace: namespace(),
        candidate,
        etag,
        actor: operator(),
        operation: None,
        verdict,
    };
    app.decisions.review(&review, &Access::open()).await
}

pub(crate) fn approval() -> Verdict {
    Verdict::Approve {
        edited: None,
        reason: Some("seen it".to_owned()),
        accept_redacted: false,
    }
}

pub(crate) fn rejection() -> Verdict {
    Verdict::Reject {
        reason: "wrong desk".to_owned(),
    }
}

/// A person sets the verb of a phrase.
pub(crate) fn put(phrase: &str, verb: &str) -> Put {
    let correction = Correction::parse_phrase_mapping(phrase, verb).unwrap();
    let proposal = correction.effects(&namespace(), None).remove(0);
    Put {
        key: proposal.key,
        value: proposal.value,
        etag: None,
        reason: Some("policy".to_owned()),
        actor: operator(),
    }
}

/// The log replayed gives the resources, the ballots recounted give the candidates, revisions have no gaps.
pub(crate) async fn assert_sound(app: &Capabilities) {
    assert_eq!(inconsistencies(&*app.store).await.unwrap(), Vec::<String>::new());
}
