//! What the tests share: feedback to store, and a store on each database with a clock that a test moves.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use emend_base::{Entropy, ManualClock};
use emend_core::{
    Caller, Correction, EventId, FeedbackId, Namespace, RatingClass, Reporter, RequestId, Scope,
    ratings::RatingFields, search::SearchRating,
};
use emend_store::{
    DatabaseUrl,
    audit::{Finding, Findings},
    simulation::NoInterference,
    testing::{TestDatabase, TestPostgres},
};
use jiff::{SignedDuration, Timestamp};
use sqlx::AssertSqlSafe;
use tempfile::TempDir;

use crate::{
    SqlStore,
    audit::Audit,
    memory::MemoryStore,
    ports::{Connected, CorrectionStore, FeedbackStore, Inserted},
    records::{
        event,
        feedback::{FeedbackQuery, NewFeedback, NewRetraction, Removed, Submission},
        outbox::{EncodedOutcome, Lease, LeaseHolder},
    },
};

/// How long [`lease`] lasts.
pub const LEASE: Duration = Duration::from_secs(30);

/// The namespace of all that is made here.
pub fn namespace() -> Namespace {
    Namespace::parse("fund-admin").expect("it works for tests")
}

/// A correction of a phrase.
pub fn submission(phrase: &str) -> Submission {
    Submission {
        request_id: None,
        namespace: namespace(),
        reporter: Reporter::parse("jane", "session-1", "web/4.2", "key").expect("it works for tests"),
        query_id: "query-1".into(),
        reason: "it means the other one".into(),
        context: BTreeMap::from([("topic".into(), "custody".into())]),
        scope: Scope::Global,
        correction: Correction::parse_verb(phrase, "create_csa", "create_isda").expect("it works for tests"),
    }
}

/// Feedback on a phrase, ready to be stored.
pub fn feedback(phrase: &str) -> NewFeedback {
    new_feedback(
        submission(phrase),
        &Caller::parse("web").expect("it works for tests"),
    )
}

/// Feedback whose request has an id.
pub fn with_request_id(phrase: &str, request_id: &str) -> NewFeedback {
    let request_id = Some(RequestId::parse(request_id).expect("it works for tests"));
    new_feedback(
        Submission {
            request_id,
            ..submission(phrase)
        },
        &Caller::parse("web").expect("it works for tests"),
    )
}

/// A submission of this caller, ready to be stored.
pub fn new_feedback(submission: Submission, caller: &Caller) -> NewFeedback {
    let entropy = Entropy::system();
    let (id, event_id) = (FeedbackId(entropy.uuid_v4()), EventId(entropy.uuid_v4()));
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    NewFeedback {
        id,
        caller: caller.clone(),
        traceparent: traceparent.into(),
        hash: submission.hash(),
        event: event::recorded(event_id, id, caller, Vec::new(), traceparent, &submission, None),
        submission,
        removed: Removed::default(),
    }
}

/// A rating with this value of an output of this target.
pub fn rated(target: &str, value: &str) -> NewFeedback {
    let fields = RatingFields {
        target,
        value,
        target_id: "output-1",
        input_text: "in",
        output_text: "out",
        counts_as: Some(RatingClass::Bad),
        ..RatingFields::default()
    };
    let submission = Submission {
        correction: Correction::parse_rating(fields).expect("it works for tests"),
        ..submission("unused")
    };
    new_feedback(submission, &Caller::anonymous())
}

/// A rating of what a search returned, by this reporter, of this query.
pub fn search_rated(reporter: [&str; 3], query_id: &str, rating: SearchRating) -> NewFeedback {
    let [id, session, client_key] = reporter;
    let submission = Submission {
        reporter: Reporter::parse(id, session, "web/4.2", client_key).expect("it works for tests"),
        query_id: query_id.into(),
        correction: Correction::SearchRating(rating),
        ..submission("unused")
    };
    new_feedback(submission, &Caller::parse("web").expect("it works for tests"))
}

/// A retraction, ready to be stored.
pub fn retraction(id: FeedbackId, reason: &str) -> NewRetraction {
    let (event_id, caller) = (
        EventId(Entropy::system().uuid_v4()),
        Caller::parse("web").expect("it works for tests"),
    );
    let event = event::retracted(event_id, id, &namespace(), &caller, Vec::new(), "", reason);
    NewRetraction {
        namespace: namespace(),
        id,
        caller,
        role: None,
        reason: reason.into(),
        event,
    }
}

/// A new lease.
pub fn lease() -> Lease {
    Lease {
        token: LeaseHolder(1).token(&Entropy::system()),
        duration: LEASE,
    }
}

/// An outcome that tests know again.
pub fn outcome(text: &'static str) -> EncodedOutcome {
    EncodedOutcome(text.as_bytes().into())
}

/// What every store offers to tests, that in memory included.
pub trait TestedStore: FeedbackStore + Connected {}

impl<S: FeedbackStore + Connected> TestedStore for S {}

/// Stores one feedback.
pub async fn stored(store: &dyn CorrectionStore, new: &NewFeedback, lease: Option<Lease>) -> i64 {
    match inserted(store, std::slice::from_ref(new), lease).await[..] {
        [Inserted::Stored(accepted)] => accepted.order.0,
        ref other => panic!("not stored: {other:?}"),
    }
}

/// Stores a group in which no item fails.
pub async fn inserted(
    store: &dyn CorrectionStore,
    group: &[NewFeedback],
    lease: Option<Lease>,
) -> Vec<Inserted> {
    let answers = store.insert(group, lease).await.expect("it works for tests");
    answers
        .into_iter()
        .map(|answer| answer.expect("no item fails"))
        .collect()
}

/// Where a store keeps what it holds.
#[derive(Debug, Clone, Copy)]
pub enum Backend {
    /// In a file.
    Sqlite,
    /// On a server.
    Postgres,
    /// In memory.
    Memory,
}

/// A database whose clock stands still until a test moves it.
pub struct TestStore {
    /// The store.
    pub store: Arc<dyn TestedStore>,
    database: Database,
}

enum Database {
    Sqlite(Arc<SqlStore>, TempDir),
    Postgres(Arc<SqlStore>, TestDatabase),
    Memory(MemoryStore),
}

async fn another_on(directory: &TempDir) -> SqlStore {
    let path = directory.path().join("feedback.db");
    SqlStore::open_sqlite(&path, Entropy::system())
        .await
        .expect("it works for tests")
}

async fn another_in(database: &TestDatabase) -> SqlStore {
    SqlStore::open_postgres(database.url(), 4, Entropy::system())
        .await
        .expect("it works for tests")
}

impl TestStore {
    /// A new database; none if there is no server.
    pub async fn open(backend: Backend) -> Option<Self> {
        let (store, database): (Arc<dyn TestedStore>, _) = match backend {
            Backend::Sqlite => {
                let directory = tempfile::tempdir().expect("it works for tests");
                let store =
                    SqlStore::open_sqlite(&directory.path().join("feedback.db"), Entropy::system()).await;
                let store = Arc::new(store.expect("it works for tests"));
                (Arc::clone(&store) as _, Database::Sqlite(store, directory))
            }
            Backend::Postgres => {
                let database = TestPostgres::create().await?;
                let store = SqlStore::open_postgres(database.url(), 4, Entropy::system()).await;
                let store = Arc::new(store.expect("it works for tests"));
                (Arc::clone(&store) as _, Database::Postgres(store, database))
            }
            Backend::Memory => {
                let store = MemoryStore::new(ManualClock::default().shared(), Arc::new(NoInterference));
                return Some(Self {
                    store: Arc::new(store.clone()),
                    database: Database::Memory(store),
                });
            }
        };
        let store = Self { store, database };
        store
            .execute(
                "CREATE TABLE test_clock AS SELECT now FROM database_clock;
                 DROP VIEW database_clock;
                 CREATE VIEW database_clock AS SELECT now FROM test_clock LIMIT 1;",
            )
            .await
            .expect("it works for tests");
        Some(store)
    }

    /// A new SQLite file.
    pub async fn sqlite() -> Self {
        Self::open(Backend::Sqlite).await.expect("SQLite is always there")
    }

    /// The store in memory, for another connection to it.
    pub fn memory(&self) -> &MemoryStore {
        match &self.database {
            Database::Memory(store) => store,
            Database::Sqlite(..) | Database::Postgres(..) => panic!("it is a database"),
        }
    }

    /// All that a database can do.
    pub fn sql(&self) -> Arc<SqlStore> {
        match &self.database {
            Database::Sqlite(store, _) | Database::Postgres(store, _) => store.clone(),
            Database::Memory(_) => panic!("the store in memory knows no SQL"),
        }
    }

    /// The same database as another replica sees it.
    pub async fn replica(&self) -> Arc<dyn TestedStore> {
        match &self.database {
            Database::Sqlite(_, directory) => Arc::new(another_on(directory).await),
            Database::Postgres(_, database) => Arc::new(another_in(database).await),
            Database::Memory(store) => Arc::new(store.connect(Arc::new(NoInterference))),
        }
    }

    /// The same, with all that a database can do.
    pub async fn sql_replica(&self) -> Arc<SqlStore> {
        match &self.database {
            Database::Sqlite(_, directory) => Arc::new(another_on(directory).await),
            Database::Postgres(_, database) => Arc::new(another_in(database).await),
            Database::Memory(_) => panic!("the store in memory knows no SQL"),
        }
    }

    /// Runs statements behind the store's back.
    pub async fn execute(&self, sql: &str) -> Result<u64, sqlx::Error> {
        self.sql().execute(AssertSqlSafe(sql.to_owned())).await
    }

    /// The one number that a query gives.
    pub async fn number(&self, sql: &str) -> i64 {
        self.sql().number(sql.to_owned()).await
    }

    /// Sets the database's clock.
    pub async fn set_clock(&self, at: Timestamp) {
        self.execute(&format!("UPDATE test_clock SET now = {}", at.as_microsecond()))
            .await
            .expect("it works for tests");
    }

    /// Multiplies the stored feedback and lets the database count it.
    pub async fn multiply(&self, times: u32) {
        let (id, analyze) = match &self.database {
            Database::Sqlite(..) => ("randomblob(16)", ""),
            _ => ("uuid_send(gen_random_uuid())", "ANALYZE;"),
        };
        let copies = format!(
            "WITH RECURSIVE copy (n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM copy WHERE n < {times})"
        );
        self.execute(&format!(
            "{copies} INSERT INTO feedback (accept_order, feedback_id, namespace, caller, request_id, kind, scope, correction,
                                            target, rating, traceparent, received_at)
             SELECT accept_order + n * 1000000, {id}, namespace, caller, '', kind, scope, correction, target, rating,
                    traceparent, received_at + n * 1000000 FROM feedback, copy;
             {copies} INSERT INTO feedback_personal (accept_order, namespace, reporter_id, session_id, client, client_key,
                                                     query_id, reason, context, retract_reason, rated)
             SELECT accept_order + n * 1000000, namespace, reporter_id, session_id, client, client_key, query_id, reason,
                    context, retract_reason, rated FROM feedback_personal, copy;
             {copies} INSERT INTO feedback_status (accept_order, namespace, delivery_state, event_count, outcome_of,
                                                   retracted_by, retract_role)
             SELECT accept_order + n * 1000000, namespace, 2, event_count, outcome_of, retracted_by, retract_role
             FROM feedback_status, copy; {analyze}"
        ))
        .await
        .expect("it works for tests");
    }

    /// How the database would find a list.
    pub async fn plan(&self, query: &FeedbackQuery) -> String {
        self.sql().plan(query).await
    }

    /// Moves the database's clock by this many seconds.
    pub async fn advance(&self, seconds: i64) {
        if let Database::Memory(store) = &self.database {
            return store.step_clock(SignedDuration::from_secs(seconds));
        }
        self.execute(&format!(
            "UPDATE test_clock SET now = now + {}",
            seconds * 1_000_000
        ))
        .await
        .expect("it works for tests");
    }

    /// What an audit finds wrong.
    pub async fn findings(&self) -> Vec<Finding> {
        let url = match &self.database {
            Database::Sqlite(_, directory) => DatabaseUrl::sqlite(directory.path().join("feedback.db")),
            Database::Postgres(_, database) => database.database_url(),
            Database::Memory(_) => panic!("the store in memory has no audit"),
        };
        let mut findings = Findings::default();
        let mut audit = Audit::open(&url).await.expect("it works for tests");
        audit.check(&mut findings).await.expect("it works for tests");
        findings.kept().to_vec()
    }

    /// Corrupts the feedback ids that belong to the request ids in use.
    pub async fn corrupt_request_ids(&self) {
        if let Database::Memory(store) = &self.database {
            store.tables().request_ids_corrupt = true;
            return;
        }
        // The table checks its columns, so it is replaced by one that does not.
        self.execute(
            "CREATE TABLE unchecked AS SELECT * FROM request_ids;
             DROP TABLE request_ids;
             ALTER TABLE unchecked RENAME TO request_ids;
             CREATE UNIQUE INDEX request_ids_unique ON request_ids (namespace, caller, request_id);
             UPDATE request_ids SET feedback_id = substr(feedback_id, 1, 3);",
        )
        .await
        .expect("it works for tests");
    }

    /// Drops the database.
    pub async fn close(self) {
        self.store.close().await;
        match self.database {
            Database::Sqlite(..) | Database::Memory(_) => {}
            Database::Postgres(_, database) => database.close().await,
        }
    }
}
