//! How SQLite executes what settles deliveries.

use bytes::Bytes;
use emend_base::Entropy;
use emend_core::EventId;
use uuid::Uuid;

use super::{SqlStore, outbox};
use crate::records::outbox::EncodedOutcome;

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
