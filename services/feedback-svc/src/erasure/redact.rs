//! Redacting feedback, and erasing reporters.

use std::sync::Arc;

use emend_base::Error;
use emend_core::{Caller, FeedbackId, Namespace, ReporterId, voter::Voter};
use feedback_store::{
    ports::{ErasureStore, Redacted},
    records::{
        erasure::{NewErasure, NewRedaction, Progress},
        event,
        feedback::Feedback,
    },
};
use tokio::{sync::Notify, time::Instant};

use crate::{
    corrections::Corrections,
    ids::Ids,
    origin::Origin,
    outbox::{dispatch::Dispatch, waiters::Waiters},
    pauses::Pauses,
};

/// Feedback redacted in one transaction.
pub(super) const PAGE: u32 = 100;

/// What one call did to erase a reporter, and what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Erased {
    /// Feedback redacted by this call.
    pub(crate) redacted: u64,
    /// What is left.
    pub(crate) left: Progress,
}

/// Redacts feedback and erases reporters.
#[derive(Debug)]
pub(crate) struct Erasures {
    pub(crate) store: Arc<dyn ErasureStore>,
    pub(crate) corrections: Arc<Corrections>,
    pub(crate) dispatch: Dispatch,
    pub(crate) waiters: Waiters,
    pub(crate) ids: Ids,
    /// Wakes the worker that goes on erasing.
    pub(crate) wake: Arc<Notify>,
}

impl Erasures {
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
        match self.store.redact(std::slice::from_ref(&redaction)).await?[..] {
            [Redacted::Now] => {
                self.dispatch.forget(id);
                self.dispatch.due();
                self.wake.notify_one();
                if let (Some(waiter), Some(until)) = (waiter, until) {
                    waiter.answer(until).await;
                }
            }
            [Redacted::Undelivered] => self.wake.notify_one(),
            [Redacted::Before] => {}
            _ => return Err(Error::not_found("feedback", id.to_string())),
        }
        self.corrections.read(&namespace, id, None).await
    }

    /// Erases everything about a reporter, as far as it gets before `until`; a worker goes on with the rest.
    pub(crate) async fn erase_reporter(
        &self,
        origin: &Origin,
        namespace: Namespace,
        reporter: ReporterId,
        until: Instant,
    ) -> Result<Erased, Error> {
        let voter = Voter::Reporter(reporter.clone()).key(&namespace);
        let event = event::reporter_redacted(
            self.ids.event(),
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
        self.store.begin_erasure(&erasure).await?;
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
        self.wake.notify_one();
        let mut pauses = Pauses::default();
        loop {
            let left = self.store.progress(&namespace, &reporter, voter).await?;
            if left == Progress::default() || Instant::now() >= until {
                return Ok(Erased { redacted, left });
            }
            pauses.sleep(until).await;
        }
    }

    /// Redacts some feedback of a reporter; returns how many.
    pub(crate) async fn redact_page(
        &self,
        namespace: &Namespace,
        reporter: &ReporterId,
        caller: &Caller,
    ) -> Result<u64, Error> {
        let ids = self.store.feedback_of(namespace, reporter, PAGE).await?;
        let redactions: Vec<_> = ids
            .into_iter()
            .map(|id| self.redaction(namespace, id, caller, ""))
            .collect();
        self.redact_all(&redactions).await
    }

    /// Redacts feedback, also in what this replica holds in memory; returns how many were not redacted before.
    pub(crate) async fn redact_all(&self, redactions: &[NewRedaction]) -> Result<u64, Error> {
        let mut redacted = 0;
        for (redaction, done) in redactions.iter().zip(self.store.redact(redactions).await?) {
            if done == Redacted::Now {
                self.dispatch.forget(redaction.id);
            }
            redacted += u64::from(matches!(done, Redacted::Now | Redacted::Undelivered));
        }
        Ok(redacted)
    }

    pub(crate) fn redaction(
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
            event: event::redacted(self.ids.event(), id, namespace, caller, traceparent),
        }
    }
}
