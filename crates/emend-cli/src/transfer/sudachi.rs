//! The source format of Sudachi's synonym dictionary, `synonyms.txt`.
//!
//! Its description is <https://github.com/WorksApplications/SudachiDict/blob/develop/docs/synonyms.md>. A line is one
//! headword as CSV; columns after the headword are ignored. Blank lines between groups may be left out, so a new group
//! number begins a group too. The terms of one lexeme number are a set; a term with several (`1/2`) is in each. Terms
//! without a number are a set of their own.
//!
//! | column | meaning | here |
//! |---|---|---|
//! | 0 | group number | bounds the sets |
//! | 2 | expansion control | 0: used; 1: others expand to it, it does not expand itself; 2: no row |
//! | 3 | lexeme number | the set |
//! | 4 | word form | 0: may stand for the set; 4, a misuse: TYPO |
//! | 6 | spelling | 3, a misspelling: TYPO |
//! | 8 | headword | the term |
//!
//! Control 1 is the reverse of `ONE_WAY` for the term itself. So each other term of the set that expands stands for it,
//! one way: they expand to it, and it to none. The representative is the first term of form 0, else the first term,
//! among those of control 0 that are no mistakes.

use std::{collections::BTreeMap, io::BufRead};

use ::csv::{ReaderBuilder, StringRecord};

use emend_core::Relation;

use super::{
    lines::lines,
    record::{Record, RowError},
    solr::is_one,
};

struct Entry {
    line: u64,
    group: String,
    /// Others expand to it only.
    passive: bool,
    lexemes: Vec<u32>,
    main: bool,
    typo: bool,
    term: String,
}

/// Reads pairs group by group and passes each to `take` with its term's line, until there are no more or `take` returns
/// false. One group is held at a time, so what is wrong with a line comes before the pairs of its group.
///
/// A line is an error if its quotes are not closed, it has fewer than 9 columns, no group number or headword, or a number that
/// the format doesn't know. Reading goes on, except after text that can't be read.
pub(super) fn read(from: impl BufRead, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) {
    let mut group: Vec<Entry> = Vec::new();
    for (line, text) in lines(from) {
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                if finish(&mut group, take) {
                    take(line, Err(RowError::row(error.to_string())));
                }
                return;
            }
        };
        if text.trim().is_empty() {
            if !finish(&mut group, take) {
                return;
            }
            continue;
        }
        match entry(line, &text) {
            Ok(Some(entry)) => {
                if group.last().is_some_and(|last| last.group != entry.group) && !finish(&mut group, take) {
                    return;
                }
                group.push(entry);
            }
            Ok(None) => {}
            Err(error) => {
                if !take(line, Err(error)) {
                    return;
                }
            }
        }
    }
    finish(&mut group, take);
}

fn entry(line: u64, text: &str) -> Result<Option<Entry>, RowError> {
    if text.matches('"').count() % 2 == 1 {
        return Err(RowError::row("has a quote that is not closed"));
    }
    let mut record = StringRecord::new();
    ReaderBuilder::new()
        .has_headers(false)
        .buffer_capacity(text.len().max(16))
        .from_reader(text.as_bytes())
        .read_record(&mut record)
        .map_err(|error| RowError::row(error.to_string()))?;
    if record.len() < 9 {
        return Err(RowError::row(format!(
            "has {} columns; at least 9 are needed",
            record.len()
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
    let lexemes = match column(3) {
        "" => vec![0],
        text => text
            .split('/')
            .map(|lexeme| lexeme.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| RowError::row(format!("has the lexeme number {text:?}")))?,
    };
    if column(8).is_empty() {
        return Err(RowError::row("has no headword"));
    }
    Ok((control != 2).then(|| Entry {
        line,
        group: column(0).to_owned(),
        passive: control == 1,
        lexemes,
        main: form == Some(0),
        typo: form == Some(4) || spelling == Some(3),
        term: column(8).to_owned(),
    }))
}

/// Passes on the pairs of a group and empties it. False if `take` wants no more.
fn finish(group: &mut Vec<Entry>, take: &mut dyn FnMut(u64, Result<Record, RowError>) -> bool) -> bool {
    let group = std::mem::take(group);
    let mut sets: BTreeMap<u32, Vec<&Entry>> = BTreeMap::new();
    for entry in &group {
        for &lexeme in &entry.lexemes {
            sets.entry(lexeme).or_default().push(entry);
        }
    }
    let mut seen = std::collections::HashSet::new();
    for set in sets.values() {
        let fit = || set.iter().filter(|entry| !entry.passive && !entry.typo);
        let representative = fit().find(|entry| entry.main).or_else(|| fit().next());
        for entry in set.iter().filter(|entry| !entry.passive) {
            let passive = set.iter().filter(|other| other.passive && !other.typo);
            for of in representative.into_iter().chain(passive) {
                if is_one(&entry.term, &of.term) || !seen.insert((&entry.term, &of.term)) {
                    continue;
                }
                let relation = match (entry.typo, of.passive) {
                    (true, _) => Relation::Typo,
                    (false, true) => Relation::OneWay,
                    (false, false) => Relation::Equivalent,
                };
                let row = Record::synonym(entry.term.clone(), of.term.clone(), relation);
                if !take(entry.line, Ok(row)) {
                    return false;
                }
            }
        }
    }
    true
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
    fn each_lexeme_is_a_set_and_mistakes_are_typos() {
        let text = "\u{FEFF}000001,1,0,1,2,0,0,(),盤面,,\r\n000001,1,0,1,0,0,0,(),\"フィールド\",,\r\n\
            000001,1,0,2,0,0,0,(),場,,\r\n000001,1,0,1/2,2,0,0,(),ボード,,\r\n000001,1,2,1,2,0,0,(),台,,\r\n\r\n\
            000002,1,0,1,0,0,0,(),フォロワー,,\r\n000002,1,0,1,0,0,3,(),フォロワ,,\r\n\
            000002,1,0,1,4,0,0,(),フォロー,,\r\n";
        let expected = [
            "1 盤面 フィールド Equivalent",
            "4 ボード フィールド Equivalent",
            "4 ボード 場 Equivalent",
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
            ("1,,,one,,,,,a", "lexeme number"),
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
        assert!(matches!(&all(b"\xff\n")[..], [(1, Err(_))]));
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
