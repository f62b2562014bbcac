//! Redacting feedback, and erasing reporters.

use std::time::Duration;

use emend_base::Error;
use emend_core::{Caller, FeedbackId, Namespace, ReporterId, voter::Voter};
use tokio::time::{Instant, sleep};

use super::{
    NewErasure, NewRedaction, Progress,
    store::{ErasureStore, Redacted},
};
use crate::{
    corrections::feedback::Feedback,
    outbox::event,
    use_cases::{Origin, UseCases},
};

/// Feedback redacted in one transaction.
pub(super) const PAGE: u32 = 100;
/// The pause between two looks at how far an erasure is: the first, and the longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// What one call did to erase a reporter, and what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Erased {
    /// Feedback redacted by this call.
    pub(crate) redacted: u64,
    /// What is left.
    pub(crate) left: Progress,
}

impl UseCases {
    fn erasures(&self) -> Result<&dyn ErasureStore, Error> {
        self.store
            .erasures()
            .ok_or(Error::Unimplemented("erasing personal parts"))
    }

    /// Redacts a feedback. Idempotent. With `until`, waits until then for learning-svc.
    pub(crate) async fn redact(
        &self,
        origin: &Origin,
        namespace: Namespace,
        id: FeedbackId,
        until: Option<Instant>,
    ) -> Result<Feedback, Error> {
        let redaction = self.redaction(&namespace, id, &origin.caller, &origin.traceparent);
        let waiter = until.map(|_| self.waiters.register(redaction.event.id));
        match self.erasures()?.redact(std::slice::from_ref(&redaction)).await?[..] {
            [Redacted::Now] => {
                self.dispatch.forget(id);
                self.dispatch.due();
                self.erased.notify_one();
                if let (Some(waiter), Some(until)) = (waiter, until) {
                    waiter.answer(until).await;
                }
            }
            [Redacted::Undelivered] => self.erased.notify_one(),
            [Redacted::Before] => {}
            _ => return Err(Error::not_found("feedback", id.to_string())),
        }
        self.looked_for(&namespace, id, None).await
    }

    /// Erases everything about a reporter, as far as it gets before `until`; a worker goes on with the rest.
    pub(crate) async fn erase_reporter(
        &self,
        origin: &Origin,
        namespace: Namespace,
        reporter: ReporterId,
        until: Instant,
    ) -> Result<Erased, Error> {
        let store = self.erasures()?;
        let voter = Voter::Reporter(reporter.clone()).key(&namespace);
        let event = event::reporter_redacted(
            self.new_event_id(),
            &namespace,
            &origin.caller,
            &origin.traceparent,
            &reporter,
        );
        let erasure = NewErasure {
            namespace: namespace.clone(),
            reporter: reporter.clone(),
            voter,
            caller: origin.caller.clone(),
            event,
        };
        store.begin(&erasure).await?;
        let mut redacted = 0;
        loop {
            let page = self.redact_page(&namespace, &reporter, &origin.caller).await?;
            redacted += page;
            if page == 0 || Instant::now() >= until {
                break;
            }
        }
        self.dispatch.due();
        // The worker finishes the erasure, and looks after the files.
        self.erased.notify_one();
        let (mut pause, longest) = LOOK;
        loop {
            let left = store.progress(&namespace, &reporter, voter).await?;
            if left == Progress::default() || Instant::now() >= until {
                return Ok(Erased { redacted, left });
            }
            sleep(pause.min(until - Instant::now())).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// Redacts some feedback of a reporter; returns how many.
    pub(super) async fn redact_page(
        &self,
        namespace: &Namespace,
        reporter: &ReporterId,
        caller: &Caller,
    ) -> Result<u64, Error> {
        let store = self.erasures()?;
        let ids = store.feedback_of(namespace, reporter, PAGE).await?;
        let redactions: Vec<_> = ids
            .into_iter()
            .map(|id| self.redaction(namespace, id, caller, ""))
            .collect();
        self.redact_all(store, &redactions).await
    }

    /// Redacts feedback, also in what this replica holds in memory; returns how many were not redacted before.
    pub(super) async fn redact_all(
        &self,
        store: &dyn ErasureStore,
        redactions: &[NewRedaction],
    ) -> Result<u64, Error> {
        let mut redacted = 0;
        for (redaction, done) in redactions.iter().zip(store.redact(redactions).await?) {
            if done == Redacted::Now {
                self.dispatch.forget(redaction.id);
            }
            redacted += u64::from(matches!(done, Redacted::Now | Redacted::Undelivered));
        }
        Ok(redacted)
    }

    pub(super) fn redaction(
        &self,
        namespace: &Namespace,
        id: FeedbackId,
        caller: &Caller,
        traceparent: &str,
    ) -> NewRedaction {
        NewRedaction {
            namespace: namespace.clone(),
            id,
            caller: caller.clone(),
            event: event::redacted(self.new_event_id(), id, namespace, caller, traceparent),
        }
    }
}
