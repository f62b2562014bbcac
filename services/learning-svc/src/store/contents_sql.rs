//! Everything the store holds, read whole in one consistent state, for tests that check it for consistency. Written
//! once, compiled for each database.

use emend_core::{AcceptOrder, CandidateId, ContestId, Revision, contest::VoterKey};
use emend_store::{CorruptRow, StoreError};

use super::Backend;
use crate::store::{
    contents::{Contents, ContentsBallot},
    rows::CountRow,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Reads the contents.
pub(super) async fn read(store: &Backend) -> Result<Contents> {
    let mut transaction = store.begin_read().await?;
    let uuid = |column: &'static str, text: &str| {
        uuid::Uuid::try_parse(text).map_err(|error| CorruptRow::new("audited", column, text, error))
    };
    let mut records = Contents::default();
    let head: (i64,) = sqlx::query_as("SELECT revision FROM head WHERE id = 1")
        .fetch_one(&mut *transaction)
        .await?;
    records.head = Revision(head.0);
    let revisions: Vec<(i64,)> = sqlx::query_as("SELECT revision FROM revisions ORDER BY revision")
        .fetch_all(&mut *transaction)
        .await?;
    records.revisions = revisions
        .into_iter()
        .map(|(revision,)| Revision(revision))
        .collect();
    let changes: Vec<(String, i64, Option<Vec<u8>>)> =
        sqlx::query_as("SELECT contest_id, revision, value FROM changes ORDER BY revision, ordinal")
            .fetch_all(&mut *transaction)
            .await?;
    for (contest, revision, value) in changes {
        let contest = ContestId(uuid("contest_id", &contest)?);
        records.changes.push((contest, Revision(revision), value));
    }
    let resources: Vec<(String, i64, Vec<u8>)> =
        sqlx::query_as("SELECT contest_id, revision, value FROM resources ORDER BY contest_id")
            .fetch_all(&mut *transaction)
            .await?;
    for (contest, revision, value) in resources {
        let contest = ContestId(uuid("contest_id", &contest)?);
        records.resources.push((contest, Revision(revision), value));
    }
    let candidates: Vec<(String, String, i64, i64)> =
        sqlx::query_as("SELECT contest_id, candidate_id, occurrences, reporters FROM candidates")
            .fetch_all(&mut *transaction)
            .await?;
    for (contest, candidate, occurrences, reporters) in candidates {
        let contest = ContestId(uuid("contest_id", &contest)?);
        let candidate = CandidateId(uuid("candidate_id", &candidate)?);
        records
            .candidates
            .push((contest, candidate, occurrences, reporters));
    }
    let ballots: Vec<(String, String, String, i64, i32)> = sqlx::query_as(
        "SELECT contest_id, candidate_id, voter, accept_order, identified FROM ballots WHERE retracted = 0",
    )
    .fetch_all(&mut *transaction)
    .await?;
    for (contest, candidate, voter, order, identified) in ballots {
        records.ballots.push(ContentsBallot {
            contest: ContestId(uuid("contest_id", &contest)?),
            candidate: CandidateId(uuid("candidate_id", &candidate)?),
            voter: VoterKey(uuid("voter", &voter)?),
            accept_order: AcceptOrder(order),
            identified: identified != 0,
        });
    }
    let counted: Vec<CountRow> = sqlx::query_as("SELECT namespace, kind, count FROM resource_counts")
        .fetch_all(&mut *transaction)
        .await?;
    records.counted = counted.iter().map(CountRow::parse).collect::<Result<_>>()?;
    let present: Vec<CountRow> =
        sqlx::query_as("SELECT namespace, kind, count(*) AS count FROM resources GROUP BY namespace, kind")
            .fetch_all(&mut *transaction)
            .await?;
    records.present = present.iter().map(CountRow::parse).collect::<Result<_>>()?;
    transaction.commit().await?;
    Ok(records)
}
