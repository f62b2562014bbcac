//! Records queries and interactions without holding up a search: what is recorded takes a place in a bounded queue in memory,
//! and a task sends it in batches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use emend_base::{Lifecycle, status::NO_ANSWER_TO_CHANGE};
use emend_core::Namespace;
use emend_proto::feedback::v1::{
    Query, QueryInteraction, RecordInteractionRequest, RecordQueryRequest,
    query_service_client::QueryServiceClient,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::{FeedbackClient, retry::retry};

/// How many wait at most.
const QUEUE: usize = 10_000;
/// How many travel in one call.
const BATCH: usize = 100;
/// How long the first of a batch waits for others.
const GATHER: Duration = Duration::from_millis(50);
/// How long what is queued may still be sent once the program stops.
const FAREWELL: Duration = Duration::from_secs(2);
/// The pause before what the service had no room for is sent again.
const PAUSE: Duration = Duration::from_millis(250);

/// What became of what was recorded, since the recorder began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecorderCounts {
    /// Accepted by the service.
    pub sent: u64,
    /// Lost: the queue was full, the program stopped, or the service had no room or did not answer before the client's
    /// deadline.
    pub dropped: u64,
    /// Refused by the service as invalid.
    pub invalid: u64,
}

#[derive(Debug, Default)]
struct Counters {
    /// Found no room.
    refused: AtomicU64,
    /// Found room; from then on they are sent, given up or invalid.
    queued: AtomicU64,
    sent: AtomicU64,
    given_up: AtomicU64,
    invalid: AtomicU64,
}

/// Records queries and interactions of one namespace. It never waits, and never fails a search. Clones share the queue.
///
/// Its task belongs to the lifecycle with which it was made: when that stops, what is queued is sent for 2 s at most.
#[derive(Debug, Clone)]
pub struct QueryRecorder {
    queue: mpsc::Sender<Item>,
    counters: Arc<Counters>,
}

#[derive(Debug)]
enum Item {
    Query(Box<Query>),
    Interaction(Box<QueryInteraction>),
    /// Answered once all before it is done with.
    Flush(oneshot::Sender<()>),
}

impl FeedbackClient {
    /// A recorder that sends with this client's connection, headers, token and deadline, which each batch has for itself.
    pub fn recorder(&self, namespace: &Namespace, lifecycle: &Lifecycle) -> QueryRecorder {
        self.recorder_holding(QUEUE, namespace, lifecycle)
    }

    fn recorder_holding(&self, room: usize, namespace: &Namespace, lifecycle: &Lifecycle) -> QueryRecorder {
        let (sender, queue) = mpsc::channel(room);
        let counters = Arc::<Counters>::default();
        let worker = Worker {
            client: self.clone(),
            namespace: namespace.clone(),
            queue,
            counters: Arc::clone(&counters),
        };
        lifecycle.spawn("send recorded queries", worker.run(lifecycle.soft().clone()));
        QueryRecorder {
            queue: sender,
            counters,
        }
    }
}

impl QueryRecorder {
    /// Records a query. Its `hit_count` is to be said also if nothing was found: without it and without results it is not known.
    /// False: there is no room, or the program stops, and it is dropped and counted.
    pub fn query(&self, query: Query) -> bool {
        self.put(Item::Query(Box::new(query)))
    }

    /// Records what a user did with a result, in the same way.
    pub fn interaction(&self, interaction: QueryInteraction) -> bool {
        self.put(Item::Interaction(Box::new(interaction)))
    }

    /// Waits until all that was recorded before is sent or dropped.
    pub async fn flush(&self) {
        let (done, all_done) = oneshot::channel();
        if self.queue.send(Item::Flush(done)).await.is_ok() {
            // An error says that the task has ended, and what it held with it.
            let _ = all_done.await;
        }
    }

    /// What became of what was recorded.
    pub fn counts(&self) -> RecorderCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecorderCounts {
            sent: read(&self.counters.sent),
            dropped: read(&self.counters.refused) + read(&self.counters.given_up),
            invalid: read(&self.counters.invalid),
        }
    }

    fn put(&self, item: Item) -> bool {
        let is_queued = self.queue.try_send(item).is_ok();
        let counter = if is_queued {
            &self.counters.queued
        } else {
            &self.counters.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
        is_queued
    }
}

struct Worker {
    client: FeedbackClient,
    namespace: Namespace,
    queue: mpsc::Receiver<Item>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Batch {
    queries: Vec<Query>,
    interactions: Vec<QueryInteraction>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Batch {
    fn len(&self) -> usize {
        self.queries.len() + self.interactions.len()
    }

    fn add(&mut self, item: Item) {
        match item {
            Item::Query(query) => self.queries.push(*query),
            Item::Interaction(interaction) => self.interactions.push(*interaction),
            Item::Flush(done) => self.flushed.push(done),
        }
    }
}

impl Worker {
    async fn run(mut self, soft: CancellationToken) {
        let ended = {
            let work = self.work(&soft);
            tokio::pin!(work);
            tokio::select! {
                () = soft.cancelled() => timeout(FAREWELL, work).await.is_ok(),
                () = &mut work => true,
            }
        };
        if !ended {
            // What is queued, and what was being sent.
            self.queue.close();
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let done = read(&self.counters.sent) + read(&self.counters.invalid);
            let given_up = read(&self.counters.queued).saturating_sub(done);
            self.counters.given_up.store(given_up, Ordering::Relaxed);
        }
    }

    /// Sends batches until the program stops or all recorders are gone, and the queue is empty.
    async fn work(&mut self, soft: &CancellationToken) {
        while let Some(batch) = self.next(soft).await {
            let Batch {
                queries,
                interactions,
                flushed,
            } = batch;
            self.send(queries, Self::send_queries).await;
            self.send(interactions, Self::send_interactions).await;
            for done in flushed {
                // Who waited may have left.
                let _ = done.send(());
            }
        }
    }

    async fn next(&mut self, soft: &CancellationToken) -> Option<Batch> {
        let mut batch = Batch::default();
        let first = tokio::select! {
            biased;
            item = self.queue.recv() => item?,
            () = soft.cancelled() => {
                // Nothing more is taken; what is there is sent.
                self.queue.close();
                self.queue.recv().await?
            }
        };
        batch.add(first);
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH && batch.flushed.is_empty() {
            match timeout_at(until, self.queue.recv()).await {
                Ok(Some(item)) => batch.add(item),
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }

    /// Sends items, and again those for which the service had no room, until the client's deadline. One that is invalid takes
    /// no other with it.
    async fn send<T: Clone>(
        &self,
        items: Vec<T>,
        call: impl AsyncFn(&Self, Instant, Vec<T>) -> Result<i32, Status>,
    ) {
        let deadline = Instant::now() + self.client.deadline;
        let mut parts = vec![items];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match call(self, deadline, part.clone()).await {
                Ok(dropped) => {
                    let dropped = usize::try_from(dropped).unwrap_or_default().min(part.len());
                    let left = part.split_off(part.len() - dropped);
                    self.counters.sent.fetch_add(part.len() as u64, Ordering::Relaxed);
                    if left.is_empty() {
                        continue;
                    }
                    let again = Instant::now() + PAUSE;
                    if again >= deadline {
                        self.counters
                            .given_up
                            .fetch_add(left.len() as u64, Ordering::Relaxed);
                        continue;
                    }
                    sleep_until(again).await;
                    parts.push(left);
                }
                // One is invalid, or all of them together are larger than a message may be.
                Err(status)
                    if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange)
                        && part.len() > 1 =>
                {
                    parts.extend(part.into_iter().map(|one| vec![one]));
                }
                Err(status) => {
                    let counter = if status.code() == Code::InvalidArgument {
                        &self.counters.invalid
                    } else {
                        &self.counters.given_up
                    };
                    counter.fetch_add(part.len() as u64, Ordering::Relaxed);
                    tracing::warn!(%status, count = part.len(), "recorded queries are lost");
                }
            }
        }
    }

    async fn send_queries(&self, deadline: Instant, queries: Vec<Query>) -> Result<i32, Status> {
        let message = RecordQueryRequest {
            namespace: self.namespace.to_string(),
            queries,
        };
        let answer = retry(deadline, NO_ANSWER_TO_CHANGE, self.client.new_backoff(), |left| {
            let request = self.client.request(left, message.clone());
            let mut client = self.client();
            async move { client.record_query(request).await }
        });
        Ok(answer.await?.into_inner().dropped_count)
    }

    async fn send_interactions(
        &self,
        deadline: Instant,
        interactions: Vec<QueryInteraction>,
    ) -> Result<i32, Status> {
        let message = RecordInteractionRequest {
            namespace: self.namespace.to_string(),
            interactions,
        };
        let answer = retry(deadline, NO_ANSWER_TO_CHANGE, self.client.new_backoff(), |left| {
            let request = self.client.request(left, message.clone());
            let mut client = self.client();
            async move { client.record_interaction(request).await }
        });
        Ok(answer.await?.into_inner().dropped_count)
    }

    fn client(&self) -> QueryServiceClient<tonic::transport::Channel> {
        QueryServiceClient::new(self.client.channel.clone())
    }
}

#[cfg(test)]
mod tests {
    use emend_proto::feedback::v1::{
        ExportFeedbackRequest, ExportFeedbackResponse, GetFeedbackStatsRequest, GetFeedbackStatsResponse,
        ListNegativeTermsRequest, ListNegativeTermsResponse, ListQueriesRequest, ListQueriesResponse,
        RecordInteractionResponse, RecordQueryResponse,
        query_service_server::{QueryService, QueryServiceServer},
    };
    use tokio::{net::TcpListener, sync::Mutex};
    use tonic::{Request, Response};

    use super::*;

    /// A service that takes the first so many queries of its first call, and all of later ones; texts "bad" are invalid.
    #[derive(Debug, Default)]
    struct Service {
        calls: Mutex<Vec<Vec<String>>>,
        room_at_first: Option<usize>,
    }

    #[derive(Debug)]
    struct Shared(Arc<Service>);

    #[tonic::async_trait]
    impl QueryService for Shared {
        async fn record_query(
            &self,
            request: Request<RecordQueryRequest>,
        ) -> Result<Response<RecordQueryResponse>, Status> {
            let queries = request.into_inner().queries;
            if queries.iter().any(|query| query.query_text == "bad") {
                return Err(Status::invalid_argument("queries: bad"));
            }
            let mut calls = self.0.calls.lock().await;
            let room = match self.0.room_at_first {
                Some(room) if calls.is_empty() => room.min(queries.len()),
                _ => queries.len(),
            };
            let dropped = queries.len() - room;
            calls.push(
                queries
                    .into_iter()
                    .take(room)
                    .map(|query| query.query_id)
                    .collect(),
            );
            Ok(Response::new(RecordQueryResponse {
                dropped_count: i32::try_from(dropped).unwrap(),
                drop_reason: 1,
            }))
        }

        async fn record_interaction(
            &self,
            _: Request<RecordInteractionRequest>,
        ) -> Result<Response<RecordInteractionResponse>, Status> {
            Ok(Response::new(RecordInteractionResponse::default()))
        }

        async fn list_queries(
            &self,
            _: Request<ListQueriesRequest>,
        ) -> Result<Response<ListQueriesResponse>, Status> {
            Err(Status::unimplemented("not here"))
        }

        async fn get_feedback_stats(
            &self,
            _: Request<GetFeedbackStatsRequest>,
        ) -> Result<Response<GetFeedbackStatsResponse>, Status> {
            Err(Status::unimplemented("not here"))
        }

        type ExportFeedbackStream = tokio_stream::Empty<Result<ExportFeedbackResponse, Status>>;

        async fn export_feedback(
            &self,
            _: Request<ExportFeedbackRequest>,
        ) -> Result<Response<Self::ExportFeedbackStream>, Status> {
            Err(Status::unimplemented("not here"))
        }

        async fn list_negative_terms(
            &self,
            _: Request<ListNegativeTermsRequest>,
        ) -> Result<Response<ListNegativeTermsResponse>, Status> {
            Err(Status::unimplemented("not here"))
        }
    }

    async fn serve(service: &Arc<Service>) -> FeedbackClient {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tonic::transport::Server::builder()
            .add_service(QueryServiceServer::new(Shared(Arc::clone(service))));
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        tokio::spawn(server.serve_with_incoming(incoming));
        FeedbackClient::new(format!("http://{address}")).unwrap()
    }

    fn query(number: usize, text: &str) -> Query {
        Query {
            query_id: format!("q-{number}"),
            query_text: text.into(),
            ..Query::default()
        }
    }

    fn namespace() -> Namespace {
        Namespace::parse("cards").unwrap()
    }

    #[tokio::test]
    async fn queries_are_sent_in_batches_and_an_invalid_one_takes_no_other_with_it() {
        let service = Arc::new(Service::default());
        let lifecycle = Lifecycle::new();
        let recorder = serve(&service).await.recorder(&namespace(), &lifecycle);
        for number in 0..250 {
            assert!(recorder.query(query(number, if number == 7 { "bad" } else { "cards" })));
        }
        assert!(recorder.interaction(QueryInteraction::default()));
        recorder.flush().await;
        let counts = recorder.counts();
        assert_eq!((counts.sent, counts.dropped, counts.invalid), (250, 0, 1));
        let mut sent = service.calls.lock().await.concat();
        sent.sort();
        sent.dedup();
        assert_eq!(sent.len(), 249);
        lifecycle.shutdown(Duration::from_secs(5)).await;
        assert!(!recorder.query(query(0, "cards")), "it has stopped");
        assert_eq!(recorder.counts().dropped, 1);
    }

    #[tokio::test]
    async fn what_the_service_has_no_room_for_is_sent_again() {
        let service = Arc::new(Service {
            room_at_first: Some(2),
            ..Service::default()
        });
        let lifecycle = Lifecycle::new();
        let recorder = serve(&service).await.recorder(&namespace(), &lifecycle);
        (0..5).for_each(|number| assert!(recorder.query(query(number, "cards"))));
        // What is queued is sent when the program stops.
        lifecycle.shutdown(Duration::from_secs(5)).await;
        assert_eq!(recorder.counts().sent, 5);
        assert_eq!(
            service.calls.lock().await.concat(),
            ["q-0", "q-1", "q-2", "q-3", "q-4"]
        );
    }

    #[tokio::test]
    async fn a_service_that_is_away_costs_a_search_nothing_and_the_loss_is_counted() {
        let lifecycle = Lifecycle::new();
        let client = FeedbackClient::new("http://127.0.0.1:1").unwrap();
        let recorder =
            client
                .deadline(Duration::from_millis(200))
                .recorder_holding(3, &namespace(), &lifecycle);
        let queued = (0..10)
            .filter(|number| recorder.query(query(*number, "cards")))
            .count();
        assert_eq!((queued, recorder.counts().dropped), (3, 7));
        recorder.flush().await;
        assert_eq!(recorder.counts().dropped, 10);
        lifecycle.shutdown(Duration::from_secs(5)).await;
    }
}
