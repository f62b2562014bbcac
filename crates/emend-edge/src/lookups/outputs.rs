//! What an AI is told: prompts, examples, profiles.

use std::collections::BTreeMap;

use emend_binding::{
    Error, Node,
    answers::{CurrentPrompt, Examples, RenderedPrompt, UserProfile},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Lookup;

/// The prompt of a target as it is sent to the AI.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PromptLookup")]
pub struct PromptOf {
    /// What the AI is asked, as the application names it.
    target: String,
    /// Default: production.
    label: Option<String>,
    /// What stands where its variables do, by name.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Whose profile and own examples count; refused where the edge holds nothing of users' own.
    user: Option<String>,
    /// `en` or `ja`: the language of what is put around examples.
    language: Option<String>,
}

impl Lookup for PromptOf {
    type Answer = RenderedPrompt;

    const NAME: &str = "prompt";

    fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn is_for_a_user(&self) -> bool {
        self.user.is_some()
    }

    fn answer(self, node: &Node, namespace: &str) -> Result<RenderedPrompt, Error> {
        let rendered = node.render_prompt(
            namespace,
            &self.target,
            self.label.as_deref(),
            self.variables,
            self.user.as_deref(),
            self.language.as_deref(),
        )?;
        rendered.ok_or_else(|| not_current(&self.target, self.label.as_deref()))
    }
}

/// The version of a prompt that is current under a label, unrendered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PromptTextLookup")]
pub struct PromptText {
    /// What the AI is asked, as the application names it.
    target: String,
    /// Default: production.
    label: Option<String>,
}

/// The version of a prompt that is current under a label.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PromptVersion {
    /// Its text, with `{{name}}` where variables stand.
    text: String,
    /// Its version.
    version: u32,
    /// Its variables, and what stands there where a call says nothing; null: each call must say.
    variables: BTreeMap<String, Option<String>>,
    /// The settings of the model, by name.
    settings: BTreeMap<String, String>,
    /// The revision that made it current.
    learned_at_revision: i64,
}

impl From<CurrentPrompt> for PromptVersion {
    fn from(current: CurrentPrompt) -> Self {
        Self {
            text: current.text,
            version: current.version,
            variables: current.variables,
            settings: current.settings,
            learned_at_revision: current.revision,
        }
    }
}

impl Lookup for PromptText {
    type Answer = PromptVersion;

    const NAME: &str = "prompt-text";

    fn answer(self, node: &Node, namespace: &str) -> Result<PromptVersion, Error> {
        let label = self.label.as_deref().unwrap_or(PRODUCTION);
        let current = node.prompt(namespace, &self.target, label)?;
        let current = current.map(PromptVersion::from);
        current.ok_or_else(|| not_current(&self.target, self.label.as_deref()))
    }
}

const PRODUCTION: &str = "production";

fn not_current(target: &str, label: Option<&str>) -> Error {
    let label = label.unwrap_or(PRODUCTION);
    Error::not_found(format!("no version of {target} is current under {label}"))
}

/// The newest rated examples of a target.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExamplesLookup")]
pub struct ExamplesOf {
    /// What the AI is asked, as the application names it.
    target: String,
}

impl Lookup for ExamplesOf {
    type Answer = Examples;

    const NAME: &str = "examples";

    fn answer(self, node: &Node, namespace: &str) -> Result<Examples, Error> {
        node.examples(namespace, &self.target)
    }
}

/// What a user knows and wants to learn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProfileLookup")]
pub struct ProfileOf {
    /// The user's id; refused where the edge holds nothing of users' own.
    user: String,
}

impl Lookup for ProfileOf {
    type Answer = UserProfile;

    const NAME: &str = "profile";

    fn user(&self) -> Option<&str> {
        Some(&self.user)
    }

    fn is_for_a_user(&self) -> bool {
        true
    }

    fn answer(self, node: &Node, namespace: &str) -> Result<UserProfile, Error> {
        node.profile(namespace, &self.user)
    }
}
