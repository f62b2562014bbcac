//! A subscriber that records: over a real socket, reconnecting after every cut, always from its newest cursor.
//!
//! It checks nothing but what it needs in order to reconnect.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use emend_proto::{
    frame::Frame,
    learning::{
        encoded::subscription_service_client::SubscriptionServiceClient,
        v1::{Cursor, NodeInfo, SubscribeRequest},
    },
    wire::{Message, SubscribeResponse},
};
use prost::Message as _;
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;
use tonic::{Status, Streaming, transport::Endpoint};

use super::{
    guarantee::{Summary, Violation},
    log::RevisionLog,
    recording::{Connection, Ending, Received, Recording, Run, handed_out},
    validate::validate,
};
use crate::harness::wait::PATIENCE;

/// The first pause before a reconnect, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// The timeout for opening a stream.
const OPENING: Duration = Duration::from_secs(15);
/// HTTP/2's initial window, small, so that the server soon notices a client that stops reading.
const WINDOW: u32 = 65_535;

/// A running subscriber. Dropping it ends it.
#[derive(Debug)]
pub struct Recorder {
    name: String,
    run: Run,
    orders: mpsc::UnboundedSender<Order>,
    reading: watch::Sender<bool>,
    position: watch::Receiver<Option<Cursor>>,
    kept: Kept,
    working: AbortOnDropHandle<()>,
}

/// How a recorder treats its connections.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// How often it pings the server, and how long it waits for the answer; `None`: it trusts its connection for as
    /// long as the system does.
    pub ping: Option<Duration>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            ping: Some(Duration::from_secs(10)),
        }
    }
}

type Change = Box<dyn FnOnce(&mut SubscribeRequest) + Send>;

/// An order to drop the connection and reconnect, possibly with another request.
struct Order(Change);

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Order")
    }
}

#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<Connection>>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last(&self, change: impl FnOnce(&mut Connection)) {
        if let Some(last) = self.lock().last_mut() {
            change(last);
        }
    }
}

/// A request for everything, user-scoped resources included, with bookmarks as often as the contract allows.
pub fn everything(node_id: &str) -> SubscribeRequest {
    SubscribeRequest {
        node: Some(NodeInfo {
            id: node_id.into(),
            ..NodeInfo::default()
        }),
        include_user_scoped: true,
        bookmark_interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..SubscribeRequest::default()
    }
}

impl Recorder {
    /// Subscribes at `address`, first from the request's cursor, later from its newest.
    pub fn start(run: &Run, address: impl fmt::Display, request: SubscribeRequest) -> Self {
        Self::with(run, address, request, Habits::default())
    }

    /// The same with other habits.
    pub fn with(run: &Run, address: impl fmt::Display, request: SubscribeRequest, habits: Habits) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let (reading, may_read) = watch::channel(true);
        let (moves, position) = watch::channel(None);
        let kept = Kept::default();
        let name = request
            .node
            .as_ref()
            .map_or_else(String::new, |node| node.id.clone());
        let work = Work {
            run: run.clone(),
            address: address.to_string(),
            request,
            habits,
            orders: taken,
            may_read,
            moves,
            kept: kept.clone(),
        };
        Self {
            name,
            run: run.clone(),
            orders,
            reading,
            position,
            kept,
            working: AbortOnDropHandle::new(tokio::spawn(work.go())),
        }
    }

    /// The node id it subscribes with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far it has applied; `None` before its first snapshot.
    pub fn position(&self) -> Option<Cursor> {
        self.position.borrow().clone()
    }

    /// Waits until it has applied `revision`, in any epoch.
    ///
    /// # Panics
    /// If it does not.
    pub async fn reaches(&self, revision: i64) {
        self.is_at(&format!("{revision}"), |cursor| cursor.revision >= revision)
            .await;
    }

    /// Waits until it has reached the log's head, in the log's epoch.
    ///
    /// # Panics
    /// If it does not get there.
    pub async fn reaches_head(&self, log: &RevisionLog) {
        let (epoch, head) = (&log.current.epoch, log.current.head);
        self.is_at(&format!("{head} of {epoch}"), |cursor| {
            cursor.epoch == *epoch && cursor.revision >= head
        })
        .await;
    }

    async fn is_at(&self, goal: &str, is_there: impl Fn(&Cursor) -> bool) {
        let mut position = self.position.clone();
        let reached = position.wait_for(|position| position.as_ref().is_some_and(&is_there));
        let reached = matches!(timeout(PATIENCE, reached).await, Ok(Ok(_)));
        if !reached {
            let kept = self.kept.lock();
            let endings: Vec<_> = kept
                .iter()
                .rev()
                .take(5)
                .map(|connection| (connection.messages.len(), &connection.ending))
                .collect();
            let position = self.position.borrow().clone();
            panic!(
                "{} is not at {goal} within {PATIENCE:?} but at {position:?}; {} connections, the newest first: {endings:?}",
                self.name,
                kept.len()
            );
        }
    }

    /// Drops its connection without notice and reconnects with its newest cursor.
    pub fn cut(&self) {
        self.ask(|_| {});
    }

    /// Drops its connection and reconnects with another request: `change` is given the request with the newest cursor
    /// set. A changed filter stays; a changed cursor is sent until a stream begins.
    pub fn ask(&self, change: impl FnOnce(&mut SubscribeRequest) + Send + 'static) {
        // Can't fail: the receiver lives as long as this value.
        let _ = self.orders.send(Order(Box::new(change)));
    }

    /// Stops reading, while the connection stays, and has the run witness it.
    pub fn stall(&self) {
        self.reading.send_replace(false);
        self.run.stall_begins(&self.name);
    }

    /// Reads again. All others had to reach `head` by now.
    pub fn go_on(&self, head: i64) {
        self.run.stall_ends(&self.name, head);
        self.reading.send_replace(true);
    }

    /// What it has recorded so far, as a recording that breaks off here.
    pub fn so_far(&self) -> Recording {
        Recording {
            subscriber: self.name.clone(),
            connections: self.kept.lock().clone(),
            until: None,
            witnessed: self.run.witnessed(),
        }
    }

    /// Waits until it has reached the log's head and ends the recording there.
    ///
    /// # Panics
    /// If it does not get there.
    pub async fn finish(self, log: &RevisionLog) -> Recording {
        self.reaches_head(log).await;
        self.working.abort();
        Recording {
            until: Some((log.current.epoch.clone(), log.current.head)),
            ..self.so_far()
        }
    }

    /// Ends the recording at the log's head and checks it against the log.
    ///
    /// # Panics
    /// If there is a violation, with every violation.
    pub async fn audited(self, log: &RevisionLog) -> Summary {
        let name = self.name.clone();
        let recording = self.finish(log).await;
        validate(&recording, log).unwrap_or_else(|violations| panic!("{}", described(&name, &violations)))
    }
}

/// Violations as the message of a failed test.
fn described(name: &str, violations: &[Violation]) -> String {
    use fmt::Write as _;
    let mut text = format!("{} violations in what {name} received", violations.len());
    for violation in violations.iter().take(20) {
        let _ = write!(text, "\n  {violation}");
    }
    text
}

/// What the task needs.
struct Work {
    run: Run,
    address: String,
    request: SubscribeRequest,
    habits: Habits,
    orders: mpsc::UnboundedReceiver<Order>,
    may_read: watch::Receiver<bool>,
    moves: watch::Sender<Option<Cursor>>,
    kept: Kept,
}

impl Work {
    async fn go(mut self) {
        let mut pause = PAUSES.0;
        loop {
            let (ending, order) = self.connection().await;
            let mut has_begun = false;
            self.kept.last(|connection| {
                connection.ending = ending;
                has_begun = !connection.messages.is_empty();
            });
            if has_begun {
                self.request.cursor = self.moves.borrow().clone().or(self.request.cursor.take());
                pause = PAUSES.0;
            }
            if let Some(Order(change)) = order {
                change(&mut self.request);
                continue;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Runs one stream, to its end or the next order.
    async fn connection(&mut self) -> (Ending, Option<Order>) {
        self.kept.lock().push(Connection {
            request: self.request.clone(),
            opened: self.run.moment(),
            messages: Vec::new(),
            ending: Ending::Open,
        });
        let opened = tokio::select! {
            biased;
            Some(order) = self.orders.recv() => return (Ending::Left, Some(order)),
            opened = timeout(OPENING, open(&self.address, self.request.clone(), self.habits)) => opened,
        };
        let mut stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(status)) => return (Ending::Refused(brief(&status)), None),
            Err(_) => return (Ending::Refused("no answer".into()), None),
        };
        loop {
            let next = tokio::select! {
                biased;
                Some(order) = self.orders.recv() => return (Ending::Left, Some(order)),
                next = next(&mut stream, &mut self.may_read) => next,
            };
            match next {
                Ok(Some(message)) => self.keep(message),
                Ok(None) => return (Ending::Ended, None),
                Err(status) => return (Ending::Broken(brief(&status)), None),
            }
        }
    }

    fn keep(&self, message: Message) {
        let moved = handed_out(&message).cloned();
        let at = self.run.moment();
        self.kept
            .last(|connection| connection.messages.push(Received { at, message }));
        if moved.is_some() {
            self.moves.send_replace(moved);
        }
    }
}

/// The next message of a kind that this client knows, once it may read.
async fn next(
    stream: &mut Streaming<Frame>,
    may_read: &mut watch::Receiver<bool>,
) -> Result<Option<Message>, Status> {
    loop {
        // Fails only once the recorder, which holds the sender, is gone.
        let _ = may_read.wait_for(|may| *may).await;
        let message = tokio::select! {
            biased;
            _ = may_read.wait_for(|may| !*may) => continue,
            message = stream.message() => message?,
        };
        let Some(Frame(bytes)) = message else {
            return Ok(None);
        };
        let response = SubscribeResponse::decode(bytes)
            .map_err(|error| Status::internal(format!("not a message of the stream: {error}")))?;
        if let Some(message) = response.message {
            return Ok(Some(message));
        }
    }
}

/// Opens a stream on a connection of its own.
async fn open(address: &str, request: SubscribeRequest, habits: Habits) -> Result<Streaming<Frame>, Status> {
    let mut endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| Status::invalid_argument(error.to_string()))?
        .connect_timeout(OPENING)
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    if let Some(ping) = habits.ping {
        endpoint = endpoint
            .http2_keep_alive_interval(ping)
            .keep_alive_timeout(ping)
            .keep_alive_while_idle(true);
    }
    let channel = endpoint
        .connect()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let answer = SubscriptionServiceClient::new(channel).subscribe(request).await?;
    Ok(answer.into_inner())
}

fn brief(status: &Status) -> String {
    format!("{:?}: {}", status.code(), status.message())
}
