//! What an AI is asked with: prompts, the examples below them, and the profiles of users.

use std::{collections::BTreeMap, sync::Arc};

use emend_core::{
    FewShotSet, Language, Namespace, Profile, ProfileEntry, Prompt, Revision, UserId, Violations,
    kinds::{EXPERIENCE_YEARS, LISTS},
    outputs::render_for,
    ratings::target_named,
};

use super::{
    LearnedView, Reading,
    entry::{Entry, Found},
    publisher::Fact,
};

/// What was learned for a target of outputs of its name, or for a user in the field of profiles of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// The examples; `None` if there are none.
    pub(crate) examples: Option<Arc<FewShotSet>>,
    /// The version that is current under each label, sorted by label.
    prompts: Vec<(Box<str>, PromptInForce)>,
    /// The entries of the field, sorted by entry.
    entries: Vec<(Box<str>, Arc<ProfileEntry>)>,
}

/// A version of a prompt, and since when it is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptInForce {
    /// The version.
    pub prompt: Arc<Prompt>,
    /// The revision that made it current.
    pub revision: Revision,
}

impl Outputs {
    /// Records the version that is now current under a label, or that none is.
    pub(crate) fn set_prompt(&mut self, label: &str, prompt: Option<PromptInForce>) {
        set(&mut self.prompts, label, prompt);
    }

    /// Records an entry of a profile, or that it is gone.
    pub(crate) fn set_entry(&mut self, entry: &str, value: Option<ProfileEntry>) {
        set(&mut self.entries, entry, value.map(Arc::new));
    }

    fn prompt(&self, label: &str) -> Option<&PromptInForce> {
        let place = self.prompts.binary_search_by(|(known, _)| (**known).cmp(label));
        self.prompts.get(place.ok()?).map(|(_, prompt)| prompt)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Puts a value in its place in a sorted list, or takes it away.
fn set<T>(list: &mut Vec<(Box<str>, T)>, name: &str, value: Option<T>) {
    match (list.binary_search_by(|(known, _)| (**known).cmp(name)), value) {
        (Ok(place), Some(value)) => list[place].1 = value,
        (Ok(place), None) => drop(list.remove(place)),
        (Err(place), Some(value)) => list.insert(place, (name.into(), value)),
        (Err(_), None) => {}
    }
}

impl Entry {
    /// Changes what is learned for outputs, and leaves none empty.
    pub(crate) fn change_outputs(&mut self, change: impl FnOnce(&mut Outputs)) {
        let outputs = self.outputs.get_or_insert_default();
        change(outputs);
        self.outputs.take_if(|outputs| outputs.is_empty());
    }

    /// Records a version of a prompt, in the entry of its target.
    pub(crate) fn note_prompt(&mut self, fact: &Fact<'_>, prompt: Option<&Prompt>) {
        let in_force = prompt.map(|prompt| PromptInForce {
            prompt: Arc::new(prompt.clone()),
            revision: fact.revision,
        });
        self.change_outputs(|outputs| outputs.set_prompt(fact.qualifier, in_force));
    }
}

/// A prompt as it is sent to an AI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The whole text.
    pub text: String,
    /// The version of the prompt: send it as `prompt_version` with ratings of what it makes.
    pub version: u32,
    /// The version itself, with the settings of the model.
    pub prompt: Arc<Prompt>,
}

/// Which prompt to render, and with what.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions<'a> {
    /// The label that is followed; `None`: production.
    pub label: Option<&'a str>,
    /// The texts of variables, by name.
    pub variables: BTreeMap<String, String>,
    /// Whose profile to add.
    pub user: Option<&'a UserId>,
    /// The language of headings; `None`: that of the target's examples.
    pub language: Option<Language>,
}

impl LearnedView {
    /// The newest rated examples for what an AI is asked, by the target's name; without ratings, none.
    /// [`render_prompt`](crate::render_prompt) puts them below a prompt.
    pub fn few_shot_set(&self, namespace: &Namespace, target: &str) -> Arc<FewShotSet> {
        self.read().few_shot_set(namespace, target)
    }

    /// The prompt of a target that is current under a label; `None` if none is.
    pub fn prompt(&self, namespace: &Namespace, target: &str, label: &str) -> Option<PromptInForce> {
        self.read().prompt(namespace, target, label).cloned()
    }

    /// What a user knows and wants to learn. Only where the node subscribes to what is users' own.
    pub fn profile(&self, namespace: &Namespace, user: &UserId) -> Profile {
        self.read().profile(namespace, user)
    }

    /// The prompt of a target as it is sent to the AI: its text with variables filled in, the examples, and the profile of a user
    /// where one is named. `None` if no version is current. Without examples and profile it is the text byte for byte.
    pub fn render(
        &self,
        namespace: &Namespace,
        target: &str,
        options: &RenderOptions<'_>,
    ) -> Result<Option<Rendered>, Violations> {
        self.read().render(namespace, target, options)
    }
}

impl Reading<'_> {
    fn outputs(&self, namespace: &Namespace, target: &str) -> Option<&Outputs> {
        let named = |name: &str| {
            let key = self.hash.namespace(namespace.as_str()) ^ self.hash.phrase(name);
            self.state.find(key).and_then(Found::outputs)
        };
        // Only a name under which nothing is kept may be another spelling: the usual one costs nothing more.
        named(target.trim()).or_else(|| named(target_named(target)?.name))
    }

    /// The newest rated examples for what an AI is asked, by the target's name; without ratings, none.
    pub fn few_shot_set(&self, namespace: &Namespace, target: &str) -> Arc<FewShotSet> {
        let found = self.outputs(namespace, target);
        found
            .and_then(|outputs| outputs.examples.clone())
            .unwrap_or_default()
    }

    /// The prompt of a target that is current under a label; `None` if none is.
    pub fn prompt(&self, namespace: &Namespace, target: &str, label: &str) -> Option<&PromptInForce> {
        self.outputs(namespace, target)?.prompt(label.trim())
    }

    /// What a user knows and wants to learn.
    pub fn profile(&self, namespace: &Namespace, user: &UserId) -> Profile {
        let mut profile = Profile::default();
        if !self.state.user_scoped {
            return profile;
        }
        let own = self.hash.namespace(namespace.as_str()) ^ self.hash.user(user.as_str());
        for field in LISTS.into_iter().chain([EXPERIENCE_YEARS]) {
            let found = self.state.find(own ^ self.hash.phrase(field));
            for (entry, value) in found
                .and_then(Found::outputs)
                .iter()
                .flat_map(|outputs| &outputs.entries)
            {
                profile.set(field, entry, Some(value));
            }
        }
        profile
    }

    /// The prompt of a target as it is sent to the AI; see [`LearnedView::render`].
    pub fn render(
        &self,
        namespace: &Namespace,
        target: &str,
        options: &RenderOptions<'_>,
    ) -> Result<Option<Rendered>, Violations> {
        let label = options.label.unwrap_or(emend_core::kinds::PRODUCTION);
        let Some(PromptInForce { prompt, .. }) = self.prompt(namespace, target, label) else {
            return Ok(None);
        };
        let filled = prompt.fill(&options.variables)?;
        let examples = self.few_shot_set(namespace, target);
        let profile = options.user.map(|user| self.profile(namespace, user));
        let language = options.language.unwrap_or(examples.language);
        Ok(Some(Rendered {
            text: render_for(&filled, &examples, &profile.unwrap_or_default(), language),
            version: prompt.version,
            prompt: Arc::clone(prompt),
        }))
    }
}
