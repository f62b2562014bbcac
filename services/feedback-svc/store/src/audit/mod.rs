//! Checks that what this service stored is consistent with itself, and reads it feedback by feedback, for comparison
//! with what learning-svc holds.
//!
//! An [`Audit`] reads one consistent state, as of the moment it was opened, alongside running replicas; it changes
//! nothing. Memory is bounded: feedback comes one at a time. It must know nothing of learning-svc's schema or rules.

mod entry;
mod queries;
mod ratings;

use emend_core::FeedbackId;
use emend_store::{
    DatabaseUrl, StoreError,
    audit::{Findings, OpenError, in_groups},
};
use futures::{StreamExt as _, stream::BoxStream};

pub(crate) use crate::audit::entry::ListedRating;
pub use crate::audit::entry::{Delivery, Entry, OutboxEntry};
use crate::{rows::AuditedRow, sql::Reading};

emend_store::checks! {
    FEEDBACK_PARTS: "A feedback, its personal part and its status exist together, in one namespace; outbox entries and request ids name a feedback that exists, or the erasure of a reporter.";
    FEEDBACK_KIND: "The kind by which a feedback is listed is that of its correction, and so are, of a rating, the target and the value.";
    FEEDBACK_REDACTED: "A redacted feedback has no personal part.";
    FEEDBACK_STATUS: "A feedback's status counts its events: one when it was stored, one more for each retraction that counts; the outcome is that of the newest event that was delivered.";
    OUTBOX_STATE: "The newest event of a feedback is in the outbox, pending or dead as the feedback says, unless it was delivered.";
    OUTBOX_ENTRY: "An outbox entry holds an event of its feedback, with the same content, under a unique number.";
    SEARCH_RATING: "A rating of a search answer is listed with its value and its query, under its reporter's pseudonym, and nothing else is; of one reporter's ratings of one query the newest counts.";
    RATING_CONTEXT: "What is known of a rating's query is that of the copy that it has of the query, unless the copy is erased, as it is of a redacted rating; of a query that is not known there is nothing, and of one that is known nothing that the reporter sent.";
    RATING_LABELS: "The tags of a rating are in alphabetical order, each once and between spaces, by which they are found.";
    RATING_TIME: "A rating counts for its reporter's limit from when it was stored.";
    QUERY_PARTS: "A recorded query and its personal part exist together, in one namespace.";
    QUERY_COUNT: "No fewer queries are counted than are still kept, on each day at least one, and no term was in more queries than there were.";
    QUERY_CLICK: "An interaction counts as a click exactly if its action is named after one.";
    DATED_AHEAD: "No rating, query or interaction is dated more than an hour after now, or it would count for a limit, or be kept, for longer than it should.";
    MINED_REWORDING: "A rewording, or another spelling, that was proposed has two wordings in normal form, and its event, until it is delivered, proposes them as a synonym.";
    REQUEST_ID_TAKEN_TWICE: "A request id of a caller was used once within the seven days for which it is kept.";
    ACCEPT_ORDER: "No feedback has an accept order above the last one assigned, which would be assigned again.";
}

/// The shortest time for which a request id is kept, in microseconds.
const REQUEST_ID_KEPT: i64 = 7 * 24 * 3600 * 1_000_000;

/// How far ahead of the database's clock something may be dated, in microseconds: the clock may have been set back.
const AHEAD: i64 = 3600 * 1_000_000;

/// One read of everything stored.
pub struct Audit {
    reading: Reading,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Audit {
    /// Begins to read the state as of this moment, whatever is stored meanwhile.
    pub async fn open(database: &DatabaseUrl) -> Result<Self, OpenError> {
        Ok(Self {
            reading: Reading::begin(database).await?,
        })
    }

    /// How many feedbacks there are.
    pub async fn count(&mut self) -> Result<u64, StoreError> {
        self.reading.count().await
    }

    /// How many events await delivery, dead letters excluded.
    pub async fn waiting(&mut self) -> Result<u64, StoreError> {
        self.reading.waiting().await
    }

    /// All feedback, by id. One that can't be read is an error of its own ([`StoreError::Corrupt`]), after which the
    /// others follow; any other error ends the stream.
    pub fn entries(&mut self) -> BoxStream<'_, Result<Entry, StoreError>> {
        gathered(self.reading.rows())
    }

    /// The same for these ids; those that do not exist are left out.
    pub fn entries_of(&mut self, ids: &[FeedbackId]) -> BoxStream<'_, Result<Entry, StoreError>> {
        gathered(self.reading.rows_of(ids))
    }

    /// Whether this rewording, in normal form, was proposed as a synonym in that namespace.
    pub async fn was_mined(
        &mut self,
        namespace: &str,
        failed: &str,
        worked: &str,
    ) -> Result<bool, StoreError> {
        self.reading.was_mined(namespace, failed, worked).await
    }

    /// Checks the invariants that span feedbacks; [`Entry::check`] checks those of one.
    pub async fn check(&mut self, findings: &mut Findings) -> Result<(), StoreError> {
        for adrift in self.reading.adrift().await? {
            let message = if adrift.missing {
                format!("the feedback has no row in {}", adrift.part)
            } else {
                format!("a row in {} names a feedback that does not exist", adrift.part)
            };
            let evidence = format!("accept order {}", adrift.accept_order);
            findings.add(FEEDBACK_PARTS, evidence, message);
        }
        for order in self.reading.wrongly_replaced().await? {
            findings.add(
                SEARCH_RATING,
                format_args!("accept order {order}"),
                "whether a newer rating replaces it is not what the ratings of its query say",
            );
        }
        ratings::check(&mut self.reading, findings).await?;
        queries::check(&mut self.reading, findings).await?;
        for repeated in self.reading.repeated_request_ids(REQUEST_ID_KEPT).await? {
            findings.add(
                REQUEST_ID_TAKEN_TWICE,
                format_args!("accept order {}", repeated.accept_order),
                format_args!(
                    "it was stored although the feedback with accept order {} has the same caller's request id",
                    repeated.earlier
                ),
            );
        }
        let (newest, last) = self.reading.accept_orders().await?;
        if newest > last {
            findings.add(
                ACCEPT_ORDER,
                format_args!("accept order {newest}"),
                format_args!("the last one assigned is {last}"),
            );
        }
        Ok(())
    }
}

/// Merges the rows of each feedback into one entry.
fn gathered(rows: BoxStream<'_, Result<AuditedRow, StoreError>>) -> BoxStream<'_, Result<Entry, StoreError>> {
    in_groups(rows, |one, other| one.accept_order() == other.accept_order())
        .map(|rows| Ok(AuditedRow::entry_of(rows?)?))
        .boxed()
}
