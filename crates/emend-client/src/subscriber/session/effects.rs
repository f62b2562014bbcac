//! What follows from each message that was applied: the node's status, events, reports, and whether its stream is to end.

use emend_core::{InstallationId, Revision};
use emend_proto::frame::Frame;
use jiff::Timestamp;

use super::{Session, SubscriberEvent};
use crate::{
    replica::{Applied, DigestCheck, Effect, Installed, State},
    subscriber::ended::Ended,
    view::Origin,
};

impl Session {
    /// Applies one message and records its effect. `Some` if the stream is to end.
    pub(super) async fn handle(&mut self, frame: Frame) -> Option<Ended> {
        let effect = match self.apply(frame).await {
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
                self.view.update_status(|status| {
                    status.origin = Origin::Stream;
                    status.installation = installation;
                    status.other_installation = None;
                });
                self.events.emit(SubscriberEvent::Resumed { revision });
                self.reporter.note();
                None
            }
            Effect::Installed(snapshot) => self.installed(snapshot, now),
            Effect::Applied(update) => self.applied(update, now),
            Effect::Current {
                revision,
                age,
                digest_check,
            } => {
                if let Some(ended) = self.check_digests(digest_check) {
                    return Some(ended);
                }
                self.advance_status(Some(now.saturating_sub(age).unwrap_or(Timestamp::MIN)));
                self.saver.note();
                self.mismatches = 0;
                self.violations = 0;
                self.view.update_status(|status| status.in_doubt = false);
                self.events.emit(SubscriberEvent::Bookmark { revision, age });
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
            "another installation answers; this node keeps its state until it is allowed to accept that one"
        );
        self.view
            .update_status(|status| status.other_installation = Some(answering));
        self.events
            .emit(SubscriberEvent::InstallationMismatch { held, answering });
    }

    fn installed(&mut self, snapshot: Installed, now: Timestamp) -> Option<Ended> {
        self.advance_status((!snapshot.digest_check.differs()).then_some(now));
        self.saver.note();
        self.note_mirrored();
        if snapshot.rejected > 0 {
            tracing::warn!(
                rejected = snapshot.rejected,
                "a snapshot holds resources that cannot be used here"
            );
            self.reporter.note_rejection();
        }
        let digest_check = snapshot.digest_check.clone();
        self.events.emit(SubscriberEvent::Snapshot {
            snapshot,
            applied_at: now,
        });
        let ended = self.check_digests(digest_check);
        if ended.is_none() {
            self.view.update_status(|status| status.in_doubt = false);
        }
        ended
    }

    fn applied(&mut self, update: Applied, now: Timestamp) -> Option<Ended> {
        self.advance_status((!update.digest_check.differs()).then_some(now));
        self.saver.note();
        self.note_mirrored();
        for change in &update.changes {
            match &mut self.confirmations {
                Some(confirmations) => confirmations.await_change(change),
                None => self.note_delays(
                    now,
                    change.committed_at,
                    change.feedback_received_at,
                    &change.traceparent,
                ),
            }
            if let State::Rejected(why) = &change.state {
                tracing::warn!(revision = %change.revision, %why, "a resource cannot be used here");
                self.reporter.note_rejection();
            }
        }
        let digest_check = update.digest_check.clone();
        self.events.emit(SubscriberEvent::Updated {
            update,
            applied_at: now,
        });
        self.check_digests(digest_check)
    }

    /// Has what was confirmed reported, with the delays of the changes that are in use since.
    pub(super) fn note_confirmed(&mut self) {
        let Some(confirmations) = &mut self.confirmations else {
            return;
        };
        let news = confirmations.take();
        let now = self.clock.now();
        for change in news.changes {
            self.note_delays(
                now,
                change.committed_at,
                change.feedback_received_at,
                &change.traceparent,
            );
        }
        if news.is_urgent {
            self.reporter.note_rejection();
        }
        self.reporter.note();
    }

    fn note_delays(
        &mut self,
        now: Timestamp,
        committed_at: Option<Timestamp>,
        feedback_received_at: Option<Timestamp>,
        traceparent: &str,
    ) {
        if let Some(committed_at) = committed_at {
            self.reporter.note_delay(now.duration_since(committed_at));
        }
        if let Some(received_at) = feedback_received_at {
            self.reporter
                .note_effect(now.duration_since(received_at), traceparent);
        }
    }

    /// Records that the view shows a newer state. At `current_at`, if given, it was known to equal the server's.
    fn advance_status(&mut self, current_at: Option<Timestamp>) {
        let (position, installation) = {
            let engine = self.engine();
            (engine.replica.position().cloned(), engine.replica.installation())
        };
        let Some(position) = position else { return };
        self.view.update_status(|status| {
            status.revision = Revision(position.revision);
            status.installation = installation;
            status.other_installation = None;
            status.epoch = Some(position.epoch);
            status.origin = Origin::Stream;
            status.current_at = current_at.or(status.current_at);
        });
        self.reporter.note();
    }

    fn check_digests(&mut self, digest_check: DigestCheck) -> Option<Ended> {
        match digest_check {
            DigestCheck::Same => {
                // A verified state shows that reconnecting at once would do no harm. Not so after a mismatch or
                // violation, until a bookmark has cleared the counts: a snapshot alone proves nothing then, and each
                // violation would cost another one.
                if self.mismatches == 0 && self.violations == 0 {
                    self.backoff.reset();
                }
                None
            }
            DigestCheck::Differs(differences) => {
                let differences: Vec<_> = differences.iter().map(ToString::to_string).collect();
                tracing::error!(?differences, "the digests differ from the server's");
                self.view.update_status(|status| status.in_doubt = true);
                self.reporter.note_problem("DIGEST_MISMATCH");
                self.events.emit(SubscriberEvent::DigestMismatch { differences });
                Some(Ended::Mismatch)
            }
        }
    }
}
