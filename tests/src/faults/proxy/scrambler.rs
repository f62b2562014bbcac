//! A proxy between feedback-svc and learning-svc that delivers events in any order, more than once, over several
//! connections, and loses answers to events that were applied. A sender gets answers in order, as the contract
//! requires, or none.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use emend_proto::learning::v1::{
    Event, EventResult, GetStandingsRequest, GetStandingsResponse, IngestRequest, IngestResponse,
    ingest_service_client::IngestServiceClient,
    ingest_service_server::{IngestService, IngestServiceServer},
};
use futures::{StreamExt as _, future::try_join_all, stream::BoxStream};
use tokio::{net::TcpListener, time::sleep};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Channel, Server},
};

use crate::harness::{Dice, rpc::channel, within};

/// The number of connections that batches travel over.
const CONNECTIONS: usize = 3;
/// The most pieces that a batch is split into; each travels on its own.
const PIECES: usize = 3;
/// The longest random delay of a piece, in milliseconds, so that later pieces overtake it.
const LATE: usize = 40;
/// How much longer that delay may be for a repeat.
const AGAIN: usize = 200;
/// Any of this many recent pieces may be repeated at any time.
const REMEMBERED: usize = 64;
/// The number of one stream's batches in flight.
const UNDER_WAY: usize = 8;

/// See the module. Dropping it stops it.
#[derive(Debug)]
pub struct Scrambler {
    address: SocketAddr,
    forwarder: Arc<Forwarder>,
    _serving: AbortOnDropHandle<()>,
}

/// Counts of the faults so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Pieces sent again.
    pub repeated: usize,
    /// Batches that were applied and whose answers were lost.
    pub unanswered: usize,
}

#[derive(Debug)]
struct Forwarder {
    channels: Vec<Channel>,
    dice: Mutex<Dice>,
    is_calm: AtomicBool,
    last: Mutex<VecDeque<Vec<Event>>>,
    /// Repeats in flight, whose answers nothing waits for.
    repeats: TaskTracker,
    repeated: AtomicUsize,
    unanswered: AtomicUsize,
}

impl Scrambler {
    /// Starts one that delivers to `target`.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(target: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let forwarder = Arc::new(Forwarder {
            channels: (0..CONNECTIONS).map(|_| channel(target)).collect(),
            dice: Mutex::new(Dice::seeded(seed)),
            is_calm: AtomicBool::new(false),
            last: Mutex::default(),
            repeats: TaskTracker::new(),
            repeated: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
        });
        let server = Server::builder()
            .add_service(IngestServiceServer::new(ForwardingService(Arc::clone(
                &forwarder,
            ))))
            .serve_with_incoming(TcpListenerStream::new(listener));
        let serving = tokio::spawn(async move { server.await.expect("it serves until it is dropped") });
        Self {
            address,
            forwarder,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts so far.
    pub fn so_far(&self) -> Tally {
        Tally {
            repeated: self.forwarder.repeated.load(Ordering::SeqCst),
            unanswered: self.forwarder.unanswered.load(Ordering::SeqCst),
        }
    }

    /// From now on delivers everything once and in order; returns when nothing from before is in flight.
    pub async fn calm(&self) {
        self.forwarder.is_calm.store(true, Ordering::SeqCst);
        self.forwarder.repeats.close();
        within("the last repeats have arrived", self.forwarder.repeats.wait()).await;
    }
}

struct ForwardingService(Arc<Forwarder>);

#[tonic::async_trait]
impl IngestService for ForwardingService {
    type IngestStream = BoxStream<'static, Result<IngestResponse, Status>>;

    async fn ingest(
        &self,
        request: Request<Streaming<IngestRequest>>,
    ) -> Result<Response<Self::IngestStream>, Status> {
        let forwarder = Arc::clone(&self.0);
        let answers = request.into_inner().map(move |batch| {
            let forwarder = Arc::clone(&forwarder);
            async move {
                let results = forwarder.carry(batch?.events).await?;
                Ok(IngestResponse {
                    results,
                    ..Default::default()
                })
            }
        });
        Ok(Response::new(answers.buffered(UNDER_WAY).boxed()))
    }

    async fn get_standings(
        &self,
        request: Request<GetStandingsRequest>,
    ) -> Result<Response<GetStandingsResponse>, Status> {
        let mut client = IngestServiceClient::new(self.0.channels[0].clone());
        client.get_standings(request).await
    }
}

impl Forwarder {
    fn dice<T>(&self, throw: impl FnOnce(&Dice) -> T) -> T {
        throw(&self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Delivers a batch in pieces and answers for each of its events, in their order.
    async fn carry(self: Arc<Self>, events: Vec<Event>) -> Result<Vec<EventResult>, Status> {
        if self.is_calm.load(Ordering::SeqCst) {
            return bring(&self.channels[0], events).await;
        }
        let ids: Vec<String> = events.iter().map(|event| event.event_id.clone()).collect();
        let pieces = self.dice(|dice| tear(events, dice));
        for piece in &pieces {
            self.maybe_repeat(piece);
        }
        let results = try_join_all(pieces.into_iter().map(|piece| self.late(piece, 0))).await?;
        if self.dice(|dice| dice.chance(0.1)) {
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            return Err(Status::unavailable("the answer is lost on its way"));
        }
        let mut results: HashMap<String, EventResult> = results
            .into_iter()
            .flatten()
            .map(|result| (result.event_id.clone(), result))
            .collect();
        ids.iter()
            .map(|id| results.remove(id))
            .collect::<Option<_>>()
            .ok_or_else(|| Status::internal("not every event was answered"))
    }

    /// Remembers a piece, and may send it or an earlier one again.
    fn maybe_repeat(self: &Arc<Self>, piece: &[Event]) {
        let repeat = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.push_back(piece.to_vec());
            if last.len() > REMEMBERED {
                last.pop_front();
            }
            self.dice(|dice| {
                dice.chance(0.4)
                    .then(|| last.get(dice.below(last.len())).cloned())
                    .flatten()
            })
        };
        let Some(repeat) = repeat else { return };
        self.repeated.fetch_add(1, Ordering::SeqCst);
        let forwarder = Arc::clone(self);
        self.repeats.spawn(async move {
            // Nothing waits for the result, and learning-svc may be down.
            let _ = forwarder.late(repeat, AGAIN).await;
        });
    }

    async fn late(&self, piece: Vec<Event>, later: usize) -> Result<Vec<EventResult>, Status> {
        let (millis, connection) = self.dice(|dice| (dice.below(LATE + later + 1), dice.below(CONNECTIONS)));
        sleep(Duration::from_millis(millis as u64)).await;
        bring(&self.channels[connection], piece).await
    }
}

/// Shuffles the events and splits them into pieces.
fn tear(mut events: Vec<Event>, dice: &Dice) -> Vec<Vec<Event>> {
    for last in (1..events.len()).rev() {
        events.swap(last, dice.below(last + 1));
    }
    let pieces = (1 + dice.below(PIECES)).min(events.len().max(1));
    let size = events.len().div_ceil(pieces).max(1);
    events.chunks(size).map(<[Event]>::to_vec).collect()
}

async fn bring(channel: &Channel, events: Vec<Event>) -> Result<Vec<EventResult>, Status> {
    let mut client = IngestServiceClient::new(channel.clone());
    let batch = tokio_stream::once(IngestRequest {
        events,
        ..Default::default()
    });
    let mut answers = client.ingest(batch).await?.into_inner();
    let answer = answers.message().await?;
    Ok(answer.ok_or_else(|| Status::unavailable("no answer"))?.results)
}
