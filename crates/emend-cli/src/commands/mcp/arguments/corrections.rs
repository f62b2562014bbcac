//! Arguments of the tools that correct, take back and look up.

use std::collections::BTreeMap;

use emend_core::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum FeedbackType {
    /// The wrong verb (action) was chosen for what the user said.
    VerbCorrection,
    /// The wrong entity (person, fund, document …) was chosen for what the user said.
    EntityCorrection,
    /// A phrase always means a verb, whatever the system chose.
    PhraseMapping,
    /// A choice must never be offered for a phrase.
    Prohibition,
}

impl From<FeedbackType> for Kind {
    fn from(feedback_type: FeedbackType) -> Self {
        match feedback_type {
            FeedbackType::VerbCorrection | FeedbackType::PhraseMapping => Self::InvocationPhrase,
            FeedbackType::EntityCorrection => Self::EntityAlias,
            FeedbackType::Prohibition => Self::Prohibition,
        }
    }
}

/// For whom it is learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum ScopeArgument {
    /// For everybody, once enough voters agree.
    #[default]
    Global,
    /// For the reporter alone, at once. Needs a reporter.
    User,
}

/// Who said it and where.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(in super::super) struct FeedbackContext {
    /// The person who is correcting: an id that stays the same in every session. The reporter is the voter: however
    /// often one reporter says the same, it counts once.
    #[serde(default)]
    pub(in super::super) reporter: Option<String>,
    /// The session in which the user said it. Without a reporter the session is the voter.
    #[serde(default)]
    pub(in super::super) session_id: Option<String>,
    /// The client business unit that it is about, for reviewers.
    #[serde(default)]
    pub(in super::super) cbu_id: Option<String>,
    /// The field that it is about, for reviewers, for example "derivatives".
    #[serde(default)]
    pub(in super::super) domain: Option<String>,
    /// Anything else that helps a reviewer, for example "topic": "margin".
    #[serde(flatten)]
    pub(in super::super) other: BTreeMap<String, String>,
}

/// A correction.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct FeedbackArguments {
    /// The kind of correction.
    pub(in super::super) feedback_type: FeedbackType,
    /// The part of what the user said that names the action, in the user's own words: it is matched as a whole. For an entity
    /// the name alone. 1 to 512 characters.
    pub(in super::super) original_input: String,
    /// What the system chose: a verb or an entity's id, as a look-up gave it. For a prohibition it is required: the choice never to offer.
    #[serde(default)]
    pub(in super::super) system_choice: Option<String>,
    /// What is right: a verb or an entity's id, as a look-up gave it, 1 to 256 characters, other than `system_choice`. Required, except for a
    /// prohibition, which has none.
    #[serde(default)]
    pub(in super::super) correct_choice: Option<String>,
    /// Why, in the user's words.
    #[serde(default)]
    pub(in super::super) user_explanation: Option<String>,
    /// For whom it is learned. Default: `global`.
    #[serde(default)]
    pub(in super::super) scope: ScopeArgument,
    /// Who said it and where.
    #[serde(default)]
    pub(in super::super) context: FeedbackContext,
    /// Only to repeat a call safely: the `request_id` that the failed call named, otherwise a UUID of your own.
    #[serde(default)]
    pub(in super::super) request_id: Option<String>,
}

/// Which correction to take back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct RetractArguments {
    /// The `feedback_id` from the answer of `intent_feedback`, or the `event_id` from that of `feedback`.
    pub(in super::super) feedback_id: String,
    /// Why, in the user's words.
    #[serde(default)]
    pub(in super::super) reason: Option<String>,
}

/// What to look for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum ResolveType {
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
pub(in super::super) struct OwnChoice {
    /// A verb or an entity's id.
    pub(in super::super) value: String,
    /// How sure you are, 0 to 1.
    pub(in super::super) score: f64,
}

/// Which phrase to resolve.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ResolveArguments {
    /// What the user said: 1 to 512 characters.
    pub(in super::super) phrase: String,
    /// What to look for. Default: `verb`.
    #[serde(default)]
    pub(in super::super) resolve_type: ResolveType,
    /// The user whose own preference comes first. Leave it out if you were not told.
    #[serde(default)]
    pub(in super::super) reporter: Option<String>,
    /// What you would choose by yourself, at most 100 choices.
    #[serde(default)]
    pub(in super::super) own_choices: Vec<OwnChoice>,
    /// Where nothing was learned for the phrase, say what was learned for similar ones. Default: false.
    #[serde(default)]
    pub(in super::super) near: bool,
}
