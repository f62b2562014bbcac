//! What SQLite finds by which index. It has no statistics: the text of a statement decides.

use emend_core::{
    AcceptOrder, Key, Kind, Namespace, OperationId, ResourceKey, Revision, Status, kinds::Form,
};
use emend_core::{CandidateId, ContestId, FeedbackId};
use emend_store::sql::Statement;

use crate::contests::lists_sql as candidates_sql;
use crate::contests::sql as contests_sql;
use crate::erasure::sql as erasures_sql;
use crate::evidence::reads_sql as evidence_reads_sql;
use crate::evidence::sql as evidence_sql;
use crate::evidence::trust_sql;
use crate::log::lists_sql as revisions_sql;
use crate::log::sql as log_sql;
use crate::profiles::sql as profiles_sql;
use crate::standings::sql as standings_sql;
use crate::{
    SqlStore,
    database::{push_candidates, push_contests},
    testing::TestDatabase,
};
use crate::{
    contests::{CandidateFilter, Listing},
    evidence::RulingWrite,
    log::RevisionFilter,
};

/// The steps of a plan. SQLite has no statistics here, so the statement alone decides.
async fn plan(store: &SqlStore, query: Statement) -> Vec<String> {
    let plan = store.reader().await.unwrap().plan(query).await;
    plan.lines().map(str::to_owned).collect()
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
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
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
        assert_searches(&plan(&store, query).await, index);
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
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    let arrived = evidence_reads_sql::to_arrive(None, 100);
    assert_finds(
        &plan(&store, arrived).await,
        "SEARCH contests USING INDEX contests_to_arrive (contest_id>?)",
    );
    assert_finds(
        &plan(&store, erasures_sql::expired(100)).await,
        "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)",
    );
}

#[tokio::test]
async fn candidates_are_counted_in_the_order_of_an_index() {
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    let steps = plan(&store, Statement::new(candidates_sql::COUNTS)).await;
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
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    let claim = "INDEX sqlite_autoindex_evidence_claims_1 (space=? AND claim_id=?)";
    let edge = "INDEX sqlite_autoindex_evidence_edges_1 (space=? AND edge_id=?)";
    for count in [1, 256] {
        let rulings: Vec<RulingWrite> = (0..count)
            .map(|number| RulingWrite {
                key: ResourceKey::parse("n", Some(Kind::ClaimState), &format!("{number}"), "", "").unwrap(),
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
            assert_finds(&plan(&store, statement).await, &format!("SEARCH {search}"));
        }
    }
}

#[tokio::test]
async fn the_change_that_a_resource_comes_from_is_found_by_its_contest() {
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    let query = Statement::new(log_sql::RESOURCES);
    let steps = plan(&store, query).await;
    assert_searches(&steps, "h USING INDEX changes_by_contest (contest=?)");
    let candidates = contests_sql::live_candidates(&[1, 2]);
    assert_searches(
        &plan(&store, candidates).await,
        "h USING INDEX changes_by_contest (contest=?)",
    );
    for count in [1, 2, 4, 256] {
        let contests: Vec<i64> = (0..count).collect();
        let steps = plan(&store, contests_sql::live_candidates(&contests)).await;
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
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    for count in [1, 2, 256] {
        let ids: Vec<uuid::Uuid> = (0..count).map(uuid::Uuid::from_u128).collect();
        let mut contests = Statement::new("SELECT * FROM contests WHERE ");
        push_contests(&mut contests, ids.iter().copied().map(ContestId));
        assert_finds(
            &plan(&store, contests).await,
            "SEARCH contests USING INDEX contests_by_key (key_hash=? AND contest_id=?)",
        );
        let ids: Vec<CandidateId> = ids.into_iter().map(CandidateId).collect();
        for query in [trust_sql::decisions(&ids), trust_sql::rulings_before(&ids)] {
            assert_finds_candidates(&plan(&store, query).await);
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
        assert_finds_candidates(&plan(&store, query).await);
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
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    let mut contests = Statement::new("SELECT count(*) FROM contests WHERE ");
    push_contests(&mut contests, []);
    let mut candidates = Statement::new("SELECT count(*) FROM candidates AS k WHERE ");
    push_candidates(&mut candidates, []);
    for query in [contests, candidates] {
        let mut reader = store.reader().await.unwrap();
        let found: i64 = reader.value(query).await.unwrap();
        assert_eq!(found, 0);
    }
}

#[tokio::test]
async fn what_a_feedback_supports_is_found_by_its_id() {
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
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
        assert_searches(&plan(&store, query).await, index);
    }
}

#[tokio::test]
async fn candidates_are_found_by_an_index_of_what_is_asked_for() {
    let (store, _directory) = TestDatabase::Sqlite.open().await.unwrap();
    let all = CandidateFilter {
        reviewed: crate::contests::Involvement::default(),
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
        let query = candidates_sql::listed(&filter, &Listing::default(), None, 100);
        let steps = plan(&store, query).await;
        assert_searches(&steps, index);
    }
}
