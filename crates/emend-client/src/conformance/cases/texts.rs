//! Phrases and texts: their normal form, what else to search for, and prompts.

use serde_json::{Value, json};

use super::Case;

pub(super) fn normalisation() -> Vec<Case> {
    let mut cases: Vec<Case> = [
        (
            "case-and-space",
            "case and white space at the ends",
            "  Set up a CSA ",
        ),
        ("as-it-is", "a phrase in normal form stays", "set up a csa"),
        (
            "full-width",
            "full-width letters and spaces",
            "Ｓｅｔ　ｕｐ　ａ　ＣＳＡ",
        ),
        ("sharp-s", "case folding that makes a text longer", "Straße"),
        ("final-sigma", "both small sigmas are one", "ΣΊΣΥΦΟΣ"),
        ("ligature", "a ligature", "ﬁle"),
        ("composed", "an accent of its own composes", "e\u{301}"),
        ("dotted-i", "a capital I with a dot", "İ"),
        ("half-width", "half-width katakana with its voicing mark", "ｶﾞ"),
        ("circled", "digits in circles", "①②"),
        ("soft-hyphen", "a soft hyphen is not seen", "soft\u{AD}hyphen"),
        ("zero-width", "a space of no width joins", "a\u{200B}b"),
        (
            "spaces",
            "white space of all kinds is one space",
            "tab\tand\u{3000}wide\u{A0}spaces\n",
        ),
        ("japanese", "Japanese stays", "カードを手札に戻す"),
        (
            "hidden-marks",
            "marks of direction and joiners are not seen",
            "\u{FEFF}s\u{200D}et\u{FE0F}\u{202E} up",
        ),
        ("hangul", "Hangul letters compose", "\u{1112}\u{1161}\u{11AB}"),
        (
            "brought-together",
            "what composes once an invisible character is gone",
            "e\u{34F}\u{301}",
        ),
        ("greek-iota", "an iota below folds to one beside", "ᾳ"),
        ("armenian", "an Armenian ligature folds to two letters", "և"),
        ("cherokee", "Cherokee folds to capitals", "ꭰ"),
        (
            "line-separators",
            "line and paragraph separators are white space",
            "a\u{2028}b\u{2029}c\u{85}d\u{b}e",
        ),
    ]
    .map(|(id, checks, text)| (id, checks, json!({"text": text})))
    .into();
    // Plane 15 and 16 are for private use; between plane 3 and 14 nothing is assigned.
    let checks = "each character between a and b, joined by line feeds: XXH3-64 of the UTF-8";
    for (id, first, last) in [
        ("plane-0-low", 0, 0x1FFF),
        ("plane-0-middle", 0x2000, 0x9FFF),
        ("plane-0-high", 0xA000, 0xFFFF),
        ("plane-1-low", 0x1_0000, 0x1_7FFF),
        ("plane-1-high", 0x1_8000, 0x1_FFFF),
        ("plane-2", 0x2_0000, 0x2_FFFF),
        ("plane-3", 0x3_0000, 0x3_FFFF),
        ("plane-14", 0xE_0000, 0xE_FFFF),
    ] {
        cases.push((id, checks, json!({"characters": [first, last]})));
    }
    cases
}

pub(super) fn expansion() -> Vec<Case> {
    let of = |text: &str, mode: &str| json!({"state": "terms", "namespace": "fund-admin", "text": text, "mode": mode});
    let term = |term: &str| json!({"state": "terms", "namespace": "fund-admin", "term": term});
    let own = json!({"state": "terms", "namespace": "fund-admin", "text": "my thing", "mode": "keyword", "user": "jane"});
    vec![
        ("nothing", "a text without terms", of("buy a boat", "keyword")),
        ("term", "a term alone", of("フォロー", "keyword")),
        (
            "terms",
            "terms within a text, one of another width",
            of("場のﾌｫﾛｰ", "keyword"),
        ),
        (
            "inside-a-word",
            "no term is found inside a word",
            of("登場するキーボード", "keyword"),
        ),
        (
            "embedding",
            "at most one representative for each term",
            of("場のﾌｫﾛｰ", "embedding"),
        ),
        (
            "one-way",
            "who searches for the term finds its set",
            of("a poodle", "keyword"),
        ),
        ("not-back", "but not the other way round", of("a dog", "keyword")),
        ("typo", "a misspelling finds the set", of("a dgo", "keyword")),
        (
            "longer",
            "a representative of several words",
            of("sign a csa", "keyword"),
        ),
        ("own", "a user's own synonyms", own),
        ("not-own", "are nobody else's", of("my thing", "keyword")),
        (
            "synonyms",
            "what else to search for where a term stands alone",
            term("ﾌｫﾛｰ"),
        ),
        (
            "no-synonyms",
            "nothing for a term that was not learned",
            term("boat"),
        ),
    ]
}

pub(super) fn prompts() -> Vec<Case> {
    let of = |target: &str, more: Value| {
        let mut input = json!({"state": "prompts", "namespace": "fund-admin", "target": target});
        for (name, value) in more.as_object().unwrap() {
            input[name] = value.clone();
        }
        input
    };
    let monday = json!({"day": "Monday"});
    vec![
        (
            "plain",
            "without examples and profile it is the text byte for byte",
            of("PLAIN", json!({})),
        ),
        (
            "filled",
            "variables, one by its default",
            of("FILLED", json!({"variables": monday})),
        ),
        (
            "given",
            "a text that is given takes the place of the default",
            of("FILLED", json!({"variables": {"day": "Monday", "tone": "warm"}})),
        ),
        (
            "label",
            "the version under another label",
            of("FILLED", json!({"variables": monday, "label": "staging"})),
        ),
        ("missing", "a variable that nobody gave", of("FILLED", json!({}))),
        (
            "unknown-variable",
            "a variable that the prompt has not",
            of("PLAIN", json!({"variables": {"x": "y"}})),
        ),
        ("no-prompt", "a target without a prompt", of("NONE", json!({}))),
        (
            "no-label",
            "a label without a version",
            of("FILLED", json!({"label": "nightly"})),
        ),
        (
            "examples",
            "examples stand below",
            of("SUMMARIZE_DAILY", json!({"variables": monday})),
        ),
        ("japanese", "in the language of the set", of("要約", json!({}))),
        (
            "language",
            "in the language that is asked for",
            of("SUMMARIZE_DAILY", json!({"variables": monday, "language": "ja"})),
        ),
        (
            "profile",
            "with the profile of a user",
            of("SUMMARIZE_DAILY", json!({"variables": monday, "user": "jane"})),
        ),
        (
            "no-profile",
            "of a user who has none",
            of("SUMMARIZE_DAILY", json!({"variables": monday, "user": "joe"})),
        ),
    ]
}
