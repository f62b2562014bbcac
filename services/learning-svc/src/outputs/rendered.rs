//! A prompt as a node would send it, from what nodes hold.

use std::collections::BTreeMap;

use emend_base::Error;
use emend_core::{FewShotSet, Kind, Language, Learned, Profile, Prompt, ResourceKey, outputs::render_for};
use emend_stream::state::{Entry, ReplicaState};
use emend_wire::value;

use crate::{outputs::improve::window_of, stream::corrupt};

/// Which prompt to render, and with what.
#[derive(Debug)]
pub(crate) struct Render {
    /// The prompt, under its label.
    pub(crate) key: ResourceKey,
    /// The texts of variables, by name.
    pub(crate) variables: BTreeMap<String, String>,
    /// Whose profile to add; may be empty.
    pub(crate) user_id: String,
    /// The language of headings; none: that of the examples.
    pub(crate) language: Option<Language>,
}

/// A prompt as it is sent.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The whole text.
    pub(crate) text: String,
    /// The version.
    pub(crate) prompt: Prompt,
    /// How many good and how many bad examples there are.
    pub(crate) examples: (usize, usize),
    /// The newest revision of what it is made of.
    pub(crate) revision: i64,
}

/// Renders a prompt; `None` if no version is current.
pub(crate) fn render(state: &ReplicaState, of: &Render) -> Result<Option<Rendered>, Error> {
    let Some((prompt, mut revision)) = current(state, &of.key)? else {
        return Ok(None);
    };
    let filled = prompt.fill(&of.variables).map_err(Error::from)?;
    let mut set = FewShotSet::default();
    let window = window_of(&of.key);
    let found = state.get(
        window.namespace.as_str(),
        window.kind.number(),
        window.key.as_str(),
        "",
        "",
    );
    if let Some(entry) = found {
        revision = revision.max(entry.revision);
        if let Learned::FewShotSet(examples) = learned(entry)? {
            set = examples;
        }
    }
    let mut profile = Profile::default();
    if !of.user_id.is_empty() {
        let kind = Kind::Profile.number();
        for entry in state.of_kind(of.key.namespace.as_str(), kind, &of.user_id, ("", ""), true) {
            revision = revision.max(entry.revision);
            if let Learned::ProfileEntry(value) = learned(entry)? {
                profile.set(&entry.key, &entry.qualifier, Some(&value));
            }
        }
    }
    let language = of.language.unwrap_or(set.language);
    Ok(Some(Rendered {
        text: render_for(&filled, &set, &profile, language),
        prompt,
        examples: (set.good.len(), set.bad.len()),
        revision,
    }))
}

/// The version that is current, and since which revision.
pub(crate) fn current(state: &ReplicaState, key: &ResourceKey) -> Result<Option<(Prompt, i64)>, Error> {
    let entry = state.get(
        key.namespace.as_str(),
        key.kind.number(),
        key.key.as_str(),
        &key.qualifier,
        "",
    );
    let Some(entry) = entry else { return Ok(None) };
    match learned(entry)? {
        Learned::Prompt(prompt) => Ok(Some((prompt, entry.revision))),
        _ => Err(corrupt(entry, "is not of the resource's kind")),
    }
}

fn learned(entry: &Entry) -> Result<Learned, Error> {
    let bytes = entry.value.as_deref().unwrap_or_default();
    let value = value::decode(bytes).map_err(|invalid| corrupt(entry, &invalid.to_string()))?;
    Ok(value.learned)
}

/// The name of the variable that stands for what the AI is given.
const INPUT: &str = "input";

/// A prompt as it is asked with one input, in two parts: a variable named input is filled with it, other variables without a
/// default stay as they are. The second part is the input where the prompt has no such variable.
pub(crate) fn asked<'i>(prompt: &Prompt, input: &'i str) -> (String, &'i str) {
    let takes_input = prompt.variables().iter().any(|variable| variable.name == INPUT);
    let values = prompt.variables().iter().filter_map(|variable| {
        let value = match (&variable.default, variable.name.as_str()) {
            (_, INPUT) => input.to_owned(),
            (None, name) => format!("{{{{{name}}}}}"),
            (Some(_), _) => return None,
        };
        Some((variable.name.clone(), value))
    });
    match prompt.fill(&values.collect()) {
        Ok(filled) if takes_input => (filled, ""),
        Ok(filled) => (filled, input),
        // An input that can't be filled in stands below.
        Err(_) => (prompt.text().to_owned(), input),
    }
}

/// The same as one text.
pub(crate) fn asked_whole(prompt: &Prompt, input: &str) -> String {
    match asked(prompt, input) {
        (filled, "") => filled,
        (filled, input) => format!("{filled}\n\n{input}"),
    }
}
