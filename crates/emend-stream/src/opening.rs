//! Where a stream begins: at the subscriber's cursor, or with a snapshot and the reason for it.
//!
//! A replica that lags behind the one that issued the cursor does not send a snapshot for that. Before it calls a
//! cursor ahead, it asks its source; if the source covers the cursor, it waits for the state. While the source
//! is away, a replica serves what it holds to all but those: they hold more.

use emend_base::Error;
use emend_core::{Epoch, InstallationId};
use emend_proto::learning::v1::SnapshotReason;

use tokio::time::timeout;

use crate::{Source, Streams, state::ReplicaState};

/// How far a subscriber says it has applied, in which epoch and for which filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch of the log.
    pub epoch: Epoch,
    /// Everything at or below this revision has been applied.
    pub revision: i64,
    /// The hash of the filter it was issued for.
    pub filter_hash: u64,
}

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The epoch of the log.
    pub epoch: Epoch,
    /// The installation that the log belongs to.
    pub installation: InstallationId,
    /// The revision the subscriber has applied.
    pub revision: i64,
    /// Why a snapshot comes first; none if the cursor can be resumed from.
    pub snapshot: Option<SnapshotReason>,
}

impl Start {
    fn snapshot(state: &ReplicaState, reason: SnapshotReason) -> Self {
        Self {
            epoch: state.epoch(),
            installation: state.installation(),
            revision: 0,
            snapshot: Some(reason),
        }
    }
}

/// Decides where a stream begins. Waits at most [`Settings::max_wait`](crate::Settings::max_wait) for the source, and as
/// long for the state, then UNAVAILABLE.
pub async fn start<S: Source>(
    streams: &Streams<S>,
    cursor: Option<Cursor>,
    filter_hash: u64,
) -> Result<Start, Error> {
    let mut state = streams.state()?;
    let Some(cursor) = cursor else {
        return Ok(Start::snapshot(&state, SnapshotReason::NoCursor));
    };
    let covers =
        move |state: &ReplicaState| state.epoch() == cursor.epoch && state.revision() >= cursor.revision;
    if !covers(&state) {
        let answer = timeout(streams.max_wait(), streams.source().head()).await;
        let head = answer.map_err(|_| silent())??;
        let reason = if head.epoch != cursor.epoch {
            Some(SnapshotReason::ForeignEpoch)
        } else if cursor.filter_hash != filter_hash {
            Some(SnapshotReason::FilterChanged)
        } else if head.revision < cursor.revision {
            Some(SnapshotReason::CursorAhead)
        } else {
            None
        };
        streams.source().wake();
        if let Some(reason) = reason {
            // Not of an older state than the database has, which might set the subscriber back.
            let older = state.epoch();
            let is_as_new = |state: &ReplicaState| {
                let epoch = state.epoch();
                let is_newer = epoch != head.epoch && epoch != older;
                is_newer || epoch == head.epoch && state.revision() >= head.revision
            };
            let state = streams.wait_until(is_as_new, None).await?;
            return Ok(Start::snapshot(&state, reason));
        }
        state = streams.wait_until(covers, None).await?;
    }
    if cursor.filter_hash != filter_hash {
        Ok(Start::snapshot(&state, SnapshotReason::FilterChanged))
    } else if cursor.revision < state.horizon() {
        Ok(Start::snapshot(&state, SnapshotReason::CursorExpired))
    } else {
        Ok(Start {
            epoch: cursor.epoch,
            installation: state.installation(),
            revision: cursor.revision,
            snapshot: None,
        })
    }
}

fn silent() -> Error {
    Error::unavailable(
        "REPLICA_BEHIND",
        "this replica does not hold what the cursor covers, and its database does not answer; try another",
    )
}
