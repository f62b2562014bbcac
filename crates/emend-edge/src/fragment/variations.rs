//! Engines whose queries know no "or", and programs that know no queries: the text once for each alternative, as searches whose results
//! are merged, or as lines.

use serde_json::{Value, json};

use super::{Part, Parts, Target};

/// The most searches of one query. What is left out are combinations of the later alternatives.
const MOST: usize = 12;
/// What a result of an expansion counts, beside 1 for one of the text as it was written.
const EXPANDED: f64 = 0.8;

/// A multi-search with federation.
pub(super) fn meilisearch(parts: &Parts<'_>, target: &Target) -> Value {
    let queries: Vec<Value> = texts(parts)
        .enumerate()
        .map(|(place, text)| {
            let weight = if place == 0 { 1.0 } else { EXPANDED };
            json!({"indexUid": target.index, "q": text, "federationOptions": {"weight": weight}})
        })
        .collect();
    json!({"federation": {}, "queries": queries})
}

/// A multi-search with union.
pub(super) fn typesense(parts: &Parts<'_>, target: &Target) -> Value {
    let fields: Vec<_> = target.fields.iter().map(super::Field::name).collect();
    let searches: Vec<Value> = texts(parts)
        .map(|text| json!({"collection": target.index, "q": text, "query_by": fields.join(",")}))
        .collect();
    json!({"union": true, "searches": searches})
}

/// A line for each: it has no syntax but that none of them has a line break.
pub(super) fn plain(parts: &Parts<'_>) -> String {
    texts(parts).collect::<Vec<_>>().join("\n")
}

/// The text as it was written, then with its alternatives. None if it has no words: an empty text would find everything.
fn texts(parts: &Parts<'_>) -> impl Iterator<Item = String> {
    let written = vec![parts.as_written().map(searched).collect::<Vec<_>>()];
    let combinations = parts
        .parts
        .iter()
        .enumerate()
        .fold(written, |known, (place, part)| {
            let Part::Any { stands, alternatives } = part else {
                return known;
            };
            let others = alternatives.iter().filter(|other| other != stands);
            let more: Vec<Vec<String>> = others
                .flat_map(|other| {
                    known.iter().map(move |words| {
                        let mut words = words.clone();
                        words[place] = searched(other);
                        words
                    })
                })
                .take(MOST.saturating_sub(known.len()))
                .collect();
            [known, more].concat()
        });
    combinations
        .into_iter()
        .map(|words| words.join(" "))
        .filter(|text| !text.trim().is_empty())
}

/// Without what these engines take for an operator: quotes make phrases, and a leading minus leaves results out.
fn searched(text: &str) -> String {
    let text = text.replace(|letter: char| letter == '"' || letter.is_control(), " ");
    let words = text
        .split_whitespace()
        .map(|word| word.trim_start_matches(['-', '*', '+']))
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{HOSTILE, expanded},
        *,
    };

    #[test]
    fn every_alternative_is_a_search_of_its_own_and_the_text_itself_the_first() {
        let text = expanded("cheap notebook", &[("notebook", &["notebook", "laptop"])]);
        let target = Target {
            index: "shop".into(),
            fields: vec!["title^2".parse().unwrap(), "body".parse().unwrap()],
            ..Target::default()
        };
        let parts = Parts::of(&text);
        assert_eq!(
            meilisearch(&parts, &target),
            json!({"federation": {}, "queries": [
                {"indexUid": "shop", "q": "cheap notebook", "federationOptions": {"weight": 1.0}},
                {"indexUid": "shop", "q": "cheap laptop", "federationOptions": {"weight": 0.8}},
            ]})
        );
        assert_eq!(
            typesense(&parts, &target)["searches"][1],
            json!({"collection": "shop", "q": "cheap laptop", "query_by": "title,body"})
        );
        assert_eq!(plain(&parts), "cheap notebook\ncheap laptop");
    }

    #[test]
    fn there_are_never_more_searches_than_may_be() {
        let alternatives = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let text = expanded(
            "x y z",
            &[("x", &alternatives), ("y", &alternatives), ("z", &alternatives)],
        );
        let texts: Vec<String> = texts(&Parts::of(&text)).collect();
        assert_eq!(texts.len(), MOST);
        assert_eq!((&*texts[0], &*texts[1]), ("x y z", "a y z"));
    }

    #[test]
    fn no_text_is_an_operator() {
        for hostile in HOSTILE {
            let text = expanded(&format!("{hostile} term"), &[("term", &["term", hostile])]);
            for text in texts(&Parts::of(&text)) {
                assert!(!text.contains('"'), "{text}");
                assert!(
                    text.split(' ').all(|word| !word.starts_with(['-', '*', '+'])),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn no_text_leaves_its_line() {
        for hostile in HOSTILE {
            let text = expanded(
                &format!("{hostile} term"),
                &[("term", &["term", "other", hostile])],
            );
            let written = plain(&Parts::of(&text));
            let lines: Vec<&str> = written.split(ends_line).collect();
            assert_eq!(lines.len(), 3, "{written:?}");
            assert!(
                lines[0].ends_with("term") && lines[1].ends_with("other"),
                "{written:?}"
            );
        }
        let nothing = expanded("?! -", &[]);
        assert_eq!(
            plain(&Parts::of(&nothing)),
            "",
            "an empty line would find everything"
        );
    }

    /// Whether some program or other takes it for the end of a line.
    fn ends_line(letter: char) -> bool {
        letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
    }
}
