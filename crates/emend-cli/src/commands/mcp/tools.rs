//! The tools: what each is called, which call of a service it makes, and what it takes and answers.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use super::{
    answers::{self, Answer},
    arguments::{
        ApproveArguments, EvidenceArguments, ExplainArguments, FeedbackArguments, ListArguments,
        MaterialsArguments, PromptArguments, RateArguments, RejectArguments, ResolveArguments,
        RetractArguments, SearchArguments, StatusArguments,
    },
    descriptions, parameters, schema,
};

/// A set of tools that is offered or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ToolSet {
    /// Corrections of phrases and names: intent_*, explain
    Intent,
    /// Decisions about domains, claims and edges: feedback, `get_status`, `get_materials`
    Evidence,
    /// Ratings of what a search returned: `search_feedback`
    Search,
    /// Prompts, and ratings of what an AI made: `get_prompt`, `rate_output`
    Outputs,
}

/// What calling a tool changes.
#[derive(Debug, Clone, Copy)]
enum Changes {
    Nothing,
    /// It adds something; again, it adds something once more.
    Adds,
    /// It changes what there is, each time anew.
    Replaces,
    /// It changes what there is; again, it changes nothing more.
    ReplacesOnce,
}

/// A tool.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) name: &'static str,
    pub(super) set: ToolSet,
    /// The method that its caller must be allowed to call.
    pub(super) method: &'static str,
    /// How fields of its request are called among its parameters.
    pub(super) named: fn(&str) -> String,
    description: &'static str,
    input: fn() -> JsonObject,
    /// What it answers.
    pub(super) answer: &'static Answer,
    changes: Changes,
}

impl Offer {
    /// What an assistant reads of it.
    pub(super) fn tool(&self) -> Tool {
        let annotations = match self.changes {
            Changes::Nothing => ToolAnnotations::new()
                .read_only(true)
                .destructive(false)
                .idempotent(true),
            Changes::Adds => changing(false, false),
            Changes::Replaces => changing(true, false),
            Changes::ReplacesOnce => changing(true, true),
        };
        Tool::new(self.name, self.description, Arc::new((self.input)()))
            .with_raw_output_schema(Arc::new(self.answer.schema()))
            .with_annotations(annotations.open_world(false))
    }
}

fn changing(destructive: bool, idempotent: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(destructive)
        .idempotent(idempotent)
}

/// The tool of this name.
pub(super) fn named(name: &str) -> Option<&'static Offer> {
    ALL.iter().find(|offer| offer.name == name)
}

/// The method that stores what is said.
pub(super) const SUBMIT: &str = "emend.feedback.v1.FeedbackService/SubmitFeedback";
/// The method that looks a phrase up.
pub(super) const RESOLVE: &str = "emend.learning.v1.ResourceService/Resolve";
/// The method that applies a candidate.
pub(super) const APPROVE: &str = "emend.learning.v1.CandidateService/ApproveCandidate";
/// The method that rejects a candidate.
pub(super) const REJECT: &str = "emend.learning.v1.CandidateService/RejectCandidate";
/// The method that lists search nodes.
pub(super) const LIST_NODES: &str = "emend.learning.v1.SubscriptionService/ListNodes";
/// The method that lists candidates.
pub(super) const LIST: &str = "emend.learning.v1.CandidateService/ListCandidates";
/// The method that lists what was learned.
pub(super) const LIST_RESOURCES: &str = "emend.learning.v1.ResourceService/ListResources";
/// The method that reads a claim.
pub(super) const GET_CLAIM: &str = "emend.learning.v1.EvidenceService/GetClaim";
/// The method that streams what is learned.
pub(super) const SUBSCRIBE: &str = "emend.learning.v1.SubscriptionService/Subscribe";
/// The method that tells what changes in the queue.
pub(super) const WATCH_QUEUE: &str = "emend.learning.v1.CandidateService/WatchQueue";
/// The method that counts what was received and decided.
pub(super) const QUEUE_STATS: &str = "emend.learning.v1.CandidateService/GetQueueStats";

/// All tools, in the order of their names.
pub(super) const ALL: &[Offer] = &[
    Offer {
        name: "explain",
        set: ToolSet::Intent,
        method: LIST,
        named: parameters::resolve,
        description: descriptions::EXPLAIN,
        input: schema::input::<ExplainArguments>,
        answer: &answers::EXPLAINED,
        changes: Changes::Nothing,
    },
    Offer {
        name: "feedback",
        set: ToolSet::Evidence,
        method: SUBMIT,
        named: parameters::evidence,
        description: descriptions::EVIDENCE,
        input: schema::input::<EvidenceArguments>,
        answer: &answers::DECISION,
        changes: Changes::Replaces,
    },
    Offer {
        name: "get_materials",
        set: ToolSet::Evidence,
        method: "emend.learning.v1.EvidenceService/ExportMaterials",
        named: parameters::plain,
        description: descriptions::MATERIALS,
        input: schema::input::<MaterialsArguments>,
        answer: &answers::MATERIALS,
        changes: Changes::Nothing,
    },
    Offer {
        name: "get_prompt",
        set: ToolSet::Outputs,
        method: "emend.learning.v1.OutputService/RenderPrompt",
        named: parameters::plain,
        description: descriptions::PROMPT,
        input: schema::input::<PromptArguments>,
        answer: &answers::PROMPT,
        changes: Changes::Nothing,
    },
    Offer {
        name: "get_status",
        set: ToolSet::Evidence,
        method: "emend.learning.v1.EvidenceService/ListBlockedDomains",
        named: parameters::plain,
        description: descriptions::STATUS,
        input: schema::input::<StatusArguments>,
        answer: &answers::STATUS,
        changes: Changes::Nothing,
    },
    Offer {
        name: "intent_approve",
        set: ToolSet::Intent,
        method: APPROVE,
        named: parameters::review,
        description: descriptions::APPROVE,
        input: schema::input::<ApproveArguments>,
        answer: &answers::DECIDED,
        changes: Changes::ReplacesOnce,
    },
    Offer {
        name: "intent_feedback",
        set: ToolSet::Intent,
        method: SUBMIT,
        named: parameters::feedback,
        description: descriptions::FEEDBACK,
        input: schema::input::<FeedbackArguments>,
        answer: &answers::CORRECTION,
        changes: Changes::Adds,
    },
    Offer {
        name: "intent_list",
        set: ToolSet::Intent,
        method: LIST,
        named: parameters::list,
        description: descriptions::LIST,
        input: schema::input::<ListArguments>,
        answer: &answers::CANDIDATES,
        changes: Changes::Nothing,
    },
    Offer {
        name: "intent_reject",
        set: ToolSet::Intent,
        method: REJECT,
        named: parameters::review,
        description: descriptions::REJECT,
        input: schema::input::<RejectArguments>,
        answer: &answers::DECIDED,
        changes: Changes::ReplacesOnce,
    },
    Offer {
        name: "intent_resolve",
        set: ToolSet::Intent,
        method: RESOLVE,
        named: parameters::resolve,
        description: descriptions::RESOLVE,
        input: schema::input::<ResolveArguments>,
        answer: &answers::RESOLVED,
        changes: Changes::Nothing,
    },
    Offer {
        name: "intent_retract",
        set: ToolSet::Intent,
        method: "emend.feedback.v1.FeedbackService/RetractFeedback",
        named: parameters::plain,
        description: descriptions::RETRACT,
        input: schema::input::<RetractArguments>,
        answer: &answers::RETRACTED,
        changes: Changes::ReplacesOnce,
    },
    Offer {
        name: "rate_output",
        set: ToolSet::Outputs,
        method: SUBMIT,
        named: parameters::rating,
        description: descriptions::RATE,
        input: schema::input::<RateArguments>,
        answer: &answers::RATED,
        changes: Changes::Adds,
    },
    Offer {
        name: "search_feedback",
        set: ToolSet::Search,
        method: SUBMIT,
        named: parameters::rating,
        description: descriptions::SEARCH,
        input: schema::input::<SearchArguments>,
        answer: &answers::RATED,
        changes: Changes::Adds,
    },
];
