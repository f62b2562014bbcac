//! What is found in texts, also compared with a search for each term at each place.

use proptest::prelude::*;

use super::*;

fn matcher(terms: &[&str]) -> Matcher {
    Matcher::new(terms.iter().map(|term| normalize(term).into()))
}

/// What is found, as written.
fn found<'t>(terms: &[&str], text: &'t str) -> Vec<&'t str> {
    let matcher = matcher(terms);
    let found = find(text, &[&matcher], |_| Some(()));
    found.into_iter().map(|found| &text[found.span]).collect()
}

fn terms_of<'m>(found: &Found<'m, ()>) -> Vec<&'m str> {
    found.terms.iter().map(|found| found.term).collect()
}

#[test]
fn no_term_is_found_inside_a_word() {
    for (term, text, expected) in [
        ("場", "登場", &[][..]),
        ("場", "場所", &[]),
        ("場", "場に出す", &["場"]),
        ("場", "フィールドと場。", &["場"]),
        ("場", "「場」", &["場"]),
        ("盤面", "全ての盤面", &["盤面"]),
        ("うに", "どのように", &[]),
        ("えら", "加えられる", &[]),
        ("京都", "東京都", &[]),
        ("京都", "東京都は京都の東", &["京都"]),
        ("くつ", "いくつ", &[]),
        ("くつ", "面積はいくつですか", &[]),
        ("ボード", "キーボード", &[]),
        ("ボード", "ボードゲーム", &[]),
        ("ボード", "ボードを見る", &["ボード"]),
        ("ボード", "キー ボード", &["ボード"]),
        ("ボード", "ｷｰﾎﾞｰﾄﾞとﾎﾞｰﾄﾞ", &["ﾎﾞｰﾄﾞ"]),
        ("card", "cards and discard", &[]),
        ("card", "「Ｃａｒｄ」", &["Ｃａｒｄ"]),
        ("card", "CARDを引く", &["CARD"]),
        ("10", "100", &[]),
        ("10", "2.10", &[]),
        ("10", "10枚", &["10"]),
        ("5", "PS5", &[]),
        ("set up", "to set  up a CSA", &["set  up"]),
        ("set up", "setup", &["setup"]),
        ("会社", "㍿", &[]),
        ("株式会社", "㍿", &["㍿"]),
        ("の", "この場", &[]),
        ("c++", "C++11", &["C++"]),
        ("手札に戻す", "手札に『戻す』効果", &["手札に『戻す"]),
        ("フォロワ", "フォロワーを", &["フォロワー"]),
    ] {
        assert_eq!(found(&[term], text), expected, "{term} in {text}");
    }
}

#[test]
fn the_longest_of_those_that_are_whole_is_found() {
    let terms = ["手札", "手札に戻す", "戻す", "キーボード", "ボード"];
    assert_eq!(
        found(&terms, "手札に戻すキーボード"),
        ["手札に戻す", "キーボード"]
    );
    assert_eq!(found(&terms, "手札に加える"), ["手札"]);
    // One that is cut hides none that is whole.
    assert_eq!(found(&["set up", "set"], "set upon"), ["set"]);
    assert_eq!(found(&["ab cd", "cd"], "xab cd"), ["cd"]);
}

#[test]
fn what_is_written_exactly_comes_before_what_differs_in_what_is_ignored() {
    let matcher = matcher(&["ビル", "ビール"]);
    let terms = |text: &str| terms_of(&find(text, &[&matcher], |_| Some(()))[0]);
    assert_eq!(terms("ビール"), ["ビール"]);
    assert_eq!(terms("ﾋﾞﾙ"), ["ビル"]);
    assert_eq!(terms("ビルー"), ["ビル", "ビール"]);
    let only_beer = find("ビル", &[&matcher], |term| (term == "ビール").then_some(()));
    assert_eq!(terms_of(&only_beer[0]), ["ビール"]);
}

#[test]
fn a_longer_term_that_is_no_word_hides_none_that_is() {
    assert_eq!(found(&["共産", "共産党"], "共産党員は"), ["共産"]);
    assert_eq!(found(&["共産", "共産党"], "共産党議員は"), ["共産党"]);
}

#[test]
fn a_term_that_does_not_count_hides_none() {
    let matcher = matcher(&["手札に戻す", "手札"]);
    let found = find("手札に戻す", &[&matcher], |term| {
        (term == "手札").then_some(())
    });
    assert_eq!(terms_of(&found[0]), ["手札"]);
    assert_eq!(found.len(), 1);
}

#[test]
fn terms_of_which_nothing_is_left_are_never_found() {
    assert_eq!(found(&["ー", "「」"], "「ー」"), [""; 0]);
    assert_eq!(found(&[], "text"), [""; 0]);
}

#[test]
fn each_of_many_terms_is_found_and_nothing_else() {
    let katakana = |number: u32| char::from_u32(u32::from('ァ') + number).unwrap();
    let word = |number: u32| {
        format!(
            "{}{}{}",
            katakana(number % 71),
            katakana(number / 71),
            katakana(number % 13)
        )
    };
    let terms = (0..5_000).step_by(2).map(|number| word(number).into());
    let matcher = Matcher::new(terms);
    assert_eq!(matcher.len(), 2_500);
    for number in 0..5_000 {
        let text = format!("の{}は", word(number));
        let found = find(&text, &[&matcher], |_| Some(()));
        let spans: Vec<&str> = found.into_iter().map(|found| &text[found.span]).collect();
        let expected = if number % 2 == 0 {
            vec![word(number)]
        } else {
            vec![]
        };
        assert_eq!(spans, expected, "{text}");
    }
}

/// Looks for each term at each place.
fn naive(terms: &[String], text: &str) -> Vec<(Range<usize>, Vec<String>)> {
    let folded = FoldedText::new(text);
    let chars = folded.chars();
    let cut = Cut::new(text, folded.origins());
    let is_whole = |first: usize, last: usize| {
        let span = folded.origin(first, last);
        folded.is_whole(first, last) && (!cut::is_asked_about(&text[span.clone()]) || cut.is_whole(&span))
    };
    let forms: Vec<Vec<char>> = terms
        .iter()
        .map(|term| FoldedText::new(term).chars().to_vec())
        .collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let whole = |form: &Vec<char>| {
            !form.is_empty() && chars[at..].starts_with(form) && is_whole(at, at + form.len() - 1)
        };
        let Some(length) = forms.iter().filter(|form| whole(form)).map(Vec::len).max() else {
            at += 1;
            continue;
        };
        let mut here: Vec<String> = terms
            .iter()
            .zip(&forms)
            .filter(|(_, form)| form.len() == length && whole(form))
            .map(|(term, _)| term.clone())
            .collect();
        here.sort_unstable();
        here.dedup();
        let span = folded.origin(at, at + length - 1);
        let written = normalize(&text[span.clone()]);
        if here.contains(&written) {
            here = vec![written];
        }
        found.push((span, here));
        at += length;
    }
    found
}

proptest! {
    #[test]
    fn what_is_found_equals_a_naive_search(
        terms in proptest::collection::vec("[abAｂカーガ場面 '1.]{1,4}", 0..12),
        texts in proptest::collection::vec("[abAＢｂカｶﾞーガ場面 '「1.㍿]{0,24}", 1..6),
        split in 0usize..12,
    ) {
        let terms: Vec<String> = terms.iter().map(|term| normalize(term)).filter(|term| !term.is_empty()).collect();
        let split = split.min(terms.len());
        let matchers = [&terms[..split], &terms[split..]].map(|some| Matcher::new(some.iter().map(|term| Arc::from(&**term))));
        for text in &texts {
            let found: Vec<(Range<usize>, Vec<String>)> = find(text, &matchers.each_ref(), |_| Some(()))
                .into_iter()
                .map(|found| (found.span.clone(), terms_of(&found).into_iter().map(str::to_owned).collect()))
                .collect();
            prop_assert_eq!(found, naive(&terms, text), "{:?} in {:?}", &terms, text);
        }
    }

    #[test]
    fn a_term_in_any_spelling_is_found_where_it_stands(
        term in "[a-zア-ヺ]{2,6}",
        before in "[漢字、 ]{0,3}",
        after in "[漢字、 ]{0,3}",
    ) {
        let spellings = [term.clone(), term.to_uppercase(), format!("{term}ー"), wide(&term)];
        let matcher = Matcher::new([normalize(&term).into()]);
        for spelling in spellings {
            let text = format!("{before}{spelling}{after}");
            let found = find(&text, &[&matcher], |_| Some(()));
            prop_assert_eq!(found.len(), 1, "{}", &text);
            prop_assert_eq!(&text[found[0].span.clone()], spelling.as_str());
        }
    }
}

/// In the other width: letters wide.
fn wide(term: &str) -> String {
    let wide = |c: char| match c {
        'a'..='z' => char::from_u32(u32::from(c) + 0xFEE0).unwrap(),
        c => c,
    };
    term.chars().map(wide).collect()
}
