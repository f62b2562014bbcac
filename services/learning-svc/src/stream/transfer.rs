//! Long transfers: snapshots, and updates too long to be kept encoded. Cut part by part from one immutable state, their
//! number at once bounded.
//!
//! A transfer holds a whole state. One whose subscriber stalls, or takes less than [`Pace`] asks for, is taken from it when
//! another waits for its place: that stream ends when it is next asked for, and resumes from its cursor. So subscribers that
//! stall or dawdle cost the others a bounded time, and never more than a bounded number of states is held. Of four places
//! and more, one authenticated caller has three quarters at most: whatever it does, others get on. It must know nothing of subscribers beyond that.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};

use emend_core::Caller;
use emend_proto::learning::v1::SnapshotReason;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{
    audience::Audience,
    batches::Chunk,
    encode::{self, Encoded},
    state::{Entry, ReplicaState},
};

/// How often who waits looks for transfers that stall.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What a transfer has to do to keep its place while another waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// It gets on at least this often; and has this long before what follows counts.
    pub stalls_after: Duration,
    /// So many bytes a second at least, on average since it began.
    pub bytes_per_second: u64,
}

/// Something long to send.
#[derive(Debug)]
pub struct Transfer {
    state: Arc<ReplicaState>,
    what: What,
}

#[derive(Debug)]
enum What {
    SnapshotBegin(SnapshotReason),
    Snapshot(Option<Arc<Entry>>, Option<Arc<OnceLock<Option<Chunk>>>>),
    SnapshotEnd,
    Update(i64, Option<Arc<Entry>>),
    Done,
}

impl Transfer {
    /// All that the audience sees of `state`.
    pub fn snapshot(state: Arc<ReplicaState>, reason: SnapshotReason) -> Self {
        Self {
            state,
            what: What::SnapshotBegin(reason),
        }
    }

    /// All that changed between `from` and `state`.
    pub fn update(state: Arc<ReplicaState>, from: i64) -> Self {
        Self {
            state,
            what: What::Update(from, None),
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
            match std::mem::replace(&mut self.what, What::Done) {
                What::SnapshotBegin(reason) => {
                    self.what = What::Snapshot(None, None);
                    return Some(encode::snapshot_begin(&self.state, filter, reason));
                }
                What::Snapshot(after, before) => {
                    let cell = batches.chunk(&self.state, filter, after.as_ref(), *max_batch_bytes);
                    drop(before);
                    match cell.get().and_then(Option::as_ref) {
                        Some(Chunk { message, next }) => {
                            let message = message.clone();
                            self.what = match next {
                                Some(_) => What::Snapshot(next.clone(), Some(cell)),
                                None => What::SnapshotEnd,
                            };
                            return Some(message);
                        }
                        None => self.what = What::SnapshotEnd,
                    }
                }
                What::SnapshotEnd => return Some(encode::snapshot_end(&self.state, filter)),
                What::Update(from, after) => {
                    let (part, next) =
                        batches.part(&self.state, filter, from, after.as_ref(), *max_batch_bytes)?;
                    if next.is_some() {
                        self.what = What::Update(from, next);
                    }
                    return Some(part);
                }
                What::Done => return None,
            }
        }
    }
}

/// The places for transfers. Clones share them.
#[derive(Debug, Clone)]
pub struct Places {
    semaphore: Arc<Semaphore>,
    count: usize,
    /// Of each caller that has or waits for some, the places that are its.
    shares: Arc<Mutex<HashMap<Caller, Weak<Semaphore>>>>,
    taken: Arc<Mutex<Vec<Weak<Place>>>>,
    pace: Pace,
}

/// A place for one transfer, given back when it is dropped: one of all, and one of the caller's.
#[derive(Debug)]
pub struct Permit {
    caller: Caller,
    _of_all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

/// Empty once the transfer was taken away.
type Place = Mutex<Option<Running>>;

#[derive(Debug)]
struct Running {
    transfer: Transfer,
    began: Instant,
    progressed: Instant,
    /// Bytes that were handed over.
    sent: u64,
    /// Given back when this is dropped.
    permit: Permit,
}

/// A transfer in its place, unless it was taken away.
#[derive(Debug)]
pub struct Placed(Arc<Place>);

/// The transfer was taken away because it did not get on, or too slowly, while others waited.
#[derive(Debug)]
pub struct TakenAway;

impl Places {
    /// So many transfers at once; one that keeps `pace` is never taken away.
    pub fn new(count: usize, pace: Pace) -> Self {
        let count = count.max(1);
        Self {
            semaphore: Arc::new(Semaphore::new(count)),
            count,
            shares: Arc::default(),
            taken: Arc::default(),
            pace,
        }
    }

    /// A place for that caller, if one is free at once.
    pub fn try_take(&self, caller: &Caller) -> Option<Permit> {
        Some(Permit {
            caller: caller.clone(),
            _own: self.share_of(caller).try_acquire_owned().ok()?,
            _of_all: Arc::clone(&self.semaphore).try_acquire_owned().ok()?,
        })
    }

    /// Waits for a place for that caller.
    pub async fn take(self, caller: Caller) -> Permit {
        // Its own first: who waits for that keeps nobody else waiting.
        let own = self.wait_for(self.share_of(&caller), Some(&caller)).await;
        Permit {
            _own: own,
            _of_all: self.wait_for(Arc::clone(&self.semaphore), None).await,
            caller,
        }
    }

    /// Waits for a place of those of that caller, or of all.
    async fn wait_for(&self, semaphore: Arc<Semaphore>, of: Option<&Caller>) -> OwnedSemaphorePermit {
        // One place in the queue for as long as it takes.
        let mut waiting = pin!(semaphore.acquire_owned());
        loop {
            if let Ok(permit) = timeout(LOOK_INTERVAL, &mut waiting).await {
                return permit.expect("invariant: the semaphores are never closed");
            }
            self.free_stalled(of);
        }
    }

    fn share_of(&self, caller: &Caller) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(caller).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        // Who is not known is everybody, and of few places none can be spared.
        let share = if *caller == Caller::anonymous() || self.count < 4 {
            self.count
        } else {
            self.count * 3 / 4
        };
        let share = Arc::new(Semaphore::new(share));
        shares.insert(caller.clone(), Arc::downgrade(&share));
        share
    }

    /// Puts a transfer into its place.
    pub fn put(&self, permit: Permit, transfer: Transfer) -> Placed {
        let place = Arc::new(Mutex::new(Some(Running {
            transfer,
            began: Instant::now(),
            progressed: Instant::now(),
            sent: 0,
            permit,
        })));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|place| place.strong_count() > 0);
        taken.push(Arc::downgrade(&place));
        Placed(place)
    }

    /// Takes away one transfer that does not keep the pace, of that caller or of all.
    fn free_stalled(&self, of: Option<&Caller>) {
        let places: Vec<_> = {
            let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.iter().filter_map(Weak::upgrade).collect()
        };
        for place in places {
            let stalled = place
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take_if(|running| {
                    of.is_none_or(|caller| running.permit.caller == *caller) && !running.keeps(self.pace)
                });
            // Dropped without any lock: a whole state may go with it.
            if stalled.is_some() {
                return;
            }
        }
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

impl Placed {
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
