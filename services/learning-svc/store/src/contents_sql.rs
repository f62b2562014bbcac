//! Everything the store holds, read whole in one consistent state, for tests that check it for consistency. Written
//! once.

use emend_core::{AcceptOrder, CandidateId, ContestId, Revision, voter::VoterKey};
use emend_store::sql::Statement;
use emend_store::{CorruptRow, StoreError};

use crate::SqlStore;
use crate::{
    contents::{Contents, ContentsBallot},
    rows::{CountRow, StoredId},
};

type Result<T> = std::result::Result<T, StoreError>;

/// Contest id, candidate id, occurrences, reporters and the accept order of a ruling.
type CandidateRow = (Vec<u8>, Vec<u8>, i64, i64, i64);
/// Contest id, candidate id, voter, accept order and whether the voter is identified.
type BallotRow = (Vec<u8>, Vec<u8>, Vec<u8>, i64, i32);

const PRESENT: &str = "SELECT c.namespace, c.kind, count(*) AS count FROM resources AS r \
     JOIN contests AS c ON c.contest = r.contest GROUP BY c.namespace, c.kind";

/// Reads the contents.
pub(crate) async fn read(store: &SqlStore) -> Result<Contents> {
    let mut transaction = store.begin_read().await?;
    let uuid = |column: &'static str, bytes: &[u8]| {
        uuid::Uuid::from_slice(bytes)
            .map_err(|error| CorruptRow::new("audited", column, StoredId(bytes), error))
    };
    let mut records = Contents::default();
    let head: (i64,) = transaction
        .row(Statement::new("SELECT revision FROM head WHERE id = 1"))
        .await?;
    records.head = Revision(head.0);
    let revisions: Vec<(i64,)> = transaction
        .rows(Statement::new("SELECT revision FROM revisions ORDER BY revision"))
        .await?;
    records.revisions = revisions
        .into_iter()
        .map(|(revision,)| Revision(revision))
        .collect();
    let changes: Vec<(Vec<u8>, i64, Option<Vec<u8>>)> = transaction.rows(Statement::new("SELECT c.contest_id, h.revision, h.value FROM changes AS h JOIN contests AS c ON c.contest = h.contest \
         ORDER BY h.revision, h.ordinal"))
    .await?;
    for (contest, revision, value) in changes {
        let contest = ContestId(uuid("contest_id", &contest)?);
        records.changes.push((contest, Revision(revision), value));
    }
    let resources: Vec<(Vec<u8>, i64, Vec<u8>)> = transaction.rows(Statement::new("SELECT c.contest_id, r.revision, coalesce(r.value, (SELECT h.value FROM changes AS h \
         WHERE h.contest = r.contest AND +h.revision = r.revision)) FROM resources AS r JOIN contests AS c ON c.contest = r.contest \
         ORDER BY c.contest_id"))
    .await?;
    for (contest, revision, value) in resources {
        let contest = ContestId(uuid("contest_id", &contest)?);
        records.resources.push((contest, Revision(revision), value));
    }
    let candidates: Vec<CandidateRow> = transaction.rows(Statement::new("SELECT c.contest_id, k.candidate_id, k.occurrences, k.reporters, k.ruling_order FROM candidates AS k \
         JOIN contests AS c ON c.contest = k.contest"))
    .await?;
    for (contest, candidate, occurrences, reporters, ruling_order) in candidates {
        let contest = ContestId(uuid("contest_id", &contest)?);
        let candidate = CandidateId(uuid("candidate_id", &candidate)?);
        records
            .candidates
            .push((contest, candidate, occurrences, reporters, ruling_order != 0));
    }
    let ballots: Vec<BallotRow> = transaction
        .rows(Statement::new(
            "SELECT c.contest_id, b.candidate_id, b.voter, b.accept_order, b.identified FROM ballots AS b \
         JOIN contests AS c ON c.contest = b.contest WHERE b.retracted = 0",
        ))
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
    let counted: Vec<CountRow> = transaction
        .rows(Statement::new(
            "SELECT namespace, kind, count FROM resource_counts",
        ))
        .await?;
    records.counted = counted.iter().map(CountRow::parse).collect::<Result<_>>()?;
    let present: Vec<CountRow> = transaction.rows(Statement::new(PRESENT)).await?;
    records.present = present.iter().map(CountRow::parse).collect::<Result<_>>()?;
    transaction.commit().await?;
    Ok(records)
}
