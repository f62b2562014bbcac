//! One subscriber's stream: a state machine that is polled when there is room to send, without a task, channel or queue
//! of its own.
//!
//! It reads from its own cursor whenever it is woken or has room again. So a slow subscriber delays nobody and holds
//! nothing but its cursor: the changes it misses are conflated in the shared state. It must know nothing of gRPC.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use emend_base::{Entropy, Error, SharedClock};
use emend_core::{Epoch, InstallationId};
use emend_proto::learning::v1::SnapshotReason;
use emend_serve::{
    auth::Access,
    fair_semaphore::{ClientKey, Permit},
};
use futures::{Stream, future::BoxFuture};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    audience::{Audience, Audiences},
    batches::Batch,
    encode::{self, Encoded},
    listeners::Listener,
    metrics::{StreamEnd, StreamMetrics},
    opening::Start,
    state::ReplicaState,
    transfer::{PermittedTransfer, Transfer, TransferPermits},
};

/// By what fraction the bookmark interval varies, so that the bookmarks of many streams do not coincide.
const BOOKMARK_JITTER: f64 = 0.1;
/// By what fraction the lifetime of streams varies.
const AGE_JITTER: f64 = 0.2;
/// How long a stream stays on a replica that is stale, on average. The database may be away for this replica alone: its nodes
/// find another by connecting again.
const STALE_STREAM_AGE: Duration = Duration::from_mins(5);

/// What all sessions of a replica share.
#[derive(Debug)]
pub struct Common {
    /// The published state and its audiences.
    pub audiences: Arc<Audiences>,
    /// The transfer permits.
    pub permits: TransferPermits,
    /// Server time, for bookmarks.
    pub clock: SharedClock,
    /// For jitter.
    pub entropy: Entropy,
    /// The mean lifetime of a stream.
    pub max_stream_age: Duration,
    /// The longest delay before reconnecting that Drain asks for.
    pub max_reconnect_delay: Duration,
    /// The stream's metrics.
    pub metrics: StreamMetrics,
}

/// Why the server ends a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndReason {
    Shutdown,
    MaxStreamAge,
}

impl EndReason {
    fn name(self) -> &'static str {
        match self {
            Self::Shutdown => "SHUTDOWN",
            Self::MaxStreamAge => "MAX_STREAM_AGE",
        }
    }

    fn end(self) -> StreamEnd {
        match self {
            Self::Shutdown => StreamEnd::Shutdown,
            Self::MaxStreamAge => StreamEnd::MaxStreamAge,
        }
    }
}

/// The client at the other end of a stream.
#[derive(Debug)]
pub struct Client {
    /// The client its transfer permits count towards.
    pub client: ClientKey,
    /// What it may do.
    pub access: Access,
}

/// Counts a stream's end when it is dropped.
struct EndCounter {
    metrics: StreamMetrics,
    access: Access,
    /// Why this side ended it; none if it was dropped from outside.
    why: Option<StreamEnd>,
}

impl Drop for EndCounter {
    fn drop(&mut self) {
        let dropped = || {
            if self.access.has_changed() {
                StreamEnd::AccessLost
            } else {
                StreamEnd::ClientGone
            }
        };
        self.metrics.ended(self.why.unwrap_or_else(dropped));
    }
}

/// What a transfer permit is wanted for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Snapshot(SnapshotReason),
    Update,
}

enum Phase {
    /// Sends Resumed: the cursor was good.
    Resuming(InstallationId),
    /// Waits for a transfer permit.
    AwaitingPermit(Wanted, BoxFuture<'static, Permit>),
    /// Sends a snapshot or a long update.
    Sending(PermittedTransfer),
    /// Sends a batch: the batch, its next part, the revision it leads to.
    Batch(Arc<Batch>, usize, i64),
    /// Is current, or about to look for changes.
    Following,
    /// Sends Drain.
    Leaving(EndReason),
    /// Has ended.
    Ended,
}

/// One subscriber's stream of encoded messages.
///
/// `G` is what the stream's owner holds for as long as it is open, and drops with it.
pub struct Session<G> {
    common: Arc<Common>,
    audience: Arc<Audience>,
    epoch: Epoch,
    /// The newest revision handed out: where the subscriber is once it has read everything sent.
    cursor: i64,
    /// Nothing the filter covers changed between the cursor and this revision.
    checked: i64,
    phase: Phase,
    /// Set once the stream is to end: why, the state up to which it is still served, and when that was confirmed.
    last: Option<(EndReason, Arc<ReplicaState>, Instant)>,
    /// The count of published states as of the last look: while it stays the same, there is nothing new.
    seen: u64,
    listener: Listener,
    timer: Pin<Box<Sleep>>,
    bookmark_interval: Duration,
    bookmark_at: Instant,
    ends_at: Instant,
    /// When it ends because the replica is stale; none while it is not.
    leaves_stale_at: Option<Instant>,
    ending: EndCounter,
    /// The client its transfer permits count towards.
    client: ClientKey,
    _open: G,
    /// Released on drop.
    _permit: OwnedSemaphorePermit,
}

impl<G> std::fmt::Debug for Session<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("cursor", &self.cursor)
            .field("checked", &self.checked)
            .finish_non_exhaustive()
    }
}

impl<G> Session<G> {
    /// A stream that begins where `start` says.
    pub fn new(
        common: Arc<Common>,
        audience: Arc<Audience>,
        start: Start,
        bookmark_interval: Duration,
        open: G,
        Client { client, access }: Client,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let now = Instant::now();
        let ends_at = now + common.max_stream_age.mul_f64(common.entropy.jitter(AGE_JITTER));
        let ending = EndCounter {
            metrics: common.metrics.clone(),
            access,
            why: None,
        };
        let mut session = Self {
            seen: 0,
            listener: audience.listeners.join(),
            timer: Box::pin(sleep_until(ends_at)),
            common,
            audience,
            epoch: start.epoch,
            cursor: start.revision,
            checked: start.revision,
            phase: Phase::Resuming(start.installation),
            last: None,
            bookmark_interval,
            bookmark_at: now,
            ends_at,
            leaves_stale_at: None,
            ending,
            client,
            _open: open,
            _permit: permit,
        };
        session.schedule_bookmark_after_sending(now);
        let due = session.due();
        session.timer.as_mut().reset(due);
        if let Some(reason) = start.snapshot {
            session.want(Wanted::Snapshot(reason));
        }
        session
    }

    /// The audience that it is one of.
    pub fn audience(&self) -> &Arc<Audience> {
        &self.audience
    }

    /// Whether it has handed out all there is: it then holds nothing but its cursor.
    pub fn is_following(&self) -> bool {
        matches!(self.phase, Phase::Following)
    }

    /// Whether it is sending a snapshot or a long update, and so holds a transfer permit.
    pub fn is_transferring(&self) -> bool {
        matches!(self.phase, Phase::Sending(_))
    }

    fn schedule_bookmark(&mut self, now: Instant) {
        let factor = self.common.entropy.jitter(BOOKMARK_JITTER);
        self.bookmark_at = now + self.bookmark_interval.mul_f64(factor);
    }

    /// What a stale replica sends is followed at once by how old it is.
    fn schedule_bookmark_after_sending(&mut self, now: Instant) {
        if self.common.audiences.is_stale() {
            self.bookmark_at = now;
        } else {
            self.schedule_bookmark(now);
        }
    }

    /// When the stream's time is up.
    fn ends_at(&self) -> Instant {
        self.leaves_stale_at
            .map_or(self.ends_at, |leaves| leaves.min(self.ends_at))
    }

    fn due(&self) -> Instant {
        self.bookmark_at.min(self.ends_at())
    }

    /// Takes note of whether the replica is stale: with every message and, if there are none, every bookmark.
    fn note_staleness(&mut self, now: Instant) {
        if !self.common.audiences.is_stale() {
            self.leaves_stale_at = None;
        } else if self.leaves_stale_at.is_none() {
            let stays = STALE_STREAM_AGE.mul_f64(self.common.entropy.jitter(AGE_JITTER));
            self.leaves_stale_at = Some(now + stays);
        }
    }

    /// Asks for a transfer permit, and begins the transfer at once if one is free.
    fn want(&mut self, wanted: Wanted) {
        let permits = &self.common.permits;
        if let Some(permit) = permits.try_take(self.client.clone()) {
            self.begin_transfer(wanted, permit);
        } else {
            let permit = permits.clone().take(self.client.clone());
            self.phase = Phase::AwaitingPermit(wanted, Box::pin(permit));
        }
    }

    fn begin_transfer(&mut self, wanted: Wanted, permit: Permit) {
        // A session is made only once there is a state, and from then on there always is one.
        let Some(state) = self.common.audiences.state() else {
            self.phase = Phase::Ended;
            return;
        };
        // Much may have happened while it waited for the permit.
        let reason = match wanted {
            Wanted::Snapshot(reason) => Some(reason),
            Wanted::Update => self.needs_snapshot(&state),
        };
        let transfer = match reason {
            Some(reason) => {
                tracing::debug!(
                    revision = state.revision(),
                    reason = reason.as_str_name(),
                    "snapshot"
                );
                self.common.metrics.snapshot(reason);
                Transfer::snapshot(state, reason)
            }
            None => Transfer::update(state, self.cursor),
        };
        self.phase = Phase::Sending(self.common.permits.put(permit, transfer));
    }

    /// Why changes alone can't bring the subscriber to `state`.
    fn needs_snapshot(&self, state: &ReplicaState) -> Option<SnapshotReason> {
        if state.epoch() != self.epoch {
            Some(SnapshotReason::NewEpoch)
        } else if self.checked < state.horizon() {
            Some(SnapshotReason::CursorExpired)
        } else {
            None
        }
    }

    /// The subscriber will be at that revision once it has read what was sent.
    fn arrived(&mut self, epoch: Epoch, revision: i64) {
        self.epoch = epoch;
        self.cursor = revision;
        self.checked = revision;
        self.phase = Phase::Following;
        self.schedule_bookmark_after_sending(Instant::now());
    }

    /// Why the stream has to end now; none if it may go on.
    fn end_reason(&self) -> Option<EndReason> {
        if self.common.audiences.is_draining() {
            Some(EndReason::Shutdown)
        } else if Instant::now() >= self.ends_at() {
            Some(EndReason::MaxStreamAge)
        } else {
            None
        }
    }

    /// The next message while following; none if there is nothing to send now.
    fn follow(&mut self) -> Option<Encoded> {
        let now = Instant::now();
        self.note_staleness(now);
        if self.last.is_none()
            && let Some(reason) = self.end_reason()
        {
            let confirmed = self.common.audiences.confirmed();
            let state = self.common.audiences.state();
            self.last = state.map(|state| (reason, state, confirmed));
        }
        // Both before the state is read, so that the state is at least as new.
        let published = self.common.audiences.published();
        let confirmed = self.common.audiences.confirmed();
        if self.last.is_none() && self.seen == published && now < self.bookmark_at {
            return None;
        }
        let (state, confirmed) = match &self.last {
            Some((_, state, confirmed)) => (Arc::clone(state), *confirmed),
            None => (self.common.audiences.state()?, confirmed),
        };
        if state.epoch() != self.epoch {
            self.want(Wanted::Snapshot(SnapshotReason::NewEpoch));
            return None;
        }
        if state.revision() > self.checked {
            if self.audience.is_quiet_since(self.checked) {
                self.checked = state.revision();
            } else if let Some(reason) = self.needs_snapshot(&state) {
                self.want(Wanted::Snapshot(reason));
                return None;
            } else {
                let Audience {
                    filter,
                    max_batch_bytes,
                    batches,
                    ..
                } = &*self.audience;
                self.common.audiences.make_room();
                let batch = batches.batch(&state, filter, self.cursor, *max_batch_bytes);
                match &*batch {
                    Batch::Nothing => self.checked = state.revision(),
                    Batch::Parts(_) => {
                        self.seen = published;
                        self.phase = Phase::Batch(batch, 0, state.revision());
                        return None;
                    }
                    Batch::Long => {
                        self.want(Wanted::Update);
                        return None;
                    }
                }
            }
        }
        self.seen = published;
        if let Some((reason, ..)) = self.last {
            self.phase = Phase::Leaving(reason);
        } else if now < self.bookmark_at {
            return None;
        }
        self.cursor = state.revision();
        self.checked = state.revision();
        self.schedule_bookmark(now);
        Some(encode::bookmark(
            &state,
            &self.audience.filter,
            self.common.clock.now(),
            confirmed.elapsed(),
        ))
    }

    /// Waits until the next bookmark or the end of the stream's lifetime is due.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.as_mut().poll(cx));
        // Messages sent in the meantime have postponed the next bookmark.
        let due = self.due();
        self.timer.as_mut().reset(due);
        Poll::Ready(())
    }

    fn drain(&mut self, reason: EndReason) -> Encoded {
        self.phase = Phase::Ended;
        self.ending.why = Some(reason.end());
        let delay = self
            .common
            .max_reconnect_delay
            .mul_f64(self.common.entropy.fraction());
        encode::drain(delay, reason.name())
    }
}

impl<G: Unpin> Stream for Session<G> {
    type Item = Result<Encoded, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // Before anything is checked, so that anything published from here on, and a drain, wakes this stream.
        this.listener.listen(cx.waker());
        loop {
            match &mut this.phase {
                Phase::Resuming(installation) => {
                    let installation = *installation;
                    let cursor = encode::cursor(this.epoch, this.cursor, this.audience.filter_hash);
                    this.phase = Phase::Following;
                    return Poll::Ready(Some(Ok(encode::resumed(cursor, installation))));
                }
                // An unfinished transfer can't be bookmarked, and a drain does not wait for it.
                Phase::AwaitingPermit(..) | Phase::Sending(_) if this.common.audiences.is_draining() => {
                    return Poll::Ready(Some(Ok(this.drain(EndReason::Shutdown))));
                }
                Phase::AwaitingPermit(wanted, permit) => {
                    let wanted = *wanted;
                    let permit = ready!(permit.as_mut().poll(cx));
                    this.begin_transfer(wanted, permit);
                }
                Phase::Sending(transfer) => match (transfer.state(), transfer.next(&this.audience)) {
                    (Ok(_), Ok(Some(message))) => return Poll::Ready(Some(Ok(message))),
                    (Ok(state), Ok(None)) => {
                        // The transfer may have gone beyond the state up to which an ending stream was to be served.
                        this.last = None;
                        this.arrived(state.epoch(), state.revision());
                    }
                    _ => {
                        this.phase = Phase::Ended;
                        this.ending.why = Some(StreamEnd::Stalled);
                        return Poll::Ready(Some(Err(Error::unavailable(
                            "STREAM_STALLED",
                            "the snapshot was read too slowly while other streams waited for theirs; connect again",
                        ))));
                    }
                },
                Phase::Batch(batch, next, to) => {
                    let (part, is_last) = match &**batch {
                        Batch::Parts(parts) => (parts.get(*next).cloned(), *next + 1 >= parts.len()),
                        Batch::Nothing | Batch::Long => (None, true),
                    };
                    *next += 1;
                    if is_last {
                        // Already now, not on the next poll: a client that does not read is not polled again and would
                        // hold the batch.
                        let to = *to;
                        this.arrived(this.epoch, to);
                    }
                    if let Some(part) = part {
                        return Poll::Ready(Some(Ok(part)));
                    }
                }
                Phase::Following => {
                    if let Some(message) = this.follow() {
                        return Poll::Ready(Some(Ok(message)));
                    }
                    if matches!(this.phase, Phase::Following) {
                        ready!(this.poll_timer(cx));
                    }
                }
                Phase::Leaving(reason) => {
                    let reason = *reason;
                    return Poll::Ready(Some(Ok(this.drain(reason))));
                }
                Phase::Ended => return Poll::Ready(None),
            }
        }
    }
}
