//! What one session, or one `subscriptions/listen`, is told: that a resource may be another now.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use emend_base::Error;
use rmcp::{
    RoleServer,
    model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{Peer, SubscriptionContext, SubscriptionSink},
};
use tokio::{
    sync::{
        broadcast::{
            Receiver,
            error::{RecvError, TryRecvError},
        },
        mpsc,
    },
    task::AbortHandle,
};
use tonic::Status;

use super::{
    Server,
    refusals::error_data,
    resources::{Address, Shown},
    tools::{SUBSCRIBE, WATCH_QUEUE},
    watching::{Change, Source, Watch},
};
use crate::failure::Result;

/// How many resources one session subscribes to at most.
const MOST: usize = 1_000;

/// What a session subscribes to, by address. Ends with the session.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, Told>>);

/// A task that tells of changes, until this is dropped.
#[derive(Debug)]
struct Told(AbortHandle);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscriptions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom to tell.
#[derive(Debug, Clone)]
enum Listener {
    /// A session.
    Session(Peer<RoleServer>),
    /// One request for notifications, which ends with the last that tells of changes.
    Request {
        sink: SubscriptionSink,
        _tells: mpsc::Sender<()>,
    },
}

impl Listener {
    /// Tells that a resource may be another now. Returns whether somebody listens still.
    async fn tell(&self, uri: &str) -> bool {
        match self {
            Self::Session(peer) => {
                let updated = ResourceUpdatedNotificationParam::new(uri);
                peer.notify_resource_updated(updated).await.is_ok()
            }
            Self::Request { sink, .. } => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

impl Shown {
    /// What tells that it changes, and the method that its caller must be allowed to call.
    const fn source(&self) -> (Source, &'static str) {
        match self {
            Self::Pending => (Source::Queue, WATCH_QUEUE),
            Self::Learned(_) | Self::Claim(_) | Self::Prompt(_) => (Source::Learned, SUBSCRIBE),
        }
    }
}

/// What is followed for one listener: addresses of one namespace and source, with what they show.
struct Following {
    shown: BTreeMap<String, Shown>,
    changes: Receiver<Change>,
    newest: Arc<AtomicI64>,
    _watch: Arc<Watch>,
}

impl Server {
    /// Tells a session of changes from now on.
    pub(super) async fn subscribe_to(&self, uri: &str, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        if self.subscriptions.all().len() >= MOST {
            let why = format!("this session subscribes to {MOST} resources, which is the maximum");
            return Err(ErrorData::invalid_request(why, None));
        }
        let address = Address::parse(uri).map_err(error_data)?;
        let shown = BTreeMap::from([(uri.to_owned(), address.shown.clone())]);
        let following = self.following(&address, shown).await.map_err(error_data)?;
        let told = self.told(following, Listener::Session(peer));
        self.subscriptions.all().insert(uri.to_owned(), told);
        Ok(())
    }

    /// Tells a session no more.
    pub(super) fn unsubscribe_from(&self, uri: &str) {
        self.subscriptions.all().remove(uri);
    }

    /// What of a request for notifications can be told: of resources that are ours.
    pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
        let uris = requested.resource_subscriptions.iter().flatten();
        let ours = uris.filter(|uri| Address::parse(uri).is_ok()).take(MOST);
        SubscriptionFilter::builder()
            .resource_subscriptions(ours.cloned())
            .build()
    }

    /// Tells of changes until the request is cancelled, or what changes is not told to its caller any more.
    pub(super) async fn listen_to(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let mut sources: HashMap<(String, Source), (Address, BTreeMap<String, Shown>)> = HashMap::new();
        for uri in uris {
            let address = Address::parse(uri).map_err(error_data)?;
            let source = (address.namespace.clone(), address.shown.source().0);
            let (_, shown) = sources
                .entry(source)
                .or_insert_with(|| (address.clone(), BTreeMap::new()));
            shown.insert(uri.clone(), address.shown);
        }
        let (tells, mut telling) = mpsc::channel(1);
        let mut told = Vec::new();
        for (address, shown) in sources.into_values() {
            let following = self.following(&address, shown).await.map_err(error_data)?;
            let listener = Listener::Request {
                sink: context.sink().clone(),
                _tells: tells.clone(),
            };
            told.push(self.told(following, listener));
        }
        drop(tells);
        tokio::select! {
            () = context.cancelled() => {}
            // Nobody sends anything: it is closed once all have ended.
            _ = telling.recv(), if !told.is_empty() => {}
        }
        Ok(())
    }

    async fn following(&self, address: &Address, shown: BTreeMap<String, Shown>) -> Result<Following> {
        let (source, method) = address.shown.source();
        let server = self.within(&address.namespace);
        if !server.rights.may(&server.context, method).await {
            let error = Error::PermissionDenied {
                reason: "NOT_TOLD",
                message: format!(
                    "to be told of changes in {:?}, the caller needs a grant for {method}",
                    address.namespace
                ),
            };
            return Err(Status::from(error).into());
        }
        let (watch, changes) = self.watches.follow(&server.context, source).await?;
        Ok(Following {
            shown,
            changes,
            newest: Arc::clone(&self.newest),
            _watch: watch,
        })
    }

    fn told(&self, following: Following, listener: Listener) -> Told {
        Told(self.watches.spawn(following.tell(listener)))
    }
}

impl Following {
    /// Tells until nobody listens, or the watch has ended. What changed together is told once.
    async fn tell(mut self, listener: Listener) {
        loop {
            let change = match self.changes.recv().await {
                Ok(change) => change,
                Err(RecvError::Lagged(_)) => Change::Anything,
                Err(RecvError::Closed) => return,
            };
            let mut changed: BTreeSet<&str> = BTreeSet::new();
            let mut next = Some(change);
            while let Some(change) = next {
                // What is read now has the change, whichever replica answers.
                self.newest.fetch_max(change.revision(), Ordering::Relaxed);
                let concerned = self.shown.iter().filter(|(_, shown)| change.concerns(shown));
                changed.extend(concerned.map(|(uri, _)| uri.as_str()));
                next = match self.changes.try_recv() {
                    Ok(change) => Some(change),
                    Err(TryRecvError::Lagged(_)) => Some(Change::Anything),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => None,
                };
            }
            for uri in changed {
                if !listener.tell(uri).await {
                    return;
                }
            }
        }
    }
}
