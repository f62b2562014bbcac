//! The inbox in SQL.

use async_trait::async_trait;
use emend_core::{EventId, FeedbackId};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::database::bytes;
use crate::database::lock_feedback;
use crate::work::Work;
use crate::{
    batches::batches,
    contests::rows::KnownBallotRow,
    ingest::{InboxRepository, InboxWrite, Mark, Marks, Seen, rows::SeenRow},
};

type Result<T> = std::result::Result<T, StoreError>;

const RETRACTION_MARKS: &str = "retraction_marks";

#[async_trait]
impl InboxRepository for Work {
    async fn lock_feedback(&mut self, ids: &[FeedbackId]) -> Result<()> {
        lock_feedback(self.transaction().await?, ids).await
    }

    async fn seen(&mut self, events: &[EventId], feedback: &[FeedbackId]) -> Result<Seen> {
        let mut seen = Seen::default();
        // Asked for twice, a feedback would be answered once for each batch that it is in.
        let mut feedback = feedback.to_vec();
        feedback.sort_unstable();
        feedback.dedup();
        for (events, feedback) in pair_up(events, &feedback) {
            let mut query = Statement::new(
                "SELECT 1 AS what, event_id AS id, outcome, '' AS roles FROM inbox WHERE event_id IN ",
            );
            query.push_list(events.iter().map(|id| id.0).map(bytes));
            query.push(" UNION ALL SELECT 2, feedback_id, NULL, sender_roles FROM retraction_marks WHERE feedback_id IN ");
            query.push_list(feedback.iter().map(|id| id.0).map(bytes));
            query.push(
                " UNION ALL SELECT 3, feedback_id, NULL, '' FROM redaction_marks WHERE feedback_id IN ",
            );
            query.push_list(feedback.iter().map(|id| id.0).map(bytes));
            for row in self.rows::<SeenRow>(query).await? {
                match row.what {
                    1 => {
                        seen.outcomes.insert(row.event()?, row.outcome());
                    }
                    2 => {
                        seen.retracted.insert(row.feedback()?, row.roles()?);
                    }
                    _ => seen.redacted.push(row.feedback()?),
                }
            }
            let mut query = Statement::new(
                "SELECT b.feedback_id, b.contest, c.contest_id, b.candidate_id, b.accept_order, b.voter, b.identified, b.caller, \
                 b.received_at, b.retracted, c.namespace, c.kind, c.key, c.qualifier, c.user_id \
                 FROM ballots AS b JOIN contests AS c ON c.contest = b.contest WHERE b.feedback_id IN ",
            );
            query.push_list(feedback.iter().map(|id| id.0).map(bytes));
            // The order in which they are locked.
            query.push(" ORDER BY c.contest_id");
            for row in self.rows::<KnownBallotRow>(query).await? {
                let known = row.parse()?;
                let of_feedback = seen.ballots.entry(known.ballot.feedback_id).or_default();
                of_feedback.push(known);
            }
        }
        Ok(seen)
    }

    async fn save_marks(&mut self, marks: &Marks) -> Result<()> {
        save_marks(self, RETRACTION_MARKS, &marks.retractions).await?;
        save_marks(self, "redaction_marks", &marks.redactions).await
    }

    async fn save(&mut self, applied: &[InboxWrite]) -> Result<()> {
        for inbox in batches(applied) {
            let mut query = Statement::new("INSERT INTO inbox (event_id, feedback_id, applied_at, outcome) ");
            query.push_values(inbox, |mut row, entry| {
                row.push_bind(bytes(entry.event.0))
                    .push_bind(bytes(entry.feedback.0))
                    .push_bind(entry.at.as_microsecond())
                    .push_bind(entry.outcome.to_vec());
            });
            self.run(query).await?;
        }
        Ok(())
    }
}

async fn save_marks(work: &mut Work, table: &'static str, marks: &[Mark]) -> Result<()> {
    for marks in batches(marks) {
        let mut query = Statement::new("INSERT INTO ");
        let keeps_roles = table == RETRACTION_MARKS;
        query.push(table).push(if keeps_roles {
            " (feedback_id, event_id, caller, marked_at, sender_roles) "
        } else {
            " (feedback_id, event_id, caller, marked_at) "
        });
        query.push_values(marks, |mut row, mark| {
            row.push_bind(bytes(mark.feedback.0))
                .push_bind(bytes(mark.event.0))
                .push_bind(mark.caller.as_str())
                .push_bind(mark.at.as_microsecond());
            if keeps_roles {
                row.push_bind(mark.sender.to_string());
            }
        });
        query.push(" ON CONFLICT (feedback_id) DO ");
        query.push(if keeps_roles {
            "UPDATE SET event_id = excluded.event_id, caller = excluded.caller, marked_at = excluded.marked_at, \
             sender_roles = excluded.sender_roles"
        } else {
            "NOTHING"
        });
        work.run(query).await?;
    }
    Ok(())
}

/// Batches of both lists in pairs; when one list runs out, its batches are empty.
fn pair_up<'a>(
    events: &'a [EventId],
    feedback: &'a [FeedbackId],
) -> impl Iterator<Item = (&'a [EventId], &'a [FeedbackId])> {
    let mut feedback = batches(feedback);
    let mut events = batches(events);
    std::iter::from_fn(move || match (events.next(), feedback.next()) {
        (None, None) => None,
        (events, feedback) => Some((events.unwrap_or_default(), feedback.unwrap_or_default())),
    })
}
