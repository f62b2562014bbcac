//! What changes, for everybody whom this process serves: one watch of the learned resources and one of the queue for each caller and
//! namespace, however many subscribe. A watch is begun by its first subscriber and ends with its last.

mod queue;
mod stream;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use emend_base::{BackoffConfig, Error, Lifecycle};
use emend_core::Kind;
use emend_mcp::http::McpMetrics;
use tokio::{
    sync::{broadcast, watch},
    task::AbortHandle,
    time::timeout,
};
use tonic::{Code, Status};

use super::resources::Shown;
use crate::{
    context::Context,
    failure::{Failure, Result},
};

/// How many changes a subscriber may be behind before it is told that anything may have changed.
const BEHIND: usize = 256;
/// How many watches this process has at most, and how many of them are one token's.
const WATCHES: usize = 500;
const OF_ONE: usize = 50;
/// How long until what can't be followed now is tried again.
pub(super) const RETRY: BackoffConfig = BackoffConfig {
    initial: Duration::from_millis(250),
    max: Duration::from_secs(10),
    multiplier: 2.0,
};

/// What is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// The stream of learned resources that search nodes get.
    Learned,
    /// The review queue.
    Queue,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A key of a kind, in a revision.
    Learned { kind: i32, key: String, revision: i64 },
    /// A candidate, in a revision or in none.
    Queue { revision: i64 },
    /// Changes were left out: anything may have changed.
    Anything,
}

impl Change {
    /// Whether what is shown may be another now.
    pub(super) fn concerns(&self, shown: &Shown) -> bool {
        let Self::Learned { kind, key, .. } = self else {
            return true;
        };
        let kind = Kind::from_number(*kind);
        match shown {
            Shown::Learned(shown) => kind == Some(*shown),
            Shown::Pending => false,
            // An edge's label, and how far a domain is trusted, count for claims that the change does not name.
            Shown::Claim(id) => match kind {
                Some(Kind::ClaimState) => key == id,
                kind => matches!(kind, Some(Kind::EdgeLabel | Kind::DomainRule)),
            },
            Shown::Prompt(target) => matches!(kind, Some(Kind::Prompt | Kind::FewShotSet)) && key == target,
        }
    }

    /// The revision that it belongs to; 0 if it is not known.
    pub(super) const fn revision(&self) -> i64 {
        match self {
            Self::Learned { revision, .. } | Self::Queue { revision } => *revision,
            Self::Anything => 0,
        }
    }
}

/// Who follows what: the caller's credentials, as they are sent, and the namespace.
type Followed = (Option<Vec<u8>>, String, Source);
type All = Arc<Mutex<HashMap<Followed, Weak<Watch>>>>;

/// All watches of this process.
#[derive(Debug)]
pub(super) struct Watches {
    all: All,
    lifecycle: Lifecycle,
    metrics: McpMetrics,
}

/// One watch, held by its subscribers.
#[derive(Debug)]
pub(super) struct Watch {
    /// Gone once the watch has ended.
    changes: broadcast::WeakSender<Change>,
    stands: watch::Receiver<Stands>,
    task: AbortHandle,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How a watch stands.
#[derive(Debug, Clone)]
enum Stands {
    Opening,
    /// Everything committed from now on is told.
    Open,
    /// It was refused.
    Ended(Status),
}

/// What a follower tells of what it follows.
#[derive(Debug)]
struct Teller {
    changes: broadcast::Sender<Change>,
    stands: watch::Sender<Stands>,
}

impl Teller {
    fn tell(&self, change: Change) {
        // Nobody may have subscribed yet.
        let _ = self.changes.send(change);
    }

    /// Everything committed from now on is told. If it was open before, changes may have been missed since.
    fn opened(&self) {
        if matches!(self.stands.send_replace(Stands::Open), Stands::Open) {
            self.tell(Change::Anything);
        }
    }

    /// The same, where nothing was missed.
    fn resumed(&self) {
        self.stands.send_replace(Stands::Open);
    }
}

impl Watches {
    /// None yet; they end with `lifecycle`.
    pub(super) fn new(lifecycle: Lifecycle, metrics: McpMetrics) -> Self {
        Self {
            all: All::default(),
            lifecycle,
            metrics,
        }
    }

    /// Runs a task until it ends or this process does.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let stopped = self.lifecycle.soft().clone().cancelled_owned();
        let task = async move {
            tokio::select! {
                () = stopped => {}
                () = task => {}
            }
        };
        self.lifecycle.spawn_owned(task).abort_handle()
    }

    /// The watch of a source as the caller sees it, once it is open. It is begun if there is none.
    pub(super) async fn follow(
        &self,
        context: &Context,
        source: Source,
    ) -> Result<(Arc<Watch>, broadcast::Receiver<Change>)> {
        let watch = self.watch(context, source)?;
        let ended = || broadcast::Sender::new(1);
        let changes = watch.changes.upgrade().unwrap_or_else(ended).subscribe();
        let mut stands = watch.stands.clone();
        let open = stands.wait_for(|stands| !matches!(stands, Stands::Opening));
        match timeout(context.timeout(), open).await {
            Ok(Ok(stands)) => match &*stands {
                Stands::Ended(status) => return Err(status.clone().into()),
                Stands::Opening | Stands::Open => {}
            },
            Ok(Err(_)) | Err(_) => {
                return Err(Failure::Unavailable(
                    "learning-svc does not tell what changes now: not subscribed, try again later".to_owned(),
                ));
            }
        }
        Ok((watch, changes))
    }

    fn watch(&self, context: &Context, source: Source) -> Result<Arc<Watch>> {
        let request = context.request_without_deadline(());
        let credentials = request.metadata().get("authorization");
        let credentials = credentials.map(|credentials| credentials.as_encoded_bytes().to_vec());
        let followed = (credentials, context.namespace(), source);
        let mut all = locked(&self.all);
        let known = all.get(&followed).and_then(Weak::upgrade);
        if let Some(watch) = known.filter(|watch| !matches!(*watch.stands.borrow(), Stands::Ended(_))) {
            return Ok(watch);
        }
        all.retain(|_, watch| watch.strong_count() > 0);
        let of_caller = all.keys().filter(|(of, ..)| *of == followed.0).count();
        if all.len() >= WATCHES || of_caller >= OF_ONE {
            self.metrics.turned_away("watches");
            let error = Error::ResourceExhausted {
                reason: "TOO_MANY_WATCHES",
                message: format!(
                    "{} callers and namespaces are followed, {of_caller} of them for you; {WATCHES} are the maximum, and {OF_ONE} for \
                     one token: end a subscription, or try again later",
                    all.len()
                ),
                retry_after: None,
            };
            return Err(Status::from(error).into());
        }
        let (changes, _) = broadcast::channel(BEHIND);
        let (stands, standing) = watch::channel(Stands::Opening);
        let told = changes.downgrade();
        let teller = Teller { changes, stands };
        let context = context.clone();
        let task = self.spawn(async move {
            let refused = match source {
                Source::Learned => Box::pin(stream::follow(&context, &teller)).await,
                Source::Queue => Box::pin(queue::follow(&context, &teller)).await,
            };
            tracing::warn!(error = refused.message(), "what changes is not followed any more");
            teller.stands.send_replace(Stands::Ended(refused));
        });
        let watch = Arc::new(Watch {
            changes: told,
            stands: standing,
            task,
        });
        all.insert(followed, Arc::downgrade(&watch));
        Ok(watch)
    }
}

fn locked(all: &All) -> MutexGuard<'_, HashMap<Followed, Weak<Watch>>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether trying again can't help.
fn is_refusal(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::InvalidArgument | Code::Unimplemented
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_concerns_what_shows_it() {
        let change = |kind: Kind, key: &str| Change::Learned {
            kind: kind.number(),
            key: key.to_owned(),
            revision: 7,
        };
        let claim = Shown::Claim("c1".to_owned());
        let prompt = Shown::Prompt("INTERPRET".to_owned());
        let phrases = Shown::Learned(Kind::InvocationPhrase);
        for (change, shown, expected) in [
            (change(Kind::InvocationPhrase, "a"), &phrases, true),
            (change(Kind::EntityAlias, "a"), &phrases, false),
            (change(Kind::ClaimState, "c1"), &claim, true),
            (change(Kind::ClaimState, "c2"), &claim, false),
            (change(Kind::EdgeLabel, "e1"), &claim, true),
            (change(Kind::DomainRule, "a.org"), &claim, true),
            (change(Kind::Prompt, "INTERPRET"), &claim, false),
            (change(Kind::Prompt, "INTERPRET"), &prompt, true),
            (change(Kind::FewShotSet, "INTERPRET"), &prompt, true),
            (change(Kind::Prompt, "OTHER"), &prompt, false),
            (change(Kind::Prompt, "OTHER"), &Shown::Pending, false),
            (Change::Queue { revision: 0 }, &Shown::Pending, true),
            (Change::Anything, &prompt, true),
        ] {
            assert_eq!(change.concerns(shown), expected, "{change:?} {shown:?}");
        }
    }
}
