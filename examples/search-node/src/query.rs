//! What a text is searched for: its words, and in place of those for which something was taught, one of several.

use anyhow::Result;
use emend_client::ExpandedText;

use crate::words::{Word, Words};

/// What must be there for one part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A word.
    Word(Word),
    /// Words that follow each other.
    Phrase(Vec<Word>),
}

/// A part of a query, in whichever of these ways it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part(pub(crate) Vec<Wanted>);

/// The parts of a query, each once. Words that nearly every query has are left out, unless there are no others.
pub(crate) fn parts(words: &Words, expanded: &ExpandedText) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut common = Vec::new();
    let mut add = |part: Part, is_common: bool| {
        let parts = if is_common { &mut common } else { &mut parts };
        if !parts.contains(&part) {
            parts.push(part);
        }
    };
    let mut from = 0;
    let plain = |text: &str, add: &mut dyn FnMut(Part, bool)| -> Result<()> {
        for mut word in words.of(text)? {
            let is_common = word.is_common();
            // A word is the same wherever it stands.
            word.position = 0;
            add(Part(vec![Wanted::Word(word)]), is_common);
        }
        Ok(())
    };
    for group in &expanded.groups {
        plain(&expanded.original[from..group.span.start], &mut add)?;
        let mut any_of = Vec::new();
        for alternative in &group.alternatives {
            any_of.extend(wanted(words.of(alternative)?));
        }
        if !any_of.is_empty() {
            add(Part(any_of), false);
        }
        from = group.span.end;
    }
    plain(&expanded.original[from..], &mut add)?;
    Ok(if parts.is_empty() { common } else { parts })
}

fn wanted(mut words: Vec<Word>) -> Option<Wanted> {
    match words.len() {
        0 => None,
        1 => words.pop().map(Wanted::Word),
        _ => Some(Wanted::Phrase(words)),
    }
}
