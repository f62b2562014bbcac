//! Goes on with erasures that a call or a process left unfinished, redacts what is too old, and cleans the database's
//! files.

use std::{sync::Arc, time::Duration};

use emend_base::{Entropy, Error, telemetry::metrics::prometheus::Counter};
use emend_core::{AcceptOrder, Caller, Namespace};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::erasure::redact::{Erasures, PAGE};

/// Erasures looked at in one round.
const ERASURES: u32 = 100;
/// How soon it tries again to clean up, give or take a fifth.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it looks by itself, give or take a fifth.
const INTERVAL: Duration = Duration::from_secs(30);

/// The worker.
#[derive(Debug)]
pub(crate) struct Eraser {
    erasures: Arc<Erasures>,
    /// Counts what it redacts.
    redacted: Counter,
    /// Whether something may be left in the files: so at first, because an earlier process may have left it.
    files_hold_traces: bool,
}

impl Eraser {
    pub(crate) fn new(erasures: Arc<Erasures>, redacted: Counter) -> Self {
        Self {
            erasures,
            redacted,
            files_hold_traces: true,
        }
    }

    /// Does what can be done now; returns how many feedbacks were redacted.
    pub(crate) async fn run_once(&mut self) -> Result<u64, Error> {
        let redacted = self.finish_erasures().await? + self.redact_outdated().await?;
        if redacted > 0 {
            self.files_hold_traces = true;
            self.erasures.dispatch.due();
            self.redacted.inc_by(redacted);
        }
        if self.files_hold_traces {
            // Looked at first: what is deleted after that is not cleaned up here.
            let store = &self.erasures.store;
            let waits = store.events_wait().await?;
            self.files_hold_traces = !store.clean_files().await? || waits;
        }
        Ok(redacted)
    }

    async fn finish_erasures(&self) -> Result<u64, Error> {
        let mut redacted = 0;
        for erasure in self.erasures.store.unfinished(ERASURES).await? {
            loop {
                let page = self
                    .erasures
                    .redact_page(&erasure.namespace, &erasure.reporter, &erasure.caller)
                    .await?;
                if page == 0 {
                    break;
                }
                redacted += page;
            }
            self.erasures.store.finish_erasure(erasure.order).await?;
        }
        Ok(redacted)
    }

    async fn redact_outdated(&self) -> Result<u64, Error> {
        let mut redacted = 0;
        loop {
            let outdated = self.erasures.store.outdated(PAGE).await?;
            let mut until: Vec<(Namespace, AcceptOrder)> = Vec::new();
            for feedback in outdated.chunk_by(|one, next| one.namespace == next.namespace) {
                let redactions: Vec<_> = feedback
                    .iter()
                    .map(|outdated| {
                        let caller = Caller::system();
                        self.erasures
                            .redaction(&outdated.namespace, outdated.id, &caller, "")
                    })
                    .collect();
                redacted += self.erasures.redact_all(&redactions).await?;
                if let Some(last) = feedback.last() {
                    until.push((last.namespace.clone(), last.order));
                }
            }
            for (namespace, order) in &until {
                self.erasures.store.redacted_until(namespace, *order).await?;
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
        let wake = Arc::clone(&self.erasures.wake);
        let rounds = async {
            loop {
                match self.run_once().await {
                    Ok(0) => {}
                    Ok(redacted) => tracing::info!(redacted, "redacted feedback"),
                    Err(error) => tracing::warn!(%error, "can't go on erasing"),
                }
                tokio::select! {
                    () = wake.notified() => self.files_hold_traces = true,
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
