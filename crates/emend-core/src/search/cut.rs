//! Where the words of a text begin and end, by a dictionary, and whether a term of hiragana or kanji is one of them.
//!
//! The dictionary knows neither every word nor grammar, so its cut is not taken as it is. A way to cut a text is better the
//! fewer words it has (Yoshimura, Hitaka and Yoshida, "Morphological analysis of non-marked-off Japanese sentences by the least
//! BUNSETSU's number method", 1983), and a term is a word because somebody said so:
//!
//! - A term whose ends are no boundaries is one if the text has fewer words with it: 共産党 of 共産党議員, which the dictionary cuts
//!   into 共産, 党議 and 員. Where there are as many, the dictionary is right, 京都 is none of 東京都, unless the term follows a
//!   particle and a noun.
//! - A term of hiragana whose ends are boundaries is none if the text has fewer words with one that crosses them: くつ of はいくつ, cut
//!   into はい and くつ.
//! - A single kanji, or a term of hiragana, is none before the ending of an inflected word: 守 of 守られる, わな of 使わない.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed, options::WordBreakInvariantOptions};

use super::fold::is_kanji;
use crate::normalize::normalize;

static DICTIONARY: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

/// How far around a term of hiragana other words are looked for, in characters.
const AROUND: usize = 8;
/// The words of one hiragana that follow a noun.
const PARTICLES: [char; 14] = [
    'は', 'が', 'を', 'の', 'に', 'と', 'で', 'へ', 'も', 'や', 'か', 'な', 'よ', 'ね',
];
/// Those of them that another noun follows.
const BETWEEN_NOUNS: [char; 9] = ['は', 'が', 'を', 'の', 'に', 'と', 'で', 'へ', 'も'];
/// What no word begins with.
const NEVER_FIRST: [char; 11] = ['ぁ', 'ぃ', 'ぅ', 'ぇ', 'ぉ', 'っ', 'ゃ', 'ゅ', 'ょ', 'ゎ', 'ん'];

/// Where the words of a text stand, from byte to byte, in order; whatever is none is left out.
pub(super) fn words(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (end, kind) in DICTIONARY.segment_str(text).iter_with_word_type() {
        if kind.is_word_like() {
            found.push((start, end));
        }
        start = end;
    }
    found
}

/// Whether the dictionary is asked about a term as it stands in a text.
pub(super) fn is_asked_about(term: &str) -> bool {
    term.contains(is_of_dictionary)
}

/// A text as the dictionary cuts it.
pub(super) struct Cut<'t> {
    /// In the width that the dictionary knows.
    text: Cow<'t, str>,
    /// Where what was written otherwise stands in the original, and where here: its beginning and its end.
    moved: Vec<(usize, usize)>,
    /// Where words begin and end, in order, with both ends of the text.
    boundaries: Vec<usize>,
}

impl<'t> Cut<'t> {
    /// Cuts a text. `clusters` are its characters, each with its marks, in order and without what terms ignore.
    pub(super) fn new(text: &'t str, clusters: impl Iterator<Item = Range<usize>>) -> Self {
        let (text, moved) = if text.contains(is_unknown_to_dictionary) {
            let (wide, moved) = widened(text, clusters);
            (Cow::Owned(wide), moved)
        } else {
            (Cow::Borrowed(text), Vec::new())
        };
        let boundaries = DICTIONARY.segment_str(&text).collect();
        Self {
            text,
            moved,
            boundaries,
        }
    }

    /// Whether what stands here, from byte to byte of the original, is a word or several.
    pub(super) fn is_whole(&self, span: &Range<usize>) -> bool {
        let span = self.place(span.start)..self.place(span.end);
        let term = &self.text[span.clone()];
        // Where another script begins or ends is known without a dictionary.
        let from = if term.starts_with(is_of_dictionary) {
            self.boundary_before(span.start)
        } else {
            span.start
        };
        let to = if term.ends_with(is_of_dictionary) {
            self.boundary_behind(span.end)
        } else {
            span.end
        };
        if (from, to) != (span.start, span.end) {
            // What the dictionary takes from a compound's next word shows only when that is seen whole.
            let to = if from == span.start {
                self.run_behind(to)
            } else {
                to
            };
            let with_it = self.words(from..span.start) + 1 + self.words(span.end..to);
            let without = self.words_here(from..to);
            let is_settled = with_it == without && to == span.end && self.follows_particle(from, &span);
            if with_it >= without && !is_settled {
                return false;
            }
        }
        let of_hiragana = term.chars().all(is_hiragana);
        let is_one = term.chars().nth(1).is_none();
        let is_inflected = (of_hiragana || is_one) && self.is_ending_behind(span.end);
        !is_inflected && (!of_hiragana || self.is_best(&span))
    }

    /// Where a byte of the original is here.
    fn place(&self, at: usize) -> usize {
        let behind = self.moved.partition_point(|(original, _)| *original <= at);
        let before = behind.checked_sub(1).map(|place| self.moved[place]);
        before.map_or(at, |(original, here)| here + (at - original))
    }

    fn boundary_before(&self, at: usize) -> usize {
        let behind = self.boundaries.partition_point(|boundary| *boundary <= at);
        behind.checked_sub(1).map_or(0, |place| self.boundaries[place])
    }

    fn boundary_behind(&self, at: usize) -> usize {
        let place = self.boundaries.partition_point(|boundary| *boundary < at);
        self.boundaries.get(place).copied().unwrap_or(self.text.len())
    }

    /// Where the kanji end that begin here, at a boundary.
    fn run_behind(&self, at: usize) -> usize {
        let run = self.text[at..].chars().take_while(|&c| is_kanji(c)).take(AROUND);
        self.boundary_behind(at + run.map(char::len_utf8).sum::<usize>())
    }

    /// Whether a term that is one word of the dictionary follows a particle, which begins at a boundary and follows a noun: うに of
    /// 京都のうに, cut into のう and に.
    fn follows_particle(&self, from: usize, span: &Range<usize>) -> bool {
        let particle = self.text[from..span.start]
            .parse::<char>()
            .is_ok_and(|c| BETWEEN_NOUNS.contains(&c));
        let follows_noun = !self.text[..from].ends_with(is_hiragana);
        particle && follows_noun && ends(&self.text[span.clone()]).len() == 1
    }

    /// How many words of the text's cut these bytes touch.
    fn words_here(&self, range: Range<usize>) -> usize {
        let first = self
            .boundaries
            .partition_point(|boundary| *boundary <= range.start);
        let last = self.boundaries.partition_point(|boundary| *boundary < range.end);
        last + 1 - first
    }

    /// How many words these bytes are by themselves.
    fn words(&self, range: Range<usize>) -> usize {
        ends(&self.text[range]).len()
    }

    /// The word that begins here, if it is of hiragana.
    fn hiragana_from(&self, at: usize) -> Option<&str> {
        let next = &self.text[at..self.boundary_behind(at + 1)];
        next.starts_with(is_hiragana).then_some(next)
    }

    /// Whether what ends here is followed by the rest of a word in hiragana.
    fn is_ending_behind(&self, end: usize) -> bool {
        self.hiragana_from(end).is_some_and(|next| {
            let is_one = next.chars().nth(1).is_none();
            next.starts_with(NEVER_FIRST) || is_one && !next.starts_with(PARTICLES)
        })
    }

    /// Whether no cut of the hiragana around a term of hiragana has fewer words than one with the term.
    fn is_best(&self, span: &Range<usize>) -> bool {
        let term = &self.text[span.clone()];
        let before = &self.text[..span.start];
        let is_unknown = ends(term).len() == term.chars().count();
        if is_unknown && !before.ends_with(is_hiragana) && before.ends_with(is_of_dictionary) {
            // えら of 加えられる: what follows a kanji is most likely its ending.
            return false;
        }
        let behind = self.text[span.end..].chars();
        let behind = behind.take_while(|&c| is_hiragana(c)).take(AROUND);
        let to = span.end + behind.map(char::len_utf8).sum::<usize>();
        let rest = self.words(span.end..to);
        let is_beaten_from = |from: usize| {
            let without = ends(&self.text[from..to]);
            let with_it = self.words(from..span.start) + 1 + rest;
            let is_better = without.len() < with_it || is_unknown && without.len() == with_it;
            is_better && !without.contains(&(span.start - from))
        };
        let is_beaten_inside = |from: usize| {
            let without = ends(&self.text[from..to]);
            without.len() < rest && !without.contains(&(span.end - from))
        };
        let mut starts_before = before
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_hiragana(*c))
            .take(AROUND);
        let mut starts_inside = term.char_indices().skip(1);
        !starts_before.any(|(from, _)| is_beaten_from(from))
            && !starts_inside.any(|(from, _)| is_beaten_inside(span.start + from))
    }
}

/// Where the words of a text by itself end.
fn ends(text: &str) -> Vec<usize> {
    DICTIONARY.segment_str(text).skip(1).collect()
}

/// A text in the width and with the marks that the dictionary knows, and where it is moved.
fn widened(text: &str, clusters: impl Iterator<Item = Range<usize>>) -> (String, Vec<(usize, usize)>) {
    let mut wide = String::with_capacity(text.len());
    let mut moved = Vec::new();
    let mut end = 0;
    for cluster in clusters {
        if cluster.start < end {
            continue;
        }
        wide.push_str(&text[end..cluster.start]);
        moved.push((cluster.start, wide.len()));
        wide.push_str(&normalize(&text[cluster.clone()]));
        moved.push((cluster.end, wide.len()));
        end = cluster.end;
    }
    wide.push_str(&text[end..]);
    (wide, moved)
}

/// Katakana in half width and marks of their own.
fn is_unknown_to_dictionary(c: char) -> bool {
    matches!(c, '\u{FF65}'..='\u{FF9F}' | '\u{3099}' | '\u{309A}')
}

/// Hiragana and kanji.
fn is_of_dictionary(c: char) -> bool {
    is_hiragana(c) && c != 'ー' || is_kanji(c)
}

/// With the long-vowel mark.
fn is_hiragana(c: char) -> bool {
    matches!(c, 'ぁ'..='ゖ' | 'ゝ'..='ゟ' | 'ー')
}

#[cfg(test)]
mod tests;
