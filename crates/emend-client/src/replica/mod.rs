//! The stream's protocol as a pure state machine: messages go in, their effects come out.
//!
//! A `Replica` holds all resources of its filter as received, its position in the log, and the resources that this node
//! rejects. It trusts nothing: it checks the order of revisions, the count and the digests of snapshots, and each
//! value's checksum. A message that breaks the protocol changes nothing held and returns a [`ProtocolViolation`]; the
//! caller then reconnects. What is held is always one complete state of the server, at `position`.
//!
//! It must know nothing of connections, time, files or how resources are looked up.

mod effect;
pub(crate) mod holdings;
mod installation;
mod intake;
mod judge;
pub(crate) mod key;
mod rejected;
#[cfg(test)]
mod tests;
mod verify;
mod violation;

use std::{borrow::Cow, mem, sync::Arc};

use emend_core::{InstallationId, Kind, Revision};
use emend_proto::{
    common::v1::Cause,
    learning::v1::{self as pb, Cursor, SnapshotReason},
    wire::{self, ChangeKind, Message},
};
use emend_wire::parse;

pub(crate) use self::intake::{Restored, fact_of};
pub use self::{
    effect::{Applied, AppliedChange, Effect, Installed, State},
    holdings::Group,
    judge::Rejection,
    verify::{Difference, Verdict},
    violation::ProtocolViolation,
};
use self::{
    holdings::Holdings,
    installation::{Answer, Installation},
    intake::{check_order, drained, envelope_of, follows, judged, key_of},
    key::KeyParts,
    rejected::Rejected,
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

#[derive(Debug)]
struct Staging {
    installation: Option<InstallationId>,
    reason: SnapshotReason,
    revision: i64,
    count: usize,
    held: Holdings,
    rejected: Rejected,
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

    /// A replica with what was held at `position`, of `installation` if that was known. If a key occurs twice the last one wins; the digests will show the
    /// difference.
    pub(crate) fn restore(
        hash: Arc<KeyedHash>,
        held: &[Restored],
        installation: Option<InstallationId>,
        position: Cursor,
    ) -> Self {
        let mut replica = Self::new(hash);
        for Restored {
            key,
            value,
            revision,
            value_checksum,
        } in held
        {
            // The reader of the file has verified that keys can be unpacked.
            if let Some(key) = KeyParts::unpack(key) {
                let envelope = judged(key, value, *revision, *value_checksum, &mut replica.rejected).0;
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
    pub(crate) fn distrust(&mut self) {
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
    #[cfg(any(feature = "fuzzing", feature = "testing"))]
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
                    value: Some(Cow::Owned(value.learned.maps_to().to_owned())),
                })
            })
    }

    /// Takes in one message. After an error the stream is unusable: [`Replica::open`] another.
    pub(crate) fn receive(&mut self, message: wire::SubscribeResponse) -> Result<Effect, ProtocolViolation> {
        match message.message {
            None => Ok(Effect::Ignored),
            Some(Message::Resumed(resumed)) => self.resumed(&resumed),
            Some(Message::SnapshotBegin(begin)) => self.snapshot_begin(&begin),
            Some(Message::SnapshotChunk(chunk)) => self.snapshot_chunk(&chunk),
            Some(Message::SnapshotEnd(end)) => self.snapshot_end(end),
            Some(Message::Update(update)) => self.update(update),
            Some(Message::Bookmark(bookmark)) => self.bookmark(bookmark),
            Some(Message::Drain(drain)) => Ok(drained(drain)),
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

    fn snapshot_begin(&mut self, begin: &pb::SnapshotBegin) -> Result<Effect, ProtocolViolation> {
        let count = usize::try_from(begin.resource_count)
            .map_err(|_| ProtocolViolation::malformed("SnapshotBegin", "its count is negative"))?;
        let reason = SnapshotReason::try_from(begin.reason).unwrap_or(SnapshotReason::Unspecified);
        let installation = match self.answer(&begin.installation_id, "SnapshotBegin")? {
            Answer::Accepted(installation) => installation,
            Answer::Other { held, answering } => return Ok(self.refused(held, answering)),
        };
        self.phase = Phase::Snapshot(Staging {
            installation,
            reason,
            revision: begin.revision,
            count,
            held: Holdings::new(Arc::clone(&self.hash)),
            rejected: Rejected::default(),
        });
        Ok(Effect::SnapshotBegun {
            reason,
            revision: Revision(begin.revision),
            count: count as u64,
        })
    }

    fn snapshot_chunk(&mut self, chunk: &wire::SnapshotChunk) -> Result<Effect, ProtocolViolation> {
        let Phase::Snapshot(staging) = &mut self.phase else {
            return Err(ProtocolViolation::Unexpected("SnapshotChunk"));
        };
        for resource in &chunk.resources {
            let key = KeyParts::of(key_of(resource.key.as_ref(), "SnapshotChunk")?);
            if resource.revision > staging.revision {
                return Err(ProtocolViolation::malformed(
                    "SnapshotChunk",
                    "it holds what came after the snapshot",
                ));
            }
            let envelope = envelope_of(key, resource, &mut staging.rejected).0;
            if staging.held.put(envelope).is_some() {
                return Err(ProtocolViolation::malformed("SnapshotChunk", "it repeats a key"));
            }
            if staging.held.len() > staging.count {
                return Err(ProtocolViolation::Count {
                    stated: staging.count,
                    came: staging.held.len(),
                });
            }
        }
        Ok(Effect::Staged)
    }

    fn snapshot_end(&mut self, end: pb::SnapshotEnd) -> Result<Effect, ProtocolViolation> {
        let Phase::Snapshot(Staging {
            installation,
            reason,
            revision,
            count,
            held,
            rejected,
        }) = mem::replace(&mut self.phase, Phase::Opened { sent: None })
        else {
            return Err(ProtocolViolation::Unexpected("SnapshotEnd"));
        };
        let Some(cursor) = end.cursor.filter(|cursor| cursor.revision == revision) else {
            return Err(ProtocolViolation::ForeignCursor("SnapshotEnd"));
        };
        if held.len() != count {
            return Err(ProtocolViolation::Count {
                stated: count,
                came: held.len(),
            });
        }
        let verdict = verify::all(held.digests(), verify::parse(&end.digests)?);
        // Used even if the digests differ, since what was held is older and a corrupt value is rejected by its own
        // checksum. It is only not resumed from.
        self.held = held;
        self.rejected = rejected;
        self.installation.held = installation;
        self.position = Some(cursor);
        self.resumable = !verdict.differs();
        self.phase = Phase::Live;
        let rejected = self.rejected.len();
        Ok(Effect::Installed(Installed {
            reason,
            revision: Revision(revision),
            count,
            rejected,
            verdict,
        }))
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
        let theirs = verify::parse(&part.digests)?;
        // The message has been fully validated: from here on it is applied as a whole.
        let changes = changes
            .into_iter()
            .filter_map(|change| self.apply(change))
            .collect();
        let verdict = verify::some(self.held.digests(), theirs);
        self.resumable &= !verdict.differs();
        self.position = Some(cursor);
        Ok(Effect::Applied(Applied {
            from: Revision(from),
            to: Revision(to),
            changes,
            verdict,
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
        let verdict = verify::all(self.held.digests(), verify::parse(&bookmark.digests)?);
        let revision = Revision(cursor.revision);
        if verdict.differs() {
            // Something at or below that revision is missing, so the position stays as it was.
            self.resumable = false;
        } else {
            self.position = Some(cursor);
        }
        Ok(Effect::Current { revision, verdict })
    }

    /// The position, if the stream has begun and no snapshot is under way.
    fn live_position(&self, message: &'static str) -> Result<Cursor, ProtocolViolation> {
        match (&self.phase, &self.position) {
            (Phase::Live | Phase::Update { .. }, Some(position)) => Ok(position.clone()),
            _ => Err(ProtocolViolation::Unexpected(message)),
        }
    }
}
