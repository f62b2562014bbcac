//! Whether learning-svc accepts the credentials of this service: tried at start-up, because nothing that waits in the outbox is
//! delivered otherwise, and nobody would notice before the first correction.

use std::time::Duration;

use emend_base::{
    Backoff, BackoffConfig, Entropy,
    bearer::TokenFile,
    status::explain,
    tls::{Remote, TrustError},
};
use emend_proto::learning::v1::{GetStandingsRequest, ingest_service_client::IngestServiceClient};
use emend_serve::health::Readiness;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request};

/// Readiness condition: learning-svc does not refuse this service, as far as it has answered.
pub(crate) const LEARNING: &str = "learning";

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What learning-svc makes of the credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It accepts them.
    Accepted,
    /// It refuses them.
    Refused(String),
    /// One side does not trust the other.
    Untrusted(String),
    /// It does not answer now.
    Unknown,
}

/// Calls learning-svc with these credentials, and asks for nothing.
pub(crate) async fn tried(remote: &Remote, token: Option<&TokenFile>) -> Tried {
    let call = async {
        let channel = match remote.connect().await {
            Ok(channel) => channel,
            Err(error) => {
                let untrusted = TrustError::within(&error).map(ToString::to_string);
                return untrusted.map_or(Tried::Unknown, Tried::Untrusted);
            }
        };
        let mut call = Request::new(GetStandingsRequest::default());
        if let Some(token) = token {
            token.authorize(&mut call);
        }
        match IngestServiceClient::new(channel).get_standings(call).await {
            Err(status) if matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) => {
                Tried::Refused(explain(&status))
            }
            // Who may not call is refused before the request is looked at.
            Ok(_) => Tried::Accepted,
            Err(status) if status.code() == Code::InvalidArgument => Tried::Accepted,
            Err(_) => Tried::Unknown,
        }
    };
    timeout(PATIENCE, call).await.unwrap_or(Tried::Unknown)
}

/// Tries the credentials until learning-svc has accepted them once.
#[derive(Debug)]
pub(crate) struct CredentialsCheck {
    pub(crate) remote: Remote,
    pub(crate) token: Option<TokenFile>,
    pub(crate) readiness: Readiness,
    pub(crate) entropy: Entropy,
}

impl CredentialsCheck {
    /// Reports what learning-svc makes of the credentials now; whether it accepts them. While it does not answer, this service is
    /// ready: it takes corrections, and delivers them later.
    pub(crate) async fn run_once(&self) -> bool {
        let tried = tried(&self.remote, self.token.as_ref()).await;
        let note = match &tried {
            Tried::Refused(reason) => Some(format!("refuses this service: {reason}")),
            Tried::Untrusted(reason) => Some(format!("no secure connection: {reason}")),
            Tried::Accepted | Tried::Unknown => None,
        };
        self.readiness.set(LEARNING, !matches!(tried, Tried::Refused(_)));
        self.readiness.note(LEARNING, note);
        tried == Tried::Accepted
    }

    pub(crate) async fn run(self, soft: CancellationToken) {
        let pauses = BackoffConfig {
            max: LONGEST_PAUSE,
            ..BackoffConfig::default()
        };
        let mut pauses = Backoff::new(pauses, self.entropy.clone());
        let rounds = async {
            let mut is_refused = false;
            while !self.run_once().await {
                let refuses = self.readiness.failing().contains(&LEARNING);
                if refuses && !is_refused {
                    tracing::error!(
                        "learning-svc refuses the credentials of this service: nothing is learned until --learning-token-file holds the \
                         token of a caller that it knows as an ingester"
                    );
                }
                is_refused = refuses;
                sleep(pauses.next()).await;
            }
        };
        tokio::select! {
            () = soft.cancelled() => {}
            () = rounds => {}
        }
    }
}
