//! Long transfers: snapshots, and updates too long to be kept encoded. Each is cut part by part from one immutable
//! state; permits bound how many run at once.
//!
//! A transfer holds a whole state. If its subscriber stalls or reads more slowly than [`Pace`] allows, it may be taken
//! away for one that waits for a permit; its stream ends when next polled, and the client resumes from its cursor. So
//! subscribers that stall or read slowly cost the others a bounded time, and the number of states held is bounded.
//! Waiting clients get permits round robin, and no client can take them all ([`FairSemaphore`]).

use std::{
    pin::pin,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use emend_proto::learning::v1::SnapshotReason;
use emend_serve::fair_semaphore::{ClientKey, FairSemaphore, Permit};
use tokio::time::{Instant, timeout};

use crate::{
    audience::Audience,
    batches::Chunk,
    encode::{self, Encoded},
    state::{Entry, ReplicaState},
};

/// How often a waiting subscriber looks for a transfer that can be taken away.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What a transfer must achieve to keep its permit while another waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The longest time between two messages. Also the grace period before `bytes_per_second` applies.
    pub stalls_after: Duration,
    /// The lowest average rate since it began, in bytes a second.
    pub bytes_per_second: u64,
}

/// Something long to send.
#[derive(Debug)]
pub struct Transfer {
    state: Arc<ReplicaState>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    SnapshotBegin(SnapshotReason),
    Snapshot(Option<Arc<Entry>>, Option<Arc<OnceLock<Option<Chunk>>>>),
    SnapshotEnd,
    Update(i64, Option<Arc<Entry>>),
    Done,
}

impl Transfer {
    /// A snapshot: everything the audience sees of `state`.
    pub fn snapshot(state: Arc<ReplicaState>, reason: SnapshotReason) -> Self {
        Self {
            state,
            stage: Stage::SnapshotBegin(reason),
        }
    }

    /// An update: everything that changed between `from` and `state`.
    pub fn update(state: Arc<ReplicaState>, from: i64) -> Self {
        Self {
            state,
            stage: Stage::Update(from, None),
        }
    }

    /// The state that the subscriber holds after the last message.
    pub fn state(&self) -> &Arc<ReplicaState> {
        &self.state
    }

    /// The next message; none after the last.
    pub fn next(&mut self, audience: &Audience) -> Option<Encoded> {
        let Audience {
            filter,
            max_batch_bytes,
            batches,
            ..
        } = audience;
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::SnapshotBegin(reason) => {
                    self.stage = Stage::Snapshot(None, None);
                    return Some(encode::snapshot_begin(&self.state, filter, reason));
                }
                Stage::Snapshot(after, before) => {
                    let cell = batches.chunk(&self.state, filter, after.as_ref(), *max_batch_bytes);
                    drop(before);
                    match cell.get().and_then(Option::as_ref) {
                        Some(Chunk { message, next }) => {
                            let message = message.clone();
                            self.stage = match next {
                                Some(_) => Stage::Snapshot(next.clone(), Some(cell)),
                                None => Stage::SnapshotEnd,
                            };
                            return Some(message);
                        }
                        None => self.stage = Stage::SnapshotEnd,
                    }
                }
                Stage::SnapshotEnd => return Some(encode::snapshot_end(&self.state, filter)),
                Stage::Update(from, after) => {
                    let (part, next) =
                        batches.part(&self.state, filter, from, after.as_ref(), *max_batch_bytes)?;
                    if next.is_some() {
                        self.stage = Stage::Update(from, next);
                    }
                    return Some(part);
                }
                Stage::Done => return None,
            }
        }
    }
}

/// The transfer permits, and the transfers that hold them. Clones share them.
#[derive(Debug, Clone)]
pub struct TransferPermits {
    permits: FairSemaphore,
    taken: Arc<Mutex<Vec<Weak<Slot>>>>,
    pace: Pace,
}

/// Empty once the transfer has been taken away.
type Slot = Mutex<Option<Running>>;

#[derive(Debug)]
struct Running {
    transfer: Transfer,
    began: Instant,
    progressed: Instant,
    /// Bytes handed over so far.
    sent: u64,
    /// Released when this is dropped.
    permit: Permit,
}

/// A transfer that holds a permit, unless it has been taken away.
#[derive(Debug)]
pub struct PermittedTransfer(Arc<Slot>);

/// The transfer was taken away because it stalled or was too slow while others waited.
#[derive(Debug)]
pub struct TakenAway;

impl TransferPermits {
    /// At most `count` transfers at once. A transfer that keeps `pace` is never taken away.
    pub fn new(count: usize, pace: Pace) -> Self {
        Self {
            permits: FairSemaphore::of(count),
            taken: Arc::default(),
            pace,
        }
    }

    /// A permit for that client, if one is free now.
    pub fn try_take(&self, client: ClientKey) -> Option<Permit> {
        self.permits.try_acquire(client)
    }

    /// Waits for a permit until it is that client's turn.
    pub async fn take(self, client: ClientKey) -> Permit {
        // One acquire for the whole wait, so that it keeps its place in the queue.
        let mut turn = pin!(self.permits.acquire(client.clone()));
        loop {
            if let Ok(permit) = timeout(CHECK_INTERVAL, &mut turn).await {
                return permit;
            }
            self.free_stalled(&client);
        }
    }

    /// Starts a transfer under its permit.
    pub fn put(&self, permit: Permit, transfer: Transfer) -> PermittedTransfer {
        let slot = Arc::new(Mutex::new(Some(Running {
            transfer,
            began: Instant::now(),
            progressed: Instant::now(),
            sent: 0,
            permit,
        })));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|slot| slot.strong_count() > 0);
        taken.push(Arc::downgrade(&slot));
        PermittedTransfer(slot)
    }

    /// Takes away one transfer that does not keep the pace, from that client or from one that holds more permits.
    fn free_stalled(&self, waiting: &ClientKey) {
        let slots: Vec<_> = {
            let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.iter().filter_map(Weak::upgrade).collect()
        };
        // The stalled transfers that may be taken: the waiter's own, and others'.
        let (mut own, mut others) = (0, 0);
        for slot in &slots {
            let running = slot.lock().unwrap_or_else(PoisonError::into_inner);
            match running
                .as_ref()
                .map(|running| (running.keeps(self.pace), running.permit.client()))
            {
                Some((false, client)) if client == waiting => own += 1,
                Some((false, client)) if self.yields(client, waiting) => others += 1,
                _ => {}
            }
        }
        // Taking them would not help.
        if !self.permits.would_admit(waiting, own, others) {
            return;
        }
        for slot in slots {
            let stalled = slot
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take_if(|running| {
                    !running.keeps(self.pace) && self.yields(running.permit.client(), waiting)
                });
            // Dropped outside the locks: it may free a whole state.
            if stalled.is_some() {
                return;
            }
        }
    }

    fn yields(&self, client: &ClientKey, to: &ClientKey) -> bool {
        client == to || self.permits.held_by(client) > self.permits.held_by(to)
    }
}

impl Running {
    fn keeps(&self, pace: Pace) -> bool {
        let Pace {
            stalls_after,
            bytes_per_second,
        } = pace;
        let going = self.began.elapsed();
        self.progressed.elapsed() <= stalls_after
            && (going <= stalls_after || self.sent >= going.as_secs().saturating_mul(bytes_per_second))
    }
}

impl PermittedTransfer {
    /// The next message; none after the last.
    pub fn next(&self, audience: &Audience) -> Result<Option<Encoded>, TakenAway> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running.as_mut().ok_or(TakenAway)?;
        running.progressed = Instant::now();
        let next = running.transfer.next(audience);
        running.sent += next.as_ref().map_or(0, |message| message.wire_len() as u64);
        Ok(next)
    }

    /// The state that the subscriber holds after the last message.
    pub fn state(&self) -> Result<Arc<ReplicaState>, TakenAway> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .as_ref()
            .map(|running| Arc::clone(running.transfer.state()))
            .ok_or(TakenAway)
    }
}
