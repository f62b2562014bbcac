//! Arguments of the tools that review, and of the one that explains.

use emend_proto::learning::v1::CandidateStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ResolveType;

/// The status of a candidate.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum StatusArgument {
    /// Gathering votes.
    Pending,
    /// A person has to decide.
    AwaitingReview,
    /// Its value is what search nodes answer.
    Applied,
    /// A person rejected it.
    Rejected,
    /// Another value replaced it.
    Superseded,
    /// It lost its supporters, or its resource was deleted.
    Withdrawn,
}

impl From<StatusArgument> for CandidateStatus {
    fn from(status: StatusArgument) -> Self {
        match status {
            StatusArgument::Pending => Self::Pending,
            StatusArgument::AwaitingReview => Self::AwaitingReview,
            StatusArgument::Applied => Self::Applied,
            StatusArgument::Rejected => Self::Rejected,
            StatusArgument::Superseded => Self::Superseded,
            StatusArgument::Withdrawn => Self::Withdrawn,
        }
    }
}

/// Which candidates to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ListArguments {
    /// Only candidates with one of these statuses. Default, also for `[]`: `pending` and `awaiting_review`.
    #[serde(default)]
    pub(in super::super) statuses: Option<Vec<StatusArgument>>,
    /// Only candidates for this phrase.
    #[serde(default)]
    pub(in super::super) phrase: Option<String>,
    /// How many candidates a page has at most, 1 to 100. Default: 20.
    #[serde(default)]
    pub(in super::super) page_size: Option<i32>,
    /// The `next_page_token` of the page before; the other arguments must be as they were then.
    #[serde(default)]
    pub(in super::super) page_token: Option<String>,
}

/// A decision to apply a candidate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ApproveArguments {
    /// The `candidate_id` from the answer of `intent_list` or `intent_feedback`.
    pub(in super::super) candidate_id: String,
    /// The candidate's `etag` as you read it: it is refused if somebody changed the candidate since.
    #[serde(default)]
    pub(in super::super) etag: Option<String>,
    /// Why.
    #[serde(default)]
    pub(in super::super) reason: Option<String>,
    /// The person on whose behalf you decide. Default: the one that `emend mcp` was started with, if any.
    #[serde(default)]
    pub(in super::super) by: Option<String>,
    /// Approve a proposal although ratings that it was made of have been erased since (`redacted_count`): only after the person
    /// has read its text.
    #[serde(default)]
    pub(in super::super) accept_redacted: bool,
}

/// A decision to reject a candidate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct RejectArguments {
    /// The `candidate_id` from the answer of `intent_list` or `intent_feedback`.
    pub(in super::super) candidate_id: String,
    /// The candidate's `etag` as you read it: it is refused if somebody changed the candidate since.
    #[serde(default)]
    pub(in super::super) etag: Option<String>,
    /// Why; shown to reporters who propose it again.
    pub(in super::super) reason: String,
    /// The person on whose behalf you decide. Default: the one that `emend mcp` was started with, if any.
    #[serde(default)]
    pub(in super::super) by: Option<String>,
}

/// Which phrase to explain.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ExplainArguments {
    /// What the user said: 1 to 512 characters.
    pub(in super::super) phrase: String,
    /// What it stands for. Default: `verb`.
    #[serde(default)]
    pub(in super::super) resolve_type: ResolveType,
    /// The `next_page_token` of the answer before, for more of what was proposed.
    #[serde(default)]
    pub(in super::super) page_token: Option<String>,
}
