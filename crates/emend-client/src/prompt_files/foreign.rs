//! What others write above a prompt: keys of YAML, kept as settings.
//!
//! Each scalar is a setting, named by its keys from the outermost to its own. What is a list or in brackets is one as it is
//! written. This reads what dotprompt, promptfoo and similar tools write; it is no reader of all YAML.

use emend_core::kinds::Setting;

/// Whether these lines, which stand between two rules, are keys: the first says one, and each that is not indented says one, or
/// goes on with the key above it.
pub(super) fn is_header(lines: &[&str]) -> bool {
    let is_comment = |line: &str| line.starts_with('#');
    let mut contents = lines.iter().filter(|line| !is_comment(line));
    let begins = contents.next().is_none_or(|line| key(line).is_some());
    let goes_on =
        |line: &str| line.is_empty() || line.starts_with([' ', '\t', '}', ']']) || line.starts_with("- ");
    begins && contents.all(|line| goes_on(line) || key(line).is_some())
}

/// The key at the beginning of a line, and what follows its colon.
fn key(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let is_key =
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_of_key);
    (is_key && (value.is_empty() || value.starts_with([' ', '\t']))).then_some((name, value.trim()))
}

/// Keys as they are read, line by line.
#[derive(Default)]
pub(super) struct Keys {
    /// The keys that further lines may stand below, from the outermost, each with its indentation.
    open: Vec<(usize, String)>,
    /// Names and values, in their order.
    read: Vec<(String, String)>,
    /// The last value is written below its key, in lines of its own.
    is_block: bool,
}

impl Keys {
    /// Reads a line, which is not empty and no comment.
    pub(super) fn read(&mut self, line: &str) -> Result<(), String> {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let item = content.strip_prefix("- ").map(str::trim);
        // A list may stand as far to the left as its key.
        let is_below = |open: usize| open < indent || (item.is_some() && open == indent);
        if !self.is_block || self.open.last().is_some_and(|(open, _)| *open >= indent) {
            self.is_block = false;
            while self.open.last().is_some_and(|(open, _)| !is_below(*open)) {
                self.open.pop();
            }
            if item.is_none()
                && let Some((name, value)) = key(content)
            {
                self.open.push((indent, name.to_owned()));
                self.is_block = matches!(value.as_bytes(), [b'|' | b'>', ..]);
                if !value.is_empty() && !self.is_block {
                    let name = self.name();
                    self.read.push((name, scalar(value)));
                }
                return Ok(());
            }
        }
        if self.open.is_empty() {
            return Err("expected a name and a colon".into());
        }
        let separator = if item.is_some() && !self.is_block {
            ", "
        } else {
            " "
        };
        let more = if self.is_block {
            content.to_owned()
        } else {
            scalar(item.unwrap_or(content))
        };
        let name = self.name();
        match self.read.last_mut().filter(|(last, _)| *last == name) {
            Some((_, value)) => {
                value.push_str(separator);
                value.push_str(&more);
            }
            None => self.read.push((name, more)),
        }
        Ok(())
    }

    /// The settings that they are.
    pub(super) fn settings(self) -> impl Iterator<Item = Setting> {
        let kept = self
            .read
            .into_iter()
            .filter(|(_, value)| !value.trim().is_empty());
        kept.map(|(name, value)| Setting { name, value })
    }

    /// The name of the setting that the open keys are: `maxTokens` below `config` is `config_max_tokens`.
    fn name(&self) -> String {
        let mut name = String::new();
        for (_, key) in &self.open {
            if !name.is_empty() {
                name.push('_');
            }
            let mut is_after_lower = false;
            for c in key.chars() {
                if c.is_ascii_uppercase() && is_after_lower {
                    name.push('_');
                }
                is_after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
                if c.is_ascii_alphanumeric() {
                    name.push(c.to_ascii_lowercase());
                } else if !name.is_empty() {
                    name.push('_');
                }
            }
        }
        name
    }
}

/// A value as it is meant, without its quotation marks and the comment behind it.
fn scalar(value: &str) -> String {
    for quote in ['"', '\''] {
        let inner = value
            .strip_prefix(quote)
            .and_then(|inner| inner.split_once(quote));
        if let Some((inner, rest)) = inner
            && (rest.is_empty() || rest.trim_start().starts_with('#'))
        {
            return inner.to_owned();
        }
    }
    let comment = value.find(" #").unwrap_or(value.len());
    value.get(..comment).unwrap_or(value).trim().to_owned()
}
