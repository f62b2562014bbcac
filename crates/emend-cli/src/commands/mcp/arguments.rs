//! The arguments of the tools. Their doc comments are what an assistant reads in the schemas.

use std::collections::BTreeMap;

use emend_proto::learning::v1::CandidateStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use emend_core::Kind;

/// The kind of correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FeedbackType {
    /// The wrong verb (action) was chosen for what the user said.
    VerbCorrection,
    /// The wrong entity (person, fund, document …) was chosen for what the user said.
    EntityCorrection,
    /// A phrase always means a verb, whatever the system chose.
    PhraseMapping,
    /// A choice must never be offered for a phrase.
    Prohibition,
}

/// For whom it is learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScopeArgument {
    /// For everybody, once enough voters agree.
    #[default]
    Global,
    /// For the reporter alone, at once. Needs a reporter.
    User,
}

/// Who said it and where.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct FeedbackContext {
    /// The person who is correcting: an id that stays the same in every session. The reporter is the voter: however
    /// often one reporter says the same, it counts once.
    #[serde(default)]
    pub(super) reporter: Option<String>,
    /// The session in which the user said it. Without a reporter the session is the voter.
    #[serde(default)]
    pub(super) session_id: Option<String>,
    /// Anything else that helps a reviewer, for example "topic": "derivatives".
    #[serde(flatten)]
    pub(super) other: BTreeMap<String, String>,
}

/// A correction.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FeedbackArguments {
    /// The kind of correction.
    pub(super) feedback_type: FeedbackType,
    /// What the user said, in the user's own words: 1 to 512 characters.
    pub(super) original_input: String,
    /// What the system chose: a verb or an entity's id. For a prohibition it is required: the choice never to offer.
    #[serde(default)]
    pub(super) system_choice: Option<String>,
    /// What is right: a verb or an entity's id, 1 to 256 characters, other than `system_choice`. Required, except for a
    /// prohibition, which has none.
    #[serde(default)]
    pub(super) correct_choice: Option<String>,
    /// Why, in the user's words.
    #[serde(default)]
    pub(super) user_explanation: Option<String>,
    /// For whom it is learned. Default: `global`.
    #[serde(default)]
    pub(super) scope: ScopeArgument,
    /// Who said it and where.
    #[serde(default)]
    pub(super) context: FeedbackContext,
}

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EvidenceAction {
    /// Never show the sources of a domain. Args: `pattern`, `reason`.
    DomainBlock,
    /// Show the sources of a domain again. Args: `pattern`, `reason`, and perhaps `level`.
    DomainUnblock,
    /// End what people decided about a domain. Args: `pattern`, `reason`.
    DomainClearOverride,
    /// Hide a claim from results. Args: `claim_id`, `reason`, and perhaps `reason_code`.
    ClaimReject,
    /// Show a claim again. Args: `claim_id`, `reason`.
    ClaimRestore,
    /// Say which label an edge should have. Args: `edge_id`, `correct_relation`, and perhaps `reason`.
    EdgeCorrect,
}

impl EvidenceAction {
    /// Whether it decides about the sources of a domain.
    pub(super) const fn is_about_a_domain(self) -> bool {
        matches!(
            self,
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride
        )
    }
}

/// What the action is about, and why. Which of these it takes is said with the action.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceDetails {
    /// A domain, which covers all its subdomains, or `*.DOMAIN` for the subdomains alone.
    #[serde(default)]
    pub(super) pattern: Option<String>,
    /// How far the sources are trusted: `primary`, `government`, `academic`, `trusted`, `low` or `unverified`.
    #[serde(default)]
    pub(super) level: Option<String>,
    /// The claim's id.
    #[serde(default)]
    pub(super) claim_id: Option<String>,
    /// Why the claim is rejected, as a code of [A-Z0-9_], for example `SPAM`.
    #[serde(default)]
    pub(super) reason_code: Option<String>,
    /// The edge's id.
    #[serde(default)]
    pub(super) edge_id: Option<String>,
    /// The right label: `supports`, `refutes` or `neutral`.
    #[serde(default)]
    pub(super) correct_relation: Option<String>,
    /// Why, in the user's words. Required, except for `edge_correct`.
    #[serde(default)]
    pub(super) reason: Option<String>,
    /// The person who says it. Default: the reporter that `emend mcp` was started with, if any.
    #[serde(default)]
    pub(super) reporter: Option<String>,
}

/// A decision about evidence.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EvidenceArguments {
    /// The research task in which it is decided: 1 to 256 characters.
    pub(super) task_id: String,
    /// What is decided.
    pub(super) action: EvidenceAction,
    /// What it is about, and why.
    pub(super) args: EvidenceDetails,
}

/// Which correction to take back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetractArguments {
    /// The `feedback_id` from the answer of `intent_feedback`, or the `event_id` from that of `feedback`.
    pub(super) feedback_id: String,
    /// Why, in the user's words.
    #[serde(default)]
    pub(super) reason: Option<String>,
}

/// What to look for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResolveType {
    /// The verb (action) that a phrase means.
    #[default]
    Verb,
    /// The entity that a name means.
    Entity,
}

impl From<ResolveType> for Kind {
    fn from(resolve_type: ResolveType) -> Self {
        match resolve_type {
            ResolveType::Verb => Self::InvocationPhrase,
            ResolveType::Entity => Self::EntityAlias,
        }
    }
}

/// A choice that you would offer by yourself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnChoice {
    /// A verb or an entity's id.
    pub(super) value: String,
    /// How sure you are, 0 to 1.
    pub(super) score: f64,
}

/// Which phrase to resolve.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveArguments {
    /// What the user said: 1 to 512 characters.
    pub(super) phrase: String,
    /// What to look for. Default: `verb`.
    #[serde(default)]
    pub(super) resolve_type: ResolveType,
    /// The user whose own preference comes first. Default: the reporter that `emend mcp` was started with, if any.
    #[serde(default)]
    pub(super) reporter: Option<String>,
    /// What you would choose by yourself, at most 100 choices.
    #[serde(default)]
    pub(super) own_choices: Vec<OwnChoice>,
}

/// The status of a candidate.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StatusArgument {
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
pub(super) struct ListArguments {
    /// Only candidates with one of these statuses. Default, also for `[]`: `pending` and `awaiting_review`.
    #[serde(default)]
    pub(super) statuses: Option<Vec<StatusArgument>>,
    /// Only candidates for this phrase.
    #[serde(default)]
    pub(super) phrase: Option<String>,
    /// How many candidates a page has at most, 1 to 500. Default: 50.
    #[serde(default)]
    pub(super) page_size: Option<i32>,
    /// The `next_page_token` of the page before; the other arguments must be as they were then.
    #[serde(default)]
    pub(super) page_token: Option<String>,
}

/// A decision to apply a candidate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveArguments {
    /// The `candidate_id` from the answer of `intent_list` or `intent_feedback`.
    pub(super) candidate_id: String,
    /// The candidate's `etag` as you read it: it is refused if somebody changed the candidate since.
    #[serde(default)]
    pub(super) etag: Option<String>,
    /// Why.
    #[serde(default)]
    pub(super) reason: Option<String>,
    /// The person on whose behalf you decide. Default: the one that `emend mcp` was started with, if any.
    #[serde(default)]
    pub(super) by: Option<String>,
    /// Approve a proposal although ratings that it was made of have been erased since (`redacted_count`): only after the person
    /// has read its text.
    #[serde(default)]
    pub(super) accept_redacted: bool,
}

/// A decision to reject a candidate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectArguments {
    /// The `candidate_id` from the answer of `intent_list` or `intent_feedback`.
    pub(super) candidate_id: String,
    /// The candidate's `etag` as you read it: it is refused if somebody changed the candidate since.
    #[serde(default)]
    pub(super) etag: Option<String>,
    /// Why; shown to reporters who propose it again.
    pub(super) reason: String,
    /// The person on whose behalf you decide. Default: the one that `emend mcp` was started with, if any.
    #[serde(default)]
    pub(super) by: Option<String>,
}
