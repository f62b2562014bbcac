//! Arguments of the tools about evidence.

use schemars::JsonSchema;
use serde::Deserialize;

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum EvidenceAction {
    /// Never show the sources of a domain. Args: `domain_pattern`, `reason`.
    DomainBlock,
    /// Show the sources of a domain again. Args: `domain_pattern`, `reason`, and perhaps `level`.
    DomainUnblock,
    /// End what people decided about a domain. Args: `domain_pattern`, `reason`.
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
    pub(in super::super) const fn is_about_a_domain(self) -> bool {
        matches!(
            self,
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride
        )
    }
}

/// What the action is about, and why. Which of these it takes is said with the action.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct EvidenceDetails {
    /// A domain, which covers all its subdomains, or `*.DOMAIN` for the subdomains alone.
    #[serde(default)]
    pub(in super::super) domain_pattern: Option<String>,
    /// How far the sources are trusted.
    #[serde(default)]
    #[schemars(extend("enum" = ["primary", "government", "academic", "trusted", "low", "unverified"]))]
    pub(in super::super) level: Option<String>,
    /// The claim's id, as `get_materials` names it.
    #[serde(default)]
    pub(in super::super) claim_id: Option<String>,
    /// Why the claim is rejected, as a code of [A-Z0-9_], for example `SPAM`.
    #[serde(default)]
    pub(in super::super) reason_code: Option<String>,
    /// The edge's id, as `get_materials` names it.
    #[serde(default)]
    pub(in super::super) edge_id: Option<String>,
    /// The right label.
    #[serde(default)]
    #[schemars(extend("enum" = ["supports", "refutes", "neutral"]))]
    pub(in super::super) correct_relation: Option<String>,
    /// Why, in the user's words. Required, except for `edge_correct`.
    #[serde(default)]
    pub(in super::super) reason: Option<String>,
    /// The person who says it. Leave it out if you were not told.
    #[serde(default)]
    pub(in super::super) reporter: Option<String>,
}

/// A decision about evidence.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct EvidenceArguments {
    /// The research task in which it is decided: 1 to 256 characters.
    pub(in super::super) task_id: String,
    /// What is decided.
    pub(in super::super) action: EvidenceAction,
    /// What it is about, and why.
    pub(in super::super) args: EvidenceDetails,
    /// Only to repeat a call safely: the `request_id` that the failed call named, otherwise a UUID of your own.
    #[serde(default)]
    pub(in super::super) request_id: Option<String>,
}

/// Which state to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct StatusArguments {
    /// The research task whose reviewed edges are counted. Without it none are.
    #[serde(default)]
    pub(in super::super) task_id: Option<String>,
    /// How many domains a page has at most, 1 to 1000. Default: 100.
    #[serde(default)]
    pub(in super::super) page_size: Option<i32>,
    /// The `next_page_token` of the page before.
    #[serde(default)]
    pub(in super::super) page_token: Option<String>,
}

/// Which materials to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct MaterialsArguments {
    /// The research task: 1 to 256 characters.
    pub(in super::super) task_id: String,
    /// How many pages, fragments, claims and edges one answer has at most, 1 to 500. Default: 100.
    #[serde(default)]
    pub(in super::super) page_size: Option<i32>,
    /// The `next_page_token` of the answer before.
    #[serde(default)]
    pub(in super::super) page_token: Option<String>,
}
