//! What reviewers see of each other at the queue: [`leases`] are who has a candidate open, [`comments`] what they ask and tell each
//! other about one, and whoever [`watch`]es is told what
//! changes; [`stats`] are its figures.

mod comments;
mod leases;
pub mod stats;
pub mod watch;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use emend_base::{Entropy, Error};
use emend_core::{CandidateId, Namespace};
use emend_serve::auth::Access;
use emend_store::StoreError;
use learning_store::{Database, actor::Actor, contests::CandidateRecord, queue::QueuePosition};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::watch::{Follower, QueueFeed, Watch, Watched};
use crate::{decisions::Decisions, stream::Wake};

/// How many rounds of tidying later a change is dropped that could be read: by then whoever watches has read it, or was told to
/// load the page anew.
const ROUNDS: usize = 3;
/// How often changes that were told are dropped, and figures added up.
const TIDIES_EVERY: Duration = Duration::from_mins(1);

/// The review queue, as its reviewers see it. Clones share it.
#[derive(Clone)]
pub struct ReviewQueue {
    store: Arc<dyn Database>,
    decisions: Arc<Decisions>,
    feed: Arc<QueueFeed>,
}

impl std::fmt::Debug for ReviewQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewQueue").finish_non_exhaustive()
    }
}

/// A candidate that somebody opens, closes or writes about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The candidate's search application.
    pub namespace: Namespace,
    /// The candidate.
    pub candidate: CandidateId,
    /// Who does so.
    pub actor: Actor,
}

impl ReviewQueue {
    /// The queue in a store, whose candidates `decisions` knows. Watches end when `soft` is cancelled.
    pub(crate) fn new(store: Arc<dyn Database>, decisions: Arc<Decisions>, soft: CancellationToken) -> Self {
        let feed = Arc::new(QueueFeed::new(Arc::clone(&decisions.queue_changed), soft));
        Self {
            store,
            decisions,
            feed,
        }
    }

    /// Begins to watch: everything committed after this returns is sent.
    pub async fn watch(&self, watched: Watched) -> Result<Watch, Error> {
        self.feed.watch(watched).await
    }

    /// The worker that reads what changes, for all who watch.
    pub fn follower(&self) -> Follower {
        Follower::new(Arc::<dyn Database>::clone(&self.store), Arc::clone(&self.feed))
    }

    /// Follows what changes until the watches end; `wake` tells of commits by other replicas.
    pub async fn follow_until_stopped(self, wake: Wake, entropy: Entropy) {
        self.follower().run_until_stopped(wake, entropy).await;
    }

    /// Drops what nobody who watches has to be told any more, adds up figures of days, and ends questions about what was decided.
    /// `read` are the places up to which changes could be read in earlier rounds.
    pub async fn tidy_once(&self, read: &mut VecDeque<QueuePosition>) -> Result<(), StoreError> {
        read.push_back(self.store.queue_position().await?);
        if read.len() > ROUNDS
            && let Some(before) = read.pop_front()
        {
            self.store.forget_queue_changes(before).await?;
        }
        self.store.close_questions().await?;
        while self.store.fold_queue_counts().await? > 0 {}
        Ok(())
    }

    /// Does so from time to time, until `soft` is cancelled.
    pub async fn tidy_until_stopped(self, soft: CancellationToken) {
        let mut read = VecDeque::new();
        loop {
            tokio::select! {
                () = soft.cancelled() => return,
                () = sleep(TIDIES_EVERY) => {}
            }
            if let Err(error) = self.tidy_once(&mut read).await {
                tracing::warn!(%error, "can't drop old changes of the queue or add up its figures");
            }
        }
    }

    /// The candidate, if `access` permits: what is a user's own needs the right to act for users.
    async fn candidate(&self, opened: &Opened, access: &Access) -> Result<CandidateRecord, Error> {
        let namespace = &opened.namespace;
        let record = self.decisions.candidate(namespace, opened.candidate).await?;
        if record.key.user.is_some() {
            access.speaks_for_users(namespace.as_str())?;
        }
        Ok(record)
    }
}
