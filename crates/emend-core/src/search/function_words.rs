//! Words that hold a sentence together and name nothing: none of them is a synonym that is missing.

/// English: articles, pronouns, prepositions, conjunctions, auxiliary verbs, and what asks. Folded and in order.
const ENGLISH: [&str; 98] = [
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "before", "being", "but", "by", "can", "cannot", "cant", "could", "did", "didnt", "do", "does", "doesnt",
    "dont", "for", "from", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "im",
    "in", "into", "is", "isnt", "it", "its", "just", "me", "my", "no", "not", "of", "on", "or", "our", "out",
    "over", "she", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "too", "under", "up", "us", "very", "was", "we", "were", "what",
    "when", "where", "which", "while", "who", "whose", "why", "will", "with", "would", "you", "your",
];

/// Japanese, as the dictionary cuts it: particles, auxiliary and formal verbs, formal nouns, demonstratives, conjunctions. In
/// order.
const JAPANESE: [&str; 163] = [
    "あった",
    "あの",
    "あまり",
    "ありません",
    "ある",
    "あれ",
    "いう",
    "いく",
    "いくつ",
    "いつ",
    "いて",
    "います",
    "いる",
    "うえ",
    "うち",
    "おいて",
    "おく",
    "および",
    "おり",
    "かつ",
    "から",
    "がある",
    "がない",
    "くだ",
    "ください",
    "くらい",
    "くる",
    "くれる",
    "ぐらい",
    "けど",
    "ここ",
    "こそ",
    "こと",
    "この",
    "これ",
    "こんな",
    "さえ",
    "させる",
    "される",
    "しか",
    "しかし",
    "した",
    "して",
    "しまう",
    "します",
    "すぐ",
    "すべて",
    "する",
    "ずつ",
    "ずに",
    "せる",
    "そこ",
    "そして",
    "その",
    "それ",
    "そんな",
    "たい",
    "たく",
    "ただし",
    "たち",
    "たった",
    "ため",
    "ために",
    "たら",
    "たり",
    "だけ",
    "だった",
    "だろう",
    "ついて",
    "つき",
    "つつ",
    "てい",
    "ている",
    "てる",
    "である",
    "でき",
    "できない",
    "できます",
    "できる",
    "でしょ",
    "です",
    "でなく",
    "での",
    "では",
    "ではなく",
    "でも",
    "という",
    "といった",
    "とか",
    "とき",
    "ところ",
    "として",
    "とする",
    "とは",
    "とも",
    "どう",
    "どこ",
    "どの",
    "どれ",
    "どんな",
    "ない",
    "なかっ",
    "ながら",
    "なく",
    "なけれ",
    "なし",
    "なぜ",
    "など",
    "なに",
    "なの",
    "なら",
    "ならば",
    "なり",
    "なる",
    "なんか",
    "において",
    "における",
    "にし",
    "について",
    "にて",
    "にとって",
    "には",
    "にも",
    "によって",
    "により",
    "による",
    "のか",
    "のが",
    "ので",
    "のに",
    "のは",
    "のみ",
    "のも",
    "ばかり",
    "へと",
    "ほか",
    "ほど",
    "まし",
    "ます",
    "ません",
    "また",
    "または",
    "まで",
    "まま",
    "みたい",
    "もう",
    "もし",
    "もの",
    "ものの",
    "もらう",
    "やっ",
    "やり",
    "やる",
    "よう",
    "ような",
    "ように",
    "よって",
    "より",
    "られる",
    "れば",
    "れる",
    "わけ",
    "をする",
];

/// Whether a folded word is a function word of English or Japanese.
pub fn is_function_word(term: &str) -> bool {
    ENGLISH.binary_search(&term).is_ok() || JAPANESE.binary_search(&term).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{FoldedText, terms};

    #[test]
    fn the_lists_are_in_order_and_folded() {
        for words in [&ENGLISH[..], &JAPANESE[..]] {
            assert!(words.is_sorted());
            for word in words {
                let folded: String = FoldedText::new(word).chars().iter().collect();
                assert_eq!(*word, folded);
            }
        }
    }

    #[test]
    fn sentences_keep_the_words_that_name_something() {
        let naming = |text: &str| -> Vec<String> {
            let words = terms(text).into_iter();
            words.filter(|word| !is_function_word(word)).collect()
        };
        assert_eq!(
            naming("which of the cards can you return to my hand?"),
            ["cards", "hand", "return"]
        );
        assert_eq!(
            naming("守護を無視して攻撃できるカード"),
            ["カド", "守護", "攻撃", "無視"]
        );
        assert_eq!(naming("うにについて"), ["うに"]);
    }
}
