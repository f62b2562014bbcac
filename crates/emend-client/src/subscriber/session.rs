//! The subscriber's main loop: opens a stream, takes in its messages, reports to the server, saves copies to disk, and
//! opens the next stream when this one ends, until it is asked to stop.
//!
//! It must know nothing of what messages mean; the [`Engine`] does.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_core::InstallationId;
use emend_proto::frame::Frame;
use emend_runtime::{
    Backoff, SharedClock,
    span::{Kind, Span},
    status::Explained,
};
use futures::StreamExt as _;
use jiff::Timestamp;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    ended::Ended,
    engine::Engine,
    events::{Emitter, SubscriberEvent},
    report::make_report,
    reporter::{Reporter, ReporterWake},
    saver::{Saver, SaverWake},
    settings::Settings,
    transport::{Opened, Reports, Transport},
};
use crate::{
    cache::Label,
    replica::{Applied, Effect, Installed, ProtocolViolation, State, Verdict},
    view::{LearnedView, Origin},
};

/// The longest a server can make a node wait before it reconnects.
const MAX_DRAIN: Duration = Duration::from_mins(5);
/// The longest that a stream stays open for a last report.
const LAST_REPORT: Duration = Duration::from_secs(5);

/// A running subscriber.
pub(super) struct Session {
    pub(super) settings: Settings,
    pub(super) transport: Box<dyn Transport>,
    pub(super) engine: Arc<Mutex<Engine>>,
    pub(super) view: LearnedView,
    pub(super) events: Emitter,
    pub(super) reporter: Reporter,
    pub(super) saver: Saver,
    pub(super) backoff: Backoff,
    pub(super) clock: SharedClock,
    /// The installation that the node was told to accept last.
    pub(super) accepted: watch::Sender<Option<InstallationId>>,
    /// Digest mismatches since the last verified bookmark.
    pub(super) mismatches: u32,
    /// Streams that broke the protocol since the last verified bookmark.
    pub(super) violations: u32,
}

impl Session {
    /// Runs until `stop`, then brings the copy on disk up to date.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let ended = self.stream(&stop).await;
            let other = ended.other_installation();
            self.reporter.disconnected();
            self.view.set_standing(|standing| standing.connected = false);
            let Some((reason, retry_in)) = self.after(ended) else {
                break;
            };
            self.events
                .emit(SubscriberEvent::Disconnected { reason, retry_in });
            if !self.pause(retry_in, other, &stop).await {
                break;
            }
        }
        self.finish().await;
    }

    /// Why the stream ended, in words for people, and how long to wait before opening the next; `None` to stop.
    fn after(&mut self, ended: Ended) -> Option<(String, Duration)> {
        Some(match ended {
            Ended::Stopped => return None,
            Ended::Drained {
                reconnect_after,
                reason,
            } => {
                tracing::debug!(%reason, ?reconnect_after, "the server drains this stream");
                self.backoff.reset();
                (
                    format!("drained by the server: {reason}"),
                    reconnect_after.min(MAX_DRAIN),
                )
            }
            Ended::Mismatch => {
                self.mismatches += 1;
                // After the first mismatch a snapshot is requested at once. If that does not help, the node cannot mend
                // the fault.
                let wait = if self.mismatches == 1 {
                    Duration::ZERO
                } else {
                    self.backoff.next()
                };
                ("the digests differ from the server's".into(), wait)
            }
            Ended::OtherInstallation(answering) => (
                format!("another installation answers: {answering}"),
                self.backoff.next(),
            ),
            Ended::Violation(violation) => {
                self.violations += 1;
                self.reporter.note_problem("PROTOCOL_VIOLATION");
                if self.violations > 1 {
                    // Resuming has failed twice: start over with a snapshot.
                    self.engine().replica.distrust();
                }
                tracing::error!(%violation, "the server broke the protocol of the stream");
                (format!("protocol violation: {violation}"), self.backoff.next())
            }
            Ended::Failed { reason, retry_after } => {
                let asked = retry_after.unwrap_or_default().min(MAX_DRAIN);
                let wait = self.backoff.next_after(asked);
                tracing::warn!(%reason, retry_in = ?wait, "no stream from learning-svc");
                (reason, wait)
            }
        })
    }

    /// Opens one stream and takes in its messages until it ends.
    async fn stream(&mut self, stop: &CancellationToken) -> Ended {
        let opened = tokio::select! {
            () = stop.cancelled() => return Ended::Stopped,
            opened = timeout(self.settings.connect_timeout, self.open()) => opened,
        };
        let Opened {
            mut messages,
            reports,
        } = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(ended)) => return ended,
            Err(_) => return Ended::failed("opening a stream took too long"),
        };
        self.view.set_standing(|standing| standing.connected = true);
        self.events.emit(SubscriberEvent::Connected);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ended::Stopped,
                // Both are idle for their interval in between, so they never delay a message for long.
                wake = self.reporter.tick() => self.report(wake, &*reports),
                wake = self.saver.tick() => self.save(wake),
                message = messages.next() => match message {
                    Some(Ok(frame)) => {
                        if let Some(ended) = self.take(frame).await {
                            if let Ended::OtherInstallation(_) = ended {
                                self.report_problem(&*reports, stop).await;
                            }
                            return ended;
                        }
                        heard = Instant::now();
                    }
                    None => return Ended::failed("the server ended the stream"),
                    Some(Err(status)) => return status.into(),
                },
                // Polled last: a message that has already arrived counts as heard, however late it is read.
                () = sleep_until(heard + self.settings.idle_timeout) => {
                    return Ended::failed(format!("nothing was heard for {:?}", self.settings.idle_timeout));
                }
            }
        }
    }

    async fn open(&mut self) -> Result<Opened, Ended> {
        let accepted = *self.accepted.borrow();
        let cursor = {
            let mut engine = self.engine();
            if let Some(accepted) = accepted {
                engine.replica.accept(accepted);
            }
            engine.replica.open()
        };
        self.transport.open(self.settings.request(cursor)).await
    }

    /// Takes in one message. `Some` if the stream is to end.
    async fn take(&mut self, frame: Frame) -> Option<Ended> {
        let since = self.clock.now();
        let effect = match self.step(frame).await {
            Ok(effect) => effect,
            Err(violation) => return Some(Ended::Violation(violation)),
        };
        let now = self.clock.now();
        match effect {
            Effect::Ignored | Effect::Staged => None,
            Effect::SnapshotBegun {
                reason,
                revision,
                count,
            } => {
                tracing::info!(?reason, %revision, count, "a snapshot begins");
                None
            }
            Effect::OtherInstallation { held, answering } => {
                self.other_installation(held, answering);
                Some(Ended::OtherInstallation(answering))
            }
            Effect::Resumed(revision) => {
                let installation = self.engine().replica.installation();
                self.view.set_standing(|standing| {
                    standing.origin = Origin::Stream;
                    standing.installation = installation;
                    standing.other_installation = None;
                });
                self.events.emit(SubscriberEvent::Resumed { revision });
                self.reporter.note();
                None
            }
            Effect::Installed(snapshot) => self.installed(snapshot, now),
            Effect::Applied(update) => {
                traces(&update, since);
                self.applied(update, now)
            }
            Effect::Current { revision, verdict } => {
                if let Some(ended) = self.judge(verdict) {
                    return Some(ended);
                }
                self.moved_on(Some(now));
                self.saver.note();
                self.mismatches = 0;
                self.violations = 0;
                self.view.set_standing(|standing| standing.in_doubt = false);
                self.events.emit(SubscriberEvent::Bookmark { revision });
                None
            }
            Effect::Drain {
                reconnect_after,
                reason,
            } => Some(Ended::Drained {
                reconnect_after,
                reason,
            }),
        }
    }

    fn other_installation(&mut self, held: InstallationId, answering: InstallationId) {
        self.reporter.note_problem("INSTALLATION_MISMATCH");
        if self.view.staleness().other_installation == Some(answering) {
            return;
        }
        tracing::error!(
            %held,
            %answering,
            "another installation answers; this node keeps what it holds until it is told to accept that one"
        );
        self.view
            .set_standing(|standing| standing.other_installation = Some(answering));
        self.events
            .emit(SubscriberEvent::InstallationMismatch { held, answering });
    }

    fn installed(&mut self, snapshot: Installed, now: Timestamp) -> Option<Ended> {
        self.moved_on((!snapshot.verdict.differs()).then_some(now));
        self.saver.note();
        if snapshot.rejected > 0 {
            tracing::warn!(
                rejected = snapshot.rejected,
                "a snapshot holds resources that cannot be used here"
            );
            self.reporter.note_rejection();
        }
        let verdict = snapshot.verdict.clone();
        self.events.emit(SubscriberEvent::Snapshot {
            snapshot,
            applied_at: now,
        });
        let ended = self.judge(verdict);
        if ended.is_none() {
            self.view.set_standing(|standing| standing.in_doubt = false);
        }
        ended
    }

    fn applied(&mut self, update: Applied, now: Timestamp) -> Option<Ended> {
        self.moved_on((!update.verdict.differs()).then_some(now));
        self.saver.note();
        for change in &update.changes {
            if let Some(committed_at) = change.committed_at {
                self.reporter.note_delay(now.duration_since(committed_at));
            }
            if let Some(received_at) = change.feedback_received_at {
                self.reporter
                    .note_effect(now.duration_since(received_at), &change.traceparent);
            }
            if let State::Rejected(why) = &change.state {
                tracing::warn!(revision = %change.revision, %why, "a resource cannot be used here");
                self.reporter.note_rejection();
            }
        }
        let verdict = update.verdict.clone();
        self.events.emit(SubscriberEvent::Updated {
            update,
            applied_at: now,
        });
        self.judge(verdict)
    }

    /// Records that the view shows a newer state. At `current_at`, if given, it was known to equal the server's.
    fn moved_on(&mut self, current_at: Option<Timestamp>) {
        let (position, installation) = {
            let engine = self.engine();
            (engine.replica.position().cloned(), engine.replica.installation())
        };
        let Some(position) = position else { return };
        self.view.set_standing(|standing| {
            standing.revision = emend_core::Revision(position.revision);
            standing.installation = installation;
            standing.other_installation = None;
            standing.epoch = Some(position.epoch);
            standing.origin = Origin::Stream;
            standing.current_at = current_at.or(standing.current_at);
        });
        self.reporter.note();
    }

    fn judge(&mut self, verdict: Verdict) -> Option<Ended> {
        match verdict {
            Verdict::Same => {
                // A verified state shows that reconnecting at once would do no harm. Not so after a mismatch or
                // violation, until a bookmark has cleared the counts: a snapshot alone proves nothing then, and each
                // violation would cost another one.
                if self.mismatches == 0 && self.violations == 0 {
                    self.backoff.reset();
                }
                None
            }
            Verdict::Differs(differences) => {
                let differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
                tracing::error!(?differences, "the digests differ from the server's");
                self.view.set_standing(|standing| standing.in_doubt = true);
                self.reporter.note_problem("DIGEST_MISMATCH");
                self.events.emit(SubscriberEvent::DigestMismatch { differences });
                Some(Ended::Mismatch)
            }
        }
    }

    /// Hands the message to the engine. Work that may take milliseconds runs on a blocking thread.
    async fn step(&mut self, frame: Frame) -> Result<Effect, ProtocolViolation> {
        if !self.engine().is_heavy(frame.0.len()) {
            return self.engine().receive(frame);
        }
        let engine = Arc::clone(&self.engine);
        match tokio::task::spawn_blocking(move || lock(&engine).receive(frame)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Cancelled: the runtime is shutting down, and this task with it.
                Err(_) => pending().await,
            },
        }
    }

    fn report(&mut self, wake: ReporterWake, reports: &dyn Reports) {
        match wake {
            ReporterWake::Due => {
                let told = self.reporter.take();
                let made = make_report(&self.engine().replica, &self.settings.node.id, &told);
                let Some(report) = made else { return };
                self.reporter.sending(told, reports.report(report));
            }
            ReporterWake::Answered(Ok(())) => {}
            ReporterWake::Answered(Err(status)) => {
                tracing::warn!(error = %Explained::from(&status), "the server did not take the report");
            }
        }
    }

    /// Reports a problem to a server that is about to be left.
    async fn report_problem(&mut self, reports: &dyn Reports, stop: &CancellationToken) {
        let over = sleep(LAST_REPORT);
        tokio::pin!(over);
        while self.reporter.has_problem() {
            let wake = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = &mut over => return,
                wake = self.reporter.tick() => wake,
            };
            let refused = matches!(wake, ReporterWake::Answered(Err(_)));
            self.report(wake, reports);
            if refused {
                return;
            }
        }
    }

    fn save(&mut self, wake: SaverWake) {
        match wake {
            SaverWake::Due => {
                let (copy, installation) = {
                    let engine = self.engine();
                    (engine.replica.copy(), engine.replica.installation())
                };
                let Some((cursor, held)) = copy else {
                    return self.saver.skip();
                };
                let label = Label {
                    subscription: self.settings.subscription(),
                    installation,
                    cursor,
                    written_at: self.clock.now(),
                    current_at: self.view.staleness().current_at,
                };
                self.saver.start(label, held);
            }
            SaverWake::Saved(Ok(revision)) => self.events.emit(SubscriberEvent::Saved { revision }),
            SaverWake::Saved(Err(error)) => {
                tracing::error!(%error, "the copy of what was learned cannot be written");
            }
        }
    }

    /// Waits between two streams, but no longer than until the node is told to accept `other`, the installation that
    /// answered. Returns false if it is time to stop.
    async fn pause(
        &mut self,
        wait: Duration,
        other: Option<InstallationId>,
        stop: &CancellationToken,
    ) -> bool {
        let over = sleep(wait);
        tokio::pin!(over);
        let mut accepted = self.accepted.subscribe();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = &mut over => return true,
                Ok(_) = accepted.wait_for(|accepted| other.is_some() && *accepted == other) => return true,
                wake = self.saver.tick() => self.save(wake),
            }
        }
    }

    /// Brings the copy on disk up to date.
    async fn finish(&mut self) {
        if let Some(wake) = self.saver.settle().await {
            self.save(wake);
        }
        if self.saver.is_dirty() {
            self.save(SaverWake::Due);
            if let Some(wake) = self.saver.settle().await {
                self.save(wake);
            }
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }
}

/// The most spans recorded for one update.
const TRACED: usize = 32;

/// For each sampled trace behind the update's changes, records a span from the arrival of its last part until now.
fn traces(update: &Applied, since: Timestamp) {
    let mut seen = BTreeSet::new();
    for change in &update.changes {
        if seen.len() >= TRACED {
            return;
        }
        let began = Some(since.into());
        if !seen.contains(&*change.traceparent)
            && let Some(mut span) = Span::since("apply update", Kind::Consumer, &change.traceparent, began)
        {
            span.set("messaging.system", "emend");
            span.set("emend.revision", change.revision.0);
            seen.insert(&*change.traceparent);
        }
    }
}

/// Uncontended: messages are taken in one at a time.
fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}
