//! Fields that are searched.

use std::{fmt, str::FromStr};

/// The longest name of a field.
const LONGEST: usize = 128;
/// The greatest boost.
const GREATEST: f32 = 1_000_000.0;

/// A field, with what a match in it counts: `title` or `title^3`.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    name: String,
    boost: Option<f32>,
}

/// Why a text is no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be NAME or NAME^BOOST, NAME of 1 to {LONGEST} characters of [A-Za-z0-9_.-] that begins with a letter or _, BOOST above 0 and at most {GREATEST}, is {0:?}"
)]
pub struct FieldError(String);

impl Field {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a match in it counts, beside 1.
    pub fn boost(&self) -> Option<f32> {
        self.boost
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.boost.map_or(Ok(()), |boost| write!(f, "^{boost}"))
    }
}

impl FromStr for Field {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let parsed = || {
            let (name, boost) = text
                .split_once('^')
                .map_or((text, None), |(name, boost)| (name, Some(boost)));
            let mut letters = name.bytes();
            let begins = letters
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
            let goes_on = letters.all(|letter| letter.is_ascii_alphanumeric() || b"_.-".contains(&letter));
            if !begins || !goes_on || name.len() > LONGEST {
                return None;
            }
            let boost = boost
                .map(|boost| boost.parse::<f32>().ok())
                .map_or(Some(None), |boost| boost.map(Some))?;
            let is_boost = boost.is_none_or(|boost| boost > 0.0 && boost <= GREATEST);
            is_boost.then(|| Self {
                name: name.to_owned(),
                boost,
            })
        };
        parsed().ok_or_else(|| FieldError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_name_and_nothing_else() {
        for (text, shown) in [
            ("title", "title"),
            ("_text_^2.50", "_text_^2.5"),
            ("a.b-c^3", "a.b-c^3"),
        ] {
            assert_eq!(text.parse::<Field>().unwrap().to_string(), shown);
        }
        for wrong in [
            "", "^2", "a b", "a:b", "1a", "*", "a^", "a^0", "a^-1", "a^nan", "a^inf", "a^2^3", "a)", "題",
        ] {
            let error = wrong.parse::<Field>().unwrap_err();
            assert!(error.to_string().contains(&format!("is {wrong:?}")), "{error}");
        }
    }
}
