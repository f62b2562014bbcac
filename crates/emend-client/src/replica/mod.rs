//! The stream's protocol as a pure state machine: messages go in, their effects come out.
//!
//! A `Replica` holds all resources of its filter as received, its position in the log, and the resources that this node
//! rejects. It trusts nothing: it checks the order of revisions, the count and the digests of snapshots, and each
//! value's checksum. A message that breaks the protocol changes nothing held and returns a [`ProtocolViolation`]; the
//! caller then reconnects. What is held is always one complete state of the server, at `position`.

mod check;
mod convert;
mod decode;
mod effect;
pub(crate) mod holdings;
mod installation;
pub(crate) mod key;
mod rejected;
mod snapshot;
#[cfg(test)]
mod tests;
mod verify;
mod violation;

use std::{borrow::Cow, mem, sync::Arc, time::Duration};

use emend_core::{InstallationId, Kind, Revision};
use emend_proto::{
    common::v1::Cause,
    learning::v1::{self as pb, Cursor},
    wire::{self, ChangeKind, Message},
};
use emend_wire::parse;

pub(crate) use self::convert::{SavedResource, fact_of};
use self::{
    check::{check_order, follows},
    convert::{decoded, envelope_of},
    holdings::Holdings,
    installation::{Answer, Installation},
    key::KeyParts,
    rejected::Rejected,
    snapshot::Staging,
};
pub use self::{
    decode::Rejection,
    effect::{Applied, AppliedChange, Effect, Installed, State},
    holdings::Group,
    verify::{Difference, DigestCheck},
    violation::ProtocolViolation,
};
use crate::{keyed_hash::KeyedHash, view::Fact};

/// Everything a node holds of the log.
#[derive(Debug)]
pub(crate) struct Replica {
    hash: Arc<KeyedHash>,
    held: Holdings,
    rejected: Rejected,
    installation: Installation,
    /// The state of the log that `held` is.
    position: Option<Cursor>,
    /// Whether the stream may resume from `position`. False once digests have differed.
    resumable: bool,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// A stream was opened. Its first message says how it continues.
    Opened {
        sent: Option<Cursor>,
    },
    Live,
    Snapshot(Staging),
    Update {
        from: i64,
        to: i64,
        changes: Vec<wire::Change>,
    },
}

impl Replica {
    /// An empty replica.
    pub(crate) fn new(hash: Arc<KeyedHash>) -> Self {
        Self {
            held: Holdings::new(Arc::clone(&hash)),
            hash,
            rejected: Rejected::default(),
            installation: Installation::default(),
            position: None,
            resumable: false,
            phase: Phase::Opened { sent: None },
        }
    }

    /// A replica with what was held at `position`, of `installation` if that was known. If a key occurs twice the last one
    /// wins; the digests will show the difference.
    pub(crate) fn restore(
        hash: Arc<KeyedHash>,
        held: &[SavedResource],
        installation: Option<InstallationId>,
        position: Cursor,
    ) -> Self {
        let mut replica = Self::new(hash);
        for SavedResource {
            key,
            value,
            revision,
            value_checksum,
        } in held
        {
            // The reader of the file has verified that keys can be unpacked.
            if let Some(key) = KeyParts::unpack(key) {
                let envelope = decoded(key, value, *revision, *value_checksum, &mut replica.rejected).0;
                replica.held.put(envelope);
            }
        }
        replica.installation.held = installation;
        replica.position = Some(position);
        replica.resumable = true;
        replica
    }

    /// Prepares for a new stream: discards what the last one left unfinished. Returns the cursor to send.
    pub(crate) fn open(&mut self) -> Option<Cursor> {
        let sent = self.position.clone().filter(|_| self.resumable);
        self.phase = Phase::Opened { sent: sent.clone() };
        sent
    }

    /// Makes the next stream begin with a snapshot. What is held stays in use.
    pub(crate) fn request_snapshot(&mut self) {
        self.resumable = false;
    }

    /// Accepts this installation too from now on, even where what is held is another's.
    pub(crate) fn accept(&mut self, installation: InstallationId) {
        self.installation.accepted = Some(installation);
    }

    /// The installation whose resources are held; `None` until a server has named it.
    pub(crate) fn installation(&self) -> Option<InstallationId> {
        self.installation.held
    }

    /// The state of the log that is held; `None` before the first one.
    pub(crate) fn position(&self) -> Option<&Cursor> {
        self.position.as_ref()
    }

    /// The revision at or below which everything is applied.
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.position.as_ref().map_or(0, |cursor| cursor.revision))
    }

    /// A copy to resume from later; `None` while there is nothing to resume from.
    pub(crate) fn copy(&self) -> Option<(Cursor, Holdings)> {
        let position = self.position.clone().filter(|_| self.resumable)?;
        Some((position, self.held.clone()))
    }

    /// The resources that this node cannot use.
    pub(crate) fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    /// Everything that is held, usable or not.
    pub(crate) fn held(&self) -> &Holdings {
        &self.held
    }

    /// How many resources are held.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// How many resources or changes are staged until the end of their snapshot or update.
    pub(crate) fn pending(&self) -> usize {
        match &self.phase {
            Phase::Snapshot(staging) => staging.held.len(),
            Phase::Update { changes, .. } => changes.len(),
            Phase::Opened { .. } | Phase::Live => 0,
        }
    }

    /// The changes of an update of which more parts are to come.
    #[cfg(feature = "traces")]
    pub(crate) fn staged_changes(&self) -> &[wire::Change] {
        match &self.phase {
            Phase::Update { changes, .. } => changes,
            Phase::Opened { .. } | Phase::Live | Phase::Snapshot(_) => &[],
        }
    }

    /// Everything held that this node can use.
    pub(crate) fn facts(&self) -> impl Iterator<Item = Fact<'_>> {
        self.held
            .iter()
            .filter(|envelope| envelope.is_usable())
            .filter_map(|envelope| {
                let key = envelope.key();
                let value = emend_wire::value::decode(envelope.value()).ok()?;
                Some(Fact {
                    namespace: key.namespace,
                    kind: Kind::from_number(key.kind)?,
                    key: key.key,
                    qualifier: key.qualifier,
                    user_id: key.user_id,
                    revision: Revision(envelope.revision()),
                    value: Some(Cow::Owned(value)),
                })
            })
    }

    /// Applies one message. After an error the stream is unusable: [`Replica::open`] another.
    pub(crate) fn receive(&mut self, message: wire::SubscribeResponse) -> Result<Effect, ProtocolViolation> {
        match message.message {
            None => Ok(Effect::Ignored),
            Some(Message::Resumed(resumed)) => self.resumed(&resumed),
            Some(Message::SnapshotBegin(begin)) => self.snapshot_begin(&begin),
            Some(Message::SnapshotChunk(chunk)) => self.snapshot_chunk(&chunk),
            Some(Message::SnapshotEnd(end)) => self.snapshot_end(end),
            Some(Message::Update(update)) => self.update(update),
            Some(Message::Bookmark(bookmark)) => self.bookmark(bookmark),
            Some(Message::Drain(drain)) => Ok(convert::drain(drain)),
        }
    }

    fn resumed(&mut self, resumed: &pb::Resumed) -> Result<Effect, ProtocolViolation> {
        let revision = match &self.phase {
            Phase::Opened { sent: Some(sent) } if resumed.cursor.as_ref() == Some(sent) => {
                Revision(sent.revision)
            }
            Phase::Opened { .. } => return Err(ProtocolViolation::ForeignCursor("Resumed")),
            _ => return Err(ProtocolViolation::Unexpected("Resumed")),
        };
        match self.answer(&resumed.installation_id, "Resumed")? {
            Answer::Accepted(installation) => {
                self.installation.held = installation;
                self.phase = Phase::Live;
                Ok(Effect::Resumed(revision))
            }
            Answer::Other { held, answering } => Ok(self.refused(held, answering)),
        }
    }

    fn answer(&self, installation_id: &str, message: &'static str) -> Result<Answer, ProtocolViolation> {
        self.installation
            .check(installation_id, message, self.held.len() == 0)
    }

    /// Keeps what is held. Nothing more is taken from this stream.
    fn refused(&mut self, held: InstallationId, answering: InstallationId) -> Effect {
        self.phase = Phase::Opened { sent: None };
        Effect::OtherInstallation { held, answering }
    }

    fn update(&mut self, part: wire::Update) -> Result<Effect, ProtocolViolation> {
        let position = self.live_position("Update")?;
        let (from, to) = (part.from_revision, part.to_revision);
        if from > position.revision {
            return Err(ProtocolViolation::Gap {
                held: position.revision,
                from,
            });
        }
        if to <= position.revision {
            return Err(ProtocolViolation::NotNew {
                held: position.revision,
                revision: to,
            });
        }
        let mut changes = match mem::replace(&mut self.phase, Phase::Live) {
            Phase::Update {
                from: first_from,
                to: first_to,
                changes,
            } => {
                if (from, to) != (first_from, first_to) {
                    return Err(ProtocolViolation::malformed(
                        "Update",
                        "its parts are of different updates",
                    ));
                }
                changes
            }
            _ => Vec::new(),
        };
        changes.extend(part.changes);
        if !part.last {
            self.phase = Phase::Update { from, to, changes };
            return Ok(Effect::Staged);
        }
        let Some(cursor) = part
            .cursor
            .filter(|cursor| cursor.revision == to && follows(&position, cursor))
        else {
            return Err(ProtocolViolation::ForeignCursor("Update"));
        };
        check_order(&changes, position.revision, to)?;
        let sent = verify::parse(&part.digests)?;
        // The message has been fully validated: from here on it is applied as a whole.
        let changes = changes
            .into_iter()
            .filter_map(|change| self.apply(change))
            .collect();
        let digest_check = verify::compare_listed(self.held.digests(), sent);
        self.resumable &= !digest_check.differs();
        self.position = Some(cursor);
        Ok(Effect::Applied(Applied {
            from: Revision(from),
            to: Revision(to),
            changes,
            digest_check,
        }))
    }

    fn apply(&mut self, change: wire::Change) -> Option<AppliedChange> {
        // A change that this version does not know is skipped: the digests will show whether it mattered.
        let (key, state) = match change.change? {
            ChangeKind::Put(resource) => {
                let key = resource.key.clone()?;
                let (envelope, state) = envelope_of(KeyParts::of(&key), &resource, &mut self.rejected);
                if let Some(previous) = self.held.put(envelope) {
                    self.rejected.remove(&previous);
                }
                (key, state)
            }
            ChangeKind::Deleted(key) => {
                if let Some(previous) = self.held.remove(KeyParts::of(&key)) {
                    self.rejected.remove(&previous);
                }
                (key, State::Deleted)
            }
        };
        let time = |at: Option<prost_types::Timestamp>| at.and_then(|at| parse::timestamp(&at).ok());
        Some(AppliedChange {
            key,
            revision: Revision(change.revision),
            state,
            cause: Cause::try_from(change.cause).unwrap_or_default(),
            committed_at: time(change.committed_at),
            feedback_received_at: time(change.feedback_received_at),
            traceparent: change.traceparent,
        })
    }

    fn bookmark(&mut self, bookmark: pb::Bookmark) -> Result<Effect, ProtocolViolation> {
        let position = self.live_position("Bookmark")?;
        if matches!(self.phase, Phase::Update { .. }) {
            return Err(ProtocolViolation::Unexpected("Bookmark"));
        }
        let Some(cursor) = bookmark.cursor.filter(|cursor| follows(&position, cursor)) else {
            return Err(ProtocolViolation::ForeignCursor("Bookmark"));
        };
        if cursor.revision < position.revision {
            return Err(ProtocolViolation::NotNew {
                held: position.revision,
                revision: cursor.revision,
            });
        }
        let digest_check = verify::compare_all(self.held.digests(), verify::parse(&bookmark.digests)?);
        let revision = Revision(cursor.revision);
        let age = bookmark.age.and_then(|age| Duration::try_from(age).ok());
        if digest_check.differs() {
            // Something at or below that revision is missing, so the position stays as it was.
            self.resumable = false;
        } else {
            self.position = Some(cursor);
        }
        Ok(Effect::Current {
            revision,
            age: age.unwrap_or_default(),
            digest_check,
        })
    }

    /// The position, if the stream has begun and no snapshot is under way.
    fn live_position(&self, message: &'static str) -> Result<Cursor, ProtocolViolation> {
        match (&self.phase, &self.position) {
            (Phase::Live | Phase::Update { .. }, Some(position)) => Ok(position.clone()),
            _ => Err(ProtocolViolation::Unexpected(message)),
        }
    }
}
