//! A scripted learning-svc on a socket, which remembers what it was sent.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use emend_base::{Entropy, Lifecycle};
use emend_proto::{
    common::v1::{ItemStatus, Outcome, OutcomeState},
    learning::v1::{
        Event, EventResult, IngestRequest, IngestResponse, event, event_result,
        ingest_service_server::{IngestService, IngestServiceServer},
    },
};
use emend_serve::{Server, health::Readiness};
use futures::{Stream, StreamExt as _};
use tokio::net::TcpListener;
use tonic::{Code, Request, Response, Status, Streaming};

/// What it does with batches from now on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mood {
    Evaluates,
    /// Answers each event with this code.
    Refuses(Code),
    /// Reads and never answers.
    Silent,
    /// Ends the stream instead of answering, once.
    BreaksOnce,
}

/// Remembers across restarts. Clones share its memory.
#[derive(Debug, Clone)]
pub(super) struct Learning(Arc<State>);

#[derive(Debug)]
struct State {
    mood: Mutex<Mood>,
    received: Mutex<Vec<Event>>,
    /// How many batches it did not answer.
    unanswered: AtomicUsize,
}

impl Learning {
    pub(super) fn new() -> Self {
        Self(Arc::new(State {
            mood: Mutex::new(Mood::Evaluates),
            received: Mutex::default(),
            unanswered: AtomicUsize::new(0),
        }))
    }

    pub(super) fn becomes(&self, mood: Mood) {
        *self.0.mood.lock().unwrap() = mood;
    }

    pub(super) fn received(&self) -> Vec<Event> {
        self.0.received.lock().unwrap().clone()
    }

    /// How many batches it did not answer.
    pub(super) fn unanswered(&self) -> usize {
        self.0.unanswered.load(Ordering::SeqCst)
    }

    /// The events of one feedback.
    pub(super) fn received_of(&self, feedback_id: &str) -> Vec<event::Event> {
        let received = self
            .received()
            .into_iter()
            .filter(|event| event.feedback_id == feedback_id);
        received.filter_map(|event| event.event).collect()
    }

    /// Serves on a free port.
    pub(super) async fn serve(&self) -> (String, Lifecycle) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (address.to_string(), self.serve_on(listener))
    }

    /// Serves at the address where it was expected.
    pub(super) async fn serve_at(&self, address: SocketAddr) -> Lifecycle {
        self.serve_on(TcpListener::bind(address).await.unwrap())
    }

    fn serve_on(&self, listener: TcpListener) -> Lifecycle {
        let lifecycle = Lifecycle::new();
        Server::new(emend_proto::DESCRIPTOR_SET, Readiness::new(), Entropy::system())
            .add_service(IngestServiceServer::new(self.clone()), &[])
            .serve(listener, &lifecycle)
            .unwrap();
        lifecycle
    }

    fn answer(&self, batch: &IngestRequest) -> Result<Option<IngestResponse>, Status> {
        let mut mood = self.0.mood.lock().unwrap();
        if let Mood::BreaksOnce = *mood {
            *mood = Mood::Evaluates;
            return Err(Status::internal("broken"));
        }
        if let Mood::Silent = *mood {
            self.0.unanswered.fetch_add(1, Ordering::SeqCst);
            return Ok(None);
        }
        self.0.received.lock().unwrap().extend_from_slice(&batch.events);
        let results = batch.events.iter().map(|event| EventResult {
            event_id: event.event_id.clone(),
            result: Some(match *mood {
                Mood::Refuses(code) => event_result::Result::Error(ItemStatus {
                    code: code.into(),
                    message: "refused".into(),
                    details: Vec::new(),
                }),
                _ => event_result::Result::Outcome(outcome(event)),
            }),
        });
        Ok(Some(IngestResponse {
            results: results.collect(),
            ..Default::default()
        }))
    }
}

fn outcome(event: &Event) -> Outcome {
    match &event.event {
        Some(event::Event::Retracted(_)) => Outcome {
            state: OutcomeState::NoEffect.into(),
            reason: "RETRACTED".into(),
            ..Outcome::default()
        },
        _ => Outcome {
            state: OutcomeState::Applied.into(),
            message: "Learned.".into(),
            revision: event.accept_order,
            ..Outcome::default()
        },
    }
}

#[tonic::async_trait]
impl IngestService for Learning {
    type IngestStream = Pin<Box<dyn Stream<Item = Result<IngestResponse, Status>> + Send>>;

    async fn ingest(
        &self,
        request: Request<Streaming<IngestRequest>>,
    ) -> Result<Response<Self::IngestStream>, Status> {
        let learning = self.clone();
        let answers = request.into_inner().filter_map(move |batch| {
            let answer = batch.and_then(|batch| learning.answer(&batch)).transpose();
            async move { answer }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}
