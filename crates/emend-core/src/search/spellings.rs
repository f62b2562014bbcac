//! Queries without results that are another spelling of queries that led to clicks: a slip of the keys, a compound that is
//! written apart.

use std::collections::BTreeMap;

use super::{
    fold::is_kanji,
    rewrites::{Rewrite, Word, middle, part},
};

/// From how many characters on a word may have one slip, and from how many two. Shorter words that differ are other words.
const SLIPS: [usize; 2] = [5, 9];

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
    /// spelling errors", 1983), and have the same digits: numbers that differ are other numbers.
    pub fn of(&self, failed: &str) -> Option<Respelled> {
        let words = Word::all(failed);
        let of_success = |success: &Success| {
            let (one, other) = middle(&words, &success.words);
            let slips = slips(&joined(one), &joined(other))?;
            let rewrite = Rewrite {
                failed: part(failed, one)?,
                worked: part(&success.text, other)?,
            };
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

/// Words as one: spaces make no other spelling.
fn joined(words: &[Word]) -> String {
    words.iter().map(|word| &*word.folded).collect()
}

/// How many characters are missing, too many, others or the wrong way round. `None`: these are different words.
fn slips(one: &str, other: &str) -> Option<usize> {
    if one.is_empty() || other.is_empty() {
        return None;
    }
    if one == other {
        return Some(0);
    }
    let (length, longer) = {
        let (one, other) = (one.chars().count(), other.chars().count());
        (one.min(other), one.max(other))
    };
    let most = SLIPS.iter().filter(|&&from| length >= from).count();
    let digits = |text: &str| text.chars().filter(|c| c.is_numeric()).collect::<String>();
    let may_slip = longer - length <= most
        && one.chars().next() == other.chars().next()
        && digits(one) == digits(other)
        && !one.chars().chain(other.chars()).any(is_kanji);
    if !may_slip {
        return None;
    }
    let slips = strsim::osa_distance(one, other);
    (slips <= most).then_some(slips)
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
