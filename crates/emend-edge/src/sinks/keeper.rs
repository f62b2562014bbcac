//! Keeping a set: what is wanted is compared with what is there, written where they differ, and read back before anybody is told.
//!
//! A step may be cut off anywhere: the next one begins with what is there. Where several edges keep one set, it goes only forward: each
//! sees by the [stamp](super::content::Stamp) who wrote it and by which state, and writes over it only if that is not newer.

#[cfg(test)]
mod tests;

use std::time::Duration;

use emend_base::SharedClock;
use emend_client::Refused;
use tokio::time::Instant;

use super::{
    config::{Common, OnDrift},
    content::{Mark, Seen, Stamp, Wanted, Writer},
    error::SinkError,
    fail_points,
    metrics::Gauges,
    target::Target,
};

/// What keeps a set.
pub(super) struct Keeper<T> {
    pub(super) target: T,
    pace: Duration,
    check: Duration,
    on_drift: OnDrift,
    clock: SharedClock,
    /// The set that was read back and by which the last probe query was answered.
    in_force: Option<Mark>,
    /// Before this, nothing is written: what was written last was a short time ago.
    not_before: Instant,
    /// When what is there is read again.
    next_check: Instant,
    /// Whether the set is as somebody else changed it.
    has_drifted: bool,
}

/// What is known of the state that is to be kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// It was confirmed before.
    pub(super) is_confirmed: bool,
    /// It is known to be all there is: the stream is open.
    pub(super) is_connected: bool,
}

/// What came of a step.
#[derive(Debug)]
pub(super) enum Step {
    /// A query is answered by what is wanted.
    InForce(Vec<Refused>),
    /// It is to be written after this long.
    Later(Duration),
    /// It is as somebody else changed it, and stays so.
    Left,
    /// Another edge has written a newer state.
    Overtaken,
}

impl<T: Target> Keeper<T> {
    pub(super) fn new(target: T, common: &Common, clock: SharedClock) -> Self {
        Self {
            target,
            pace: common.pace(),
            check: common.check(),
            on_drift: common.on_drift,
            clock,
            in_force: None,
            not_before: Instant::now(),
            next_check: Instant::now(),
            has_drifted: false,
        }
    }

    /// When what is there is read again, although nothing has changed.
    pub(super) fn next_check(&self) -> Instant {
        self.next_check
    }

    /// How often that is.
    pub(super) fn check(&self) -> Duration {
        self.check
    }

    pub(super) async fn step(
        &mut self,
        mut wanted: Wanted,
        standing: Standing,
        gauges: &Gauges,
    ) -> Result<Step, SinkError> {
        let in_force = |wanted: Wanted| Ok(Step::InForce(wanted.refused));
        self.target.accept(&mut wanted).await?;
        let is_check = Instant::now() >= self.next_check;
        // Nothing new is said by it: so a probe query will do.
        let is_known =
            standing.is_confirmed && !self.has_drifted && self.in_force.as_ref() == Some(&wanted.mark);
        if is_known && !is_check && self.target.probe(&wanted).await? {
            return in_force(wanted);
        }
        let seen = self.target.read(&wanted).await?;
        self.next_check = Instant::now() + self.check;
        let is_written = match self.judged(seen) {
            Seen::Foreign(what) => {
                return Err(SinkError::refused(format!(
                    "there are {what}, which no sink wrote: they are left alone; give the sink a set of its own, or empty this one"
                )));
            }
            Seen::Changed(what) if self.note_drift(&what, gauges) => return Ok(Step::Left),
            Seen::Intact(stamp) if stamp.mark == wanted.mark => true,
            Seen::Intact(stamp) => {
                if self.is_overtaken(&stamp, wanted.writer.as_ref(), standing.is_connected)? {
                    return Ok(Step::Overtaken);
                }
                false
            }
            Seen::Changed(_) | Seen::Empty | Seen::Unfinished => false,
        };
        if is_written && self.target.probe(&wanted).await? {
            self.is_in_force(&wanted);
            return in_force(wanted);
        }
        if let Some(wait) = self.wait() {
            return Ok(Step::Later(wait));
        }
        // Also where it fails: what is loaded costs an outage, however it ends.
        self.not_before = Instant::now() + self.pace;
        if is_written {
            self.target.load(&wanted).await?;
        } else {
            self.target.write(&wanted).await?;
        }
        gauges.wrote();
        if !self.target.read(&wanted).await?.is_intact(&wanted.mark) {
            return Err(SinkError::refused(
                "what is there is not what was just written: something else writes there, too",
            ));
        }
        if !self.target.probe(&wanted).await? {
            return Err(SinkError::refused(
                "a probe query is not answered by what was written and loaded",
            ));
        }
        fail_points::PROBED.pass();
        self.is_in_force(&wanted);
        in_force(wanted)
    }

    /// What is seen, where it was seen to be in force before: then it is the sink's own, whatever somebody made of it.
    fn judged(&self, seen: Seen) -> Seen {
        match seen {
            Seen::Foreign(what) if self.in_force.is_some() => Seen::Changed(what),
            Seen::Empty if self.in_force.is_some() => Seen::Changed("nothing".into()),
            seen => seen,
        }
    }

    /// Whether another edge has written a newer state than what is wanted. An error if it is not this sink's to write over.
    fn is_overtaken(
        &self,
        there: &Stamp,
        own: Option<&Writer>,
        is_connected: bool,
    ) -> Result<bool, SinkError> {
        let Some((there, own)) = there.writer.as_ref().zip(own) else {
            return Ok(false);
        };
        if there.sink != own.sink {
            return Err(SinkError::refused(
                "another sink keeps this set: it is left alone; give each sink a set of its own, or name this one as that one was named",
            ));
        }
        // Its settings may have changed before it was started, but not since.
        if there.selection != own.selection && self.in_force.is_some() {
            return Err(SinkError::refused(
                "an edge that was started later keeps this set for other search applications: it is left alone; give sinks of one name \
                 the same namespaces",
            ));
        }
        Ok(if there.epoch == own.epoch {
            there.revision > own.revision
        } else {
            // Which of two epochs is the newer one, only the services know.
            !is_connected
        })
    }

    /// Notes that somebody else changed the set, once. Returns whether it is left so.
    fn note_drift(&mut self, what: &str, gauges: &Gauges) -> bool {
        let is_left = self.on_drift == OnDrift::Leave;
        if !self.has_drifted {
            self.has_drifted = true;
            gauges.drifted();
            tracing::warn!(found = what, is_left, "somebody else changed what a sink keeps");
        }
        is_left
    }

    fn is_in_force(&mut self, wanted: &Wanted) {
        self.in_force = Some(wanted.mark.clone());
        self.has_drifted = false;
    }

    /// How long until something may be written.
    fn wait(&self) -> Option<Duration> {
        let paced = self.not_before.checked_duration_since(Instant::now());
        let window = self.target.wait(self.clock.now());
        paced.max(window).filter(|wait| !wait.is_zero())
    }
}
