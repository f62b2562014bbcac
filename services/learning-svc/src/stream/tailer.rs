//! Follows the log: reads what was committed since its own head, applies it, publishes the new state.
//!
//! It reads whenever it is woken, and after some time even if not, and never waits for a subscriber. It also guards the
//! log itself: a missing revision is an error, and a log that went backwards (a failover or restore lost its tail)
//! begins a new epoch. If several replicas mint one, the first holds for all.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use emend_base::Entropy;
use emend_core::{Epoch, InstallationId};
use emend_store::{CorruptRow, StoreError};
use emend_stream::log::LoggedChange;
use emend_stream::{
    audience::{Audiences, Changed},
    filter::GroupId,
    state::{ReplicaState, Restored},
};
use learning_store::{
    Store,
    log::{LogPage, PageSize},
};
use tokio::time::Instant;

use crate::fail_points;

/// After this many changes, which take some milliseconds, the worker yields to other tasks.
const CHANGES_AT_ONCE: usize = 1_000;

/// The outcome of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailOutcome {
    /// The whole state was loaded.
    Loaded,
    /// The state is now at the head the run saw.
    Current,
    /// There is more to read.
    More,
    /// The log went backwards or another epoch began: the state was loaded anew.
    NewEpoch,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A revision is missing from the log.
    #[error("the log has a gap: revision {missing} is missing, the head is {head}")]
    Gap {
        /// The first missing revision.
        missing: i64,
        /// The head.
        head: i64,
    },
    /// The database was replaced.
    #[error(
        "the database is of installation {found}, this process serves {served}: restart it to serve the other one"
    )]
    OtherInstallation {
        /// What this process has served so far.
        served: InstallationId,
        /// What the database has now.
        found: InstallationId,
    },
}

/// The worker that follows the log.
#[derive(Clone)]
pub struct Tailer {
    store: Arc<dyn Store>,
    audiences: Arc<Audiences>,
    entropy: Entropy,
    page_size: PageSize,
}

impl Tailer {
    /// Publishes to `audiences`, reading at most `page_size` at once.
    pub fn new(
        store: Arc<dyn Store>,
        audiences: Arc<Audiences>,
        entropy: Entropy,
        page_size: PageSize,
    ) -> Self {
        Self {
            store,
            audiences,
            entropy,
            page_size,
        }
    }

    /// Loads the state if there is none; otherwise reads one page and publishes it. What it has read to the end, it confirms
    /// to be all there was when it began.
    pub async fn run_once(&self) -> Result<TailOutcome, TailError> {
        let began = Instant::now();
        let outcome = self.step().await?;
        if outcome != TailOutcome::More {
            self.audiences.confirm(began);
        }
        Ok(outcome)
    }

    async fn step(&self) -> Result<TailOutcome, TailError> {
        let Some(state) = self.audiences.state() else {
            self.load(None).await?;
            return Ok(TailOutcome::Loaded);
        };
        let page = self
            .store
            .revisions_after(state.revision(), self.page_size)
            .await?;
        same_installation(state.installation(), page.head.installation)?;
        if page.head.epoch != state.epoch() {
            tracing::warn!(epoch = %page.head.epoch, "a new epoch of the log began; loading it");
            self.load(Some(state.installation())).await?;
            return Ok(TailOutcome::NewEpoch);
        }
        if went_backwards(&state, &page) {
            let minted = Epoch(self.entropy.uuid_v4());
            let epoch = self.store.mint_epoch(state.epoch(), minted).await?;
            tracing::error!(
                applied = state.revision(),
                head = page.head.revision,
                %epoch,
                "the log went backwards: it lost revisions that were published; a new epoch began"
            );
            self.load(Some(state.installation())).await?;
            return Ok(TailOutcome::NewEpoch);
        }
        self.apply(&state, page).await
    }

    /// Applies a page, and those after it for as long as the log no longer has a value whose newer one they bring: no state
    /// that lacks one is published.
    async fn apply(&self, state: &ReplicaState, mut page: LogPage) -> Result<TailOutcome, TailError> {
        let mut next = state.clone();
        let mut changed = BTreeSet::new();
        let mut awaited = HashMap::new();
        let head = loop {
            let head = page.head;
            self.apply_page(&mut next, page, &mut changed, &mut awaited)
                .await?;
            let Some(revision) = awaited.values().min().copied() else {
                break head;
            };
            if next.revision() >= head.revision {
                return Err(not_replaced(revision).into());
            }
            page = self
                .store
                .revisions_after(next.revision(), self.page_size)
                .await?;
            if page.head.epoch != head.epoch || went_backwards(&next, &page) {
                // The next run, which starts from what is published, finds out.
                return Ok(TailOutcome::More);
            }
        };
        next.raise_horizon(head.horizon);
        let current = next.revision() == head.revision;
        if next.revision() > state.revision() || next.horizon() != state.horizon() {
            fail_points::LOG_READ.pass();
            self.audiences.publish(Arc::new(next), &Changed::Groups(changed));
            fail_points::LOG_PUBLISHED.pass();
        }
        Ok(if current {
            TailOutcome::Current
        } else {
            TailOutcome::More
        })
    }

    /// Applies one page. `awaited` are the keys whose newest value so far the log no longer has, with its revision.
    async fn apply_page(
        &self,
        next: &mut ReplicaState,
        page: LogPage,
        changed: &mut BTreeSet<Arc<GroupId>>,
        awaited: &mut HashMap<ChangedKey, i64>,
    ) -> Result<(), TailError> {
        let head = page.head;
        let behind = head.revision - next.revision();
        let expected = if page.is_full {
            page.revisions.len()
        } else {
            usize::try_from(behind.min(self.page_size.revisions)).unwrap_or(0)
        };
        let (mut applied, mut busy) = (0, 0);
        for revision in page.revisions {
            if revision.revision != next.revision() + 1 {
                break;
            }
            busy += revision.changes.len();
            for change in &revision.changes {
                if change.is_dropped() {
                    awaited.insert(ChangedKey::of(change), change.revision);
                } else if !awaited.is_empty() {
                    awaited.remove(&ChangedKey::of(change));
                }
            }
            changed.extend(next.apply(revision));
            applied += 1;
            if busy >= CHANGES_AT_ONCE {
                busy = 0;
                tokio::task::yield_now().await;
            }
        }
        if applied < expected {
            return Err(TailError::Gap {
                missing: next.revision() + 1,
                head: head.revision,
            });
        }
        Ok(())
    }

    /// Loads the state anew, of the installation that was served before, if one was.
    async fn load(&self, served: Option<InstallationId>) -> Result<(), TailError> {
        let head = self.store.head().await?;
        let mut restored = Restored::default();
        let loaded = self.store.load(&mut |changes| restored.add(changes)).await?;
        same_installation(served.unwrap_or(head.installation), loaded.head.installation)?;
        let state = if restored.is_large() {
            let built = tokio::task::spawn_blocking(move || restored.finish(loaded)).await;
            built.map_err(|_| stopped())?
        } else {
            restored.finish(loaded)
        };
        tracing::info!(revision = state.revision(), epoch = %state.epoch(), "state and log are loaded");
        self.audiences.publish(Arc::new(state), &Changed::Everything);
        Ok(())
    }
}

/// The key that a change is of.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ChangedKey([String; 4], i32);

impl ChangedKey {
    fn of(change: &LoggedChange) -> Self {
        let texts = [&change.namespace, &change.key, &change.qualifier, &change.user_id];
        Self(texts.map(Clone::clone), change.kind)
    }
}

/// The process stops, and what was loaded is no longer needed.
fn stopped() -> StoreError {
    StoreError::Unavailable(sqlx::Error::WorkerCrashed)
}

/// A value was dropped for one that the log does not have.
fn not_replaced(revision: i64) -> StoreError {
    CorruptRow::new(
        "changes",
        "value",
        revision,
        "it is not kept, though the log has no newer change of its key",
    )
    .into()
}

/// A replica serves the installation that it began with: nodes that it streams to, and whoever delivers to it, know no
/// other.
fn same_installation(served: InstallationId, found: InstallationId) -> Result<(), TailError> {
    if served == found {
        Ok(())
    } else {
        Err(TailError::OtherInstallation { served, found })
    }
}

/// Whether the log has lost the last applied revision, or has another in its place.
fn went_backwards(state: &ReplicaState, page: &LogPage) -> bool {
    page.head.revision < state.revision()
        || (state.revision() > 0 && page.anchor != Some(state.committed_at()))
}
