//! The two services, called with the token of the person at the browser.

use std::time::Duration;

use emend_base::tls::{KEEP_ALIVE, Remote};
use emend_proto::{
    access::v1::access_service_client::AccessServiceClient,
    feedback::v1::{
        feedback_service_client::FeedbackServiceClient, query_service_client::QueryServiceClient,
        settings_service_client::SettingsServiceClient,
    },
    learning::v1::{
        candidate_service_client::CandidateServiceClient, evidence_service_client::EvidenceServiceClient,
        output_service_client::OutputServiceClient, policy_service_client::PolicyServiceClient,
        profile_service_client::ProfileServiceClient, resource_service_client::ResourceServiceClient,
        subscription_service_client::SubscriptionServiceClient,
    },
};
use http::HeaderValue;
use tonic::{Request, transport::Channel};

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long one may take that asks a language model.
const MODEL_TIMEOUT: Duration = Duration::from_mins(3);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Connections to both services.
#[derive(Debug, Clone)]
pub struct Services {
    feedback: Channel,
    learning: Channel,
    with_tokens_only: bool,
}

impl Services {
    /// Services at these addresses, connected to on first use, and again when a connection is lost.
    pub fn new(feedback: Remote, learning: Remote) -> Self {
        let connect = |remote: Remote| {
            remote
                .map(|endpoint| endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true))
                .keep_alive(KEEP_ALIVE.0, KEEP_ALIVE.1)
                .connect_lazy()
        };
        Self {
            feedback: connect(feedback),
            learning: connect(learning),
            with_tokens_only: false,
        }
    }

    /// Never called for somebody without a token. Connections with a client certificate need this: whoever has no token would
    /// otherwise act as the certificate's principal.
    #[must_use]
    pub fn with_tokens_only(self) -> Self {
        Self {
            with_tokens_only: true,
            ..self
        }
    }

    /// Called as the one whose `Authorization` this is.
    pub(crate) fn by(&self, authorization: Option<HeaderValue>) -> ServicesAs {
        ServicesAs {
            services: self.clone(),
            authorization,
        }
    }
}

/// The services, called as somebody.
#[derive(Debug, Clone)]
pub(crate) struct ServicesAs {
    services: Services,
    authorization: Option<HeaderValue>,
}

macro_rules! clients {
    ($($(#[$doc:meta])* $name:ident: $client:ident at $side:ident;)*) => {
        impl ServicesAs {
            $($(#[$doc])*
            pub(crate) fn $name(&self) -> $client<Channel> {
                $client::new(self.services.$side.clone())
            })*
        }
    };
}

clients! {
    /// Feedback that was submitted.
    feedback: FeedbackServiceClient at feedback;
    /// Queries and their ratings.
    queries: QueryServiceClient at feedback;
    /// What is done with feedback.
    settings: SettingsServiceClient at feedback;
    /// What the caller may do at feedback-svc.
    feedback_access: AccessServiceClient at feedback;
    /// The review queue.
    candidates: CandidateServiceClient at learning;
    /// What was learned.
    resources: ResourceServiceClient at learning;
    /// The evidence graph.
    evidence: EvidenceServiceClient at learning;
    /// Prompts and their ratings.
    outputs: OutputServiceClient at learning;
    /// What users know and want to learn.
    profiles: ProfileServiceClient at learning;
    /// What it takes to learn something.
    policies: PolicyServiceClient at learning;
    /// The nodes.
    nodes: SubscriptionServiceClient at learning;
    /// What the caller may do at learning-svc.
    learning_access: AccessServiceClient at learning;
}

impl ServicesAs {
    /// Whether they may not be called, for want of a token.
    pub(crate) fn is_nobody(&self) -> bool {
        self.services.with_tokens_only && self.authorization.is_none()
    }

    /// As whom they are called.
    pub(crate) fn authorization(&self) -> Option<&[u8]> {
        self.authorization.as_ref().map(HeaderValue::as_bytes)
    }

    /// A call.
    pub(crate) fn call<T>(&self, message: T) -> Request<T> {
        let mut request = self.stream(message);
        request.set_timeout(TIMEOUT);
        request
    }

    /// A call that may ask a language model.
    pub(crate) fn model_call<T>(&self, message: T) -> Request<T> {
        let mut request = self.stream(message);
        request.set_timeout(MODEL_TIMEOUT);
        request
    }

    /// A call without an end.
    pub(crate) fn stream<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(authorization) = &self.authorization {
            let value = tonic::metadata::MetadataValue::try_from(authorization.as_bytes());
            if let Ok(value) = value {
                request.metadata_mut().insert("authorization", value);
            }
        }
        request
    }
}
