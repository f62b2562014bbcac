//! Applies messages to the replica and publishes the result in the view.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
#[cfg(feature = "traces")]
mod traces;

use std::sync::Arc;

#[cfg(feature = "traces")]
use emend_base::span::Pending;
use emend_proto::{frame::Frame, wire};
use prost::Message as _;

use super::mirror::Followed;
use crate::{
    cache::{Header, SavedCopy},
    replica::{Effect, ProtocolViolation, Replica, fact_of},
    view::{LearnedView, Publisher},
};

/// Above this many bytes or resources, a message is applied in the background.
const HEAVY_BYTES: usize = 32 << 10;
const HEAVY_RESOURCES: usize = 500;
/// A lower bound on the encoded size of a change.
const CHANGE_BYTES: usize = 32;

/// A replica and its publisher.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) replica: Replica,
    publisher: Publisher,
    /// The prompts that are mirrored.
    pub(super) mirrored: Option<Followed>,
}

impl Engine {
    pub(super) fn new(view: &LearnedView, publisher: Publisher, mirrored: Option<Followed>) -> Self {
        Self {
            replica: Replica::new(Arc::clone(view.hash())),
            publisher,
            mirrored,
        }
    }

    /// Starts from a copy instead of empty.
    pub(super) fn restore(&mut self, view: &LearnedView, copy: SavedCopy) {
        let Header {
            installation, cursor, ..
        } = copy.header;
        self.replica = Replica::restore(Arc::clone(view.hash()), &copy.held, installation, cursor);
        self.publish_all();
    }

    /// Whether applying a message of this many bytes may take milliseconds.
    pub(super) fn is_heavy(&self, bytes: usize) -> bool {
        let pending = self.replica.pending();
        bytes > HEAVY_BYTES
            || pending > HEAVY_RESOURCES
            || self.publisher.is_slow(pending + bytes / CHANGE_BYTES)
    }

    /// Applies one message. Its effect is visible in the view when this returns. Where it is not `heavy`, what has become so
    /// since [`is_heavy`](Self::is_heavy) was asked is left to a later message.
    pub(super) fn receive(&mut self, frame: Frame, heavy: bool) -> Result<Effect, ProtocolViolation> {
        self.publisher.leave_large(!heavy);
        let message = wire::SubscribeResponse::decode(frame.0)
            .map_err(|error| ProtocolViolation::Undecodable(error.to_string()))?;
        #[cfg(feature = "traces")]
        let spans = traces::begin(&message, &self.replica);
        let effect = self.replica.receive(message)?;
        match &effect {
            Effect::Installed(_) => self.publish_all(),
            Effect::Applied(applied) => {
                if let Some(mirrored) = &mut self.mirrored {
                    applied
                        .changes
                        .iter()
                        .filter_map(fact_of)
                        .for_each(|fact| mirrored.note(&fact));
                }
                self.publisher
                    .apply(applied.changes.iter().filter_map(fact_of), applied.to);
            }
            Effect::Current {
                revision,
                digest_check,
                ..
            } => {
                if !digest_check.differs() {
                    self.publisher.advance(*revision);
                }
            }
            Effect::Ignored
            | Effect::Resumed(_)
            | Effect::OtherInstallation { .. }
            | Effect::SnapshotBegun { .. }
            | Effect::Staged
            | Effect::Drain { .. } => {}
        }
        #[cfg(feature = "traces")]
        spans.into_iter().map(Pending::confirm).for_each(drop);
        Ok(effect)
    }

    /// Whether there is anything to do for near answers.
    pub(super) fn near_is_due(&self) -> bool {
        self.publisher.near_is_due()
    }

    /// Looks after the models of near answers.
    pub(super) fn refresh_near(&mut self) {
        if self.publisher.refresh_near() {
            self.publisher.relearn(self.replica.facts());
        }
    }

    fn publish_all(&mut self) {
        let mut mirrored = self.mirrored.as_mut();
        if let Some(mirrored) = &mut mirrored {
            mirrored.clear();
        }
        let facts = self.replica.facts().inspect(|fact| {
            if let Some(mirrored) = &mut mirrored {
                mirrored.note(fact);
            }
        });
        self.publisher
            .replace(self.replica.len(), facts, self.replica.revision());
    }
}
