//! How SQLite executes what settles deliveries, and what it finds by an index.

use bytes::Bytes;
use emend_base::Entropy;
use emend_core::{EventId, Namespace, search::SearchRating};
use uuid::Uuid;

use super::{SqlStore, ledger, outbox, stats};
use crate::records::{
    feedback::FeedbackQuery, outbox::EncodedOutcome, ratings::RatingFilter, stats::StatsFilter,
};

/// SQLite plans a statement by how many rows it names, and with 256 it may pass over a whole table instead.
#[tokio::test]
async fn deliveries_are_settled_without_passing_over_other_feedback() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("feedback.db");
    let store = SqlStore::open_sqlite(&path, Entropy::system()).await.unwrap();
    let outcome = EncodedOutcome(Bytes::new());
    for count in [1, 64, 256] {
        let events = || (0..count).map(|id| EventId(Uuid::from_u128(id)));
        let answered: Vec<_> = (0..count)
            .map(|_| outbox::Answered {
                accept_order: 1,
                event_number: 1,
                outcome: &outcome,
            })
            .collect();
        for (statement, search) in [
            (
                outbox::places(events()),
                "SEARCH outbox USING PRIMARY KEY (event_id=?)",
            ),
            (
                outbox::leased(events()),
                "SEARCH outbox USING PRIMARY KEY (event_id=?)",
            ),
            (
                outbox::note_outcomes(&answered),
                "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
            ),
            (
                outbox::made_pending(&vec![(1, 1); answered.len()]),
                "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)",
            ),
        ] {
            let steps = store.pools.reader().await.unwrap().plan(statement).await;
            assert!(steps.contains(search), "{count} rows: {steps}");
            let passes_over = ["SCAN s", "SCAN outbox"].iter().any(|scan| steps.contains(scan));
            assert!(!passes_over, "{count} rows: {steps}");
        }
    }
}

/// Ratings that somebody dealt with are not passed over, nor those of another time.
#[tokio::test]
async fn the_worst_queries_are_counted_from_an_index_of_what_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("feedback.db");
    let store = SqlStore::open_sqlite(&path, Entropy::system()).await.unwrap();
    let at = Some(jiff::Timestamp::UNIX_EPOCH);
    for (from, before, period) in [
        (None, None, ""),
        (at, None, " AND rated_at>?"),
        (at, at, " AND rated_at>? AND rated_at<?"),
    ] {
        let filter = StatsFilter {
            namespace: Namespace::parse("fund-admin").unwrap(),
            from,
            before,
            query_type: Some("SEMANTIC".to_owned()),
        };
        let statement = stats::select_worst(&filter, 10);
        let steps = store.pools.reader().await.unwrap().plan(statement).await;
        let search = format!(
            "SEARCH r USING INDEX search_ratings_open (namespace=? AND rating=? AND processed=?{period})"
        );
        assert!(steps.contains(&search), "{steps}");
        for table in ["r", "s", "n", "f"] {
            assert!(!steps.contains(&format!("SCAN {table}")), "{steps}");
        }
    }
}

/// The answers to one query are found by its text, also those of a period and those that are open.
#[tokio::test]
async fn ratings_of_a_text_are_found_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("feedback.db");
    let store = SqlStore::open_sqlite(&path, Entropy::system()).await.unwrap();
    let at = Some(jiff::Timestamp::UNIX_EPOCH);
    for (from, before) in [(None, None), (at, None), (at, at)] {
        let query = FeedbackQuery {
            namespace: Namespace::parse("cards").unwrap(),
            reporter: None,
            kind: None,
            target: None,
            rating: None,
            search_ratings: Some(RatingFilter {
                value: Some(SearchRating::Down),
                processed: Some(false),
                query_text: Some("cards that bounce".to_owned()),
                only_counting: true,
                ..RatingFilter::default()
            }),
            delivery: None,
            from,
            before,
            after: None,
            limit: 100,
        };
        let reader = store.pools.reader().await;
        let mut reader = reader.unwrap();
        let statement = ledger::select_list(reader.dialect(), &query);
        let steps = reader.plan(statement).await;
        assert!(
            steps.contains("SEARCH r USING INDEX search_ratings_by_text"),
            "{steps}"
        );
    }
}
