//! Snapshots: resources are staged as they arrive, and replace what is held when the snapshot is complete.

use std::{mem, sync::Arc};

use emend_core::{InstallationId, Revision};
use emend_proto::{
    learning::v1::{self as pb, SnapshotReason},
    wire,
};

use super::{
    Effect, Installed, Phase, ProtocolViolation, Replica, check::key_of, convert::envelope_of,
    holdings::Holdings, installation::Answer, key::KeyParts, rejected::Rejected, verify,
};

/// What has arrived of a snapshot.
#[derive(Debug)]
pub(super) struct Staging {
    installation: Option<InstallationId>,
    reason: SnapshotReason,
    revision: i64,
    count: usize,
    pub(super) held: Holdings,
    rejected: Rejected,
}

impl Replica {
    pub(super) fn snapshot_begin(&mut self, begin: &pb::SnapshotBegin) -> Result<Effect, ProtocolViolation> {
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

    pub(super) fn snapshot_chunk(
        &mut self,
        chunk: &wire::SnapshotChunk,
    ) -> Result<Effect, ProtocolViolation> {
        let Phase::Snapshot(staging) = &mut self.phase else {
            return Err(ProtocolViolation::Unexpected("SnapshotChunk"));
        };
        for resource in &chunk.resources {
            let key = KeyParts::of(key_of(resource.key.as_ref(), "SnapshotChunk")?)
                .in_chunk(&chunk.namespace, chunk.kind);
            if resource.revision > staging.revision {
                return Err(ProtocolViolation::malformed(
                    "SnapshotChunk",
                    "it has a resource that is newer than the snapshot",
                ));
            }
            let envelope = envelope_of(key, resource, &mut staging.rejected).0;
            if staging.held.put(envelope).is_some() {
                return Err(ProtocolViolation::malformed("SnapshotChunk", "it repeats a key"));
            }
            if staging.held.len() > staging.count {
                return Err(ProtocolViolation::Count {
                    stated: staging.count,
                    received: staging.held.len(),
                });
            }
        }
        Ok(Effect::Staged)
    }

    pub(super) fn snapshot_end(&mut self, end: pb::SnapshotEnd) -> Result<Effect, ProtocolViolation> {
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
                received: held.len(),
            });
        }
        let digest_check = verify::compare_all(held.digests(), verify::parse(&end.digests)?);
        // Used even if the digests differ, since what was held is older and a corrupt value is rejected by its own
        // checksum. It is only not resumed from.
        self.held = held;
        self.rejected = rejected;
        self.installation.held = installation;
        self.position = Some(cursor);
        self.resumable = !digest_check.differs();
        self.phase = Phase::Live;
        let rejected = self.rejected.len();
        Ok(Effect::Installed(Installed {
            reason,
            revision: Revision(revision),
            count,
            rejected,
            digest_check,
        }))
    }
}
