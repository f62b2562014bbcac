//! A scripted learning-svc on a socket, which remembers what it was sent.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use emend_base::{Entropy, Error, Lifecycle, error::PreconditionViolation};
use emend_core::InstallationId;
use emend_proto::{
    common::v1::{ItemStatus, Outcome, OutcomeState, Standing},
    learning::v1::{
        Event, EventResult, FeedbackStandings, GetStandingsRequest, GetStandingsResponse, IngestRequest,
        IngestResponse, event, event_result,
        ingest_service_server::{IngestService, IngestServiceServer},
    },
};
use emend_serve::{Server, health::Readiness};
use futures::{Stream, StreamExt as _};
use tokio::net::TcpListener;
use tonic::{Code, Request, Response, Status, Streaming};

/// What it does with batches from now on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Behaviour {
    Evaluates,
    /// Answers each event with this code.
    Refuses(Code),
    /// Reads and never answers.
    Silent,
    /// Ends the stream instead of answering, once.
    BreaksOnce,
    /// Does not accept the credentials of whoever calls.
    KnowsNobody,
}

/// Remembers across restarts. Clones share its memory.
#[derive(Debug, Clone)]
pub(super) struct Learning(Arc<State>);

#[derive(Debug)]
struct State {
    behaviour: Mutex<Behaviour>,
    received: Mutex<Vec<Event>>,
    /// How many batches it did not answer.
    unanswered: AtomicUsize,
    /// How many feedbacks each call asked about.
    asked: Mutex<Vec<usize>>,
    /// The installation that it says it is.
    installation: Mutex<Option<InstallationId>>,
}

impl Learning {
    pub(super) fn new() -> Self {
        Self(Arc::new(State {
            behaviour: Mutex::new(Behaviour::Evaluates),
            received: Mutex::default(),
            unanswered: AtomicUsize::new(0),
            asked: Mutex::default(),
            installation: Mutex::default(),
        }))
    }

    /// From now on it says that it is this installation, and refuses batches for others.
    pub(super) fn is(&self, installation: InstallationId) {
        *self.0.installation.lock().unwrap() = Some(installation);
    }

    pub(super) fn becomes(&self, behaviour: Behaviour) {
        *self.0.behaviour.lock().unwrap() = behaviour;
    }

    pub(super) fn received(&self) -> Vec<Event> {
        self.0.received.lock().unwrap().clone()
    }

    /// How many batches it did not answer.
    pub(super) fn unanswered(&self) -> usize {
        self.0.unanswered.load(Ordering::SeqCst)
    }

    /// How many feedbacks each call for standings has asked about since the last look, the fewest first.
    pub(super) fn asked(&self) -> Vec<usize> {
        let mut asked = std::mem::take(&mut *self.0.asked.lock().unwrap());
        asked.sort_unstable();
        asked
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
        let mut behaviour = self.0.behaviour.lock().unwrap();
        if let Behaviour::BreaksOnce = *behaviour {
            *behaviour = Behaviour::Evaluates;
            return Err(Status::internal("broken"));
        }
        if let Behaviour::KnowsNobody = *behaviour {
            return Err(unknown());
        }
        if let Behaviour::Silent = *behaviour {
            self.0.unanswered.fetch_add(1, Ordering::SeqCst);
            return Ok(None);
        }
        let installation_id = self.installation_for(&batch.installation_id)?;
        self.0.received.lock().unwrap().extend_from_slice(&batch.events);
        let results = batch.events.iter().map(|event| EventResult {
            event_id: event.event_id.clone(),
            result: Some(match *behaviour {
                Behaviour::Refuses(code) => event_result::Result::Error(ItemStatus {
                    code: code.into(),
                    message: "refused".into(),
                    details: Vec::new(),
                }),
                _ => event_result::Result::Outcome(outcome(event)),
            }),
        });
        Ok(Some(IngestResponse {
            results: results.collect(),
            installation_id,
        }))
    }

    /// Its installation, if a call may be meant for it.
    fn installation_for(&self, meant: &str) -> Result<String, Status> {
        let Some(own) = *self.0.installation.lock().unwrap() else {
            return Ok(String::new());
        };
        let own = own.to_string();
        if meant.is_empty() || meant == own {
            return Ok(own);
        }
        Err(Error::FailedPrecondition {
            reason: "INSTALLATION_MISMATCH",
            message: format!("meant for {meant}"),
            violations: vec![PreconditionViolation {
                kind: "INSTALLATION".into(),
                subject: own,
                description: "the installation that answers".to_owned(),
            }],
        }
        .into())
    }
}

fn unknown() -> Status {
    Status::unauthenticated("the credentials are not accepted")
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

    async fn get_standings(
        &self,
        request: Request<GetStandingsRequest>,
    ) -> Result<Response<GetStandingsResponse>, Status> {
        let request = request.into_inner();
        let behaviour = *self.0.behaviour.lock().unwrap();
        if let Behaviour::KnowsNobody = behaviour {
            return Err(unknown());
        }
        if request.feedback_ids.is_empty() {
            return Err(Status::invalid_argument("feedback_ids: is required"));
        }
        self.0.asked.lock().unwrap().push(request.feedback_ids.len());
        if let Behaviour::Silent = behaviour {
            std::future::pending::<()>().await;
        }
        self.installation_for(&request.installation_id)?;
        let standing = |feedback_id| FeedbackStandings {
            feedback_id,
            effects: vec![Standing {
                state: OutcomeState::Withdrawn.into(),
                reason: "RETRACTED".into(),
                ..Standing::default()
            }],
        };
        Ok(Response::new(GetStandingsResponse {
            standings: request.feedback_ids.into_iter().map(standing).collect(),
        }))
    }
}
