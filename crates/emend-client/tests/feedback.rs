//! The feedback client against a server on a real socket.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use emend_base::Entropy;
use emend_client::{FeedbackClient, Submission};
use emend_core::{FeedbackId, Namespace};
use emend_proto::{
    common::v1::{ItemStatus, Outcome, OutcomeState},
    feedback::v1::{
        self as pb, BatchSubmitFeedbackRequest, BatchSubmitFeedbackResponse, BatchSubmitFeedbackResult,
        Feedback, SubmitFeedbackRequest, SubmitFeedbackResponse,
        feedback_service_server::{FeedbackService, FeedbackServiceServer},
    },
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status, async_trait, transport::Server};
use tonic_types::{ErrorDetails, StatusExt as _};

const ID: &str = "0192d3c5-7a0e-7b51-9c55-3d5f0a4e8f10";

/// Returns the scripted answers, then success, and records what it is sent.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    failures: VecDeque<Status>,
    seen: Vec<SubmitFeedbackRequest>,
    retracted: u32,
}

impl Fake {
    fn next(&self, request: SubmitFeedbackRequest) -> Result<Feedback, Status> {
        let mut script = self.0.lock().expect("not poisoned");
        script.seen.push(request.clone());
        match script.failures.pop_front() {
            Some(status) => Err(status),
            None => Ok(stored(request.request_id)),
        }
    }
}

fn stored(request_id: String) -> Feedback {
    Feedback {
        feedback_id: ID.into(),
        request_id,
        outcome: Some(Outcome {
            state: OutcomeState::Applied.into(),
            revision: 7,
            ..Outcome::default()
        }),
        ..Feedback::default()
    }
}

#[async_trait]
impl FeedbackService for Fake {
    async fn submit_feedback(
        &self,
        request: Request<SubmitFeedbackRequest>,
    ) -> Result<Response<SubmitFeedbackResponse>, Status> {
        assert!(request.metadata().contains_key("grpc-timeout"));
        let feedback = Some(self.next(request.into_inner())?);
        Ok(Response::new(SubmitFeedbackResponse { feedback }))
    }

    async fn batch_submit_feedback(
        &self,
        request: Request<BatchSubmitFeedbackRequest>,
    ) -> Result<Response<BatchSubmitFeedbackResponse>, Status> {
        let result = |request| match self.next(request) {
            Ok(feedback) => BatchSubmitFeedbackResult {
                status: None,
                feedback: Some(feedback),
                ..BatchSubmitFeedbackResult::default()
            },
            Err(status) => BatchSubmitFeedbackResult {
                status: Some(ItemStatus {
                    code: status.code().into(),
                    message: status.message().into(),
                    details: Vec::new(),
                }),
                ..BatchSubmitFeedbackResult::default()
            },
        };
        let results = request.into_inner().requests.into_iter().map(result).collect();
        Ok(Response::new(BatchSubmitFeedbackResponse { results }))
    }

    async fn get_feedback(
        &self,
        _: Request<pb::GetFeedbackRequest>,
    ) -> Result<Response<pb::GetFeedbackResponse>, Status> {
        Ok(Response::new(pb::GetFeedbackResponse { feedback: None }))
    }

    async fn list_feedback(
        &self,
        _: Request<pb::ListFeedbackRequest>,
    ) -> Result<Response<pb::ListFeedbackResponse>, Status> {
        Err(Status::unimplemented("not part of the fake"))
    }

    async fn update_feedback_labels(
        &self,
        _: Request<pb::UpdateFeedbackLabelsRequest>,
    ) -> Result<Response<pb::UpdateFeedbackLabelsResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn retract_feedback(
        &self,
        request: Request<pb::RetractFeedbackRequest>,
    ) -> Result<Response<pb::RetractFeedbackResponse>, Status> {
        let mut script = self.0.lock().expect("not poisoned");
        script.retracted += 1;
        assert_eq!(request.get_ref().feedback_id, ID);
        Ok(Response::new(pb::RetractFeedbackResponse {
            feedback: Some(stored(String::new())),
        }))
    }

    async fn redact_feedback(
        &self,
        _: Request<pb::RedactFeedbackRequest>,
    ) -> Result<Response<pb::RedactFeedbackResponse>, Status> {
        Err(Status::unimplemented("not part of the fake"))
    }

    async fn redact_reporter(
        &self,
        _: Request<pb::RedactReporterRequest>,
    ) -> Result<Response<pb::RedactReporterResponse>, Status> {
        Err(Status::unimplemented("not part of the fake"))
    }

    async fn list_dead_letters(
        &self,
        _: Request<pb::ListDeadLettersRequest>,
    ) -> Result<Response<pb::ListDeadLettersResponse>, Status> {
        Err(Status::unimplemented("not part of the fake"))
    }

    async fn redrive_dead_letters(
        &self,
        _: Request<pb::RedriveDeadLettersRequest>,
    ) -> Result<Response<pb::RedriveDeadLettersResponse>, Status> {
        Err(Status::unimplemented("not part of the fake"))
    }
}

async fn started(failures: impl IntoIterator<Item = Status>) -> (Fake, FeedbackClient, JoinHandle<()>) {
    let fake = Fake::default();
    fake.0.lock().expect("not poisoned").failures.extend(failures);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let uri = format!("http://{}", listener.local_addr().expect("bound"));
    let service = FeedbackServiceServer::new(fake.clone());
    let serving = tokio::spawn(async move {
        let served = Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        served.await.expect("serves");
    });
    let client = FeedbackClient::new(uri)
        .expect("valid")
        .entropy(Entropy::seeded(1))
        .deadline(Duration::from_secs(20));
    (fake, client, serving)
}

fn submission() -> Submission {
    Submission::verb("fund-admin", "Set up a CSA", "create_csa")
        .system_choice("create_isda")
        .reporter("jane")
}

#[tokio::test]
async fn a_submission_is_retried_with_its_request_id_while_the_server_is_down() {
    let (fake, client, _serving) =
        started([Status::unavailable("down"), Status::resource_exhausted("busy")]).await;
    let recorded = client.submit(submission()).await.unwrap();
    assert_eq!(recorded.feedback_id, FeedbackId::parse(ID).unwrap());
    assert_eq!(recorded.applied_revision().unwrap().0, 7);
    let script = fake.0.lock().unwrap();
    let ids: Vec<_> = script
        .seen
        .iter()
        .map(|request| request.request_id.clone())
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(
        ids[0].len() == 36 && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
    assert_eq!(recorded.feedback.request_id, ids[0]);
}

#[tokio::test]
async fn two_submissions_have_two_request_ids() {
    let (fake, client, _serving) = started([]).await;
    client.submit(submission()).await.unwrap();
    client.submit(submission()).await.unwrap();
    let script = fake.0.lock().unwrap();
    assert_ne!(script.seen[0].request_id, script.seen[1].request_id);
}

#[tokio::test]
async fn an_error_names_every_violated_field() {
    let mut details = ErrorDetails::new();
    details.add_bad_request_violation("namespace", "is required");
    details.add_bad_request_violation("correction.verb.correct_choice", "is required");
    let refused = Status::with_error_details(Code::InvalidArgument, "invalid argument", details);
    let (fake, client, _serving) = started([refused]).await;
    let error = client.submit(submission()).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let fields: Vec<_> = error
        .0
        .field_violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["namespace", "correction.verb.correct_choice"]);
    assert!(
        error
            .to_string()
            .contains("correction.verb.correct_choice: is required")
    );
    assert_eq!(fake.0.lock().unwrap().seen.len(), 1, "not retried");
}

#[tokio::test]
async fn only_the_items_of_a_batch_that_may_still_succeed_are_retried() {
    let (fake, client, _serving) =
        started([Status::unavailable("down"), Status::invalid_argument("bad")]).await;
    let results = client
        .submit_all(vec![submission(), submission(), submission()], false)
        .await
        .unwrap();
    assert!(results[0].is_ok());
    assert_eq!(results[1].as_ref().unwrap_err().code(), Code::InvalidArgument);
    assert!(results[2].is_ok());
    let script = fake.0.lock().unwrap();
    assert_eq!(script.seen.len(), 4);
    assert_eq!(script.seen[3].request_id, script.seen[0].request_id);
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_after_the_deadline() {
    let client = FeedbackClient::new("http://127.0.0.1:1")
        .unwrap()
        .deadline(Duration::from_millis(200));
    let error = client.submit(submission()).await.unwrap_err();
    assert!(
        matches!(error.code(), Code::Unavailable | Code::DeadlineExceeded),
        "{error}"
    );
}

#[tokio::test]
async fn a_correction_is_retracted() {
    let (fake, client, _serving) = started([]).await;
    let (namespace, id) = (
        Namespace::parse("fund-admin").unwrap(),
        FeedbackId::parse(ID).unwrap(),
    );
    client.retract(&namespace, id, "a mistake", true).await.unwrap();
    assert_eq!(fake.0.lock().unwrap().retracted, 1);
    // A nonsensical answer is an error, not a panic.
    assert_eq!(
        client.get(&namespace, id).await.unwrap_err().code(),
        Code::Internal
    );
}
