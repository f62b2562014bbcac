//! Terms in running text, found in one pass whatever the number of terms, the longest first.
//!
//! All occurrences come from one automaton (Aho and Corasick, "Efficient string matching", 1975, as a double array of
//! characters). Those that would cut a word are dropped, and of what is left the leftmost is taken, of several that begin
//! there the longest, and so on behind its end. The automaton can't drop them itself: one that is cut may cover another one that
//! is whole.

use std::{cmp::Reverse, collections::HashMap, fmt, ops::Range, sync::Arc};

use daachorse::{CharwiseDoubleArrayAhoCorasick, CharwiseDoubleArrayAhoCorasickBuilder};

use super::fold::FoldedText;
use crate::normalize::normalize;

/// Finds terms of a fixed list.
pub struct Matcher {
    /// `None` if there is nothing to find.
    automaton: Option<CharwiseDoubleArrayAhoCorasick<u32>>,
    patterns: Vec<Pattern>,
}

/// Terms with one folded form.
#[derive(Debug)]
struct Pattern {
    /// In characters.
    length: u32,
    /// In normal form, sorted.
    terms: Box<[Arc<str>]>,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("patterns", &self.patterns.len())
            .finish_non_exhaustive()
    }
}

/// Terms found at one place, with what is known of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'m, K> {
    /// The bytes of the text.
    pub span: Range<usize>,
    /// Sorted, at least one. Several where they differ only in what is ignored and none is written there exactly.
    pub terms: Vec<FoundTerm<'m, K>>,
}

/// A term that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundTerm<'m, K> {
    /// In normal form.
    pub term: &'m str,
    /// What is known of it.
    pub known: K,
}

impl Matcher {
    /// Finds these terms, in normal form. One of which nothing is left when it is folded is never found. Takes time in
    /// proportion to the length of all terms: about a second for a million.
    pub fn new(terms: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut by_form: HashMap<String, Vec<Arc<str>>> = HashMap::new();
        for term in terms {
            let form: String = FoldedText::new(&term).chars().iter().collect();
            if !form.is_empty() {
                by_form.entry(form).or_default().push(term);
            }
        }
        let mut forms: Vec<_> = by_form.into_iter().collect();
        forms.sort_unstable();
        let patterns = forms.iter_mut().map(|(form, terms)| {
            terms.sort_unstable();
            terms.dedup();
            Pattern {
                length: u32::try_from(form.chars().count()).unwrap_or(u32::MAX),
                terms: std::mem::take(terms).into(),
            }
        });
        let patterns: Vec<Pattern> = patterns.collect();
        let forms = forms.iter().map(|(form, _)| form);
        Self {
            // It refuses an empty list, empty or repeated patterns, and more characters than 32 bits count.
            automaton: CharwiseDoubleArrayAhoCorasickBuilder::new().build(forms).ok(),
            patterns,
        }
    }

    /// How many terms it tells apart: those with one folded form are one.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether it finds nothing.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The terms, in no particular order.
    pub fn terms(&self) -> impl Iterator<Item = &Arc<str>> {
        self.patterns.iter().flat_map(|pattern| &*pattern.terms)
    }

    /// Passes to `each` every whole occurrence: first and last character, and the pattern.
    fn occurrences<'m>(&'m self, text: &FoldedText, mut each: impl FnMut(usize, usize, &'m Pattern)) {
        let Some(automaton) = &self.automaton else { return };
        let mut stepper = automaton.find_overlapping_stepper();
        for (last, &c) in text.chars().iter().enumerate() {
            stepper.consume(c);
            if !text.may_end(last) {
                continue;
            }
            for occurrence in stepper.matches() {
                let pattern = &self.patterns[occurrence.value() as usize];
                let first = last + 1 - pattern.length as usize;
                if text.is_whole(first, last) {
                    each(first, last, pattern);
                }
            }
        }
    }
}

/// What these matchers together find in a text, of the terms of which something is known, from left to right. None overlap.
/// `look_up` says what is known of a term.
pub fn find<'m, K: Copy>(
    text: &str,
    matchers: &[&'m Matcher],
    look_up: impl Fn(&'m str) -> Option<K>,
) -> Vec<Found<'m, K>> {
    let folded = FoldedText::new(text);
    let mut known: Vec<(usize, usize, FoundTerm<'m, K>)> = Vec::new();
    for matcher in matchers {
        matcher.occurrences(&folded, |first, last, pattern| {
            let terms = pattern.terms.iter().filter_map(|term| {
                let known = look_up(term)?;
                Some((first, last, FoundTerm { term, known }))
            });
            known.extend(terms);
        });
    }
    // The leftmost first, of these the longest.
    known.sort_by_key(|(first, last, of)| (*first, Reverse(*last), of.term));
    known.dedup_by_key(|(first, last, of)| (*first, *last, of.term));
    let mut found = Vec::new();
    let mut free_from = 0;
    for here in known.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let (first, last, _) = here[0];
        if first < free_from {
            continue;
        }
        let span = folded.origin(first, last);
        let exact = if let [(_, _, only)] = here {
            Some(*only)
        } else {
            let written = normalize(&text[span.clone()]);
            here.iter().map(|of| of.2).find(|of| of.term == written)
        };
        let terms = exact.map_or_else(|| here.iter().map(|of| of.2).collect(), |of| vec![of]);
        found.push(Found { span, terms });
        free_from = last + 1;
    }
    found
}

#[cfg(test)]
mod tests;
