//! Terms in running text, the longest first.
//!
//! At each place where a term may begin, all terms that begin there are found by one walk down a trie (a double array of
//! characters; Aoe, "An efficient digital search algorithm by using a double-array structure", 1989). Those that would cut a word
//! are dropped, of what is left the longest is taken, and the search goes on behind its end. So a text takes time in proportion to
//! its length, times that of the longest term at worst, whatever the number of terms. Most places are inside a word, or fail at
//! the second character. Runs of one script tell what would cut a word; only where a term of hiragana or kanji was found, the
//! text is cut by a dictionary as well, once.

use std::{cell::LazyCell, cmp::Reverse, collections::BTreeMap, fmt, ops::Range, sync::Arc};

use crawdad::Trie;

use super::{
    cut::{self, Cut},
    fold::FoldedText,
};
use crate::normalize::normalize;

/// Finds terms of a fixed list.
pub struct Matcher {
    /// Folded forms, numbered in their order. `None` if there is nothing to find.
    forms: Option<Trie>,
    /// In normal form, those of one folded form side by side and sorted.
    terms: Vec<Arc<str>>,
    /// Where the terms of each form begin, and where the last ones end.
    begins: Vec<u32>,
    openings: Openings,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("forms", &self.len())
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
        let mut by_form: BTreeMap<String, Vec<Arc<str>>> = BTreeMap::new();
        for term in terms {
            let form: String = FoldedText::new(&term).chars().iter().collect();
            if !form.is_empty() {
                by_form.entry(form).or_default().push(term);
            }
        }
        // It refuses an empty list, empty or repeated forms, and more characters than 31 bits count.
        let forms = Trie::from_keys(by_form.keys()).ok();
        let openings = Openings::new(by_form.keys());
        let (mut terms, mut begins) = (Vec::new(), Vec::with_capacity(by_form.len() + 1));
        for mut here in by_form.into_values() {
            here.sort_unstable();
            here.dedup();
            begins.push(number(terms.len()));
            terms.append(&mut here);
        }
        begins.push(number(terms.len()));
        Self {
            forms,
            terms,
            begins,
            openings,
        }
    }

    /// How many terms it tells apart: those with one folded form are one.
    pub fn len(&self) -> usize {
        self.begins.len() - 1
    }

    /// Whether it finds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The terms, in no particular order.
    pub fn terms(&self) -> impl Iterator<Item = &Arc<str>> {
        self.terms.iter()
    }

    /// What is found whole from a character on: the last character, and the terms of one form. The shortest first.
    fn beginning_at(&self, text: &FoldedText, first: usize) -> impl Iterator<Item = (usize, &[Arc<str>])> {
        let rest = &text.chars()[first..];
        let forms = self.forms.as_ref().filter(|_| self.openings.may_open(rest));
        let walks = forms
            .into_iter()
            .flat_map(|forms| forms.common_prefix_search(rest.iter().copied()));
        walks.filter_map(move |(form, length)| {
            let last = first + length - 1;
            text.is_whole(first, last)
                .then(|| (last, self.of_form(form as usize)))
        })
    }

    fn of_form(&self, form: usize) -> &[Arc<str>] {
        &self.terms[self.begins[form] as usize..self.begins[form + 1] as usize]
    }
}

/// The first two characters of all forms, as a Bloom filter of one hash (Bloom, "Space/time trade-offs in hash coding with
/// allowable errors", 1970). It is small enough for a core's own cache, where the trie of many forms is not.
struct Openings {
    bits: Box<[u64]>,
    /// By how much a hash of 64 bits is shortened to the number of a bit.
    shift: u32,
}

impl Openings {
    /// Bits for each form: at most one of so many is set, and two are asked for each place.
    const BITS: usize = 8;

    fn new<'a>(forms: impl ExactSizeIterator<Item = &'a String>) -> Self {
        let bits = (forms.len() * Self::BITS).next_power_of_two().max(64);
        let mut openings = Self {
            bits: vec![0; bits / 64].into(),
            shift: 64 - bits.trailing_zeros(),
        };
        for form in forms {
            let mut form = form.chars();
            if let Some(first) = form.next() {
                let (word, bit) = openings.place(first, form.next());
                openings.bits[word] |= bit;
            }
        }
        openings
    }

    /// Whether a form may begin these characters.
    #[inline]
    fn may_open(&self, chars: &[char]) -> bool {
        let Some(&first) = chars.first() else { return false };
        let is_set = |second| {
            let (word, bit) = self.place(first, second);
            self.bits[word] & bit != 0
        };
        is_set(chars.get(1).copied()) || is_set(None)
    }

    /// The word and the bit of an opening; of a form of one character without a second one.
    #[inline]
    fn place(&self, first: char, second: Option<char>) -> (usize, u64) {
        // Multiplicative hashing (Knuth, "The Art of Computer Programming", volume 3, section 6.4).
        let pair = u64::from(u32::from(first)) << 32 | u64::from(second.map_or(u32::MAX, u32::from));
        let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        (usize::try_from(hash >> 6).unwrap_or_default(), 1 << (hash & 63))
    }
}

/// It fits: the trie refuses more characters than that.
fn number(terms: usize) -> u32 {
    u32::try_from(terms).unwrap_or(u32::MAX)
}

/// What these matchers together find in a text, of the terms of which something is known, from left to right. None overlap.
/// `look_up` says what is known of a term.
pub fn find<'m, K: Copy>(
    text: &str,
    matchers: &[&'m Matcher],
    look_up: impl Fn(&'m str) -> Option<K>,
) -> Vec<Found<'m, K>> {
    let folded = FoldedText::new(text);
    let cut = LazyCell::new(|| Cut::new(text, folded.origins()));
    let is_whole = |first, last| {
        let span = folded.origin(first, last);
        !cut::is_asked_about(&text[span.clone()]) || cut.is_whole(&span)
    };
    let known = |term: &'m Arc<str>| {
        let known = look_up(term)?;
        Some(FoundTerm { term, known })
    };
    let mut here: Vec<(usize, &'m [Arc<str>])> = Vec::new();
    let mut found = Vec::new();
    let mut first = 0;
    while first < folded.chars().len() {
        if folded.may_begin(first) {
            here.extend(
                matchers
                    .iter()
                    .flat_map(|matcher| matcher.beginning_at(&folded, first)),
            );
            here.sort_by_key(|(last, _)| Reverse(*last));
        }
        let same_end = |one: &(usize, _), other: &(usize, _)| one.0 == other.0;
        let longest = here.chunk_by(same_end).find_map(|here| {
            let terms = here.iter().flat_map(|(_, terms)| *terms).filter_map(known);
            let terms: Vec<_> = terms.collect();
            let last = here[0].0;
            (!terms.is_empty() && is_whole(first, last)).then_some((last, terms))
        });
        here.clear();
        let Some((last, mut terms)) = longest else {
            first += 1;
            continue;
        };
        let span = folded.origin(first, last);
        if terms.len() > 1 {
            terms.sort_by_key(|found| found.term);
            terms.dedup_by_key(|found| found.term);
            let written = normalize(&text[span.clone()]);
            if let Some(&exact) = terms.iter().find(|found| found.term == written) {
                terms = vec![exact];
            }
        }
        found.push(Found { span, terms });
        first = last + 1;
    }
    found
}

#[cfg(test)]
mod tests;
