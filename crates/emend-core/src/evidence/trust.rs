//! How far a source is trusted: for ranking and as a hint, never for confidence in a claim.

use std::fmt;

use crate::violation::Invalid;

/// How far a source is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TrustLevel {
    /// The original source.
    Primary,
    /// A government's.
    Government,
    /// Universities, journals, preprint servers.
    Academic,
    /// Known to be careful.
    Trusted,
    /// Known to be careless.
    Low,
    /// Nothing is known of it.
    #[default]
    Unverified,
    /// Not to be shown.
    Blocked,
}

impl TrustLevel {
    /// All levels, in the order of their numbers on the wire.
    pub const ALL: [Self; 7] = [
        Self::Primary,
        Self::Government,
        Self::Academic,
        Self::Trusted,
        Self::Low,
        Self::Unverified,
        Self::Blocked,
    ];

    /// What a result from such a source weighs in a ranking, 0.0 to 1.0.
    pub const fn weight(self) -> f64 {
        match self {
            Self::Primary => 1.0,
            Self::Government => 0.95,
            Self::Academic => 0.90,
            Self::Trusted => 0.75,
            Self::Low => 0.40,
            Self::Unverified => 0.30,
            Self::Blocked => 0.0,
        }
    }

    /// Whether each page of such a source is a source of its own, because its author is: ACADEMIC and above.
    pub const fn pages_are_sources(self) -> bool {
        match self {
            Self::Primary | Self::Government | Self::Academic => true,
            Self::Trusted | Self::Low | Self::Unverified | Self::Blocked => false,
        }
    }

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Primary => 1,
            Self::Government => 2,
            Self::Academic => 3,
            Self::Trusted => 4,
            Self::Low => 5,
            Self::Unverified => 6,
            Self::Blocked => 7,
        }
    }

    /// The level with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.number() == number)
    }

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Government => "government",
            Self::Academic => "academic",
            Self::Trusted => "trusted",
            Self::Low => "low",
            Self::Unverified => "unverified",
            Self::Blocked => "blocked",
        }
    }

    /// Parses a level that people may set, in any case. BLOCKED is none: a source is blocked by a decision of its own.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let sought = name.trim().to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .filter(|level| *level != Self::Blocked)
            .find(|level| level.name() == sought)
            .ok_or_else(|| {
                Invalid::new(format!(
                    "must be primary, government, academic, trusted, low or unverified, is {name:?}"
                ))
            })
    }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_more_trusted_source_weighs_more() {
        for pair in TrustLevel::ALL.windows(2) {
            assert!(pair[0].weight() > pair[1].weight(), "{pair:?}");
        }
    }

    #[test]
    fn people_set_every_level_but_blocked() {
        for level in TrustLevel::ALL {
            let parsed = TrustLevel::parse(&format!(" {}", level.name().to_uppercase()));
            assert_eq!(parsed.is_ok(), level != TrustLevel::Blocked, "{level}");
        }
    }
}
