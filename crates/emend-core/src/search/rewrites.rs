//! Rewordings that worked: somebody found nothing, asked in other words and took a result. What differs between the two
//! queries may be a synonym that is missing.

use jiff::{SignedDuration, Timestamp};

use super::{FoldedText, cut::words};
use crate::personal_data;

/// The longest time from a query without results to the click.
pub const REWRITE_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// The most words in which the two queries may differ.
const MAX_WORDS: usize = 4;
/// The most characters of either side.
const MAX_CHARS: usize = 64;

/// One query of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched<'a> {
    /// What was searched for.
    pub text: &'a str,
    /// When.
    pub at: Timestamp,
    /// Whether nothing was found, as it was reported: a query of which that is not known did not find nothing.
    pub found_nothing: bool,
    /// When a result was first clicked, if one was.
    pub clicked_at: Option<Timestamp>,
}

/// A wording that found nothing, and the one that took its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rewrite {
    /// What found nothing, as it was written.
    pub failed: String,
    /// What was searched for instead, as it was written.
    pub worked: String,
}

/// The rewordings in one session, given in order of time: of each query without results the next one whose result was clicked
/// at most [`REWRITE_WITHIN`] after the query without results.
pub fn rewrites(session: &[Searched<'_>]) -> Vec<Rewrite> {
    let mut found = Vec::new();
    for (place, failed) in session
        .iter()
        .enumerate()
        .filter(|(_, query)| query.found_nothing)
    {
        let in_time = |at: Timestamp| (failed.at..=failed.at + REWRITE_WITHIN).contains(&at);
        let later = session[place + 1..].iter();
        let worked = later
            .take_while(|query| in_time(query.at))
            .find(|query| query.clicked_at.is_some_and(in_time));
        found.extend(worked.and_then(|worked| difference(failed.text, worked.text)));
    }
    found
}

/// In what two texts differ: what is left of each without the words with which both begin and end. `None` if one only leaves
/// words out, if they differ in too much, or in nothing but spelling that is folded away.
fn difference(failed: &str, worked: &str) -> Option<Rewrite> {
    let (one, other) = (Word::all(failed), Word::all(worked));
    let (one, other) = middle(&one, &other);
    Some(Rewrite {
        failed: part(failed, one)?,
        worked: part(worked, other)?,
    })
}

/// What is left of two texts without the words with which both begin and end.
pub(super) fn middle<'w>(one: &'w [Word], other: &'w [Word]) -> (&'w [Word], &'w [Word]) {
    let same = |(one, other): &(&Word, &Word)| one.folded == other.folded;
    let before = one.iter().zip(other).take_while(same).count();
    let (one, other) = (&one[before..], &other[before..]);
    let after = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
    (&one[..one.len() - after], &other[..other.len() - after])
}

/// A word with where it stands in its text.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) folded: String,
    start: usize,
    end: usize,
}

impl Word {
    /// Those of a text, in order.
    pub(super) fn all(text: &str) -> Vec<Self> {
        let word = |(start, end): (usize, usize)| Self {
            folded: FoldedText::new(&text[start..end]).chars().iter().collect(),
            start,
            end,
        };
        words(text).into_iter().map(word).collect()
    }
}

/// The text of these words with what stands between them, if it can be a term.
pub(super) fn part(text: &str, words: &[Word]) -> Option<String> {
    let (first, last) = (words.first()?, words.last()?);
    let part = text[first.start..last.end].trim();
    let is_masked = personal_data::unmasked_parts(part).nth(1).is_some();
    (words.len() <= MAX_WORDS && part.chars().count() <= MAX_CHARS && !is_masked).then(|| part.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 0).unwrap()
    }

    fn nothing(second: i64, text: &str) -> Searched<'_> {
        Searched {
            text,
            at: at(second),
            found_nothing: true,
            clicked_at: None,
        }
    }

    fn clicked(second: i64, text: &str, clicked: i64) -> Searched<'_> {
        Searched {
            text,
            at: at(second),
            found_nothing: false,
            clicked_at: Some(at(clicked)),
        }
    }

    fn pairs(session: &[Searched<'_>]) -> Vec<(String, String)> {
        let found = rewrites(session);
        found.into_iter().map(|one| (one.failed, one.worked)).collect()
    }

    #[test]
    fn what_was_replaced_between_equal_words_is_the_rewrite() {
        let session = [
            nothing(0, "cards that bounce to hand"),
            clicked(30, "Cards that return to Hand", 40),
        ];
        assert_eq!(pairs(&session), [("bounce".into(), "return".into())]);
        let session = [
            nothing(0, "手札にバウンスするカード"),
            clicked(9, "手札に戻すカード", 10),
        ];
        let found = pairs(&session);
        assert_eq!(found.len(), 1);
        assert!(found[0].0.starts_with("バウンス"), "{found:?}");
        assert!(found[0].1.starts_with("戻"), "{found:?}");
    }

    #[test]
    fn the_click_must_come_in_time_and_after_a_query_without_results() {
        let late = [nothing(0, "bounce"), clicked(100, "return", 121)];
        assert_eq!(pairs(&late), []);
        let in_time = [nothing(0, "bounce"), clicked(100, "return", 120)];
        assert_eq!(pairs(&in_time).len(), 1);
        let unclicked = Searched {
            clicked_at: None,
            ..clicked(10, "return", 0)
        };
        assert_eq!(pairs(&[nothing(0, "bounce"), unclicked]), []);
        assert_eq!(pairs(&[clicked(0, "bounce", 5), clicked(10, "return", 11)]), []);
    }

    #[test]
    fn of_several_tries_each_counts_against_the_one_that_worked() {
        let session = [
            nothing(0, "bounce"),
            nothing(10, "send back"),
            clicked(20, "return", 25),
        ];
        assert_eq!(
            pairs(&session),
            [
                ("bounce".to_owned(), "return".to_owned()),
                ("send back".to_owned(), "return".to_owned())
            ]
        );
    }

    #[test]
    fn words_that_were_left_out_and_wholly_other_questions_are_no_rewrites() {
        for (failed, worked) in [
            ("cards that bounce quickly", "cards that bounce"),
            ("Ｃards", "CARDS"),
            ("one two three four five", "cards"),
        ] {
            assert_eq!(
                pairs(&[nothing(0, failed), clicked(1, worked, 2)]),
                [],
                "{failed}"
            );
        }
    }
}
