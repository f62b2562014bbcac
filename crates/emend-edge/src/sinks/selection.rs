//! What of a state a sink keeps.

use std::collections::{BTreeMap, BTreeSet};

use emend_client::{
    Learned, LearnedResource, LearnedState, LearnedView, Namespace, NormalizedKey, Refused,
    prompt_files::{PromptFile, file_name},
};

use super::{
    config::Format,
    content::{Content, Entries, Origin, Wanted},
    synonyms::{PROBE, WRITING},
};

/// A label in no domain that anybody has a rule for: what is below a name, whatever it is.
const BELOW: &str = "emend-probe";

/// What is kept, and of which search applications.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) namespaces: Vec<String>,
    pub(super) what: What,
}

/// What is kept.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// All synonyms for everybody.
    Synonyms,
    /// The domains that are blocked, in one of the formats of lists.
    Domains(Format),
    /// The prompts that are current under this label.
    Prompts(String),
}

impl Selection {
    /// What tells it from another selection.
    pub(super) fn identity(&self) -> Vec<String> {
        let mut identity = self.namespaces.clone();
        identity.sort_unstable();
        identity.dedup();
        identity.push(match &self.what {
            What::Synonyms => "synonyms".to_owned(),
            What::Domains(_) => "domains".to_owned(),
            What::Prompts(label) => format!("prompts {label}"),
        });
        identity
    }

    /// What is to be kept of this state, for which the view answers, or for a newer one.
    pub(super) fn of(&self, state: &LearnedState, view: &LearnedView) -> Wanted {
        let resources = state.resources.iter().filter(|resource| {
            resource.key.user_id.is_empty() && self.namespaces.contains(&resource.key.namespace)
        });
        match &self.what {
            What::Synonyms => synonyms(resources, view),
            What::Domains(format) => domains(resources, view, *format),
            What::Prompts(label) => prompts(resources, label),
        }
    }
}

/// The origins of parts: of each the newest resource.
#[derive(Default)]
struct Origins(BTreeMap<String, Origin>);

impl Origins {
    fn note(&mut self, part: &str, resource: &LearnedResource) {
        let is_newest = self
            .0
            .get(part)
            .is_none_or(|known| known.revision < resource.revision);
        if is_newest {
            let origin = Origin {
                key: resource.key.clone(),
                revision: resource.revision,
            };
            self.0.insert(part.to_owned(), origin);
        }
    }
}

/// Every term with what a node searches for in its place. Terms are in the form in which they are compared: an engine's analysis
/// brings texts into a form of its own.
fn synonyms<'a>(resources: impl Iterator<Item = &'a LearnedResource>, view: &LearnedView) -> Wanted {
    let mut origins = Origins::default();
    let mut entries = Entries::new();
    let mut refused = Vec::new();
    for resource in resources {
        let Learned::Synonym(_) = &resource.value.learned else {
            continue;
        };
        let Ok(namespace) = Namespace::parse(&resource.key.namespace) else {
            continue;
        };
        for term in [&resource.key.key, &resource.key.qualifier] {
            origins.note(term, resource);
            if [PROBE, WRITING].contains(&term.as_str()) {
                refused.push(Refused {
                    key: resource.key.clone(),
                    revision: resource.revision,
                    error: format!("{term:?} is a word that sinks keep for themselves"),
                });
                continue;
            }
            let found = view.synonyms(&namespace, term, None).unwrap_or_default();
            if found.is_empty() {
                continue;
            }
            let all: &mut BTreeSet<String> = entries.entry(term.clone()).or_default();
            all.insert(term.clone());
            all.extend(
                found
                    .iter()
                    .filter_map(|other| NormalizedKey::parse(other).ok())
                    .map(|other| other.as_str().to_owned()),
            );
        }
    }
    Wanted::new(Content::Synonyms(entries), origins.0, refused)
}

/// The domains that are blocked, and those below them that are not.
fn domains<'a>(
    resources: impl Iterator<Item = &'a LearnedResource>,
    view: &LearnedView,
    format: Format,
) -> Wanted {
    let mut origins = Origins::default();
    let mut lines = BTreeSet::new();
    let mut refused = Vec::new();
    for resource in resources {
        let Learned::DomainRule(_) = &resource.value.learned else {
            continue;
        };
        let Ok(namespace) = Namespace::parse(&resource.key.namespace) else {
            continue;
        };
        let (base, below_only) = match resource.key.key.strip_prefix("*.") {
            Some(base) => (base, true),
            None => (resource.key.key.as_str(), false),
        };
        let host = if below_only {
            format!("{BELOW}.{base}")
        } else {
            base.to_owned()
        };
        let is_blocked = view.is_blocked(&namespace, &host).unwrap_or_default();
        match line(format, base, below_only, is_blocked) {
            Ok(None) => {}
            Ok(Some(line)) => {
                origins.note(&line, resource);
                lines.insert(line);
            }
            Err(words) => refused.push(Refused {
                key: resource.key.clone(),
                revision: resource.revision,
                error: words.to_owned(),
            }),
        }
    }
    Wanted::new(Content::Lines(lines.into_iter().collect()), origins.0, refused)
}

/// The line of a pattern; none if the format needs none. An error if the format can't say it.
fn line(
    format: Format,
    base: &str,
    below_only: bool,
    is_blocked: bool,
) -> Result<Option<String>, &'static str> {
    Ok(match (format, is_blocked, below_only) {
        (Format::Plain, true, true) => Some(format!("*.{base}")),
        (Format::Plain, true, false) => Some(base.to_owned()),
        (Format::Hosts, true, false) => Some(format!("0.0.0.0 {base}")),
        (Format::Hosts, true, true) => return Err("a hosts file can't name all subdomains of a domain"),
        (Format::Ublacklist, true, _) => Some(format!("*://*.{base}/*")),
        (Format::Ublacklist, false, false) => Some(format!("@*://{base}/*")),
        (Format::Ublacklist, false, true) => Some(format!("@*://*.{base}/*")),
        (Format::Plain | Format::Hosts, false, _) | (Format::Solr | Format::Json, ..) => None,
    })
}

/// The files of prompts.
fn prompts<'a>(resources: impl Iterator<Item = &'a LearnedResource>, label: &str) -> Wanted {
    let mut origins = Origins::default();
    let mut files = BTreeMap::new();
    for resource in resources.filter(|resource| resource.key.qualifier == label) {
        if let Learned::Prompt(prompt) = &resource.value.learned {
            let name = file_name(&resource.key.key);
            files.insert(
                name.clone(),
                PromptFile::of(&resource.key.key, prompt).to_string(),
            );
            origins.note(&name, resource);
        }
    }
    Wanted::new(Content::Files(files), origins.0, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_of_a_list_says_what_it_can() {
        for (format, below_only, is_blocked, expected) in [
            (Format::Plain, false, true, Ok(Some("example.org"))),
            (Format::Plain, true, true, Ok(Some("*.example.org"))),
            (Format::Plain, false, false, Ok(None)),
            (Format::Hosts, false, true, Ok(Some("0.0.0.0 example.org"))),
            (
                Format::Hosts,
                true,
                true,
                Err("a hosts file can't name all subdomains of a domain"),
            ),
            (Format::Ublacklist, false, true, Ok(Some("*://*.example.org/*"))),
            (Format::Ublacklist, false, false, Ok(Some("@*://example.org/*"))),
        ] {
            let line = line(format, "example.org", below_only, is_blocked);
            assert_eq!(
                line.as_ref().map(Option::as_deref),
                expected.as_ref().map(|line| *line),
                "{format:?}"
            );
        }
    }
}
