//! `emend mcp`: tools for an assistant to correct, look up and review with, over stdio.
//!
//! It speaks the Model Context Protocol, to which standard output is reserved. Each tool is one RPC. Refusals are
//! returned with all their details, in the tool's own words, so that an assistant can fix its call.

mod arguments;
mod call;
mod correction;
mod descriptions;
mod evidence;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod lines;
mod parameters;
mod results;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use emend_proto::{
    common::v1::Reporter,
    feedback::v1::{Feedback, RetractFeedbackRequest, SubmitFeedbackRequest, Wait},
    learning::v1::{
        ApproveCandidateRequest, BackendCandidate, CandidateStatus, ListCandidatesRequest,
        RejectCandidateRequest, ResolveRequest,
    },
};
use rmcp::{
    RoleServer, ServerHandler, ServiceExt as _,
    handler::server::tool::schema_for_type,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::Value;

use self::{
    arguments::{
        ApproveArguments, EvidenceArguments, FeedbackArguments, ListArguments, RejectArguments,
        ResolveArguments, RetractArguments, ScopeArgument, StatusArgument,
    },
    call::{answer, parse},
    correction::{correction, named, voter_id},
    lines::Lines,
    results::Voter,
};
use super::feedback;
use crate::{
    context::Context,
    failure::{Failure, Result},
    words,
};

/// What corrections say that they were made with.
const CLIENT: &str = concat!("emend-mcp/", env!("CARGO_PKG_VERSION"));

/// On whose behalf the tools act.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An assistant's configuration:
  {\"mcpServers\": {\"emend\": {
    \"command\": \"emend\",
    \"args\": [\"mcp\", \"--namespace\", \"fund-admin\", \"--reporter\", \"ana\"]
  }}}

Tools:
  intent_feedback  records \"no, I meant X\", a phrase, or a choice never to offer
  intent_retract   takes a correction or decision back
  intent_resolve   tells what was learned for a phrase
  intent_list      shows what waits for votes or for a decision
  intent_approve   applies a candidate
  intent_reject    rejects a candidate
  feedback         records what is decided about a domain, a claim or an edge

Who votes: the reporter that the call names in its context, otherwise --reporter; where there is
none, the session that the call names, otherwise --session. Where nothing is named, all such votes
count once, together, and the answer says so. An assistant that serves several people names the
reporter in each call. What is approved or rejected is noted as done on behalf of whom the call
names as by, otherwise --by.")]
pub struct Args {
    /// The person or agent who says it, where a call names nobody
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    reporter: String,
    /// The person on whose behalf you do it, where a call names nobody [default: the reporter]
    #[arg(long, value_name = "ID")]
    by: Option<String>,
    /// The session, where a call names none
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    session: String,
}

/// Serves until standard input ends.
pub async fn run(args: Args, context: &Context) -> Result {
    let server = Server {
        context: context.clone(),
        by: args.by.unwrap_or_else(|| args.reporter.clone()),
        reporter: args.reporter,
        session: args.session,
        newest: Arc::default(),
    };
    let (Lines { incoming, outgoing }, carried) = lines::between(tokio::io::stdin(), tokio::io::stdout());
    let serving = async {
        let running = server
            .serve((incoming, outgoing))
            .await
            .map_err(|error| Failure::failed(error.to_string()))?;
        running
            .waiting()
            .await
            .map_err(|error| Failure::failed(error.to_string()))
    };
    let (result, carried) = tokio::join!(serving, carried);
    result?;
    Ok(carried?)
}

#[derive(Debug, Clone)]
struct Server {
    context: Context,
    /// The reporter of calls that name none; may be empty.
    reporter: String,
    /// On whose behalf calls decide that name nobody; may be empty.
    by: String,
    /// The session of calls that name none; may be empty.
    session: String,
    /// The newest revision that an answer named: what was just learned is there when it is looked up.
    newest: Arc<AtomicI64>,
}

impl Server {
    async fn submit(&self, arguments: FeedbackArguments) -> Result<Value> {
        let correction = correction(&arguments)?;
        let reporter = named(arguments.context.reporter, &self.reporter);
        let session_id = named(arguments.context.session_id, &self.session);
        let voter = if reporter.is_empty() && session_id.is_empty() {
            Voter::Unnamed
        } else {
            Voter::Named
        };
        let user_scoped = arguments.scope == ScopeArgument::User;
        let request = SubmitFeedbackRequest {
            request_id: self.context.request_id(),
            namespace: self.context.namespace(),
            reporter: Some(Reporter {
                id: voter_id(reporter, &session_id, user_scoped),
                session_id,
                client: CLIENT.to_owned(),
                ..Reporter::default()
            }),
            reason: arguments.user_explanation.unwrap_or_default(),
            context: arguments.context.other.into_iter().collect(),
            scope: words::scope(user_scoped) as i32,
            wait: Wait::Evaluated as i32,
            correction: Some(correction),
            ..SubmitFeedbackRequest::default()
        };
        Ok(results::recorded(&self.send(request).await?, voter))
    }

    async fn decide(&self, arguments: EvidenceArguments) -> Result<Value> {
        let correction = evidence::decision(&arguments)?;
        let request = SubmitFeedbackRequest {
            request_id: self.context.request_id(),
            namespace: self.context.namespace(),
            reporter: Some(Reporter {
                id: named(arguments.args.reporter, &self.reporter),
                session_id: self.session.clone(),
                client: CLIENT.to_owned(),
                ..Reporter::default()
            }),
            reason: arguments.args.reason.unwrap_or_default(),
            wait: Wait::Evaluated as i32,
            correction: Some(correction),
            ..SubmitFeedbackRequest::default()
        };
        Ok(results::decision_recorded(&self.send(request).await?))
    }

    async fn send(&self, request: SubmitFeedbackRequest) -> Result<Feedback> {
        let mut client = self.context.feedback().await?;
        let response = client
            .submit_feedback(self.context.request(request))
            .await?
            .into_inner();
        let feedback = feedback::required(response.feedback)?;
        self.saw(feedback.outcome.as_ref().map_or(0, |outcome| outcome.revision));
        Ok(feedback)
    }

    async fn take_back(&self, arguments: RetractArguments) -> Result<Value> {
        let request = RetractFeedbackRequest {
            namespace: self.context.namespace(),
            feedback_id: arguments.feedback_id,
            reason: arguments.reason.unwrap_or_default(),
            wait: Wait::Evaluated as i32,
        };
        let mut client = self.context.feedback().await?;
        let response = client
            .retract_feedback(self.context.request(request))
            .await?
            .into_inner();
        let feedback = feedback::required(response.feedback)?;
        self.saw(feedback.outcome.as_ref().map_or(0, |outcome| outcome.revision));
        Ok(results::retracted(&feedback))
    }

    async fn look_up(&self, arguments: ResolveArguments) -> Result<Value> {
        let request = ResolveRequest {
            namespace: self.context.namespace(),
            kind: emend_core::Kind::from(arguments.resolve_type).number(),
            phrase: arguments.phrase,
            user_id: named(arguments.reporter, &self.reporter),
            backend_candidates: arguments
                .own_choices
                .into_iter()
                .map(|choice| BackendCandidate {
                    value: choice.value,
                    score: choice.score,
                })
                .collect(),
            min_revision: self.newest.load(Ordering::Relaxed),
        };
        let mut client = self.context.resources().await?;
        let response = client.resolve(self.context.request(request)).await?.into_inner();
        Ok(results::resolved(&response))
    }

    async fn candidates(&self, arguments: ListArguments) -> Result<Value> {
        // No statuses at all can't be meant.
        let statuses = arguments.statuses.filter(|statuses| !statuses.is_empty());
        let statuses =
            statuses.unwrap_or_else(|| vec![StatusArgument::Pending, StatusArgument::AwaitingReview]);
        let request = ListCandidatesRequest {
            namespace: self.context.namespace(),
            statuses: statuses
                .into_iter()
                .map(|status| CandidateStatus::from(status) as i32)
                .collect(),
            key: arguments.phrase.unwrap_or_default(),
            page_size: arguments.page_size.unwrap_or_default(),
            page_token: arguments.page_token.unwrap_or_default(),
            ..ListCandidatesRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let page = client
            .list_candidates(self.context.request(request))
            .await?
            .into_inner();
        Ok(results::page(&page))
    }

    async fn approve_candidate(&self, arguments: ApproveArguments) -> Result<Value> {
        let request = ApproveCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id: arguments.candidate_id,
            etag: arguments.etag.unwrap_or_default(),
            reason: arguments.reason.unwrap_or_default(),
            on_behalf_of: named(arguments.by, &self.by),
            accept_redacted: arguments.accept_redacted,
            ..ApproveCandidateRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let response = client
            .approve_candidate(self.context.request(request))
            .await?
            .into_inner();
        self.saw(response.revision);
        Ok(results::decided(response.candidate.as_ref(), response.revision))
    }

    async fn reject_candidate(&self, arguments: RejectArguments) -> Result<Value> {
        let request = RejectCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id: arguments.candidate_id,
            etag: arguments.etag.unwrap_or_default(),
            reason: arguments.reason,
            on_behalf_of: named(arguments.by, &self.by),
        };
        let mut client = self.context.candidates().await?;
        let response = client
            .reject_candidate(self.context.request(request))
            .await?
            .into_inner();
        self.saw(response.revision);
        Ok(results::decided(response.candidate.as_ref(), response.revision))
    }

    /// Remembers the newest revision that an answer named.
    fn saw(&self, revision: i64) {
        self.newest.fetch_max(revision, Ordering::Relaxed);
    }
}

/// What an assistant reads of the tools, in the order of their names.
fn tools() -> Vec<Tool> {
    let reads = || ToolAnnotations::new().read_only(true);
    let writes = |destructive| ToolAnnotations::new().read_only(false).destructive(destructive);
    vec![
        Tool::new(
            "feedback",
            descriptions::EVIDENCE,
            schema_for_type::<EvidenceArguments>(),
        )
        .with_annotations(writes(true).idempotent(false)),
        Tool::new(
            "intent_approve",
            descriptions::APPROVE,
            schema_for_type::<ApproveArguments>(),
        )
        .with_annotations(writes(true)),
        Tool::new(
            "intent_feedback",
            descriptions::FEEDBACK,
            schema_for_type::<FeedbackArguments>(),
        )
        .with_annotations(writes(false).idempotent(false)),
        Tool::new(
            "intent_list",
            descriptions::LIST,
            schema_for_type::<ListArguments>(),
        )
        .with_annotations(reads()),
        Tool::new(
            "intent_reject",
            descriptions::REJECT,
            schema_for_type::<RejectArguments>(),
        )
        .with_annotations(writes(true)),
        Tool::new(
            "intent_resolve",
            descriptions::RESOLVE,
            schema_for_type::<ResolveArguments>(),
        )
        .with_annotations(reads()),
        Tool::new(
            "intent_retract",
            descriptions::RETRACT,
            schema_for_type::<RetractArguments>(),
        )
        .with_annotations(writes(true).idempotent(true)),
    ]
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("emend", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "Before you choose a verb or an entity for what a user said, look it up with intent_resolve. When users \
             say that you or the search system misunderstood them (\"no, I meant X\"), record it with intent_feedback, \
             so that it is understood next time; if they change their mind, take it back with intent_retract. Record what they decide about the sources, \
             claims and edges of a research task with feedback."
                .into(),
        );
        info
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        let listed = ListToolsResult::with_all_items(tools());
        // Assistants of older versions know nothing of how long an answer may be kept.
        let may_keep = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        Ok(if may_keep {
            listed.with_ttl_ms(0).with_cache_scope(CacheScope::Public)
        } else {
            listed
        })
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let arguments = call.arguments.unwrap_or_default();
        let (result, named): (_, fn(&str) -> String) = match &*call.name {
            "feedback" => (
                async { self.decide(parse(arguments)?).await }.await,
                parameters::evidence,
            ),
            "intent_approve" => (
                async { self.approve_candidate(parse(arguments)?).await }.await,
                parameters::review,
            ),
            "intent_feedback" => (
                async { self.submit(parse(arguments)?).await }.await,
                parameters::feedback,
            ),
            "intent_list" => (
                async { self.candidates(parse(arguments)?).await }.await,
                parameters::list,
            ),
            "intent_reject" => (
                async { self.reject_candidate(parse(arguments)?).await }.await,
                parameters::review,
            ),
            "intent_resolve" => (
                async { self.look_up(parse(arguments)?).await }.await,
                parameters::resolve,
            ),
            "intent_retract" => (
                async { self.take_back(parse(arguments)?).await }.await,
                parameters::plain,
            ),
            _ => return Err(ErrorData::invalid_params("tool not found", None)),
        };
        Ok(answer(result, named).into())
    }
}
