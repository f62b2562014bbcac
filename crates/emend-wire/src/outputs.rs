//! Prompts and entries of profiles, between their messages and what they mean.

use emend_core::{
    ProfileEntry, Prompt, Violations,
    kinds::{Setting, Variable},
};
use emend_proto::common::v1::{self as pb, profile_value::Value};

/// A prompt, with the number that it says; see [`Prompt::new`].
pub fn prompt(message: &pb::PromptValue) -> Result<Prompt, Violations> {
    let mut violations = Violations::new();
    let variables = message.variables.iter().map(|variable| Variable {
        name: variable.name.clone(),
        default: variable.default_value.clone(),
    });
    let settings = message.settings.iter().map(|setting| Setting {
        name: setting.name.clone(),
        value: setting.value.clone(),
    });
    let parsed = Prompt::new(&message.text, variables.collect(), settings.collect());
    let parsed = violations.part("", parsed);
    let version = u32::try_from(message.version);
    if version.is_err() {
        violations.add("version", format!("must not be negative, is {}", message.version));
    }
    violations.finish(parsed.zip(version.ok()).map(|(mut prompt, version)| {
        prompt.version = version;
        prompt
    }))
}

/// The message of a prompt.
pub fn prompt_message(prompt: &Prompt) -> pb::PromptValue {
    pb::PromptValue {
        version: i32::try_from(prompt.version).unwrap_or(i32::MAX),
        text: prompt.text().to_owned(),
        variables: prompt
            .variables()
            .iter()
            .map(|variable| pb::PromptVariable {
                name: variable.name.clone(),
                default_value: variable.default.clone(),
            })
            .collect(),
        settings: settings(prompt),
    }
}

/// The messages of a prompt's settings.
pub fn settings(prompt: &Prompt) -> Vec<pb::PromptSetting> {
    let settings = prompt.settings().iter();
    settings
        .map(|setting| pb::PromptSetting {
            name: setting.name.clone(),
            value: setting.value.clone(),
        })
        .collect()
}

/// An entry of a profile.
pub(crate) fn profile_entry(message: &pb::ProfileValue) -> Result<ProfileEntry, Violations> {
    let mut violations = Violations::new();
    let entry = match &message.value {
        Some(Value::Entry(entry)) => violations.check("entry", ProfileEntry::text(entry)),
        Some(Value::Years(years)) => {
            let years = u32::try_from(*years).unwrap_or(u32::MAX);
            violations.check("years", ProfileEntry::years(years))
        }
        None => {
            violations.add("value", "is required: entry or years");
            None
        }
    };
    violations.finish(entry)
}

/// The message of an entry of a profile.
pub(crate) fn profile_message(entry: ProfileEntry) -> pb::ProfileValue {
    let value = match entry {
        ProfileEntry::Years(years) => Value::Years(i32::try_from(years).unwrap_or(i32::MAX)),
        ProfileEntry::Text(entry) => Value::Entry(entry),
    };
    pb::ProfileValue { value: Some(value) }
}
