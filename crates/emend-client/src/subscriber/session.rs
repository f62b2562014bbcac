//! The subscriber's main loop: opens a stream, has the [`Engine`] apply its messages, reports to the server, saves copies
//! to disk, and opens the next stream when this one ends, until it is asked to stop.

mod effects;
#[cfg(test)]
mod tests;

use std::{
    future::pending,
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_base::{Backoff, SharedClock, status::Explained};
use emend_core::InstallationId;
use emend_proto::frame::Frame;
use futures::StreamExt as _;
use tokio::{
    sync::watch,
    task::JoinError,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    confirmed::Confirmations,
    ended::Ended,
    engine::Engine,
    events::{Emitter, SubscriberEvent},
    mirror::{Followed, Mirror, MirrorWake},
    report::make_report,
    reporter::{Reporter, ReporterWake},
    saver::{Saver, SaverWake},
    settings::Settings,
    transport::{Opened, Reports, Transport},
};
use crate::{
    background,
    cache::Header,
    replica::{Effect, ProtocolViolation},
    view::LearnedView,
};

/// The longest a server can make a node wait before it reconnects.
const MAX_DRAIN: Duration = Duration::from_mins(5);
/// How often the models of near answers are looked after, once somebody wants them.
const NEAR_INTERVAL: Duration = Duration::from_millis(500);
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
    pub(super) confirmations: Option<Confirmations>,
    pub(super) saver: Saver,
    pub(super) mirror: Mirror,
    /// When the models of near answers are looked after next.
    pub(super) near_at: Instant,
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
        self.note_mirrored();
        loop {
            let ended = self.run_stream(&stop).await;
            let (other, status) = (ended.other_installation(), ended.status());
            self.reporter.disconnected();
            self.view.update_status(|status| status.connected = false);
            let Some((reason, retry_in)) = self.reason_and_wait(ended) else {
                break;
            };
            self.events.emit(SubscriberEvent::Disconnected {
                reason,
                retry_in,
                status,
            });
            if !self.pause(retry_in, other, &stop).await {
                break;
            }
        }
        self.finish().await;
    }

    /// Why the stream ended, in words for people, and how long to wait before opening the next; `None` to stop.
    fn reason_and_wait(&mut self, ended: Ended) -> Option<(String, Duration)> {
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
                    self.engine().replica.request_snapshot();
                }
                tracing::error!(%violation, "the server broke the protocol of the stream");
                (format!("protocol violation: {violation}"), self.backoff.next())
            }
            Ended::Failed {
                reason, retry_after, ..
            } => {
                let asked = retry_after.unwrap_or_default().min(MAX_DRAIN);
                let wait = self.backoff.next_after(asked);
                tracing::warn!(%reason, retry_in = ?wait, "the stream from learning-svc is closed");
                (reason, wait)
            }
        })
    }

    /// Opens one stream and applies its messages until it ends.
    async fn run_stream(&mut self, stop: &CancellationToken) -> Ended {
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
        self.view.update_status(|status| status.connected = true);
        self.events.emit(SubscriberEvent::Connected);
        let mut silence = self.settings.first_timeout;
        let mut last_message_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ended::Stopped,
                // Both then wait for their interval, so they never delay a message for long.
                wake = self.reporter.tick() => self.report(wake, &*reports),
                wake = self.saver.tick() => self.save(wake),
                wake = self.mirror.tick() => self.write_mirror(wake),
                () = near_due(&self.view, self.near_at) => self.refresh_near().await,
                () = confirmed(&mut self.confirmations) => self.note_confirmed(),
                message = messages.next() => match message {
                    Some(Ok(frame)) => {
                        if let Some(ended) = self.handle(frame).await {
                            if let Ended::OtherInstallation(_) = ended {
                                self.report_problem(&*reports, stop).await;
                            }
                            return ended;
                        }
                        last_message_at = Instant::now();
                        silence = self.settings.idle_timeout;
                    }
                    None => return Ended::failed("the server ended the stream"),
                    Some(Err(status)) => return status.into(),
                },
                // Polled last: a message that has already arrived counts, however late it is read.
                () = sleep_until(last_message_at + silence) => {
                    return Ended::failed(format!("no message for {silence:?}"));
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

    /// Hands the message to the engine. Work that may take milliseconds runs in the background, and takes no processor from
    /// queries.
    async fn apply(&mut self, frame: Frame) -> Result<Effect, ProtocolViolation> {
        if !self.engine().is_heavy(frame.0.len()) {
            return self.engine().receive(frame, false);
        }
        let engine = Arc::clone(&self.engine);
        // A thread of the runtime only waits: it is shared, and could not take its priority back.
        ended(tokio::task::spawn_blocking(move || receive_in_background(&engine, frame)).await).await
    }

    fn report(&mut self, wake: ReporterWake, reports: &dyn Reports) {
        match wake {
            ReporterWake::Due => {
                let contents = self.reporter.take();
                let confirmed = self.confirmations.as_ref().map(Confirmations::current);
                let report = make_report(
                    &self.engine().replica,
                    &self.settings.node.id,
                    &contents,
                    confirmed,
                );
                let Some(report) = report else { return };
                self.reporter.sending(contents, reports.report(report));
            }
            ReporterWake::Answered(Ok(())) => {}
            ReporterWake::Answered(Err(status)) => {
                tracing::warn!(error = %Explained::from(&status), "the server did not accept the report");
            }
        }
    }

    /// Reports a problem to a server that is about to be left.
    async fn report_problem(&mut self, reports: &dyn Reports, stop: &CancellationToken) {
        let timer = sleep(LAST_REPORT);
        tokio::pin!(timer);
        while self.reporter.has_problem() {
            let wake = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = &mut timer => return,
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
                let header = Header {
                    subscription: self.settings.subscription(),
                    installation,
                    cursor,
                    written_at: self.clock.now(),
                    current_at: self.view.staleness().current_at,
                };
                self.saver.start(header, held);
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
        let timer = sleep(wait);
        tokio::pin!(timer);
        let mut accepted = self.accepted.subscribe();
        loop {
            // Nothing is awaited while one of these is held: what was accepted is read under a lock.
            let near_is_due = tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = &mut timer => return true,
                Ok(_) = accepted.wait_for(|accepted| other.is_some() && *accepted == other) => return true,
                wake = self.saver.tick() => {
                    self.save(wake);
                    false
                }
                wake = self.mirror.tick() => {
                    self.write_mirror(wake);
                    false
                }
                () = near_due(&self.view, self.near_at) => true,
            };
            if near_is_due {
                self.refresh_near().await;
            }
        }
    }

    /// Takes models of near answers that are ready and has new ones made; where all must be read for that, in the background.
    async fn refresh_near(&mut self) {
        self.near_at = Instant::now() + NEAR_INTERVAL;
        if self.engine().near_is_due() {
            let engine = Arc::clone(&self.engine);
            ended(tokio::task::spawn_blocking(move || lock(&engine).refresh_near()).await).await;
        }
    }

    /// Has the mirror written if a prompt that it follows has changed.
    pub(super) fn note_mirrored(&mut self) {
        let has_changed = self.engine().mirrored.as_mut().is_some_and(Followed::take_change);
        if has_changed {
            self.mirror.note();
        }
    }

    fn write_mirror(&mut self, wake: MirrorWake) {
        match wake {
            MirrorWake::Due => {
                let files = self.engine().mirrored.as_ref().map(Followed::files);
                self.mirror.start(files.unwrap_or_default());
            }
            MirrorWake::Written(Ok(changed)) => {
                if !changed.foreign.is_empty() {
                    tracing::error!(files = ?changed.foreign, "files that others wrote are in the mirror's way");
                }
                self.events.emit(SubscriberEvent::Mirrored {
                    written: changed.written,
                    removed: changed.removed,
                    foreign: changed.foreign,
                });
            }
            MirrorWake::Written(Err(error)) => {
                tracing::error!(%error, "the mirror of prompts cannot be written");
            }
        }
    }

    /// Brings the mirror and the copy on disk up to date.
    async fn finish(&mut self) {
        while let Some(wake) = self.mirror.last().await {
            self.write_mirror(wake);
        }
        if let Some(wake) = self.saver.finish_write().await {
            self.save(wake);
        }
        if self.saver.is_dirty() {
            self.save(SaverWake::Due);
            if let Some(wake) = self.saver.finish_write().await {
                self.save(wake);
            }
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }
}

/// Returns when the models of near answers are to be looked after, which is never while nobody wants them.
async fn near_due(view: &LearnedView, at: Instant) {
    view.near_is_wanted().await;
    sleep_until(at).await;
}

/// What came of work in another thread.
pub(super) async fn ended<T>(joined: Result<T, JoinError>) -> T {
    match joined {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Cancelled: the runtime is shutting down, and this task with it.
            Err(_) => pending().await,
        },
    }
}

/// Waits until something else is confirmed by those to whom the node hands on what it holds, if it does. Cancel-safe.
async fn confirmed(confirmations: &mut Option<Confirmations>) {
    match confirmations {
        Some(confirmations) => confirmations.changed().await,
        None => pending().await,
    }
}

/// Has the engine receive a message in a thread of its own; if the system has none now, in this one.
fn receive_in_background(engine: &Arc<Mutex<Engine>>, frame: Frame) -> Result<Effect, ProtocolViolation> {
    let (theirs, copy) = (Arc::clone(engine), frame.clone());
    match background::spawn("emend-apply", move || lock(&theirs).receive(copy, true)) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => lock(engine).receive(frame, true),
    }
}

/// Uncontended: messages are applied one at a time.
fn lock(engine: &Mutex<Engine>) -> MutexGuard<'_, Engine> {
    engine.lock().unwrap_or_else(PoisonError::into_inner)
}
