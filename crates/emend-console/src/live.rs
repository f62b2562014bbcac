//! What changes in the queue and the log, told to open pages as server-sent events. All pages of one account that look at one namespace
//! share one watch, which ends with the last of them. Accounts, and namespaces of one account, are bounded: whoever comes beyond
//! that is told so, and reads pages that do not change by themselves.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{
            AtomicBool, AtomicI64,
            Ordering::{self, Relaxed},
        },
    },
    time::Duration,
};

use axum::{body::Body, response::Response};
use emend_base::{Backoff, BackoffConfig, Entropy, Lifecycle, telemetry::metrics::prometheus::Gauge};
use emend_proto::learning::v1::{
    ListRevisionsRequest, QueueChange, WatchQueueRequest, WatchQueueResponse, watch_queue_response::Message,
};
use futures::{Stream, StreamExt as _, future, stream};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde_json::json;
use tokio::{sync::broadcast, time::sleep};
use tokio_stream::wrappers::{BroadcastStream, errors::BroadcastStreamRecvError};
use tonic::{Code, Streaming};

use crate::{metrics::ConsoleMetrics, services::ServicesAs, text::Language};

/// How many events a page may be behind before it is told to load itself anew.
const BEHIND: usize = 64;
/// How often a silent connection is written to, so that proxies keep it and a page that is gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often the log's head is looked at: what an import writes is not told by the queue.
const LOOKS_EVERY: Duration = Duration::from_secs(2);
/// How long a watch outlives its last page: a page that goes to another one comes back at once.
const OUTLIVES: Duration = Duration::from_secs(5);
/// Watches at most: half of what one replica of learning-svc takes.
const WATCHES: usize = 500;
/// Watches of one account at most: somebody who opens page after page of other namespaces leaves room for others.
const NAMESPACES: usize = 16;
/// The name of the last event of an account that may not follow any more.
const ENDED: &str = "ended";
/// After how long a page that was refused asks again.
const FULL_RETRY: &str = "retry: 30000\n";
const RETRY: BackoffConfig = BackoffConfig {
    initial: Duration::from_millis(250),
    max: Duration::from_secs(10),
    multiplier: 2.0,
};

/// All watches.
#[derive(Debug)]
pub(crate) struct Hub {
    watches: Watches,
    hashes: RandomState,
    lifecycle: Lifecycle,
    entropy: Entropy,
    metrics: ConsoleMetrics,
}

/// Whose pages of which namespace: the hash of a token, not the token.
type Account = (u64, String);

type Watches = Arc<Mutex<HashMap<Account, Weak<Watch>>>>;

/// One watch, held by its pages.
#[derive(Debug)]
struct Watch {
    events: broadcast::Sender<Arc<str>>,
    /// The newest revision that the queue told of.
    told: AtomicI64,
    /// Whether learning-svc could not be reached when it was last tried.
    is_away: AtomicBool,
    _counted: Counted,
}

/// One more, until it is dropped.
#[derive(Debug)]
struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Why a page is not told what changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    /// As many accounts follow as may.
    Watches,
    /// This account follows as many namespaces as it may.
    Namespaces,
}

impl Full {
    const fn name(self) -> &'static str {
        match self {
            Self::Watches => "watches",
            Self::Namespaces => "namespaces",
        }
    }

    fn message(self) -> String {
        match self {
            Self::Watches => format!("{WATCHES} accounts follow what changes, which is the maximum"),
            Self::Namespaces => {
                format!("this account follows {NAMESPACES} namespaces, which is the maximum")
            }
        }
    }
}

impl Hub {
    /// Without watches; they end with `lifecycle`.
    pub(crate) fn new(lifecycle: Lifecycle, entropy: Entropy, metrics: ConsoleMetrics) -> Self {
        Self {
            watches: Arc::default(),
            hashes: RandomState::new(),
            lifecycle,
            entropy,
            metrics,
        }
    }

    /// The events of a namespace, as somebody may see them.
    pub(crate) fn follow(&self, services: &ServicesAs, namespace: &str) -> Response {
        if services.is_nobody() {
            return events(stream::iter([event_text(ENDED, &json!({}))]));
        }
        let watch = match self.watch(services, namespace) {
            Ok(watch) => watch,
            Err(full) => {
                self.metrics.live_refused(full.name());
                tracing::warn!(
                    reason = full.name(),
                    "a page does not follow what changes: {}",
                    full.message()
                );
                let told = event_text("full", &json!({"why": full.message()}));
                return events(stream::iter([Arc::from(FULL_RETRY), told]));
            }
        };
        let mut greeting = vec![event_text("open", &json!({}))];
        let following = BroadcastStream::new(watch.events.subscribe());
        if watch.is_away.load(Relaxed) {
            greeting.push(event_text("away", &json!({})));
        }
        // Both are held for as long as the page is open.
        let page = (watch, Counted::new(&self.metrics.live_pages));
        let following = following.map(move |event| {
            let _held = &page;
            event.unwrap_or_else(|BroadcastStreamRecvError::Lagged(_)| event_text("resync", &json!({})))
        });
        let ended = self.lifecycle.soft().clone().cancelled_owned();
        events(with_keep_alive(until_ended(stream::iter(greeting).chain(following))).take_until(ended))
    }

    /// The watch of an account, begun if there is none.
    fn watch(&self, services: &ServicesAs, namespace: &str) -> Result<Arc<Watch>, Full> {
        let account = (
            self.hashes.hash_one(services.authorization()),
            namespace.to_owned(),
        );
        let mut watches = locked(&self.watches);
        if let Some(watch) = watches.get(&account).and_then(Weak::upgrade) {
            return Ok(watch);
        }
        if watches.len() >= WATCHES {
            return Err(Full::Watches);
        }
        if watches.keys().filter(|(owner, _)| *owner == account.0).count() >= NAMESPACES {
            return Err(Full::Namespaces);
        }
        let watch = Arc::new(Watch {
            events: broadcast::channel(BEHIND).0,
            told: AtomicI64::new(0),
            is_away: AtomicBool::new(false),
            _counted: Counted::new(&self.metrics.watches),
        });
        watches.insert(account.clone(), Arc::downgrade(&watch));
        drop(watches);
        let following = follow(
            services.clone(),
            namespace.to_owned(),
            Arc::downgrade(&watch),
            Backoff::new(RETRY, self.entropy.clone()),
        );
        let looking = look(services.clone(), namespace.to_owned(), Arc::downgrade(&watch));
        let ended = self.lifecycle.soft().clone();
        let unused = unused(Arc::clone(&watch), Arc::clone(&self.watches), account.clone());
        let (all, own) = (Arc::clone(&self.watches), Arc::downgrade(&watch));
        self.lifecycle.spawn_owned(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                ((), ()) = future::join(following, looking) => {}
                () = unused => {}
            }
            // Who comes next begins another.
            let mut all = locked(&all);
            if all.get(&account).is_some_and(|known| known.ptr_eq(&own)) {
                all.remove(&account);
            }
        });
        Ok(watch)
    }
}

fn locked(watches: &Watches) -> MutexGuard<'_, HashMap<Account, Weak<Watch>>> {
    watches.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ready once no page has listened for a while. The watch is given up then: the next page begins another.
async fn unused(watch: Arc<Watch>, watches: Watches, account: Account) {
    loop {
        sleep(OUTLIVES).await;
        let mut watches = locked(&watches);
        // This one alone holds it, and pages take it only under the lock.
        if Arc::strong_count(&watch) == 1 {
            watches.remove(&account);
            return;
        }
    }
}

/// Sends what changes until nobody listens; what can't be followed now is tried again.
async fn follow(services: ServicesAs, namespace: String, watch: Weak<Watch>, mut backoff: Backoff) {
    let send = |name: &str, data: &serde_json::Value| {
        let Some(watch) = watch.upgrade() else {
            return false;
        };
        match name {
            "away" => watch.is_away.store(true, Relaxed),
            "back" => watch.is_away.store(false, Relaxed),
            _ => {}
        }
        // Nobody listens at the moment: fine.
        let _ = watch.events.send(event_text(name, data));
        true
    };
    let mut is_away = false;
    loop {
        let request = services.stream(WatchQueueRequest {
            namespace: namespace.clone(),
            kinds: Vec::new(),
        });
        match services.candidates().watch_queue(request).await {
            Ok(opened) => {
                let mut changes = opened.into_inner();
                while let Ok(Some(message)) = next(&mut changes).await {
                    let is_wanted = match message {
                        Message::Opened(_) => {
                            backoff.reset();
                            let name = if is_away { "back" } else { "resync" };
                            is_away = false;
                            send(name, &json!({}))
                        }
                        Message::Change(change) => {
                            if let Some(watch) = watch.upgrade() {
                                watch.told.fetch_max(change.revision, Ordering::Relaxed);
                            }
                            send("queue", &told(&change))
                        }
                        Message::Resync(_) => send("resync", &json!({})),
                        Message::KeepAlive(_) => true,
                    };
                    if !is_wanted {
                        return;
                    }
                }
            }
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => {
                send(ENDED, &json!({}));
                return;
            }
            Err(_) => {}
        }
        if !is_away && !send("away", &json!({})) {
            return;
        }
        is_away = true;
        sleep(backoff.next()).await;
    }
}

/// Tells of new revisions until nobody listens or may read the log. One that cannot be read now is read later.
async fn look(services: ServicesAs, namespace: String, watch: Weak<Watch>) {
    let mut seen = None;
    loop {
        let request = services.call(ListRevisionsRequest {
            namespace: namespace.clone(),
            page_size: 1,
            ..ListRevisionsRequest::default()
        });
        match services.resources().list_revisions(request).await {
            Ok(answer) => {
                let revisions = answer.into_inner().revisions;
                let head = revisions.first().map_or(0, |revision| revision.revision);
                let Some(watch) = watch.upgrade() else {
                    return;
                };
                let is_told = watch.told.load(Ordering::Relaxed) == head;
                if seen.replace(head).is_some_and(|seen| seen != head) && !is_told {
                    // Nobody listens at the moment: fine.
                    let _ = watch.events.send(event_text("log", &json!({ "revision": head })));
                }
            }
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => return,
            Err(_) => {}
        }
        sleep(LOOKS_EVERY).await;
    }
}

/// The next message that this version knows.
async fn next(changes: &mut Streaming<WatchQueueResponse>) -> Result<Option<Message>, tonic::Status> {
    loop {
        match changes.message().await? {
            Some(WatchQueueResponse {
                message: Some(message),
            }) => return Ok(Some(message)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

/// What a page is told of a change.
fn told(change: &QueueChange) -> serde_json::Value {
    let holder = change
        .lease
        .as_ref()
        .map(|lease| Language::English.actor(lease.actor.as_ref()));
    json!({
        "candidate": change.candidate_id,
        "status": change.status,
        "by": Language::English.actor(change.decided_by.as_ref()),
        "holder": holder,
        "revision": change.revision,
    })
}

fn event_text(name: &str, data: &serde_json::Value) -> Arc<str> {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// An answer that consists of events.
fn events(events: impl Stream<Item = Arc<str>> + Send + 'static) -> Response {
    let body = events.map(|event| Ok::<_, Infallible>(event.to_string()));
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The same, until the event that is the last one.
fn until_ended(events: impl Stream<Item = Arc<str>>) -> impl Stream<Item = Arc<str>> {
    events.scan(false, |has_ended, event| {
        let next = (!*has_ended).then(|| Arc::clone(&event));
        *has_ended |= event
            .strip_prefix("event: ")
            .is_some_and(|rest| rest.starts_with(ENDED));
        future::ready(next)
    })
}

/// The same, with a comment whenever nothing came for a while.
fn with_keep_alive(events: impl Stream<Item = Arc<str>>) -> impl Stream<Item = Arc<str>> {
    stream::unfold(Box::pin(events), async |mut events| {
        let event = tokio::select! {
            event = events.next() => event?,
            () = sleep(KEEP_ALIVE) => Arc::from(": still here\n\n"),
        };
        Some((event, events))
    })
}

#[cfg(test)]
mod tests {
    use emend_base::{telemetry::Metrics, tls::Remote};

    use super::*;
    use crate::services::Services;

    /// A hub whose services are away, and an account by its number.
    fn hub() -> (Hub, impl Fn(usize) -> ServicesAs) {
        let away = || Remote::new("http://127.0.0.1:1").unwrap();
        let services = Services::new(away(), away());
        let account = move |number: usize| {
            let token = HeaderValue::try_from(format!("Bearer {number}")).unwrap();
            services.by(Some(token))
        };
        let metrics = ConsoleMetrics::of(&Metrics::new());
        (Hub::new(Lifecycle::new(), Entropy::system(), metrics), account)
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_are_bounded_and_make_room_once_their_pages_are_closed() {
        let (hub, account) = hub();
        let mut open = Vec::new();
        for number in 0..WATCHES {
            open.push(hub.watch(&account(number), "default").unwrap());
        }
        assert_eq!(
            hub.watch(&account(WATCHES), "default").unwrap_err(),
            Full::Watches
        );
        assert_eq!(
            Full::Watches.message(),
            "500 accounts follow what changes, which is the maximum"
        );
        let again = hub.watch(&account(0), "default").unwrap();
        assert!(Arc::ptr_eq(&again, &open[0]), "all pages of an account share one");
        drop((open, again));
        while hub.metrics.watches.get() > 0 {
            sleep(OUTLIVES).await;
        }
        assert!(hub.watch(&account(WATCHES), "default").is_ok());
        assert_eq!(
            locked(&hub.watches).len(),
            1,
            "nothing is left of those that ended"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_account_leaves_room_for_others() {
        let (hub, account) = hub();
        let mut open = Vec::new();
        for number in 0..NAMESPACES {
            open.push(hub.watch(&account(0), &number.to_string()).unwrap());
        }
        let one_more = hub.watch(&account(0), "one more");
        assert_eq!(one_more.unwrap_err(), Full::Namespaces);
        assert!(hub.watch(&account(1), "one more").is_ok());
    }
}
