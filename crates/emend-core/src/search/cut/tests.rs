//! Which terms are words where they stand. The texts are questions that people asked, in part.

use super::*;

/// Whether the first place in the text that reads like the term is that word.
fn is_whole(term: &str, text: &str) -> bool {
    let start = text.find(term).unwrap();
    let clusters = text.char_indices().map(|(at, c)| at..at + c.len_utf8());
    Cut::new(text, clusters).is_whole(&(start..start + term.len()))
}

#[test]
fn what_does_not_lie_on_boundaries_of_words_is_none() {
    for (term, text) in [
        ("うに", "どのように選出されるか"),
        ("うに", "行われるようになったのは"),
        ("えら", "加えられる"),
        ("京都", "東京都"),
        ("京都", "東京都議会の議員"),
        ("京都", "東京都交通局"),
        ("くつ", "いくつ"),
        ("場", "登場する"),
        ("かに", "静かに離すと"),
        ("もち", "日本はもちろん世界中"),
        ("中央委", "中央委員会"),
        ("いつ", "いつも"),
        ("考え", "という考え方があり"),
        ("足", "忍び足の猫又"),
        ("日本", "日本語で"),
    ] {
        assert!(!is_whole(term, text), "{term} in {text}");
    }
}

#[test]
fn what_lies_on_boundaries_of_words_is_one_or_several() {
    for (term, text) in [
        ("うに", "うにを食べる"),
        ("京都", "京都の寺"),
        ("くつ", "くつを脱ぐ"),
        ("場", "この場に出す"),
        ("場", "場"),
        ("手札に戻す", "カードを手札に戻すカード"),
        ("無作為", "無作為なカード"),
        ("どこ", "首都はどこ？"),
        ("すべて", "手札をすべて捨て"),
        ("いつごろ", "梅雨はいつごろか"),
        ("および", "位置および軌道"),
        ("街", "街づくり会議"),
        ("らーめん", "昼はらーめんを食べる"),
    ] {
        assert!(is_whole(term, text), "{term} in {text}");
    }
}

#[test]
fn a_term_that_leaves_fewer_words_is_one_though_the_dictionary_cuts_it() {
    for (term, text) in [
        ("共産党", "共産党議員として"),
        ("衆議院", "衆議院議員補欠選挙"),
        ("日本共産党", "ある日本共産党の施設"),
        ("いつ頃", "伐採したのはいつ頃か"),
        ("すべて", "手札のすべてのカード"),
        ("飲み物", "使った飲み物は何か"),
        ("起こり", "雨が起こりやすい時期"),
        ("もふもふ", "あのもふもふの犬"),
        // As many words, behind a noun and a particle.
        ("うに", "京都のうに"),
        ("どこ", "首都とどこ"),
    ] {
        assert!(is_whole(term, text), "{term} in {text}");
    }
}

#[test]
fn what_is_left_of_an_inflected_word_is_none_though_it_lies_on_boundaries() {
    for (term, text) in [
        ("くつ", "面積はいくつですか"),
        ("くつ", "空港がいくつあるか"),
        ("えら", "適用対象に加えられた者"),
        ("えら", "ダメージは与えられません"),
        ("わな", "検証実験を行わない"),
        ("いも", "なかなか取れないものは"),
        ("いなか", "認められていなかった国"),
        ("かに", "地域か否かについて"),
        ("でか", "いつからいつまでか"),
        ("守", "称号が守られている"),
        ("話", "ポルトガルで話されている"),
    ] {
        assert!(!is_whole(term, text), "{term} in {text}");
    }
}

#[test]
fn width_and_marks_do_not_hide_words_from_the_dictionary() {
    let place = |text: &str, term: &str| {
        let folded = super::super::FoldedText::new(text);
        let start = text.find(term).unwrap();
        Cut::new(text, folded.origins()).is_whole(&(start..start + term.len()))
    };
    // In half width, and with marks that are characters of their own.
    assert!(place("ﾌﾟﾚｲ「中」の場に出す", "場"));
    assert!(!place("ﾌﾟﾚｲ中に登場する", "場"));
    assert!(place("か\u{3099}くせいは京都か\u{3099}好き", "京都"));
    assert!(!place("か\u{3099}くせいは東京都か\u{3099}好き", "京都"));
}
