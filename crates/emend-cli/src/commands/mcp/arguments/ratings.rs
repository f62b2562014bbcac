//! Arguments of the tools that rate, and of the one that reads a prompt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// How somebody found what a search returned.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum RatingArgument {
    /// Good.
    Up,
    /// Neither.
    Neutral,
    /// Not what was wanted.
    Down,
}

/// A rating of what a search returned.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct SearchArguments {
    /// The query, by the id under which the search backend recorded it.
    pub(in super::super) query_id: String,
    /// How its results are.
    pub(in super::super) rating: RatingArgument,
    /// Why, in the user's words, at most 300 characters.
    #[serde(default)]
    pub(in super::super) reason: Option<String>,
    /// The person who says it. Leave it out if you were not told.
    #[serde(default)]
    pub(in super::super) reporter: Option<String>,
    /// The session in which the user said it. Leave it out if you were not told.
    #[serde(default)]
    pub(in super::super) session_id: Option<String>,
    /// Only to repeat a call safely: the `request_id` that the failed call named, otherwise a UUID of your own.
    #[serde(default)]
    pub(in super::super) request_id: Option<String>,
}

/// Which prompt to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct PromptArguments {
    /// What the AI is asked for, for example INTERPRET.
    pub(in super::super) target: String,
    /// Which of its labels. Default: production.
    #[serde(default)]
    pub(in super::super) label: Option<String>,
    /// The values of the prompt's variables.
    #[serde(default)]
    pub(in super::super) variables: BTreeMap<String, String>,
}

/// A rating of what an AI made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct RateArguments {
    /// What the AI was asked for, for example INTERPRET or `SUMMARIZE_DAILY`.
    pub(in super::super) target: String,
    /// How it was found: a value of the target, for example GOOD, NEUTRAL or BAD.
    pub(in super::super) value: String,
    /// Which output it is about, by the application's own id, 1 to 256 characters.
    pub(in super::super) target_id: String,
    /// What the AI was given.
    pub(in super::super) input_text: String,
    /// What it made of it.
    pub(in super::super) output_text: String,
    /// The version of the prompt with which it was made.
    #[serde(default)]
    pub(in super::super) prompt_version: Option<String>,
    /// What is wrong with the output: at most 10 texts.
    #[serde(default)]
    pub(in super::super) issues: Vec<String>,
    /// What it should have been.
    #[serde(default)]
    pub(in super::super) corrected_text: Option<String>,
    /// The right judgement, for targets whose output is a judgement.
    #[serde(default)]
    pub(in super::super) correct_judgement: Option<String>,
    /// Why, in the user's words; only people read it.
    #[serde(default)]
    pub(in super::super) reason: Option<String>,
    /// The person who says it. Leave it out if you were not told.
    #[serde(default)]
    pub(in super::super) reporter: Option<String>,
    /// The session in which the user said it. Leave it out if you were not told.
    #[serde(default)]
    pub(in super::super) session_id: Option<String>,
    /// Only to repeat a call safely: the `request_id` that the failed call named, otherwise a UUID of your own.
    #[serde(default)]
    pub(in super::super) request_id: Option<String>,
}
