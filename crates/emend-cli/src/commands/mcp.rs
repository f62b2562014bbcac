//! `emend mcp`: tools for an assistant to correct and review with, over stdio.
//!
//! It speaks the Model Context Protocol, to which standard output is reserved. Each tool is one RPC. Refusals are
//! returned with all their details, so that an assistant can fix its call.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use std::collections::{BTreeMap, HashMap};

use emend_proto::{
    common::v1::{
        Correction, EntityCorrection, PhraseMapping, Reporter, VerbCorrection,
        correction::Correction as Oneof,
    },
    feedback::v1::{SubmitFeedbackRequest, Wait},
    learning::v1::{ApproveCandidateRequest, CandidateStatus, ListCandidatesRequest, RejectCandidateRequest},
};
use rmcp::{
    ServerHandler, ServiceExt as _,
    handler::server::wrapper::Parameters,
    model::{CallToolResult, Implementation, ServerCapabilities, ServerConfig},
    tool, tool_handler, tool_router,
    transport::stdio,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    context::Context,
    failure::{Failure, Result},
    view,
};

/// On whose behalf the tools act.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An assistant's configuration:
  {\"mcpServers\": {\"emend\": {
    \"command\": \"emend\",
    \"args\": [\"mcp\", \"--namespace\", \"fund-admin\", \"--reporter\", \"ana\"]
  }}}

Tools: intent_feedback records \"no, I meant X\"; intent_list shows what is waiting;
intent_approve and intent_reject decide.")]
pub struct Args {
    /// The person on whose behalf the assistant corrects and reviews
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    reporter: String,
}

/// Serves until standard input ends.
pub async fn run(args: Args, context: &Context) -> Result {
    let server = Server {
        context: context.clone(),
        reporter: args.reporter,
    };
    let running = server
        .serve(stdio())
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    running
        .waiting()
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(())
}

#[derive(Debug, Clone)]
struct Server {
    context: Context,
    reporter: String,
}

/// What kind of correction it is.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FeedbackType {
    /// The wrong verb (action) was chosen for what the user said.
    VerbCorrection,
    /// The wrong entity (person, fund, document …) was chosen for what the user said.
    EntityCorrection,
    /// A phrase always means a verb, whatever the system chose.
    PhraseMapping,
}

/// A correction.
#[derive(Debug, Deserialize, JsonSchema)]
struct FeedbackParams {
    /// What kind of correction it is.
    feedback_type: FeedbackType,
    /// What the user said, in the user's own words: 1 to 512 characters.
    original_input: String,
    /// What the system chose, if known: a verb or an entity's id.
    #[serde(default)]
    system_choice: Option<String>,
    /// What is right: a verb or an entity's id, 1 to 256 characters. Must differ from `system_choice`.
    correct_choice: String,
    /// Why, in the user's words.
    #[serde(default)]
    user_explanation: Option<String>,
    /// Anything that helps a reviewer, for example {"topic": "derivatives"}.
    #[serde(default)]
    context: Option<BTreeMap<String, String>>,
}

/// The status of a candidate.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusParam {
    /// Gathering votes.
    Pending,
    /// A person has to decide.
    AwaitingReview,
    /// Its value is what nodes answer with.
    Applied,
    /// A person rejected it.
    Rejected,
    /// Another value replaced it.
    Superseded,
    /// It lost its supporters, or its resource was deleted.
    Withdrawn,
}

impl From<StatusParam> for CandidateStatus {
    fn from(status: StatusParam) -> Self {
        match status {
            StatusParam::Pending => Self::Pending,
            StatusParam::AwaitingReview => Self::AwaitingReview,
            StatusParam::Applied => Self::Applied,
            StatusParam::Rejected => Self::Rejected,
            StatusParam::Superseded => Self::Superseded,
            StatusParam::Withdrawn => Self::Withdrawn,
        }
    }
}

/// Which candidates to list.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListParams {
    /// Only candidates with one of these statuses. Default: `pending` and `awaiting_review`.
    #[serde(default)]
    statuses: Option<Vec<StatusParam>>,
    /// Only candidates for this phrase.
    #[serde(default)]
    phrase: Option<String>,
    /// List at most this many, 1 to 500. Default: 50.
    #[serde(default)]
    limit: Option<i32>,
}

/// A decision to apply a candidate.
#[derive(Debug, Deserialize, JsonSchema)]
struct ApproveParams {
    /// The candidate's id, from `intent_list` or `intent_feedback`.
    candidate_id: String,
    /// Why.
    #[serde(default)]
    reason: Option<String>,
}

/// A decision to reject a candidate.
#[derive(Debug, Deserialize, JsonSchema)]
struct RejectParams {
    /// The candidate's id, from `intent_list` or `intent_feedback`.
    candidate_id: String,
    /// Why; shown to reporters who propose it again.
    reason: String,
}

#[tool_router]
impl Server {
    #[tool(
        name = "intent_feedback",
        description = "Record that the system misunderstood the user (\"no, I meant X\"). The correction is stored, and \
                       applied to all search nodes once enough people agree; the answer says which.",
        annotations(read_only_hint = false, destructive_hint = false, idempotent_hint = false)
    )]
    async fn feedback(&self, Parameters(params): Parameters<FeedbackParams>) -> CallToolResult {
        answer(self.submit(params).await)
    }

    #[tool(
        name = "intent_list",
        description = "List what was proposed and waits for more votes or for a person's decision.",
        annotations(read_only_hint = true)
    )]
    async fn list(&self, Parameters(params): Parameters<ListParams>) -> CallToolResult {
        answer(self.candidates(params).await)
    }

    #[tool(
        name = "intent_approve",
        description = "Apply a candidate for everybody, as a person's decision. Ask the user before you call this.",
        annotations(read_only_hint = false, destructive_hint = true)
    )]
    async fn approve(&self, Parameters(params): Parameters<ApproveParams>) -> CallToolResult {
        answer(self.decide_for(params).await)
    }

    #[tool(
        name = "intent_reject",
        description = "Turn a candidate down for good, as a person's decision. Ask the user before you call this.",
        annotations(read_only_hint = false, destructive_hint = true)
    )]
    async fn reject(&self, Parameters(params): Parameters<RejectParams>) -> CallToolResult {
        answer(self.decide_against(params).await)
    }
}

impl Server {
    async fn submit(&self, params: FeedbackParams) -> Result<Value> {
        let system_choice = params.system_choice.unwrap_or_default();
        let (original_input, correct_choice) = (params.original_input, params.correct_choice);
        let oneof = match params.feedback_type {
            FeedbackType::VerbCorrection => Oneof::Verb(VerbCorrection {
                original_input,
                system_choice,
                correct_choice,
            }),
            FeedbackType::EntityCorrection => Oneof::Entity(EntityCorrection {
                original_input,
                system_choice,
                correct_choice,
            }),
            FeedbackType::PhraseMapping => Oneof::PhraseMapping(PhraseMapping {
                phrase: original_input,
                verb: correct_choice,
            }),
        };
        let request = SubmitFeedbackRequest {
            request_id: self.context.request_id(),
            namespace: self.context.namespace(),
            reporter: Some(Reporter {
                id: self.reporter.clone(),
                client: concat!("emend-mcp/", env!("CARGO_PKG_VERSION")).to_owned(),
                ..Reporter::default()
            }),
            reason: params.user_explanation.unwrap_or_default(),
            context: params.context.map(HashMap::from_iter).unwrap_or_default(),
            wait: Wait::Evaluated as i32,
            correction: Some(Correction {
                correction: Some(oneof),
            }),
            ..SubmitFeedbackRequest::default()
        };
        let mut client = self.context.feedback().await?;
        let response = client
            .submit_feedback(self.context.request(request))
            .await?
            .into_inner();
        let feedback = response
            .feedback
            .ok_or_else(|| Failure::failed("feedback-svc answered without the feedback"))?;
        let message = feedback
            .outcome
            .as_ref()
            .map_or("", |outcome| outcome.message.as_str());
        Ok(json!({"message": message, "feedback": view::feedback(&feedback)}))
    }

    async fn candidates(&self, params: ListParams) -> Result<Value> {
        let statuses = params
            .statuses
            .unwrap_or_else(|| vec![StatusParam::Pending, StatusParam::AwaitingReview]);
        let request = ListCandidatesRequest {
            namespace: self.context.namespace(),
            statuses: statuses
                .into_iter()
                .map(|status| CandidateStatus::from(status) as i32)
                .collect(),
            key: params.phrase.unwrap_or_default(),
            page_size: params.limit.unwrap_or_default(),
            ..ListCandidatesRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let page = client
            .list_candidates(self.context.request(request))
            .await?
            .into_inner();
        let candidates: Vec<_> = page.candidates.iter().map(view::candidate).collect();
        Ok(json!({"candidates": candidates, "more": !page.next_page_token.is_empty()}))
    }

    async fn decide_for(&self, params: ApproveParams) -> Result<Value> {
        let request = ApproveCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id: params.candidate_id,
            reason: params.reason.unwrap_or_default(),
            on_behalf_of: self.reporter.clone(),
            ..ApproveCandidateRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let response = client
            .approve_candidate(self.context.request(request))
            .await?
            .into_inner();
        Ok(
            json!({"candidate": response.candidate.as_ref().map(view::candidate), "revision": response.revision}),
        )
    }

    async fn decide_against(&self, params: RejectParams) -> Result<Value> {
        let request = RejectCandidateRequest {
            namespace: self.context.namespace(),
            candidate_id: params.candidate_id,
            reason: params.reason,
            on_behalf_of: self.reporter.clone(),
            ..RejectCandidateRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let response = client
            .reject_candidate(self.context.request(request))
            .await?
            .into_inner();
        Ok(
            json!({"candidate": response.candidate.as_ref().map(view::candidate), "revision": response.revision}),
        )
    }
}

/// Refusals are results too, so that the assistant reads them.
fn answer(result: Result<Value>) -> CallToolResult {
    match result {
        Ok(value) => CallToolResult::structured(value),
        Err(failure) => CallToolResult::structured_error(failure.to_json()),
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("emend", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "When users say that you or the search system misunderstood them (\"no, I meant X\"), record it with \
             intent_feedback, so that it is understood next time."
                .into(),
        );
        info
    }
}
