//! The language of what stands around examples.

use crate::violation::Invalid;

/// The language of headings and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Japanese.
    Ja,
}

impl Language {
    /// All languages, in the order of their numbers on the wire.
    pub const ALL: [Self; 2] = [Self::En, Self::Ja];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::En => 1,
            Self::Ja => 2,
        }
    }

    /// The language with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.number() == number)
    }

    /// Its ISO 639-1 code.
    pub const fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ja => "ja",
        }
    }

    /// The language with this code, in any case.
    pub fn parse(code: &str) -> Result<Self, Invalid> {
        let sought = code.trim().to_ascii_lowercase();
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.name() == sought)
            .ok_or_else(|| Invalid::new(format!("must be en or ja, is {code:?}")))
    }
}
