//! The words of texts in Japanese and English.
//!
//! Words are those of ICU's dictionary, in lower case and NFKC. Three things that the dictionary misses are added: a word of
//! kanji that ends in hiragana is known by its kanji as well, so that 返す and 返し meet; longer words of kanji are known by
//! their pairs of characters, so that 竜騎兵 is found by 騎兵; and a run of katakana is one word, whatever the dictionary makes
//! of it. Words of hiragana alone are particles and endings nearly always, and are left out.
//!
//! With the feature `lindera` the words may be those of a dictionary on disk, which knows the base form of what is inflected.

#[cfg(feature = "lindera")]
mod dictionary;

use std::{fmt, ops::Range};

use anyhow::Result;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_segmenter::{
    WordSegmenter, WordSegmenterBorrowed,
    options::{WordBreakInvariantOptions, WordType},
};

/// What nearly every query about cards contains.
const COMMON: [&str; 24] = [
    "カード",
    "効果",
    "持つ",
    "与える",
    "使う",
    "する",
    "a",
    "an",
    "and",
    "are",
    "card",
    "cards",
    "for",
    "in",
    "is",
    "of",
    "on",
    "or",
    "that",
    "the",
    "to",
    "which",
    "with",
    "your",
];

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Which one, counted in segments, particles included.
    pub(crate) position: usize,
    /// As the text has it, in lower case and NFKC.
    pub(crate) written: String,
    /// Its base form, if the dictionary knows another one; else its kanji, if it ends in hiragana.
    stem: Option<String>,
    /// Its pairs of kanji, if there are at least two.
    pairs: Vec<String>,
}

impl Word {
    fn new(position: usize, written: &str, base: Option<&str>) -> Self {
        let kanji = written.trim_end_matches(is_hiragana);
        let is_stem = |stem: &str| base.is_some() || stem.chars().all(is_kanji);
        let stem = base.unwrap_or(kanji);
        let has_stem = stem != written && is_stem(stem);
        let kanji: Vec<char> = written.chars().filter(|&c| is_kanji(c)).collect();
        let pairs: Vec<String> = kanji.windows(2).map(|pair| pair.iter().collect()).collect();
        Self {
            position,
            written: written.to_owned(),
            stem: has_stem.then(|| stem.to_owned()),
            pairs: if pairs.len() > 1 { pairs } else { Vec::new() },
        }
    }

    /// Under what a text that has it is found.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        let all = [&self.written].into_iter().chain(&self.stem).chain(&self.pairs);
        all.map(|term| &**term)
    }

    /// The term by which inflected forms of it are found.
    pub(crate) fn stem(&self) -> &str {
        self.stem.as_ref().unwrap_or(&self.written)
    }

    /// The pairs of kanji by all of which a text is found that cuts the word otherwise; none if it is short.
    pub(crate) fn pairs(&self) -> &[String] {
        &self.pairs
    }

    /// The ways to cut it in two, if it is of katakana, where compounds are written without a mark between their words.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_compound = self.written.chars().all(is_katakana);
        let places = self.written.char_indices().map(|(at, _)| at);
        places
            .filter(move |&at| is_compound && at > 0)
            .map(|at| self.written.split_at(at))
    }

    /// Whether nearly every query has it, so that it says nothing.
    pub(crate) fn is_common(&self) -> bool {
        COMMON.contains(&&*self.written)
    }
}

/// A piece of a text.
#[derive(Debug)]
struct Piece {
    /// Its bytes.
    range: Range<usize>,
    /// Whether it is a word, rather than a mark or white space.
    is_word: bool,
    /// Its base form, if it is known.
    base: Option<String>,
}

/// What cuts texts.
enum Cutter {
    Icu(WordSegmenterBorrowed<'static>),
    #[cfg(feature = "lindera")]
    Dictionary(Box<dictionary::Dictionary>),
}

/// Cuts texts into words.
pub struct Words {
    cutter: Cutter,
    normalizer: ComposingNormalizerBorrowed<'static>,
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Words").field(&self.by()).finish()
    }
}

impl Default for Words {
    /// By ICU's dictionary.
    fn default() -> Self {
        Self::cut_by(Cutter::Icu(WordSegmenter::new_dictionary(
            WordBreakInvariantOptions::default(),
        )))
    }
}

impl Words {
    /// By the dictionary in a directory, as `lindera build` makes them.
    #[cfg(feature = "lindera")]
    pub fn by_dictionary(directory: &std::path::Path) -> Result<Self> {
        let dictionary = Box::new(dictionary::Dictionary::open(directory)?);
        Ok(Self::cut_by(Cutter::Dictionary(dictionary)))
    }

    fn cut_by(cutter: Cutter) -> Self {
        Self {
            cutter,
            normalizer: ComposingNormalizerBorrowed::new_nfkc(),
        }
    }

    /// By what they are cut. What was cut by something else is not found.
    pub(crate) fn by(&self) -> String {
        match &self.cutter {
            Cutter::Icu(_) => "ICU".to_owned(),
            #[cfg(feature = "lindera")]
            Cutter::Dictionary(dictionary) => format!("lindera, {}", dictionary.name()),
        }
    }

    /// The words of a text, in its order.
    pub(crate) fn of(&self, text: &str) -> Result<Vec<Word>> {
        let text = self.normalizer.normalize(text).to_lowercase();
        let mut words = Vec::new();
        // A run of katakana, with its place.
        let mut run: Option<(usize, String)> = None;
        let mut end = 0;
        for (position, Piece { range, is_word, base }) in self.pieces(&text)?.into_iter().enumerate() {
            let piece = &text[range.clone()];
            let is_in_run = piece.chars().all(is_katakana);
            if (!is_in_run || range.start != end)
                && let Some((position, run)) = run.take()
            {
                words.push(Word::new(position, &run, None));
            }
            end = range.end;
            if is_in_run {
                run.get_or_insert((position, String::new())).1.push_str(piece);
            } else if is_word && !piece.chars().all(is_hiragana) {
                words.push(Word::new(position, piece, base.as_deref()));
            }
        }
        words.extend(run.map(|(position, run)| Word::new(position, &run, None)));
        Ok(words)
    }

    #[cfg_attr(
        not(feature = "lindera"),
        expect(clippy::unnecessary_wraps, reason = "another dictionary's may fail")
    )]
    fn pieces(&self, text: &str) -> Result<Vec<Piece>> {
        match &self.cutter {
            Cutter::Icu(segmenter) => {
                let mut from = 0;
                let segments = segmenter.segment_str(text).iter_with_word_type().skip(1);
                let piece = |(end, kind): (usize, WordType)| Piece {
                    range: std::mem::replace(&mut from, end)..end,
                    is_word: kind.is_word_like(),
                    base: None,
                };
                Ok(segments.map(piece).collect())
            }
            #[cfg(feature = "lindera")]
            Cutter::Dictionary(dictionary) => dictionary.pieces(text),
        }
    }
}

fn is_hiragana(c: char) -> bool {
    matches!(c, 'ぁ'..='ゖ' | 'ゝ' | 'ゞ')
}

fn is_katakana(c: char) -> bool {
    matches!(c, 'ァ'..='ヺ' | 'ー' | 'ヽ' | 'ヾ')
}

fn is_kanji(c: char) -> bool {
    matches!(c, '々' | '〇' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let words = Words::default().of(text).unwrap();
        words
            .iter()
            .map(|word| word.terms().collect::<Vec<_>>().join("/"))
            .collect()
    }

    #[test]
    fn words_of_both_languages_are_found_with_what_inflects_them() {
        for (text, expected) in [
            ("手札に返す", "手札 返す/返"),
            ("場に登場した", "場 登場"),
            ("攻撃力を増やす", "攻撃 力 増やす/増"),
            ("フォロワ、フォロワー", "フォロワ フォロワー"),
            ("バーンダメージ", "バーンダメージ"),
            ("フォロワー1体を破壊する。", "フォロワー 1 体 破壊"),
            ("無作為な竜騎兵", "無作為/無作/作為 竜騎兵/竜騎/騎兵"),
            ("ﾌｪｲｽ Deal 2 Damage", "フェイス deal 2 damage"),
            ("キーボードの盤面", "キーボード 盤面"),
            ("すべて捨て、コストを1下げる", "捨 コスト 1 下げる/下"),
            ("", ""),
        ] {
            assert_eq!(terms(text).join(" "), expected);
        }
    }

    #[test]
    fn compounds_of_katakana_are_cut_anywhere_and_other_words_nowhere() {
        let words = Words::default();
        let cuts = |text: &str| {
            words.of(text).unwrap()[0]
                .cuts()
                .map(|(one, other)| format!("{one}|{other}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(cuts("バーンダ"), ["バ|ーンダ", "バー|ンダ", "バーン|ダ"]);
        assert!(cuts("破壊").is_empty());
    }
}
