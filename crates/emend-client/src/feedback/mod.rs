//! A typed client of the feedback service, for backends.
//!
//! Every submission carries a request id, which makes it idempotent: the client retries while the server is unreachable
//! or overloaded, until the deadline. A [`QueryRecorder`] sends what was searched in the background.

mod any;
mod recorder;
mod retry;
mod submission;

use std::{collections::HashMap, path::Path, time::Duration};

use emend_base::{
    Backoff, BackoffConfig, Entropy,
    bearer::TokenFile,
    status::{Explained, NO_ANSWER, NO_ANSWER_TO_CHANGE, from_item_status},
    tls::Remote,
};
use emend_core::{FeedbackId, Namespace};
use emend_proto::{
    common::v1::{Outcome, OutcomeState},
    feedback::v1::{
        BatchSubmitFeedbackRequest, BatchSubmitFeedbackResponse, Feedback, GetFeedbackRequest,
        ListFeedbackRequest, ListFeedbackResponse, RetractFeedbackRequest, Wait,
        feedback_service_client::FeedbackServiceClient,
    },
};
use tokio::time::{Instant, sleep_until};
use tonic::{Code, Status, metadata::MetadataMap, transport::Channel};

use self::retry::{next_attempt, retry};
pub use self::{
    any::{Effect, EncodedCall},
    recorder::{QueryRecorder, RecorderCounts},
    submission::Submission,
};
use crate::{ConfigError, ServerAddress};

/// How long a call may take by default.
const DEADLINE: Duration = Duration::from_secs(10);
/// Interval and timeout of keep-alive pings on a silent connection with calls under way. They detect a dead connection
/// while there is time for another attempt: a retry left to the caller would carry another request id and might be
/// counted twice. A proxy in between must allow pings this frequent.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(2));

/// Why a call failed. `Display` shows all of it, with a line for each violated field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub Explained);

impl CallError {
    /// The gRPC code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Whether a correction that was submitted may be stored although the call failed: there was no answer in time. It is
    /// stored once if it is submitted again with the same request id ([`Submission::request_id`]).
    pub fn may_be_stored(&self) -> bool {
        self.code() == Code::DeadlineExceeded
    }

    /// A stable reason in `UPPER_SNAKE_CASE`, if the server gave one.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self(status.into())
    }
}

/// A stored correction.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its id.
    pub feedback_id: FeedbackId,
    /// The feedback as stored, with its current outcome.
    pub feedback: Feedback,
}

impl Recorded {
    /// Its outcome so far.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.feedback.outcome.as_ref()
    }

    /// The state of its outcome.
    pub fn state(&self) -> OutcomeState {
        self.outcome().map_or(OutcomeState::Unspecified, Outcome::state)
    }

    /// If it is applied, the revision that applied its value. A node's view can wait for it.
    pub fn applied_revision(&self) -> Option<emend_core::Revision> {
        let outcome = self
            .outcome()
            .filter(|outcome| outcome.state() == OutcomeState::Applied)?;
        Some(emend_core::Revision(outcome.revision))
    }

    fn parse(feedback: Option<Feedback>) -> Result<Self, Status> {
        let feedback = feedback.ok_or_else(|| Status::internal("the server's response has no feedback"))?;
        let feedback_id = FeedbackId::parse(&feedback.feedback_id).map_err(|invalid| {
            Status::internal(format!(
                "the server's response has an invalid feedback_id: it {invalid}"
            ))
        })?;
        Ok(Self {
            feedback_id,
            feedback,
        })
    }
}

/// Submits corrections. Clones share a connection.
#[derive(Debug, Clone)]
pub struct FeedbackClient {
    remote: Remote,
    channel: Channel,
    headers: MetadataMap,
    token: Option<TokenFile>,
    deadline: Duration,
    backoff: BackoffConfig,
    entropy: Entropy,
}

impl FeedbackClient {
    /// A client of the feedback-svc at `address`. It connects on the first call and reconnects when the connection is
    /// lost.
    pub fn new(address: impl Into<ServerAddress>) -> Result<Self, ConfigError> {
        let remote = address
            .into()
            .remote()?
            .map(|endpoint| endpoint.connect_timeout(Duration::from_secs(5)).tcp_nodelay(true))
            .keep_alive(KEEP_ALIVE.0, KEEP_ALIVE.1);
        Ok(Self {
            channel: remote.connect_lazy(),
            remote,
            headers: MetadataMap::new(),
            token: None,
            deadline: DEADLINE,
            backoff: BackoffConfig {
                max: Duration::from_secs(2),
                ..BackoffConfig::default()
            },
            entropy: Entropy::system(),
        })
    }

    /// How long a call may take, including all attempts. Default: 10 s.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Interval and timeout of keep-alive pings while calls are under way. After the timeout the connection is closed
    /// and its calls are retried. Default: 3 s, 2 s.
    #[must_use]
    pub fn keep_alive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.remote = self.remote.keep_alive(interval, timeout);
        self.channel = self.remote.connect_lazy();
        self
    }

    /// Headers sent with every call, for example `authorization`.
    #[must_use]
    pub fn headers(mut self, headers: MetadataMap) -> Self {
        self.headers = headers;
        self
    }

    /// Sends the bearer token in this file with every call; the file is read each time. Default: none.
    #[must_use]
    pub fn token_file(mut self, path: impl AsRef<Path>) -> Self {
        self.token = Some(TokenFile::new(path));
        self
    }

    /// How long to wait between attempts. Default: 100 ms, doubling up to 2 s, with jitter.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.backoff = backoff;
        self
    }

    /// The source of request ids and jitter. Default: the operating system.
    #[must_use]
    pub fn entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// Stores one correction. `Ok` means stored: it will not be lost.
    pub async fn submit(&self, submission: Submission) -> Result<Recorded, CallError> {
        let request = self.with_request_id(submission);
        let response = self
            .call(NO_ANSWER_TO_CHANGE, |mut client, left| {
                let request = self.request(left, request.clone());
                async move { client.submit_feedback(request).await }
            })
            .await?;
        Ok(Recorded::parse(response.feedback)?)
    }

    /// Stores up to 100 corrections and returns a result for each, in order. Returns once all are evaluated if
    /// `evaluated`, otherwise once they are stored. Only those that failed transiently are retried.
    pub async fn submit_all(
        &self,
        submissions: Vec<Submission>,
        evaluated: bool,
    ) -> Result<Vec<Result<Recorded, CallError>>, CallError> {
        let deadline = Instant::now() + self.deadline;
        let mut backoff = self.new_backoff();
        let wait = if evaluated {
            Wait::Evaluated
        } else {
            Wait::Recorded
        };
        let mut unanswered: Vec<_> = submissions
            .into_iter()
            .map(|submission| self.with_request_id(submission))
            .enumerate()
            .collect();
        let mut results: HashMap<usize, Result<Recorded, CallError>> = HashMap::new();
        let count = unanswered.len();
        loop {
            let requests = unanswered.iter().map(|(_, request)| request.clone()).collect();
            let batch = BatchSubmitFeedbackRequest {
                requests,
                wait: wait.into(),
            };
            let answered = retry(deadline, NO_ANSWER_TO_CHANGE, self.new_backoff(), |time| {
                let (mut client, request) = (self.client(), self.request(time, batch.clone()));
                async move { client.batch_submit_feedback(request).await }
            });
            let answered = match answered.await {
                Ok(answered) => answered.into_inner(),
                Err(status) if results.is_empty() => return Err(status.into()),
                // Some already have a result.
                Err(status) => {
                    results.extend(
                        unanswered
                            .iter()
                            .map(|(index, _)| (*index, Err(status.clone().into()))),
                    );
                    break;
                }
            };
            let statuses = outcomes(answered, unanswered.len())?;
            let mut again = Vec::new();
            let mut at = None;
            for ((index, request), outcome) in unanswered.into_iter().zip(statuses) {
                let next = outcome
                    .as_ref()
                    .err()
                    .and_then(|status| next_attempt(status, &mut backoff, deadline));
                if next.is_some() {
                    at = at.max(next);
                    again.push((index, request));
                }
                results.insert(index, outcome.map_err(CallError::from));
            }
            let Some(at) = at else { break };
            unanswered = again;
            sleep_until(at).await;
        }
        Ok((0..count).filter_map(|index| results.remove(&index)).collect())
    }

    /// One feedback with its current outcome.
    pub async fn get(&self, namespace: &Namespace, feedback_id: FeedbackId) -> Result<Recorded, CallError> {
        let message = GetFeedbackRequest {
            namespace: namespace.to_string(),
            feedback_id: feedback_id.to_string(),
        };
        let response = self
            .call(NO_ANSWER, |mut client, left| {
                let request = self.request(left, message.clone());
                async move { client.get_feedback(request).await }
            })
            .await?;
        Ok(Recorded::parse(response.feedback)?)
    }

    /// A page of feedback, newest first.
    pub async fn list(&self, message: ListFeedbackRequest) -> Result<ListFeedbackResponse, CallError> {
        self.call(NO_ANSWER, |mut client, left| {
            let request = self.request(left, message.clone());
            async move { client.list_feedback(request).await }
        })
        .await
    }

    /// Retracts a correction. Idempotent. Returns once the retraction is evaluated if `evaluated`, otherwise once it is
    /// stored.
    pub async fn retract(
        &self,
        namespace: &Namespace,
        feedback_id: FeedbackId,
        reason: &str,
        evaluated: bool,
    ) -> Result<Recorded, CallError> {
        let message = RetractFeedbackRequest {
            namespace: namespace.to_string(),
            feedback_id: feedback_id.to_string(),
            reason: reason.to_owned(),
            wait: if evaluated {
                Wait::Evaluated
            } else {
                Wait::Recorded
            }
            .into(),
        };
        let response = self
            .call(NO_ANSWER_TO_CHANGE, |mut client, left| {
                let request = self.request(left, message.clone());
                async move { client.retract_feedback(request).await }
            })
            .await?;
        Ok(Recorded::parse(response.feedback)?)
    }

    fn with_request_id(
        &self,
        Submission(mut request): Submission,
    ) -> emend_proto::feedback::v1::SubmitFeedbackRequest {
        if request.request_id.is_empty() {
            request.request_id = self.entropy.uuid_v4().to_string();
        }
        request
    }

    async fn call<T, F>(
        &self,
        unanswered: &'static str,
        mut call: impl FnMut(FeedbackServiceClient<Channel>, Duration) -> F,
    ) -> Result<T, CallError>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let deadline = Instant::now() + self.deadline;
        let answered = retry(deadline, unanswered, self.new_backoff(), |left| {
            call(self.client(), left)
        })
        .await?;
        Ok(answered.into_inner())
    }

    fn client(&self) -> FeedbackServiceClient<Channel> {
        FeedbackServiceClient::new(self.channel.clone())
    }

    fn request<T>(&self, left: Duration, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        *request.metadata_mut() = self.headers.clone();
        // A trace context always parses as a header value.
        #[cfg(feature = "traces")]
        if let Some(traceparent) =
            emend_base::span::current().and_then(|current| current.as_str().parse().ok())
        {
            request.metadata_mut().insert("traceparent", traceparent);
        }
        if let Some(token) = &self.token {
            token.authorize(&mut request);
        }
        // Tells the server the deadline, so that it answers in time.
        request.set_timeout(left);
        request
    }

    fn new_backoff(&self) -> Backoff {
        Backoff::new(self.backoff, self.entropy.clone())
    }
}

/// The result of each item. Fails unless there is one for each that was sent.
fn outcomes(
    response: BatchSubmitFeedbackResponse,
    sent: usize,
) -> Result<Vec<Result<Recorded, Status>>, Status> {
    if response.results.len() != sent {
        return Err(Status::internal("the server did not answer for every item"));
    }
    let outcome = |result: emend_proto::feedback::v1::BatchSubmitFeedbackResult| match result
        .status
        .as_ref()
        .and_then(from_item_status)
    {
        Some(status) => Err(status),
        None => Recorded::parse(result.feedback),
    };
    Ok(response.results.into_iter().map(outcome).collect())
}
