//! Erases what one user alone had, page by page, each page a revision.

use emend_base::Error;
use emend_core::{
    AcceptOrder, Caller, Event, EventId, FeedbackId, Namespace, ReporterId, ResourceKey, Revision, UserId,
    voter::Voter,
};
use emend_proto::common::v1 as pb;
use learning_store::actor::Actor;

use crate::{
    decisions::{
        answers::{answered_before, no_effect},
        numbering::RevisionChoice,
        open::Attribution,
        users::lock_user,
    },
    erasure::Erasure,
    failure::{Failure, refused, subject},
};

/// Contests erased in one transaction, and so at most that many changes in its revision.
const PAGE: u32 = 500;

/// That everything of one user is to be erased.
#[derive(Debug, Clone)]
pub struct ErasedReporter {
    /// The event that says so.
    pub event: EventId,
    /// The user's search application.
    pub namespace: Namespace,
    /// The user.
    pub reporter: ReporterId,
    /// Whatever was said for the user alone before this is erased, also if it arrives later.
    pub accept_order: AcceptOrder,
    /// The client that asked for it.
    pub caller: Caller,
}

impl Erasure {
    /// Erases what the user alone had. Returns the outcome of the event, now or before.
    pub(crate) async fn erase(&self, erased: &ErasedReporter) -> Result<pb::Outcome, Error> {
        loop {
            let page = self.decisions.retry(|| self.erase_page(erased)).await?;
            self.clean_up();
            if page.revision > Revision::default() {
                self.decisions.wake();
            }
            if let Some(outcome) = page.outcome {
                return Ok(outcome);
            }
        }
    }

    async fn erase_page(&self, erased: &ErasedReporter) -> Result<Page, Failure> {
        let user = UserId::from(&erased.reporter);
        let voter = Voter::Reporter(erased.reporter.clone()).key(&erased.namespace);
        let mut tx = self.store.begin().await?;
        lock_user(&mut *tx, &erased.namespace, &user).await?;
        let seen = tx.inbox().seen(&[erased.event], &[]).await?;
        if seen.outcomes.contains_key(&erased.event) {
            return Ok(Page {
                outcome: Some(answered_before(&seen, erased.event)?),
                revision: Revision::default(),
            });
        }
        let erasures = tx.erasures();
        let keys = erasures.contests_of(&erased.namespace, &user, PAGE).await?;
        let is_last = keys.len() < PAGE as usize;
        if is_last {
            erasures.note(voter, erased.accept_order).await?;
        }
        erasures.forget_activities(&erased.namespace, &user).await?;
        let contests: Vec<_> = keys.iter().map(ResourceKey::contest_id).collect();
        let now = self.decisions.clock.now();
        let mut unit = self.decisions.open(&mut *tx, keys.iter().cloned()).await?;
        let attribution = Attribution::by(Actor::caller(erased.caller.clone()), "");
        for key in &keys {
            unit.decide(
                key.contest_id(),
                &Event::Erase,
                &attribution,
                RevisionChoice::Shared,
            )
            .map_err(|refusal| refused(&refusal, &subject(key)))?;
        }
        if is_last {
            let outcome = no_effect(
                None,
                "",
                "Everything that was learned for the user alone is erased.",
                now,
            );
            unit.answer(erased.event, FeedbackId::none(), outcome);
        }
        let mut written = unit.finish(&mut *tx).await?;
        tx.erasures().erase(&contests, &UserId::erased(voter.0)).await?;
        tx.commit().await?;
        Ok(Page {
            outcome: written.outcomes.pop(),
            revision: written.revisions.last(),
        })
    }
}

/// What one transaction erased.
struct Page {
    /// The event's outcome, once everything is erased.
    outcome: Option<pb::Outcome>,
    /// The revision written; 0 where none was.
    revision: Revision,
}
