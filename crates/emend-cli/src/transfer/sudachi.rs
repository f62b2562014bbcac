//! The source format of Sudachi's synonym dictionary, `synonyms.txt`.
//!
//! Its description is <https://github.com/WorksApplications/SudachiDict/blob/develop/docs/synonyms.md>. A line is one
//! headword as CSV; columns after the headword are ignored. The terms of one group number are a set, whatever their lexeme
//! numbers, which only tell the forms of one word from its synonyms. Blank lines between groups may be left out.
//!
//! | column | meaning | here |
//! |---|---|---|
//! | 0 | group number | the set |
//! | 2 | expansion control | 0: used; 1: others expand to it, it does not expand itself; 2: no row |
//! | 4 | word form | 0: may stand for the set; 4, a misuse: TYPO |
//! | 6 | spelling | 3, a misspelling: TYPO |
//! | 8 | headword | the term |
//!
//! Control 1 is the reverse of `ONE_WAY` for the term itself. So each other term of the set that expands stands for it,
//! one way: they expand to it, and it to none. The representative is the first term of form 0, else the first term,
//! among those of control 0 that are no mistakes; a term that represents another group is left out where there is another.

use std::io::BufRead;

use emend_core::Relation;

use super::{
    record::{Record, RowError},
    source::{Lines, csv},
    synonyms::Pairs,
};
use crate::output::counted;

struct Entry {
    line: u64,
    group: String,
    /// Others expand to it only.
    passive: bool,
    main: bool,
    typo: bool,
    term: String,
}

/// Reads all pairs, then passes each to `take` with its term's line, until there are no more or `take` returns false.
///
/// A line is an error if its quotes are not closed, it has fewer than 9 columns, no group number or headword, or a number that
/// the format doesn't know. Reading goes on, except where nothing more can be read.
pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut pairs = Pairs::default();
    let mut group: Vec<Entry> = Vec::new();
    let mut lines = Lines::of(from);
    while let Some((line, text)) = lines.next_text() {
        if text.as_ref().is_ok_and(|text| text.trim().is_empty()) {
            continue;
        }
        match text.and_then(|text| entry(line, text)) {
            Ok(Some(entry)) => {
                if group.last().is_some_and(|last| last.group != entry.group) {
                    add(&mut pairs, &std::mem::take(&mut group));
                }
                group.push(entry);
            }
            Ok(None) => {}
            Err(error) => pairs.not_taken(line, error),
        }
    }
    add(&mut pairs, &group);
    pairs.pass_on(take);
}

fn entry(line: u64, text: &str) -> Result<Option<Entry>, RowError> {
    let record = csv::fields(text)?;
    if record.len() < 9 {
        return Err(RowError::row(format!(
            "has {}; at least 9 are needed",
            counted(record.len(), "column", "columns")
        )));
    }
    let column = |at: usize| record[at].trim();
    if column(0).is_empty() || !column(0).bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RowError::row("has no group number"));
    }
    let number = |at: usize, name: &str, most: u8| match column(at) {
        "" => Ok(None),
        text => match text.parse::<u8>() {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(RowError::row(format!(
                "has the {name} {text:?}; 0 to {most} are known"
            ))),
        },
    };
    number(1, "word class", 2)?;
    let control = number(2, "expansion control", 2)?.unwrap_or(0);
    let form = number(4, "word form", 4)?;
    number(5, "abbreviation", 2)?;
    let spelling = number(6, "spelling", 3)?;
    if column(8).is_empty() {
        return Err(RowError::row("has no headword"));
    }
    Ok((control != 2).then(|| Entry {
        line,
        group: column(0).to_owned(),
        passive: control == 1,
        main: form == Some(0),
        typo: form == Some(4) || spelling == Some(3),
        term: column(8).to_owned(),
    }))
}

/// Adds the pairs of a group.
fn add(pairs: &mut Pairs, group: &[Entry]) {
    let set: Vec<&str> = group.iter().map(|entry| entry.term.as_str()).collect();
    let fit = || group.iter().filter(|entry| !entry.passive && !entry.typo);
    let (main, others): (Vec<&Entry>, Vec<&Entry>) = fit().partition(|entry| entry.main);
    let may: Vec<&str> = main
        .into_iter()
        .chain(others)
        .map(|entry| entry.term.as_str())
        .collect();
    let representative = pairs.representative(&set, &may);
    for entry in group.iter().filter(|entry| !entry.passive) {
        if let Some(representative) = representative {
            let relation = if entry.typo {
                Relation::Typo
            } else {
                Relation::Equivalent
            };
            pairs.add(entry.line, &entry.term, representative, relation);
        }
        for passive in group.iter().filter(|other| other.passive && !other.typo) {
            let relation = if entry.typo {
                Relation::Typo
            } else {
                Relation::OneWay
            };
            pairs.add(entry.line, &entry.term, &passive.term, relation);
        }
    }
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

    fn pairs(text: &str) -> Vec<String> {
        all(text.as_bytes())
            .into_iter()
            .map(|(line, row)| {
                let row = row.unwrap();
                format!("{line} {} {} {:?}", row.input, row.choice, row.relation.unwrap())
            })
            .collect()
    }

    #[test]
    fn a_group_is_a_set_whatever_its_lexemes_and_mistakes_are_typos() {
        let text = "\u{FEFF}000001,1,0,1,2,0,0,(),盤面,,\r\n000001,1,0,1,0,0,0,(),\"フィールド\",,\r\n\
            000001,1,0,2,0,0,0,(),場,,\r\n000001,1,0,1/2,2,0,0,(),ボード,,\r\n000001,1,2,1,2,0,0,(),台,,\r\n\r\n\
            000002,1,0,1,0,0,0,(),フォロワー,,\r\n000002,1,0,1,0,0,3,(),フォロワ,,\r\n\
            000002,1,0,1,4,0,0,(),フォロー,,\r\n";
        let expected = [
            "1 盤面 フィールド Equivalent",
            "3 場 フィールド Equivalent",
            "4 ボード フィールド Equivalent",
            "8 フォロワ フォロワー Typo",
            "9 フォロー フォロワー Typo",
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn others_expand_to_a_term_that_does_not_expand_itself() {
        let text = "1,,0,1,0,,,,リーダー\n1,,0,1,2,,,,フェイス\n1,,1,1,2,,,,顔\n";
        let expected = [
            "1 リーダー 顔 OneWay",
            "2 フェイス リーダー Equivalent",
            "2 フェイス 顔 OneWay",
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn a_new_group_number_begins_a_group_without_a_blank_line() {
        let text = "1,,,,,,,,a,,\n1,,,,,,,,\"b,c\",,\n2,,,,,,,,d,,\n2,,,,,,,,e,,\n";
        assert_eq!(pairs(text), ["2 b,c a Equivalent", "4 e d Equivalent"]);
    }

    #[test]
    fn a_bad_line_is_named_and_the_others_are_read() {
        for (bad, says) in [
            ("1,,,,,,,,\"a", "quote"),
            ("1,a", "columns"),
            ("x,,,,,,,,a", "group number"),
            ("1,,3,,,,,,a", "expansion control"),
            ("1,,,,5,,,,a", "word form"),
            ("1,,,,,,4,,a", "spelling"),
            ("1,,,,,,,, ", "headword"),
        ] {
            let rows = all(format!("1,,,,,,,,x\n{bad}\n1,,,,,,,,y\n").as_bytes());
            assert!(
                matches!(&rows[..], [(2, Err(error)), (3, Ok(_))] if error.to_string().contains(says)),
                "{bad}: {rows:?}"
            );
        }
        let rows = all(b"1,,,,,,,,foo\n1,,,,,,,,caf\xe9\n\n2,,,,,,,,aa\n2,,,,,,,,bb\n");
        assert!(
            matches!(&rows[..], [(2, Err(error)), (5, Ok(_))] if error.to_string().contains("windows-1252")),
            "{rows:?}"
        );
    }

    #[test]
    fn groups_that_share_their_first_headword_stay_sets_of_their_own() {
        let text =
            "1,,0,1,0,,,,bag\n1,,0,1,2,,,,purse\n\n2,,0,1,0,,,,bag\n2,,0,1,2,,,,case\n2,,1,2,0,,,,box\n";
        let expected = [
            "2 purse bag Equivalent",
            "4 bag case Equivalent",
            "4 bag box OneWay",
            "5 case box OneWay",
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn a_pair_that_two_groups_relate_differently_is_equivalent() {
        let text = "1,,0,,,,,,a\n1,,0,,,,,,x\n1,,1,,,,,,b\n2,,0,,,,,,b\n2,,0,,,,,,a\n";
        let expected = ["1 a b Equivalent", "2 x a Equivalent", "2 x b OneWay"];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_line_of_it() {
        const PARTS: [&[u8]; 11] = [
            b"1,,",
            b"0,1",
            b",",
            b",,,,,",
            b"\"",
            b"/",
            b"\n",
            b"\r",
            b" ",
            "場".as_bytes(),
            b"\xff",
        ];
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..5_000 {
            let parts = random.random_range(0..60);
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
}
