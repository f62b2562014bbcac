//! Synonym files of Solr and Elasticsearch.
//!
//! A line `a, b, c` is a set of its own: its terms find each other, and no other line's. Its representative, for which the
//! others stand, is its first term that represents no line before it. In `a, b => c, d` each term on the left stands
//! for each on the right, one way. Lines that begin with `#` and blank lines are skipped; a backslash takes the next
//! character as it is. Solr replaces the left side, so a file writes `a => a, b` to keep `a`. Expansion here always keeps
//! the term, so a term that stands for itself is no row. As Solr does, empty terms and lines of a single term are passed
//! over, and a pair that is in a set and in a mapping is both: [`synonyms`](super::synonyms).

use std::io::BufRead;

use emend_core::Relation;

use super::{
    record::{Record, RowError},
    source::Lines,
    synonyms::Pairs,
};

/// Reads all pairs, then passes each to `take` with its line, until there are no more or `take` returns false.
///
/// A line is an error, and yields no pair, if it has a second `=>` or a backslash at its end. Reading goes on with the next
/// line, except where nothing more can be read or the file is one of `WordNet`.
pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut pairs = Pairs::default();
    let mut lines = Lines::of(from);
    let mut is_first = true;
    while let Some((line, text)) = lines.next_text() {
        let text = match text {
            Ok(text) => text.trim_start(),
            Err(error) => {
                pairs.not_taken(line, error);
                continue;
            }
        };
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if is_first && is_json(text) {
            let why =
                "begins as JSON: synonyms as an interface exports them are read with --format synonyms-json";
            pairs.not_taken(line, RowError::row(why).of_the_file());
            break;
        }
        is_first = false;
        if is_word_net(text) {
            let why =
                "is a line of WordNet's wn_s.pl, which is not read; write each of its sets as a line a, b, c";
            pairs.not_taken(line, RowError::row(why).of_the_file());
            break;
        }
        if let Err(error) = add_line(&mut pairs, line, text) {
            pairs.not_taken(line, error);
        }
    }
    pairs.pass_on(take);
}

/// Whether a file begins as an object or a list of objects of JSON.
fn is_json(text: &str) -> bool {
    let text = text.trim_end();
    let inner = text.strip_prefix('[').unwrap_or(text).trim_start();
    matches!(text, "{" | "[") || inner == "{" || inner.starts_with("{\"")
}

/// Adds the pairs that one line says.
pub(super) fn add_line(pairs: &mut Pairs, line: u64, text: &str) -> Result<(), RowError> {
    let (left, right) = sides(text)?;
    add(pairs, line, &left, right.as_deref());
    Ok(())
}

/// Whether a line is a fact of `WordNet`'s Prolog files: `s(100000001,1,'word',n,1,11).`
fn is_word_net(text: &str) -> bool {
    let synset = text
        .strip_prefix("s(")
        .and_then(|rest| rest.split_once(','))
        .map(|(synset, _)| synset);
    synset.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
        && text.trim_end().ends_with(").")
}

/// Adds the pairs of a line, whose empty terms say nothing.
pub(super) fn add(pairs: &mut Pairs, line: u64, left: &[String], right: Option<&[String]>) {
    let said = |terms: &[String]| -> Vec<String> {
        let terms = terms.iter().filter(|term| !term.is_empty());
        terms.cloned().collect()
    };
    let (terms, mapped) = (said(left), right.map(said));
    let empty =
        left.len() - terms.len() + right.map_or(0, <[String]>::len) - mapped.as_ref().map_or(0, Vec::len);
    let is_short = match &mapped {
        Some(mapped) => terms.is_empty() || mapped.is_empty(),
        None => terms.len() < 2,
    };
    if is_short {
        pairs.not_taken(line, RowError::passed_over("has no two terms"));
        return;
    }
    if empty > 0 {
        pairs.not_taken(line, RowError::passed_over("has an empty term"));
    }
    let Some(mapped) = mapped else {
        let set: Vec<&str> = terms.iter().map(String::as_str).collect();
        let Some(representative) = pairs.representative(&set, &set) else {
            return;
        };
        for term in set {
            pairs.add(line, term, representative, Relation::Equivalent);
        }
        return;
    };
    for term in &terms {
        for representative in &mapped {
            pairs.add(line, term, representative, Relation::OneWay);
        }
    }
}

/// The terms before `=>` and, if there is one, those after it.
fn sides(text: &str) -> Result<(Vec<String>, Option<Vec<String>>), RowError> {
    let mut left = None;
    let mut terms = Vec::new();
    let mut term = String::new();
    let whole = |term: &mut String| std::mem::take(term).trim().to_owned();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => term.push(
                chars
                    .next()
                    .ok_or_else(|| RowError::row("ends with a backslash that escapes nothing"))?,
            ),
            ',' => terms.push(whole(&mut term)),
            '=' if chars.next_if_eq(&'>').is_some() => {
                terms.push(whole(&mut term));
                if left.replace(std::mem::take(&mut terms)).is_some() {
                    return Err(RowError::row("has more than one =>"));
                }
            }
            char => term.push(char),
        }
    }
    terms.push(whole(&mut term));
    Ok(match left {
        Some(left) => (left, Some(terms)),
        None => (terms, None),
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, Result<Record, RowError>)> {
        let mut rows = Vec::new();
        read(text, &mut |line, row| {
            rows.push((line, row));
            true
        });
        rows
    }

    fn pairs(text: &str) -> Vec<(u64, String, String, Relation)> {
        all(text.as_bytes())
            .into_iter()
            .map(|(line, row)| {
                let row = row.unwrap();
                (line, row.input, row.choice, row.relation.unwrap())
            })
            .collect()
    }

    fn pair(
        line: u64,
        term: &str,
        representative: &str,
        relation: Relation,
    ) -> (u64, String, String, Relation) {
        (line, term.into(), representative.into(), relation)
    }

    #[test]
    fn the_first_equivalent_stands_for_the_set() {
        let text = "\u{FEFF}# sets\r\n\r\nフィールド, 盤面,ボード\r\nフォロワー,フォロワ\r\n";
        let expected = [
            pair(3, "盤面", "フィールド", Relation::Equivalent),
            pair(3, "ボード", "フィールド", Relation::Equivalent),
            pair(4, "フォロワ", "フォロワー", Relation::Equivalent),
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn a_mapping_is_one_way_and_no_term_stands_for_itself() {
        let expected = [
            pair(1, "顔", "リーダー", Relation::OneWay),
            pair(1, "フェイス", "リーダー", Relation::OneWay),
            pair(2, "a", "b", Relation::OneWay),
        ];
        assert_eq!(pairs("顔, フェイス => リーダー\na => A, b\n"), expected);
    }

    #[test]
    fn a_backslash_takes_the_next_character_as_it_is() {
        let expected = [pair(1, "c=>d\\", "a,b", Relation::Equivalent)];
        assert_eq!(pairs(r"a\,b, c\=\>d\\"), expected);
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_is_read() {
        for (bad, says) in [("a => b => c", "more than one"), ("a, b\\", "backslash")] {
            let rows = all(format!("{bad}\nx, y\n").as_bytes());
            assert!(
                matches!(&rows[..], [(1, Err(error)), (2, Ok(_))] if error.to_string().contains(says)),
                "{bad}: {rows:?}"
            );
        }
        let rows = all(b"caf\xe9, coffee\nok, fine\n");
        assert!(
            matches!(&rows[..], [(1, Err(error)), (2, Ok(_))] if error.to_string().contains("windows-1252")),
            "{rows:?}"
        );
    }

    /// The pairs, and the lines of which something is passed over.
    fn with_passed_over(text: &str) -> (Vec<String>, Vec<u64>) {
        let (good, others): (Vec<_>, Vec<_>) =
            all(text.as_bytes()).into_iter().partition(|(_, row)| row.is_ok());
        let pair = |(line, row): (u64, Result<Record, RowError>)| {
            let row = row.unwrap();
            format!("{line} {} → {}", row.input, row.choice)
        };
        let passed = others.into_iter().map(|(line, row)| {
            let error = row.unwrap_err();
            assert!(error.is_passed_over(), "{error}");
            line
        });
        (good.into_iter().map(pair).collect(), passed.collect())
    }

    #[test]
    fn empty_terms_and_single_terms_are_passed_over() {
        let (pairs, passed) = with_passed_over("foo,bar,\nc,,d\n,:(=>sad face\na\na =>\n=> a\n,\n");
        assert_eq!(pairs, ["1 bar → foo", "2 d → c", "3 :( → sad face"]);
        assert_eq!(passed, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn lines_that_share_their_first_term_stay_sets_of_their_own() {
        let text = "bag, handbag, purse\nbag, grip, suitcase\nBag, Handbag, purse\n";
        let expected = [
            "1 handbag → bag",
            "1 purse → bag",
            "2 bag → grip",
            "2 suitcase → grip",
        ];
        assert_eq!(with_passed_over(text).0, expected);
        let text = "charge, accuse\ncharge, bill\ncharge, complaint\n";
        let expected = ["1 accuse → charge", "2 charge → bill", "3 charge → complaint"];
        assert_eq!(with_passed_over(text).0, expected);
    }

    #[test]
    fn a_pair_of_a_set_and_a_mapping_is_equivalent_in_either_order() {
        let both = [
            ("cut in,cut-in\ncut-in=>cut in,CI\n", 1),
            ("cut-in=>cut in,CI\ncut in,cut-in\n", 1),
        ];
        for (text, line) in both {
            let pairs = pairs(text);
            assert!(
                pairs.contains(&pair(line, "cut-in", "cut in", Relation::Equivalent)),
                "{pairs:?}"
            );
            assert_eq!(pairs.len(), 2, "{pairs:?}");
        }
    }

    #[test]
    fn a_file_of_word_net_ends_at_its_first_line() {
        let rows = all(b"s(100000001,1,'alpha',n,1,11).\ns(100000002,1,'beta thing',n,1,0).\n");
        assert!(
            matches!(&rows[..], [(1, Err(error))] if error.ends_file() && error.to_string().contains("WordNet")),
            "{rows:?}"
        );
        assert_eq!(pairs("s(x), t\n").len(), 1);
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_line_of_it() {
        const PARTS: [&[u8]; 11] = [
            b"a",
            b",",
            b"=>",
            b"=",
            b"\\",
            b"#",
            b"\n",
            b"\r\n",
            b" ",
            "場".as_bytes(),
            b"\xff",
        ];
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..5_000 {
            let parts = random.random_range(0..40);
            let text: Vec<u8> = (0..parts)
                .flat_map(|_| PARTS[random.random_range(0..11)])
                .copied()
                .collect();
            let lines = text.split(|byte| *byte == b'\n').count() as u64;
            for (line, row) in all(&text) {
                assert!((1..=lines).contains(&line), "{text:?}");
                assert!(
                    row.is_err() || row.is_ok_and(|row| row.input != row.choice),
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn ninety_thousand_lines_are_read() {
        let lines: Vec<_> = (0..90_000).map(|n| format!("語{n}, word {n}, w{n}\n")).collect();
        let text = lines.concat();
        let rows = all(text.as_bytes());
        assert_eq!(rows.len(), 180_000);
        assert!(rows.iter().all(|(_, row)| row.is_ok()));
        assert_eq!(rows.last().map(|(line, _)| *line), Some(90_000));
    }
}
