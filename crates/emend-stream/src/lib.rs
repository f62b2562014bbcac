//! The update stream: what subscribers see of a log, wherever that comes from.
//!
//! One mechanism serves live, catching-up, slow and resumed subscribers: "what changed since" over immutable states.
//!
//! * A [`Source`] follows the [`log`] and publishes one [`state`] after another to the [`audience`]s. It waits for no
//!   subscriber.
//! * [`session`] is one subscriber: when woken, it reads from its own cursor. [`opening`] decides where it begins,
//!   [`batches`] and [`transfer`] cut what it sends, [`budget`] bounds the encoded bytes held, [`encode`] writes the
//!   wire format, and [`filter`] selects what it sees. [`pacing`] wakes many sessions without holding up other work.
//!
//! It must not know how a log is stored, nor who its subscribers are.
//!
//! # Invariants
//! 1. A state is complete at one revision and never changes.
//! 2. A notification carries no data. A stream reads from its own cursor, which moves only with what it hands out.
//! 3. Publishing never waits for a subscriber, and a subscriber has no queue.
//! 4. A subscriber that changes alone can't bring up to date (another epoch, forgotten deletions, another filter) gets
//!    a snapshot that says why.

pub mod audience;
pub mod batches;
pub mod budget;
pub mod encode;
pub mod filter;
pub mod listeners;
pub mod log;
pub mod metrics;
pub mod opening;
pub mod pacing;
pub mod session;
pub mod state;
pub mod transfer;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use emend_base::{Entropy, Error, SharedClock};
use emend_serve::{auth::Access, fair_semaphore::ClientKey};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{
    audience::Audiences,
    budget::Budget,
    filter::Filter,
    log::Head,
    metrics::StreamMetrics,
    opening::Cursor,
    session::{Client, Common, Session},
    state::ReplicaState,
    transfer::{Pace, TransferPermits},
};

/// Where states come from: it follows a log and publishes to [`Streams::audiences`].
#[async_trait]
pub trait Source: Send + Sync {
    /// The newest head of the log, which the published state may be behind.
    async fn head(&self) -> Result<Head, Error>;

    /// Makes it look at once for what is newer than the published state. Never waits.
    fn wake(&self);
}

/// How streams behave.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a call waits for a state newer than the one there is.
    pub max_wait: Duration,
    /// The mean lifetime of a stream; it varies by up to a fifth either way.
    pub max_stream_age: Duration,
    /// The longest delay before reconnecting that Drain asks for.
    pub max_reconnect_delay: Duration,
    /// How many streams there may be at once; beyond that one is refused with UNAVAILABLE, and another replica may have room.
    pub max_streams: usize,
    /// The budget for encoded messages in bytes, kept for other streams or unread by clients. While it is spent, kept
    /// batches are dropped and messages are cut to 64 KiB.
    pub encoded_bytes: usize,
    /// How many snapshots and long updates are sent at once.
    pub transfers: usize,
    /// A transfer that does not keep this pace may be taken away while another waits.
    pub transfer_pace: Pace,
    /// The streams' metrics.
    pub metrics: StreamMetrics,
}

/// Which stream is asked for, and by whom.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The client that the permits for its snapshots and long updates count towards.
    pub client: ClientKey,
    /// What the client may do, and whether that still holds.
    pub access: Access,
    /// What it sees, after authorization.
    pub filter: Filter,
    /// How far the subscriber has applied; none if it starts from nothing.
    pub cursor: Option<Cursor>,
    /// The time between bookmarks while nothing changes.
    pub bookmark_interval: Duration,
    /// At most this many bytes of encoded resources in one message; a larger resource is sent alone.
    pub max_batch_bytes: usize,
}

/// The streams of one replica, and the state that they are served from.
pub struct Streams<S> {
    source: S,
    common: Arc<Common>,
    /// Bounds the number of streams.
    room: Arc<Semaphore>,
    /// How many places it has.
    places: usize,
    max_wait: Duration,
}

impl<S> fmt::Debug for Streams<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl<S: Source> Streams<S> {
    /// No stream, and no state yet: `source` has to publish one.
    pub fn new(source: S, settings: Settings, clock: SharedClock, entropy: Entropy) -> Self {
        let places = settings.max_streams.clamp(1, Semaphore::MAX_PERMITS);
        let common = Common {
            metrics: settings.metrics,
            audiences: Arc::new(Audiences::new(Budget::of(settings.encoded_bytes))),
            permits: TransferPermits::new(settings.transfers, settings.transfer_pace),
            clock,
            entropy,
            max_stream_age: settings.max_stream_age,
            max_reconnect_delay: settings.max_reconnect_delay,
        };
        Self {
            source,
            common: Arc::new(common),
            room: Arc::new(Semaphore::new(places)),
            places,
            max_wait: settings.max_wait,
        }
    }

    /// Where states come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The published state and who is told of it.
    pub fn audiences(&self) -> &Arc<Audiences> {
        &self.common.audiences
    }

    /// How long a call waits at most.
    pub fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// The number of streams that are open.
    pub fn subscribers(&self) -> usize {
        self.places.saturating_sub(self.room.available_permits())
    }

    /// The newest state. UNAVAILABLE before the first is loaded.
    pub fn state(&self) -> Result<Arc<ReplicaState>, Error> {
        self.common.audiences.state().ok_or_else(not_loaded)
    }

    /// A state for which `is_enough` holds. Waits until `deadline`, at most [`Settings::max_wait`], then UNAVAILABLE with
    /// `RetryInfo`.
    pub async fn wait_until(
        &self,
        is_enough: impl Fn(&ReplicaState) -> bool,
        deadline: Option<Instant>,
    ) -> Result<Arc<ReplicaState>, Error> {
        let latest = Instant::now() + self.max_wait;
        let deadline = deadline.map_or(latest, |deadline| deadline.min(latest));
        let mut states = self.common.audiences.follow();
        let found = timeout_at(
            deadline,
            states.wait_for(|state| state.as_ref().is_some_and(|state| is_enough(state))),
        )
        .await;
        match found {
            Ok(Ok(state)) => state.clone().ok_or_else(not_loaded),
            // Only the timeout is real: the sender lives as long as `self`.
            Ok(Err(_)) | Err(_) => Err(match self.common.audiences.state() {
                Some(_) => Error::unavailable(
                    "REPLICA_BEHIND",
                    "this replica has not seen that revision yet; try again",
                ),
                None => not_loaded(),
            }),
        }
    }

    /// Opens a stream, which drops what `open` returns when it ends. UNAVAILABLE if the replica has no state, stays behind the
    /// cursor, or is at its limit of streams.
    pub async fn subscribe<G>(
        &self,
        subscription: Subscription,
        open: impl FnOnce() -> G,
    ) -> Result<Session<G>, Error> {
        let place = Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            Error::unavailable(
                "TOO_MANY_STREAMS",
                "this replica has its maximum number of streams; try another",
            )
        })?;
        let filter_hash = subscription.filter.hash();
        let start = opening::start(self, subscription.cursor, filter_hash).await?;
        let audiences = &self.common.audiences;
        let audience = audiences.join(subscription.filter, subscription.max_batch_bytes);
        Ok(Session::new(
            Arc::clone(&self.common),
            audience,
            start,
            subscription.bookmark_interval,
            open(),
            Client {
                client: subscription.client,
                access: subscription.access,
            },
            place,
        ))
    }
}

fn not_loaded() -> Error {
    Error::unavailable("NOT_LOADED", "this replica is still loading its state; try again")
}
