//! Queries without results that are another spelling of queries that led to clicks: a slip of the keys, a compound that is
//! written apart.

use std::collections::BTreeMap;

use super::{
    fold::is_kanji,
    rewrites::{Rewrite, Word, middle, part},
};

/// From how many characters on a word may have one slip, and from how many two. Shorter words that differ are other words.
const SLIPS: [usize; 2] = [5, 9];
/// Longer words are not compared letter by letter.
const LONGEST: usize = 32;

/// Wordings that led to clicks.
#[derive(Debug, Clone, Default)]
pub struct Successes {
    all: Vec<Success>,
}

#[derive(Debug, Clone)]
struct Success {
    text: String,
    words: Vec<Word>,
    sessions: usize,
}

/// What a wording without results is another spelling of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respelled {
    /// In what both differ.
    pub rewrite: Rewrite,
    /// In how many sessions the other wording led to clicks.
    pub sessions: usize,
}

impl Successes {
    /// Of wordings, each with in how many sessions it led to clicks; whatever their order.
    pub fn new(wordings: impl IntoIterator<Item = (String, usize)>) -> Self {
        let wordings: BTreeMap<String, usize> = wordings.into_iter().collect();
        let success = |(text, sessions): (String, usize)| Success {
            words: Word::all(&text),
            text,
            sessions,
        };
        Self {
            all: wordings.into_iter().map(success).collect(),
        }
    }

    /// What this is another spelling of: of several, that with the fewest slips, then that of the most sessions, then the first in
    /// the order of texts. Both begin with the same letter, where people seldom slip (Yannakoudakis and Fawthrop, "The rules of
    /// spelling errors", 1983). Words with digits have no slips: they are other numbers and other products.
    pub fn of(&self, failed: &str) -> Option<Respelled> {
        let words = Word::all(failed);
        let of_success = |success: &Success| {
            let (one, other) = middle(&words, &success.words);
            // What most pairs fail at costs least.
            if first_letter(one)? != first_letter(other)? {
                return None;
            }
            let rewrite = Rewrite {
                failed: part(failed, one)?,
                worked: part(&success.text, other)?,
            };
            let slips = slips(one, other)?;
            let sessions = success.sessions;
            Some((slips, Respelled { rewrite, sessions }))
        };
        let found = self.all.iter().filter_map(of_success);
        // The first of equals.
        let best = found.min_by(|(one, of_one), (other, of_other)| {
            one.cmp(other)
                .then_with(|| of_other.sessions.cmp(&of_one.sessions))
        });
        best.map(|(_, respelled)| respelled)
    }
}

fn first_letter(words: &[Word]) -> Option<char> {
    words.first()?.folded.chars().next()
}

/// How many characters are missing, too many, others or the wrong way round: word for word, or, where one side writes apart what the
/// other does not, none. `None`: these are other words.
fn slips(one: &[Word], other: &[Word]) -> Option<usize> {
    if one.len() == other.len() {
        let pairs = one.iter().zip(other);
        return pairs
            .map(|(one, other)| slips_of_word(&one.folded, &other.folded))
            .sum();
    }
    let joined = |words: &[Word]| words.iter().map(|word| &*word.folded).collect::<String>();
    (joined(one) == joined(other) && numbers(one) == numbers(other)).then_some(0)
}

fn slips_of_word(one: &str, other: &str) -> Option<usize> {
    if one == other {
        return Some(0);
    }
    let (length, longer) = {
        let (one, other) = (one.chars().count(), other.chars().count());
        (one.min(other), one.max(other))
    };
    let most = SLIPS.iter().filter(|&&from| length >= from).count();
    let may_slip = longer - length <= most
        && longer <= LONGEST
        && one.chars().next() == other.chars().next()
        && !one
            .chars()
            .chain(other.chars())
            .any(|c| c.is_numeric() || is_kanji(c));
    if !may_slip {
        return None;
    }
    let slips = strsim::osa_distance(one, other);
    (slips <= most).then_some(slips)
}

/// The numbers in words, in order; each ends with its word.
fn numbers(words: &[Word]) -> Vec<&str> {
    words
        .iter()
        .flat_map(|word| word.folded.split(|c: char| !c.is_numeric()))
        .filter(|number| !number.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(failed: &str, worked: &[(&str, usize)]) -> Option<(String, String, usize)> {
        let worked = worked.iter().map(|&(text, sessions)| (text.to_owned(), sessions));
        let found = Successes::new(worked).of(failed)?;
        Some((found.rewrite.failed, found.rewrite.worked, found.sessions))
    }

    fn pair(failed: &str, worked: &str) -> Option<(String, String)> {
        of(failed, &[(worked, 3)]).map(|(failed, worked, _)| (failed, worked))
    }

    #[test]
    fn slips_of_the_keys_and_compounds_written_apart_are_found() {
        for (failed, worked, parts) in [
            ("Lightening Bolt", "lightning bolt", ("Lightening", "lightning")),
            ("cards that retrun", "cards that return", ("retrun", "return")),
            ("light saber", "lightsaber", ("light saber", "lightsaber")),
            (
                "red note book cover",
                "red notebook cover",
                ("note book", "notebook"),
            ),
            (
                "シュミレーション",
                "シミュレーション",
                ("シュミレーション", "シミュレーション"),
            ),
            ("accomodation", "accommodation", ("accomodation", "accommodation")),
            ("wifi router x200", "wi fi router x200", ("wifi", "wi fi")),
            ("iphone14 case", "iphone 14 case", ("iphone14", "iphone 14")),
        ] {
            let expected = (parts.0.to_owned(), parts.1.to_owned());
            assert_eq!(pair(failed, worked), Some(expected), "{failed}");
        }
    }

    #[test]
    fn other_words_and_other_numbers_are_no_spellings() {
        for (failed, worked) in [
            ("red card", "rod card"),
            ("cards with haste", "cards with paste"),
            ("bounce a card", "return a card"),
            ("router x20017", "router x20018"),
            ("a phone g991b", "a phone g991u"),
            ("1/12 inch", "11/2 inch"),
            ("men shirts", "man shorts"),
            ("pink shirt", "pick short"),
            ("iphone 14", "iphone 15"),
            ("東京都渋谷区", "東京都新宿区"),
            ("lightning", "lightning bolt"),
            ("return", "Return"),
            ("monitor", "motor"),
            ("", "return"),
            ("!?", "return"),
        ] {
            assert_eq!(pair(failed, worked), None, "{failed}");
        }
    }

    #[test]
    fn the_fewest_slips_come_first_then_the_most_sessions_then_the_first_text() {
        let said = |worked: &str, sessions| Some(("lightening".to_owned(), worked.to_owned(), sessions));
        let wordings = [
            ("lightnings", 50),
            ("lightning", 3),
            ("lightenin", 4),
            ("lighteninf", 4),
        ];
        assert_eq!(of("lightening", &wordings), said("lightenin", 4));
        assert_eq!(of("lightening", &wordings[..2]), said("lightning", 3));
        assert_eq!(
            of("lightening", &[("lightenina", 4), ("lighteninb", 4)]),
            said("lightenina", 4)
        );
        assert_eq!(of("lightening", &[]), None);
    }
}
