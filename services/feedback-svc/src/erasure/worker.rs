//! Goes on with erasures that a call or a process left unfinished, redacts what is too old, and cleans the database's
//! files.

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Error, telemetry::metrics::prometheus::Counter};
use emend_core::{AcceptOrder, Caller, Namespace};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{redact::PAGE, store::ErasureStore};
use crate::use_cases::UseCases;

/// Erasures looked at in one round.
const ERASURES: u32 = 100;
/// How soon it tries again to clean up, give or take a fifth.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it looks by itself, give or take a fifth.
const INTERVAL: Duration = Duration::from_secs(30);

/// The worker.
#[derive(Debug)]
pub(crate) struct Eraser {
    use_cases: Arc<UseCases>,
    /// Counts what it redacts.
    redacted: Counter,
    /// Whether something may be left in the files: so at first, because an earlier process may have left it.
    files_hold_traces: bool,
}

impl Eraser {
    pub(crate) fn new(use_cases: Arc<UseCases>, redacted: Counter) -> Self {
        Self {
            use_cases,
            redacted,
            files_hold_traces: true,
        }
    }

    /// Does what can be done now; returns how many feedbacks were redacted.
    pub(crate) async fn run_once(&mut self) -> Result<u64, Error> {
        let Some(store) = self.use_cases.store.erasures() else {
            return Ok(0);
        };
        let redacted = self.finish_erasures(store).await? + self.redact_outdated(store).await?;
        if redacted > 0 {
            self.files_hold_traces = true;
            self.use_cases.dispatch.due();
            self.redacted.inc_by(redacted);
        }
        if self.files_hold_traces {
            // Looked at first: what is deleted after that is not cleaned up here.
            let waits = store.events_wait().await?;
            self.files_hold_traces = !store.clean_files().await? || waits;
        }
        Ok(redacted)
    }

    async fn finish_erasures(&self, store: &dyn ErasureStore) -> Result<u64, Error> {
        let mut redacted = 0;
        for erasure in store.unfinished(ERASURES).await? {
            loop {
                let page = self
                    .use_cases
                    .redact_page(&erasure.namespace, &erasure.reporter, &erasure.caller)
                    .await?;
                if page == 0 {
                    break;
                }
                redacted += page;
            }
            store.finish(erasure.order).await?;
        }
        Ok(redacted)
    }

    async fn redact_outdated(&self, store: &dyn ErasureStore) -> Result<u64, Error> {
        let mut redacted = 0;
        loop {
            let outdated = store.outdated(PAGE).await?;
            let mut until: Vec<(Namespace, AcceptOrder)> = Vec::new();
            for feedback in outdated.chunk_by(|one, next| one.namespace == next.namespace) {
                let redactions: Vec<_> = feedback
                    .iter()
                    .map(|outdated| {
                        let caller = Caller::system();
                        self.use_cases
                            .redaction(&outdated.namespace, outdated.id, &caller, "")
                    })
                    .collect();
                redacted += self.use_cases.redact_all(store, &redactions).await?;
                if let Some(last) = feedback.last() {
                    until.push((last.namespace.clone(), last.order));
                }
            }
            for (namespace, order) in &until {
                store.redacted_until(namespace, *order).await?;
            }
            if until.is_empty() {
                return Ok(redacted);
            }
        }
    }

    /// Soon, if something is left to be cleaned up.
    fn pause(&self) -> Duration {
        if self.files_hold_traces { AGAIN } else { INTERVAL }
    }

    /// Runs whenever something was erased, and periodically.
    pub(crate) async fn run(mut self, entropy: Entropy, soft: CancellationToken) {
        let use_cases = Arc::clone(&self.use_cases);
        let rounds = async {
            loop {
                match self.run_once().await {
                    Ok(0) => {}
                    Ok(redacted) => tracing::info!(redacted, "redacted feedback"),
                    Err(error) => tracing::warn!(%error, "can't go on erasing"),
                }
                tokio::select! {
                    () = use_cases.erased.notified() => self.files_hold_traces = true,
                    () = sleep(self.pause().mul_f64(entropy.jitter(0.2))) => {}
                }
            }
        };
        tokio::select! {
            () = soft.cancelled() => {}
            () = rounds => {}
        }
    }
}
