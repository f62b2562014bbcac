//! Synonym files of Solr and Elasticsearch.
//!
//! In `a, b, c` the first is the representative, for which the others stand. In `a, b => c, d` each term on the left stands
//! for each on the right, one way. Lines that begin with `#` and blank lines are skipped; a backslash takes the next
//! character as it is. Solr replaces the left side, so a file writes `a => a, b` to keep `a`. Expansion here always keeps
//! the term, so a term that stands for itself is no row. Repeated pairs of a line are one row.

use std::{collections::HashSet, io::BufRead};

use emend_core::{NormalizedKey, Relation};

use super::{
    lines::lines,
    record::{Record, RowError},
};

/// Reads pairs one by one and passes each to `take` with its line, until there are no more or `take` returns false.
///
/// A line is an error, and yields no pair, if it has an empty term, a single term without `=>`, a second `=>` or a
/// backslash at its end. Reading goes on with the next line, except after text that can't be read.
pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    for (line, text) in lines(from) {
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                take(line, Err(RowError::row(error.to_string())));
                return;
            }
        };
        let text = text.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match rows(text) {
            Ok(rows) => {
                for row in rows {
                    if !take(line, Ok(row)) {
                        return;
                    }
                }
            }
            Err(error) => {
                if !take(line, Err(error)) {
                    return;
                }
            }
        }
    }
}

fn rows(text: &str) -> Result<Vec<Record>, RowError> {
    let (left, right) = sides(text)?;
    let (terms, representatives, relation) = match &right {
        Some(right) => (&left[..], &right[..], Relation::OneWay),
        None if left.len() == 1 => {
            return Err(RowError::row("has one term only; a comma or => is missing"));
        }
        None => (&left[1..], &left[..1], Relation::Equivalent),
    };
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for term in terms {
        for representative in representatives {
            if !is_one(term, representative) && seen.insert((term, representative)) {
                rows.push(Record::synonym(term.clone(), representative.clone(), relation));
            }
        }
    }
    Ok(rows)
}

/// Whether two terms are spellings of one, which stands for itself without saying so.
pub(super) fn is_one(term: &str, other: &str) -> bool {
    term == other
        || NormalizedKey::parse(term)
            .is_ok_and(|term| NormalizedKey::parse(other).is_ok_and(|other| term == other))
}

/// The terms before `=>` and, if there is one, those after it.
fn sides(text: &str) -> Result<(Vec<String>, Option<Vec<String>>), RowError> {
    let mut left = None;
    let mut terms = Vec::new();
    let mut term = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => term.push(
                chars
                    .next()
                    .ok_or_else(|| RowError::row("ends with a backslash that escapes nothing"))?,
            ),
            ',' => terms.push(whole(&mut term)?),
            '=' if chars.next_if_eq(&'>').is_some() => {
                terms.push(whole(&mut term)?);
                if left.replace(std::mem::take(&mut terms)).is_some() {
                    return Err(RowError::row("has more than one =>"));
                }
            }
            char => term.push(char),
        }
    }
    terms.push(whole(&mut term)?);
    Ok(match left {
        Some(left) => (left, Some(terms)),
        None => (terms, None),
    })
}

fn whole(term: &mut String) -> Result<String, RowError> {
    let whole = std::mem::take(term).trim().to_owned();
    if whole.is_empty() {
        return Err(RowError::row("has an empty term"));
    }
    Ok(whole)
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

    fn pair(line: u64, term: &str, of: &str, relation: Relation) -> (u64, String, String, Relation) {
        (line, term.into(), of.into(), relation)
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
        for (bad, says) in [
            ("a", "one term"),
            ("a,,b", "empty"),
            ("a =>", "empty"),
            ("=> a", "empty"),
            ("a => b => c", "more than one"),
            ("a, b\\", "backslash"),
        ] {
            let rows = all(format!("{bad}\nx, y\n").as_bytes());
            assert!(
                matches!(&rows[..], [(1, Err(error)), (2, Ok(_))] if error.to_string().contains(says)),
                "{bad}: {rows:?}"
            );
        }
        assert!(matches!(&all(b"a, b\n\xff\n")[..], [(1, Ok(_)), (2, Err(_))]));
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
