//! SQLite, the embedded default: one writer at a time, readers that never wait.
//!
//! The portable SQL is compiled here against [`Db`]; this file holds what differs.

use std::path::Path;

use emend_core::{CandidateId, ContestId, FeedbackId};
use emend_store::{
    Connections, StoreError,
    audit::OpenError,
    sqlite::{SqlitePools, open_sqlite, open_sqlite_to_read},
};
use sqlx::{QueryBuilder, migrate::Migrator, pool::PoolConnection, query_builder::Separated};

use self::work_sql::bytes;
use crate::{audit::store::AuditRead, store::Keyed};

#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../audit/store/evidence_sql.rs"]
mod audit_evidence_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../audit/store/sql.rs"]
mod audit_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../resources/store/bulk_sql.rs"]
mod bulk_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../contests/store/lists_sql.rs"]
mod candidates_sql;
#[cfg(any(test, feature = "simulation"))]
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "contents_sql.rs"]
mod contents_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../contests/store/sql.rs"]
mod contests_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/deletes_sql.rs"]
mod deletes_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/elements_sql.rs"]
mod elements_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../erasure/store/sql.rs"]
mod erasures_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/events_sql.rs"]
mod events_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/reads_sql.rs"]
mod evidence_reads_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/sql.rs"]
mod evidence_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/exports_sql.rs"]
mod exports_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/identities_sql.rs"]
mod identities_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../outputs/store/improvements_sql.rs"]
mod improvements_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../ingest/store/sql.rs"]
mod inbox_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/levels_sql.rs"]
mod levels_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../log/store/sql.rs"]
mod log_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../nodes/store/sql.rs"]
mod nodes_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../policies/store/sql.rs"]
mod policies_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../profiles/store/sql.rs"]
mod profiles_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../outputs/store/sql.rs"]
mod ratings_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/refresh_sql.rs"]
mod refresh_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/replace_sql.rs"]
mod replace_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../resources/store/sql.rs"]
mod resources_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../log/store/lists_sql.rs"]
mod revisions_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../standings/store/sql.rs"]
mod standings_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/trust_sql.rs"]
mod trust_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/upsert_sql.rs"]
mod upsert_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/verification_sql.rs"]
mod verification_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "work_sql.rs"]
mod work_sql;
#[expect(clippy::duplicate_mod, reason = "portable SQL, compiled once per database")]
#[path = "../evidence/store/works_sql.rs"]
mod works_sql;

/// The database that the portable SQL is compiled against.
pub(super) type Db = sqlx::Sqlite;
/// A transaction of the store.
pub(super) type Transaction = sqlx::Transaction<'static, Db>;
/// The store of that database.
pub(super) type Backend = SqliteStore;

/// Only one transaction writes at a time: there are no rows to lock, and a contest is created when it is written.
const LOCKS_ROWS: bool = false;

/// It takes several statements at once.
const TAKES_SEVERAL: bool = true;

/// Events applied in one transaction: the more, the fewer statements, and the fewer times a page is written.
const GROUP: usize = 256;

/// Locks the rows of a SELECT: nothing to do, the one writer holds the whole file.
pub(super) const FOR_UPDATE: &str = "";
/// Locks the rows of a SELECT against changes: nothing to do either.
pub(super) const FOR_SHARE: &str = "";

/// Appends the condition that a contest has one of these ids. Their index begins with the hash of the key, and a list for each
/// of its columns would be looked up in all combinations.
fn push_contests(query: &mut QueryBuilder<Db>, ids: impl IntoIterator<Item = ContestId>) {
    let condition = ("(key_hash, contest_id) IN (", ")");
    push_named(query, condition, ids, |mut row, id| {
        row.push_bind(id.key_hash()).push_bind(bytes(id.0));
    });
}

/// Appends the condition that a candidate `k` has one of these ids. They have no index of their own: they are looked up in the
/// contests whose ids begin and end as theirs say: their own, and of others with the same key one in 65,536.
fn push_candidates(query: &mut QueryBuilder<Db>, ids: impl IntoIterator<Item = CandidateId>) {
    let condition = (
        "(k.contest, k.candidate_id) IN (SELECT n.contest, named.column4 FROM (",
        ") AS named CROSS JOIN contests AS n WHERE n.key_hash = named.column1 \
         AND n.contest_id BETWEEN named.column2 AND named.column3)",
    );
    push_named(query, condition, ids, |mut row, id| {
        let (first, last) = id.contests().into_inner();
        row.push_bind(id.key_hash())
            .push_bind(bytes(first.0))
            .push_bind(bytes(last.0))
            .push_bind(bytes(id.0));
    });
}

/// Appends a condition around `VALUES` with a row for each id; for none, one that nothing meets.
fn push_named<T>(
    query: &mut QueryBuilder<Db>,
    (before, after): (&str, &str),
    ids: impl IntoIterator<Item = T>,
    bind: impl FnMut(Separated<'_, Db, &'static str>, T),
) {
    let mut ids = ids.into_iter().peekable();
    if ids.peek().is_none() {
        query.push("FALSE");
    } else {
        query.push(before);
        query.push_values(ids, bind).push(after);
    }
}

/// Begins a transaction that reads one state, however long it takes.
const BEGIN_AUDIT: &str = "BEGIN";

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// The store in one SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pools: SqlitePools,
}

impl SqliteStore {
    /// Opens the file, creating it if need be.
    pub async fn open(path: &Path, readers: u32) -> Result<Self, StoreError> {
        let pools = open_sqlite(path, readers, &MIGRATIONS).await?;
        Ok(Self { pools })
    }

    /// Opens everything in the file for an audit.
    pub(crate) async fn read(path: &Path) -> Result<Box<dyn AuditRead>, OpenError> {
        let pool = open_sqlite_to_read(path, &MIGRATIONS).await?;
        Ok(Box::new(audit_sql::Reading::begin(pool).await?))
    }

    /// A read-only connection.
    pub(super) async fn reader(&self) -> Result<PoolConnection<Db>, StoreError> {
        Ok(self.pools.read.acquire().await?)
    }

    /// A connection for a statement that may scan a lot.
    pub(super) async fn browser(&self) -> Result<PoolConnection<Db>, StoreError> {
        self.pools.browse().await
    }

    /// Begins a transaction that may write; all other writers wait.
    pub(super) async fn begin_write(&self) -> Result<Transaction, StoreError> {
        self.pools.begin_write().await
    }

    /// Begins the transaction of a unit of work.
    pub(super) async fn begin_work(&self) -> Result<Transaction, StoreError> {
        self.begin_write().await
    }

    /// The same for several callers: there are no locks but the one of the whole file, for which they queue.
    pub(super) async fn begin_group_work(&self) -> Result<Transaction, StoreError> {
        self.begin_write().await
    }

    /// Begins a transaction that reads one consistent state.
    pub(super) async fn begin_read(&self) -> Result<Transaction, StoreError> {
        self.pools.begin_read().await
    }

    /// Runs a test's statements.
    #[cfg(test)]
    pub(super) async fn tamper(&self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::raw_sql(sql).execute(&self.pools.write).await?;
        self.close_pools().await;
        Ok(())
    }

    /// Takes what was deleted out of the file's write-ahead log. Whether it is done.
    pub(super) async fn clean(&self) -> Result<bool, StoreError> {
        self.pools.truncate_log().await
    }

    /// The current state of all connections.
    pub(super) fn pool_connections(&self) -> Connections {
        self.pools.connections()
    }

    /// Closes all connections.
    pub(super) async fn close_pools(&self) {
        self.pools.close().await;
    }
}

/// Keys for `count` new rows of a table with a key of its own.
pub(super) async fn new_keys(
    transaction: &mut Transaction,
    table: Keyed,
    count: usize,
) -> Result<Vec<i64>, StoreError> {
    let newest = match table {
        Keyed::Contests => "SELECT coalesce(max(contest), 0) FROM contests",
        Keyed::Candidates => "SELECT coalesce(max(candidate), 0) FROM candidates",
    };
    // The one writer is alone: nobody else takes the keys after the newest.
    let newest: i64 = sqlx::query_scalar(newest).fetch_one(&mut **transaction).await?;
    Ok((newest + 1..).take(count).collect())
}

/// Nothing to lock: nobody else writes while this transaction does.
pub(super) async fn lock_feedback(
    _transaction: &mut Transaction,
    _ids: &[FeedbackId],
) -> Result<(), StoreError> {
    Ok(())
}

/// Nothing to do: plans do not depend on how large tables are.
pub(super) async fn plan_anew(_transaction: &mut Transaction) -> Result<(), StoreError> {
    Ok(())
}

/// Nothing to do: this process's tailer is woken after the commit, and no other process can have the file open.
pub(super) async fn notify(_transaction: &mut Transaction) -> Result<(), StoreError> {
    Ok(())
}

/// A fresh, empty store and its directory.
#[cfg(test)]
pub(super) async fn open_for_test() -> Option<(Backend, tempfile::TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("learning.db"), 2)
        .await
        .unwrap();
    Some((store, directory))
}

#[cfg(test)]
mod tests {
    use emend_core::{
        AcceptOrder, Key, Kind, Namespace, OperationId, ResourceKey, Revision, Status, kinds::Form,
    };
    use sqlx::AssertSqlSafe;

    use super::*;
    use crate::{contests::store::CandidateFilter, evidence::store::RulingWrite, log::store::RevisionFilter};

    /// The steps of a plan. SQLite has no statistics here, so the statement alone decides.
    async fn plan(store: &SqliteStore, query: &QueryBuilder<Db>) -> Vec<String> {
        let plan = format!("EXPLAIN QUERY PLAN {}", query.sql().as_str());
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(plan))
            .fetch_all(&mut *store.reader().await.unwrap())
            .await
            .unwrap();
        steps.into_iter().map(|(.., step)| step).collect()
    }

    fn assert_searches(steps: &[String], index: &str) {
        let searches = |step: &String| step.starts_with("SEARCH") && step.contains(index);
        assert!(steps.iter().any(searches), "no search by {index}: {steps:#?}");
        // Only what was found before is read from one end to the other.
        let scans = |step: &&String| step.starts_with("SCAN");
        let found = ["found", "newest", "list_", "kind_"];
        for scan in steps.iter().filter(scans) {
            let of_found = found
                .iter()
                .any(|found| scan["SCAN ".len()..].trim_start_matches('(').starts_with(found));
            assert!(of_found, "{scan}: {steps:#?}");
        }
    }

    #[tokio::test]
    async fn revisions_are_found_by_an_index_of_what_is_asked_for() {
        let (store, _directory) = open_for_test().await.unwrap();
        let all = RevisionFilter {
            namespace: Namespace::parse("fund-admin").unwrap(),
            keys: Vec::new(),
            kind: None,
            operation: None,
        };
        let keys = vec![Key::parse(Form::Phrase, "jd").unwrap()];
        let operation = Some(OperationId(uuid::Uuid::from_u128(1)));
        let kind = Some(Kind::EntityAlias);
        for (filter, index) in [
            (
                all.clone(),
                "r USING PRIMARY KEY (namespace=? AND kind=? AND revision<?)",
            ),
            (
                RevisionFilter { kind, ..all.clone() },
                "r USING PRIMARY KEY (namespace=? AND kind=? AND revision<?)",
            ),
            (
                RevisionFilter {
                    kind,
                    keys,
                    ..all.clone()
                },
                "c USING INDEX contests_by_key",
            ),
            (
                RevisionFilter {
                    kind,
                    operation,
                    ..all
                },
                "r USING COVERING INDEX revisions_by_operation",
            ),
        ] {
            let query = revisions_sql::matching(&filter, Some(Revision(7)), 100);
            assert_searches(&plan(&store, &query).await, index);
        }
    }

    /// That a plan finds the rows of a large table by this search alone.
    fn assert_finds(steps: &[String], search: &str) {
        assert!(
            steps.iter().any(|step| step.starts_with(search)),
            "no {search}: {steps:#?}"
        );
        let table: String = search.split(' ').take(2).skip(1).collect();
        let passes_over = |step: &String| format!("{step} ").starts_with(&format!("SCAN {table} "));
        assert!(!steps.iter().any(passes_over), "{steps:#?}");
    }

    #[tokio::test]
    async fn rare_contests_are_found_without_passing_over_the_others() {
        let (store, _directory) = open_for_test().await.unwrap();
        let arrived = evidence_reads_sql::to_arrive(None, 100);
        assert_finds(
            &plan(&store, &arrived).await,
            "SEARCH contests USING INDEX contests_to_arrive (contest_id>?)",
        );
        assert_finds(
            &plan(&store, &erasures_sql::expired(100)).await,
            "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)",
        );
    }

    #[tokio::test]
    async fn candidates_are_counted_in_the_order_of_an_index() {
        let (store, _directory) = open_for_test().await.unwrap();
        let steps = plan(&store, &QueryBuilder::new(candidates_sql::COUNTS)).await;
        let scan = steps.iter().position(|step| step.starts_with("SCAN candidates"));
        let sort = steps.iter().position(|step| step.contains("TEMP B-TREE"));
        assert_eq!(
            steps[scan.unwrap()],
            "SCAN candidates USING COVERING INDEX candidates_listed"
        );
        assert!(scan < sort, "only the sums are sorted: {steps:#?}");
    }

    /// SQLite plans a statement by how many rows it names, and with 256 it may pass over a whole table instead.
    #[tokio::test]
    async fn claims_and_edges_are_found_by_namespace_and_id() {
        let (store, _directory) = open_for_test().await.unwrap();
        let claim = "INDEX sqlite_autoindex_evidence_claims_1 (space=? AND claim_id=?)";
        let edge = "INDEX sqlite_autoindex_evidence_edges_1 (space=? AND edge_id=?)";
        for count in [1, 256] {
            let rulings: Vec<RulingWrite> = (0..count)
                .map(|number| RulingWrite {
                    key: ResourceKey::parse("n", Some(Kind::ClaimState), &format!("{number}"), "", "")
                        .unwrap(),
                    ruled: 0,
                    accept_order: AcceptOrder(1),
                    candidate: None,
                })
                .collect();
            let keys: Vec<&ResourceKey> = rulings.iter().map(|ruling| &ruling.key).collect();
            let rows: Vec<(i64, &RulingWrite)> = rulings.iter().map(|ruling| (1, ruling)).collect();
            for (statement, search) in [
                (
                    evidence_sql::named(evidence_sql::KNOWN_CLAIMS, &keys),
                    format!("t USING COVERING {claim}"),
                ),
                (
                    evidence_sql::named(evidence_sql::KNOWN_EDGES, &keys),
                    format!("t USING {edge}"),
                ),
                (
                    evidence_sql::ruled(evidence_sql::CLAIMS_RULED, &rows),
                    format!("evidence_claims USING {claim}"),
                ),
                (
                    evidence_sql::ruled(evidence_sql::CLAIMS_OF_EDGES, &rows),
                    format!("e USING {edge}"),
                ),
                (
                    evidence_sql::ruled(evidence_sql::EDGES_RULED, &rows),
                    format!("evidence_edges USING {edge}"),
                ),
            ] {
                assert_finds(&plan(&store, &statement).await, &format!("SEARCH {search}"));
            }
        }
    }

    #[tokio::test]
    async fn the_change_that_a_resource_comes_from_is_found_by_its_contest() {
        let (store, _directory) = open_for_test().await.unwrap();
        let query = QueryBuilder::new(log_sql::RESOURCES);
        let steps = plan(&store, &query).await;
        assert_searches(&steps, "h USING INDEX changes_by_contest (contest=?)");
        let candidates = contests_sql::live_candidates(&[1, 2]);
        assert_searches(
            &plan(&store, &candidates).await,
            "h USING INDEX changes_by_contest (contest=?)",
        );
        for count in [1, 2, 4, 256] {
            let contests: Vec<i64> = (0..count).collect();
            let steps = plan(&store, &contests_sql::live_candidates(&contests)).await;
            assert_finds(
                &steps,
                "SEARCH candidates USING INDEX candidates_under_review (contest=? AND status=?",
            );
        }
    }

    /// A candidate's id says between which ids its contest's lies.
    const CONTESTS_NAMED: &str =
        "SEARCH n USING COVERING INDEX contests_by_key (key_hash=? AND contest_id>? AND contest_id<?)";

    #[tokio::test]
    async fn contests_and_candidates_are_found_by_what_their_ids_say() {
        let (store, _directory) = open_for_test().await.unwrap();
        for count in [1, 2, 256] {
            let ids: Vec<uuid::Uuid> = (0..count).map(uuid::Uuid::from_u128).collect();
            let mut contests = QueryBuilder::new("SELECT * FROM contests WHERE ");
            push_contests(&mut contests, ids.iter().copied().map(ContestId));
            assert_finds(
                &plan(&store, &contests).await,
                "SEARCH contests USING INDEX contests_by_key (key_hash=? AND contest_id=?)",
            );
            let ids: Vec<CandidateId> = ids.into_iter().map(CandidateId).collect();
            for query in [trust_sql::decisions(&ids), trust_sql::rulings_before(&ids)] {
                assert_finds_candidates(&plan(&store, &query).await);
            }
        }
        let id = CandidateId(uuid::Uuid::from_u128(1));
        for query in [
            contests_sql::contest_of(id),
            candidates_sql::candidate_record(id),
            candidates_sql::feedback_of(id, 7),
            candidates_sql::transitions_of(id, 7),
            profiles_sql::suggestion(id),
        ] {
            assert_finds_candidates(&plan(&store, &query).await);
        }
    }

    fn assert_finds_candidates(steps: &[String]) {
        assert_finds(steps, CONTESTS_NAMED);
        let by_contest = |step: &String| {
            step.starts_with("SEARCH k USING ")
                && step.ends_with("INDEX candidates_by_contest (contest=? AND candidate_id=?)")
        };
        assert!(steps.iter().any(by_contest), "{steps:#?}");
    }

    #[tokio::test]
    async fn no_ids_name_nothing() {
        let (store, _directory) = open_for_test().await.unwrap();
        let mut contests = QueryBuilder::new("SELECT count(*) FROM contests WHERE ");
        push_contests(&mut contests, []);
        let mut candidates = QueryBuilder::new("SELECT count(*) FROM candidates AS k WHERE ");
        push_candidates(&mut candidates, []);
        for mut query in [contests, candidates] {
            let mut reader = store.reader().await.unwrap();
            let found: i64 = query.build_query_scalar().fetch_one(&mut *reader).await.unwrap();
            assert_eq!(found, 0);
        }
    }

    #[tokio::test]
    async fn what_a_feedback_supports_is_found_by_its_id() {
        let (store, _directory) = open_for_test().await.unwrap();
        let namespace = Namespace::parse("fund-admin").unwrap();
        let feedback = [1, 2].map(|id| FeedbackId(uuid::Uuid::from_u128(id)));
        for (query, index) in [
            (
                standings_sql::ballots(&namespace, &feedback),
                "b USING PRIMARY KEY (feedback_id=?)",
            ),
            (
                standings_sql::candidates(&namespace, &feedback),
                "k USING INDEX candidates_by_contest (contest=? AND candidate_id=?)",
            ),
            (
                standings_sql::ratings(&namespace, &feedback),
                "n USING COVERING INDEX rated_outputs_by_class (contest=? AND class=? AND (accept_order,feedback_id)>(?,?))",
            ),
        ] {
            assert_searches(&plan(&store, &query).await, index);
        }
    }

    #[tokio::test]
    async fn candidates_are_found_by_an_index_of_what_is_asked_for() {
        let (store, _directory) = open_for_test().await.unwrap();
        let all = CandidateFilter {
            user: None,
            namespace: Namespace::parse("fund-admin").unwrap(),
            kinds: Vec::new(),
            statuses: Vec::new(),
            keys: Vec::new(),
        };
        let of_both = CandidateFilter {
            kinds: vec![Kind::EntityAlias, Kind::Prohibition],
            statuses: vec![Status::Pending, Status::AwaitingReview],
            ..all.clone()
        };
        let of_key = CandidateFilter {
            keys: vec![emend_core::NormalizedKey::parse("jd").unwrap().into()],
            ..all.clone()
        };
        for (filter, index) in [
            (
                all,
                "n USING COVERING INDEX candidates_listed (namespace=? AND kind=? AND status=?)",
            ),
            (
                of_both,
                "n USING COVERING INDEX candidates_listed (namespace=? AND kind=? AND status=?)",
            ),
            (of_key, "c USING INDEX contests_by_key"),
        ] {
            let query = candidates_sql::listed(&filter, None, 100);
            let steps = plan(&store, &query).await;
            assert_searches(&steps, index);
        }
    }
}
