//! Writes what renderings were merged to as templates of a chart: YAML with conditions, and with values in some places.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::merge::{Condition, Node, Place};

/// A scalar that is a value of the chart.
pub(crate) struct Setting {
    /// How the paths of these places end, or begin and end with a star between.
    pub(crate) at: String,
    /// What the manifests have there; empty: whatever it is.
    pub(crate) is: String,
    /// The expression in its place.
    pub(crate) becomes: String,
}

/// Where a value of the chart, if it is set, replaces what the manifests have, or comes in addition to it.
pub(crate) struct Opening {
    /// How the path of this place begins and ends.
    pub(crate) at: (&'static str, &'static str),
    pub(crate) value: &'static str,
    pub(crate) replaces: bool,
}

pub(crate) struct Writer<'a> {
    /// How to ask for each component.
    pub(crate) components: &'a [&'a str],
    pub(crate) settings: &'a [Setting],
    /// What stands within longer texts, and what is written in its place.
    pub(crate) embedded: &'a [(&'a str, &'a str)],
    pub(crate) openings: &'a [Opening],
    /// The settings and openings that were somewhere, by their index.
    used: (BTreeSet<usize>, BTreeSet<usize>),
}

impl<'a> Writer<'a> {
    pub(crate) fn new(
        components: &'a [&'a str],
        settings: &'a [Setting],
        embedded: &'a [(&'a str, &'a str)],
        openings: &'a [Opening],
    ) -> Self {
        Self {
            components,
            settings,
            embedded,
            openings,
            used: Default::default(),
        }
    }

    /// Writes one object.
    pub(crate) fn object(&mut self, path: &str, place: &Place) -> Result<String> {
        let [(None, Node::Map(places))] = &place.nodes[..] else {
            anyhow::bail!("{path} is no object");
        };
        let text = format!("---\n{}", self.map(path, places, 0)?);
        Ok(self.under(place.condition.as_ref(), &[], text))
    }

    /// Fails if a setting or an opening was nowhere.
    pub(crate) fn all_used(&self) -> Result<()> {
        let settings = self.settings.iter().enumerate();
        let settings = settings.filter(|(index, _)| !self.used.0.contains(index));
        let openings = self.openings.iter().enumerate();
        let openings = openings.filter(|(index, _)| !self.used.1.contains(index));
        let unused: Vec<&str> = settings
            .map(|(_, setting)| &*setting.becomes)
            .chain(openings.map(|(_, opening)| opening.value))
            .collect();
        ensure!(unused.is_empty(), "no manifest has a place for {unused:?}");
        Ok(())
    }

    /// `text` under a condition, or also where one of the values is set.
    fn under(&self, condition: Option<&Condition>, values: &[&str], text: String) -> String {
        let Some(Condition { all, literals }) = condition else {
            return text;
        };
        let asked = literals.iter().map(|&(component, chosen)| {
            let asked = self.components[component];
            if chosen {
                asked.to_owned()
            } else {
                format!("(not {asked})")
            }
        });
        let joined = |word: &str, parts: Vec<String>| match &parts[..] {
            [one] => {
                let inner = one.strip_prefix('(').and_then(|one| one.strip_suffix(')'));
                inner.unwrap_or(one).to_owned()
            }
            several => format!("{word} {}", several.join(" ")),
        };
        let mut said = joined(if *all { "and" } else { "or" }, asked.collect());
        for value in values {
            said = format!("or ({said}) {value}");
        }
        format!("{{{{- if {said} }}}}\n{text}{{{{- end }}}}\n")
    }

    fn openings_at(&mut self, path: &str, replaces: bool) -> Vec<&'static str> {
        let mut values = Vec::new();
        for (index, opening) in self.openings.iter().enumerate() {
            let (begins, ends) = opening.at;
            if opening.replaces == replaces && path.starts_with(begins) && path.ends_with(ends) {
                self.used.1.insert(index);
                values.push(opening.value);
            }
        }
        values
    }

    /// Lines that each begin with `indent` spaces.
    fn map(&mut self, path: &str, places: &[(String, Place)], indent: usize) -> Result<String> {
        let mut always = String::new();
        let mut rest = String::new();
        for (key, place) in places {
            let path = format!("{path}/{key}");
            let replaced = self.openings_at(&path, true);
            let mut text = String::new();
            for (condition, node) in &place.nodes {
                let one = self.entry(&path, key, node, indent)?;
                text.push_str(&self.under(condition.as_ref(), &[], one));
            }
            let plain = place.condition.is_none() && place.nodes.len() == 1 && replaced.is_empty();
            let margin = " ".repeat(indent);
            for value in replaced {
                // A text is written as one, anything else as YAML.
                let is_text = matches!(place.nodes[0].1, Node::Scalar(_));
                let set = if is_text {
                    format!("{margin}{}: {{{{ . | quote }}}}", plain_or_quoted(key))
                } else {
                    let deeper = indent + 2;
                    format!(
                        "{margin}{}:{{{{ toYaml . | nindent {deeper} }}}}",
                        plain_or_quoted(key)
                    )
                };
                text = format!("{{{{- with {value} }}}}\n{set}\n{{{{- else }}}}\n{text}{{{{- end }}}}\n");
            }
            // What comes in addition needs the key, whatever else is in there.
            let added: Vec<&str> = if place.condition.is_some() {
                self.openings_at(&path, false)
            } else {
                Vec::new()
            };
            let text = self.under(place.condition.as_ref(), &added, text);
            if plain { &mut always } else { &mut rest }.push_str(&text);
        }
        always.push_str(&rest);
        for value in self.openings_at(path, false) {
            always.push_str(&addition(value, indent));
        }
        Ok(always)
    }

    /// A key with its value.
    fn entry(&mut self, path: &str, key: &str, node: &Node, indent: usize) -> Result<String> {
        let margin = " ".repeat(indent);
        let key = plain_or_quoted(key);
        Ok(match node {
            Node::Scalar(value) => format!("{margin}{key}: {}\n", self.scalar(path, value, indent + 2)),
            Node::Map(places) if places.is_empty() => format!("{margin}{key}: {{}}\n"),
            Node::List(items) if items.is_empty() => format!("{margin}{key}: []\n"),
            Node::Map(places) => format!("{margin}{key}:\n{}", self.map(path, places, indent + 2)?),
            Node::List(items) => format!("{margin}{key}:\n{}", self.list(path, items, indent + 2)?),
        })
    }

    fn list(&mut self, path: &str, items: &[(String, Place)], indent: usize) -> Result<String> {
        // Neighbours under the same condition are written together.
        let mut parts: Vec<(Option<&Condition>, String)> = Vec::new();
        let margin = " ".repeat(indent);
        for (name, place) in items {
            let path = format!("{path}/{name}");
            let mut text = String::new();
            for (condition, node) in &place.nodes {
                let one = match node {
                    Node::Scalar(value) => format!("{margin}- {}\n", self.scalar(&path, value, indent + 2)),
                    Node::Map(places) if places.is_empty() => format!("{margin}- {{}}\n"),
                    Node::Map(places) => {
                        let map = self.map(&path, places, indent + 2)?;
                        let first = map.strip_prefix(&format!("{margin}  "));
                        let first = first.with_context(|| format!("{path}: nothing is always there"))?;
                        format!("{margin}- {first}")
                    }
                    Node::List(_) => anyhow::bail!("{path}: a list in a list"),
                };
                text.push_str(&self.under(condition.as_ref(), &[], one));
            }
            let condition = place.condition.as_ref();
            match parts.last_mut().filter(|(last, _)| *last == condition) {
                Some((_, last)) => last.push_str(&text),
                None => parts.push((condition, text)),
            }
        }
        let parts = parts.into_iter();
        let mut lines: String = parts
            .map(|(condition, text)| self.under(condition, &[], text))
            .collect();
        for value in self.openings_at(path, false) {
            lines.push_str(&addition(value, indent));
        }
        Ok(lines)
    }

    fn scalar(&mut self, path: &str, value: &Value, indent: usize) -> String {
        let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        for (index, setting) in self.settings.iter().enumerate() {
            let (begins, ends) = setting.at.split_once('*').unwrap_or(("", &setting.at));
            let is_here = path.starts_with(begins) && path.ends_with(ends);
            if is_here && (setting.is.is_empty() || said == setting.is) {
                self.used.0.insert(index);
                let kind = if value.is_string() { "quote" } else { "int" };
                return format!("{{{{ {} | {kind} }}}}", setting.becomes);
            }
        }
        match value {
            Value::String(text) => {
                let written = literal(text, indent);
                let embedded = self.embedded.iter();
                embedded.fold(written, |written, (is, becomes)| written.replace(is, becomes))
            }
            other => other.to_string(),
        }
    }
}

/// What a value brings in addition, as YAML.
fn addition(value: &str, indent: usize) -> String {
    format!("{{{{- with {value} }}}}\n{{{{- toYaml . | nindent {indent} }}}}\n{{{{- end }}}}\n")
}

/// A text that templates leave alone: as a block if it has several lines.
fn literal(text: &str, indent: usize) -> String {
    let ends = text.ends_with('\n');
    let body = text.strip_suffix('\n').unwrap_or(text);
    let block = body.contains('\n') && !body.starts_with([' ', '\n']) && !body.ends_with('\n');
    if !block {
        return escaped(&plain_or_quoted(text));
    }
    let mut lines = String::from(if ends { "|" } else { "|-" });
    for line in body.split('\n') {
        lines.push('\n');
        if !line.is_empty() {
            lines.push_str(&" ".repeat(indent));
            lines.push_str(&escaped(line));
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace("{{", "{{ \"{{\" }}")
}

/// A text as YAML, without quotes where nobody could take it for anything else.
fn plain_or_quoted(text: &str) -> String {
    let mut letters = text.chars();
    let plain = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '/')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "._/-".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{literal, plain_or_quoted};

    #[test]
    fn a_text_stays_one_and_templates_leave_it_alone() {
        for (text, written) in [
            ("emend-learning", "emend-learning"),
            ("true", "\"true\""),
            ("0.5", "\"0.5\""),
            ("a: b", "\"a: b\""),
            ("{{ $value }}", "\"{{ \"{{\" }} $value }}\""),
            ("one\n\n  two\n", "|\n  one\n\n    two"),
            ("one\ntwo", "|-\n  one\n  two"),
        ] {
            assert_eq!(literal(text, 2), written);
        }
        assert_eq!(
            plain_or_quoted("app.kubernetes.io/name"),
            "app.kubernetes.io/name"
        );
    }
}
