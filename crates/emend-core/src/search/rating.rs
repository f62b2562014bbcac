//! Ratings of what a search returned, and who gives them.

use uuid::Uuid;

use crate::{
    ids::{Caller, Namespace, length_prefixed},
    reporter::Reporter,
};

/// How somebody found what a search returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SearchRating {
    /// Not what was wanted.
    Down,
    /// Neither.
    Neutral,
    /// Good.
    Up,
}

impl SearchRating {
    /// All, from the worst to the best.
    pub const ALL: [Self; 3] = [Self::Down, Self::Neutral, Self::Up];

    /// −1, 0 or 1.
    pub const fn number(self) -> i32 {
        match self {
            Self::Down => -1,
            Self::Neutral => 0,
            Self::Up => 1,
        }
    }

    /// The rating with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|rating| i64::from(rating.number()) == number)
    }

    /// Its name, also the label of metrics: `down`, `neutral` or `up`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Neutral => "neutral",
            Self::Up => "up",
        }
    }
}

/// A pseudonym of who rates: limits are counted by it, and one rater's ratings of one query replace each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rater(pub Uuid);

/// The UUID namespace of raters (RFC 9562, version 5).
const RATERS: Uuid = Uuid::from_u128(0x8f2d_63a0_94b7_4a5e_b1c6_0d5e_7f31_2c14);

impl Rater {
    /// The reporter by its id; else by the session, else by the client key, both within the caller; else all of the caller
    /// together.
    pub fn of(namespace: &Namespace, caller: &Caller, reporter: &Reporter) -> Self {
        let namespace = namespace.as_str().as_bytes();
        let within = caller.as_str().as_bytes();
        let bytes = match reporter {
            Reporter { id: Some(id), .. } => length_prefixed(&[namespace, b"r", id.as_str().as_bytes()]),
            Reporter {
                session: Some(session),
                ..
            } => length_prefixed(&[namespace, b"s", within, session.as_bytes()]),
            Reporter { client_key, .. } if !client_key.is_empty() => {
                length_prefixed(&[namespace, b"k", within, client_key.as_bytes()])
            }
            _ => length_prefixed(&[namespace, b"c", within]),
        };
        Self(Uuid::new_v5(&RATERS, &bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rater_is_the_reporter_else_the_session_else_the_client_key_else_the_caller() {
        let rater = |namespace: &str, caller: &str, parts: [&str; 3]| {
            let reporter = Reporter::parse(parts[0], parts[1], "web", parts[2]).unwrap();
            Rater::of(
                &Namespace::parse(namespace).unwrap(),
                &Caller::parse(caller).unwrap(),
                &reporter,
            )
        };
        let jane = rater("a", "web", ["jane", "s", "k"]);
        assert_eq!(rater("a", "app", ["jane", "t", "l"]), jane, "whoever says so");
        let session = rater("a", "web", ["", "s", "k"]);
        assert_eq!(rater("a", "web", ["", "s", "l"]), session);
        let key = rater("a", "web", ["", "", "k"]);
        let all = [
            jane,
            session,
            key,
            rater("a", "web", ["", "", ""]),
            rater("a", "web", ["s", "", ""]),
            rater("b", "web", ["jane", "", ""]),
            rater("a", "app", ["", "s", "k"]),
            rater("a", "app", ["", "", "k"]),
            rater("a", "app", ["", "", ""]),
        ];
        let distinct: std::collections::BTreeSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_rating_is_found_by_its_number() {
        for rating in SearchRating::ALL {
            assert_eq!(SearchRating::from_number(rating.number().into()), Some(rating));
        }
        assert_eq!(SearchRating::from_number(2), None);
    }
}
