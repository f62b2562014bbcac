//! The context of every command: where the services are, which namespace to use, how long to wait.

mod connection;
mod kept;
mod listing;
mod options;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use emend_base::{
    Entropy, SharedClock, SystemClock,
    bearer::{Token, TokenFile},
    telemetry::Telemetry,
    tls::{ClientTls, KEEP_ALIVE, Remote},
};
use emend_client::{FeedbackClient, Subscriber, SubscriberBuilder};
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
    search::v1::search_service_client::SearchServiceClient,
};
use tonic::{Request, metadata::MetadataMap};

pub(crate) use self::connection::Unreached;
pub use self::{connection::Connection, options::Global};
use self::{connection::Peer, kept::Kept};
use crate::failure::{Failure, Result};

/// The default address of feedback-svc, to connect to or to listen on.
pub const FEEDBACK_ADDR: &str = "127.0.0.1:7401";
/// The default address of learning-svc, to connect to or to listen on.
pub const LEARNING_ADDR: &str = "127.0.0.1:7402";
/// The default namespace.
pub const NAMESPACE: &str = "default";

/// How long a call may take, unless `--timeout` says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// The context of every command.
#[derive(Debug, Clone)]
pub struct Context {
    /// The options given before or after the command.
    pub global: Global,
    /// The source of random ids.
    pub entropy: Entropy,
    /// The clock.
    pub clock: SharedClock,
    /// This process's telemetry.
    pub telemetry: Telemetry,
    /// The token of the caller for whom this process calls, instead of that in a file.
    token: Option<Token>,
    /// Connections that all calls share, in a process that calls for many.
    kept: Option<Arc<Kept>>,
}

impl Context {
    /// A context with the system's clock and randomness.
    pub fn new(global: Global, telemetry: Telemetry) -> Self {
        Self {
            global,
            telemetry,
            entropy: Entropy::system(),
            clock: SystemClock::shared(),
            token: None,
            kept: None,
        }
    }

    /// The same context for a process that calls for many: its calls share one connection to each service and carry no token
    /// but a caller's.
    #[must_use]
    pub fn for_many(&self, feedback: Remote, learning: Remote) -> Self {
        let mut context = self.clone();
        context.global.token_file = None;
        let [feedback, learning] =
            [feedback, learning].map(|remote| remote.keep_alive(KEEP_ALIVE.0, KEEP_ALIVE.1));
        context.kept = Some(Arc::new(Kept::new(feedback, learning)));
        context
    }

    /// The same context with the token of a caller.
    #[must_use]
    pub fn with_token(&self, token: Option<Token>) -> Self {
        Self {
            token,
            ..self.clone()
        }
    }

    /// The same context, but with services running in this process, without TLS.
    #[must_use]
    pub fn at(&self, feedback: SocketAddr, learning: SocketAddr) -> Self {
        let mut context = self.clone();
        context.global.feedback_addr = Some(feedback.to_string());
        context.global.learning_addr = Some(learning.to_string());
        (
            context.global.ca,
            context.global.client_cert,
            context.global.client_key,
        ) = (None, None, None);
        context
    }

    /// The namespace to use.
    pub fn namespace(&self) -> String {
        self.global.namespace.clone().unwrap_or_else(|| NAMESPACE.into())
    }

    /// The text for an empty list. It names the namespace, because the user may have meant another one.
    pub fn none_of(&self, items: &str) -> String {
        format!("No {items} in the namespace {:?}.", self.namespace())
    }

    /// The text for an empty list, of which a filter may have left out what there is.
    pub fn none_found(&self, items: &str, is_filtered: bool) -> String {
        if is_filtered {
            format!("No {items} in the namespace {:?} match.", self.namespace())
        } else {
            self.none_of(items)
        }
    }

    /// feedback-svc's address.
    pub fn feedback_addr(&self) -> &str {
        self.global.feedback_addr.as_deref().unwrap_or(FEEDBACK_ADDR)
    }

    /// learning-svc's address.
    pub fn learning_addr(&self) -> &str {
        self.global.learning_addr.as_deref().unwrap_or(LEARNING_ADDR)
    }

    /// A unique request id, so that a call can be retried safely.
    pub fn request_id(&self) -> String {
        self.entropy.uuid_v7(self.clock.now()).to_string()
    }

    /// A request with the deadline from `--timeout` and the caller's token.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = self.request_without_deadline(message);
        request.set_timeout(self.timeout());
        request
    }

    /// How long a call may take.
    pub fn timeout(&self) -> Duration {
        self.global.timeout.unwrap_or(TIMEOUT)
    }

    /// A request for what a language model may be asked: it waits as long as the service does, unless `--timeout` says how long.
    pub fn request_of_model<T>(&self, message: T) -> Request<T> {
        let mut request = self.request_without_deadline(message);
        if let Some(timeout) = self.global.timeout {
            request.set_timeout(timeout);
        }
        request
    }

    /// A request with the caller's token, for calls that take as long as there is something to send.
    pub fn request_without_deadline<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            token.authorize(&mut request);
        } else if let Some(path) = &self.global.token_file {
            TokenFile::new(path).authorize(&mut request);
        }
        request
    }

    /// A builder for a subscriber with the caller's token.
    pub fn subscriber(&self, node_id: impl Into<String>) -> Result<SubscriberBuilder> {
        let builder = Subscriber::builder(self.learning_remote()?, node_id);
        if let Some(token) = &self.token {
            let mut headers = MetadataMap::new();
            token.authorize_headers(&mut headers);
            return Ok(builder.headers(headers));
        }
        Ok(match &self.global.token_file {
            Some(path) => builder.token_file(path),
            None => builder,
        })
    }

    /// A submitting client that retries, with the caller's token.
    pub fn feedback_client(&self) -> Result<FeedbackClient> {
        let client = FeedbackClient::new(self.feedback_remote()?)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(match &self.global.token_file {
            Some(path) => client.token_file(path),
            None => client,
        })
    }

    /// A client of the feedback service.
    pub async fn feedback(&self) -> Result<FeedbackServiceClient<Connection>> {
        self.feedback_channel().await.map(FeedbackServiceClient::new)
    }

    /// A client of what the caller may do at feedback-svc.
    pub async fn feedback_access(&self) -> Result<AccessServiceClient<Connection>> {
        self.feedback_channel().await.map(AccessServiceClient::new)
    }

    /// A client of what the caller may do at learning-svc.
    pub async fn learning_access(&self) -> Result<AccessServiceClient<Connection>> {
        self.learning_channel().await.map(AccessServiceClient::new)
    }

    /// A client of feedback-svc's queries.
    pub async fn queries(&self) -> Result<QueryServiceClient<Connection>> {
        self.feedback_channel().await.map(QueryServiceClient::new)
    }

    /// A client of feedback-svc's settings.
    pub async fn settings(&self) -> Result<SettingsServiceClient<Connection>> {
        self.feedback_channel().await.map(SettingsServiceClient::new)
    }

    /// A client of the review queue.
    pub async fn candidates(&self) -> Result<CandidateServiceClient<Connection>> {
        self.learning_channel().await.map(CandidateServiceClient::new)
    }

    /// A client of what was learned.
    pub async fn resources(&self) -> Result<ResourceServiceClient<Connection>> {
        self.learning_channel().await.map(ResourceServiceClient::new)
    }

    /// A client of the evidence graph.
    pub async fn evidence(&self) -> Result<EvidenceServiceClient<Connection>> {
        self.learning_channel().await.map(EvidenceServiceClient::new)
    }

    /// A client of what an AI is asked with.
    pub async fn outputs(&self) -> Result<OutputServiceClient<Connection>> {
        self.learning_channel().await.map(OutputServiceClient::new)
    }

    /// A client of what users know and want to learn.
    pub async fn profiles(&self) -> Result<ProfileServiceClient<Connection>> {
        self.learning_channel().await.map(ProfileServiceClient::new)
    }

    /// A client of the policies.
    pub async fn policies(&self) -> Result<PolicyServiceClient<Connection>> {
        self.learning_channel().await.map(PolicyServiceClient::new)
    }

    /// A client of the fleet's state.
    pub async fn subscriptions(&self) -> Result<SubscriptionServiceClient<Connection>> {
        self.learning_channel().await.map(SubscriptionServiceClient::new)
    }

    /// A client of a search node, which gets no token.
    pub async fn search_node(&self, address: &str) -> Result<SearchServiceClient<Connection>> {
        let remote = self.remote(address, "node")?;
        let channel = connect("the search node", address, "node", remote).await?;
        Ok(SearchServiceClient::new(channel))
    }

    /// Checks that the token file can be read: a refusal by the service would explain less.
    fn check_token(&self) -> Result {
        let Some(path) = &self.global.token_file else {
            return Ok(());
        };
        TokenFile::new(path)
            .authorization()
            .map(drop)
            .map_err(|error| Failure::usage(format!("--token-file: {error}")))
    }

    async fn feedback_channel(&self) -> Result<Connection> {
        self.check_token()?;
        let connected = async {
            let remote = self.feedback_remote()?;
            connect("feedback-svc", self.feedback_addr(), "feedback-addr", remote).await
        };
        // Boxed: it is large, and part of every call's future.
        let connected = Box::pin(connected);
        match &self.kept {
            Some(kept) => kept.feedback(connected).await,
            None => connected.await,
        }
    }

    async fn learning_channel(&self) -> Result<Connection> {
        self.check_token()?;
        let connected = async {
            let remote = self.learning_remote()?;
            connect("learning-svc", self.learning_addr(), "learning-addr", remote).await
        };
        // Boxed: it is large, and part of every call's future.
        let connected = Box::pin(connected);
        match &self.kept {
            Some(kept) => kept.learning(connected).await,
            None => connected.await,
        }
    }

    /// Where feedback-svc is, and how connections to it are secured.
    pub fn feedback_remote(&self) -> Result<Remote> {
        if let Some(kept) = &self.kept {
            return Ok(kept.feedback_remote());
        }
        self.remote(self.feedback_addr(), "feedback-addr")
    }

    /// Where learning-svc is, and how connections to it are secured.
    pub fn learning_remote(&self) -> Result<Remote> {
        if let Some(kept) = &self.kept {
            return Ok(kept.learning_remote());
        }
        self.remote(self.learning_addr(), "learning-addr")
    }

    /// Where a service is. TLS options are never silently ignored.
    fn remote(&self, address: &str, flag: &str) -> Result<Remote> {
        let Global {
            ca,
            client_cert,
            client_key,
            ..
        } = &self.global;
        if client_cert.is_some() != client_key.is_some() {
            return Err(Failure::usage(
                "--client-cert and --client-key must be given together",
            ));
        }
        let tls = ClientTls::from_files(ca.as_deref(), client_cert.as_deref(), client_key.as_deref());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let remote =
            Remote::at(address, scheme).map_err(|error| Failure::usage(format!("--{flag}: {error}")))?;
        let Some(tls) = tls else { return Ok(remote) };
        tls.check()
            .and_then(|()| remote.tls(tls))
            .map_err(|error| Failure::usage(format!("--ca, --client-cert, --{flag}: {error}")))
    }
}

async fn connect(
    service: &'static str,
    address: &str,
    flag: &'static str,
    remote: Remote,
) -> Result<Connection> {
    let remote = remote.map(|endpoint| endpoint.connect_timeout(CONNECT).tcp_nodelay(true));
    let peer = Arc::new(Peer {
        service,
        address: address.to_owned(),
        flag,
        remote: remote.clone(),
    });
    match remote.connect().await {
        Ok(channel) => Ok(Connection::new(channel, peer)),
        Err(error) => Err(Unreached::of(&peer, &error).into()),
    }
}

/// Fetches pages until there are `limit` items (0: all). Returns the items and whether there are more.
pub async fn pages<T, F, P>(limit: usize, max_page: i32, mut page: F) -> Result<(Vec<T>, bool)>
where
    F: FnMut(i32, String) -> P,
    P: Future<Output = Result<(Vec<T>, String)>>,
{
    let mut items = Vec::new();
    let mut token = String::new();
    loop {
        let wanted = match limit {
            0 => max_page,
            limit => i32::try_from(limit - items.len())
                .unwrap_or(max_page)
                .min(max_page),
        };
        let (more, next) = page(wanted, token).await?;
        items.extend(more);
        token = next;
        if token.is_empty() {
            return Ok((items, false));
        }
        if limit != 0 && items.len() >= limit {
            return Ok((items, true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fetch(limit: usize) -> (Vec<i32>, bool) {
        // Seven items in pages of at most three; the token is the next item.
        pages(limit, 3, |size, token| async move {
            let from: i32 = token.parse().unwrap_or(0);
            let to = (from + size).min(7);
            let next = if to == 7 { String::new() } else { to.to_string() };
            Ok(((from..to).collect(), next))
        })
        .await
        .unwrap()
    }

    #[tokio::test]
    async fn pages_are_fetched_up_to_the_limit_or_the_end() {
        assert_eq!(fetch(0).await, ((0..7).collect(), false));
        assert_eq!(fetch(2).await, ((0..2).collect(), true));
        assert_eq!(fetch(5).await, ((0..5).collect(), true));
        assert_eq!(fetch(7).await, ((0..7).collect(), false));
        assert_eq!(fetch(100).await, ((0..7).collect(), false));
    }

    /// A context from these arguments.
    fn context_from(arguments: &[&str]) -> Context {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            global: Global,
        }
        let arguments = ["emend"].iter().chain(arguments);
        let program = <Program as clap::Parser>::parse_from(arguments);
        Context::new(program.global, Telemetry::default())
    }

    #[test]
    fn an_address_uses_tls_if_its_scheme_or_an_option_says_so() {
        let authority = emend_base::tls::testing::Authority::new("CA");
        let directory = tempfile::tempdir().unwrap();
        let ca = directory.path().join("ca.pem");
        std::fs::write(&ca, authority.pem()).unwrap();
        let ca = format!("--ca={}", ca.display());
        let secured = |arguments: &[&str]| {
            context_from(arguments)
                .feedback_remote()
                .map(|remote| remote.is_secured())
        };
        assert!(!secured(&["--feedback-addr=127.0.0.1:7401"]).unwrap());
        assert!(secured(&["--feedback-addr=https://emend.example"]).unwrap());
        assert!(secured(&["--feedback-addr=127.0.0.1:7401", &ca]).unwrap());
        let plain = secured(&["--feedback-addr=http://127.0.0.1:7401", &ca]).unwrap_err();
        assert!(plain.to_string().contains("https://"), "{plain}");
        assert!(secured(&["--client-cert=x.pem"]).is_err(), "no key");
        let port = secured(&["--feedback-addr=7401"]).unwrap_err().to_string();
        assert!(
            port.contains("--feedback-addr") && port.contains("127.0.0.1:7401"),
            "{port}"
        );
        let away = secured(&["--ca=/nowhere/ca.pem"]).unwrap_err();
        assert!(away.to_string().contains("/nowhere/ca.pem"), "{away}");
    }

    #[tokio::test]
    async fn an_unreachable_service_is_named_with_the_flag_for_its_address() {
        let refused = context_from(&["--learning-addr=127.0.0.1:1"])
            .learning_channel()
            .await
            .unwrap_err();
        assert_eq!(refused.exit(), crate::failure::Exit::Unavailable);
        let text = refused.to_string();
        assert!(
            text.contains("learning-svc at 127.0.0.1:1") && text.contains("--learning-addr"),
            "{text}"
        );
    }
}
