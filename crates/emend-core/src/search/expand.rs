//! A text with what else to search for where a term stands. Nothing is replaced: what the user wrote stays.

use std::{borrow::Cow, ops::Range};

use super::matcher::{Found, FoundTerm};
use crate::normalize::normalize;

/// What a text is expanded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExpandMode {
    /// For a search by words: each term becomes a group of which one must be found.
    Keyword,
    /// For a search by meaning: the text, and behind it at most one representative for each term.
    Embedding,
}

/// A term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term<'a> {
    /// In normal form.
    pub key: &'a str,
    /// As people write it.
    pub written: &'a str,
}

/// What else to search for where one term stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternatives<'a> {
    /// What it stands for.
    pub representatives: Vec<Term<'a>>,
    /// How it is written itself, where others stand for it.
    pub itself: Option<Term<'a>>,
    /// The other terms of the sets.
    pub others: Vec<Term<'a>>,
}

/// An expanded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedText {
    /// The text as it was.
    pub original: String,
    /// What it was expanded for.
    pub mode: ExpandMode,
    /// Where terms stand for which there is something else to search, from left to right.
    pub groups: Vec<OrGroup>,
}

/// What to search for where a term stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrGroup {
    /// The bytes of the original where it stands.
    pub span: Range<usize>,
    /// As people write them. By keyword: representatives first, the term itself among them where others stand for it, then the
    /// term as it stands in the text (before it in its own spelling, if the text has another one), then the others, sorted by
    /// normal form. By embedding: one representative.
    pub alternatives: Vec<String>,
}

/// Expands a text in which these terms were found. `alternatives` says what else to search for where a term stands; it is
/// asked in their order, once for each.
pub fn expand<'a, K: Copy>(
    text: &str,
    found: &[Found<'_, K>],
    mode: ExpandMode,
    mut alternatives: impl FnMut(FoundTerm<'_, K>) -> Alternatives<'a>,
) -> ExpandedText {
    let groups = found.iter().filter_map(|found| {
        let of_terms: Vec<Alternatives<'a>> = found.terms.iter().map(|term| alternatives(*term)).collect();
        let written = &text[found.span.clone()];
        let alternatives = match mode {
            ExpandMode::Keyword => any_of(written, &found.terms, &of_terms),
            ExpandMode::Embedding => smallest_representative(&of_terms).into_iter().collect(),
        };
        (!alternatives.is_empty()).then(|| OrGroup {
            span: found.span.clone(),
            alternatives,
        })
    });
    ExpandedText {
        original: text.to_owned(),
        mode,
        groups: groups.collect(),
    }
}

/// Representatives, the term as written, and the others, each once; nothing if there is only the term.
fn any_of<K>(written: &str, terms: &[FoundTerm<'_, K>], of_terms: &[Alternatives<'_>]) -> Vec<String> {
    // Most terms are found as they are in normal form.
    let own = if terms.iter().any(|found| found.term == written) {
        Cow::Borrowed(written)
    } else {
        Cow::Owned(normalize(written))
    };
    // Found though it is written otherwise: the long-vowel mark, for example, is ignored.
    let respelled = terms.iter().filter(|found| found.term != own).map(|found| Term {
        key: found.term,
        written: found.term,
    });
    let itself = Term { key: &own, written };
    let representatives = of_terms
        .iter()
        .flat_map(|alternatives| alternatives.representatives.iter().chain(&alternatives.itself));
    let mut first: Vec<Term<'_>> = Vec::new();
    for term in representatives.copied().chain(respelled) {
        if !first.iter().any(|known| known.key == term.key) {
            first.push(term);
        }
    }
    // In another width or case it stays beside the representative as that is written.
    if !first.iter().any(|known| known.written == written) {
        first.push(itself);
    }
    let mut others: Vec<&Term<'_>> = of_terms
        .iter()
        .flat_map(|alternatives| &alternatives.others)
        .collect();
    others.retain(|term| !first.iter().any(|known| known.key == term.key));
    others.sort_by_key(|term| term.key);
    others.dedup_by_key(|term| term.key);
    if first.len() + others.len() < 2 {
        return Vec::new();
    }
    let all = first.iter().chain(others);
    all.map(|term| term.written.to_owned()).collect()
}

fn smallest_representative(of_terms: &[Alternatives<'_>]) -> Option<String> {
    let representatives = of_terms
        .iter()
        .flat_map(|alternatives| &alternatives.representatives);
    representatives
        .min_by_key(|term| term.key)
        .map(|term| term.written.to_owned())
}

impl ExpandedText {
    /// Whether nothing was added.
    pub fn is_unchanged(&self) -> bool {
        self.groups.is_empty()
    }

    /// As one text. By keyword: with `A OR B` where a term stands, in parentheses where the text has more than it; a phrase of
    /// several words, or with a character of the query language, in quotes. By embedding: the text, then the representatives,
    /// each once.
    pub fn render(&self) -> String {
        match self.mode {
            ExpandMode::Keyword => self.by_keyword(),
            ExpandMode::Embedding => self.by_embedding(),
        }
    }

    fn by_keyword(&self) -> String {
        let mut pieces: Vec<String> = Vec::new();
        let mut from = 0;
        for group in &self.groups {
            pieces.push(self.original[from..group.span.start].trim().to_owned());
            let any: Vec<String> = group.alternatives.iter().map(|text| quoted(text)).collect();
            pieces.push(format!("({})", any.join(" OR ")));
            from = group.span.end;
        }
        pieces.push(self.original[from..].trim().to_owned());
        pieces.retain(|piece| !piece.is_empty());
        match &mut pieces[..] {
            [only] if !self.groups.is_empty() => only[1..only.len() - 1].to_owned(),
            _ if self.groups.is_empty() => self.original.clone(),
            _ => pieces.join(" "),
        }
    }

    fn by_embedding(&self) -> String {
        let mut text = self.original.clone();
        let mut added: Vec<&str> = Vec::new();
        for representative in self.groups.iter().filter_map(|group| group.alternatives.first()) {
            if !added.contains(&&**representative) {
                added.push(representative);
                text.push(' ');
                text.push_str(representative);
            }
        }
        text
    }
}

/// One word as it is, anything else in quotes.
fn quoted(text: &str) -> String {
    let is_special = |c: char| c.is_whitespace() || c.is_ascii_punctuation() && !matches!(c, '_' | '.');
    if text.contains(is_special) || matches!(text, "OR" | "AND" | "NOT") {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{
        super::{Matcher, find},
        *,
    };

    /// Sets as they ship, the representative first.
    const SETS: [&[&str]; 5] = [
        &["フィールド", "盤面", "ボード", "場"],
        &["フォロワー", "フォロー", "フォロワ"],
        &["リーダー", "顔", "フェイス"],
        &["手札に戻す", "手札に返す", "バウンス"],
        &["ランダム", "無作為"],
    ];

    fn alternatives(sets: &[&[&'static str]], term: &str) -> Alternatives<'static> {
        let mut alternatives = Alternatives::default();
        let as_term = |written: &'static str| Term {
            key: normalize(written).leak(),
            written,
        };
        for set in sets {
            if normalize(set[0]) == term {
                alternatives.itself = Some(as_term(set[0]));
                alternatives.others.extend(set[1..].iter().copied().map(as_term));
            } else if set.contains(&term) {
                alternatives.representatives.push(as_term(set[0]));
                let others = set[1..].iter().copied().filter(|other| *other != term);
                alternatives.others.extend(others.map(as_term));
            }
        }
        alternatives
    }

    fn expanded(sets: &[&[&'static str]], text: &str, mode: ExpandMode) -> ExpandedText {
        let terms = sets.iter().copied().flatten();
        let matcher = Matcher::new(terms.map(|term| Arc::from(normalize(term))));
        let found = find(text, &[&matcher], |_| Some(()));
        expand(text, &found, mode, |found| alternatives(sets, found.term))
    }

    #[test]
    fn each_term_becomes_a_group_with_the_representative_first() {
        for (text, expected) in [
            ("フォロー", "フォロワー OR フォロー OR フォロワ"),
            ("フォロワー", "フォロワー OR フォロワ OR フォロー"),
            ("ﾌｫﾛｰ", "フォロワー OR ﾌｫﾛｰ OR フォロワ"),
            (
                "ランダムな相手のフォロワーを破壊",
                "(ランダム OR 無作為) な相手の (フォロワー OR フォロワ OR フォロー) を破壊",
            ),
            (
                "場のカードをバウンス",
                "(フィールド OR 場 OR ボード OR 盤面) のカードを (手札に戻す OR バウンス OR 手札に返す)",
            ),
            ("登場時 キーボード", "登場時 キーボード"),
            ("unknown words stay ", "unknown words stay "),
            // Found without its long-vowel mark, it is searched for with it, too.
            ("リダー", "リーダー OR リダー OR フェイス OR 顔"),
            ("どのように登場する", "どのように登場する"),
        ] {
            assert_eq!(expanded(&SETS, text, ExpandMode::Keyword).render(), expected);
        }
    }

    #[test]
    fn an_embedded_text_gets_one_representative_for_each_term() {
        for (text, expected) in [
            ("顔に2ダメージ", "顔に2ダメージ リーダー"),
            ("リーダーに2ダメージ", "リーダーに2ダメージ"),
            ("場と盤面のフォロー", "場と盤面のフォロー フィールド フォロワー"),
            ("なし", "なし"),
        ] {
            assert_eq!(expanded(&SETS, text, ExpandMode::Embedding).render(), expected);
        }
    }

    #[test]
    fn several_representatives_are_united_by_keyword_and_the_smallest_is_embedded() {
        let sets: [&[&'static str]; 2] = [&["board", "panel", "table"], &["council", "panel"]];
        assert_eq!(
            expanded(&sets, "the panel", ExpandMode::Keyword).render(),
            "the (board OR council OR panel OR table)"
        );
        assert_eq!(
            expanded(&sets, "the panel", ExpandMode::Embedding).render(),
            "the panel board"
        );
        // One pair never merges two sets.
        assert_eq!(
            expanded(&sets, "table", ExpandMode::Keyword).render(),
            "board OR table OR panel"
        );
    }

    #[test]
    fn groups_say_where_they_stand() {
        let text = "相手の「ﾌｫﾛﾜｰ」に";
        let expanded = expanded(&SETS, text, ExpandMode::Keyword);
        assert_eq!(&text[expanded.groups[0].span.clone()], "ﾌｫﾛﾜｰ");
        assert_eq!(
            expanded.groups[0].alternatives,
            ["フォロワー", "ﾌｫﾛﾜｰ", "フォロワ", "フォロー"]
        );
        assert_eq!(expanded.original, text);
    }

    #[test]
    fn the_representative_is_there_as_it_is_written_in_whatever_width_and_case_the_text_has_it() {
        let sets: [&[&'static str]; 2] = [&["iPhone", "アイフォン"], &["フォロワー", "フォロー"]];
        for (text, expected) in [
            ("ＩＰＨＯＮＥ", "iPhone OR ＩＰＨＯＮＥ OR アイフォン"),
            ("iphone", "iPhone OR iphone OR アイフォン"),
            ("iPhone", "iPhone OR アイフォン"),
            ("ﾌｫﾛﾜｰ", "フォロワー OR ﾌｫﾛﾜｰ OR フォロー"),
            ("ﾌｫﾛﾜ", "フォロワー OR ﾌｫﾛﾜ OR フォロー"),
            ("ｱｲﾌｫﾝ", "iPhone OR ｱｲﾌｫﾝ"),
        ] {
            assert_eq!(expanded(&sets, text, ExpandMode::Keyword).render(), expected);
        }
    }

    #[test]
    fn what_the_query_language_would_read_otherwise_is_quoted() {
        let sets: [&[&'static str]; 2] = [&["set up", "c++"], &["say \"x\"", "or"]];
        let rendered = |text| expanded(&sets, text, ExpandMode::Keyword).render();
        assert_eq!(rendered("C++"), "\"set up\" OR \"C++\"");
        assert_eq!(rendered("OR"), "\"say \\\"x\\\"\" OR \"OR\"");
    }
}
