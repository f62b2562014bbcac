//! The words of texts in Japanese and English.
//!
//! Words are those of ICU's dictionary, in lower case and NFKC. Three things that the dictionary misses are added: a word of
//! kanji that ends in hiragana is known by its kanji as well, so that 返す and 返し meet; longer words of kanji are known by
//! their pairs of characters, so that 竜騎兵 is found by 騎兵; and a run of katakana is one word, whatever the dictionary makes
//! of it. Words of hiragana alone are particles and endings nearly always, and are left out.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed, options::WordBreakInvariantOptions};

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
    /// Its kanji, if it ends in hiragana.
    stem: Option<String>,
    /// Its pairs of kanji, if there are at least two.
    pairs: Vec<String>,
}

impl Word {
    fn new(position: usize, written: &str) -> Self {
        let stem = written.trim_end_matches(is_hiragana);
        let has_stem = stem != written && stem.chars().all(is_kanji);
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

/// Cuts texts into words.
#[derive(Debug)]
pub(crate) struct Words {
    segmenter: WordSegmenterBorrowed<'static>,
    normalizer: ComposingNormalizerBorrowed<'static>,
}

impl Words {
    pub(crate) fn new() -> Self {
        Self {
            segmenter: WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()),
            normalizer: ComposingNormalizerBorrowed::new_nfkc(),
        }
    }

    /// The words of a text, in its order.
    pub(crate) fn of(&self, text: &str) -> Vec<Word> {
        let text = self.normalizer.normalize(text).to_lowercase();
        let mut words = Vec::new();
        // A run of katakana, with its place.
        let mut run: Option<(usize, String)> = None;
        let mut from = 0;
        let segments = self.segmenter.segment_str(&text).iter_with_word_type();
        for (position, (end, kind)) in segments.skip(1).enumerate() {
            let segment = &text[from..end];
            from = end;
            if segment.chars().all(is_katakana) {
                run.get_or_insert((position, String::new())).1.push_str(segment);
                continue;
            }
            if let Some((position, run)) = run.take() {
                words.push(Word::new(position, &run));
            }
            if kind.is_word_like() && !segment.chars().all(is_hiragana) {
                words.push(Word::new(position, segment));
            }
        }
        words.extend(run.map(|(position, run)| Word::new(position, &run)));
        words
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
        let words = Words::new().of(text);
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
        let words = Words::new();
        let cuts = |text: &str| {
            words.of(text)[0]
                .cuts()
                .map(|(one, other)| format!("{one}|{other}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(cuts("バーンダ"), ["バ|ーンダ", "バー|ンダ", "バーン|ダ"]);
        assert!(cuts("破壊").is_empty());
    }
}
