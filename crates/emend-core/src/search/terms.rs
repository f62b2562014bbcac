//! The words of a text as they are counted over all queries: cut by Unicode Standard Annex #29, Japanese, Chinese, Thai and
//! their like by a dictionary, and folded like the terms that are found in running text.

use std::collections::{BTreeMap, BTreeSet};

use super::{FoldedText, cut::words};
use crate::{normalize::normalize, personal_data};

/// Words counted of one text; the rest of a longer one is left out.
pub const MAX_TERMS: usize = 64;
/// Characters of a word; a longer one is none.
pub const MAX_TERM_CHARS: usize = 64;

/// The words of a text, each once and folded: at most [`MAX_TERMS`], each of at most [`MAX_TERM_CHARS`] characters. Without
/// symbols, single kana and what took the place of personal data.
pub fn terms(text: &str) -> BTreeSet<String> {
    written_terms(text).into_keys().collect()
}

/// The same words, each with how it is first written there: in lower case and full width.
pub fn written_terms(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in personal_data::unmasked_parts(text) {
        // The dictionary knows full-width forms only.
        let text = normalize(part);
        for (start, end) in words(&text) {
            let written = &text[start..end];
            let word: String = FoldedText::new(written).chars().iter().collect();
            if is_counted(&word) {
                found.entry(word).or_insert_with(|| written.to_owned());
            }
            if found.len() == MAX_TERMS {
                return found;
            }
        }
    }
    found
}

fn is_counted(word: &str) -> bool {
    let mut chars = word.chars();
    match (chars.next(), chars.next()) {
        (None, _) => false,
        (Some(one), None) => !matches!(one, 'ぁ'..='ゟ' | 'ァ'..='ヿ' | 'ㇰ'..='ㇿ'),
        _ => word.chars().any(char::is_alphanumeric) && word.chars().count() <= MAX_TERM_CHARS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms_of(text: &str) -> Vec<String> {
        terms(text).into_iter().collect()
    }

    #[test]
    fn english_is_cut_at_spaces_and_folded() {
        assert_eq!(
            terms_of("Set up a CSA, set-up isn’t “done” 2.5"),
            ["2.5", "a", "csa", "done", "isnt", "set", "up"]
        );
    }

    #[test]
    fn japanese_is_cut_by_the_dictionary_without_single_kana_and_symbols() {
        let found = terms_of("フィールドのカードを手札に戻すカード！");
        for word in ["フィルド", "カド", "手札"] {
            assert!(found.contains(&word.to_owned()), "{word} in {found:?}");
        }
        for none in ["の", "を", "に", "！", "!"] {
            assert!(!found.contains(&none.to_owned()), "{none} in {found:?}");
        }
        assert_eq!(terms_of("ﾌｫﾛﾜｰ"), terms_of("フォロワー"), "width does not matter");
        assert_eq!(terms_of("場"), ["場"], "a single kanji is a word");
    }

    #[test]
    fn words_are_known_as_they_are_written() {
        let found = written_terms("ﾘｰﾀﾞｰ isn’t a リーダ");
        assert_eq!(found["リダ"], "リーダー", "as it comes first");
        assert!(found["isnt"].starts_with("isn"), "{found:?}");
        assert_eq!(
            found.into_keys().collect::<BTreeSet<_>>(),
            terms("リーダー isn’t a")
        );
    }

    #[test]
    fn what_was_masked_is_no_word() {
        assert_eq!(terms_of("mail [email] or [phone] me"), ["mail", "me", "or"]);
    }

    #[test]
    fn a_text_has_a_bounded_number_of_words_of_bounded_length() {
        let long = (0..200).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(terms(&long).len(), MAX_TERMS);
        assert_eq!(terms_of(&"x".repeat(MAX_TERM_CHARS + 1)), [""; 0]);
        assert_eq!(terms_of(&"x".repeat(MAX_TERM_CHARS)).len(), 1);
    }
}
