//! A text in the form in which terms are found in it: width, case, the long-vowel mark, quotes and spaces do not matter, and
//! each character knows where it comes from in the original.
//!
//! A text is folded cluster by cluster: a character with the marks that follow it. Terms are folded by the same function,
//! so two spellings are one exactly if their folded forms are equal.
//!
//! Where a word begins and ends is told by runs of one script: letters and digits (joined as in Unicode Standard Annex #29,
//! rules WB5 to `WB13b`), and katakana. Nothing is found inside such a run. Scripts written without spaces have no runs; where
//! words of hiragana and kanji begin and end, a dictionary knows ([`super::cut`]).

use crate::normalize::{is_default_ignorable, normalize};

/// A folded text.
#[derive(Debug, Clone, Default)]
pub struct FoldedText {
    chars: Vec<char>,
    marks: Vec<u8>,
    /// The bytes of the original that each character comes from.
    origins: Vec<(u32, u32)>,
}

/// A term may begin at this character.
const BEGINS: u8 = 1;
/// A term may end with this character.
const ENDS: u8 = 2;
/// Its neighbours are of other scripts, so that it is a token of its own.
const ALONE: u8 = 4;

/// Scripts, as far as they tell where words begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// Letters and digits of scripts that are written with spaces.
    Word,
    Katakana,
    Hiragana,
    Kanji,
    /// Letters of other scripts.
    Unspaced,
    /// Punctuation and symbols.
    None,
}

/// What stands between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Nothing,
    Apostrophe,
    Other,
}

impl FoldedText {
    /// Folds a text. What lies beyond 4 GiB is left out.
    pub fn new(text: &str) -> Self {
        let mut folder = Folder::with_capacity(text.len());
        let mut rest = text.char_indices().peekable();
        while let Some((start, first)) = rest.next() {
            let mut end = start + first.len_utf8();
            let mut has_marks = false;
            while let Some(&(at, next)) = rest.peek() {
                if !extends(next) {
                    break;
                }
                has_marks |= !is_long_vowel_mark(next);
                end = at + next.len_utf8();
                rest.next();
            }
            let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else {
                break;
            };
            match (has_marks, folded_alone(first)) {
                (false, Fold::To(c)) => folder.push(&[c], (start, end)),
                (false, Fold::Away) => folder.skip(first),
                _ => folder.normalized(&text[start as usize..end as usize], first, (start, end)),
            }
        }
        folder.finish()
    }

    /// The characters.
    pub(super) fn chars(&self) -> &[char] {
        &self.chars
    }

    /// Whether a term may begin with the character at this place.
    #[inline]
    pub(super) fn may_begin(&self, first: usize) -> bool {
        self.marks[first] & BEGINS != 0
    }

    /// Whether a term may begin with the character at this place and end with that one.
    #[inline]
    pub(super) fn is_whole(&self, first: usize, last: usize) -> bool {
        let wanted = if first == last { BEGINS | ALONE } else { BEGINS };
        self.marks[first] & wanted == wanted && self.marks[last] & ENDS != 0
    }

    /// The bytes of the original that each character comes from.
    pub(super) fn origins(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.origins
            .iter()
            .map(|(start, end)| *start as usize..*end as usize)
    }

    /// The bytes of the original from one character to another.
    pub(super) fn origin(&self, first: usize, last: usize) -> std::ops::Range<usize> {
        self.origins[first].0 as usize..self.origins[last].1 as usize
    }
}

/// Folds cluster after cluster.
struct Folder {
    folded: FoldedText,
    /// Whether a character is the first of its cluster, and what stands before it.
    firsts: Vec<(bool, Gap)>,
    gap: Gap,
}

impl Folder {
    fn with_capacity(bytes: usize) -> Self {
        Self {
            folded: FoldedText {
                chars: Vec::with_capacity(bytes),
                marks: Vec::new(),
                origins: Vec::with_capacity(bytes),
            },
            firsts: Vec::with_capacity(bytes),
            gap: Gap::Other,
        }
    }

    fn push(&mut self, folded: &[char], origin: (u32, u32)) {
        for (place, &c) in folded.iter().enumerate() {
            self.folded.chars.push(c);
            self.folded.origins.push(origin);
            self.firsts.push((place == 0, self.gap));
            self.gap = Gap::Nothing;
        }
    }

    fn skip(&mut self, c: char) {
        self.gap = match (self.gap, c) {
            (Gap::Nothing, '\'' | '’' | '＇') => Gap::Apostrophe,
            // Invisible: as if it were not there.
            (gap, c) if is_default_ignorable(c) => gap,
            _ => Gap::Other,
        };
    }

    fn normalized(&mut self, cluster: &str, first: char, origin: (u32, u32)) {
        let kept: String = cluster.chars().filter(|&c| !is_long_vowel_mark(c)).collect();
        let folded: Vec<char> = normalize(&kept).chars().filter(|&c| !is_left_out(c)).collect();
        if folded.is_empty() {
            self.skip(first);
        } else {
            self.push(&folded, origin);
        }
    }

    /// Marks where terms may begin and end.
    fn finish(mut self) -> FoldedText {
        let chars = &self.folded.chars;
        let scripts: Vec<Script> = chars.iter().map(|&c| script(c)).collect();
        let same_run = |at: usize| joins(chars, &scripts, &self.firsts, at);
        // Of two neighbours: (a term may be cut between them, they are of different scripts).
        let between = |at: usize| {
            let Some(&(is_first, gap)) = self.firsts.get(at) else {
                return (true, true);
            };
            let differ = gap != Gap::Nothing || scripts[at - 1] != scripts[at];
            (is_first && !same_run(at), differ)
        };
        let mut marks = vec![0; chars.len()];
        let mut before = (true, true);
        for (at, mark) in marks.iter_mut().enumerate() {
            let after = between(at + 1);
            let is_alone = before.1 && after.1 || scripts[at] == Script::None;
            *mark = [(before.0, BEGINS), (after.0, ENDS), (is_alone, ALONE)]
                .into_iter()
                .fold(
                    0,
                    |marks, (is_set, mark)| if is_set { marks | mark } else { marks },
                );
            before = after;
        }
        self.folded.marks = marks;
        self.folded
    }
}

/// Whether the character at `at` continues the run of the one before it.
fn joins(chars: &[char], scripts: &[Script], firsts: &[(bool, Gap)], at: usize) -> bool {
    let is_number = |at: usize| chars.get(at).is_some_and(|c| c.is_numeric());
    let touches = |at: usize| firsts.get(at).is_some_and(|(_, gap)| *gap == Gap::Nothing);
    let is_point = |at: usize| matches!(chars[at], '.' | ',');
    match (firsts[at].1, scripts[at - 1], scripts[at]) {
        (Gap::Nothing | Gap::Apostrophe, Script::Word, Script::Word)
        | (Gap::Nothing, Script::Katakana, Script::Katakana) => true,
        (Gap::Nothing, Script::Word, Script::None) => {
            is_point(at) && is_number(at - 1) && is_number(at + 1) && touches(at + 1)
        }
        (Gap::Nothing, Script::None, Script::Word) => {
            at >= 2 && is_point(at - 1) && is_number(at) && is_number(at - 2) && touches(at - 1)
        }
        _ => false,
    }
}

/// What becomes of one character without marks.
enum Fold {
    To(char),
    Away,
    /// Only normalisation knows.
    Unknown,
}

#[inline]
fn folded_alone(c: char) -> Fold {
    match c {
        'A'..='Z' => Fold::To(c.to_ascii_lowercase()),
        c if is_left_out(c) => Fold::Away,
        '\0'..='\u{7F}' | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{4E00}'..='\u{9FFF}' | '々' | '、' | '。' | '・' => {
            Fold::To(c)
        }
        '！'..='～' => {
            let ascii = char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c);
            folded_alone(ascii)
        }
        _ => Fold::Unknown,
    }
}

/// Quotes, spaces and the long-vowel mark.
#[inline]
fn is_left_out(c: char) -> bool {
    matches!(
        c,
        '\'' | '"'
            | '`'
            | '´'
            | '‘'
            | '’'
            | '‚'
            | '‛'
            | '“'
            | '”'
            | '„'
            | '‟'
            | '«'
            | '»'
            | '‹'
            | '›'
            | '「'
            | '」'
            | '『'
            | '』'
            | '｢'
            | '｣'
            | '〝'
            | '〞'
            | '〟'
    ) || c.is_whitespace()
        || is_long_vowel_mark(c)
}

/// In full and in half width.
#[inline]
fn is_long_vowel_mark(c: char) -> bool {
    matches!(c, 'ー' | 'ｰ')
}

/// Whether it belongs to the character before it: the long-vowel mark, combining marks, and jamo that end a syllable.
#[inline]
fn extends(c: char) -> bool {
    c >= '\u{300}'
        && (is_long_vowel_mark(c)
            || matches!(c,
                '\u{300}'..='\u{36F}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5BD}' | '\u{610}'..='\u{61A}'
                | '\u{64B}'..='\u{65F}' | '\u{93C}' | '\u{94D}' | '\u{1160}'..='\u{11FF}' | '\u{1AB0}'..='\u{1AFF}'
                | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{3099}' | '\u{309A}' | '\u{D7B0}'..='\u{D7FF}'
                | '\u{FE20}'..='\u{FE2F}' | '\u{FF9E}' | '\u{FF9F}')
            || is_default_ignorable(c))
}

#[inline]
fn script(c: char) -> Script {
    match c {
        '0'..='9' | 'a'..='z' | '_' => Script::Word,
        '\0'..='\u{7F}' => Script::None,
        'ぁ'..='ゖ' | 'ゝ'..='ゟ' => Script::Hiragana,
        'ァ'..='ヺ' | 'ヽ'..='ヿ' | 'ㇰ'..='ㇿ' => Script::Katakana,
        c if is_kanji(c) => Script::Kanji,
        // Thai to Tibetan, Myanmar, Hangul, Khmer, and what is written as these are.
        '\u{0E00}'..='\u{0FFF}'
        | '\u{1000}'..='\u{109F}'
        | '\u{1100}'..='\u{11FF}'
        | '\u{1780}'..='\u{17FF}'
        | '\u{1950}'..='\u{19DF}'
        | '\u{3100}'..='\u{318F}'
        | '\u{A960}'..='\u{A97F}'
        | '\u{AC00}'..='\u{D7FF}'
            if c.is_alphanumeric() =>
        {
            Script::Unspaced
        }
        c if c.is_alphanumeric() => Script::Word,
        _ => Script::None,
    }
}

#[inline]
pub(super) fn is_kanji(c: char) -> bool {
    matches!(c, '々'
        | '〇'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &str) -> String {
        FoldedText::new(text).chars.into_iter().collect()
    }

    #[test]
    fn width_case_long_vowels_quotes_and_spaces_do_not_matter() {
        for (text, expected) in [
            ("フォロワー", "フォロワ"),
            ("ﾌｫﾛﾜｰ", "フォロワ"),
            ("「フォロワー」", "フォロワ"),
            ("ボード ゲーム", "ボドゲム"),
            ("ﾎﾞｰﾄﾞ", "ボド"),
            ("ホ\u{3099}ート\u{3099}", "ボド"),
            ("Set “Up”\u{3000}ＡＢＣ", "setupabc"),
            ("Straße", "strasse"),
            ("㍿", "株式会社"),
            ("e\u{301}", "é"),
            ("らーめん", "らめん"),
            ("ーー 「」", ""),
            ("a\u{200B}b", "ab"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn every_character_knows_where_it_comes_from() {
        let text = "ｱ㍿ ガー";
        let folded = FoldedText::new(text);
        let origins: Vec<&str> = (0..folded.chars.len())
            .map(|at| &text[folded.origin(at, at)])
            .collect();
        assert_eq!(origins, ["ｱ", "㍿", "㍿", "㍿", "㍿", "ガー"]);
        assert_eq!(&text[folded.origin(1, 5)], "㍿ ガー");
    }

    /// The text with `|` where a term may begin or end.
    fn cuts(text: &str) -> String {
        let folded = FoldedText::new(text);
        let mut shown = String::new();
        for (at, c) in folded.chars.iter().enumerate() {
            if at > 0 && folded.marks[at] & BEGINS != 0 {
                assert!(folded.marks[at - 1] & ENDS != 0);
                shown.push('|');
            }
            shown.push(*c);
        }
        shown
    }

    #[test]
    fn runs_of_letters_digits_and_katakana_are_not_cut() {
        for (text, expected) in [
            ("キーボード", "キボド"),
            ("キー ボード", "キ|ボド"),
            ("don't stop", "dont|stop"),
            ("'a' 'b'", "a|b"),
            ("1,000.5円", "1,000.5|円"),
            ("a,b", "a|,|b"),
            ("1, 2", "1|,|2"),
            ("v2.0", "v2.0"),
            ("snake_case", "snake_case"),
            ("ＡＢカード", "ab|カド"),
            ("登場する", "登|場|す|る"),
            ("ファイナル・タイトル", "ファイナル|・|タイトル"),
            ("㍿", "株式会社"),
            ("a\u{200B}b", "ab"),
        ] {
            assert_eq!(cuts(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn folding_what_is_folded_changes_nothing(text in "[a-zA-Z ｱ-ﾝア-ンー漢字「」ß㍿]{0,20}") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once), once);
        }

        #[test]
        fn origins_are_whole_characters_in_order(text in "\\PC{0,30}") {
            let folded = FoldedText::new(&text);
            let mut before = (0, 0);
            for at in 0..folded.chars.len() {
                let origin = folded.origins[at];
                prop_assert!(origin == before || origin.0 >= before.1, "{:?} after {:?}", origin, before);
                prop_assert!(text.get(folded.origin(at, at)).is_some_and(|original| !original.is_empty()));
                before = origin;
            }
        }
    }
}
